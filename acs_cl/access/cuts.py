"""Cuts: how the groups of a launch are shared out among its bands.

Input: the numbers of groups on each axis, and a number of bands or one of the policies that
programs ask for. Output: `Shares`, the groups of each band. Pure.

The policies are those of cuSync (CGO 2024), where they are ways to wait for tiles of a producer.
Here they only say what a band is; edges follow from the bytes.

Invariant: the parts of a launch are disjoint and have all of its groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from ..errors import UsageError, whole
from ..records import Access, NamedTuple
from .bands import MOST_BANDS, Groups, box_of, run_length, tiles

MOST_ROWS = (1 << 31) - 1
"""Rows of groups in a band. There are as many in a launch at most."""


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
    return _runs(counts, run_length(counts, bands))


@dataclass(frozen=True)
class Row:
    """Cuts a launch along its slowest axis: a band is one row of groups, or `rows` of them.

    >>> import acs_cl as acs
    >>> with acs.Runtime(bands=acs.Row(2)) as rt:
    ...     rt.options.bands
    Row(rows=2)
    """

    rows: int = 1

    def __post_init__(self) -> None:
        _check(self, "rows", most=MOST_ROWS)

    def shares(self, counts: Sequence[int]) -> Shares | str:
        """Return the bands of a launch with `counts` groups by axis, or why it has none."""
        bands = -(-counts[-1] // self.rows)
        if bands > MOST_BANDS:
            return f"it has {bands:,} rows of groups, more than {MOST_BANDS:,}"
        return _runs(counts, prod(counts[:-1]) * self.rows)


@dataclass(frozen=True)
class Tile:
    """Cuts a launch of two axes into `rows` and `columns` of bands, of nearly equal size.

    >>> import acs_cl as acs
    >>> acs.Tile(4, 2)
    Tile(rows=4, columns=2)
    """

    rows: int
    columns: int

    def __post_init__(self) -> None:
        _check(self, "rows", "columns")
        if self.rows * self.columns > MOST_BANDS:
            raise UsageError(f"{self}: expected {MOST_BANDS:,} bands at most")

    def shares(self, counts: Sequence[int]) -> Shares | str:
        """Return the bands of a launch: see `Row`."""
        if prod(counts[:2]) != prod(counts):
            return "it has groups on three axes"
        across, down = (*counts, 1)[:2]
        wanted = (min(self.columns, across), min(self.rows, down))
        parts = []
        for (left, right), (top, bottom) in tiles((across, down), wanted):
            box: Groups = ((left, right), (top, bottom), (0, 1))[: len(counts)]
            first, run, many = top * across + left, right - left, bottom - top
            if run == across:
                run, many = run * many, 1
            parts.append(BandGroups(first, run, many, across if many > 1 else 0, (box,)))
        unit = gcd(*(one for part in parts for one in (part.first, part.run, part.stride)))
        return Shares(unit, tuple(parts))


@dataclass(frozen=True)
class Strided:
    """Cuts a launch into columns of groups, if its fastest axis is `parts` arrays side by side.

    A band has the same column of each array. That suits a product that computes the three matrices
    of an attention head at once.

    >>> import acs_cl as acs
    >>> acs.Strided(3)
    Strided(parts=3)
    """

    parts: int

    def __post_init__(self) -> None:
        _check(self, "parts")

    def shares(self, counts: Sequence[int]) -> Shares | str:
        """Return the bands of a launch: see `Row`."""
        if counts[0] % self.parts:
            return f"it has {counts[0]} columns of groups, no multiple of {self.parts}"
        stride = counts[0] // self.parts
        if stride > MOST_BANDS:
            return f"it would have {stride:,} bands, more than {MOST_BANDS:,}"
        rest = tuple((0, count) for count in counts[1:])
        return Shares(
            1,
            tuple(
                BandGroups(
                    at, 1, self.parts * prod(counts[1:]), stride,
                    tuple(((k, k + 1), *rest) for k in range(at, counts[0], stride)),
                )
                for at in range(stride)
            ),
        )  # fmt: skip


Policy = Row | Tile | Strided
"""Values of `bands=` besides numbers and words."""

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

    >>> asked("off"), asked("early"), asked("auto"), asked("lanes"), asked(8), asked(Row())
    (0, 0, -1, -2, 8, Row(rows=1))
    """
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    if isinstance(value, (Row, Tile, Strided)):
        return value
    number = whole(value)
    if number is not None and 1 <= number <= MOST_BANDS:
        return number
    raise UsageError(
        f"bands={value!r}: expected 'early', 'auto', 'off', 'lanes' or 1 to {MOST_BANDS:,}, or "
        "acs.Row(), acs.Tile(rows, columns) or acs.Strided(parts)"
    )


def policy(said: str) -> str | Policy:
    """Return the value of `bands=` that prints like this: a word or a policy.

    >>> policy("auto"), policy("Tile(rows=4, columns=2)")
    ('auto', Tile(rows=4, columns=2))
    """
    if said in WORDS:
        return said
    name, _, rest = said.removesuffix(")").partition("(")
    made = {one.__name__: one for one in (Row, Tile, Strided)}.get(name)
    if made is None:
        raise ValueError(f"{said!r} is no cut")
    return made(**{key: int(value) for key, value in (one.split("=") for one in rest.split(", "))})


def _runs(counts: Sequence[int], length: int) -> Shares:
    every = prod(counts)
    ends = [(first, min(first + length, every)) for first in range(0, every, length)]
    parts = (BandGroups(a, b - a, 1, 0, (box_of(counts, a, b),)) for a, b in ends)
    return Shares(length, tuple(parts))


def _check(of: object, *names: str, most: int = MOST_BANDS) -> None:
    for name in names:
        number = whole(getattr(of, name))
        if number is None or not 1 <= number <= most:
            raise UsageError(f"{of}: expected whole numbers from 1 to {most:,}")
        object.__setattr__(of, name, number)  # of NumPy's integers it keeps Python's
