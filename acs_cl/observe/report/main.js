// Puts the page together. Two launches are chosen; all pictures show them.

const chosen = {
  a: -1, b: -1,
  pick(i) {
    if (chosen.a < 0 || chosen.b >= 0) { chosen.a = i; chosen.b = -1; } else chosen.b = i;
    chosen.tell();
  },
  both(a, b) { chosen.a = a; chosen.b = b; chosen.tell(); },
  clear() { chosen.a = chosen.b = -1; chosen.tell(); },
  tell() {
    $("first").value = chosen.a >= 0 ? called(chosen.a) : "";
    $("second").value = chosen.b >= 0 ? called(chosen.b) : "";
    answer();
    bars.draw();
    if (redraw) redraw();
  },
};

let redraw = null;

function card(i) {
  const [first, ...rest] = about(i).split("\n");
  const touches = (name, places) => el("div", {}, `${name} `, places.length ? places.map((s) => {
    const names = argumentsOf(i, D.spans[s][0]);
    return spanText(D.spans[s]) + (names ? ` (${names})` : "");
  }).join("; ") : "nothing");
  return el("div", { class: "card" }, el("b", {}, first), ...rest.map((line) => el("div", {}, line)),
    touches("reads", L.reads[i]), touches("writes", L.writes[i]));
}

function answer() {
  const box = $("answer");
  const { a, b } = chosen;
  if (a < 0) {
    box.replaceChildren(el("p", { class: "hint" }, "Click two launches in the timeline, in a graph or in the table, or write their numbers or names here."));
    return;
  }
  if (b < 0 || a === b) {
    box.replaceChildren(el("div", { class: "two" }, card(a)), el("p", { class: "hint" }, "Now choose another one."));
    return;
  }
  const found = why(a, b);
  box.replaceChildren(
    el("p", { class: "verdict", "data-kind": found.kind }, found.verdict),
    el("ol", {}, ...found.lines.map((line) => el("li", {}, line))),
    el("div", { class: "two" }, card(found.a), card(found.b)));
}

function show(places) {
  chosen.both(places[0], places.length > 1 ? places[1] : -1);
  bars.focusOn(places);
  $("timeline").scrollIntoView();
}

$("pair").addEventListener("submit", (event) => {
  event.preventDefault();
  const [a, b] = [find($("first").value), find($("second").value)];
  const wrong = a < 0 ? $("first") : b < 0 ? $("second") : null;
  if (wrong) {
    $("answer").replaceChildren(el("p", { class: "verdict", "data-kind": "error" }, `There is no launch ${wrong.value || "here"}. Give its number, or a kernel's name and which of its launches: blur#3.`));
    wrong.focus();
    return;
  }
  chosen.both(a, b);
  bars.focusOn([a, b]);
});

const bars = timeline($("bars"), $("tip"), chosen);
$("zoom-in").onclick = () => bars.zoom(0.6);
$("zoom-out").onclick = () => bars.zoom(1.6);
$("zoom-all").onclick = () => bars.all();

function picture(whole) {
  $("whole-on").setAttribute("aria-pressed", whole);
  $("folded-on").setAttribute("aria-pressed", !whole);
  $("folded").hidden = whole;
  $("dag-box").hidden = !whole;
  redraw = whole ? drawWhole($("dag"), $("dag-tip"), chosen) : null;
}
$("folded-on").onclick = () => picture(false);
$("whole-on").onclick = () => picture(true);

head();
advice(show);
timeWent();
legend();
answer();
edgeTable(drawFolded($("folded")), show);
estimates();
kernelTables(show);
declarations();
launchTable(chosen);
bars.resize();

// For tests, and for people with a console.
const every = () => {
  const found = [];
  for (let a = 0; a < COUNT; ++a) for (let b = a + 1; b < COUNT; ++b) found.push([L.number[a], L.number[b], why(a, b)]);
  return found;
};
window.acs = { shared, every, why: (a, b) => why(find(String(a)), find(String(b))), find, spot: (text) => bars.spot(find(String(text))), count: COUNT, chosen };
document.documentElement.dataset.ready = String(Math.round(performance.now()));
