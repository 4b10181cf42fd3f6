"""Made-up traces of every kind for tests of the emulator, and what must hold for any run."""

from __future__ import annotations

from random import Random

from acs_cl.emu.cost import Costs
from acs_cl.emu.generate import GRAPHS, generate
from acs_cl.emu.machines import machine
from acs_cl.emu.model import Model
from acs_cl.emu.spec import GpuSpec, Machine
from acs_cl.emu.trace import ALL_BEFORE, Entry, Trace, resolved

TINY = GpuSpec(
    name="tiny",
    units=3,
    threads=64,
    groups=4,
    registers=1000,
    local_bytes=512,
    warp=8,
    kernels=5,
    clock_mhz=1000,
    flops_per_cycle=8,
    bytes_per_ns=4,
    group_bytes_per_cycle=2,
)
PAPER = machine("paper")
PAPER = PAPER._replace(
    scheduler=PAPER.scheduler._replace(
        record_ns=980, epoch_ns=111_000, wait_ns=7_000, begin_ns=168, queue_ns=3_990,
        gang_ns=1_830, fused_ns=460, task_ns=3, slower_few=1_420, slower_full=1_060, groups=5,
        launched=5, holds=False, tile_ps=0, behind_ns=0,
    )
)  # fmt: skip
"""With costs of our scheduler that do not move as it is measured anew."""
SMALL: Machine = machine("paper")._replace(name="small", gpu=TINY)

POLICIES = (
    "serial",
    "streams(S=3)",
    "cuda_graph",
    "cuda_replay",
    "acs_sw(N=1, threads=1)",
    "acs_sw(N=5, threads=3)",
    "acs_hw(N=1, M=1, bits=1)",
    "acs_hw(N=4, M=7, bits=3)",
    "acs_hw(N=8, M=3, bits=2)",
    "on_device",
    "ideal",
)


def random_trace(seed: int, launches: int = 60) -> Trace:
    """Anything that the format allows, with few groups and short times; by spans at times."""
    rng = Random(seed)
    graph = rng.choice(sorted(GRAPHS))
    made = generate(graph, rng.randint(1, 6), 1 + launches // 6, seed, spans=rng.random() < 0.3)
    entries = [_varied(entry, rng) for entry in made.entries[:launches]]
    return resolved(made._replace(entries=entries))


def _varied(entry: Entry, rng: Random) -> Entry:
    items = rng.choice((1, 8, 13, 32, 64))
    entry = entry._replace(
        items=items,
        groups=rng.choice((1, 2, 3, 11, 40)),
        registers=rng.choice((0, 0, 3, 15)),
        local_bytes=rng.choice((0, 0, 100, 512)),
        group_ns=rng.choice((1, 500, 4_000, 50_000)),
        host_ns=rng.choice((0, 0, 0, 700)),
        whole_groups=int(rng.random() < 0.2),
        on_lane=int(rng.random() < 0.1),
    )
    if entry.number > 2 and rng.random() < 0.05:
        entry = entry._replace(waits=(rng.randint(ALL_BEFORE, entry.number - 1),))
    kind = rng.random()
    if kind < 0.1:
        command = rng.choice(("copy", "read", "host"))
        return entry._replace(kind=command, total_ns=2_000, group_ns=0, groups=0, items=0)
    if kind < 0.3:
        return entry._replace(group_ns=0, flops=rng.choice((0, 8_000)), bytes=1 + items * 90)
    if kind < 0.4:
        return entry._replace(group_ns=0, total_ns=rng.randint(1, 9_000))
    if kind < 0.5:
        return entry._replace(bytes=500)
    return entry


def times(model: Model) -> dict[int, tuple[int, int]]:
    """When each kernel of a run with a log began and ended."""
    assert model.gpu.log is not None
    found: dict[int, tuple[int, int]] = {}
    for number, _, _, start, end in model.gpu.log:
        first, last = found.get(number, (start, end))
        found[number] = min(first, start), max(last, end)
    return found


def check(model: Model) -> None:
    """Every group ran once, no unit was over a limit, nobody ran beside what it follows."""
    _check_groups(model)
    _check_limits(model)
    ran = times(model)
    for entry in model.entries:
        waits = range(1, entry.number) if ALL_BEFORE in entry.waits else entry.waits
        for other in (*entry.upstream, *waits):
            if entry.number in ran and other in ran:
                assert ran[other][1] <= ran[entry.number][0], f"{entry.number} beside {other}"


def _check_groups(model: Model) -> None:
    assert model.gpu.log is not None
    groups = [0] * (len(model.entries) + 1)
    for number, _, count, _, _ in model.gpu.log:
        groups[number] += count
    assert groups[1:] == [entry.groups for entry in model.entries]
    assert all(model.program.ended[1:])


def _check_limits(model: Model) -> None:
    assert model.gpu.log is not None
    spec = model.gpu.spec
    costs = Costs(spec)
    limits = (spec.groups, spec.threads, spec.registers, spec.local_bytes)
    changes: list[tuple[int, int, int, tuple[int, ...]]] = []
    for number, unit, count, start, end in model.gpu.log:
        need = costs.need(model.entries[number - 1])
        used = (count, *(count * one for one in need[:3]))
        changes.append((start, 1, unit, used))
        changes.append((end, 0, unit, tuple(-one for one in used)))
    units = [[0, 0, 0, 0] for _ in range(spec.units)]
    for _, _, unit, used in sorted(changes):
        for place, change in enumerate(used):
            units[unit][place] += change
            assert units[unit][place] <= limits[place] or not limits[place]
    kernels = sorted(
        change for start, end in times(model).values() for change in ((start, 1), (end, 0))
    )
    running = 0
    for _, begins in kernels:
        running += 1 if begins else -1
        assert running <= spec.kernels
