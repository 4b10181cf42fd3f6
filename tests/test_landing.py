"""Where reads land on the host: pinned memory, given to one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import endless
import inside
import numpy as np
import pyopencl as cl
import pytest
from endless import ENDED, End
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl.backends import queues as queues_module
from acs_cl.devices import driver
from acs_cl.scheduler.sender import PLACES

SOURCE = "kernel void add(global uint *x, uint by) { x[get_global_id(0)] += by; }"

LASTS_S = 1.0
"""How long an endless kernel lasts, about, where it does not hear of its end."""


@pytest.fixture
def rt(device: cl.Device) -> Iterator[acs.Runtime]:
    """As on a GPU."""
    with acs.Runtime(device, backend="device") as runtime:
        inside.Scheduler(runtime).land_in_pinned_memory()
        yield runtime


@pytest.fixture
def add(rt: acs.Runtime) -> Any:
    add = rt.build(SOURCE).add
    rt.prebuild(add)
    return add


def test_what_is_one_too_many_lands_elsewhere(rt: acs.Runtime, add: Any) -> None:
    scheduler, x = inside.Scheduler(rt), rt.zeros(64, np.uint32)
    stop = cl.UserEvent(rt.context)
    for queue in rt.engine.backend.queues:
        cl.enqueue_barrier(queue, wait_for=[stop])
    try:
        for _ in range(PLACES + 2):
            add((64,), (64,), x, 1)
            rt.flush()
        assert scheduler.pinned_places == (PLACES, 0)
    finally:
        stop.set_status(cl.command_execution_status.COMPLETE)
    assert x.get().tolist() == [PLACES + 2] * 64
    rt.finish()
    assert scheduler.pinned_places == (0, PLACES)


def test_without_pinned_memory_it_lands_elsewhere(
    rt: acs.Runtime, add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **words: Any) -> Any:
        raise cl.MemoryError("no pinned memory is left")

    monkeypatch.setattr(driver, "_map", refuse)
    rt.engine.backend.lanes.use_pinned()
    x = rt.zeros(64, np.uint32)
    add((64,), (64,), x, 1)
    assert x.get().tolist() == [1] * 64
    assert inside.Scheduler(rt).pinned_places == (0, 0)


@pytest.mark.usefixtures("core_reads")
@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes"])
def test_short_reads_land_in_pinned_memory(device: cl.Device, backend: Any) -> None:
    """As on a GPU; what is too long does not, and nothing is kept."""
    with acs.Runtime(device, backend=backend) as rt:
        queues: Any = rt.engine.backend
        queues.use_pinned()
        x, longest = rt.array(np.arange(8192), np.uint32), queues_module.LONGEST // 4
        add = rt.build(SOURCE).add
        for step, many in enumerate((1, 5, longest, longest + 1, 8192), 1):
            add((8192,), None, x, 1)
            before = rt.stats()["launches"]
            assert x[:many].get().tolist() == [at + step for at in range(many)]
            assert rt.stats()["launches"] == before + 1
            assert queues.core_queues.places == (0, queues_module.PLACES)


@pytest.mark.usefixtures("core_reads")
def test_reads_of_threads_have_places_of_their_own(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        queues: Any = rt.engine.backend
        queues.use_pinned()
        rows = [rt.array(np.full(300, at), np.uint32) for at in range(8)]
        wrong: list[int] = []

        def read(at: int) -> None:
            wrong.extend(at for _ in range(40) if (rows[at].get() != at).any())

        in_threads(read, 8)
        assert not wrong
        assert queues.core_queues.places == (0, queues_module.PLACES)


def test_sending_an_epoch_does_not_wait_for_the_one_before(device: cl.Device) -> None:
    """An upload whose event nobody keeps holds the program until all before it has ended."""
    with acs.Runtime(device, backend="device") as rt:
        spin, end = rt.build(endless.SOURCE).spin, End(device, LASTS_S)
        rt.prebuild(spin)
        x = rt.zeros(1, np.int32)
        first = spin((1,), (1,), x, end.rounds, end.address, writes=x)
        rt.flush()
        spin((1,), (1,), x, 1, 0, writes=x)
        rt.flush()
        assert not first.done
        end.set()
        assert x.get().tolist() == [ENDED]
        assert rt.stats()["scheduler"]["epochs"] >= 2
