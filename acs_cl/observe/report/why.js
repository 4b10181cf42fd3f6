// Why two launches did not overlap. Input: places. Output: {kind, verdict, lines}. Draws nothing.
// A launch starts after its call, its upstream, its lane and the window. Those of them that came
// after the first launch's end explain why the second one did not run beside it.

const EVERYTHING = 0;
const MOST_ROWS = 4096;

const spanEnd = ([, start, pitch, rows, width]) => start + (rows - 1) * pitch + width;

// The first interval of bytes that both spans have; null: none.
function shared(a, b) {
  if (a[0] !== b[0] || a[0] === EVERYTHING || a[1] >= spanEnd(b) || b[1] >= spanEnd(a)) return null;
  if (a[3] > MOST_ROWS || b[3] > MOST_ROWS) return [Math.max(a[1], b[1]), Math.min(spanEnd(a), spanEnd(b))];
  let i = 0, j = 0;
  while (i < a[3] && j < b[3]) { // rows of both are in order
    const x = a[1] + i * a[2], y = b[1] + j * b[2];
    const low = Math.max(x, y), high = Math.min(x + a[4], y + b[4]);
    if (low < high) return [low, high];
    if (x + a[4] <= y + b[4]) ++i; else ++j;
  }
  return null;
}

// The program's own memory has addresses instead of numbers; here each gets a number.
const foreign = new Map();
const APART = 2 ** 40, STAGING = 2 ** 60; // as acs_cl/records.py has them

function baseText(base) {
  if (base > 0 && base < APART) return `base ${base}`;
  if (base >= STAGING) return "staging memory";
  if (base >= APART) return `base ${base % APART} on device ${Math.floor(base / APART)}`;
  if (!foreign.has(base)) foreign.set(base, foreign.size + 1);
  return `memory ${foreign.get(base)} of the program's own`;
}

function spanText([base, start, pitch, rows, width]) {
  if (base === EVERYTHING) return "all memory";
  const where = baseText(base);
  const end = spanEnd([base, start, pitch, rows, width]);
  const more = rows > 1 ? ` (${count(rows)} rows of ${count(width)}, ${count(pitch)} apart)` : "";
  return `bytes ${start}..${end} of ${where}${more}`;
}

const argumentsOf = (i, base) =>
  D.arguments[L.arguments[i]].filter((one) => one[2] === base).map((one) => one[0]).join(", ");

// The bytes that order two launches, a the earlier one in program order.
function meetings(a, b) {
  const found = [];
  for (const [kind, ours, theirs] of [
    ["RAW", L.writes[a], L.reads[b]], ["WAR", L.reads[a], L.writes[b]], ["WAW", L.writes[a], L.writes[b]],
  ]) {
    for (const x of ours) for (const y of theirs) {
      const [s, t] = [D.spans[x], D.spans[y]];
      const bytes = shared(s, t);
      if (bytes) found.push({ kind, bytes, base: s[0], spans: [s, t] });
    }
  }
  const all = [a, b].find((i) => [...L.reads[i], ...L.writes[i]].some((s) => D.spans[s][0] === EVERYTHING));
  if (all !== undefined) found.push({ kind: "any", all });
  return found;
}

const VERB = { RAW: "reads what the first wrote", WAR: "overwrites what the first reads", WAW: "overwrites what the first wrote" };

function meetingText(one, a, b) {
  if (one.kind === "any") return `${full(one.all)} may touch any memory`;
  const names = [argumentsOf(a, one.base), argumentsOf(b, one.base)];
  const of = names[0] || names[1] ? ` (argument ${names[0] || "?"} of ${nameOf(a)}, ${names[1] || "?"} of ${nameOf(b)})` : "";
  return `${one.kind}, the second ${VERB[one.kind]}: bytes ${one.bytes[0]}..${one.bytes[1]} of ${baseText(one.base)}${of}. `
    + `The views are ${spanText(one.spans[0])} and ${spanText(one.spans[1])}.`;
}

// A path of edges from a to b, the shortest one; null: none.
function path(a, b) {
  const behind = new Map([[b, null]]);
  let open = [b];
  while (open.length && !behind.has(a)) {
    const next = [];
    for (const one of open) for (const edge of up[one]) {
      if (edge.from >= a && !behind.has(edge.from)) { behind.set(edge.from, edge); next.push(edge.from); }
    }
    open = next;
  }
  if (!behind.has(a)) return null;
  const edges = [];
  for (let at = a; at !== b; ) { const edge = behind.get(at); edges.push(edge); at = edge.to; }
  return edges;
}

function edgeText(edge) {
  const met = meetings(edge.from, edge.to);
  const bytes = met.length ? meetingText(met[0], edge.from, edge.to) : edge.kind === "other"
    ? "memory changed hands, or the program asked for that order." : `${edge.kind}.`;
  return `${full(edge.to)} follows ${full(edge.from)}: ${bytes}`;
}

const inOrder = D.about.backend === "serial";

// The things that a launch had to start after: {at, kind, text}.
function bounds(b, a) {
  const found = [];
  for (const edge of up[b]) {
    found.push({ at: ends(edge.from), kind: "upstream", who: edge.from,
      text: `It waited for ${full(edge.from)}, which ended ${later(ends(edge.from), a)}. ${edgeText(edge)}` });
  }
  const before = lanePredecessor(b);
  if (before >= 0) {
    const queue = inOrder ? "the only queue, which runs in program order" : `lane ${L.lane[b]}, a queue that runs in order`;
    found.push({ at: L.end[before], kind: "lane", who: before,
      text: `Before it on ${queue}, ${full(before)} ended ${later(L.end[before], a)}.` });
  }
  if (L.called[b] !== UNKNOWN) {
    found.push({ at: L.called[b], kind: "host", text: `The host was late: its call came ${later(L.called[b], a)}. ${meanwhile(a, b)}` });
  }
  const handed = L.handed[b];
  if (handed !== UNKNOWN && L.called[b] !== UNKNOWN && handed > L.called[b] + L.call[b] + D.clock.error) {
    const open = unfinished(b);
    const isWindow = D.about.window && open >= D.about.window;
    const why = isWindow
      ? `The window was full: ${count(open)} launches before it had not ended at its call, and the window holds ${D.about.window}.`
      : "The runtime held it back, since what it follows runs on the host, or the policy is ready_first.";
    found.push({ at: handed, kind: isWindow ? "window" : "held",
      text: `${why} The driver got it ${time(handed - L.called[b])} after its call, ${later(handed, a)}.` });
  }
  return found.sort((x, y) => y.at - x.at);
}

function later(at, a) {
  const gap = at - ends(a);
  if (Math.abs(gap) <= (inside(a) ? 0 : D.clock.error)) return `as ${called(a)} ended`;
  return gap > 0 ? `${time(gap)} after ${called(a)} had ended` : `${time(-gap)} before ${called(a)} ended`;
}

const predecessors = new Map();
function lanePredecessor(b) {
  const lane = laneOf(b);
  if (L.lane[b] < 0 || L.epoch[b] || D.about.backend === "out_of_order") return -1;
  if (!predecessors.has(lane)) {
    const mine = [];
    for (let i = 0; i < COUNT; ++i) if (L.lane[i] >= 0 && laneOf(i) === lane && !L.epoch[i]) mine.push(i);
    predecessors.set(lane, new Map(mine.map((one, i) => [one, i ? mine[i - 1] : -1])));
  }
  return predecessors.get(lane).get(b) ?? -1;
}

// Launches before b in program order that had not ended at its call.
function unfinished(b) {
  let open = 0;
  for (let i = 0; i < b; ++i) if (L.end[i] > L.called[b]) ++open;
  return open;
}

// The work of b's thread between the beginning of a and the call of b.
function meanwhile(a, b) {
  const from = L.start[a], to = L.called[b], thread = L.thread[b];
  const waits = [];
  D.waits.thread.forEach((one, i) => {
    const ns = Math.min(to, D.waits.end[i]) - Math.max(from, D.waits.start[i]);
    if (one === thread && ns > 0) waits.push({ ns, number: D.waits.number[i] });
  });
  let calls = 0, inCalls = 0;
  for (let i = 0; i < b; ++i) {
    if (L.thread[i] === thread && L.called[i] >= from && L.called[i] < to) { ++calls; inCalls += L.call[i]; }
  }
  const said = waits.sort((x, y) => y.ns - x.ns).slice(0, 3).map((one) => {
    const what = one.number && byNumber.has(one.number) ? full(byNumber.get(one.number)) : "all before";
    return `waited ${time(one.ns)} for ${what}`;
  });
  if (calls) said.push(`launched ${plural(calls, "other")} in ${time(inCalls)}`);
  const own = to - from - inCalls - waits.reduce((sum, one) => sum + one.ns, 0);
  if (own > 1000 && L.own[b] > 0) said.push(`did ${time(Math.min(own, L.own[b]))} of its own just before`);
  return said.length ? `Since ${called(a)} began, its thread ${said.join(", ")}.` : "";
}

// Work-groups that the device had at some time while a ran; -1 where a kernel does not say.
function groupsBeside(a, b) {
  let most = 0;
  const mine = [];
  for (let i = 0; i < COUNT; ++i) {
    if (i !== b && L.start[i] < L.end[a] && L.end[i] > L.start[a] && kindOf(i) === "kernels") mine.push(i);
  }
  for (const at of mine) {
    let sum = 0;
    for (const i of mine) if (L.start[i] <= L.start[at] && L.end[i] > L.start[at]) sum += L.groups[i];
    most = Math.max(most, sum);
  }
  return mine.some((i) => !L.groups[i]) ? -1 : most;
}

const NEEDS = new Map(D.about.kernels.map(([name, local, own, most, registers]) => [name, { local, own, most, registers: registers || 0 }]));

// The needs of a group, and how many groups a unit can hold by that. null: not known.
function needs(i) {
  const one = NEEDS.get(nameOf(i)), items = L.items[i], all = D.about;
  if (!one) return null;
  const bounded = one.most > 0 && one.most < all.most_items;
  const said = [one.local ? `${plural(one.local, "byte")} of local memory` : "no local memory"];
  if (one.own) said.push(`${plural(one.own, "byte")} of a work-item in no register`);
  // the compiler gives warps of 32 work-items registers by eights
  const registers = Math.ceil(one.registers / 8) * 8 * Math.ceil(items / 32) * 32;
  if (one.registers) said.push(`${plural(one.registers, "register")} for each work-item`);
  else said.push(`registers that this driver does not tell${bounded ? `, and ${plural(one.most, "work-item")} at most` : ""}`);
  const held = [["local memory", one.local ? Math.floor(all.local_bytes / one.local) : Infinity]];
  if (registers && all.registers) held.push(["registers", Math.floor(all.registers / registers)]);
  const [by, resident] = held.reduce((x, y) => (y[1] < x[1] ? y : x));
  return { text: `A group of ${nameOf(i)} has ${said.join(", ")}`, resident, by, local: one.local, registers };
}

function residency(a, b) {
  const both = [needs(a), needs(b)];
  if (both.includes(null)) return ["What these kernels need of a unit is not known."];
  const lines = both.map((one) => one.text + (one.resident === Infinity ? "." : `: a unit holds ${one.resident} by ${one.by}.`));
  for (const [what, mine, all] of [
    ["bytes of local memory", both.map((one) => one.local), D.about.local_bytes], ["registers", both.map((one) => one.registers), D.about.registers],
  ]) {
    const sum = mine[0] + mine[1];
    if (!all || !sum || (what === "registers" && mine.includes(0))) continue;
    lines.push(`Of the ${count(all)} ${what} that a unit has: ${sum > all ? "no unit has room for a group of each" : "a group of each fits one unit together"}.`);
  }
  return lines;
}

// The previous run of each run on its group, and when each group worked.
const runsOf = new Map(), before = new Map(), epochRuns = new Map();
{
  const R = D.runs, last = new Map();
  const order = [...R.item.keys()].sort((x, y) => R.start[x] - R.start[y]);
  for (const k of order) {
    const item = R.item[k], where = `${inside(item)} ${R.group[k]}`;
    if (!runsOf.has(item)) runsOf.set(item, []);
    runsOf.get(item).push(k);
    if (last.has(where)) before.set(k, last.get(where));
    last.set(where, k);
    if (!epochRuns.has(inside(item))) epochRuns.set(inside(item), []);
    epochRuns.get(inside(item)).push(k);
  }
}

// The things that a task in an epoch had to start after.
function boundsInside(b, a) {
  const R = D.runs, found = [];
  for (const edge of up[b]) {
    if (inside(edge.from) !== inside(b) || !hasOwn(edge.from)) continue;
    found.push({ at: ends(edge.from), kind: "upstream",
      text: `It waited for ${full(edge.from)}, which ended ${later(ends(edge.from), a)}. ${edgeText(edge)}` });
  }
  const first = runsOf.get(b)[0], was = before.get(first);
  if (was !== undefined) {
    const all = new Set(), busy = new Set();
    for (const k of epochRuns.get(inside(b))) {
      all.add(R.group[k]);
      if (R.start[k] < R.start[first] && R.end[k] > ends(a)) busy.add(R.group[k]);
    }
    found.push({ at: R.end[was], kind: "group",
      text: `Group ${R.group[first]}, which ran it, was at ${full(R.item[was])} before, which it ended ${later(R.end[was], a)}. `
        + `Of ${plural(all.size, "group")} that had work in this epoch, ${count(busy.size)} had some between the two.` });
  }
  return found.sort((x, y) => y.at - x.at);
}

function whyInside(a, b, behind) {
  const all = boundsInside(b, a);
  const late = all.filter((bound) => bound.at >= ends(a));
  const lines = (late.length ? late : all).slice(0, 3).map((bound) => bound.text);
  if (late.length) return { kind: late[0].kind, a, b, verdict: `${behind}: no byte orders them. ${HEAD[late[0].kind]}`, lines };
  return { kind: "scheduler", a, b, lines,
    verdict: `${behind}: no byte orders them, and nothing that it follows was late. It stood in the scheduler's queue, or a group was just looking there.` };
}

function why(one, other) {
  const [a, b] = begins(one) < begins(other) || (begins(one) === begins(other) && one < other) ? [one, other] : [other, one];
  const earlier = L.number[a] < L.number[b] || (L.number[a] === L.number[b] && a < b);
  const [first, second] = earlier ? [a, b] : [b, a];
  const met = meetings(first, second);
  const direct = met.map((meeting) => meetingText(meeting, first, second));
  const together = inside(a) && inside(a) === inside(b);
  if (together && !(hasOwn(a) && hasOwn(b))) {
    const chain = met.length ? null : path(first, second);
    return { kind: "epoch", a, b,
      verdict: `Both ran in ${inside(a)} of the scheduler. Only the time of the whole is known, so they may have overlapped.`,
      lines: direct.length ? ["They cannot have, since bytes order them:", ...direct]
        : chain ? ["They cannot have, since launches between them do:", ...chain.map(edgeText)]
          : ["No byte orders them."] };
  }
  if (begins(b) < ends(a)) {
    const beside = Math.min(ends(a), ends(b)) - begins(b);
    return { kind: "overlap", a, b, verdict: `They did overlap, for ${time(beside)}.`, lines: direct };
  }
  const gap = begins(b) - ends(a);
  const behind = `${called(b)} began ${time(gap)} after ${called(a)} ended`;
  if (met.length) {
    return { kind: "bytes", a, b, verdict: `${behind}: bytes order them.`, lines: direct };
  }
  const chain = path(first, second);
  if (chain) {
    return { kind: "chain", a, b, verdict: `${behind}: they share no byte, and ${plural(chain.length - 1, "launch")} between them order them.`,
      lines: chain.slice(0, 8).map(edgeText).concat(chain.length > 8 ? [`… and ${chain.length - 8} more`] : []) };
  }
  if (together) return whyInside(a, b, behind);
  const all = bounds(b, a);
  const late = all.filter((bound) => bound.at >= ends(a) - D.clock.error);
  if (late.length) {
    return { kind: late[0].kind, a, b, verdict: `${behind}: no byte orders them. ${HEAD[late[0].kind]}`, lines: late.slice(0, 4).map((bound) => bound.text) };
  }
  const lines = all.slice(0, 2).map((bound) => bound.text);
  const units = D.about.units, groups = groupsBeside(a, b);
  const isFull = units > 0 && groups >= units;
  if (units && groups >= 0) {
    lines.unshift(`While ${called(a)} ran, up to ${plural(groups, "work-group")} were on the device, which has ${plural(units, "compute unit")}: `
      + (isFull ? "enough to fill it." : "there was room by their number."));
  }
  lines.push(...residency(a, b));
  const verdict = isFull ? "The device was full." : "The driver or the device chose this order.";
  return { kind: isFull ? "device" : "driver", a, b, verdict: `${behind}: no byte orders them, and the host was not late. ${verdict}`, lines };
}

const HEAD = {
  upstream: "It waited for another launch.", lane: "It stood behind others in its lane.", host: "The host was late.",
  window: "The window was full.", group: "The group that ran it was at work.", held: "The runtime held it back.",
};
