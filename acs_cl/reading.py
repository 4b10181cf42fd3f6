"""Reading back what the program waits for at once, the quick way.

In: an array. Out: its values. Where nothing is unusual the native core makes the launch and waits
for it in one call. Invariant: whatever is unusual is read by a launch as all others
(`transfers.read`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .host.threads import on_host_task
from .launch.commands import ReadCommand
from .launch.handle import Handle
from .records import Access
from .transfers import bytes_of, read, target_for

if TYPE_CHECKING:
    from .memory.array import Array
    from .runtime import Runtime


def read_now(runtime: Runtime, array: Array, out: Any) -> np.ndarray[Any, Any]:
    """Read back into `out`, or into a new NumPy array, and wait for it."""
    host = target_for(array, out)
    queues = runtime._backend.quick_queues
    if runtime._counted:  # whether they went well is known when they have been retired
        queues = None
    if queues is not None and array.nbytes and array.contiguous and not on_host_task():
        done = queues.read_now(runtime, array, host)
        if done is True:
            return host
        if isinstance(done, Handle):
            done.wait()
            return host
    read(runtime, array, host).wait()  # which says what failed
    return host


def finish_read(
    runtime: Runtime, number: int, upstream: tuple[int, ...], array: Array, host: Any
) -> Handle:
    """The rest of a read that the core has put into the hazards and that no queue took: it follows
    an epoch of the scheduler, or a launch that is held, or the driver refused it."""
    command = ReadCommand(bytes_of(host), array._place_or_raise())
    return runtime._hand_over(number, command, Access(array._spans, ()), upstream)
