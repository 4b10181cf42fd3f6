// The data of the page, and how numbers are written.

const D = JSON.parse(document.getElementById("data").textContent);
const L = D.launches;
const COUNT = D.count; // launches; behind them come the tasks of replays
const ITEMS = (L.number || []).length;
const UNKNOWN = -1;

const byNumber = new Map((L.number || []).slice(0, COUNT).map((number, place) => [number, place]));
const up = Array.from({ length: ITEMS }, () => []);
const down = Array.from({ length: ITEMS }, () => []);
D.edges.up.forEach((from, i) => {
  const edge = { from, to: D.edges.down[i], kind: D.edges.kinds[D.edges.kind[i]] };
  up[edge.to].push(edge);
  down[edge.from].push(edge);
});

// The name of each launch, with its count among those of its kernel: blur#3.
const nth = new Int32Array(ITEMS);
{
  const seen = new Map();
  for (let i = 0; i < ITEMS; ++i) {
    const count = (seen.get(L.name[i]) || 0) + 1;
    seen.set(L.name[i], count);
    nth[i] = count;
  }
}

const nameOf = (i) => D.names[L.name[i]];
const kindOf = (i) => D.kinds[L.kind[i]];
const called = (i) => `${nameOf(i)}#${nth[i]}`;
const isTask = (i) => i >= COUNT;
function full(i) {
  if (!isTask(i)) return `${called(i)} (launch ${L.number[i]})`;
  if (!L.part[i]) return `${nameOf(i)} (replay ${L.number[i]})`;
  const band = L.band[i] < 0 ? "" : `, band ${L.band[i]}`;
  return `${called(i)} (launch ${L.part[i]} of the graph${band}, replay ${L.number[i]})`;
}

// When a launch ran: its own times where these were noted, else its epoch's.
const begins = (i) => (L.begin[i] === UNKNOWN ? L.start[i] : L.begin[i]);
const ends = (i) => (L.finish[i] === UNKNOWN ? L.end[i] : L.finish[i]);
const hasOwn = (i) => L.begin[i] !== UNKNOWN;

// The epoch or replay that a launch ran in. "": none.
const inside = (i) => (isTask(i) ? `replay ${L.number[i]}` : L.epoch[i] ? `epoch ${L.epoch[i]}` : "");

// The nodes of graphs: the tasks of a replay stand for it.
const tasked = new Set((L.of || []).slice(COUNT));
const SHOWN = [];
for (let i = 0; i < ITEMS; ++i) if (!tasked.has(i)) SHOWN.push(i);

// Find the place of "12", "blur#3" or "blur". -1: not found.
function find(text) {
  const said = text.trim();
  if (/^\d+$/.test(said)) return byNumber.has(Number(said)) ? byNumber.get(Number(said)) : -1;
  const [, name, count] = said.match(/^(.*?)(?:#(\d+))?$/);
  for (let i = 0; i < ITEMS; ++i) {
    if (nameOf(i) === name && nth[i] === Number(count || 1)) return i;
  }
  return -1;
}

const round = (value, digits = 3) => {
  const text = Number(value.toPrecision(digits));
  return Math.abs(text) >= 1000 ? Math.round(text).toLocaleString("en") : String(text);
};

function time(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${round(ns / 1e9)} s`;
  if (size >= 1e6) return `${round(ns / 1e6)} ms`;
  if (size >= 1e3) return `${round(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
}

const percent = (part, whole) => {
  const share = (100 * part) / Math.max(1, whole);
  if (share > 0 && share < 0.1) return "< 0.1 %";
  return `${share.toFixed(share < 10 || (share > 90 && share < 100) ? 1 : 0)} %`;
};
const count = (n) => n.toLocaleString("en");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : word.endsWith("h") ? "es" : "s"}`;

// Colours that people with any kind of colour blindness tell apart (after Okabe and Ito).
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7dc4", "#8c8c00"];
const GREYS = { write: "#7d868f", read: "#99a2ab", copy: "#6a737b", fill: "#b0b8c0" };
const KIND_COLOUR = { RAW: "#0072b2", WAR: "#e69f00", WAW: "#d55e00", other: "#8a7dc4", any: "#7d868f" };
const SHARE_COLOUR = {
  kernels: "#009e73", transfers: "#7d868f", "host tasks": "#8a7dc4", bypass: "#56b4e9",
  launching: "#e69f00", waiting: "#d55e00", "own work": "#cc79a7", idle: "#d5d9dd",
};
const colours = new Map();
{
  let next = 0;
  for (let i = 0; i < ITEMS; ++i) {
    const name = nameOf(i);
    if (colours.has(name)) continue;
    const grey = kindOf(i) === "transfers" && GREYS[name];
    colours.set(name, grey || PALETTE[next++ % PALETTE.length]);
  }
}
const colourOf = (i) => colours.get(nameOf(i));
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
