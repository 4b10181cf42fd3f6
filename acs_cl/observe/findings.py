"""The record of a finding: something that costs a block time."""

from __future__ import annotations

from typing import NamedTuple

from .edges import Edges


class Finding(NamedTuple):
    """A finding: its name, a sentence with its figures, and about how much time it costs."""

    kind: str
    text: str
    cost_ns: int
    launches: tuple[int, ...] = ()
    """One or two launches to look at."""
    change: str = ""
    """A change that the emulator can try (`report.what_if.CHANGES`)."""
    name: str = ""
    """The kernel that the finding is about."""
    edges: Edges | None = None
    """The edges that would remain."""
    is_most: bool = False
    """Whether `cost_ns` is an upper limit of the gain."""
