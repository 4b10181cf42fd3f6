"""Wrong calls: a clear error at the user's line, and nothing lost."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import testing
from acs_cl.configuration import NAMES
from acs_cl.errors import (
    BuildError,
    CheckWarning,
    OutOfMemory,
)

SOURCE = """
kernel void add(global const int *x, global int *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] += x[i]; }
kernel void local_sum(global int *x, local int *scratch)
{ int i = get_local_id(0); scratch[i] = x[i]; barrier(CLK_LOCAL_MEM_FENCE);
  x[i] += scratch[get_local_size(0) - 1 - i]; }
kernel void look(read_only image2d_t picture, sampler_t how, global float4 *x)
{ x[0] = read_imagef(picture, how, (int2)(0, 0)); }
kernel __attribute__((reqd_work_group_size(8, 1, 1))) void fixed(global int *x)
{ x[get_global_id(0)] = 1; }
kernel __attribute__((reqd_work_group_size(4, 4, 1))) void flat(global int *x)
{ x[get_global_id(0)] = 1; }
kernel void third(global int *x, float3 v) { x[0] = v.x; }
kernel void real(global int *x, float v) { x[0] = v; }
"""


@pytest.fixture
def setting(device: cl.Device) -> Any:
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        x = rt.array(np.arange(16, dtype="i4"))
        y = rt.zeros(16, "i4")
        yield rt, program, x, y


Bad = Callable[[acs.Runtime, acs.Program, acs.Array, acs.Array], object]


def picture(runtime: acs.Runtime) -> cl.Image:
    """An image of one point."""
    return cl.image_from_array(runtime.context, np.zeros((1, 1, 4), "f4"), 4)


def sampler(runtime: acs.Runtime) -> cl.Sampler:
    """Any sampler."""
    return cl.Sampler(runtime.context, False, cl.addressing_mode.CLAMP, cl.filter_mode.NEAREST)


def yields(values: Any) -> Any:
    """No host task."""
    yield values.fill(1)


async def later(values: Any) -> None:
    """No host task either."""
    values.fill(1)


def recorded(runtime: acs.Runtime, x: acs.Array) -> acs.Graph:
    """A graph of one launch."""
    with runtime.record() as graph:
        x.fill(1)
    return graph


def explained_elsewhere(runtime: acs.Runtime, x: acs.Array) -> object:
    """What another runtime says of a launch."""
    with acs.Runtime(runtime.device) as other:
        return other.explain(other.zeros(4).fill(2), x[:0].fill(1))


def launched_elsewhere(runtime: acs.Runtime, kernel: Any, *arrays: acs.Array) -> object:
    """Launch a kernel in another runtime of the same context."""
    with acs.Runtime(context=runtime.context) as other:
        return other.launch(kernel, (16,), None, *arrays, 16)


def measured(runtime: acs.Runtime) -> Any:
    """A measurement of one launch."""
    with runtime.measure() as block:
        runtime.zeros(4)
    return block


BAD_CALLS: dict[str, tuple[Bad, str]] = {
    "a report to a number": (
        lambda rt, p, x, y: measured(rt).report(3),
        r"the report goes to a path, got int 3$",
    ),
    "a graph of launches to a number": (
        lambda rt, p, x, y: measured(rt).dag(3),
        r"the graph goes to a path, got int 3$",
    ),
    "a timeline to a number": (
        lambda rt, p, x, y: measured(rt).save(3),
        r"the timeline goes to a path, got int 3$",
    ),
    "too few arguments": (lambda rt, p, x, y: p.add((16,), None, x, y), r"got 2 .* expected 3"),
    "too many arguments": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, 2),
        r"got 4 .* expected 3",
    ),
    "a float for an int": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1.5),
        r"argument 2 \(int n\)",
    ),
    "an int that does not fit": (lambda rt, p, x, y: p.add((16,), None, x, y, 2**40), r"int n"),
    "a NumPy array": (
        lambda rt, p, x, y: p.add((16,), None, np.zeros(4), y, 1),
        r"argument 0 .*rt\.array",
    ),
    "a number for a pointer": (lambda rt, p, x, y: p.add((16,), None, 3, y, 1), r"argument 0"),
    "an array for a number": (lambda rt, p, x, y: p.add((16,), None, x, y, x), r"argument 2"),
    "a number for local memory": (
        lambda rt, p, x, y: p.local_sum((16,), None, x, 64),
        r"LocalMemory",
    ),
    "an array for local memory": (
        lambda rt, p, x, y: p.local_sum((16,), None, x, y),
        r"argument 1 .* expected pyopencl\.LocalMemory",
    ),
    "an array for an image": (
        lambda rt, p, x, y: p.look((1,), None, x, sampler(rt), y),
        r"argument 0 \(image2d_t picture\): got acs_cl.*, expected a pyopencl\.Image$",
    ),
    "an image for an array": (
        lambda rt, p, x, y: p.add((1,), None, picture(rt), y, 1),
        r"argument 0 .*: got .*Image.*, expected an array, a view or a buffer$",
    ),
    "an array for a sampler": (
        lambda rt, p, x, y: p.look((1,), None, picture(rt), x, y),
        r"argument 1 \(sampler_t how\): got acs_cl.*, expected a pyopencl\.Sampler$",
    ),
    "an offset below 0": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, offset=(-1,)),
        r"launch \d+ of kernel 'add': offset \(-1,\): each number is at least 0",
    ),
    "explaining a number": (lambda rt, p, x, y: rt.explain(3), r"explain takes .* got int 3$"),
    "explaining two, one a number": (
        lambda rt, p, x, y: rt.explain(p.add((16,), None, x, y, 0), 3),
        r"explain takes .* got int \d+$",
    ),
    "a global size of text": (lambda rt, p, x, y: p.add("16", None, x, y, 1), r"global_size"),
    "a global size of 0": (
        lambda rt, p, x, y: p.add((0,), None, x, y, 1),
        r"launch \d+ of kernel 'add': global size \(0,\): every length is at least 1",
    ),
    "a second length of 0": (lambda rt, p, x, y: p.add([4, 0], None, x, y, 1), r"\(4, 0\): every"),
    "a negative global size": (
        lambda rt, p, x, y: p.add((-1,), None, x, y, 1),
        r"launch \d+ of kernel 'add': global size \(-1,\): every length is at least 1",
    ),
    "a length that is a fraction": (
        lambda rt, p, x, y: p.add((16.0,), None, x, y, 1),
        r"global size \(16\.0,\): every length is an integer, got float 16\.0",
    ),
    "a length that is several": (
        lambda rt, p, x, y: p.add((np.array([4, 4]),), None, x, y, 1),
        r"every length is an integer",
    ),
    "a count before a 0": (
        lambda rt, p, x, y: p.add((acs.size(y[:1], upto=4), 0), None, x, y, 1),
        r"every length is at least 1",
    ),
    "a count as second length": (
        lambda rt, p, x, y: p.add((4, acs.size(y[:1], upto=4)), None, x, y, 1),
        r"only the first length of a global size can be acs\.size",
    ),
    "a count as local size": (
        lambda rt, p, x, y: p.add((4,), (acs.size(y[:1], upto=4),), x, y, 1),
        r"only the first length of a global size can be acs\.size",
    ),
    "a local size of 0": (
        lambda rt, p, x, y: p.add((16,), (0,), x, y, 1),
        r"launch \d+ of kernel 'add': local size \(0,\): every length is at least 1",
    ),
    "one of many sizes that is 0": (
        lambda rt, p, x, y: p.local_sum.launch_many([0], None, x, cl.LocalMemory(64)),
        r"kernel 'local_sum': global size \(0,\)",
    ),
    "a group size that does not fit": (
        lambda rt, p, x, y: p.add((16,), (5,), x, y, 1),
        r"launch \d+ of kernel 'add': global size \(16,\) is not a multiple of local size \(5,\)",
    ),
    "writes= through const": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, writes=[x]),
        r"argument 0 .*const",
    ),
    "reads= of a number": (lambda rt, p, x, y: p.add((16,), None, x, y, 1, reads=[3]), r"reads="),
    "wait_for= of a number": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, wait_for=[3]),
        r"Event",
    ),
    "an unknown keyword": (
        lambda rt, p, x, y: p.local_sum((16,), None, x, colour=3),
        r"no keyword colour; there are reads, writes, wait_for, offset, when, bands, spawn$",
    ),
    "a keyword misspelled": (
        lambda rt, p, x, y: p.local_sum((16,), None, x, band=3),
        r"no keyword band; did you mean 'bands'\?$",
    ),
    "an unknown parameter": (lambda rt, p, x, y: p.add.access(z="r"), r"no parameter 'z'"),
    "a declared write of const": (lambda rt, p, x, y: p.add.access(x="w"), r"const"),
    "a declaration that is none": (lambda rt, p, x, y: p.add.access(y="w[gid"), r"parameter 'y'"),
    "a slice out of bounds": (lambda rt, p, x, y: x[4:17], r"out of bounds"),
    "an index out of bounds": (lambda rt, p, x, y: x[16], r"out of bounds"),
    "too many indices": (lambda rt, p, x, y: x[1, 2], r"2 indices"),
    "a mask of one value": (lambda rt, p, x, y: x[np.array(True)], r"no masks or lists"),
    "an index list": (lambda rt, p, x, y: x[[1, 2]], r"no masks or lists"),
    "a shape that does not fit": (lambda rt, p, x, y: x.reshape(3, 5), r"cannot become"),
    "a shape of fractions": (lambda rt, p, x, y: x.reshape(4.0, 4), r"shape \(4\.0, 4\): expected"),
    "values that do not fit": (lambda rt, p, x, y: x.set(np.zeros(5, "i4")), r"do not fit"),
    "values of another kind": (lambda rt, p, x, y: x.set(np.zeros(16, "c8")), r"complex64"),
    "get into another shape": (
        lambda rt, p, x, y: x.get(out=np.zeros(3, "i4")),
        r"expected \(16,\)",
    ),
    "copy from NumPy": (
        lambda rt, p, x, y: x.copy_from(np.zeros(16)),
        r"copy_from takes an array of this runtime, got numpy.*; set\(\) takes values of the host$",
    ),
    "copy of another shape": (lambda rt, p, x, y: x.copy_from(y[:4]), r"got \(4,\)"),
    "a host task that is none": (lambda rt, p, x, y: rt.call(3), r"callable"),
    "a host task that yields": (lambda rt, p, x, y: rt.call(yields, writes=y), r"plain function"),
    "an async host task": (lambda rt, p, x, y: rt.call(later, writes=y), r"'later'.* is async"),
    "a fill with many values": (lambda rt, p, x, y: x.fill(np.arange(4, dtype="i4")), "not one"),
    "a declaration by a number": (lambda rt, p, x, y: p.add.access(y=4), r"got int 4, expected"),
    "one event": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, wait_for=cl.UserEvent(rt.context)),
        r"wait_for= takes a list of pyopencl\.Event objects, got pyopencl",
    ),
    "one handle to wait for": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, wait_for=x.copy_from(x)),
        r"takes a list of .* leave it out",
    ),
    "a macro that is a list": (
        lambda rt, p, x, y: rt.build(SOURCE, macros={"N": [1]}),
        r"macros=\{'N': …\}: expected text, a number, or None for a macro .*; got list \[1\]$",
    ),
    "other elements in a view with gaps": (
        lambda rt, p, x, y: x[::2].view("u1"),
        r"cannot be seen as uint8: its elements lie apart; view the whole array",
    ),
    "other elements that do not fill the last axis": (
        lambda rt, p, x, y: x[:3].view("i8"),
        r"cannot be seen as int64: its last axis has 12 bytes, and an element 8$",
    ),
    "other elements without an axis": (
        lambda rt, p, x, y: x[0].view("i2"),
        r"cannot be seen as int16: it has no axis that could become longer; reshape\(1\) gives",
    ),
    "a view with gaps in another shape": (
        lambda rt, p, x, y: x[::2].reshape(2, 4),
        r"cannot be reshaped in place; .* copy_from\(\) the view into an array of its own$",
    ),
    "a shape of other elements": (
        lambda rt, p, x, y: x.reshape(3, 5),
        r"shape \(16,\), of 16 elements, cannot become \(3, 5\)$",
    ),
    "macros in a list": (
        lambda rt, p, x, y: rt.build(SOURCE, macros=["N=1"]),  # type: ignore[arg-type]
        r"macros=\['N=1'\]: expected a mapping",
    ),
    "a queue of no runtime": (
        lambda rt, p, x, y: acs.Queue(rt.context, runtime=rt.context),  # type: ignore[arg-type]
        r"runtime= takes an acs_cl\.Runtime, got pyopencl",
    ),
    "a dtype of objects": (lambda rt, p, x, y: rt.empty(3, object), r"objects"),
    "a file that is not there": (lambda rt, p, x, y: rt.build("nowhere.cl"), r"nowhere\.cl"),
    "a kernel of another library's sizes": (
        lambda rt, p, x, y: p.add[16, 4](x, y, 16),
        r"kernel 'add': sizes are the first arguments of a call: kernel\(global_size, local_size",
    ),
    "arguments in a tuple": (
        lambda rt, p, x, y: p.add((4,), (4,), (x, y, 16)),
        r"got 1 arguments, expected 3 .*; they come one by one",
    ),
    "the runtime first": (
        lambda rt, p, x, y: p.add(rt, (16,), None, x, y, 16),
        r"a launch takes no runtime: leave it out",
    ),
    "an offset of text": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 16, offset="a"),
        r"offset takes one to three integers, got str 'a'$",
    ),
    "reads= of values": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 16, reads=np.zeros(16)),
        r"reads= takes arrays, views and buffers, got numpy\.ndarray of shape \(16,\)",
    ),
    "reads= by name": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 16, reads={"x": x}),
        r"reads= takes arrays, views and buffers, got dict",
    ),
    "an argument that is freed": (
        lambda rt, p, x, y: (z := rt.zeros(4), z.free(), p.add((4,), None, z, y, 4)),
        r"argument 0 .*: its memory was given back by free\(\); make another array",
    ),
    "a size that required groups do not divide": (
        lambda rt, p, x, y: p.fixed((12,), None, x),
        r"global size \(12,\) is not a multiple of local size \(8,\), which the kernel requires",
    ),
    "fewer sizes than required groups have": (
        lambda rt, p, x, y: p.flat((16,), None, x),
        r"global size \(16,\) is too short: the kernel requires local size \(4, 4, 1\)",
    ),
    "another local size than the required one": (
        lambda rt, p, x, y: p.flat((8, 8), (8, 8), x),
        r"local size \(8, 8\): the kernel requires \(4, 4, 1\)",
    ),
    "local memory of no bytes": (
        lambda rt, p, x, y: p.local_sum((16,), (16,), x, cl.LocalMemory(0)),
        r"argument 1 .*: local memory of 0 bytes, give it 1 at least",
    ),
    "local memory of no bytes, behind a call with some": (
        lambda rt, p, x, y: [
            p.local_sum((16,), (16,), rt.zeros(16, "i4"), cl.LocalMemory(n)) for n in (64, 64, 0)
        ],
        r"local memory of 0 bytes, give it 1 at least",
    ),
    "three floats for a float3": (
        lambda rt, p, x, y: p.third((1,), None, x, np.zeros(3, "f4")),
        r"12 bytes instead of 16; it has the bytes of four",
    ),
    "a whole float for an integer": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 3.0),
        r"got float 3\.0, .* it takes whole numbers from .*; int\(…\) makes one of a float$",
    ),
    "a float too large": (
        lambda rt, p, x, y: p.real((1,), None, x, 1e300),
        r"got float 1e\+300, expected a value of type float: it takes numbers up to 3\.4e\+38$",
    ),
    "text for a number": (
        lambda rt, p, x, y: p.add((16,), None, x, y, "16"),
        r"got str '16', .* it takes whole numbers from -2147483648 to 2147483647$",
    ),
    "ranges by text": (
        lambda rt, p, x, y: setattr(p.add, "infer_ranges", "off"),
        r"infer_ranges='off': expected True, False or None",
    ),
    "text as values": (lambda rt, p, x, y: rt.array("abc"), r"dtype <U3: OpenCL C has no text"),
    "bytes in the other order": (
        lambda rt, p, x, y: rt.array(np.zeros(4, ">f4")),
        r"dtype '>f4': a kernel would read its bytes in the wrong order",
    ),
    "a dtype in the other order": (
        lambda rt, p, x, y: rt.zeros(4, ">f4"),
        r"dtype '>f4': .* in the wrong order; name 'f4', or convert the values first",
    ),
    "integers that no dtype holds": (
        lambda rt, p, x, y: rt.array([1 << 63, -1]),  # NumPy makes floats of them
        r"integers from -1 to 9223372036854775808 do not fit int64; name a dtype: one of floats",
    ),
    "integers that one dtype holds": (
        lambda rt, p, x, y: rt.array([1 << 63, 1]),
        r"integers from 1 to 9223372036854775808 do not fit int64; name a dtype: 'u8'",
    ),
    "an integer that no dtype holds": (
        lambda rt, p, x, y: rt.array([[1 << 70]]),
        rf"integers from {1 << 70} to {1 << 70} do not fit int64",
    ),
    "a program of PyOpenCL's to build": (
        lambda rt, p, x, y: rt.build(cl.Program(rt.context, "kernel void f() {}")),  # type: ignore[arg-type]
        r"build takes OpenCL C as text, or a path; got Program; rt\.launch takes its kernels",
    ),
    "rows of several lengths": (
        lambda rt, p, x, y: rt.array([[1, 2], [3]]),
        r"no values for an array: list .*",
    ),
    "rows of several lengths to set": (
        lambda rt, p, x, y: x.set([[1, 2], [3]]),
        r"no values for an array: list ",
    ),
    "values out of range": (
        lambda rt, p, x, y: rt.array([300], "u1"),
        r"value 300 does not fit uint8, which holds 0 to 255",
    ),
    "a fraction in a new array": (
        lambda rt, p, x, y: rt.array([1.5], "i4"),
        r"values of dtype float64 cannot become int32 safely; convert them first",
    ),
    "a fraction to set": (
        lambda rt, p, x, y: x[:1].set([1.5]),
        r"values of dtype float64 cannot become int32 safely; convert them first",
    ),
    "a number too large in a new array": (
        lambda rt, p, x, y: rt.array([1e300], "f4"),
        r"a value of dtype float64 is too large for float32",
    ),
    "a number too large in a new array without a dtype": (
        lambda rt, p, x, y: rt.array([1e300]),
        r"a value of dtype float64 is too large for float32",
    ),
    "more digits than 64 bits": (
        lambda rt, p, x, y: rt.array([1 << 80], "i8"),
        r"no values for an array: list \[1208925819614629174706176\]: Python int too large",
    ),
    "two arrays that are compared": (
        lambda rt, p, x, y: x == y,
        r"its values are on the device; compare those that get\(\) returns",
    ),
    "two arrays that have to differ": (lambda rt, p, x, y: x != y, r"as x.get\(\) == y.get\(\)"),
    "an array compared with a list": (lambda rt, p, x, y: x == [0] * 16, r"compare those that get"),
    "an array for a condition": (lambda rt, p, x, y: bool(x), r"its values are on the device"),
    "a value out of range to set": (
        lambda rt, p, x, y: x.set(np.arange(16) * 2**40),
        r"value 16492674416640 does not fit int32, which holds -2147483648 to 2147483647",
    ),
    "a value below the range to set": (
        lambda rt, p, x, y: rt.zeros(2, "u4").set([3, -1]),
        r"value -1 does not fit uint32",
    ),
    "a number too large to set": (
        lambda rt, p, x, y: rt.zeros(2).set(1e300),
        r"a value of dtype float64 is too large for float32",
    ),
    "a fraction to fill integers": (
        lambda rt, p, x, y: x.fill(1.5),
        r"fill\(float 1\.5\): not one value of dtype int32: values of dtype float64 cannot",
    ),
    "a fraction as an element": (
        lambda rt, p, x, y: x.__setitem__(slice(None), 1.5),
        r"fill\(float 1\.5\)",
    ),
    "a fill out of range": (lambda rt, p, x, y: x.fill(2**40), r"1099511627776 does not fit int32"),
    "a fill too large": (
        lambda rt, p, x, y: rt.zeros(2).fill(1e300),
        r"fill\(float 1e\+300\): .* too large for float32",
    ),
    "a fill with nothing": (lambda rt, p, x, y: x.fill(None), r"fill\(NoneType None\): not one"),
    "a bool for an index": (lambda rt, p, x, y: x[True], r"index True: .* no masks or lists"),
    "a product of matrices": (lambda rt, p, x, y: x @ y, r"its values are on the device"),
    "an absolute value": (lambda rt, p, x, y: abs(x), r"its values are on the device"),
    "a number to print": (lambda rt, p, x, y: f"{x[0]:3d}", r"its values are on the device"),
    "a slice without steps": (lambda rt, p, x, y: x[::0], r"slice None:None:0: slice step"),
    "a copy of Python's": (lambda rt, p, x, y: copy.copy(x), r"nor copied by `copy`; .*copy_from"),
    "options of a number": (
        lambda rt, p, x, y: rt.build(SOURCE, 3),  # type: ignore[arg-type]
        r"options=3: expected text, or a list",
    ),
    "a number among options": (
        lambda rt, p, x, y: rt.build(SOURCE, ["-D", 3]),  # type: ignore[list-item]
        r"options=\['-D', 3\]: expected text, or a list",
    ),
    "a macro with a blank": (
        lambda rt, p, x, y: rt.build(SOURCE, macros={"T": "unsigned int"}),
        r"drivers cut options at blanks; write #define T",
    ),
    "a macro that is no name": (
        lambda rt, p, x, y: rt.build(SOURCE, macros={"N M": 3}),
        r"macros=\{'N M': …\}: expected the name of a macro",
    ),
    "a host task of fewer arrays": (
        lambda rt, p, x, y: rt.call(lambda values: None, reads=x, writes=y),
        r"host task '<lambda>' takes \(values\), and gets 2 arrays: one for each in reads=",
    ),
    "a host task of no array": (
        lambda rt, p, x, y: rt.call(lambda: None, writes=y),
        r"host task '<lambda>' takes \(\), and gets 1 arrays",
    ),
    "a launch of another runtime to explain": (
        lambda rt, p, x, y: explained_elsewhere(rt, x),
        r"explain: launch \d+ \(fill\) is of another runtime",
    ),
    "a kernel of another runtime": (
        lambda rt, p, x, y: launched_elsewhere(rt, p.add, x, y),
        r"launch: kernel 'add' belongs to another runtime; launch it there",
    ),
    "a keyword that many launches do not have": (
        lambda rt, p, x, y: p.add.launch_many((16,), None, x, y, [1], bands=2),
        r"kernel 'add': launch_many has no keyword bands; there are count, wait_for, when",
    ),
    "an argument by name of many launches": (
        lambda rt, p, x, y: p.add.launch_many((16,), None, x, y, n=[1]),
        r"launch_many has no keyword n; arguments come in order, without names: x, y, n",
    ),
    "a kernel that a program does not have": (
        lambda rt, p, x, y: p["ad"],
        r"the program has no kernel 'ad'; it has: .*did you mean 'add'",
    ),
    "a kernel by number": (lambda rt, p, x, y: p[0], r"kernels of a program have names, got int 0"),
    "one of many arguments that is wrong": (
        lambda rt, p, x, y: p.add.launch_many((16,), None, x, y, [1, 2.5]),
        r"got float 2\.5, .*\(launch 2 of 2 of one launch_many\)",
    ),
    "an array whose rows are meant": (
        lambda rt, p, x, y: p.add.launch_many((4,), None, x.reshape(4, 4), y, 4),
        r"no argument is a sequence; .* list\(x\) gives the rows",
    ),
    "an order that is a list": (
        lambda rt, p, x, y: recorded(rt, x).arrange([2, 1]),  # type: ignore[arg-type]
        r"unknown order \[2, 1\]; there are: auto, first_in",
    ),
    "seconds of text": (
        lambda rt, p, x, y: recorded(rt, x).tune("a"),  # type: ignore[arg-type]
        r"tune: within_s='a': expected seconds above 0",
    ),
    "no seconds": (lambda rt, p, x, y: recorded(rt, x).tune(0), r"within_s=0: expected seconds"),
    "seconds that are no number": (
        lambda rt, p, x, y: recorded(rt, x).tune(float("nan")),
        r"within_s=nan: expected seconds",
    ),
    "a keyword in capitals": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, Bands=4),
        r"a launch has no keyword Bands; did you mean 'bands'\?",
    ),
    "a folder that is not there": (
        lambda rt, p, x, y: recorded(rt, x).save("/nowhere/step.acs"),
        r"save: there is no folder '/nowhere'",
    ),
    "a file that is a number": (
        lambda rt, p, x, y: recorded(rt, x).save(3),  # type: ignore[arg-type]
        r"save takes a path or an open file, got int 3",
    ),
    "a queue on a runtime": (
        lambda rt, p, x, y: acs.Queue(rt.context, rt),  # type: ignore[arg-type]
        r"device: expected a pyopencl\.Device, got acs_cl\.runtime\.Runtime",
    ),
    "a queue with bypass by text": (
        lambda rt, p, x, y: acs.Queue(rt.context, bypass="no"),  # type: ignore[arg-type]
        r"bypass='no': expected True or False",
    ),
    "an event that is an array without dimensions": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, wait_for=x[0]),
        r"wait_for= takes a list of pyopencl\.Event objects, got acs_cl",
    ),
    "an event that is a buffer": (
        lambda rt, p, x, y: p.add(
            (16,), None, x, y, 1, wait_for=cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 4)
        ),
        r"wait_for= takes a list of pyopencl\.Event objects, got pyopencl",
    ),
    "a copy of several truths": (
        lambda rt, p, x, y: x.set(0, copy=np.array([True, False])),  # type: ignore[arg-type]
        r"copy=array\(\[ True, False\]\): expected True or False",
    ),
    "an offset of nothing": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, offset=()),
        r"launch \d+ of kernel 'add': offset \(\): it takes one to three integers",
    ),
    "an offset on the device": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, offset=acs.size(y[:1], upto=4)),
        r"offset acs_cl\.size.*: it takes one to three integers",
    ),
    "bands of an array": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, bands=np.arange(3)),
        r"bands=array\(\[0, 1, 2\]\): expected 'early', 'auto', 'off', 'lanes' or 1 to",
    ),
    "bands of a type": (
        lambda rt, p, x, y: p.add((16,), None, x, y, 1, bands=int),
        r"bands=<class",
    ),
    "a bound that is an array": (
        lambda rt, p, x, y: acs.size(y[:1], upto=np.arange(3)),  # type: ignore[arg-type]
        r"acs\.size: got upto=numpy\.ndarray of shape \(3,\), expected 1 to",
    ),
    "a bound of rounds that is a type": (
        lambda rt, p, x, y: recorded(rt, x).replay(while_=x[:1], at_most=int),  # type: ignore[arg-type]
        r"replay\(while_=\): got at_most=<class 'int'>, expected 1 to",
    ),
    "a count that no loop reaches": (
        lambda rt, p, x, y: p.add.launch_many((16,), None, x, y, 1, count=2**70),
        r"kernel 'add': count= takes a number of launches from 0 on, got int",
    ),
    "an iterator as an argument": (
        lambda rt, p, x, y: p.add.launch_many((16,), None, x, y, iter([1, 2])),
        r"no argument is a sequence; .* list\(...\) makes a sequence of what an iterator gives$",
    ),
    "a graph from what is no file": (
        lambda rt, p, x, y: rt.load(3),  # type: ignore[arg-type]
        r"load takes a path or an open file, got int 3$",
    ),
    "nothing as values": (
        lambda rt, p, x, y: rt.zeros(4).set(None),
        r"None is no value of dtype float32; write a number, such as nan$",
    ),
    "nothing among values": (lambda rt, p, x, y: rt.array([1, None], "f4"), r"None is no value of"),
    "masked arrays in a list": (
        lambda rt, p, x, y: rt.array([np.ma.array([1.0, 2.0], mask=[i, 0]) for i in (0, 1)], "f4"),
        r"numpy\.ma\.MaskedArray of shape \(2,\) has masked values",
    ),
    "a masked element among numbers": (
        lambda rt, p, x, y: x[:4].set([(1.0, 2.0, np.ma.masked, 3)]),
        r"MaskedConstant.* has masked values",
    ),
    "records with a mask for each field": (
        lambda rt, p, x, y: rt.array(np.ma.array([(1, 2)], "i4,i4", mask=[(True, False)])),
        r"numpy\.ma\.MaskedArray of shape \(1,\) has masked values",
    ),
    "nothing to fill with": (lambda rt, p, x, y: x.fill(None), r"fill.*: None is no value of"),
    "an order of a launch and itself": (
        lambda rt, p, x, y: rt.explain(handle := x[:0].fill(1), handle),
        r"explain: both are the same launch; explain\(a\) tells about one$",
    ),
    "a declaration without a name": (
        lambda rt, p, x, y: p.add.access("r"),
        r"access\(\) got str 'r', expected declarations by parameter, such as x='r', or one",
    ),
    "an index that is a type": (lambda rt, p, x, y: x[int], r"index <class 'int'>: views take"),
    "a shape that is a buffer": (
        lambda rt, p, x, y: rt.empty(cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 4)),
        r"shape <pyopencl.*>: expected an integer or integers",
    ),
    "a dtype of no bytes": (lambda rt, p, x, y: x.view([]), r"its elements have no bytes"),
    "a dtype of arrays": (
        lambda rt, p, x, y: rt.zeros(4, "(2,)f4"),
        r"dtype '\(2,\)f4': elements are no arrays; give the array more dimensions",
    ),
    "a dtype that cannot be encoded": (lambda rt, p, x, y: rt.empty(3, "\ud800"), r"name one of"),
    "rows of several lengths for a part": (
        lambda rt, p, x, y: x.__setitem__(slice(0, 4), [[1, 2], [3]]),
        r"no values for an array: list ",
    ),
    "a local size on the device to build for": (
        lambda rt, p, x, y: rt.prebuild((p.add, acs.size(y[:1], upto=4))),
        r"only the first length of a global size can be acs\.size",
    ),
    "ranges by an array": (
        lambda rt, p, x, y: setattr(p.add, "infer_ranges", np.arange(3)),
        r"infer_ranges=array\(\[0, 1, 2\]\): expected True, False or None",
    ),
    "times by an array": (
        lambda rt, p, x, y: acs.Runtime(rt.device, profiling=np.arange(3)),  # type: ignore[arg-type]
        r"profiling=array\(\[0, 1, 2\]\): expected True or False",
    ),
    "no backlog": (
        lambda rt, p, x, y: acs.Runtime(rt.device, backlog=None),  # type: ignore[arg-type]
        r"backlog=None: expected an integer from 2 to",
    ),
    "a window beyond all numbers": (
        lambda rt, p, x, y: acs.Runtime(rt.device, window=2**70),
        r"window=\d+: expected an integer from 1 to 2\*\*62 - 1$",
    ),
    "a kernel by its name": (
        lambda rt, p, x, y: rt.launch("add", (16,), None),
        r"takes a pyopencl\.Kernel, got str 'add'; write program\.add\(…\)$",
    ),
    "a list for an array": (
        lambda rt, p, x, y: p.add((3,), None, [1, 2, 3], x, 1),
        r"got list \[1, 2, 3\], expected an array, .*; put it on the device with rt\.array",
    ),
}


def test_the_driver_decides_about_groups_of_linked_programs(device: cl.Device) -> None:
    """It tells how they were linked, not how they were compiled. Intel's runtime takes these."""
    context = cl.Context([device])
    compiled = cl.Program(context, SOURCE).compile(["-cl-std=CL3.0"])
    kernel = cl.Kernel(cl.link_program(context, [compiled]), "real")
    with acs.Runtime(context=context) as rt, inside.uneven_groups(rt):
        rt.launch(kernel, (10,), (5,), rt.zeros(1, "i4"), np.float32(1))
        told: list[str] = []
        try:
            rt.launch(kernel, (10,), (4,), rt.zeros(1, "i4"), np.float32(1))
        except acs.UsageError as error:
            told.append(str(error))
        assert all("clEnqueueNDRangeKernel" in one for one in told), "the driver has refused it"


@pytest.mark.parametrize("what", BAD_CALLS)
def test_bad_call_is_a_usage_error_and_loses_nothing(what: str, setting: Any) -> None:
    rt, program, x, y = setting
    call, message = BAD_CALLS[what]
    program.add((16,), None, x, y, 16)
    with pytest.raises(acs.UsageError, match=message) as caught:
        call(rt, program, x, y)
    if "of kernel 'add'" in str(caught.value):
        assert re.search(r"launch( \d+|_many) of kernel 'add'", str(caught.value))
    program.add((16,), None, x, y, 16)
    assert (y.get() == 2 * np.arange(16)).all()


def test_more_pinned_memory_than_the_device_allows_is_refused(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        for nbytes in (rt.engine.store.largest + 1, 1 << 70):
            with pytest.raises(OutOfMemory, match="pinned memory: this device allows at most"):
                rt.pinned(nbytes, "u1")


def test_one_and_zero_say_yes_and_no(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes", profiling=1, predict=0) as rt:  # type: ignore[arg-type]
        x = rt.zeros(4)
        assert not x.get().any()


def test_kernels_may_begin_with_an_underscore(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program, x = rt.build("kernel void _k(global int *x) { *x += 1; }"), rt.zeros(1, "i4")
        for name in program.kernels:
            getattr(program, name)((1,), None, x)
        assert x.get().tolist() == [1]


def test_no_backend_is_given_an_empty_launch(make: Callable[..., acs.Runtime]) -> None:
    """PoCL divides by the lengths, and takes the process with it."""
    rt = make()
    program = rt.build(SOURCE)
    rt.prebuild(program.add)
    x, y = rt.array(np.arange(16, dtype="i4")), rt.zeros(16, "i4")
    for size, local in (((16,), None), ((np.int64(16),), None), ([16], (np.int32(4),))):
        program.add(size, local, x, y, 16)
        for wrong in ((0,), (-1,), (0, 16)):
            with pytest.raises(acs.UsageError, match="every length is at least 1"):
                program.add(wrong, None, x, y, 16)
            with rt.record() as graph, pytest.raises(acs.UsageError, match="every length"):
                program.add(wrong, None, x, y, 16)
            graph.replay()
    assert (y.get() == 3 * np.arange(16)).all()


def test_refused_launch_leaves_the_order_of_the_others_intact(setting: Any) -> None:
    _, program, x, y = setting
    want = np.zeros(16, "i4")
    for step in range(40):
        program.add((16,), None, x, y, 16)
        want += np.arange(16, dtype="i4")
        with pytest.raises(acs.UsageError):
            program.add((16,), (7,), x, y, 16)
        x.fill(step)
        y.copy_from(x)
        want[:] = step
        x.set(np.arange(16, dtype="i4"))
    program.add((16,), None, x, y, 16)
    assert (y.get() == want + np.arange(16)).all()


def test_array_of_another_runtime_is_refused(device: cl.Device, setting: Any) -> None:
    _, program, x, y = setting
    with acs.Runtime(device) as other:
        theirs = other.zeros(16, "i4")
        with pytest.raises(acs.UsageError, match="another runtime"):
            program.add((16,), None, theirs, y, 16)
        with pytest.raises(acs.UsageError, match="another runtime"):
            x.copy_from(theirs)


def test_freed_array_is_refused_and_its_views_live_on(setting: Any) -> None:
    _, program, x, y = setting
    half = x[8:]
    x.free()
    for use in (x.get, lambda: x.fill(0), lambda: x[0], lambda: program.add((1,), None, x, y, 1)):
        with pytest.raises(acs.UsageError, match="given back"):
            use()
    assert (half.get() == np.arange(8, 16)).all()


HIDDEN = "native", "kernels", "_native", "_known"
"""Names of kernels that are names of members of a program, too."""


def test_a_kernel_with_the_name_of_a_member_is_an_item(setting: Any) -> None:
    rt, program, x, _ = setting
    source = "\n".join(f"kernel void {name}(global int *x) {{ x[0] += 1; }}" for name in HIDDEN)
    named = rt.build(source)
    before = int(x.get()[0])
    for name in HIDDEN:
        named[name]((1,), None, x)
        assert named[name] is named[name]
    assert x.get()[0] == before + len(HIDDEN)
    assert set(named.kernels) == set(HIDDEN)
    assert program["add"] is program.add


@pytest.mark.parametrize(
    "dtype", ["V5", "S3", "?", "f8", "c8", [("a", "u1"), ("b", "<f4"), ("c", "S2")]]
)
def test_zeros_are_those_of_numpy(setting: Any, dtype: Any) -> None:
    found = setting[0].zeros(3, dtype).get()
    assert found.tobytes() == np.zeros(3, dtype).tobytes()


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("dtype", np.dtype("f4"), r"view\(dtype\)"),
        ("shape", (4, 4), r"reshape\(shape\)"),
        ("strides", (8,), "a slice"),
        ("size", 4, "a slice"),
        ("nbytes", 4, "a slice"),
    ],
)
def test_what_an_array_is_cannot_be_set(
    setting: Any, name: str, value: object, instead: str
) -> None:
    """Another value would contradict the bytes that launches on it are known to touch."""
    x = setting[2]
    for array in (x, x[2:9], x[::2], x[3:3]):
        before = getattr(array, name)
        with pytest.raises(AttributeError, match=f"the {name} of an array.*by {instead}"):
            setattr(array, name, value)
        with pytest.raises(AttributeError, match="cannot be set"):
            delattr(array, name)
        assert getattr(array, name) == before
    assert (x.get() == np.arange(16)).all()


def test_program_that_does_not_build_shows_log_and_line(setting: Any) -> None:
    rt = setting[0]
    with pytest.raises(BuildError) as caught:
        rt.build("kernel void broken(global int *x)\n{\n    x[0] = nobody;\n}")
    assert caught.value.line == 3
    assert "nobody" in caught.value.log
    assert "x[0] = nobody;" in str(caught.value)


def test_program_without_kernels_has_none(setting: Any) -> None:
    program = setting[0].build("float half_of(float x) { return x / 2; }")
    assert program.kernels == ()
    assert repr(program) == "<acs_cl.Program with no kernels>"
    with pytest.raises(AttributeError, match="has no kernel 'half_of'; it has: none; mark a func"):
        program.half_of  # noqa: B018


def test_kernel_that_the_driver_cannot_make_is_not_called_unknown(setting: Any) -> None:
    """Some drivers link in the build, others when a kernel is made."""
    source = "float nowhere(float x); kernel void call(global float *x) { *x = nowhere(*x); }"
    with pytest.raises(
        (BuildError, acs.DeviceError), match=r"nowhere|cannot make kernel 'call'.*clCreateKernel"
    ):
        setting[0].build(source).call  # noqa: B018


def test_groups_of_several_sizes_are_a_matter_of_the_language(device: cl.Device) -> None:
    """OpenCL C 1.x has none, whatever the device can do, so that the call is refused."""
    source = "kernel void put(global int *x) { x[get_global_id(0)] = 1; }"
    with acs.Runtime(device) as rt:
        for options in ([], ["-cl-std=CL1.2"]):
            put, x = rt.build(source, options=options).put, rt.zeros(16, "i4")
            with pytest.raises(acs.UsageError, match=r"'put': global size \(16,\) is not a mult"):
                put((16,), (5,), x)
        if not device.version.startswith("OpenCL 1.") and device.non_uniform_work_group_support:
            put = rt.build(source, options=["-cl-std=CL3.0"]).put
            put((16,), (5,), x)
            assert (x.get() == 1).all()


def refusal_of(call: Callable[[], object]) -> str:
    """Return what a call is refused with. Empty: it is not."""
    try:
        call()
    except acs.UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("backend", ["serial", "lanes"])
def test_limit_of_a_refused_launch_is_told(device: cl.Device, backend: str) -> None:
    """Drivers differ in what they refuse."""
    with acs.Runtime(device, backend=backend) as rt:
        program, x = rt.build(SOURCE), rt.zeros(16, "i4")
        x.fill(1)
        most = cl.LocalMemory(1 << 30)
        refusal = refusal_of(lambda: program.local_sum((16,), (16,), x, most))
        limit = f"bytes of local memory, this device has {device.local_mem_size:,}"
        assert limit in refusal or x.get().sum() == 32


def test_out_of_memory_is_an_error_and_dropped_memory_comes_back(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        with pytest.raises(OutOfMemory, match="allows at most"):
            rt.empty(device.max_mem_alloc_size + 1, "u1")
        arrays = [rt.zeros(1 << 20, "u1") for _ in range(8)]
        held = rt.stats()["memory"]["in_use_bytes"]
        arrays.clear()
        again = rt.zeros(1 << 20, "u1")
        assert rt.stats()["memory"]["in_use_bytes"] < held
        assert not again.get().any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "gpu"}, r"'gpu'.*serial, out_of_order, lanes"),
        ({"issue": "late"}, r"'late'.*eager, ready_first"),
        ({"window": 0}, r"window=0"),
        ({"lanes": "two"}, r"lanes='two'"),
        ({"memory": "disk"}, r"'disk'.*svm, buffers"),
        ({"device": "no such device anywhere"}, r"no such device"),
        ({"context": 3}, r"Context"),
        ({"backend": "Serial"}, r"'Serial'; there are: .*; did you mean 'serial'\?"),
        ({"backnd": "serial"}, r"no option 'backnd'; did you mean 'backend'\?"),
        ({"nothing_like_it": 1}, r"no option 'nothing_like_it'; there are: .*lanes"),
        ({"lanes": 100_000}, r"lanes=100000: expected an integer from 1 to 1,024$"),
        ({"window": True}, r"window=True: expected an integer"),
        ({"profiling": "yes"}, r"profiling='yes': expected True or False"),
        ({"emulate": {"machine": "h200"}}, r"emulate= is for backend='emulated', got .*'auto'"),
        ({"spawn": "no"}, r"unknown spawn 'no'; there are: never"),
    ],
)
def test_unknown_names_are_refused_with_what_there_is(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(acs.AcsError, match=message):
        acs.Runtime(**arguments)


def test_an_index_of_a_device_may_be_one_of_numpy() -> None:
    with acs.Runtime(np.int64(0)) as one, acs.Runtime(devices=list(np.zeros(2, int))) as two:
        assert one.device == two.device
    with pytest.raises(acs.UsageError, match="device index 99 is out of range"):
        acs.Runtime(np.uint8(99))


def test_what_is_no_device_is_refused_with_what_to_write(device: cl.Device) -> None:
    context = cl.Context([device])
    for given, instead in (
        (context, "write context="),
        (cl.CommandQueue(context), "write context=queue.context"),
        (device.platform, r"write one of its get_devices\(\)"),
        ([device], "write devices= for several"),
    ):
        with pytest.raises(acs.UsageError, match=f"; {instead}$"):
            acs.Runtime(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["zeros", "Stream", "Context", "CheckError", "Buffer", "LocalMemory"]
)
def test_names_of_other_libraries_say_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; write .*"):
        getattr(acs, name)


def test_modules_that_are_not_imported_say_so() -> None:
    code = "import acs_cl as acs\nacs.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("has no attribute 'dask'; write import acs_cl.dask\n")


def test_members_of_other_libraries_say_what_to_write(setting: Any) -> None:
    rt, program, x, _ = setting
    graph = recorded(rt, x)
    for of, name in (
        (program.add, "launch"), (program.add, "set_args"), (graph, "run"), (graph, "launches"),
        (graph.replay(), "get"), (rt, "arange"), (x, "mean"),
        (x, "transpose"), (x, "to_numpy"), (x, "finish"), (x, "device"), (rt, "backend"),
        (program.add, "set_scalar_arg_dtypes"), (rt, "capture"), (rt, "memcpy"),
        (x, "block_until_ready"), (x, "get_async"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; write .*"):
            getattr(of, name)


@pytest.mark.parametrize("what", ["runtime", "program", "kernel", "launch"])
def test_what_lives_in_a_process_says_what_to_send(what: str, setting: Any) -> None:
    rt, program, x, _ = setting
    one = {"runtime": rt, "program": program, "kernel": program.add, "launch": x.fill(0)}[what]
    for send in (pickle.dumps, copy.copy):
        with pytest.raises(acs.UsageError, match=f"a {what} cannot be pickled, nor copied"):
            send(one)


def test_arrays_of_pyopencl_are_no_values_and_the_error_says_how_they_are(setting: Any) -> None:
    rt, _, x, _ = setting
    theirs = cl.array.zeros(cl.CommandQueue(rt.context), 16, "i4")
    for take in (rt.array, x.set, x.fill, x.copy_from):
        with pytest.raises(acs.UsageError, match=r"what its get\(\) returns"):
            take(theirs)
    assert x.set(theirs.get()).wait() is None


def test_no_dtype_is_the_default(setting: Any) -> None:
    rt = setting[0]
    assert rt.zeros(2, None).dtype == rt.empty(2, None).dtype == rt.zeros(2).dtype == np.float32


def test_values_that_array_takes_are_those_that_set_takes(device: cl.Device) -> None:
    """Each pair of a value and a dtype: both refuse it, or both arrays hold the same."""
    values: list[Any] = [
        [1.5], [1.0], [True], [1], [300], [-1], [1 << 40], [1 << 70], [1e300], [1j], [],
        np.float32([0.5]), np.arange(2, dtype="u1"), [(1, 2)], np.ones(3, "?"),
    ]  # fmt: skip
    accepted = 0
    with acs.Runtime(device, backend="serial") as rt:
        for value in values:
            for dtype in ("?", "i1", "u4", "i8", "f2", "f4", "f8", "c8"):
                target = rt.empty(np.shape(value), dtype)
                results = []
                for take in (lambda v, t=target: t.set(v), lambda v, d=dtype: rt.array(v, d)):
                    try:
                        got = take(value)
                    except acs.UsageError as error:
                        results.append(str(error))
                    else:
                        results.append((got if isinstance(got, acs.Array) else target).get())
                        assert results[-1].dtype == np.dtype(dtype)
                np.testing.assert_array_equal(*results)
                accepted += not isinstance(results[0], str)
    assert accepted > 60


def test_numbers_of_numpy_keep_their_type_wherever_they_are(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial") as rt:
        for values, dtype in (
            ([1.5, 2], "f4"), ((0.1,), "f4"), ([[0.1], [2.0]], "f4"), (0.1, "f4"), ([], "f4"),
            ([np.float64(0.1)], "f8"), ([0.1, np.float64(2)], "f8"), (np.float64(0.1), "f8"),
            ([[0.1], [np.float64(2)]], "f8"), ([np.zeros(2), np.ones(2)], "f8"),
            ([np.float32(0.1)], "f4"), (np.zeros(2), "f8"), ([1, 2], "i8"), ([np.int32(3)], "i4"),
            ([True], "?"),
        ):  # fmt: skip
            array = rt.array(values)
            assert array.dtype == np.dtype(dtype), values
            np.testing.assert_array_equal(array.get(), np.asarray(values, dtype))


def test_integers_of_python_beyond_int64_stay_integers_where_a_dtype_holds_them(
    device: cl.Device,
) -> None:
    values = [[2**64 - 1, 1], [2**63, 0]]  # NumPy makes floats of these
    with acs.Runtime(device) as rt:
        x = rt.array(values, "u8")
        assert x.get().tolist() == values
        x.set(values[::-1])
        assert x.get().tolist() == values[::-1]
        assert rt.array([2.0**63, -1]).dtype == np.float32


def test_arrays_are_keys_and_are_found_where_nothing_is_compared(setting: Any) -> None:
    _, _, x, y = setting
    assert {x: 1, y: 2}[y] == 2
    assert len({x, y, x}) == 2
    assert y in {x, y}
    assert x in [x, y]
    for search in (lambda: x in [y, x], lambda: [y, x].index(x), lambda: [y, x].remove(x)):
        with pytest.raises(acs.UsageError, match=r"or ask whether `x is y`"):
            search()
    host = np.ones(16)
    with pytest.raises(ValueError, match="truth value"):  # NumPy's arrays are not found either
        [host * 2, host].index(host)
    assert x == x
    assert x != None  # noqa: E711
    assert x != "x"


def test_what_holds_from_the_beginning_or_means_nothing_cannot_be_set(setting: Any) -> None:
    rt, program, x, _ = setting
    graph = recorded(rt, x)
    for of, name, says in (
        (rt, "backend", r"chosen when one is made, as acs\.Runtime\(backend=…\)"),
        (rt, "window", r"as acs\.Runtime\(window=…\)"), (rt, "trace", r"Runtime\(trace=…\)"),
        (rt, "device", r"Runtime\(device=…\)"), (rt, "widow", "no attribute 'widow'"),
        (rt, "plan", "plan"), (graph, "order", "order"), (graph, "repeat", "repeat"),
        (program, "add", "attributes of a program are its kernels; 'add' cannot be set"),
        (program, "options", "'options' cannot be set"), (program.add, "local_size", "local_size"),
        (x, "dtype", r"make a view of it, by view\(dtype\)"), (x, "name", "name"),
        (graph.replay(), "result", "result"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=says):
            setattr(of, name, 3)


def test_a_class_that_inherits_has_attributes_of_its_own(device: cl.Device) -> None:
    class Mine(acs.Runtime):
        def __init__(self) -> None:
            super().__init__(device)
            self.steps = 3

    with Mine() as rt:
        assert rt.steps == 3
        with pytest.raises(AttributeError, match="chosen when one is made"):
            rt.backend = "lanes"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [True, np.True_, -3, np.array(4), 0.25, np.float32(0.25), Fraction(1, 2), Decimal("1.5"), -inf],
)
def test_a_macro_has_the_value_that_it_has_in_python(device: cl.Device, value: Any) -> None:
    with acs.Runtime(device, backend="serial") as rt:
        x = rt.zeros(1)
        source = "kernel void put(global float *x) { *x = (float)N; }"
        rt.build(source, macros={"N": value}).put((1,), None, x)
        assert x.get()[0] == float(value)


def test_a_folder_with_a_blank_is_named(device: cl.Device) -> None:
    with acs.Runtime(device) as rt, pytest.raises(BuildError, match=r"get 'kernels' as others; "):
        rt.build("kernel void f(global int *x) { x[0] = N; }", ["-D", "N=1", "-I", "my kernels"])


def test_text_that_no_driver_reads_is_refused(device: cl.Device, tmp_path: Path) -> None:
    """Halves of characters, zeros among options, and files in another encoding."""
    source, latin = "kernel void k(global int *x) { x[0] = 1; }", tmp_path / "latin.cl"
    latin.write_bytes(source.encode() + "// schön".encode("latin-1"))
    with acs.Runtime(device) as rt:
        with pytest.raises(acs.UsageError, match=r"the source has '\\ud800' at 45"):
            rt.build(source + " //\ud800")
        with pytest.raises(acs.UsageError, match=r"option '-DA=\\x00' has '\\x00' at 4"):
            rt.build(source, ["-DA=\0", "-DB"])
        with pytest.raises(acs.UsageError, match=r"macros=.*cannot read"):
            rt.build(source, macros={"A": "\ud800"})
        with pytest.raises(acs.UsageError, match=r"latin.cl' is no UTF-8 at byte 48"):
            rt.build(latin)
        with pytest.raises(acs.UsageError, match=r"cannot read the program 'a\\x00.cl'"):
            rt.build("a\0.cl")
        with pytest.raises(acs.UsageError, match="the program has no kernel"):
            rt.build(source)["\ud800"]


def test_source_of_cuda_is_told_what_opencl_calls_it(device: cl.Device) -> None:
    with acs.Runtime(device) as rt, pytest.raises(BuildError) as caught:
        rt.build("__global__ void put(int *x) { x[threadIdx.x] = 1; }")
    assert "this looks like CUDA; in OpenCL C __global__ is `kernel`" in str(caught.value)
    assert "threadIdx. is get_local_id(…)" in str(caught.value)


@pytest.mark.parametrize("backend", ["lanes", "device"])
@pytest.mark.parametrize("again", [False, True], ids=["other memory", "the same memory"])
def test_each_type_of_other_numbers_is_warned_of_once(
    device: cl.Device, backend: str, again: bool
) -> None:
    """Also where the core makes the launches, and where it foresees them."""
    source = "kernel void add(global float *x, int n) { x[get_global_id(0)] += n; }"
    with acs.Runtime(device, backend=backend) as rt:
        add, plain = rt.build(source).add, rt.zeros((9, 8))
        other = plain[0].view("i4") if again else rt.zeros(8, "i4")
        rt.prebuild(add)

        def steps(many: int, first: acs.Array) -> None:
            for _ in range(many):
                for one in (first, *(plain[row] for row in range(1, 9))):
                    add((8,), None, one, 1)
                rt.finish()

        steps(8, plain[0])
        made = testing.made_by_core(rt)
        with pytest.warns(CheckWarning, match="its elements are int32") as caught:
            steps(2, other)
        assert len(caught) == 1
        assert testing.made_by_core(rt) - made == 17  # all but the one that was looked at
        with pytest.warns(CheckWarning, match="its elements are float64"):
            add.launch_many((8,), None, [plain[1], rt.zeros(8, "f8")], 1)


def test_a_kernel_for_bytes_of_any_type_stays_with_the_core(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        put = rt.build("kernel void put(global uchar *x) { x[get_global_id(0)] = 1; }").put
        arrays = [rt.zeros(8, dtype) for dtype in ("u1", "i2", "i4", "f4", "f8", "i8", "u2")]
        for one in arrays + arrays:
            put((8,), None, one)
        made = testing.made_by_core(rt)
        for one in arrays:
            put((8,), None, one)
        assert testing.made_by_core(rt) - made == len(arrays)


def test_array_of_other_numbers_than_the_pointer_is_warned_of(setting: Any) -> None:
    rt, program, _, y = setting
    with pytest.warns(CheckWarning) as caught:
        program.add((16,), None, rt.array([1] * 16), y, 16)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert re.fullmatch(
        r"launch \d+ of kernel 'add', argument 0 \(int\* x\): its elements are int64, and the "
        r"kernel takes their bytes for int32; make the array with dtype 'int32', or pass "
        r"x\.view\('int32'\) if that is meant",
        str(caught[0].message),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = rt.build(SOURCE)
        again.add((16,), None, rt.array([1] * 16).view("i4")[:16], y, 16)
        again.look((1,), None, picture(rt), sampler(rt), rt.zeros(4))  # float4 is for anything


def test_integers_become_others_if_all_of_them_fit(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x = rt.zeros(3, "u1")
        x.set([0, 7, 255])  # integers of Python are int64 for NumPy
        assert x.get().tolist() == [0, 7, 255]
        x[1:] = 8
        x.set(np.array([1, 2, 3]), copy=False).wait()
        assert x.get().tolist() == [1, 2, 3]


def test_environment_overrides_the_backend(device: cl.Device, environment: Environment) -> None:
    environment(ACS_CL_BACKEND="serial")
    with acs.Runtime(device, backend="lanes") as rt:
        assert rt.stats()["backend"] == "serial"
        why = "ACS_CL_BACKEND=serial overrules backend='lanes'"
        assert rt.stats()["why"] == why
        assert why in str(rt.explain(rt.zeros(4).fill(1)))
    with acs.Runtime(device, backend="serial") as rt:
        assert rt.stats()["why"] == "backend='serial' was asked for"
    environment(ACS_CL_BACKEND="auto")
    with acs.Runtime(device, backend="lanes") as rt:
        assert rt.stats()["why"].startswith("ACS_CL_BACKEND=auto overrules backend='lanes'; auto ")
    environment(ACS_CL_BACKEND="nonsense")
    with pytest.raises(acs.UsageError, match="'nonsense' in ACS_CL_BACKEND"):
        acs.Runtime(device)


SIZES: list[tuple[Any, Any, Any, str]] = [
    ((2**70,), None, None, "64 bits at most"),
    ((2**64,), None, None, "64 bits at most"),
    ((4, 4, 4, 4), None, None, "has 4 lengths, expected 1 to 3"),
    ((), None, None, "has 0 lengths, expected 1 to 3"),
    ((8,), (2, 2), None, "has 2 lengths, global size .* has 1"),
    ((8, 8), (8,), None, "has 1 lengths, global size .* has 2"),
    ((1 << 40,), (1 << 40,), None, "this device takes"),
    ((8,), (2**70,), None, "64 bits at most"),
    ((8,), (0,), None, "at least 1"),
    ((-8,), None, None, "at least 1"),
    ((8.0,), None, None, "every length is an integer"),
    ((True,), None, None, "every length is an integer"),
    (True, None, None, "takes one to three integers"),
    ((8,), (8.0,), None, "every length is an integer"),
    ((8,), None, 2**70, "each number is at least 0"),
    ((8,), None, -1, "at least 0"),
    ((8,), None, (1, 1), "has 2 lengths, global size .* has 1"),
    ((8, 8), None, (1,), "has 1 lengths, global size .* has 2"),
]


@pytest.mark.parametrize("backend", [*NAMES, "auto"])
def test_sizes_that_cannot_be_are_refused_in_the_call(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        put = rt.build("kernel void put(global int *x) { x[get_global_id(0)] = 1; }").put
        four = rt.build(
            "kernel __attribute__((reqd_work_group_size(4, 1, 1)))"
            " void four(global int *x) { x[get_global_id(0)] = 1; }"
        ).four
        x = rt.zeros(8, "i4")
        for global_size, local_size, offset, says in SIZES:
            with pytest.raises(acs.UsageError, match=says):
                put(global_size, local_size, x, offset=offset)
        with pytest.raises(acs.UsageError, match="requires"):
            four((8,), (2,), x)
        put((np.int64(8),), (np.uint8(4),), x)
        assert (x.get() == 1).all()


def test_a_kernel_is_made_once_and_then_an_attribute_as_any_other(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        prog = rt.build("kernel void put(global int *x) { x[get_global_id(0)] = 1; }")
        assert prog.put is vars(prog)["put"]
        assert dir(prog).count("put") == 1


def test_a_folder_without_a_program_is_said_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acs_cl", "run", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no __main__.py" in done.stderr


def test_what_a_newcomer_tries_works_or_says_how(device: cl.Device) -> None:
    source = "kernel void put(global float4 *x, float4 v) { x[get_global_id(0)] = v * SCALE; }"
    with acs.Runtime(device) as rt:
        prog = rt.build(source, "-DSCALE=2 -cl-std=CL1.2")  # as PyOpenCL takes options, too
        assert "put" in dir(prog)
        x = rt.zeros((2, 4))
        with pytest.raises(acs.UsageError, match=r"such as np.array\(\[…\], 'f'\)"):
            prog.put((2,), None, x, (1, 2, 3, 4))
        prog.put((2,), None, x, np.array([1, 2, 3, 4], "f"))
        assert x.get().tolist() == [[2, 4, 6, 8]] * 2
        with pytest.raises(acs.UsageError, match="values are on the device"):
            rt.array(x)


def test_a_view_begins_where_the_elements_of_its_kernel_may(
    make: Callable[..., acs.Runtime],
) -> None:
    """Vectors between their places end the process on a CPU. Plans of the core refuse them, too."""
    source = """
    kernel void vectors(global float4 *p) { p[get_global_id(0)] += 1; }
    kernel void doubles(global ulong *p) { p[get_global_id(0)] += 1; }
    kernel void bytes(global char *p) { p[get_global_id(0)] += 1; }
    """
    rt = make()
    prog, x = rt.build(source), rt.zeros(32)
    for _ in range(3):
        prog.vectors((2,), None, x[4:12])
        for kernel, view, size in (
            (prog.vectors, x[1:9], 16), (prog.vectors, x[6:14], 16), (prog.doubles, x[1:5], 8)
        ):  # fmt: skip
            with pytest.raises(acs.UsageError, match=f"a multiple of {size}; begin it there"):
                kernel((2,), None, view)
        prog.bytes((4,), None, x.view("i1")[1:5])
    with pytest.raises(acs.UsageError, match="a multiple of 16"):
        prog.vectors.launch_many((2,), None, [x[4:12], x[1:9]])
    assert x.get()[4:12].tolist() == [4] * 8
