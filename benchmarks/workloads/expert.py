"""Give experts a platform: queues and events by hand, in bare PyOpenCL.

Input: launches that name the launches before them, and their queue. Output: commands with wait
lists. There is one out-of-order queue, or several in-order ones, where events are waited for only
across queues. An expert tries which is best. The default is what the driver overlaps in.

Invariant: nothing is found out here. A launch that an expert forgets to name is a race.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyopencl as cl

from acs_cl.benchmarks.workloads.bare import BareArray, BareKernel, InOrder, plain
from acs_cl.devices import kind

LANES = 16
"""Where nobody says how many."""
TRIED = (1, 2, 4, 8, 16)
"""Numbers of in-order queues that an expert tries."""


def overlaps_in_one(device: Any) -> bool:
    """Tell whether the driver has out-of-order queues and overlaps within them."""
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    return kind(device) == "CPU" and bool(device.queue_properties & mode)


class Token(NamedTuple):
    """A launch that others may come after."""

    event: Any
    lane: int


class Queues(InOrder):
    """Programs and arrays as on `InOrder`; launches go where the expert says."""

    def __init__(self, device: Any, context: Any = None, lanes: int | None = None) -> None:
        super().__init__(device, context)
        self._one = lanes is None and overlaps_in_one(device)
        if self._one:
            mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
            self._lanes = [cl.CommandQueue(self.context, device, properties=mode)]
        else:
            self._lanes = [cl.CommandQueue(self.context, device) for _ in range(lanes or LANES)]
        self._used: set[int] = set()

    def launch(
        self,
        kernel: BareKernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        *args: Any,
        after: Sequence[Token] = (),
        on: int = 0,
    ) -> Token:
        """Enqueue behind `after`, on queue `on` where there are several."""
        lane, events = self._behind(after, on)
        event = kernel.native(
            self._lanes[lane], global_size, local_size, *plain(args), wait_for=events
        )
        return Token(event, lane)

    def go(self, ready: Any, after: Sequence[Token] = (), on: int = 0) -> Token:
        """Launch what a kernel of this platform has made ready."""
        lane, events = self._behind(after, on)
        return Token(ready.func(self._lanes[lane], *ready.args[1:], wait_for=events), lane)

    def copy(
        self, target: BareArray, source: BareArray, after: Sequence[Token] = (), on: int = 0
    ) -> Token:
        """Copy all of an array."""
        lane, events = self._behind(after, on)
        event = cl.enqueue_copy(
            self._lanes[lane], target.buffer, source.buffer,
            byte_count=target.nbytes, wait_for=events,
        )  # fmt: skip
        return Token(event, lane)

    def read(self, array: BareArray, out: Any, after: Sequence[Token] = (), on: int = 0) -> Token:
        """Read back, without waiting for it: `wait` does."""
        lane, events = self._behind(after, on)
        event = cl.enqueue_copy(
            self._lanes[lane], out, array.buffer, is_blocking=False, wait_for=events
        )
        return Token(event, lane)

    def write(
        self, array: BareArray, values: Any, after: Sequence[Token] = (), on: int = 0
    ) -> Token:
        """Write host values, which must stay as they are until that has ended."""
        lane, events = self._behind(after, on)
        event = cl.enqueue_copy(
            self._lanes[lane], array.buffer, values, is_blocking=False, wait_for=events
        )
        return Token(event, lane)

    def wait(self, token: Token) -> None:
        """Wait for one launch; everything enqueued is under way."""
        self.flush()
        token.event.wait()

    def flush(self) -> None:
        """Have every queue work."""
        for lane in self._used:
            self._lanes[lane].flush()
        self._used.clear()

    def finish(self) -> None:
        """Wait for everything."""
        super().finish()
        self.flush()
        for queue in self._lanes:
            queue.finish()

    def _behind(self, after: Sequence[Token], on: int) -> tuple[int, list[Any] | None]:
        """Return the queue, and the events to wait for in it. Its own order needs no events."""
        if self._one:
            self._used.add(0)
            return 0, [token.event for token in after] or None
        lane = on % len(self._lanes)
        self._used.add(lane)
        across = [token for token in after if token.lane != lane]
        for token in across:
            if token.lane in self._used:  # a queue never flushed is never begun
                self._lanes[token.lane].flush()
                self._used.discard(token.lane)
        return lane, [token.event for token in across] or None
