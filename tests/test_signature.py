"""Signatures: the parsed source first, argument info second, and nothing known said aloud."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from conftest import Enter, Environment
from ctrl_c import interrupted
from fuzz.threads import in_threads

import acs_cl as acs
from acs_cl import devices
from acs_cl.access import inference as signatures
from acs_cl.access.inference import from_arg_info, from_source, signature_of
from acs_cl.devices import build as building
from acs_cl.errors import BuildError
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.macros import UNKNOWN
from acs_cl.testing.changing import changed

SOURCE = """
struct state { float position[3]; int id; };
typedef float3 vector;
__kernel __attribute__((reqd_work_group_size(SIDE, 2, 1)))
void advance(__global const float *x, __global vector *y, __constant int *table, __local float *t,
          uint n, struct state s, float4 f, __read_only image2d_t image, sampler_t how) {
  __local int shared[4];
  y[get_global_id(0)].x = x[n];
}
__kernel void other(__global unsigned char *out) { out[0] = 1; }
"""


@pytest.fixture
def folder(own_cache: Path) -> Path:
    return own_cache / "signatures"


def build(context: cl.Context, source: str, options: list[str]) -> Any:
    # Past PyOpenCL's cache of binaries, in which some drivers lose the argument info.
    program: Any = cl.Program(context, source)
    return program.build(options, cache_dir=False)


def test_ctrl_c_while_a_source_is_read_does_not_cut_the_reading_short(own_cache: Path) -> None:
    """A part of the tree that is missed is an access that nobody knows of."""
    source = "kernel void k(global int *x, global int *y) { int a = x[0]; if (a) y[a] = 2 * a; }"
    expected = from_source(source, "k", "", None)
    for turn in itertools.count(1):
        text = f"{source} // {turn}"  # another one, which was not read yet
        with interrupted("visit", turn) as begun, contextlib.suppress(KeyboardInterrupt):
            assert from_source(text, "k", "", None) == expected
        assert from_source(text, "k", "", None) == expected
        if len(begun) < turn:
            break
    assert turn > 10


def test_the_source_tells_every_parameter() -> None:
    found = from_source(SOURCE, "advance", "-DSIDE=4", None)
    assert [(p.name, p.type_name, p.space, p.element_bytes, p.size_bytes, p.const, p.mode)
            for p in found.parameters] == [
        ("x", "float*", "global", 4, 0, True, "r"),
        ("y", "vector*", "global", 16, 0, False, "w"),
        ("table", "int*", "constant", 4, 0, True, ""),
        ("t", "float*", "local", 4, 0, False, ""),
        ("n", "uint", "private", 0, 4, False, ""),
        ("s", "struct state", "private", 0, 16, False, ""),
        ("f", "float4", "private", 0, 16, False, ""),
        ("image", "image2d_t", "image", 0, 0, True, "r"),
        ("how", "sampler_t", "sampler", 0, 0, False, ""),
    ]  # fmt: skip
    assert found.group_size == (4, 2, 1)
    assert found.has_local_variables
    assert found.origin == "parsed"


def test_argument_info_tells_the_declaration(context: cl.Context) -> None:
    kernel = build(context, SOURCE, ["-DSIDE=4", "-cl-kernel-arg-info"]).advance
    found = from_arg_info(kernel)
    if found is None:
        pytest.skip("this driver keeps no argument info")
    parsed = from_source(SOURCE, "advance", "-DSIDE=4", context.devices[0])
    assert found.origin == "arginfo"
    for informed, read in zip(found.parameters, parsed.parameters, strict=True):
        assert (informed.name, informed.space, informed.is_pointer, informed.const) == (
            read.name, read.space, read.is_pointer, read.const
        )  # fmt: skip
        assert set(read.mode) <= set(informed.mode)
    assert {p.mode for p in found.parameters if p.space == "global"} == {"rw"}


def test_const_is_not_believed_of_a_body_that_is_not_read(context: cl.Context) -> None:
    """A cast takes it away, and the buffer behind it may be written."""
    source = """kernel void put(global const int *x, constant int *y, int n)
    { __typeof__(n) m = n; *(global int *)x = m + *y; }"""
    kernel = build(context, source, ["-cl-kernel-arg-info"]).put
    if from_arg_info(kernel) is None:
        pytest.skip("this driver keeps no argument info")
    found = signature_of(kernel, source, "", context.devices[0])
    assert "typeof" in found.unclear
    assert [p.mode for p in found.parameters if p.is_pointer] == ["rw", "r"]
    assert [p.const for p in found.parameters if p.is_pointer] == [True, True]


@pytest.mark.parametrize("standard", ["CL1.2", "CL2.0", "CL3.0"])
def test_a_program_that_is_not_read_may_have_variables_where_the_language_has_them(
    context: cl.Context, standard: str
) -> None:
    kernel = build(context, SOURCE, ["-DSIDE=4"]).other
    source = "int counter; kernel void other(global uchar *x) { __typeof__(1) m = counter++; }"
    found = signature_of(kernel, source, f"-cl-std={standard}", context.devices[0])
    assert found.unclear
    assert found.program_globals is (standard != "CL1.2")


def test_a_program_without_argument_info_is_read_from_its_source(context: cl.Context) -> None:
    program = build(context, SOURCE, ["-DSIDE=4"])
    device = context.devices[0]
    found = signature_of(
        program.other,
        program.get_info(cl.program_info.SOURCE),
        program.get_build_info(device, cl.program_build_info.OPTIONS),
        device,
    )
    assert [(p.name, p.mode, p.element) for p in found.parameters] == [
        ("out", "w", "unsigned char")
    ]
    assert "parsed" in found.origin


def test_a_driver_that_tells_nothing_of_a_kernel_without_parameters_builds_it() -> None:
    """As NVIDIA's driver: with the option its assembler fails."""
    source = "kernel void one(global int *x) { x[get_global_id(0)] = 7; } kernel void none(void) {}"
    built, asked = building.try_to_build, []

    def strict(context: cl.Context, device: cl.Device, text: str, words: bytes) -> Any:
        if "kernel void none" not in text:  # a build behind the back of another test
            return built(context, device, text, words)
        asked.append(b"-cl-kernel-arg-info" in words)
        return built(context, device, "#error assembler" if asked[-1] else text, words)

    with (
        changed(building, "try_to_build", strict),
        acs.Runtime(context=cl.Context([devices.choose()])) as rt,
    ):
        program, x = rt.build(source), rt.zeros(4, "i4")
        program.none((1,), None)
        handle = program.one((4,), None, x)
        assert x.get().tolist() == [7] * 4
        assert [(span.start, span.end) for span in handle.access.writes] == [(0, 16)]
        with pytest.raises(BuildError, match="line 2: kernel void two"):
            rt.build("kernel void none() { }\nkernel void two(global int *x) { x = y; }")
    assert asked == [True, False] * 2


def test_source_and_argument_info_together_say_so(context: cl.Context) -> None:
    program = build(context, SOURCE, ["-DSIDE=4", "-cl-kernel-arg-info"])
    found = signature_of(program.other, SOURCE, "-DSIDE=4", context.devices[0])
    assert found.origin in ("arginfo+parsed", "parsed")
    assert found.parameters[0].mode == "w"


def test_a_source_that_shows_another_kernel_is_not_believed(context: cl.Context) -> None:
    kernel = build(context, SOURCE, ["-DSIDE=4", "-cl-kernel-arg-info"]).other
    wrong = "__kernel void other(__global int *a, __global int *b) { }"
    found = signature_of(kernel, wrong, "", context.devices[0])
    assert len(found.parameters) == 1
    assert found.parameters[0].mode == "rw"
    assert found.origin != "parsed"


@pytest.mark.parametrize("source", [None, "", "not OpenCL C", "__kernel void k(int x) {}"])
def test_nothing_known_means_read_write_and_says_so(
    context: cl.Context, source: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = build(context, SOURCE, ["-DSIDE=4"]).advance
    monkeypatch.setattr(signatures, "from_arg_info", lambda kernel: None)
    found = signature_of(kernel, source, "", context.devices[0])
    assert [(p.mode, p.why) for p in found.parameters] == [("rw", "nothing known")] * 9
    assert found.origin.startswith("nothing known: ")
    assert found.anywhere == ""


def test_one_source_with_many_kernels_gives_each_its_own() -> None:
    source = "\n".join(
        f"__kernel void k{i}(__global int *a, __global int *b) {{ {'ab'[i % 2]}[0] = {i}; }}"
        for i in range(10)
    )
    for i in range(10):
        found = from_source(source, f"k{i}", None, None)
        assert [p.mode for p in found.parameters] == [["w", ""], ["", "w"]][i % 2]


def test_macros_in_options_decide_what_is_read() -> None:
    source = "__kernel void k(__global T *a) {\n#ifdef WRITES\na[0] = 1;\n#endif\n}"
    assert from_source(source, "k", ["-DT=int"], None).parameters[0].mode == ""
    found = from_source(source, "k", ["-DT=long", "-D", "WRITES"], None)
    assert (found.parameters[0].mode, found.parameters[0].element_bytes) == ("w", 8)
    spaced = from_source(source, "k", ["-DT=unsigned int"], None)
    assert spaced.parameters[0].type_name == "unsigned int*"


def test_includes_are_found_and_read_again_when_they_change(tmp_path: Path) -> None:
    header = tmp_path / "part.h"
    source = '#include "part.h"\n__kernel void k(__global int *a) { BODY }'
    header.write_text("#define BODY a[0] = 1;")
    assert from_source(source, "k", f"-I {tmp_path}", None).parameters[0].mode == "w"
    header.write_text("#define BODY int x = a[0];")
    assert from_source(source, "k", f"-I {tmp_path}", None).parameters[0].mode == "r"


@pytest.mark.parametrize("option", ["-imacros part.h", "-funsigned-char", "-Wp,-DV=1"])
def test_an_option_that_may_change_how_the_source_reads_is_not_ignored(option: str) -> None:
    with pytest.raises(CannotParse, match="may change how the source reads"):
        from_source("kernel void k(global int *a) { a[0] = 1; }", "k", option, None)
    plain = "-w -Werror -O3 -g -cl-mad-enable -cl-nv-verbose"
    found = from_source("kernel void k(global int *a) { a[0] = 1; }", "k", plain, None)
    assert found.parameters[0].mode == "w"


@pytest.mark.parametrize("standard", ["CLC++", "clc++", "CLC++1.0", "clc++2021"])
def test_cpp_for_opencl_is_not_read_as_c(standard: str) -> None:
    """References, methods and destructors write where a reader of C sees nothing."""
    source = "kernel void k(global int *a) { global int &r = a[0]; r = 5; }"
    with pytest.raises(CannotParse, match=r"C\+\+ for OpenCL"):
        from_source(source, "k", [f"-cl-std={standard}"], None)


@pytest.mark.parametrize(
    "attribute", ['__attribute__((alias("g")))', '__asm__("g")', "__attribute__((SAME))"]
)
def test_a_declaration_with_the_body_of_another_function_is_not_believed(attribute: str) -> None:
    source = (
        '#define SAME alias("g")\nvoid g(global int *p) { p[0] = 1; }\n'
        f"void h(global const int *p) {attribute};\n"
        "kernel void k(global int *a) { h(a); }"
    )
    with pytest.raises(CannotParse, match="body of h is that of another function"):
        from_source(source, "k", None, None)


def test_structures_that_hold_pointers_mean_anywhere() -> None:
    source = "struct s { struct { float x[2]; } in; __global int *p[2]; };\n" \
             "__kernel void k(struct s v) { }"  # fmt: skip
    assert "v is a structure that holds pointers" in from_source(source, "k", None, None).anywhere


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("__kernel void k(__global int *a) { a[0] = ; }", "line 1: expected expression"),
        ("__kernel void k(__global int *a) { a[0] = b; }", "undeclared identifier 'b'"),
        ("void k(__global int *a) { }", "no kernel k"),
        ("#if __SOME_COMPILER__ > 2\n#endif\n__kernel void k() {}", "macro __SOME_COMPILER__"),
        ("__kernel void k(__global int *a) { int x = " + "(" * 5000, "."),
        ("__kernel void k(__global int *a) { a[0] = " + "1+" * 3000 + "1; }", "nested"),
    ],
)
def test_what_does_not_parse_says_why(source: str, reason: str) -> None:
    with pytest.raises(CannotParse, match=reason):
        from_source(source, "k", None, None)


def test_macros_of_another_vendor_are_known_to_be_absent() -> None:
    source = "#ifdef __NV_CL_C_VERSION\nbroken\n#endif\n__kernel void k(__global int *a) {}"
    assert from_source(source, "k", None, None).parameters[0].mode == ""


def test_a_macro_that_nobody_knows_is_asked_of_the_device(context: cl.Context) -> None:
    source = """
#if defined(__SOME_COMPILER__) || defined __powerpc__ || __SOME_COMPILER__ > 2
#define WRITE(p) p[0] = 1
#else
#define WRITE(p) int x = p[0]
#endif
__kernel void k(__global int *a) { WRITE(a); }
"""
    with pytest.raises(CannotParse, match="the compiler's macro __SOME_COMPILER__"):
        from_source(source, "k", None, None)
    assert from_source(source, "k", None, context.devices[0]).parameters[0].mode == "r"


def test_a_macro_that_the_device_defines_is_not_guessed(
    context: cl.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = lambda _device, _words, wanted, _common: dict.fromkeys(wanted, f"{UNKNOWN}x")  # noqa: E731
    monkeypatch.setattr("acs_cl.opencl_c.parse.macros._ask", unknown)
    source = "#if __DEFINED_HERE__ > 3\n#endif\n__kernel void k(__global int *a) { }"
    with pytest.raises(CannotParse, match="the compiler's macro x"):
        from_source(source, "k", None, context.devices[0])


def test_signatures_are_kept_for_the_user_alone(folder: Path) -> None:
    found = from_source(SOURCE, "advance", "-DSIDE=4", None)
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    signatures.forget_programs()
    assert from_source(SOURCE, "advance", "-DSIDE=4", None) == found


@contextmanager
def no_parser() -> Iterator[None]:
    """Whoever parses a source here fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "_parse_signature", lambda *_: pytest.fail("parsed again"))
        yield


def test_a_kept_signature_is_used_without_parsing(folder: Path) -> None:
    found = from_source(SOURCE, "advance", "-DSIDE=4", None)
    signatures.forget_programs()
    with no_parser():
        assert from_source(SOURCE, "advance", "-DSIDE=4", None) == found


@pytest.mark.parametrize("damage", ["", "{", "[]", "\n{}", '{"check": "", "record": {}}', "swap"])
def test_a_damaged_entry_is_ignored(folder: Path, damage: str) -> None:
    found = from_source(SOURCE, "advance", "-DSIDE=4", None)
    (entry,) = folder.iterdir()
    if damage == "swap":
        check, name, text = entry.read_text().strip().split(" ", 2)
        record = json.loads(text)
        record["parameters"][0][8] = ""
        damage = f"{check} {name} {json.dumps(record)}\n"
    entry.write_text(damage)
    signatures.forget_programs()
    assert from_source(SOURCE, "advance", "-DSIDE=4", None) == found


def test_the_cache_can_be_turned_off(folder: Path, environment: Environment) -> None:
    environment(ACS_CL_CACHE="off")
    from_source(SOURCE, "advance", "-DSIDE=4", None)
    assert not folder.exists()
    assert cache.folder() is None


def test_an_unusable_cache_folder_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    (tmp_path / "file").write_text("")
    environment(ACS_CL_CACHE=str(tmp_path / "file"))
    with inside.new_process():
        assert from_source(SOURCE, "other", "-DSIDE=4", None).parameters[0].mode == "w"


def test_the_cache_is_bounded(folder: Path) -> None:
    for i in range(12):
        with (
            inside.limit("entries of the cache", 5),
            inside.limit("entries until the cache is trimmed", 1),
        ):
            cache.store(f"entry{i}", {"i": i})
    assert len(list(folder.iterdir())) == 5
    assert cache.load("entry11") == {"i": 11}


def test_several_threads_may_ask_at_once(
    monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    environment(ACS_CL_CACHE="off")
    wrong: list[object] = []

    def ask(which: int) -> None:
        for i in range(10 * which, 10 * which + 5):
            source = f"__kernel void k(__global int *a, __global int *b) {{ a[{i}] = b[{i}]; }}"
            modes = [p.mode for p in from_source(source, "k", None, None).parameters]
            if modes != ["w", "r"]:
                wrong.append((i, modes))

    in_threads(ask)
    assert wrong == []


def test_importing_loads_neither_parser_nor_preprocessor_and_leaving_is_quiet() -> None:
    program = """
import sys
from acs_cl.access import declared, inference
from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.variants import offsets
assert not {"clang.cindex", "pcpp"} & set(sys.modules), "loaded too early"
inference.from_source("__kernel void k(__global int *a) { a[0] = 1; }", "k", "", None)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "ACS_CL_CACHE": "off"}, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


COMPLEX = """
#include <pyopencl-complex.h>
kernel void k(global cfloat_t *x, global cfloat_t *y) {
    int i = get_global_id(0); y[i] = cfloat_mul(x[i], x[i]); }
"""


def test_headers_of_pyopencl_are_found() -> None:
    with acs.Runtime(backend="serial") as rt:
        x, y = rt.array(np.arange(16) * 1j, "c8"), rt.zeros(16, "c8")
        handle = rt.build(COMPLEX).k((4,), None, x, y)
        assert [(span.start, span.width) for span in handle.access.writes] == [(0, 32)]
        assert np.array_equal(y.get()[:4], -np.square(np.arange(4)))


def test_options_of_the_environment_are_read_too(environment: Environment) -> None:
    environment(PYOPENCL_BUILD_OPTIONS="-DAT=5")
    source = "#ifndef AT\n#define AT 0\n#endif\nkernel void k(global int *x) { x[AT] = 1; }"
    with acs.Runtime(backend="serial") as rt:
        x = rt.zeros(16, "i4")
        handle = rt.build(source).k((1,), None, x)
        assert np.flatnonzero(x.get()).tolist() == [5]
        assert [(span.start, span.width) for span in handle.access.writes] == [(20, 4)]


def test_files_of_the_current_folder_are_found_as_the_driver_finds_them(
    tmp_path: Path, enter: Enter
) -> None:
    source = "#include <part.h>\nkernel void k(global int *x) { x[AT] = 1; }"
    (tmp_path / "other").mkdir()
    (tmp_path / "part.h").write_text("#define AT 5\n")
    (tmp_path / "other" / "part.h").write_text("#define AT 0\n")
    enter(tmp_path)
    with acs.Runtime(backend="serial") as rt:
        for options in ([], ["-I", "other"], ["-Iother"]):
            x = rt.zeros(16, "i4")
            kernel = rt.build(source, options).k
            (place,) = np.flatnonzero((kernel((1,), None, x), x.get())[1]).tolist()
            access = kernel((1,), None, x).access
            assert any(one.start <= 4 * place < one.start + one.width for one in access.writes)
            assert ("parsed" in kernel.signature.origin) == (not options)
    with pytest.raises(CannotParse, match=r"part.h is not the same in"):
        from_source(source, "k", "-I other", None)


PART = '%:include "part.h"\n__kernel void k(__global int *a) { BODY }'


def test_what_includes_files_is_kept_as_long_as_they_say_the_same(
    folder: Path, tmp_path: Path
) -> None:
    header, option = tmp_path / "part.h", f"-I {tmp_path}"
    header.write_text("#define BODY a[0] = 1;")
    for _ in range(2):  # the first time nobody knows which files they are
        found = from_source(PART, "k", option, None)
    assert found.parameters[0].mode == "w"
    with no_parser():
        for _ in range(2):
            assert from_source(PART, "k", option, None) == found
            signatures.forget_programs()
    for text, mode in (("int x = a[0];", "r"), ("a[0] += 1;", "rw"), ("a[0] = 1;", "w")):
        header.write_text(f"#define BODY {text}")
        for _ in range(3):
            assert from_source(PART, "k", option, None).parameters[0].mode == mode


def test_names_of_included_files_are_stored_once_for_a_program(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "part.h").write_text("#define BODY a[0] = 1;")
    source = PART + PART.partition("\n")[2].replace("void k", "void l")
    places = set()
    for name in "kl":
        assert from_source(source, name, f"-I {tmp_path}", None).parameters[0].mode == "w"
        places |= {path.stat().st_ino for path in folder.rglob("*.json")}
    assert len(places) == 1  # a file that is written again is another one


def test_a_source_that_could_include_something_and_does_not_is_read_once(folder: Path) -> None:
    """Mining programs have such a line for an editor, and were read anew at each start."""
    source = """
    #ifdef EDITOR
    #include "nowhere.h"
    #endif
    kernel void k(global int *a) { a[0] = 1; }
    """
    for _ in range(2):  # whether there are files is known from the second time on
        assert from_source(source, "k", "-UEDITOR", None).parameters[0].mode == "w"

    def analysed(*_: object) -> object:
        raise AssertionError("it is read again")

    with inside.new_process(), changed(bodies, "analyse", analysed):
        assert from_source(source, "k", "-UEDITOR", None).parameters[0].mode == "w"


@pytest.mark.parametrize("place", ["beside", "in front", "nested"])
def test_a_file_that_gets_in_front_of_another_one_is_seen(
    folder: Path, tmp_path: Path, place: str
) -> None:
    """Kept signatures are of the files that the compiler reads now."""
    reads, writes = "#define BODY int x = a[0];", "#define BODY a[0] = 1;"
    for name in ("first", "second"):
        (tmp_path / name / "sub").mkdir(parents=True)
    first, second = tmp_path / "first", tmp_path / "second"
    options = f"-I {first} -I {second}"
    texts = {
        "beside": '#include "sub/outer.h"',
        "in front": '#include "part.h"',
        "nested": '#include "sub/part.h"',
    }
    (second / "part.h").write_text(reads)
    if place == "nested":
        (second / "sub" / "part.h").write_text(reads)
    (first / "sub" / "outer.h").write_text('#include "part.h"')
    source = texts[place] + "\nkernel void k(global int *a) { BODY }"
    for _ in range(3):
        assert from_source(source, "k", options, None).parameters[0].mode == "r"
    new = {
        "beside": first / "sub" / "part.h", "in front": first / "part.h",
        "nested": first / "sub" / "part.h",
    }[place]  # fmt: skip
    new.write_text(writes)
    for _ in range(3):
        if place == "beside":
            assert from_source(source, "k", options, None).parameters[0].mode == "w"
        else:
            with pytest.raises(CannotParse, match="is not the same in"):
                from_source(source, "k", options, None)


@pytest.mark.parametrize("branches", [300, 600, 1500])
@pytest.mark.parametrize("kind", ["else if", "ternary"])
def test_a_chain_that_is_too_deep_to_follow_runs(
    device: cl.Device, kind: str, branches: int
) -> None:
    if kind == "ternary":
        tests = "".join(f"n == {i} ? {i % 50} : " for i in range(branches))
        body = f"y[get_global_id(0)] = {tests} 50;"
    else:
        tests = "".join(f"if (n == {i}) y[i] = {i % 50}; else " for i in range(branches))
        body = f"int i = get_global_id(0); {tests} y[i] = 50;"
    with acs.Runtime(device) as rt:
        kernel = rt.build(f"kernel void k(global int *y, int n) {{ {body} }}").k
        y = rt.zeros(64, "i4")
        kernel((4,), None, y, 7)
        assert y.get().tolist() == [7] * 4 + [0] * 60
        why = kernel.signature.unclear + kernel.signature.origin
        assert branches < 600 or "nested too deeply" in why


NEWER = {
    "a pixel is read and written": (
        "read_write image2d_t z",
        "int2 p = 1; write_imageui(z, p, read_imageui(z, p)); y[get_image_width(z)] = 1;",
        ["rw", "w"],
    ),
    "a depth is read": (
        "read_only image2d_depth_t z",
        "y[1] = read_imagef(z, (int2)(1, 2)) > 1;",
        ["r", "w"],
    ),
    "a block is written": (
        "write_only image3d_t z",
        "write_imageui(z, (int4)(1, 2, 0, 0), (uint4)(3)); y[1] = 1;",
        ["w", "w"],
    ),
    "vectors go by generic pointers": (
        "global int *z",
        "int t[4] = {1, 2, 3, 4}; int *p = z; if (y[0] > 3) p = t; y[1] = vload2(0, p).x;",
        ["r", "rw"],
    ),
}


@pytest.mark.parametrize("name", NEWER)
def test_functions_that_came_with_the_second_language_are_known(name: str) -> None:
    """The parser leaves them out without the macros of its own header."""
    parameter, body, modes = NEWER[name]
    source = f"kernel void k({parameter}, global int *y) {{ {body} }}"
    found = from_source(source, "k", ["-cl-std=CL2.0"], None)
    assert [one.mode for one in found.parameters] == modes
    assert not found.program_globals
