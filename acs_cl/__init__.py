"""Runs independent OpenCL kernels at the same time, though a program launches them in order.

A program launches kernels as if each ran after the one before. The runtime finds out which bytes
each kernel reads and writes. From that it knows which kernels may run together.

>>> import acs_cl as acs
>>> with acs.Runtime() as rt:
...     x = rt.array([1, 2, 3], "f4")
...     print(x.get())
[1. 2. 3.]
"""

from __future__ import annotations

import importlib
import typing

from ._version import __version__ as __version__

if typing.TYPE_CHECKING:
    from .access.policies import Row, Strided, Tile
    from .conditions import size
    from .errors import AcsError, DeviceError, PoisonedError, UsageError
    from .graph.graph import Graph
    from .graph.loops import loop
    from .handle import Handle
    from .kernel import Kernel
    from .launch.spawning import Spawn
    from .memory.array import Array
    from .program import Program
    from .queue.queue import Queue
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
    "Row",
    "Runtime",
    "Spawn",
    "Strided",
    "Tile",
    "UsageError",
    "loop",
    "size",
)

_HOMES = {
    "AcsError": "errors",
    "Array": "memory.array",
    "DeviceError": "errors",
    "Graph": "graph.graph",
    "Handle": "handle",
    "Kernel": "kernel",
    "PoisonedError": "errors",
    "Program": "program",
    "Queue": "queue.queue",
    "Row": "access.policies",
    "Runtime": "runtime",
    "Spawn": "launch.spawning",
    "Strided": "access.policies",
    "Tile": "access.policies",
    "UsageError": "errors",
    "loop": "graph.loops",
    "size": "conditions",
}


def __getattr__(name: str) -> typing.Any:
    """Load a public name when it is first used. Pytest imports this package for its plugin in every
    run where it is installed, and that must not load OpenCL's drivers."""
    home = _HOMES.get(name)
    if home is None:
        from .errors import instead

        hint = instead(name, __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    value = globals()[name] = getattr(importlib.import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    modules = {"dask", "errors", "testing"}  # once they are imported
    own = (name for name in globals() if name.startswith("__") or name in modules)
    return sorted({*own, *__all__})
