"""A run that is fed while it goes on: the model beside a program that really runs.

In: launches as the program makes them (`add`), and what it waits for. Out: calls of `began(number)`
and `ended(number)` in the model's order, with the model's time; nothing happens but in calls of
`step` and what is built on it.

The program's own time between two launches is what their entries say (`host_ns`), usually nothing;
while it waits for a launch, its time goes on to the end of that, and a synchronisation more.

Invariant: what was fed in alone decides what comes out, and neither time nor threads of the real
machine do. A launch that is made later never changes what has been.
"""

from __future__ import annotations

from collections.abc import Callable

from acs_cl.emu.policies import model
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import Entry, Trace
from acs_cl.errors import InternalError, UsageError

POLICIES = ("acs_hw", "acs_sw", "serial", "ideal")
"""Those that need to know nothing of launches to come."""


class Live:
    """A policy's run, `text` as in `policies`.

    >>> from acs_cl.emu.machines import MACHINES
    >>> live = Live("acs_hw(N=16, M=16)", MACHINES["paper"], print, lambda number: None)
    >>> live.add(Entry(1, "one", groups=4, items=64, group_ns=9000))
    >>> live.add(Entry(2, "two", groups=4, items=64, group_ns=9000, upstream=(1,)))
    >>> live.wait(2)
    1
    2
    """

    def __init__(
        self,
        text: str,
        machine: Machine,
        began: Callable[[int], None],
        ended: Callable[[int], None],
    ) -> None:
        name = text.partition("(")[0].strip()
        if name not in POLICIES:
            raise UsageError(
                f"a program cannot be run with policy {name!r}: there are {', '.join(POLICIES)}"
            )
        self.entries: list[Entry] = []
        self.model = model(text, Trace("live", self.entries), machine)
        self.model.program.stay()
        self.model.on_begin, self.model.on_end = began, ended
        self.model.program.begin()

    @property
    def now(self) -> int:
        """The model's time, in nanoseconds."""
        return self.model.engine.now

    @property
    def name(self) -> str:
        """The policy, with its numbers."""
        return self.model.name

    def add(self, entry: Entry) -> None:
        """The program makes its next launch."""
        if entry.number != len(self.entries) + 1:
            raise InternalError(f"launch {entry.number} behind {len(self.entries)}")
        self.entries.append(entry)
        self.model.begun.append(0)
        self.model.program.more()

    def has_ended(self, number: int) -> bool:
        """Whether a launch is over."""
        return bool(self.model.program.ended[number])

    def step(self) -> bool:
        """Do the next thing; False if there is none."""
        return self.model.engine.step()

    def catch_up(self) -> None:
        """On to when the program has made all its launches so far, or there is nothing more."""
        while not self.model.program.has_made_all and self.step():
            pass

    def to_next_end(self) -> None:
        """On until one more launch has ended, if any is left."""
        before = self.model.program.unfinished
        while self.model.program.unfinished == before and before and self.step():
            pass

    def wait(self, number: int) -> None:
        """On until a launch has ended; the program has waited for it."""
        self.catch_up()
        if self.has_ended(number):
            return
        while not self.has_ended(number):
            if not self.step():
                raise InternalError(f"launch {number} never ends in {self.name}")
        self.model.program.rest(self.model.wait_ns())
