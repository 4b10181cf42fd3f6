"""A traced program is the same program: its launches go where they would go untraced, and a trace
says what it cannot know."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conftest import Enter, Environment

import acs_cl as acs
from acs_cl import testing
from acs_cl.emu.convert import from_timeline
from acs_cl.observe.edges import chain
from acs_cl.observe.slices import BYPASS, Slice
from acs_cl.tools import turns

SOURCE = (
    "kernel void bump(global int *x, int k) { x[get_global_id(0)] = x[get_global_id(0)] * 3 + k; }"
)
N, ROUNDS = 64, 200
OPTIONS: dict[str, dict[str, Any]] = {"trace": {"trace": True}, "window": {"window": 48}}


@pytest.fixture
def mixing(device: cl.Device) -> cl.Device:
    with acs.Runtime(device) as rt:
        if rt.plan.scheduler != "mix":
            pytest.skip("auto takes no scheduler on this device")
    return device


def bumped(rt: acs.Runtime, rounds: int = ROUNDS) -> list[int]:
    """Launches that the scheduler has, in independent chains, and where they left one of them."""
    prog = rt.build(SOURCE)
    rt.prebuild((prog.bump, (16,)))
    arrays = [rt.zeros(N, "i4") for _ in range(20)]
    for turn in range(rounds):
        for x in arrays:
            prog.bump((N,), (16,), x, turn)
    return [int(x.get()[0]) for x in arrays]


def right(rounds: int = ROUNDS) -> int:
    value = np.zeros(1, "i4")
    for turn in range(rounds):
        value = value * np.int32(3) + np.int32(turn)
    return int(value[0])


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_only_look_leave_the_plan_as_it_is(mixing: cl.Device, name: str) -> None:
    with acs.Runtime(mixing) as plain, acs.Runtime(mixing, **OPTIONS[name]) as other:
        assert other.plan == plain.plan
        assert bumped(other) == [right()] * 20
        assert other.stats()["scheduler"]["tasks"] > 0


def test_so_does_a_trace_from_outside(
    mixing: cl.Device, tmp_path: Path, environment: Environment
) -> None:
    with acs.Runtime(mixing) as plain:
        pass
    environment(ACS_CL_TRACE=str(tmp_path / "timeline.jsonl"))
    with acs.Runtime(mixing) as other:
        assert other.plan == plain.plan
        bumped(other)
        tasks = other.stats()["scheduler"]["tasks"]
    _, *lines = (tmp_path / "timeline.jsonl").read_text().splitlines()
    slices = list(map(json.loads, lines))
    assert sum(one["epoch"] > 0 for one in slices) == tasks > 0


def test_each_runtime_has_a_timeline_from_outside(
    device: cl.Device, tmp_path: Path, environment: Environment, enter: Enter
) -> None:
    (tmp_path / "below").mkdir()
    enter(tmp_path)
    environment(ACS_CL_TRACE="timeline.jsonl")
    for count in (3, 1, 2):
        with acs.Runtime(device) as rt:
            x = rt.empty(4)
            for _ in range(count):
                x.fill(count)
            enter(tmp_path / "below")
        enter(tmp_path)
    found = {
        path.name: len(path.read_text("utf-8").splitlines()) - 1 for path in tmp_path.glob("*.*")
    }
    assert found == {"timeline.jsonl": 3, "timeline-2.jsonl": 1, "timeline-3.jsonl": 2}


@pytest.mark.parametrize("name", ["ACS_CL_TRACE", "ACS_CL_VERIFY", "ACS_CL_TUNE"])
def test_a_file_in_no_folder_is_refused_where_a_runtime_opens(
    name: str, device: cl.Device, environment: Environment
) -> None:
    environment(**{name: "no/where/file"})
    with pytest.raises(acs.UsageError, match=f"{name}='no/where/file': there is no folder '/.*/no"):
        acs.Runtime(device)
    environment(**{name: "."})
    with pytest.raises(acs.UsageError, match=f"{name}='.': it is a folder; name a file"):
        acs.Runtime(device)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is full")
def test_proofs_that_cannot_be_written_are_an_error_of_the_recording(
    device: cl.Device, environment: Environment
) -> None:
    environment(ACS_CL_VERIFY="/dev/full")
    with acs.Runtime(device, backend="serial") as rt:
        x, said = rt.zeros(4), "the file of ACS_CL_VERIFY cannot be written"
        with pytest.raises(acs.UsageError, match=said), rt.record():
            x.fill(1)


@pytest.mark.parametrize("window", [1, 7, 48])
def test_a_window_bounds_what_is_under_way_on_auto(mixing: cl.Device, window: int) -> None:
    with acs.Runtime(mixing, window=window) as rt:
        assert bumped(rt, 20) == [right(20)] * 20
        assert rt.stats()["window"]["most_occupied"] <= window


@pytest.fixture
def traced(mixing: cl.Device) -> Iterator[acs.Runtime]:
    with acs.Runtime(mixing, trace=True) as rt:
        bumped(rt)
        rt.finish()
        yield rt


def by_epoch(slices: list[Slice]) -> dict[int, list[Slice]]:
    epochs: dict[int, list[Slice]] = {}
    for one in slices:
        epochs.setdefault(one.epoch, []).append(one)
    return epochs


def test_launches_of_an_epoch_say_that_their_times_are_its(traced: acs.Runtime) -> None:
    epochs = by_epoch(traced.trace.slices)
    assert all(one.lane >= 0 for one in epochs.pop(0))
    assert len(epochs) == traced.stats()["timed"]["epochs"] > 0
    for tasks in epochs.values():
        assert {(one.clock, one.lane) for one in tasks} == {("device", -1)}
        assert len({(one.start_ns, one.end_ns) for one in tasks}) == 1
        assert tasks[0].end_ns > tasks[0].start_ns
    assert sum(map(len, epochs.values())) == traced.stats()["timed"]["in_epochs"]


def test_an_epoch_counts_as_one_launch_in_flight(traced: acs.Runtime) -> None:
    """It ran on a queue in order: epochs never overlap, whatever ran inside of them."""
    traced.trace.slices[:] = [one for one in traced.trace.slices if one.epoch]
    assert traced.trace.overlap() == pytest.approx(1.0)


def test_measuring_counts_the_time_of_an_epoch_once(mixing: cl.Device, tmp_path: Path) -> None:
    with acs.Runtime(mixing, backend="device") as rt:  # by `auto`, time decides where they go
        bumped(rt)
        with rt.measure() as m:
            bumped(rt, 20)
    epochs = by_epoch(m.slices)
    lanes = epochs.pop(0, [])
    assert epochs
    expected = sum(one.end_ns - one.start_ns for one in lanes)
    expected += sum(tasks[0].end_ns - tasks[0].start_ns for tasks in epochs.values())
    assert sum(one.device_ms for one in m.phases) == pytest.approx(expected / 1e6)
    assert chain(m.slices, m.edges).ns <= expected
    task = next(iter(epochs.values()))[0]
    assert "with all of its epoch" not in m.explain(task.number)  # it has times of its own
    m.save(tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert any(name.startswith("epochs of the scheduler") for name in tracks)
    assert not any(name.startswith("host tasks") for name in tracks)


def test_the_emulator_shares_out_an_epoch_and_says_so(traced: acs.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    traced.trace.save(path)
    trace, said = from_timeline(path, 64)
    tasks, epochs = (traced.stats()["timed"][key] for key in ("in_epochs", "epochs"))
    assert f"{tasks} launches ran in {epochs} epochs of the scheduler" in " ".join(said)
    slices = sorted(traced.trace.slices, key=lambda one: one.number)
    for one_epoch in by_epoch([one for one in slices if one.epoch]).values():
        whole = one_epoch[0].end_ns - one_epoch[0].start_ns
        parts = [trace.entries[slices.index(one)].total_ns for one in one_epoch]
        assert sum(parts) <= max(whole, len(parts))


# ---- queues of PyOpenCL ------------------------------------------------------------------------


@pytest.fixture
def often() -> Iterator[None]:
    """A queue bypasses the runtime after three launches, and takes no other sample."""
    with testing.bypass(always=True):
        yield


def test_a_traced_queue_passes_commands_on_and_says_how_many(
    context: cl.Context, often: None, tmp_path: Path
) -> None:
    queue = acs.Queue(context, trace=True)
    x = cl.array.to_device(queue, np.arange(N, dtype="f4"))
    for _ in range(40):
        x += 1
    assert x.get()[5] == 45
    queue.finish()
    rt = queue.runtime
    rt.finish()
    passed = rt.stats()["bypassed"]
    assert passed > 20
    assert rt.stats()["timed"]["bypassed"] == passed
    bypasses = [one for one in rt.trace.slices if one.passed]
    assert sum(one.passed for one in bypasses) == passed
    for one in bypasses:
        assert (one.name, one.clock, one.lane) == ("bypass", "host", BYPASS)
        assert one.end_ns > one.start_ns
        assert one.program_ns == 0
    rt.trace.save(tmp_path / "saved.jsonl")
    _, said = from_timeline(tmp_path / "saved.jsonl", 64)
    assert f"{passed} commands bypassed the runtime" in " ".join(said)


PROGRAM = """
import numpy as np, pyopencl as cl, pyopencl.array
queue = cl.CommandQueue(cl.create_some_context(interactive=False))
x = cl.array.to_device(queue, np.zeros(64, "f4"))
for _ in range(300):
    x += 1
print("it is", x.get()[5])
"""


def ran(tmp_path: Path, *options: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", *options, str(path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def test_a_program_run_from_outside_passes_commands_on(tmp_path: Path, device: cl.Device) -> None:
    done = ran(tmp_path)
    assert done.stdout == "it is 300.0\n", done.stderr
    assert "bypassed the runtime, having nothing to run beside: " in done.stderr
    assert "--compare, before the program's name, says what that gained" in done.stderr


def test_an_option_behind_the_program_is_told_to_be_the_programs(
    tmp_path: Path, device: cl.Device
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", "program.py", "--report", "page.html"],
        capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert "--report went to the program: options of ours come before its name" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_comparison_tells_both_times_and_prints_once(tmp_path: Path, device: cl.Device) -> None:
    done = ran(tmp_path, "--compare", "--turns", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "it is 300.0\n"
    assert "commands in flight on the device" in done.stderr, "the run that is shown is traced"
    found = re.search(
        r"took ([\d.]+) s \(.* on ours, ([\d.]+) s \(.* on its own queues: ([\d.]+)x "
        r"\(interleaved, medians of 2",
        done.stderr,
    )
    assert found, done.stderr
    took, own, ratio = map(float, found.groups())
    assert took > 0
    assert ratio == pytest.approx(own / took, abs=0.02, rel=0.1)


def test_a_program_whose_queues_are_ours_has_nothing_to_compare(
    tmp_path: Path, device: cl.Device
) -> None:
    program = "import acs_cl as acs\nacs.Queue(acs.Runtime().context).finish()\n"
    done = ran(tmp_path, "--compare", program=program)
    assert done.returncode == 0, done.stderr
    assert "nothing to compare: the program makes acs_cl.Queues by itself" in done.stderr


def test_sides_are_compared_by_their_medians() -> None:
    text = turns.compared({turns.OWN: [3.0, 2.0, 4.0], turns.OURS: [1.5, 1.4, 1.6]})
    assert "took 1.500 s (1.400 .. 1.600) on ours, 3.000 s (2.000 .. 4.000) on its own" in text
    assert "2.00x (interleaved, medians of 3)" in text
    text = turns.compared({turns.OWN: [1.0, 2.0], turns.OURS: [1.1, 1.2]})
    assert "the runs vary by more than that" in text


def test_a_program_sees_the_same_in_each_turn(tmp_path: Path, device: cl.Device) -> None:
    """Both sides run as often, in processes of their own; which queues it has is all that
    differs."""
    program = """
import os, sys, pyopencl as cl
queue = cl.CommandQueue(cl.create_some_context(interactive=False))
with open(sys.argv[0] + ".log", "a") as file:
    file.write(f"{type(queue).__module__} {os.getpid()} {__name__} {sys.argv[1:]}\\n")
"""
    done = ran(tmp_path, "--compare", "--turns", "2", program=program)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "program.py.log").read_text("utf-8").splitlines()
    assert len({line.split()[1] for line in lines}) == len(lines) == 6
    sides = ["ours" if line.startswith("acs_cl") else "own" for line in lines]
    assert sides == ["ours", "own", "ours", "own", "own", "ours"]
    assert {line.split(maxsplit=2)[2] for line in lines} == {"__main__ []"}


def test_a_program_may_go_to_another_folder(tmp_path: Path, device: cl.Device) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM + "\nimport os; os.chdir('below')\n", "utf-8")
    words = "--compare", "--turns", "1", "--out", "said.txt", "--report", "page.html", "program.py"
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", *words], capture_output=True, text=True,
        check=False, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " on its own queues: " in (tmp_path / "said.txt").read_text("utf-8")
    assert (tmp_path / "page.html").exists()
    assert not list((tmp_path / "below").iterdir())


def test_a_comparison_with_a_program_that_fails_says_so(tmp_path: Path, device: cl.Device) -> None:
    done = ran(tmp_path, "--compare", program="raise SystemExit(3)")
    assert done.returncode == 3
    assert "no times to compare: the program failed" in done.stderr


def test_turns_are_at_least_one(tmp_path: Path, device: cl.Device) -> None:
    done = ran(tmp_path, "--compare", "--turns", "0")
    assert done.returncode == 1
    assert "--turns 0: expected at least one" in done.stderr
