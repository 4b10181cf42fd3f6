"""Ahead: allocates memory on devices before a way to run a step is tried there.

Input: the sizes of blocks that devices lack. Output: such blocks, in the stores of the devices. A
thread does it while the program goes on, since drivers may take long: NVIDIA's needs seconds for
gigabytes of shared virtual memory, because it reserves as much memory of the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import pyopencl as cl

from ..host import threads
from ..memory.blocks import Store

LEAST = 16 << 20
"""Smaller blocks are allocated when a launch needs them."""

Wanted = tuple[int, int]
"""A device, and the size of a block."""


class Ahead:
    """Allocates blocks for some stores. `lock` is the lock of the runtime."""

    def __init__(self, stores: Sequence[Store], lock: AbstractContextManager[object]) -> None:
        self._stores, self._lock = stores, lock
        self._is_closed = False

    def start(self, wanted: Iterable[Wanted]) -> Callable[[], bool]:
        """Allocate blocks if there are none. The result tells whether that is over. Called under
        the lock."""
        lacking = list[Wanted]()
        for (device, size), many in Counter(wanted).items():
            if size >= LEAST:
                more = many - self._stores[device].free_blocks(size)
                lacking += [(device, size)] * more
        if not lacking:
            return _at_once
        ended = list[bool]()
        try:
            threads.start(partial(self._allocate, lacking, ended), "acs_cl memory", self)
        except RuntimeError:  # there can be no thread: launches allocate
            return _at_once
        return partial(bool, ended)

    def close(self) -> None:
        """Allocate no more."""
        self._is_closed = True

    is_late = False
    """An ending program waits until the driver has finished."""

    def _allocate(self, lacking: Sequence[Wanted], ended: list[bool]) -> None:
        try:
            for device, size in lacking:
                if self._is_closed:
                    return
                memory = self._stores[device].draw(size)
                with self._lock:
                    self._stores[device].free(self._stores[device].take_in(memory, size), ())
        except (cl.MemoryError, cl.RuntimeError):
            pass  # launches that lack memory say so
        finally:
            ended.append(True)


def _at_once() -> bool:
    return True
