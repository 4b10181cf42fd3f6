"""What the runtime of a block was like, in plain values.

In: a runtime, under its lock. Out: an `About`, which files keep and reports show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyopencl as cl

if TYPE_CHECKING:
    from ..runtime import Runtime


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


def about(runtime: Runtime) -> About:
    """Ask a runtime. The block has no times yet."""
    window, backend, checker = runtime._window, runtime._backend, runtime._checker
    said = checker.report() if checker is not None else {}
    return About(
        backend=backend.name,
        device=runtime.device.name.strip(),
        why=runtime.plan.why,
        issue=runtime.options.issue,
        window=window.size or 0,
        full=window.full,
        lanes=len(backend.queues),
        units=runtime.device.max_compute_units,
        is_cpu=bool(runtime.device.type & cl.device_type.CPU),
        checks=said.get("modes", ""),
        found=tuple(said.get("said", ())),
    )
