"""Epochs: a batch of launches as the words that the device-side scheduler reads.

In: tasks in program order (a head of 16 words, packed arguments, upstream tasks of the same epoch).
Out: one array of uint32, which is uploaded as it is. No driver, no clock. The layout is that of
`kernels_cl/descriptor.h`, version 3, and so are the names.

Invariant: references go from lower to higher tasks. A task's upstream count is what others count
down: an heir, which waits for one task alone, is counted down by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from .. import core
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
"""Of 64 bytes, for the children of one run of an epoch, or one round of a loop. With none left a
group runs the items itself."""

CHILD_SLOTS = 1 << 12
"""Slots of a ring for the tiles of children: of all in one run. They are uploaded."""

MOST_CHILD_TILES = 1 << 10
"""Tiles of a child at most."""

LISTED = 256
"""Children of a tile that wait for its end."""

UNIT_BYTES = 64

LEARNED_UNITS = 64
"""Of 64 bytes, before the others: what was learned of each of 256 bodies."""

# where things are in a record
BODY, HEIR, SUCCESSORS, N_SUCCESSORS, TILES, ITEMS, TILE_ITEMS, ARGS, SHAPE, LOCAL = range(10)
WHEN, UPTO, SPREAD = 10, 14, 15

# where things are in a block, by word, and how much of its beginning the host reads back
TAIL, UNFINISHED, ROUND, FAULT, STATUS_WORDS = 32, 64, 65, 128, 160
SPAWNED, KEPT, REASONS = 99, 100, 4

FAULTY = 0xF0000000
TOLD = 14
ABOVE_UPTO, NOT_WHOLE_GROUPS = 6, 7
FAULTS = {
    1: "the header is not one of this version",
    2: "a record makes no sense",
    3: "a successor makes no sense",
    4: "a task was counted down too often",
    5: "the ready queue overflowed",
}

Words = np.ndarray[Any, np.dtype[np.uint32]]

_HEAD = Struct("<16I")
_SHAPE = Struct("<10I")


class Image(NamedTuple):
    """An epoch as words, and what the host has to know of them."""

    words: Words
    tasks: int
    width: int
    """How many tiles can be ready or running at a time at most: more groups find nothing to do."""
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
    """The first 16 words of a record, without what the graph decides. Arguments that do not fit,
    and a shape, are places relative to the epoch's extra words, plus one. `spawn`: what the
    scheduler is told of its children, 0: it has none."""
    plain = PLAIN if not (shape or when or count or blob_bytes > INLINE_BYTES) else 0
    plain |= SPAWNS if spawn else 0
    return _HEAD.pack(
        body | plain | (-(-blob_bytes // 4) << 16), 0, 0, 0, tiles, items, tile_items,
        int(blob_bytes > INLINE_BYTES), int(shape), local_items,
        when & 0xFFFFFFFF, when >> 32, count & 0xFFFFFFFF, count >> 32, upto, spawn,
    )  # fmt: skip


def with_when(record: bytes, when: int) -> bytes:
    """A record, or the head of one, that runs only if the word at an address is not zero."""
    first = int.from_bytes(record[:4], "little") & ~PLAIN
    return b"".join(
        (first.to_bytes(4, "little"), record[4:40], when.to_bytes(8, "little"), record[48:])
    )


def shape(
    global_size: Sequence[int], local_size: Sequence[int], offset: Sequence[int] | None
) -> bytes:
    """The shape of a launch of several dimensions, or one with an offset."""
    dimensions = len(global_size)
    filled = [*global_size, 1, 1][:3], [*local_size, 1, 1][:3], [*(offset or ()), 0, 0, 0][:3]
    return _SHAPE.pack(*filled[0], *filled[1], *filled[2], dimensions)


def band(record: bytes, first: int, tiles: int, run: int = 0, stride: int = 0) -> bytes:
    """The head of a record for some tiles of its launch, from the one numbered `first` on: `run` in
    a row, then the next ones `stride` behind these; 0: all in a row."""
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
    """Work-items of a launch, of its tiles and of its groups, from the head of a record."""
    words = _HEAD.unpack(record[: _HEAD.size])
    return words[ITEMS], words[TILE_ITEMS], words[LOCAL]


def spawns(record: bytes) -> bool:
    """Whether a launch may spawn tasks, from the head of a record."""
    return bool(int.from_bytes(record[:4], "little") & SPAWNS)


def in_tiles(record: bytes, tiles: int, tile_items: int) -> bytes:
    """The head of a record for the same launch in other tiles."""
    words = [*_HEAD.unpack(record)]
    words[TILES], words[TILE_ITEMS] = tiles, tile_items
    return _HEAD.pack(*words)


JOINT = band(head(0, 1, 0, 1, 1, 0), 0, 1)
"""The head of a task that runs nothing: it waits for others, and others wait for it alone."""


class Recorder(core.native.Recorder):
    """Takes tasks, gives an `Image`."""

    def priorities(self, order: Order) -> Sequence[float]:
        """What an order says of each task; nothing: tasks go in program order."""
        return priorities(Tasks(*self._edges()), order) or ()

    def image(
        self,
        spare: int,
        order: Order = first_in,
        window: int = 0,
        stale: int = 0,
        blocks: int = 1,
        gang: bool = True,
    ) -> Image:
        """All of it as words. `spare`: queue slots beyond the entries, twice the groups that may
        come. `window`: slots of the window, 0 for as many as tasks, and `stale` its reach."""
        priority = () if order is first_in else self.priorities(order)
        words, block, block_words = self._image(spare, priority, window, stale, blocks, gang)
        return Image(np.frombuffer(words, np.uint32), self.tasks, self.width, block, block_words)


def header_check(header: Sequence[int]) -> int:
    """What tells the scheduler that its header is as it was written."""
    check = 0
    for word in header:
        check = (check ^ word) * 16777619 & 0xFFFFFFFF
    return check


def told_counts(status: Words) -> dict[int, int]:
    """What the counts were that tasks refused, for the first of them."""
    many = min(int(status[FAULT + 3]), TOLD)
    told = status[FAULT + 4 : FAULT + 4 + 2 * many].tolist()
    return dict(zip(told[::2], told[1::2], strict=True))


def task_places(n: int) -> Any:
    """Where the counts of tasks 0 to n - 1 are in a block's state; those of neighbours lie
    apart."""
    tasks = np.arange(n)
    return (tasks % 32) * -(-n // 32) + tasks // 32


def tiles_of(records: Words) -> Words:
    """How many tiles each has; in the high half of the word is the number of the first."""
    return records[:, TILES] & np.uint32(0xFFFF)
