"""Trials: whether replays are quicker with more launches in segments.

Input: the pieces of a graph as the policy of the backend has them, what makes the other ones, and
when replays begin. Output: the pieces of the next replay. On a CPU the policy sends kernels that
take long to lanes, since a scheduler may run them more slowly. Whether it does depends on the
kernel, and what a launch costs besides depends on the graph. So both are timed, in turn.

A time is that of the program: from the begin of a replay with nothing in flight until the program
has waited and all has ended. Replays of a program that never waits are not timed, and stay as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import AcsError
from ..scheduler.cutting import Single
from ..scheduler.ways import Turns, Ways
from .pieces import Pieces

if TYPE_CHECKING:
    from ..launch.engine import Engine

EACH = 6
"""Times of each way."""

FIRST_US = 250_000.0
"""What replays took altogether before the other way is tried. To lay out segments takes some
milliseconds, which short-lived graphs would not make up for."""

MOST = 256
"""Replays in a row that could not be timed, after which the first way stays."""


class Trial:
    """Times the replays of a graph, and chooses its pieces."""

    def __init__(self, engine: Engine, first: Pieces) -> None:
        self._engine = engine
        self.pieces = [first]
        """Of each way; of one, until the other is tried and when it is over."""
        self.is_over = False
        self._many, self._us = 0, 0.0
        """Timed replays of the first way so far, and what they took altogether."""
        self._ways: Ways | None = None
        """The two ways, while both are tried."""
        self._other: Pieces | None = None
        """The pieces of the other way, while schedulers for them are being built."""
        self._skips = False
        """Whether the next time of the other way is left out: that replay is its first."""
        self._untimed = 0
        """Replays since one was timed."""
        self._began_us: float | None = None
        """When the last replay began. None: something else was in flight."""
        self._behind = -1
        """Launches from the last replay to this one. It is timed if there were as many before."""
        self._number = 0

    def begin(self, make: Callable[[], Pieces]) -> Pieces:
        """Return the pieces for a replay that begins now. `make`: makes those of the other way."""
        engine = self._engine
        with engine.lock:
            if len(engine.table):
                engine.pump()
            is_idle = not len(engine.table)
        self._untimed = 0 if self._note(is_idle) else self._untimed + 1
        if self._untimed > MOST:
            self._end(0)
        elif not self.is_over:
            self._choose(make)
        self._began_us = engine.now_us() if is_idle else None
        return self.pieces[self._way]

    def launched(self) -> None:
        """Note that all launches of the replay have been made."""
        self._number = self._engine.number

    def _note(self, is_idle: bool) -> bool:
        """Take the time of the last replay. Return False if it is not known."""
        began_us, waited_us = self._began_us, self._engine.waited_us
        if began_us is None or not is_idle or waited_us <= began_us:
            return False
        behind, self._behind = self._behind, self._engine.number - self._number
        if self._behind != behind:
            return False
        took_us = waited_us - began_us
        if self._ways is None:
            self._many, self._us = self._many + 1, self._us + took_us
        elif self._skips and self._way:
            self._skips = False
        else:
            self._ways.took(took_us)
        return True

    def _choose(self, make: Callable[[], Pieces]) -> None:
        """Choose the way of the next replay, or end the trial."""
        ways = self._ways
        if ways is None:
            if self._many >= EACH and self._us >= FIRST_US:
                self._try_other(make)
        elif ways.is_over:
            self._end(ways.way)

    @property
    def _way(self) -> int:
        """Return the place of the present way in `pieces`."""
        return 0 if self._ways is None or self.is_over else self._ways.way

    def _try_other(self, make: Callable[[], Pieces]) -> None:
        """Make the pieces of the other way, once their schedulers are built. From then on the two
        take turns."""
        if self._other is not None and self._other.awaits_builds:
            return
        try:
            made = make()
        except AcsError:  # such as no memory for a second one: the program did not ask for it
            self._end(0)
            return
        self._other = made if made.awaits_builds else None
        if self._other is not None:
            return
        if _singles(made) >= _singles(self.pieces[0]):
            self._end(0)
            return
        self.pieces.append(made)
        self._ways, self._skips = Ways(2, Turns(EACH)), True

    def _end(self, way: int) -> None:
        self.is_over = True
        self.pieces = [self.pieces[way]]
        if way and self._ways is not None:
            self.pieces[0].why = (
                "all that the scheduler can run is in segments: its replays took "
                f"{self._ways.ratio(way):.2f} of the time that they took with long kernels on lanes"
            )


def _singles(pieces: Pieces) -> int:
    return sum(isinstance(piece, Single) for piece in pieces.all)
