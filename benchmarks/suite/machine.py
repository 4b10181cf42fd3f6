"""The machine of a measurement, and how steady it was meanwhile.

Input: a device. Output: plain values for JSON.
"""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

from acs_cl import __version__, core, devices
from acs_cl.benchmarks.suite.provenance import sources
from acs_cl.benchmarks.suite.statistics import quantile


def machine(device: cl.Device) -> dict[str, Any]:
    """Describe the machine with its device."""
    return {
        "device": devices.full_name(device),
        "kind": devices.kind(device),
        "driver": device.driver_version.strip(),
        "compute_units": device.max_compute_units,
        "repaired": devices.repair(device),
        "environment": {name: value for name, value in os.environ.items() if "POCL_" in name},
        "pyopencl": cl.VERSION_TEXT,
        **processor(),
    }


def processor() -> dict[str, Any]:
    """Describe the machine without a device."""
    found = sources()
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "load": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "acs_cl": __version__,
        "profiled": core.native.IS_PROFILED,
        "commit": found.commit,
        "sources": found.digest,
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def noise() -> dict[str, Any]:
    """Measure machine noise: a fixed piece of Python, timed again and again.

    `unrest` is the distance between the 10th and the 90th percentile over the median: below 0.05 on
    a quiet machine.
    """
    times = []
    for _ in range(40):
        start = perf_counter()
        sum(range(50_000))
        times.append((perf_counter() - start) * 1e6)
    middle = quantile(times, 0.5)
    unrest = (quantile(times, 0.9) - quantile(times, 0.1)) / middle
    return {"loop_us": round(middle, 1), "unrest": round(unrest, 3)}


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None
