"""The record of something that costs a block time."""

from __future__ import annotations

from typing import NamedTuple

from .edges import Edges


class Finding(NamedTuple):
    """What it is called, a sentence with its figures, and about how much time it costs."""

    kind: str
    text: str
    cost_ns: int
    launches: tuple[int, ...] = ()
    """One or two to look at."""
    change: str = ""
    """What the emulator can try for it (`report.what_if.CHANGES`)."""
    name: str = ""
    """The kernel that it is about."""
    edges: Edges | None = None
    """The edges that would be left."""
    is_most: bool = False
    """Whether that time is the most that could be had."""
