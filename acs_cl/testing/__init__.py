"""Hold a runtime still and look inside, for tests of programs that launch concurrently.

A test of concurrency fixes the order of events, and never sleeps. So this module holds launches
back, keeps epochs of the scheduler open, chooses whether a queue bypasses the runtime, and
interrupts at a named moment. It also tells the launches under way and their routes.

Input: a runtime, or an object made by one. Output: plain values, and `with` blocks that undo their
changes. Tests use it instead of private parts of the library, and so survive when these change.

>>> import acs_cl as acs
>>> from acs_cl import testing
>>> with acs.Runtime() as rt, testing.hold(rt) as gate:
...     prog = rt.build("kernel void one(global int *x) { x[get_global_id(0)] = 1; }")
...     x = rt.zeros(4, "i4")
...     handle = prog.one((4,), None, x, wait_for=[gate.event])
...     print(handle.done, testing.in_flight(rt) > 0)
...     gate.open()
...     print(x.get(), testing.is_at_rest(rt))
False True
[1 1 1 1] True
"""

from __future__ import annotations

from .launches import (
    Gate,
    Routes,
    calls_by_python,
    driver_queues,
    expect_no_events,
    hold,
    in_flight,
    is_at_rest,
    is_in_flight,
    launched,
    launched_without_events,
    made_by_core,
    no_memory,
    own_transfers,
    planned_by_python,
    routes,
    runtime_of,
    scarce_memory,
    seen_complete,
    span_of,
    untold_programs,
    wait_until,
)
from .moments import (
    LIMITS,
    MOMENTS,
    at,
    compiling,
    helpers,
    host_clock,
    interrupted,
    limit,
    new_process,
)
from .queues import (
    Planned,
    are_calls_replaced,
    bypass,
    bypassed,
    endless_sample,
    has_open_bypass,
    is_bypassing,
    plan_every_command,
    planned_commands,
    trials_say,
    users,
)
from .scheduler import (
    BUILD_STEPS,
    Scheduler,
    build_step,
    long_launch,
    open_epochs,
)

__all__ = [
    "BUILD_STEPS",
    "LIMITS",
    "MOMENTS",
    "Gate",
    "Planned",
    "Routes",
    "Scheduler",
    "are_calls_replaced",
    "at",
    "build_step",
    "bypass",
    "bypassed",
    "calls_by_python",
    "compiling",
    "driver_queues",
    "endless_sample",
    "expect_no_events",
    "has_open_bypass",
    "helpers",
    "hold",
    "host_clock",
    "in_flight",
    "interrupted",
    "is_at_rest",
    "is_bypassing",
    "is_in_flight",
    "launched",
    "launched_without_events",
    "limit",
    "long_launch",
    "made_by_core",
    "new_process",
    "no_memory",
    "open_epochs",
    "own_transfers",
    "plan_every_command",
    "planned_by_python",
    "planned_commands",
    "routes",
    "runtime_of",
    "scarce_memory",
    "seen_complete",
    "span_of",
    "trials_say",
    "untold_programs",
    "users",
    "wait_until",
]
