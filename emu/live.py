"""A run that gets its launches while it goes on: the model beside a real program.

Input: launches as the program makes them (`add`), and its waits. Output: calls of `began(number)`
and `ended(number)` in the model's order, with the model's time. They happen only inside `step` and
methods that call it.

The program's own time between two launches is in their entries (`host_ns`), usually zero. While it
waits for a launch, its time goes on to the end of that, and a synchronisation more.

Invariants: the input alone decides the output; time and threads of the real machine do not. A later
launch never changes the past. A launch is forgotten when it has ended, because a program may run
for days; a byte or two of it stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from acs_cl.emu.policies import model
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import Entry, Trace
from acs_cl.errors import InternalError, UsageError

POLICIES = ("acs_hw", "acs_sw", "serial", "ideal")
"""Policies that do not need to know later launches."""


class Entries(Sequence[Entry]):
    """The launches of a program that goes on, without those that have ended.

    >>> entries = Entries()
    >>> entries.append(Entry(1, "one"))
    >>> entries.append(Entry(2, "two"))
    >>> entries.forget(1)
    >>> len(entries), entries[1].name
    (2, 'two')
    """

    def __init__(self) -> None:
        self._many = 0
        self._left: dict[int, Entry] = {}

    def __len__(self) -> int:
        return self._many

    def __getitem__(self, place: Any) -> Any:
        return self._left[place]

    def append(self, entry: Entry) -> None:
        """Add the next launch."""
        self._left[self._many] = entry
        self._many += 1

    def forget(self, number: int) -> None:
        """Forget a launch that has ended."""
        del self._left[number - 1]


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
        self.entries = Entries()
        self._tell_end = ended
        self.model = model(text, Trace("live", self.entries), machine)
        self.model.program.stay()
        self.model.on_begin, self.model.on_end = began, self._has_ended
        self.model.program.begin()

    @property
    def now(self) -> int:
        """Return the model's time, in nanoseconds."""
        return self.model.engine.now

    @property
    def name(self) -> str:
        """Return the policy, with its numbers."""
        return self.model.name

    def add(self, entry: Entry) -> None:
        """Let the program make its next launch."""
        if entry.number != len(self.entries) + 1:
            raise InternalError(f"launch {entry.number} behind {len(self.entries)}")
        self.entries.append(entry)
        self.model.begun.append(0)
        self.model.program.more()

    def _has_ended(self, number: int) -> None:
        self.entries.forget(number)
        self._tell_end(number)

    def has_ended(self, number: int) -> bool:
        """Tell whether a launch is over."""
        return bool(self.model.program.ended[number])

    def step(self) -> bool:
        """Do the next action. False: there is none."""
        return self.model.engine.step()

    def catch_up(self) -> None:
        """Go on until the program has made all its launches so far, or nothing more happens."""
        while not self.model.program.has_made_all and self.step():
            pass

    def to_next_end(self) -> None:
        """Go on until one more launch has ended, if any is left."""
        before = self.model.program.unfinished
        while self.model.program.unfinished == before and before and self.step():
            pass

    def wait(self, number: int) -> None:
        """Go on until a launch has ended; the program has waited for it."""
        self.catch_up()
        if self.has_ended(number):
            return
        while not self.has_ended(number):
            if not self.step():
                raise InternalError(f"launch {number} never ends in {self.name}")
        self.model.program.rest(self.model.wait_ns())
