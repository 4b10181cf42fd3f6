// The graph: folded by kernel as boxes and curves, and whole as dots by depth.

const BOX_W = 168, BOX_H = 46, GAP_X = 92, GAP_Y = 26;
const MOST_KERNELS = 40;

// Bands of a launch are boxes of their own where there are few.
const MOST_BOXES = 24;
const banded = new Set(SHOWN.map((i) => `${L.name[i]} ${L.band[i]}`)).size <= MOST_BOXES;
const bandOf = (i) => (banded ? L.band[i] : -1);
const boxOf = (i) => `${L.name[i]} ${bandOf(i)}`;
const boxName = (i) => nameOf(i) + (bandOf(i) < 0 ? "" : `, band ${bandOf(i)}`);

// {kernels: [{id, name, launches, ns}], edges: [{from, to, kinds: Map, count}]}, by place of name.
function fold() {
  const kernels = new Map(), edges = new Map();
  for (const i of SHOWN) {
    const id = boxOf(i);
    if (!kernels.has(id)) kernels.set(id, { id, name: nameOf(i), band: bandOf(i), launches: 0, ns: 0, first: i });
    const one = kernels.get(id);
    one.launches += 1;
    one.ns += ends(i) - begins(i);
  }
  for (const i of SHOWN) for (const edge of up[i]) {
    if (tasked.has(edge.from)) continue;
    const [from, to] = [boxOf(edge.from), boxOf(i)], key = `${from} ${to}`;
    if (!edges.has(key)) edges.set(key, { from, to, names: [boxName(edge.from), boxName(i)], kinds: new Map(), count: 0, example: edge });
    const one = edges.get(key);
    one.count += 1;
    one.kinds.set(edge.kind, (one.kinds.get(edge.kind) || 0) + 1);
  }
  return { kernels: [...kernels.values()], edges: [...edges.values()].sort((a, b) => b.count - a.count) };
}

const kindsText = (kinds) => [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${count(n)} ${kind}`).join(", ");
const mainKind = (kinds) => [...kinds].sort((a, b) => b[1] - a[1])[0][0];

// Columns: a kernel is to the right of its upstream, as far as this came first in the program.
function layers(kernels, edges) {
  const depth = new Map(kernels.map((one) => [one.id, 0]));
  const order = [...kernels].sort((a, b) => a.first - b.first);
  const place = new Map(order.map((one, i) => [one.id, i]));
  for (const one of order) for (const edge of edges) {
    if (edge.to === one.id && place.get(edge.from) < place.get(one.id)) {
      depth.set(one.id, Math.max(depth.get(one.id), depth.get(edge.from) + 1));
    }
  }
  const found = [];
  for (const one of order) (found[depth.get(one.id)] ||= []).push(one);
  return found.filter(Boolean);
}

// The path of an edge: a line to the next column, else a way round all boxes, above (forwards) or below (backwards).
// `high`: how far from them; several ways at a time are told apart.
function shape(edge, where, rounds) {
  const from = where.get(edge.from), to = where.get(edge.to);
  const steps = to.column - from.column;
  if (edge.from === edge.to) return { kind: "loop", from, to, high: 30 };
  if (steps === 1) return { kind: "line", from, to, high: 0 };
  const kind = steps > 1 ? "above" : "below";
  return { kind, from, to, high: 18 + 15 * (rounds[kind]++ % 7) };
}

function drawFolded(box) {
  const folded = fold();
  const kernels = [...folded.kernels].sort((a, b) => b.ns - a.ns).slice(0, MOST_KERNELS);
  const known = new Set(kernels.map((one) => one.id));
  const edges = folded.edges.filter((edge) => known.has(edge.from) && known.has(edge.to));
  const columns = layers(kernels, edges);
  const high = Math.max(1, ...columns.map((column) => column.length));
  const where = new Map();
  columns.forEach((column, c) => column.forEach((one, r) => {
    const offset = ((high - column.length) * (BOX_H + GAP_Y)) / 2;
    where.set(one.id, { x: 6 + c * (BOX_W + GAP_X), y: offset + r * (BOX_H + GAP_Y), column: c });
  }));
  const rounds = { above: 0, below: 0 };
  const shapes = edges.map((edge) => ({ edge, ...shape(edge, where, rounds) }));
  const aside = rounds.below ? GAP_X / 2 : 0;  // ways back turn round beside the first and the last column
  const room = (kinds) => Math.max(8, ...shapes.filter((one) => kinds.includes(one.kind)).map((one) => one.high + 16));
  const above = room(["above", "loop"]), below = room(["below"]);
  for (const one of where.values()) {
    one.y += above;
    one.x += aside;
  }
  const width = columns.length * (BOX_W + GAP_X) - GAP_X + 14 + 2 * aside;
  const height = high * (BOX_H + GAP_Y) - GAP_Y + above + below;
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph folded by kernel; the table below says the same." });
  const most = Math.max(1, ...edges.map((edge) => edge.count));
  const labels = [];
  const border = { above, below: height - below };
  for (const one of shapes) curve(root, labels, one, most, border);
  for (const one of kernels) node(root, where.get(one.id), one);
  labels.forEach((label) => root.append(label));
  box.replaceChildren(root);
  if (folded.kernels.length > MOST_KERNELS) {
    box.append(el("p", { class: "hint" }, `The ${MOST_KERNELS} kernels that take most time, of ${folded.kernels.length}.`));
  }
  if (!banded && SHOWN.some((i) => L.band[i] >= 0)) box.append(el("p", { class: "hint" }, "Bands of a launch are drawn together: there are too many of them."));
  if (tasked.size) box.append(el("p", { class: "hint" }, "Of replays the launches of the graph are drawn, in place of the replays."));
  return folded;
}

function node(root, { x, y }, one) {
  const group = svg("g", {},
    svg("title", {}, `${boxName(one.first)}: ${plural(one.launches, "time")}, ${time(one.ns)} in all`),
    svg("rect", { class: "box", x, y, width: BOX_W, height: BOX_H, rx: 7 }),
    svg("rect", { x, y, width: 6, height: BOX_H, rx: 3, fill: colours.get(one.name) }));
  const long = boxName(one.first), name = long.length > 20 ? `${long.slice(0, 19)}…` : long;
  group.append(svg("text", { x: x + 15, y: y + 19, "font-weight": 600 }, name));
  group.append(svg("text", { class: "small", x: x + 15, y: y + 36 }, `${count(one.launches)}×, ${time(one.ns)}`));
  root.append(group);
}

function curve(root, labels, { edge, kind, from, to, high }, most, border) {
  const stroke = KIND_COLOUR[mainKind(edge.kinds)] || "#7d868f";
  const wide = 1.2 + 2.4 * Math.sqrt(edge.count / most);
  let d, label, tip;
  if (kind === "loop") {
    const x = from.x + BOX_W / 2, y = from.y;
    d = `M ${x - 24} ${y} C ${x - 24} ${y - high}, ${x + 24} ${y - high}, ${x + 24} ${y - 5}`;
    [label, tip] = [[x, y - 0.75 * high - 4], [x + 24, y, 90]];
  } else if (kind === "line") {
    const [x1, y1, x2, y2] = [from.x + BOX_W, from.y + BOX_H / 2, to.x - 5, to.y + BOX_H / 2];
    const mid = (x1 + x2) / 2;
    d = `M ${x1} ${y1} C ${mid} ${y1}, ${mid} ${y2}, ${x2} ${y2}`;
    [label, tip] = [[mid, (y1 + y2) / 2 - 6], [x2 + 5, y2, 0]];
  } else {
    const isAbove = kind === "above", far = isAbove ? GAP_X : 0, bend = GAP_X / 2;
    const [x1, y1, x2, y2] = [from.x + BOX_W, from.y + BOX_H / 2, to.x - 5, to.y + BOX_H / 2];
    const y = isAbove ? border.above - high : border.below + high;
    d = `M ${x1} ${y1} C ${x1 + bend} ${y1}, ${x1 + bend} ${y}, ${x1 + far} ${y} L ${to.x - far} ${y} `
      + `C ${to.x - bend} ${y}, ${to.x - bend} ${y2}, ${x2} ${y2}`;
    [label, tip] = [[(x1 + to.x) / 2, y + (isAbove ? -5 : 13)], [x2 + 5, y2, 0]];
  }
  const line = svg("path", { d, fill: "none", stroke, "stroke-width": wide, opacity: 0.9 });
  line.append(svg("title", {}, `${edge.names[0]} → ${edge.names[1]}: ${kindsText(edge.kinds)}`));
  const head = svg("path", { d: "M 0 0 L -9 -4.5 L -9 4.5 Z", fill: stroke, transform: `translate(${tip[0]} ${tip[1]}) rotate(${tip[2]})` });
  root.append(line, head);
  const kinds = [...edge.kinds.keys()].join(", ");
  labels.push(svg("text", { class: "small halo", x: label[0], y: label[1], "text-anchor": "middle" }, `${count(edge.count)} ${kinds}`));
}

// ---- every launch ----

function drawWhole(canvas, tip, chosen) {
  const depth = new Int32Array(ITEMS);
  const slots = [];
  for (const i of SHOWN) {
    for (const edge of up[i]) depth[i] = Math.max(depth[i], depth[edge.from] + 1);
    (slots[depth[i]] ||= []).push(i);
  }
  const width = canvas.parentElement.clientWidth;
  const deepest = Math.max(1, slots.length), most = slots.reduce((most, one) => Math.max(most, one.length), 1);
  const height = Math.max(160, Math.min(620, most * 14 + 30));
  const dx = Math.min(120, (width - 30) / deepest), dy = Math.min(24, (height - 20) / most);
  const radius = Math.max(1.3, Math.min(5.5, dx / 3, dy / 2.4));
  const xs = new Float32Array(ITEMS), ys = new Float32Array(ITEMS);
  slots.forEach((column, c) => column.forEach((i, r) => {
    xs[i] = 14 + c * dx;
    ys[i] = height / 2 + (r - (column.length - 1) / 2) * dy;
  }));
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");

  function draw() {
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.globalAlpha = D.edges.up.length > 3000 ? 0.25 : 0.6;
    context.lineWidth = 0.8;
    for (const [kind, colour] of Object.entries(KIND_COLOUR)) {
      context.strokeStyle = colour;
      context.beginPath();
      D.edges.up.forEach((from, e) => {
        if (D.edges.kinds[D.edges.kind[e]] !== kind || tasked.has(from) || tasked.has(D.edges.down[e])) return;
        context.moveTo(xs[from], ys[from]);
        context.lineTo(xs[D.edges.down[e]], ys[D.edges.down[e]]);
      });
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const i of SHOWN) {
      context.fillStyle = colourOf(i);
      context.beginPath();
      context.arc(xs[i], ys[i], radius, 0, 7);
      context.fill();
    }
    context.strokeStyle = css("--mark");
    context.lineWidth = 2;
    for (const i of [chosen.a, chosen.b]) if (i >= 0) {
      context.beginPath();
      context.arc(xs[i], ys[i], radius + 3, 0, 7);
      context.stroke();
    }
  }

  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, least = 12 ** 2;
    for (const i of SHOWN) {
      const off = (xs[i] - x) ** 2 + (ys[i] - y) ** 2;
      if (off < least) { least = off; best = i; }
    }
    return { best, x, y };
  }

  canvas.onpointermove = (event) => {
    const { best, x, y } = nearest(event);
    tip.hidden = best < 0;
    if (best < 0) return;
    tip.textContent = about(best);
    tip.style.left = `${Math.min(x + 14, width - 260)}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 12, height - 110))}px`;
  };
  canvas.onpointerleave = () => { tip.hidden = true; };
  canvas.onclick = (event) => { const { best } = nearest(event); if (best >= 0) chosen.pick(best); };
  draw();
  return draw;
}
