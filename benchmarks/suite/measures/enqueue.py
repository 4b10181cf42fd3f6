"""A launch on the host backends, beside the same enqueue from C and PyOpenCL's typed call.

Input: a device. Output: microseconds per launch by backend, for independent launches of two arrays
and a number, on the same kind of queues, interleaved, with the device stopped meanwhile (`held`):

- `C`: a loop in the core that sets the arguments and enqueues, polls an event and releases it, as
  ours and PyOpenCL do;
- `PyOpenCL`: its typed call;
- `ours`: a launch, with its hazards, and the runtime's work after its end.

The benchmark `native` has this as its part `host`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyopencl as cl

import acs_cl as acs
from acs_cl import core
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.measures.sides import (
    LAUNCHES,
    Calls,
    Sample,
    Side,
    bare_side,
    calls_of,
    held,
    ours_side,
)
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import differences, ratios, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.suite.tiny import Bare, Ours
from acs_cl.devices.driver import functions

ROUNDS = {False: 101, True: 9}  # by "is quick"
MOST_ABOVE_C_US = 1.0
AHEAD = 1.0
"""Bar, in times of PyOpenCL's call."""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure every backend by all methods."""
    context = settings.context()
    return {
        backend: _row(context, backend, ROUNDS[settings.quick]) for backend in settings.backends()
    }


def _row(context: cl.Context, backend: str, rounds: int) -> dict[str, Any]:
    with acs.Runtime(context=context, backend=backend) as runtime:
        ours = Ours(runtime)
        bare = Bare(context, runtime.device, backend, runtime.plan.lanes)
        samplers: dict[str, Callable[[], Sample]] = {
            "PyOpenCL": held(bare_side(bare, LAUNCHES)),
            "ours": held(ours_side(ours, LAUNCHES)),
            "C": held(_c_side(ours)),
        }
        for sampler in samplers.values():
            sampler()
        samples = interleave(samplers, rounds)
        runtime.finish()
    took = {name: [one.host_us for one in some] for name, some in samples.items()}
    figures: dict[str, Any] = {f"{name}_us": spread(values) for name, values in took.items()}
    figures["of_pyopencl"] = spread(ratios(took["ours"], took["PyOpenCL"]))
    figures["above C_us"] = spread(differences(took["ours"], took["C"]))
    return {"memory": runtime.plan.memory, "held": figures}


def _c_side(ours: Ours) -> Side:
    """Return the core's loop on queues of its own."""
    runtime = ours.runtime
    bare = Bare(runtime.context, runtime.device, runtime.plan.backend, runtime.plan.lanes)
    places: Calls = [tuple(array.where().memory for array in pair) for pair in calls_of(ours.array)]
    svm = runtime.engine.store.is_svm
    core.native.open_driver(functions())
    loop = core.native.FromC(
        [queue.int_ptr for queue in bare.queues], ours.kernel.native.int_ptr, svm,
        [[one.svm_ptr if svm else one.int_ptr for one in pair] for pair in places], 3, True,
    )  # fmt: skip

    def record(batch: Calls) -> None:
        assert loop.run() == 0

    return Side(record, bare.finish, bare.queues, [places])


def targets_of(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each backend's figures with their bars."""
    targets: list[dict[str, Any]] = []
    for backend, row in rows.items():
        above, of = row["held"].get("above C_us"), row["held"]["of_pyopencl"]
        if above is not None:
            what = f"a launch above the same enqueue from C, device held, {backend}"
            targets.append(target(what, above, "at most", MOST_ABOVE_C_US, "us"))
        what = f"a launch over PyOpenCL's typed call, device held, {backend}"
        targets.append(target(what, of, "below", AHEAD, "x"))
    return targets
