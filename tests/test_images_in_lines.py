"""Images of one dimension, arrays of them, and images over a buffer: with launches, on queues, and
under checks. What a program would see on a plain queue is the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import _cl

import acs_cl as acs

N, LAYERS = 64, 4
KINDS = {
    "line": (cl.mem_object_type.IMAGE1D, "image1d_t", "x", 1),
    "lines": (cl.mem_object_type.IMAGE1D_ARRAY, "image1d_array_t", "(int2)(x, l)", LAYERS),
    "over a buffer": (cl.mem_object_type.IMAGE1D_BUFFER, "image1d_buffer_t", "x", 1),
}
SOURCE = """
kernel void draw(write_only %(type)s image, uint a)
{ int x = get_global_id(0), l = get_global_id(1);
  write_imageui(image, %(at)s, (uint4)(x * a + 1000 * l, 0, 0, 1)); }
kernel void look(read_only %(type)s image, global uint *y)
{ int x = get_global_id(0), l = get_global_id(1);
  y[l * get_global_size(0) + x] = read_imageui(image, %(at)s).x + 1; }
kernel void twice(global uint *y) { y[get_global_id(0)] *= 2; }
"""
READ_WRITE = cl.mem_flags.READ_WRITE
FORMAT = cl.ImageFormat(cl.channel_order.R, cl.channel_type.UNSIGNED_INT32)
WHERE = [(backend, None) for backend in ("serial", "out_of_order", "lanes", "device")]
CHECKED = [("lanes", check) for check in ("access", "order=3", "uninitialised")]


class Line:
    """An image of a kind, and the buffer below it, if there is one."""

    def __init__(self, context: cl.Context, kind: str) -> None:
        what, _, _, self.layers = KINDS[kind]
        self.size = (N, self.layers)
        self.buffer: cl.Buffer | None = None
        description: Any = cl.ImageDescriptor()
        description.image_type, description.shape = what, (N, 0, 0)
        description.pitches, description.buffer = (0, 0), None
        description.num_mip_levels = description.num_samples = 0
        description.array_size = self.layers if self.layers > 1 else 0
        if kind == "over a buffer":
            self.buffer = cl.Buffer(context, READ_WRITE, 4 * N)
            description.buffer = self.buffer
        self.image = cl.Image(context, READ_WRITE, FORMAT, desc=description)

    def drawn(self, a: int) -> Any:
        """What `draw` leaves there."""
        lines = [np.arange(N, dtype=np.uint32) * a + 1000 * at for at in range(self.layers)]
        return np.concatenate(lines)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, context: cl.Context) -> str:
    """A kind of image that the driver has."""
    found: str = request.param
    platform = context.devices[0].platform
    if found == "over a buffer" and platform.version.startswith("OpenCL 3.0 PoCL 3.0"):
        pytest.skip("PoCL 3.0 crashes when a kernel gets an image over a buffer, on any queue")
    return found


def enqueue(name: str, *args: object) -> None:
    """Call a function that `cl.enqueue_copy` calls for images of two dimensions only."""
    vars(_cl)[f"_enqueue_{name}"](*args)


def text(kind: str) -> str:
    _, type_, at, _ = KINDS[kind]
    return SOURCE % {"type": type_, "at": at}


@pytest.mark.parametrize(("backend", "check"), [*WHERE, *CHECKED])
def test_launches_meet_in_lines(
    request: pytest.FixtureRequest, context: cl.Context, kind: str, backend: str, check: str | None
) -> None:
    if backend == "device":
        request.getfixturevalue("scheduler")
    line = Line(context, kind)
    with acs.Runtime(context=context, backend=backend, check=check) as rt:
        program, y = rt.build(text(kind)), rt.zeros(N * line.layers, "u4")
        for a in (3, 5, 7):
            program.draw(line.size, None, line.image, np.uint32(a))
            if line.buffer is not None:
                program.twice((N,), None, line.buffer)
            program.look(line.size, None, line.image, y)
            wanted = line.drawn(a) * (1 if line.buffer is None else 2) + 1
            assert np.array_equal(y.get(), wanted)


QUEUES: dict[str, Any] = {
    "plain": None, "as it comes": {}, "tracked": {"bypass": False}, "checked": {"check": "access"},
}  # fmt: skip


@pytest.mark.parametrize("options", QUEUES.values(), ids=QUEUES)
def test_commands_on_queues_meet_in_lines(
    context: cl.Context, kind: str, options: dict[str, Any] | None
) -> None:
    queue = cl.CommandQueue(context) if options is None else acs.Queue(context, **options)
    program = cl.Program(context, text(kind)).build(cache_dir=False)
    line, other = Line(context, kind), Line(context, kind)
    draw, look = program.draw, program.look
    size, region, many = line.size, (N, line.layers, 1), N * line.layers
    origin = (0, 0, 0)
    y, host = cl.Buffer(context, READ_WRITE, 4 * many), np.empty(many, np.uint32)

    def read(image: cl.Image) -> Any:
        enqueue("read_image", queue, image, origin, region, host, 0, 0, None, True)
        return host.tolist()

    for a in (3, 5, 7):
        draw(queue, size, None, line.image, np.uint32(a))
        look(queue, size, None, line.image, y)
        cl.enqueue_copy(queue, host, y)
        assert host.tolist() == (line.drawn(a) + 1).tolist()
    assert read(line.image) == line.drawn(7).tolist()
    values = np.arange(many, dtype=np.uint32) * 9
    enqueue("write_image", queue, line.image, origin, region, values, 0, 0, None, True)
    look(queue, size, None, line.image, y)
    cl.enqueue_copy(queue, host, y)
    assert host.tolist() == (values + 1).tolist()
    cl.enqueue_fill_image(queue, line.image, np.array([7, 0, 0, 0], np.uint32), origin, region)
    assert read(line.image) == [7] * many
    if line.buffer is None:  # an image over a buffer is copied by that
        enqueue("copy_image", queue, line.image, other.image, origin, origin, region)
        assert read(other.image) == [7] * many
    if line.layers > 1 and "NVIDIA" in context.devices[0].platform.vendor:
        return  # a plain queue refuses such a copy: INVALID_VALUE
    enqueue("copy_buffer_to_image", queue, y, line.image, 0, origin, region)
    assert read(line.image) == (values + 1).tolist()
    cl.enqueue_fill_buffer(queue, y, np.uint32(0), 0, 4 * many)
    enqueue("copy_image_to_buffer", queue, line.image, y, origin, region, 0)
    cl.enqueue_copy(queue, host, y)
    assert host.tolist() == (values + 1).tolist()
    both: Any = cl.map_flags.READ | cl.map_flags.WRITE
    shape = (line.layers, N) if line.layers > 1 else (N,)
    mapped: Any = cl.enqueue_map_image(
        queue, line.image, both, origin, region, shape, np.dtype(np.uint32)
    )[0]
    assert mapped.ravel().tolist() == (values + 1).tolist()
    mapped[...] += 1
    mapped.base.release(queue)
    assert read(line.image) == (values + 2).tolist()
    queue.finish()
