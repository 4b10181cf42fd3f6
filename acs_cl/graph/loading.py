"""Loading: the calls of a file, made again in a recording.

Input: the result of `files.read`, and functions of a runtime that build programs and make arrays.
Output: a `Graph` as if the program had recorded it here, with names for its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..conditions import size
from ..errors import UsageError
from ..kernel import Kernel
from ..memory.array import Array
from ..program import Program
from .files import File, KernelSaid, Repeated, Said, Size, View
from .graph import Graph
from .loops import loop

if TYPE_CHECKING:
    from ..launch.engine import Engine

Build = Callable[[str, Sequence[str]], Program]
"""Builds a program from its source and options."""

TRANSFERS: Mapping[str, Callable[..., object]] = {
    "set": Array.set,
    "fill": Array.fill,
    "copy": Array.copy_from,
}
"""Transfers by their names in a file."""


def load(
    engine: Engine,
    file: File,
    build: Build,
    empty: Callable[..., Array],
    given: Mapping[str, Array],
) -> Graph:
    """Record the calls of a file. `given`: arrays that replace those of the same names."""
    for name in given:
        if name not in file.arrays:
            raise UsageError(
                f"load: the graph has no array {name!r}; it has {', '.join(file.arrays) or 'none'}"
            )
    made = Made(file, build, empty)
    graph = made.record(Graph(engine))
    for name, array in given.items():
        try:
            graph.swap(made.arrays[name], array)
        except UsageError as error:
            why = str(error).removeprefix("swap: ")  # which the program did not call
            raise UsageError(f"load: {name}=: {why}") from error
    return graph


class Made:
    """Holds the programs and arrays of a file, in a runtime."""

    def __init__(self, file: File, build: Build, empty: Callable[..., Array]) -> None:
        self._calls = file.calls
        self._loops = file.loops
        self._programs = [build(source, options) for source, options in file.programs]
        self._kernels: dict[str, Kernel] = {}
        """Kernels by what the file says of them."""
        self.memory: list[Array] = []
        """Each piece of memory, as bytes."""
        for nbytes, contents in file.memory:
            piece = empty(nbytes, np.uint8)
            self.memory.append(piece)
            if contents is None:
                piece.fill(0)
            else:
                piece.set(np.frombuffer(contents, np.uint8))
        self._nothing = empty(1, np.uint8)
        self.arrays = {name: self._view(view) for name, view in file.arrays.items()}

    def flags(self) -> list[Array]:
        """Return the flags of all loops."""
        found, loops = [], [*self._loops]
        while loops:
            one = loops.pop()
            found.append(self._view(one.flag))
            loops += one.inner
        return found

    def record(self, graph: Graph) -> Graph:
        """Record the calls of the file in a new graph."""
        with graph, graph.making:  # let go before it is compiled: Ctrl-C is heard then
            self._record(range(len(self._calls)), self._loops)
        graph.arrays = self.arrays
        return graph

    def _record(self, calls: range, loops: Sequence[Repeated]) -> None:
        """Record consecutive calls, with the loops among them."""
        at = calls.start
        for one in loops:
            self._without_loops(range(at, one.calls.start))
            with loop(self._view(one.flag), at_most=one.at_most):
                self._record(one.calls, one.inner)
            at = one.calls.stop
        self._without_loops(range(at, calls.stop))

    def _without_loops(self, calls: range) -> None:
        for number in calls:
            try:
                self._call(self._calls[number])
            except UsageError as error:
                raise UsageError(f"load: call {number + 1} of the file: {error}") from error

    def _call(self, said: Said) -> None:
        args = tuple(map(self._value, said.args))
        if isinstance(said.what, str):
            TRANSFERS[said.what](*args)
            return
        key = repr(said.what)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self._kernel(said.what)
        keywords: dict[str, Any] = {
            name: self._value(value) for name, value in said.keywords.items()
        }
        kernel(*args, **keywords)

    def _kernel(self, said: KernelSaid) -> Kernel:
        try:  # not as an attribute: a kernel may have the name of a program's member
            kernel = self._programs[said.program].__getattr__(said.name)
        except AttributeError as error:
            raise UsageError(str(error)) from None
        if said.access is not None and kernel.declarations is None:
            kernel.access(**said.access)
        if said.infer_ranges is not kernel.infer_ranges:
            kernel.infer_ranges = said.infer_ranges
        return kernel

    def _view(self, view: View) -> Array:
        piece = self._nothing if view.memory is None else self.memory[view.memory]
        return piece.view_at(view.offset, view.shape, view.strides, view.dtype)

    def _value(self, value: object) -> object:
        if isinstance(value, View):
            return self._view(value)
        if isinstance(value, Size):
            return size(self._value(value.cell), value.upto)
        if type(value) is tuple:
            return tuple(map(self._value, value))
        return value
