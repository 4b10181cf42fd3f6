"""Builds: which kernels are in schedulers, and a thread that builds them while the program runs.

Input: kernels that the program launches. Output: their bodies in a scheduler that is ready, or the
reason why there is none yet or ever. A thread builds them (`maker`) while these kernels run on
lanes. It takes everything that was asked for meanwhile at once.

Invariants: asking never waits. Waiting for a scheduler ends after `PATIENCE_S`, because some
compilers never end on some kernels; these run on lanes. A scheduler in use never changes: a new one
takes its place, and epochs keep the one that they were recorded for. A refusal is final.
"""

# Long because: who is in which scheduler, and why, is one question.

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import closing
from math import inf
from time import perf_counter
from typing import TypeAlias

from .. import core
from ..devices.driver import Origin
from ..devices.facts import CannotParse
from ..errors import AcsError
from ..host import isolated, threads
from ..host.output import say
from ..opencl_c.functions.translated import CannotTranslate
from .built import Facts, Scheduler
from .kept_sets import Launched
from .kernel_sets import KernelSet, KernelSets, Options
from .maker import Maker
from .task import Body, Unfit

LONG_BUILD_S = 20.0
"""A scheduler that took this long to build takes no more kernels. So a slower compiler than those
measured gets smaller schedulers."""

ENOUGH_GROUPS = 2
"""Groups that run at the same time on each compute unit, from which on a scheduler loses nothing by
having fewer than before. With two instead of six it ran rigid bodies on an H200 three to four times
as fast as lanes did."""

GRAPH_S = 10.0
"""How long a graph waits for its schedulers. Its replays go to lanes until they are built."""

BATCH_S = 0.003
"""How long a build waits for more kernels to be asked for."""

PATIENCE_S = isolated.PATIENCE_S
"""How long one scheduler is waited for, whether a process or a thread builds it."""

IDLE_S = 5.0
"""How long the building thread stays without work."""

SAY_S, NAMED = 10.0, 4
"""When a wait for a build says so on stderr, and how many kernels it names."""

TICK_S = 0.1
"""How often a wait for a build checks whether it takes too long."""


Asked: TypeAlias = tuple[Origin, int]
"""A kernel, and the work-items of its groups."""


def _too_late() -> str:
    return f"its scheduler was not built within {PATIENCE_S:g} s"


class Schedulers:
    """Holds all schedulers of a runtime."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker
        self._times = maker.timed
        self._untimed: dict[Scheduler, str] = {}
        """Schedulers without a timed form, and the reason."""
        self._lock = core.native.Lock()
        self.tiled_group = maker.tiled_group
        self._sets = KernelSets(maker.loops)
        self.launched = Launched(maker.device, maker.tier)
        self._keeps = False
        """Whether nobody waits for the present builds, so that sets become what they were."""
        self._reasons: dict[Origin | tuple[Origin, int], str] = {}
        """Of kernels, or of kernels in groups of a size."""
        self._asked: dict[tuple[Origin, int], None] = {}
        self._pending: set[tuple[Origin, int]] = set()
        """What was asked for and is neither built nor refused."""
        self._looked_up: dict[tuple[Origin, int, Options], None] | None = None
        """While launches are watched: kernels that were looked up, with group size and options."""
        self._gathered: list[tuple[Origin, int, Options]] = []
        """Kernels that are to be in one scheduler."""
        self._thread: threading.Thread | None = None
        self._closed = False
        self.builds = 0
        """How many schedulers were put to use."""

    # ---- asking --------------------------------------------------------------------------------

    def find(self, origin: Origin, group: int, why: str = "") -> tuple[Scheduler, Body]:
        """Return the scheduler that runs a kernel, and the body there. `group`: work-items of a
        group, where that matters. `why`: do not ask for a build, and give this reason. Raises
        `Unfit`."""
        reason = self.reason(origin, group)
        if reason is not None:
            raise Unfit(reason)
        translated = self.maker.translated.get(origin)
        if translated is not None:
            function, _, options = translated
            if not function.tiled and group < 1:
                raise Unfit("it works in groups and no local size was given")
            size = self.tiled_group if function.tiled else group
            for found in self._sets.bodies(origin, options, size):
                if self._looked_up is not None:
                    self._looked_up[origin, size, options] = None
                return found
        if (origin, group) not in self._pending:
            self.launched.see(origin)
            if why:
                raise Unfit(why)
            self.ask(origin, group)
            if (origin, group) not in self._pending:
                raise Unfit("no thread can start that would build its scheduler")
        raise Unfit(_too_late() if self.is_late else "its scheduler is not built yet")

    def homes(self, origin: Origin, group: int) -> list[tuple[Scheduler, Body]]:
        """Return all schedulers that run a kernel in groups of `group` work-items, the one of
        `find` first. Raises `Unfit`."""
        first = self.find(origin, group)
        function, _, options = self.maker.translated[origin]
        found = self._sets.bodies(origin, options, None if function.tiled else group)
        return [first, *(one for one in found if one[0] is not first[0])]

    def may_share(self, origin: Origin, home: Scheduler, other: Scheduler) -> bool:
        """Tell whether a kernel that `home` runs may as well run in `other`. The groups there have
        the same size, or the kernel may be cut anywhere. At least half of its work-items have to
        run there at one time. A kernel whose group is one work-item does not go to larger groups:
        tasks take some 20 us longer there, with PoCL 3.0."""
        if origin not in other.bodies or other not in self.built():
            return False
        here, there = home.limits, other.limits
        is_cut_anywhere = not self.maker.loops and other.bodies[origin].function.tiled
        if here.group != there.group and not is_cut_anywhere:
            return False
        return 2 * there.groups * there.group >= here.groups * here.group

    def watch(self) -> None:
        """Note the kernels that are looked up from now on."""
        self._looked_up = {}

    def gather(self) -> None:
        """Have the kernels looked up since `watch` brought into one scheduler for each group
        size."""
        with self._lock:
            found, self._looked_up = self._looked_up, None
            if found and not self._closed:
                self._gathered = list(found)
                self._start()

    def ask(self, origin: Origin, group: int) -> None:
        """Have a kernel built into a scheduler, at some time, unless one has it."""
        with self._lock:
            if not (self.reason(origin, group) or self._has(origin, group)):
                self._ask(origin, group)

    def _has(self, origin: Origin, group: int) -> bool:
        """Tell whether a scheduler has a kernel, or there is nothing to build before a launch tells
        its group size."""
        if origin not in self.maker.translated:
            return False
        function, _, options = self.maker.translated[origin]
        if not function.tiled and group < 1:
            return True
        size = self.tiled_group if function.tiled else group
        return bool(self._sets.bodies(origin, options, size))

    def _ask(self, origin: Origin, group: int) -> None:
        if not self._closed and (origin, group) not in self._asked:
            self._asked[origin, group] = None
            self._pending.add((origin, group))
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            try:
                self._thread = threads.start(self._work, "acs_cl scheduler builds", self)
            except RuntimeError:  # kernels run on lanes, and the next launch tries again
                self._pending.difference_update(self._asked)
                self._asked, self._gathered = {}, []
        self._lock.notify()

    def enlarge(self, scheduler: Scheduler, nbytes: int) -> Asked:
        """Give a scheduler more local memory for a launch. Return what to wait for. Raises `Unfit`
        for good if it is too much."""
        most = self.maker.most_arena
        if nbytes > most:
            raise Unfit(
                f"it needs {nbytes:,} bytes of local memory; more than {most:,} would halve the "
                "groups that run at the same time"
            )
        with self._lock:
            for there in self._sets:
                if there.built is scheduler and there.arena_bytes < nbytes:
                    there.arena_bytes = min(most, max(nbytes, 2 * there.arena_bytes))
                    there.stale = True
            asked = next(iter(scheduler.bodies)), scheduler.limits.group
            self._ask(*asked)
            return asked

    def wait(self) -> None:
        """Block until everything asked for is built or refused, or one build takes too long."""
        self.maker.insisting += 1
        try:
            self._wait_while(lambda: self.has_work)
        finally:
            self.maker.insisting -= 1

    def wait_for_graph(self, asked: AbstractSet[Asked]) -> None:
        """Block until these kernels are built or refused, but no longer than `GRAPH_S`, nor while
        something large is being built: lanes can have the launches meanwhile."""
        until, maker = perf_counter() + GRAPH_S, self.maker

        def is_over() -> bool:
            return perf_counter() >= until

        self._wait_while(
            lambda: self.are_pending(asked) and not maker.takes_long and not is_over(), says=False
        )
        if is_over() and self.are_pending(asked):
            say(f"acs_cl: a graph goes to lanes until there is {self._under_way()}")

    def are_pending(self, asked: AbstractSet[Asked]) -> bool:
        """Tell whether some kernels are asked for, and neither built nor refused."""
        return not self._pending.isdisjoint(asked)

    def _wait_while(self, goes_on: Callable[[], bool], says: bool = True) -> None:
        """Wait, unless a build takes too long. Say what for if it lasts, or is interrupted."""
        says_at = perf_counter() + SAY_S if says else inf
        with self._lock:
            self.maker.waiting += 1
            try:
                while goes_on() and not (self._closed or self.is_late):
                    self._lock.wait(0, TICK_S)
                    if perf_counter() > says_at:
                        says_at = inf
                        say(f"acs_cl: waiting for {self._under_way()}, {PATIENCE_S:g} s at most")
            except KeyboardInterrupt as error:
                if hasattr(error, "add_note"):  # not in Python 3.10
                    error.add_note(f"acs_cl: interrupted while waiting for {self._under_way()}")
                raise
            finally:
                self.maker.waiting -= 1

    def _under_way(self) -> str:
        """Say what is being built."""
        names = sorted({origin[2] for origin, _ in self._pending})
        if not names:
            return "schedulers that are built anew"
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"a scheduler for {', '.join(names[:NAMED])}{more}"

    def reason(self, origin: Origin, group: int) -> str | None:
        """Return why a kernel cannot be in a scheduler in groups of `group`. None: it can."""
        return self._reasons.get(origin) or self._reasons.get((origin, group))

    @property
    def has_work(self) -> bool:
        """Tell whether something is asked for, or being built."""
        return bool(self._asked or self._gathered) or self.is_busy

    @property
    def is_busy(self) -> bool:
        """Tell whether a scheduler is being built at the moment."""
        return self.maker.began is not None

    @property
    def is_late(self) -> bool:
        """Tell whether one build takes too long to wait for."""
        began = self.maker.began
        return began is not None and perf_counter() - began > PATIENCE_S

    def built(self) -> list[Scheduler]:
        """Return the schedulers that are built."""
        return [there.built for there in self._sets if there.built is not None]

    def facts(self) -> list[Facts]:
        """Return facts about each built scheduler."""
        return [one.facts for one in self.built()]

    def close(self) -> None:
        """Start no more builds."""
        with self._lock:
            self._closed = True
            self._lock.notify()

    # ---- times of tasks ------------------------------------------------------------------------

    def time(self, on: bool) -> None:
        """Let schedulers note when each group began and ended its tiles, or stop that. Blocks until
        their timed forms are built, or building takes too long. A scheduler without one goes on
        without."""
        if self.maker.timed:
            return
        with self._lock:
            self._times = on
            if on and self._lacking():
                self._start()
                until = perf_counter() + PATIENCE_S
                self._wait_while(
                    lambda: bool(self._thread and self._lacking()) and perf_counter() < until
                )
            for one in self.built():
                one.time(on)

    def untimed(self) -> tuple[tuple[str, str], ...]:
        """Return the kernels of schedulers without a timed form, and the reason."""
        late = "its timed form is not built"
        return tuple(
            (", ".join(one.facts.kernels), self._untimed.get(one, late))
            for one in self.built() if not one.has_timed
        )  # fmt: skip

    def _lacking(self) -> list[Scheduler]:
        return (
            [one for one in self.built() if not one.has_timed and one not in self._untimed]
            if self._times
            else []
        )

    def _add_timed(self, scheduler: Scheduler) -> None:
        why = self.maker.add_timed(scheduler)
        if why:
            self._untimed[scheduler] = why

    # ---- building, in a thread -----------------------------------------------------------------

    def _work(self) -> None:
        with closing(self.maker):
            self._build_what_is_asked()

    def _build_what_is_asked(self) -> None:
        while True:
            with self._lock:
                if not (self._asked or self._gathered or self._closed or self._lacking()):
                    self._lock.wait(0, IDLE_S)
                lacking = self._lacking()
                if self._closed or not (self._asked or self._gathered or lacking):
                    self._thread = None
                    return
                if not lacking:
                    self._lock.wait(0, BATCH_S)
                asked, self._asked = list(self._asked), {}
                gathered, self._gathered = self._gathered, []
                self.maker.began = perf_counter()
                self._keeps = not self.maker.waiting
            try:
                with threads.turns():
                    for scheduler in lacking:
                        self._add_timed(scheduler)
                    self._enter_all(asked)
                    self._sets.gather(gathered)
                    for there in self._sets:
                        if there.stale and not self._closed:
                            self._renew(there)
            except Exception as error:  # our own fault: these kernels run on lanes
                for origin, group in asked:
                    self._refuse(origin, group, f"it cannot be put into a scheduler: {error!r}")
            finally:
                with self._lock:
                    self.maker.began = None
                    self._pending.difference_update(asked)
                    self._lock.notify()

    def _enter_all(self, asked: list[tuple[Origin, int]]) -> None:
        """Put kernels into their sets. Those that are asked for meanwhile come into the list, too,
        since translating takes long, and building again still longer."""
        for origin, group in asked:  # the list grows
            if self._closed:
                return
            try:
                self._enter(origin, group)
            except (Unfit, CannotParse, CannotTranslate) as refused:
                self._refuse(origin, group, refused.reason)
            except isolated.TooLate as late:
                self._refuse(origin, group, f"its translation does not end: {late}")
            except Exception as error:  # whatever it is, the kernel can run on a lane
                self._refuse(origin, group, f"it cannot be put into a scheduler: {error!r}")
            with self._lock:
                asked += self._asked
                self._asked = {}

    def _refuse(self, origin: Origin, group: int, reason: str) -> None:
        """Refuse a kernel for good; one that works in groups, for this group size only."""
        translated = self.maker.translated.get(origin)
        if translated is None or translated[0].tiled:
            self._reasons[origin] = reason
        else:
            self._reasons[origin, group] = reason

    def _enter(self, origin: Origin, group: int) -> None:
        """Translate a kernel and put it into its set, with those that were there when the program
        ran before."""
        function, text, options = self.maker.fitting(origin)
        if not function.tiled and not 1 <= group <= self.maker.device.max_work_group_size:
            return  # nothing to build before a launch tells the group size
        size = self.tiled_group if function.tiled else group
        has_come = self._sets.are_home(origin, size, options)  # with another one
        self._sets.enter(origin, (function, text), size, options, function.tiled)
        if has_come or not self._keeps:
            return
        for other, is_guest in self.launched.with_it(origin, size):
            try:
                function, text, own = self.maker.fitting(other)
            except (Unfit, CannotParse, CannotTranslate, isolated.TooLate):
                continue  # it is refused if it is asked for
            if own == options:
                self._sets.bring(origin, other, (function, text), size, options, is_guest)

    def _renew(self, there: KernelSet) -> None:
        """Build the scheduler of a set. If that fails, leave out the kernel that causes it. A
        kernel stays on lanes if half of the groups or fewer would run at one time with it, and
        these are not enough. Otherwise all other kernels would pay for it."""
        there.stale = False
        enough = ENOUGH_GROUPS * int(self.maker.device.max_compute_units)
        before = there.built
        aside: list[Origin] = []
        functions = dict(there.functions)
        while there.functions:
            try:
                kept = self.launched.about(there) if self._keeps_set(there) else None
                built = self.maker.build(there, kept)
            except isolated.TooLate:  # the kernel that causes it is unknown
                fresh = [one for one in there.functions if not before or one not in before.bodies]
                if not fresh:
                    return  # keep what was built before
                for origin in fresh:
                    self._leave_out(there, origin, _too_late())
                continue
            except Exception as error:  # the compiler or the driver failed: there are lanes
                lines = str(error).splitlines()
                said = " ".join(lines[1:3] if isinstance(error, AcsError) else lines[:2])
                newest = next(reversed(there.functions))
                self._leave_out(there, newest, f"its scheduler does not build: {said}")
                continue
            groups = built.limits.groups
            if groups < min(enough, there.enough_groups):
                break  # each kernel has more groups where it is at home
            if groups < enough and before is not None and 2 * groups <= before.limits.groups:
                fresh = [origin for origin in there.functions if origin not in before.bodies]
                if fresh:  # the newest kernel, or one before it
                    aside.append(fresh[-1])
                    del there.functions[fresh[-1]]
                    continue
            if not aside:
                self._use(there, built)
                return
            self._leave_out(
                there, aside.pop(), f"with its registers fewer than {groups} groups would run at "
                "the same time: half of them at most",
            )  # fmt: skip
            while aside:
                origin = aside.pop()
                there.functions[origin] = functions[origin]
        self._sets.drop(there)

    def _use(self, there: KernelSet, built: Scheduler) -> None:
        """Put the new scheduler of a set to use."""
        there.is_slow = built.facts.build_s > LONG_BUILD_S
        if self._times and not built.has_timed:
            self._add_timed(built)
        with self._lock:
            built.time(self._times)
            there.built = built
        self.builds += 1
        if self._keeps_set(there):
            self.launched.keep(there)

    def _keeps_set(self, there: KernelSet) -> bool:
        """Tell whether a set is kept for later runs. What somebody waits for is his own choice of
        kernels."""
        return self._keeps and not there.is_gathered

    def _leave_out(self, there: KernelSet, origin: Origin, reason: str) -> None:
        """Take a kernel out of a set. If it is at home there, it stays on lanes."""
        there.functions.pop(origin, None)
        if origin in there.guests:
            there.guests.discard(origin)
        else:
            self._refuse(origin, there.group, reason)
