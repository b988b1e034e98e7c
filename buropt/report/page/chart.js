// One chart: curves on a canvas, and a second one above it for what follows the pointer.

const MARGIN = { left: 56, right: 12, top: 8, bottom: 40 };
const REACH = 28; // pixels from a curve that still mean it

class Chart {
  constructor(measure, parent) {
    this.measure = measure;
    this.figure = document.createElement("figure");
    this.figure.className = "chart";
    const caption = document.createElement("figcaption");
    caption.textContent = data.measures[measure];
    const wide = document.createElement("button");
    wide.type = "button";
    wide.textContent = "⤢";
    wide.title = "Larger or smaller";
    wide.setAttribute("aria-label", `${data.measures[measure]}: larger or smaller`);
    wide.onclick = () => {
      this.figure.classList.toggle("wide");
      this.draw();
    };
    caption.append(wide);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.above = document.createElement("canvas");
    this.figure.append(caption, this.canvas, this.above);
    parent.append(this.figure);
    this.listen();
  }

  /** New curves to show; `all` has the series that are not hidden. */
  update(all) {
    this.lines = [];
    for (const series of all) {
      for (const curve of curvesOf(series, state.x, this.measure)) this.lines.push({ ...curve, series });
    }
    const unknown = this.lines.length ? "" : ", nothing to show";
    const label = `${data.measures[this.measure]} over ${data.costs[state.x]}, ${all.length} series${unknown}`;
    this.canvas.setAttribute("aria-label", label);
    this.draw();
  }

  /** The least and the largest of what is shown; curves that diverged do not count beyond their start. */
  limits() {
    const shown = this.lines.filter((line) => line.x.length);
    if (!shown.length) return [state.logx ? 1 : 0, 10, state.logy ? 0.1 : 0, 1];
    const [from, to] = state.zoom ?? [-Infinity, Infinity];
    let [y0, y1] = [Infinity, -Infinity];
    for (const line of shown) {
      const [low, high] = [line.low ?? line.y, line.high ?? line.y];
      const n = line.lost ? 1 : line.x.length;
      for (let k = 0; k < n; k++) {
        if (line.x[k] < from || line.x[k] > to) continue;
        if (low[k] < y0 && (low[k] > 0 || !state.logy)) y0 = low[k];
        if (high[k] > y1) y1 = high[k];
      }
    }
    if (y1 < y0) [y0, y1] = state.logy ? [0.1, 1] : [0, 1]; // nothing was measured in between
    if (shown.some((line) => line.lost)) y1 *= state.logy ? 10 : 2;
    const ends = shown.map((line) => {
      const leaves = line.lost ? line.y.findIndex((v) => v > y1) : -1;
      return line.x[leaves < 0 ? line.x.length - 1 : leaves];
    });
    const [x0, x1] = state.zoom ?? [Math.min(...shown.map((line) => line.x[0])), Math.max(...ends)];
    if (state.logy) [y0, y1] = y0 === y1 ? [y0 / 2, y1 * 2] : [y0 / 1.3, y1 * 1.3];
    else [y0, y1] = [y0 - 0.04 * (y1 - y0 || 1), y1 + 0.04 * (y1 - y0 || 1)];
    return [x0, x0 === x1 ? x1 + 1 : x1, y0, y1];
  }

  draw() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.above]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = canvas === this.above ? `${height}px` : "";
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.right = width - MARGIN.right;
    this.bottom = height - MARGIN.bottom;
    const [x0, x1, y0, y1] = this.limits();
    this.sx = makeScale(x0, x1, MARGIN.left, this.right, state.logx);
    this.sy = makeScale(y0, y1, this.bottom, MARGIN.top, state.logy);
    const pen = this.canvas.getContext("2d");
    this.drawAxes(pen, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, MARGIN.top - 4, this.right - MARGIN.left + 6, this.bottom - MARGIN.top + 5);
    pen.clip();
    for (const line of this.lines) {
      line.px = Float32Array.from(line.x, this.sx);
      line.py = Float32Array.from(line.y, this.sy);
    }
    const many = this.lines.length > 60;
    for (const line of this.lines) if (line.low && state.band !== "none") this.drawBand(pen, line, many ? 0.06 : 0.16);
    for (const line of this.lines) this.drawLine(pen, line, many ? 0.55 : 1, many ? 1 : 1.8);
    pen.restore();
    this.drawAbove();
  }

  drawAxes(pen, width, height) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.strokeStyle = colour("--grid");
    pen.fillStyle = colour("--quiet");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of this.sy.ticks) {
      const y = Math.round(this.sy(tick.value)) + 0.5;
      pen.beginPath();
      pen.moveTo(MARGIN.left, y);
      pen.lineTo(this.right, y);
      pen.stroke();
      if (!tick.minor) pen.fillText(tick.text, MARGIN.left - 7, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const tick of this.sx.ticks) {
      const x = Math.round(this.sx(tick.value)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, MARGIN.top);
      pen.lineTo(x, this.bottom);
      pen.stroke();
      if (!tick.minor) pen.fillText(tick.text, x, this.bottom + 6);
    }
    pen.strokeStyle = colour("--quiet");
    pen.beginPath();
    pen.moveTo(MARGIN.left + 0.5, MARGIN.top);
    pen.lineTo(MARGIN.left + 0.5, this.bottom + 0.5);
    pen.lineTo(this.right, this.bottom + 0.5);
    pen.stroke();
    pen.fillText(data.costs[state.x], (MARGIN.left + this.right) / 2, this.bottom + 23);
    if (!this.lines.length) pen.fillText("nothing to show", (MARGIN.left + this.right) / 2, this.bottom / 2);
  }

  drawBand(pen, line, opacity) {
    pen.globalAlpha = opacity;
    pen.fillStyle = line.series.colour;
    pen.beginPath();
    for (let k = 0; k < line.x.length; k++) pen.lineTo(line.px[k], this.height(line.high[k]));
    for (let k = line.x.length - 1; k >= 0; k--) pen.lineTo(line.px[k], this.height(line.low[k]));
    pen.fill();
    pen.globalAlpha = 1;
  }

  height(value) {
    return state.logy && value <= 0 ? this.bottom : this.sy(value);
  }

  drawLine(pen, line, opacity, width) {
    pen.globalAlpha = opacity;
    pen.strokeStyle = line.series.colour;
    pen.lineWidth = line.lost ? Math.max(1, width * 0.6) : width;
    pen.lineJoin = "round";
    pen.setLineDash(line.series.dash.map((length) => length * width));
    pen.beginPath();
    for (let k = 0; k < line.px.length; k++) pen.lineTo(line.px[k], line.py[k]);
    pen.stroke();
    pen.setLineDash([]);
    if (line.lost) this.drawCross(pen, line);
    else if (line.px.length === 1) pen.fillRect(line.px[0] - 2, line.py[0] - 2, 4, 4);
    pen.globalAlpha = 1;
  }

  /** A cross where a run that diverged leaves the chart, or ends. */
  drawCross(pen, line) {
    let k = line.py.length - 1;
    while (k > 0 && line.py[k] < MARGIN.top + 4) k--;
    let [x, y] = [line.px[k], line.py[k]];
    if (k + 1 < line.py.length) {
      const share = (y - MARGIN.top - 5) / (y - line.py[k + 1]);
      [x, y] = [x + share * (line.px[k + 1] - x), MARGIN.top + 5];
    }
    pen.beginPath();
    for (const sign of [1, -1]) {
      pen.moveTo(x - 4, y - 4 * sign);
      pen.lineTo(x + 4, y + 4 * sign);
    }
    pen.lineWidth = 1.8;
    pen.stroke();
  }

  /** What is lit, the point under the pointer, and the part that is being chosen. */
  drawAbove() {
    const pen = this.above.getContext("2d");
    pen.clearRect(0, 0, this.above.width, this.above.height);
    const isLit = (line) =>
      typeof state.lit === "number"
        ? line.runs.some((run) => run.number === state.lit)
        : line.series.label === state.lit;
    const lit = state.lit === null ? [] : this.lines.filter(isLit);
    const style = getComputedStyle(document.documentElement);
    if (lit.length) {
      pen.globalAlpha = 0.72;
      pen.fillStyle = style.getPropertyValue("--page");
      pen.fillRect(MARGIN.left + 1, 0, this.right - MARGIN.left + 6, this.bottom);
      pen.globalAlpha = 1;
      pen.save();
      pen.beginPath();
      pen.rect(MARGIN.left, 0, this.right - MARGIN.left + 6, this.bottom + 1);
      pen.clip();
      for (const line of lit) {
        if (line.low && state.band !== "none") this.drawBand(pen, line, 0.22);
        this.drawLine(pen, line, 1, 2.4);
      }
      pen.restore();
    }
    if (this.near) {
      const { line, k } = this.near;
      pen.fillStyle = line.series.colour;
      pen.strokeStyle = style.getPropertyValue("--page");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(line.px[k], line.py[k], 5, 0, 7);
      pen.fill();
      pen.stroke();
    }
    if (this.drag) {
      pen.fillStyle = style.getPropertyValue("--accent");
      pen.globalAlpha = 0.15;
      pen.fillRect(this.drag[0], MARGIN.top, this.drag[1] - this.drag[0], this.bottom - MARGIN.top);
      pen.globalAlpha = 1;
    }
  }

  /** The curve nearest to a place, and its nearest point. */
  nearest(x, y) {
    let best = null;
    let least = REACH ** 2;
    for (const line of this.lines) {
      const { px, py } = line;
      let [low, high] = [0, px.length - 1];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (px[middle] < x) low = middle;
        else high = middle;
      }
      for (let k = Math.max(0, low - 4); k <= Math.min(px.length - 1, high + 4); k++) {
        const last = Math.max(0, k - 1);
        const [dx, dy] = [px[k] - px[last], py[k] - py[last]];
        const length = dx * dx + dy * dy;
        const share = length ? Math.min(1, Math.max(0, ((x - px[last]) * dx + (y - py[last]) * dy) / length)) : 0;
        const distance = (px[last] + share * dx - x) ** 2 + (py[last] + share * dy - y) ** 2;
        if (distance < least) {
          least = distance;
          best = { line, k: share < 0.5 ? last : k };
        }
      }
    }
    return best;
  }

  listen() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.onpointermove = (event) => {
      const [x, y] = place(event);
      if (this.start !== undefined && Math.abs(x - this.start) > 4) {
        const inside = (v) => Math.min(Math.max(v, MARGIN.left), this.right);
        this.drag = [inside(Math.min(x, this.start)), inside(Math.max(x, this.start))];
        return this.drawAbove();
      }
      this.near = this.nearest(x, y);
      const line = this.near?.line;
      light(line ? (line.runs.length === 1 ? line.runs[0].number : line.series.label) : null);
      showTip(this, event);
    };
    this.canvas.onpointerleave = () => {
      this.near = null;
      this.drag = null;
      this.start = undefined;
      light(null);
      showTip(this, null);
    };
    this.canvas.onpointerdown = (event) => {
      this.start = place(event)[0];
    };
    this.canvas.onpointerup = () => {
      const drag = this.drag;
      this.start = this.drag = undefined;
      if (drag) zoomTo([this.sx.back(drag[0]), this.sx.back(drag[1])]);
    };
    this.canvas.ondblclick = () => zoomTo(null);
  }
}
