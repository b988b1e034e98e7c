// What a visitor can choose: axes, colours, filters, series.

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A few buttons of which one is pressed. */
function choice(options, name, change) {
  return options.map(([value, text]) => {
    const button = element("button", { type: "button", textContent: text });
    button.dataset[name] = value;
    button.setAttribute("aria-pressed", String(state[name] === value));
    button.onclick = () => {
      state[name] = value;
      change();
    };
    return button;
  });
}

function select(text, name, options) {
  const list = element("select", { id: `choose-${name}` });
  for (const [value, label] of options) list.append(element("option", { value, textContent: label }));
  list.value = String(state[name]);
  list.onchange = () => {
    state[name] = list.value === "true" ? true : list.value === "false" ? false : list.value;
    render({});
  };
  return element("label", {}, text, list);
}

function check(text, name) {
  const box = element("input", { type: "checkbox", checked: state[name], id: `choose-${name}` });
  box.onchange = () => {
    state[name] = box.checked;
    state.zoom = null;
    render({});
  };
  return element("label", {}, box, text);
}

function drawControls() {
  const costs = Object.entries(data.short).filter(([name]) =>
    runs.some((run) => (run.final[name] ?? 0) > 0),
  );
  const buttons = element("div", { className: "choice" });
  buttons.setAttribute("role", "group");
  buttons.setAttribute("aria-label", "Horizontal axis");
  buttons.append(
    ...choice(costs, "x", () => {
      state.zoom = null;
      drawControls();
      render({});
    }),
  );
  const row = [buttons, check("log x", "logx"), check("log y", "logy")];
  const hues = data.keys.filter((key) => !data.seeds.includes(key));
  if (hues.length > 1) row.push(select("colour", "hue", [["", "each series"], ...hues.map((key) => [key, key])]));
  if (runs.length > told.length && new Set(runs.map((run) => run.label)).size < runs.length) {
    row.push(select("seeds", "mean", [[true, "mean"], [false, "every run"]]));
    row.push(
      select("band", "band", [["range", "min to max"], ["deviation", "± deviation"], ["none", "none"]]),
    );
  }
  byId("axes").replaceChildren(...row);
}

function drawFilters() {
  const boxes = filterKeys().map((key) => filterOf(key));
  const reset = element("button", { type: "button", id: "reset", textContent: "Reset" });
  reset.onclick = () => {
    state.filters = {};
    state.hidden.clear();
    state.zoom = null;
    drawFilters();
    render({});
  };
  if (boxes.length) boxes.unshift(element("span", { textContent: "Filter" }));
  byId("filters").replaceChildren(...boxes, reset);
}

function filterOf(key) {
  const values = valuesOf(key);
  const summary = element("summary");
  const panel = element("div");
  const made = element("details", { className: "filter" }, summary, panel);
  made.dataset.key = key;
  const tell = () => {
    const chosen = state.filters[key];
    const text = chosen && (chosen.size <= 3 ? [...chosen].join(", ") || "none" : `${chosen.size} of ${values.length}`);
    summary.textContent = text === undefined ? key : `${key}: ${text}`;
    made.classList.toggle("active", chosen !== undefined);
  };
  const set = (chosen) => {
    if (chosen.size === values.length) delete state.filters[key];
    else state.filters[key] = chosen;
    for (const box of panel.querySelectorAll("input")) box.checked = chosen.has(box.value);
    tell();
    render({});
  };
  for (const [text, chosen] of [["all", values], ["none", []]]) {
    const button = element("button", { type: "button", textContent: text });
    button.onclick = () => set(new Set(chosen));
    panel.append(button);
  }
  for (const value of values) {
    const box = element("input", { type: "checkbox", value, checked: state.filters[key]?.has(value) ?? true });
    box.onchange = () => {
      const chosen = new Set(state.filters[key] ?? values);
      if (box.checked) chosen.add(value);
      else chosen.delete(value);
      set(chosen);
    };
    panel.append(element("label", {}, box, value));
  }
  made.ontoggle = () => {
    if (!made.open) return;
    for (const other of document.querySelectorAll("details.filter[open]")) if (other !== made) other.open = false;
  };
  tell();
  return made;
}

const MOST_IN_LEGEND = 60;

/** A button for each series: pressed while it is shown; with Shift or twice, it alone is. */
function drawLegend(all) {
  const buttons = all.slice(0, MOST_IN_LEGEND).map((series) => {
    const button = element("button", { type: "button" }, swatch(series), series.label);
    button.dataset.label = series.label;
    button.setAttribute("aria-pressed", String(!state.hidden.has(series.label)));
    const troubles = series.runs.map(troubleOf).filter(Boolean);
    if (series.runs.length > 1) button.append(element("small", { textContent: `×${series.runs.length}` }));
    if (troubles.length) {
      const words = [...new Set(troubles)].join(", ");
      button.append(element("small", { className: "bad", textContent: `✕ ${troubles.length} ${words}` }));
    }
    const alone = () => {
      const others = all.map((each) => each.label).filter((label) => label !== series.label);
      const already = others.every((label) => state.hidden.has(label));
      state.hidden = new Set(already ? [] : others);
    };
    button.onclick = (event) => {
      if (event.shiftKey || event.detail === 2) alone();
      else if (!state.hidden.delete(series.label)) state.hidden.add(series.label);
      render({});
      byId("legend").querySelector(`[data-label="${CSS.escape(series.label)}"]`)?.focus();
    };
    button.onpointerenter = button.onfocus = () => light(series.label);
    button.onpointerleave = button.onblur = () => light(null);
    return button;
  });
  const rest = all.length - MOST_IN_LEGEND;
  if (rest > 0) buttons.push(element("small", { textContent: `and ${rest} more: point at a curve to see which it is` }));
  byId("legend").replaceChildren(...buttons);
}

function swatch(series) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  picture.setAttribute("width", "26");
  picture.setAttribute("height", "10");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "line");
  const dash = series.dash.map((length) => length * 2).join(" ");
  for (const [name, value] of Object.entries({ x1: 1, x2: 25, y1: 5, y2: 5, stroke: series.colour, "stroke-width": 2.4, "stroke-dasharray": dash })) {
    line.setAttribute(name, value);
  }
  picture.append(line);
  return picture;
}
