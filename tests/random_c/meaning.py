"""What the forms of `random_c` mean: memory by bytes, order of evaluation, arithmetic in a type.

In: a launch's views and numbers. Out: the bytes that it touches, or `Undefined` where OpenCL leaves
its outcome open. Two parts of an expression that nothing puts in order must not touch the same
thing, if one of them changes it: each part has a record of its own (`Item.reads`, `Item.writes`).

A place is `(array, byte)` in an argument, or `(list, index)` in memory of the work-item or group.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BYTES = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
         "half": 2, "float": 4, "double": 8}  # fmt: skip
DTYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
          "long": "i8", "ulong": "u8", "half": "f2", "float": "f4", "double": "f8"}  # fmt: skip
KINDS = {"char": 8, "uchar": -8, "short": 16, "ushort": -16, "int": 32, "uint": -32, "long": 64,
         "ulong": -64}  # fmt: skip
FORMS = {"half": "<e", "float": "<f", "double": "<d"}
EXACT = {"half": 1 << 10, "float": 1 << 22, "double": 1 << 40}
"""Integers up to here are stored exactly, and so are their sums."""

Run = Callable[["Item"], Any]
Place = tuple[Any, int]


class Undefined(Exception):  # noqa: N818  (an answer, not a fault)
    """OpenCL does not say what the launch does, or it takes too long."""


class View(NamedTuple):
    """Bytes `low` on, `count` of them, of a base: its number and its bytes."""

    base: int
    data: bytearray
    low: int
    count: int


class Vector(NamedTuple):
    """The vector of a component: where in it the component is, and its bytes."""

    at: int
    size: int


class Goto(Exception):  # noqa: N818  (a way, not a fault)
    """A jump to the end of the block of this name."""


def wrap(kind: int, value: int) -> int:
    """Return the value as its type has it. A kind is a number of bits, negative if unsigned."""
    if kind < 0:
        return value & ((1 << -kind) - 1)
    half = 1 << (kind - 1)
    return ((value + half) & ((1 << kind) - 1)) - half


def fit(kind: int, value: int) -> int:
    """Return the outcome of arithmetic: unsigned wraps around, signed must not."""
    found = wrap(kind, value)
    if kind > 0 and found != value:
        raise Undefined("signed overflow")
    return found


def promoted(kind: int) -> int:
    return 32 if abs(kind) < 32 else kind


def common(a: int, b: int) -> int:
    a, b = promoted(a), promoted(b)
    if abs(a) == abs(b):
        return min(a, b)
    return a if abs(a) > abs(b) else b


def arithmetic(sign: str, kind: int, a: int, b: int) -> int:
    """Return `a sign b`, both of this kind."""
    if sign in "/%":
        if not b:
            raise Undefined("a division by zero")
        whole = a // b if (a >= 0) == (b > 0) else -(-a // b)
        if wrap(kind, whole) != whole:
            raise Undefined("signed overflow")
        return whole if sign == "/" else a - b * whole
    if sign in "&|^":
        return wrap(kind, a & b if sign == "&" else a | b if sign == "|" else a ^ b)
    return fit(kind, a + b if sign == "+" else a - b if sign == "-" else a * b)


def shifted(sign: str, kind: int, a: int, by: int) -> int:
    if not 0 <= by < abs(kind):
        raise Undefined("a shift that is too far")
    if sign == ">>":
        return a >> by
    if a < 0:
        raise Undefined("a negative number is shifted")
    return fit(kind, a << by)


class Machine:
    """A launch under way. `most_steps`: how many accesses and turns of loops it may take."""

    def __init__(self, views: Sequence[View], most_steps: int) -> None:
        self.views, self.most_steps = views, most_steps
        self.readers: dict[int, dict[int, int]] = {one.base: {} for one in views}
        self.writers: dict[int, dict[int, int]] = {one.base: {} for one in views}
        self.reads: list[set[int]] = [set() for _ in views]
        self.writes: list[set[int]] = [set() for _ in views]
        self.steps = 0
        self.local_races: dict[tuple[int, int], tuple[int, bool]] = {}

    def turn(self) -> None:
        self.steps += 1
        if self.steps > self.most_steps:
            raise Undefined("it takes too long")


class Item:
    """A work-item: its variables, and what its expression has read and changed so far."""

    def __init__(
        self, machine: Machine, number: int, v: dict[str, Any], ids: dict[str, Sequence[int]]
    ) -> None:
        self.machine, self.number, self.v, self.ids = machine, number, v, ids
        self.calls: list[tuple[set[Any], set[Any]]] = []
        """What open calls of helpers have touched, for the expressions that they are in."""
        self.reads: set[Any] = set()
        self.writes: set[Any] = set()
        self.shared: set[int] = set()
        """Lists that the group shares, by identity."""

    # ---- bytes of arguments ----

    def _bytes(self, place: Place, size: int, align: int) -> tuple[View, int]:
        array, at = place
        view = self.machine.views[array]
        if not 0 <= at <= view.count - size:
            raise Undefined("an element outside of the view")
        if (view.low + at) % align:
            raise Undefined("a place of the wrong alignment")
        return view, at

    def _note(self, view: View, array: int, at: int, size: int, writes: bool) -> None:
        machine, item = self.machine, self.number
        machine.turn()
        readers, writers = machine.readers[view.base], machine.writers[view.base]
        log = self.writes if writes else self.reads
        touched = machine.writes[array] if writes else machine.reads[array]
        for byte in range(at, at + size):
            where = view.low + byte
            if writes:
                if writers.setdefault(where, item) != item or readers.get(where, item) != item:
                    raise Undefined("two work-items touch a byte that one writes")
            else:
                if writers.get(where, item) != item:
                    raise Undefined("two work-items touch a byte that one writes")
                if readers.setdefault(where, item) != item:
                    readers[where] = -1  # several
            log.add((view.base, where))
            touched.add(byte)

    def _note_vector(self, place: Place, vector: Vector, writes: bool) -> None:
        """A compiler may load a whole vector for one component, and store all to change one."""
        view, at = self._bytes((place[0], place[1] - vector.at), vector.size, vector.size)
        self._note(view, place[0], at, vector.size, writes)

    def load(self, place: Place, element: str, align: int = 0, vector: Vector | None = None) -> int:
        """Return an element's value, of floats the whole part."""
        if isinstance(place[0], list):
            return self._load_own(place)
        size = BYTES[element]
        view, at = self._bytes(place, size, align or size)
        self._note(view, place[0], at, size, False)
        if vector is not None:
            self._note_vector(place, vector, False)
        raw = bytes(view.data[view.low + at : view.low + at + size])
        if element in FORMS:
            value = struct.unpack(FORMS[element], raw)[0]
            if not abs(value) < EXACT[element]:  # also what is no number
                raise Undefined("a large number")
            return int(value)
        return int.from_bytes(raw, "little", signed=element[0] != "u")

    def store(
        self, place: Place, element: str, value: int, align: int = 0, vector: Vector | None = None
    ) -> None:
        """Store a value that fits the element's type."""
        if isinstance(place[0], list):
            self._store_own(place, value)
            return
        size = BYTES[element]
        view, at = self._bytes(place, size, align or size)
        self._note(view, place[0], at, size, True)
        if vector is not None:
            self._note_vector(place, vector, True)
        if element in FORMS:
            if abs(value) > EXACT[element]:
                raise Undefined("a large number")
            raw = struct.pack(FORMS[element], float(value))
        else:
            raw = wrap(-8 * size, value).to_bytes(size, "little")
        view.data[view.low + at : view.low + at + size] = raw

    def is_whole(self, place: Place, element: str) -> None:
        """Refuse a float with a fraction, whose sums this does not compute."""
        if element in FORMS and not isinstance(place[0], list):
            view = self.machine.views[place[0]]
            at = view.low + place[1]
            if not 0 <= place[1] <= view.count - BYTES[element]:
                raise Undefined("an element outside of the view")
            value = struct.unpack_from(FORMS[element], view.data, at)[0]
            if value != value or value in (float("inf"), float("-inf")) or value != int(value):
                raise Undefined("a fraction")
            if value == 0 and struct.pack(FORMS[element], value)[-1]:
                raise Undefined("a negative zero")

    # ---- memory of the work-item and of its group ----

    def _check_own(self, place: Place, writes: bool) -> None:
        cells, at = place
        if not 0 <= at < len(cells):
            raise Undefined("outside of an array")
        if id(cells) in self.shared:
            races, key = self.machine.local_races, (id(cells), at)
            item, wrote = races.get(key, (self.number, False))
            if item != self.number and (wrote or writes):
                raise Undefined("two work-items touch an element that one writes")
            races[key] = self.number if item == self.number else -1, wrote or writes

    def _load_own(self, place: Place) -> int:
        self._check_own(place, False)
        self.reads.add((id(place[0]), place[1]))
        return place[0][place[1]]  # type: ignore[no-any-return]

    def _store_own(self, place: Place, value: Any) -> None:
        self._check_own(place, True)
        self.writes.add((id(place[0]), place[1]))
        place[0][place[1]] = value


def moved(item: Item, place: Place, by: int) -> Place:
    """Return a pointer's place `by` bytes (or elements of a list) on."""
    whole = place[1] + by
    most = len(place[0]) if isinstance(place[0], list) else item.machine.views[place[0]].count
    if not 0 <= whole <= most:
        raise Undefined("a pointer outside of its view")
    return place[0], whole


def in_any_order(runs: Sequence[Run], acts: bool) -> Callable[[Item], list[Any]]:
    """Return what evaluates parts that nothing puts in order, and refuses those that it matters
    for."""
    if not acts:
        return lambda item: [run(item) for run in runs]

    def checked(item: Item) -> list[Any]:
        outer = item.reads, item.writes
        reads: set[Any] = set()
        writes: set[Any] = set()
        values = []
        for run in runs:
            item.reads, item.writes = set(), set()
            values.append(run(item))
            if item.writes & (reads | writes) or item.reads & writes:
                raise Undefined("an order that is not defined")
            reads |= item.reads
            writes |= item.writes
        item.reads, item.writes = outer[0] | reads, outer[1] | writes
        return values

    return checked


def full(run: Run) -> Run:
    """Return what evaluates an expression that is no part of another."""

    def whole(item: Item) -> Any:
        item.reads, item.writes = set(), set()
        value = run(item)
        if item.calls:
            for kept, new in zip(item.calls[-1], (item.reads, item.writes), strict=True):
                kept.update(key for key in new if isinstance(key, tuple))
        return value

    return whole


def called(names: Sequence[str], body: Run, otherwise: Any) -> Callable[[Item, list[Any]], Any]:
    """Return what runs the body of a function with arguments of these names."""

    def run(item: Item, values: list[Any]) -> Any:
        v, reads, writes = item.v, item.reads, item.writes
        item.v = dict(zip(names, values, strict=True))
        item.calls.append((set(), set()))
        signal = body(item)
        more = item.calls.pop()
        item.v, item.reads, item.writes = v, reads | more[0], writes | more[1]
        return signal[1] if signal is not None else otherwise

    return run
