"""``acs-cl bench``: the workloads on every backend, beside PyOpenCL by itself and by hand.

Input: workloads, their size, device and backends. Output: a table, one JSON document that describes
itself, and pictures.

All contestants of a workload are built first, and checked against the reference. One with wrong
results is reported as failed, and not timed. The others are interleaved. The baseline is the faster
of `serial` and PyOpenCL by itself on one in-order queue. The expert is the best of several numbers
of queues by hand and of one plain queue. Times go from the first launch of a step to the end of the
last. A short step is timed behind one of the same contestant, as a program makes them. The one
before that, behind another contestant, is told beside it.

Invariant: every ratio compares interleaved times of one run; slow-downs are printed like speed-ups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.bounds import Bound
from acs_cl.benchmarks.suite.contestants import (
    BASELINES,
    EXPERT,
    SHORT_S,
    Contestant,
    Plan,
    Sample,
    Say,
    best_expert,
    contestants,
    timer,
)
from acs_cl.benchmarks.suite.machine import machine, noise
from acs_cl.benchmarks.suite.statistics import quantile, spread
from acs_cl.benchmarks.suite.timing import Deadline, going_on, interleave
from acs_cl.benchmarks.suite.traced_bounds import Program, bounded, launch_cost
from acs_cl.benchmarks.workloads.workload import Workload, differences

VERSION = 1

ABOUT = (
    "Times of irregular graphs of kernels on one OpenCL device, as acs-cl bench measured them. For "
    "each workload: what it consists of, how fast it could be, and for each contestant the time of "
    "a step in ms, and how many times faster than the baseline of the same run it is, with the "
    "quartiles over the runs."
)


def measure(plan: Plan, say: Say) -> dict[str, Any]:
    """Return the document of a run."""
    *_, document = growing(plan, say)
    return document


def growing(plan: Plan, say: Say) -> Iterator[dict[str, Any]]:
    """Return the document of a run after each workload, so that a run that is cut off keeps its
    results."""
    deadline = Deadline(plan.within_s)
    devices.repair(plan.device)
    there = machine(plan.device)
    there["noise"] = unrest = [noise()]
    launch_us = launch_cost(plan.device)
    found: dict[str, Any] = {}
    left_out = [workload.name for workload in plan.workloads]
    document = {
        "acs_cl_bench": VERSION,
        "about": ABOUT,
        "machine": there,
        "preset": plan.preset,
        "runs": plan.runs,
        "seed": plan.seed,
        "bare_launch_us": round(launch_us, 3),
    }
    for index, workload in enumerate(plan.workloads):
        if not deadline.has_time():
            return
        start = perf_counter()
        say_more = _within(say, workload.name, index, len(plan.workloads))
        found[workload.name] = one(plan, workload, say_more)
        found[workload.name]["took_s"] = round(perf_counter() - start, 1)
        unrest.append(noise())
        run = documents.Run(there["commit"], there["sources"], there["date"], 0.0)
        found[workload.name]["run"] = run.around(unrest[-2:])._asdict()
        left_out.remove(workload.name)
        # a copy: it stays complete if the next workload is cut off
        yield document | {"workloads": dict(found), "left_out": list(left_out)}


def _within(say: Say, name: str, index: int, count: int) -> Say:
    """Return a `say` for one of `count` workloads."""
    return lambda text, share: say(f"{name}: {text}", (index + share) / count)


def one(plan: Plan, workload: Workload, say: Say) -> dict[str, Any]:
    """Measure one workload."""
    size = workload.presets[plan.preset]
    say("reference", 0.0)
    start = perf_counter()
    expected = workload.reference(size, plan.seed)
    ready_s = {"reference": round(perf_counter() - start, 2)}
    failed: dict[str, str] = {}
    with contestants(plan, workload, expected, failed, say) as ready:
        say("bound", 0.8)
        limits, overlap = bounded(plan.device, Program(workload, size, plan.seed))
        samples: dict[str, list[Sample]] = {}
        behind: dict[str, list[Sample]] = {}
        if ready:
            say(f"{plan.runs} runs of {', '.join(ready)}", 0.9)
            timers = {name: going_on(timer(one), _is_short) for name, one in ready.items()}
            pairs = interleave(timers, plan.runs)
            samples = {name: [second for _, second in taken] for name, taken in pairs.items()}
            behind = {name: [first for first, _ in taken] for name, taken in pairs.items()}
        for name, contestant in ready.items():
            wrong = differences(workload, contestant.run.results(), expected)
            if wrong:
                failed[name] = f"after it was timed: {wrong}"
                del samples[name]
        where = {name: _where(contestant) for name, contestant in ready.items()}
    ready_s |= {name: contestant.ready_s for name, contestant in ready.items()}
    return {
        "family": workload.family,
        "about": workload.about,
        "size": _plain(size),
        "bound": limits.held(fastest_ms(samples)),
        "overlap": overlap,
        **compared(samples, behind, limits),
        "failed": failed,
        "ready_s": ready_s,
        "where": where,
    }


def _is_short(step: Sample) -> bool:
    return step.total < SHORT_S


def compared(
    samples: Mapping[str, Sequence[Sample]],
    behind: Mapping[str, Sequence[Sample]],
    limits: Bound,
) -> dict[str, Any]:
    """Compare each contestant with the baseline: the faster of the possible ones. `behind`: the
    steps before these, which came behind another contestant."""
    medians = {name: quantile([s.total for s in taken], 0.5) for name, taken in samples.items()}
    possible = [name for name in BASELINES if name in medians]
    if not possible:
        return {"baseline": "", "rows": {}}
    baseline = min(possible, key=medians.__getitem__)
    rows = {}
    for name, taken in samples.items():
        launching = quantile([sample.launching for sample in taken], 0.5)
        rows[name] = {
            **_beside(samples[baseline], taken, "ms", "speedup"),
            **_beside(behind[baseline], behind[name], "behind_ms", "behind_speedup"),
            "host_us_per_launch": round(launching / max(limits.launches, 1) * 1e6, 3),
            "launches_per_s": round(limits.launches / medians[name]),
        }
    if best := best_expert(rows):
        rows[EXPERT] = {**rows[best], "is": best}
    return {"baseline": baseline, "rows": rows}


def _beside(
    base: Sequence[Sample], taken: Sequence[Sample], times: str, speedups: str
) -> dict[str, Any]:
    """Return times, and how many times faster than the baseline in the same turns they are."""
    pairs = zip(base, taken, strict=True)
    return {
        times: spread([one.total * 1e3 for one in taken], 4),
        speedups: spread([one.total / other.total for one, other in pairs], 3),
    }


def fastest_ms(samples: Mapping[str, Sequence[Sample]]) -> float | None:
    """Return the best median of all contestants."""
    medians = [quantile([s.total for s in taken], 0.5) * 1e3 for taken in samples.values()]
    return min(medians, default=None)


def _where(contestant: Contestant) -> dict[str, Any]:
    """Return which kernels ran where, and why."""
    if not isinstance(contestant.platform, acs.Runtime):
        return {}
    stats = contestant.platform.stats()
    kept = {key: stats[key] for key in ("backend", "why", "core", "event_waits")}
    if "scheduler" in stats:
        kept["scheduler"] = stats["scheduler"]
    return _json(kept)  # type: ignore[no-any-return]


def _plain(size: Any) -> dict[str, Any]:
    return _json(size._asdict() if hasattr(size, "_asdict") else {"size": size})  # type: ignore[no-any-return]


def _json(value: Any) -> Any:
    """Convert to plain values."""
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)
