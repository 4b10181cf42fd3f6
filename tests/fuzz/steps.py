"""From bytes to calls of a machine: every program is decoded in one way for all machines.

In: steps, each a name and at least eleven bytes. Out: calls of a `Machine`. A step whose kernel
would race within one launch (an output that meets an input) is left out, which depends on the
program alone; so do graphs, whose launches are decoded from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fuzz.kernels import GROUP, MODES, UPDATED, unsigned
from fuzz.views import (
    BYTES,
    SHAPES,
    SLOTS,
    Host,
    View,
    any_view,
    byte_view,
    flat_view,
    meet,
    step_view,
    tile_view,
    typed_view,
    values,
)

Step = tuple[str, bytes]


class Launch(NamedTuple):
    """A kernel with its views and numbers, as a machine runs it."""

    name: str
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    views: tuple[View, ...]
    numbers: tuple[int, ...]
    modes: tuple[str, ...]
    whole: bool = False
    """It is given all of its array, and the view is what it touches of it."""
    declared: bool = False
    """That is said in the call; it is inferred otherwise."""
    offset: int = 0
    when: View | None = None
    """The number that decides whether it runs."""
    count: View | None = None
    """The number that says how many work-items it has."""


class Copy(NamedTuple):
    """A copy in a graph."""

    target: View
    source: View


class Fill(NamedTuple):
    """A fill in a graph."""

    view: View
    value: int


Recorded = Launch | Copy | Fill


def decode_kernel(name: str, n: Sequence[int]) -> Launch | None:
    """The launch that integers stand for; None where it would race within itself."""
    launch = _RULES.get(name.partition("_")[0], _simple)(name, n)
    if launch is None or launch.whole:
        return launch
    written = [v for v, mode in zip(launch.views, launch.modes, strict=True) if "w" in mode]
    if name in ("affine", "add") and n[8] % 5 == 0 and launch.global_size[0] > 1:
        offset = n[9] % (launch.global_size[0] - 1) + 1
        return launch._replace(
            global_size=(launch.global_size[0] - offset,), local_size=(1,), offset=offset
        )
    if n[8] % 9 == 1:
        cell = flat_view(n[9], n[10], 1)
        if not any(meet(cell, view) for view in written):
            return launch._replace(when=cell)
    return launch


def _length(n: int) -> int:
    """Few drivers compile a kernel once for all sizes: one of them is taken often."""
    return 32 if n % 4 == 0 else n % 48 + 1


def _local(length: int, n: int) -> tuple[int, ...] | None:
    return None if length == 32 and n % 3 else (1,)


def _pair(n: Sequence[int]) -> tuple[View, View, int]:
    one = flat_view(n[0], n[1], _length(n[2]))
    two = flat_view(n[3], n[4], one.numbers[1])
    return View(one.slot, "flat", (one.numbers[0], two.numbers[1])), two, two.numbers[1]


def _simple(name: str, n: Sequence[int]) -> Launch | None:
    one, two, length = _pair(n)
    local, a, modes = _local(length, n[5]), n[6], MODES[name]
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
    if name == "part":
        return Launch(name, (length,), local, (one,), (a, n[7] % (length + 1)), modes)
    if name == "slow":
        return Launch(name, (1,), None, (one,), (a % 3000,), modes)
    if name == "every":
        step = a % 4 + 1
        return Launch(name, (-(-length // step),), (1,), (one,), (step,), modes)
    declared = n[10] % 2 == 0
    return Launch(name, (length,), local, (one,), (a,), modes, True, declared)


def _octets(name: str, n: Sequence[int]) -> Launch | None:
    x = byte_view(n[0], n[1], _length(n[2]))
    y = byte_view(n[3], n[4], x.numbers[1])
    x = View(x.slot, "bytes", (x.numbers[0], y.numbers[1]))
    if meet(x, y) and x != y:
        return None
    length = y.numbers[1]
    return Launch(name, (length,), _local(length, n[5]), (x, y), (n[6],), MODES[name])


def _tiles(name: str, n: Sequence[int]) -> Launch | None:
    rows, columns = n[5] % 7 + 1, n[6] % 8 + 1
    x = tile_view(n[0], n[1], n[2], rows, columns, False)
    size, local = (x.numbers[3], x.numbers[2]), (1, 1)
    if name == "tile":
        return Launch(name, size, local, (x,), (SHAPES[x.slot][1], n[6]), MODES[name])
    y = tile_view(n[3], n[4], n[2], x.numbers[2], x.numbers[3], False)
    if x.numbers[2:] != y.numbers[2:] or meet(x, y):
        return None
    return Launch(name, size, local, (x, y), (SHAPES[x.slot][1], SHAPES[y.slot][1]), MODES[name])


def _typed(name: str, n: Sequence[int]) -> Launch | None:
    one = flat_view(n[0], n[1], _length(n[2]))
    length = one.numbers[1]
    two = typed_view(SLOTS[name.partition("_")[2]], n[4], length)
    views = (one, two) if name.startswith("into") else (two, one)
    return Launch(name, (length,), _local(length, n[5]), views, (n[6],), MODES[name])


def _scattered(name: str, n: Sequence[int]) -> Launch | None:
    one, two, length = _pair(n)
    three = flat_view(n[5], n[6], length)
    views = (one, three) if name == "tally" else (one, two, three)
    if any(meet(view, three) for view in views[:-1]) or three.numbers[1] != length:
        return None
    return Launch(name, (length,), _local(length, n[7]), views, (length,), MODES[name])


def _grouped(name: str, n: Sequence[int]) -> Launch | None:
    length = GROUP * (n[2] % 5 + 1)
    x, y = flat_view(n[0], n[1], length), flat_view(n[3], n[4], length)
    if meet(x, y):
        return None
    return Launch(name, (length,), (GROUP,), (x, y), (n[6],), MODES[name])


_RULES: dict[str, Callable[[str, Sequence[int]], Launch | None]] = {
    "octets": _octets, "tile": _tiles, "tiles": _tiles, "into": _typed, "from": _typed,
    "pick": _scattered, "tally": _scattered, "turn": _grouped,
}  # fmt: skip


def decode_copy(n: Sequence[int]) -> tuple[View, View] | None:
    """Target and source of one shape and type."""
    kind = n[0] % 5
    if kind == 0:
        target = flat_view(n[1], n[2], n[3] % 64)
        source = flat_view(n[4], n[5], target.numbers[1])
    elif kind == 1:
        target = step_view(n[1], n[2], n[3] % 16 + 1, n[6] - 128)
        source = step_view(n[4], n[5], target.numbers[1], n[6] - 131)
    elif kind == 2:
        target = tile_view(n[1], n[2], n[5], n[3] % 5 + 1, n[6] % 5 + 1, False)
        source = tile_view(n[4], n[5], n[2], *target.numbers[2:], bool(n[6] % 2))
    elif kind == 3:
        slot = BYTES + 1 + n[1] % (len(SHAPES) - BYTES - 1)
        target = typed_view(slot, n[2], n[3] % 40 + 1)
        source = typed_view(slot, n[4], n[3] % 40 + 1)
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
        sum_ = sum(int(unsigned(array).sum()) for array in arrays[:reads]) & 0xFFFFFFFF
        for array in arrays[reads - 1 :] if both else arrays[reads:]:
            array[...] = values(sum_, array.shape, array.dtype)
        return sum_

    return host


def recorded(seed: bytes) -> list[Recorded]:
    """What a graph is recorded of."""
    rng, found = random.Random(seed), list[Recorded]()
    for _ in range(rng.randrange(2, 7)):
        name, n = rng.choice([*_PLAIN, "copy", "fill"]), rng.randbytes(11)
        if name == "copy":
            pair = decode_copy(n)
            if pair is not None and pair[0] != pair[1]:
                found.append(Copy(*pair))
        elif name == "fill":
            found.append(Fill(any_view(*n[0:5]), n[5]))
        else:
            launch = decode_kernel(name, n)
            if launch is not None:
                found.append(launch)
    return found


_PLAIN = [name for name in MODES if name != "within"]


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
        elif name in _MORE:
            _MORE[name](machine, n)
        else:
            machine.other(name, n[0])
    machine.end()


def _sized(machine: Machine, n: Sequence[int]) -> None:
    """A launch whose size is on the device."""
    launch, cell = _simple("stir", n), flat_view(n[7], n[8], 1)
    assert launch is not None
    if not meet(cell, launch.views[0]):
        machine.fill(cell, n[9] % (launch.global_size[0] + 1))
        machine.kernel(launch._replace(count=cell, local_size=(1,)), False)


def _many(machine: Machine, n: Sequence[int]) -> None:
    launch = _simple("stir", n)
    assert launch is not None
    machine.many(launch, [n[7], n[8], n[9]][: n[10] % 3 + 1])


def _look(machine: Machine, n: Sequence[int]) -> None:
    machine.look(n[0] % IMAGES, n[1] % IMAGE[0], flat_view(n[2], n[3], IMAGE[1]))


_MORE: dict[str, Callable[[Any, Sequence[int]], None]] = {
    "sized": _sized,
    "many": _many,
    "graph": lambda machine, n: machine.graph(recorded(bytes(n))),
    "replay": lambda machine, n: machine.replay(n[0]),
    "update": lambda machine, n: machine.update(n[0], n[1], n[2]),
    "swap": lambda machine, n: machine.swap(n[0], n[1], n[2]),
    "draw": lambda machine, n: machine.draw(n[0] % IMAGES, n[1]),
    "look": _look,
    "mixed": lambda machine, n: machine.mixed(flat_view(n[0], n[1], _length(n[2])), n[3]),
    "keep": lambda machine, n: machine.keep(flat_view(n[0], n[1], 32), n[2]),
}
IMAGES, IMAGE = 2, (4, 8)
"""How many there are, and their rows and columns."""

_OTHERS = "copy copy copy host host new new fill set set get get done event flush open wait finish"
_MORE_OF = "sized many many graph graph replay replay replay replay update update swap swap"
_RARE = "draw look look mixed keep keep"
NAMES = [*MODES, *MODES, *_OTHERS.split(), *_MORE_OF.split()]
"""Of the steps that every driver runs."""
_WEIGHTED = [*MODES, *_OTHERS.split(), *_MORE_OF.split(), *_RARE.split()]


def program_of(seed: str) -> list[Step]:
    """The program of a seed."""
    rng = random.Random(seed)
    return [(rng.choice(_WEIGHTED), rng.randbytes(11)) for _ in range(rng.randrange(4, 19))]


def changeable(calls: Sequence[Recorded]) -> list[int]:
    """The launches of a graph that may be given another number."""
    return [index for index, call in enumerate(calls)
            if isinstance(call, Launch) and call.name in UPDATED]  # fmt: skip


def updated(launch: Launch, value: int) -> Launch:
    """The launch with another last number."""
    if launch.name == "part":
        value %= launch.global_size[0] + 1
    return launch._replace(numbers=(*launch.numbers[:-1], value))


def slots_of(calls: Sequence[Recorded]) -> list[int]:
    """The slots that a graph uses."""
    views = [view for call in calls for view in _views(call)]
    return sorted({view.slot for view in views})


def _views(call: Recorded) -> Sequence[View]:
    if isinstance(call, Launch):
        return [*call.views, *([call.when] if call.when is not None else [])]
    return [call.target, call.source] if isinstance(call, Copy) else [call.view]


class Machine(Protocol):
    """What a program asks for."""

    def kernel(self, launch: Launch, gated: bool) -> None: ...
    def many(self, launch: Launch, numbers: list[int]) -> None: ...
    def copy(self, target: View, source: View) -> None: ...
    def new(self, slot: int, seed: int, how: int) -> None: ...
    def host(self, source: View, target: View, both: bool, fails: bool) -> None: ...
    def fill(self, view: View, value: int) -> None: ...
    def set(self, view: View, seed: int) -> None: ...
    def get(self, view: View, wait: bool) -> None: ...
    def graph(self, calls: list[Recorded]) -> None: ...
    def replay(self, which: int) -> None: ...
    def update(self, which: int, call: int, value: int) -> None: ...
    def swap(self, which: int, slot: int, seed: int) -> None: ...
    def draw(self, image: int, a: int) -> None: ...
    def look(self, image: int, row: int, view: View) -> None: ...
    def mixed(self, view: View, a: int) -> None: ...
    def keep(self, view: View, a: int) -> None: ...
    def other(self, name: str, n: int) -> None: ...
    def end(self) -> None: ...


def compare(program: Sequence[Step], expected: Any, got: Any) -> None:
    """The results of two machines, bit by bit; poison is poison, whatever it says."""
    for index, (one, other) in enumerate(zip(expected.results, got.results, strict=True)):
        if isinstance(one, str) or isinstance(other, str):
            same = isinstance(one, str) and isinstance(other, str)
        else:
            same = bool(np.array_equal(one, other))
        assert same, f"result {index}: got {other!r}, expected {one!r}; program: {program}"
