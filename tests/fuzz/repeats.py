"""Random programs that nearly repeat their steps, beside NumPy.

In: a seed. Out: `Program`, steps of launches with what comes between them, and `run`, which makes
them on a runtime and compares. From one step to the next anything may change: a number, an array, a
view, a size, a launch. In half of the programs some kernels work in groups, of two sizes: these
live in other schedulers than the rest. Arrays are dropped and made again, the host writes and reads
in the middle of a step, handles are waited for in the middle of a step, launches are refused, and
host tasks come between. Several programs may run at once, in threads on one runtime.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from fuzz.threads import in_threads

SOURCE = """
kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += x[i] + a; }
kernel void put(global uint *y, uint a, ushort b)
{ size_t i = get_global_id(0); y[i] = y[i] * 3 + a + b * (uint)i; }
kernel void blend(global const uint *x, global const uint *y, global uint *z, uint a, float f)
{ size_t i = get_global_id(0); z[i] = z[i] * 5 + x[i] + 2 * y[i] + a + (uint)(f * 4); }
kernel void flat(global uint *x)
{ size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0); x[i] = x[i] * 5 + i; }
kernel void wide(global uint *x, global const uint *y, ulong a, ulong b, ulong c, ulong d, ulong e,
                 ulong f, ulong g, uint h)
{ size_t i = get_global_id(0); x[i] += y[i] + (uint)(a + 2 * b + 3 * c + d + e + f + g) + h; }
kernel void turn(global uint *x, uint a)
{ local uint row[8]; size_t i = get_local_id(0); row[i] = x[get_global_id(0)] * 3 + a;
  barrier(CLK_LOCAL_MEM_FENCE); x[get_global_id(0)] = row[get_local_size(0) - 1 - i]; }
kernel void ends(global const uint *x, global uint *y)
{ local uint row[8]; size_t i = get_local_id(0); row[i] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE); y[get_global_id(0)] += row[0] + 2 * row[get_local_size(0) - 1]; }
"""
KERNELS = {"add": 2, "put": 1, "blend": 3, "flat": 1, "wide": 2, "turn": 1, "ends": 2}
"""Arrays of each."""
NUMBERS = {"add": 1, "put": 2, "blend": 2, "flat": 0, "wide": 8, "turn": 1, "ends": 0}
IN_GROUPS = ("turn", "ends")
GROUPS = (4, 8)
ROW, ARRAYS = 16, 6

Values = np.ndarray[Any, np.dtype[np.uint32]]


class View(NamedTuple):
    """A row of an array, or several."""

    array: int
    first: int
    rows: int


class Launch(NamedTuple):
    """One launch of a step."""

    kernel: str
    views: tuple[View, ...]
    numbers: tuple[int, ...]
    items: int
    group: int | None
    decides: int | None
    """An array whose first word decides."""


class Other(NamedTuple):
    """Something else that the program does: `what`, of an array, or with a handle of so long
    ago."""

    what: str
    array: int
    value: int


Step = list[Launch | Other]
OTHERS = (
    "set", "get", "wait", "done", "flush", "drop", "task", "refused", "stats", "finish", "new",
)  # fmt: skip


class Program(NamedTuple):
    """Steps, each with what ends it."""

    steps: list[Step]


def program(seed: object) -> Program:
    """Draw a program."""
    chance = random.Random(f"repeats {seed}")
    in_groups = chance.random() < 0.5
    step: Step = []
    for _ in range(chance.choice([8, 9, 12, 20, 40])):
        group = step[-1].group if step and chance.random() < 0.8 else _group(chance, in_groups)
        step.append(_launch(chance, group))
    trouble = chance.choice([0.0, 0.1, 0.3, 0.6])
    steps = []
    for _ in range(chance.randrange(8, 20)):  # an epoch that comes thrice is kept
        now = [_with_numbers(chance, one) if chance.random() < 0.2 else one for one in step]
        if chance.random() < trouble:
            for _ in range(chance.choice([1, 1, 2])):
                _change(chance, now, in_groups)
            if chance.random() < 0.4:  # it stays so
                step = [one for one in now if isinstance(one, Launch)] or step
        steps.append([*now, Other(chance.choice(("get", "finish", "get", "wait", "")), 0, 0)])
    return Program(steps)


def _group(chance: random.Random, in_groups: bool) -> int | None:
    return chance.choice((None, *GROUPS)) if in_groups else None


def _launch(chance: random.Random, group: int | None) -> Launch:
    kernel = chance.choice([one for one in KERNELS if (one in IN_GROUPS) is (group is not None)])
    views: list[View] = []
    rows = chance.choice([1, 1, 1, 2])
    while len(views) < KERNELS[kernel]:
        view = View(chance.randrange(ARRAYS), chance.randrange(4 - rows + 1), rows)
        if all(view.array != other.array for other in views):
            views.append(view)
    items = ROW * rows if kernel == "flat" or group else chance.choice([ROW, ROW, 5]) * rows
    used = {view.array for view in views}
    free = [array for array in range(ARRAYS) if array not in used]
    decides = chance.choice(free) if chance.random() < 0.1 else None
    numbers = tuple(chance.randrange(50) for _ in range(NUMBERS[kernel]))
    return Launch(kernel, tuple(views), numbers, items, group, decides)


def _with_numbers(chance: random.Random, one: Launch | Other) -> Launch | Other:
    if not isinstance(one, Launch):
        return one
    return one._replace(numbers=tuple(chance.randrange(50) for _ in one.numbers))


def _change(chance: random.Random, step: Step, in_groups: bool) -> None:
    """Change a step somewhere."""
    at = chance.randrange(len(step))
    how = chance.randrange(5)
    if how == 0:
        what, array, value = chance.choice(OTHERS), chance.randrange(ARRAYS), chance.randrange(99)
        step.insert(at, Other(what, array, value))
    elif how == 1:
        step[at] = _launch(chance, _group(chance, in_groups))
    elif how == 2:
        step.insert(at, _launch(chance, _group(chance, in_groups)))
    elif how == 3 and len(step) > 1:
        del step[at]
    else:
        other = chance.randrange(len(step))
        step[at], step[other] = step[other], step[at]


class Host:
    """What NumPy makes of it."""

    def __init__(self) -> None:
        self.arrays: list[Values] = [_begin(array) for array in range(ARRAYS)]

    def launch(self, one: Launch) -> None:
        """Run a launch."""
        if one.decides is not None and not self.arrays[one.decides][0, 0]:
            return
        flat = [self.arrays[v.array][v.first : v.first + v.rows].reshape(-1) for v in one.views]
        n, i = one.items, np.arange(one.items, dtype=np.uint32)
        at = [view[:n] for view in flat]
        numbers = [np.uint32(number) for number in one.numbers]
        if one.kernel == "add":
            at[1] += at[0] + numbers[0]
        elif one.kernel == "put":
            at[0][:] = at[0] * np.uint32(3) + numbers[0] + numbers[1] * i
        elif one.kernel == "blend":
            more = at[0] + np.uint32(2) * at[1] + numbers[0] + np.uint32(4) * numbers[1]
            at[2][:] = at[2] * np.uint32(5) + more
        elif one.kernel == "flat":
            at[0][:] = at[0] * np.uint32(5) + i
        elif one.kernel == "turn":
            at[0][:] = (at[0] * np.uint32(3) + numbers[0]).reshape(-1, one.group)[:, ::-1].ravel()
        elif one.kernel == "ends":
            rows = at[0].reshape(-1, one.group)
            at[1] += np.repeat(rows[:, 0] + np.uint32(2) * rows[:, -1], one.group)
        else:
            a, b, c, *others, h = one.numbers
            at[0] += at[1] + np.uint32(a + 2 * b + 3 * c + sum(others) + h)


class Device:
    """The same on a runtime."""

    def __init__(self, runtime: acs.Runtime, made: acs.Program) -> None:
        self._runtime, self._made = runtime, made
        self._arrays = [runtime.array(_begin(array)) for array in range(ARRAYS)]
        self._views: dict[View, acs.Array] = {}
        self._handles: list[acs.Handle] = []

    def launch(self, one: Launch) -> None:
        """Make a launch."""
        views = [self._view(view) for view in one.views]
        kernel = getattr(self._made, one.kernel)
        size = (ROW, one.items // ROW) if one.kernel == "flat" else (one.items,)
        more = {}
        if one.decides is not None:
            more = {"when": self._view(View(one.decides, 0, 1))[:1]}
        group = None if one.group is None else (one.group,)
        self._handles.append(kernel(size, group, *views, *one.numbers, **more))
        assert self._handles[-1].name == one.kernel

    def _view(self, view: View) -> acs.Array:
        found = self._views.get(view)
        if found is None:
            rows = self._arrays[view.array][view.first : view.first + view.rows]
            found = self._views[view] = rows.reshape(-1)
        return found

    def other(self, one: Other, host: Host) -> None:
        """Do something else, on both."""
        runtime, array = self._runtime, self._arrays[one.array]
        if one.what == "set":
            host.arrays[one.array][:] = one.value
            array.set(host.arrays[one.array])
        elif one.what == "get":
            self.compare(host, one.array)
        elif one.what in ("wait", "done") and self._handles:
            handle = self._handles[-1 - one.value % min(len(self._handles), 30)]
            if one.what == "wait":
                handle.wait()
                assert handle.done
            else:
                assert handle.done in (False, True)
        elif one.what == "flush":
            runtime.flush()
        elif one.what == "stats":
            assert runtime.stats()["launches"] >= len(self._handles)
            assert self._handles == [] or str(runtime.explain(self._handles[-1]))
        elif one.what == "finish":
            runtime.finish()
        elif one.what == "task":
            host.arrays[one.array] += np.uint32(one.value)
            runtime.call(_adds(one.value), reads=[array], writes=[array])
        elif one.what == "refused":
            try:
                self._made.add((ROW,), None, array, "no array", 1)
            except acs.UsageError:
                return
            raise AssertionError("a launch without an array was taken")
        elif one.what in ("drop", "new"):  # what comes may be in its memory
            for view in [view for view in self._views if view.array == one.array]:
                del self._views[view]
            self._arrays[one.array] = runtime.array(host.arrays[one.array])

    def compare(self, host: Host, array: int) -> None:
        """What an array has now."""
        np.testing.assert_array_equal(self._arrays[array].get(), host.arrays[array])


def _begin(array: int) -> Values:
    return (np.arange(4 * ROW, dtype=np.uint32) * np.uint32(array + 3)).reshape(4, ROW)


def _adds(value: int) -> Callable[[Values], None]:
    def task(x: Values) -> None:
        x += np.uint32(value)

    return task


def run(drawn: Program, runtime: acs.Runtime, made: acs.Program) -> int:
    """Run a program beside NumPy; how many launches and others it had."""
    host, device = Host(), Device(runtime, made)
    done = 0
    with np.errstate(over="ignore"):
        for step in drawn.steps:
            for one in step:
                if isinstance(one, Launch):
                    host.launch(one)
                    device.launch(one)
                else:
                    device.other(one, host)
                done += 1
        for array in range(ARRAYS):
            device.compare(host, array)
    return done


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "device": {"backend": "device", "predict": True},
    "auto": {"backend": "auto", "predict": True},
    "device, no prediction": {"backend": "device", "predict": False},
    "device, order": {"backend": "device", "order": "critical_path", "predict": True},
    "device, window 8": {"backend": "device", "window": 8, "predict": True},
    "device, backlog 64": {"backend": "device", "backlog": 64, "predict": True},
}
ORDER = ["device"] * 5 + ["auto"] * 2 + list(CONFIGURATIONS)[2:]
CUTS = [(32, 0.05, 0.03, 5), (8, -99.0, -99.0, 1), (8, -99.0, 2.0, 1)]
"""When epochs are cut into sections: as usual, always, or always and joined again."""
THREADED = 7
"""Seeds of which one is several programs at once, in threads on one runtime."""


def configuration_of(seed: int) -> str:
    """The configuration of a seed."""
    return ORDER[seed % len(ORDER)]


class Ways:
    """Runtimes of a process."""

    def __init__(self, device: cl.Device) -> None:
        self._device = device
        self._made: dict[str, tuple[acs.Runtime, acs.Program]] = {}

    def close(self) -> None:
        """All of them."""
        for runtime, _ in self._made.values():
            runtime.close()
        self._made.clear()

    def one(self, seed: int) -> dict[str, int]:
        """Run what a seed stands for; what was counted, by name."""
        name = configuration_of(seed)
        if name not in self._made:
            runtime = acs.Runtime(self._device, **CONFIGURATIONS[name])
            built = runtime.build(SOURCE)
            runtime.prebuild(*(
                (getattr(built, kernel), (group,)) if kernel in IN_GROUPS
                else getattr(built, kernel) for kernel in KERNELS for group in GROUPS
            ))  # fmt: skip
            self._made[name] = runtime, built
        runtime, made = self._made[name]
        runtime.engine.table.cut_epochs(*CUTS[seed // len(ORDER) % len(CUTS)])
        seeds = [f"{seed} {index}" for index in range(1 if seed % THREADED else 2 + seed % 2)]
        before = runtime.stats()["scheduler"]["predicted"]["launches"]
        done = [0] * len(seeds)

        def one(index: int) -> None:
            done[index] = run(program(seeds[index]), runtime, made)

        if len(seeds) == 1:
            one(0)
        else:
            in_threads(one, len(seeds))
        foreseen = runtime.stats()["scheduler"]["predicted"]["launches"] - before
        return {
            "programs": len(seeds),
            "operations": sum(done),
            f"{name}: programs": len(seeds),
            f"{name}: foreseen": foreseen,
        }
