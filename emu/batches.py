"""Policies that hand launches over in batches: graphs of CUDA; and `on_device` has its epochs so.

In: a trace and a machine. Out: runs. The program collects launches; a batch goes to the device as
one, where batches run one after another. Within a batch the device itself begins what is ready,
through a dispatcher that begins one after another, and some time after the end of what it followed.

Invariant: a launch is in exactly one batch, batches are in program order, and whatever the program
waits for is in a batch that was handed over.
"""

from __future__ import annotations

from collections import deque

from acs_cl.emu.engine import HOST, Server
from acs_cl.emu.model import Model
from acs_cl.emu.reference.window import Window
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import Entry, Trace


class Batches(Model):
    """Collects, hands over, runs batch by batch. The device's list is the library's own window."""

    edge_ns = 0
    """From the end of a launch to the start of one behind it."""
    node_ns = 0
    """Launches begin so far apart."""
    batch_ns = 0
    batch_name = ""

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        super().__init__(trace, machine, log)
        self.held = Window()
        self.open: list[Entry] = []
        self.coming: deque[list[Entry]] = deque()
        self.left = 0
        """Launches of the batch on the device that have not ended."""
        self.sending = 0
        self.busy_until_ns = 0
        """The program hands a batch over."""
        self.dispatcher = Server(self.engine)

    def cost(self, entry: Entry) -> int:
        takes = self.node_cost(entry)
        return takes + max(0, self.busy_until_ns - self.engine.now)

    def node_cost(self, entry: Entry) -> int:
        """The program's time to add a launch to the batch."""
        raise NotImplementedError

    def handing_ns(self, batch: list[Entry]) -> int:
        """The program's time to hand a batch over."""
        return self.batch_ns

    def launched(self, entry: Entry) -> None:
        self.open.append(entry)

    def paused(self) -> None:
        if self.open:
            self.hand_over()

    def hand_over(self) -> None:
        """Close the batch and send it; the program is busy for a while."""
        batch, self.open = self.open, []
        self.sending += 1
        takes = self.book(self.batch_name, self.handing_ns(batch))
        self.busy_until_ns = max(self.busy_until_ns, self.engine.now) + takes
        self.engine.at(self.busy_until_ns + self.host.latency_ns, HOST, self._arrive, batch)

    def _arrive(self, batch: list[Entry]) -> None:
        self.sending -= 1
        self.coming.append(batch)
        if not self.left:
            self._start()

    def _start(self) -> None:
        batch = self.coming.popleft()
        self.left = len(batch)
        self.window.add(len(batch))
        ready: list[int] = []
        for entry in batch:
            ready += self.held.insert(entry.number, entry.upstream, holds=True)
        self.begins(batch)
        for number in ready:
            self.dispatch(number, 0)

    def begins(self, batch: list[Entry]) -> None:
        """A batch is on the device, and none of it has begun."""

    def over(self) -> None:
        """All of the batch on the device has ended."""

    def dispatch(self, number: int, delay_ns: int) -> None:
        """Begin a launch through the dispatcher, and not before the delay is over."""
        behind = self.dispatcher.serve(self.node_ns) - self.engine.now
        self.begin_in(max(behind, delay_ns), number)

    def ended(self, number: int) -> None:
        self.left -= 1
        self.window.add(-1)
        for ready in self.held.done(number):
            self.dispatch(ready, self.edge_ns)
        if not self.left:
            self.over()
            if self.coming:
                self._start()


class CudaGraph(Batches):
    """A graph for all launches up to where the program waits: built, and run once."""

    name = "cuda_graph"
    batch_name = "launch"

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        super().__init__(trace, machine, log)
        self.edge_ns = self.host.graph_edge_ns
        self.node_ns = self.host.graph_node_ns
        self.batch_ns = self.host.launch_graph_ns

    def node_cost(self, entry: Entry) -> int:
        return self.book("build", self.host.build_node_ns)


class CudaReplay(CudaGraph):
    """The same where the graph is there already: the program only launches it."""

    name = "cuda_replay"

    def node_cost(self, entry: Entry) -> int:
        return 0
