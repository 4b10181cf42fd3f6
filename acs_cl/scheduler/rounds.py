"""Rounds: the words by which a segment repeats as a loop on the device.

Input: an image of a segment with room in its ring. Output: the image of a loop, with the words that
start a round, and blocks in which no round has begun. `LoopRun` holds how many rounds a run had.
`kernels_cl/scheduler.cl` says why this is safe.

Invariant: a run has at most as many rounds as the ring has slots for.
"""

from __future__ import annotations

import numpy as np

from . import layout

RING = 1 << 18
"""Slots for the rounds of one run, about."""

MOST = 4096
"""Rounds of one run. More rounds take another run, which costs the host a wait."""

FLAG, N_RESETS, RESETS = 0, 3, 4
"""Places among the words of a loop. Behind the flag's address is the largest number of rounds."""


class LoopRun:
    """Holds the number of rounds of one run of a loop, once it has ended."""

    __slots__ = ("expected", "rounds")

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.rounds = 0


def most_rounds(tiles: int) -> int:
    """Return how many rounds one run may have, for a body of so many tiles."""
    return min(max(RING // tiles, 1), MOST)


def looped(image: layout.Image) -> tuple[layout.Image, int]:
    """Return the image of a loop, and where its words are. `image` has two blocks."""
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
    """Return the words that tell a run the address of its flag, and how many rounds it may have."""
    return np.array([flag & 0xFFFFFFFF, flag >> 32, at_most], np.uint32)
