"""Handles: each launch returns one.

Input: an engine and a launch. Output: `wait`, `done`, `event`. A handle keeps the launch's number,
name and access, but not its event or arrays, so that handles are cheap to keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyopencl as cl

from . import core
from .errors import no_attribute, no_copy, offered
from .records import Protocol


class Waits(Protocol):
    """The engine of a launch, as its handle uses it."""

    def wait(self, number: int, name: str) -> None:
        """Block until a launch has ended. Raise if it failed or never could run."""

    def is_done(self, number: int) -> bool:
        """Tell whether a launch has ended, well or not."""

    def event(self, number: int) -> cl.Event:
        """Return an event that completes with a launch."""


class Handle(core.native.Handle):
    """Stands for a launch that runs or has ended.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     x = rt.empty(1000, "f4")
    ...     handle = x.fill(1)
    ...     handle.wait()
    ...     print(handle.number, handle.name, handle.done)
    1 fill True
    """

    __slots__ = ()
    engine: Waits

    def wait(self) -> Any:
        """Block until the launch has ended. Raise if it failed or never could run.

        Returns the NumPy array of a `get(wait=False)`, the return value of a host task, else None.
        """
        self.engine.wait(self.number, self.name)
        return self._result() if callable(self._result) else self._result

    if not TYPE_CHECKING:  # a type checker would take any name then
        __getattr__ = no_attribute

    __dir__ = offered

    @property
    def done(self) -> bool:
        """Tell whether the launch has ended, well or not."""
        return self.engine.is_done(self.number)

    @property
    def event(self) -> cl.Event:
        """Return a `pyopencl.Event` that completes with the launch, on every backend. Flushes.

        It may have no profiling times. `Runtime.measure` and `Runtime.trace` have those.
        """
        return self.engine.event(self.number)

    def __reduce__(self) -> NoReturn:
        no_copy(self, "a launch", "send what wait(), or get() of an array, returns")

    def __repr__(self) -> str:
        return f"<acs_cl.Handle {self.number} {self.name}>"
