"""Bands of a launch: which of its tiles are a task, and which bytes they touch.

Input: the sizes of a launch and how it is to be cut. Output: `Band`s, or the reason why the launch
stays whole. Pure.

Invariant: the bands of a launch have all of its tiles, each once.
"""

from __future__ import annotations

from ..access.bands import Groups
from ..access.cuts import AUTO, EACH_TILE, TILES, Cut, Shares, in_runs, touched_by
from ..records import Access, NamedTuple, Span
from . import layout

MOST_AUTO = 32
"""Bands that a launch gets if the program gave no number."""

MOST_WAVES = 4
"""A launch with more waves is not cut unless asked for: its last wave leaves little idle."""


class Band(NamedTuple):
    """Some tiles of a launch, and the bytes that they touch."""

    first: int
    tiles: int
    access: Access
    run: int = 0
    """Tiles in a row; the next row begins `stride` after the begin of this one. 0: only one row."""
    stride: int = 0
    boxes: tuple[Groups, ...] = ()


class Cuts(NamedTuple):
    """The bands of a launch, or the reason why there are none."""

    bands: tuple[Band, ...]
    reason: str
    """Why there are none, or why there are some though nobody asked."""
    unit: tuple[int, ...] = ()
    """Work-items of a group."""


class Sizes(NamedTuple):
    """Sizes of a launch that decide where it may be cut."""

    counts: tuple[int, ...]
    """Groups on each axis."""
    local: tuple[int, ...]
    local_items: int
    tile_items: int
    """Work-items of a tile if the launch is not cut."""
    is_tiled: bool
    """Whether a tile may end inside a group."""
    groups: int
    """Groups that run at the same time."""

    @property
    def items(self) -> int:
        """Return the number of work-items of the launch."""
        items = self.local_items
        for count in self.counts:
            items *= count
        return items


def shares(sizes: Sizes, cut: Cut) -> Shares | str:
    """Return the groups of each band, or the reason why the launch stays whole."""
    if cut.touched is None:
        return cut.reason
    if not isinstance(cut.bands, int):
        return cut.bands.shares(sizes.counts)
    if cut.bands not in (AUTO, TILES, EACH_TILE):
        return in_runs(sizes.counts, cut.bands)
    tiles = -(-sizes.items // sizes.tile_items)
    if tiles < 2:
        return "it has one tile"
    if cut.bands == AUTO and sizes.groups > MOST_AUTO:
        return "no part of it may begin early, and the device has groups to spare"
    if cut.bands == AUTO and tiles > MOST_WAVES * sizes.groups:
        return f"it has more than {MOST_WAVES} waves"
    return in_runs(sizes.counts, tiles if cut.bands == EACH_TILE else min(tiles, MOST_AUTO))


def tiles_of(sizes: Sizes, unit: int) -> tuple[int, int]:
    """Return the work-items of a tile, and how many tiles `unit` groups have."""
    items = unit * sizes.local_items
    units = items if sizes.is_tiled else unit
    wanted = max(1, round(items / sizes.tile_items))
    each = max(n for n in range(1, min(wanted, units) + 1) if units % n == 0)
    if -(-sizes.items // items) * each > layout.MOST_TILES:
        each = 1
    return items // each, each


def bands_of(sizes: Sizes, cut: Cut, shares: Shares, tile_items: int) -> tuple[Band, ...]:
    """Make the bands of a launch in tiles of `tile_items`."""
    assert cut.touched is not None
    found = []
    for part in shares.parts:
        first, run, stride = (
            -(-groups * sizes.local_items // tile_items)
            for groups in (part.first, part.run, part.stride)
        )
        access = touched_by(cut, part.boxes, sizes.local)
        spread = (run, stride) if part.many > 1 else (0, 0)
        found.append(Band(first, run * part.many, access, *spread, part.boxes))
    return tuple(found)


def alike(one: Cuts, other: Cuts, access: Access, new: Access) -> bool:
    """Tell whether the bands have the same hazards after the access of their launch changed. They
    do if they touch the same bytes, or if all bytes moved as far as those of the launch."""
    if len(one.bands) != len(other.bands):
        return False
    if not one.bands or one == other:
        return True
    moves: dict[int, tuple[int, int]] = {}
    pairs = [*zip((*access.reads, *access.writes), (*new.reads, *new.writes), strict=False)]
    for old, moved in pairs:
        move = moved.base, moved.start - old.start
        if moves.setdefault(old.base, move) != move:
            return False

    def to(span: Span) -> Span:
        base, by = moves.get(span.base, (span.base, 0))
        return span._replace(base=base, start=span.start + by)

    return all(
        first._replace(access=first.access.moved(to)) == second
        for first, second in zip(one.bands, other.bands, strict=True)
    )
