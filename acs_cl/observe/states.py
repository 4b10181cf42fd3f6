"""States of a launch: why it does not run yet, and when it changed its state.

Input: the launch table and the foreign events of a runtime. Output: sentences for explanations. The
times are the host's, and are kept only with `trace=True`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..launch.engine import Engine

NAMED = 4
"""Launches that an explanation names. The others are only counted."""


def told_states(engine: Engine, number: int) -> str:
    """Say what holds a launch back, if anything, and its earlier states, if they were kept."""
    with engine.lock:
        return "".join(f"; {one}" for one in (_held(engine, number), _way(engine, number)) if one)


def _held(engine: Engine, number: int) -> str:
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
    if events := len(engine.gates.get(number, ())):
        waits.append(f"foreign events: {events}")
    return f"it does not run yet: it waits on the host for {', '.join(waits)}"


def _way(engine: Engine, number: int) -> str:
    steps = engine.table.transitions(number)
    if not steps:
        return ""
    began = steps[0][2]
    return "on the host's clock: " + ", ".join(
        f"{after} after {(ns - began) / 1e3:.1f} us" for _, after, ns in steps
    )
