"""Check that nothing accumulates over a million launches.

Input: a device, and a number of launches. Output: resident memory, Python objects, allocated blocks
and unretired launches after the first 10,000 launches and at points until the end, for programs
that use the runtime in different ways.

Each program runs in a process of its own, so that nothing else lives there. Allocated blocks of the
interpreter are counted besides the objects that its collector knows, since events are not among
those.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.processes import fresh_python
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.tiny import ONE, TINY

LAUNCHES = {False: 1_000_000, True: 50_000}  # by "is quick"
SETTLED = 10_000
POINTS = 10
PAIRS = 32
HANDLES = 1_000
COUNTED = ("resident_mib", "objects", "blocks", "live_spans")
MOST_GROWTH_MIB = 16.0
MOST_PER_1000 = 1.0
"""Most new objects for 1,000 launches, in the second half of the run. A normal variation is a few
hundred over half a million. A leak is at least one for each launch."""

Step = Callable[[int], None]


def _steady(runtime: acs.Runtime, kernel: acs.Kernel) -> Step:
    """Use the same arrays all the time, half of the launches in chains; drop handles at once."""
    arrays = _some_arrays(runtime)

    def step(number: int) -> None:
        pair = number % PAIRS
        kernel(ONE, ONE, arrays[pair], arrays[PAIRS + pair // 2], 1)

    return step


def _handles(runtime: acs.Runtime, kernel: acs.Kernel) -> Step:
    """Keep the last thousand handles; wait for some, and ask some for their event."""
    arrays = _some_arrays(runtime)
    kept: deque[acs.Handle] = deque(maxlen=HANDLES)

    def step(number: int) -> None:
        pair = number % PAIRS
        handle = kernel(ONE, ONE, arrays[pair], arrays[PAIRS + pair], 1)
        kept.append(handle)
        if number % 100 == 0:
            kept[0].wait()
        elif number % 100 == 50:
            assert handle.event is not None

    return step


def _arrays(runtime: acs.Runtime, kernel: acs.Kernel) -> Step:
    """Make a new array for every launch, and drop it while the launch may still be under way."""
    sizes = (16, 64, 1000, 5000)
    source = runtime.zeros(64, np.uint32)

    def step(number: int) -> None:
        kernel(ONE, ONE, source, runtime.empty(sizes[number & 3], np.uint32), 1)

    return step


def _some_arrays(runtime: acs.Runtime) -> list[acs.Array]:
    return [runtime.zeros(64, np.uint32) for _ in range(2 * PAIRS)]


WAYS = {"steady": _steady, "handles": _handles, "arrays": _arrays}


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every program, each in a process of its own."""
    launches = settings.launches or LAUNCHES[settings.quick]
    code = f"import sys; from {__name__} import child; child(*map(int, sys.argv[2:]),"
    rows: dict[str, Any] = {}
    for way in WAYS:
        text = f"{code} way=sys.argv[1])"
        printed, _ = fresh_python(["-c", text, way, str(settings.position), str(launches)])
        rows[way] = json.loads(printed)
    return {"launches": launches, "rows": rows}


def child(index: int, launches: int, way: str) -> None:
    """Run one program and print its points as JSON."""
    with acs.Runtime(devices.devices()[index]) as runtime:
        tiny = runtime.build(TINY).tiny
        # a scheduler, and the compiler that builds it, take memory once, and before
        runtime.prebuild(tiny)
        step = WAYS[way](runtime, tiny)
        settled = min(SETTLED, launches // 2)
        stops = [settled + (launches - settled) * i // POINTS for i in range(POINTS + 1)]
        start = perf_counter()
        points = []
        for first, stop in zip([0, *stops], stops, strict=False):
            for number in range(first, stop):
                step(number)
            points.append(_point(runtime, stop))
        took_s = perf_counter() - start
        backend = runtime.stats()["backend"]
    halfway, last = points[POINTS // 2], points[-1]
    thousands = (last["launches"] - halfway["launches"]) / 1000
    found = {
        "backend": backend,
        "took_s": round(took_s, 2),
        "us_per_launch": round(took_s / launches * 1e6, 2),
        "growth": {
            key: round(max(point[key] for point in points) - points[0][key], 3) for key in COUNTED
        },
        "second_half_per_1000": {
            key: round((last[key] - halfway[key]) / thousands, 4) for key in COUNTED
        },
        "points": points,
    }
    print(json.dumps(found))


def _point(runtime: acs.Runtime, launches: int) -> dict[str, Any]:
    """Return the present counts after this many launches."""
    unretired = _unretired(runtime)
    runtime.finish()
    gc.collect()
    return {
        "launches": launches,
        "resident_mib": round(resident_bytes() / 2**20, 3),
        "objects": len(gc.get_objects()),
        "blocks": sys.getallocatedblocks(),
        "unretired": unretired,
        "unretired_after_finish": _unretired(runtime),
        "live_spans": runtime.stats()["live_spans"],
    }


def _unretired(runtime: acs.Runtime) -> int:
    stats = runtime.stats()
    return int(stats["launches"] - stats["retired"])


def resident_bytes() -> int:
    """Return the resident memory of this process, or its maximum if the system tells no more."""
    try:
        with open("/proc/self/statm", encoding="ascii") as line:
            return int(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    launches, rows = result["launches"], result["rows"]

    def worst(group: str, key: str) -> tuple[float, str]:
        return max((float(row[group][key]), way) for way, row in rows.items())

    grown, grown_in = worst("growth", "resident_mib")
    objects, objects_in = worst("second_half_per_1000", "objects")
    blocks, blocks_in = worst("second_half_per_1000", "blocks")
    left, left_in = max(
        (max(point["unretired_after_finish"] for point in row["points"]), way)
        for way, row in rows.items()
    )
    more = "for 1,000 launches more, in the second half"
    return [
        target(
            f"resident memory grows over {launches:,} launches after the first "
            f"{min(SETTLED, launches // 2):,}",
            grown, "below", MOST_GROWTH_MIB, "MiB",
        )
        | {"where": grown_in},
        target(f"Python objects {more}", objects, "below", MOST_PER_1000) | {"where": objects_in},
        target(f"interpreter's blocks (events among them) {more}", blocks, "below", MOST_PER_1000)
        | {"where": blocks_in},
        target("launches not let go of after a wait for all", left, "is", 0) | {"where": left_in},
    ]  # fmt: skip
