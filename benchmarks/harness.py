"""What all benchmarks share: interleaved timing, spreads, targets, both sides.

In: a device, and small functions that take one sample each. Out: plain values for JSON.

Invariant: what is compared is measured in one process, in turns, the order of the turns rotating,
so that a machine that changes its speed changes it for all; every figure comes with its spread.
Times are the host's unless their name says otherwise.
"""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl import devices

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
        """The backends on the host's side that the device has."""
        return host_backends(self.device)


def host_backends(device: cl.Device) -> list[str]:
    """Those that enqueue each launch, `serial` first."""
    mode = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    accepts = bool(device.queue_properties & mode)
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
    value: float | str | None,
    sense: str,
    limit: float | str | None,
    unit: str = "",
    around: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A figure beside what it has to reach. `sense`: 'at most', 'below', 'at least' or 'is'.

    A value of None: not measured. A limit of None: nothing has to be reached, and the figure stands
    there to be compared. `around`: a `spread` whose quartiles go along.
    """
    met = limit is None or (value is not None and _SENSES[sense](value, limit))
    return {
        "what": what,
        "value": float(f"{value:.4g}") if isinstance(value, float) else value,
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


def while_held(
    queues: Sequence[cl.CommandQueue], record: Callable[[], Any], finish: Callable[[], Any]
) -> tuple[float, float]:
    """Seconds of the host's work alone: of `record` with the queues stopped, and of `finish` when
    all that they held has run to its end."""
    gate = cl.UserEvent(queues[0].context)
    for queue in queues:
        cl.enqueue_barrier(queue, wait_for=[gate])
    start = perf_counter()
    record()
    recording = perf_counter() - start
    gate.set_status(cl.command_execution_status.COMPLETE)
    for queue in queues:
        queue.finish()
    start = perf_counter()
    finish()
    return recording, perf_counter() - start


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


class Deadline:
    """Seconds that a measurement of many parts may take. One more part is begun where another one
    as long as the longest so far would end in time; the first one is always."""

    def __init__(self, within_s: float) -> None:
        self._within_s, self._start = within_s, perf_counter()
        self._began: float | None = None
        self._longest = 0.0

    def has_time(self) -> bool:
        """Whether there is time for one more, which begins now."""
        now = perf_counter()
        if self._began is not None:
            self._longest = max(self._longest, now - self._began)
            if now - self._start + self._longest > self._within_s:
                return False
        self._began = now
        return True


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


def device_clock(
    context: cl.Context, device: cl.Device, source: str, name: str, items: int, *values: Any
) -> Callable[[int, int], list[float]]:
    """Microseconds of kernels on the device's own clock, by how many and their rounds. The kernel
    takes one buffer of words, `values`, and its rounds; it runs as one group of `items`."""
    profiled: Any = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, device, properties=profiled)
    kernel = typed_kernel(queue, source, name, None, *[np.uint32] * (len(values) + 1))
    buffer = zeroed_buffer(queue, items * 4)

    def lengths_us(count: int, rounds: int) -> list[float]:
        found = []
        for _ in range(count):
            event = kernel(queue, (items,), (items,), buffer, *values, rounds)
            event.wait()
            found.append((event.profile.end - event.profile.start) * 1e-3)
        return found

    until = perf_counter() + 0.1  # clocks rise while there is work
    while perf_counter() < until:
        lengths_us(7, 256)
    return lengths_us


# ---- processes -----------------------------------------------------------------------------------


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
