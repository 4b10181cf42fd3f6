"""The program's side: a thread that makes launches one after another, and its use of time.

Input: a trace, the cost of a launch under some policy, and whether there is room for one more.
Output: calls of `launched(entry)` at the times at which the calls would return. If the trace says
that the program waits for launches, it waits, and goes on a synchronisation later.

Invariant: launches come in program order, none before the launches it waits for have ended. The
ledger has every nanosecond of the thread until its last launch, under one name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from acs_cl.emu.engine import HOST, Engine
from acs_cl.emu.trace import ALL_BEFORE, Entry


class Program:
    """The program in an engine. `cost` returns the time of a launch's call from now, and books it.
    `pause` is called when the program waits for launches, and at its end."""

    def __init__(
        self,
        engine: Engine,
        entries: Sequence[Entry],
        sync_ns: int,
        ledger: Counter[str],
        cost: Callable[[Entry], int],
        room: Callable[[], bool],
        launched: Callable[[Entry], None],
        pause: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.ended = bytearray(len(entries) + 1)
        self.unfinished = len(entries)
        self._entries, self._ledger, self._sync_ns = entries, ledger, sync_ns
        self._cost, self._room, self._launched, self._pause = cost, room, launched, pause
        self._place = 0
        self._waits: set[int] = set()
        self._drained = 0
        """All launches up to here are known to have ended."""
        self._has_waited = -1
        self._stopped: str | None = None
        self._since = 0
        self._stays = False
        self._rested_until = 0

    @property
    def has_made_all(self) -> bool:
        """Tell whether it has made every launch."""
        return self._place == len(self._entries)

    def stay(self) -> None:
        """Expect more launches after the last one."""
        self._stays = True

    def more(self) -> None:
        """Note that there is one more launch."""
        self.ended.append(0)
        self.unfinished += 1
        if self._stopped == "out of launches":
            self._stopped = None
            self.engine.at(max(self.engine.now, self._rested_until), HOST, self._next, None)

    def rest(self, ns: int) -> None:
        """Make no launch for this time from now."""
        self._rested_until = self.engine.now + ns

    def begin(self) -> None:
        """Make the first launch at time 0."""
        self.engine.at(0, HOST, self._next, None)

    def end(self, number: int) -> None:
        """Note that a launch has ended on the device."""
        self.ended[number] = 1
        self.unfinished -= 1
        if number in self._waits:
            self._waits.discard(number)
            if not self._waits:
                self._go_on(self._sync_ns)

    def poke(self) -> None:
        """Note that there may be room again."""
        if self._stopped == "blocked" and self._room():
            self._go_on(0)

    def _next(self, _: None) -> None:
        if self._place == len(self._entries):
            if self._stays:
                self._stopped = "out of launches"
            else:
                self._pause()
            return
        entry = self._entries[self._place]
        if entry.waits and self._has_waited != self._place:
            self._has_waited = self._place
            self._waits = {number for number in self._awaited(entry) if not self.ended[number]}
            if self._waits:
                self._stop("waiting")
                self._pause()
                return
        if not self._room():
            self._stop("blocked")
            return
        if entry.host_ns:
            self._ledger["program"] += entry.host_ns
        self.engine.after(entry.host_ns, HOST, self._launch, entry)

    def _awaited(self, entry: Entry) -> Iterable[int]:
        if ALL_BEFORE not in entry.waits:
            return entry.waits
        first, self._drained = self._drained + 1, self._place
        return range(first, self._place + 1)

    def _launch(self, entry: Entry) -> None:
        self.engine.at(self.engine.now + self._cost(entry), HOST, self._made, entry)

    def _made(self, entry: Entry) -> None:
        self._place += 1
        self._launched(entry)
        self._next(None)

    def _stop(self, why: str) -> None:
        self._stopped = why
        self._since = self.engine.now

    def _go_on(self, delay_ns: int) -> None:
        assert self._stopped is not None
        self._ledger[self._stopped] += self.engine.now + delay_ns - self._since
        self._stopped = None
        self.engine.at(self.engine.now + delay_ns, HOST, self._next, None)
