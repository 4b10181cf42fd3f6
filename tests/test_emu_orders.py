"""Orders in the emulator: the library's own, on machines that are modelled."""

from __future__ import annotations

import random
from typing import Any

import pytest

from acs_cl.emu.cli import command_line
from acs_cl.emu.generate import GRAPHS, generate
from acs_cl.emu.machines import MACHINES
from acs_cl.emu.orders import in_order
from acs_cl.emu.policies import simulate
from acs_cl.emu.trace import Entry, Trace
from acs_cl.errors import UsageError
from acs_cl.scheduler.orders import ORDERS

PAPER = MACHINES["paper"]


def plain(entry: Entry) -> tuple[Any, ...]:
    """An entry without what another order changes."""
    return tuple(entry._replace(number=0, upstream=(), waits=()))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_a_trace_in_another_order_has_the_same_launches_and_edges(graph: str, order: str) -> None:
    trace = generate(graph, 6, 5, 3)
    found = in_order(trace, order, PAPER.gpu)
    assert sorted(map(plain, found.entries)) == sorted(map(plain, trace.entries))
    assert [one.number for one in found.entries] == list(range(1, len(trace.entries) + 1))

    def edges(one: Trace) -> list[tuple[Any, Any]]:
        return sorted(
            (plain(one.entries[other - 1]), plain(entry))
            for entry in one.entries
            for other in entry.upstream
        )

    assert edges(found) == edges(trace)
    assert all(other < entry.number for entry in found.entries for other in entry.upstream)


def test_launches_stay_between_waits() -> None:
    rng = random.Random(0)
    entries = [
        Entry(number, f"k{number}", groups=rng.randint(1, 9), items=64, group_ns=1000,
              waits=(number - 1,) if number % 5 == 1 and number > 1 else ())
        for number in range(1, 21)
    ]  # fmt: skip
    found = in_order(Trace("waits", entries), "narrow_first", PAPER.gpu).entries
    names = [one.name for one in found]
    assert names != [one.name for one in entries]
    for start in range(0, 20, 5):
        assert set(names[start : start + 5]) == {f"k{start + n}" for n in range(1, 6)}
        waits = [one.waits for one in found[start : start + 5]]
        assert bool(waits[0]) == bool(start)
        assert not any(waits[1:])
        if start:  # for the same launch as before
            assert [names[other - 1] for other in waits[0]] == [f"k{start}"]


def test_memory_beside_compute_gains_by_opara() -> None:
    """Kernels of half of a device each: in program order two that compute share it, then two that
    wait for memory; in Opara's order one of each."""
    gpu = PAPER.gpu
    half = gpu.units * gpu.threads // 256 // 2
    compute = [
        Entry(number, "compute", groups=half, items=256, flops=1 << 22, steps=1 << 10)
        for number in range(1, 9)
    ]
    nbytes = 1 << 18
    memory = [
        Entry(number, "memory", groups=half, items=256, bytes=nbytes, rounds=16)
        for number in range(9, 17)
    ]
    trace = Trace("pairs", [*compute, *memory])
    found = in_order(trace, "opara", gpu)
    assert [one.name for one in found.entries] == ["compute", "memory"] * 8
    before, after = (simulate("streams(S=16)", one, PAPER) for one in (trace, found))
    assert after.makespan_ns < 0.9 * before.makespan_ns


def test_the_command_takes_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    def told(*words: str) -> str:
        arguments = ["run", "streams", "--graph", "layers", "--groups", "1", "400", *words]
        assert command_line(arguments) == 0
        return capsys.readouterr().out

    assert told() == told("--order", "first_in")
    assert told() != told("--order", "critical_path")
    assert command_line(["run", "streams", "--order", "none"]) == 1
    assert "unknown order 'none'" in capsys.readouterr().err
    with pytest.raises(UsageError):
        in_order(generate("chains", 2, 2), "none", PAPER.gpu)
