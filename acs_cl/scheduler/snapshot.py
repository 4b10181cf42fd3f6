"""Snapshots: the state of the scheduler, read while it runs.

Input: the oldest epoch on the device, and a name for each of its tasks. Output: a `Snapshot`. The
scheduler occupies the queue of epochs, so another queue reads the words of the epoch. The read may
not come back while the scheduler runs, so it gets a bounded time.

A scheduler that is watched notes when tasks start and end. So the words tell which tasks run and at
how many tiles of each task groups are. They do not tell which group.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep

import numpy as np
import pyopencl as cl

from ..devices import driver
from ..launch.backend import Snapshot
from ..records import NamedTuple
from . import layout
from .layout import Longs
from .sender import Epoch

READ_S = 0.5
"""How long the read may take."""

PAUSE_S = 1e-3
NAMED = 8
"""Tasks that are named."""

HEAD, TAIL, GONE = 0, 32, 96
ABANDONED = 0xFFFFFFFF
STARTED = 0x80000000


class Standing(NamedTuple):
    """State of an epoch. The last four have a number for each task."""

    head: int
    tail: int
    unfinished: int
    gone: int
    counts: Longs
    """Upstream tasks that have not ended."""
    tiles: Longs
    """Tiles that have not ended."""
    queued: Longs
    """Tiles in the ring."""
    running: Longs
    """Tiles that a group runs."""


def snapshot(of: cl.CommandQueue, epoch: Epoch, name: Callable[[int], str]) -> Snapshot:
    """Read an epoch that was sent on the queue `of`, and say what it does."""
    image = epoch.counts
    about = f"  epoch {epoch.number} of the scheduler, tasks: {image.tasks}"
    words = np.zeros(image.block + (epoch.block + 1) * image.block_words, np.uint32)
    try:
        queue = driver.CommandQueue(of.context, of.device)
        event = driver.read(queue, words, driver.Place(epoch.region, 0, words.nbytes), None)
        queue.flush()
    except cl.Error as error:
        return Snapshot((f"{about}; the driver refuses to read it ({error})",), b"")
    until = perf_counter() + READ_S
    while driver.status(event) > 0:
        if perf_counter() > until:
            epoch.late_reads += ((event, words),)  # the driver still writes into the words
            return Snapshot((f"{about}; the driver reads nothing while it runs",), b"")
        sleep(PAUSE_S)
    block = words[image.block + epoch.block * image.block_words :]
    standing = read(words, block, image.tasks)
    return Snapshot((about, *lines(standing, epoch.groups, name)), block.tobytes())


def read(words: layout.Words, block: layout.Words, tasks: int) -> Standing:
    """Work out the state of an epoch from its words."""
    state, rows = block[layout.STATE_WORD :], -(-tasks // 32)
    places = layout.task_places(tasks)
    counts = state[places].astype(np.int64)
    left = state[32 * rows + places]
    records = words[layout.HEADER_WORDS :][: tasks * layout.RECORD_WORDS].reshape(tasks, -1)
    tiles = (left & 0xFFFF).astype(np.int64)
    ring = state[64 * rows :]
    entries = ring[(ring != 0) & (ring != ABANDONED)] & np.uint32(layout.TASK_MASK)
    owners = entries.astype(np.int64) - 1
    queued = np.bincount(owners[(owners >= 0) & (owners < tasks)], minlength=tasks)
    # a sole successor has no count: it waits until its task has no tiles left
    heirs = (records[:, layout.HEIR] & layout.TASK_MASK).astype(np.int64) - 1
    may = counts == 0
    having = np.flatnonzero(heirs >= 0)
    may[heirs[having]] &= tiles[having] == 0
    single = layout.tiles_of(records) == 1
    many = np.where(may, np.maximum(tiles - queued, 0), 0)
    running = np.where(single, (left & STARTED) != 0, many).astype(np.int64)
    head, tail, unfinished, gone = (int(block[i]) for i in (HEAD, TAIL, layout.UNFINISHED, GONE))
    waits = np.where(may | (counts >= layout.FAULTY), 0, np.maximum(counts, 1))
    return Standing(head, tail, unfinished, gone, waits, tiles, queued, running)


def lines(at: Standing, groups: int, name: Callable[[int], str]) -> list[str]:
    """Return the state as lines of text."""
    at_tiles = min(int(at.running.sum()), groups - at.gone)
    found = [
        f"    ring: head {at.head}, tail {at.tail}; unfinished {at.unfinished}; groups: {groups}, "
        f"gone {at.gone}, at a tile {at_tiles}, waiting for one {groups - at.gone - at_tiles}"
    ]
    busy = np.flatnonzero(at.running)
    for task in busy[:NAMED].tolist():
        found.append(
            f"    runs: {name(task)}, groups at it: {int(at.running[task])}, "
            f"tiles left {int(at.tiles[task])}"
        )
    if len(busy) > NAMED:
        found.append(f"    runs: {len(busy) - NAMED} more tasks")
    if many := int((at.queued > 0).sum()):
        found.append(f"    ready, in the ring: tasks {many}, tiles {int(at.queued.sum())}")
    held = np.flatnonzero(at.counts > 0)
    if len(held):
        oldest = int(held[0])
        found.append(
            f"    waiting for others: tasks {len(held)}, the oldest is {name(oldest)}, which waits "
            f"for {int(at.counts[oldest])}"
        )
    return found
