"""Write tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SIDES = {"l": ":--", "r": "--:"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], sides: str = "") -> str:
    """Write a table. `sides`: an `l` or `r` for each column; without them the first is left."""
    sides = sides or "l" + "r" * (len(heads) - 1)
    lines = [heads, [SIDES[side] for side in sides], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
