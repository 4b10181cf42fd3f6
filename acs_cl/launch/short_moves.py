"""Fills and copies as launches of kernels: short ones in a recording, and those with gaps.

Input: arrays, and an element or a source of the same runtime. Output: the handle of a launch, or
None: it has to be made in another way.

A driver takes several times as long for a short fill or copy as for a kernel. And the scheduler on
the device runs kernels only, so a fill between two kernels would cut a recorded graph, and take a
loop from the device. Long moves stay with the driver, which may have an engine for them.

Invariant: outside of recordings the driver moves what is in one piece. A move by itself would be an
epoch of one task, and `auto` would take that for a sign that epochs do not pay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..records import Protocol, Sizes
from .decision import LARGEST
from .strided import merged

if TYPE_CHECKING:
    from ..handle import Handle
    from ..memory.array import Array
    from ..records import HostArray
    from .engine import Engine

SHORT_BYTES = 1 << 16
"""Most bytes in one piece that a kernel moves."""

AXES = 3
"""Dimensions with gaps that a kernel counts."""

GROUP, TILE = 64, 8
"""Work-items of a group, and those along two axes of one where there are gaps. A driver that
compiles a kernel for each size of its groups compiles these once."""

_WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

TOUCHES = {"fill": {"target": "w"}, "copy": {"target": "w", "source": "r"}}
"""That ends poison in all of a target. It need not be inferred."""


class Launches(Protocol):
    """A kernel."""

    name: str

    def __call__(self, global_size: object, local_size: object, *args: object) -> Handle:
        """Launch."""


class ShortMoves:
    """Makes these moves. The runtime has it, and the engine only knows it: its kernels keep the
    engine alive. `build`: returns the kernels of `moves.cl` with these macros."""

    def __init__(
        self, engine: Engine, build: Callable[[Mapping[str, object]], Sequence[Launches]]
    ) -> None:
        self._engine, self._build = engine, build
        self.kernels: dict[tuple[str, int, bool], Launches] = {}
        """By name, bytes of an element, and whether it is for one piece."""

    def fill(self, array: Array, element: HostArray, is_whole: bool) -> Handle | None:
        """Launch a fill. `element`: the one that is repeated. `is_whole`: the array is in one
        piece."""
        return self._launch("fill", [array], is_whole, element)

    def copy(self, target: Array, source: Array, is_whole: bool) -> Handle | None:
        """Launch a copy between arrays that share no bytes. `is_whole`: both are in one piece."""
        return self._launch("copy", [target, source], is_whole)

    def _launch(
        self, name: str, arrays: Sequence[Array], is_whole: bool, element: HostArray | None = None
    ) -> Handle | None:
        if is_whole and self._engine.recorder() is None:
            return None
        nbytes = arrays[0].dtype.itemsize
        if nbytes not in _WORDS or any(one.offset % nbytes for one in arrays):
            return None
        counted = _in_one_piece(arrays[0]) if is_whole else _with_gaps(arrays)
        if counted is None:
            return None
        size, numbers = counted
        local: Sizes = (GROUP,) if is_whole else (TILE, TILE, 1)
        values = [] if element is None else [int.from_bytes(element.tobytes(), sys.byteorder)]
        return self._kernel(name, nbytes, is_whole)(size, local, *arrays, *values, *numbers)

    def _kernel(self, name: str, nbytes: int, is_whole: bool) -> Launches:
        kernel = self.kernels.get((name, nbytes, is_whole))
        if kernel is None:
            macros = {"WORD": _WORDS[nbytes]} | ({} if is_whole else {"GAPS": 1})
            for made in self._build(macros):
                self.kernels[made.name, nbytes, is_whole] = made
            kernel = self.kernels[name, nbytes, is_whole]
        return kernel


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


_Counted: TypeAlias = tuple[Sizes, list[int]]
"""How a kernel counts elements: the size of its launch, and its numbers."""


def _in_one_piece(array: Array) -> _Counted | None:
    """Count elements of an array in one piece. None: it is too long."""
    return None if array.nbytes > SHORT_BYTES else ((_up(array.size, GROUP),), [array.size])


def _with_gaps(arrays: Sequence[Array]) -> _Counted | None:
    """Count elements of one or two views: those along the first two axes, and the steps of each
    view. None: they have too many axes or elements, or one goes backwards."""
    first, last = arrays[0], arrays[-1]
    nbytes, rows = first.dtype.itemsize, merged(first.shape, first.strides, last.strides)
    steps = [step for _, *both in rows for step in both]
    if len(rows) > AXES or any(step % nbytes or not 0 < step <= nbytes * LARGEST for step in steps):
        return None
    if any(length > LARGEST for length, *_ in rows):
        return None
    rows += [(1, 0, 0)] * (AXES - len(rows))
    x, y, z = (length for length, *_ in rows)
    numbers = [x, y]
    for view in range(len(arrays)):
        numbers += [both[view] // nbytes for _, *both in rows]
    return (_up(x, TILE), _up(y, TILE), z), numbers
