"""Cutting: it finds the launches of a graph that run together, in one launch of the scheduler.

Input: the launches of a graph in program order, and the schedulers. Output: pieces in the same
order. A `Segment` is a maximal run of consecutive launches that one scheduler can run. Each other
launch is a `Single`, with the reason.

Invariant: the pieces, one after another, are the launches in program order, each once.
"""

# Long because: what runs where, and what was left out meanwhile, is one decision.

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from math import prod

import pyopencl as cl

from ..access.cuts import AUTO, EACH_TILE, TILES
from ..devices.driver import refusals
from ..launch.commands import KernelCommand
from ..launch.decision import parts_of, plain_kernel
from ..memory.blocks import Store
from ..records import EVERYTHING, Access, Command, NamedTuple, Pair
from . import layout
from .alone import Run, alone
from .builds import Asked, Schedulers
from .built import Scheduler
from .early import CHOSEN, cut_early
from .segment import Segment, Settings
from .task import NO_ADDRESS, Body, NeedsArena, Task, Unfit

MOST_ENTRIES = 1 << 20
"""Tiles of a segment at most."""

TOO_FEW = "too few in a row for a segment"

InBands = Callable[[int, int], KernelCommand | None]
"""Returns a launch of a graph, by its place, as one that is to be cut into so many bands. None: it
may not be."""


class Single(NamedTuple):
    """A launch by itself. `turn`: its number in the order in which the launches go."""

    turn: int
    reason: str


class Cutter:
    """Cuts the launches of graphs for the schedulers of one device."""

    def __init__(
        self,
        context: cl.Context,
        schedulers: Schedulers,
        store: Store,
        settings: Settings,
        refusal: Callable[[Command, Task, int], str | None],
    ) -> None:
        self._context = context
        self._schedulers = schedulers
        self._store = store
        self._settings = settings
        self._refusal = refusal
        self._homes: dict[Asked, list[tuple[Scheduler, Body]]] = {}
        """Schedulers that run a kernel, while one graph is cut."""
        self._asked: set[Asked] = set()
        """Kernels of the graph, to be built into schedulers."""
        self._missed = False
        """Whether some were not built when it was cut."""

    @property
    def is_behind(self) -> bool:
        """Tell whether a graph would be cut otherwise by now: schedulers that it did not wait for
        any longer are built."""
        return self._missed and not self._are_pending

    @property
    def awaits(self) -> bool:
        """Tell whether schedulers of the graph are still being built."""
        return self._missed and self._are_pending

    @property
    def _are_pending(self) -> bool:
        return self._schedulers.are_pending(self._asked)

    def pieces(
        self,
        launches: Sequence[Pair],
        borders: Container[int],
        in_bands: InBands,
    ) -> list[Segment | Single]:
        """Return all pieces, in order. No segment crosses a launch of `borders`. `in_bands`: for
        launches of which a part may begin early. Waits for schedulers to be built, if that takes
        only moments."""
        if not self._prepare(launches, self._settings.least):
            return [
                Single(index, _lane(command) or TOO_FEW)
                for index, (command, _) in enumerate(launches)
            ]
        found: list[Segment | Single] = []
        run: list[dict[Scheduler, Task]] = []
        common: dict[Scheduler, None] = {}
        entries = 0
        for index, (command, access) in enumerate(launches):
            tasks: dict[Scheduler, Task] = {}
            reason = ""
            try:
                tasks = self._tasks(command, access)
            except Unfit as unfit:
                reason = unfit.reason
            tiles = max((task.tiles for task in tasks.values()), default=0)
            left = [scheduler for scheduler in common if scheduler in tasks]
            is_full = len(run) >= layout.MOST_TASKS or entries + tiles > MOST_ENTRIES
            if not left or is_full or index in borders:
                found += self._close(launches, index, run, common, in_bands)
                run, entries = [], 0
                left = list(tasks)
            common = dict.fromkeys(left)
            if tasks:
                run.append(tasks)
                entries += tiles
            else:
                found.append(Single(index, reason))
        found += self._close(launches, len(launches), run, common, in_bands)
        return found

    def looped(self, launches: Sequence[Pair], first: int, in_bands: InBands) -> Segment | str:
        """Return the body of a loop as one segment, or the reason why it cannot be one. `first`:
        its first launch in the graph. Without a segment the host has to read the flag."""
        if self._settings.window:
            return "a window has no loops"
        self._prepare(launches, 1)
        run: list[dict[Scheduler, Task]] = []
        try:
            run = [self._tasks(command, access, is_wide_fine=True) for command, access in launches]
        except Unfit as unfit:
            return unfit.reason
        entries = sum(max(task.tiles for task in tasks.values()) for tasks in run)
        if not (common := [one for one in run[0] if all(one in tasks for tasks in run)]):
            return "no scheduler has all of its kernels"
        if len(run) > layout.MOST_TASKS or entries > MOST_ENTRIES:
            return "it is too long"
        return self._segment(launches, first, run, common[0], in_bands, is_loop=True)

    def parts(self, command: Command, access: Access) -> list[tuple[Access, Run]]:
        """Return the bands of a launch, each with its access and a function that runs it alone.
        Empty: it stays whole. Waits for schedulers to be built, if that takes only moments."""
        try:
            self._prepare([(command, access)], 1)
            scheduler, task = next(iter(self._tasks(command, access).items()))
        except Unfit:
            return []
        return [
            (band.access, alone(self._context, scheduler, task, band, self._store.reserved))
            for band in task.cuts.bands
        ]

    def _prepare(self, launches: Sequence[Pair], least: int) -> bool:
        """Have all schedulers built now, so that no newer one separates a launch from the one
        before. Return False if no run can be long enough."""
        self._homes.clear()
        origins = [_origin(command) for command, _ in launches]
        longest = run = 0
        for origin, (command, _) in zip(origins, launches, strict=True):
            run = run + (least if asks_for_bands(command) else 1) if origin is not None else 0
            longest = max(longest, run)
        if longest < least:
            return False
        for one in dict.fromkeys(filter(None, origins)):
            self._schedulers.ask(*one)
            self._asked.add(one)
        self._wait()
        for command, access in launches:
            if _takes_local_memory(command):
                with suppress(Unfit):
                    self._tasks(command, access)
        return True

    def _wait(self) -> None:
        self._schedulers.wait_for_graph(self._asked)
        self._missed = self._are_pending

    def _close(
        self,
        launches: Sequence[Pair],
        end: int,
        run: list[dict[Scheduler, Task]],
        common: dict[Scheduler, None],
        in_bands: InBands,
    ) -> list[Segment | Single]:
        if not run:
            return []
        first = end - len(run)
        if len(run) < self._settings.least and not any(
            asks_for_bands(command) for command, _ in launches[first:end]
        ):
            return [Single(index, TOO_FEW) for index in range(first, end)]
        scheduler = next(iter(common))
        return [self._segment(launches[first:end], first, run, scheduler, in_bands)]

    def _segment(
        self,
        launches: Sequence[Pair],
        first: int,
        run: Sequence[dict[Scheduler, Task]],
        scheduler: Scheduler,
        in_bands: InBands,
        is_loop: bool = False,
    ) -> Segment:
        def cut(at: int, many: int) -> Task | None:
            command, origin = in_bands(first + at, many), _origin(launches[at][0])
            if command is None or origin is None:
                return None
            return self.task(command, scheduler.bodies[origin[0]])

        accesses, whole = [access for _, access in launches], [tasks[scheduler] for tasks in run]
        tasks = cut_early(accesses, whole, cut, scheduler.limits.groups)
        with refusals("memory for a graph"):
            return Segment(
                self._context, scheduler, first, launches, tasks, self._settings, is_loop
            )

    def _tasks(
        self, command: Command, access: Access, is_wide_fine: bool = False
    ) -> dict[Scheduler, Task]:
        """Return the task of a launch for each scheduler that can run it. Raises `Unfit`."""
        if lane := _lane(command):
            raise Unfit(lane)
        found = _origin(command)
        if found is None:
            if plain_kernel(command) is not None:
                raise Unfit(NO_ADDRESS)
            raise Unfit(f"a {command.name} runs by itself")
        if any(span.base == EVERYTHING for span in (*access.reads, *access.writes)):
            raise Unfit("it may touch any memory")
        tasks = {}
        if (homes := self._homes.get(found)) is None:
            homes = self._homes[found] = self._schedulers.homes(*found)
        for scheduler, body in homes:
            try:
                tasks[scheduler] = self.task(command, body)
            except NeedsArena as more:
                self._asked.add(self._schedulers.enlarge(scheduler, more.nbytes))
                self._wait()
                self._homes.clear()
                scheduler, body = self._schedulers.homes(*found)[0]
                tasks[scheduler] = self.task(command, body)
            reason = self._refusal(command, tasks[scheduler], scheduler.limits.groups)
            if reason is not None and not is_wide_fine:
                raise Unfit(reason)
        return tasks

    def task(self, command: Command, body: Body) -> Task:
        """Make the task of a launch."""
        plain, decision = parts_of(command)
        assert type(plain) is KernelCommand
        return body.task(plain, self._store.owns, decision)

    def patch(self, segment: Segment, index: int, launch: Pair, in_bands: InBands) -> bool:
        """Replace a launch of a segment by one with other arguments. False: it differs in more."""
        command: Command = launch[0]
        bands, reason, _ = segment.cuts[index - segment.first]
        if reason in CHOSEN:
            many = EACH_TILE if all(band.tiles == 1 for band in bands) else TILES
            command = in_bands(index, many) or command
        found = _origin(command)
        if found is None:
            return False
        body = segment.scheduler.bodies.get(found[0])
        if body is None:
            return False
        try:
            task = self.task(command, body)
            task = task.because(reason) if reason in CHOSEN else task
            return segment.patch(index - segment.first, launch, task)
        except Unfit:
            return False


def asks_for_bands(command: Command) -> bool:
    """Tell whether the program asks for a launch to be cut, instead of leaving it to the
    library."""
    plain = plain_kernel(command)
    cut = None if plain is None else plain.cut
    return cut is not None and cut.touched is not None and cut.bands != AUTO


def _lane(command: Command) -> str:
    """Say why a launch goes to a lane in any case. Empty: it need not."""
    plain = plain_kernel(command)
    return "" if plain is None else plain.lane


def _takes_local_memory(command: Command) -> bool:
    plain = plain_kernel(command)
    return plain is not None and any(
        isinstance(pointer, cl.LocalMemory) for pointer in plain.pointers[1::2]
    )


def _origin(command: Command) -> Asked | None:
    """Return the origin of a command's kernel, and the work-items of its groups."""
    if _lane(command):
        return None
    plain = plain_kernel(command)
    origin = None if plain is None else getattr(plain.kernel, "origin", None)
    if plain is None or origin is None:
        return None
    return origin, prod(plain.local_size or (0,))
