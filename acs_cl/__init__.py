"""Concurrent kernels on irregular, input-dependent graphs, on any OpenCL device.

A program launches kernels in program order, as if each ran after the one before; the runtime finds
out from the bytes that each reads and writes which are independent, and runs those together.

>>> import acs_cl as acs
>>> with acs.Runtime() as rt:
...     x = rt.array([1, 2, 3], "f4")
...     print(x.get())
[1. 2. 3.]
"""

from __future__ import annotations

from ._version import __version__ as __version__
from .arrays import Array
from .deciding import size
from .errors import AcsError, DeviceError, PoisonedError, UsageError
from .graph import Graph
from .handle import Handle
from .kernel import Kernel
from .program import Program
from .queue import Queue
from .runtime import Runtime

__all__ = (
    "AcsError",
    "Array",
    "DeviceError",
    "Graph",
    "Handle",
    "Kernel",
    "PoisonedError",
    "Program",
    "Queue",
    "Runtime",
    "UsageError",
    "size",
)
