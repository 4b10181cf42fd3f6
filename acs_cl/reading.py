"""Reading back what the program waits for at once, the quick way.

In: an array. Out: its values. Where nothing is unusual the driver's own blocking call does it, on a
queue where the writers of these bytes are, without an event or a wait of ours. Invariant: as long
as it lasts it is in the hazards and in the window as a launch that holds what follows it, since no
queue knows of it; whatever is unusual is read by a launch (`transfers.read`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import driver
from .commands import ReadCommand
from .progress import on_host_task
from .records import Access, Launch
from .transfers import bytes_of, read, target_for

if TYPE_CHECKING:
    from .arrays import Array
    from .runtime import Runtime

POLL_EVERY = 32
"""Launches between two looks at what has ended."""


def read_now(runtime: Runtime, array: Array, out: Any) -> np.ndarray[Any, Any]:
    """Read back into `out`, or into a new NumPy array, and wait for it."""
    host = target_for(array, out)
    is_plain = array.nbytes and array.contiguous and host.flags.c_contiguous
    if not is_plain or not _at_once(runtime, array, host):
        read(runtime, array, host).wait()
    return host


def _at_once(runtime: Runtime, array: Array, host: np.ndarray[Any, Any]) -> bool:
    """Whether the driver's call did it."""
    if runtime._trace is not None or runtime._checker is not None or on_host_task():
        return False
    window, lock = runtime._window, runtime._lock
    command = ReadCommand(bytes_of(host), array._place_or_raise())
    access = Access(array._spans, ())
    with lock:
        if runtime._state:
            runtime._check_open()
        if runtime._sections:
            runtime._end_sections()
        if runtime._failures.any or window.watched or window.waiting or not window.has_room():
            return False
        number = runtime._ledger.number = runtime._ledger.number + 1
        upstream = tuple(runtime._hazards.enter(number, access.reads, ()) or ())
        where = runtime._backend.read_queue(upstream)
        if where is None:  # behind a scheduler
            handle = runtime._hand_over(number, command, access, upstream)
        else:
            runtime._launches[number] = Launch(number, command, access, upstream)
            window.insert(number, upstream, True)
    if where is None:
        handle.wait()
        return True
    try:
        status = driver.wait_for_read(where[0], command.host, command.place, where[1])
    finally:
        with lock:
            del runtime._launches[number]
            runtime._hazards.retire(number)
            runtime._after(number, window.done(number))
            if number % POLL_EVERY == 0:
                runtime._pump()
            runtime._moved.notify_all()
    return status >= 0  # a launch says why
