"""Captured calls: a graph keeps the calls that were made while it was recorded.

Input: a function of the library with the program's arguments. Output: a `Call` that can be made
again, with other arrays or numbers, and commands that can be launched again.

Invariant: later changes of a call's arguments by the program do not change the call. Arrays are the
graph's own views, which keep their memory. Host values are copies, unless the program promised not
to change them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from ..conditions import size
from ..host.intervals import union as joined
from ..launch.commands import HostCommand, KernelCommand
from ..launch.decision import DecidedCommand, Fault
from ..launch.observers import Cutting
from ..memory.array import Array
from ..memory.blocks import Base
from ..ranges import covers, intervals
from ..records import EVERYTHING, Access, Command, HostArray, NamedTuple, Span, interval

Change = Callable[[Array], Array]

MOST_ROWS = 65536
"""Rows of a view up to which they are looked at one by one."""


class Call(NamedTuple):
    """A call of a kernel or a transfer. `owned`: memory that it allocated. `is_plain`: a kernel
    with nothing but its arguments, and maybe `when=`."""

    function: Callable[..., Any]
    args: tuple[object, ...]
    keywords: Mapping[str, object]
    owned: tuple[Base, ...] = ()
    is_plain: bool = False

    def with_arrays(self, change: Change) -> Call:
        """Return the call with other arrays."""
        args, keywords = mapped(self.args, change), mapped(self.keywords, change)
        return self._replace(args=args, keywords=keywords, owned=())

    def arrays(self) -> list[Array]:
        """Return the arrays among its arguments."""
        found: list[Array] = []

        def note(array: Array) -> Array:
            found.append(array)
            return array

        self.with_arrays(note)
        return found


def mapped(value: Any, change: Change) -> Any:
    """Replace the arrays in an argument."""
    if isinstance(value, Array):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)([mapped(one, change) for one in value])
    if type(value) is dict:
        return {name: mapped(one, change) for name, one in value.items()}
    if type(value) is size:
        return size(mapped(value.count, change), value.upto)
    return value


def frozen(value: Any, change: Change) -> Any:
    """Return an argument in the form that the graph keeps."""
    if isinstance(value, (set, frozenset, Iterator)):
        value = tuple(value)
    if type(value) in (tuple, list):
        return tuple(frozen(one, change) for one in value)
    if isinstance(value, (np.ndarray, np.void)):
        return value.copy()
    if isinstance(value, bytearray):
        return bytes(value)
    return mapped(value, change)


def again(command: Command, place: int, context: cl.Context) -> Command:
    """Return a command for one more launch, `place` in its graph. A launch leaves state in its
    command, which two launches in flight must not share."""
    if isinstance(command, HostCommand):
        return _task_again(command)
    if isinstance(command, DecidedCommand):
        return _decided_again(command, place, context)
    return command


def _task_again(command: HostCommand) -> HostCommand:
    hosts: dict[int, HostArray] = {}
    reads, writes = (
        [(where, hosts.setdefault(id(host), np.empty_like(host))) for where, host in pairs]
        for pairs in (command.reads, command.writes)
    )
    return HostCommand(command.name, command.function, reads, writes, command.site)


def _decided_again(first: DecidedCommand, place: int, context: cl.Context) -> DecidedCommand:
    def make() -> tuple[KernelCommand, Fault | None]:
        guarded, old = first.guarded, first.fault
        if old is None:
            return guarded, None
        try:
            fault = first.pool.pop()
        except IndexError:
            fault = Fault(context)
        return guarded._replace(
            pointers=tuple(
                fault.place.memory if memory is old.place.memory else memory
                for memory in guarded.pointers
            )
        ), fault

    plain = first.plain._replace(name=name_in_graph(first, place))
    return DecidedCommand(plain, first.decision, make, first.pool)


def name_in_graph(command: DecidedCommand, place: int) -> str:
    """Name the launch for an error, which may come many replays later."""
    return f"{command.name} ({place + 1} in its graph)"


class Recorded(NamedTuple):
    """One launch of a graph, and the call it came from."""

    command: Command
    access: Access
    call: int
    cutting: Cutting | None = None
    """How it can be cut, if several devices may have parts of it."""


class Move(NamedTuple):
    """Moves accesses of one base to another one, by that many bytes."""

    base: int
    to: int
    by: int

    def access(self, access: Access) -> Access:
        """Return the access after the move."""
        return access.moved(self._span)

    def _span(self, span: Span) -> Span:
        if span.base != self.base:
            return span
        _, start, *shape = span
        return Span(self.to, start + self.by, *shape)


def union(accesses: Iterable[Access]) -> Access:
    """Return the union of accesses."""
    reads: dict[Span, None] = {}
    writes: dict[Span, None] = {}
    for access in accesses:
        reads.update(dict.fromkeys(access.reads))
        writes.update(dict.fromkeys(access.writes))
    return Access(tuple(reads), tuple(writes))


def have_all(arrays: Iterable[Array], base: Base, reads: Iterable[Span]) -> bool:
    """Tell whether these arrays have all bytes of a base that are read. False, too, if that is not
    clear."""
    spans = [span for one in arrays if one.base is base for span in one.overwrites()]
    rows = joined(row for one in spans if one.rows <= MOST_ROWS for row in intervals(one))
    for read in reads:
        if read.base == EVERYTHING:
            read = interval(base.number, 0, base.nbytes)
        if read.base != base.number or any(covers(one, read) for one in spans):
            continue
        for low, high in intervals(read):
            at = bisect_right(rows, (low, base.nbytes)) - 1
            if at < 0 or rows[at][1] < high:
                return False
    return True
