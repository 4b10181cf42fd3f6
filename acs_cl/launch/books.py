"""Books: the state of one runtime, of its launches and its memory.

Input: the parts that a runtime is composed of. Output: an object with the state that the steps of a
launch share (`engine`, `dispatch`, `ends`, `poisoning`, `waits`, `bases`). The steps are functions
that take the books, so that each is read and tested alone.

Invariant: code that reads or changes a member holds `lock`, unless the member says otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pyopencl as cl

from .. import core
from ..devices.driver import COMPLETE, CommandQueue
from ..errors import UsageError
from ..host.living import Living
from ..host.threads import HostTasks, Poller
from ..memory.blocks import Base, Store
from ..records import NamedTuple, Options, Plan
from .backend import Backend, End
from .failures import Failures
from .observers import Checker, Recorder, Tracer, Watch
from .sizes import SizeLimits

ForeignEvents = list[cl.Event]
"""The foreign events that one launch still waits for."""


class Parts(NamedTuple):
    """The parts of a runtime, each made by the module that knows how."""

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
    """Counters that no stage keeps itself."""

    def __init__(self) -> None:
        self.backlog_waits = 0
        self.replays = 0
        self.replayed = 0
        """Launches of graphs that these replays made, of a loop those of one round."""
        self.segments = 0
        """Launches that were a segment of a replay."""
        self.bypassed = 0
        """Commands of queues that bypassed the runtime."""
        self.not_plain = 0
        """Calls whose arguments or sizes the core did not take."""


FAILED = int(cl.status_code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
"""Status of the event of a launch that failed. NVIDIA's driver refuses what waits for such an event
with this code."""


class UserEvents(dict[int, cl.UserEvent]):
    """{launch in flight: the event that was given out for it}."""

    def __init__(self, context: cl.Context, failures: Failures) -> None:
        self._context = context
        self._failures = failures

    def give(self, number: int, is_live: bool) -> cl.UserEvent:
        """Return the event for a launch. It is complete already if the launch has ended."""
        event = self.get(number)
        if event is None:
            event = cl.UserEvent(self._context)
            if is_live:
                self[number] = event
            else:
                event.set_status(self._status(number))
        return event

    def complete(self, number: int) -> None:
        """Complete the event of a launch that has ended."""
        event = self.pop(number, None)
        if event is not None:
            event.set_status(self._status(number))

    def complete_ended(self, table: core.native.Table) -> None:
        """Complete the events of launches that are over: the core does not tell all ends."""
        for number in [one for one in self if one not in table]:
            self.complete(number)

    def _status(self, number: int) -> int:
        return FAILED if self._failures.knows(number) else COMPLETE


class Books:
    """Holds the state of one runtime."""

    progress: Poller
    """The thread that moves held launches along."""

    def __init__(self, parts: Parts) -> None:
        self.state = "not started"
        """Why the runtime takes no calls. Empty: it takes calls."""
        self.is_closed = True
        """Whether nothing is in flight, and nothing of the driver's is left to release."""
        self.context, self.device = parts.context, parts.device
        self.options, self.plan = parts.options, parts.plan
        self.backlog = parts.options.backlog
        """Launches in flight at which the next one waits."""
        self.sizes = SizeLimits(parts.device)
        self.tunings = 0
        """How often graphs were tuned, which changes the best cut."""
        self.store = parts.store
        self.backend = parts.backend
        self.timed_queues = parts.timed_queues
        self.tracer = parts.tracer
        self.checker: Checker | None = None
        self.watchdog: Watch | None = None
        # on one in-order queue only the oldest can run, so holding others gains nothing
        self.ready_first = parts.options.issue == "ready_first" and not parts.backend.in_order
        self.lock = core.native.Lock()
        self.table = parts.table
        self.hazards = core.native.Hazards()
        on_device = parts.plan.backend == "device"  # the scheduler has a window of its own
        self.window = None if on_device else parts.options.window
        """How many launches may be in the window. None: no bound."""
        self.failures = Failures()
        self.foreign: dict[int, ForeignEvents] = {}
        """{launch: the foreign events that it still waits for}."""
        self.user_events = UserEvents(parts.context, self.failures)
        self.reported: deque[End] = deque()
        """Ends that the backend has told and nobody has handled yet."""
        self.ended_before = 0
        """How many launches had ended when ends were handled last."""
        self.prefetches = False
        """Whether long uploads go ahead of launches that use their targets."""
        self.ahead: dict[int, Base] = {}
        """{base: memory where uploads to it land while it is used}."""
        self.host_tasks = HostTasks()
        self.host_queue: CommandQueue | None = None
        """For the copies of host tasks, once there was one."""
        self.bases = 0
        """The number of the newest base."""
        self.recorders: dict[int, Recorder] = {}
        """{thread: what captures its calls}."""
        self.programs: dict[Any, Any] = {}
        """Kernels that were adopted from other code."""
        self.kernels = Living[Any]()
        """Kernels whose signature is known, for explanations."""
        self.measuring: object | None = None
        """The measurement in progress."""
        self.leave_measure: Callable[[], None] | None = None
        """Ends a measurement that an error cut off, once nothing is in flight."""
        self.counts = Counts()

    @property
    def number(self) -> int:
        """Return the number of the newest launch."""
        return self.table.number

    def check_open(self) -> None:
        """Raise if the runtime takes no calls."""
        if self.state:
            hint = "; make another one, or call before it ends" if self.state == "closed" else ""
            raise UsageError(f"the runtime is {self.state}{hint}")

    def is_dispatched(self, number: int) -> bool:
        """Tell whether a launch in flight has been handed to the driver."""
        return self.table.state(number) == "executing"

    def note_poison(self) -> None:
        """Tell the core whether any bytes are poisoned: it then makes no launches."""
        self.table.poisoned = bool(self.failures.poison)


_books = Living[Books]()


def register(books: Books) -> None:
    """Remember a runtime."""
    _books.add(books)


def registered() -> list[Books]:
    """Return the live runtimes."""
    return list(_books)


def promised() -> list[cl.UserEvent]:
    """Return user events that runtimes of this process have given out and will set."""
    return [event for books in registered() for event in list(books.user_events.values())]
