"""Layout: an epoch as the words that the scheduler on the device reads.

Input: tasks in program order, each a head of 16 words, packed arguments, and upstream tasks of the
same epoch. Output: one array of uint32, which is uploaded unchanged. No driver, no clock. Layout
and names are those of `kernels_cl/descriptor.h`, version 3.

Invariant: references go from lower to higher tasks. The upstream count of a task is counted down by
the tasks that it waits for. Nobody counts down a sole successor, which waits for one task alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import core
from ..records import NamedTuple
from .orders import Order, Tasks, first_in, priorities

VERSION = 0xAC500003
HEADER_WORDS = 32
RECORDS_AT, BLOCKS_AT, COUNTS_AT, TOTAL, LOOP, HEADER_CHECK = 2, 5, 10, 13, 14, 15
NONE = 0
RECORD_WORDS = 32
RECORD_BYTES = 4 * RECORD_WORDS
INLINE_WORD = 16
INLINE_BYTES = RECORD_BYTES - 4 * INLINE_WORD
STATE_WORD = 192
TASK_BITS = 20
TASK_MASK = (1 << TASK_BITS) - 1
FUSED = 0x100
GANG = 0x200
PLAIN = 0x400
SPAWNS = 0x800
BAND = 0x1000
ALIKE = 0x2000

MOST_TASKS = (1 << TASK_BITS) - 2
MOST_TILES = 1 << (32 - TASK_BITS)
MOST_ARGS_BYTES = 1024

POOL_UNITS = 1 << 16
"""Units of 64 bytes for the children of one run of an epoch, or of one round of a loop. Without a
free unit a group runs the items itself."""

CHILD_SLOTS = 1 << 12
"""Slots of a ring for the tiles of all children in one run. They are uploaded."""

MOST_CHILD_TILES = 1 << 10
"""Tiles of a child at most."""

LISTED = 256
"""Children of a tile that wait for its end."""

UNIT_BYTES = 64

LEARNED_UNITS = 64
"""Units of 64 bytes in front of the others: what was learned of each of 256 bodies."""

# places in a record, by word
BODY, HEIR, SUCCESSORS, N_SUCCESSORS, TILES, ITEMS, TILE_ITEMS, ARGS, SHAPE, LOCAL = range(10)
WHEN, COUNT, UPTO, SPREAD = 10, 12, 14, 15

# places in a block, by word; the host reads its first `STATUS_WORDS` back
TAIL, UNFINISHED, ROUND, FAULT, STATUS_WORDS = 32, 64, 65, 128, 160
SPAWNED, KEPT, REASONS = 99, 100, 4

FAULTY = 0xF0000000
TOLD = 14
FAULTS = {
    1: "the header is not one of this version",
    2: "a record makes no sense",
    3: "a successor makes no sense",
    4: "a task was counted down too often",
    5: "the ready queue overflowed",
}

Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]

_HEAD = Struct("<16I")
_SHAPE = Struct("<10I")


class Image(NamedTuple):
    """An epoch as words, with what the host has to know about them."""

    words: Words
    tasks: int
    width: int
    """How many tiles can be ready or running at one time, or mostly are. More groups have no
    work."""
    block: int
    """Where block 0 begins."""
    block_words: int


def head(
    body: int,
    tiles: int,
    items: int,
    tile_items: int,
    local_items: int,
    blob_bytes: int,
    shape: bool = False,
    when: int = 0,
    count: int = 0,
    upto: int = 0,
    spawn: int = 0,
) -> bytes:
    """Return the first 16 words of a record, without those that the graph decides. Arguments that
    do not fit, and a shape, are places relative to the epoch's extra words, plus one. `spawn`: how
    the scheduler treats its children; 0: it has none."""
    plain = PLAIN if not (shape or when or count or blob_bytes > INLINE_BYTES) else 0
    plain |= SPAWNS if spawn else 0
    return _HEAD.pack(
        body | plain | (-(-blob_bytes // 4) << 16), 0, 0, 0, tiles, items, tile_items,
        int(blob_bytes > INLINE_BYTES), int(shape), local_items,
        when & 0xFFFFFFFF, when >> 32, count & 0xFFFFFFFF, count >> 32, upto, spawn,
    )  # fmt: skip


def with_when(record: bytes, when: int) -> bytes:
    """Change a record, or its head, to run only if the word at address `when` is not zero."""
    first = int.from_bytes(record[:4], "little") & ~PLAIN
    return b"".join(
        (first.to_bytes(4, "little"), record[4:40], when.to_bytes(8, "little"), record[48:])
    )


def shape(
    global_size: Sequence[int], local_size: Sequence[int], offset: Sequence[int] | None
) -> bytes:
    """Return the shape of a launch that has several dimensions or an offset."""
    dimensions = len(global_size)
    filled = [*global_size, 1, 1][:3], [*local_size, 1, 1][:3], [*(offset or ()), 0, 0, 0][:3]
    return _SHAPE.pack(*filled[0], *filled[1], *filled[2], dimensions)


def band(record: bytes, first: int, tiles: int, run: int = 0, stride: int = 0) -> bytes:
    """Return the head of a record for some tiles of its launch, from tile `first` on. `run`
    tiles are in a row, and the next ones begin `stride` behind the first of these. 0: all are in
    a row."""
    body = int.from_bytes(record[:4], "little") | BAND
    if run:
        body &= ~PLAIN
    return b"".join(
        (
            body.to_bytes(4, "little"), record[4 : 4 * TILES],
            (first << 16 | tiles).to_bytes(4, "little"), record[4 * TILES + 4 : 4 * SPREAD],
            (stride << 16 | run).to_bytes(4, "little"), record[4 * SPREAD + 4 :],
        )
    )  # fmt: skip


def sizes(record: bytes) -> tuple[int, int, int]:
    """Read the work-items of a launch, of its tiles and of its groups from the head of a record."""
    words = _HEAD.unpack(record[: _HEAD.size])
    return words[ITEMS], words[TILE_ITEMS], words[LOCAL]


def spawns(record: bytes) -> bool:
    """Tell from the head of a record whether a launch may spawn tasks."""
    return bool(int.from_bytes(record[:4], "little") & SPAWNS)


def in_tiles(record: bytes, tiles: int, tile_items: int) -> bytes:
    """Return the head of a record for the same launch in other tiles."""
    words = [*_HEAD.unpack(record)]
    words[TILES], words[TILE_ITEMS] = tiles, tile_items
    return _HEAD.pack(*words)


JOINT = band(head(0, 1, 0, 1, 1, 0), 0, 1)
"""The head of a joint task, which runs nothing: some tasks wait for others through it."""


class Recorder(core.native.Recorder):
    """Takes tasks and makes an `Image` of them."""

    def priorities(self, order: Order) -> Sequence[float]:
        """Return the priority that an order gives each task. Empty: tasks go in program order."""
        return priorities(Tasks(*self._edges()), order) or ()

    def groups_wanted(self, units: int) -> int:
        """Return how many groups mostly have work: twice as many as there are tiles of a level on
        average, but one for each compute unit at least. More of them look for work in vain, and
        those that have work take longer for that. There are as many levels as tasks in the longest
        chain."""
        upstream, downstream, tiles = self._edges()
        chains = core.native.heights(upstream, downstream, [1.0] * len(tiles), 0.0)
        return max(units, 2 * self.entries // int(max(chains, default=1)))

    def image(
        self,
        spare: int,
        order: Order = first_in,
        window: int = 0,
        blocks: int = 1,
        gang: bool = True,
    ) -> Image:
        """Return the epoch as words. `spare`: slots of the ring beyond the entries, twice the
        groups that may come. `window`: its slots, 0 for as many as tasks."""
        priority = () if order is first_in else self.priorities(order)
        words, block, block_words = self._image(spare, priority, window, blocks, gang)
        return Image(np.frombuffer(words, np.uint32), self.tasks, self.width, block, block_words)


def header_check(header: Sequence[int]) -> int:
    """Return the checksum by which the scheduler knows that its header is unchanged."""
    check = 0
    for word in header:
        check = (check ^ word) * 16777619 & 0xFFFFFFFF
    return check


def told_counts(status: Words) -> dict[int, int]:
    """Return the counts that tasks refused, for the first of these tasks."""
    many = min(int(status[FAULT + 3]), TOLD)
    told = status[FAULT + 4 : FAULT + 4 + 2 * many].tolist()
    return dict(zip(told[::2], told[1::2], strict=True))


def task_places(n: int) -> Any:
    """Return the places of the counts of `n` tasks in a block's state. Neighbours lie apart."""
    tasks = np.arange(n)
    return (tasks % 32) * -(-n // 32) + tasks // 32


def tiles_of(records: Words) -> Words:
    """Return how many tiles each record has. The word's high half is the number of the first."""
    return records[:, TILES] & np.uint32(0xFFFF)
