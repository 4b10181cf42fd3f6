"""Bypass: commands go unchanged to the driver's queue where their launches do not overlap.

A launch costs the host several times as much as the driver's own enqueue. That cost is lost if each
command needs the one before it. It is also lost if the device keeps up with the host, so that
nothing waits. So the queues of a runtime sample their launches, all of them together. They sample
again later, so seldom that samples take at most one part in `REST` of the time, and less as long as
nothing overlaps.

Input: the upstream of launches (the core's `Sample`), and how far the device is behind (`Bypass`).
Output: whether the next commands are tracked, or bypass the runtime in one in-order queue of the
driver (`members` has which).

Invariant: commands in bypass run behind everything that the runtime had before them. To the runtime
they are one launch that touches all memory, entered before any that comes later.
"""

from __future__ import annotations

from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING

import pyopencl as cl
from pyopencl import _cl

from .. import core
from ..devices.driver import Events
from .calls import Call, Original, marker_call
from .commands import EVERYTHING, NOTHING
from .members import Candidate, Members
from .trials import Trials

if TYPE_CHECKING:
    from ..launch.engine import Engine

SAMPLED = 32
"""Launches of a sample."""

STRETCH = 64
"""Commands of a stretch at least: to measure one costs the host about as much as a kernel."""

AGAIN = 8
"""Launches after which a bypass goes on that other code ended."""

ENOUGH = 1.25
"""Parallelism from which on commands stay tracked: launches divided by the length of their longest
chain."""

SATISFIED = 2048
"""Launches until the next sample if they overlap."""

FOR_GOOD = 1 << 30
"""The same where overlap does not show the gain, because the scheduler on the device makes launches
cheaper than the driver does."""

REST, LONGEST_S = 100, 1.0
"""A sample is not repeated for this many times the time that it took, and twice that after each one
in vain, up to `LONGEST_S`. A sample costs more than its own clock shows: on PoCL a program lost 0.7
ms by one of 0.4 ms. Launches on another queue wake threads, and the bypass has to end and begin
again."""

LONGEST_REST = 1 << 20
"""The factor doubles up to here. A sample of a microsecond then rests for the longest time already,
and a program that never overlaps may run for weeks."""

GAINS = 32
"""Commands that make up for the begin and the end of a bypass. After fewer, the launches until the
next bypass double. If other code ended it, the two could have overlapped: another thread, the
runtime, or a queue that takes no part. Then it takes `SATISFIED` commands to make up for that."""

MOST_DOUBLED = 8

BEHIND = 16
"""Kernels in flight from which on the device does not keep up."""

_MARK = _cl._enqueue_marker_with_wait_list
_BARRIER = _cl._enqueue_barrier_with_wait_list


class BypassedCommands(Call):
    """Is the one launch that the runtime sees of commands in bypass. `began_ns`: when it began, on
    the host's clock. `passed`: its commands."""

    __slots__ = ("began_ns", "passed")

    def __init__(self, function: Original, began_ns: int, passed: int) -> None:
        super().__init__("bypass", function, {}, True)
        self.began_ns, self.passed = began_ns, passed


class Bypass(Members):
    """Lets the commands of a runtime's queues bypass it. Open: there may be some that the runtime
    has not seen. Takes more: the next commands may join them."""

    def __init__(
        self, first: cl.CommandQueue, pointer: int, keeps_times: bool, by_overlap: bool
    ) -> None:
        apart = int(BEHIND * (1 - 1 / max(ENOUGH, 1)))
        super().__init__(first, pointer, keeps_times, BEHIND, apart)
        self.trials = Trials(both=not by_overlap)
        self.least_commands = STRETCH
        self._by_overlap = by_overlap
        self.open = False
        self.pauses = False
        """Whether it takes more as soon as something is done that no finalizer can do."""
        self.sample = core.native.Sample()
        self.wanted = SAMPLED
        self.satisfied = 0 if by_overlap else FOR_GOOD
        self._resumes = False
        """Whether the next bypass continues one whose sample, not long ago, found no overlap."""
        self.goes_on = False
        """Whether it should go on once nothing is in flight. Then that costs nothing, while behind
        launches it takes a marker and a barrier."""
        self._in_vain = 0
        """How often in a row a bypass gained less than it cost."""
        self._rest = REST

    def wants(self, number: int, engine: Engine) -> bool:
        """Tell whether the commands after this launch should bypass the runtime."""
        sample = self.sample
        if self.satisfied:  # they overlap, so the next sample is later
            self.satisfied -= 1
            return False
        if not sample.many:
            self.began = perf_counter()
        with engine.lock:
            engine.pump()  # otherwise launches that have ended would sample like overlap
            launch = engine.table.launch(number)
            sample.note(number, launch.upstream if launch is not None else (), engine.table)
        return sample.many >= self.wanted and self.decides()

    def sample_anew(self) -> None:
        """Start the sample and the stretch again, because the launches so far do not count."""
        self.sample = core.native.Sample()
        self.is_mixed = True

    def prefers_bypass(self) -> bool | None:
        """Tell whether the next commands should bypass the runtime, by the times so far. None: no
        change. Called when the host has waited for results."""
        stretch = self.take_stretch()
        return None if stretch is None else self.trials.stretch(self.takes_more, *stretch)

    def stay_in_bypass(self) -> None:
        """Let the next commands bypass the runtime, however far the device is behind."""
        self.rest(LONGEST_S if self._by_overlap else FOR_GOOD)

    def rest(self, seconds: float) -> None:
        self.rests_until = perf_counter() + seconds

    def stay_tracked(self) -> None:
        """Track the next commands."""
        self.rest(0)
        self.satisfied = SATISFIED if self._by_overlap else FOR_GOOD
        self.pauses = self.takes_more = False

    def decides(self) -> bool:
        """Tell whether the next commands should bypass the runtime, after a complete sample."""
        sample, self.sample = self.sample, core.native.Sample()
        if self._resumes:
            return True
        if sample.overlap >= ENOUGH:
            self.satisfied, self.wanted = SATISFIED, SAMPLED
            self._rest = REST
            self._in_vain = 0
            self.trials.overlaps(sample.overlap)
            return False
        self.rest(min(LONGEST_S, self._rest * (perf_counter() - self.began)))
        self._rest = min(2 * self._rest, LONGEST_REST)
        return True

    # ---- begin and end ---------------------------------------------------------------------------

    def begin(self, engine: Engine, first: Candidate, number: int) -> None:
        """Start the bypass if that is possible. `first`: the queue whose command is the newest, by
        its number. Called under the runtime's lock."""
        live = tuple(engine.table.live())
        are_ours = self.has_all(set(map(engine.table.queue_of, live)))
        if not (are_ours and may_begin(engine) and self.gather(first)):
            self.refuse()
            return
        if live:
            mark = engine.launch(marker_call(), NOTHING, after=live)
            engine.table.assign(mark.number, number, True)
            _BARRIER(self.native, [engine.event(mark.number)])
        engine.bypasses.append(self)
        engine.table.bypassing(1)
        if engine.tracer is not None:
            engine.tracer.forget_times()  # nobody can tell the program's times in bypass
        self._began_ns = perf_counter_ns()
        self.passed = 0
        self.goes_on = False
        self.sample = core.native.Sample()  # the next one is of launches behind this bypass
        self.open = self.takes_more = True

    def refuse(self) -> None:
        """Note that a bypass was wanted and is not possible. The obstacle may last."""
        self._in_vain += 1
        self.trials.refused()
        self.satisfied = self._patience(SAMPLED) if self._by_overlap else FOR_GOOD

    def _patience(self, launches: int) -> int:
        return min(SATISFIED, launches << min(self._in_vain, MOST_DOUBLED))

    def end(self, engine: Engine, by_own: bool) -> None:
        """End the bypass, with the lock held. `by_own`: a command of its queues and of its thread
        ends it."""
        engine.bypasses.remove(self)
        engine.table.bypassing(-1)
        with self.lock:
            has_ended, shares = self.has_ended, self.shares()
            self.open = self.takes_more = self.pauses = False
            gains = self.passed >= (GAINS if by_own else SATISFIED)
            self._in_vain = 0 if gains else self._in_vain + 1
            self._resumes = perf_counter() <= self.rests_until
            self.goes_on = by_own and gains and self._resumes
            self.wanted = self._patience(AGAIN if self._resumes else SAMPLED)
            if not self.passed:
                return
            if has_ended and engine.tracer is None:  # nothing has to follow it
                engine.counts.bypassed += self.passed
                return
            last = _MARK(self.native, None)
            self.native.flush()
        engine.counts.bypassed += self.passed

        def behind(queue: cl.CommandQueue, wait_for: Events) -> cl.Event:
            return _MARK(queue, [*(wait_for or ()), last])

        last_call = BypassedCommands(behind, self._began_ns, self.passed)
        number = engine.launch(last_call, EVERYTHING).number
        for share in shares:  # each queue waits for its own launches, so each has one
            engine.table.assign(number, share, True)
            if share != shares[-1]:
                number = engine.launch(marker_call(), NOTHING).number


def may_begin(engine: Engine) -> bool:
    """Tell whether a bypass may start: nothing needs to see each launch. Called under the runtime's
    lock."""
    return not (
        engine.state
        or engine.bypasses
        or engine.recorders
        or engine.foreign
        or engine.table.has_stand_ins
        or engine.failures.any
        or engine.table.held
        or engine.host_tasks.busy
        or engine.measuring is not None
        or engine.checker is not None
    )


def is_free(engine: Engine) -> bool:
    """Tell whether the program leaves it to the runtime when its launches run."""
    asked = engine.options
    return (
        asked.issue == "eager" and asked.window is None and asked.lanes is None and not asked.check
    )
