"""Trials of loops: whether the device drives the rounds of a loop, or the host.

Input: when rounds ended. Output: who drives the next rounds, and how many. On a CPU a scheduler may
run a kernel more slowly than a queue does, and a round that the host drives costs a way to the
device and back. Which of the two counts for more depends on the loop. So both are timed, in turn,
by its own rounds.

A piece is some rounds in a row that one of the two drives. It is timed if another piece of the same
run of the loop ended right before it: then nothing that it has to follow is in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from ..launch.decision import LARGEST
from ..scheduler.ways import Turns, Ways

PIECE_US = 20_000.0
"""What a piece takes at least. In a short run on the device more of the processor's threads may
take part than in a long one."""

MOST_ROUNDS = 32
"""Rounds of a piece at most."""

TURNS = Turns(2, pieces=4, learns=1)
"""With fewer pieces of a turn, one that another program disturbed would end a trial."""

MOST = 64
"""Pieces in a row that could not be timed, after which the device stays: such loops are short."""


class LoopTrial:
    """Times the rounds of a loop, and chooses who drives them."""

    def __init__(self, now_us: Callable[[], float]) -> None:
        self._now_us = now_us
        self._ways = Ways(2, TURNS)
        self._piece = 1
        """Rounds of a piece. It grows before the two take turns."""
        self._grows = True
        self._many = 0
        """Rounds of the present piece so far."""
        self._began_us: float | None = None
        """When the present piece began. None: it is not timed."""
        self._untimed = 0
        self._is_left = False

    @property
    def is_over(self) -> bool:
        """Tell whether it is known who drives it."""
        return self._is_left or self._ways.is_over

    @property
    def by_host(self) -> bool:
        """Tell whether the host drives the next rounds."""
        return not self._is_left and self._ways.way == 1

    @property
    def left(self) -> int:
        """Return how many rounds there may be until it is asked again."""
        return LARGEST if self.is_over else self._piece - self._many

    @property
    def ratio(self) -> float:
        """Return the time of a round by the host divided by that on the device."""
        return self._ways.ratio(1) or 1.0

    def begin(self) -> None:
        """Note that the loop begins. What it has to follow may be in flight."""
        self._many, self._began_us = 0, None

    def had(self, rounds: int) -> None:
        """Note that so many rounds of the present piece have ended, by who was to drive them."""
        self._many += rounds
        if self.is_over or self._many < self._piece:
            return
        now_us, began_us, many = self._now_us(), self._began_us, self._many
        self._many, self._began_us = 0, now_us
        if began_us is None:
            self._untimed += 1
            self._is_left = self._untimed > MOST
            return
        self._untimed = 0
        took_us = now_us - began_us
        if not self._grows:
            self._ways.took(took_us, many)
        elif took_us < PIECE_US and self._piece < MOST_ROUNDS:
            self._piece *= 2
        else:
            self._grows = False
