"""Kernels with images: arrays beside them have ranges, and sizes of images are known numbers."""

from __future__ import annotations

from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from test_affine import elements, of

import acs_cl as acs
from acs_cl.access.binder import binder, names
from acs_cl.access.inference import from_source
from tests.test_queue import READ_WRITE, buffer, edges, values_of

HELPERS = """
int area(read_only image2d_t z) { return get_image_width(z) * get_image_height(z); }
int2 turned(read_only image2d_t z) { return get_image_dim(z).yx; }
int deep(read_only image2d_t z, int n) { return n + area(z); }
int get_image_widths(int n) { return n; }
"""
SIZES = {"z.width": 5, "z.height": 3, "z.depth": 4, "z.layers": 6, "t.width": 7, "t.height": 2}
"""Of each image, whatever its type."""

BODIES: list[tuple[str, str, list[int]]] = [
    ("image2d_t", "x[get_image_width(z)] = 1;", [5]),
    ("image2d_t", "int w = get_image_width(z), h = get_image_height(z); x[w * h] = 1;", [15]),
    ("image2d_t", "for (int k = 0; k < get_image_height(z); k++) x[k * 4] = 1;", [0, 4, 8]),
    ("image2d_t", "if (get_global_id(0) < get_image_width(z)) x[get_global_id(0)] = 1;",
     list(range(5))),
    ("image2d_t", "int2 d = get_image_dim(z); x[d.x * 2 + d.y] = 1;", [13]),
    ("image2d_t", "x[area(z)] = 1; x[deep(z, 1)] = 1;", [15, 16]),
    ("image2d_t", "x[turned(z).x] = 1;", [3]),
    ("image2d_t", "x[get_image_width(z) - get_image_width(t) + 2] = 1;", [0]),
    ("image2d_t", "x[area(z) - area(t)] = 1;", [1]),
    ("image2d_t", "#define W get_image_width\n x[W(z)] = 1;", [5]),
    ("image2d_t", "x[(uchar)(get_image_width(z) - 6) - 250] = 1;", [5]),
    ("image2d_t", "uint u = get_image_width(z) - 6u; x[u > 100 ? 7 : 8] = 1;", [7]),
    ("image3d_t", "int4 d = get_image_dim(z); x[d.x + d.y + d.z + d.w] = 1;", [12]),
    ("image3d_t", "x[get_image_depth(z)] = 1;", [4]),
    ("image1d_t", "x[get_image_width(z)] = 1;", [5]),
    ("image1d_buffer_t", "x[get_image_width(z)] = 1;", [5]),
    ("image1d_array_t", "x[get_image_array_size(z) - get_image_width(z)] = 1;", [1]),
    ("image2d_array_t", "int2 d = get_image_dim(z); x[get_image_array_size(z) + d.y] = 1;", [9]),
    # what is no size of an image
    ("image2d_t", "x[get_image_widths(9)] = 1;", [9]),
    ("image2d_t", "x[get_image_channel_order(z) & 63] = 1;", list(range(64))),
    ("image2d_t", "x[get_image_channel_data_type(z) & 63] = 1;", list(range(64))),
    ("image2d_t", "x[read_imagei(z, s, (int2)(0)).x & 63] = 1;", list(range(64))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "expected"), BODIES)
def test_sizes_are_numbers_of_a_launch(kind: str, body: str, expected: list[int]) -> None:
    source = f"""{HELPERS} kernel void k(read_only {kind} z, global int *x, sampler_t s,
        read_only image2d_t t) {{
        {body} }}"""
    signature = from_source(source, "k", ["-cl-std=CL1.2"], None)
    assert signature.outline is not None, signature.unclear
    found = of(signature, (8,), None, None, SIZES)
    assert elements(found["x"].writes, 4, 64) == set(expected)
    made = binder(signature)
    assert set(names(signature, made.numbers)) <= SIZES.keys()
    assert [code for *_, code in made.numbers] == ["i"] * len(made.numbers)


def test_a_function_of_that_name_is_no_size() -> None:
    source = """int __attribute__((overloadable)) get_image_width(int n) { return n + 1; }
        kernel void k(read_only image2d_t z, global int *x)
        { x[get_image_width(2)] = 1; }"""
    signature = from_source(source, "k", None, None)
    found = of(signature, (1,), None, None, SIZES)
    assert elements(found["x"].writes, 4, 64) == {3}


SOURCE = """
constant sampler_t exactly = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_NEAREST;
kernel void load(read_only image2d_t image, global int *y, int row)
{
    int i = get_global_id(0), w = get_image_width(image);
    if (i < w) y[row * w + i] += read_imagei(image, exactly, (int2)(i, row)).x;
}
kernel void draw(write_only image2d_t image, global const int *x, local int *some, int row)
{
    int i = get_global_id(0);
    some[0] = 0;
    write_imagei(image, (int2)(i, row), (int4)(x[8 * row + i]));
}
kernel void shift(global int *y, global const int *x, local int *some, int from)
{
    int l = get_local_id(0);
    some[l] = x[from + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[from + get_global_id(0)] += some[l] + some[0];
}
kernel void sampled(global int *y, sampler_t near, int from)
{ y[from + get_global_id(0)] += 1; }
"""


def image_of(context: cl.Context, width: int, height: int, first: int = 0) -> Any:
    device = context.devices[0]
    if not device.image_support:
        pytest.skip(f"{device.name} has no images")
    pixels = np.zeros((height, width, 4), "i4")
    pixels[..., 0] = first + np.arange(width * height).reshape(height, width)
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.SIGNED_INT32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.create_image(context, flags, form, shape=(width, height), hostbuf=pixels)


def test_launches_by_rows_are_independent(rt: acs.Runtime) -> None:
    small, large = image_of(rt.context, 4, 4), image_of(rt.context, 8, 4, 100)
    program, y = rt.build(SOURCE), rt.zeros(32, "i4")
    handles = [program.load((8,), None, small, y, row) for row in range(4)]
    for row, handle in enumerate(handles):
        of_array = [one for one in handle.access.reads if one.base > 0]
        assert [(one.start, one.nbytes) for one in of_array] == [(16 * row, 16)]
        assert [(one.start, one.nbytes) for one in handle.access.writes] == [(16 * row, 16)]
        (of_image,) = [one for one in handle.access.reads if one not in of_array]
        assert of_image.nbytes >= small.size
    assert "image.width = 4" in str(rt.explain(handles[0]))
    assert not rt.explain(handles[0], handles[1]).ordered
    other = program.load((8,), None, large, y, 1)  # the same numbers, and another image
    assert [(one.start, one.nbytes) for one in other.access.writes] == [(32, 32)]
    assert rt.explain(handles[2], other).ordered
    want = np.zeros(32, int)
    want[:16] = np.arange(16)
    want[8:16] += 108 + np.arange(8)
    assert y.get().tolist() == want.tolist()


def test_an_image_that_is_written_stays_whole(rt: acs.Runtime) -> None:
    image, x = image_of(rt.context, 8, 4), rt.array(range(32), "i4")
    program, y = rt.build(SOURCE), rt.zeros(32, "i4")
    for row in range(4):
        drawn = program.draw((8,), None, image, x, cl.LocalMemory(4), row)
        (read,) = drawn.access.reads
        assert (read.start, read.nbytes) == (32 * row, 32)
        seen = program.load((8,), None, image, y, row)
        assert rt.explain(drawn, seen).ordered
    assert y.get().tolist() == list(range(32))


def test_parts_of_a_launch_do_not_share_an_image(context: cl.Context) -> None:
    with acs.Runtime(context=context, backend="lanes") as rt:
        image, y = image_of(rt.context, 32, 1), rt.zeros(32, "i4")
        handle = rt.build(SOURCE).load((32,), (8,), image, y, 0, bands=4)
        assert "it is an image" in handle.bands
        assert y.get().tolist() == list(range(32))


@pytest.mark.parametrize("is_by_core", [True, False])
@pytest.mark.usefixtures("without_bypass")
def test_commands_of_a_queue_with_images(context: cl.Context, is_by_core: bool) -> None:
    """The core knows the sizes of the image that each launch has."""
    images = [image_of(context, 4, 4), image_of(context, 8, 4, 100)]
    kernel = cl.Program(context, SOURCE).build().load
    queue = acs.Queue(context, backend="lanes", lanes=4)
    if not is_by_core:
        inside.plan_every_command(queue)
    y = cl.Buffer(context, READ_WRITE, 128)
    cl.enqueue_fill_buffer(queue, y, np.int32(0), 0, 128)
    for image in images:  # sizes and numbers that the plan does not know yet
        kernel(queue, (8,), None, image, y, np.int32(0))
    queue.finish()
    with inside.held_by_driver(queue.runtime):
        before = edges(queue)
        for row in range(1, 4):
            kernel(queue, (8,), None, images[0], y, np.int32(row))
        apart = edges(queue)
        kernel(queue, (8,), None, images[1], y, np.int32(1))  # meets the last two
        after = edges(queue)
    assert apart == before
    assert after > apart
    want = np.zeros(32, int)
    want[:16] = np.arange(16)
    want[:16] += [100 + at for at in range(16)]
    assert values_of(queue, y, 32).tolist() == want.tolist()


@pytest.mark.parametrize("name", ["shift", "sampled"])
@pytest.mark.usefixtures("without_bypass")
def test_what_is_no_memory_does_not_widen_a_launch(context: cl.Context, name: str) -> None:
    """Local memory and samplers, on a queue whose launches the core makes."""
    queue = acs.Queue(context, backend="lanes", lanes=4)
    kernel = getattr(cl.Program(context, SOURCE).build(), name)
    y, x = buffer(queue, np.zeros(64)), buffer(queue, np.arange(64))
    if name == "shift":
        more: tuple[Any, ...] = (x, cl.LocalMemory(32))
    elif context.devices[0].image_support:
        more = (cl.Sampler(context, False, cl.addressing_mode.CLAMP, cl.filter_mode.NEAREST),)
    else:
        pytest.skip("no samplers")
    for _ in range(3):
        kernel(queue, (8,), (8,), y, *more, np.int32(0))
    queue.finish()
    with inside.held_by_driver(queue.runtime):
        before = edges(queue)
        for at in range(1, 8):
            kernel(queue, (8,), (8,), y, *more, np.int32(8 * at))
        apart = edges(queue)
        kernel(queue, (8,), (8,), y, *more, np.int32(12))
        after = edges(queue)
    assert apart == before
    assert after == apart + 2
