"""boxtree: an adaptive tree of particles, with the traversal of a fast multipole method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from boxtree import TreeBuilder
from boxtree.traversal import FMMTraversalBuilder
from pytools.obj_array import make_obj_array


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Of 4,000 particles."""
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    places = np.random.default_rng(1).random((2, 4000))
    particles = make_obj_array([cl.array.to_device(queue, axis) for axis in places])
    build, traverse = TreeBuilder(context), FMMTraversalBuilder(context)

    def tree() -> list[Any]:
        made, _ = build(queue, particles, max_particles_in_box=30)
        lists, _ = traverse(queue, made)
        return [made.box_centers.get(queue), lists.neighbor_source_boxes_lists.get(queue)]

    return {"tree and traversal": tree}
