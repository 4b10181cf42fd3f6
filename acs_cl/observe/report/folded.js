// The graph: folded by kernel as boxes and curves, and whole as dots by depth.

const BOX_W = 168, BOX_H = 46, GAP_X = 92, GAP_Y = 26;
const MOST_KERNELS = 40;

// {kernels: [{id, name, launches, ns}], edges: [{from, to, kinds: Map, count}]}, by place of name.
function fold() {
  const kernels = new Map(), edges = new Map();
  for (let i = 0; i < COUNT; ++i) {
    const id = L.name[i];
    if (!kernels.has(id)) kernels.set(id, { id, name: D.names[id], launches: 0, ns: 0, first: i });
    const one = kernels.get(id);
    one.launches += 1;
    one.ns += L.end[i] - L.start[i];
  }
  for (let i = 0; i < COUNT; ++i) for (const edge of up[i]) {
    const key = `${L.name[edge.from]} ${L.name[i]}`;
    if (!edges.has(key)) edges.set(key, { from: L.name[edge.from], to: L.name[i], kinds: new Map(), count: 0, example: edge });
    const one = edges.get(key);
    one.count += 1;
    one.kinds.set(edge.kind, (one.kinds.get(edge.kind) || 0) + 1);
  }
  return { kernels: [...kernels.values()], edges: [...edges.values()].sort((a, b) => b.count - a.count) };
}

const kindsText = (kinds) => [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${count(n)} ${kind}`).join(", ");
const mainKind = (kinds) => [...kinds].sort((a, b) => b[1] - a[1])[0][0];

// Columns: a kernel stands behind those it follows, as far as these came first in the program.
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

function drawFolded(box) {
  const folded = fold();
  const kernels = [...folded.kernels].sort((a, b) => b.ns - a.ns).slice(0, MOST_KERNELS);
  const known = new Set(kernels.map((one) => one.id));
  const edges = folded.edges.filter((edge) => known.has(edge.from) && known.has(edge.to));
  const columns = layers(kernels, edges);
  const high = Math.max(1, ...columns.map((column) => column.length));
  const width = columns.length * (BOX_W + GAP_X) + 10;
  const back = edges.some((edge) => edge.from !== edge.to && depthOf(columns, edge.from) >= depthOf(columns, edge.to));
  const height = high * (BOX_H + GAP_Y) + 34 + (back ? 40 : 0);
  const where = new Map();
  columns.forEach((column, c) => column.forEach((one, r) => {
    const offset = ((high - column.length) * (BOX_H + GAP_Y)) / 2;
    where.set(one.id, { x: 6 + c * (BOX_W + GAP_X), y: 30 + offset + r * (BOX_H + GAP_Y) });
  }));
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph folded by kernel; the table below says the same." });
  const most = Math.max(1, ...edges.map((edge) => edge.count));
  const labels = [];
  for (const edge of edges) curve(root, labels, where, edge, most, height);
  for (const one of kernels) node(root, where.get(one.id), one);
  labels.forEach((label) => root.append(label));
  box.replaceChildren(root);
  if (folded.kernels.length > MOST_KERNELS) {
    box.append(el("p", { class: "hint" }, `The ${MOST_KERNELS} kernels that take most time, of ${folded.kernels.length}.`));
  }
  return folded;
}

const depthOf = (columns, id) => columns.findIndex((column) => column.some((one) => one.id === id));

function node(root, { x, y }, one) {
  const group = svg("g", {},
    svg("title", {}, `${one.name}: ${plural(one.launches, "time")}, ${time(one.ns)} in all`),
    svg("rect", { class: "box", x, y, width: BOX_W, height: BOX_H, rx: 7 }),
    svg("rect", { x, y, width: 6, height: BOX_H, rx: 3, fill: colours.get(one.name) }));
  const name = one.name.length > 20 ? `${one.name.slice(0, 19)}…` : one.name;
  group.append(svg("text", { x: x + 15, y: y + 19, "font-weight": 600 }, name));
  group.append(svg("text", { class: "small", x: x + 15, y: y + 36 }, `${count(one.launches)}×, ${time(one.ns)}`));
  root.append(group);
}

function curve(root, labels, where, edge, most, height) {
  const from = where.get(edge.from), to = where.get(edge.to);
  const kind = mainKind(edge.kinds);
  const stroke = KIND_COLOUR[kind] || "#7d868f";
  const wide = 1.2 + 3.6 * Math.sqrt(edge.count / most);
  let d, lx, ly;
  if (edge.from === edge.to) {
    const cx = from.x + BOX_W / 2;
    d = `M ${cx - 26} ${from.y} C ${cx - 26} ${from.y - 26}, ${cx + 26} ${from.y - 26}, ${cx + 26} ${from.y}`;
    [lx, ly] = [cx, from.y - 21];
  } else if (from.x < to.x) {
    const [x1, y1, x2, y2] = [from.x + BOX_W, from.y + BOX_H / 2, to.x, to.y + BOX_H / 2];
    const mid = (x1 + x2) / 2;
    d = `M ${x1} ${y1} C ${mid} ${y1}, ${mid} ${y2}, ${x2} ${y2}`;
    [lx, ly] = [x2 - x1 > 2 * BOX_W ? x1 + 60 : mid, (y1 + y2) / 2 - 4];
    if (x2 - x1 > 2 * BOX_W) ly = y1 + (y2 - y1) * 0.12 - 5;
  } else {
    const [x1, y1, x2, y2] = [from.x + BOX_W / 2, from.y + BOX_H, to.x + BOX_W / 2, to.y + BOX_H];
    d = `M ${x1} ${y1} C ${x1} ${height - 4}, ${x2} ${height - 4}, ${x2} ${y2}`;
    [lx, ly] = [(x1 + x2) / 2, Math.min(height - 10, Math.max(y1, y2) + 28)];
  }
  const line = svg("path", { d, fill: "none", stroke, "stroke-width": wide, opacity: 0.85 });
  line.append(svg("title", {}, `${D.names[edge.from]} → ${D.names[edge.to]}: ${kindsText(edge.kinds)}`));
  root.append(line);
  labels.push(svg("text", { class: "small halo", x: lx, y: ly, "text-anchor": "middle" }, `${count(edge.count)} ${kind}${edge.kinds.size > 1 ? " +" : ""}`));
}

// ---- every launch ----

function drawWhole(canvas, tip, chosen) {
  const depth = new Int32Array(COUNT);
  const slots = [];
  for (let i = 0; i < COUNT; ++i) {
    for (const edge of up[i]) depth[i] = Math.max(depth[i], depth[edge.from] + 1);
    (slots[depth[i]] ||= []).push(i);
  }
  const width = canvas.parentElement.clientWidth;
  const deepest = Math.max(1, slots.length), most = Math.max(1, ...slots.map((one) => one.length));
  const height = Math.max(160, Math.min(620, most * 14 + 30));
  const dx = Math.min(120, (width - 30) / deepest), dy = Math.min(24, (height - 20) / most);
  const radius = Math.max(1.3, Math.min(5.5, dx / 3, dy / 2.4));
  const xs = new Float32Array(COUNT), ys = new Float32Array(COUNT);
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
        if (D.edges.kinds[D.edges.kind[e]] !== kind) return;
        context.moveTo(xs[from], ys[from]);
        context.lineTo(xs[D.edges.down[e]], ys[D.edges.down[e]]);
      });
      context.stroke();
    }
    context.globalAlpha = 1;
    for (let i = 0; i < COUNT; ++i) {
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
    for (let i = 0; i < COUNT; ++i) {
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
