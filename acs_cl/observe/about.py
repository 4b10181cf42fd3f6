"""What the runtime of a block was like, in plain values.

`observe.stats` asks a runtime for it; files keep it, and reports show it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..records import Found


class Needs(NamedTuple):
    """What a kernel needs of a compute unit, as the driver tells. 0: nothing, or not known."""

    name: str
    local_bytes: int = 0
    """Local memory of a group."""
    private_bytes: int = 0
    """Memory of a work-item that is in no register."""
    most_items: int = 0
    """Work-items of the largest group that the driver lets it have."""
    registers: int = 0
    """Of a work-item, as the compiler tells."""


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
    most_items: int = 0
    """Work-items of the largest group that the device has."""
    kernels: tuple[Needs, ...] = ()
    """Kernels that are known. Where several have one name: the most that one of these needs."""
    registers: int = 0
    """Registers of a compute unit."""
