"""An error at a named moment inside the runtime, and a process that knows nothing yet.

In: a moment, or nothing. Out: `with` blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..access import inference
from ..devices import contexts
from ..host import files
from ..opencl_c.parse import macros
from ..runtime import Runtime
from .changing import changed

MOMENTS = {
    "before an end is noted": ("_retire_one", False),
    "after ends are noted": ("_completed", True),
}


@contextmanager
def interrupted(moment: str, error: BaseException, times: int = 1) -> Iterator[list[int]]:
    """Raise an error at one of `MOMENTS` inside the runtime, the first times that it comes.

    The list has a number for each time that it was raised.
    """
    name, is_after = MOMENTS[moment]
    raised: list[int] = []
    before = getattr(Runtime, name)

    def come(runtime: Runtime, *arguments: Any) -> Any:
        if is_after:
            before(runtime, *arguments)
        if len(raised) < times:
            raised.append(len(raised) + 1)
            raise error
        return None if is_after else before(runtime, *arguments)

    with changed(Runtime, name, come):
        yield raised


@contextmanager
def new_process() -> Iterator[None]:
    """Forget for a while what this process knows about programs and their compiler.

    What is on disk stays known: set ACS_CL_CACHE for another folder.
    """
    with (
        changed(inference, "_programs", {}),
        changed(macros, "_known", {}),
        changed(macros, "_mute", set()),
        changed(macros, "_untold", {}),
        changed(files, "_told", set()),
        changed(contexts, "_shared", {}),
    ):
        yield
