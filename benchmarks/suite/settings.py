"""Settings of a benchmark, and variables of the environment that it refuses."""

from __future__ import annotations

import os
from typing import NamedTuple

import pyopencl as cl

from acs_cl import UsageError, devices

OVERRIDES = ("ACS_CL_BACKEND", "ACS_CL_CHECK", "ACS_CL_TRACE")
"""With one of these set, a benchmark would measure something else."""


class Settings(NamedTuple):
    """Options of the command line. None: the benchmark's own value."""

    device: cl.Device
    quick: bool = False
    kernel_us: float | None = None
    launches: int | None = None

    @property
    def on_cpu(self) -> bool:
        """Tell whether kernels run on the cores that also run the host program."""
        return bool(self.device.type & cl.device_type.CPU)

    @property
    def preset(self) -> str:
        """Return the preset of workloads that are measured on such a device."""
        return "tiny" if self.quick else "small" if self.on_cpu else "paper"

    @property
    def position(self) -> int:
        """Return the index of the device in the list of all."""
        return devices.devices().index(self.device)

    def context(self) -> cl.Context:
        """Return a context for all parts of one benchmark."""
        return cl.Context([self.device])

    def backends(self) -> list[str]:
        """Return the backends on the host's side that the device has."""
        return host_backends(self.device)


def host_backends(device: cl.Device) -> list[str]:
    """Return the backends that enqueue each launch, `serial` first."""
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    accepts = bool(device.queue_properties & mode)
    return ["serial", *(["out_of_order"] if accepts else []), "lanes"]


def refuse_overrides() -> None:
    """Raise `UsageError` if the environment would choose for the benchmark."""
    overridden = [name for name in OVERRIDES if os.environ.get(name)]
    if overridden:
        raise UsageError(f"unset {', '.join(overridden)}: the benchmarks choose for themselves")
