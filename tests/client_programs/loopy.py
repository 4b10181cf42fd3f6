"""loopy: generated kernels of a stencil and of a sum, in a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loopy as lp
import numpy as np
import pyopencl as cl
import pyopencl.array

N = 1 << 12


def programs() -> dict[str, Callable[[], list[Any]]]:
    """100 steps."""
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    stencil = lp.make_kernel(
        "{[i]: 0<=i<n}", "y[i] = 0.5*x[i] + 0.25*x[i+1] + 0.25*x[i+2]", name="stencil",
        lang_version=(2018, 2),
    )  # fmt: skip
    stencil = lp.add_and_infer_dtypes(stencil, {"x": np.float32})
    stencil = lp.split_iname(stencil, "i", 64, outer_tag="g.0", inner_tag="l.0")
    executor = stencil.executor(context)
    start = np.random.default_rng(1).random(N + 2, np.float32)

    def steps() -> list[Any]:
        x, y = (cl.array.to_device(queue, start) for _ in range(2))
        for _ in range(50):
            executor(queue, x=x, y=y[:N], n=N)
            executor(queue, x=y, y=x[:N], n=N)
        return [x.get(), y.get()]

    return {"stencil": steps}
