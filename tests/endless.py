"""Kernels that end when the test says so, by a word of the host's memory which they read.

So no test depends on how fast or how busy the machine is. A device that cannot read that memory
counts for about as long as the test asks for.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyopencl as cl

SOURCE = """
#define SPIN(word) \\
    for (ulong k = 0; k < n && !(end && *(global volatile const int *)end); ++k) word ^= 1; \\
    word = -1;
kernel void spin(global volatile int *x, ulong n, ulong end) { SPIN(x[0]) }
"""
"""`SPIN(word)` in a kernel with `n` and `end`; and a kernel that has nothing else."""

LARGE = 1 << 36
"""Rounds of a kernel that hears of its end: the bound, half a minute and more."""

ENDED = -1
"""What an endless kernel leaves."""


@cache
def counted(device: cl.Device, seconds: float) -> int:
    """Rounds that last so long by themselves, by the device's own clock."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    kernel, word = cl.Program(context, SOURCE).build().spin, cl.Buffer(context, 0, 256)
    rounds, took_s = 1000, 0.0
    while took_s < 0.02:  # what comes before the kernel, such as its compilation, is not in it
        rounds *= 4
        event = kernel(queue, (1,), None, word, np.uint64(rounds), np.uint64(0))
        event.wait()
        took_s = (event.profile.end - event.profile.start) * 1e-9
    return int(seconds * rounds / took_s)


class End:
    """The word that ends the endless kernels of a device, which has to outlive them. `seconds`: how
    long one lasts, about, where it does not hear of its end."""

    def __init__(self, device: cl.Device, seconds: float) -> None:
        self._word = np.zeros(16, "i4")
        hears = bool(device.type & cl.device_type.CPU)
        self.rounds = LARGE if hears else counted(device, seconds)
        self.address = self._word.ctypes.data if hears else 0

    def set(self) -> None:
        """They end now, or soon by themselves."""
        self._word[0] = 1
