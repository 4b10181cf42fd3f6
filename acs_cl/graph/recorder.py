"""Recorders: they capture what one thread calls, for a graph that is recorded or changed.

Input: calls of the program inside `with rt.record()`, and the launches that the library makes of
each. Output: a `Recording` with calls, launches and loops. No launch runs.

Invariant: a call that fails leaves nothing in the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import core
from ..access.cuts import AUTO
from ..errors import UsageError
from ..handle import Handle
from ..kernel import Kernel
from ..launch.commands import KernelCommand
from ..launch.observers import Cutting
from ..memory.array import Array
from ..memory.blocks import Base
from ..records import Access, Command
from .calls import Call, Recorded, frozen
from .handles import RecordedHandle, Replayed
from .loops import Loop, check_written
from .recording import Recording

Made = tuple[Handle, list[Recorded], list[Base]]
"""What a call returned, its launches, and the memory that it allocated."""


class Recorder:
    """Captures the calls of a thread. `making`: held while a call is made, so that no finalizer and
    no handler of a signal launches there what would become a part of it."""

    def __init__(self, graph: Replayed, recording: Recording, making: core.native.Lock) -> None:
        self._graph, self._recording, self._making = graph, recording, making
        self.is_capturing = False
        self._call = self._first = 0
        """The number of the call that is being made, and the place of its first launch."""
        self._launches: list[Recorded] = []
        """Those of this call so far."""
        self._owned: list[Base] = []
        self._own: dict[int, tuple[Array, Array]] = {}
        """{id of the program's array: it, and the graph's view of it}."""
        self._outer: list[tuple[Loop, list[Loop]]] = []
        """The loops that are open, and the loops beside each."""
        self._unentered: list[str] = []
        """Of each loop the line that made it, or "" once it was entered."""

    # ---- calls -----------------------------------------------------------------------------------

    def capture(self, function: Callable[..., Any], *args: object, **keywords: object) -> Handle:
        """Make a call of the program now, without running its launches, and keep it."""
        with self._making:
            is_kernel = isinstance(function, Kernel)  # None is the same as no argument there
            said = {
                name: frozen(value, self._view)
                for name, value in keywords.items()
                if value is not None or not is_kernel
            }
            is_plain = is_kernel and not said.keys() - {"when"}
            call = Call(function, frozen(args, self._view), said, (), is_plain)
            handle, launches, owned = self.make(call, len(self._recording.calls))
            self._recording.add(call._replace(owned=tuple(owned)), launches)
            if not isinstance(handle, RecordedHandle):  # a call of no bytes
                return RecordedHandle(self._graph, 0, handle.name, handle.access)
            return handle

    def make(self, call: Call, number: int) -> Made:
        """Make a call, which is or will be the one of this number."""
        self._call, self._first = number, len(self._recording.launches)
        launches: list[Recorded] = []
        outer, self._owned, self._launches = self._owned, [], launches
        self.is_capturing = True
        try:
            handle: Handle = call.function(*call.args, **call.keywords)
            return handle, launches, self._owned
        finally:
            self.is_capturing = False
            self._owned = outer

    def take(
        self,
        command: Command,
        access: Access,
        wait_for: object,
        cutting: Cutting | None = None,
    ) -> Handle:
        """Keep a launch of the call that is being made. `cutting`: how it can be cut, if parts of
        it may run on several devices."""
        if wait_for:
            raise UsageError(
                "wait_for= inside a recording: an event comes once, and a graph is replayed; wait "
                "for it before the replay"
            )
        cut = command.cut if isinstance(command, KernelCommand) else None
        if cut is not None and cut.bands == AUTO:
            from .kept_tunings import as_tuned

            command = as_tuned(self._graph.engine.device, command, access)
        launches = self._launches
        launches.append(Recorded(command, access, self._call, cutting))
        number, nth = self._first + len(launches), len(launches) - 1
        return RecordedHandle(self._graph, number, command.name, access, self._call, nth)

    def keep(self, base: Base) -> None:
        """Keep memory that was allocated in the recording."""
        self._owned.append(base)

    def _view(self, array: Array) -> Array:
        """Return the graph's own view of an array, so that the program may drop the array."""
        if array.base is None or array.engine is not self._graph.engine:
            return array  # of no bytes, or an error of the call
        found = self._own.get(id(array))
        if found is None:
            own = array.view_at(array.offset, array.shape, array.strides, array.dtype)
            found = self._own[id(array)] = array, own
        return found[1]

    # ---- loops -----------------------------------------------------------------------------------

    def expect_loop(self, site: str) -> int:
        """Note that the program made a loop, and where. Return a number for it."""
        self._unentered.append(site)
        return len(self._unentered) - 1

    def open_loop(self, number: int, flag: Array, at_most: int) -> Loop:
        """Begin the body of an expected loop. It ends at `close_loop`."""
        if self._graph.engine.recorder() is not self:
            raise UsageError("acs.loop: the recording in which it was made has ended")
        self._unentered[number] = ""
        recording, first = self._recording, len(self._recording.calls)
        opened = Loop(self._view(flag), at_most, range(first, first))
        self._outer.append((opened, recording.loops))
        recording.loops = []
        return opened

    def close_loop(self, opened: Loop, is_whole: bool) -> None:
        """End the body of a loop, which is the one opened last. A body that is not whole is
        dropped: outside of a loop it would run once, whatever the flag."""
        if not self._outer or self._outer[-1][0] is not opened:
            if is_whole and self._outer:
                raise UsageError("acs.loop ends before a loop inside it: end the inner one first")
            return  # the recording has ended, and has said so
        recording, (loop, beside) = self._recording, self._outer.pop()
        calls = range(loop.calls.start, len(recording.calls))
        loop = loop._replace(calls=calls, inner=tuple(recording.loops))
        recording.loops = beside
        is_kept = False
        try:
            if is_whole:
                check_written("acs.loop", loop.flag, recording.union_of(calls))
                recording.loops.append(loop)
                is_kept = True
        finally:
            if not is_kept:
                recording.take_back(calls.start)

    # ---- the end ---------------------------------------------------------------------------------

    def end(self) -> tuple[str, str] | None:
        """Take no more, and let go of the program's arrays. Return why the recording cannot end
        here, for the graph and for the program. None: it can."""
        in_loop, site = bool(self._outer), next(filter(None, self._unentered), "")
        self._own, self._outer, self._unentered = {}, [], []
        if in_loop:
            return (
                "discarded: its recording ended inside a loop",
                "the recording ended inside a loop: leave acs.loop before rt.record()",
            )
        if site:
            return (
                "discarded: a loop in its recording was never entered",
                f"acs.loop, made at {site}, was never entered: write `with acs.loop(…):` around "
                "the launches that it repeats",
            )
        return None
