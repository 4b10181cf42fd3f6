"""The scheduler on the device as the emulator has it: tiles, links, groups that leave."""

from __future__ import annotations

import pytest
from emu_runs import SMALL, check, random_trace, times

from acs_cl.emu.machines import CPU_2, machine
from acs_cl.emu.on_device import OnDevice, cut
from acs_cl.emu.policies import bounds, model
from acs_cl.emu.spec import Machine, free
from acs_cl.emu.trace import Entry, Trace

PLAIN = {"slower_few": 1_000, "slower_full": 1_000, "tile_ps": 0, "behind_ns": 0}
H200 = machine("h200-acs_cl")
H200 = H200._replace(
    scheduler=H200.scheduler._replace(groups=5, launched=5, begin_ns=3, gang_ns=1_600, **PLAIN)
)
SCHEDULER = machine("cpu2").scheduler._replace(
    record_ns=0, epoch_ns=0, queue_ns=100, fused_ns=10, task_ns=0, least_items=64, **PLAIN
)
THREADS: Machine = free(machine("cpu2"))._replace(gpu=CPU_2, scheduler=SCHEDULER)
"""Two threads that run tiles of at least one group of 64, nothing else taking time."""


def kernel(number: int, groups: int, group_ns: int, *upstream: int) -> Entry:
    return Entry(number, "k", upstream=upstream, groups=groups, items=64, group_ns=group_ns)


def ran(trace: Trace, where: Machine) -> dict[int, tuple[int, int]]:
    run = OnDevice(trace, where, log=True)
    run.run()
    check(run)
    return times(run)


# ---- tiles ---------------------------------------------------------------------------------------


def test_a_gpu_gets_fewer_and_larger_groups() -> None:
    """Four groups of 64 are a tile of 256, side by side on one unit; and so that no group of the
    scheduler has more than four tiles, of which there are 660."""
    trace = Trace("one", [kernel(1, 10, 1_000), kernel(2, 40_000, 1_000)])
    few, many = cut(trace, H200).entries
    assert (few.groups, few.items, few.group_ns) == (3, 256, 1_000)
    assert (many.groups, many.items) == (2_500, 256)
    assert many.group_ns == 3_000  # 16 groups and four others beside; a unit holds 32 at a time


def test_a_thread_takes_one_group_of_a_tile_after_another() -> None:
    trace = Trace("one", [kernel(1, 3, 1_000), kernel(2, 640, 1_000)])
    where = machine("cpu2")
    few, many = cut(trace, where._replace(scheduler=where.scheduler._replace(**PLAIN))).entries
    assert (few.groups, few.items, few.group_ns) == (1, 1, 3_000)  # at least 256 items
    assert (many.groups, many.group_ns) == (16, 40_000)  # at most two for each of eight groups


def test_what_is_moved_and_what_takes_longer_is_kept() -> None:
    scheduler = H200.scheduler._replace(slower_few=1_500, slower_full=2_000)
    where = H200._replace(scheduler=scheduler)
    entries = [kernel(1, 8, 1_000)._replace(bytes=10), kernel(2, 4_000, 1_000)]
    few, full = cut(Trace("two", entries), where).entries
    assert (few.group_ns, few.bytes, few.groups) == (1_500, 40, 2)
    assert (full.group_ns, full.groups) == (2_000, 1_000)
    less = where._replace(scheduler=scheduler._replace(slower_few=900))
    assert cut(Trace("two", entries), less).entries[0].group_ns == 1_000


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_where_kernels_are_cut_and_groups_leave(seed: int) -> None:
    scheduler = SCHEDULER._replace(least_items=40, launched=2)
    for where in (SMALL, SMALL._replace(scheduler=scheduler), THREADS):
        trace = random_trace(seed)
        if where is THREADS:  # which has no roofline
            entries = [one._replace(flops=0, bytes=0, group_ns=0) for one in trace.entries]
            entries = [one._replace(total_ns=one.total_ns or 700) for one in entries]
            trace = trace._replace(entries=entries)
        run = model("on_device", trace, where, log=True)
        outcome = run.run()
        check(run)
        assert outcome.makespan_ns >= max(bounds(trace, where).values())


# ---- schedulers ----------------------------------------------------------------------------------


def test_a_kernel_whose_groups_are_whole_keeps_them() -> None:
    """Its scheduler has more and smaller groups: 20 of 64 where there are five of 256."""
    entries = [kernel(1, 8, 1_000)._replace(whole_groups=1), kernel(2, 8, 1_000)]
    entries.append(entries[0]._replace(number=3, whole_groups=0, local_bytes=512))
    found = cut(Trace("three", entries), H200).entries
    assert [(one.groups, one.items) for one in found] == [(8, 64), (2, 256), (8, 64)]
    for groups, rounds in ((20 * 132, 1), (20 * 132 + 1, 2)):
        wide = [kernel(1, groups, 1_000)._replace(whole_groups=1)]
        begin, end = ran(Trace("wide", wide), H200)[1]
        assert end - begin == rounds * 1_000


def test_an_epoch_ends_where_the_scheduler_changes() -> None:
    """Seven launches of four kernels: cut, whole with 64, whole with 32, and one that fills the
    device. On a GPU those that are cut ride with those that are whole, as the last ones of the step
    before."""
    whole, narrow, wide = {"whole_groups": 1}, {"whole_groups": 1, "items": 32}, {"groups": 40_000}
    what: tuple[dict[str, int], ...] = ({}, {}, whole, narrow, narrow, {}, wide)
    entries = [kernel(n, 1, 1_000)._replace(**more) for n, more in enumerate(what, 1)]
    for where, homes in ((H200, [32, 32, 64, 32, 32, 32, 0]), (THREADS, [0, 0, 64, 32, 32, 0, 0])):
        scheduler = where.scheduler._replace(epoch_ns=9_000, record_ns=200, tile_ps=0)
        run = OnDevice(Trace("seven", entries), where._replace(scheduler=scheduler))
        assert run.homes == homes
        outcome = run.run()
        assert outcome.overheads_ns["epoch"] == 4 * 9_000
        assert outcome.overheads_ns["record"] == 7 * 200


def test_tiles_take_the_host_longer_and_an_epoch_behind_another_the_device() -> None:
    """Two epochs; the second has 2,500 tiles, and is there when a long first one ends."""

    def begin_of_second(first_ns: int, tile_ps: int, behind_ns: int) -> int:
        scheduler = H200.scheduler._replace(tile_ps=tile_ps, behind_ns=behind_ns, epoch_ns=500)
        entries = [kernel(1, 1, first_ns)._replace(whole_groups=1), kernel(2, 40_000, 1_000)]
        run = OnDevice(Trace("two", entries), H200._replace(scheduler=scheduler), log=True)
        outcome = run.run()
        check(run)
        takes = 2 * 500 + tile_ps // 1000 + 2_500 * tile_ps // 1000
        assert outcome.overheads_ns["epoch"] == takes
        return times(run)[2][0]

    assert begin_of_second(1, 3_000, 70_000) == begin_of_second(1, 3_000, 0)
    assert begin_of_second(1, 3_000, 0) == begin_of_second(1, 0, 0) + 2_501 * 3
    assert begin_of_second(90_000, 3_000, 70_000) == begin_of_second(90_000, 0, 0) + 70_000 + 3


def test_what_no_scheduler_can_run_is_launched_alone() -> None:
    entries = [kernel(n, 3, 1_000, *range(1, n)) for n in (1, 2, 3)]
    entries[1] = entries[1]._replace(on_lane=1)
    run = model("on_device", Trace("lane", entries), H200, log=True)
    outcome = run.run()
    check(run)
    assert outcome.overheads_ns["launch"] == H200.host.launch_ns
    assert outcome.overheads_ns["epoch"] == 2 * H200.scheduler.epoch_ns
    assert times(run)[2][1] - times(run)[2][0] == 1_000


def test_an_epoch_begins_later_the_more_groups_it_has() -> None:
    """One of one tile, one of forty, and one of more than there are groups."""
    scheduler = H200.scheduler._replace(begin_ns=100, task_ns=0)
    begins = []
    for groups in (1, 160, 40_000):
        found = ran(Trace("one", [kernel(1, groups, 900)]), H200._replace(scheduler=scheduler))
        begins.append(found[1][0])
    assert [begin - begins[0] for begin in begins] == [0, 39 * 100, 659 * 100]


def test_an_epoch_that_holds_the_program_is_over_before_the_next_launch() -> None:
    """Two schedulers, so two epochs: the second is recorded when the program knows that the first
    has ended, and not beside it."""
    long, other, last = (
        kernel(number, 1, ns)._replace(whole_groups=1, items=items)
        for number, ns, items in ((1, 90_000, 64), (2, 1_000, 32), (3, 1_000, 64))
    )
    trace = Trace("two", [long, other, last])
    scheduler = H200.scheduler._replace(epoch_ns=500, wait_ns=300, record_ns=200)
    ends = []
    for holds in (False, True):
        run = OnDevice(trace, H200._replace(scheduler=scheduler._replace(holds=holds)), log=True)
        outcome = run.run()
        check(run)
        ends.append([times(run)[number][0] for number in (1, 2, 3)])
        assert outcome.overheads_ns["epoch"] == 3 * 500
        assert bool(outcome.overheads_ns.get("blocked")) == holds
    beside, behind = ends
    assert behind[0] == beside[0]
    assert behind[2] - beside[2] > 300


# ---- links ---------------------------------------------------------------------------------------


def test_a_task_is_handed_over_by_groups_or_by_one_or_through_the_queue() -> None:
    scheduler = H200.scheduler._replace(gang_ns=70, fused_ns=7, queue_ns=700, task_ns=0)
    where = H200._replace(scheduler=scheduler)
    for groups, link in ((1, 7), (12, 70)):
        found = ran(Trace("chain", [kernel(1, groups, 900), kernel(2, groups, 900, 1)]), where)
        assert found[2][0] - found[1][1] == link
    fork = [kernel(1, 1, 900), kernel(2, 1, 900, 1), kernel(3, 1, 900, 1)]
    found = ran(Trace("fork", fork), where)
    assert found[2][0] - found[1][1] == 700


# ---- groups that leave ---------------------------------------------------------------------------


def test_who_finds_nothing_ready_leaves_for_good() -> None:
    """Three tiles on two threads: while the third runs, the other finds nothing. The next three
    tiles are run by one, and few as they are they bring no new launch."""
    entries = [kernel(1, 3, 10_000), kernel(2, 3, 10_000, 1)]
    assert ran(Trace("odd", entries), THREADS) == {1: (0, 20_000), 2: (20_100, 50_100)}
    stay = THREADS._replace(scheduler=SCHEDULER._replace(leaves=False))
    assert ran(Trace("odd", entries), stay)[2] == (20_100, 40_100)


def test_of_those_that_end_together_one_is_the_last() -> None:
    """And the other finds nothing; but not where something else waits."""
    entries = [kernel(1, 2, 10_000), kernel(2, 2, 10_000, 1)]
    assert ran(Trace("even", entries), THREADS) == {1: (0, 10_000), 2: (10_100, 30_100)}
    found = ran(Trace("more", [*entries, kernel(3, 2, 10_000)]), THREADS)
    assert found[3] == (10_000, 20_000)
    assert found[2] == (20_000, 30_000)


def test_a_thread_that_comes_late_has_not_left_before() -> None:
    """The first task of one tile is over when the second thread comes."""
    entries = [kernel(1, 1, 1_000), kernel(2, 2, 10_000, 1)]
    late = THREADS._replace(host=THREADS.host._replace(edge_ns=3_000))
    assert ran(Trace("late", entries), late)[2] == (1_100, 11_100)
    assert ran(Trace("late", entries), THREADS)[2] == (1_100, 21_100)


def test_where_much_waits_all_come_back_once() -> None:
    """Eight groups were launched. At the second task one thread is left; after its first tile more
    than eight wait, so there is another launch, until one finds nothing. At the third there is
    no other launch any more."""
    wide = [kernel(1, 3, 10_000), kernel(2, 16, 10_000, 1), kernel(3, 15, 10_000, 2)]
    found = ran(Trace("wide", wide), THREADS)
    assert found[2] == (20_100, 30_100 + 80_000)
    assert found[3] == (110_200, 110_200 + 150_000)


def test_an_epoch_begins_with_all_groups() -> None:
    """The program waits: the next epoch has both threads again."""
    last = kernel(3, 2, 10_000, 2)._replace(waits=(2,))
    entries = [kernel(1, 3, 10_000), kernel(2, 3, 10_000, 1), last]
    found = ran(Trace("epochs", entries), THREADS)
    assert found[3][1] - found[3][0] == 10_000
