"""Steps: what a program launches between two waits, tried in other ways than by the rules.

Input: how long each step took, and how many launches it had. Output: the way of the next step. The
rules of `policy` know how long kernels take on lanes, and how long their epochs took. On a CPU that
does not tell which is quicker: a scheduler runs some kernels as fast as a queue does, and others by
a third more slowly, and what else a launch costs depends on the program. So where a program repeats
its steps, they are tried as the rules say, with everything in the scheduler, and with everything on
lanes. The quickest way stays for a while.

On a GPU the rules are right about what goes to the scheduler: a launch on lanes costs the host
several times as much. What they keep on lanes is tried in the scheduler, and nothing else.

A step lasts until the program has waited and nothing is in flight, and begins when the last one
ended. So what the program does itself counts, in each way alike. Waits are `wait`, `finish` and
`get`, and on an `acs.Queue` blocking commands and waits for events, too. What is in bypass there is
of no step. A program that never waits keeps the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .policy import AS_RULED, IN_SCHEDULER, ON_LANES, Choice
from .ways import Turns, Ways

if TYPE_CHECKING:
    from .builds import Schedulers

BY_RULES = "by the rules"
TOLD = BY_RULES, "all in the scheduler", "all on lanes"

FIRST_US = 500_000.0
"""What steps took altogether before other ways are tried. A short-lived program would not make up
for builds, nor for turns in a slower way."""

TURNS = Turns(rounds=2, pieces=12, us=10_000.0, settles=2, learns=8, least=3)
"""A change of the way forgets all plans, and epochs are foreseen when they have come some times. On
PoCL 3.0 steps of a thousand launches had their least time from the ninth on, and when the same way
came again, from the second on. Twelve steps hold the same of each kind that comes every second,
third, fourth or sixth time."""

FEW_IN_STEP = 2
"""Launches of a step on a GPU, at least. There a scheduler may gain by two of them that lose time
for the device's memory: where a tile of the second one follows one of the first, what it reads is
in the cache still."""

MOST = 512
"""Steps for which builds are waited for."""

RESTS = 32
"""A choice holds for so many times as long as it took to find, and each time twice as long, since
programs change."""


class Steps:
    """Times the steps of a program, and tells its choice the way."""

    def __init__(self, choice: Choice, schedulers: Schedulers) -> None:
        self._choice = choice
        self._schedulers = schedulers
        self._ways: Ways | None = None
        """While they are tried."""
        self._tried: list[int] = []
        """Which ways these are."""
        self._rests_us, self._rests = FIRST_US, RESTS
        """How long the present choice holds."""
        self._lasted_us = 0.0
        """How long the trial has lasted."""
        self._tasks = 0
        """Tasks of epochs before the last step."""
        self._held_up = 0
        """Steps in a row of which none was timed, since kernels were being built."""

    def ended(self, us: float, launches: int, tasks: int) -> bool:
        """Take a step. `tasks`: of all epochs so far. Tell whether the next step goes another
        way."""
        is_used, self._tasks = tasks != self._tasks, tasks
        before = self._choice.way
        if self._ways is None:
            self._rests_us -= us
            if self._rests_us <= 0 and not self._schedulers.has_work:
                self._begin(is_used)
        else:
            self._lasted_us += us
            self._time(self._ways, us, launches)
        return self._choice.way != before

    def _begin(self, is_used: bool) -> None:
        """Begin to try ways. `is_used`: the scheduler had launches of the last step."""
        choice = self._choice
        self._tried, on_gpu = [AS_RULED], not choice.on_cpu
        if choice.has_refused or choice.way == IN_SCHEDULER or (on_gpu and not is_used):
            self._tried.append(IN_SCHEDULER)
        if (is_used or choice.way != AS_RULED) and not on_gpu:
            self._tried.append(ON_LANES)
        choice.way, choice.gained, self._lasted_us, self._held_up = AS_RULED, None, 0.0, 0
        self._ways = Ways(len(self._tried), TURNS)
        if self._ways.is_over:
            self._end(self._ways)

    def _time(self, ways: Ways, us: float, launches: int) -> None:
        """Take the time of a step, unless kernels are being built. These are waited for in the
        usual way, since until then the other one has them on lanes, and slows builds down."""
        choice, builds = self._choice, self._schedulers.has_work
        if builds:
            self._held_up += 1
            if self._held_up > MOST:
                ways.give_up()
                self._held_up = 0
        elif choice.way == self._tried[ways.way]:
            self._held_up = 0
            ways.took(us, launches, _kind(launches))
        choice.way = AS_RULED if builds else self._tried[ways.way]
        if ways.is_over:
            self._end(ways)

    def _end(self, ways: Ways) -> None:
        self._choice.gained = ways.ratio(ways.way)
        self._rests_us = max(FIRST_US, self._rests * self._lasted_us)
        self._rests *= 2
        self._ways = None

    @property
    def told(self) -> str:
        """Say which way launches go, and whether others are being tried."""
        tried = "tried: " if self._ways is not None else ""
        return tried + TOLD[self._choice.way]


def _kind(launches: int) -> int:
    """Return a number that steps share whose launches differ by less than a quarter."""
    shift = max(0, launches.bit_length() - 3)
    return launches >> shift | shift << 3
