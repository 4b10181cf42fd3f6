"""Straight: commands that go to the driver's own queue as they are, where nothing overlaps.

In: what the launches of a queue followed (the core's `Look`), and how far the device is behind
(`Section`). Out: whether the next commands are launches, or one section, which the driver's
in-order queue has.

A launch costs the host several times what the driver's own enqueue does. That is lost where each
command needs the one before it, and where the device keeps up with the host, so that nothing waits
for anything. Whether there is more to gain is looked at again, seldom enough that looking takes no
more than one part in `REST` of the time, and less the longer nothing is found.

Invariant: a section is behind all that its runtime had before it, and to the runtime it is one
launch that touches all memory, entered before any that comes later.
"""

from __future__ import annotations

from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING

import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..devices.driver import Events
from .calls import Call, Original
from .commands import EVERYTHING, NOTHING
from .trials import Trials

if TYPE_CHECKING:
    from ..launch.engine import Engine

LOOKED = 32
"""Launches after which it is known whether they overlap."""

STRETCH = 64
"""Commands in a stretch, at least: to look at one costs the host about what a kernel does."""

AGAIN = 8
"""Launches after which a section goes on that something else ended."""

ENOUGH = 1.25
"""Launches for each step of the longest chain among them, from which on they stay launches."""

SATISFIED = 2048
"""Launches until the next look where they do overlap."""

FOR_GOOD = 1 << 30
"""As many where overlap does not say what a launch gains, since launches on the device's own
scheduler cost less than the driver's."""

REST, LONGEST_S = 100, 1.0
"""How often as long as a look has taken it is not repeated, twice that after the second in vain and
so on, and the longest time. A look costs more than its own clock shows: on PoCL a program lost 0.7
ms by one of 0.4 ms, since launches on another queue wake threads, and the section has to end and to
begin again."""

LONGEST_REST = 1 << 20
"""The factor doubles up to here. A look of a microsecond then already rests for the longest time,
and a program that never overlaps may run for weeks."""

GAINS = 32
"""Commands of a section that make up for its begin and its end. After fewer, launches until the
next section are twice as many, and so on. Where another queue's command ended it, the two could
have overlapped, and it takes `SATISFIED` commands to make up for that."""

MOST_DOUBLED = 8

BEHIND = 16
"""Kernels in flight from which on the device does not keep up."""

_MARK = _cl._enqueue_marker_with_wait_list
_BARRIER = _cl._enqueue_barrier_with_wait_list


class Straight(Call):
    """What a section is to the runtime: one launch. `began_ns`: when it began, on the host's clock;
    `passed`: commands in it."""

    __slots__ = ("began_ns", "passed")

    def __init__(self, function: Original, began_ns: int, passed: int) -> None:
        super().__init__("straight", function, {}, True)
        self.began_ns, self.passed = began_ns, passed


class Section(core.native.Passing):
    """Commands of one queue that the driver has as they came. Open: there may be some that the
    runtime knows nothing of. Passing: the next ones may join them."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        engine: Engine,
        pointer: int,
        number: int,
        by_overlap: bool,
    ) -> None:
        super().__init__(queue, engine, pointer, BEHIND)
        self.trials = Trials(both=not by_overlap)
        self.least_commands = STRETCH
        self._by_overlap = by_overlap
        self.native = _cl.CommandQueue.from_int_ptr(pointer, True)
        self._number = number
        self.open = False
        self.look = core.native.Look()
        self.wanted = LOOKED
        self.satisfied = 0 if by_overlap else FOR_GOOD
        self._goes_on = False
        """Not long ago, launches were looked at and did not overlap."""
        self._in_vain = 0
        """Sections in a row that did not gain what they cost."""
        self._rest = REST

    def wants(self, number: int, engine: Engine) -> bool:
        """Whether the commands after this launch had better pass."""
        look = self.look
        if self.satisfied:  # they overlap, and are looked at again later
            self.satisfied -= 1
            return False
        if not look.many:
            self.began = perf_counter()
        with engine.lock:
            engine.pump()  # or what has ended would count as in flight, and look like overlap
            launch = engine.table.launch(number)
            look.note(number, launch.upstream if launch is not None else (), engine.table)
        return look.many >= self.wanted and self.decides()

    def look_anew(self) -> None:
        """What launches so far have followed, and how long they took, says nothing."""
        self.look = core.native.Look()
        self.spoil_stretch()

    def prefers_bypass(self) -> bool | None:
        """The host has waited for results: whether the next commands had better pass, by the times
        of those so far. None: as they do."""
        stretch = self.take_stretch()
        return None if stretch is None else self.trials.stretch(self.passing, *stretch)

    def stay_in_bypass(self) -> None:
        """The next commands pass however far the device is behind."""
        self.rest(LONGEST_S if self._by_overlap else FOR_GOOD)

    def stay_tracked(self) -> None:
        """The next commands are launches."""
        self.rest(0)
        self.satisfied = SATISFIED if self._by_overlap else FOR_GOOD
        self.passing = False

    def decides(self) -> bool:
        """Enough launches were looked at: whether the commands after them had better pass."""
        look, self.look = self.look, core.native.Look()
        if self._goes_on:
            return True
        if look.overlap >= ENOUGH:
            self.satisfied, self.wanted = SATISFIED, LOOKED
            self._rest = REST
            self._in_vain = 0
            self.trials.overlaps(look.overlap)
            return False
        self.rest(min(LONGEST_S, self._rest * (perf_counter() - self.began)))
        self._rest = min(2 * self._rest, LONGEST_REST)
        return True

    # ---- passing ---------------------------------------------------------------------------------

    def begin(self, engine: Engine) -> None:
        """From here on commands pass. Called under the runtime's lock, and with nothing held."""
        live = tuple(engine.table.live())
        if live:
            mark = engine.launch(Call("marker", _MARK, {}, True), NOTHING, after=live)
            engine.table.assign(mark.number, self._number, True)
            _BARRIER(self.native, [engine.event(mark.number)])
        engine.sections.append(self)
        engine.table.bypassing(1)
        if engine.tracer is not None:
            engine.tracer.forget_times()  # of what passes, nobody tells the program's time
        self._began_ns = perf_counter_ns()
        self.passed = 0
        self.open = self.passing = True

    def refuse(self) -> None:
        """Commands had better pass, and may not: whatever is in the way may last."""
        self._in_vain += 1
        self.trials.refused()
        self.satisfied = self._patience(LOOKED) if self._by_overlap else FOR_GOOD

    def _patience(self, launches: int) -> int:
        return min(SATISFIED, launches << min(self._in_vain, MOST_DOUBLED))

    def end(self, engine: Engine, by_own: bool) -> None:
        """They do not any more. Called under the runtime's lock. `by_own`: a command of this queue
        ends it."""
        engine.sections.remove(self)
        engine.table.bypassing(-1)
        with self.lock:
            self.open = self.passing = False
            gains = self.passed >= (GAINS if by_own else SATISFIED)
            self._in_vain = 0 if gains else self._in_vain + 1
            self._goes_on = self.rests
            self.wanted = self._patience(AGAIN if self._goes_on else LOOKED)
            if not self.passed:
                return
            last = _MARK(self.native, None)
            self.native.flush()
        engine.counts.straight += self.passed

        def behind(queue: cl.CommandQueue, wait_for: Events) -> cl.Event:
            return _MARK(queue, [*(wait_for or ()), last])

        last_call = Straight(behind, self._began_ns, self.passed)
        handle = engine.launch(last_call, EVERYTHING)
        engine.table.assign(handle.number, self._number, True)


def may_begin(engine: Engine) -> bool:
    """Whether nobody has to see the launches one by one. Called under the runtime's lock."""
    return not (
        engine.state
        or engine.sections
        or engine.recorders
        or engine.gates
        or engine.table.has_stand_ins
        or engine.failures.any
        or engine.table.held
        or engine.host_tasks.busy
        or engine.measuring is not None
        or engine.checker is not None
    )


def is_free(engine: Engine) -> bool:
    """Whether the program leaves it to the runtime when its launches run."""
    asked = engine.options
    return (
        asked.issue == "eager" and asked.window is None and asked.lanes is None and not asked.check
    )
