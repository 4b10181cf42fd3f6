// The timeline: bars on a canvas, zoom, hover, and the choice of two launches.

const ROW = 20, GAP = 4, GUTTER = 128, HEAD_HIGH = 26;

function timeline(canvas, tip, chosen) {
  const all = rows();
  const whole = D.whole_ns;
  const view = { from: 0, to: whole };
  const context = canvas.getContext("2d");
  const height = HEAD_HIGH + all.length * (ROW + GAP) + 6;
  let width = 0, hover = null, drag = null, cursor = -1;

  const x = (ns) => GUTTER + ((ns - view.from) / (view.to - view.from)) * (width - GUTTER);
  const ns = (px) => view.from + ((px - GUTTER) / (width - GUTTER)) * (view.to - view.from);
  const top = (row) => HEAD_HIGH + row * (ROW + GAP);

  const placed = new Map(); // launch: its row, and its bar
  all.forEach((row, r) => row.bars.forEach((bar) => {
    if (bar.launch === undefined || bar.epoch || row.host) return;
    const before = placed.get(bar.launch); // of several groups the first
    if (!before || bar.start < before.bar.start) placed.set(bar.launch, { r, bar });
  }));
  const epochRow = all.findIndex((row) => row.bars.some((bar) => bar.epoch));
  const spot = (i) => placed.get(i) || (isTask(i) ? placed.get(L.of[i]) : null) || (L.epoch[i] ? { r: epochRow, bar: { start: L.start[i], end: L.end[i] } } : null);

  function resize() {
    const scale = window.devicePixelRatio || 1;
    width = canvas.parentElement.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    draw();
  }

  function draw() {
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    axis();
    all.forEach((row, r) => {
      context.fillStyle = css("--row");
      context.fillRect(GUTTER, top(r), width - GUTTER, ROW);
    });
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, height);
    context.clip();
    all.forEach((row, r) => bars(row, r));
    arrows();
    context.restore();
    all.forEach((row, r) => {
      if (!row.name) return;
      context.fillStyle = css("--soft");
      context.fillText(row.name, 2, top(r) + ROW / 2, GUTTER - 10);
    });
  }

  function axis() {
    const span = view.to - view.from;
    const rough = span / Math.max(2, (width - GUTTER) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    context.fillStyle = css("--soft");
    context.strokeStyle = css("--line");
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      const px = Math.round(x(t)) + 0.5;
      context.beginPath();
      context.moveTo(px, HEAD_HIGH - 6);
      context.lineTo(px, height);
      context.stroke();
      const text = time(Math.abs(t) < step / 2 ? 0 : t);
      if (px + context.measureText(text).width < width) context.fillText(text, px + 3, 10);
    }
    context.fillText("time", 2, 10);
  }

  function bars(row, r) {
    let reached = -1;
    const y = top(r);
    for (const bar of row.bars) {
      if (bar.end < view.from || bar.start > view.to) continue;
      const left = Math.max(GUTTER, x(bar.start));
      const right = Math.min(width, x(bar.end));
      const wide = Math.max(1, right - left);
      if (left + wide <= reached + 0.5) continue; // a pixel that is drawn already
      reached = left + wide;
      context.fillStyle = bar.part ? css(`--${bar.part}`) : bar.epoch || bar.replay ? "#0072b2" : colourOf(bar.launch);
      const inset = bar.part === "own" ? 5 : 0;
      context.fillRect(left, y + inset, wide > 3 ? wide - 0.6 : wide, ROW - 2 * inset);
      if (bar.part === "wait") hatch(left, y, wide);
      if (wide > 34) label(bar, left, y, wide);
    }
  }

  function hatch(left, y, wide) {
    if (wide < 4) return;
    context.save();
    context.beginPath();
    context.rect(left, y, wide, ROW);
    context.clip();
    context.strokeStyle = css("--wait-line");
    context.beginPath();
    for (let px = left - ROW; px < left + wide; px += 7) { context.moveTo(px, y + ROW); context.lineTo(px + ROW, y); }
    context.stroke();
    context.restore();
  }

  function label(bar, left, y, wide) {
    const text = bar.part === "wait" ? "waits" : bar.part ? "" : bar.epoch ? `epoch of ${bar.tasks}` : nameOf(bar.launch);
    if (!text) return;
    context.save();
    context.beginPath();
    context.rect(left, y, wide - 3, ROW);
    context.clip();
    context.fillStyle = bar.part ? css("--ink") : ink(bar.epoch || bar.replay ? "#0072b2" : colourOf(bar.launch));
    context.fillText(text, left + 4, y + ROW / 2 + 0.5);
    context.restore();
  }

  function arrows() {
    const marks = [chosen.a, chosen.b].filter((i) => i >= 0);
    for (const i of marks) for (const edge of [...up[i], ...down[i]]) {
      const from = spot(edge.from), to = spot(edge.to);
      if (!from || !to) continue;
      const [x1, y1, x2, y2] = [x(isTask(edge.from) || hasOwn(edge.from) ? ends(edge.from) : from.bar.end), top(from.r) + ROW / 2, x(to.bar.start), top(to.r) + ROW / 2];
      context.strokeStyle = KIND_COLOUR[edge.kind] || css("--ink");
      context.lineWidth = 1.4;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + 18, y1, x2 - 18, y2, x2, y2);
      context.stroke();
      context.beginPath();
      context.moveTo(x2, y2);
      context.lineTo(x2 - 6, y2 - 3.5);
      context.lineTo(x2 - 6, y2 + 3.5);
      context.fillStyle = context.strokeStyle;
      context.fill();
    }
    const outline = (i, colour, lineWidth) => {
      const where = spot(i);
      if (!where) return;
      context.strokeStyle = colour;
      context.lineWidth = lineWidth;
      const left = x(where.bar.start), wide = Math.max(3, x(where.bar.end) - left);
      context.strokeRect(left - 1, top(where.r) - 1, wide + 2, ROW + 2);
    };
    if (cursor >= 0) outline(cursor, css("--soft"), 1.5);
    marks.forEach((i) => outline(i, css("--mark"), 2.5));
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const r = Math.floor((py - HEAD_HIGH) / (ROW + GAP));
    if (r < 0 || r >= all.length || px < GUTTER) return { px, py, bar: null };
    const reach = 2 * (view.to - view.from) / (width - GUTTER);
    const t = ns(px);
    let best = null, distance = reach;
    for (const bar of all[r].bars) {
      const off = t < bar.start ? bar.start - t : t > bar.end ? t - bar.end : 0;
      if (off < distance || (off === 0 && best === null)) { best = bar; distance = off; }
      if (off === 0) break;
    }
    return { px, py, bar: best, row: all[r] };
  }

  function text(bar) {
    const took = `${time(bar.end - bar.start)}, from ${time(bar.start)}`;
    if (bar.part === "own") return `The program's own work\n${took}`;
    if (bar.part === "wait") {
      const what = byNumber.has(bar.number) ? full(byNumber.get(bar.number)) : "all before";
      return `Waits for ${what}\n${took}`;
    }
    if (bar.part === "call") return `Launches ${full(bar.launch)}\n${took}`;
    if (bar.epoch) return `Epoch ${bar.epoch} of the scheduler: ${plural(bar.tasks, "task")}\n${took}`;
    if (bar.group !== undefined) {
      const ran = `${plural(bar.tiles, "tile")}${bar.child ? " of what it spawned" : ""}`;
      return `Group ${bar.group} of the scheduler: ${ran}, ${took}\n${about(bar.launch)}`;
    }
    return about(bar.launch);
  }

  function zoom(factor, around = (view.from + view.to) / 2) {
    const span = Math.min(whole * 1.02, Math.max(200, (view.to - view.from) * factor));
    const share = (around - view.from) / (view.to - view.from);
    go(around - share * span, span);
  }

  function go(from, span) {
    const low = -0.01 * whole;
    view.from = Math.max(low, Math.min(from, 1.01 * whole - span));
    view.to = view.from + span;
    draw();
  }

  function reveal(i) {
    const where = spot(i);
    if (!where) return;
    const span = view.to - view.from;
    if (where.bar.start < view.from || where.bar.end > view.to) go((where.bar.start + where.bar.end - span) / 2, span);
    else draw();
  }

  function focusOn(places) {
    const found = places.map(spot).filter(Boolean).map((one) => one.bar);
    if (!found.length) return;
    const first = Math.min(...found.map((bar) => bar.start)), last = Math.max(...found.map((bar) => bar.end));
    const span = Math.max(2000, (last - first) * 1.6);
    go((first + last - span) / 2, Math.min(span, whole * 1.02));
  }

  function tell(where) {
    tip.hidden = !where || !where.bar;
    if (tip.hidden) return;
    tip.textContent = text(where.bar);
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(where.px + 14, width - box.width - 8))}px`;
    tip.style.top = `${Math.min(where.py + 16, Math.max(0, height - box.height))}px`;
  }

  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const moved = event.clientX - drag.x;
      if (Math.abs(moved) > 3) drag.moved = true;
      if (drag.moved) go(drag.from - (moved / (width - GUTTER)) * (view.to - view.from), view.to - view.from);
      return;
    }
    hover = at(event);
    canvas.style.cursor = hover.bar && hover.bar.launch !== undefined ? "pointer" : "crosshair";
    tell(hover);
  });
  canvas.addEventListener("pointerleave", () => tell(null));
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const was = drag;
    drag = null;
    if (was && was.moved) return;
    const { bar } = at(event);
    if (bar && bar.launch !== undefined) { cursor = bar.launch; chosen.pick(bar.launch); }
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      go(view.from + ((event.deltaX || event.deltaY) / width) * (view.to - view.from), view.to - view.from);
    } else zoom(event.deltaY > 0 ? 1.25 : 0.8, ns(event.clientX - box.left));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const span = view.to - view.from;
    const step = (by) => { cursor = Math.max(0, Math.min(ITEMS - 1, cursor + by)); reveal(cursor); const where = spot(cursor); if (where) tell({ bar: { ...where.bar, launch: cursor, epoch: 0 }, px: Math.max(GUTTER, x(where.bar.start)), py: top(where.r) + ROW }); };
    const keys = {
      ArrowLeft: () => go(view.from - 0.15 * span, span), ArrowRight: () => go(view.from + 0.15 * span, span),
      "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), 0: () => go(0, whole),
      "[": () => step(-1), "]": () => step(1), Enter: () => cursor >= 0 && chosen.pick(cursor),
      Escape: () => chosen.clear(),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  window.addEventListener("resize", resize);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return { draw, resize, zoom, focusOn, reveal, all: () => go(0, whole), spot: (i) => {
    const where = spot(i);
    return where && { x: x((where.bar.start + where.bar.end) / 2), y: top(where.r) + ROW / 2 };
  } };
}

// Black or white on a colour, whichever reads better.
function ink(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#15181b" : "#ffffff";
}

// A launch in a few lines.
function about(i) {
  const sizes = L.groups[i] ? isTask(i) ? `\n${plural(L.groups[i], "tile")}` : `\n${plural(L.groups[i], "group")} of ${plural(L.items[i], "work-item")}` : "";
  const late = L.called[i] === UNKNOWN ? "" : `\ncalled at ${time(L.called[i])}`;
  const phase = D.phases[L.phase[i]] ? `\nphase ${D.phases[L.phase[i]]}` : "";
  const follows = up[i].length ? `\nfollows ${up[i].slice(0, 3).map((edge) => `${called(edge.from)} (${edge.kind})`).join(", ")}${up[i].length > 3 ? " …" : ""}` : "\nfollows nothing in this block";
  const shared = L.epoch[i] && !hasOwn(i) ? " with all of its epoch" : "";
  return `${full(i)}\n${time(ends(i) - begins(i))}${shared}, from ${time(begins(i))}, ${D.where[L.where[i]]}${sizes}${late}${phase}${follows}`;
}
