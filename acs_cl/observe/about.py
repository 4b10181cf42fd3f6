"""What the runtime of a block was like, in plain values.

`observe.stats` asks a runtime for it; files keep it, and reports show it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..records import Found


class About(NamedTuple):
    """What the runtime was like. Zeros and empty texts are 'not known'."""

    backend: str = ""
    device: str = ""
    why: str = ""
    issue: str = ""
    window: int = 0
    """0: without bound, or not known."""
    full: int = 0
    """Launches that found it full."""
    lanes: int = 0
    units: int = 0
    """Compute units of the device."""
    is_cpu: bool = False
    began_ns: int = 0
    """The block, on the host's clock."""
    ended_ns: int = 0
    checks: str = ""
    """Those that were on."""
    found: tuple[str, ...] = ()
    """What they found."""
    local_bytes: int = 0
    """Local memory of a compute unit."""
    noted: Found = Found()
    """What timed schedulers have noted, but for the runs, which slices have."""
    kernels: tuple[tuple[str, int], ...] = ()
    """Kernels that are known, each with the local memory that one of its groups takes."""
