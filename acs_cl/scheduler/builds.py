"""Builds: which kernels are in schedulers, and a thread that builds them while the program runs.

Input: kernels that the program launches. Output: their bodies in a scheduler that is ready, or the
reason why there is none yet or ever. A thread translates and builds while these kernels run on
lanes. It takes everything that was asked for meanwhile at once.

Invariants: asking never waits. Waiting for a scheduler ends after `PATIENCE_S`, because some
compilers never end on some kernels; these run on lanes. A scheduler in use never changes: a new one
takes its place, and epochs keep the one that they were recorded for. A refusal is final.
"""

# Long because: who is in which scheduler, and why, is one question.

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import pyopencl as cl

from .. import core
from ..devices.driver import Origin, OwnKernel
from ..devices.facts import CannotParse
from ..devices.pocl import compiles_late
from ..errors import AcsError
from ..host import isolated, threads
from ..host.digest import digest
from ..host.output import say
from ..opencl_c.functions import translated
from ..opencl_c.functions.translated import CannotTranslate
from . import layout
from .apart import Apart
from .built import Facts, Scheduler, Text
from .children import ROOM, Room, give_pool
from .compiling import (
    NAME,
    build_told,
    is_compiled,
    keep_note,
    note_of,
    warm_up,
)
from .kept_sets import KeptSet, Launched
from .kernel_sets import KernelSet, KernelSets, Options
from .notes import MOST, TIMED, Notes
from .task import Body, Limits, Unfit

if TYPE_CHECKING:
    from ..opencl_c.functions.translated import Function, Functions

LONG_BUILD_S = 20.0
"""A scheduler that took this long to build takes no more kernels. So a slower compiler than those
measured gets smaller schedulers."""

ENOUGH_GROUPS = 2
"""Groups that run at the same time on each compute unit, from which on a scheduler loses nothing by
having fewer than before. With two instead of six it ran rigid bodies on an H200 three to four times
as fast as lanes did."""

UNIT_BYTES, UNIT_REGISTERS = 64 << 10, 65536
"""Local memory and registers of a compute unit, at least."""

LARGE = 1 << 16
"""Characters of kernels from which on a process of its own translates and compiles them, whoever
waits. On PoCL 3.0 so many take two seconds of a processor, and a process one to start. A driver may
let nobody launch while it compiles in this one, and nobody could end it."""

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

    def __init__(
        self,
        context: Any,
        device: Any,
        tier: str,
        groups: int | None,
        watched: bool = False,
        room: Room = ROOM,
        timed: bool = False,
    ) -> None:
        self._context = context
        self._device = device
        self.tier = tier
        self._watched = watched
        self._timed = timed
        """Whether all schedulers are built in their timed form only."""
        self._times = timed
        self.notes_room = MOST
        """Tiles that each scheduler can note until the host reads."""
        self._untimed: dict[Scheduler, str] = {}
        """Schedulers without a timed form, and the reason."""
        self._room = room
        self._cap = groups
        self._loops = bool(device.type & cl.device_type.CPU)
        # on a CPU kernels run on the cores that it needs
        manners = isolated.MODEST if self._loops else isolated.POLITE
        self._helper, self._prompt = Apart(device, manners), Apart(device, isolated.PROMPT)
        """Of the thread. The second one is for what somebody waits for."""
        self.tiled_group = 1 if self._loops else min(256, int(device.max_work_group_size))
        self._lock = core.native.Lock()
        self._sets = KernelSets(self._loops)
        self._programs: dict[tuple[str, Options], Functions] = {}
        self._translated: dict[Origin, tuple[Function, str, Options]] = {}
        self.launched = Launched(device, tier)
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
        self._compiles_apart = tier == "ptx" or compiles_late(device)
        """Whether compiling would keep the program from launching."""
        self._takes_long = False
        """Whether something large is being translated or compiled in a process of its own."""
        self._waiting = 0
        """Threads that wait for builds, so that these are made here, which is sooner."""
        self._insisting = 0
        """Those of them that wait for large ones, too."""
        self._thread: threading.Thread | None = None
        self._began: float | None = None
        """When the thread began with its present work. None while it has none."""
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
        translated = self._translated.get(origin)
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
        function, _, options = self._translated[origin]
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
        is_cut_anywhere = not self._loops and other.bodies[origin].function.tiled
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
        if origin not in self._translated:
            return False
        function, _, options = self._translated[origin]
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
        most = self._most_arena()
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
        self._insisting += 1
        try:
            self._wait_while(lambda: self.has_work)
        finally:
            self._insisting -= 1

    def wait_for_graph(self, asked: AbstractSet[Asked]) -> None:
        """Block until these kernels are built or refused, but no longer than `GRAPH_S`, nor while
        something large is being built: lanes can have the launches meanwhile."""
        until = perf_counter() + GRAPH_S
        self._wait_while(
            lambda: self.are_pending(asked) and not self._takes_long and perf_counter() < until
        )

    def are_pending(self, asked: AbstractSet[Asked]) -> bool:
        """Tell whether some kernels are asked for, and neither built nor refused."""
        return not self._pending.isdisjoint(asked)

    def _wait_while(self, goes_on: Callable[[], bool]) -> None:
        """Wait, unless a build takes too long. Say what for if it lasts, or is interrupted."""
        says_at = perf_counter() + SAY_S
        with self._lock:
            self._waiting += 1
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
                self._waiting -= 1

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
        return self._began is not None

    @property
    def is_late(self) -> bool:
        """Tell whether one build takes too long to wait for."""
        began = self._began
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
        if self._timed:
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
        """Build the timed form of a scheduler, with as many registers, so that as many groups
        run."""
        source, words, registers, length = scheduler.text
        words = (*words, TIMED)
        if registers and self.tier == "ptx":
            words = (*words, f"-cl-nv-maxrregcount={registers}")
        try:
            native, notes, _ = self._form(source, words, scheduler.limits.group, length)
            scheduler.add_timed(native, notes)
        except Exception as error:  # the compiler or the driver failed: it goes on without
            said = " ".join(str(error).splitlines()[:2])
            self._untimed[scheduler] = f"its timed form does not build: {said or error!r}"

    # ---- building, in a thread -----------------------------------------------------------------

    def _work(self) -> None:
        with closing(self._helper), closing(self._prompt):
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
                self._began = perf_counter()
                self._keeps = not self._waiting
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
                    self._began = None
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
        translated = self._translated.get(origin)
        if translated is None or translated[0].tiled:
            self._reasons[origin] = reason
        else:
            self._reasons[origin, group] = reason

    def _enter(self, origin: Origin, group: int) -> None:
        """Translate a kernel and put it into its set, with those that were there when the program
        ran before."""
        function, text, options = self._fitting(origin)
        if not function.tiled and not 1 <= group <= self._device.max_work_group_size:
            return  # nothing to build before a launch tells the group size
        size = self.tiled_group if function.tiled else group
        has_come = self._sets.are_home(origin, size, options)  # with another one
        self._sets.enter(origin, (function, text), size, options, function.tiled)
        if has_come or not self._keeps:
            return
        for other, is_guest in self.launched.with_it(origin, size):
            try:
                function, text, own = self._fitting(other)
            except (Unfit, CannotParse, CannotTranslate, isolated.TooLate):
                continue  # it is refused if it is asked for
            if own == options:
                self._sets.bring(origin, other, (function, text), size, options, is_guest)

    def _fitting(self, origin: Origin) -> tuple[Function, str, Options]:
        """Return the translation of a kernel. Raises `Unfit` if no scheduler can have it."""
        if origin not in self._translated:
            self._translate(origin)
        function, _, _ = found = self._translated[origin]
        if function.local_bytes > self._most_arena():
            raise Unfit(
                f"its __local variables take {function.local_bytes:,} bytes, which would halve the "
                "groups that run at the same time"
            )
        if function.blob_bytes > layout.MOST_ARGS_BYTES:
            raise Unfit(f"its arguments take {function.blob_bytes:,} bytes")
        return found

    def _translate(self, origin: Origin) -> None:
        source, options, name = origin
        if not source:
            raise Unfit("the driver does not give its source")
        found = self._programs.get((source, options))
        if found is None:  # once, so that all its kernels are in one text
            prefix = "k" + digest(repr((source, options)), 10) + "_"
            found = translated.load(source, options, self._device, prefix)
            # who waits has it sooner here: starting a process takes longer than the translation
            if found is None and (len(source) >= LARGE or not self._waiting):
                with self._apart(len(source)) as helper:
                    found = helper.translate(source, options, prefix)
            if found is None:
                # here, since the parser takes long to load
                from ..opencl_c.functions.translation import translate

                found = translate(source, options, self._device, prefix)
            self._programs[source, options] = found
        if name not in found.functions:
            raise Unfit(found.reasons.get(name, "its source has no such kernel"))
        self._translated[origin] = found.functions[name], found.text, found.options

    def _renew(self, there: KernelSet) -> None:
        """Build the scheduler of a set. If that fails, leave out the kernel that causes it. A
        kernel stays on lanes if half of the groups or fewer would run at one time with it, and
        these are not enough. Otherwise all other kernels would pay for it."""
        there.stale = False
        enough = ENOUGH_GROUPS * int(self._device.max_compute_units)
        before = there.built
        aside: list[Origin] = []
        functions = dict(there.functions)
        while there.functions:
            try:
                built = self._build(there)
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

    def _build(self, there: KernelSet) -> Scheduler:
        from .source import Body as Case
        from .source import build_options, scheduler_source

        started = perf_counter()
        group = there.group
        ordered = sorted(there.functions, key=repr)  # the same text, whatever the order of asking
        functions = [there.functions[origin][0] for origin in ordered]
        texts = sorted({there.functions[origin][1] for origin in ordered})
        args = max(function.blob_bytes for function in functions)
        spawn = self._spawns(group)
        children = {child for function in functions for child in function.children if spawn}
        source = scheduler_source(
            self.tier, group, there.arena_bytes, args,
            [Case(function.symbol, function.tiled) for function in functions], texts, self._loops,
            sorted(children), self._room,
            int(self._device.max_compute_units) if self._loops else layout.MOST_TASKS,
        )  # fmt: skip
        kept = self.launched.about(there) if self._keeps_set(there) else None
        words = build_options(self.tier, there.options)
        if self._watched:
            words.append("-DACS_WATCHED=1")
        if self._timed:
            words.append(TIMED)
        length = sum(map(len, texts))
        native, notes, registers = self._form(source, words, group, length, kept)
        limits = self._limits(group, registers, there)
        if children:
            limits = limits._replace(spawn=spawn, child_slots=self._room.slots)
        pool = give_pool(self._context, native, limits.groups, notes is not None)
        facts = Facts(
            group,
            tuple(origin[2] for origin in ordered),
            registers,
            int(native.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, self._device)),
            limits.groups,
            round(perf_counter() - started, 3),
            tuple(sorted({why for function in functions for why in function.loops})),
        )
        bodies = {
            origin: Body(function, number, limits)
            for number, (origin, function) in enumerate(zip(ordered, functions, strict=True))
        }
        text = Text(source, tuple(words), registers, length)
        return Scheduler(native, limits, bodies, facts, pool, text, notes)

    def _form(
        self,
        source: str,
        words: Sequence[str],
        group: int,
        length: int,
        kept: KeptSet | None = None,
    ) -> tuple[OwnKernel, Notes | None, int | None]:
        """Build a launchable kernel. Return it, its notes if asked for, and its registers.
        `length`: characters of its kernels. `kept`: the set to keep if it is built."""
        is_noted = True
        if self._compiles_apart:
            note = note_of(self._device, source, words, group)
            is_noted = is_compiled(note)
            here = self._waiting and length < LARGE and self.tier != "ptx"
            if not is_noted and not here:
                with self._apart(length) as helper:
                    is_noted = helper.compile(source, words, group, self.tier, kept)
        self._began = perf_counter()
        program, registers = build_told(self._context, self._device, source, words, self.tier)
        native = OwnKernel(program, NAME)
        notes = None
        if TIMED in words:
            notes = Notes(self._context, self._device, program, self.notes_room)
        # some drivers compile at the first launch, so do that now
        warm_up(self._context, self._device, native, group, notes)
        if not is_noted:
            keep_note(note)
        if notes is not None:
            notes.begin()
        return native, notes, registers

    @contextmanager
    def _apart(self, length: int) -> Iterator[Apart]:
        """Return the process for so many characters of kernels. It has a limit of its own."""
        self._began, self._takes_long = inf, length >= LARGE
        try:
            yield self._prompt if self._insisting else self._helper
        finally:
            self._began, self._takes_long = perf_counter(), False

    def _spawns(self, group: int) -> int:
        """Return how items that tasks spawn are treated in groups of a size. 0: they run in loops.
        A compiler that makes loops of work-items has no barriers for more than that."""
        is_loop = self._loops and group > 1
        return 0 if is_loop else self._room.spawn.word

    def _limits(self, group: int, registers: int | None, there: KernelSet) -> Limits:
        units = int(self._device.max_compute_units)
        if self._loops:
            groups = 4 * units
        else:
            each = min(2048 // group, 16)
            if registers:
                each = min(each, UNIT_REGISTERS // (-(-registers // 8) * 8 * group))
            if there.arena_bytes > self._most_arena():
                each = min(each, UNIT_BYTES // there.arena_bytes)
            groups = max(1, each) * units
        if self._cap is not None:
            groups = min(groups, self._cap)
        tiles = 2 * groups if self._loops else 4 * groups
        return Limits(group, there.arena_bytes, groups, min(tiles, layout.MOST_TILES))

    def _most_arena(self) -> int:
        """Return the local memory for a group with which four groups share a compute unit."""
        return int(self._device.local_mem_size) // (2 if self._loops else 4)
