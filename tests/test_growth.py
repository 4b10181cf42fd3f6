"""Nothing grows with the number of launches: what a program has let go of goes here, too."""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import testing
from acs_cl.devices.driver import OwnKernel
from acs_cl.errors import CheckWarning
from acs_cl.records import Access
from acs_cl.several.known_launches import LEAST

SOURCE = "kernel void add(global int *x, int a) { x[get_global_id(0)] += a; }"


def alive(kind: type) -> int:
    """Count the objects of a kind."""
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def test_events_that_were_waited_for_on_a_queue_are_let_go_of(context: cl.Context) -> None:
    with testing.bypass(always=True):
        queue = acs.Queue(context)
        add = cl.Program(context, SOURCE).build().add
        x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
        made: list[cl.Event] = []
        for _ in range(600):
            made.append(add(queue, (64,), None, x, np.int32(1), wait_for=made[-1:]))
        queue.finish()
        assert queue.runtime.stats()["bypassed"] > 500
    alone = [object()]
    held = [sys.getrefcount(one) for one in alone]
    assert set([sys.getrefcount(one) for one in made][200:400]) == set(held)


@pytest.mark.parametrize("backend", ["serial", "lanes"])
def test_what_views_touched_is_forgotten_however_many_sizes_there_are(
    device: cl.Device, backend: str, environment: Environment
) -> None:
    environment(ACS_CL_NO_PLANS="1")  # Python plans each launch, and so asks for each access
    sizes, places = 16, 800
    with acs.Runtime(device, backend=backend) as rt:
        program = rt.build(SOURCE)
        x = rt.zeros(sizes + places, "i4")
        before = alive(Access)
        for place in range(places):
            for size in range(1, 1 + sizes):
                program.add((size,), None, x[place : place + sizes], 1)
        rt.finish()
        assert sizes * places > 12_000
        assert alive(Access) - before < 10_000


def test_kernels_of_programs_that_are_gone_leave_their_scheduler(
    device: cl.Device, scheduler: None
) -> None:
    with acs.Runtime(device, backend="device") as rt:
        x = rt.zeros(64, "i4")
        rt.prebuild(rt.build(SOURCE).add)
        before = alive(OwnKernel)
        for _ in range(40):
            rt.build(SOURCE).add((64,), None, x, 1)
        assert x.get()[0] == 40
        assert rt.stats()["scheduler"]["tasks"] >= 40
        assert alive(OwnKernel) - before < 10


@pytest.mark.parametrize("options", [{"placement": "round_robin"}, {"spread": True}])
def test_kernels_of_programs_that_are_gone_leave_all_devices(
    device: cl.Device, options: dict[str, Any]
) -> None:
    """Each has code of its own for each device."""
    many = 5 * LEAST
    with acs.Runtime(devices=[device] * 2, **options) as rt:
        x, before = rt.zeros(256, "i4"), alive(OwnKernel)
        for _ in range(many):
            prog = rt.build(SOURCE)
            for _ in range(2):
                prog.add((256,), None, x, 1)
        assert x.get().tolist() == [2 * many] * 256
        del prog
        assert alive(OwnKernel) - before <= 4 * LEAST


def test_lines_of_launches_are_forgotten_with_their_handles(
    device: cl.Device,
) -> None:
    with inside.limit("lines that the check of leaks keeps", 100):
        rt = acs.Runtime(device, backend="serial", check="leaks")
        x = rt.zeros(4)
        first = x.fill(1)
        taken: list[int] = []
        tracemalloc.start()
        try:
            for _ in range(2):
                for turn in range(3000):
                    x.fill(turn)
                rt.finish()
                taken.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert taken[1] - taken[0] < 100_000
    with pytest.warns(CheckWarning, match=rf"launch {first.number} \(fill\), made at \S*growth"):
        rt.close()


def test_an_emulated_device_forgets_launches_that_have_ended(device: cl.Device) -> None:
    from acs_cl.emu.trace import Entry

    with acs.Runtime(device, backend="emulated") as rt:
        program, x = rt.build(SOURCE), rt.zeros(64, "i4")
        for _ in range(500):
            program.add((64,), None, x, 1)
        rt.finish()
        assert alive(Entry) < 100


def test_a_runtime_that_is_closed_leaves_no_thread(device: cl.Device) -> None:
    before = set(threading.enumerate())
    for _ in range(5):
        acs.Runtime(device, watchdog_s=3600).close()
    dropped = acs.Runtime(device, watchdog_s=3600)
    del dropped
    gc.collect()
    until = time.perf_counter() + 10
    for thread in set(threading.enumerate()) - before:
        thread.join(max(0, until - time.perf_counter()))
        assert not thread.is_alive(), thread.name
