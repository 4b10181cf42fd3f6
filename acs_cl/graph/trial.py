"""Trials: whether replays are quicker with more launches in segments, or with none.

Input: the pieces of a graph as the policy of the backend has them, what makes other ones, and when
replays begin. Output: the pieces of the next replay. The policy sends kernels to lanes that take
long, or that fill the device, since a scheduler may run them more slowly. Whether it does depends
on the kernel, and what a launch costs besides depends on the graph. So where it leaves some out of
segments, replays go by the policy, with all launches in segments that a scheduler can run, and
with all on lanes, in turn.

A time is that of the program: from the begin of a replay with nothing in flight until the program
has waited and all has ended. Replays of a program that never waits are not timed, and stay as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import AcsError
from ..scheduler.cutting import Single
from ..scheduler.policy import IN_SCHEDULER, ON_LANES
from ..scheduler.ways import Turns, Ways
from .pieces import Pieces

if TYPE_CHECKING:
    from ..launch.engine import Engine

EACH = 6
"""Replays of the usual way that are timed before others are tried."""

TURNS = Turns(rounds=3, pieces=2, settles=1, learns=1, share=0.5)
"""How the ways take turns. A replay behind one that went another way may take longer than usual."""

FIRST_US = 250_000.0
"""What replays took altogether before other ways are tried. To lay out segments takes some
milliseconds, which short-lived graphs would not make up for."""

OTHERS = IN_SCHEDULER, ON_LANES
"""The ways that are tried beside that of the policy."""

TOLD = {
    IN_SCHEDULER: "all that the scheduler can run is in segments: its replays took {:.2f} of the "
    "time that they took with some launches on lanes",
    ON_LANES: "all launches go to lanes: its replays took {:.2f} of the time that they took with "
    "segments",
}

MOST = 256
"""Replays in a row that could not be timed, after which the first way stays."""


class Trial:
    """Times the replays of a graph, and chooses its pieces. `first`: those by the policy."""

    def __init__(self, engine: Engine, first: Pieces) -> None:
        self._engine = engine
        self.pieces = [first]
        """Of each way; of one, until others are tried and when it is over."""
        self.is_over = False
        self._many, self._us = 0, 0.0
        """Timed replays of the first way so far, and what they took altogether."""
        self._ways: Ways | None = None
        """The ways, while they are tried."""
        self._awaited: Pieces | None = None
        """Pieces of another way whose schedulers are being built."""
        self._untimed = 0
        """Replays since one was timed."""
        self._began_us: float | None = None
        """When the last replay began. None: something else was in flight."""
        self._behind = -1
        """Launches from the last replay to this one. It is timed if there were as many before."""
        self._number = 0

    def begin(self, make: Callable[[int], Pieces]) -> Pieces:
        """Return the pieces for a replay that begins now. `make`: makes those of another way."""
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
        else:
            self._ways.took(took_us)
        return True

    def _choose(self, make: Callable[[int], Pieces]) -> None:
        """Choose the way of the next replay, or end the trial."""
        ways = self._ways
        if ways is None:
            if self._many >= EACH and self._us >= FIRST_US:
                self._try_others(make)
        elif ways.is_over:
            self._end(ways.way)

    @property
    def _way(self) -> int:
        """Return the place of the present way in `pieces`."""
        return 0 if self._ways is None or self.is_over else self._ways.way

    def _try_others(self, make: Callable[[int], Pieces]) -> None:
        """Make the pieces of the other ways, once their schedulers are built. From then on the ways
        take turns. One that has the same launches in segments as another is none."""
        if self._awaited is not None and self._awaited.awaits_builds:
            return
        found = self.pieces[:1]
        for way in OTHERS if _singles(found[0]) else ():
            try:
                made = make(way)
            except AcsError:  # such as no memory for it: the program did not ask for it
                continue
            if made.awaits_builds:
                self._awaited = made
                return
            if all(_singles(made) != _singles(one) for one in found):
                found.append(made)
        self._awaited, self.pieces = None, found
        if len(found) > 1:
            self._ways = Ways(len(found), TURNS)
        else:
            self._end(0)

    def _end(self, way: int) -> None:
        self.is_over = True
        self.pieces = [self.pieces[way]]
        if way and self._ways is not None:
            stays = self.pieces[0]
            stays.why = TOLD[stays.way].format(self._ways.ratio(way))


def _singles(pieces: Pieces) -> int:
    return sum(isinstance(piece, Single) for piece in pieces.all)
