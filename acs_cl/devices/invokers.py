"""Invokers: functions that PyOpenCL makes for each kernel, and that ours do not use.

Input: kernels of ours that are being made. Output: the same kernels, whose functions are made when
they are first called. PyOpenCL's module of invokers is not loaded before that. It opens a database,
which takes longer than a program's first launch.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from threading import get_ident
from types import ModuleType
from typing import Any

_INVOKER = "pyopencl.invoker"
"""The module. C++ imports it by name for each kernel."""

_MAKES = "generate_enqueue_and_set_args"
"""Its function that makes them."""

_making = threading.Lock()


@contextlib.contextmanager
def invokers_later() -> Iterator[None]:
    """Delay the two functions that PyOpenCL makes for every kernel, for calls of it and of
    `set_args`. They take longer than the rest of making a kernel, and ours do not use them. Kernels
    that this thread makes in the block get their functions at the first call. The module that makes
    them is not loaded before that: a stand-in has its name meanwhile."""
    if not _making.acquire(blocking=False):  # another thread is doing this, or was at a fork
        yield
        return
    stand_in, mine = ModuleType(_INVOKER), get_ident()

    def load(*arguments: object, **named: object) -> tuple[object, object]:
        if sys.modules.get(_INVOKER) is stand_in:  # another thread needs it now
            sys.modules.pop(_INVOKER, None)
        made: tuple[object, object] = getattr(import_module(_INVOKER), _MAKES)(*arguments, **named)
        return made

    before: Callable[..., tuple[object, object]] = load

    def generate(*arguments: object, **named: object) -> tuple[object, object]:
        if get_ident() != mine:
            return before(*arguments, **named)

        def made(kernel: Any) -> Any:
            kernel._set_enqueue_and_set_args(*before(*arguments, **named))
            return kernel

        return (
            lambda kernel, *rest, **words: made(kernel)(*rest, **words),
            lambda kernel, *rest: made(kernel).set_args(*rest),
        )

    setattr(stand_in, _MAKES, generate)
    there = sys.modules.setdefault(_INVOKER, stand_in)
    try:
        if there is stand_in or not hasattr(there, _MAKES):
            yield  # in the second case another thread is loading it
        else:
            before = getattr(there, _MAKES)
            setattr(there, _MAKES, generate)
            try:
                yield
            finally:
                setattr(there, _MAKES, before)
    finally:
        if sys.modules.get(_INVOKER) is stand_in:
            sys.modules.pop(_INVOKER, None)
        _making.release()
