"""Random recorded programs whose launches are cut at random, and what they leave in memory.

Kernels touch rows, columns, halos, mirrors and gathered elements, so that bands of one launch wait
for the same band of another, for its neighbours, for a mirrored one, or for all. Arithmetic is on
integers, so results are the same in any order that is right. `Ways` runs the program of a seed in
the configuration of that seed, and holds it against whole launches, one after another.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void scale(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0); if (i < n) y[i] = x[i] * 3u + by; }
kernel void halo(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0); if (i >= by && i + by < n) y[i] = x[i - by] + 5u * x[i + by] + 1u; }
kernel void mirror(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0); if (i < n) y[n - 1u - i] = x[i] + by; }
kernel void gather(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0); if (i < n) y[i] = x[(x[i] + by) % n] ^ i; }
kernel void own(global uint *x, uint n, uint by)
{ uint i = get_global_id(0); if (i < n) x[i] = x[i] * 7u + by; }
kernel void count(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0); if (i < n) atomic_add(y + (x[i] + by) % 16u, 1u); }
kernel void strip(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0);
  for (uint k = 0; k < 4u; k++) if (4u * i + k < n) y[4u * i + k] = x[4u * i + k] + k * by; }
kernel void poses(global const uint *x, global uint *y, uint n, uint by)
{ uint i = get_global_id(0), q = n / 8u;
  if (i < q) for (uint k = 0; k < 8u; k++) y[k * q + i] = x[k * q + i] + by; }
kernel void rows(global const uint *x, global uint *y, uint w, uint h, uint by)
{ uint c = get_global_id(0), r = get_global_id(1);
  if (c < w && r < h) y[r * w + c] = x[r * w + c] * 3u + by; }
kernel void stencil(global const uint *x, global uint *y, uint w, uint h, uint by)
{ uint c = get_global_id(0), r = get_global_id(1);
  if (c > 0 && r > 0 && c + 1 < w && r + 1 < h)
      y[r * w + c] = x[r * w + c - 1] + x[r * w + c + 1]
                   + x[(r - 1) * w + c] + x[(r + 1) * w + c] + by; }
kernel void turn(global const uint *x, global uint *y, uint w, uint h, uint by)
{ uint c = get_global_id(0), r = get_global_id(1);
  if (c < w && r < h) y[c * h + r] = x[r * w + c] + by; }
kernel void sums(global const uint *x, global uint *y, uint w, uint h, uint by)
{ uint c = get_global_id(0), r = get_global_id(1); uint sum = by;
  if (c < w && r < h) {
      for (uint k = 0; k < w; k++) sum += x[r * w + k] * (k ^ c);
      y[r * w + c] = sum; } }
kernel void team(global const uint *x, global uint *y, uint n, uint by)
{ local uint part[16]; uint i = get_global_id(0), l = get_local_id(0);
  part[l] = i < n ? x[i] : 0u; barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) y[i] = part[15u - l] * 3u + by; }
kernel void team2(global const uint *x, global uint *y, uint w, uint h, uint by)
{ local uint part[16]; uint c = get_global_id(0), r = get_global_id(1);
  uint l = get_local_id(1) * 4u + get_local_id(0);
  part[l] = c < w && r < h ? x[r * w + c] : 0u; barrier(CLK_LOCAL_MEM_FENCE);
  if (c < w && r < h) y[r * w + c] = part[15u - l] + by; }
kernel void numbered(global const uint *x, global uint *y, uint n, uint by)
{ uint g = get_group_id(0), i = g * 16u + get_local_id(0); if (i < n) y[i] = x[i] * 3u + g * by; }
kernel void blocks(global const uint *x, global uint *y, uint w, uint h, uint by)
{ uint c = get_group_id(0) * 4u + get_local_id(0), r = get_group_id(1) * 4u + get_local_id(1);
  if (c < w && r < h) y[r * w + c] = x[r * w + c] + by * get_group_id(1) + get_group_id(0); }
kernel void stride(global const uint *x, global uint *y, uint n, uint by)
{ for (uint i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = x[i] + by; }
"""

LINES = (
    "scale",
    "halo",
    "mirror",
    "gather",
    "own",
    "count",
    "strip",
    "poses",
    "team",
    "numbered",
    "stride",
)
FIELDS = ("rows", "stencil", "turn", "sums", "team2", "blocks")
IN_GROUPS = {"team": (16,), "numbered": (16,), "team2": (4, 4), "blocks": (4, 4)}
"""Kernels that are written for groups of a size."""
SHIFTED = ("scale", "mirror", "rows", "turn")
"""Kernels that may be launched with an offset."""


class Step(NamedTuple):
    """One launch: its kernel, sizes, arrays by number with the elements that they begin at, numbers
    and cut."""

    kernel: str
    size: tuple[int, ...]
    local: tuple[int, ...] | None
    offset: tuple[int, ...] | None
    arrays: tuple[tuple[int, int], ...]
    numbers: tuple[int, ...]
    bands: Any


class Program(NamedTuple):
    """Steps on so many arrays of so many elements."""

    arrays: int
    elements: int
    steps: tuple[Step, ...]


def random_program(rng: random.Random) -> Program:
    """Make a program."""
    arrays, elements = rng.randint(2, 4), rng.choice((300, 1024, 2400))
    kernels = rng.sample((*LINES, *FIELDS), rng.randint(2, 5))
    steps = tuple(
        _step(rng, arrays, elements, rng.choice(kernels)) for _ in range(rng.randint(2, 9))
    )
    return Program(arrays, elements, steps)


def _step(rng: random.Random, arrays: int, elements: int, kernel: str) -> Step:
    cuts = acs.Row(rng.randint(1, 4)), acs.Tile(*rng.choices(range(1, 6), k=2))
    cut = rng.choice((*cuts, cuts[1], acs.Strided(rng.randint(1, 4))))
    bands = rng.choice((2, 3, 4, 5, 7, 16, rng.randint(1, 40), "auto", "off", None, cut, cut))
    start = rng.choice((0, 0, 0, rng.randrange(elements // 3)))
    n = rng.choice((elements - start, rng.randint(1, elements - start)))
    used = [(one, start) for one in rng.sample(range(arrays), 2)]
    by = rng.randrange(1, 9)
    if kernel in LINES:
        numbers, groups = (n, by), (1, 4, 16)
        items = n if kernel != "strip" else -(-n // 4)
        local: Any = IN_GROUPS.get(kernel) or _local(rng, *[(one,) for one in groups])
        used = used[:1] if kernel == "own" else used
        unit = local[0] if local else 1
        size: tuple[int, ...] = (-(-items // unit) * unit + unit * rng.choice((0, 0, 1)),)
    else:
        w = rng.randint(1, max(1, min(n, 60)))
        numbers = (w, n // w, by)
        local = IN_GROUPS.get(kernel) or _local(rng, (4, 2), (1, 8))
        x, y = local or (1, 1)
        size = (-(-w // x) * x, -(-(n // w) // y) * y)
    shift = tuple(rng.choice((0, rng.randrange(40))) for _ in size) if rng.random() < 0.2 else None
    offset = shift if kernel in SHIFTED else None
    return Step(kernel, size, local, offset, tuple(used), numbers, bands)


def _local(rng: random.Random, *sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """One of these, and seldom none: PoCL compiles a kernel for each local size that it chooses."""
    return rng.choice(sizes) if rng.random() < 0.85 else None


class Machine:
    """A runtime with the kernels, which runs programs launch by launch or recorded."""

    def __init__(self, device: Any = None, **options: Any) -> None:
        self.rt = acs.Runtime(device, **options)
        self.kernels = self.rt.build(SOURCE)

    def prebuild(self) -> None:
        """Have all schedulers built before the first recording, by one build each."""
        self.rt.prebuild(*(
            (getattr(self.kernels, name), IN_GROUPS[name]) if name in IN_GROUPS
            else getattr(self.kernels, name)
            for name in (*LINES, *FIELDS)
        ))  # fmt: skip

    def arrays(self, program: Program, seed: int) -> list[acs.Array]:
        """Random contents, the same for one seed."""
        values = np.random.default_rng(seed)
        return [
            self.rt.array(values.integers(0, 1 << 32, program.elements, "u4"))
            for _ in range(program.arrays)
        ]

    def launch(self, step: Step, arrays: list[acs.Array], is_cut: bool) -> Any:
        """Launch one step."""
        kernel: Callable[..., Any] = getattr(self.kernels, step.kernel)
        views = [arrays[one][start:] for one, start in step.arrays]
        said = {"bands": step.bands} if is_cut else {}
        if step.offset is not None:
            said["offset"] = step.offset
        return kernel(step.size, step.local, *views, *step.numbers, **said)


WAYS: dict[str, dict[str, Any]] = {
    "device": {"backend": "device"},
    "device, 2 groups": {"backend": "device", "groups": 2},
    "device, critical path": {"backend": "device", "order": "critical_path"},
    "device, slices": {"backend": "device", "slice_ms": 0.05},
    "device, window 8": {"backend": "device", "window": 8},
    "device, watched": {"backend": "device", "watchdog_s": 60},
    "device, checked": {"backend": "device", "check": "access"},
    "auto": {"backend": "auto"},
    "auto, bands auto": {"backend": "auto", "bands": "auto"},
    "emulated": {"backend": "emulated"},
    "lanes": {"backend": "lanes"},
    "lanes, bands 3": {"backend": "lanes", "bands": 3},
    "out_of_order": {"backend": "out_of_order"},
    "out_of_order, ready first": {"backend": "out_of_order", "issue": "ready_first"},
}
"""What runtimes are made with; the first one has every second seed."""


def configuration_of(seed: int) -> str:
    """The configuration of a seed."""
    names = [*WAYS]
    return names[0] if seed % 2 else names[1 + seed // 2 % (len(names) - 1)]


def check(machine: Machine, oracle: Machine, seed: int) -> Counter[str]:
    """Run one random program, with other numbers and arrays between its replays; how many replays
    and launches there were, and how many of these were cut. An `AssertionError` says what is
    wrong."""
    rng = random.Random(seed)
    program = random_program(rng)
    steps = [*program.steps]
    wanted, arrays = oracle.arrays(program, seed), machine.arrays(program, seed)
    with machine.rt.record() as graph:
        handles = [machine.launch(step, arrays, True) for step in steps]
    replays = rng.randint(1, 4)
    for again in range(replays):
        what = rng.choice(("update", "swap", "")) if again else ""
        if what == "update":
            at = rng.randrange(len(steps))
            numbers = (*steps[at].numbers[:-1], rng.randrange(1, 9))
            steps[at] = steps[at]._replace(numbers=numbers)
            graph.update(handles[at], by=numbers[-1])
        used = [array for step in steps for array, _ in step.arrays]
        if what == "swap" and program.arrays > len(arrays) - 2:
            at = rng.choice(used)
            for machines, those in ((oracle, wanted), (machine, arrays)):
                those.append(those[at])
                those[at] = machines.arrays(program, seed + again)[0]
            graph.swap(arrays[-1], arrays[at])
        graph.verify()
        graph.replay()
        anew = steps[: rng.choice((0, 0, 1, len(steps)))]  # once more, not recorded
        handles += [machine.launch(step, arrays, True) for step in anew]
        for step in (*steps, *anew):
            oracle.launch(step, wanted, False)
    for number, (got, want) in enumerate(zip(arrays, wanted, strict=True)):
        np.testing.assert_array_equal(
            got.get(), want.get(), f"seed {seed}, array {number}: {program}"
        )
    told = [str(machine.rt.explain(handle)) for handle in handles]
    cut = sum("bands: off" not in one and "bands: " in one for one in told)
    return Counter(replays=replays, launches=len(told), cut=cut)


class Ways:
    """Runtimes of a process, one for each of `WAYS`, and one that cuts nothing."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._oracle = Machine(device, backend="serial")
        self._made: dict[str, Machine] = {}

    def one(self, seed: int) -> Counter[str]:
        """Run the program of a seed; what was counted."""
        name = configuration_of(seed)
        if name not in self._made:
            machine = self._made[name] = Machine(self._device, **WAYS[name])
            machine.prebuild()
        counts = check(self._made[name], self._oracle, seed)
        return counts + Counter({f"{name}: {what}": many for what, many in counts.items()})
