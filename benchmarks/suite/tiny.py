"""Launch the smallest possible kernel, through a runtime and by PyOpenCL alone.

A kernel without work shows the host's cost of a launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs

TINY = "kernel void tiny(global const uint *x, global uint *y, uint a) { y[0] = x[0] + a; }"
"""Two arrays and a scalar: the launch of all figures of host costs."""

ONE = (1,)

TINY_BYTES = 4
"""Bytes of an array: a launch of one work-item touches no more."""


class Ours:
    """The tiny kernel and its arrays on a runtime."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.kernel = runtime.build(TINY).tiny

    def array(self) -> acs.Array:
        """Return memory for one array, zeroed."""
        return self.runtime.zeros(TINY_BYTES // 4, np.uint32)


class Bare:
    """The comparison: typed kernel calls of PyOpenCL on queues like the backend's."""

    def __init__(self, context: cl.Context, device: cl.Device, backend: str, lanes: int) -> None:
        self.out_of_order = backend == "out_of_order"
        modes = cl.command_queue_properties
        properties: Any = modes.OUT_OF_ORDER_EXEC_MODE_ENABLE if self.out_of_order else 0
        count = lanes if backend == "lanes" else 1
        self.queues = [
            cl.CommandQueue(context, device, properties=properties) for _ in range(count)
        ]
        self.kernel = typed_kernel(self.queues[0], TINY, "tiny", None, None, np.uint32)

    def array(self) -> cl.Buffer:
        """Return memory for one array, zeroed."""
        return zeroed_buffer(self.queues[0], TINY_BYTES)

    def finish(self) -> None:
        """Wait for all queues."""
        for queue in self.queues:
            queue.finish()


def typed_kernel(queue: cl.CommandQueue, source: str, name: str, *dtypes: Any) -> cl.Kernel:
    """Return a kernel of PyOpenCL that knows the types of its values; None stands for memory."""
    kernel = cl.Kernel(cl.Program(queue.context, source).build(devices=[queue.device]), name)
    kernel.set_scalar_arg_dtypes(list(dtypes))
    return kernel


def zeroed_buffer(queue: cl.CommandQueue, nbytes: int) -> cl.Buffer:
    """Return a buffer of zeros."""
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, nbytes)
    cl.enqueue_copy(queue, buffer, np.zeros(nbytes, np.uint8))
    return buffer
