"""Model how the core's `Recorder` takes tasks: column by column, in Python.

In: tasks in program order. Out: the columns of which `acs_cl.scheduler.layout.arranged` makes an
image.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from acs_cl.scheduler.layout import (
    ARGS,
    BODY,
    INLINE_BYTES,
    MOST_TILES,
    RECORD_WORDS,
    SHAPE,
    SPAWNS,
    TILES,
    Columns,
    Image,
    arranged,
    tiles_of,
    words_of,
)


class Recorder:
    """Take tasks, give an `Image`."""

    def __init__(self) -> None:
        self.entries = 0
        """Tiles of all tasks."""
        self._records: list[bytes] = []
        self._extra = bytearray()
        self._shapes: dict[bytes, int] = {}
        # An heir waits for its task alone: found as tasks come. What is left are the other edges.
        self._heirs = array("I")
        self._counts = array("I")
        self._initial = array("I")
        self._upstream = array("I")
        self._downstream = array("I")
        self._patches: list[tuple[int, int]] = []
        self._above: list[tuple[int, ...]] = []

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self._records)

    def add(
        self, record: bytes, blob: bytes | None, task_shape: bytes | None, upstream: Sequence[int]
    ) -> int:
        """A task, behind those of `upstream`; its number in the epoch. `record`: a whole one, or a
        head, for arguments in `blob`."""
        records = self._records
        task = len(records)
        self.entries += int.from_bytes(record[4 * TILES : 4 * TILES + 2], "little")
        if blob is not None:
            if len(blob) <= INLINE_BYTES:
                record += blob.ljust(INLINE_BYTES, b"\0")
            else:
                record += bytes(INLINE_BYTES)
                self._patches.append((task * RECORD_WORDS + ARGS, self._put(blob)))
        records.append(record)
        if task_shape is not None:
            place = self._shapes.get(task_shape)
            if place is None:
                place = self._shapes[task_shape] = self._put(task_shape)
            self._patches.append((task * RECORD_WORDS + SHAPE, place))
        self._above.append(tuple(upstream))
        self._heirs.append(0)
        if not upstream:
            self._initial.append(task)
            self._counts.append(0)
        elif len(upstream) == 1 and not self._heirs[upstream[0]]:
            self._heirs[upstream[0]] = task + 1
            self._counts.append(0)  # whoever counts an heir down all the same is found out
        else:
            self._counts.append(len(upstream))
            for other in upstream:
                self._upstream.append(other)
                self._downstream.append(task)
        return task

    def _put(self, data: bytes) -> int:
        place = len(self._extra) // 4
        self._extra += data.ljust(-(-len(data) // 16) * 16, b"\0")
        return place

    def _width(self, tiles: list[int], wide: list[int]) -> int:
        """The widest tasks of all chains, where each task is put behind the widest, then the last
        named, of its upstream that no other task is behind. `wide`: with children."""
        chains: list[list[int]] = []
        for task, upstream in enumerate(self._above):
            ends = {chain[-1]: chain for chain in chains}
            free = [(tiles[other], place) for place, other in enumerate(upstream) if other in ends]
            if free:
                ends[upstream[max(free)[1]]].append(task)
            else:
                chains.append([task])
        return sum(max(wide[task] for task in chain) for chain in chains)

    def image(self, spare: int, **how: Any) -> Image:
        """Return all of it as words; `how` is what `acs_cl.scheduler.layout.arranged` takes."""
        records = words_of(b"".join(self._records)).reshape(self.tasks, RECORD_WORDS)
        tiles = tiles_of(records).tolist()
        spawns = (records[:, BODY] & np.uint32(SPAWNS)).tolist()
        wide = [MOST_TILES if can else n for n, can in zip(tiles, spawns, strict=True)]
        columns = Columns(
            records,
            words_of(self._extra),
            words_of(self._heirs),
            words_of(self._counts),
            words_of(self._initial),
            words_of(self._upstream),
            words_of(self._downstream),
            self._patches,
            self._width(tiles, wide),
        )
        return arranged(columns, spare, **how)
