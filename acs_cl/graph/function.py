"""Graphs as functions: what a replay gives depends on its inputs alone.

Input: the bytes of a graph's file, and values of its named arrays. Output: the arrays that the
graph writes. A named array that is not given begins with zeros. Other memory that a replay changes
begins with the contents in the file.

Invariant: earlier replays make no difference. So a replay may be done anywhere, and again.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..errors import UsageError
from ..launch.engine import Engine
from ..memory.array import Array
from ..memory.values import zero_of
from ..records import EVERYTHING, Span
from .calls import have_all
from .files import read
from .graph import Graph
from .loading import Build, Made


class Function:
    """Holds a graph that was read from a file. `build` and `empty` are those of its runtime."""

    def __init__(
        self, engine: Engine, data: bytes, build: Build, empty: Callable[..., Array]
    ) -> None:
        self._engine, self._empty = engine, empty
        self._lock = threading.RLock()
        self._replays = False
        made = Made(read(io.BytesIO(data)), build, empty)
        self._graph = made.record(Graph(engine))
        self._arrays = made.arrays
        refuse_variables(self._graph)
        touched = [one.access for one in self._graph.handles]
        reads = [span for one in touched for span in one.reads]
        reads += [span for flag in made.flags() for span in flag.spans]
        bases = {span.base for span in reads}
        written = {span.base for one in touched for span in one.writes}

        def is_in(some: set[int], array: Array) -> bool:
            return array.base is not None and bool(some & {array.base.number, EVERYTHING})

        named = self._arrays.values()
        self._written = [name for name, one in self._arrays.items() if is_in(written, one)]
        self._kept = [
            (piece, self._copy(piece))
            for piece in made.memory
            if is_in(bases, piece) and is_in(written, piece) and not _are_all(named, piece, reads)
        ]
        """Memory that a replay changes, if not all that it reads there has a name, and its first
        contents."""

    def replay(
        self, inputs: Mapping[str, object], outputs: Sequence[str] | None, keep: bool = False
    ) -> dict[str, object]:
        """Replay, and return arrays that it writes by name: `outputs`, or all of them. They are
        values of NumPy or, with `keep`, copies on the device. Only what is read back is waited
        for."""
        wanted = self._written if outputs is None else list(outputs)
        for name in (*inputs, *wanted):
            if name not in self._arrays:
                raise UsageError(
                    f"replay: the graph has no array {name!r}; it has "
                    f"{', '.join(self._arrays) or 'none'}"
                )
        with self._lock:
            if self._replays:  # a finalizer came in the middle of it
                raise UsageError("replay: this thread is replaying the same function already")
            self._replays = True
            try:
                self._begin(inputs)
                self._graph.replay()
                if keep:
                    return {name: self._copy(self._arrays[name]) for name in wanted}
                handles = {name: self._arrays[name].get(wait=False) for name in wanted}
            finally:
                self._replays = False
        return {name: handle.wait() for name, handle in handles.items()}

    def _begin(self, inputs: Mapping[str, object]) -> None:
        """Put all memory into the state from which a replay begins."""
        for piece, first in self._kept:
            piece.copy_from(first)
        for name, array in self._arrays.items():
            if name not in inputs:
                array.fill(zero_of(array.dtype))
        for name, array in self._arrays.items():
            if name in inputs:  # behind all zeros, since names may share memory
                try:
                    self._put(array, inputs[name])
                except UsageError as error:
                    raise UsageError(f"replay: {name}: {error}") from error

    def _copy(self, array: Array) -> Array:
        copy = self._empty(array.shape, array.dtype)
        copy.copy_from(array)
        return copy

    def _put(self, array: Array, value: object) -> None:
        if not isinstance(value, Array):
            array.set(np.asarray(value))
        elif value.engine is self._engine:
            array.copy_from(value)
        else:
            array.set(value.get())


def refuse_variables(graph: Graph) -> None:
    """Refuse a graph whose replays would depend on earlier ones, by what no array holds."""
    for one in graph.handles:
        if any(span.base < EVERYTHING for span in one.access.writes):
            raise UsageError(
                f"Step: launch {one.number} ({one.name}) uses variables of its program, which keep "
                "their values from one replay to the next; use arrays for them"
            )


def _are_all(named: Iterable[Array], piece: Array, reads: Iterable[Span]) -> bool:
    """Tell whether all bytes of a piece of memory that are read have names."""
    return piece.base is not None and have_all(named, piece.base, reads)
