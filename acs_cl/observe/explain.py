"""Explanations: which bytes ordered two launches, and where a launch ran.

Input: handles. Output: an `Explanation`, which prints as a sentence. It is computed on request,
from the accesses that handles keep, with the arithmetic of the hazards. Nothing is recorded in
advance. The launch table tells what holds a launch back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..records import EVERYTHING
from .meetings import Meeting, meetings
from .states import told_states

if TYPE_CHECKING:
    from ..handle import Handle
    from ..launch.engine import Engine


class Explanation(NamedTuple):
    """`ordered`: whether the two launches conflict. `meetings`: the bytes of the conflict."""

    text: str
    ordered: bool
    meetings: tuple[Meeting, ...]

    def __str__(self) -> str:
        return self.text


def explain(engine: Engine, first: Handle, second: Handle | None, reasons: str = "") -> Explanation:
    """Do the work of `Runtime.explain`. `reasons`: text about the bytes of one launch."""
    if second is None:
        access = first.access
        reads = "; ".join(map(str, access.reads)) or "nothing"
        writes = "; ".join(map(str, access.writes)) or "nothing"
        return Explanation(
            f"launch {first.number} ({first.name}) on backend {engine.plan.backend}: "
            f"{engine.backend.where(first.number)}reads {reads}; writes {writes}; "
            f"{engine.plan.why}{told_states(engine, first.number)}"
            + (f"\n{reasons}" if reasons else ""),
            False,
            (),
        )
    if first.number > second.number:
        first, second = second, first
    names = f"launch {first.number} ({first.name}) and launch {second.number} ({second.name})"
    met = tuple(meetings(first.access, second.access))
    if not met:
        return Explanation(
            f"nothing orders {names}: no byte that one writes is touched by the other "
            "(recycled memory and launches between them may)",
            False,
            (),
        )
    text = "; ".join(
        f"{meeting.kind} on bytes {meeting.bytes[0]}..{meeting.bytes[1]} of base {meeting.base}"
        if meeting.base != EVERYTHING
        else "one of them may touch any memory"
        for meeting in met
    )
    return Explanation(f"{names} are ordered: {text}", True, met)
