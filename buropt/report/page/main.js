// Puts everything together: `render` draws what has changed.

const charts = [];
let shownSeries = [];

function render({ table = false }) {
  const grouped = groupRuns(chosenRuns());
  shownSeries = grouped.filter((series) => !state.hidden.has(series.label));
  saveState();
  drawTable(grouped);
  if (table) return;
  drawLegend(grouped);
  for (const chart of charts) {
    chart.near = null;
    chart.update(shownSeries);
  }
  tellNote();
  byId("rows").replaceChildren(
    ...choice([["series", "mean of each series"], ["runs", "every run"]], "rows", () => render({})),
  );
  byId("rows").hidden = new Set(runs.map((run) => run.label)).size === runs.length;
}

/** Light a series (its label), a run (its number) or nothing, in all charts and the legend. */
function light(what) {
  if (state.lit === what) {
    if (what !== null) for (const chart of charts) if (chart.near) chart.drawAbove();
    return;
  }
  state.lit = what;
  for (const chart of charts) chart.drawAbove();
  const label = typeof what === "number" ? runs[what].label : what;
  for (const button of byId("legend").children) button.classList.toggle("lit", button.dataset.label === label && label !== null);
}

function zoomTo(range) {
  state.zoom = range;
  for (const chart of charts) chart.draw();
}

/** The values under the pointer. */
function showTip(chart, event) {
  const tip = byId("tip");
  tip.hidden = !chart.near;
  if (!chart.near) return chart.drawAbove();
  const { line, k } = chart.near;
  const rows = [
    [data.measures[chart.measure], show(line.y[k])],
    [data.costs[state.x], show(line.x[k], true)],
  ];
  if (line.low && state.band !== "none") rows.push(["band", `${show(line.low[k])} to ${show(line.high[k])}`]);
  if (line.runs.length > 1) rows.push(["mean of", `${line.runs.length} runs`]);
  else rows.push(["run", line.runs[0].name], ["ended", statusOf(line.runs[0]).text]);
  for (const key of line.runs.length === 1 ? data.seeds : []) rows.push([key, valueOf(line.runs[0], key)]);
  const table = element("table");
  for (const [name, value] of rows) {
    table.append(element("tr", {}, element("td", { textContent: name }), element("td", { textContent: value })));
  }
  tip.replaceChildren(element("b", {}, swatch(line.series), " ", line.series.label), table);
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
  const top = Math.min(event.clientY + 14, innerHeight - box.height - 8);
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${top}px`;
}

function tellNote() {
  const kind = state.logy ? "geometric mean" : "arithmetic mean";
  const bands = { range: "from the least to the largest", deviation: `one standard deviation${state.logy ? " of the logarithm" : ""} to either side` };
  const parts = [];
  if (shownSeries.some((series) => series.runs.length > 1) && state.mean) {
    parts.push(`Lines are the ${kind} over seeds, as far as all runs went${bands[state.band] ? `; bands go ${bands[state.band]}` : ""}.`);
  }
  if (shownSeries.some((series) => series.runs.some((run) => run.diverged))) {
    parts.push("Thin lines that end in a cross are runs that diverged; they are in no mean.");
  }
  const empty = chosenRuns().filter((run) => run.measured === 0).length;
  if (empty) parts.push(`${empty} runs have no measurement; the table of every run says why.`);
  parts.push("Point at a curve for its numbers, drag to zoom, double-click to zoom out; click a series to hide it, double-click to see it alone.");
  byId("note").textContent = parts.join(" ");
}

function tellSummary() {
  const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const parts = [count(runs.length, "run")];
  const labels = new Set(runs.map((run) => run.label)).size;
  if (labels > 1) parts.push(`${labels} series`);
  for (const key of data.keys) {
    const values = valuesOf(key);
    if (data.seeds.includes(key)) parts.push(count(values.length, key));
  }
  const diverged = runs.filter((run) => run.diverged).length;
  if (diverged) parts.push(`${diverged} diverged`);
  for (const status of ["failed", "killed", "unfinished", "damaged"]) {
    const n = runs.filter((run) => run.status === status).length;
    if (n) parts.push(`${n} ${status}`);
  }
  const day = (text) => text.slice(0, 16).replace("T", " ");
  if (data.started) parts.push(day(data.started) + (data.ended ? ` to ${day(data.ended)} UTC` : " UTC"));
  byId("summary").textContent = parts.join(" · ");
}

function tellOrigin() {
  byId("commands").replaceChildren(
    ...data.commands.slice(0, 20).map(([command, times]) => {
      const copy = element("button", { type: "button", textContent: "Copy" });
      copy.onclick = async () => {
        await navigator.clipboard.writeText(command);
        copy.textContent = "Copied";
      };
      const title = data.commands.length > 1 ? `${times} runs` : "";
      return element("div", { className: "command", title }, element("pre", { textContent: command }), copy);
    }),
  );
  const facts = (id, content) =>
    byId(id).replaceChildren(
      ...Object.entries(content).map(([name, value]) =>
        element("tr", {}, element("td", { textContent: name }), element("td", { textContent: value })),
      ),
    );
  facts("shared", data.shared);
  facts("versions", { ...data.versions, ...data.machine });
}

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    if (charts.length) render({});
  };
  set(system.matches);
  system.onchange = () => set(system.matches);
  byId("theme").onclick = () => set(document.documentElement.dataset.theme !== "dark");
}

function start() {
  loadState();
  startTheme();
  for (const measure of measures) charts.push(new Chart(measure, byId("charts")));
  drawControls();
  drawFilters();
  tellSummary();
  tellOrigin();
  render({});
  new ResizeObserver(() => charts.forEach((chart) => chart.draw())).observe(byId("charts"));
  byId("more").onclick = () => {
    state.all = true;
    render({ table: true });
  };
  byId("csv").onclick = () => {
    const blob = new Blob([csvText(groupRuns(chosenRuns()))], { type: "text/csv" });
    const link = element("a", { href: URL.createObjectURL(blob), download: "results.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll("details.filter[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
globalThis.buropt = { state, charts, runs, render }; // for the browser's console
