"""Fills and copies of few bytes, as launches of kernels.

Input: arrays in one piece, and an element or a source of the same runtime. Output: the handle of a
launch, or None: the driver moves these bytes.

A driver takes several times as long for a short fill or copy as for a kernel. And the scheduler on
the device runs kernels only, so a fill between two kernels would end an epoch, cut a recorded graph
and take a loop from the device. Long moves stay with the driver, which may have an engine for them.

Invariant: outside of recordings the driver moves what is in one piece. A move by itself would be an
epoch of one task, and `auto` would take that for a sign that epochs do not pay.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

from ..records import NamedTuple
from .decision import LARGEST
from .strided import merged

if TYPE_CHECKING:
    from ..handle import Handle
    from ..memory.array import Array
    from ..records import HostArray
    from .engine import Engine, Launches

SHORT_BYTES = 1 << 16
"""Most bytes in one piece that a kernel moves."""

AXES = 3
"""Dimensions with gaps that a kernel counts."""

GROUP, TILE = 64, 8
"""Work-items of a group, and those along two axes of one where there are gaps. A driver that
compiles a kernel for each size of its groups compiles these once."""
_TILE = TILE, TILE, 1

_WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

TOUCHES = {"fill": {"target": "w"}, "copy": {"target": "w", "source": "r"}}
"""That ends poison in all of a target. It need not be inferred."""


class ShortMoves:
    """Makes short fills and copies of a runtime. The runtime has it, and the engine only knows it:
    its kernels keep the engine alive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.kernels: dict[tuple[str, int, bool], Launches] = {}
        """By name, bytes of an element, and whether it is for one piece."""

    def fill(self, array: Array, element: HostArray, is_whole: bool) -> Handle | None:
        """Launch a fill. `element`: the one that is repeated. `is_whole`: the array is in one
        piece."""
        if is_whole:
            kernel = self._kernel("fill", array, True)
            if kernel is None:
                return None
            n = array.size
            return kernel((_up(n, GROUP),), (GROUP,), array, _word(element), n)
        gaps = _gaps(array, array)
        kernel = None if gaps is None else self._kernel("fill", array, False)
        if kernel is None or gaps is None:
            return None
        return kernel(gaps.whole, _TILE, array, _word(element), *gaps.sizes, *gaps.target)

    def copy(self, target: Array, source: Array, is_whole: bool) -> Handle | None:
        """Launch a copy between arrays that share no bytes. `is_whole`: both are in one piece."""
        if source.offset % source.dtype.itemsize:
            return None
        if is_whole:
            kernel = self._kernel("copy", target, True)
            if kernel is None:
                return None
            n = target.size
            return kernel((_up(n, GROUP),), (GROUP,), target, source, n)
        gaps = _gaps(target, source)
        kernel = None if gaps is None else self._kernel("copy", target, False)
        if kernel is None or gaps is None:
            return None
        steps = *gaps.target, *gaps.source
        return kernel(gaps.whole, _TILE, target, source, *gaps.sizes, *steps)

    def _kernel(self, name: str, array: Array, is_whole: bool) -> Launches | None:
        """Return the kernel for such an array. None: the driver moves it, which moves nothing with
        gaps."""
        nbytes = array.dtype.itemsize
        if array.offset % nbytes or nbytes not in _WORDS:
            return None
        if is_whole and (array.size * nbytes > SHORT_BYTES or not self._is_recorded()):
            return None
        kernel = self.kernels.get((name, nbytes, is_whole))
        if kernel is None:
            macros = {"WORD": _WORDS[nbytes]} | ({} if is_whole else {"GAPS": 1})
            for made in self._engine.calls.own_kernels(self._engine, "moves.cl", macros, TOUCHES):
                self.kernels[made.name, nbytes, is_whole] = made
            kernel = self.kernels[name, nbytes, is_whole]
        return kernel

    def _is_recorded(self) -> bool:
        recorders = self._engine.recorders
        return bool(recorders) and get_ident() in recorders


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def _word(element: HostArray) -> object:
    """Return the bytes of an element as a number."""
    return element.view(f"u{element.dtype.itemsize}")[0]


class Gaps(NamedTuple):
    """How a kernel counts elements: the size of a launch in whole groups, elements along the first
    two axes, and steps between elements along each."""

    whole: tuple[int, ...]
    sizes: tuple[int, ...]
    target: tuple[int, ...]
    source: tuple[int, ...]


def _gaps(target: Array, source: Array) -> Gaps | None:
    """Return how a kernel counts the elements of two views. None: it has too few dimensions for
    them, or one of them goes backwards."""
    nbytes = target.dtype.itemsize
    rows = merged(target.shape, target.strides, source.strides)
    steps = [step for _, *both in rows for step in both]
    if len(rows) > AXES or any(step % nbytes or not 0 < step <= nbytes * LARGEST for step in steps):
        return None
    rows += [(1, 0, 0)] * (AXES - len(rows))
    x, y, z = (length for length, _, _ in rows)
    return Gaps(
        (_up(x, TILE), _up(y, TILE), z),
        (x, y),
        tuple(step // nbytes for _, step, _ in rows),
        tuple(step // nbytes for _, _, step in rows),
    )
