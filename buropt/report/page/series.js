// Series: runs that differ in nothing but their seed. Means, bands and colours; as buropt/series.py.

const MOST_OF_A_MEAN = 400; // points

/** A setting in a label: numbers that are not whole with so many digits. */
function shortLabel(key, value, digits) {
  const number = Number(value);
  const text = Number.isFinite(number) && !Number.isInteger(number) ? String(Number(number.toPrecision(digits))) : value;
  return ["optimizer", "problem", "data"].includes(key) ? text : `${key.split(".").pop()}=${text}`;
}

/** The keys that are enough to tell all runs apart, up to seeds. */
function tellingKeys() {
  let keys = data.keys.filter((key) => !data.seeds.includes(key));
  const all = countOf(keys);
  for (const key of [...keys]) {
    const rest = keys.filter((other) => other !== key);
    if (key !== "optimizer" && countOf(rest) === all) keys = rest;
  }
  return keys;
}

const told = tellingKeys();
giveLabels(4);
if (new Set(runs.map((run) => run.label)).size < countOf(told)) giveLabels(12);

function giveLabels(digits) {
  for (const run of runs) {
    const label = told.map((key) => shortLabel(key, valueOf(run, key), digits)).join(", ");
    run.label = label || data.shared.optimizer || "all runs";
  }
}

/** How many combinations of these keys there are. */
function countOf(keys) {
  return new Set(runs.map((run) => keys.map((key) => valueOf(run, key)).join("\n"))).size;
}

/** The series among runs, each with its colour and dash. */
function groupRuns(chosen) {
  const found = new Map();
  for (const run of runs) if (!found.has(run.label)) found.set(run.label, { label: run.label, runs: [] });
  for (const run of chosen) found.get(run.label).runs.push(run);
  const all = [...found.values()];
  giveColours(all);
  return all.filter((series) => series.runs.length > 0);
}

/** Colours by the chosen key, or one for each series; they do not change when runs are filtered. */
function giveColours(all) {
  const dark = document.documentElement.dataset.theme === "dark";
  const first = new Map();
  for (const run of runs) if (!first.has(run.label)) first.set(run.label, run);
  const own = all.map((series) => (state.hue ? valueOf(first.get(series.label), state.hue) : series.label));
  const values = state.hue ? valuesOf(state.hue) : own;
  const colours = coloursFor(values.length, dark);
  const seen = new Map();
  all.forEach((series, number) => {
    const place = state.hue ? values.indexOf(own[number]) : number;
    const within = state.hue ? seen.get(place) ?? 0 : place;
    seen.set(place, within + 1);
    series.colour = colours[place];
    series.dash = data.palette.dashes[within % data.palette.dashes.length];
    if (all.length > 24) series.dash = []; // too many to be told apart by dashes
  });
}

function coloursFor(n, dark) {
  const plain = dark ? data.palette.dark : data.palette.light;
  if (n <= plain.length) return plain;
  const ramp = (dark ? data.palette.rampDark : data.palette.rampLight).map((text) =>
    [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)),
  );
  return Array.from({ length: n }, (_, k) => {
    const place = (k / (n - 1)) * (ramp.length - 1);
    const low = Math.min(Math.floor(place), ramp.length - 2);
    const mixed = ramp[low].map((v, c) => Math.round(v + (ramp[low + 1][c] - v) * (place - low)));
    return `rgb(${mixed.join(",")})`;
  });
}

/** The points of a run that the axes can show. */
function curveOf(run, x, y) {
  const [costs, values] = [run.columns[x], run.columns[y]];
  const curve = { x: [], y: [], runs: [run] };
  for (let k = 0; k < costs.length; k++) {
    const shown = Number.isFinite(values[k]) && (!state.logy || values[k] > 0) && (!state.logx || costs[k] > 0);
    if (!shown) continue;
    curve.x.push(costs[k]);
    curve.y.push(values[k]);
  }
  return curve;
}

const known = new Map(); // what `curvesOf` has found, by all that it depends on
const MOST_KNOWN = 5000;

/** What a series looks like: its mean with a band, and runs that are drawn alone. */
function curvesOf(series, x, y) {
  const members = series.runs.map((run) => run.number).join(",");
  const key = [x, y, state.logx, state.logy, state.mean, state.band, members].join(" ");
  if (!known.has(key)) {
    if (known.size > MOST_KNOWN) known.clear();
    known.set(key, findCurves(series, x, y));
  }
  return known.get(key);
}

function findCurves(series, x, y) {
  const singles = series.runs.map((run) => curveOf(run, x, y)).filter((curve) => curve.x.length > 0);
  const steady = singles.filter((curve) => !curve.runs[0].diverged);
  const lost = singles.filter((curve) => curve.runs[0].diverged).map((curve) => ({ ...curve, lost: true }));
  if (!state.mean) return [...steady, ...lost];
  const mean = steady.length > 1 ? meanOf(steady) : steady[0];
  return mean ? [mean, ...lost] : lost;
}

/** Mean and band over the costs that all curves have reached, in logarithms on a logarithmic axis. */
function meanOf(curves) {
  const grid = gridOf(curves);
  if (!grid.length) return null;
  const [into, back] = state.logy ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const n = grid.length;
  const [sum, squares] = [new Float64Array(n), new Float64Array(n)];
  const [low, high] = [new Float64Array(n).fill(Infinity), new Float64Array(n).fill(-Infinity)];
  const rows = curves.map((curve) => interpolated(grid, curve.x, curve.y.map(into)));
  for (const row of rows) {
    for (let k = 0; k < n; k++) {
      sum[k] += row[k];
      if (row[k] < low[k]) low[k] = row[k];
      if (row[k] > high[k]) high[k] = row[k];
    }
  }
  const mean = sum.map((total) => total / rows.length);
  if (state.band === "deviation") {
    for (const row of rows) for (let k = 0; k < n; k++) squares[k] += (row[k] - mean[k]) ** 2;
    for (let k = 0; k < n; k++) {
      const spread = Math.sqrt(squares[k] / (rows.length - 1));
      [low[k], high[k]] = [mean[k] - spread, mean[k] + spread];
    }
  }
  const runs = curves.flatMap((curve) => curve.runs);
  return { x: grid, y: mean.map(back), low: low.map(back), high: high.map(back), runs };
}

/** The costs of a mean: all that were measured, or evenly spaced ones where these are too many. */
function gridOf(curves) {
  const first = Math.max(...curves.map((curve) => curve.x[0]));
  const last = Math.min(...curves.map((curve) => curve.x[curve.x.length - 1]));
  if (last < first) return [];
  const all = new Set(curves[0].x);
  for (const curve of curves) {
    for (const x of curve.x) all.add(x);
    if (all.size > MOST_OF_A_MEAN) break;
  }
  if (all.size <= MOST_OF_A_MEAN) return [...all].filter((x) => x >= first && x <= last).sort((a, b) => a - b);
  const scale = makeScale(first, last, 0, MOST_OF_A_MEAN - 1, state.logx);
  return Array.from({ length: MOST_OF_A_MEAN }, (_, k) => Math.min(Math.max(scale.back(k), first), last));
}

/** Piecewise linear, for a sorted grid inside of the curve. */
function interpolated(grid, x, y) {
  const values = new Float64Array(grid.length);
  let k = 0;
  for (let j = 0; j < grid.length; j++) {
    while (k + 2 < x.length && x[k + 1] < grid[j]) k++;
    const width = x.length > 1 ? x[k + 1] - x[k] : 0;
    const share = width > 0 ? Math.min(Math.max((grid[j] - x[k]) / width, 0), 1) : 0;
    values[j] = share > 0 ? y[k] + share * (y[k + 1] - y[k]) : y[k];
  }
  return values;
}
