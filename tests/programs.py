"""Random programs: data that NumPy and acs_cl both run, so that results can be compared bit by bit.

A program is a list of steps, each a name and a few bytes. The bytes are numbers taken modulo
whatever they index, so every program is valid and shrinks well. `run(program, machine)` decodes the
steps in one way for all machines; a step whose kernel would race within one launch (an output that
meets an input) is left out, which depends on the program alone. Machines do what is decoded:
`NumpyMachine` executes at once, in program order, and follows poison element by element;
`AcsMachine` launches.

All arithmetic is on unsigned integers, which wrap around alike everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyopencl as cl
from hypothesis import strategies as st

import acs_cl as acs

Host = np.ndarray[Any, Any]
Step = tuple[str, bytes]

SHAPES: tuple[tuple[int, ...], ...] = ((96,), (96,), (64,), (8, 12), (8, 12), (40, 30), (500,))
"""Slots: each holds an array of its shape; the last one of bytes, the others of uint32."""

BYTES = len(SHAPES) - 1

SOURCE = """
kernel void affine(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i] * 3 + a; }

kernel void add(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] += a * x[i]; }

kernel void stir(global uint *x, uint a)
{ size_t i = get_global_id(0); x[i] = x[i] * a + (uint)i; }

kernel void fork(global const uint *x, global uint *u, global uint *v, uint a)
{ size_t i = get_global_id(0); u[i] = x[i] ^ a; v[i] += x[i]; }

kernel void flip(global const uint *x, global uint *y, uint n)
{ size_t i = get_global_id(0); y[i] = x[n - 1 - i] + 1; }

kernel void total(global const uint *x, global uint *y, uint n)
{ uint sum = 0; for (uint i = 0; i < n; ++i) sum = sum * 5 + x[i]; y[0] = sum; }

kernel void every(global uint *x, uint step)
{ size_t i = get_global_id(0) * step; x[i] += step; }

kernel void evens(global uint *y, uint a)
{ size_t i = get_global_id(0); if (i % 2 == 0) y[i] = a + (uint)i; }

kernel void slow(global uint *x, uint rounds)
{ uint v = x[0]; for (uint i = 0; i < rounds; ++i) v = v * 1664525u + 1013904223u; x[0] = v; }

kernel void octets(global const uchar *x, global uchar *y, uint a)
{ size_t i = get_global_id(0); y[i] = x[i] * 7 + a; }

kernel void tile(global uint *x, uint pitch, uint a)
{ size_t i = get_global_id(1) * pitch + get_global_id(0); x[i] = x[i] * 3 + a; }

kernel void tiles(global const uint *x, global uint *y, uint x_pitch, uint y_pitch)
{ size_t i = get_global_id(0), j = get_global_id(1); y[j * y_pitch + i] = x[j * x_pitch + i] + 2; }

kernel void within(global uint *x, uint first, uint a)
{ size_t i = first + get_global_id(0); x[i] = x[i] * 5 + a; }
"""

MODES = {
    "affine": ("r", "w"), "add": ("r", "rw"), "stir": ("rw",), "fork": ("r", "w", "rw"),
    "flip": ("r", "w"), "total": ("r", "w"), "every": ("rw",), "evens": ("w",), "slow": ("rw",),
    "octets": ("r", "w"), "tile": ("rw",), "tiles": ("r", "w"), "within": ("rw",),
}  # fmt: skip
"""What each kernel does to its pointers, and what inference has to find."""


def _wide(a: int) -> np.uint32:
    return np.uint32(a & 0xFFFFFFFF)


def _total(x: Host, y: Host, n: int) -> None:
    value = 0
    for one in x[:n].tolist():
        value = (value * 5 + one) & 0xFFFFFFFF
    y[0] = value


def _slow(x: Host, rounds: int) -> None:
    value = int(x[0])
    for _ in range(rounds):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    x[0] = value


def _fork(x: Host, u: Host, v: Host, a: int) -> None:
    u[...], v[...] = x ^ _wide(a), v + x


def _evens(y: Host, a: int) -> None:
    y[::2] = np.arange(0, len(y), 2, dtype=np.uint32) + _wide(a)


def _assign(target: Host, values: Any) -> None:
    target[...] = values


NUMPY: dict[str, Callable[..., None]] = {
    "affine": lambda x, y, a: _assign(y, x * np.uint32(3) + _wide(a)),
    "add": lambda x, y, a: _assign(y, y + _wide(a) * x),
    "stir": lambda x, a: _assign(x, x * _wide(a) + np.arange(len(x), dtype=np.uint32)),
    "fork": _fork,
    "flip": lambda x, y, n: _assign(y, x[::-1] + np.uint32(1)),
    "total": _total,
    "every": lambda x, step: _assign(x[::step], x[::step] + np.uint32(step)),
    "evens": _evens,
    "slow": _slow,
    "octets": lambda x, y, a: _assign(y, x * np.uint8(7) + np.uint8(a & 255)),
    "tile": lambda x, a: _assign(x, x * np.uint32(3) + _wide(a)),
    "tiles": lambda x, y: _assign(y, x + np.uint32(2)),
    "within": lambda x, a: _assign(x, x * np.uint32(5) + _wide(a)),
}

LAYOUT = [np.zeros(shape, np.uint8 if slot == BYTES else np.uint32)
          for slot, shape in enumerate(SHAPES)]  # fmt: skip
"""Stand-ins for the slots, to find out which views share bytes."""


class View(NamedTuple):
    """A part of a slot: `kind` says how `numbers` are read. Means the same for NumPy and acs_cl."""

    slot: int
    kind: str
    numbers: tuple[int, ...] = ()

    def of(self, array: Any) -> Any:
        """The view of `array`, a NumPy array or one of ours."""
        n = self.numbers
        if self.kind == "flat":  # uint32 elements, one after another
            flat = array.reshape(-1)
            if self.slot == BYTES:
                return flat[4 * n[0] : 4 * (n[0] + n[1])].view(np.uint32)
            return flat[n[0] : n[0] + n[1]]
        if self.kind == "bytes":
            flat = array.reshape(-1)
            return (flat if self.slot == BYTES else flat.view(np.uint8))[n[0] : n[0] + n[1]]
        if self.kind == "steps":  # start, how many, step; backwards where that is negative
            flat = array.reshape(-1)
            stop = n[0] + (n[1] - 1) * n[2] + (1 if n[2] > 0 else -1)
            return flat[n[0] : stop if stop >= 0 else None : n[2]]
        if self.kind == "tile":
            return array[n[0] : n[0] + n[2], n[1] : n[1] + n[3]]
        if self.kind == "turned":
            return array.T[n[0] : n[0] + n[2], n[1] : n[1] + n[3]]
        return array

    @property
    def layout(self) -> Host:
        """The view of the slot's stand-in."""
        found: Host = self.of(LAYOUT[self.slot])
        return found


def meet(a: View, b: View) -> bool:
    """Whether two views share a byte."""
    return a.slot == b.slot and bool(np.shares_memory(a.layout, b.layout))


# ---- decoding: from small integers to views ------------------------------------------------------


def flat_view(slot: int, start: int, length: int) -> View:
    """`length` uint32 elements of a slot, or as many as it has."""
    slot %= len(SHAPES)
    count = LAYOUT[slot].nbytes // 4
    length = min(max(1, length), count)
    return View(slot, "flat", (start % (count - length + 1), length))


def byte_view(slot: int, start: int, length: int) -> View:
    """Bytes at any offset."""
    slot %= len(SHAPES)
    count = LAYOUT[slot].nbytes
    length = min(max(1, length), count)
    return View(slot, "bytes", (start % (count - length + 1), length))


def step_view(slot: int, start: int, length: int, step: int) -> View:
    """Every `step`-th element, forwards or backwards."""
    slot %= len(SHAPES) - 1
    count = LAYOUT[slot].size
    stride = abs(step) % 5 + 1
    length = min(max(1, length), (count - 1) // stride + 1)
    first = start % (count - (length - 1) * stride)
    if step < 0:
        return View(slot, "steps", (first + (length - 1) * stride, length, -stride))
    return View(slot, "steps", (first, length, stride))


MATRICES = [slot for slot, shape in enumerate(SHAPES) if len(shape) == 2]


def tile_view(slot: int, row: int, column: int, rows: int, columns: int, turned: bool) -> View:
    """A tile of a matrix, or of its transpose."""
    slot = MATRICES[slot % len(MATRICES)]
    height, width = LAYOUT[slot].shape
    if turned:
        height, width = width, height
    rows, columns = min(max(1, rows), height), min(max(1, columns), width)
    numbers = (row % (height - rows + 1), column % (width - columns + 1), rows, columns)
    return View(slot, "turned" if turned else "tile", numbers)


def any_view(choice: int, slot: int, start: int, length: int, step: int) -> View:
    """A view of any kind, for transfers."""
    kind = choice % 6
    if kind == 0:
        return View(slot % len(SHAPES), "whole")
    if kind == 1:
        return flat_view(slot, start, length)
    if kind == 2:
        return byte_view(slot, start, length)
    if kind == 3:
        return step_view(slot, start, length, step - 128)
    return tile_view(slot, start, step, length % 5 + 1, length % 4 + 1, kind == 5)


def values(seed: int, shape: tuple[int, ...], dtype: Any) -> Host:
    """Values that look random and are the same everywhere."""
    count = int(np.prod(shape))
    mixed = (np.arange(count, dtype=np.uint64) + np.uint64(seed)) * np.uint64(2654435761)
    return (mixed >> np.uint64(7)).astype(dtype).reshape(shape)


class Launch(NamedTuple):
    """A kernel with its views and numbers, as a machine runs it."""

    name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    views: tuple[View, ...]
    numbers: tuple[int, ...]
    modes: tuple[str, ...]
    declared: bool = False


def decode_kernel(name: str, n: Sequence[int]) -> Launch | None:
    """The launch that integers stand for; None where it would race within itself."""
    modes = tuple(MODES[name])
    length, a = n[2] % 48 + 1, n[6]
    one = flat_view(n[0], n[1], length)
    two = flat_view(n[3], n[4], one.numbers[1])
    one = View(one.slot, "flat", (one.numbers[0], two.numbers[1]))
    length = two.numbers[1]
    local = (1,) if n[5] % 3 == 0 else None
    if name in ("affine", "add", "flip"):
        if meet(one, two) and (one != two or name != "add"):
            return None
        last = length if name == "flip" else a
        return Launch(name, (length,), local, (one, two), (last,), modes)
    if name == "fork":
        three = flat_view(n[5], n[6], length)
        if three.numbers[1] != length or meet(one, two) or meet(one, three) or meet(two, three):
            return None
        return Launch(name, (length,), local, (one, two, three), (a,), modes)
    if name == "total":
        if meet(one, two):
            return None
        return Launch(name, (1,), None, (one, flat_view(two.slot, n[4], 1)), (length,), modes)
    if name in ("stir", "evens"):
        return Launch(name, (length,), local, (one,), (a,), modes)
    if name == "slow":
        return Launch(name, (1,), None, (one,), (a % 3000,), modes)
    if name == "every":
        step = a % 4 + 1
        return Launch(name, (-(-length // step),), local, (one,), (step,), modes)
    if name == "octets":
        x = byte_view(n[0], n[1], n[2] % 100)
        y = byte_view(n[3], n[4], x.numbers[1])
        x = View(x.slot, "bytes", (x.numbers[0], y.numbers[1]))
        if meet(x, y) and x != y:
            return None
        return Launch(name, (y.numbers[1],), local, (x, y), (a,), modes)
    if name == "within":
        return Launch(name, (length,), local, (one,), (a,), modes, declared=True)
    rows, columns = n[5] % 7 + 1, n[6] % 8 + 1
    x = tile_view(n[0], n[1], n[2], rows, columns, False)
    if name == "tile":
        size = x.numbers[3], x.numbers[2]
        return Launch(name, size, None, (x,), (SHAPES[x.slot][1], a), modes)
    y = tile_view(n[3], n[4], n[2], x.numbers[2], x.numbers[3], False)
    if x.numbers[2:] != y.numbers[2:] or meet(x, y):
        return None
    pitches = SHAPES[x.slot][1], SHAPES[y.slot][1]
    return Launch(name, (x.numbers[3], x.numbers[2]), None, (x, y), pitches, modes)


def decode_copy(n: Sequence[int]) -> tuple[View, View] | None:
    """Target and source of one shape and type."""
    kind = n[0] % 4
    if kind == 0:
        target = flat_view(n[1], n[2], n[3] % 64)
        source = flat_view(n[4], n[5], target.numbers[1])
    elif kind == 1:
        target = step_view(n[1], n[2], n[3] % 16 + 1, n[6] - 128)
        source = step_view(n[4], n[5], target.numbers[1], n[6] - 131)
    elif kind == 2:
        target = tile_view(n[1], n[2], n[5], n[3] % 5 + 1, n[6] % 5 + 1, False)
        source = tile_view(n[4], n[5], n[2], *target.numbers[2:], bool(n[6] % 2))
    else:
        target = byte_view(n[1], n[2], n[3] % 90)
        source = byte_view(n[4], n[5], target.numbers[1])
    same = target.layout.shape == source.layout.shape and target.layout.dtype == source.layout.dtype
    return (target, source) if same else None


def host_function(reads: int, both: bool, fails: bool) -> Callable[..., int]:
    """A host task: the sum of what it reads goes into everything it writes."""

    def host(*arrays: Host) -> int:
        if fails:
            raise ArithmeticError("this host task fails")
        sum_ = sum(int(array.sum(dtype=np.uint64)) for array in arrays[:reads]) & 0xFFFFFFFF
        for array in arrays[reads - 1 :] if both else arrays[reads:]:
            array[...] = values(sum_, array.shape, array.dtype)
        return sum_

    return host


def run(program: Sequence[Step], machine: Machine) -> None:
    """Decode each step and have the machine do it."""
    for name, n in program:
        if name in MODES:
            launch = decode_kernel(name, n)
            if launch is not None:
                machine.kernel(launch, n[7] % 11 == 0)
        elif name == "copy":
            pair = decode_copy(n)
            if pair is not None:
                machine.copy(*pair)
        elif name == "new":
            machine.new(n[0] % len(SHAPES), n[1], n[2] % 4)
        elif name == "host":
            source, target = any_view(*n[0:5]), any_view(*n[5:10])
            both = source == target
            if both or not meet(source, target):
                machine.host(source, target, both, n[10] % 5 == 0)
        elif name == "fill":
            machine.fill(any_view(*n[0:5]), n[5])
        elif name == "set":
            machine.set(any_view(*n[0:5]), n[5])
        elif name == "get":
            machine.get(any_view(*n[0:5]), n[5] % 2 == 0)
        else:
            machine.other(name, n[0])
    machine.end()


_OTHERS = "copy copy copy host host new new fill set set get get done event flush open wait finish"
_names = st.sampled_from([*MODES, *MODES, *_OTHERS.split()])


def programs(most: int = 30) -> st.SearchStrategy[list[Step]]:
    """Programs of up to `most` steps."""
    return st.lists(st.tuples(_names, st.binary(min_size=11, max_size=11)), max_size=most)


class Machine(Protocol):
    """What a program asks for."""

    def kernel(self, launch: Launch, gated: bool) -> None: ...
    def copy(self, target: View, source: View) -> None: ...
    def new(self, slot: int, seed: int, how: int) -> None: ...
    def host(self, source: View, target: View, both: bool, fails: bool) -> None: ...
    def fill(self, view: View, value: int) -> None: ...
    def set(self, view: View, seed: int) -> None: ...
    def get(self, view: View, wait: bool) -> None: ...
    def other(self, name: str, n: int) -> None: ...
    def end(self) -> None: ...


POISONED = "poisoned"


class NumpyMachine:
    """Program order, at once. `results` are what the gets gave; POISONED where they would raise.

    Beside each array a mask of its shape and type has all bits of a poisoned byte set.
    """

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing
        self.arrays = [values(slot, a.shape, a.dtype) for slot, a in enumerate(LAYOUT)]
        self.masks = [np.zeros_like(array) for array in self.arrays]
        self.results: list[Any] = []

    def _of(self, view: View) -> Host:
        found: Host = view.of(self.arrays[view.slot])
        return found

    def _mask(self, view: View) -> Host:
        found: Host = view.of(self.masks[view.slot])
        return found

    def _spread(self, reads: Sequence[View], writes: Sequence[View], sure: bool) -> bool:
        """Poison of a launch; whether it runs."""
        if any(self._mask(view).any() for view in reads):
            for view in writes:
                self._poison(view)
            return False
        if sure:
            for view in writes:
                self._mask(view)[...] = 0
        return True

    def _poison(self, view: View) -> None:
        mask = self._mask(view)
        mask[...] = np.iinfo(mask.dtype).max

    def kernel(self, launch: Launch, gated: bool) -> None:
        reads = [v for v, mode in zip(launch.views, launch.modes, strict=True) if "r" in mode]
        writes = [v for v, mode in zip(launch.views, launch.modes, strict=True) if "w" in mode]
        if self._spread(reads, writes, sure=False):
            numbers = () if launch.name == "tiles" else launch.numbers[-1:]
            NUMPY[launch.name](*map(self._of, launch.views), *numbers)

    def copy(self, target: View, source: View) -> None:
        if target != source and self._spread([source], [target], sure=True):
            self._of(target)[...] = self._of(source).copy()

    def new(self, slot: int, seed: int, how: int) -> None:
        made = values(seed, LAYOUT[slot].shape, LAYOUT[slot].dtype)
        if how == 1:
            made = np.zeros_like(made)
        elif how == 2:
            made = np.full_like(made, seed % 251)
        self.arrays[slot] = made
        self.masks[slot] = np.zeros_like(made)

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        runs = self._spread([source], [target], sure=not both)
        if runs and fails and self.failing:
            self._poison(target)
            runs = False
        if not runs:
            self.results.append(POISONED)
            return
        target_array = self._of(target).copy()
        arrays = [target_array] if both else [self._of(source).copy(), target_array]
        self.results.append(host_function(1, both, False)(*arrays))
        self._of(target)[...] = target_array

    def fill(self, view: View, value: int) -> None:
        self._mask(view)[...] = 0
        self._of(view)[...] = value % 251

    def set(self, view: View, seed: int) -> None:
        self._mask(view)[...] = 0
        target = self._of(view)
        target[...] = values(seed, target.shape, target.dtype)

    def get(self, view: View, wait: bool) -> None:
        self.results.append(POISONED if self._mask(view).any() else self._of(view).copy())

    def other(self, name: str, n: int) -> None:
        """Waiting, flushing, asking: nothing for a machine that is never behind."""

    def end(self) -> None:
        for slot in range(len(SHAPES)):
            self.get(View(slot, "whole"), True)


class AcsMachine:
    """Launches on a runtime. `results` line up with NumPy's."""

    def __init__(self, runtime: acs.Runtime, program: acs.Program, failing: bool = False) -> None:
        self.runtime = runtime
        self.program = program
        self.failing = failing
        self.arrays = [
            runtime.array(values(slot, a.shape, a.dtype)) for slot, a in enumerate(LAYOUT)
        ]
        self.results: list[Any] = []
        self.handles: list[acs.Handle] = []
        self.promised: list[tuple[int, acs.Handle]] = []
        self.events: list[Any] = []

    def _of(self, view: View) -> acs.Array:
        found: acs.Array = view.of(self.arrays[view.slot])
        return found

    def let_go(self) -> None:
        """Foreign events have to come before anything blocks."""
        while self.events:
            self.events.pop().set_status(cl.command_execution_status.COMPLETE)

    def kernel(self, launch: Launch, gated: bool) -> None:
        wait_for = None
        if gated:
            self.events.append(cl.UserEvent(self.runtime.context))
            wait_for = self.events[-1:]
        kernel = getattr(self.program, launch.name)
        views = [self._of(view) for view in launch.views]
        arguments: list[Any] = [*views, *launch.numbers]
        declared: dict[str, Any] = {}
        if launch.declared:  # the whole array goes in, and only the view counts
            whole = View(
                launch.views[0].slot, "flat", (0, LAYOUT[launch.views[0].slot].nbytes // 4)
            )
            arguments = [self._of(whole), launch.views[0].numbers[0], *launch.numbers]
            declared = {"reads": views, "writes": views}
        self.handles.append(
            kernel(launch.global_size, launch.local_size, *arguments, wait_for=wait_for, **declared)
        )

    def copy(self, target: View, source: View) -> None:
        self.handles.append(self._of(target).copy_from(self._of(source)))

    def new(self, slot: int, seed: int, how: int) -> None:
        shape, dtype = LAYOUT[slot].shape, LAYOUT[slot].dtype
        if seed % 3 == 0:
            self.arrays[slot].free()
        self.arrays[slot] = None  # its memory can be given out again at once
        if how == 1:
            self.arrays[slot] = self.runtime.zeros(shape, dtype)
        elif how == 2:
            self.arrays[slot] = self.runtime.empty(shape, dtype)
            self.arrays[slot].fill(seed % 251)
        else:
            source = values(seed, shape, dtype)
            self.arrays[slot] = self.runtime.array(source)
            source[...] = 0  # it was copied

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        function = host_function(1, both, fails and self.failing)
        reads, writes = [self._of(source)], [self._of(target)]
        handle = self.runtime.call(function, reads=reads, writes=writes)
        self.handles.append(handle)
        self.promised.append((len(self.results), handle))
        self.results.append(None)

    def fill(self, view: View, value: int) -> None:
        self.handles.append(self._of(view).fill(value % 251))

    def set(self, view: View, seed: int) -> None:
        target = self._of(view)
        source = values(seed, target.shape, target.dtype)
        self.handles.append(target.set(source))
        source[...] = 0  # it was copied

    def get(self, view: View, wait: bool) -> None:
        if wait:
            self.let_go()
        try:
            result = self._of(view).get(wait=wait)
        except acs.PoisonedError:
            self.results.append(POISONED)
            return
        if not wait:
            self.promised.append((len(self.results), result))
        self.results.append(result)

    def other(self, name: str, n: int) -> None:
        if name == "flush":
            self.runtime.flush()
        elif name == "open":
            self.let_go()
        elif name == "finish":
            self.let_go()
            try:
                self.runtime.finish()
            except acs.PoisonedError:
                assert self.failing
        elif self.handles:
            handle = self.handles[-1 - n % len(self.handles)]
            if name == "done":
                assert handle.done in (True, False)
            elif name == "wait":
                self.let_go()
                self._wait(handle)
            else:
                assert name == "event"
                assert isinstance(handle.event, cl.Event)

    def _wait(self, handle: acs.Handle) -> Any:
        try:
            return handle.wait()
        except acs.PoisonedError:
            assert self.failing
            return POISONED

    def end(self) -> None:
        self.let_go()
        for index, handle in reversed(self.promised):
            self.results[index] = self._wait(handle)
        for slot in range(len(SHAPES)):
            self.get(View(slot, "whole"), True)


def compare(program: Sequence[Step], expected: NumpyMachine, got: AcsMachine) -> None:
    """Bit by bit."""
    pairs = zip(expected.results, got.results, strict=True)
    for index, (one, other) in enumerate(pairs):
        if isinstance(one, str) or isinstance(other, str):
            same = isinstance(one, str) and isinstance(other, str)
        else:
            same = bool(np.array_equal(one, other))
        assert same, f"result {index}: got {other!r}, expected {one!r}; program: {program}"
