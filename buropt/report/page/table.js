// The table of final numbers: a row for each series or for each run, sorted by any column.

const FIRST_ROWS = 200;
const MOST_REASONS = 20;
const STATUS = {
  converged: ["✓", "good"],
  ended: ["✓", "good"],
  non_finite: ["✕", "bad"],
  failed: ["✕", "bad"],
  damaged: ["✕", "bad"],
  unwritable: ["✕", "bad"],
  unfinished: ["…", ""],
  interrupted: ["…", ""],
  stopped: ["■", ""],
};

const finite = (values) => values.filter((v) => v !== null && v !== undefined);
const mean = (values) => (values.length ? values.reduce((sum, v) => sum + v, 0) / values.length : null);

/** The geometric mean of positive numbers; the plain one where there are others. */
function logMean(values) {
  if (!values.length || values.some((v) => v <= 0)) return mean(values);
  return Math.exp(mean(values.map(Math.log)));
}

/** How a run ended, for people. */
function statusOf(run) {
  const grows = run.diverged && run.status !== "non_finite";
  const [sign, kind] = grows ? ["✕", "bad"] : STATUS[run.status] ?? ["●", ""];
  const text = grows ? `${run.status}, diverging` : run.status;
  return { sign, kind, text, title: run.message };
}

/** Whether a run came to nothing, in a word. */
function troubleOf(run) {
  if (run.diverged) return "diverged";
  return STATUS[run.status]?.[1] === "bad" ? run.status : "";
}

/** What went wrong in the runs, each reason once with the runs that it stopped. */
function drawTroubles(chosen) {
  const reasons = new Map();
  for (const run of chosen.flatMap((series) => series.runs).filter(troubleOf)) {
    const message = run.message.replace(/ at iteration \d+/, ""); // which differs from run to run
    const reason = `${troubleOf(run)}${message ? `: ${message}` : ""}`;
    reasons.set(reason, [...(reasons.get(reason) ?? []), run.name]);
  }
  const items = [...reasons].slice(0, MOST_REASONS).map(([reason, names]) => {
    const some = names.length > 6 ? `${names.slice(0, 6).join(", ")}, ...` : names.join(", ");
    return element("li", { textContent: `${names.length === 1 ? "run" : `${names.length} runs,`} ${some} ${reason}` });
  });
  byId("wrong").replaceChildren(...items);
}

/** The columns of the table; `of` gives a row's value, by which it is sorted. */
function tableColumns() {
  const keys = state.rows === "series" ? told : data.keys;
  const columns = keys.map((key) => ({ name: key, text: key, of: (row) => row.settings[key] }));
  if (state.rows === "series") columns.push({ name: "runs", text: "runs", number: true, of: (row) => row.runs.length });
  else columns.unshift({ name: "run", text: "run", of: (row) => row.runs[0].name });
  columns.push({ name: "status", text: "ended", of: (row) => row.status });
  for (const name of Object.keys(data.measures)) {
    columns.push({ name, text: data.measures[name], number: true, of: (row) => row.final[name] });
  }
  for (const name of Object.keys(data.costs)) {
    columns.push({ name, text: data.short[name], number: true, cost: true, of: (row) => row.final[name] });
  }
  return columns;
}

function tableRows(chosen) {
  if (state.rows === "runs") return chosen.flatMap((series) => series.runs.map((run) => rowOf(series, [run])));
  return chosen.map((series) => rowOf(series, series.runs));
}

function rowOf(series, members) {
  const settings = {};
  for (const key of data.keys) settings[key] = valueOf(members[0], key);
  const steady = members.length > 1 ? members.filter((run) => !run.diverged) : members;
  const final = {};
  for (const name of data.columns) {
    const values = finite(steady.map((run) => run.final[name]));
    final[name] = name in data.measures && name !== "f" ? logMean(values) : mean(values);
  }
  const bad = members.filter(troubleOf);
  const status =
    members.length === 1
      ? statusOf(members[0]).text
      : [...new Set(members.map((run) => statusOf(run).text))].sort().join(", ");
  return { series, runs: members, settings, final, status, bad: bad.length };
}

function compareCells(a, b) {
  const missing = (v) => v === null || v === undefined;
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  return compareValues(a, b);
}

function sortedRows(rows, columns) {
  const column = state.sort && columns.find((each) => each.name === state.sort[0]);
  if (!column) return rows;
  const sign = state.sort[1] ? 1 : -1;
  return rows
    .map((row) => [column.of(row), row])
    .sort(([a], [b]) => (a === null || b === null ? compareCells(a, b) : sign * compareCells(a, b)))
    .map(([, row]) => row);
}

function drawTable(chosen) {
  const columns = tableColumns();
  const rows = sortedRows(tableRows(chosen), columns);
  const shown = state.all ? rows : rows.slice(0, FIRST_ROWS);
  const head = document.createElement("tr");
  for (const column of columns) head.append(headCell(column));
  const body = document.createElement("tbody");
  for (const row of shown) body.append(bodyRow(row, columns));
  const top = document.createElement("thead");
  top.append(head);
  byId("table").replaceChildren(top, body);
  drawTroubles(chosen);
  byId("more").hidden = shown.length === rows.length;
  byId("more").textContent = `Show all ${rows.length} rows`;
}

function headCell(column) {
  const cell = document.createElement("th");
  const button = document.createElement("button");
  const sorted = state.sort?.[0] === column.name;
  cell.scope = "col";
  cell.className = column.number ? "number" : "";
  if (sorted) cell.setAttribute("aria-sort", state.sort[1] ? "ascending" : "descending");
  button.type = "button";
  button.dataset.column = column.name;
  button.textContent = column.text + (sorted ? (state.sort[1] ? " ↑" : " ↓") : "");
  button.onclick = () => {
    state.sort = [column.name, sorted ? !state.sort[1] : true];
    render({ table: true });
    byId("table").querySelector(`[data-column="${column.name}"]`).focus();
  };
  cell.append(button);
  return cell;
}

function bodyRow(row, columns) {
  const line = document.createElement("tr");
  for (const column of columns) {
    const cell = document.createElement("td");
    const value = column.of(row);
    if (column.number) {
      cell.className = "number";
      cell.textContent = column.cost ? showCost(value) : show(value);
      if (value !== null) cell.title = String(value);
    } else if (column.name === "status") {
      cell.append(statusCell(row));
    } else {
      cell.textContent = value;
    }
    line.append(cell);
  }
  const id = row.runs.length === 1 ? row.runs[0].number : row.series.label;
  line.onpointerenter = () => light(id);
  line.onpointerleave = () => light(null);
  return line;
}

function statusCell(row) {
  const text = document.createElement("span");
  const { sign, kind, title } = statusOf(row.runs[0]);
  text.className = `status ${row.runs.length === 1 ? kind : row.bad ? "bad" : ""}`;
  text.textContent = row.runs.length === 1 ? `${sign} ${row.status}` : row.status;
  if (row.runs.length === 1) text.title = title;
  else if (row.bad) text.textContent = `✕ ${row.bad} of ${row.runs.length}: ${row.status}`;
  return text;
}

/** The rows as shown, all of them, with full digits. */
function csvText(chosen) {
  const columns = tableColumns();
  const quote = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = sortedRows(tableRows(chosen), columns).map((row) => columns.map((c) => quote(c.of(row))));
  return [columns.map((c) => quote(c.name)), ...lines].map((line) => line.join(",") + "\n").join("");
}
