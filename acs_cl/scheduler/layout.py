"""Epochs: a batch of launches as the words that the device-side scheduler reads.

In: tasks in program order (a head of 16 words, packed arguments, upstream tasks of the same epoch).
Out: one array of uint32, which is uploaded as it is. No driver, no clock. The layout is that of
`kernels_cl/descriptor.h`, version 3, and so are the names.

Invariant: references go from lower to higher tasks. A task's upstream count is what others count
down: an heir, which waits for one task alone, is counted down by nobody.
"""

# Long because: one layout is written in one place.

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
KIND = [BODY, TILES, ITEMS, TILE_ITEMS, LOCAL]
"""All that is told of a task without decisions or a shape, but for arguments and who waits."""

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
    """Takes tasks, gives an `Image`. The core makes images of tasks in program order, and
    `arranged` those in any other."""

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
        if window or order is not first_in:
            return arranged(self._columns(), spare, order, window, stale, blocks, gang)
        words, block, block_words = self._image(spare, stale, blocks, gang)
        return Image(words_of(words), self.tasks, self.width, block, block_words)

    def _columns(self) -> Columns:
        return Columns(
            words_of(b"".join(self._records)).reshape(self.tasks, RECORD_WORDS),
            words_of(self._extra),
            words_of(self._heirs),
            words_of(self._counts),
            words_of(self._initial),
            words_of(self._upstream),
            words_of(self._downstream),
            self._patches,
            self.width,
        )


class Columns(NamedTuple):
    """The tasks of an epoch, as a recorder has them."""

    records: Words
    """A row for each, without what `patches` names."""
    extra: Words
    """Arguments and shapes that records refer to."""
    heirs: Words
    """For each task, plus one, the first of those that wait for it alone; 0: there is none."""
    counts: Words
    """How many others each waits for; 0 for an heir."""
    initial: Words
    """Tasks that wait for none."""
    upstream: Words
    """Of the edges that no heir stands for: who is waited for, and below who waits."""
    downstream: Words
    patches: list[tuple[int, int]]
    """Places in records, and what they refer to in `extra`."""
    width: int
    """As an `Image` has it."""


def arranged(
    columns: Columns,
    spare: int,
    order: Order = first_in,
    window: int = 0,
    stale: int = 0,
    blocks: int = 1,
    gang: bool = True,
) -> Image:
    """Make an image of tasks in any order. The parameters are those of `Recorder.image`."""
    records, heirs, initial = columns.records, columns.heirs, columns.initial
    upstream, downstream, counts = columns.upstream, columns.downstream, columns.counts.copy()
    n = len(records)
    tiles = tiles_of(records)
    references = _references(tiles)
    if window or order is not first_in:
        upstream, downstream = _all_edges(heirs, upstream, downstream)
        counts = np.bincount(downstream, minlength=n).astype(np.uint32)
        heirs = np.zeros(n, np.uint32)
        tasks = Tasks(upstream.tolist(), downstream.tolist(), tiles.tolist())
        found = priorities(tasks, order)
        if found is not None:
            priority = np.array(found)
            initial = initial[np.argsort(-priority[initial], kind="stable")]
            by_priority = np.argsort(-priority[downstream], kind="stable")
            upstream, downstream = upstream[by_priority], downstream[by_priority]
        if window:
            slots = min(window, stale + 1, n)
            initial = initial[initial < slots]
            counts[slots:] += 1
        else:
            heirs, upstream, downstream = _choose_heirs(upstream, downstream, counts)
    successors = references[downstream[np.argsort(upstream, kind="stable")]]
    out = np.bincount(upstream, minlength=n).astype(np.uint32) if len(upstream) else None
    entries = _entries(initial, tiles)
    image = _assemble(columns, successors, counts, entries, spare, window, stale, blocks)
    stored = image.words[HEADER_WORDS : HEADER_WORDS + n * RECORD_WORDS]
    records = stored.reshape(n, RECORD_WORDS)
    if out is not None:
        records[:, N_SUCCESSORS] = out
        records[:, SUCCESSORS] = np.cumsum(out, dtype=np.uint32) - out
    if len(initial) < n and not window:
        _mark(records, heirs, references, gang)
    return image


def _assemble(
    columns: Columns,
    successors: Words,
    counts: Words,
    entries: Words,
    spare: int,
    window: int,
    stale: int,
    blocks: int,
) -> Image:
    records = columns.records
    n = len(records)
    tiles = tiles_of(records)
    published = int(tiles.sum())
    capacity = max(32, 1 << (published + spare + len(entries)).bit_length())
    rows = -(-n // 32)
    at_records = HEADER_WORDS
    at_successors = at_records + n * RECORD_WORDS
    at_extra = -(-(at_successors + len(successors)) // 4) * 4
    at_initial = at_extra + len(columns.extra)
    at_counts = at_initial + len(entries)
    at_blocks = -(-(at_counts + n) // 32) * 32
    block_words = -(-(STATE_WORD + 64 * rows + capacity) // 32) * 32
    total = at_blocks + blocks * block_words
    words = np.zeros(total, np.uint32)
    words[:15] = (
        VERSION, n, at_records, at_successors, len(successors), at_blocks, block_words,
        capacity - 1, at_initial, len(entries), at_counts, window, stale, total, 0,
    )  # fmt: skip
    words[HEADER_CHECK] = header_check(words[:HEADER_CHECK].tolist())
    flat = words[at_records:at_successors]
    flat[:] = records.reshape(-1)
    for place, extra in columns.patches:
        flat[place] = at_extra + extra
    words[at_successors : at_successors + len(successors)] = successors
    words[at_extra:at_initial] = columns.extra
    words[at_initial:at_counts] = entries
    words[at_counts : at_counts + n] = counts
    block = words[at_blocks : at_blocks + block_words]
    block[32] = len(entries)
    block[UNFINISHED] = n
    state = block[STATE_WORD:]
    at = task_places(n)
    state[at] = counts
    state[32 * rows + at] = tiles
    slots = np.arange(len(entries))
    state[64 * rows + (slots % 32) * (capacity // 32) + slots // 32] = entries
    return Image(words, n, columns.width, at_blocks, block_words)


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


def words_of(column: Any) -> Words:
    """A column of words as an array."""
    return np.frombuffer(column, np.uint32)


def _references(tiles: Words) -> Words:
    """The reference of each task, as its successors' lists have it."""
    tasks = np.arange(1, len(tiles) + 1, dtype=np.uint32)
    return (tiles - np.uint32(1)) << np.uint32(TASK_BITS) | tasks


def _all_edges(heirs: Words, upstream: Words, downstream: Words) -> tuple[Words, Words]:
    """All edges in the order of the tasks that wait, those to heirs among them."""
    having = np.flatnonzero(heirs).astype(np.uint32)
    upstream = np.concatenate((having, upstream))
    downstream = np.concatenate((heirs[having] - np.uint32(1), downstream))
    in_order = np.argsort(downstream, kind="stable")
    return upstream[in_order], downstream[in_order]


def _choose_heirs(upstream: Words, downstream: Words, counts: Words) -> tuple[Words, Words, Words]:
    """Give every task the first of the successors that wait for it alone as its heir; the heirs,
    and the edges that are left."""
    alone = counts[downstream] == 1
    heirs = np.zeros(len(counts), np.uint32)
    # in reverse, so that the first one stays
    heirs[upstream[alone][::-1]] = downstream[alone][::-1] + 1
    others = heirs[upstream] != downstream + 1
    counts[downstream[~others]] = 0
    return heirs, upstream[others], downstream[others]


def _mark(records: Words, heirs: Words, references: Words, gang: bool) -> None:
    """Write the heirs down, and mark what is handed over without the queue: a task of one tile
    whose one-tile heir is all that waits for it, and tasks of several tiles with such heirs. Of the
    former, mark those whose heir is a like task."""
    having = np.flatnonzero(heirs)
    theirs = references[heirs[having].astype(np.int64) - 1]
    records[having, HEIR] = theirs
    bodies, single = records[:, BODY], theirs >> np.uint32(TASK_BITS) == 0
    alone = tiles_of(records)[having] == 1
    spawns = (bodies[having] & np.uint32(SPAWNS)) > 0
    fused = having[alone & single & ~spawns & (records[having, N_SUCCESSORS] == 0)]
    bodies[fused[_are_alike(records, fused, heirs)]] |= np.uint32(ALIKE)
    bodies[fused] |= np.uint32(FUSED)
    if gang and not alone.all():
        bodies[having[~alone & ~single & ~spawns]] |= np.uint32(GANG)


def _are_alike(records: Words, tasks: Words, heirs: Words) -> NDArray[np.bool_]:
    """Whether tasks and their heirs differ in their arguments at most, which are in the records,
    and in what waits for them; nothing else than an heir waits for the heirs."""
    theirs = records[heirs[tasks].astype(np.int64) - 1]
    differ = (records[tasks] ^ theirs)[:, KIND].any(axis=1)
    plain = theirs[:, BODY] & np.uint32(PLAIN) > 0
    alike: NDArray[np.bool_] = ~differ & plain & (theirs[:, N_SUCCESSORS] == 0)
    return alike


def _entries(tasks: Words, tiles: Words) -> Words:
    """A queue entry for every tile of some tasks."""
    each = tiles[tasks].astype(np.int64)
    if (each == 1).all():
        return (tasks + 1).astype(np.uint32)
    repeated = np.repeat(tasks + 1, each).astype(np.uint32)
    ends = np.cumsum(each)
    tile = np.arange(len(repeated), dtype=np.int64) - np.repeat(ends - each, each)
    return (repeated | (tile << TASK_BITS).astype(np.uint32)).astype(np.uint32)
