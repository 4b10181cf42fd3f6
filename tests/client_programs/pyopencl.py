"""PyOpenCL: conjugate gradients by `pyopencl.array`, and two kernels in turns with read-backs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array

N, STEPS = 1 << 14, 40
SOURCE = """
kernel void smooth(global const float *x, global float *y)
{
  int i = get_global_id(0), n = get_global_size(0);
  y[i] = 0.25f * x[(i + n - 1) % n] + 0.5f * x[i] + 0.25f * x[(i + 1) % n];
}"""


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Both."""
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    smooth = cl.Program(context, SOURCE).build().smooth
    start = np.random.default_rng(1).random(N, np.float32)

    def arrays() -> list[Any]:
        x = cl.array.zeros(queue, N, np.float32)
        r = cl.array.to_device(queue, start)
        p = r.copy()
        diagonal = cl.array.to_device(queue, 1 + start)
        for _ in range(STEPS):
            ap = diagonal * p
            alpha = 0.5
            x += alpha * p
            r -= alpha * ap
            p = r + 0.25 * p
        return [x.get(), r.get()]

    def kernels() -> list[Any]:
        one = cl.array.to_device(queue, start)
        other = cl.array.empty_like(one)
        seen = np.empty(4, np.float32)
        told = []
        for _ in range(4 * STEPS):
            smooth(queue, (N,), None, one.data, other.data)
            smooth(queue, (N,), None, other.data, one.data)
            cl.enqueue_copy(queue, seen, one.data)
            told.append(seen.copy())
        return [one.get(), np.array(told)]

    return {"arrays": arrays, "kernels and reads": kernels}
