"""One out-of-order queue and wait lists, for drivers that overlap in it (PoCL, Intel's CPU
runtime).

A launch waits for the events of its upstream in flight; what is no longer in flight needs no
waiting.
"""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from ..errors import DeviceError
from ..records import Launch
from .base import Backend


class OutOfOrder(Backend):
    """The driver picks what runs when, within the wait lists."""

    name = "out_of_order"

    def __init__(self, context: Any, device: Any, profiling: bool) -> None:
        try:
            super().__init__(context, device, 1, profiling)
        except cl.LogicError as error:
            raise DeviceError(
                f"{device.name} refuses an out-of-order queue ({error}); use backend='lanes'"
            ) from error

    def _properties(self) -> int:
        return int(cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)

    def submit(self, launch: Launch, behind: list[Any] | None = None) -> None:
        """Behind the events of its upstream."""
        events = self._events
        wait_for = behind
        if launch.upstream:
            wait_for = [events[number] for number in launch.upstream if number in events]
            if behind:
                wait_for += behind
            self.waits += len(wait_for)
        events[launch.number] = launch.command.enqueue(self.queues[0], wait_for)
        self.used[0] += 1
