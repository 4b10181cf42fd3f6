"""Policies that hand launches over in batches: CUDA graphs, and the base of `on_device`.

Input: a trace and a machine. Output: runs. The program collects launches. A batch goes to the
device as one, and batches run one after another. Within a batch the device itself begins ready
launches. Its dispatcher begins one after another, some time after the end of their upstream.

Invariant: a launch is in exactly one batch, and batches are in program order. A launch that the
program waits for is in a batch that was handed over.
"""

from __future__ import annotations

from collections import deque

from acs_cl.emu.engine import HOST, Server
from acs_cl.emu.model import Model
from acs_cl.emu.reference.window import Window
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import Entry, Trace


class Batches(Model):
    """Collects batches and runs them one by one. The device's list is the library's own window."""

    edge_ns = 0
    """From the end of a launch to the start of one behind it."""
    node_ns = 0
    """Time between the beginnings of two launches."""
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
        """Until then the program hands a batch over."""
        self.dispatcher = Server(self.engine)

    def cost(self, entry: Entry) -> int:
        takes = self.node_cost(entry)
        return takes + max(0, self.busy_until_ns - self.engine.now)

    def node_cost(self, entry: Entry) -> int:
        """Return the program's time to add a launch to the batch."""
        raise NotImplementedError

    def handing_ns(self, batch: list[Entry]) -> int:
        """Return the program's time to hand a batch over."""
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
            ready += self.held.insert(entry.number, entry.upstream, blocks_on_host=True)
        self.begins(batch)
        for number in ready:
            self.dispatch(number, 0)

    def begins(self, batch: list[Entry]) -> None:
        """Note that a batch is on the device, and none of it has begun."""

    def over(self) -> None:
        """Note that all of the batch on the device has ended."""

    def dispatch(self, number: int, delay_ns: int) -> None:
        """Begin a launch through the dispatcher, after the delay at the earliest."""
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
    """A graph for all launches up to a wait of the program: built, and run once."""

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
    """A CUDA graph that exists already: the program only launches it."""

    name = "cuda_replay"

    def node_cost(self, entry: Entry) -> int:
        return 0
