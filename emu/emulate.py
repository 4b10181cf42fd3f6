"""The options for a device that is to be modelled.

Input: the mapping of `Runtime(emulate=…)`. Output: `Emulate`, or `UsageError` if the mapping is
wrong.

Invariant: the machine exists, and durations are whole nanoseconds, at least one. The emulator
checks the name of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from acs_cl.emu.machines import machine
from acs_cl.emu.trace import KERNEL
from acs_cl.errors import UsageError

GROUP = 64
"""Work-items of a group if the driver would choose."""


class Emulate(NamedTuple):
    """The model. `durations`: nanoseconds of a group by kernel. `measured`: those of whole launches
    by (kernel, groups, items)."""

    machine: str = "paper"
    policy: str = "acs_hw"
    durations: Mapping[str, int] = {}
    measured: Mapping[tuple[str, int, int], int] = {}


def emulate(options: object) -> Emulate:
    """Read `Runtime(emulate={…})`. Raise `UsageError` if it is wrong."""
    options = options or {}
    if not isinstance(options, Mapping):
        raise UsageError(f"emulate= has machine, policy and durations, got {options!r}")
    given = dict(options)
    wrong = sorted(str(key) for key in set(given) - {"machine", "policy", "durations"})
    if wrong:
        raise UsageError(f"emulate= has machine, policy and durations, got {', '.join(wrong)}")
    durations = given.get("durations", {})
    found = Emulate(given.get("machine", "paper"), given.get("policy", "acs_hw"))
    for key in ("machine", "policy"):
        if not isinstance(getattr(found, key), str):
            raise UsageError(f"emulate={{{key!r}: …}} is a name, got {getattr(found, key)!r}")
    machine(found.machine)
    if isinstance(durations, Mapping):
        for name, ns in durations.items():
            if not isinstance(ns, int) or ns < 1:
                raise UsageError(f"durations[{name!r}]: expected whole nanoseconds, got {ns!r}")
        return found._replace(durations=dict(durations))
    if not isinstance(durations, (str, Path)):
        raise UsageError(
            "durations are nanoseconds of a group by kernel, or the path of a timeline, got"
            f" {durations!r}"
        )
    return found._replace(measured=_measured(durations))


def _measured(path: str | Path) -> dict[tuple[str, int, int], int]:
    """Return median times of launches in a timeline that `rt.trace.save` wrote."""
    from acs_cl.emu.convert import from_timeline

    trace, _ = from_timeline(path, GROUP)
    times: dict[tuple[str, int, int], list[int]] = {}
    for entry in trace.entries:
        if entry.kind == KERNEL:
            times.setdefault((entry.name, entry.groups, entry.items), []).append(entry.total_ns)
    return {key: sorted(found)[len(found) // 2] for key, found in times.items()}
