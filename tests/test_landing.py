"""Where the status of epochs lands: pinned memory, given to one epoch at a time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from patience import undisturbed

import acs_cl as acs
from acs_cl import testing
from acs_cl.devices import driver
from acs_cl.scheduler.status import LONGEST, PLACES, Landings

SOURCE = "kernel void add(global uint *x, uint by) { x[get_global_id(0)] += by; }"


SPIN = """
kernel void spin(global uint *x, uint rounds) {
    uint y = x[0] + 1u;
    for (uint i = 0; i < rounds; ++i) { y ^= y << 13; y ^= y >> 17; y ^= y << 5; }
    x[0] = y;
}
"""


@pytest.fixture
def queue(device: cl.Device) -> Any:
    return cl.CommandQueue(cl.Context([device]))


def test_a_read_lands_in_each_place(queue: Any) -> None:
    landings = Landings(pinned=True)
    taken = []
    for index in range(PLACES + 2):
        words = np.full(160, index + 1, np.uint32)
        buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, words.nbytes)
        driver.write(queue, driver.Place(buffer, 0, words.nbytes), words, None)
        array = landings.take(queue, 160)
        event = driver.read(queue, array, driver.Place(buffer, 0, array.nbytes), None)
        taken.append((array, event))
        queue.flush()
    assert landings.taken == PLACES
    for index, (array, event) in enumerate(taken):
        assert driver.wait_for_event(event) == 0
        assert array.tolist() == [index + 1] * 160
    addresses = {array.ctypes.data for array, _ in taken}
    assert len(addresses) == PLACES + 2
    for array, _ in taken:
        landings.give(array)
    assert landings.taken == 0
    again = [landings.take(queue, 100) for _ in range(PLACES)]
    assert landings.taken == PLACES
    assert {len(one) for one in again} == {100}


def test_what_is_too_long_lands_elsewhere(queue: Any) -> None:
    landings = Landings(pinned=True)
    array = landings.take(queue, LONGEST + 1)
    assert array.shape == (LONGEST + 1,)
    assert landings.taken == 0
    landings.give(array)
    assert landings.take(queue, LONGEST).shape == (LONGEST,)
    assert landings.taken == 1


def test_without_pinned_memory_it_lands_in_numpys(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Landings(pinned=False).take(queue, 160).shape == (160,)

    def refuse(*args: Any, **words: Any) -> Any:
        raise cl.MemoryError("no pinned memory is left")

    monkeypatch.setattr(driver, "wait_for_pinned", refuse)
    landings = Landings(pinned=True)
    assert landings.take(queue, 160).shape == (160,)
    assert landings.taken == 0


def test_sending_an_epoch_does_not_wait_for_the_one_before(device: cl.Device) -> None:
    """An upload whose event nobody keeps holds the program until all before it has ended."""
    with acs.Runtime(device, backend="device") as rt:
        spin = rt.build(SPIN).spin
        rt.prebuild(spin)
        x = rt.zeros(1, np.uint32)
        rounds, took = 1 << 16, 0.0
        while took < 0.3:
            rounds *= 2
            start = perf_counter()
            spin((1,), (1,), x, rounds)
            rt.finish()
            took = perf_counter() - start

        def it_is_sent_at_once() -> None:
            spin((1,), (1,), x, rounds)
            rt.flush()
            spin((1,), (1,), x, 1)
            start = perf_counter()
            rt.flush()
            sending = perf_counter() - start
            rt.finish()
            assert sending < took / 2

        undisturbed(it_is_sent_at_once)
        assert rt.stats()["scheduler"]["epochs"] >= 3


def test_epochs_give_their_place_back(device: cl.Device) -> None:
    """As on a GPU, with more epochs than there are places."""
    with acs.Runtime(device, backend="device") as rt:
        scheduler = testing.Scheduler(rt)
        scheduler.land_in_pinned_memory()
        add = rt.build(SOURCE).add
        rt.prebuild(add)
        x = rt.zeros(64, np.uint32)
        for _ in range(3 * PLACES):
            add((64,), (64,), x, 1)
            rt.flush()
        assert x.get().tolist() == [3 * PLACES] * 64
        rt.finish()
        taken, free = scheduler.pinned_places
        assert taken == 0
        assert free, "nothing landed in pinned memory"
