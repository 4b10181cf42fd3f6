"""An error at a named moment inside the runtime, and a process that knows nothing yet.

In: a moment, or nothing. Out: `with` blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..access import inference
from ..devices import contexts
from ..host import files
from ..launch import ends
from ..launch.engine import Engine
from ..opencl_c.parse import macros
from .changing import changed

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "before an end is noted": (ends, "retire_one", False),
    "before ends are told": (Engine, "completed", False),
    "after ends are noted": (Engine, "completed", True),
}


@contextmanager
def interrupted(moment: str, error: BaseException, times: int = 1) -> Iterator[list[int]]:
    """Raise an error at one of `MOMENTS` inside the runtime, the first times that it comes.

    The list has a number for each time that it was raised.
    """
    where, name, is_after = MOMENTS[moment]
    raised: list[int] = []
    before = getattr(where, name)

    def come(*arguments: object) -> object:
        if is_after:
            before(*arguments)
        if len(raised) < times:
            raised.append(len(raised) + 1)
            raise error
        return None if is_after else before(*arguments)

    with changed(where, name, come):
        yield raised


@contextmanager
def new_process() -> Iterator[None]:
    """Forget for a while what this process knows about programs and their compiler.

    What is on disk stays known: set ACS_CL_CACHE for another folder.
    """
    with (
        changed(inference, "_programs", {}),
        changed(macros, "_known", {}),
        changed(macros, "_untold", {}),
        changed(files, "_told", set()),
        changed(contexts, "_shared", {}),
    ):
        yield
