"""Policies: the ways to cut a launch into bands that a program may ask for.

Input: the numbers of groups on each axis. Output: `Shares`, the groups of each band. Pure.

The policies are those of cuSync (CGO 2024), where they are ways to wait for tiles of a producer.
Here they only say what a band is; edges follow from the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ..errors import UsageError, whole
from .bands import MOST_BANDS, Groups, tiles
from .cuts import WORDS, BandGroups, Policy, Shares, runs

MOST_ROWS = (1 << 31) - 1
"""Rows of groups in a band. There are as many in a launch at most."""


@dataclass(frozen=True)
class Row(Policy):
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
        return runs(counts, prod(counts[:-1]) * self.rows)


@dataclass(frozen=True)
class Tile(Policy):
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
class Strided(Policy):
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


def _check(of: object, *names: str, most: int = MOST_BANDS) -> None:
    for name in names:
        number = whole(getattr(of, name))
        if number is None or not 1 <= number <= most:
            raise UsageError(f"{of}: expected whole numbers from 1 to {most:,}")
        object.__setattr__(of, name, number)  # of NumPy's integers it keeps Python's
