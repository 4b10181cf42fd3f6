"""Books: all that one runtime knows of its launches and of its memory.

In: the parts that a runtime is composed of. Out: an object with the state that the steps of a
launch share (`engine`, `dispatch`, `ends`, `poisoning`, `waits`, `bases`). It has no steps itself:
those are functions that are given the books, so that each is read and tested alone.

Invariant: whoever reads or changes what is here holds `lock`, except where a member says otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakSet

import pyopencl as cl

from .. import core
from ..devices.driver import CommandQueue
from ..errors import UsageError
from ..host.threads import HostTasks, Progress
from ..memory.blocks import Base, Store
from ..records import Options, Plan
from .backend import Backend, End
from .failures import Failures
from .observers import Checker, Recorder, Tracer, Watch
from .sizes import Sizes
from .user_events import UserEvents

Gates = list[cl.Event]
"""The foreign events that one launch still waits for."""


class Parts(NamedTuple):
    """What a runtime is composed of; each was made by the room that knows how."""

    context: cl.Context
    device: cl.Device
    options: Options
    plan: Plan
    store: Store
    backend: Backend
    table: core.native.Table
    tracer: Tracer | None
    timed_queues: Callable[[], Backend]
    """Makes a host backend whose queues keep the times of their commands."""


class Counts:
    """The counters that no stage keeps itself."""

    def __init__(self) -> None:
        self.backlog_waits = 0
        self.replays = 0
        self.segments = 0
        """Launches that were a segment of a replay."""
        self.straight = 0
        """Commands of queues that went to the driver's own queue."""
        self.not_plain = 0
        """Calls whose arguments or sizes the generated code did not take."""


class Books:
    """The state of one runtime."""

    progress: Progress
    """The thread that moves held launches along."""

    def __init__(self, parts: Parts) -> None:
        self.state = "not started"
        """Why the runtime takes no calls; empty while it does."""
        self.context, self.device = parts.context, parts.device
        self.options, self.plan = parts.options, parts.plan
        self.backlog = parts.options.backlog
        """Launches in flight at which the next one waits."""
        self.sizes = Sizes(parts.device)
        self.tunings = 0
        """How often graphs were tuned, which changes what is best."""
        self.store = parts.store
        self.backend = parts.backend
        self.timed_queues = parts.timed_queues
        self.tracer = parts.tracer
        self.checker: Checker | None = None
        self.watchdog: Watch | None = None
        # on one in-order queue only the oldest can run, so that holding others back gains nothing
        self.ready_first = parts.options.issue == "ready_first" and not parts.backend.in_order
        self.lock = core.native.Lock()
        self.table = parts.table
        self.hazards = core.native.Hazards()
        on_device = parts.plan.backend == "device"  # which has a window of its own
        self.window = None if on_device else parts.options.window
        """How many launches may be in the window; None is without bound."""
        self.failures = Failures()
        self.gates: dict[int, Gates] = {}
        """{launch: the foreign events that it still waits for}."""
        self.user_events = UserEvents(parts.context, self.failures)
        self.reported: deque[End] = deque()
        """What the backend has told of, and nobody has taken note of yet."""
        self.noted = 0
        """Launches that were over when somebody took note last."""
        self.prefetches = False
        """Whether long uploads go ahead of launches that use their targets."""
        self.ahead: dict[int, Base] = {}
        """{base: where uploads to it land while it is used}."""
        self.host_tasks = HostTasks()
        self.host_queue: CommandQueue | None = None
        """For the copies of host tasks, once there was one."""
        self.bases = 0
        """The number of the newest base."""
        self.recorders: dict[int, Recorder] = {}
        """{thread: what it records at the moment}."""
        self.programs: dict[Any, Any] = {}
        """Kernels that were made for the runtime itself, and those adopted from other code."""
        self.kernels: WeakSet[Any] = WeakSet()
        """Those whose signature is known, for explanations."""
        self.measuring: object | None = None
        """The measurement that is under way."""
        self.counts = Counts()

    @property
    def number(self) -> int:
        """Of the newest launch."""
        return self.table.number

    def check_open(self) -> None:
        """Raise if the runtime takes no calls."""
        if self.state:
            hint = "; make another one, or call before it ends" if self.state == "closed" else ""
            raise UsageError(f"the runtime is {self.state}{hint}")

    def is_dispatched(self, number: int) -> bool:
        """Whether a launch in flight has been handed to the driver."""
        return self.table.state(number) == "executing"

    def note_poison(self) -> None:
        """Tell the core whether any bytes are poisoned: it makes no launches then."""
        self.table.poisoned = bool(self.failures.poison)
