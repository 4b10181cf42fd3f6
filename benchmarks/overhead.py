"""What a launch costs the host, against a bare PyOpenCL call.

In: a device. Out: microseconds per launch by backend, policy and window, each beside a typed
PyOpenCL call on the same kind of queue, in three ways:

- `held`: the queues are stopped by a user event while launches are recorded, and what the runtime
  does when they have ended (`retire_us`) is timed after the device is idle again: the host's work
  for a launch, all of it, and nothing else.
- `free`: the loop of calls while the device runs what was launched already. The driver's own share
  is in it, and that depends on the pace: to enqueue for a worker thread that has gone to sleep
  costs PoCL up to ten times as much as for one that is awake. `paced` is the bare call in a program
  that does something else for as long as our host work takes, and so comes as seldom as ours.
- `end`: from the first call to the end of all, independent launches and a chain.

Host cost is meant where the window never fills: batches are one launch shorter than the window. All
samples go through the same number of arrays, so that windows differ in nothing but themselves.
"""

# Long because: the two sides and the three ways to time them are one comparison.

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.harness import (
    ONE,
    TINY_BYTES,
    Bare,
    Ours,
    Settings,
    fresh_python,
    interleave,
    quantile,
    spread,
    target,
    while_held,
)

POLICIES = ("eager", "ready_first")
WINDOWS = (16, 64, 256)
WIDEST = str(WINDOWS[-1])
LAUNCHES = WINDOWS[-1] - 1  # in one sample, and pairs of arrays
ROUNDS = {False: 31, True: 3}  # by "is quick"
MOST_ABOVE_US = 6.0
MOST_APART = 0.20

Calls = Sequence[tuple[Any, ...]]


class Sample(NamedTuple):
    """Microseconds per launch. `host_us` is recording and, where the device was held, retiring."""

    host_us: float
    retire_us: float
    end_us: float


class Side(NamedTuple):
    """One of the two that are compared: how to record a batch, and how to wait for it."""

    record: Callable[[Calls], None]
    finish: Callable[[], None]
    queues: Sequence[cl.CommandQueue]
    batches: Sequence[Calls]

    @property
    def scale(self) -> float:
        """From seconds for all batches to microseconds per launch."""
        return 1e6 / sum(map(len, self.batches))


def measure(settings: Settings) -> dict[str, Any]:
    """Every backend with every policy, and what `auto` takes."""
    context = settings.context()
    with acs.Runtime(context=context) as chosen:
        auto = chosen.stats()["backend"]
    rows: dict[str, Any] = {}
    for backend in settings.backends():
        for issue in POLICIES:
            rows[f"{backend}-{issue}"] = _row(context, backend, issue, ROUNDS[settings.quick])
    return {"auto": auto, "rows": rows, "pure": _pure(settings, auto)}


def _pure(settings: Settings, auto: str) -> dict[str, Any]:
    """The row of `auto` without the native core, in a process of its own."""
    words = ["-m", "acs_cl.benchmarks.overhead", str(settings.position), auto]
    printed, _ = fresh_python([*words, *(["--quick"] if settings.quick else [])], ACS_CL_PURE="1")
    row: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return row


def main(words: Sequence[str]) -> None:
    """Print the row of one backend: device, backend, and whether it is a look only."""
    settings = Settings(devices.devices()[int(words[0])], "--quick" in words)
    rounds = ROUNDS[settings.quick]
    print(json.dumps(_row(settings.context(), words[1], POLICIES[0], rounds)))


def _row(context: cl.Context, backend: str, issue: str, rounds: int) -> dict[str, Any]:
    """One backend and policy: independent launches in each window, and a chain in the widest."""
    samplers: dict[str, Callable[[], Sample]] = {}
    runtimes = []
    for window in WINDOWS:
        runtime = acs.Runtime(context=context, backend=backend, issue=issue, window=window)
        runtimes.append(runtime)
        bare = Bare(context, runtime.device, backend, runtime.plan.lanes)
        ours = Ours(runtime)
        sides = {"ours": ours_side(ours, window - 1), "bare": bare_side(bare, window - 1)}
        for how, sampler in (("held", held), ("free", free)):
            for name, side in sides.items():
                samplers[f"{how} {name} {window}"] = sampler(side)
    samplers["free ours chain"] = free(ours_side(ours, LAUNCHES, chained=True))
    samplers["free bare chain"] = free(bare_side(bare, LAUNCHES, chained=True))
    for once in samplers.values():
        once()
    lead = interleave({k: v for k, v in samplers.items() if k.endswith(WIDEST)}, 3)
    work_us = quantile(_apart(lead, "held", WIDEST), 0.5)
    samplers[f"paced bare {WIDEST}"] = free(bare_side(bare, LAUNCHES, pause_s=work_us * 1e-6))
    samples = interleave(samplers, rounds)
    memory = runtime.stats()["memory"]["kind"]
    for runtime in runtimes:
        runtime.close()
    windows: dict[str, Any] = {
        str(window): {how: _compared(samples, how, str(window)) for how in ("held", "free", "end")}
        for window in WINDOWS
    }
    paced = [one.host_us - work_us for one in samples[f"paced bare {WIDEST}"]]
    return {
        "memory": memory,
        "windows": windows,
        "windows_apart": _windows_apart(samples),
        "chain": {how: _compared(samples, how, "chain") for how in ("free", "end")},
        "paced": {"pause_us": round(work_us, 3), "bare_us": spread(paced)},
    }


def _compared(samples: dict[str, list[Sample]], how: str, what: str) -> dict[str, Any]:
    """Ours, bare, and the difference sample by sample."""
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
    ours, bare = (_values(samples, how, name, what) for name in ("ours", "bare"))
    return [a - b for a, b in zip(ours, bare, strict=True)]


def _windows_apart(samples: dict[str, list[Sample]]) -> float:
    """Largest over smallest, less one, of the host work in each window over that in the first of
    the same round."""
    first = _values(samples, "held", "ours", str(WINDOWS[0]))
    middles = [
        quantile([a / b for a, b in zip(values, first, strict=True)], 0.5)
        for values in (_values(samples, "held", "ours", str(window)) for window in WINDOWS)
    ]
    return round(max(middles) / min(middles) - 1.0, 3)


# ---- the two sides -------------------------------------------------------------------------------


def ours_side(
    ours: Ours,
    batch: int,
    chained: bool = False,
    nbytes: int = TINY_BYTES,
    decided: bool = False,
) -> Side:
    """`decided`: each launch looks at a flag of its own on the device first, which is set."""
    kernel, runtime = ours.kernel, ours.runtime
    calls = calls_of(lambda: ours.array(nbytes), chained)
    flags = ours.array(4 * batch)
    flags.fill(1)
    words = [flags[index] for index in range(batch)]

    def record(batch: Calls) -> None:
        for x, y in batch:
            kernel(ONE, ONE, x, y, 3)

    def record_decided(batch: Calls) -> None:
        for (x, y), word in zip(batch, words, strict=True):
            kernel(ONE, ONE, x, y, 3, when=word)

    # Nothing public stops a runtime's device, hence the reach into it.
    chosen = record_decided if decided else record
    return Side(chosen, runtime.finish, runtime._backend.queues, split(calls, batch))


def bare_side(bare: Bare, batch: int, chained: bool = False, pause_s: float = 0.0) -> Side:
    kernel, queues = bare.kernel, bare.queues
    calls: Calls = [
        (queues[0 if chained else number % len(queues)], x, y)
        for number, (x, y) in enumerate(calls_of(bare.array, chained))
    ]

    def record(batch: Calls) -> None:
        for queue, x, y in batch:
            kernel(queue, ONE, ONE, x, y, 3)

    def record_with_pauses(batch: Calls) -> None:
        for queue, x, y in batch:
            kernel(queue, ONE, ONE, x, y, 3)
            until = perf_counter() + pause_s
            while perf_counter() < until:
                pass

    def record_by_events(batch: Calls) -> None:
        before = None
        for queue, x, y in batch:
            before = [kernel(queue, ONE, ONE, x, y, 3, wait_for=before)]

    chosen = record_with_pauses if pause_s else record
    if chained and bare.out_of_order:
        chosen = record_by_events
    return Side(chosen, bare.finish, queues, split(calls, batch))


def calls_of(array: Callable[[], Any], chained: bool) -> Calls:
    """What each launch reads and writes: arrays of its own, or what the one before it wrote."""
    if chained:
        return list(pairwise([array() for _ in range(LAUNCHES + 1)]))
    return [(array(), array()) for _ in range(LAUNCHES)]


def split(calls: Calls, batch: int) -> Sequence[Calls]:
    """Batches of equal length; what does not fill one is left out."""
    return [calls[first : first + batch] for first in range(0, len(calls) - batch + 1, batch)]


# ---- samples -------------------------------------------------------------------------------------


def held(side: Side) -> Callable[[], Sample]:
    """Record with the queues stopped; let them run to their end; then time what is left to do."""

    def sample() -> Sample:
        recording = retiring = 0.0
        for batch in side.batches:
            took = while_held(side.queues, partial(side.record, batch), side.finish)
            recording += took[0]
            retiring += took[1]
        return Sample((recording + retiring) * side.scale, retiring * side.scale, 0.0)

    return sample


def free(side: Side) -> Callable[[], Sample]:
    """Record while the device runs, then wait for it."""

    def sample() -> Sample:
        recording = whole = 0.0
        for batch in side.batches:
            start = perf_counter()
            side.record(batch)
            recording += perf_counter() - start
            side.finish()
            whole += perf_counter() - start
        return Sample(recording * side.scale, 0.0, whole * side.scale)

    return sample


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was measured beside what it has to reach."""
    rows, auto = result["rows"], f"{result['auto']}-eager"
    pure = result["pure"]["windows"][WIDEST]["held"]["above_us"] if "pure" in result else None

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
    alone = "host work of a launch above a bare PyOpenCL call, device held, `auto`, pure Python"
    return [
        target(alone, pure and pure["median"], "at most", MOST_ABOVE_US, "us", pure)
    ] + [
        target(what, above(name, how)["median"], "at most", MOST_ABOVE_US, "us", above(name, how))
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


if __name__ == "__main__":
    main(sys.argv[1:])
