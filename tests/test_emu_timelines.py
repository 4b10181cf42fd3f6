"""Timelines of two or three kernels under each policy, worked out by hand on the preset `paper`.

A launch takes 3 us, a wait for its end 7, an event 2.7; from one kernel to the next in a stream or
a graph it is 0.75 us. Each kernel is one group of 10 us.
"""

from __future__ import annotations

import pytest
from emu_runs import PAPER, times

from acs_cl.emu.policies import model
from acs_cl.emu.trace import Entry, Trace

CHAIN, PAIR, JOIN = ((), (1,)), ((), ()), ((), (), (1, 2))


def begins(policy: str, upstream: tuple[tuple[int, ...], ...]) -> tuple[list[int], int]:
    """When each kernel begins, and the makespan."""
    entries = [
        Entry(number, "k", upstream=others, groups=1, items=32, group_ns=10_000, segments=6)
        for number, others in enumerate(upstream, 1)
    ]
    run = model(policy, Trace("by hand", entries), PAPER, log=True)
    makespan = run.run().makespan_ns
    ran = times(run)
    return [ran[number][0] for number in sorted(ran)], makespan


def test_serial() -> None:
    """Launched at 3, 6 and 9 us; each begins 0.75 us behind the one before."""
    assert begins("serial", JOIN) == ([3_000, 13_750, 24_500], 41_500)


def test_streams() -> None:
    """The third goes behind the second and waits for an event of the first."""
    assert begins("streams(S=2)", JOIN) == ([3_000, 6_000, 16_750], 33_750)


def test_cuda_graph() -> None:
    """Two nodes to build, 2.25 us each, a launch; nodes begin 0.17 us apart."""
    assert begins("cuda_graph", CHAIN) == ([7_670, 18_420], 35_420)
    assert begins("cuda_replay", PAIR) == ([3_170, 3_340], 20_340)


def test_acs_sw() -> None:
    """A check among one kernel is 25 ns. One thread: launch, run, wait, 0.41 us in the window;
    then the next. Two threads: each its own."""
    assert begins("acs_sw(N=2, threads=1)", PAIR) == ([3_000, 23_410], 40_820)
    assert begins("acs_sw(N=2, threads=2)", PAIR) == ([3_000, 3_025], 20_820)
    assert begins("acs_sw(N=2, threads=2)", CHAIN) == ([3_000, 23_410], 40_820)


def test_acs_sw_updates_share_the_lock() -> None:
    """The second to end waits for the lock until the first has let it go."""
    begun, makespan = begins("acs_sw(N=2, threads=2)", PAIR)
    first = begun[0] + 10_000 + 7_000 + 410
    assert makespan == first + 410


def test_acs_hw() -> None:
    """Two cycles of 1.4 GHz to insert, one to update, each rounded up to whole nanoseconds; the
    second comes 3,025 ns after the first."""
    assert begins("acs_hw(N=2, M=2)", PAIR) == ([3_002, 6_027], 23_027)
    assert begins("acs_hw(N=2, M=2)", CHAIN) == ([3_002, 13_003], 30_003)


def test_acs_hw_waits_for_a_slot_and_for_m() -> None:
    """With one slot, or with M = 1, the third enters when the first two have ended."""
    assert begins("acs_hw(N=1, M=4)", PAIR)[0] == [3_001, 13_002]
    three = begins("acs_hw(N=4, M=1)", ((), (), ()))[0]
    assert three == [3_003, 6_028, 13_009]


def test_on_device() -> None:
    """0.98 us to record each, an epoch of 111 us and 0.168 for its one group, 14.2 for a kernel of
    10 alone; the second goes on in the group of the first, 0.46 later. With two behind one
    there is no such group, and the queue takes 3.99 us; and there are two groups."""
    assert begins("on_device", CHAIN) == ([113_131, 127_791], 148_991)
    begun = 3 * 980 + 111_000 + 2 * 168 + 3
    assert begins("on_device", ((), (1,), (1,)))[0] == [begun, begun + 18_190, begun + 18_190]


def test_ideal() -> None:
    assert begins("ideal", JOIN) == ([0, 0, 10_000], 20_000)


@pytest.mark.parametrize("policy", ["serial", "acs_sw", "acs_hw", "cuda_graph", "ideal"])
def test_a_trace_of_nothing_takes_no_time(policy: str) -> None:
    outcome = model(policy, Trace("nothing", []), PAPER).run()
    assert outcome.launches == 0
    assert outcome.busy_ns == 0


def test_nothing_overtakes_an_epoch_that_is_being_sent() -> None:
    """The second epoch is sent, for 111 us, when the program waits for the first at 113.0 us. At
    139.0 us the program knows that the first has ended, but its copy comes behind the second."""
    scheduler = PAPER.scheduler._replace(first_look=1, begin_ns=0, slower_few=1_000)
    entries = [
        Entry(1, "first", groups=1, items=32, group_ns=20_000),
        Entry(2, "second", groups=1, items=32, group_ns=10_000),
        Entry(3, "copy", "copy", upstream=(2,), waits=(1,), total_ns=1_000),
        Entry(4, "last", upstream=(3,), waits=(3,), groups=1, items=32, group_ns=10_000),
    ]
    run = model("on_device", Trace("sent", entries), PAPER._replace(scheduler=scheduler), log=True)
    run.run()
    ran = times(run)
    assert ran[1] == (111_983, 131_983)
    assert ran[2] == (223_963, 233_963)
    assert ran[4][0] > 234_963  # the copy comes between
