// The data of the page: what the program wrote, and what is chosen to be shown.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** The numbers of all curves: base64, zlib, and the bytes of float32 in four planes. */
async function readNumbers() {
  if (!("DecompressionStream" in globalThis)) {
    byId("summary").textContent = "This page needs a browser of 2023 or later.";
  }
  const text = atob(byId("points").textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const bytes = new Uint8Array(planes.length);
  const n = planes.length / 4;
  for (let plane = 0; plane < 4; plane++) {
    for (let k = 0; k < n; k++) bytes[4 * k + plane] = planes[plane * n + k];
  }
  return new Float32Array(bytes.buffer);
}

/** Runs with their columns as views of one array. */
function readRuns(numbers) {
  let at = 0;
  return data.runs.map((run, number) => {
    const n = data.counts[number];
    const columns = {};
    for (const name of data.columns) {
      columns[name] = numbers.subarray(at, at + n);
      at += n;
    }
    return { ...run, number, columns };
  });
}

const runs = readRuns(await readNumbers());
const measures = Object.keys(data.measures).filter(
  (name) => name !== "f" || !("f_gap" in data.measures),
);

// What a visitor can choose, and what is chosen at first.
const SAVED = {
  x: "iteration",
  hue: usualHue(),
  mean: true, // over seeds
  band: "range",
  logx: false,
  logy: true,
  rows: "series",
};

/** Colours for each series while there are enough of them, else by the method or another key. */
function usualHue() {
  const keys = data.keys.filter((key) => !data.seeds.includes(key));
  if (countOf(keys) <= data.palette.light.length) return "";
  return keys.includes("optimizer") ? "optimizer" : keys[0];
}

// What is chosen. The first part is kept in the page's address, so that a link shows the same.
const state = {
  ...SAVED,
  filters: {}, // key -> Set of values that are shown
  hidden: new Set(), // labels of series
  sort: null, // [column, ascending]
  all: false, // every row of the table
  lit: null, // label of the series, or number of the run, under the pointer
  zoom: null, // [from, to] on x
};

function saveState() {
  const words = new URLSearchParams();
  for (const [name, usual] of Object.entries(SAVED)) {
    if (state[name] !== usual) words.set(name, String(state[name]));
  }
  for (const [key, values] of Object.entries(state.filters)) words.set("~" + key, JSON.stringify([...values]));
  const text = words.toString();
  try {
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  } catch {
    // A frame that may not change its address shows the page all the same.
  }
}

function loadState() {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const [name, usual] of Object.entries(SAVED)) {
    if (words.has(name)) state[name] = typeof usual === "boolean" ? words.get(name) === "true" : words.get(name);
  }
  if (!(state.x in data.costs)) state.x = "iteration";
  if (state.hue && !data.keys.includes(state.hue)) state.hue = "";
  for (const key of filterKeys()) {
    if (!words.has("~" + key)) continue;
    try {
      state.filters[key] = new Set(JSON.parse(words.get("~" + key)));
    } catch {
      delete state.filters[key]; // an address that somebody cut off
    }
  }
}

/** The keys that runs can be chosen by: settings, and how runs ended if that differs. */
function filterKeys() {
  const statuses = new Set(runs.map((run) => run.status));
  return statuses.size > 1 ? [...data.keys, "status"] : data.keys;
}

function valueOf(run, key) {
  return key === "status" ? run.status : run.settings[data.keys.indexOf(key)];
}

/** Numbers by size, before texts by alphabet. */
function compareValues(a, b) {
  const [x, y] = [Number(a), Number(b)];
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

const valuesOf = (key) => [...new Set(runs.map((run) => valueOf(run, key)))].sort(compareValues);

const chosenRuns = () =>
  runs.filter((run) => Object.entries(state.filters).every(([key, values]) => values.has(valueOf(run, key))));
