"""Homes: which scheduler runs a kernel, and what the records of its launches are there.

Input: launches of kernels, and the schedulers that are built. Output: tasks for their epochs, the
heads of records for the core, or `Unfit` with the reason for a lane. A kernel keeps its scheduler
by its sizes (its offers) until one is built. Nothing is built before launches come together, and
kernels that are launched in turn are brought into one scheduler.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from .. import core
from ..devices.driver import Offers, OwnKernel
from ..host.living import Living
from ..launch.backend import BandHeads
from ..launch.commands import KernelCommand
from ..launch.decision import parts_of, plain_kernel
from ..memory.blocks import Store
from ..records import Command, Key
from .builds import Schedulers
from .built import Scheduler
from .kernel_sets import CutCount, Step
from .laying import heads_of
from .layout import MOST_TILES
from .policy import HOT, IN_SCHEDULER, LONGEST_REST, Choice
from .task import MOST_HEADS, NO_ADDRESS, Body, NeedsArena, Task, Tiling, Unfit, sizes_of

FEW_COME = "too few launches were under way at a time so far"

NEWEST = 64
"""Launches among which those are counted that may go to a scheduler. More of them are too far apart
for an epoch: it would be cut by the others."""

Head: TypeAlias = tuple[Scheduler, int, bytes, bytes | None, Tiling | None]
"""A scheduler, its local memory, the start of a record for some sizes, the record's shape, and how
launches of other sizes are cut, if that follows."""


class Homes:
    """Finds the schedulers of kernels. `choice`: the rule that may prefer lanes."""

    def __init__(
        self,
        schedulers: Schedulers,
        store: Store,
        choice: Choice | None,
        table: core.native.Table,
        reasons: core.native.Reasons,
    ) -> None:
        self._schedulers = schedulers
        self._store = store
        self._choice = choice
        self._table = table
        self._reasons = reasons
        self._offered = Living[Offers]()
        """Of programs that may be dropped at any time."""
        self._builds = 0
        self._together = False
        self._cut_count = CutCount()

    def refusal(self, key: Key | None, tiles: int, scheduler: Scheduler) -> str | None:
        """Say why the next launch of a kernel and sizes should take a lane. None: it should not."""
        if self._choice is None:
            return None
        return self._choice.refusal(self._table.number, key, tiles, scheduler.limits.groups)

    def task(
        self, command: Command, offer: tuple[Scheduler, Body] | None
    ) -> tuple[Scheduler, Task]:
        """Make the task of a launch. Raises `Unfit`."""
        command, decision = parts_of(command)
        if type(command) is not KernelCommand:
            raise Unfit(f"a {command.name} runs on a lane")
        scheduler, body = offer or self._body(command)
        try:
            task = body.task(command, self._store.owns, decision)
        except NeedsArena as more:
            self._schedulers.enlarge(scheduler, more.nbytes)
            raise
        if offer is None:
            self._keep_offer(command, scheduler, body)
        return scheduler, task

    def shared_task(self, command: Command, home: Scheduler, other: Scheduler) -> Task | None:
        """Make the task of a launch for another scheduler, which has the kernel from now on. None:
        the launch cannot run there."""
        task = self._task_in(command, home, other)
        if task is not None:
            plain = plain_kernel(command)
            assert plain is not None
            self._keep_offer(plain, other, other.bodies[plain.kernel.origin])
        return task

    def _task_in(self, command: Command, home: Scheduler, other: Scheduler) -> Task | None:
        """Make the task of a launch for another scheduler, so that the open epoch need not be cut.
        Return None if the launch cannot run there. A task that fills the device has to keep the
        tiles of its own scheduler: on an H200 such a task took twice as long in groups of 64 as in
        groups of 256."""
        command, decision = parts_of(command)
        assert type(command) is KernelCommand
        origin = command.kernel.origin
        if decision is not None and decision.count is not None:
            return None
        if not self._schedulers.may_share(origin, home, other):
            return None
        try:
            task = other.bodies[origin].task(command, self._store.owns, decision)
        except Unfit:  # the other scheduler has less local memory
            return None
        is_alike = other.limits.group == home.limits.group
        return task if is_alike or 2 * task.tiles <= other.limits.groups else None

    def _keep_offer(self, command: KernelCommand, scheduler: Scheduler, body: Body) -> None:
        """Remember the scheduler of a kernel at these sizes for the next launches."""
        offers = command.kernel.offers
        if not offers:
            self._offered.add(offers)
        elif len(offers) >= MOST_HEADS:  # a program whose sizes never repeat
            offers.clear()
        offers[sizes_of(command)] = scheduler, body

    def _body(self, command: KernelCommand) -> tuple[Scheduler, Body]:
        origin = getattr(command.kernel, "origin", None)
        if origin is None:
            raise Unfit(NO_ADDRESS)
        why = "" if self.has_enough_in_flight() else FEW_COME
        return self._schedulers.find(origin, prod(command.local_size or (0,)), why)

    def heads(self, command: KernelCommand) -> list[Head]:
        """Return how records of such launches begin, in their own scheduler and in others that can
        run them. The list is empty if these launches may not go to the scheduler without a new
        decision."""
        offer = offer_of(command)
        if offer is None:
            return []
        scheduler, body = offer
        found = body.heads.get(sizes_of(command))
        if found is None or self.refusal(command.key, found[2], scheduler) is not None:
            return []
        tiling = None
        if self._choice is None:
            tiling = body.tiling(command, MOST_TILES)
        elif not self._choice.on_cpu:  # there the time of each size counts
            tiling = body.tiling(command, max(1, scheduler.limits.groups // 2))
        heads = [(scheduler, body.limits.arena_bytes, *found[:2], tiling)]
        for other in self._schedulers.built():
            task = None if other is scheduler else self._task_in(command, scheduler, other)
            if task is not None:
                is_alike = other.limits.group == scheduler.limits.group
                most = MOST_TILES if is_alike else other.limits.groups // 2
                tiling = other.bodies[command.kernel.origin].tiling(command, most)
                heads.append((other, other.limits.arena_bytes, task.head, task.shape, tiling))
        return heads

    def bands(self, command: KernelCommand) -> BandHeads | None:
        """Return how records of the bands of such launches begin in the scheduler of their kernel.
        None: the scheduler does not have these bands, or not yet."""
        try:
            scheduler, body = self._body(command)
            task = body.task(command, self._store.owns)
        except Unfit:
            return None
        found = task.cuts
        if not found.bands or self.refusal(command.key, task.tiles, scheduler) is not None:
            return None
        boxes = [band.boxes for band in found.bands]
        heads = [*zip(boxes, heads_of(task), strict=True)]
        return BandHeads(scheduler, body.limits.arena_bytes, task.shape, found.unit, heads)

    # ---- which schedulers there are ------------------------------------------------------------

    def keep_together(self, cuts: int, epochs: int) -> None:
        """Bring kernels that are launched in turn into one scheduler, after so many `cuts` of so
        many epochs. Epochs are cut between kernels of different schedulers. To learn which kernels
        these are, Python sees the next launch of each kernel for a while."""
        self.built_anew()
        step = self._cut_count.step_after(cuts, epochs)
        if step is Step.WATCH:
            self._schedulers.watch()
            self._forget_offers()
        elif step is Step.GATHER:
            self._schedulers.gather()

    def has_enough_in_flight(self) -> bool:
        """Tell whether enough launches were in flight at one time to make an epoch worth sending.
        Until then nothing is built, because launches would wait for the driver's compiler, or for
        the cores that it takes. Launches that take long on a CPU are not for a scheduler, and do
        not count. While all go there, none has to wait for others."""
        choice = self._choice
        if choice is not None and choice.way == IN_SCHEDULER:
            return True
        if not self._together and (choice is None or self._fills_an_epoch(choice)):
            self._together = True
            self._table.generation += 1
        return self._together

    def _fills_an_epoch(self, choice: Choice) -> bool:
        table = self._table
        if len(table) < choice.few or not choice.on_cpu:
            return len(table) >= choice.few
        newest = range(table.number - NEWEST + 1, table.number + 1)
        reasons = [self._reasons.of(number) for number in newest if number in table]
        return reasons.count(FEW_COME) >= choice.few

    def built_anew(self) -> None:
        """Look for the scheduler of each kernel again after a build. A kernel may be in a newer
        scheduler now, and one that the core sends to lanes may be in one."""
        if self._builds == self._schedulers.builds:
            return
        self._builds = self._schedulers.builds
        self._forget_offers()
        if self._choice is not None:
            self._choice.built_anew(self._builds)

    def _forget_offers(self) -> None:
        """Let Python find the scheduler of each kernel again, at its next launch."""
        for offers in self._offered:
            offers.clear()
        self._offered = Living[Offers]()
        self._table.generation += 1


def offer_of(command: Command) -> tuple[Scheduler, Body] | None:
    """Return the scheduler that had the kernel before at these sizes, and its body there."""
    plain = plain_kernel(command)
    if plain is None:
        return None
    offers: Offers | None = getattr(plain.kernel, "offers", None)
    return None if offers is None else offers.get(sizes_of(plain))


def keep_on_lanes(kernel: OwnKernel, reason: str) -> None:
    """Keep a kernel on lanes for its next launches without asking, for twice as many each time. To
    ask takes as long as some launches. A change that concerns all kernels makes them ask again."""
    kernel.launched = HOT - kernel.rest
    kernel.rest = min(2 * kernel.rest, LONGEST_REST)
    kernel.reason = reason
