"""Rounds: the words by which a segment runs again and again as a loop on the device.

In: an image of a segment with room in its ring. Out: the image of a loop: with the words that say
how a round begins, and blocks in which no round has begun. And `LoopRun`, by which a run tells how
many rounds it had. `kernels_cl/scheduler.cl` says why this is safe.

Invariant: a run has at most as many rounds as the ring has slots for.
"""

from __future__ import annotations

import numpy as np

from . import layout

RING = 1 << 18
"""Slots for the rounds of one run, about."""

MOST = 4096
"""Rounds of one run. More take another run, and cost the host a wait."""

FLAG, N_RESETS, RESETS = 0, 3, 4
"""Where things are among the words of a loop; behind the flag's address is the most rounds."""


class LoopRun:
    """Tells of one run of a loop: its rounds, once it has ended."""

    __slots__ = ("expected", "rounds")

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.rounds = 0


def most_rounds(tiles: int) -> int:
    """Rounds of one run at most, of a body with so many tiles."""
    return min(max(RING // tiles, 1), MOST)


def looped(image: layout.Image) -> tuple[layout.Image, int]:
    """The image of a loop, and where its words are. `image` has two blocks."""
    words = image.words
    n, rows = image.tasks, -(-image.tasks // 32)
    at_records, at_counts = int(words[layout.RECORDS_AT]), int(words[layout.COUNTS_AT])
    records = words[at_records : at_records + n * layout.RECORD_WORDS]
    records = records.reshape(n, layout.RECORD_WORDS)
    tiles, spawns = layout.tiles_of(records), records[:, layout.BODY] & np.uint32(layout.SPAWNS)
    counts, at = words[at_counts : at_counts + n], layout.task_places(n)
    waits, wide = counts > 0, (tiles > 1) | (spawns > 0)
    places = np.concatenate((at[waits], 32 * rows + at[wide]))
    first = np.concatenate((counts[waits], tiles[wide]))
    own = np.zeros(-(-(RESETS + 2 * len(places)) // 32) * 32, np.uint32)
    own[N_RESETS] = len(places)
    own[RESETS : RESETS + 2 * len(places)] = np.stack((places, first), 1).reshape(-1)
    blocks = words[image.block :].reshape(2, image.block_words).copy()
    blocks[:, layout.STATE_WORD + 64 * rows :] = layout.NONE
    blocks[:, layout.TAIL] = 0
    blocks[:, layout.UNFINISHED] = 1
    made = np.concatenate((words[: image.block], own, blocks.reshape(-1)))
    made[layout.BLOCKS_AT] = image.block + len(own)
    made[layout.TOTAL] = len(made)
    made[layout.LOOP] = image.block
    made[layout.HEADER_CHECK] = layout.header_check(made[: layout.HEADER_CHECK].tolist())
    return image._replace(words=made, block=image.block + len(own)), image.block


def asked(flag: int, at_most: int) -> layout.Words:
    """The words of a loop that say what this run looks at, and how many rounds it may have."""
    return np.array([flag & 0xFFFFFFFF, flag >> 32, at_most], np.uint32)
