"""What all benchmarks share: interleaved timing, spreads, targets, both sides, the machine.

In: a device, and small functions that take one sample each. Out: plain values for JSON.

Invariant: what is compared is measured in one process, in turns, the order of the turns rotating,
so that a machine that changes its speed changes it for all; every figure comes with its spread.
Times are the host's unless their name says otherwise.
"""

from __future__ import annotations

import gc
import operator
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import __version__, devices

T = TypeVar("T")

TINY = "kernel void tiny(global const uint *x, global uint *y, uint a) { y[0] = x[0] + a; }"
"""Two arrays and a scalar: the launch that host costs are stated for."""

ONE = (1,)
TINY_BYTES = 4
"""Of an array: all that a launch of one work-item reaches."""

OVERRIDES = ("ACS_CL_BACKEND", "ACS_CL_CHECK", "ACS_CL_TRACE")
"""With one of these set, a benchmark would not measure what it says."""


class Settings(NamedTuple):
    """What the command line asked for. None: the benchmark's own value."""

    device: cl.Device
    quick: bool = False
    kernel_us: float | None = None
    launches: int | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether kernels run on the cores that also run the host program."""
        return bool(self.device.type & cl.device_type.CPU)

    @property
    def position(self) -> int:
        """Where the device stands in the list of all."""
        return devices.devices().index(self.device)

    def context(self) -> cl.Context:
        """A context of its own, for all that one benchmark compares."""
        return cl.Context([self.device])

    def backends(self) -> list[str]:
        """The backends that the device has."""
        mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
        accepts = bool(self.device.queue_properties & mode)
        return ["serial", *(["out_of_order"] if accepts else []), "lanes"]


# ---- numbers -------------------------------------------------------------------------------------


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie, between neighbours in proportion."""
    return float(np.quantile(np.asarray(values, dtype=float), share))


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Least, quartiles, greatest and how many."""
    shares = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}
    figures: dict[str, Any] = {k: round(quantile(values, s), digits) for k, s in shares.items()}
    figures["samples"] = len(values)
    return figures


def target(
    what: str,
    value: float | str,
    sense: str,
    limit: float | str,
    unit: str = "",
    around: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A figure beside what it has to reach. `sense`: 'at most', 'below', 'at least' or 'is'.

    `around`: a `spread` whose quartiles go along.
    """
    met = _SENSES[sense](value, limit)
    return {
        "what": what,
        "value": round(value, 3) if isinstance(value, float) else value,
        "unit": unit,
        "sense": sense,
        "limit": limit,
        "met": bool(met),
        "quartiles": [around["p25"], around["p75"]] if around is not None else None,
    }


_SENSES: dict[str, Callable[[Any, Any], bool]] = {
    "at most": operator.le,
    "below": operator.lt,
    "at least": operator.ge,
    "is": operator.eq,
}


# ---- timing --------------------------------------------------------------------------------------


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect garbage now, and none inside."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interleave(samplers: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """`rounds` samples of each, in turns; each round begins with another one."""
    names = list(samplers)
    samples: dict[str, list[T]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        with no_collection():
            for name in names[shift:] + names[:shift]:
                samples[name].append(samplers[name]())
    return samples


def noise(rounds: int = 40) -> dict[str, Any]:
    """How steady the machine is: a fixed piece of Python, timed again and again.

    `unrest` is the distance between the 10th and the 90th percentile over the median: below 0.05 on
    a quiet machine.
    """
    times = []
    for _ in range(rounds):
        start = perf_counter()
        sum(range(50_000))
        times.append((perf_counter() - start) * 1e6)
    middle = quantile(times, 0.5)
    unrest = (quantile(times, 0.9) - quantile(times, 0.1)) / middle
    return {"loop_us": round(middle, 1), "unrest": round(unrest, 3)}


# ---- the two sides -------------------------------------------------------------------------------


class Ours:
    """The tiny kernel and its arrays on a runtime."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.kernel = runtime.build(TINY).tiny

    def array(self, nbytes: int = TINY_BYTES) -> acs.Array:
        """Memory for one array, zeroed."""
        return self.runtime.zeros(nbytes // 4, np.uint32)


class Bare:
    """What it is compared with: typed kernel calls of PyOpenCL on queues like the backend's."""

    def __init__(self, context: cl.Context, device: cl.Device, backend: str, lanes: int) -> None:
        self.out_of_order = backend == "out_of_order"
        modes = cl.command_queue_properties
        properties: Any = modes.OUT_OF_ORDER_EXEC_MODE_ENABLE if self.out_of_order else 0
        count = lanes if backend == "lanes" else 1
        self.queues = [
            cl.CommandQueue(context, device, properties=properties) for _ in range(count)
        ]
        self.kernel = typed_kernel(self.queues[0], TINY, "tiny", None, None, np.uint32)

    def array(self) -> cl.Buffer:
        """Memory for one array, zeroed."""
        return zeroed_buffer(self.queues[0], TINY_BYTES)

    def finish(self) -> None:
        """Wait for all queues."""
        for queue in self.queues:
            queue.finish()


def typed_kernel(queue: cl.CommandQueue, source: str, name: str, *dtypes: Any) -> cl.Kernel:
    """A kernel of PyOpenCL's that knows the types of its values; None stands for memory."""
    kernel = cl.Kernel(cl.Program(queue.context, source).build(devices=[queue.device]), name)
    kernel.set_scalar_arg_dtypes(list(dtypes))
    return kernel


def zeroed_buffer(queue: cl.CommandQueue, nbytes: int) -> cl.Buffer:
    """A buffer of zeros."""
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, nbytes)
    cl.enqueue_copy(queue, buffer, np.zeros(nbytes, np.uint8))
    return buffer


# ---- processes and the machine -------------------------------------------------------------------


def fresh_python(arguments: Sequence[str], **changes: str) -> tuple[str, float]:
    """Run a new interpreter to its end: what it printed, and seconds from its start to its end.

    It may keep its byte code, as installed packages do.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.update(changes)
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    took_s = perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a process of the benchmark failed:\n{done.stderr.strip()}")
    return done.stdout, took_s


def machine(device: cl.Device) -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "device": devices.full_name(device),
        "kind": devices.kind(device),
        "driver": device.driver_version.strip(),
        "compute_units": device.max_compute_units,
        "repaired": devices.repair(device),
        "pyopencl": cl.VERSION_TEXT,
        **processor(),
    }


def processor() -> dict[str, Any]:
    """The same without a device."""
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "load": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "acs_cl": __version__,
        "commit": _commit(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


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


def _commit() -> str:
    """The commit of the sources, with a mark if they differ from it; empty for an installation."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short", "HEAD")
        sources = ("acs_cl", "benchmarks", "emu")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *sources)
        return f"{commit} with changes" if commit and changed else commit
    except OSError:
        return ""
