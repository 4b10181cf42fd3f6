"""The backend 'emulated': exact results in the modelled order, on the model's clock."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.emu import emulated, windows
from acs_cl.emu.convert import from_timeline
from acs_cl.emu.live import Live
from acs_cl.emu.machines import MACHINES
from acs_cl.emu.policies import simulate
from acs_cl.emu.trace import Entry, Trace
from acs_cl.emu.window_unit import WindowUnit
from acs_cl.errors import InternalError

SOURCE = """
kernel void blend(global const uint *x, global uint *y, uint by)
{ int i = get_global_id(0); y[i] = y[i] * 3u + x[i] + by; }
kernel void other(global uint *y) { y[get_global_id(0)] ^= 5u; }
"""
ITEMS = 64
emulated_status = emulated.status


def program(rt: acs.Runtime, seed: int, count: int = 120) -> list[np.ndarray[Any, Any]]:
    """A random program; its results."""
    chance = random.Random(seed)
    built = rt.build(SOURCE)
    arrays = [rt.array(np.arange(ITEMS, dtype=np.uint32) + k) for k in range(8)]
    for turn in range(count):
        x, y = chance.sample(arrays, 2)
        if chance.random() < 0.8:
            built.blend((ITEMS,), (16,), x, y, turn)
        else:
            built.other((ITEMS,), (16,), y)
        if chance.random() < 0.03:
            x.get()
    return [array.get() for array in arrays]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["acs_hw(N=4, M=8)", "acs_hw", "acs_sw(threads=3)", "serial"])
def test_results_are_those_of_serial(policy: str, seed: int) -> None:
    with acs.Runtime(backend="serial") as rt:
        expected = program(rt, seed)
    with acs.Runtime(backend="emulated", emulate={"policy": policy}) as rt:
        for got, right in zip(program(rt, seed), expected, strict=True):
            np.testing.assert_array_equal(got, right)
        about = rt.stats()["emulated"]
    assert about["simulated"] is True
    assert about["machine"] == "paper"
    assert about["model_us"] > 0


@pytest.mark.parametrize("slow", [0.0, 0.5, 0.99])
def test_the_same_program_is_the_same_run(slow: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the real queue takes: only the order in which ends are reported is its own."""
    runs = []
    for seed in range(3):
        chance = random.Random(seed)

        def status(event: Any, chance: random.Random = chance) -> int:
            return emulated.RUNNING if chance.random() < slow else emulated_status(event)

        monkeypatch.setattr(emulated, "status", status)
        with acs.Runtime(backend="emulated", trace=True) as rt:
            program(rt, 7)
            rt.finish()
            runs.append(sorted((s.number, s.clock, s.start_ns, s.end_ns) for s in rt.trace.slices))
    assert runs[0] == runs[1] == runs[2]
    assert {clock for _, clock, _, _ in runs[0]} == {"model"}


def test_independent_launches_overlap_in_the_model_and_dependent_ones_do_not() -> None:
    durations = {"emulate": {"durations": {"other": 500_000}}}
    with acs.Runtime(backend="emulated", trace=True, **durations) as rt:  # type: ignore[arg-type]
        built = rt.build(SOURCE)
        arrays = [rt.zeros(ITEMS, np.uint32) for _ in range(8)]
        rt.finish()
        rt.trace.clear()
        for array in arrays:
            built.other((ITEMS,), (16,), array)
        rt.finish()
        assert rt.trace.overlap() > 4
        assert all(s.end_ns - s.start_ns >= 500_000 for s in rt.trace.slices)
        rt.trace.clear()
        for _ in range(8):
            built.other((ITEMS,), (16,), arrays[0])
        rt.finish()
        assert rt.trace.overlap() == 1
        assert rt.stats()["emulated"]["guessed"] == 0


def test_what_waits_for_room_does_not_run() -> None:
    """Six kernels that follow nothing, on two threads of which each runs one group at a time."""
    emulated: Any = {"machine": "cpu2", "durations": {"other": 500_000}}
    with acs.Runtime(backend="emulated", trace=True, emulate=emulated) as rt:
        built = rt.build(SOURCE)
        arrays = [rt.zeros(ITEMS, np.uint32) for _ in range(6)]
        rt.finish()
        rt.trace.clear()
        for array in arrays:
            built.other((ITEMS,), (ITEMS,), array)
        rt.finish()
        assert 1.5 < rt.trace.overlap() <= 2
        assert [one.end_ns - one.start_ns for one in rt.trace.slices] == [500_000] * 6


SUM = """
kernel void sum(global const uint *x, global uint *y, local uint *part)
{
    size_t i = get_local_id(0);
    part[i] = x[get_global_id(0)];
    for (size_t step = get_local_size(0) / 2; step; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < step) part[i] += part[i + step];
    }
    if (!i) y[get_group_id(0)] = part[0];
}
"""


@pytest.mark.parametrize("policy", ["acs_hw", "acs_sw", "serial", "ideal"])
def test_a_group_of_the_real_device_may_be_larger_than_a_unit_of_the_model(policy: str) -> None:
    """The model lost the launch, and those behind it never ended."""
    emulated: Any = {"policy": policy}
    with acs.Runtime(backend="emulated", emulate=emulated) as rt:
        group = 1 << (rt.device.max_work_group_size.bit_length() - 1)
        if group <= MACHINES["paper"].gpu.threads:
            pytest.skip(f"groups of this device have {group:,} work-items at most")
        built, values = rt.build(SUM), np.arange(4 * group, dtype=np.uint32)
        x, y, z = rt.array(values), rt.zeros(4, np.uint32), rt.zeros(1, np.uint32)
        for _ in range(2):
            built.sum((4 * group,), (group,), x, y, cl.LocalMemory(4 * group))
            built.sum((4,), (4,), y, z, cl.LocalMemory(16))
        assert z.get()[0] == values.sum(dtype=np.uint32)
        assert rt.stats()["emulated"]["divided"] == 2


def test_durations_may_be_those_of_a_run_before(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    with acs.Runtime(backend="serial", trace=True) as rt:
        program(rt, 1)
        rt.finish()
        rt.trace.save(path)
    kernels = {e.name: e for e in from_timeline(path, 64)[0].entries if e.kind == "kernel"}
    assert {"blend", "other"} <= set(kernels)
    with acs.Runtime(backend="emulated", trace=True, emulate={"durations": path}) as rt:
        program(rt, 1)
        rt.finish()
        assert rt.stats()["emulated"]["guessed"] == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_window_that_forgets_an_edge_gives_wrong_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order on the real queue is the model's: what the model gets wrong shows."""

    class Forgetful(WindowUnit):
        def insert(self, number: int, upstream: Any) -> bool:
            return super().insert(number, [])

    monkeypatch.setattr(windows.AcsHw, "make_unit", lambda self, spec: Forgetful(spec))
    with (
        pytest.raises(InternalError, match="began launch"),
        acs.Runtime(backend="emulated") as rt,
    ):
        program(rt, 3)


def test_host_tasks_and_events_move_the_model_on() -> None:
    with acs.Runtime(backend="emulated") as rt:
        x, y = rt.zeros(ITEMS, np.uint32), rt.zeros(ITEMS, np.uint32)
        built = rt.build(SOURCE)
        first = built.other((ITEMS,), None, x)
        rt.call(lambda a, b: b.__setitem__(slice(None), a + 1), reads=x, writes=y)
        last = built.other((ITEMS,), None, y)
        first.event.wait()
        assert first.done
        last.event.wait()
        np.testing.assert_array_equal(y.get(), np.full(ITEMS, (5 + 1) ^ 5, np.uint32))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"machine": "abacus"}, "no machine is called 'abacus'"),
        ({"policy": "cuda_graph"}, "cannot be run with policy 'cuda_graph'"),
        ({"speed": 3}, "has machine, policy and durations, got speed"),
        ({"durations": {"k": 0}}, "expected whole nanoseconds"),
        ({"durations": 5}, "or the path of a timeline, got 5"),
        ({"machine": 5}, "is a name, got 5"),
        ({"policy": None}, "is a name, got None"),
        ("paper", "has machine, policy and durations, got 'paper'"),
    ],
)
def test_wrong_options_are_named(options: Any, what: str) -> None:
    with pytest.raises(acs.UsageError, match=what):
        acs.Runtime(backend="emulated", emulate=options)


@pytest.mark.parametrize("policy", ["acs_hw(N=8, M=16)", "acs_sw(threads=2)", "serial", "ideal"])
def test_a_run_fed_bit_by_bit_is_the_run_of_the_whole(policy: str) -> None:
    """Without waits, a live run is what `simulate` makes of the trace."""
    chance = random.Random(5)
    entries = [
        Entry(
            number, "k", groups=chance.randint(1, 60), items=64,
            group_ns=chance.randint(1000, 9000),
            upstream=tuple(sorted(chance.sample(range(1, number), min(number - 1, 2)))),
        )
        for number in range(1, 80)
    ]  # fmt: skip
    ends: dict[int, int] = {}
    live = Live(policy, MACHINES["paper"], lambda n: None, lambda n: ends.update({n: live.now}))
    for entry in entries:
        live.add(entry)
        if entry.number % 7 == 0:
            live.catch_up()
    live.wait(len(entries))
    while live.step():
        pass
    whole = simulate(policy, Trace("whole", entries), MACHINES["paper"])
    sync = MACHINES["paper"].host.sync_ns if policy != "ideal" else 0
    assert len(ends) == len(entries)
    assert whole.makespan_ns == max(live.model.end_ns, max(ends.values()) + sync)
