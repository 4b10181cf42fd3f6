"""Handles of graphs: of recorded launches, and of replays.

Input: a graph and its launches. Output: a `RecordedHandle` names a launch to `Graph.update` and
cannot be waited for. A `ReplayHandle` waits for all launches of a replay. Neither keeps the graph
alive.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ..errors import UnreadableError
from ..handle import Handle
from ..launch.several_handles import SeveralHandle
from ..observe.explain import Explanation
from ..records import Access, Protocol
from .loops import Launched, Rounds

if TYPE_CHECKING:
    from ..launch.engine import Engine


class Replayed(Protocol):
    """The graph of a handle."""

    engine: Engine

    def explain(self) -> Explanation:
        """Say how it is replayed."""

    def told_bands(self, handle: RecordedHandle) -> str:
        """Say how a launch is cut into bands, if that was asked for."""


class RecordedHandle(Handle):
    """Names a launch of a graph. `number` counts from 1 in the graph, as it was recorded.

    `call` and `nth` name it for as long as the graph lives: the call, and which of its launches it
    is. Numbers shift where another array lets a call make more launches, or fewer.
    """

    __slots__ = ("_graph", "call", "nth")

    def __init__(
        self, graph: Replayed, number: int, name: str, access: Access, call: int = -1, nth: int = 0
    ) -> None:
        super().__init__(graph.engine, number, name, access)
        self._graph = weakref.ref(graph)
        self.call, self.nth = call, nth

    def is_of(self, graph: Replayed) -> bool:
        """Tell whether the launch was recorded in this graph."""
        return self._graph() is graph

    def wait(self) -> Any:
        """Raise an error: a recorded launch does not run."""
        raise self._error("wait")

    @property
    def done(self) -> bool:
        """Raise an error."""
        raise self._error("done")

    @property
    def event(self) -> cl.Event:
        """Raise an error."""
        raise self._error("event")

    def _error(self, what: str) -> UnreadableError:
        return UnreadableError(
            f"{what}: launch {self.number} ({self.name}) is recorded and does not run; a replay "
            "does: wait for what graph.replay() returns"
        )

    def explain(self) -> Explanation:
        """Say which bytes it touches."""
        reads, writes = ("; ".join(map(str, spans)) or "nothing" for spans in self.access[:2])
        graph = self._graph()
        bands = graph.told_bands(self) if graph is not None else ""
        return Explanation(
            f"launch {self.number} ({self.name}) of a graph: reads {reads}; writes {writes}{bands}",
            False,
            (),
        )


class ReplayHandle(SeveralHandle):
    """Stands for a replay."""

    __slots__ = ("_error", "_graph", "_rounds")

    def __init__(self, graph: Replayed, numbers: Launched, access: Access, rounds: Rounds) -> None:
        super().__init__(graph.engine, (tuple(numbers),), "replay", access)
        self._graph = weakref.ref(graph)
        self._rounds = rounds
        self._error = numbers.error

    def wait(self) -> None:
        """Block until all launches have ended. Raises the first failure, in program order."""
        super().wait()
        if self._error is not None:
            raise self._error

    @property
    def rounds(self) -> int:
        """Wait, and return how often the graph ran: rounds of a replay with `while_=`, else 1."""
        self.wait()
        return self._rounds.count

    def explain(self) -> Explanation:
        """Say how its graph is replayed."""
        graph = self._graph()
        if graph is None:
            return Explanation("a replay of a graph that is gone", False, ())
        return graph.explain()
