"""Tasks: a kernel command as a record of the scheduler.

Input: a translated kernel with its number in a scheduler, and commands of it. Output: the head of
the record, the packed arguments, the shape. Pure, but for addresses that it reads from arguments.

Invariant: a task runs what the command would run in a queue. Where that is impossible, or a queue
is better, `Unfit` has the reason, and the launch runs on a lane.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import pyopencl as cl

from ..access.cuts import Cut, refusal
from ..launch.commands import KernelCommand
from ..launch.decision import Decision
from ..records import NamedTuple
from . import layout
from .bands import Cuts, Sizes, bands_of, shares, tiles_of

if TYPE_CHECKING:
    from ..opencl_c.functions.translated import Field, Function

SMALLEST_TILE = 256
"""Items of a tile at least, where one work-item runs a whole tile. To take a tile costs as much as
running some ten items."""

MOST_HEADS = 4096
"""Sizes of a kernel for which heads of records are kept."""

MOST_CUTS = 256
"""Cuts of a kernel that are kept, with their bands."""

NO_ADDRESS = "one of its arguments is a buffer or an image, which has no address that lasts"
"""Why a kernel that could be translated has no place in a scheduler."""

LOCAL_ALIGN = 128
"""Alignment of an argument's local memory."""


class Unfit(Exception):  # noqa: N818  (an answer, not an error of the user)
    """The scheduler does not run this launch; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Limits(NamedTuple):
    """Limits of one scheduler."""

    group: int
    """Work-items of its groups."""
    arena_bytes: int
    groups: int
    """Groups that run at the same time."""
    most_tiles: int
    spawn: int = 0
    """How it treats items that tasks spawn. 0: they run in loops."""
    child_slots: int = 0
    """Slots of a ring for children."""


Tiling: TypeAlias = tuple[int, int, int, int]
"""Work-items of a tile at least, and of a group; the most tiles, and so many that it is asked."""


class Task(NamedTuple):
    """A launch in the form that the recorder takes."""

    head: bytes
    blob: bytes
    shape: bytes | None
    tiles: int
    cuts: Cuts = Cuts((), "")

    def because(self, reason: str) -> Task:
        """Return the task with a reason for its bands, if there are any."""
        return self._replace(cuts=self.cuts._replace(reason=reason)) if self.cuts.bands else self


def sizes_of(command: KernelCommand) -> tuple[object, ...]:
    """Return the key of a head of a record: the parts of a command that it follows from."""
    return command.global_size, command.local_size, command.offset, command.spawn


class Body:
    """Holds a kernel in a scheduler."""

    def __init__(self, function: Function, number: int, limits: Limits) -> None:
        self.function = function
        self.number = number
        self.limits = limits
        self.heads: dict[Any, tuple[bytes, bytes | None, int]] = {}
        self._cuts: dict[tuple[object, ...], tuple[Cuts, int, int]] = {}
        self._pack = struct.Struct("<" + _format(function.fields, function.blob_bytes))
        self._local = any(field.kind == "local" for field in function.fields)

    def task(
        self,
        command: KernelCommand,
        owns: Callable[[int], bool],
        decision: Decision | None = None,
    ) -> Task:
        """Make the task of a command. A size that is decided later is at most the command's."""
        if decision is None:
            return self._without_decision(command, owns)
        when = 0 if decision.when is None else _address(decision.when.place.memory, owns)
        if decision.count is None:
            task = self._without_decision(command, owns)
            return task._replace(head=layout.with_when(task.head, when))
        count = _address(decision.count.place.memory, owns)
        head, shape, tiles = self._head(command, decision, when, count)
        return Task(head, self._blob(command, owns), shape, tiles)

    def _without_decision(self, command: KernelCommand, owns: Callable[[int], bool]) -> Task:
        key = sizes_of(command)
        found = self.heads.get(key)
        if found is None:
            if len(self.heads) >= MOST_HEADS:  # a program whose sizes never repeat
                self.heads.clear()
            found = self.heads[key] = self._head(command, None, 0, 0)
        head, shape, tiles = found
        task = Task(head, self._blob(command, owns), shape, tiles)
        return task if command.cut is None else self._cut(command, task)

    def _cut(self, command: KernelCommand, task: Task) -> Task:
        """Cut a task into bands, or note the reason why it stays whole."""
        assert command.cut is not None
        if layout.spawns(task.head):
            return task._replace(cuts=Cuts((), "it spawns tasks"))
        key = command.cut.bands, command.cut.about, command.local_size
        found = self._cuts.get(key) if command.cut.about is not None else None
        if found is None:
            if len(self._cuts) >= MOST_CUTS:
                self._cuts.clear()
            found = self._cuts[key] = self._cuts_of(command, command.cut, task)
        cuts, tiles, tile_items = found
        if not cuts.bands:
            return task._replace(cuts=cuts)
        return task._replace(
            head=layout.in_tiles(task.head, tiles, tile_items), tiles=tiles, cuts=cuts
        )

    def _cuts_of(self, command: KernelCommand, cut: Cut, task: Task) -> tuple[Cuts, int, int]:
        """Return its bands, the number of tiles, and the work-items of a tile."""
        items, tile_items, local_items = layout.sizes(task.head)
        size = command.global_size
        local = command.local_size or self.function.group_size or ()
        local = (*local, *[1] * len(size))[: len(size)]
        counts = tuple(whole // part for whole, part in zip(size, local, strict=True))
        sizes = Sizes(
            counts, local, local_items, tile_items, self.function.tiled, self.limits.groups
        )
        shared = shares(sizes, cut)
        if isinstance(shared, str):
            return Cuts((), shared), 0, 0
        tile_items, _ = tiles_of(sizes, shared.unit)
        tiles = -(-items // tile_items)
        if tiles > layout.MOST_TILES:
            return Cuts((), f"it would have more than {layout.MOST_TILES:,} tiles"), 0, 0
        bands = bands_of(sizes, cut, shared, tile_items)
        reason = refusal([band.access for band in bands])
        return Cuts(() if reason else bands, reason, local), tiles, tile_items

    def _blob(self, command: KernelCommand, owns: Callable[[int], bool]) -> bytes:
        fields = self.function.fields
        parts: list[Any] = [0] * len(fields)
        pointers, values = command.pointers, command.values
        local = self.function.local_bytes
        for at in range(0, len(pointers), 2):
            memory = pointers[at + 1]
            if self._local and fields[pointers[at]].kind == "local":
                local = -(-local // LOCAL_ALIGN) * LOCAL_ALIGN
                parts[pointers[at]] = local
                local += memory.size
            else:
                parts[pointers[at]] = _address(memory, owns)
        if local > self.limits.arena_bytes:
            raise NeedsArena(local)
        for at in range(0, len(values), 2):
            parts[values[at]] = values[at + 1]
        return self._pack.pack(*parts)

    def _head(
        self, command: KernelCommand, decision: Decision | None, when: int, count: int
    ) -> tuple[bytes, bytes | None, int]:
        function, limits = self.function, self.limits
        size, offset = command.global_size, command.offset
        local = command.local_size or function.group_size
        local = tuple(local)[: len(size)] if local else (1,) * len(size)
        items = prod(size)
        counted = decision is not None and decision.count is not None
        _check_sizes(command, function, local, items, counted)
        local_items = prod(local)
        if function.tiled:
            tile_items = self._tile(items)
        else:
            if local_items != limits.group:
                raise Unfit(f"its groups have {local_items} work-items, not {limits.group}")
            tile_items = -(-items // (limits.most_tiles * limits.group)) * limits.group
        tiles = -(-items // tile_items)
        shape = None
        if len(size) > 1 or (offset is not None and any(offset)):
            shape = layout.shape(size, local, offset)
        upto = decision.upto if decision is not None and decision.count is not None else 0
        head = layout.head(
            self.number, tiles, items, tile_items, local_items, self._pack.size, shape is not None,
            when, count, upto, self._spawn_word(command),
        )  # fmt: skip
        return head, shape, tiles

    def _spawn_word(self, command: KernelCommand) -> int:
        """Return how its record treats spawned items. 0: they run in loops."""
        if not (self.limits.spawn and self.function.children):
            return 0
        return self.limits.spawn if command.spawn is None else command.spawn.word

    def tiling(self, command: KernelCommand, limit: int) -> Tiling | None:
        """Return how launches like this one are cut into tiles, whatever their length. None: they
        have several axes or an offset. `limit`: with more tiles it has to be decided again."""
        if len(command.global_size) != 1 or command.offset is not None:
            return None
        least = self._tile(1) if self.function.tiled else self.limits.group
        return least, self.limits.group, self.limits.most_tiles, limit

    def _tile(self, items: int) -> int:
        """Return the items of a tile, for a kernel that may be cut anywhere."""
        group, most = self.limits.group, self.limits.most_tiles
        least = max(group, SMALLEST_TILE if group == 1 else 0)
        return max(least, -(-items // (most * group)) * group)


class NeedsArena(Unfit):
    """A launch needs more local memory than the scheduler was built with."""

    def __init__(self, nbytes: int) -> None:
        super().__init__(f"it needs {nbytes:,} bytes of local memory")
        self.nbytes = nbytes


def _check_sizes(
    command: KernelCommand, function: Function, local: tuple[int, ...], items: int, counted: bool
) -> None:
    """Raise `Unfit` for sizes that the driver may refuse, or knows better."""
    size, offset = command.global_size, command.offset or ()
    given = (*size, *(command.local_size or ()), *offset)
    if (
        not 1 <= len(size) <= 3
        or not all(hasattr(one, "__index__") and 0 <= one < 1 << 31 for one in given)
        or len(command.local_size or local) != len(size)
        or len(local) != len(size)
        or len(offset) > len(size)
        or items < 1
        or min(local) < 1
    ):
        raise Unfit("its sizes are for the driver to judge")
    required = function.group_size
    if required and command.local_size and tuple(required)[: len(size)] != local:
        raise Unfit("its local size is not the one that the kernel requires")
    for index, (whole, part) in enumerate(zip(size, local, strict=True)):
        if whole % part and not (counted and index == 0):
            raise Unfit("its global size is not a multiple of its local size")
    if not function.tiled and not (command.local_size or required):
        raise Unfit("it works in groups and no local size was given")
    if items >= 1 << 31:
        raise Unfit("it has more than 2**31 work-items")


def _address(memory: Any, owns: Callable[[int], bool]) -> int:
    if memory is None:
        return 0
    if not isinstance(memory, cl.SVMPointer):
        raise Unfit("one of its arguments is a buffer, which has no address that lasts")
    address: int = memory.svm_ptr
    if not owns(address):
        raise Unfit("one of its arguments is memory of another library")
    return address


def _format(fields: Sequence[Field], nbytes: int) -> str:
    """Return the `struct` format of packed arguments."""
    parts, at = [], 0
    codes = {"pointer": "Q", "local": "I"}
    for field in fields:
        parts.append(f"{field.offset - at}x" if field.offset > at else "")
        code = codes.get(field.kind, field.kind)
        parts.append(f"{field.size}s" if code == "value" else code)
        at = field.offset + field.size
    parts.append(f"{nbytes - at}x" if nbytes > at else "")
    return "".join(parts)
