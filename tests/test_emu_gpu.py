"""The modelled device by hand: where groups go, who holds back whom, who slows down whom."""

from __future__ import annotations

import pytest
from emu_runs import TINY

from acs_cl.emu.cost import GUARDS, Costs, packed, unpacked
from acs_cl.emu.engine import HOST, Engine
from acs_cl.emu.gpu import Gpu
from acs_cl.emu.machines import CPU_2, RTX_3070
from acs_cl.emu.meters import BINS, Series
from acs_cl.emu.spec import GpuSpec
from acs_cl.emu.trace import Entry
from acs_cl.errors import UsageError


def run(*entries: Entry, spec: GpuSpec = TINY) -> tuple[Gpu, dict[int, int]]:
    """Start all at time 0; the device afterwards, and when each ended."""
    engine = Engine()
    ends: dict[int, int] = {}

    def ended(number: int) -> None:
        ends[number] = engine.now

    gpu = Gpu(engine, spec, ended, log=True)
    for entry in entries:
        engine.at(0, HOST, gpu.start, entry)
    engine.run()
    return gpu, ends


def kernel(number: int, groups: int = 1, items: int = 8, ns: int = 100, **more: int) -> Entry:
    return Entry(number, "k", groups=groups, items=items, group_ns=ns)._replace(**more)


def test_groups_go_to_different_units_first() -> None:
    gpu, _ = run(kernel(1, groups=5))
    assert sorted((unit, count) for _, unit, count, _, _ in gpu.log or ()) == [
        (0, 2), (1, 2), (2, 1)
    ]  # fmt: skip


def test_the_next_kernel_begins_where_the_last_ended() -> None:
    gpu, _ = run(kernel(1), kernel(2), kernel(3), kernel(4))
    assert [unit for _, unit, _, _, _ in gpu.log or ()] == [0, 1, 2, 0]


def test_groups_that_behave_alike_are_handled_together() -> None:
    """A million groups: 46 units of 16 take 1,359 rounds, each one end and one search."""
    engine = Engine()
    gpu = Gpu(engine, RTX_3070, lambda number: None)
    gpu.start(kernel(1, groups=1_000_000, items=32))
    engine.run()
    rounds = -(-1_000_000 // (46 * 16))
    assert engine.now == 100 * rounds
    assert engine.steps <= 2 * rounds


def test_a_large_kernel_runs_in_rounds_of_what_fits() -> None:
    """Three units of four groups each: 30 groups take three rounds, a batch each."""
    gpu, ends = run(kernel(1, groups=30))
    assert ends == {1: 300}
    assert len({start for _, _, _, start, _ in gpu.log or ()}) == 3
    assert gpu.in_flight.most == 1


@pytest.mark.parametrize(
    ("more", "fit"),
    [({}, 4), ({"items": 30}, 2), ({"items": 33}, 1), ({"registers": 40}, 3),
     ({"local_bytes": 200}, 2), ({"items": 60, "registers": 15}, 1)],
)  # fmt: skip
def test_each_resource_limits_what_fits(more: dict[str, int], fit: int) -> None:
    entry = kernel(1, groups=12)._replace(**more)
    assert Costs(TINY).need(entry).fit == fit
    _, ends = run(entry)
    assert ends[1] == 100 * -(-12 // (3 * fit))


def test_a_group_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(UsageError, match=r"launch 7 .* fits no unit of tiny"):
        Costs(TINY).need(kernel(7, items=65))


def test_the_first_in_line_holds_back_those_behind_it() -> None:
    """All is taken but 8 threads of each unit; a wide kernel waits, and a narrow one behind it."""
    _, ends = run(kernel(1, groups=3, items=56), kernel(2, items=64), kernel(3, items=8, ns=10))
    assert ends == {1: 100, 2: 200, 3: 110}


def test_no_more_kernels_run_than_the_device_has_room_for() -> None:
    gpu, ends = run(*(kernel(number) for number in range(1, 8)))
    assert gpu.in_flight.most == TINY.kernels == 5
    assert sorted(ends.values()) == [100] * 5 + [200] * 2


def test_groups_that_move_bytes_slow_each_other_down() -> None:
    """4 bytes a nanosecond for all, 2 for one group at most."""
    plan = [kernel(number, ns=0, bytes=400) for number in range(1, 5)]
    assert run(plan[0])[1] == {1: 200}
    assert run(*plan[:2])[1] == {1: 200, 2: 200}
    assert run(*plan)[1] == dict.fromkeys(range(1, 5), 400)


def test_bandwidth_is_shared_again_when_somebody_is_through() -> None:
    """Three at 4/3 each until the short one has its 100, then two at 2."""
    plan = [kernel(1, ns=0, bytes=100), *(kernel(n, ns=0, bytes=400) for n in (2, 3))]
    _, ends = run(*plan)
    assert ends == {1: 76, 2: 226, 3: 226}


def test_a_roofline_takes_the_longer_of_flops_and_bytes() -> None:
    """8 flops a cycle of 1 ns; two groups on one unit have half each."""
    assert run(kernel(1, ns=0, flops=800))[1] == {1: 100}
    assert run(kernel(1, ns=0, flops=800, bytes=600))[1] == {1: 300}
    assert run(kernel(1, groups=6, ns=0, flops=800))[1] == {1: 200}


def test_a_measured_time_is_that_of_the_launch_alone() -> None:
    """30 groups in rounds of 12: three, of a third each."""
    assert run(kernel(1, groups=30, ns=0, total_ns=900))[1] == {1: 900}


def test_a_preset_without_a_roofline_says_so() -> None:
    with pytest.raises(UsageError, match="has no roofline"):
        Costs(CPU_2).need(kernel(1, ns=0, flops=8))


def test_transfers_go_one_after_another_beside_kernels() -> None:
    copies = [Entry(number, "copy", "copy", total_ns=50) for number in (1, 2)]
    task = Entry(3, "task", "host", total_ns=70)
    assert run(*copies, task, kernel(4))[1] == {1: 50, 2: 100, 3: 70, 4: 100}


def test_occupancy_is_threads_over_time() -> None:
    gpu, _ = run(kernel(1, groups=2, items=13))  # 16 threads each, by warps of 8
    assert gpu.thread_ns == 2 * 16 * 100
    assert gpu.active_ns == 2 * 100


def test_four_numbers_are_taken_and_given_back_as_one() -> None:
    have, need = packed(4, 64, 1000, 512), packed(1, 16, 300, 0)
    assert unpacked(GUARDS | have) == (4, 64, 1000, 512)
    assert unpacked((GUARDS | have) - 3 * need) == (1, 16, 100, 512)
    fits = [((GUARDS | have) - n * need) & GUARDS == GUARDS for n in range(6)]
    assert fits == [True, True, True, True, False, False]


def test_a_series_keeps_its_total_whatever_its_bins() -> None:
    series = Series()
    total = 0
    for step in range(2_000):
        start, length, level = step * 37 % 5_000 * 11, step % 97 + 1, step % 5
        series.add(start, start + length, level)
        total += length * level
    assert sum(series.bins) == total
    assert len(series.bins) == BINS
    levels = series.levels(60_000)
    assert sum(level for _, level in levels) * series.width_ns == pytest.approx(total)
