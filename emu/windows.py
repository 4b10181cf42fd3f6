"""The paper's two policies: ACS-SW, a window with threads on the host, and ACS-HW, the window unit.

Input: a trace, a machine, N, and the threads or M. Output: runs.

ACS-SW: the program puts launches into a queue. One thread takes them, checks each against the
window under its lock and enters it. Each of the other threads has a stream. It takes a ready
launch, sends it, waits for its end, and takes it out under the lock. The window is the library's
own, in which every launch holds its dependants until it is done.

ACS-HW: the program checks a launch against the last M that it sent, ended or not, and sends it with
the result. `window_unit` on the device does the rest. The unit does one thing at a time.

Invariant: both find only edges to launches that may be unfinished, and no launch begins too early.
"""

from __future__ import annotations

from collections import deque

from acs_cl.emu.engine import END, HOST, ISSUE, Server
from acs_cl.emu.model import Model
from acs_cl.emu.reference.window import Window
from acs_cl.emu.spec import Machine, WindowSpec, check_ns
from acs_cl.emu.trace import Entry, Trace
from acs_cl.emu.window_unit import StaleList, WindowUnit
from acs_cl.errors import UsageError

SEGMENTS = 6  # of a launch whose trace does not tell; the smaller of the paper's two values


class AcsSw(Model):
    """ACS-SW with a window of N, and threads that have a stream each."""

    def __init__(
        self, trace: Trace, machine: Machine, slots: int, threads: int, log: bool = False
    ) -> None:
        if slots < 1 or threads < 1:
            raise UsageError(f"ACS-SW needs a slot and a thread, got {slots} and {threads}")
        super().__init__(trace, machine, log)
        self.name = f"acs_sw(N={slots}, threads={threads})"
        self.slots = slots
        self.inside = Window(slots)
        self.fifo: deque[Entry] = deque()
        self.entering = False
        self.lock = Server(self.engine)
        self.ready: deque[int] = deque()
        self.idle = threads

    def cost(self, entry: Entry) -> int:
        return 0  # the paper gives no cost of its queue

    def room(self) -> bool:
        return len(self.fifo) < self.host.queue_depth

    def launched(self, entry: Entry) -> None:
        self.fifo.append(entry)
        self._look()

    def _look(self) -> None:
        """Let the entering thread take the first in line, if the window has room."""
        if self.entering or not self.fifo or len(self.inside) >= self.slots:
            return
        self.entering = True
        entry = self.fifo.popleft()
        check = check_ns(self.host, len(self.inside), entry.segments or SEGMENTS)
        until = self.lock.serve(check)
        self.book("lock", until - self.engine.now - check)
        self.book("check", check)
        self.engine.at(until, HOST, self._enter, entry)

    def _enter(self, entry: Entry) -> None:
        self.entering = False
        self.window.add(1)
        self.ready.extend(self.inside.insert(entry.number, entry.upstream, blocks_on_host=True))
        self._work()
        self._look()
        self.program.poke()

    def _work(self) -> None:
        """Let idle threads take ready launches."""
        while self.idle and self.ready:
            self.idle -= 1
            takes = self.book("launch", self.host.launch_ns) + self.host.latency_ns
            self.begin_in(takes, self.ready.popleft())

    def ended(self, number: int) -> None:
        """Let the thread that waits for the launch see its end, and then take the lock."""
        self.engine.after(self.book("sync", self.host.sync_ns), HOST, self._lock, number)

    def _lock(self, number: int) -> None:
        self.book("update", self.host.update_ns)
        until = self.lock.serve(self.host.update_ns)
        self.engine.after(until - self.engine.now, HOST, self._update, number)

    def _update(self, number: int) -> None:
        self.ready.extend(self.inside.done(number))
        self.window.add(-1)
        self.idle += 1
        self.end_ns = self.engine.now
        self._work()
        self._look()


class AcsHw(Model):
    """ACS-HW with a window of N on the device and a stale list of M on the host."""

    def __init__(
        self,
        trace: Trace,
        machine: Machine,
        slots: int,
        distance: int,
        id_bits: int = 8,
        log: bool = False,
    ) -> None:
        super().__init__(trace, machine, log)
        bits = "" if id_bits == WindowSpec().id_bits else f", bits={id_bits}"
        self.name = f"acs_hw(N={slots}, M={distance}{bits})"
        spec = machine.window._replace(slots=slots, distance=distance, id_bits=id_bits)
        self.unit = self.make_unit(spec)
        self.stale = StaleList(distance)
        self.fifo: deque[tuple[int, list[int]]] = deque()
        self.port = Server(self.engine)
        self.inserting = False

    def make_unit(self, spec: WindowSpec) -> WindowUnit:
        """Return the circuit; tests break it on purpose."""
        return WindowUnit(spec)

    def cost(self, entry: Entry) -> int:
        check = check_ns(self.host, len(self.stale), entry.segments or SEGMENTS)
        return self.book("check", check) + self.book("launch", self.host.launch_ns)

    def room(self) -> bool:
        return len(self.fifo) < self.host.queue_depth

    def launched(self, entry: Entry) -> None:
        known = self.stale.send(entry.number, entry.upstream)
        self.engine.after(self.host.latency_ns, HOST, self._arrive, (entry.number, known))

    def _arrive(self, sent: tuple[int, list[int]]) -> None:
        self.fifo.append(sent)
        self._load()

    def _load(self) -> None:
        """Load the first in line, if it may enter: the upstream-load module."""
        if self.inserting or not self.fifo or not self.unit.admits(self.fifo[0][0]):
            return
        self.inserting = True
        takes = self.unit.insert_ns
        self.book("insert (window)", takes)
        until = self.port.serve(takes)
        self.engine.at(until, ISSUE, self._insert, self.fifo.popleft())

    def _insert(self, sent: tuple[int, list[int]]) -> None:
        self.inserting = False
        self.window.add(1)
        if self.unit.insert(*sent):
            self.begin(sent[0])
        self._load()
        self.program.poke()

    def ended(self, number: int) -> None:
        self.book("update (window)", self.unit.update_ns)
        until = self.port.serve(self.unit.update_ns)
        self.engine.after(until - self.engine.now, END, self._complete, number)

    def _complete(self, number: int) -> None:
        self.window.add(-1)
        for ready in self.unit.complete(number):
            self.begin(ready)
        self._load()
