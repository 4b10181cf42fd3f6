"""Cuts: how the groups of a launch are shared out among its bands.

Input: the numbers of groups on each axis, and a number of bands or one of the policies that
programs ask for (`policies`). Output: `Shares`, the groups of each band. Pure.

Invariant: the parts of a launch are disjoint and have all of its groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

from ..errors import UsageError, whole
from ..records import Access, NamedTuple
from .bands import MOST_BANDS, Groups, box_of, run_length


class BandGroups(NamedTuple):
    """The groups of a band, by number: `many` runs of `run` in a row. Each run begins `stride`
    behind the one before."""

    first: int
    run: int
    many: int
    stride: int
    boxes: tuple[Groups, ...]
    """The groups as boxes."""


class Shares(NamedTuple):
    """All bands of a launch."""

    unit: int
    """Runs begin and end at multiples of this many groups, or end with the launch."""
    parts: tuple[BandGroups, ...]


def in_runs(counts: Sequence[int], bands: int) -> Shares:
    """Cut into at most `bands` runs of one length: see `run_length`."""
    return runs(counts, run_length(counts, bands))


def runs(counts: Sequence[int], length: int) -> Shares:
    """Cut into runs of a length, and what is left."""
    every = prod(counts)
    ends = [(first, min(first + length, every)) for first in range(0, every, length)]
    parts = (BandGroups(a, b - a, 1, 0, (box_of(counts, a, b),)) for a, b in ends)
    return Shares(length, tuple(parts))


class Policy:
    """A value of `bands=` besides numbers and words: says which groups each band has."""

    def shares(self, counts: Sequence[int]) -> Shares | str:
        """Return the bands of a launch with `counts` groups by axis, or why it has none."""
        raise NotImplementedError


AUTO, LANES, TILES, EACH_TILE = -1, -2, -3, -4
"""A number of bands that the library chooses. A launch that stays whole, and goes to a lane. As
many bands as it has tiles, up to a bound: for recorded launches of which a part may begin early. A
band for each tile: for those in long chains."""

EARLY = "early"
"""The value of `bands=` by default."""

WORDS = {"off": 0, EARLY: 0, "auto": AUTO, "lanes": LANES}
"""Values of `bands=` that are words. A launch by itself is whole with `EARLY`."""


class Cut(NamedTuple):
    """How a launch is to be cut. Commands of recorded launches carry it."""

    bands: int | Policy
    touched: Callable[[Groups, tuple[int, ...]], Access] | None
    """Returns the access of a box of groups of the given size. None: unknown."""
    reason: str = ""
    """Why it is unknown."""
    about: Hashable = None
    """Launches of a kernel with the same value here, and local size, have the same bands."""
    in_parts: Callable[[bool, bool], Any] | None = None
    """Returns the OpenCL kernel for parts of it on lanes, or says why there is none. Its arguments:
    whether a local size is given, and whether there is an offset."""
    parts: dict[Any, Any] | None = None
    """Keeps the parts of launches that are alike."""


def touched_by(cut: Cut, boxes: Sequence[Groups], local_size: tuple[int, ...]) -> Access:
    """Return the access of groups of a launch."""
    assert cut.touched is not None
    each = [cut.touched(box, local_size) for box in boxes]
    if len(each) == 1:
        return each[0]
    reads, writes, overwrites = (
        tuple(dict.fromkeys(span for one in each for span in one[at])) for at in range(3)
    )
    return Access(reads, writes, overwrites)


def refusal(bands: Sequence[Access]) -> str:
    """Say why bands with this access cannot run by themselves. Empty: they can."""
    if len(bands) < 2:
        return "it has one band"
    written = Counter(span for band in bands for span in dict.fromkeys(band.writes))
    if any(times > 1 for times in written.values()):
        return "its bands write the same bytes, or nobody knows which"
    return ""


def asked(value: object) -> int | Policy:
    """Return how many bands were asked for (0 is off), or how to cut.

    >>> asked("off"), asked("early"), asked("auto"), asked("lanes"), asked(8)
    (0, 0, -1, -2, 8)
    """
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    if isinstance(value, Policy):
        return value
    number = whole(value)
    if number is not None and 1 <= number <= MOST_BANDS:
        return number
    raise UsageError(
        f"bands={value!r}: expected 'early', 'auto', 'off', 'lanes' or 1 to {MOST_BANDS:,}, or "
        "acs.Row(), acs.Tile(rows, columns) or acs.Strided(parts)"
    )
