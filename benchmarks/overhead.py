"""What a launch costs the host, against a bare PyOpenCL call.

In: a device. Out: microseconds per launch by backend, policy and window: recording alone (the loop
of calls), and end to end (with the wait for all of it), for independent launches and for a chain.

Host cost is meant where the window never fills: batches are one launch shorter than the window. On
a CPU device the kernels run beside the host program, so they do next to nothing. The bare calls
have the same kernel, typed, on the same kind of queue, with buffers of the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.harness import (
    ONE,
    TINY,
    TINY_BYTES,
    Bare,
    Settings,
    backends_of,
    interleave,
    spread,
    target,
)

POLICIES = ("eager", "ready_first")
WINDOWS = (16, 64, 256)
LAUNCHES = 256  # in one sample, about
ROUNDS = {False: 41, True: 5}  # by "is quick"
MOST_ABOVE_US = 6.0
MOST_APART = 0.20


class Sample(NamedTuple):
    """Microseconds per launch."""

    host_us: float
    end_us: float
    cpu_us: float


def measure(settings: Settings) -> dict[str, Any]:
    """Every backend with every policy, and what `auto` takes."""
    device = settings.device
    context = cl.Context([device])
    with acs.Runtime(context=context) as chosen:
        auto = chosen.stats()["backend"]
    rows: dict[str, Any] = {}
    for backend in backends_of(device):
        for issue in POLICIES:
            rows[f"{backend}-{issue}"] = _pair(context, backend, issue, ROUNDS[settings.quick])
    return {
        "auto": auto,
        "rows": rows,
        "host_ns_by_stage": _stages(context),
        "targets": _targets(rows, f"{auto}-eager"),
    }


def _pair(context: cl.Context, backend: str, issue: str, rounds: int) -> dict[str, Any]:
    """One backend and policy: independent launches in each window, and a chain in the widest."""
    samplers: dict[str, Callable[[], Sample]] = {}
    runtimes = []
    for window in WINDOWS:
        runtime = acs.Runtime(context=context, backend=backend, issue=issue, window=window)
        runtimes.append(runtime)
        bare = Bare(context, runtime.device, backend, runtime.plan.lanes)
        samplers[f"ours {window}"] = _ours(runtime, window - 1, chained=False)
        samplers[f"bare {window}"] = _bare(bare, window - 1, chained=False)
    samplers["ours chain"] = _ours(runtime, window - 1, chained=True)
    samplers["bare chain"] = _bare(bare, window - 1, chained=True)
    for sampler in samplers.values():
        sampler()
    samples = interleave(samplers, rounds)
    memory = runtime.stats()["memory"]["kind"]
    for runtime in runtimes:
        runtime.close()
    windows = {
        str(window): _compared(samples[f"ours {window}"], samples[f"bare {window}"])
        for window in WINDOWS
    }
    chain = _compared(samples["ours chain"], samples["bare chain"])
    return {"memory": memory, "windows": windows, "apart": _apart(windows), "chain": chain}


def _apart(windows: dict[str, Any]) -> dict[str, float]:
    """Largest host cost over smallest, less one: as it is, and with the driver's share held fixed.

    A bare call in a batch of 255 costs half as much again as one in a batch of 15, whatever the
    window; the second figure has the middle one of the bare costs in the place of each.
    """
    hosts = [row["host"] for row in windows.values()]
    bare = sorted(host["bare_us"]["median"] for host in hosts)[len(hosts) // 2]
    raw = [host["ours_us"]["median"] for host in hosts]
    fixed = [bare + host["above_us"]["median"] for host in hosts]
    return {
        "raw": round(max(raw) / min(raw) - 1.0, 3),
        "driver_fixed": round(max(fixed) / min(fixed) - 1.0, 3),
    }


def _compared(ours: list[Sample], bare: list[Sample]) -> dict[str, Any]:
    """Both, and the difference sample by sample: `host` of recording, `end` with the wait, `cpu` of
    recording by the clock of the calling thread, which other threads and programs do not move."""
    found = {}
    for index, name in enumerate(("host", "end", "cpu")):
        mine, theirs = [one[index] for one in ours], [one[index] for one in bare]
        found[name] = {
            "ours_us": spread(mine),
            "bare_us": spread(theirs),
            "above_us": spread([a - b for a, b in zip(mine, theirs, strict=True)]),
            "least_above_us": round(min(mine) - min(theirs), 3),
            "ratio": spread([a / b for a, b in zip(mine, theirs, strict=True)]),
        }
    return found


def _ours(runtime: acs.Runtime, launches: int, chained: bool) -> Callable[[], Sample]:
    kernel = runtime.build(TINY).tiny
    items = TINY_BYTES // 4
    if chained:
        row = [runtime.zeros(items, np.uint32) for _ in range(launches + 1)]
        pairs = list(pairwise(row))
    else:
        pairs = [
            (runtime.zeros(items, np.uint32), runtime.zeros(items, np.uint32))
            for _ in range(launches)
        ]

    def record() -> None:
        for x, y in pairs:
            kernel(ONE, ONE, x, y, 3)

    return _sampler(record, runtime.finish, launches)


def _bare(bare: Bare, launches: int, chained: bool) -> Callable[[], Sample]:
    kernel, queue = bare.kernel, bare.queues[0]
    if chained:
        row = [bare.buffer() for _ in range(launches + 1)]
        pairs = list(pairwise(row))

        def record_ordered() -> None:
            for x, y in pairs:
                kernel(queue, ONE, ONE, x, y, 3)

        def record_with_events() -> None:
            before = None
            for x, y in pairs:
                before = [kernel(queue, ONE, ONE, x, y, 3, wait_for=before)]

        record = record_with_events if bare.out_of_order else record_ordered
        return _sampler(record, bare.finish, launches)
    count = len(bare.queues)
    places = [(bare.queues[i % count], bare.buffer(), bare.buffer()) for i in range(launches)]

    def record_apart() -> None:
        for lane, x, y in places:
            kernel(lane, ONE, ONE, x, y, 3)

    return _sampler(record_apart, bare.finish, launches)


def _sampler(
    record: Callable[[], None], finish: Callable[[], None], launches: int
) -> Callable[[], Sample]:
    """One sample: batches that make about `LAUNCHES`, each waited for outside the host time."""
    batches = max(1, round(LAUNCHES / launches))
    scale = 1e6 / (batches * launches)

    def sample() -> Sample:
        host = end = cpu = 0.0
        for _ in range(batches):
            begun = thread_time()
            start = perf_counter()
            record()
            recorded = perf_counter()
            cpu += thread_time() - begun
            finish()
            host += recorded - start
            end += perf_counter() - start
        return Sample(host * scale, end * scale, cpu * scale)

    return sample


def _stages(context: cl.Context) -> dict[str, int]:
    """Medians of a traced run, where the runtime takes times between its stages."""
    with acs.Runtime(context=context, trace=True) as runtime:
        sample = _ours(runtime, LAUNCHES, chained=False)
        sample()
        runtime.trace.clear()
        sample()
        stages: dict[str, int] = runtime.trace.summary()["host_ns_median"]
        return stages


def _targets(rows: dict[str, Any], auto: str) -> list[dict[str, Any]]:
    widest = str(WINDOWS[-1])

    def above(name: str) -> dict[str, Any]:
        figures: dict[str, Any] = rows[name]["windows"][widest]["host"]["above_us"]
        return figures

    slowest = max(rows, key=lambda name: above(name)["median"])
    uneven = max(rows, key=lambda name: rows[name]["apart"]["driver_fixed"])
    return [
        target(
            "host cost of a launch above bare PyOpenCL, `auto`",
            above(auto)["median"], "at most", MOST_ABOVE_US, "us", above(auto),
        ),
        target(
            "the same, the slowest backend and policy",
            above(slowest)["median"], "at most", MOST_ABOVE_US, "us", above(slowest),
        )
        | {"where": slowest},
        target(
            "host cost in windows of 16, 64 and 256: largest over smallest, less one, `auto`",
            rows[auto]["apart"]["driver_fixed"], "at most", MOST_APART,
        ),
        target(
            "the same, the most uneven backend and policy",
            rows[uneven]["apart"]["driver_fixed"], "at most", MOST_APART,
        )
        | {"where": uneven},
    ]  # fmt: skip
