"""What the library's own tests see and change of its inside.

`acs_cl.testing` is for tests of any program. Only tests of the library need the rest: other
limits, other clocks, launches that Python plans, and words of the scheduler that are wrong on
purpose. What they need has its name here, so they survive when private parts change.
"""

from __future__ import annotations

from inside.launches import (
    calls_by_python,
    driver_queues,
    expect_no_events,
    held_by_driver,
    launched_without_events,
    no_memory,
    own_transfers,
    planned_by_python,
    refusing,
    scarce_memory,
    seen_complete,
    small_groups,
    steps_of_lanes,
    uneven_groups,
    untold_options,
    untold_programs,
)
from inside.moments import (
    LIMITS,
    attended,
    compiling,
    during_translations,
    helpers,
    host_clock,
    limit,
    new_process,
    unattended,
    wait_until_it_stands_still,
)
from inside.queues import (
    Planned,
    are_calls_replaced,
    endless_sample,
    plan_every_command,
    planned_commands,
    trials_say,
    users,
)
from inside.scheduler import (
    BUILD_STEPS,
    Scheduler,
    bands_touch,
    build_step,
    compared_by,
    launching,
    long_launch,
    marked,
)

__all__ = [
    "BUILD_STEPS",
    "LIMITS",
    "Planned",
    "Scheduler",
    "are_calls_replaced",
    "attended",
    "bands_touch",
    "build_step",
    "calls_by_python",
    "compared_by",
    "compiling",
    "driver_queues",
    "during_translations",
    "endless_sample",
    "expect_no_events",
    "held_by_driver",
    "helpers",
    "host_clock",
    "launched_without_events",
    "launching",
    "limit",
    "long_launch",
    "marked",
    "new_process",
    "no_memory",
    "own_transfers",
    "plan_every_command",
    "planned_by_python",
    "planned_commands",
    "refusing",
    "scarce_memory",
    "seen_complete",
    "small_groups",
    "steps_of_lanes",
    "trials_say",
    "unattended",
    "uneven_groups",
    "untold_options",
    "untold_programs",
    "users",
    "wait_until_it_stands_still",
]
