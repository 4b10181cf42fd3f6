"""Variants of kernels that take byte offsets: they compute what the kernel computes, elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.opencl_c.parse import names
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.environment import Environment
from acs_cl.opencl_c.parse.preprocess import preprocess
from acs_cl.opencl_c.variants.guards import with_guards
from acs_cl.opencl_c.variants.offsets import with_byte_offsets

REVERSE = """
#define SIGNATURE(T) __global const T *restrict in, __global T *out
#define KERNEL __kernel __attribute__((reqd_work_group_size(N, 1, 1)))
float half_of(float x) { return x / 2; };
#pragma OPENCL FP_CONTRACT OFF
KERNEL void reverse(SIGNATURE(float) /* , ) */, __local float *shared) {
  __local float tile[N];
  int i = get_local_id(0);
  tile[i] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[i] = half_of(tile[N - 1 - i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = shared[i];
}
"""


def build(context: cl.Context, source: str, kernel: str, indices: tuple[int, ...],
          options: list[str]) -> Any:  # fmt: skip
    text, name = with_byte_offsets(source, options, context.devices[0], kernel, indices)
    return cl.Kernel(cl.Program(context, text).build(options), name)


def left_by(
    context: cl.Context, kernel: Any, items: int, group: int, *arguments: Any
) -> list[np.ndarray]:
    """What a launch leaves in its arrays. Other arguments are NumPy's numbers, or local memory."""
    queue, flags = cl.CommandQueue(context), cl.mem_flags.COPY_HOST_PTR
    given = [
        cl.Buffer(context, flags, hostbuf=one) if isinstance(one, np.ndarray) else one
        for one in arguments
    ]
    kernel(queue, (items,), (group,), *given)
    found = []
    for host, memory in zip(arguments, given, strict=True):
        if isinstance(host, np.ndarray):
            found.append(np.empty_like(host))
            cl.enqueue_copy(queue, found[-1], memory)
    return found


def test_local_arrays_and_barriers_work_behind_macros(context: cl.Context) -> None:
    options = ["-DN=8"]
    kernel = build(context, REVERSE, "reverse", (0, 1), options)
    assert kernel.function_name == "reverse__acs_offset_0_1"
    values = np.arange(64, dtype=np.float32)
    arguments = values, np.zeros_like(values), cl.LocalMemory(32), np.uint64(12), np.uint64(20)
    _, got = left_by(context, kernel, 16, 8, *arguments)
    expected = np.zeros(64, np.float32)
    expected[5:21] = values[3:19].reshape(2, 8)[:, ::-1].reshape(-1) / 2
    assert np.array_equal(got, expected)


def test_the_kernel_itself_is_not_compiled_again(context: cl.Context) -> None:
    text, name = with_byte_offsets(REVERSE, ["-DN=8"], context.devices[0], "reverse", (1,))
    program = cl.Program(context, text).build(["-DN=8"])
    assert {kernel.function_name for kernel in program.all_kernels()} == {name}


OTHERS = """
#define TWICE(name) kernel void name(global int *x) { x[get_global_id(0)] *= 2; }
typedef int number;
TWICE(first)
#pragma OPENCL FP_CONTRACT OFF
__attribute__((reqd_work_group_size(4, 1, 1)))
kernel void ours(global number *x) { x[get_global_id(0)] += 1; }
kernel void called(global int *x) { x[get_global_id(0)] += 3; }
TWICE(second) TWICE(third)
int three(void) { return 3; }
kernel void calling(global int *x) { called(x); }
kernel void last(global number *x) { x[get_global_id(0)] -= three(); }
"""


@pytest.mark.parametrize("kernel", ["ours", "last", "first", "calling"])
def test_kernels_that_nothing_names_are_not_compiled_again(
    context: cl.Context, kernel: str
) -> None:
    """But those that something calls, and directives between them."""
    text, name = with_byte_offsets(OTHERS, [], context.devices[0], kernel, (0,))
    program = cl.Program(context, text).build()
    assert {one.function_name for one in program.all_kernels()} == {name, "called"}
    assert "#pragma OPENCL FP_CONTRACT OFF" in text
    assert text.count("reqd_work_group_size") == (kernel == "ours")
    values = np.arange(8, dtype=np.int32)
    (got,) = left_by(context, cl.Kernel(program, name), 4, 4, values, np.uint64(16))
    change = {"ours": lambda v: v + 1, "last": lambda v: v - 3, "first": lambda v: v * 2,
              "calling": lambda v: v + 3}[kernel]  # fmt: skip
    assert got.tolist() == [0, 1, 2, 3, *change(values[4:]).tolist()]


@pytest.mark.parametrize(
    "parameter",
    [
        "const __global int4 *v", "__global int4 const *const v", "__constant int4 *v",
        "__global volatile int4 *__restrict v", "quads v", "const __global int4 v[]",
        "__global struct four *v",
    ],
)  # fmt: skip
def test_every_way_to_write_a_pointer(context: cl.Context, parameter: str) -> None:
    source = f"""
typedef __global int4 *quads;
struct four {{ int x, y, z, w; }};
kernel void pick(global int *restrict out, {parameter}) {{ out[0] = v[1].z; out[1] = v->x; }}
"""
    kernel = build(context, source, "pick", (1, 0), [])
    out, vectors = np.zeros(4, np.int32), np.arange(32, dtype=np.int32)
    got, _ = left_by(context, kernel, 1, 1, out, vectors, np.uint64(32), np.uint64(4))
    assert list(got) == [0, 8 + 6, 8, 0]


PRAGMAS = """
#define FORMULA x[i] * c + d - 0.5f * x[i]
kernel void first(global float *y, global const float *x, float c, float d) {
#pragma OPENCL FP_CONTRACT OFF
  int i = get_global_id(0); y[i] = FORMULA;
}
kernel void between(global float *y, global const float *x, float c, float d) {
  int i = get_global_id(0); y[i] = FORMULA;
}
float helped(global const float *x, float c, float d)
{ int i = get_global_id(0) % get_global_size(0); return FORMULA; }
kernel void helping(global float *y, global const float *x, float c, float d) {
  y[get_global_id(0)] = helped(x, c, d);
}
kernel void unrolled(global float *y, global const float *x, float c, float d) {
  int i = get_global_id(0); y[i] = 0;
#pragma unroll 4
  for (int j = 0; j < 4; j++) y[i] += j * FORMULA;
}
#pragma OPENCL FP_CONTRACT OFF
kernel void last(global float *y, global const float *x, float c, float d) {
  int i = get_global_id(0); y[i] = FORMULA;
}
"""


@pytest.mark.parametrize("kernel", ["first", "between", "helping", "unrolled", "last"])
def test_a_variant_has_the_pragmas_of_its_kernel_and_no_others(
    device: cl.Device, kernel: str
) -> None:
    """Some decide how often a result is rounded."""
    numbers = np.float32(1.2345), np.float32(7.654)
    with (
        acs.Runtime(device, backend="serial", memory="buffers") as rt,
        acs.Runtime(device, backend="serial", check="access,every=1") as checked,
    ):
        values = np.random.default_rng(1).standard_normal(64).astype("f4")
        flag = rt.array([1, 64], "u4")
        x, y = rt.array(values), rt.zeros((4, 64), "f4")
        launch = getattr(rt.build(PRAGMAS), kernel)
        launch((64,), None, y[0], x, *numbers)
        launch((64,), None, y[1], x, *numbers)  # begins inside of its buffer
        launch((64,), None, y[2], x, *numbers, when=flag[0])
        launch((acs.size(flag[1], upto=64),), None, y[3], x, *numbers)
        z = checked.zeros(64, "f4")
        launch = getattr(checked.build(PRAGMAS), kernel)
        launch((64,), None, z, checked.array(values), *numbers)
        found = np.vstack((y.get(), z.get()))
    assert found.any()
    assert (found == found[0]).all(1).tolist() == [True] * 5


def test_a_copy_behind_a_pragma_that_holds_for_no_other_function_is_refused() -> None:
    helper = "float f(float x) { return get_global_size(0) * x + 1; }\n"
    pragma = "#pragma OPENCL FP_CONTRACT OFF\n"
    kernel = "kernel void k(global float *x) { x[0] = f(x[1]); }\n"
    with pytest.raises(CannotParse, match="FP_CONTRACT OFF stands behind f"):
        with_guards(helper + "int g(void);\n" + pragma + "int g(void);\n" + kernel, [], None, "k",
                    False, True)  # fmt: skip
    for source in (pragma + helper + kernel, f"float f(float);\n{kernel}{helper}{pragma}"):
        assert "acs_counted" in with_guards(source, [], None, "k", False, True).source


def test_a_kernel_that_calls_a_kernel_keeps_both(context: cl.Context) -> None:
    source = """
__kernel void one(__global int *a, int i) { a[i] += 1; }
__kernel void all_of(__global int *a) { one(a, get_global_id(0)); }
"""
    kernel = build(context, source, "all_of", (0,), [])
    (got,) = left_by(context, kernel, 4, 1, np.zeros(8, np.int32), np.uint64(8))
    assert list(got) == [0, 0, 1, 1, 1, 1, 0, 0]


def test_conditions_are_those_of_the_device(context: cl.Context) -> None:
    source = """
#if defined(cl_khr_fp64) && __OPENCL_C_VERSION__ >= 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif
__kernel void size(__global int *out) { out[0] = sizeof(real); }
"""
    kernel = build(context, source, "size", (0,), [])
    (got,) = left_by(context, kernel, 1, 1, np.zeros(2, np.int32), np.uint64(4))
    assert list(got) == [0, 8 if "cl_khr_fp64" in context.devices[0].extensions else 4]


def preprocessed(source: str, options: str = "") -> tuple[str, list[str]]:
    environment = Environment(None, options)
    environment.ask(names.asked([source], options.split()))
    return preprocess(source, options, environment)[:2]


def test_option_macros_are_not_expanded_twice() -> None:
    source = "__kernel void k(__global int *n) { n[0] = size; }"
    text, defined = preprocessed(source, "-Dsize=size+1")
    assert defined == ["size"]
    assert text.count("+") == 1
    assert with_byte_offsets(source, "-Dsize=4", None, "k", (0,))[0].split()[0] == "#undef"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#define F(x) -x\nF(-a)", "- -a"),
        ("#define P +\na+P+b", "a+ + +b"),
        ("#define D *p\na/D", "a/ *p"),
        ("a+++b - --c", "a++ +b - --c"),
    ],
)
def test_tokens_that_a_macro_puts_side_by_side_stay_two(source: str, expected: str) -> None:
    text, _ = preprocessed(source)
    assert text.strip() == expected


def test_counts_of_pragmas_are_worked_off() -> None:
    text, _ = preprocessed("#define N (2*M)\n#define M 4\n#pragma unroll N\n")
    assert text.strip() == "#pragma unroll (2*4)"


def test_constants_of_the_device_stay_its_own() -> None:
    text, _ = preprocessed("#ifndef M_PI\n#define M_PI 3\n#endif\nM_PI CHAR_BIT")
    assert text.split() == ["M_PI", "CHAR_BIT"]


@pytest.mark.parametrize(
    ("source", "indices", "reason"),
    [
        ("__kernel void k(__global int *a) { oops }", (0,), "undeclared|expected"),
        ("__kernel void other(__global int *a) {}", (0,), "no kernel k"),
        ("__kernel void k(int a) {}", (0,), "not a pointer"),
        ("__kernel void k(__global int (*a)[4]) {}", (0,), "one piece"),
        ('#include "missing.h"\n__kernel void k(__global int *a) {}', (0,), "missing.h"),
        ("#ifdef __SOME_COMPILER__\n#endif\n__kernel void k(__global int *a) {}", (0,),
         "__SOME_COMPILER__"),
    ],
)  # fmt: skip
def test_what_cannot_be_rewritten_says_why(
    source: str, indices: tuple[int, ...], reason: str
) -> None:
    with pytest.raises(CannotParse, match=reason):
        with_byte_offsets(source, [], None, "k", indices)
