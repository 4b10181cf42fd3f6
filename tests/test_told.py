"""What a queue told its program is complete is complete for whoever looks, and when it is gone.

A blocking write returns before the device has it, where that changes nothing that the program can
tell. Queues that do not share its runtime know nothing of the launch, so it has to be waited for.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.devices.probe import balance
from tests.test_queue import ROUNDS, SOURCE, N, buffer, kernels_of, values_of

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


def test_each_thread_waits_for_what_another_one_waits_for(context: cl.Context) -> None:
    queue, kernels, plain = acs.Queue(context), kernels_of(context), cl.CommandQueue(context)
    memory, other = buffer(plain, np.zeros(N)), buffer(plain, np.ones(N))
    write_behind_work(queue, memory, kernels)
    with inside.long_first_wait_of_queues() as (begun, goes_on):
        thread = threading.Thread(target=values_of, args=(plain, other))
        thread.start()
        begun.wait()
        seen = values_of(plain, memory).tolist()
        goes_on.set()
        thread.join()
    assert seen == [6] * N


def test_it_is_complete_when_another_thread_ends_the_queue(context: cl.Context) -> None:
    """One that is collected inside its runtime is ended by a thread, while this one goes on."""
    queue, kernels, plain = acs.Queue(context), kernels_of(context), cl.CommandQueue(context)
    memory, runtime = buffer(queue, np.zeros(N)), queue.runtime
    write_behind_work(queue, memory, kernels)
    with runtime.engine.lock:
        del queue
        gc.collect()
        assert not acs.queue.patch.living()
    assert values_of(plain, memory).tolist() == [6] * N


PUT = """
kernel void put(global int *x, global const int *at, int value)
{ x[at[get_global_id(0)]] = value; }
"""


@pytest.fixture
def held(context: cl.Context) -> Iterator[None]:
    """Queues have told the program that a command is complete. It waits for another one, whose
    bytes may be the same, and that one for an event that the program sets later."""
    queue, other = (acs.Queue(context, bypass=False) for _ in range(2))
    program = cl.Program(context, PUT).build(cache_dir=False)
    first, second = (cl.Kernel(program, "put") for _ in range(2))
    memory, places = (buffer(queue, values) for values in (np.zeros(N), np.arange(N)))
    event = cl.UserEvent(context)
    first(queue, (N // 2,), None, memory, places, np.int32(1), wait_for=[event])
    second(other, (N // 2,), None, memory, places, np.int32(2))
    assert values_of(other, places).tolist() == list(range(N))
    yield
    assert inside.have_unkept_words()
    event.set_status(cl.command_execution_status.COMPLETE)
    queue.finish()
    assert values_of(other, memory).tolist() == [2] * (N // 2) + [0] * (N // 2)


@pytest.mark.usefixtures("scheduler", "held")
@pytest.mark.parametrize("options", [{}, {"trace": True}], ids=str)
def test_a_build_waits_for_no_event_of_the_program(
    context: cl.Context, options: dict[str, Any]
) -> None:
    with acs.Runtime(context=context, backend="device", **options) as rt:
        text = f"kernel void next(global int *x) {{ x[get_global_id(0)] += 1; }} // {uuid4()}"
        kernel, x = rt.build(text).next, rt.array(np.zeros(N, np.int32))
        rt.prebuild(kernel)
        kernel((N,), None, x)
        assert x.get().tolist() == [1] * N
        assert inside.Scheduler(rt).tasks == 1


@pytest.mark.usefixtures("held")
def test_the_event_of_a_replay_waits_for_no_event_of_the_program(context: cl.Context) -> None:
    with acs.Runtime(context=context, backend="lanes") as rt:
        slow, x = rt.build(SOURCE).slow, rt.array(np.zeros(2, np.int32))
        with rt.record() as step:
            for at in range(2):
                slow((1,), None, x[at : at + 1], 7, ROUNDS)
        step.replay().event.wait()
        assert x.get().tolist() == [7, 7]


@pytest.mark.usefixtures("held")
def test_a_probe_waits_for_no_event_of_the_program(context: cl.Context) -> None:
    assert min(balance.measure(context.devices[0], context)) > 0
