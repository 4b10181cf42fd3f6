"""Bands of a launch: which of its tiles are a task, and what that touches.

In: the sizes of a launch and how it is to be cut. Out: `Band`s, or why the launch stays whole.
Pure.

Invariant: the bands of a launch have all of its tiles, each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..access.bands import AUTO, Cut, box_of, run_length
from ..records import Access, Span
from . import layout

MOST_AUTO = 32
"""Bands that a launch gets where nobody said how many."""

MOST_WAVES = 4
"""A launch with more of them is not cut by itself: what its last wave leaves idle is little."""


class Band(NamedTuple):
    """A run of tiles of a launch, and what it touches."""

    first: int
    tiles: int
    access: Access


class Cuts(NamedTuple):
    """The bands of a launch; or none, and why."""

    bands: tuple[Band, ...]
    reason: str


class Sizes(NamedTuple):
    """What of a launch decides where it may be cut."""

    counts: tuple[int, ...]
    """Groups on each axis."""
    local: tuple[int, ...]
    local_items: int
    tile_items: int
    """Of a tile, if it is not cut."""
    is_tiled: bool
    """Whether a tile may end inside of a group."""
    groups: int
    """Groups that run at the same time."""

    @property
    def items(self) -> int:
        """Work-items of the launch."""
        items = self.local_items
        for count in self.counts:
            items *= count
        return items


def many(sizes: Sizes, cut: Cut) -> int | str:
    """Into how many bands a launch goes at most; or why it stays whole."""
    if cut.touched is None:
        return cut.reason
    if cut.bands != AUTO:
        return cut.bands
    tiles = -(-sizes.items // sizes.tile_items)
    if tiles < 2:
        return "it has one tile"
    if tiles > MOST_WAVES * sizes.groups:
        return f"it has more than {MOST_WAVES} waves"
    return min(tiles, MOST_AUTO)


def tiles_of(sizes: Sizes, bands: int) -> tuple[int, int]:
    """Work-items of a tile, and tiles of a band."""
    run = run_length(sizes.counts, bands)
    items = run * sizes.local_items
    units = items if sizes.is_tiled else run
    wanted = max(1, round(items / sizes.tile_items))
    each = max(n for n in range(1, min(wanted, units) + 1) if units % n == 0)
    if -(-sizes.items // items) * each > layout.MOST_TILES:
        each = 1
    return items // each, each


def bands_of(sizes: Sizes, cut: Cut, tile_items: int, each: int) -> tuple[Band, ...]:
    """The bands of a launch in tiles of so many items, `each` in a band."""
    assert cut.touched is not None
    tiles, local = -(-sizes.items // tile_items), sizes.local_items
    found = []
    for first in range(0, tiles, each):
        behind = min(first + each, tiles)
        end = min(behind * tile_items, sizes.items)
        box = box_of(sizes.counts, first * tile_items // local, -(-end // local))
        found.append(Band(first, behind - first, cut.touched(box, sizes.local)))
    return tuple(found)


def refusal(bands: Sequence[Band]) -> str:
    """Why bands with these bytes cannot be tasks of their own; "" if they can."""
    if len(bands) < 2:
        return "it has one band"
    written = Counter(span for band in bands for span in dict.fromkeys(band.access.writes))
    if any(times > 1 for times in written.values()):
        return "its bands write the same bytes, or nobody knows which"
    return ""


def alike(one: Cuts, other: Cuts, access: Access, new: Access) -> bool:
    """Whether bands conflict with others as before, where a launch of `access` has become one of
    `new`: they touch the same bytes, or all of them as far away as the launch."""
    if len(one.bands) != len(other.bands):
        return False
    if not one.bands or one == other:
        return True
    moves: dict[int, tuple[int, int]] = {}
    pairs = [*zip((*access.reads, *access.writes), (*new.reads, *new.writes), strict=False)]
    for old, moved in pairs:
        to = moved.base, moved.start - old.start
        if moves.setdefault(old.base, to) != to:
            return False
    return all(
        first._replace(access=_moved(first.access, moves)) == second
        for first, second in zip(one.bands, other.bands, strict=True)
    )


def _moved(access: Access, moves: dict[int, tuple[int, int]]) -> Access:
    def of(span: Span) -> Span:
        base, by = moves.get(span.base, (span.base, 0))
        return span._replace(base=base, start=span.start + by)

    reads, writes, overwrites = (tuple(map(of, spans)) for spans in access)
    return Access(reads, writes, overwrites)
