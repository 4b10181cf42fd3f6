"""xobjects: particles pushed through a ring of elements, as Xsuite does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xobjects as xo

SOURCE = """
/*gpukern*/
void push(/*gpuglmem*/ double *x, /*gpuglmem*/ double *p, const double kick, const int n)
{
  int i = 0; //vectorize_over i n
  double at = x[i] + 0.1 * p[i];
  p[i] = p[i] - kick * at;
  x[i] = at;
  //end_vectorize
}
"""


def programs() -> dict[str, Callable[[], list[Any]]]:
    """300 turns."""
    context = xo.ContextPyopencl()
    given = [
        xo.Arg(xo.Float64, pointer=True, name="x"),
        xo.Arg(xo.Float64, pointer=True, name="p"),
        xo.Arg(xo.Float64, name="kick"),
        xo.Arg(xo.Int32, name="n"),
    ]
    context.add_kernels(sources=[SOURCE], kernels={"push": xo.Kernel(args=given, n_threads="n")})
    start = np.random.default_rng(1).random(4096)

    def track() -> list[Any]:
        x, p = context.nparray_to_context_array(start), context.nparray_to_context_array(start)
        for turn in range(300):
            context.kernels.push(x=x, p=p, kick=0.01 * (turn % 7), n=len(start))
        return [context.nparray_from_context_array(one) for one in (x, p)]

    return {"ring": track}
