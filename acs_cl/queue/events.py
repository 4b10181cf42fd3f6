"""Events of an `acs.Queue`: they stand for launches, and are PyOpenCL's events to everybody else.

In: a queue and the number of one of its launches. Out: a `pyopencl.Event` that can be waited for,
asked, given a callback, and be in wait lists. The driver's own event is made or looked up only
where somebody needs it: most events are never asked for anything, and on some backends asking for
one has a price.

Invariant: as on an in-order queue, an event that was seen to be complete means that everything
before it on its queue is complete, as far as the program can tell.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol, TypeAlias

import pyopencl as cl
from pyopencl import _cl
from pyopencl._monkeypatch import add_get_info

from ..devices.driver import Events
from ..errors import AcsError, UsageError
from ..runtime import Runtime

Timed: TypeAlias = "cl.Event | Callable[[], cl.Event | None] | None"
"""The driver's event of a command, or what gives it once it is there."""


class Ordered(Protocol):
    """The queue of an event, as that knows it."""

    @property
    def runtime(self) -> Runtime:
        """Its runtime."""

    def settle(self, number: int) -> None:
        """Wait for a launch, and for what the host may look at after it."""

    def status(self, number: int) -> int:
        """Say how far a launch is, as an in-order queue would."""

    def native_event(self, number: int) -> cl.Event:
        """Make an event of the driver that completes with a launch and with all before it."""

    def seen_up_to(self, number: int) -> list[int]:
        """List what the host can look behind, up to a launch."""


_asked: weakref.WeakValueDictionary[int, QueueEvent] = weakref.WeakValueDictionary()
"""{handle: event}, of those whose handle somebody asked for."""


class QueueEvent(cl.Event):
    """The event of one launch of a queue. Made by the queue, without a driver's event inside."""

    __slots__ = (
        "__weakref__",
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

    def wait(self) -> None:
        """Block until the command, and what was before it on its queue, has ended."""
        self.acs_queue.settle(self.acs_number)

    def get_info(self, what: cl.event_info) -> object:
        """What the driver would say of its event."""
        if what == cl.event_info.COMMAND_EXECUTION_STATUS:
            return self.acs_queue.status(self.acs_number)
        if what == cl.event_info.COMMAND_QUEUE:
            return self.acs_queue
        if what == cl.event_info.CONTEXT:
            return self.acs_queue.runtime.context
        if what == cl.event_info.COMMAND_TYPE:
            return self.acs_kind
        return self.acs_native().get_info(what)

    def get_profiling_info(self, what: int) -> int:
        """A time, if the queue was made with PROFILING_ENABLE."""
        timed = self.acs_timed
        if callable(timed):  # it was held back at first, and kept its event since
            timed = timed()
        if timed is None:
            raise cl.RuntimeError(
                _cl._ErrorRecord(
                    msg="",
                    code=cl.status_code.PROFILING_INFO_NOT_AVAILABLE,
                    routine="clGetEventProfilingInfo",
                )
            )
        return timed.get_profiling_info(what)  # type: ignore[return-value]

    def set_callback(
        self, state: int, function: Callable[[cl.command_execution_status], None]
    ) -> None:
        """Have a function called with the status once the command has come so far."""
        self.acs_native().set_callback(state, function)

    def get_ward(self) -> object:
        """The host memory of a transfer, as PyOpenCL's `NannyEvent` has it."""
        return self.acs_keeps

    @property
    def int_ptr(self) -> int:
        """The driver's handle of an event that completes with this one."""
        value: int = self.acs_native().int_ptr
        _asked[value] = self
        return value

    @staticmethod
    def from_int_ptr(int_ptr_value: int, retain: bool = True) -> cl.Event:
        """The event with this handle: ours, if it is one of ours."""
        native = _cl.Event.from_int_ptr(int_ptr_value, retain)
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
        """An event of the driver that completes with this, and with all before it."""
        if self.acs_settled is None:
            self.acs_settled = self.acs_queue.native_event(self.acs_number)
        return self.acs_settled


add_get_info(QueueEvent, QueueEvent.get_info, cl.event_info)


def event_of(queue: Ordered, number: int, kind: int, keeps: object, timed: Timed) -> QueueEvent:
    """The event of a launch. `timed`: the driver's event where the program may ask for times."""
    event = QueueEvent.__new__(QueueEvent)
    event.acs_queue = queue
    event.acs_number = number
    event.acs_kind = kind
    event.acs_keeps = keeps
    event.acs_timed = timed
    event.acs_settled = None
    return event


def native_events(wait_for: Events) -> Events:
    """A wait list for a queue that is not ours."""
    if not wait_for:
        return wait_for
    return [event.acs_native() if type(event) is QueueEvent else event for event in wait_for]


def native_error(error: AcsError) -> BaseException:
    """The error that a program of PyOpenCL's expects: what the driver raised, or one like it."""
    cause = error.__cause__
    if cause is not None and not isinstance(cause, AcsError):
        return cause
    kind = cl.LogicError if isinstance(error, UsageError) else cl.RuntimeError
    record = _cl._ErrorRecord(
        msg=str(error), code=cl.status_code.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, routine=""
    )
    found: BaseException = kind(record)
    return found
