// Rows of the timeline: lanes, epochs of the scheduler, bypass, host tasks, threads of the program.
// A row is {name, bars}, a bar {start, end, launch} or {start, end, part} of a thread.

const MOST_HIGH = 12; // rows of one lane, where its launches cover one another

const AT_ONCE = -3; // the lane of copies between devices that the core made by itself

// Number a lane of a device. The lanes of one device follow one another.
const laneOf = (i) => Math.max(0, L.device[i]) * 4096 + L.lane[i];

function rows() {
  const lanes = new Map(), epochs = new Map(), bypass = [], tasks = [], copies = [];
  for (let i = 0; i < COUNT; ++i) {
    const bar = { start: L.start[i], end: L.end[i], launch: i };
    if (L.passed[i]) bypass.push(bar);
    else if (L.lane[i] === AT_ONCE) { if (D.clock.comparable) copies.push(bar); }
    else if (L.epoch[i]) {
      if (!epochs.has(L.epoch[i])) epochs.set(L.epoch[i], { ...bar, tasks: 0, epoch: L.epoch[i] });
      epochs.get(L.epoch[i]).tasks += 1;
    } else if (tasked.has(i)) epochs.set(`replay ${i}`, { ...bar, replay: true });
    else if (kindOf(i) === "host tasks") { if (D.clock.comparable) tasks.push(bar); }
    else {
      const lane = laneOf(i);
      if (!lanes.has(lane)) lanes.set(lane, []);
      lanes.get(lane).push(bar);
    }
  }
  const found = [];
  for (const lane of [...lanes.keys()].sort((a, b) => a - b)) {
    const first = lanes.get(lane)[0].launch, device = L.device[first];
    const name = lanes.size === 1 && D.about.backend !== "lanes" ? "queue" : `lane ${L.lane[first]}`;
    add(found, device < 0 ? name : `device ${device}, ${name}`, lanes.get(lane));
  }
  add(found, "copies between devices", copies);
  add(found, "scheduler: epochs", [...epochs.values()]);
  groups(found);
  add(found, "bypass", bypass);
  add(found, "host tasks", tasks);
  if (D.clock.comparable) threads(found);
  return found;
}

function add(found, name, bars) {
  if (!bars.length) return;
  bars.sort((a, b) => a.start - b.start || a.end - b.end);
  const packed = [];
  for (const bar of bars) {
    let row = packed.findIndex((one) => one[one.length - 1].end <= bar.start);
    if (row < 0) row = packed.length < MOST_HIGH ? packed.push([]) - 1 : MOST_HIGH - 1;
    packed[row].push(bar);
  }
  packed.forEach((row, i) => found.push({ name: i ? "" : name, bars: row }));
}

const MOST_GROUPS = 64;

// A row for each group of the scheduler. Of many groups, the ones that worked longest.
function groups(found) {
  const R = D.runs, by = new Map();
  R.item.forEach((item, k) => {
    const group = R.group[k];
    if (!by.has(group)) by.set(group, { group, ns: 0, bars: [] });
    const one = by.get(group);
    one.ns += R.end[k] - R.start[k];
    one.bars.push({ start: R.start[k], end: R.end[k], launch: item, group, tiles: R.tiles[k], child: R.child[k] });
  });
  const kept = [...by.values()].sort((a, b) => b.ns - a.ns).slice(0, MOST_GROUPS).sort((a, b) => a.group - b.group);
  kept.forEach((one) => {
    one.bars.sort((a, b) => a.start - b.start || a.end - b.end);
    found.push({ name: `group ${one.group}`, bars: one.bars, inside: true });
  });
  if (by.size > kept.length) found.push({ name: `+ ${by.size - kept.length} groups`, bars: [] });
}

function threads(found) {
  const parts = new Map();
  const of = (thread) => parts.get(thread) || parts.set(thread, []).get(thread);
  for (let i = 0; i < COUNT; ++i) {
    if (L.called[i] !== UNKNOWN) of(L.thread[i]).push({ start: L.called[i], end: L.called[i] + L.call[i], part: "call", launch: i });
  }
  D.waits.thread.forEach((thread, i) =>
    of(thread).push({ start: D.waits.start[i], end: D.waits.end[i], part: "wait", number: D.waits.number[i] }));
  for (const thread of [...parts.keys()].sort((a, b) => a - b)) {
    const mine = parts.get(thread).sort((a, b) => a.start - b.start);
    const bars = [];
    let at = mine[0].start;
    for (const one of mine) {
      if (one.start > at) bars.push({ start: at, end: one.start, part: "own" });
      bars.push(one);
      at = Math.max(at, one.end);
    }
    found.push({ name: parts.size === 1 ? "program" : `thread ${thread}`, bars, host: true });
  }
}
