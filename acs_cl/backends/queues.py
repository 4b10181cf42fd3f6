"""The three host backends, which are three settings of the core's `Queues`.

- `serial`: one queue in order. Edges order nothing: launches run in program order.
- `out_of_order`: one queue without order, for drivers that overlap in it (PoCL, Intel's CPU
  runtime). A launch waits for the events of its upstream in flight.
- `lanes`: a pool of queues in order, with events across them, for drivers that overlap only
  between queues.

Input: launches. Output: their ends. The core picks lanes, sets arguments, enqueues and keeps the
events; `_core/driver/lanes.hpp` says how. Commands other than simple kernels, and those that the
driver refuses, go by the command's own `enqueue`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pyopencl as cl

from .. import core
from ..devices.driver import CommandQueue, pinned_pieces
from ..devices.pocl import has_assertions, mixes_machine_code
from ..errors import DeviceError
from ..launch.backend import DECIDED, Backend, LaneCounts
from ..launch.commands import KernelCommand, TransferCommand
from ..launch.decision import Bound, WrongCountError
from ..records import LANE_AFTER, LANE_NEW, Launch, Placing

PLACES, LONGEST = 4, 1 << 14
"""How many pieces of pinned memory are for reads, and how many bytes each has."""

PIECES, PIECE = 16, 2 << 20
"""The same for uploads, which some threads share."""

HOST = ("serial", "out_of_order", "lanes")

_CLASSES = (
    cl.SVMPointer, cl.MemoryObjectHolder, cl.LocalMemory, cl.Sampler,
    KernelCommand, TransferCommand,
)  # fmt: skip


class HostQueues(Backend):
    """The backend called `name`, one of `HOST`, with `lanes` queues if it has several. `beside`:
    that of another device of the runtime."""

    def __init__(
        self,
        name: str,
        context: cl.Context,
        device: cl.Device,
        lanes: int,
        profiling: bool,
        placing: Placing,
        beside: HostQueues | None = None,
    ) -> None:
        self.name = name
        self.in_order = name == "serial"
        if name == "out_of_order":
            queues = _without_order(context, device, profiling)
        else:
            queues = open_queues(context, device, lanes if name == "lanes" else 1, profiling)
        super().__init__(queues, profiling)
        self._core = core.native.Queues(
            queues, name == "out_of_order", profiling, _CLASSES, cl.Event.from_int_ptr
        )
        if mixes_machine_code(device):
            others = None if beside is None else beside.core_queues
            self._core.keep_machine_code_apart(others, has_assertions(device))
        if not device.type & cl.device_type.CPU:
            self.use_pinned()
        self._core.place_by(LANE_AFTER.index(placing.after), LANE_NEW.index(placing.new))
        if placing.uploads and name == "lanes":
            queues += open_queues(context, device, 1, profiling)
            self._core.upload_on(queues[-1])
            self._core.stage_in(partial(pinned_pieces, queues[-1], PIECES, PIECE))
        self._timed: list[CommandQueue] = []
        """A queue that keeps times, once a launch had to be timed."""
        self._open_timed = partial(open_queues, context, device, 1, True)
        # the core's own methods, without a Python call between
        self.submit = self._core.submit  # type: ignore[method-assign]
        self.event = self._core.event  # type: ignore[method-assign]
        self.poll = self._core.poll  # type: ignore[method-assign]
        self.poll_up_to = self._core.poll_up_to  # type: ignore[method-assign]
        self.oldest = self._core.oldest  # type: ignore[method-assign]
        self.flush = self._core.flush  # type: ignore[method-assign]

    def use_pinned(self) -> None:
        """Put short blocking reads into pinned memory. An H200's driver reads into other memory by
        a thread of its own, whose place decides how long that takes."""
        self._core.land_in(partial(pinned_pieces, self.queues[0], PLACES, LONGEST))

    def submit_timed(self, launch: Launch, behind: list[cl.Event] | None = None) -> None:
        """Put a launch on a queue that keeps times."""
        if not (self._timed or self.profiling or self.in_order):
            self._timed = self._open_timed()
            self._core.time_on(self._timed[0])
        self._core.submit(launch, behind, bool(self._timed))

    @property
    def lanes(self) -> int:
        """Count the queues, including the one that keeps times."""
        return len(self.queues) + len(self._timed)

    def join(self, table: core.native.Table) -> None:
        """Let the core make launches by itself, and keep them in `table`."""
        self._core.join(table)

    @property
    def core_queues(self) -> core.native.Queues:
        """Return the core's queues."""
        return self._core

    def lane_counts(self) -> LaneCounts:
        """Return what the core counts of its lanes. Without the queue that keeps times."""
        counts, used = self._core, +Counter(dict(enumerate(self._core.used())))
        return LaneCounts(len(self.queues), used, counts.waits, counts.narrow)

    @property
    def in_flight(self) -> int:
        """Return how many launches were submitted and not yet reported."""
        return self._core.in_flight

    def error(self, number: int, status: int) -> BaseException | None:
        """Return the error of a launch. The core keeps the counts that its launches refused."""
        refused = self._core.refused(number) if status == DECIDED else None
        if refused is not None:
            return WrongCountError(refused[0], Bound(*refused[1:]))
        return super().error(number, status)

    def close(self) -> None:
        """Wait, then release the events."""
        self.wait_all()
        for queue in self._timed:
            queue.finish()
        self._core.forget()


def _without_order(
    context: cl.Context, device: cl.Device, profiling: bool
) -> list[cl.CommandQueue]:
    modes = cl.command_queue_properties
    try:
        return open_queues(context, device, 1, profiling, int(modes.OUT_OF_ORDER_EXEC_MODE_ENABLE))
    except cl.LogicError as error:
        raise DeviceError(
            f"{device.name} refuses an out-of-order queue ({error}); use backend='lanes'"
        ) from error


def open_queues(
    context: cl.Context, device: cl.Device, many: int, profiling: bool, properties: Any = 0
) -> list[cl.CommandQueue]:
    """Make queues of one kind."""
    if profiling:
        properties |= int(cl.command_queue_properties.PROFILING_ENABLE)
    return [CommandQueue(context, device, properties=properties) for _ in range(many)]
