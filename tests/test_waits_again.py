"""A second wait for what the program has waited for asks nobody.

Libraries wait for each event of an array again and again, and call `finish` and `flush` behind
every command. A driver's queue answers in a tenth of a microsecond then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.launch import waits
from acs_cl.testing.changing import changed
from tests.test_queue import N, buffer, kernels_of, values_of

OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
TRACKED: list[dict[str, Any]] = [
    {"bypass": False},
    {"bypass": False, "backend": "device"},
    {"properties": OUT_OF_ORDER},
]
COMPLETE = int(cl.command_execution_status.COMPLETE)


def refuse(*args: object, **keywords: object) -> Any:
    """Say that somebody was asked."""
    raise AssertionError(f"asked with {args}, {keywords}")


@pytest.mark.parametrize("options", TRACKED, ids=str)
def test_an_event_that_was_waited_for_is_known_to_have_ended(
    context: cl.Context, options: dict[str, Any]
) -> None:
    queue, kernels = acs.Queue(context, **options), kernels_of(context)
    memory = buffer(queue, np.zeros(N))
    kernel = kernels["add"](queue, (N,), None, memory, np.int32(1))
    events = [kernel, cl.enqueue_marker(queue), cl.enqueue_copy(queue, np.empty(N, "i4"), memory)]
    for event in events:
        event.wait()
    with changed(acs.Queue, "settle", refuse), changed(acs.Queue, "status", refuse):
        cl.wait_for_events(events)
        for event in events:
            event.wait()
            assert event.command_execution_status == COMPLETE
    assert values_of(queue, memory).tolist() == [1] * N


def test_one_that_failed_raises_at_each_wait(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context, bypass=False), kernels_of(context)
    memory, stop = buffer(queue, np.zeros(N)), cl.UserEvent(context)
    event = kernels["add"](queue, (N,), None, memory, np.int32(1), wait_for=[stop])
    stop.set_status(-7)
    for _ in range(3):
        with pytest.raises(cl.Error):
            event.wait()
        assert event.command_execution_status < 0


def test_checks_look_back_at_a_second_wait(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context, check="access"), kernels_of(context)
    event = kernels["add"](queue, (N,), None, buffer(queue, np.zeros(N)), np.int32(1))
    event.wait()
    looked: list[None] = []
    with changed(type(queue.runtime.engine), "sync", lambda _: looked.append(None)):
        event.wait()
    assert looked


@pytest.mark.parametrize("options", TRACKED, ids=str)
@pytest.mark.parametrize("call", [acs.Queue.finish, acs.Queue.flush])
def test_where_nothing_is_in_flight_nothing_is_polled(
    context: cl.Context, options: dict[str, Any], call: Callable[[acs.Queue], None]
) -> None:
    queue, kernels = acs.Queue(context, **options), kernels_of(context)
    memory = buffer(queue, np.zeros(N))
    kernels["add"](queue, (N,), None, memory, np.int32(1))
    queue.finish()
    backend = type(queue.runtime.engine.backend)
    with changed(waits, "_wait", refuse), changed(backend, "poll", refuse):
        call(queue)
    kernels["add"](queue, (N,), None, memory, np.int32(1))
    queue.finish()
    assert not len(queue.runtime.engine.table)
    assert values_of(queue, memory).tolist() == [2] * N


def test_finish_waits_for_what_came_on_another_queue_meanwhile(context: cl.Context) -> None:
    """Each waits for its own commands, whatever the other was told."""
    one, other = (acs.Queue(context, bypass=False) for _ in range(2))
    kernels, memory = kernels_of(context), buffer(one, np.zeros(N))
    for count in range(1, 4):
        kernels["slow"](one, (1,), None, memory, np.int32(count), np.int32(1000))
        other.finish()
        other.finish()
        one.finish()
        assert values_of(other, memory)[0] == count


def test_a_flush_moves_along_what_is_held(context: cl.Context) -> None:
    queue, kernels = acs.Queue(context, bypass=False), kernels_of(context)
    memory, stop = buffer(queue, np.zeros(N)), cl.UserEvent(context)
    event = kernels["add"](queue, (N,), None, memory, np.int32(1), wait_for=[stop])
    table = queue.runtime.engine.table
    assert table.held
    stop.set_status(COMPLETE)
    queue.flush()
    assert not table.held
    event.wait()
