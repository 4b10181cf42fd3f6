"""arraycontext: arithmetic and a reduction on arrays of PyOpenCL's context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from arraycontext import PyOpenCLArrayContext


def programs() -> dict[str, Callable[[], list[Any]]]:
    """50 steps."""
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    actx = PyOpenCLArrayContext(queue)
    start = np.random.default_rng(1).random(1 << 13)

    def steps() -> list[Any]:
        x = actx.from_numpy(start)
        for _ in range(50):
            x = 0.75 * x + 0.25 * (x * x)
        return [actx.to_numpy(x)]

    return {"arithmetic": steps}
