"""Residents: collected epochs that stay on the device, since they came often.

In: the words of an epoch that was collected launch by launch, and the region that has them. Out:
what the sender has to know to run them again. Like a segment, a resident uses one of the two blocks
of its region for each run and cleans the other. Which launches come as it has them, and with which
numbers, the core knows: docs/design/prediction.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import pyopencl as cl

from . import layout

Writes: TypeAlias = "Sequence[tuple[int, layout.Words | bytes]]"
"""Words to be written, and where: in bytes."""


class Resident:
    """An epoch that stays on the device."""

    def __init__(self, image: layout.Image, region: cl.Buffer) -> None:
        self.region = region
        self.status_words = layout.STATUS_WORDS
        self.fresh = image.words[image.block : image.block + self.status_words].copy()
        """The beginning of a block as it is before a run."""
        self.image = image._replace(words=self.fresh)
        self.broken = False
        """A run of it ended as none should: nobody knows how its blocks are."""
        self._block = 1

    def __len__(self) -> int:
        return self.image.tasks

    def turn(self) -> int:
        """The block that the next run uses. The first run, as a collected epoch, had block 0."""
        block, self._block = self._block, 1 - self._block
        return block


class Foreseen(NamedTuple):
    """A run of a resident: its launches came as foreseen, with these numbers in place of others."""

    segment: Resident
    writes: Writes
