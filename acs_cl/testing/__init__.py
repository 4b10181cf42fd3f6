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
    hold,
    in_flight,
    is_at_rest,
    is_in_flight,
    launched,
    made_by_core,
    routes,
    runtime_of,
    span_of,
    wait_until,
)
from .moments import MOMENTS, at, interrupted
from .queues import bypass, bypassed, has_open_bypass, is_bypassing
from .scheduler import Scheduler, open_epochs

__all__ = [
    "MOMENTS",
    "Gate",
    "Routes",
    "Scheduler",
    "at",
    "bypass",
    "bypassed",
    "has_open_bypass",
    "hold",
    "in_flight",
    "interrupted",
    "is_at_rest",
    "is_bypassing",
    "is_in_flight",
    "launched",
    "made_by_core",
    "open_epochs",
    "routes",
    "runtime_of",
    "span_of",
    "wait_until",
]
