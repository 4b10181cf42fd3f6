"""What is interrupted: programs with calls that may block, and a look at whether all is well.

In: a backend. Out: calls, each with the work that it blocks for under way, and `goes_on`. Values
are counts: each launch adds one to an array, so that it is known afterwards how many were made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import acs_cl as acs

SOURCE = """
kernel void add(global int *x, int turns) {
  int i = get_global_id(0);
  float v = 1;
  for (int k = 0; k < turns; k++) v = v * 1.0000001f + 1e-9f;
  x[i] += 1 + (v < 0);
}
"""
ITEMS = 64
TURNS = 20_000

KERNELS = 6
"""Launches of the work that a call waits for."""


def _behind(launch: Callable[[int], Any], call: Callable[[], Any]) -> Callable[[], Any]:
    """Make a call that comes when the work it waits for is under way."""

    def both() -> None:
        launch(KERNELS)
        call()

    return both


class Program:
    """Work on one backend. `done`: launches on the counted array that have returned; one more may
    have been made by a call that was interrupted."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.done = 0
        self.unsure = 0
        self.runtime = acs.Runtime(backend=backend, backlog=16)
        self.add = self.runtime.build(SOURCE).add
        self.counted, self.other = (self.runtime.zeros(ITEMS, "i4") for _ in range(2))
        self.host = np.zeros(ITEMS, "i4")
        self.launch(4)
        self.runtime.prebuild(self.add)
        with self.runtime.record() as self.graph:
            for _ in range(3):
                self.add((ITEMS,), None, self.other, TURNS)
        self.settle()

    def launch(self, many: int) -> None:
        """Launches that depend on each other, and as many that do not."""
        for _ in range(many):
            self.unsure += 1
            self.add((ITEMS,), None, self.counted, TURNS)
            self.done, self.unsure = self.done + 1, self.unsure - 1
            self.add((ITEMS,), None, self.other, TURNS)

    def settle(self) -> bool:
        """Whether the values are right: all launches that returned were made, once."""
        values = self.counted.get()
        found = int(values[0])
        right = bool((values == found).all()) and self.done <= found <= self.done + self.unsure
        self.done, self.unsure = found, 0
        return right

    def goes_on(self) -> bool:
        """Whether everything can be done, with right values, after what has happened."""
        right = self.settle()
        self.launch(2)
        self.runtime.finish()
        right &= self.settle() and self.done > 0
        value = int(self.other.get()[0])
        self.graph.replay().wait()
        return right and bool((self.other.get() == value + 3).all())

    def calls(self) -> dict[str, Callable[[], Any]]:
        """Each a call that may block, with the work that it blocks for under way."""
        runtime, launch = self.runtime, self.launch
        behind = partial(_behind, launch)

        def last() -> Any:
            launch(KERNELS - 1)
            self.unsure += 1
            handle = self.add((ITEMS,), None, self.counted, TURNS)
            self.done, self.unsure = self.done + 1, self.unsure - 1
            return handle

        def poll(begin: Callable[[], Any]) -> None:
            handle = begin()
            while not handle.done:
                pass

        def task(*_: Any) -> int:
            return 1

        return {
            "get": behind(self.counted.get),
            "get(out=)": behind(lambda: self.counted.get(out=self.host)),
            "get(wait=False)": behind(lambda: self.counted.get(wait=False).wait()),
            "get of a view": behind(lambda: self.counted[::2].get()),
            "wait": lambda: last().wait(),
            "done": lambda: poll(last),
            "event.wait": lambda: last().event.wait(),
            "finish": behind(runtime.finish),
            "flush": behind(runtime.flush),
            "launch, backlog full": lambda: launch(24),
            "launch_many": behind(
                lambda: self.add.launch_many((ITEMS,), None, self.other, [1] * 12)
            ),
            "replay": behind(lambda: [self.graph.replay() for _ in range(3)]),
            "replay.wait": behind(lambda: self.graph.replay().wait()),
            "host task": behind(lambda: runtime.call(task, reads=[self.counted]).wait()),
            "set": behind(lambda: self.other.set(np.full(ITEMS, 7, "i4"))),
            "set, large": behind(self._set_large),
            "fill": behind(lambda: self.other.fill(3)),
            "copy_from": behind(lambda: self.other.copy_from(self.counted)),
            "record": behind(self._record),
            "prebuild": behind(lambda: runtime.prebuild(self.add)),
            "zeros": behind(lambda: runtime.zeros(1 << 16, "i4")),
            "close": self._close,
            "with": self._with,
        }

    def _set_large(self) -> None:
        large = self.runtime.empty(1 << 19, "i4")
        large.set(np.ones(1 << 19, "i4"))

    def _record(self) -> None:
        with self.runtime.record() as graph:
            self.add((ITEMS,), None, self.other, 1)
        graph.close()

    def _close(self) -> None:
        runtime = acs.Runtime(backend=self.backend)
        x = runtime.zeros(ITEMS, "i4")
        add = runtime.build(SOURCE).add
        for _ in range(KERNELS):
            add((ITEMS,), None, x, TURNS)
        runtime.close()

    def _with(self) -> None:
        with acs.Runtime(backend=self.backend) as runtime:
            x = runtime.zeros(ITEMS, "i4")
            add = runtime.build(SOURCE).add
            for _ in range(KERNELS):
                add((ITEMS,), None, x, TURNS)

    def close(self) -> None:
        self.runtime.close()


class QueueProgram:
    """The same by PyOpenCL's functions, on an `acs.Queue`."""

    def __init__(self, backend: str) -> None:
        self.done = self.unsure = 0
        self.context = cl.create_some_context(interactive=False)
        self.queue = acs.Queue(self.context)
        self.add = cl.Program(self.context, SOURCE).build().add
        self.add.set_scalar_arg_dtypes([None, np.int32])
        flags = cl.mem_flags.READ_WRITE
        self.counted, self.other = (cl.Buffer(self.context, flags, 4 * ITEMS) for _ in range(2))
        self.host, self.source = np.zeros(ITEMS, "i4"), np.zeros(ITEMS, "i4")
        cl.enqueue_copy(self.queue, self.counted, self.source)
        cl.enqueue_copy(self.queue, self.other, self.source)
        self.array = cl_array.zeros(self.queue, ITEMS, "i4")
        self.settle()

    def launch(self, many: int) -> Any:
        event = None
        for _ in range(many):
            self.unsure += 1
            event = self.add(self.queue, (ITEMS,), None, self.counted, TURNS)
            self.done, self.unsure = self.done + 1, self.unsure - 1
            self.add(self.queue, (ITEMS,), None, self.other, TURNS)
        return event

    def settle(self) -> bool:
        values = np.empty(ITEMS, "i4")  # another one than a read that was left may still write to
        cl.enqueue_copy(self.queue, values, self.counted)
        found = int(values[0])
        right = bool((values == found).all()) and self.done <= found <= self.done + self.unsure
        self.done, self.unsure = found, 0
        return right

    def goes_on(self) -> bool:
        right = self.settle()
        self.launch(2)
        self.queue.finish()
        right &= self.settle()
        self.array.fill(0)
        return right and bool(((self.array + 1).get() == 1).all())

    def calls(self) -> dict[str, Callable[[], Any]]:
        queue, launch = self.queue, self.launch
        behind = partial(_behind, launch)

        def mapped() -> None:
            array, _ = cl.enqueue_map_buffer(
                queue, self.other, cl.map_flags.READ, 0, (ITEMS,), np.int32
            )
            array.base.release(queue)

        def polled() -> None:
            event = launch(KERNELS)
            while event.command_execution_status > 0:
                pass

        return {
            "finish": behind(queue.finish),
            "flush": behind(queue.flush),
            "read": behind(lambda: cl.enqueue_copy(queue, self.host, self.counted)),
            "write": behind(lambda: cl.enqueue_copy(queue, self.other, self.source)),
            "map": behind(mapped),
            "event.wait": lambda: launch(KERNELS).wait(),
            "wait_for_events": lambda: cl.wait_for_events([launch(KERNELS)]),
            "status": polled,
            "kernels": lambda: launch(24),
            "marker": behind(lambda: cl.enqueue_marker(queue).wait()),
            "barrier": behind(lambda: cl.enqueue_barrier(queue)),
            "arrays": behind(lambda: (self.array + 2).get()),
            "queue made and left": behind(self._another),
        }

    def _another(self) -> None:
        with acs.Queue(self.context) as queue:
            self.add(queue, (ITEMS,), None, self.other, TURNS)

    def close(self) -> None:
        self.queue.finish()
