"""The page of a report in a real browser: what it says, what clicks and keys do, how fast it opens.

Without Chromium these are skipped; `test_report_data.py` tests the data by themselves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import planted
import pytest
from browser import Page, chromium
from test_report_data import LANES, RANDOM, closure, many, ran, random_calls, span

import acs_cl as acs
from acs_cl.observe.about import About, Needs
from acs_cl.observe.edges import access_of, meetings
from acs_cl.observe.record import Record, record
from acs_cl.observe.report.page import write
from acs_cl.observe.slices import Slice, Wait
from acs_cl.ranges import shared_bytes
from acs_cl.records import Found, ReplayTask, Run, Span

pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium on the PATH")

OPENS_S, TRIES = 2.0, 3

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    """One browser for all of these tests."""
    with Page() as page:
        yield page


@pytest.fixture
def opened(browser: Page, tmp_path: Path) -> Iterator[Open]:
    """Opens the pages of records, one after another."""

    def one(made: Record, what_if: bool = False, **how: Any) -> Page:
        path = tmp_path / "page.html"
        write(made, path, what_if)
        browser.open(path, **how)
        return browser

    yield one
    errors, browser.errors = browser.errors, []
    assert not errors


def why(page: Page, first: int, second: int) -> dict[str, Any]:
    """What the page says of two launches, by their numbers."""
    found: dict[str, Any] = page.js(f"acs.why({first}, {second})")
    return found


# ---- what was planted ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", planted.PLANTED)
def test_the_page_names_first_what_was_planted(name: str, opened: Open) -> None:
    page = opened(planted.measured(name), what_if=True)
    assert page.js("document.querySelector('.finding').dataset.kind") == name
    said = page.text(".finding.first .head")
    assert said.startswith(name.replace("-", " "))
    assert " ms of " in said
    assert "%" in said
    assert "simulated" in page.text("#what-if h2")
    assert page.js("document.querySelectorAll('#estimates tbody tr').length") >= 4
    assert page.text("h1") == name


# ---- opening -------------------------------------------------------------------------------------


def test_a_step_of_5000_launches_opens_at_once(opened: Open) -> None:
    took = []
    for _ in range(TRIES):
        page = opened(many(5000))
        took.append(page.opened_s)
        assert page.js("acs.count") == 5000
        if took[-1] < OPENS_S:
            break
    assert min(took) < OPENS_S, took


def test_it_is_light_or_dark_as_the_reader_likes(opened: Open) -> None:
    papers = []
    for dark in (False, True):
        page = opened(many(60), dark=dark)
        colour = page.js("getComputedStyle(document.body).backgroundColor")
        papers.append(sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(","))))
    assert papers[0] > 3 * 200
    assert papers[1] < 3 * 60


# ---- why two launches did not overlap ------------------------------------------------------------


def alone(slices: list[Slice], about: About = LANES, waits: tuple[Wait, ...] = ()) -> Record:
    """A record in which both clocks are one."""
    made = record("", slices, waits, about)
    return made._replace(clocks=made.clocks._replace(ahead_ns=0, error_ns=0))


X, Y = span(7, 0, 4096), span(8, 0, 4096)
ROWS = Span(7, 128, 512, 8, 64)


def test_bytes_order_two_launches(opened: Open) -> None:
    named = (("x", "rw", 7),)
    slices = [
        ran(1, "fill", 0, 100, writes=(X,), arguments=named),
        ran(2, "blur", 150, 200, lane=1, reads=(ROWS,), called_ns=10, arguments=named),
    ]
    found = why(opened(alone(slices)), 1, 2)
    assert found["kind"] == "bytes"
    assert "50 ns after fill#1 ended" in found["verdict"]
    (line,) = found["lines"]
    assert "RAW" in line
    assert "bytes 128..192 of base 7 (argument x of fill, x of blur)" in line
    assert "8 rows of 64, 512 apart" in line


def test_launches_between_them_order_two(opened: Open) -> None:
    slices = [
        ran(1, "a", 0, 100, writes=(X,)),
        ran(2, "b", 110, 200, lane=1, reads=(X,), writes=(Y,), called_ns=1),
        ran(3, "c", 210, 300, lane=2, reads=(Y,), called_ns=2),
    ]
    found = why(opened(alone(slices)), 3, 1)
    assert found["kind"] == "chain"
    assert "1 launch between them" in found["verdict"]
    assert [line.split(":")[0] for line in found["lines"]] == [
        "b#1 (launch 2) follows a#1 (launch 1)", "c#1 (launch 3) follows b#1 (launch 2)"
    ]  # fmt: skip


def test_it_waited_for_another_one(opened: Open) -> None:
    slices = [
        ran(1, "a", 0, 100, writes=(X,)),
        ran(2, "slow", 0, 400, lane=1, writes=(Y,), called_ns=1),
        ran(3, "c", 410, 500, lane=2, reads=(Y,), called_ns=2),
    ]
    found = why(opened(alone(slices)), 1, 3)
    assert found["kind"] == "upstream"
    assert "slow#1 (launch 2), which ended 300 ns after a#1 had ended" in found["lines"][0]


def test_the_lane_runs_in_order(opened: Open) -> None:
    slices = [ran(1, "a", 0, 100, called_ns=1), ran(2, "b", 105, 200, called_ns=2)]
    found = why(opened(alone(slices)), 1, 2)
    assert found["kind"] == "lane"
    assert "lane 0" in found["lines"][0]
    serial = why(opened(alone(slices, LANES._replace(backend="serial"))), 1, 2)
    assert "the only queue" in serial["lines"][0]


def test_the_host_was_late(opened: Open) -> None:
    slices = [
        ran(1, "a", 0, 100, called_ns=1),
        ran(2, "b", 9000, 9100, lane=1, called_ns=8000, program_ns=5000, waits=(1,)),
    ]
    waits = (Wait(0, 50, 2000, 1),)
    found = why(opened(alone(slices, waits=waits)), 1, 2)
    assert found["kind"] == "host"
    assert "its call came 7.9 µs after a#1 had ended" in found["lines"][0]
    assert "waited 1.95 µs for a#1 (launch 1)" in found["lines"][0]
    assert "did 5 µs of its own" in found["lines"][0]


@pytest.mark.parametrize(("window", "kind"), [(1, "window"), (0, "held"), (9, "held")])
def test_the_window_was_full_or_the_runtime_held_it(window: int, kind: str, opened: Open) -> None:
    slices = [
        ran(1, "a", 0, 100, called_ns=1, handed_ns=2),
        ran(2, "b", 130, 200, lane=1, called_ns=4, handed_ns=110),
    ]
    found = why(opened(alone(slices, LANES._replace(window=window))), 1, 2)
    assert found["kind"] == kind
    assert ("the window holds 1" in found["lines"][0]) is (kind == "window")
    assert "106 ns after its call" in found["lines"][0]


@pytest.mark.parametrize(
    ("groups", "kind", "said"),
    [(64, "device", "enough to fill it"), (1, "driver", "there was room")],
)
def test_the_device_was_full_or_the_driver_chose(
    groups: int, kind: str, said: str, opened: Open
) -> None:
    slices = [
        ran(1, "a", 0, 100, called_ns=1, groups=groups),
        ran(2, "b", 130, 200, lane=1, called_ns=4, handed_ns=5),
    ]
    found = why(opened(alone(slices)), 1, 2)
    assert found["kind"] == kind
    assert said in found["lines"][0]
    assert "What these kernels need of a unit is not known." in found["lines"]
    for needs, said in (
        ((0,), "no local memory, registers that this driver does not tell"),
        ((0, 0, 0, 57), "57 registers for each work-item: a unit holds 16 by registers"),
        ((0, 0, 0, 57), "Of the 65,536 registers that a unit has: a group of each fits one unit"),
        ((0, 0, 640, 513), "Of the 65,536 registers that a unit has: no unit has room"),
        ((600, 0, 0, 57), "a unit holds 1 by local memory"),
        ((100,), "a group of each fits one unit"),
        ((600,), "no unit has room"),
        ((0, 48, 640), "registers that this driver does not tell, and 640 work-items at most."),
        ((0, 48, 1024), "48 bytes of a work-item in no register"),
        ((300, 0, 640), "a unit holds 3 by local memory"),
    ):
        kernels = (Needs("a", *needs), Needs("b", *needs))
        about = LANES._replace(local_bytes=1000, most_items=1024, kernels=kernels, registers=65536)
        page = opened(alone(slices, about))
        lines = why(page, 1, 2)["lines"]
        assert any(said in line for line in lines), lines
    assert "300 bytes local, at most 640 work-items" in page.text("#kernel-table")


# ---- inside of an epoch --------------------------------------------------------------------------


def groups_ran(*rows: tuple[int, int, int, int], part: bool = False) -> dict[str, Any]:
    """Group, part, begin and end of runs, in nanoseconds."""
    runs = (Run(9, number if part else -1, group, a, b, 1, False) for group, number, a, b in rows)
    return {"runs": tuple(runs), "lane": -1}


def test_an_epoch_has_a_row_for_each_group_and_answers_by_its_own_times(opened: Open) -> None:
    epoch = {"epoch": 5, "called_ns": 1}
    slices = [
        ran(1, "a", 100, 900, writes=(X,), **epoch, **groups_ran((0, 0, 110, 200))),
        ran(2, "b", 100, 900, reads=(X,), **epoch, **groups_ran((1, 0, 210, 400))),
        ran(3, "c", 100, 900, **epoch, **groups_ran((1, 0, 120, 190), (2, 0, 120, 180))),
        ran(4, "d", 100, 900, **epoch, **groups_ran((1, 0, 405, 500))),
        ran(5, "e", 100, 900, **epoch, **groups_ran((3, 0, 600, 700))),
    ]
    noted = Found(clock="ns", error_ns=1500, dropped=3, cost_ns=20.4, untimed=(("k", "why"),))
    page = opened(alone(slices, LANES._replace(backend="device", noted=noted)))
    assert why(page, 1, 2)["kind"] == "bytes"
    assert why(page, 1, 2)["verdict"].startswith("b#1 began 10 ns after a#1 ended")
    assert why(page, 1, 3)["verdict"] == "They did overlap, for 70 ns."
    held = why(page, 1, 4)
    assert held["kind"] == "group"
    assert "Group 1, which ran it, was at b#1 (launch 2) before" in held["lines"][0]
    assert "Of 4 groups that had work in this epoch, 1 had some" in held["lines"][0]
    assert why(page, 1, 5)["kind"] == "scheduler"
    notes = page.text("#notes")
    for said in (
        "off by at most 1.5 µs",
        "some 20 ns",
        "no room to note 3 more tiles",
        "k have no",
    ):
        assert said in notes
    click_launch(page, "d#1")
    assert page.js("document.getElementById('first').value") == "d#1"
    assert "95 ns, from" in page.text("#answer")


def test_without_a_clock_the_page_shows_an_order(opened: Open) -> None:
    slices = [ran(1, "a", 100, 900, epoch=5, **groups_ran((0, 0, 100, 500)))]
    page = opened(alone(slices, LANES._replace(noted=Found(clock="order"))))
    assert "the order of tasks, not their times" in page.text("#notes")


def test_bands_of_a_replay_are_drawn_apart_and_asked_for(opened: Open) -> None:
    low, high = span(1, 0, 8), span(1, 8, 16)
    parts = (
        ReplayTask("up", 1, 0, (), (low,), ()),
        ReplayTask("up", 1, 1, (), (high,), ()),
        ReplayTask("down", 2, 0, (low,), (), (0,)),
        ReplayTask("down", 2, 1, (high,), (), (1,)),
    )
    rows = ((0, 0, 110, 200), (1, 1, 115, 300), (0, 2, 210, 400), (1, 3, 310, 420))
    replay = ran(
        9,
        "replay of 2 launches",
        100,
        500,
        parts=parts,
        called_ns=1,
        **groups_ran(*rows, part=True),
    )
    page = opened(alone([replay], LANES._replace(backend="device")))
    folded = page.text("#folded")
    assert all(f"{name}, band {band}" in folded for name in ("up", "down") for band in (0, 1))
    found = page.js("acs.why('up#1', 'down#1')")
    assert found["kind"] == "bytes"
    assert "bytes 0..8" in found["lines"][0]
    assert page.js("acs.why('up#1', 'up#2')")["kind"] == "overlap"
    later = page.js("acs.why('up#1', 'down#2')")
    assert later["kind"] == "upstream"
    assert "up#2 (launch 1 of the graph, band 1, replay 9)" in later["lines"][0]
    page.click_on("#whole-on")
    assert page.js("acs.count") == 1
    assert "up" in page.text("#kernel-table")
    assert "replay of 2" not in page.text("#kernel-table")


def test_two_that_overlap_and_two_in_an_epoch(opened: Open) -> None:
    slices = [
        ran(1, "a", 0, 100, called_ns=1),
        ran(2, "b", 60, 200, lane=1, called_ns=4),
        ran(3, "c", 300, 400, lane=-1, epoch=5, writes=(X,)),
        ran(4, "d", 300, 400, lane=-1, epoch=5, reads=(X,)),
        ran(5, "e", 300, 400, lane=-1, epoch=5),
    ]
    page = opened(alone(slices))
    found = why(page, 1, 2)
    assert found["kind"] == "overlap"
    assert "for 40 ns" in found["verdict"]
    ordered, free = why(page, 3, 4), why(page, 3, 5)
    assert ordered["kind"] == free["kind"] == "epoch"
    assert "RAW" in ordered["lines"][1]
    assert free["lines"] == ["No byte orders them."]


def test_the_page_finds_the_same_bytes_as_the_library(opened: Open) -> None:
    lots = random.Random(5)

    def one() -> Span:
        width = lots.randrange(1, 9)
        rows = lots.choice((1, 1, 2, 5))
        return Span(1, lots.randrange(60), width + lots.randrange(12), rows, width)

    pairs = [(one(), one()) for _ in range(3000)]
    pairs = [tuple(s if s.rows > 1 else s._replace(pitch=s.width) for s in two) for two in pairs]
    page = opened(many(10))
    found = page.js(f"{json.dumps(pairs)}.map(([a, b]) => acs.shared(a, b))")
    for (a, b), got in zip(pairs, found, strict=True):
        wanted = shared_bytes(a, b)
        assert (got and tuple(got)) == wanted, (a, b)


def random_record(seed: int) -> Record:
    """What a random program did on lanes."""
    with acs.Runtime(backend="lanes", lanes=3) as rt:
        prog, arrays = rt.build(RANDOM), [rt.zeros(64, "i4") for _ in range(4)]
        with rt.measure() as m:
            random_calls(rt, prog, arrays, seed)
    return m.record("random")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_page_says_of_any_two_what_the_library_knows(seed: int, opened: Open) -> None:
    made = random_record(seed)
    above = closure(made.edges)
    page = opened(made)
    code = "acs.every().map(([a, b, one]) => [a, b, one.kind, one.verdict, one.lines.length])"
    found = page.js(code)
    known = {one.number: one for one in made.slices}
    assert len(found) == len(known) * (len(known) - 1) // 2
    for first, second, kind, verdict, lines in found:
        a, b = known[first], known[second]
        (_, end), (start, _) = sorted(map(made.interval, (a, b)))
        met = meetings(access_of(a), access_of(b))
        assert verdict
        if start < end:
            assert kind == "overlap"
        elif met:
            assert (kind, lines) == ("bytes", len(met))
        elif first in above[second]:
            assert kind == "chain"
        else:
            assert kind in ("upstream", "lane", "host", "window", "held", "device", "driver")
            assert lines >= 1
        if start < end and a.clock == b.clock == "device":
            assert not met, "bytes order launches that overlapped"


# ---- clicks and keys -----------------------------------------------------------------------------


def measured() -> Record:
    """A few launches on lanes."""
    with acs.Runtime(backend="lanes", lanes=2) as rt:
        prog = rt.build(
            "kernel void turn(global uint *y, uint n)"
            "{ uint v = 1; for (uint i = 0; i < n; ++i) v = v * 5 + 1; y[get_global_id(0)] += v; }"
        )
        x, y = rt.zeros(64, "u4"), rt.zeros(64, "u4")
        prog.turn((64,), (64,), x, 1)
        with rt.measure() as m:
            for _ in range(5):
                prog.turn((64,), (64,), x, 100_000)
                prog.turn((64,), (64,), y, 100_000)
    return m.record("clicks")


def click_launch(page: Page, text: str) -> None:
    """Click on a launch in the timeline."""
    page.js(
        "document.querySelector('#bars').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    box = page.js("(({x, y}) => [x, y])(document.querySelector('#bars').getBoundingClientRect())")
    spot = page.js(f"acs.spot({text!r})")
    page.click(box[0] + spot["x"], box[1] + spot["y"])


def test_two_clicks_in_the_timeline_tell_why(opened: Open) -> None:
    page = opened(measured())
    assert "Click two launches" in page.text("#answer")
    click_launch(page, "turn#1")
    assert "Now choose another one" in page.text("#answer")
    click_launch(page, "turn#3")
    assert page.js("document.querySelector('.verdict').dataset.kind") == "bytes"
    said = page.text("#answer")
    assert "reads what the first wrote" in said
    assert "bytes 0..256 of base" in said
    assert "(argument y of turn, y of turn)" in said
    assert page.js("document.querySelector('#first').value") == "turn#1"
    page.type("#first", "turn#2")
    page.type("#second", "turn#9")
    page.click_on("#pair button")
    assert page.js("document.querySelector('.verdict').dataset.kind") != "bytes"
    page.type("#second", "nobody#3")
    page.click_on("#pair button")
    assert "There is no launch nobody#3" in page.text("#answer")


def test_the_pointer_and_the_keys_do_what_clicks_do(opened: Open) -> None:
    page = opened(measured())
    spot = page.js("acs.spot('turn#2')")
    page.js(
        "document.querySelector('#bars').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    box = page.js("(({x, y}) => [x, y])(document.querySelector('#bars').getBoundingClientRect())")
    page.move(box[0] + spot["x"], box[1] + spot["y"])
    assert page.text("#tip").startswith("turn#2")
    assert "1 group of 64 work-items" in page.text("#tip")
    page.js("document.querySelector('#bars').focus()")
    page.key("]")
    page.key("Enter")
    assert page.js("acs.chosen.a") == 0
    page.key("]")
    page.key("]")
    page.key("[")
    page.key("Enter")
    assert page.js("acs.chosen.b") == 1
    page.key("Escape")
    assert page.js("acs.chosen.a") == -1


def test_zoom_moves_bars_apart_and_back(opened: Open) -> None:
    page = opened(measured())

    def distance() -> float:
        return float(page.js("acs.spot('turn#10').x - acs.spot('turn#1').x"))

    first = distance()
    page.click_on("#zoom-in")
    page.click_on("#zoom-in")
    assert distance() > 2 * first
    page.click_on("#zoom-out")
    page.click_on("#zoom-all")
    assert distance() == pytest.approx(first, rel=0.01)
    page.js("document.querySelector('#bars').focus()")
    page.key("+")
    assert distance() > 1.2 * first
    page.key("0")
    assert distance() == pytest.approx(first, rel=0.01)


def test_tables_sort_and_turn_pages(opened: Open) -> None:
    page = opened(many(90))
    first = "document.querySelector('#launch-table tbody tr td').textContent"
    assert page.js(first) == "1"
    assert "1 to 20 of 90" in page.text("#launch-table .pages")
    page.click_on("#launch-table .pages button:last-child")
    assert page.js(first) == "21"
    page.click_on("#launch-table th button")
    assert page.js(first) == "90"
    assert page.js("document.querySelector('#launch-table th').ariaSort") == "descending"
    page.click_on("#launch-table th button")
    assert page.js(first) == "1"
    page.click_on("#launch-table tbody tr")
    assert page.js("acs.chosen.a") == 0


def test_the_graph_is_folded_by_kernel_and_shown_whole(opened: Open) -> None:
    slices = []
    for number in range(1, 129):
        at = 100 * number
        slices.append(ran(2 * number - 1, "blur", at, at + 9, writes=(span(number, 0, 64),)))
        slices.append(ran(2 * number, "reduce", at + 9, at + 20, reads=(span(number, 0, 64),)))
    page = opened(alone(slices))
    row = page.text("#edge-table tbody tr")
    assert row.split("\t")[:4] == ["blur", "reduce", "128", "128 RAW"]
    picture = page.text("#folded svg")
    assert "blur" in picture
    assert "128×" in picture
    assert "128 RAW" in picture
    assert page.js("document.querySelector('#dag-box').hidden")
    page.click_on("#whole-on")
    assert not page.js("document.querySelector('#dag-box').hidden")
    assert page.js("document.querySelector('#dag').height") > 100
    page.click_on("#dag")
    page.click_on("#folded-on")
    assert page.js("document.querySelector('#dag-box').hidden")


BOXES_CROSSED = """
[...document.querySelectorAll("#folded svg path[fill=none]")].flatMap((path) => {
  const length = path.getTotalLength();
  const points = Array.from({ length: 200 }, (_, at) => path.getPointAtLength(at / 199 * length));
  const rects = [...document.querySelectorAll("#folded svg rect.box")];
  const boxes = rects.map((rect) => rect.getBBox());
  return boxes.filter((box) => points.some((one) =>
    one.x > box.x + 1 && one.x < box.x + box.width - 1
    && one.y > box.y + 1 && one.y < box.y + box.height - 1))
}).length
"""


def test_no_edge_of_the_folded_graph_crosses_a_kernel(opened: Open) -> None:
    kernels = ("top", "middle", "low", "rows", "columns", "sum")
    reads = {"rows": (1,), "columns": (4,), "sum": (2, 3, 5)}
    slices = []
    for step in range(2):  # in the second one, first kernels wait for last ones
        for base, name in enumerate(kernels, 1):
            number = 6 * step + base
            touched = tuple(span(one, 0, 64) for one in reads.get(name, ()))
            spans = {"reads": touched, "writes": (span(base, 0, 64),)}
            slices.append(ran(number, name, 9 * number, 9 * number + 9, **spans))
    page = opened(alone(slices))
    assert "sum\tmiddle" in page.text("#edge-table")
    assert page.js("document.querySelectorAll('#folded svg rect.box').length") == 6
    assert page.js(BOXES_CROSSED) == 0


def test_show_leads_from_advice_to_the_timeline(opened: Open) -> None:
    page = opened(planted.measured("false-dependency"))
    page.click_on(".finding.first button")
    assert page.js("document.querySelector('.verdict').dataset.kind") == "bytes"
    assert "WAW" in page.text("#answer")
