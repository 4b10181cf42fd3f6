"""Handles: what a launch gives back.

In: a runtime and a launch. Out: `wait`, `done`, `event`. A handle keeps the launch's number, name
and access, not its event nor its arrays, so that keeping handles costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import core

if TYPE_CHECKING:
    from ..runtime import Runtime


class Handle(core.native.Handle):
    """Stands for a launch under way or done.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     x = rt.empty(1000, "f4")
    ...     handle = x.fill(1)
    ...     handle.wait()
    ...     print(handle.number, handle.name, handle.done)
    1 fill True
    """

    __slots__ = ()
    _runtime: Runtime

    def wait(self) -> Any:
        """Block until the launch has ended; raise if it failed or never could run.

        Returns the NumPy array of a `get(wait=False)`, the return value of a host task, else None.
        """
        self._runtime._wait(self.number, self.name)
        result = self._result
        return result() if callable(result) else result

    @property
    def done(self) -> bool:
        """Tell whether the launch has ended, well or not."""
        return self._runtime._is_done(self.number)

    @property
    def event(self) -> Any:
        """Return a `pyopencl.Event` that completes with the launch, on every backend. Flushes."""
        return self._runtime._event(self.number)

    def __repr__(self) -> str:
        return f"<acs_cl.Handle {self.number} {self.name}>"
