"""Fills, copies and writes as launches of kernels: with gaps, and short ones among other launches.

Input: arrays, and an element, a source of the same runtime, or values of the host. Output: the
handle of a launch, or None: it has to be made in another way.

No driver moves elements with gaps between them in one command. And a driver takes several times as
long for a short fill or copy as for a kernel. The scheduler on the device runs kernels only, so a
fill between two kernels would end an epoch, cut a recorded graph, or take a loop from the device.
Long moves in one piece stay with the driver, which may have an engine for them.

Invariant: what is in one piece opens no epoch. A move by itself would be one of one task, and
`auto` would take that for a sign that epochs do not pay. So outside of recordings it is a launch
only where an open epoch has tasks already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyopencl as cl
import pyopencl.cltypes

from ..devices.driver import Events
from ..errors import UsageError
from ..records import NamedTuple, Sizes

if TYPE_CHECKING:
    from ..handle import Handle
    from ..memory.array import Array
    from ..records import HostArray
    from .engine import Engine

SHORT_BYTES = 1 << 16
"""Most bytes in one piece that a kernel moves."""

AXES, MORE_AXES = 3, 6
"""Dimensions with gaps that the kernels count."""

DIMENSIONS = MORE_AXES - 1
"""Dimensions that a view may have, after merging. An element of several words is one more."""

GROUP, TILE = 64, 8
"""Work-items of a group, and those along two axes of one where there are gaps. A driver that
compiles a kernel for each size of its groups compiles these once."""

_WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

WRITTEN_BYTES = 128
"""Most bytes of the host that a launch brings along."""

BY_GAPS = {"fill": {"target": "w"}, "copy": {"target": "w", "source": "r"}}
IN_PIECES = {**BY_GAPS, "write": {"target": "w"}}
"""Kernels, and what they touch. That ends poison in all of a target. It need not be inferred."""

Launches: TypeAlias = "Callable[..., Handle]"
"""A kernel, which is launched by a call."""

Build: TypeAlias = (
    "Callable[[Mapping[str, Mapping[str, str]], Mapping[str, object]], Sequence[Launches]]"
)
"""Returns these kernels of `moves.cl`, built with some macros."""


class Row(NamedTuple):
    """Words along an axis, and the steps from one to the next."""

    length: int
    target: int
    source: int


class Moves:
    """Makes these moves. The runtime has it, since its kernels keep the engine alive."""

    def __init__(self, engine: Engine, build: Build) -> None:
        self._engine, self._build = engine, build
        # elsewhere a move is looked at, placed, modelled or compared as the driver's
        self._takes_pieces = (
            engine.checker is None and not engine.is_several
            and engine.options.dependencies == "exact" and engine.plan.backend != "emulated"
        )  # fmt: skip
        self.kernels: dict[tuple[str, int, str], Launches] = {}
        """By name, bytes of a word, and what they are for: "", "GAPS" or "MORE"."""

    def fill(self, array: Array, element: HostArray) -> Handle | None:
        """Fill an array. None: it is in one piece, and the driver does that, or its elements are no
        words or along too many axes."""
        if array.contiguous:
            return self._in_one_piece("fill", array, _number(element)) if self._has_others else None
        size = array.dtype.itemsize
        rows = _rows(array.shape, array.strides, array.strides, size, size)
        if len(rows) > AXES or _unit(array, array.strides) != size:
            return None
        rows = [Row(length, abs(step), 0) for length, step, _ in rows]
        return self._by_gaps("fill", size, rows, [_forwards(array), _number(element)], False)

    def copy(self, target: Array, source: Array, wait_for: Events = None) -> Handle | None:
        """Copy between arrays of one shape that share no bytes. None: both are in one piece, and
        the driver does that."""
        if target.contiguous and source.contiguous:
            return self._in_one_piece("copy", target, source) if self._has_others else None
        return self.spread(target, source, source.strides, wait_for)

    def spread(
        self, target: Array, source: Array, strides: Sizes, wait_for: Events = None
    ) -> Handle:
        """Copy from a source that has these strides. A stride of 0 repeats."""
        unit = gcd(_unit(target, target.strides), _unit(source, strides))
        rows = _rows(target.shape, target.strides, strides, target.dtype.itemsize, unit)
        start = source.lead // unit
        is_plain = unit == target.dtype.itemsize
        for at, row in enumerate(rows):
            if row.target < 0:  # a target goes forwards, and the source begins at its other end
                start += (row.length - 1) * row.source
                rows[at] = Row(row.length, -row.target, -row.source)
        values = _forwards(target, is_plain), _forwards(source, is_plain), start
        return self._by_gaps("copy", unit, rows, values, True, wait_for)

    def write(self, array: Array, values: HostArray) -> Handle | None:
        """Write values of the host to an array in one piece. They may change behind the call. None:
        the driver does that."""
        if not self._has_others or values.nbytes > WRITTEN_BYTES:
            return None
        words = np.frombuffer(values.tobytes().ljust(WRITTEN_BYTES, b"\0"), cl.cltypes.ulong16)
        return self._in_one_piece("write", array, words[0])

    def _in_one_piece(self, name: str, array: Array, other: object) -> Handle | None:
        size = array.dtype.itemsize
        place = array.offset | getattr(other, "offset", 0)
        if array.nbytes > SHORT_BYTES or size not in _WORDS or place % size:
            return None
        kernel = self._kernel(name, size, "")
        return kernel((_up(array.size, GROUP),), (GROUP,), array, other, array.size)

    @property
    def _has_others(self) -> bool:
        """Tell whether there are launches that a command of the driver would cut off: those of a
        recording, or of an open epoch. It is asked first, as most moves end there."""
        engine = self._engine
        return self._takes_pieces and (engine.recorder() is not None or engine.backend.unsent)

    def _by_gaps(
        self,
        name: str,
        unit: int,
        rows: Sequence[Row],
        values: Sequence[object],
        is_copy: bool,
        wait_for: Events = None,
    ) -> Handle:
        axes = AXES if len(rows) <= AXES else MORE_AXES
        rows = [*rows, *[Row(1, 0, 0)] * (axes - len(rows))]
        lengths, targets, sources = zip(*rows, strict=True)
        steps = (*targets, *sources) if is_copy else targets
        x, y, *others = lengths
        kernel = self._kernel(name, unit, "GAPS" if axes == AXES else "MORE")
        size = _up(x, TILE), _up(y, TILE), prod(others)
        return kernel(size, (TILE, TILE, 1), *values, *lengths[:-1], *steps, wait_for=wait_for)

    def _kernel(self, name: str, unit: int, what: str) -> Launches:
        kernel = self.kernels.get((name, unit, what))
        if kernel is None:
            macros = {"WORD": _WORDS[unit], "GAPS": 1, what: 1} if what else {"WORD": _WORDS[unit]}
            touches = BY_GAPS if what else IN_PIECES
            for one, made in zip(touches, self._build(touches, macros), strict=True):
                self.kernels[one, unit, what] = made
            kernel = self.kernels[name, unit, what]
        return kernel


def _number(element: HostArray) -> int:
    return int.from_bytes(element.tobytes(), sys.byteorder)


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def _unit(array: Array, strides: Sizes) -> int:
    """Return the bytes of the longest word of which elements and their places are multiples."""
    return gcd(array.dtype.itemsize, array.offset, *strides, 8)


def _forwards(array: Array, is_plain: bool = True) -> Array:
    """Return a view of the same bytes that goes forwards, as kernels take it. `is_plain`: words of
    the kernel are elements; otherwise these are bytes for it."""
    if is_plain and not array.lead:
        return array
    dtype = array.dtype if is_plain else np.dtype((np.void, array.dtype.itemsize))
    steps = tuple(map(abs, array.strides))
    return array.view_at(array.offset - array.lead, array.shape, steps, dtype)


def _rows(shape: Sizes, target: Sizes, source: Sizes, size: int, unit: int) -> list[Row]:
    """Return the axes of elements of `size` bytes, innermost first, merged if both strides allow
    it. The words of an element come last, so that neighbours move neighbouring elements."""
    found: list[Row] = []
    words = size // unit
    axes = zip((*shape, words), (*target, unit), (*source, unit), strict=True)
    for length, to, by in reversed([Row(n, t // unit, s // unit) for n, t, s in axes]):
        if length == 1:
            continue
        if found:
            inner, inner_to, inner_by = found[-1]
            if to == inner * inner_to and by == inner * inner_by:
                found[-1] = Row(inner * length, inner_to, inner_by)
                continue
        found.append(Row(length, to, by))
    if len(found) > DIMENSIONS + (words > 1):
        raise UsageError(f"a view of shape {shape} with gaps in more than {DIMENSIONS} dimensions")
    if words > 1 and found[0].length == words:
        found.append(found.pop(0))
    return found
