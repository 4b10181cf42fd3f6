"""Wrong calls on `acs.Queue` raise what they raise on a plain queue, and where they do.

A plain queue on the same device is the oracle, for a command that goes to the driver at once and
for one that has to wait on the host. Nothing is lost afterwards: the same queue goes on.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.queue.driver_checks import CALLS, refusal
from acs_cl.queue.refusals import takes_empty

N = 256
SOURCE = """
kernel void add(global int *y, int a) { y[get_global_id(0)] += a; }
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void fours(global int *y, int a)
{ y[get_global_id(0)] += a; }
"""
FLAGS, CODES, MAPS = cl.mem_flags, cl.status_code, cl.map_flags
READ_WRITE = FLAGS.READ_WRITE
COMPLETE = cl.command_execution_status.COMPLETE
PLACES = {"buffer_origin": (0, 0), "host_origin": (0, 0), "is_blocking": False}
BETWEEN = {"src_origin": (0, 0), "dst_origin": (0, 0)}
PIXELS = {"origin": (0, 0), "region": (8, 8)}


def program_in(context: cl.Context) -> cl.Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cl.Program(context, SOURCE).build(cache_dir=False)


class Scene:
    """Memory, images and events in a context, and some in another."""

    def __init__(self, context: cl.Context, program: cl.Program) -> None:
        self.context, self.program = context, program
        self.elsewhere = cl.Context(context.devices)

        def buffer(flags: int = 0, where: cl.Context = context) -> cl.Buffer:
            return cl.Buffer(where, READ_WRITE | flags, 4 * N)

        def image(kind: Any, where: cl.Context = context, flags: int = 0) -> cl.Image:
            form = cl.ImageFormat(cl.channel_order.RGBA, kind)
            return cl.Image(where, READ_WRITE | flags, form, shape=(8, 8))

        self.y, self.z, self.foreign = buffer(), buffer(), buffer(where=self.elsewhere)
        self.unread = buffer(FLAGS.HOST_WRITE_ONLY)
        self.unwritten = buffer(FLAGS.HOST_READ_ONLY)
        self.hidden = buffer(FLAGS.HOST_NO_ACCESS)
        self.low, self.high = self.y.get_sub_region(0, 2 * N), self.y.get_sub_region(N, 2 * N)
        self.host, self.long = np.zeros(N, np.int32), np.zeros(2 * N, np.int32)
        kinds = cl.channel_type
        self.image, self.reals = image(kinds.UNSIGNED_INT8), image(kinds.FLOAT)
        self.foreign_image = image(kinds.UNSIGNED_INT8, self.elsewhere)
        self.hidden_image = image(kinds.UNSIGNED_INT8, flags=FLAGS.HOST_NO_ACCESS)
        self.pixels = np.zeros((8, 8, 4), np.uint8)
        self.come = cl.UserEvent(self.elsewhere)
        self.come.set_status(COMPLETE)

    def launch(self, queue: cl.CommandQueue, *how: Any, name: str = "add", **more: Any) -> Any:
        kernel = cl.Kernel(self.program, name)
        kernel.set_args(self.y, np.int32(1))
        return cl.enqueue_nd_range_kernel(queue, kernel, *how, **more)

    def foreign_launch(self, queue: cl.CommandQueue) -> Any:
        kernel = cl.Kernel(program_in(self.elsewhere), "add")
        kernel.set_args(self.foreign, np.int32(1))
        return cl.enqueue_nd_range_kernel(queue, kernel, (8,), None)


def copy(queue: cl.CommandQueue, *how: Any, **more: Any) -> Any:
    return cl.enqueue_copy(queue, *how, **more)


def read(queue: cl.CommandQueue, host: Any, memory: Any, **more: Any) -> Any:
    return cl.enqueue_copy(queue, host, memory, is_blocking=False, **more)


write = read


def filled(queue: cl.CommandQueue, *how: Any) -> Any:
    return cl.enqueue_fill_buffer(queue, *how)


def mapped(queue: cl.CommandQueue, memory: Any, flags: int, many: int = N) -> Any:
    return cl.enqueue_map_buffer(queue, memory, flags, 0, (many,), np.int32)


Wrong = Callable[[Any, Scene], Any]

KERNELS: dict[str, Wrong] = {
    "local does not divide": lambda q, s: s.launch(q, (10,), (4,)),
    "local is too large": lambda q, s: s.launch(q, (1 << 20,), (1 << 18,)),
    "local is too large as a product": lambda q, s: s.launch(q, (4096, 4096), (4096, 4096)),
    "local is not the required one": lambda q, s: s.launch(q, (16,), (8,), name="fours"),
    "local is longer than the required one": lambda q, s: s.launch(
        q, (16, 2), (4, 2), name="fours"
    ),
    "the required one does not divide": lambda q, s: s.launch(q, (6,), (4,), name="fours"),
    "four dimensions": lambda q, s: s.launch(q, (1, 1, 1, 1), None),
    "no dimension": lambda q, s: s.launch(q, (), None),
    "local of other dimensions": lambda q, s: s.launch(q, (8, 8), (4,)),
    "offset of other dimensions": lambda q, s: s.launch(q, (8,), None, (1, 1)),
    "global below zero": lambda q, s: s.launch(q, (-8,), None),
    "global is a float": lambda q, s: s.launch(q, (8.0,), None),
    "global is huge": lambda q, s: s.launch(q, (1 << 65,), None),
    "global is a number": lambda q, s: s.launch(q, 8, None),
    "no kernel": lambda q, s: cl.enqueue_nd_range_kernel(q, None, (8,), None),  # type: ignore[arg-type]
    "a kernel of another context": lambda q, s: s.foreign_launch(q),
}
EVENTS: dict[str, Wrong] = {
    "a number among events": lambda q, s: s.launch(q, (8,), None, wait_for=[1]),
    "None among events": lambda q, s: s.launch(q, (8,), None, wait_for=[None]),
    "a number for events": lambda q, s: s.launch(q, (8,), None, wait_for=5),
    "a text for events": lambda q, s: s.launch(q, (8,), None, wait_for="x"),
    "a class among events": lambda q, s: s.launch(q, (8,), None, wait_for=[cl.UserEvent]),
    "a copy behind a number": lambda q, s: read(q, s.host, s.y, wait_for=[1]),
    "a marker behind a number": lambda q, s: cl.enqueue_marker(q, wait_for=[1]),  # type: ignore[list-item]
    "a barrier behind a number": lambda q, s: cl.enqueue_barrier(q, wait_for=[1]),  # type: ignore[list-item]
    "an event of another context": lambda q, s: s.launch(q, (8,), None, wait_for=[s.come]),
    "a marker behind that": lambda q, s: cl.enqueue_marker(q, wait_for=[s.come]),
}
BUFFERS: dict[str, Wrong] = {
    "read beyond": lambda q, s: read(q, s.long, s.y),
    "read from beyond": lambda q, s: read(q, s.host, s.y, src_offset=8),
    "read from below zero": lambda q, s: read(q, s.host, s.y, src_offset=-8),
    "read into bytes": lambda q, s: read(q, b"1234", s.y),
    "read into gaps": lambda q, s: read(q, s.host[::2], s.y),
    "read what is hidden": lambda q, s: read(q, s.host, s.hidden),
    "read what is not read": lambda q, s: read(q, s.host, s.unread),
    "read of another context": lambda q, s: read(q, s.host, s.foreign),
    "write beyond": lambda q, s: write(q, s.y, s.long),
    "write from beyond": lambda q, s: write(q, s.y, s.host, dst_offset=8),
    "write from gaps": lambda q, s: write(q, s.y, s.host[::2]),
    "write what is hidden": lambda q, s: write(q, s.hidden, s.host),
    "write what is not written": lambda q, s: write(q, s.unwritten, s.host),
    "write of another context": lambda q, s: write(q, s.foreign, s.host),
    "write a list": lambda q, s: write(q, s.y, [1, 2]),
    "copy beyond": lambda q, s: copy(q, s.z, s.y, byte_count=8 * N),
    "copy from beyond": lambda q, s: copy(q, s.z, s.y, byte_count=4 * N, src_offset=4),
    "copy to beyond": lambda q, s: copy(q, s.z, s.y, byte_count=4 * N, dst_offset=4),
    "copy onto itself": lambda q, s: copy(q, s.y, s.y, byte_count=16, dst_offset=8),
    "copy between parts that overlap": lambda q, s: copy(q, s.high, s.low, byte_count=2 * N),
    "copy of a part onto the whole": lambda q, s: copy(q, s.y, s.low, byte_count=2 * N),
    "copy to another context": lambda q, s: copy(q, s.foreign, s.y),
    "fill by 3 bytes": lambda q, s: filled(q, s.y, b"abc", 0, 12),
    "fill by nothing": lambda q, s: filled(q, s.y, b"", 0, 12),
    "fill by 256 bytes": lambda q, s: filled(q, s.y, b"a" * 256, 0, 256),
    "fill at an odd place": lambda q, s: filled(q, s.y, b"abcd", 2, 12),
    "fill an odd length": lambda q, s: filled(q, s.y, b"abcd", 0, 10),
    "fill beyond": lambda q, s: filled(q, s.y, b"abcd", 0, 8 * N),
    "fill another context": lambda q, s: filled(q, s.foreign, b"abcd", 0, 4),
    "fill by None": lambda q, s: filled(q, s.y, None, 0, 4),
    "fill from below zero": lambda q, s: filled(q, s.y, b"abcd", -4, 4),
    "migrate nothing": lambda q, s: cl.enqueue_migrate_mem_objects(q, [], 0),
    "migrate in no such way": lambda q, s: cl.enqueue_migrate_mem_objects(q, [s.y], 64),
    "migrate from another context": lambda q, s: cl.enqueue_migrate_mem_objects(q, [s.foreign], 0),
}
RECTANGLES: dict[str, Wrong] = {
    "read a rectangle beyond": lambda q, s: copy(q, s.host, s.y, **PLACES, region=(64, 64)),
    "read an empty rectangle": lambda q, s: copy(q, s.host, s.y, **PLACES, region=(0, 4)),
    "read by a short pitch": lambda q, s: copy(
        q, s.host, s.y, **PLACES, region=(16, 4), buffer_pitches=(8,)
    ),
    "read by a short pitch of the host": lambda q, s: copy(
        q, s.host, s.y, **PLACES, region=(16, 4), host_pitches=(8,)
    ),
    "read by a crooked pitch": lambda q, s: copy(
        q, s.host, s.y, **PLACES, region=(16, 4, 2), buffer_pitches=(16, 20)
    ),
    "read a rectangle that is not read": lambda q, s: copy(
        q, s.host, s.unread, **PLACES, region=(16, 4)
    ),
    "read a rectangle of another context": lambda q, s: copy(
        q, s.host, s.foreign, **PLACES, region=(16, 4)
    ),
    "write a rectangle beyond": lambda q, s: copy(
        q, s.y, s.host, **{**PLACES, "buffer_origin": (0, 60)}, region=(16, 8), buffer_pitches=(16,)
    ),
    "write a rectangle that is not written": lambda q, s: copy(
        q, s.unwritten, s.host, **PLACES, region=(16, 4)
    ),
    "copy a rectangle beyond": lambda q, s: copy(q, s.z, s.y, **BETWEEN, region=(64, 64)),
    "copy a rectangle onto itself": lambda q, s: copy(
        q, s.y, s.y, src_origin=(0, 0), dst_origin=(8, 0), region=(16, 4), src_pitches=(32,),
        dst_pitches=(32,),
    ),
    "copy a rectangle by two pitches": lambda q, s: copy(
        q, s.y, s.y, src_origin=(0, 0), dst_origin=(0, 8), region=(16, 4), src_pitches=(32,),
        dst_pitches=(64,),
    ),
    "copy a rectangle of another context": lambda q, s: copy(
        q, s.z, s.foreign, **BETWEEN, region=(16, 4)
    ),
    "copy a rectangle in four dimensions": lambda q, s: copy(
        q, s.z, s.y, src_origin=(0, 0, 0, 0), dst_origin=(0, 0), region=(16, 4)
    ),
}  # fmt: skip
IMAGES: dict[str, Wrong] = {
    "read an image beyond": lambda q, s: read(q, s.pixels, s.image, origin=(4, 4), region=(8, 8)),
    "write an image beyond": lambda q, s: write(q, s.image, s.pixels, origin=(4, 4), region=(8, 8)),
    "write an image of another context": lambda q, s: write(q, s.foreign_image, s.pixels, **PIXELS),
    "copy to another format": lambda q, s: copy(
        q, s.reals, s.image, src_origin=(0, 0), dest_origin=(0, 0), region=(8, 8)
    ),
    "copy an image beyond": lambda q, s: copy(
        q, s.image, s.image, src_origin=(0, 0), dest_origin=(4, 4), region=(8, 8)
    ),
    "copy an image onto itself": lambda q, s: copy(
        q, s.image, s.image, src_origin=(0, 0), dest_origin=(2, 2), region=(4, 4)
    ),
    "an image into too little": lambda q, s: copy(q, s.y, s.image, offset=4 * N - 16, **PIXELS),
    "an image from beyond": lambda q, s: copy(
        q, s.y, s.image, offset=0, origin=(4, 0), region=(8, 8)
    ),
    "an image from too little": lambda q, s: copy(q, s.image, s.y, offset=4 * N - 16, **PIXELS),
    "fill an image beyond": lambda q, s: cl.enqueue_fill_image(
        q, s.image, np.zeros(4, np.uint32), (4, 4), (8, 8)
    ),
}
MAPPED: dict[str, Wrong] = {
    "map beyond": lambda q, s: mapped(q, s.y, MAPS.READ, 2 * N),
    "map nothing": lambda q, s: mapped(q, s.y, MAPS.READ, 0),
    "map of another context": lambda q, s: mapped(q, s.foreign, MAPS.READ),
    "map what is hidden": lambda q, s: mapped(q, s.hidden, MAPS.READ),
    "map what is not read": lambda q, s: mapped(q, s.unread, MAPS.READ),
    "map what is not written": lambda q, s: mapped(q, s.unwritten, MAPS.WRITE),
    "map an image that is hidden": lambda q, s: cl.enqueue_map_image(
        q, s.hidden_image, MAPS.READ, (0, 0), (8, 8), (8, 8, 4), np.uint8
    ),
    "map an image beyond": lambda q, s: cl.enqueue_map_image(
        q, s.image, MAPS.READ, (4, 4), (8, 8), (8, 8, 4), np.uint8
    ),
}
WRONG = {**KERNELS, **EVENTS, **BUFFERS, **RECTANGLES, **IMAGES, **MAPPED}
DIFFERING = {*CALLS, "copy of a part onto the whole"}
"""What some drivers take: these are asked."""
OF_PARTS = ["copy between parts that overlap", "copy of a part onto the whole"]
PARTS_CRASH = "parts of a buffer that overlap end the process, on a plain queue too"
SPECIFIED = {
    "fill at an odd place": CODES.INVALID_VALUE,
    "fill an odd length": CODES.INVALID_VALUE,
    "read an empty rectangle": CODES.INVALID_VALUE,
    "copy a rectangle onto itself": CODES.MEM_COPY_OVERLAP,
    "a kernel of another context": CODES.INVALID_CONTEXT,
}
"""What NVIDIA's driver takes, or refuses for another reason than OpenCL's specification has. Where
we look at a call ourselves, we say what is specified."""
OF_ELSEWHERE = ["an event of another context", "a marker behind that"]
"""What waits for an event of another context."""
BEYOND = [name for name in RECTANGLES if name.endswith("beyond")]
"""Rectangles that leave their memory."""

SHARED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "copy another length": lambda q, one, half: copy(q, one, half, is_blocking=False),
    "copy from a longer one": lambda q, one, half: copy(q, one, np.zeros(9 * N), is_blocking=False),
    "copy onto itself": lambda q, one, half: copy(q, one, one, is_blocking=False),
    "fill by 3 bytes": lambda q, one, half: cl.enqueue_svm_memfill(q, one, np.zeros(3, np.uint8)),
    "fill beyond": lambda q, one, half: cl.enqueue_svm_memfill(
        q, one, np.int32(1), byte_count=9 * N
    ),
}
OPTIONS: list[dict[str, Any]] = [{}, {"bypass": False}, {"backend": "emulated"}]


def outcome(call: Callable[[], object]) -> tuple[object, ...]:
    """Say what a call raises. PyOpenCL may list the types of arguments behind the first line."""
    try:
        call()
    except Exception as error:
        return type(error), getattr(error, "code", None), str(error).partition("\n")[0]
    return ("nothing",)


@pytest.fixture(scope="module")
def program(context: cl.Context) -> cl.Program:
    return program_in(context)


def check_goes_on(queue: cl.CommandQueue, scene: Scene) -> None:
    """Let commands on the same memory give right values."""
    queue.finish()
    filled(queue, scene.y, np.int32(4), 0, 4 * N)
    scene.launch(queue, (N,), None)
    copy(queue, scene.z, scene.y)
    copy(queue, scene.host, scene.z)
    assert scene.host.tolist() == [5] * N


def compare(
    queue: cl.CommandQueue, wrong: Callable[[Any], object], scene: Scene,
    may_be_taken: bool = False, specified: int | None = None,
) -> None:  # fmt: skip
    """Make a wrong call at once, and behind a user event."""
    plain = cl.CommandQueue(scene.context)
    expected = outcome(lambda: wrong(plain))
    plain.finish()
    assert may_be_taken or expected != ("nothing",), "the driver takes it"
    found = outcome(lambda: wrong(queue))
    if specified is not None:
        assert found == expected or found[1] == specified
        check_goes_on(queue, scene)
        return
    assert found == expected
    check_goes_on(queue, scene)
    gate = cl.UserEvent(scene.context)
    cl.enqueue_marker(queue, wait_for=[gate])
    opened = threading.Timer(0.1, gate.set_status, [COMPLETE])
    if expected == ("nothing",):  # a map that is taken waits until it has an address
        opened.start()
    held = outcome(lambda: wrong(queue))
    if expected == ("nothing",):
        opened.join()
    else:
        gate.set_status(COMPLETE)
    assert held == expected
    check_goes_on(queue, scene)


@pytest.mark.parametrize("which", WRONG)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_wrong_call_raises_what_it_raises_on_a_plain_queue(
    context: cl.Context, program: cl.Program, options: dict[str, Any], which: str
) -> None:
    if which in OF_ELSEWHERE and "Intel" in context.devices[0].platform.name:
        pytest.skip("the driver keeps the refused command, and crashes when the process ends")
    if which in BEYOND and lets_rectangles_leave(context):
        pytest.skip("the driver reads and writes beyond the memory: the heap would be damaged")
    is_nvidia = "NVIDIA" in context.devices[0].platform.name
    if is_nvidia and which in OF_PARTS:
        pytest.skip(PARTS_CRASH)
    scene = Scene(context, program)
    queue = acs.Queue(context, **options)
    is_taken = which in DIFFERING or (is_nvidia and which in SPECIFIED)
    specified = SPECIFIED.get(which) if is_nvidia else None
    compare(queue, lambda queue: WRONG[which](queue, scene), scene, is_taken, specified)


def lets_rectangles_leave(context: cl.Context) -> bool:
    """Tell whether a plain queue takes a rectangle that leaves its memory, as that of Intel's
    runtime does. It stays within the buffer that this memory is a part of."""
    whole = cl.Buffer(context, READ_WRITE, 16 * N)
    host, queue = np.zeros(4 * N, np.int32), cl.CommandQueue(context)
    part = whole.get_sub_region(0, 4 * N)
    found = outcome(lambda: copy(queue, host, part, **PLACES, region=(64, 64)))
    queue.finish()
    return found == ("nothing",)


@pytest.mark.parametrize("which", BEYOND)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_rectangle_that_has_to_wait_never_leaves_its_memory(
    context: cl.Context, program: cl.Program, options: dict[str, Any], which: str
) -> None:
    """Whatever the driver does."""
    scene, gate = Scene(context, program), cl.UserEvent(context)
    queue = acs.Queue(context, **options)
    cl.enqueue_marker(queue, wait_for=[gate])
    found = outcome(lambda: WRONG[which](queue, scene))
    gate.set_status(COMPLETE)
    assert found[:2] == (cl.LogicError, CODES.INVALID_VALUE)
    check_goes_on(queue, scene)


@pytest.mark.parametrize("which", OF_ELSEWHERE)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_event_of_another_context_never_reaches_the_driver(
    context: cl.Context, program: cl.Program, options: dict[str, Any], which: str
) -> None:
    """Intel's runtime keeps a command that it refused for one, and crashes at exit."""
    scene, queue = Scene(context, program), acs.Queue(context, **options)
    found = outcome(lambda: WRONG[which](queue, scene))
    assert found[:2] == (cl.LogicError, CODES.INVALID_CONTEXT)
    check_goes_on(queue, scene)


@pytest.mark.parametrize("which", CALLS)
def test_a_driver_says_of_a_wrong_call_what_it_does_with_it(
    context: cl.Context, program: cl.Program, which: str
) -> None:
    if which in OF_PARTS and "NVIDIA" in context.devices[0].platform.name:
        pytest.skip(PARTS_CRASH)
    scene, plain = Scene(context, program), cl.CommandQueue(context)
    found = outcome(lambda: WRONG[which](plain, scene))
    plain.finish()
    assert (found[1] if len(found) > 1 else None) == refusal(context, which)


@pytest.mark.parametrize("which", sorted(DIFFERING - {*MAPPED}))
def test_a_wrong_call_that_a_driver_takes_is_not_refused_because_it_waits(
    context: cl.Context, program: cl.Program, which: str
) -> None:
    """The driver at hand may refuse it afterwards."""
    if which in OF_PARTS and "NVIDIA" in context.devices[0].platform.name:
        pytest.skip(PARTS_CRASH)
    scene, queue, gate = Scene(context, program), acs.Queue(context), cl.UserEvent(context)
    cl.enqueue_marker(queue, wait_for=[gate])
    with inside.everything_taken():
        found = outcome(lambda: WRONG[which](queue, scene))
    gate.set_status(COMPLETE)
    outcome(queue.finish)
    assert found == ("nothing",)


@pytest.mark.parametrize("which", SHARED)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_so_do_wrong_calls_on_shared_memory(
    context: cl.Context, program: cl.Program, options: dict[str, Any], which: str
) -> None:
    scene = Scene(context, program)
    one, half = (cl.SVM(cl.csvm_empty(context, n, np.int32)) for n in (N, N // 2))
    compare(acs.Queue(context, **options), lambda queue: SHARED[which](queue, one, half), scene)


def held(queue: acs.Queue, program: cl.Program, size: tuple[int, ...]) -> tuple[Any, ...]:
    """What comes of a launch in groups of four that is held when it is made."""
    scene, gate = Scene(queue.context, program), cl.UserEvent(queue.context)
    cl.enqueue_marker(queue, wait_for=[gate])
    found = outcome(lambda: scene.launch(queue, size, (4,)))
    gate.set_status(COMPLETE)
    return found


@pytest.mark.parametrize(
    ("how", "is_wrong"),
    [
        ("", True),
        ("-cl-std=CL1.2", True),
        ("-cl-std=CL3.0", False),
        ("linked", False),  # the driver tells how it was linked, not how it was compiled
    ],
)
def test_groups_differ_in_size_only_in_programs_that_may_have_such(
    context: cl.Context, how: str, is_wrong: bool
) -> None:
    """Intel's runtime takes such groups, and refuses them in other programs."""
    if how == "linked":
        program = cl.link_program(context, [cl.Program(context, SOURCE).compile()])
    else:
        program = cl.Program(context, SOURCE).build(how, cache_dir=False)
    queue = acs.Queue(context)
    with inside.uneven_groups():
        found = held(queue, program, (10,))
    refused = cl.LogicError, CODES.INVALID_WORK_GROUP_SIZE
    assert found[:2] == (refused if is_wrong else ("nothing",))
    outcome(queue.finish)  # the driver says what it takes


def test_groups_that_the_driver_does_not_name_are_for_it_to_refuse(
    context: cl.Context, program: cl.Program
) -> None:
    """Rusticl takes larger ones than it names as the largest of a kernel."""
    queue = acs.Queue(context)
    with inside.small_groups():
        found = held(queue, program, (16,))
    assert found[:2] == ("nothing",)
    queue.finish()


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_what_only_the_driver_knows_is_raised_by_one_finish(
    context: cl.Context, program: cl.Program, options: dict[str, Any]
) -> None:
    """A kernel without arguments: OpenCL does not tell which are set."""
    scene, queue = Scene(context, program), acs.Queue(context, **options)
    gate = cl.UserEvent(context)
    cl.enqueue_marker(queue, wait_for=[gate])
    event = cl.enqueue_nd_range_kernel(queue, cl.Kernel(program, "add"), (8,), None)
    gate.set_status(COMPLETE)
    with pytest.raises(cl.RuntimeError, match="INVALID_KERNEL_ARGS"):
        queue.finish()
    check_goes_on(queue, scene)
    for _ in range(2):
        with pytest.raises(cl.RuntimeError, match="INVALID_KERNEL_ARGS"):
            event.wait()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_queue_is_told_once_of_a_failed_event(
    context: cl.Context, program: cl.Program, options: dict[str, Any]
) -> None:
    scene, queue = Scene(context, program), acs.Queue(context, **options)
    beside = acs.Queue(context, runtime=queue.runtime)
    filled(beside, scene.z, np.int32(3), 0, 4 * N)
    queue.finish()
    gate = cl.UserEvent(context)
    scene.launch(queue, (8,), None, wait_for=[gate])
    copy(beside, scene.unread, scene.y, byte_count=64)
    gate.set_status(-5)
    for told in (queue, beside):
        with pytest.raises(cl.RuntimeError):
            told.finish()
        told.finish()
    copy(beside, scene.host, scene.z)
    assert scene.host.tolist() == [3] * N
    check_goes_on(queue, scene)


@pytest.mark.parametrize("of", ["buffer", "host"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_memory_that_no_transfer_wrote_lives_while_it_is_poisoned(
    context: cl.Context, options: dict[str, Any], of: str
) -> None:
    """Other memory would get its name, and count as lost."""
    queue = acs.Queue(context, **options)
    source = cl.Buffer(context, READ_WRITE, 4 * N)
    filled(queue, source, np.int32(3), 0, 4 * N)
    gate = cl.UserEvent(context)
    target: Any = cl.Buffer(context, READ_WRITE, 4 * N) if of == "buffer" else np.zeros(N, np.int32)
    name = target.int_ptr if of == "buffer" else 0
    event = cl.enqueue_copy(
        queue, target, source, wait_for=[gate], **{"is_blocking": False} if of == "host" else {}
    )
    gate.set_status(-5)
    with pytest.raises(cl.RuntimeError):
        event.wait()
    filled(queue, source, np.int32(3), 0, 4 * N).wait()
    lives = weakref.ref(target) if of == "host" else None
    del target, event
    gc.collect()
    if lives is not None:
        assert lives() is not None
        return
    others = [cl.Buffer(context, READ_WRITE, 4 * N) for _ in range(200)]
    assert name not in [one.int_ptr for one in others]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_command_of_unknown_reach_runs_whatever_was_lost(
    context: cl.Context, program: cl.Program, options: dict[str, Any]
) -> None:
    """On a plain queue it would run, too."""
    scene, queue = Scene(context, program), acs.Queue(context, **options)
    gate = cl.UserEvent(context)
    scene.launch(queue, (8,), None, wait_for=[gate])
    gate.set_status(-5)
    with pytest.raises(cl.RuntimeError):
        queue.finish()
    known = queue.not_understood.total()
    event = cl.enqueue_migrate_mem_objects(queue, [scene.z], 0)
    assert queue.not_understood.total() > known
    event.wait()
    assert event.command_execution_status == COMPLETE
    check_goes_on(queue, scene)


# ---- no work items -------------------------------------------------------------------------------

EMPTY = [((0,), None), ((0,), (4,)), ((8, 0), None), ((0, 8), (1, 1)), ((8, 0, 2), None)]

ON_A_QUEUE = """
import faulthandler
import numpy as np, pyopencl as cl
import acs_cl as acs
context = cl.create_some_context(interactive=False)
queue = acs.Queue(context, **{options})
source = "kernel void add(global int *y) {{ y[get_global_id(0)] += 1; }}"
kernel = cl.Program(context, source).build().add
y = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
host = np.zeros(16, np.int32)
cl.enqueue_copy(queue, y, host)
faulthandler.enable()  # PoCL's own handler for a division by zero is gone
for round in range(40):
    kernel(queue, (16,), None, y)
    for size in ([0], (0,), np.array([0]), (0, 4), (4, 0)):
        event = cl.enqueue_nd_range_kernel(queue, kernel, size, None)
        assert event.command_type == cl.command_type.NDRANGE_KERNEL
    cl.enqueue_nd_range_kernel(queue, kernel, (0,), (4,), allow_empty_ndrange=True)
    cl.enqueue_nd_range_kernel(queue, kernel, (0,), (4,), g_times_l=True)
    for local in ((0,), [0]):
        try:
            cl.enqueue_nd_range_kernel(queue, kernel, (16,), local)
        except cl.LogicError as error:
            assert error.code == cl.status_code.INVALID_WORK_GROUP_SIZE
        else:
            raise AssertionError(local)
queue.finish()
assert event.command_execution_status == 0
cl.enqueue_copy(queue, host, y)
print(host.tolist() == [40] * 16)
"""


@pytest.mark.parametrize(
    "options",
    [{}, *({"backend": one} for one in ("serial", "out_of_order", "lanes", "device", "emulated"))],
    ids=str,
)
def test_a_launch_without_work_items_is_none_whoever_handles_signals(
    device: cl.Device, options: dict[str, Any]
) -> None:
    """PoCL 3.0 divides by its local size of 0, and relies on its own handler of SIGFPE. A program
    that has another one, as pytest has, ended there."""
    if not takes_empty(device):
        pytest.skip("an error before OpenCL 2.1")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ON_A_QUEUE.format(options=options)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


@pytest.mark.parametrize("size", EMPTY, ids=str)
def test_a_launch_without_work_items_waits_for_its_events(
    context: cl.Context, program: cl.Program, size: tuple[Any, Any]
) -> None:
    if not takes_empty(context.devices[0]):
        pytest.skip("an error before OpenCL 2.1")
    scene, queue = Scene(context, program), acs.Queue(context)
    gate = cl.UserEvent(context)
    event = scene.launch(queue, *size, wait_for=[gate])
    assert event.command_execution_status > COMPLETE
    gate.set_status(COMPLETE)
    event.wait()
    assert event.command_execution_status == COMPLETE
    check_goes_on(queue, scene)


# ---- events --------------------------------------------------------------------------------------

COMMANDS: dict[str, Wrong] = {
    "kernel": lambda q, s: s.launch(q, (8,), None),
    "kernel, allowed to be empty": lambda q, s: s.launch(q, (0,), None, allow_empty_ndrange=True),
    "read": lambda q, s: read(q, s.host, s.y),
    "blocking read": lambda q, s: copy(q, s.host, s.y),
    "write": lambda q, s: write(q, s.y, s.host),
    "blocking write": lambda q, s: copy(q, s.y, s.host),
    "copy": lambda q, s: copy(q, s.z, s.y),
    "fill": lambda q, s: filled(q, s.y, np.int32(1), 0, 64),
    "read of a rectangle": lambda q, s: copy(q, s.host, s.y, **PLACES, region=(16, 4)),
    "write of a rectangle": lambda q, s: copy(q, s.y, s.host, **PLACES, region=(16, 4)),
    "copy of a rectangle": lambda q, s: copy(q, s.z, s.y, **BETWEEN, region=(16, 4)),
    "read of an image": lambda q, s: read(q, s.pixels, s.image, **PIXELS),
    "write of an image": lambda q, s: write(q, s.image, s.pixels, **PIXELS),
    "image to buffer": lambda q, s: copy(q, s.y, s.image, offset=0, **PIXELS),
    "buffer to image": lambda q, s: copy(q, s.image, s.y, offset=0, **PIXELS),
    "fill of an image": lambda q, s: cl.enqueue_fill_image(
        q, s.image, np.zeros(4, np.uint32), (0, 0), (8, 8)
    ),
    "map": lambda q, s: mapped(q, s.y, MAPS.READ)[1],
    "migration": lambda q, s: cl.enqueue_migrate_mem_objects(q, [s.y], 0),
    "marker": lambda q, s: cl.enqueue_marker(q),
    "barrier": lambda q, s: cl.enqueue_barrier(q),
}


def seen_of(event: cl.Event, queue: cl.CommandQueue, other: cl.CommandQueue) -> dict[str, object]:
    """Return what a program can see of an event."""
    told: list[int] = []
    has_told = threading.Event()
    event.set_callback(COMPLETE, lambda status: (told.append(status), has_told.set()))  # type: ignore[arg-type, func-returns-value]
    waiting = threading.Thread(target=event.wait)
    waiting.start()
    waiting.join(20)
    assert has_told.wait(20)
    again = cl.Event.from_int_ptr(event.int_ptr)
    return {
        "type": (event.command_type, event.get_info(cl.event_info.COMMAND_TYPE)),
        "status": (event.command_execution_status, told),
        "where": (event.context == queue.context, event.command_queue == queue),
        "references": event.reference_count > 0,
        "same": (event == again, again == event, event != again, hash(event) == hash(again)),
        "others": (event == 1, event != None),  # noqa: E711
        "times": outcome(lambda: event.profile.start)[:2],
        "no such time": outcome(lambda: event.get_profiling_info(0x9999)),  # type: ignore[call-overload]
        "no such fact": outcome(lambda: event.get_info(0x9999)),  # type: ignore[call-overload]
        "no such state": outcome(lambda: event.set_callback(7, print)),  # type: ignore[arg-type]
        "followed": cl.enqueue_marker(other, wait_for=[event]).wait(),
    }


@pytest.mark.parametrize("which", COMMANDS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("properties", [0, cl.command_queue_properties.PROFILING_ENABLE])
def test_an_event_shows_what_that_of_a_plain_queue_shows(
    context: cl.Context, program: cl.Program, options: dict[str, Any], properties: int, which: str
) -> None:
    if properties and options.get("backend") == "emulated":
        pytest.skip("the emulator has no times of the device")
    scene, other = Scene(context, program), cl.CommandQueue(context)
    queues = (
        acs.Queue(context, properties=properties, **options),  # type: ignore[arg-type]
        cl.CommandQueue(context, properties=properties),  # type: ignore[arg-type]
    )
    ours, theirs = (seen_of(COMMANDS[which](one, scene), one, other) for one in queues)
    assert ours == theirs
