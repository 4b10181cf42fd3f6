"""A launch on the host backends, beside the same enqueue from C and PyOpenCL's typed call.

Input: a device. Output: microseconds per launch by backend, for independent launches of two arrays
and a number, on the same kind of queues, interleaved:

- `C`: a loop in the core that sets the arguments and enqueues, polls an event and releases it, as
  ours and PyOpenCL do; in `C without events` there are none;
- `PyOpenCL`: its typed call;
- `ours`: a launch, with its hazards, and the runtime's work after its end;
- `ours in part`: the same on arrays of which it touches a part, which Python finds out once for
  each;
- `ours with when=`: the same with a flag on the device that decides;
- `queue`: the backend's part of ours: from converted arguments to the driver.

`held`: with the device stopped meanwhile; `free`: with the device running beside. The benchmark
`native` has this as its part `host`.
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
    free,
    held,
    ours_side,
)
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import differences, ratios, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.suite.tiny import ONE, TINY_BYTES, Bare, Ours
from acs_cl.devices.driver import functions
from acs_cl.launch.commands import KernelCommand
from acs_cl.records import Access, Launch

ROUNDS = {False: 101, True: 9}  # by "is quick"
MOST_ABOVE_C_US = 1.0
AHEAD = 1.0
"""Bar, in times of PyOpenCL's call."""

HOW = {"held": held, "free": free}


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
        sides = {
            "PyOpenCL": bare_side(bare, LAUNCHES),
            "ours": ours_side(ours, LAUNCHES),
            "ours in part": ours_side(ours, LAUNCHES, nbytes=64 * TINY_BYTES),
            "ours with when=": ours_side(ours, LAUNCHES, decided=True),
            "queue": _queue_side(ours),
            "C": _c_side(ours, events=True),
            "C without events": _c_side(ours, events=False),
        }
        samplers: dict[str, Callable[[], Sample]] = {
            f"{how} {name}": sampler(side)
            for how, sampler in HOW.items()
            for name, side in sides.items()
        }
        for sampler in samplers.values():
            sampler()
        samples = interleave(samplers, rounds)
        runtime.finish()
    figures: dict[str, Any] = {"memory": runtime.plan.memory}
    for how in HOW:
        took = {name: [one.host_us for one in samples[f"{how} {name}"]] for name in sides}
        figures[how] = {f"{name}_us": spread(values) for name, values in took.items()}
        figures[how]["of_pyopencl"] = spread(ratios(took["ours"], took["PyOpenCL"]))
        for name in ("ours in part", "ours with when="):
            figures[how][f"{name} above ours_us"] = spread(differences(took[name], took["ours"]))
        for name in ("C", "C without events"):
            for one, what in (("ours", "above"), ("queue", "queue above")):
                figures[how][f"{what} {name}_us"] = spread(differences(took[one], took[name]))
    return figures


def _queue_side(ours: Ours) -> Side:
    """Return a backend without a runtime, with the launches that the runtime would give it."""
    runtime, kernel = ours.runtime, ours.kernel
    engine = acs.Runtime(
        context=runtime.context, backend=runtime.plan.backend, lanes=runtime.plan.lanes
    ).engine
    backend, table = engine.backend, engine.table
    how = runtime.engine, ONE, None, None
    prepared: Calls = [
        kernel.binder.bind(*how, (x, y, 3), False, False) or () for x, y in calls_of(ours.array)
    ]
    placeholder = KernelCommand(kernel.name, kernel.native, ONE, ONE, (), (), None)
    number = 0

    def record(batch: Calls) -> None:
        nonlocal number
        submit = backend.submit
        for pointers, values, *_ in batch:
            number += 1
            command = KernelCommand(kernel.name, kernel.native, ONE, ONE, pointers, values, None)
            submit(Launch(number, command, _NOTHING, ()))

    def enter() -> None:
        """Put the launches of the next batch into the table, outside of the timed part."""
        for entered in range(number + 1, number + 1 + len(prepared)):
            table.insert(Launch(entered, placeholder, _NOTHING, ()))

    def finish() -> None:
        backend.wait_all()
        ended = backend.poll_up_to(number)
        for end in ended:
            table.start(end.number)
            table.end(end.number, False)
        ended.clear()
        enter()

    enter()

    return Side(record, finish, backend.queues, [prepared])


_NOTHING = Access((), ())


def _c_side(ours: Ours, events: bool) -> Side:
    """Return the core's loop on queues of its own."""
    runtime = ours.runtime
    bare = Bare(runtime.context, runtime.device, runtime.plan.backend, runtime.plan.lanes)
    places: Calls = [tuple(array.where().memory for array in pair) for pair in calls_of(ours.array)]
    svm = runtime.engine.store.is_svm
    core.native.open_driver(functions())
    loop = core.native.FromC(
        [queue.int_ptr for queue in bare.queues], ours.kernel.native.int_ptr, svm,
        [[one.svm_ptr if svm else one.int_ptr for one in pair] for pair in places], 3, events,
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
