// The parts of the page that are text and tables.

function head() {
  const about = D.about;
  $("title").textContent = D.title || "A block of launches";
  const said = [about.device, about.backend && `backend ${about.backend}`, about.window && `window ${about.window}`];
  $("about").textContent = said.filter(Boolean).join(" · ") + (about.why ? ` — ${about.why}` : "");
  const clock = D.clock.comparable ? "host clock" : `${D.clock.device} clock`;
  const ran = [...Array(COUNT).keys()].filter((i) => kindOf(i) !== "host tasks");
  for (const [name, value] of [
    [`the block, ${clock}`, time(D.whole_ns)], ["launches", count(COUNT)], ["edges", count(D.edges.down.filter((to) => !isTask(to)).length)],
    [`longest chain, ${D.clock.device} clock`, time(D.chain.ns)], [`in flight on average, while any is`, inFlight(ran)],
  ]) $("totals").append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

// Summed durations over their union; an epoch counts once.
function inFlight(places) {
  const seen = new Set();
  const times = places.filter((i) => !L.epoch[i] || (!seen.has(L.epoch[i]) && seen.add(L.epoch[i])))
    .map((i) => [L.start[i], L.end[i]]).sort((a, b) => a[0] - b[0]);
  let sum = 0, covered = 0, reached = -Infinity;
  for (const [start, end] of times) {
    sum += end - start;
    covered += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return covered ? round(sum / covered) : "0";
}

function advice(show) {
  const box = $("advice-list");
  if (!D.findings.length) {
    box.append(el("p", {}, COUNT ? "Nothing stands out: no finding costs a noticeable part of the time." : "Nothing was launched in this block."));
    return;
  }
  D.findings.forEach((one, i) => {
    const [, text] = one.text.match(new RegExp(`^(?:${one.kind}: )?(.*)$`, "s"));
    const cost = one.cost_ns > 0 ? `costs ${one.is_most ? "up to" : "about"} ${time(one.cost_ns)} of ${time(D.whole_ns)} (${percent(one.cost_ns, D.whole_ns)})` : "";
    const tried = D.estimates.find((estimate) => estimate.finding === i);
    const gain = tried && el("span", { class: "badge", title: `${tried.change}: ${time(tried.before_ns)} without it, ${time(tried.after_ns)} with it, on the emulator's model` },
      `simulated: ${(tried.before_ns / Math.max(1, tried.after_ns)).toFixed(2)}×`);
    const look = one.launches.length > 0 && el("button", { type: "button", on: { click: () => show(one.launches) } }, "Show");
    box.append(el("article", { class: i ? "finding" : "finding first", "data-kind": one.kind },
      el("div", { class: "head" }, el("span", { class: "kind" }, one.kind.replace(/-/g, " ")), el("span", { class: "cost" }, cost), gain, look || null),
      el("p", {}, text)));
  });
}

function timeWent() {
  const box = $("shares");
  if (!D.shares.length) return;
  box.append(el("div", { class: "stack", role: "img", "aria-label": "Shares of the time; the table below says the same." },
    ...D.shares.map((one) => el("span", { style: `flex:${one.ns};background:${SHARE_COLOUR[one.name]}`, title: `${one.name}: ${time(one.ns)}` }))));
  const sum = D.shares.reduce((total, one) => total + one.ns, 0);
  const rows = [...D.shares, { name: "the whole block", ns: sum, clock: "", what: "", whole: true }];
  box.append(table([
    { head: "share", value: (row) => row.name, show: (row) => el("span", { class: "key" }, row.whole ? "" : swatch(SHARE_COLOUR[row.name]), row.whole ? el("b", {}, row.name) : row.name) },
    { head: "time", number: true, value: (row) => row.ns, show: (row) => time(row.ns) },
    { head: "of the whole", number: true, value: (row) => row.ns, show: (row) => percent(row.ns, sum) },
    { head: "clock", value: (row) => row.clock },
    { head: "what it is", value: (row) => row.what },
  ], rows));
}

function legend() {
  const names = [...colours.entries()].slice(0, 14);
  $("legend").append(...names.map(([name, colour]) => el("span", { class: "key" }, swatch(colour), name)));
  if (colours.size > names.length) $("legend").append(`and ${colours.size - names.length} more`);
  if (D.clock.comparable) for (const [part, name] of [["call", "call that launches"], ["wait", "waits"], ["own", "own work"]]) {
    $("legend").append(el("span", { class: "key" }, swatch(`var(--${part})`), name));
  }
  $("notes").append(...D.notes.map((note) => el("li", {}, note)));
}

function edgeTable(folded, show) {
  $("kinds").append(...D.edges.kinds.map((kind) => el("span", { class: "key" }, swatch(KIND_COLOUR[kind] || "#7d868f"), kind, VERB[kind] ? `: ${VERB[kind]}` : "")));
  $("edge-table").append(table([
    { head: "from", value: (row) => row.names[0] },
    { head: "to", value: (row) => row.names[1] },
    { head: "edges", number: true, value: (row) => row.count, show: (row) => count(row.count) },
    { head: "by kind", value: (row) => kindsText(row.kinds) },
    { head: "for instance", value: (row) => called(row.example.from), show: (row) => `${called(row.example.from)} → ${called(row.example.to)}` },
  ], folded.edges, { caption: "Edges between kernels", page: 10, pick: (row) => show([row.example.from, row.example.to]) }));
}

function estimates() {
  const box = $("estimates");
  if (!D.estimates.length) {
    box.append(el("p", {}, "The emulator was not asked."));
    return;
  }
  box.append(el("p", { class: "hint" }, `The emulator ran this block again on a model of “${D.estimates[0].machine}”, with one thing changed. Compare its two times with each other and not with measured ones: the model has the durations of launches as measured beside others, and its own costs of the host.`));
  const most = Math.max(...D.estimates.map((one) => Math.max(one.before_ns, one.after_ns)));
  box.append(table([
    { head: "change", value: (row) => row.change },
    { head: "without it", number: true, value: (row) => row.before_ns, show: (row) => time(row.before_ns) },
    { head: "with it", number: true, value: (row) => row.after_ns, show: (row) => time(row.after_ns) },
    { head: "", value: (row) => row.after_ns, show: (row) => el("span", { class: "bar", style: `width:${Math.max(2, (120 * row.after_ns) / most)}px` }) },
    { head: "speedup", number: true, value: (row) => row.before_ns / row.after_ns, show: (row) => `${(row.before_ns / Math.max(1, row.after_ns)).toFixed(2)}×` },
    { head: "model of", value: (row) => row.policy },
  ], D.estimates));
}

// Local memory of a group, registers of a work-item, its memory outside registers, and the largest group.
function needed(name) {
  const one = NEEDS.get(name);
  if (!one) return "—";
  const said = [one.local && `${plural(one.local, "byte")} local`, one.registers && plural(one.registers, "register"), one.own && `${plural(one.own, "byte")} private`, one.most && `at most ${plural(one.most, "work-item")}`];
  return said.filter(Boolean).join(", ") || "—";
}

function kernelTables(show) {
  const rows = new Map(), phases = new Map();
  for (const i of SHOWN) {
    const one = rows.get(L.name[i]) || rows.set(L.name[i], { first: i, times: [], edges: 0, groups: new Set(), where: new Set() }).get(L.name[i]);
    one.times.push(ends(i) - begins(i));
    one.edges += up[i].length;
    if (L.groups[i] && !isTask(i)) one.groups.add(`${count(L.groups[i])} × ${count(L.items[i])}`);
    one.where.add(D.where[L.where[i]]);
    if (isTask(i)) continue;
    const phase = phases.get(L.phase[i]) || phases.set(L.phase[i], { name: D.phases[L.phase[i]], places: [], edges: 0, call: 0 }).get(L.phase[i]);
    phase.places.push(i);
    phase.edges += up[i].length;
    phase.call += L.call[i];
  }
  const few = (set) => [...set].slice(0, 3).join(", ") + (set.size > 3 ? ` and ${set.size - 3} more` : "");
  const all = [...rows.entries()].map(([id, one]) => {
    const times = Float64Array.from(one.times).sort();
    return { ...one, name: D.names[id], sum: times.reduce((a, b) => a + b, 0), median: times[times.length >> 1], longest: times[times.length - 1] };
  });
  $("kernel-table").append(table([
    { head: "kernel", value: (row) => row.name, show: (row) => el("span", { class: "key" }, swatch(colours.get(row.name)), row.name) },
    { head: "launches", number: true, value: (row) => row.times.length, show: (row) => count(row.times.length) },
    { head: "in all", number: true, value: (row) => row.sum, show: (row) => time(row.sum) },
    { head: "median", number: true, value: (row) => row.median, show: (row) => time(row.median) },
    { head: "longest", number: true, value: (row) => row.longest, show: (row) => time(row.longest) },
    { head: "edges to it", number: true, value: (row) => row.edges, show: (row) => count(row.edges) },
    { head: "groups × work-items", value: (row) => few(row.groups) },
    { head: "a group needs", value: (row) => needed(row.name) },
    { head: "where", value: (row) => few(row.where) },
  ], all, { caption: "Kernels", sort: { column: 2, falls: true }, pick: (row) => show([row.first]) }));
  if (phases.size > 1) $("phase-table").append(table([
    { head: "phase", value: (row) => row.name || "(none)" },
    { head: "launches", number: true, value: (row) => row.places.length, show: (row) => count(row.places.length) },
    { head: "edges", number: true, value: (row) => row.edges, show: (row) => count(row.edges) },
    { head: "in flight", number: true, value: (row) => Number(inFlight(row.places)) },
    { head: "host, each launch", number: true, value: (row) => row.call / row.places.length, show: (row) => time(row.call / row.places.length) },
  ], [...phases.values()], { caption: "Phases" }));
}

function declarations() {
  const box = $("checks"), about = D.about;
  if (!about.checks) {
    box.append(el("p", {}, "Checks were off. Make the runtime with check=\"access,order\", or set ACS_CL_CHECK, to have declarations tried while the program runs."));
  } else if (!about.found.length) {
    box.append(el("p", {}, `Checks (${about.checks}) found nothing wrong.`));
  } else {
    box.append(el("p", {}, `Checks (${about.checks}) found:`), el("ul", {}, ...about.found.map((one) => el("li", {}, one))));
  }
  const unsure = D.findings.filter((one) => one.kind === "counts-as-written");
  if (unsure.length) box.append(el("h3", {}, "Arguments that count as written, since nobody could tell"), el("ul", {}, ...unsure.map((one) => el("li", {}, one.text))));
}

function launchTable(chosen) {
  $("launch-table").append(table([
    { head: "number", number: true, value: (i) => L.number[i] },
    { head: "launch", value: (i) => nameOf(i), show: (i) => el("span", { class: "key" }, swatch(colourOf(i)), called(i)) },
    { head: "began", number: true, value: (i) => begins(i), show: (i) => time(begins(i)) },
    { head: "took", number: true, value: (i) => ends(i) - begins(i), show: (i) => time(ends(i) - begins(i)) },
    { head: "where", value: (i) => D.where[L.where[i]] },
    { head: "groups", number: true, value: (i) => L.groups[i], show: (i) => (L.groups[i] ? count(L.groups[i]) : "—") },
    { head: "follows", number: true, value: (i) => up[i].length },
    { head: "phase", value: (i) => D.phases[L.phase[i]] },
  ], [...Array(COUNT).keys()], { pick: (i) => chosen.pick(i), page: 20 }));
}
