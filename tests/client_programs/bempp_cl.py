"""bempp-cl: boundary operators of a sphere, assembled by OpenCL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bempp_cl import api


def programs() -> dict[str, Callable[[], list[Any]]]:
    """A single and a double layer of Laplace's equation, and one of Helmholtz's."""
    grid = api.shapes.regular_sphere(2)
    flat = api.function_space(grid, "DP", 0)
    how = {"device_interface": "opencl", "assembler": "dense"}
    laplace, helmholtz = api.operators.boundary.laplace, api.operators.boundary.helmholtz

    def assemble() -> list[Any]:
        made = (
            laplace.single_layer(flat, flat, flat, **how),
            laplace.double_layer(flat, flat, flat, **how),
            helmholtz.single_layer(flat, flat, flat, 1.5, **how),
        )
        return [np.asarray(one.weak_form().to_dense()) for one in made]

    return {"operators": assemble}
