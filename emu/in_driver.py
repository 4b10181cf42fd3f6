"""Policies that leave the order to the driver: one stream, several with events, and an ideal one.

Input: a trace and a machine. Output: runs. The program sends each launch as soon as it is made,
with its upstream; the device begins it when that has ended. The ideal has no overhead and sees
every edge. It is no bound, since another order of the same groups may end sooner by chance.

Invariant: the driver holds at most `queue_depth` launches that have not ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from acs_cl.emu.engine import HOST
from acs_cl.emu.model import Model
from acs_cl.emu.reference.window import Window
from acs_cl.emu.spec import Machine, free
from acs_cl.emu.trace import Entry, Trace


class InDriver(Model):
    """Sends launches with their upstream. The driver's list of them is the library's own window,
    without bound."""

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        super().__init__(trace, machine, log)
        self.held = Window()
        self.sent = 0

    def behind(self, entry: Entry) -> Iterable[int]:
        """Return the launches that this one is sent behind."""
        raise NotImplementedError

    def cost(self, entry: Entry) -> int:
        return self.book("launch", self.host.launch_ns)

    def room(self) -> bool:
        return self.sent < self.host.queue_depth

    def launched(self, entry: Entry) -> None:
        self.sent += 1
        self.engine.after(self.host.latency_ns, HOST, self._arrive, entry)

    def _arrive(self, entry: Entry) -> None:
        for number in self.held.insert(entry.number, self.behind(entry), blocks_on_host=True):
            self.begin(number)

    def ended(self, number: int) -> None:
        self.sent -= 1
        for ready in self.held.done(number):
            self.begin_in(self.host.edge_ns, ready)
        self.program.poke()


class Serial(InDriver):
    """One in-order stream."""

    name = "serial"

    def behind(self, entry: Entry) -> Iterable[int]:
        return (entry.number - 1,)


class Streams(InDriver):
    """In-order streams, with the whole graph known. A launch goes behind an upstream that is the
    last of its stream, else to the stream that was unused for longest. It waits for events of the
    others."""

    def __init__(self, trace: Trace, machine: Machine, streams: int, log: bool = False) -> None:
        super().__init__(trace, machine, log)
        self.name = f"streams(S={streams})"
        self.last = dict.fromkeys(range(streams), 0)
        """The last launch of each stream. The stream that was unused for longest comes first."""
        self.stream = [0] * (len(self.entries) + 1)
        self.before = [0] * (len(self.entries) + 1)
        """The previous launch in its stream."""

    def cost(self, entry: Entry) -> int:
        stream = self._choose(entry)
        ended = self.program.ended
        running = [other for other in entry.upstream if not ended[other]]
        others = {self.stream[other] for other in running} - {stream}
        return super().cost(entry) + self.book("event", self.host.event_ns * len(others))

    def _choose(self, entry: Entry) -> int:
        """Choose a stream for the launch, which becomes the last one there."""
        last = self.last
        found = next(iter(last))
        for other in entry.upstream:
            if last[self.stream[other]] == other:
                found = self.stream[other]
        self.stream[entry.number] = found
        self.before[entry.number] = last.pop(found)
        last[found] = entry.number
        return found

    def behind(self, entry: Entry) -> Iterable[int]:
        return {*entry.upstream, self.before[entry.number]}


class Ideal(InDriver):
    """Every edge is known, and only the groups take time."""

    name = "ideal"

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        super().__init__(trace, free(machine), log)

    def room(self) -> bool:
        return True

    def behind(self, entry: Entry) -> Iterable[int]:
        return entry.upstream
