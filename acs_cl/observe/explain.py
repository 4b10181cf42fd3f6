"""Explanations: which bytes ordered two launches, where a launch ran, and what holds it back.

Input: handles. Output: an `Explanation`, which prints as a sentence. It is computed on request,
from the accesses that handles keep, with the arithmetic of the hazards. The launch table and the
foreign events tell what holds a launch back. Nothing is recorded in advance, except the times of
its states with `trace=True`, which are the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..records import EVERYTHING
from .edges import Meeting, meetings

if TYPE_CHECKING:
    from ..handle import Handle
    from ..launch.engine import Engine

NAMED = 4
"""Launches that an explanation names. The others are only counted."""


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
        with engine.lock:
            held = _held(engine, first.number)
            states = "".join(f"; {one}" for one in (held, _way(engine, first.number)) if one)
            launch = engine.table.launch(first.number) if held else None
        # the route of a launch that is held is open, unless it is a host task
        has_route = not held or (launch is not None and launch.command.on_host)
        where = engine.backend.where(first.number) if has_route else ""
        return Explanation(
            f"launch {first.number} ({first.name}) on backend {engine.plan.backend}: "
            f"{where}reads {reads}; writes {writes}; {engine.plan.why}{states}"
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
        str(one) if one.base != EVERYTHING else "one of them may touch any memory" for one in met
    )
    return Explanation(f"{names} are ordered: {text}", True, met)


def _held(engine: Engine, number: int) -> str:
    """Say what holds a launch back, if anything does."""
    table = engine.table
    state = table.state(number)
    if state == "held":
        return f"it does not run yet: the window of {engine.window} launches is full"
    if state == "never ran":
        return "it never ran"
    if state != "pending":
        return ""
    blockers = table.blockers(number)
    waits = [f"launch {one} ({table.launch(one).command.name})" for one in blockers[:NAMED]]
    if len(blockers) > NAMED:
        waits.append(f"{len(blockers) - NAMED} more")
    if events := len(engine.foreign.get(number, ())):
        waits.append(f"foreign events: {events}")
    return f"it does not run yet: it waits on the host for {', '.join(waits)}"


def _way(engine: Engine, number: int) -> str:
    """Say when the launch went from one state to the next, if that was kept."""
    steps = engine.table.transitions(number)
    if not steps:
        return ""
    began = steps[0][2]
    return "on the host's clock: " + ", ".join(
        f"{after} after {(ns - began) / 1e3:.1f} us" for _, after, ns in steps
    )
