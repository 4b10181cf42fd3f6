"""What the driver refuses to the library itself: memory and commands that no launch of the program
names. The program gets an error of ours where it called, and its values stay right."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.check import watch
from acs_cl.check.memory import Interval, begin_store_all, load_all
from acs_cl.check.order import Batch
from acs_cl.devices import driver
from acs_cl.errors import DeviceError, OutOfMemory
from acs_cl.several import placer
from acs_cl.testing.changing import changed

SOURCE = """
kernel void bump(global uint *x, uint by) { x[get_global_id(0)] += by; }
kernel void gather(global const uint *at, global uint *x) { x[at[get_global_id(0)]] += 1; }
kernel void turn(global uint *x, uint times)
{ uint v = x[0]; for (uint t = 0; t < times; ++t) v = v * 1664525u + (v >> 16); x[0] = v; }
"""


def refuse(*_: object, **__: object) -> NoReturn:
    raise cl.RuntimeError("create_buffer failed: OUT_OF_RESOURCES")


def no_memory(*_: object, **__: object) -> NoReturn:
    raise cl.MemoryError("create_buffer failed: MEM_OBJECT_ALLOCATION_FAILURE")


REFUSALS = [(refuse, DeviceError), (no_memory, OutOfMemory)]


@pytest.mark.parametrize(("refusal", "error"), REFUSALS)
def test_memory_for_a_graph_that_is_refused_is_an_error_of_ours(
    scheduler: None, device: cl.Device, refusal: Callable[..., Any], error: type[Exception]
) -> None:
    with acs.Runtime(device, backend="device") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(4, "u4")

        def recorded() -> acs.Graph:
            with rt.record() as graph:
                for by in range(8):
                    prog.bump((4,), None, x, by)
            return graph

        rt.prebuild(prog.bump)
        prog.bump((4,), None, x, 1)
        with (
            changed(driver, "buffer_of", refusal),
            pytest.raises(error, match="memory for a graph"),
        ):
            recorded()
        recorded().replay()
        assert x.get().tolist() == [1 + sum(range(8))] * 4


@pytest.mark.parametrize(("refusal", "error"), REFUSALS)
@pytest.mark.parametrize(("where", "name"), [(driver, "_map"), (cl, "Buffer")])
def test_pinned_memory_that_is_refused_is_an_error_of_ours(
    device: cl.Device, refusal: Callable[..., Any], error: type[Exception], where: Any, name: str
) -> None:
    with acs.Runtime(device) as rt:
        with changed(where, name, refusal), pytest.raises(error, match="64 bytes of the host"):
            rt.pinned(16)
        assert rt.pinned(16).nbytes == 64


def test_launches_go_on_where_links_cannot_be_measured(device: cl.Device) -> None:
    def measured(*_: object) -> NoReturn:
        raise DeviceError("a copy between devices failed with status -5")

    with acs.Runtime(devices=[device, device]) as rt, changed(placer, "measured", measured):
        engine: Any = rt.engine
        with changed(engine.placer, "_knows_links", False):
            engine.placer.ask_links()
        prog, x = rt.build(SOURCE), rt.zeros(4, "u4")
        prog.bump((4,), None, x, 3)
        assert x.get().tolist() == [3] * 4


def test_memory_is_as_launches_left_it_where_a_check_of_orders_is_refused_a_command(
    device: cl.Device,
) -> None:
    """The first command of the check still runs when the second one is refused. It began where the
    launches did, and what it writes is not what they left."""
    run, runs = vars(Batch)["_one"], list[object]()

    def one(batch: Batch, command: Any) -> Any:
        if runs:
            refuse()
        runs.append(run(batch, command))
        return runs[-1]

    with acs.Runtime(device, check="order") as rt:
        prog, x, y = rt.build(SOURCE), rt.array([1], "u4"), rt.array([1], "u4")
        for _ in range(2):
            prog.turn((1,), None, x, 1 << 24)
        prog.turn((1,), None, y, 1 << 24)
        with changed(Batch, "_one", one), pytest.raises(DeviceError, match="the checks of"):
            rt.finish()
        after_one = int(y.get()[0])
        assert len(runs) == 1
        prog.turn((1,), None, y, 1 << 24)
        assert x.get()[0] == y.get()[0] != after_one


@pytest.mark.parametrize("refused", [1, 2])
def test_no_note_of_a_watched_kernel_is_read_before_all_are_cleared(
    device: cl.Device, refused: int
) -> None:
    """Memory of the driver begins with any bytes, which would be taken for notes."""
    cleared, write = list[int](), vars(watch)["write"]

    def scarce(queue: Any, place: driver.Place, *rest: Any) -> cl.Event:
        cleared.append(place.memory.int_ptr)
        if len(cleared) <= refused:
            refuse()
        event: cl.Event = write(queue, place, *rest)
        return event

    with acs.Runtime(device, check="access") as rt, changed(watch, "write", scarce):
        prog, at, x = rt.build(SOURCE), rt.array(range(4), "u4"), rt.zeros(4, "u4")
        for _ in range(refused):
            with pytest.raises(DeviceError, match=r"the checks of launch \d+ \(gather\)"):
                prog.gather((4,), None, at, x)
        for _ in range(4):
            prog.gather((4,), None, at, x)
        assert x.get().tolist() == [4] * 4
        assert len(cleared) == refused + 1


@pytest.mark.parametrize("stores", [False, True])
def test_transfers_of_checks_are_waited_for_where_one_is_refused(
    device: cl.Device, stores: bool
) -> None:
    """Those that were begun use memory of the host, which goes with the error."""
    queue = cl.CommandQueue(cl.Context([device]), device)
    begun: Any = SimpleNamespace()
    begun.begin_load = begun.begin_store = lambda low, high, underway: underway.append(
        (driver.marker(queue, None), None)
    )
    lost: Any = SimpleNamespace(begin_load=refuse, begin_store=refuse)
    values = np.zeros(4, np.uint8)
    transfers: Callable[[], object] = (
        (lambda: begin_store_all([(begun, 0, values), (lost, 0, values)]))
        if stores
        else (lambda: load_all([Interval(begun, 0, 4), Interval(lost, 0, 4)]))
    )
    with inside.own_transfers() as seen, pytest.raises(cl.RuntimeError, match="OUT_OF_RESOURCES"):
        transfers()
    assert len(seen.waits) == 1
