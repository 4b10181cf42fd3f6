"""Events of an `acs.Queue`: they stand for launches, and other code sees PyOpenCL's events.

Input: a queue and the number of one of its launches. Output: a `pyopencl.Event` with waits, status,
callbacks, and a place in wait lists. The driver's own event is made or looked up only if it is
needed: most events are never used, and on some backends an event costs time.

Invariant: as on an in-order queue, if an event was seen to be complete, so is everything before it
on its queue, as far as the program can tell.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeAlias

import pyopencl as cl
from pyopencl import _cl

from ..devices.driver import Events
from ..errors import AcsError, UsageError
from ..records import Protocol
from ..runtime import Runtime
from .refusals import refuse

Timed: TypeAlias = "cl.Event | Callable[[], cl.Event | None] | None"
"""The driver's event of a command, or a function that returns it once it exists."""


class Ordered(Protocol):
    """The queue of an event, as the event knows it."""

    @property
    def runtime(self) -> Runtime:
        """Return its runtime."""

    def settle(self, number: int) -> bool:
        """Wait for a launch, and for what the host may look at after it. Return whether a second
        wait for it could not tell more."""

    def status(self, number: int) -> int:
        """Return the status of a launch, as an in-order queue would."""

    def native_event(self, number: int) -> cl.Event:
        """Make an event of the driver that completes with a launch and with all before it."""

    def seen_up_to(self, number: int) -> list[int]:
        """Return the launches up to `number` that the host can look behind."""


_TIMES = [getattr(cl.profiling_info, n) for n in ("QUEUED", "SUBMIT", "START", "END", "COMPLETE")]
COMPLETE = int(cl.command_execution_status.COMPLETE)
_FROM_HANDLE = _cl.Event.from_int_ptr

_asked: weakref.WeakValueDictionary[int, QueueEvent] = weakref.WeakValueDictionary()
"""{handle: event}, for events whose handle was given out."""


class QueueEvent(cl.Event):
    """The event of one launch of a queue. The queue makes it, without a driver's event inside."""

    __slots__ = (
        "__weakref__",
        "acs_ended",
        "acs_keeps",
        "acs_kind",
        "acs_number",
        "acs_queue",
        "acs_settled",
        "acs_timed",
    )

    acs_queue: Ordered
    acs_number: int
    acs_kind: int
    acs_keeps: object
    acs_timed: Timed
    acs_settled: cl.Event | None
    acs_ended: bool
    """Whether the program has waited for it, and it ended well. Libraries wait for each event of an
    array many times, and a driver's event takes a tenth of a microsecond then."""

    def wait(self) -> None:
        """Block until the command, and everything before it on its queue, has ended."""
        if not self.acs_ended:
            self.acs_ended = self.acs_queue.settle(self.acs_number)

    def get_info(self, what: cl.event_info) -> object:
        """Return what the driver would say of its event."""
        if what == cl.event_info.COMMAND_EXECUTION_STATUS:
            return COMPLETE if self.acs_ended else self.acs_queue.status(self.acs_number)
        if what == cl.event_info.COMMAND_QUEUE:
            return self.acs_queue
        if what == cl.event_info.CONTEXT:
            return self.acs_queue.runtime.context
        if what == cl.event_info.COMMAND_TYPE:
            return self.acs_kind
        return self.acs_native().get_info(what)

    def get_profiling_info(self, what: int) -> int:
        """Return a time, if the queue was made with PROFILING_ENABLE."""
        timed = self.acs_timed
        if callable(timed):  # it was held at first, and has its event by now
            timed = timed()
        if timed is None:
            if what not in _TIMES:
                refuse(cl.status_code.INVALID_VALUE, "Event.get_profiling_info")
            refuse(cl.status_code.PROFILING_INFO_NOT_AVAILABLE, "clGetEventProfilingInfo")
        return timed.get_profiling_info(what)  # type: ignore[return-value]

    def set_callback(
        self, state: int, function: Callable[[cl.command_execution_status], None]
    ) -> None:
        """Call a function with the status once the command has reached `state`."""
        self.acs_native().set_callback(state, function)

    def get_ward(self) -> object:
        """Return the host memory of a transfer, like PyOpenCL's `NannyEvent`."""
        return self.acs_keeps

    @property
    def int_ptr(self) -> int:
        """Return the driver's handle of an event that completes with this one."""
        value: int = self.acs_native().int_ptr
        _asked[value] = self
        return value

    @staticmethod
    def from_int_ptr(int_ptr_value: int, retain: bool = True) -> cl.Event:
        """Return the event with this handle: ours, if it is one of ours."""
        native = _FROM_HANDLE(int_ptr_value, retain)
        return _asked.get(int_ptr_value, native)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<acs_cl.QueueEvent of launch {self.acs_number}>"

    def acs_native(self) -> cl.Event:
        """Return an event of the driver that completes with this one, and with all before it."""
        if self.acs_settled is None:
            self.acs_settled = self.acs_queue.native_event(self.acs_number)
        return self.acs_settled


def _asking(asked: int) -> property:
    return property(lambda event: event.get_info(asked))


for _name, _asked_for in vars(cl.event_info).items():
    if not _name.startswith("_") and _name != "to_string":
        setattr(QueueEvent, _name.lower(), _asking(_asked_for))


def event_of(queue: Ordered, number: int, kind: int, keeps: object, timed: Timed) -> QueueEvent:
    """Make the event of a launch. `timed`: the driver's event, if the program may ask for times."""
    event = QueueEvent.__new__(QueueEvent)
    event.acs_queue = queue
    event.acs_number = number
    event.acs_kind = kind
    event.acs_keeps = keeps
    event.acs_timed = timed
    event.acs_settled = None
    event.acs_ended = False
    return event


def native_events(wait_for: Events) -> Events:
    """Convert a wait list for a queue that is not ours."""
    if not wait_for:
        return wait_for
    return [event.acs_native() if type(event) is QueueEvent else event for event in wait_for]


def native_error(error: AcsError) -> BaseException:
    """Return the error that a PyOpenCL program expects: the driver's own, or one like it."""
    cause = error.__cause__
    if cause is not None and not isinstance(cause, AcsError):
        return cause
    kind = cl.LogicError if isinstance(error, UsageError) else cl.RuntimeError
    record = _cl._ErrorRecord(
        msg=str(error), code=cl.status_code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, routine=""
    )
    found: BaseException = kind(record)
    return found
