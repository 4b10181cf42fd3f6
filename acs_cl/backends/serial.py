"""One in-order queue: the baseline, and the oracle of every test.

Edges are not used for ordering at all: launches run in program order.
"""

from __future__ import annotations

from typing import Any

from ..records import Launch
from .base import Backend


class Serial(Backend):
    """Everything one after another."""

    name = "serial"
    in_order = True

    def __init__(self, context: Any, device: Any, profiling: bool) -> None:
        super().__init__(context, device, 1, profiling)

    def submit(self, launch: Launch, behind: list[Any] | None = None) -> None:
        """Behind everything before it."""
        self._events[launch.number] = launch.command.enqueue(self.queues[0], behind)
        self.used[0] += 1
