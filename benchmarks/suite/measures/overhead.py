"""Host cost of a launch, against a bare PyOpenCL call.

Input: a device. Output: microseconds per launch by backend, policy and window, each beside a typed
PyOpenCL call on the same kind of queue, by three methods:

- `held`: the queues are stopped by a user event while launches are recorded. The runtime's work
  after their end (`retire_us`) is timed when the device is idle again. So it is all of the host's
  work for a launch, and nothing else.
- `free`: the loop of calls while the device runs earlier launches. It includes the driver's own
  share, which depends on the pace: PoCL takes up to ten times as long if its worker thread has gone
  to sleep.
- `end`: from the first call to the end of all.

Host cost means a window that is never full: batches are one launch shorter than the window. All
samples go through the same number of arrays, so that runs differ only in their windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.sides import (
    Sample,
    bare_side,
    free,
    held,
    ours_side,
)
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import differences, quantile, ratios, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.suite.tiny import Bare, Ours

POLICIES = ("eager", "ready_first")
WINDOWS = (16, 64, 256)
WIDEST = str(WINDOWS[-1])
ROUNDS = {False: 31, True: 3}  # by "is quick"
MOST_ABOVE_US = 6.0
MOST_APART = 0.20


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every backend with every policy, and the choice of `auto`."""
    context = settings.context()
    with acs.Runtime(context=context) as chosen:
        auto = chosen.stats()["backend"]
    rows: dict[str, Any] = {}
    for backend in settings.backends():
        for issue in POLICIES:
            rows[f"{backend}-{issue}"] = _row(context, backend, issue, ROUNDS[settings.quick])
    return {"auto": auto, "rows": rows}


def _row(context: cl.Context, backend: str, issue: str, rounds: int) -> dict[str, Any]:
    """Measure one backend and policy: independent launches by window."""
    samplers: dict[str, Callable[[], Sample]] = {}
    runtimes = []
    for window in WINDOWS:
        runtime = acs.Runtime(context=context, backend=backend, issue=issue, window=window)
        runtimes.append(runtime)
        bare = Bare(context, runtime.device, backend, runtime.plan.lanes)
        ours = Ours(runtime)
        sides = {"ours": ours_side(ours, window - 1), "bare": bare_side(bare, window - 1)}
        for name, side in sides.items():
            samplers[f"held {name} {window}"] = held(side)
            if window == WINDOWS[-1]:
                samplers[f"free {name} {window}"] = free(side)
    for once in samplers.values():
        once()
    samples = interleave(samplers, rounds)
    memory = runtime.stats()["memory"]["kind"]
    for runtime in runtimes:
        runtime.close()
    windows = {str(window): {"held": _compared(samples, "held", str(window))} for window in WINDOWS}
    windows[WIDEST] |= {how: _compared(samples, how, WIDEST) for how in ("free", "end")}
    return {"memory": memory, "windows": windows, "windows_apart": _windows_apart(samples)}


def _compared(samples: dict[str, list[Sample]], how: str, what: str) -> dict[str, Any]:
    """Return ours, bare, and the difference sample by sample."""
    found = {f"{name}_us": spread(_values(samples, how, name, what)) for name in ("ours", "bare")}
    found["above_us"] = spread(_apart(samples, how, what))
    if how == "held":
        found["retire_us"] = spread([one.retire_us for one in samples[f"held ours {what}"]])
    return found


def _values(samples: dict[str, list[Sample]], how: str, name: str, what: str) -> list[float]:
    if how == "end":
        return [one.end_us for one in samples[f"free {name} {what}"]]
    return [one.host_us for one in samples[f"{how} {name} {what}"]]


def _apart(samples: dict[str, list[Sample]], how: str, what: str) -> list[float]:
    return differences(*(_values(samples, how, name, what) for name in ("ours", "bare")))


def _windows_apart(samples: dict[str, list[Sample]]) -> float:
    """Return largest over smallest, less one, of the host work in each window, relative to the
    first window of the same round."""
    first = _values(samples, "held", "ours", str(WINDOWS[0]))
    middles = [
        quantile(ratios(values, first), 0.5)
        for values in (_values(samples, "held", "ours", str(window)) for window in WINDOWS)
    ]
    return round(max(middles) / min(middles) - 1.0, 3)


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    rows, auto = result["rows"], f"{result['auto']}-eager"

    def above(name: str, how: str) -> dict[str, Any]:
        figures: dict[str, Any] = rows[name]["windows"][WIDEST][how]["above_us"]
        return figures

    slowest = max(rows, key=lambda name: above(name, "held")["median"])
    uneven = max(rows, key=lambda name: rows[name]["windows_apart"])
    found = [
        ("host work of a launch above a bare PyOpenCL call, device held, `auto`", auto, "held"),
        ("the same, the slowest backend and policy", slowest, "held"),
        ("the same with the device running beside, `auto`", auto, "free"),
        ("end to end above bare PyOpenCL, `auto`", auto, "end"),
    ]
    return [
        target(what, above(name, how), "at most", MOST_ABOVE_US, "us")
        | {"where": name}
        for what, name, how in found
    ] + [
        target(
            f"host work in windows of 16, 64 and 256, largest over smallest less one, {what}",
            rows[name]["windows_apart"], "at most", MOST_APART,
        )
        | {"where": name}
        for what, name in (("`auto`", auto), ("the most uneven backend and policy", uneven))
    ]  # fmt: skip
