"""What a queue told its program is complete is complete for whoever looks, and when it is gone.

A blocking write returns before the device has it, where that changes nothing that the program can
tell. Queues that do not share its runtime know nothing of the launch, so it has to be waited for.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from tests.test_queue import ROUNDS, N, buffer, kernels_of, values_of

PROFILING = cl.command_queue_properties.PROFILING_ENABLE

OTHERS: dict[str, Callable[[cl.Context], cl.CommandQueue]] = {
    "a plain one": cl.CommandQueue,
    "one of the same runtime": acs.Queue,
    "one with times": lambda context: acs.Queue(context, properties=PROFILING),
    "one of a runtime of its own": lambda context: acs.Queue(context, lanes=2),
}


def write_behind_work(queue: acs.Queue, memory: cl.Buffer, kernels: dict[str, Any]) -> None:
    """Write sixes with a blocking call, while a kernel runs that writes there, too."""
    kernels["slow"](queue, (1,), None, memory, np.int32(7), np.int32(20 * ROUNDS))
    cl.enqueue_copy(queue, memory, np.full(N, 6, np.int32))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("options", [{}, {"bypass": False}], ids=str)
def test_a_blocking_write_is_complete_for_every_queue(
    context: cl.Context, options: dict[str, Any], other: str
) -> None:
    queue, kernels = acs.Queue(context, **options), kernels_of(context)
    memory = buffer(queue, np.zeros(N))
    beside = OTHERS[other](context)
    write_behind_work(queue, memory, kernels)
    assert values_of(beside, memory).tolist() == [6] * N


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("when", ["made before", "made between", "made at the end"])
def test_it_is_complete_when_its_queue_is_gone(context: cl.Context, other: str, when: str) -> None:
    """Something still holds the runtime, so that it is not closed."""
    queue, kernels = acs.Queue(context), kernels_of(context)
    memory, runtime = buffer(queue, np.zeros(N)), queue.runtime
    beside = OTHERS[other](context) if when == "made before" else None
    write_behind_work(queue, memory, kernels)
    if when == "made between":
        beside = OTHERS[other](context)
    del queue
    gc.collect()
    beside = beside or OTHERS[other](context)
    assert values_of(beside, memory).tolist() == [6] * N
    assert not runtime.engine.state


def test_only_queues_with_others_beside_them_wait_at_once(context: cl.Context) -> None:
    queue, alike = acs.Queue(context), acs.Queue(context)
    elsewhere = acs.Queue(cl.Context(context.devices))
    assert not any(map(inside.waits_at_once, (queue, alike, elsewhere)))
    beside = acs.Queue(context, properties=PROFILING)
    assert all(map(inside.waits_at_once, (queue, alike, beside)))
    assert not inside.waits_at_once(elsewhere)
    del beside
    gc.collect()
    assert not any(map(inside.waits_at_once, (queue, alike)))


def test_a_wait_that_a_signal_ends_is_made_again(context: cl.Context) -> None:
    queue, kernels, plain = acs.Queue(context), kernels_of(context), cl.CommandQueue(context)
    memory = buffer(queue, np.zeros(N))
    write_behind_work(queue, memory, kernels)
    with inside.interrupted_waits_of_queues(), pytest.raises(KeyboardInterrupt):
        values_of(plain, memory)
    assert values_of(plain, memory).tolist() == [6] * N
