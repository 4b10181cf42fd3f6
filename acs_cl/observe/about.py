"""Facts about the runtime of a block, in plain values.

`observe.stats` asks a runtime for them. Files keep them, and reports show them.
"""

from __future__ import annotations

from ..records import Found, NamedTuple


class Needs(NamedTuple):
    """Needs of a kernel on a compute unit, as the driver tells. 0: nothing, or not known."""

    name: str
    local_bytes: int = 0
    """Local memory of a group."""
    private_bytes: int = 0
    """Private memory of a work-item that is not in registers."""
    most_items: int = 0
    """Work-items of the largest group that the driver allows for the kernel."""
    registers: int = 0
    """Registers of a work-item, as the compiler tells."""


class About(NamedTuple):
    """Facts about a runtime. Zeros and empty texts mean 'not known'."""

    backend: str = ""
    device: str = ""
    why: str = ""
    issue: str = ""
    window: int = 0
    """0: no limit, or not known."""
    full: int = 0
    """Launches that found the window full."""
    lanes: int = 0
    on_one_lane: int = 0
    """Launches that went to one lane, because all lanes would not be quicker."""
    replayed: int = 0
    """Launches that replays of graphs made."""
    units: int = 0
    """Compute units of the device."""
    is_cpu: bool = False
    began_ns: int = 0
    """Start of the block, on the host's clock."""
    ended_ns: int = 0
    checks: str = ""
    """The checks that were on."""
    found: tuple[str, ...] = ()
    """The findings of these checks."""
    local_bytes: int = 0
    """Local memory of a compute unit."""
    noted: Found = Found()
    """The notes of timed schedulers, without the runs: slices have these."""
    most_items: int = 0
    """Work-items of the largest group that the device allows."""
    kernels: tuple[Needs, ...] = ()
    """Needs of the known kernels. Of several kernels with one name, the largest needs."""
    registers: int = 0
    """Registers of a compute unit."""
