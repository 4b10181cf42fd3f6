"""Translated kernels compute what the kernels compute, bit for bit, called from another kernel."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment
from pyopencl import cltypes

from acs_cl.benchmarks.validation.agreement import OWN_CONTEXT
from acs_cl.devices.driver import declare_svm
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.functions.translated import CannotTranslate, Function, Functions
from acs_cl.opencl_c.functions.translation import translate
from acs_cl.opencl_c.kernel_files import kernel_source
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse.tokens import Tokens, plain

# Intel's runtime aligns local memory by the type of its parameter, the scheduler its arena to 128.
DRIVER = """
{attribute} __kernel void acs_drive(__global const uchar *packed, __local ulong16 *blob_memory,
                                    __local ulong16 *arena_memory) {{
    __local uchar *blob = (__local uchar *)blob_memory, *arena = (__local uchar *)arena_memory;
    {context}
    const uint items = get_local_size(0) * get_local_size(1) * get_local_size(2);
    const uint item = acs_get_local_linear_id(&context);
    for (uint i = item; i < {bytes}; i += items)
        blob[i] = packed[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    {symbol}(&context, {blob}, arena);
}}
"""


def pack(function: Function, arguments: list[Any]) -> tuple[bytes, int]:
    """The blob, and how many bytes of local memory the call needs."""
    blob = bytearray(function.blob_bytes)
    end = function.local_bytes
    for field, argument in zip(function.fields, arguments, strict=True):
        if isinstance(argument, cl.LocalMemory):
            assert field.kind == "local"
            end = -(-end // 128) * 128
            data = np.uint32(end).tobytes()
            end += argument.size
        elif isinstance(argument, cl.SVM):
            assert field.kind == "pointer"
            data = np.uint64(argument.mem.ctypes.data).tobytes()
        else:
            assert field.kind == "value"
            data = argument.tobytes()
        assert len(data) == field.size, field
        assert field.offset % min(field.size & -field.size, 4) == 0
        blob[field.offset : field.offset + field.size] = data
    return bytes(blob), end


class Bench:
    """Runs a kernel as it is and as a function."""

    def __init__(self, context: cl.Context) -> None:
        self.context = context
        self.device = context.devices[0]
        self.queue = cl.CommandQueue(context)

    def memory(self, values: Any) -> Any:
        """Memory with an address, aligned as the driver likes it: a function may load a vector from
        there. No queue: PoCL crashes when memory is freed by one."""
        array = cl.csvm_empty(self.context, values.shape, values.dtype, alignment=0)
        memory = cl.SVM(array)
        cl.enqueue_copy(self.queue, memory, np.ascontiguousarray(values))
        return memory

    def contents(self, memories: list[Any]) -> list[Any]:
        out = []
        for one in memories:
            values = np.empty(one.mem.shape, one.mem.dtype)
            cl.enqueue_copy(self.queue, values, one)
            out.append(values)
        return out

    def run(self, source: str, kernel: str, sizes: Any, groups: Any, arguments: list[Any],
            options: Any = (), offset: Any = None) -> None:  # fmt: skip
        """Run the kernel itself."""
        program = cl.Program(self.context, source).build(list(options))
        cl.Kernel(program, kernel)(self.queue, sizes, groups, *arguments, global_offset=offset)
        self.queue.finish()

    def call(self, text: str, function: Function, sizes: Any, groups: Any, arguments: list[Any],
             options: Any = (), offset: Any = None, space: str = "__local") -> None:  # fmt: skip
        """Run one function of a text over all items."""
        local = (*groups, 1, 1)[:3]
        attribute = f"__attribute__((reqd_work_group_size({', '.join(map(str, local))})))"
        driver = DRIVER.format(
            context=OWN_CONTEXT,
            attribute=attribute, bytes=function.blob_bytes, symbol=function.symbol,
            blob="blob" if space == "__local" else "packed",
        )  # fmt: skip
        source = f"#define ACS_BLOB {space}\n" + kernel_source("context.h") + text + driver
        program = cl.Program(self.context, source).build(list(options))
        packed, local_bytes = pack(function, arguments)
        # a buffer, as the scheduler has it: the driver is told of the memory that pointers lead to
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        blob = cl.Buffer(self.context, flags, hostbuf=packed or bytes(16))
        drive = cl.Kernel(program, "acs_drive")
        declare_svm(drive, [one.svm_ptr for one in arguments if isinstance(one, cl.SVMPointer)])
        drive(
            self.queue, sizes, groups, blob, cl.LocalMemory(max(len(packed), 16)),
            cl.LocalMemory(max(local_bytes, 16)), global_offset=offset,
        )  # fmt: skip
        self.queue.finish()

    def same(
        self, source: str, kernel: str, sizes: Any, groups: Any, *arguments: Any,
        options: Any = (), offset: Any = None, space: str = "__local",
    ) -> Functions:  # fmt: skip
        """Run the kernel both ways on equal memory; arrays among the arguments are memory."""
        outcomes = []
        found = translate(source, list(options), self.device, "p1_")
        assert kernel in found.functions, found.reasons
        for way in ("kernel", "function"):
            given = [self.memory(a) if isinstance(a, np.ndarray) and a.shape else a
                     for a in arguments]  # fmt: skip
            if way == "kernel":
                self.run(source, kernel, sizes, groups, given, options, offset)
            else:
                self.call(found.text, found.functions[kernel], sizes, groups, given,
                          found.options, offset, space)  # fmt: skip
            outcomes.append(self.contents([one for one in given if isinstance(one, cl.SVM)]))
        for before, first, second in zip(
            [a for a in arguments if isinstance(a, np.ndarray) and a.shape], *outcomes, strict=True
        ):
            assert first.tobytes() == second.tobytes()
            self.touched = before.tobytes() != first.tobytes()
        return found


@pytest.fixture(scope="module")
def bench(context: cl.Context) -> Bench:
    return Bench(context)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, environment: Environment) -> None:
    environment(ACS_CL_CACHE=str(tmp_path))


IDENTITY = """
int dimension(int i) { return i - 1; }
__kernel void who(__global uint *out) {
  size_t at = (get_global_id(2) - get_global_offset(2)) * get_global_size(1);
  at = (at + get_global_id(1) - get_global_offset(1)) * get_global_size(0);
  at = (at + get_global_id(0) - get_global_offset(0)) * 64;
  for (int i = 0; i < 3; ++i) {
    uint d = (uint)dimension(i + 1);
    out[at++] = get_global_id(d); out[at++] = get_local_id(d); out[at++] = get_group_id(d);
    out[at++] = get_global_size(d); out[at++] = get_local_size(d); out[at++] = get_num_groups(d);
    out[at++] = get_global_offset(d);
  }
  out[at++] = get_work_dim();
  out[at++] = sizeof(get_global_id(0));
}
"""


@pytest.mark.parametrize("space", ["__local", "__global"])
@pytest.mark.parametrize(
    ("sizes", "groups", "offset"),
    [((12,), (4,), None), ((12,), (4,), (5,)), ((6, 4), (3, 2), (1, 7)),
     ((4, 4, 6), (2, 1, 3), None), ((4, 4, 6), (2, 4, 2), (3, 2, 1)), ((5,), (1,), None)],
)  # fmt: skip
def test_identity_is_that_of_the_launch(
    bench: Bench, sizes: Any, groups: Any, offset: Any, space: str
) -> None:
    out = np.zeros(int(np.prod(sizes)) * 64, np.uint32)
    bench.same(IDENTITY, "who", sizes, groups, out, offset=offset, space=space)
    assert bench.touched


def test_dimensions_that_do_not_exist_are_as_the_driver_has_them(bench: Bench) -> None:
    # OpenCL has sizes of 1 there, PoCL 0
    source = """
__kernel void who(__global uint *out) {
  for (int i = 3; i < 5; ++i) {
    uint d = i == 4 ? ~0u : i;
    *out++ = get_global_id(d); *out++ = get_local_id(d); *out++ = get_group_id(d);
    *out++ = get_global_size(d); *out++ = get_local_size(d); *out++ = get_num_groups(d);
  }
}
"""
    bench.same(source, "who", (1,), (1,), np.full(12, 9, np.uint32))


def test_linear_ids_of_newer_opencl(bench: Bench) -> None:
    source = """
__kernel void who(__global ulong *out) {
  size_t i = get_global_linear_id();
  out[2 * i] = get_local_linear_id() + 1;
  out[2 * i + 1] = get_enqueued_local_size(0) * 100 + get_enqueued_local_size(1);
}
"""
    out = np.zeros(2 * 6 * 4 * 2, np.uint64)
    options = ["-cl-std=CL3.0"]
    found = bench.same(source, "who", (6, 4, 2), (3, 2, 1), out, options=options, offset=(9, 1, 2))
    assert bench.touched
    assert found.options == ("-cl-std=CL3.0",)


@pytest.mark.parametrize("items", [16, 64])
def test_reductions_with_barrier_loops(bench: Bench, items: int) -> None:
    source = """
float add(float a, float b) { return a + b; }
__kernel void sum(__global const float *restrict in, __global float *out, __local float *more) {
  __local float part[N], twice[2][N];
  const int i = get_local_id(0);
  part[i] = in[get_global_id(0)];
  more[i] = part[i] * part[i];
  twice[i & 1][i] = 1;
  twice[~i & 1][i] = 2;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int span = N / 2; span > 0; span /= 2) {
    if (i < span) {
      part[i] = add(part[i], part[i + span]);
      more[i] = add(more[i], more[i + span]);
      twice[1][i] += twice[1][i + span];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i == 0) {
    out[3 * get_group_id(0)] = part[0];
    out[3 * get_group_id(0) + 1] = *more + sizeof(part) + sizeof twice;
    out[3 * get_group_id(0) + 2] = twice[1][0];
  }
}
"""
    values = np.random.default_rng(1).normal(size=8 * items).astype(np.float32)
    found = bench.same(source, "sum", (8 * items,), (items,), values, np.zeros(24, np.float32),
                       cl.LocalMemory(4 * items), options=[f"-DN={items}"])  # fmt: skip
    assert bench.touched
    function = found.functions["sum"]
    assert function.barriers
    assert not function.tiled
    assert function.local_bytes == 12 * items
    assert "restrict" not in found.text


def test_local_variables_of_every_form(bench: Bench) -> None:
    source = """
typedef float rows[4][2];
typedef struct { char c; double d; } pair;
__kernel void forms(__global float *out) {
  int first = get_local_id(0);
  local rows a, *of_a;
  __local struct { int n; float4 v; } s;
  __local volatile int n; local pair pairs[3];
  float __local wide[4] __attribute__((aligned(64)));
  __local float *__local pointers[2];
  local int tile[2][3][4];
  of_a = &a;
  if (first == 0) {
    n = 3;
    s.n = as_int(2.5f);
    s.v = (float4)(1, 2, 3, 4);
    pairs[2].d = 7;
    for (int i = 0; i < 4; ++i) { a[i][1] = i; (*of_a)[i][0] = 10 * i; wide[i] = i; }
    pointers[1] = &a[2][1];
    tile[1][2][3] = 42;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __local int *flat = &tile[1][0][0];
  { float a = 0.5f; out[16 * first] = a; }
  out[16 * first + 1] = a[3][1] + a[3][0] + n;
  out[16 * first + 2] = as_float(s.n) + s.v.w;
  out[16 * first + 3] = *pointers[1];
  out[16 * first + 4] = flat[11];
  out[16 * first + 5] = sizeof(a) + 100 * sizeof(s) + 10000 * sizeof pairs;
  out[16 * first + 6] = ((size_t)&wide[0]) % 64 + ((size_t)&s) % 16 + vec_step(s.v);
  out[16 * first + 7] = pairs[2].d + wide[3] + sizeof(tile[0]);
}
"""
    found = bench.same(source, "forms", (8,), (4,), np.zeros(128, np.float32))
    assert bench.touched
    assert not found.functions["forms"].tiled


def test_values_of_every_kind(bench: Bench) -> None:
    source = """
typedef struct __attribute__((packed)) { char tag; int value; } tight;
typedef struct { float4 v; short s; } mixed;
struct big { double4 wide; int n; };
typedef enum { no, yes = 7 } answer;
typedef unsigned char byte;
typedef float3 vector;
__kernel void values(__global double *out, byte b, vector v, float4 w, double4 d, const tight t,
                     mixed m, struct big g, answer a, ulong8 u, short3 s, long l, char2 c,
                     double3 d3, unsigned int n, signed char neg) {
  out[0] = b; out[1] = v.x + 10 * v.y + 100 * v.z; out[2] = w.w; out[3] = d.w + d.x;
  out[4] = t.tag + t.value; out[5] = m.v.z + m.s; out[6] = g.wide.y + g.n;
  out[7] = a == yes; out[8] = u.s7; out[9] = s.z; out[10] = l; out[11] = c.y; out[12] = d3.z;
  out[13] = n; out[14] = neg;
}
"""
    tight = np.zeros((), np.dtype([("tag", "i1"), ("value", "i4")]))
    tight["tag"], tight["value"] = 3, 1000
    mixed = np.zeros((), np.dtype({"names": ["v", "s"], "formats": [cltypes.float4, "i2"],
                                   "offsets": [0, 16], "itemsize": 32}))  # fmt: skip
    mixed["v"], mixed["s"] = cltypes.make_float4(1, 2, 3, 4), -5
    big = np.zeros((), np.dtype({"names": ["wide", "n"], "formats": [cltypes.double4, "i4"],
                                 "offsets": [0, 32], "itemsize": 64}))  # fmt: skip
    big["wide"], big["n"] = cltypes.make_double4(1, 2, 3, 4), 9
    found = bench.same(
        source, "values", (1,), (1,), np.zeros(16), np.uint8(200), cltypes.make_float3(1, 2, 3),
        cltypes.make_float4(1, 2, 3, 4), cltypes.make_double4(1.5, 2, 3, 4), tight, mixed, big,
        np.uint32(7), cltypes.make_ulong8(1, 2, 3, 4, 5, 6, 7, 8), cltypes.make_short3(1, 2, 3),
        np.int64(-(2**40)), cltypes.make_char2(1, -2), cltypes.make_double3(1, 2, 3),
        np.uint32(3_000_000_000), np.int8(-5),
    )  # fmt: skip
    assert bench.touched
    assert all(field.offset % 16 == 0 for field in found.functions["values"].fields
               if field.size >= 16 and field.size % 16 == 0)  # fmt: skip
    assert found.functions["values"].tiled


HELPERS = """
#define GID get_global_id(0)
#define AT(p) ((p) + GID)
#define EACH(n) for (size_t i = GID; i < (n); i += get_global_size(0))
float late(size_t);
static inline void store(__global float *to, float v) { *AT(to) = v + late(GID); }
float late(size_t i) { return i > 3 ? get_group_id(0) : -1.0f; }
__attribute__((always_inline)) int number(void);
int number() { return get_local_id(0) * get_local_size(0); }
int pure(int x) { return x * 3; }
__kernel void part(__global float *a, const int n) {
  __local int shared[4];
  if (GID >= n) return;
  shared[get_local_id(0)] = number();
  store(a, pure(shared[get_local_id(0)]));
}
__kernel void whole(__global float *a, int n) {
  __local float mine[4];
  mine[get_local_id(0)] = 1000 * pure(GID);
  part(a, n);
  a[GID] += mine[get_local_id(0)];
  EACH(n) a[i] += 0.25f;
}
"""


@pytest.mark.parametrize("kernel", ["part", "whole"])
def test_helpers_early_returns_and_kernels_that_call_kernels(bench: Bench, kernel: str) -> None:
    found = bench.same(HELPERS, kernel, (16,), (4,), np.zeros(16, np.float32), np.int32(13))
    assert bench.touched
    assert found.functions["part"].local_bytes == 16
    assert found.functions["whole"].local_bytes == 32
    assert "p1_pure(int x)" in found.text  # it needs no context


ONE_AFTER_THE_OTHER = """
kernel void first(global int *a) {
  local int t[4];
  t[get_local_id(0)] = 5 + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] += t[3 - get_local_id(0)];
}
kernel void second(global int *a) {
  local int u[6];
  u[get_local_id(0)] = 50 + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] += u[3 - get_local_id(0)];
}
kernel void third(global int *a) { local int v[8]; v[0] = 7; a[get_global_id(0)] += v[0]; }
kernel void both(global int *a) { first(a); second(a); }
"""


def test_kernels_that_one_kernel_calls_share_no_local_memory(bench: Bench) -> None:
    """A work-item begins with the second one while others still read what the first one has."""
    found = bench.same(ONE_AFTER_THE_OTHER, "both", (8,), (4,), np.zeros(8, np.int32))
    assert bench.touched
    assert found.functions["both"].local_bytes == 16 + 24
    assert found.functions["third"].local_bytes == 32  # nobody calls it beside others


def test_programs_with_equal_names_share_a_text(bench: Bench) -> None:
    one = """
#define SCALE 3
typedef float real;
typedef struct { real x, run; } point;
enum { few = 5 };
__constant int table[2] = { 1, 2 };
real help(point p) { return p.x * SCALE + p.run + few + table[1]; }
__kernel void run(__global real *out) {
  point p = { .x = get_global_id(0), .run = 2 };
  float4 xyzw = (float4)(p.x, 1, 2, 3);
  out[get_global_id(0)] = help(p) + xyzw.x + xyzw.wzyx.x;
}
"""
    two = """
#define SCALE 5
typedef double real;
struct point { real run; struct { int x, help; } x; };
enum { few = 7 };
__constant float table[3] = { 1, 2, 0.5f };
real help(struct point p) { return p.run * SCALE + few + table[2] + p.x.help; }
int x(int y) { return y + 1; }
__kernel void run(__global float *out) {
  struct point point = { get_global_id(0), { 1, 2 } };
  int table = 0;
  float2 v = (float2)(table, x(3));
  { int help = 4; table += help; goto run; }
run:
  out[get_global_id(0)] = help(point) + v.y + v.x + x(table);
}
"""
    three = "__kernel void x(__global float *out) { float2 v = 1; out[get_global_id(0)] += v.x; }"
    found = [translate(s, [], bench.device, f"p{i}_") for i, s in enumerate((one, two, three))]
    text = "\n".join(one.text for one in found)
    for source, functions, kernel in zip(
        (one, two, three), found, ["run", "run", "x"], strict=True
    ):
        given = bench.memory(np.zeros(8, np.float32))
        bench.call(text, functions.functions[kernel], (8,), (2,), [given])
        plain = bench.memory(np.zeros(8, np.float32))
        bench.run(source, kernel, (8,), (2,), [plain])
        got, expected = bench.contents([given, plain])
        assert got.tobytes() == expected.tobytes()
        assert got.any()


def test_constants_of_a_kernel_and_words_before_it(bench: Bench) -> None:
    source = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
kernel __attribute__((reqd_work_group_size(N, 2, 1))) __attribute__((vec_type_hint(float4)))
void words(global float *restrict out, global const float * const restrict in) {
  __constant float own[2] = { 1.5f, 2.5f }, other = 4;
  const size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);
#pragma unroll
  for (int k = 0; k < 2; ++k) out[i] += own[k] * in[i] + other;
}
extern void far_away(int);
"""
    found = bench.same(source, "words", (8, 4), (4, 2), np.zeros(32, np.float32),
                       np.arange(32, dtype=np.float32), options=["-DN=4", "-w"])  # fmt: skip
    function = found.functions["words"]
    assert function.group_size == (4, 2, 1)
    assert function.tiled
    assert found.options == ()
    assert "far_away" not in found.text
    assert found.text.rstrip().endswith("FP_CONTRACT DEFAULT")


def test_names_behind_three_dots_are_those_of_the_program(bench: Bench) -> None:
    source = """
enum { LOW = 2, HIGH = 5 };
kernel void ranges(global int *a) {
  int i = get_global_id(0), t[HIGH + 1] = {[LOW ...HIGH] = 7};
  switch (i) { case LOW ...HIGH: a[i] = t[i] + 1; break; default: a[i] = t[0]; }
}
"""
    bench.same(source, "ranges", (8,), (4,), np.full(8, -1, np.int32))
    assert bench.touched


def test_constant_arguments_are_read_from_global_memory(bench: Bench) -> None:
    source = """
typedef struct { float weight; int at; } tap;
__constant float table[2] = { 3, 4 };
float weigh(__constant tap *taps, int i, constant float4 *restrict more) {
  const __constant tap *p = &taps[i];
  return p->weight * p->at + more[i].y;
}
float other(__constant float *p) { return p[1]; }
__kernel void fold(__constant tap *taps __attribute__((max_constant_size(1024))),
                   float4 constant *more, __global float *out) {
  __constant float own[1] = { 0.5f };
  int i = get_global_id(0);
  out[i] = weigh(taps, i, more) + table[1] + own[0] + ((__constant float *)more)[i];
}
__kernel void tabled(__global float *out) { *out = other(table); }
"""
    taps = np.zeros(4, np.dtype([("weight", "f4"), ("at", "i4")]))
    taps["weight"], taps["at"] = np.arange(4) + 0.25, np.arange(4) * 10
    more = np.arange(16, dtype=np.float32)
    found = bench.same(source, "fold", (4,), (2,), taps, more, np.zeros(4, np.float32))
    assert bench.touched
    assert found.functions["fold"].fields[0].kind == "pointer"
    assert set(found.functions) == {"fold", "tabled"}


def test_many_arguments(bench: Bench) -> None:
    count = 60
    parameters = ", ".join(
        f"__global int *a{i}" if i % 3 == 0 else f"{('char', 'long')[i % 2]} a{i}"
        for i in range(count)
    )
    lines = " ".join(f"*a{i} = a{i + 1} + a{i + 2};" for i in range(0, count, 3))
    source = f"__kernel void many({parameters}) {{ {lines} }}"
    arguments = [
        np.zeros(1, np.int32) if i % 3 == 0 else (np.int8(i), np.int64(i * 2**33 + i))[i % 2]
        for i in range(count)
    ]
    bench.same(source, "many", (1,), (1,), *arguments)
    assert bench.touched


def test_async_copies_and_pointers_in_memory(bench: Bench) -> None:
    source = """
struct node { int value; };
__kernel void copies(__global int *a, __global struct node *nodes) {
  __local int tile[8];
  event_t done = async_work_group_copy(tile, a + 8 * get_group_id(0), 8, 0);
  wait_group_events(1, &done);
  __local int *p = tile;
  a[get_global_id(0)] = p[7 - get_local_id(0)] + nodes->value;
}
"""
    found = bench.same(source, "copies", (32,), (8,), np.arange(32, dtype=np.int32),
                       np.array([5], np.int32))  # fmt: skip
    assert found.functions["copies"].barriers


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("__kernel void k(read_only image2d_t i, __global int *a) {}", "image"),
        ("__kernel void k(sampler_t s) {}", "sampler"),
        ("__constant int t[2] = {1, 2}; int f(__constant int *p) { return p[1]; }"
         "__kernel void k(__constant int *a, __global int *b) { *b = f(a) + f(t); }",
         "argument a is a __constant pointer"),
        ("int f(int n) { return n ? f(n - 1) : 0; } kernel void k(global int *a) { *a = f(3); }",
         "calls itself .in f."),
        ("__kernel void k(__global int *a) { printf(\"%d\", *a); }", "prints"),
        ("__kernel void k(__global int *a) { asm volatile(\"nop\"); }", "assembly"),
        ("__kernel void k(__global int *a) { *a = nobody_knows(3); }", "nobody_knows"),
        ("typedef int T; kernel void k(global int *a)"
         " { typedef short T; constant T t[] = {(T)40000}; *a = t[0]; }", "t needs T"),
        ("enum { N = 1 }; kernel void k(global int *a)"
         " { enum { N = 2 }; constant int t[2] = {N, 5}; *a = t[1]; }", "t needs N"),
        ("constant int w = 3; kernel void k(global int *a)"
         " { long w = *a; constant int t[] = {sizeof(w)}; *a = t[0] + w; }", "t needs w"),
        ("const sampler_t s = CLK_FILTER_NEAREST; int f(read_only image2d_t i)"
         " { return read_imagei(i, s, (int2)(0, 0)).x; }"
         "__kernel void k(read_only image2d_t i, __global int *a) { *a = f(i); }", "image|sampler"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_function_says_why(bench: Bench, source: str, reason: str) -> None:
    found = translate(source + " __kernel void fine(__global int *z) { *z = 1; }", [],
                      bench.device, "p1_")  # fmt: skip
    assert list(found.functions) == ["fine"]
    assert re.search(reason, found.reasons["k"]), found.reasons
    bench.call(found.text, found.functions["fine"], (1,), (1,), [bench.memory(np.zeros(1, "i4"))])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("__global int counter; __kernel void k(__global int *a) { *a = counter++; }",
         "writable variable counter"),
        ("__kernel void k(__global int *a) { static int n; *a = n++; }", "from launch to launch"),
        ("__kernel void k(__global int *a, queue_t q) { *a = 1; }", "queue"),
        ("__kernel void k(__global int *a) { void (^b)(void) = ^{ *a = 1; }; b(); }", "blocks"),
        ("__kernel void k(__global int *a) { *a = get_sub_group_id(); }", "sub-groups"),
        ("__kernel void k(__global int *a) { __local int t[0]; *a = 0 * sizeof(t); }",
         "no size for the variable t"),
    ],
)  # fmt: skip
def test_what_newer_opencl_adds_says_why(source: str, reason: str) -> None:
    found = translate(source, ["-cl-std=CL2.0"], None, "p1_")
    assert not found.functions
    assert re.search(reason, found.reasons["k"]), found.reasons


@pytest.mark.parametrize("pragma", ["clang fp contract(off)", "float_control(precise, off)"])
def test_a_pragma_that_would_hold_for_other_programs_says_so(pragma: str) -> None:
    """Inside of a function it ends with the block, and these may share a text with others."""
    top, body = f"#pragma {pragma}\n", f"\n#pragma {pragma}\n"
    source = "%s kernel void k(global float *a) {%s *a = *a * a[1] + a[2]; }"
    for outside in (top, f'_Pragma("{pragma}") typedef int number;'):
        with pytest.raises(CannotTranslate, match="other programs") as failed:
            translate(source % (outside, ""), [], None, "p1_")
        assert pragma in failed.value.reason
    assert list(translate(source % ("", body), [], None, "p1_").functions) == ["k"]
    known = "#pragma OPENCL FP_CONTRACT OFF\n#pragma STDC FP_CONTRACT OFF\n#pragma pack(1)\n"
    assert list(translate(source % (known, ""), [], None, "p1_").functions) == ["k"]


def test_reserved_names_and_broken_sources() -> None:
    with pytest.raises(CannotTranslate, match="acs_ctx"):
        translate("__kernel void k(__global int *acs_ctx) {}", [], None, "p1_")
    with pytest.raises(clang.CannotParse):
        translate("__kernel void k(__global int *a) { oops }", [], None, "p1_")


# ---- the text and the cache ----------------------------------------------------------------------


def test_unused_functions_do_not_come_along() -> None:
    source = """
float unused(float x); float unused(float x) { return x; }
int used(int x) { return x; }
__kernel void k(__global int *a) { *a = used(1); }
"""
    found = translate(source, ["-cl-mad-enable", "-D", "A=1", "-I", "."], None, "q_")
    assert "unused" not in found.text
    assert "static int q_used" in found.text
    assert found.options == ("-cl-mad-enable",)


def test_second_translation_comes_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "__kernel void k(__global int *a, float3 v) { *a = v.x; }"
    first = translate(source, [], None, "p1_")
    monkeypatch.setattr(clang, "parse", lambda *_: pytest.fail("parsed again"))
    second = translate(source, [], None, "p2_")
    assert second.functions["k"].fields == first.functions["k"].fields
    assert second.functions["k"].symbol == first.functions["k"].symbol.replace("p1_", "p2_")
    assert second.text == first.text.replace("p1_", "p2_")


def test_a_damaged_record_is_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "__kernel void k(__global int *a) { *a = 1; }"
    monkeypatch.setattr(cache, "load", lambda _: {"text": "", "functions": [[1, 2]]})
    assert translate(source, [], None, "p1_").functions["k"].tiled


def test_tokens_without_edits_come_out_as_they_stood() -> None:
    text = 'a+1.5e+3f /* " */ "x\\"" \'\\\'\' p->q ...\n#pragma unroll 3\n// end\n{ b[2] }'
    tokens = Tokens(text)
    assert tokens.render(0, len(tokens)) == text
    assert [token.text for token in tokens.all][:3] == ["a", "+", "1.5e+3f"]


def test_long_sources_do_not_take_long(bench: Bench) -> None:
    lines = "\n".join(f"float f{i}(float x) {{ return x * {i} + get_global_id(0); }}"
                      for i in range(300))  # fmt: skip
    calls = " + ".join(f"f{i}(*a)" for i in range(300))
    start = time.thread_time()
    translate(f"{lines}\n__kernel void k(__global float *a) {{ *a = {calls}; }}", [], None, "p_")
    assert time.thread_time() - start < 10


def test_letters_beyond_ascii_keep_their_bytes_in_strings() -> None:
    text = 'constant char *s = "1ä2€"; // ä'
    escaped = plain(text)
    assert escaped.isascii()
    assert escaped.split("//")[0] == 'constant char *s = "1\\303\\2442\\342\\202\\254"; '
