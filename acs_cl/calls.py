"""Calls of arrays and kernels: recorded by a graph, or made at once.

Input: calls of the program on an array or a kernel. Output: handles, or values. If nothing is
unusual, the native core makes a blocking read in one call. Invariant: an unusual array is read by a
launch like any other (`transfers.read`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from . import at_exit, transfers
from .errors import truth
from .handle import Handle
from .kernel import Kernel
from .launch.engine import Engine
from .launch.waits import refuse_on_host_task
from .memory.array import Array
from .records import Access, Command, HostArray


def made(function: Callable[..., Handle], engine: Engine, *args: object) -> Handle:
    """Make a call of the program now. A graph that records this thread keeps it instead."""
    engine.called()
    recorder = engine.recorder()
    if recorder is not None:
        return recorder.capture(function, engine, *args)
    return function(engine, *args)


class Calls:
    """Implements functions of higher modules for the engine."""

    def collected(self, engine: Engine) -> None:
        """Clean up an engine that is no longer used."""
        at_exit.collected(engine)

    def read_now(self, engine: Engine, array: Array, out: object) -> HostArray:
        """Read back into `out`, or into a new NumPy array, and wait for it."""
        engine.called()
        engine.refuse_in_recording("get")
        refuse_on_host_task("get")
        host = transfers.target_for(array, out)
        if not self.core_reads(engine, array, host):
            transfers.read(engine, array, host).wait()  # the wait says what failed
        return host

    def core_reads(
        self, engine: Engine, array: Array, host: HostArray, behind: Sequence[int] | None = None
    ) -> bool:
        """Have the core read an array into `host`, and wait for that. False: it did not. `behind`:
        wait for these launches, too. Only the end of one tells whether its count was right."""
        queues = engine.backend.core_queues
        if queues is None or engine.watchdog is not None:  # which ends a wait in Python
            return False
        was_counted = engine.table.is_counted
        if (was_counted and behind is None) or not array.nbytes or not array.contiguous:
            return False
        done = queues.read_now(engine, array, host, was_counted)
        if done is None or done is False:
            return False
        if done is True:
            engine.has_read()
        else:
            engine.wait(done, "read")
        if behind:
            engine.wait_for_all(behind)
        return not (was_counted and (engine.table.is_counted or engine.failures.any))

    def read(self, engine: Engine, array: Array, out: object) -> Handle:
        """Read back into `out`, or into a new NumPy array."""
        engine.called()
        engine.refuse_in_recording("get")
        return transfers.read(engine, array, out)

    def write(self, engine: Engine, array: Array, source: object, copy: bool) -> Handle:
        """Overwrite an array with host values."""
        if not truth("copy", copy):  # no argument of the call, since a graph copies these
            return made(partial(transfers.write, source=source, copied=False), engine, array)
        return made(transfers.write, engine, array, source, engine.recorder() is None)

    def fill(self, engine: Engine, array: Array, value: object) -> Handle:
        """Overwrite every element of an array."""
        return made(transfers.fill, engine, array, value)

    def copy(self, engine: Engine, target: Array, source: Array) -> Handle:
        """Overwrite an array with another one."""
        return made(transfers.copy, engine, target, source)

    def launch_many(self, kernel: Kernel, *how: Any) -> Any:
        """Launch a kernel many times."""
        kernel.engine.check_open()
        return self._many(kernel, *how)

    @cached_property
    def _many(self) -> Callable[..., Any]:
        """Return what makes many launches: a program that makes none does not load it."""
        from .graph.many import launch_many

        return launch_many

    def as_tuned(self, engine: Engine, command: Command, access: Access) -> Command:
        """Cut a launch in the way that was tuned on this device, if the library chooses the cut."""
        from .graph.kept_tunings import as_tuned

        return as_tuned(engine.device, command, access)
