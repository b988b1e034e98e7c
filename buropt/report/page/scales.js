// Axes: from numbers to pixels, where ticks go, and how numbers are written.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A power of ten, as on an axis. */
function power(exponent) {
  if (exponent === 0) return "1";
  if (exponent === 1) return "10";
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** A number for people: four digits, units of a thousand for large counts. */
function show(value, whole = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (whole && Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e-3 && size < 1e5) return String(Number(value.toPrecision(4)));
  return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
}

/** A cost in a table: 3001, 207.1k, 5.952M. */
function showCost(value) {
  if (value === null || Math.abs(value) < 1e5) return show(value, true);
  const [unit, name] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([unit]) => Math.abs(value) >= unit);
  return Number((value / unit).toPrecision(4)) + name;
}

/** A tick of a linear axis: 250k, 1.5M. */
function tickText(value, step) {
  for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (step * 10 >= unit && Math.abs(value) >= unit) return Number((value / unit).toPrecision(6)) + name;
  }
  const size = Math.abs(value);
  return size > 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(1) : String(Number(value.toPrecision(6)));
}

/** A scale from [low, high] to [from, to] pixels. */
function makeScale(low, high, from, to, log) {
  const into = log ? Math.log10 : (v) => v;
  const [a, b] = [into(low), into(high)];
  const width = b - a || 1;
  const scale = (v) => from + ((into(v) - a) / width) * (to - from);
  scale.back = (pixel) => {
    const v = a + ((pixel - from) / (to - from)) * width;
    return log ? 10 ** v : v;
  };
  scale.ticks = log ? logTicks(a, b, Math.abs(to - from)) : linearTicks(a, b, Math.abs(to - from));
  return scale;
}

function linearTicks(low, high, pixels) {
  const rough = (high - low) / Math.max(2, pixels / 64);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k++) {
    ticks.push({ value: k * step, text: tickText(k * step, step) });
  }
  return ticks;
}

function logTicks(low, high, pixels) {
  const ticks = [];
  const decades = high - low;
  const every = Math.max(1, Math.ceil(decades / Math.max(2, pixels / 42)));
  for (let e = Math.ceil(low - 1e-9); e <= high + 1e-9; e++) {
    if (e % every === 0) ticks.push({ value: 10 ** e, text: power(e) });
  }
  if (decades < 2.5) {
    for (let e = Math.floor(low); e <= high; e++) {
      for (const k of decades < 1.2 ? [2, 3, 5] : [2, 5]) {
        const place = Math.log10(k) + e;
        if (place < low || place > high) continue;
        ticks.push({ value: k * 10 ** e, text: show(k * 10 ** e), minor: ticks.length > 2 && decades > 1.2 });
      }
    }
  }
  return ticks;
}
