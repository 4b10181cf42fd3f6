"""Checks: every wrong program is named at its launch and argument, no right one is accused."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from check_programs import RIGHT, SOURCE, WRONG, Right, Wrong
from ctrl_c import interrupted

import acs_cl as acs
from acs_cl.devices.build import build
from acs_cl.errors import CheckError, CheckWarning

BACKENDS = [
    ("serial", "eager", "svm"),
    ("serial", "eager", "buffers"),
    ("out_of_order", "eager", "svm"),
    ("out_of_order", "ready_first", "buffers"),
    ("lanes", "eager", "svm"),
    ("lanes", "ready_first", "svm"),
    ("device", "eager", "svm"),
    ("emulated", "eager", "svm"),
    ("auto", "eager", "svm"),
    ("two_devices", "eager", "svm"),
    ("two_devices", "ready_first", "buffers"),
]
ALL = "access,order=1,uninitialised"
ADDRESSES = (
    "host_task_stores_past_the_runtime", "host_task_reads_past_the_runtime",
    "host_task_names_what_it_writes_as_read", "data_of_an_array_that_was_freed",
    "data_of_an_array_that_was_dropped", "another_queue_writes_an_array",
    "host_task_stores_what_it_declares",
)  # fmt: skip
"""Programs that ask for `array.data`."""


def options_of(chosen: Sequence[str], one: cl.Device, **where: Any) -> dict[str, Any]:
    """One of `BACKENDS` as options of a runtime. `where`: its device, or its context."""
    backend, issue, memory = chosen
    if backend == "device":  # in the context that has its schedulers
        where = {"device": one, "backend": backend}
    elif backend == "two_devices":
        where = {"devices": [one] * 2, "placement": "round_robin"}
    else:
        where["backend"] = backend
    return {**where, "issue": issue, "memory": memory}


@pytest.fixture(params=BACKENDS, ids="-".join)
def options(request: pytest.FixtureRequest, context: cl.Context) -> dict[str, Any]:
    return options_of(request.param, context.devices[0], context=context)


@pytest.fixture(scope="module")
def native() -> Any:
    """The programs' kernels, built once for each context: two thousand builds took half of the
    time."""
    return cache(lambda context: build(context, context.devices[0], SOURCE, ()))


def skip_addresses(program: Wrong | Right, rt: acs.Runtime) -> None:
    if rt.engine.is_several and program.name in ADDRESSES:
        pytest.skip("with several devices an array has no one address")


def make(options: dict[str, Any], check: str) -> acs.Runtime:
    try:
        return acs.Runtime(**options, check=check)
    except (acs.DeviceError, acs.UsageError) as error:
        pytest.skip(str(error))


def run(program: Wrong | Right, rt: acs.Runtime, native: Any) -> None:
    skip_addresses(program, rt)
    kernels = acs.Program(rt.engine, native(rt.context), SOURCE, ())
    if rt.plan.backend == "device":
        rt.prebuild(*(getattr(kernels, name) for name in kernels.kernels))
    program.body(rt, kernels)


@pytest.mark.rotate("options", 4)
@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.name)
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_wrong_programs_are_named(
    program: Wrong, together: bool, options: dict[str, Any], native: Any
) -> None:
    rt = make(options, ALL if together else program.check)
    if program.check == "uninitialised":
        with pytest.warns(CheckWarning) as told, rt:
            run(program, rt, native)
        text = str(told[0].message)
        assert f"launch {program.launch} " in text or rt.engine.is_several  # copies count, too
        assert program.kernel in text
        assert "check_programs.py" in text
        if program.argument is not None:
            assert f"byte {program.byte} of argument {program.argument} " in text
        return
    warnings.simplefilter("ignore", CheckWarning)
    with pytest.raises(CheckError) as caught, rt:
        run(program, rt, native)
    found = caught.value.finding
    assert (found.kind, found.kernel) == (program.kind, program.kernel)
    assert program.launch in (None, found.launch) or rt.engine.is_several
    assert (found.argument, found.first_byte) == (program.argument, program.byte)
    assert "check_programs.py" in found.site
    assert found.site in found.text


@pytest.mark.rotate("options", 4)
@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.name)
@pytest.mark.parametrize("check", [ALL, "order"])
def test_right_programs_are_not_accused(
    program: Right, check: str, options: dict[str, Any], native: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckWarning)
        if program.name.startswith("order_of_atomics"):  # of which it may be said that it is
            warnings.filterwarnings("ignore", ".*not the same each time", CheckWarning)
        with make(options, check) as rt:
            run(program, rt, native)
            assert rt.stats()["check"]["found"] == 0


EVERYWHERE = [one for one in BACKENDS if one[1:] == ("eager", "svm")]


@pytest.mark.rotate("options", 2)
@pytest.mark.parametrize("options", EVERYWHERE, indirect=True, ids="-".join)
@pytest.mark.parametrize("program", [*WRONG, *RIGHT], ids=lambda program: program.name)
def test_the_same_where_the_first_launches_are_let_through_too(
    program: Wrong | Right, options: dict[str, Any], native: Any
) -> None:
    """What is proven, or watched by the device, is believed from the beginning."""
    with inside.limit("launches that are always checked", 0):
        if isinstance(program, Wrong):
            test_wrong_programs_are_named(program, True, options, native)
        else:
            test_right_programs_are_not_accused(program, ALL, options, native)


def test_there_are_enough_programs() -> None:
    assert len(WRONG) >= 40
    assert len(RIGHT) >= 40
    topics = {program.topic for program in WRONG}
    assert topics == {"short", "group", "missing", "alias", "host task", "too early", "unwritten"}
    names = [program.name for program in (*WRONG, *RIGHT)]
    assert len(names) == len(set(names))


TURNED = """
kernel void turn(read_write image2d_t image, global int *y)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    int4 old = read_imagei(image, at);
    write_imagei(image, at, old + 1);
    y[8 * at.y + at.x] += old.x;
}
"""
ROW_TURNED = """
kernel void turn(read_write image1d_buffer_t image, global int *y)
{
    int i = get_global_id(0);
    int4 old = read_imagei(image, i);
    write_imagei(image, i, old + 1);
    y[i] += old.x;
}
"""


@pytest.mark.parametrize("over_buffer", [False, True])
@pytest.mark.parametrize("check", ["access,every=1", "access,order,uninitialised"])
def test_a_kernel_that_reads_and_writes_an_image_runs_once(
    check: str, over_buffer: bool, device: cl.Device
) -> None:
    """Nobody puts an image back, so trials would change what it computes."""
    if over_buffer and "PoCL" in device.version:
        pytest.skip("PoCL crashes where a kernel writes an image over a buffer")
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.SIGNED_INT32)
    flags = cl.mem_flags.READ_WRITE
    with acs.Runtime(device, memory="buffers", check=check) as rt:
        more = {"buffer": cl.Buffer(rt.context, flags, 512)} if over_buffer else {}
        shape = (32,) if over_buffer else (8, 4)
        try:
            kernel = rt.build(ROW_TURNED if over_buffer else TURNED, ["-cl-std=CL2.0"]).turn
            image = cl.create_image(rt.context, flags, form, shape=shape, **more)
        except (cl.Error, acs.AcsError) as error:
            pytest.skip(f"no images that are read and written: {error}")
        del more  # Intel's runtime does not tell the buffer of an image once that is gone
        y, queue = rt.zeros(32, "i4"), cl.CommandQueue(rt.context)
        origin, region = (0,) * len(shape), shape
        cl.enqueue_fill_image(queue, image, np.zeros(4, "i4"), origin, region)
        queue.finish()
        for _ in range(3):
            kernel(shape, None, image, y)
        rt.finish()
        told, *_ = cl.enqueue_map_image(
            queue, image, cl.map_flags.READ, origin, region, (32, 4), np.int32, is_blocking=True
        )  # fmt: skip
        assert (told == 3).all()
        told.base.release(queue)
        assert y.get().tolist() == [3] * 32


@pytest.mark.parametrize("check", ["access", "access,order=1", "order=1", "uninitialised"])
def test_ctrl_c_in_a_check_leaves_memory_as_it_was(device: cl.Device, check: str) -> None:
    """Other arrays kept the values of a trial, and a later launch was accused."""
    values = np.arange(64, dtype="i4")
    with acs.Runtime(device, backend="lanes", check=check) as rt:
        add = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }").add
        before, x, y, behind = (rt.array(values) for _ in range(4))
        for function in ("trial", "_run"):
            for turn in itertools.count(1):
                with interrupted(function, turn) as turns, suppress(KeyboardInterrupt):
                    for array in (x, y, x):
                        add((64,), None, array)
                    rt.finish()
                for array, most in ((before, 0), (x, 2), (y, 1), (behind, 0)):
                    found = array.get() - values
                    assert (found == found[0]).all()
                    assert 0 <= found[0] <= most
                    array.set(values)
                if len(turns) < turn:
                    break
