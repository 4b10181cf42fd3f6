"""A source is read as the driver's compiler reads it, and variants are the same program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.access import inference
from acs_cl.access.binder import binder
from acs_cl.access.inference import from_source
from acs_cl.opencl_c.parse import clang, macros, names, preprocess
from acs_cl.opencl_c.parse.clang import CannotParse

WRITE = "kernel void k(global int *y) {{ y[{}] = 5; }}\n"
SIDE = 512


def chosen(condition: str, begin: str = "") -> str:
    """A source in which a condition decides where is written."""
    return f"{begin}{condition}\n#define AT 100\n#else\n#define AT 3\n#endif\n" + WRITE.format("AT")


CONDITIONS = {
    "the version of the language": chosen("#if __OPENCL_C_VERSION__ >= 200"),
    "the device's version": chosen("#if __OPENCL_VERSION__ >= 300"),
    "behind another macro": chosen("#if Q", "#define Q __x86_64__\n"),
    "behind two": chosen("#if R", "#define R (Q+0)\n#define Q __clang_major__\n"),
    "pasted": chosen("#if P(__x86,_64__)", "#define P(a,b) a##b\n"),
    "a directive that is continued": chosen("#if\\\ndef __x86_64__"),
    "a condition that is continued": chosen("#if \\\n defined(__x86_64__)"),
    "a name that is continued": chosen("#ifdef __x86\\\n_64__"),
    "digraph": chosen("%:ifdef __x86_64__"),
    "trigraph": chosen("??=ifdef __x86_64__"),
    "a comment before": chosen("/* a\n */ # /* b */ ifdef /**/ __x86_64__"),
    "not reserved": chosen("#ifdef POCL_DEVICE_ADDRESS_BITS"),
    "one underscore": chosen("#ifdef _LP64"),
    "a keyword": chosen("#ifdef inline"),
    "a function": chosen("#ifdef cos"),
    "a macro with arguments": chosen("#ifdef as_int"),
    "a constant": chosen("#ifndef M_PI"),
    "a feature": chosen("#ifdef __opencl_c_images"),
    "an extension": chosen("#ifdef cl_khr_fp64"),
    "limits": chosen("#if INT_MAX == 2147483647 && CHAR_BIT == 8"),
    "has builtin": chosen("#if __has_builtin(__builtin_popcount)"),
    "has no builtin": chosen("#if defined(__has_builtin) && __has_builtin(no_such_thing)"),
    "has builtin, behind": chosen(
        "#if H(__builtin_clz)", "#ifdef __has_builtin\n#define H(x) __has_builtin(x)\n#endif\n"
    ),
    "has attribute": chosen("#if __has_attribute(reqd_work_group_size)"),
    "has feature": chosen("#if __has_feature(modules) || __has_extension(c_static_assert)"),
    "something nobody has": chosen("#if defined(__SOME_COMPILER__) || SOME_OTHER > 2"),
}
BODIES = {
    "the compiler's version": WRITE.format("__clang_major__"),
    "its parts": WRITE.format("__clang_minor__ + __clang_patchlevel__"),
    "the language's": WRITE.format("__OPENCL_C_VERSION__ / 100"),
    "alignment": WRITE.format("__BIGGEST_ALIGNMENT__"),
    "not reserved, but PoCL's": (
        "#ifdef POCL_DEVICE_ADDRESS_BITS\n#define B POCL_DEVICE_ADDRESS_BITS\n#else\n#define B 1\n"
        "#endif\n" + WRITE.format("B")
    ),
    "one underscore": WRITE.format("_LP64"),
    "pasted": "#define P(a,b) a##b\n" + WRITE.format("P(__clang_,major__)"),
    "a string": "#define S(x) #x\n#define T(x) S(x)\n" + WRITE.format("sizeof(T(__INT_MAX__))"),
    "a string of a name": "#define S(x) #x\n" + WRITE.format("sizeof(S(__clang_version__))"),
    "a string of what is pasted": (
        "#define S(x) #x\n#define T(x) S(x)\n#define P(a,b) a##b\n"
        + WRITE.format("sizeof(T(P(__clang_,major__)))")
    ),
    "a string of a constant": (
        "#define S(x) #x\n#define T(x) S(x)\n" + WRITE.format("sizeof(T(CLK_LOCAL_MEM_FENCE))")
    ),
    "a string of a pasted constant": (
        "#define S(x) #x\n#define T(x) S(x)\n#define P(a,b) a##b\n"
        + WRITE.format("sizeof(T(P(CLK_LOCAL,_MEM_FENCE)))")
    ),
    "a string in the length of an array": (
        "#define S(x) #x\n#define T(x) S(x)\n#define P(a,b) a##b\n"
        "kernel void k(global int *y) { char a[sizeof(T(P(__clang_,major__)))]; y[sizeof(a)] = 1; }"
    ),
    "a string of the compiler's": WRITE.format("sizeof(__VERSION__)"),
    "a type": WRITE.format("sizeof(__SIZE_TYPE__)"),
    "has builtin": WRITE.format("__has_builtin(__builtin_popcount) + 7"),
    "defined anew": (
        "#undef __OPENCL_C_VERSION__\n#define __OPENCL_C_VERSION__ 7\n"
        + WRITE.format("__OPENCL_C_VERSION__")
    ),
    "undefined behind its use": WRITE.format("__clang_major__") + "#undef __clang_major__\n",
    "the program's own, if the compiler has none": (
        "#ifndef min\n#define min(a,b) ((a)<(b)?(a):(b))\n#endif\n" + WRITE.format("min(4,5)")
    ),
    "reserved names of the program": (
        "int __my(int i) { return i + 1; }\n#define _MY(x) __my(x)\n" + WRITE.format("_MY(4)")
    ),
    "what the language leaves open": WRITE.format("(FP_ILOGBNAN < 0) + 2 * (FP_ILOGB0 < -1)"),
    "constants of samplers": WRITE.format("CLK_FILTER_NEAREST + CLK_ADDRESS_REPEAT"),
    "lines": WRITE.format("__LINE__"),
    "numbered lines": "#line 50\n\n" + WRITE.format("__LINE__"),
    "lines behind continued ones": "#define L \\\n 0 \\\n + 1\n" + WRITE.format("L + __LINE__"),
    "a comment that goes on": (
        "kernel void k(global int *y) { // off for now: \\\n y[1] = 1;\n y[2] = 2; }"
    ),
    "a comment that goes on by a trigraph": (
        "kernel void k(global int *y) { // off for now: ??/\n y[1] = 1;\n y[2] = 2; }"
    ),
}
OPTIONS = {
    "a macro": (chosen("#if Q"), ["-DQ=__x86_64__"]),
    "the standard": (chosen("#if __OPENCL_C_VERSION__ >= 200"), ["-cl-std=CL1.2"]),
    "fast mathematics": (chosen("#ifdef __FAST_RELAXED_MATH__"), ["-cl-fast-relaxed-math"]),
}
CASES = [
    *(pytest.param(source, [], id=name) for name, source in {**CONDITIONS, **BODIES}.items()),
    *(pytest.param(source, words, id=f"option: {name}")
      for name, (source, words) in OPTIONS.items()),
]  # fmt: skip
UNKNOWN = {
    "__FILE__": WRITE.format("sizeof(__FILE__)"),
    "__COUNTER__": WRITE.format("__COUNTER__"),
    "__TIME__": WRITE.format("sizeof(__TIME__)"),
    "__DATE__": "#define S(x) #x\n#define T(x) S(x)\n" + WRITE.format("sizeof(T(__DATE__))"),
    "__PRETTY_FUNCTION__": WRITE.format("sizeof(__PRETTY_FUNCTION__) & 15"),
    "__has_include": chosen("#if __has_include(<stdio.h>)"),
}


pytestmark = pytest.mark.usefixtures("own_cache")


def built(runtime: acs.Runtime, source: str, options: Sequence[str] = ()) -> acs.Program:
    """A program, if the driver builds it."""
    try:
        return runtime.build(source, options=options)
    except acs.AcsError as error:
        pytest.skip(f"the driver does not build it: {error}")


def wanted(program: acs.Program) -> Any:
    """What the kernel writes on a plain queue: the driver's own program, launched by PyOpenCL."""
    context = program.native.context
    y = np.zeros(SIDE, np.int32)
    memory = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=y)
    queue = cl.CommandQueue(context)
    cl.Kernel(program.native, "k")(queue, (1,), (1,), memory)
    cl.enqueue_copy(queue, y, memory)
    return y


@pytest.fixture(scope="module")
def serial(context: cl.Context) -> Iterator[acs.Runtime]:
    with acs.Runtime(context=context, backend="serial") as runtime:
        yield runtime


@pytest.fixture(scope="module")
def buffers(context: cl.Context) -> Iterator[acs.Runtime]:
    with acs.Runtime(context=context, backend="serial", memory="buffers") as runtime:
        yield runtime


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.rotate("form", 1)
@pytest.mark.parametrize("form", ["when", "size", "view"])
@pytest.mark.parametrize(("source", "options"), CASES)
def test_ranges_and_rewritten_forms_are_those_of_the_driver(
    source: str,
    options: list[str],
    form: str,
    serial: acs.Runtime,
    buffers: acs.Runtime,
) -> None:
    program = built(serial, source, options)
    plain = wanted(program)
    elements = [int(at) for at in plain.nonzero()[0]]
    y = serial.zeros(SIDE, "i4")
    handle = program.k((1,), None, y)
    assert [(span.start, span.end) for span in handle.access.writes] == [
        (4 * at, 4 * at + 4) for at in elements
    ]
    if form == "view":
        longer = buffers.zeros(SIDE + 8, "i4")
        buffers.build(source, options=options).k((1,), None, longer[3 : SIDE + 3])
        found = longer.get()[3 : SIDE + 3]
    else:
        y.fill(0)
        one = serial.array([1], "u4")
        if form == "when":
            program.k((1,), None, y, when=one)
        else:
            program.k((acs.size(one, upto=1),), None, y)
        found = y.get()
    assert (found == plain).all()


@pytest.mark.parametrize(
    "source",
    [CONDITIONS["the version of the language"], BODIES["a comment that goes on"]],
    ids=["condition", "comment"],
)
def test_the_scheduler_on_the_device_runs_what_the_driver_would(
    source: str, context: cl.Context
) -> None:
    try:
        runtime = acs.Runtime(context=context, backend="device")
    except acs.UsageError as error:
        pytest.skip(str(error))
    with runtime as rt:
        program = rt.build(source)
        rt.prebuild(program.k)
        y = rt.zeros(SIDE, "i4")
        program.k((1,), None, y)
        assert (y.get() == wanted(program)).all()


@pytest.mark.parametrize(("name", "source"), UNKNOWN.items(), ids=UNKNOWN)
def test_what_nobody_knows_is_refused_and_said(
    name: str, source: str, context: cl.Context, buffers: acs.Runtime
) -> None:
    reason = f"the source depends on the compiler's macro {name}"
    with acs.Runtime(context=context, backend="serial") as rt:
        program = rt.build(source)
        y = rt.zeros(SIDE, "i4")
        handle = program.k((1,), None, y)
        assert program.k.signature.unclear == reason
        assert reason in str(rt.explain(handle))
        assert [(span.start, span.end) for span in handle.access.writes] == [(0, 4 * SIDE)]
        with pytest.raises(acs.UsageError, match=name):
            program.k((1,), None, y, when=rt.array([1], "i4"))
    program = buffers.build(source)
    inside = buffers.zeros(SIDE + 8, "i4")[3 : SIDE + 3]
    with pytest.raises(acs.UsageError, match=name):
        program.k((1,), None, inside)


@pytest.mark.parametrize("source", [CONDITIONS["has builtin"], CONDITIONS["behind another macro"]])
def test_kernels_of_other_programs_are_read_the_same_way(
    source: str, context: cl.Context, serial: acs.Runtime
) -> None:
    (element,) = wanted(built(serial, source)).nonzero()[0]
    program = cl.Program(context, source).build(cache_dir=False)  # some drivers forget it
    kernel = cl.Kernel(program, "k")
    handle = serial.launch(kernel, (1,), None, serial.zeros(SIDE, "i4"))
    writes = [(span.start, span.end) for span in handle.access.writes]
    assert writes == [(4 * element, 4 * element + 4)]


def test_the_name_of_a_function_is_not_rewritten(serial: acs.Runtime) -> None:
    program = serial.build(WRITE.format("sizeof(__func__)"))
    y = serial.zeros(SIDE, "i4")
    handle = program.k((1,), None, y)
    assert [(span.start, span.end) for span in handle.access.writes] == [(8, 12)]
    with pytest.raises(acs.UsageError, match="uses __func__"):
        program.k((1,), None, y, when=serial.array([1], "i4"))


def test_a_name_that_is_never_used_loses_nothing(serial: acs.Runtime) -> None:
    program = serial.build("#define WHERE __FILE__\n" + WRITE.format("7"))
    handle = program.k((1,), None, serial.zeros(SIDE, "i4"))
    assert [(span.start, span.end) for span in handle.access.writes] == [(28, 32)]


# ---- what is asked, and how often ----


@pytest.fixture
def asked(builds: Callable[[Build], None]) -> list[list[str]]:
    """The names that each program built to ask for them had."""
    found: list[list[str]] = []

    def noted(chunks: dict[str, int]) -> bool:
        found.append(list(chunks))
        return True

    builds(noted)
    return found


def test_a_source_that_leaves_nothing_to_its_compiler_costs_no_question(
    device: cl.Device, asked: list[list[str]]
) -> None:
    source = """
#define BLOCK 16
#if BLOCK > 8
#define NEXT(x) ((x) + BLOCK)
#endif
__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void k(__global const float *restrict a, __global float *b, int n) {
    __local float part[BLOCK];
    const int i = get_global_id(0);
    part[get_local_id(0)] = a[i] * M_PI_F;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (NEXT(i) < n) b[i] = part[BLOCK - 1 - get_local_id(0)] + as_float(as_int(a[i])) + NAN;
}"""
    assert inference.from_source(source, "k", None, device).outline is not None
    assert asked == []


def test_a_program_asks_once_and_what_was_asked_is_kept(
    device: cl.Device, asked: list[list[str]]
) -> None:
    source = chosen("#if __OPENCL_C_VERSION__ >= 200 && FOO < 3 && !defined(__BAR__)")
    inference.from_source(source, "k", None, device)
    preprocess.plain_unit(source, None, device)
    assert len(asked) == 1
    assert {"__OPENCL_C_VERSION__", "FOO", "__BAR__"} <= set(asked[0])
    with inside.new_process():
        clang.parse(source, None, device)
        clang.parse(chosen("#ifdef __clang__"), None, device)  # asked for as many sources do
        assert len(asked) == 1
        clang.parse(chosen("#ifdef __BAZ__"), None, device)
        assert asked[1:] == [["__BAZ__"]]


def test_options_have_answers_of_their_own(device: cl.Device, asked: list[list[str]]) -> None:
    source = chosen("#ifdef __FAST_RELAXED_MATH__")
    for options in ([], ["-cl-fast-relaxed-math"], ["-DOTHER"], ["-I", "."]):
        clang.parse(source, options, device)
    assert len(asked) == 2


def test_long_texts_are_asked_for_in_full(device: cl.Device) -> None:
    found = macros.answers(device, None, ["LONG_MIN", "__INT_MAX__", "NO_SUCH_NAME"])
    assert found is not None
    assert found["__INT_MAX__"] == "2147483647"
    assert found["NO_SUCH_NAME"] is None
    assert found["LONG_MIN"] in (None, "LONG_MIN") or len(str(found["LONG_MIN"])) > 12


Build = Callable[[dict[str, int]], bool]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Callable[[Build], None]:
    """Has a driver build only some of the programs by which it is asked for macros."""
    build = macros._build

    def only(able: Build) -> None:
        monkeypatch.setattr(
            macros, "_build", lambda d, w, chunks: build(d, w, chunks) if able(chunks) else None
        )

    return only


def test_a_driver_that_says_nothing_leaves_what_opencl_promises(
    device: cl.Device, builds: Callable[[Build], None]
) -> None:
    builds(lambda _: False)
    clang.parse(chosen("#if defined(cl_khr_fp64) || defined(USER)"), None, device)
    clang.parse(CONDITIONS["the version of the language"], ["-cl-std=CL1.2"], device)
    for condition, name in (
        ("#ifdef __SOME_COMPILER__", "__SOME_COMPILER__"),
        ("#if __OPENCL_C_VERSION__ > 200", "__OPENCL_C_VERSION__"),
        ("#ifdef _LP64", "_LP64"),
        ("#ifdef as_int", "as_int"),
        ("#ifdef CLK_FILTER_LINEAR", "CLK_FILTER_LINEAR"),
        ("#ifdef cl_nobody_has_this", "cl_nobody_has_this"),
    ):
        with pytest.raises(CannotParse, match=f"macro {name}$"):
            clang.parse(chosen(condition), None, device)


def test_a_driver_that_says_nothing_may_have_other_constants_and_macros(
    device: cl.Device, builds: Callable[[Build], None]
) -> None:
    """The constants of NVIDIA's are not those of the header here."""
    builds(lambda _: False)
    with pytest.raises(CannotParse, match=r"macro CLK_ADDRESS_REPEAT$"):
        clang.parse(BODIES["constants of samplers"], None, device)
    with pytest.raises(CannotParse, match=r"macro __clang_major__$"):
        clang.parse(BODIES["a string in the length of an array"], None, device)
    fences = WRITE.format("get_global_id(0)").replace("{ y", "{ barrier(CLK_LOCAL_MEM_FENCE); y")
    clang.parse(fences, None, device)


def test_a_driver_that_only_says_what_is_a_macro_is_asked_that(
    device: cl.Device, builds: Callable[[Build], None]
) -> None:
    builds(lambda chunks: not any(chunks.values()))
    unit = clang.parse(chosen("#ifdef __OPENCL_VERSION__"), None, device)
    assert "100" in clang.printed(unit.kernels["k"])
    with pytest.raises(CannotParse, match="macro __OPENCL_VERSION__"):
        clang.parse(chosen("#if __OPENCL_VERSION__ > 300"), None, device)


def test_a_name_that_no_program_builds_with_keeps_no_other_from_its_answer(
    device: cl.Device, builds: Callable[[Build], None]
) -> None:
    builds(lambda chunks: "BAD" not in chunks)
    with inside.new_process():
        unit = clang.parse(chosen("#if __OPENCL_C_VERSION__ && !defined(NO_SUCH)"), None, device)
        assert "100" in clang.printed(unit.kernels["k"])
        with pytest.raises(CannotParse, match="macro BAD"):
            clang.parse(chosen("#if defined(BAD) || __OPENCL_VERSION__"), None, device)
        unit = clang.parse(chosen("#ifdef ANOTHER"), None, device)
        assert "100" not in clang.printed(unit.kernels["k"])


@pytest.mark.parametrize("bad", ["nothing builds", "no name of this source builds"])
def test_a_driver_that_builds_no_question_is_not_asked_for_long(
    device: cl.Device, builds: Callable[[Build], None], bad: str
) -> None:
    asked = []

    def able(chunks: dict[str, int]) -> bool:
        asked.append(chunks)
        return bad != "nothing builds" and not any(name.startswith("__MINE_") for name in chunks)

    builds(able)
    many = " || ".join(f"defined(__MINE_{at})" for at in range(200))
    with inside.new_process(), pytest.raises(CannotParse, match="macro __MINE_0"):
        clang.parse(chosen(f"#if {many}"), None, device)
    assert len(asked) < (10 if bad == "nothing builds" else 80)


# ---- names in texts ----


@pytest.mark.parametrize(
    ("text", "tested", "named"),
    [
        ("int x = __a + b_ + _C + _d;", set(), {"__a", "_C"}),
        ('// __a\n/* _B */ int x = \'"\'; // \\\n __c\nchar *s = "__d \\" __e";', set(), set()),
        ("#define A __b\n#define C(x) x + D\n", set(), {"__b"}),
        ("#define A (B + C)\n#define B D\n#if A\n#endif", {"B", "C", "D"}, set()),
        ("#ifndef A\n#define A\n#endif", {"A"}, set()),
        ("#if X\n#define A\n#endif\n#ifdef A\n#endif", {"X", "A"}, set()),
        ("#define A 1\n#ifdef A\n#if A\n#endif\n#endif", set(), set()),
        ("__kernel void k(__global int *__restrict__ a) {}", set(), set()),
        ("float x = 1.0f_A + 3__b;", set(), set()),
        ("%:\\\nif de\\\nfined(A)", {"A"}, set()),
        ("// ??/\n#ifdef A\n#endif", {"A"}, set()),  # for a compiler without trigraphs
    ],
)
def test_names_that_are_the_compilers(text: str, tested: set[str], named: set[str]) -> None:
    found = names.asked([text])
    assert (found.tested, found.named) == (tested, named)


def test_options_are_searched_as_the_source_is() -> None:
    found = names.asked(["#if A || B\n#endif"], ["-DA=defined(C)", "-DD=__e", "-UB"])
    assert (found.tested, found.named) == ({"C"}, {"__e"})


# ---- the work that variants of many kernels are ----


def many(count: int) -> str:
    """A source of so many kernels, each with a helper."""
    return "\n".join(
        f"int h{i}(int x) {{ return x + {i}; }}\n"
        f"kernel void k{i}(global int *y) {{ y[{i}] = h{i}(1); }}"
        for i in range(count)
    )


def test_a_variant_in_a_large_source_is_no_more_work_for_each_further_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: list[str] = []
    parse, work = clang._tree, preprocess.preprocess

    def noted(*arguments: Any) -> Any:
        texts.append("parsed")
        return parse(*arguments)

    def worked(*arguments: Any) -> Any:
        texts.append("preprocessed")
        return work(*arguments)

    monkeypatch.setattr(clang, "_tree", noted)
    monkeypatch.setattr(preprocess, "preprocess", worked)
    source = many(40)
    for i in range(40):
        unit = preprocess.unit_with(source, "", None, f"k{i}")
        assert list(unit.kernels) == [f"k{i}"]
    assert texts.count("preprocessed") == 1
    assert texts.count("parsed") == 2 + 40  # the source, its text, and what is left for each
    ends = [inspect.getattr_static(clang.Unit, "ends").func]
    looked: list[int] = []
    monkeypatch.setattr(
        inspect.getattr_static(clang.Unit, "ends"),
        "func",
        lambda unit: looked.append(1) or ends[0](unit),
    )
    preprocess._plain.clear()
    unit = preprocess.unit_with(source, "", None, "k7")
    assert len(looked) == 1  # the declarations were gone through once for all 39 kernels left out


class OldCompiler:
    """Stands in for a compiler that has constants of samplers as an enumeration, and is older than
    `#elifdef`."""

    @staticmethod
    def answers(device: Any, options: Any, names: Any) -> dict[str, str | None]:
        told = {
            "__OPENCL_C_VERSION__": "120",
            "=CLK_FILTER_NEAREST": "1",
            "=CLK_FILTER_LINEAR": "2",
        }
        return {name: told.get(name) for name in names}


@pytest.fixture
def old_compiler(device: cl.Device, monkeypatch: pytest.MonkeyPatch) -> cl.Device:
    monkeypatch.setattr(macros, "answers", OldCompiler.answers)
    return device


def test_a_constant_that_is_no_macro_has_its_value_there(old_compiler: cl.Device) -> None:
    """As on NVIDIA's: the sum is 3 on a plain queue, and 48 by the header here."""
    source = WRITE.format("CLK_FILTER_NEAREST + CLK_FILTER_LINEAR")
    found = binder(from_source(source, "k", None, old_compiler))
    ((start, *_),) = found.reached((1,), None, None, [], None)[0].writes
    assert start == 12
    with pytest.raises(CannotParse, match=r"macro CLK_ADDRESS_REPEAT$"):
        from_source(WRITE.format("CLK_ADDRESS_REPEAT"), "k", None, old_compiler)


def test_a_driver_tells_the_value_of_a_constant(device: cl.Device) -> None:
    (value,) = macros.answers(device, None, ["=CLK_FILTER_LINEAR"]).values()  # type: ignore[union-attr]
    assert value is not None
    assert int(value) >= 0


@pytest.mark.parametrize(
    "condition", ["#ifdef CLK_FILTER_NEAREST", "#if defined(CLK_ADDRESS_NONE)"]
)
def test_a_constant_that_is_no_macro_is_none_to_a_condition(
    condition: str, old_compiler: cl.Device
) -> None:
    text = f"{condition}\n#define AT 9\n#else\n#define AT 3\n#endif\n" + WRITE.format("AT")
    found = from_source(text, "k", None, old_compiler)
    made = binder(found)
    assert made.has_ranges, found.unclear
    ((start, *_),) = made.reached((1,), None, None, [], None)[0].writes or ((-1,),)
    assert start == 12


@pytest.mark.parametrize("word", ["elifdef", "elifndef"])
def test_an_elifdef_that_the_compiler_does_not_know_is_refused(
    word: str, old_compiler: cl.Device
) -> None:
    text = f"#if 0\n#{word} Q\n#define AT 9\n#else\n#define AT 3\n#endif\n" + WRITE.format("AT")
    with pytest.raises(CannotParse, match="may not know #elifdef"):
        from_source(text, "k", None, old_compiler)


def test_an_elifdef_that_the_compiler_knows_is_followed(serial: acs.Runtime) -> None:
    text = "#define Q\n#if 0\n#define AT 9\n#elifdef Q\n#define AT 3\n#else\n#define AT 30\n"
    text += "#endif\n" + WRITE.format("AT")
    program = built(serial, text)
    (at,) = (int(at) for at in wanted(program).nonzero()[0])
    handle = program.k((1,), None, serial.zeros(SIDE, "i4"))
    written = [(span.start, span.end) for span in handle.access.writes]
    assert written in ([(4 * at, 4 * at + 4)], [(0, 4 * SIDE)])  # where it is not known: all
