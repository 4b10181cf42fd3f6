"""What a report is made of: shares, clocks, findings, estimates, and the page as text."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from fuzz.threads import in_threads
from planted import PLANTED, measured

import acs_cl as acs
from acs_cl.host.intervals import length, minus, single, union, within
from acs_cl.observe.about import About
from acs_cl.observe.advice import findings
from acs_cl.observe.clocks import clocks_of, on_one_clock
from acs_cl.observe.edges import Edges, chain, edges_of
from acs_cl.observe.record import Record, load, record
from acs_cl.observe.report.page import page
from acs_cl.observe.report.what_if import MOST, MOST_GROUPS, estimates
from acs_cl.observe.shares import KINDS, kind_of, shares
from acs_cl.observe.slices import Slice, Wait
from acs_cl.records import Span
from acs_cl.tools.cli import main

LANES = About(backend="lanes", device="a device", lanes=2, units=4)


def span(base: int, start: int, end: int) -> Span:
    """One row of bytes."""
    return Span(base, start, end - start, 1, end - start)


def ran(number: int, name: str, start: int, end: int, **more: Any) -> Slice:
    """A launch that ran on lane 0, called when it began."""
    values = {"called_ns": start, "seen_ns": end, "items": 64, "hazards_ns": 1, **more}
    lane, clock = values.pop("lane", 0), values.pop("clock", "device")
    groups, hazards, submit = values.pop("groups", 1), values.pop("hazards_ns"), 0
    upstream = values.pop("upstream", ())
    return Slice(number, name, lane, clock, start, end, upstream, groups, hazards, submit, **values)


def data_of(text: str) -> dict[str, Any]:
    """Read the data of a page."""
    _, _, rest = text.partition('<script type="application/json" id="data">')
    found: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    return found


# ---- intervals and clocks ------------------------------------------------------------------------


def test_intervals_are_sets_of_moments() -> None:
    lots = random.Random(1)
    for _ in range(2000):
        ours, others = (
            union(
                (at, at + lots.randrange(6)) for at in lots.choices(range(30), k=lots.randrange(6))
            )
            for _ in range(2)
        )
        moments = [{t for start, end in one for t in range(start, end)} for one in (ours, others)]
        for found, wanted in (
            (minus(ours, others), moments[0] - moments[1]),
            (within(ours, others), moments[0] & moments[1]),
        ):
            assert [t for start, end in found for t in range(start, end)] == sorted(wanted)
            assert length(found) == len(wanted)
        counts = Counter(t for start, end in (*ours, *others) for t in range(start, end))
        once = sorted(t for t, count in counts.items() if count == 1)
        assert [t for start, end in single([*ours, *others]) for t in range(start, end)] == once


def test_the_clocks_of_device_and_host_are_put_beside_each_other() -> None:
    lots = random.Random(2)
    for _ in range(300):
        ahead = lots.randrange(-(10**12), 10**12)
        slices, now = [], 10**12
        for number in range(1, 20):
            now += lots.randrange(1000)
            call = lots.randrange(2, 5000)
            handed = now + lots.randrange(1, call)
            start = handed + lots.randrange(5000)
            end = start + lots.randrange(1, 10_000)
            times = {"handed_ns": handed + ahead, "hazards_ns": call}
            times |= {"called_ns": now, "seen_ns": end + lots.randrange(3000)}
            slices.append(ran(number, "k", start + ahead, end + ahead, **times))
            now += call
        clocks = clocks_of(slices)
        assert clocks.ahead_ns is not None
        assert abs(clocks.ahead_ns - ahead) <= clocks.error_ns
        assert clocks.error_ns <= 5000


def test_times_of_several_devices_are_put_on_one_clock() -> None:
    lots = random.Random(3)
    for _ in range(100):
        ahead = [lots.randrange(-(10**12), 10**12) for _ in range(3)]
        slices, true, now = [], {}, 10**12
        for number in range(1, 31):
            call, device = lots.randrange(2, 3000), lots.randrange(3)
            handed = now + lots.randrange(1, call)
            start = handed + lots.randrange(5000)
            end = start + lots.randrange(1, 10_000)
            by = ahead[device]
            times = {"called_ns": now, "hazards_ns": call, "handed_ns": handed + by}
            times |= {"seen_ns": end + lots.randrange(3000), "device": device}
            slices.append(ran(number, "k", start + by, end + by, **times))
            true[number] = start
            now += call
        found = record("three", slices, [], LANES)
        for one in found.slices:  # each device is off by its own error at most, and the first one
            off = found.interval(one)[0] - true[one.number]
            assert abs(off) <= 2 * found.clocks.error_ns
            assert found.where[one.number] == f"device {one.device}, lane 0"
        assert found.clocks.error_ns <= 3000
        alone = [one for one in slices if one.device == 1]
        assert on_one_clock(alone) == alone
    assert "it knows one device" in page(found)


def test_a_timeline_without_calls_has_no_common_clock() -> None:
    old = [ran(1, "k", 5, 9, called_ns=0), ran(2, "k", 9, 12, called_ns=0)]
    found = record("old", old, [], LANES)
    assert not found.clocks.comparable
    assert {one.name: one.ns for one in shares(found)} == {"kernels": 7}
    assert "cannot be put beside" in page(found)


# ---- shares --------------------------------------------------------------------------------------


def random_record(lots: random.Random) -> Record:
    """Launches, host tasks, waits and own time, at random."""
    slices, waits, now = [], [], 10
    for number in range(1, lots.randrange(2, 14)):
        now += lots.randrange(8)
        if lots.random() < 0.3:
            waits.append(Wait(0, now, now + lots.randrange(1, 9), number - 1))
            now = waits[-1].end_ns
        start = now + lots.randrange(10)
        name = lots.choice(("k", "k", "read", "write", "task"))
        clock, lane = ("host", -1) if name == "task" else ("device", 0)
        groups = int(name == "k")
        call = lots.randrange(1, 5)
        one = ran(number, name, start, start + lots.randrange(1, 12), clock=clock, lane=lane)
        slices.append(one._replace(called_ns=now, hazards_ns=call, groups=groups))
        now += call
    found = record("", slices, waits, LANES)
    return found._replace(clocks=found.clocks._replace(ahead_ns=0, error_ns=0))


def test_shares_are_those_of_each_moment_and_sum_to_the_whole() -> None:
    lots = random.Random(3)
    for _ in range(500):
        found = random_record(lots)
        began, ended = found.whole
        wanted: Counter[str] = Counter()
        for t in range(began, ended):
            here = {kind_of(one) for one in found.slices if one.start_ns <= t < one.end_ns}
            if any(one.called_ns <= t < one.called_ns + one.hazards_ns for one in found.slices):
                here.add("launching")
            if any(one.start_ns <= t < one.end_ns for one in found.waits):
                here.add("waiting")
            wanted[next((kind for kind in KINDS if kind in here), "own work")] += 1
        got = {one.name: one.ns for one in shares(found)}
        assert got == dict(wanted)
        assert sum(got.values()) == found.whole_ns
        assert {one.clock for one in shares(found)} <= {"device", "host"}


@pytest.mark.parametrize(
    "backend", ["serial", "out_of_order", "lanes", "device", "emulated", "auto"]
)
def test_every_backend_has_shares_a_page_and_what_it_needs(backend: str, tmp_path: Path) -> None:
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }")
        x, y = rt.zeros(64, "i4"), rt.zeros(64, "i4")
        with rt.measure() as m, rt.phase("one"):
            for _ in range(4):
                prog.add((64,), (16,), x)
                prog.add((64,), (16,), y)
            rt.call(lambda values: None, reads=x)
            y.get()
        m.report(tmp_path / "page.html")
        found = m.record("here")
    parts = shares(found)
    assert sum(one.ns for one in parts) == found.whole_ns
    assert all(one.ns > 0 for one in parts)
    data = data_of((tmp_path / "page.html").read_text("utf-8"))
    assert data["about"]["backend"] in (backend, "lanes", "device", "out_of_order", "serial")
    assert len(data["launches"]["number"]) == 10
    assert [one["ns"] for one in data["shares"]] == [one.ns for one in parts]
    assert data["title"] == "page"
    assert data["phases"] == ["one"]
    if backend != "emulated":
        assert all(0 <= t <= data["whole_ns"] for t in data["launches"]["called"])


# ---- findings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANTED)
def test_the_first_advice_names_what_was_planted(name: str) -> None:
    made = measured(name)
    found = findings(made)
    assert found[0].kind == name, [one.text for one in found]
    assert found[0].text.startswith(f"{name}: ")
    assert found[0].cost_ns > 0.2 * made.whole_ns


def test_a_driver_that_does_not_begin_is_told_apart_from_a_slow_host() -> None:
    ms = 1_000_000
    for handed, kind in ((2 * ms, "driver-bound"), (99 * ms, "host-bound")):
        late = ran(2, "new", 100 * ms, 101 * ms, called_ns=handed - 1, handed_ns=handed)
        made = record(
            "", [ran(1, "old", 0, 3 * ms, seen_ns=3 * ms + 1, handed_ns=1), late], [], LANES
        )
        assert {one.kind for one in findings(made)} & {"driver-bound", "host-bound"} == {kind}
    assert "(new 97 ms)" in driver_bound([late._replace(called_ns=ms, handed_ns=2 * ms)])
    assert "(new 60 ms)" in driver_bound([late._replace(called_ns=30 * ms, handed_ns=40 * ms)])


def driver_bound(after: list[Slice]) -> str:
    """What is said of a driver that has launches and does not begin them."""
    made = record("", [ran(1, "old", 0, 3_000_000, handed_ns=1), *after], [], LANES)
    return next(one.text for one in findings(made) if one.kind == "driver-bound")


def test_no_chain_adds_times_of_two_clocks() -> None:
    x = span(1, 0, 64)
    slices = [
        ran(1, "k", 0, 100, clock="model", writes=(x,)),
        ran(2, "task", 5_000, 9_000, clock="host", lane=-1, reads=(x,), writes=(x,)),
        ran(3, "k", 100, 250, clock="model", writes=(x,), reads=(x,)),
    ]
    made = record("", slices, [], LANES)
    assert made.chain().ns == 250
    assert made.whole_ns == 250
    assert all(one.cost_ns <= 250 for one in findings(made))


def test_an_epoch_before_and_behind_a_launch_ends_the_chain() -> None:
    """No program has that, but a file may."""
    x, y = span(1, 0, 8), span(2, 0, 8)
    slices = [
        ran(1, "first", 0, 10, writes=(x,), epoch=1),
        ran(2, "alone", 10, 20, reads=(x,), writes=(y,)),
        ran(3, "last", 0, 10, reads=(y,), epoch=1),
    ]
    assert chain(slices, edges_of(slices)).launches == (2, 3)


def closure(edges: Edges) -> dict[int, set[int]]:
    """All that each launch follows, also by others."""
    found: dict[int, set[int]] = {}
    for number, all_ in sorted(edges.items()):
        found[number] = {edge.upstream for edge in all_}
        found[number] |= {far for edge in all_ for far in found[edge.upstream]}
    return found


def bands(parts: int, steps: int, reach: int, ns: int = 10) -> list[Slice]:
    """Launches on bands of an array, which reach into the next ones by so many bytes."""
    slices = []
    for step in range(steps):
        for part in range(parts):
            at = ns * (step * parts + part)
            view = span(1, 100 * part, 100 * (part + 1) + reach)
            slices.append(ran(len(slices) + 1, "k", at, at + ns, writes=(view,)))
    return slices


@pytest.mark.parametrize(("parts", "steps"), [(2, 3), (5, 1), (6, 4), (3, 12)])
def test_what_goes_with_an_overlap_is_what_bands_without_it_have(parts: int, steps: int) -> None:
    found = findings(record("", bands(parts, steps, 8), [], LANES))
    apart = bands(parts, steps, 0)
    assert found[0].kind == "false-dependency"
    assert found[0].edges is not None
    wanted = edges_of(apart)
    assert closure(found[0].edges) == closure(wanted)
    longest = chain(apart, edges_of(bands(parts, steps, 8)))
    assert longest.ns > chain(apart, wanted).ns
    assert found[0].cost_ns == longest.ns - chain(apart, wanted).ns
    assert "8 of 108 bytes" in found[0].text


def test_an_edge_that_goes_leaves_those_that_it_implied() -> None:
    """A read between two launches that both change an array stands for the edge between them."""
    slices, x, out = [], span(1, 0, 64), span(2, 0, 64)
    for step in range(6):
        number, at = 2 * step + 1, 100 * step
        slices.append(ran(number, "turn", at, at + 40, reads=(x,), writes=(x,)))
        slices.append(ran(number + 1, "look", at + 40, at + 90, reads=(x,), writes=(out,)))
    found = record("", slices, [], LANES)
    reuse = [one for one in findings(found) if one.kind == "buffer-reuse" and "'turn'" in one.text]
    assert reuse
    assert reuse[0].edges is not None
    for number in range(3, 12, 2):
        assert {edge.upstream for edge in reuse[0].edges[number]} == {number - 2}
    assert chain(slices, reuse[0].edges).ns == 6 * 40 + 50


def test_nothing_is_said_of_a_block_without_launches(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        with rt.measure() as m:
            pass
        m.report(tmp_path / "empty.html")
    assert m.advice() == []
    data = data_of((tmp_path / "empty.html").read_text("utf-8"))
    assert data["findings"] == data["shares"] == data["estimates"] == []


def test_what_checks_found_is_in_the_page(tmp_path: Path) -> None:
    source = """kernel void add(global const int *x, global int *y)
    { y[get_global_id(0)] = x[get_global_id(0)]; }"""
    with acs.Runtime(check="access") as rt:
        prog = rt.build(source)
        x, y = rt.array(range(64), "i4"), rt.zeros(64, "i4")
        with rt.measure() as m:
            with pytest.raises(acs.UsageError, match="depends on byte"):
                prog.add((64,), None, x, y, reads=x[:32], writes=y)
            x.fill(1)
        m.report(tmp_path / "checked.html")
    about = data_of((tmp_path / "checked.html").read_text("utf-8"))["about"]
    assert "access" in about["checks"]
    assert len(about["found"]) == 1
    assert "kernel 'add'" in about["found"][0]


def test_local_memory_and_registers_of_kernels_are_known(device: cl.Device) -> None:
    source = """
    kernel void turned(global int *x)
    {
        local int part[64];
        part[get_local_id(0)] = x[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        x[get_global_id(0)] = part[63 - get_local_id(0)];
    }
    kernel void one(global int *x) { x[get_global_id(0)] = 1; }
    """
    with acs.Runtime(backend="lanes") as rt:
        prog, x = rt.build(source), rt.zeros(64, "i4")
        with rt.measure() as m:
            prog.one((64,), (64,), x)
            prog.turned((64,), (64,), x)
    about = m.record().about
    needs = {one.name: one for one in about.kernels}
    assert needs["one"].local_bytes <= 1  # NVIDIA's driver says 1 of a kernel that has none
    assert needs["turned"].local_bytes >= 256
    assert about.most_items >= needs["one"].most_items > 0
    assert about.local_bytes >= 256
    tells = "cl_nv_compiler_options" in device.extensions
    assert (needs["one"].registers > 0, about.registers > 0) == (tells, tells)
    assert estimates(m.record(), [])


# ---- random programs -----------------------------------------------------------------------------

RANDOM = """
kernel void inc(global int *x, int n)
{ int i = get_global_id(0); for (int k = 0; k < n; ++k) x[i] += k; }
kernel void add(global const int *x, global int *y)
{ y[get_global_id(0)] += x[get_global_id(0)]; }
"""


def random_calls(rt: acs.Runtime, prog: acs.Program, arrays: list[acs.Array], seed: int) -> None:
    """Launch, transfer, wait, poll."""
    lots = random.Random(seed)
    handles = [prog.inc((16,), (16,), arrays[0][:16], 1)]
    for _ in range(40):
        x, y = lots.sample(arrays, 2)
        at = lots.randrange(0, 48, 16)
        what = lots.randrange(9)
        if what < 2:
            handles.append(prog.inc((16,), (16,), x[at : at + 16], lots.randrange(3000)))
        elif what < 4:
            handles.append(prog.add((64,), None if what == 2 else (16,), x, y))
        elif what == 4:
            handles.append(x.fill(3) if at else y.copy_from(x))
        elif what == 5:
            handles.append(x.get(wait=False))
        elif what == 6:
            handles.append(rt.call(lambda values: None, reads=x))
        elif what == 7:
            lots.choice(handles).wait()
        else:
            while not lots.choice(handles).done:
                pass


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes", "device", "emulated"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs_have_pages_that_hold(backend: str, threads: int, seed: int) -> None:
    window = None if backend == "device" else random.Random(seed).choice((None, 1, 3))
    with acs.Runtime(backend=backend, window=window) as rt:
        prog, arrays = rt.build(RANDOM), [rt.zeros(64, "i4") for _ in range(4)]
        with rt.measure() as m:
            in_threads(lambda one: random_calls(rt, prog, arrays, 10 * seed + one), threads)
    made = m.record("random")
    data = data_of(page(made))
    launches, error, whole = data["launches"], data["clock"]["error"], data["whole_ns"]
    assert sum(one["ns"] for one in data["shares"]) == whole
    for start, end, called, handed in zip(
        *(launches[key] for key in ("start", "end", "called", "handed")), strict=True
    ):
        assert 0 <= start <= end <= whole
        assert called <= start + error
        assert handed <= start + 1
        assert handed == -1 or called - error <= handed
    assert all(up < at for up, at in zip(data["edges"]["up"], data["edges"]["down"], strict=True))
    assert all(0 <= one["cost_ns"] <= whole + 2 * error for one in data["findings"])
    assert all(one["before_ns"] > 0 and one["after_ns"] > 0 for one in data["estimates"])
    for start, end in zip(data["waits"]["start"], data["waits"]["end"], strict=True):
        assert 0 <= start <= end <= whole


# ---- estimates -----------------------------------------------------------------------------------


def test_the_emulator_estimates_what_a_finding_would_change() -> None:
    found = record("", bands(6, 4, 8, 1_000_000), [], LANES)
    tried = {one.change: one for one in estimates(found, findings(found))}
    change = next(text for text in tried if "false-dependency" in text)
    assert tried[change].after_ns < tried[change].before_ns
    assert all(one.machine.endswith("with 4 units") for one in tried.values())
    assert "a window without bound" not in tried
    long_ = [
        ran(1, "a", 0, 10_000, groups=8),
        ran(2, "long", 10_000, 9_000_000, groups=1, writes=(span(1, 0, 4),), lane=1),
        ran(3, "b", 9_000_000, 9_010_000, groups=8, reads=(span(1, 0, 4),)),
    ]
    made = record("", long_, [], LANES)
    assert findings(made)[0].kind == "long-kernel"
    assert findings(made)[0].cost_ns == pytest.approx(0.75 * 8_990_000, rel=0.01)
    split = next(one for one in estimates(made, findings(made)) if one.finding == 0)
    assert split.change == "long split over all units"
    assert 3 < split.before_ns / split.after_ns <= 4
    small = found._replace(about=LANES._replace(window=1))
    assert "a window without bound" in {one.change for one in estimates(small, [])}


def test_the_emulator_is_not_asked_where_it_would_take_too_long() -> None:
    many = [ran(number, "k", number, number + 1) for number in range(1, MOST + 2)]
    large = [ran(1, "k", 0, 1, groups=MOST_GROUPS), ran(2, "k", 1, 2)]
    for slices in (many, large):
        found = record("", slices, [], LANES)
        assert estimates(found, []) == []
        assert "was not asked" in page(found)


# ---- the page as text ----------------------------------------------------------------------------


def many(count: int) -> Record:
    """A step of many launches on several lanes, with views of rows, and waits."""
    slices, waits = [], []
    for number in range(1, count + 1):
        at, band = 1000 * number, number % 40
        view = Span(1 + band % 5, 4096 * band, 256, 12, 128)
        halo = Span(1 + (band + 1) % 5, 4096 * (band + 1), 256, 12, 64)
        slices.append(
            ran(
                number, f"kernel_{number % 11}", at, at + 3500, lane=number % 4, reads=(view, halo),
                writes=(view,), phase=f"phase {number % 3}", groups=number % 90 + 1,
                arguments=(("x", "rw", view.base), ("halo", "r", halo.base)),
                called_ns=at - 900, seen_ns=at + 9000, hazards_ns=400,
            )
        )  # fmt: skip
        if number % 100 == 0:
            waits.append(Wait(0, at, at + 500, number - 3))
    return record("a step", slices, waits, LANES)


def test_a_step_of_5000_launches_is_a_small_page() -> None:
    text = page(many(5000), what_if=False)
    assert len(text.encode()) < 5e6 / 3
    assert len(data_of(text)["launches"]["start"]) == 5000


def test_a_page_needs_no_network() -> None:
    text = page(many(50), what_if=False)
    for word in ("src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link", "import("):
        assert word not in text, word
    addresses = set(text.split("http")[1:])
    assert all(one.startswith("://www.w3.org/2000/svg") for one in addresses)


def test_no_name_of_the_program_is_markup() -> None:
    evil = '</script><script>alert("x")</script><!-- @DATA@ @SCRIPT@'
    one = ran(1, evil, 1, 5, phase=evil, arguments=((evil, "r", 1),), reads=(span(1, 0, 4),))
    text = page(record(evil, [one], [], LANES._replace(why=evil, found=(evil,))))
    assert "<script>alert" not in text
    assert data_of(text)["names"] == [evil]
    assert data_of(text)["title"] == evil


# ---- files and commands --------------------------------------------------------------------------


def test_a_saved_timeline_makes_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(backend="lanes", window=3, trace=True) as rt:
        prog = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }")
        arrays = [rt.zeros(64, "i4") for _ in range(6)]
        with rt.measure() as m:
            for x in arrays * 4:
                prog.add((64,), (16,), x)
            arrays[0].get()
        rt.finish()
        m.save(tmp_path / "step.json")
        rt.trace.save(tmp_path / "all.jsonl")
    again, own = load(tmp_path / "step.json"), m.record("step")
    assert again == own
    assert main(["report", str(tmp_path / "step.json"), "--no-what-if"]) == 0
    assert "25 launches" in capsys.readouterr().out
    text = (tmp_path / "step.html").read_text("utf-8")
    assert text == page(own, what_if=False)
    out = str(tmp_path / "all.html")
    assert main(["report", str(tmp_path / "all.jsonl"), "--out", out, "--title", "all"]) == 0
    whole = data_of(Path(out).read_text("utf-8"))
    assert whole["title"] == "all"
    assert whole["waits"]["thread"]
    assert whole["about"]["backend"] == ""


SLICE = {
    "number": 1, "name": "f", "clock": "device", "start_ns": 0, "end_ns": 9, "groups": 1,
    "items": 0, "reads": [], "writes": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"waits": [1]}, "cannot be read as a timeline"),
        ({"about": {"nobody": 1}}, "cannot be read as a timeline"),
        ({"about": [1]}, "cannot be read as a timeline"),
        ({"about": {"kernels": [1]}}, "cannot be read as a timeline"),
        ({"about": {"full": "x"}}, "'full' has to be int, got 'x'"),
        ({"about": {"ended_ns": None}}, "'ended_ns' has to be int"),
        ({"slices": [{"number": 1}]}, "there is no name"),
        ({"slices": [SLICE | {"device": {}}]}, "'device' has to be int"),
        ({"slices": [SLICE | {"upstream": [[]]}]}, "'upstream' has to be int"),
        ({"slices": [SLICE | {"upstream": [2]}]}, "launch 1 follows launch 2"),
        ({"slices": [SLICE | {"phase": [1]}]}, "'phase' has to be str"),
        ({"slices": [SLICE | {"lane": 1 << 70}]}, "'lane' has to be int"),
        ({"noted": {"parts": [[["f", 1, 0, [[1, 0, 4, 1, {}]], [], []]]]}}, "'width' has to"),
        ({"slices": [SLICE | {"parts": -1}]}, "'parts' has to be one of 0 lists"),
        ({"acs_cl_trace": 99}, "expected a head"),
    ],
)
def test_a_wrong_timeline_is_refused(
    change: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = {"acs_cl_trace": 5, "slices": [], "waits": [], "about": {}, **change}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"traceEvents": [], "acs_cl": head}))
    assert main(["report", str(path)]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "wrong.html").exists()


def test_a_page_is_not_written_over_its_timeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "block.html"
    path.write_text('{"acs_cl_trace": 5}\n')
    trace = ["emu", "convert", str(path), "--out", str(path)]
    for words in (["report", str(path)], ["report", str(path), "--out", str(path)], trace):
        assert main(words) == 1
        assert "block.html: this is the file that is read" in capsys.readouterr().err
    assert path.read_text() == '{"acs_cl_trace": 5}\n'


def test_a_report_or_timeline_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "file"
    with acs.Runtime(trace=True) as rt:
        with rt.measure() as m:
            rt.zeros(4)
        with pytest.raises(acs.UsageError, match="the report cannot be written"):
            m.report(nowhere)
        for save in (m.save, rt.trace.save):
            with pytest.raises(acs.UsageError, match="the timeline cannot be written"):
                save(nowhere)


def test_a_name_that_is_no_text_is_no_traceback(tmp_path: Path) -> None:
    """A name of a file may have bytes that are no UTF-8."""
    with acs.Runtime(trace=True) as rt:
        with rt.measure() as m:
            x = rt.zeros(4)
        with rt.record() as graph:
            x.fill(1)
        for save in (m.save, m.report, rt.trace.save, graph.save):
            with pytest.raises(acs.UsageError, match="goes to a path, got"):
                save("a\0b")
        m.report(tmp_path / "page.html", title="step \udcff")
    assert "<title>step ?</title>" in (tmp_path / "page.html").read_text("utf-8")


PROGRAM = """
import numpy as np, pyopencl as cl
context = cl.create_some_context(interactive=False)
for _ in range(QUEUES):
    queue = cl.CommandQueue(context)
    text = "kernel void f(global float *x) { x[get_global_id(0)] += 1; }"
    program = cl.Program(context, text).build()
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
    cl.enqueue_fill_buffer(queue, buffer, np.float32(0), 0, 256)
    kernel = cl.Kernel(program, "f")
    for _ in range(5):
        kernel(queue, (64,), (16,), buffer)
    values = np.empty(64, np.float32)
    cl.enqueue_copy(queue, values, buffer)
    assert values[0] == 5
"""


def test_a_program_runs_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, out = tmp_path / "program.py", tmp_path / "page.html"
    script.write_text(PROGRAM.replace("QUEUES", "2"))
    assert main(["run", "--report", str(out), str(script)]) == 0
    assert f"report: {out}" in capsys.readouterr().err
    data = data_of(out.read_text("utf-8"))
    assert data["title"] == "program.py"
    assert Counter(data["names"][one] for one in data["launches"]["name"])["f"] >= 5
    assert main(["run", "--report", str(out), "--no-trace", str(script)]) == 1
    assert "--report needs a trace" in capsys.readouterr().err


def test_a_program_without_launches_has_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = tmp_path / "program.py", tmp_path / "page.html"
    script.write_text("print('nothing')\n")
    assert main(["run", "--report", str(out), str(script)]) == 0
    assert "report: none" in capsys.readouterr().err
    assert not out.exists()


def test_times_of_calls_are_kept_for_every_launch() -> None:
    with acs.Runtime(backend="lanes", trace=True) as rt:
        x = rt.zeros(64, np.int32)
        for value in range(5):
            x.fill(value)
        x.get()
        rt.finish()
        slices = sorted(rt.trace.slices, key=lambda one: one.number)
        waits = list(rt.trace.waits)
    assert all(one.called_ns and one.handed_ns and one.seen_ns for one in slices)
    assert [one.called_ns for one in slices] == sorted(one.called_ns for one in slices)
    assert all(one.called_ns < one.seen_ns for one in slices)
    assert [one.number for one in waits] == [slices[-1].number, 0]
    assert all(one.start_ns < one.end_ns for one in waits)


# ---- pictures of the guide -----------------------------------------------------------------------

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "guide" / "pictures"


def test_pictures_of_the_guide_are_small_and_shown() -> None:
    page = (PICTURES.parent / "finding-problems.md").read_text("utf-8")
    found = sorted(PICTURES.glob("*"))
    assert len(found) == 3
    for picture in found:
        assert picture.stat().st_size < 80_000, picture.name
        assert f"(pictures/{picture.name})" in page


# ---- queues of PyOpenCL --------------------------------------------------------------------------


def test_a_marker_and_a_bypass_are_called_what_they_are() -> None:
    x = span(1, 0, 64)
    slices = [
        ran(1, "f", 0, 10, writes=(x,), lane=1),
        ran(2, "g", 0, 10, lane=2),
        ran(3, "marker", 10, 11, upstream=(1, 2), lane=0),
        ran(4, "bypass", 20, 90, clock="host", lane=-2, passed=7, upstream=(3,)),
    ]
    made = record("", slices, [], LANES)
    assert {(edge.upstream, edge.kind) for edge in made.edges[3]} == {(1, "other"), (2, "other")}
    data = data_of(page(made, what_if=False))
    assert data["names"] == ["f", "g", "marker", "bypass"]
    assert {one["name"] for one in data["shares"]} >= {"kernels", "bypass"}
    assert any("7 commands bypassed" in note for note in data["notes"])


def test_more_lanes_are_advised_unless_one_was_chosen() -> None:
    ms = 1_000_000
    side_by_side = [ran(number, f"k{number}", 0, ms) for number in range(1, 9)]
    for chosen in (0, 8):
        about = LANES._replace(on_one_lane=chosen)
        kinds = {one.kind for one in findings(record("", side_by_side, [], about))}
        assert ("lane-bound" in kinds) is (not chosen), kinds
