"""Macros of a device's compiler, asked of that compiler.

The macros decide how a source is read, and no interface lists them. So the driver builds a program
with each name that a source leaves to its compiler. Whether the name is a macro decides which
kernels that program has. The text of a macro shows in the types of their parameters.

Input: a device, build options, names and questions. Output: for each its meaning in the source.
Invariant: nothing runs on the device, and nothing is guessed: if a driver does not tell, the answer
is 'unknown'. An answer is kept in memory and on disk, by driver and options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pyopencl as cl

from acs_cl.devices import build, contexts
from acs_cl.devices.facts import BuildOptions, facts_of, options_for_code
from acs_cl.errors import BuildError
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.parse.names import ELIFDEF, TRIGRAPHS

from ...records import NamedTuple

Answer = str | None
"""The text of a macro, which is its own name if only the driver uses it. None: no macro. A question
is answered "0" or "1", or by a value."""

VALUE = "="
"""Begins the question for the value of a constant that is no macro."""

UNKNOWN = "acs_unknown_"
"""Begins the answer for a macro whose text cannot be found out."""

_FORMAT = 1  # raise it when the questions or the record change
_FIRST_CHUNKS, _CHUNKS_MAX, _CHUNK = 4, 100, 3  # characters of a text go three in a parameter
_TRIES = 24
"""Tries with a part of the names, if a program with all of them does not build."""
_HEAD = r"""
#define ACS_QUOTED(...) #__VA_ARGS__
#define ACS_TEXT(...) ACS_QUOTED(__VA_ARGS__)
#define ACS_ONE(at, ...) \
  ((uchar)(ACS_TEXT(__VA_ARGS__))[(at) < sizeof(ACS_TEXT(__VA_ARGS__)) ? (at) : 0])
#define ACS_THREE(at, ...) (1 + ACS_ONE(at, __VA_ARGS__) \
  + (ACS_ONE(at + 1, __VA_ARGS__) << 8) + (ACS_ONE(at + 2, __VA_ARGS__) << 16))
"""

_BOUND = re.compile(r"\[(\d+)")
_VARIES = re.compile(
    r"__has_\w+$|__(FILE|DATE|TIME|TIMESTAMP|COUNTER|BASE_FILE|FILE_NAME|INCLUDE_LEVEL)__$"
    r"|__is_\w+$|__building_module$|__MODULE__$"
)
"""Macros with another meaning in each program, or that must not stand alone."""

_COMMON = """
__OPENCL_C_VERSION__ __OPENCL_VERSION__ __IMAGE_SUPPORT__ __ENDIAN_LITTLE__ __FAST_RELAXED_MATH__
__clang__ __clang_major__ __clang_minor__ __GNUC__ __VERSION__ __cplusplus __x86_64__ __i386__
__arm__ __aarch64__ __SPIR__ __SPIRV__ __NVPTX__ __AMDGCN__ __NV_CL_C_VERSION __AMD__ __APPLE__
__linux__ _WIN32 _LP64 __LP64__ __CUDACC__ __CUDA_ARCH__ __HIPCC__ __METAL_VERSION__
__OPENCL_CPP_VERSION__ __GPU__ __CPU__ CL_VERSION_1_0 CL_VERSION_1_1 CL_VERSION_1_2 CL_VERSION_2_0
CL_VERSION_3_0 __has_builtin cl_khr_fp64 cl_khr_fp16 cl_amd_fp64 cl_nv_pragma_unroll
cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_khr_global_int32_base_atomics
cl_khr_local_int32_base_atomics cl_khr_byte_addressable_store cl_khr_subgroups cl_intel_subgroups
__opencl_c_fp64 __opencl_c_images
__opencl_c_generic_address_space __opencl_c_subgroups M_PI M_PI_F NAN INFINITY
"""
"""Names that many sources test, so the first question to a device includes them."""

_OPENED = {TRIGRAPHS: ("#if 1",), ELIFDEF: ("#if 0", f"{ELIFDEF} __OPENCL_VERSION__")}
"""Lines that open a question that is not about a name."""

_known: dict[str, dict[str, Answer]] = {}
_untold: dict[str, set[str]] = {}
"""Names about which the compiler tells nothing, by the options of the question."""


def answers(
    device: cl.Device, options: BuildOptions, names: Iterable[str]
) -> dict[str, Answer] | None:
    """Return the compiler's answers to names and questions under these build options. None: it
    tells nothing at all."""
    words = options_for_code(options)
    key = cache.key("", f"macros {_FORMAT}", words, facts_of(device))
    known = _known.get(key)
    if known is None:
        known = _known[key] = {}
        for line in cache.load_lines(key).values():
            known.update(_from_text(line))
    untold = _untold.setdefault(key, set())
    wanted = sorted(set(names) - set(known) - untold)
    if wanted and (known or not untold):  # else it tells nothing
        found = _ask(device, words, wanted, [] if known else _COMMON.split())
        if found:
            known.update(found)
            cache.add_line(key, cache.key("", " ".join(found), (), facts_of(device)), found)
        untold.update(name for name in wanted if name not in found)
    if untold and not known:
        return None
    return {name: known[name] for name in names if name in known}


def _from_text(line: str) -> dict[str, Answer]:
    try:
        found = json.loads(line)
        return {str(n): None if text is None else str(text) for n, text in found.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}  # written by other code: ask again


class _Macro(NamedTuple):
    """A macro of the driver."""

    text: str  # its beginning
    length: int  # of the whole text, -1 if that is not known


def _ask(
    device: cl.Device, words: list[str], wanted: list[str], common: list[str]
) -> dict[str, Answer]:
    """Return the driver's answers for the wanted names, and for common ones if these cost
    nothing."""
    more = [name for name in common if name not in wanted]
    told = _together(device, words, [*wanted, *more])
    if told is None:
        told = _apart(device, words, wanted)
    longer = {name: -(-one.length // _CHUNK) for name, one in told.items()
              if one and name in wanted and one.length > len(one.text)}  # fmt: skip
    longer = {name: chunks for name, chunks in longer.items() if chunks <= _CHUNKS_MAX}
    if longer:
        told.update(_build(device, words, longer) or {})
    found: dict[str, Answer] = {}
    for name, one in told.items():
        if one is None:
            found[name] = "0" if "(" in name else None
        elif "(" in name:
            found[name] = "1"
        elif one.length == len(one.text):
            found[name] = one.text
        elif name in wanted or one.length < 0:
            found[name] = name if name.startswith("__has_") else UNKNOWN + name
    return found


def _together(
    device: cl.Device, words: list[str], names: list[str]
) -> dict[str, _Macro | None] | None:
    """Return answers for these names. None: a program with all of them does not build."""
    for count in (_FIRST_CHUNKS, 0):  # if a text cannot be found that way: whether there is one
        told = _build(device, words, dict.fromkeys(names, count))
        if told is not None:
            return told
    return None


def _apart(device: cl.Device, words: list[str], names: list[str]) -> dict[str, _Macro | None]:
    """Return answers for some of these names, although others prevent a program from building. It
    gives up after too many of these, because a build may take a second."""
    found: dict[str, _Macro | None] = {}
    if _build(device, words, {}) is None:
        return found  # nothing builds with these options
    left, tries = [names], 0
    while left and tries < _TRIES:
        tries += 1
        some = left.pop(0)
        told = _together(device, words, some)
        if told is not None:
            found.update(told)
        elif len(some) > 1:
            half = len(some) // 2
            left += [some[:half], some[half:]]
    return found


def _build(
    device: cl.Device, words: list[str], chunks: dict[str, int]
) -> dict[str, _Macro | None] | None:
    """Build a program that tells of each name whether it is a macro, with the first `chunks` of
    its text. None: it does not build."""
    lines = _HEAD.splitlines()
    stands: dict[str, int] = {}
    for at, (name, count) in enumerate(chunks.items()):
        lines += _question(at, name, 0 if _VARIES.match(name) else count)
        stands[name] = len(lines) - 2
    source = "\n".join([*lines, "__kernel void acs_last(__global char *a) { }", ""])
    try:
        context = contexts.context_to_ask(device)
        program = build.build(context, device, source, [*words, "-w"])
        kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}
        told = {
            name: _read(name, kernels[f"acs_{at}"]) if f"acs_{at}" in kernels else None
            for at, name in enumerate(chunks)
        }
    except (BuildError, cl.Error):
        return None
    line = told.get("__LINE__")
    if line is not None:
        known = line.text == str(stands["__LINE__"])
        told["__LINE__"] = _Macro("__LINE__", len("__LINE__") if known else -1)
    return told


def _question(at: int, name: str, chunks: int) -> list[str]:
    """Return the lines of the program that ask about one name; the last but one is a kernel."""
    if name.startswith(VALUE):
        value = f"__global char (*value)[1 + ({name.removeprefix(VALUE)})]"
        return ["#if 1", "#if 1", f"__kernel void acs_{at}({value}) {{ }}", "#endif", "#endif"]
    if "(" in name:
        lines, chunks = [f"#if defined({name.partition('(')[0]})", f"#if {name}"], 0
    else:
        lines = [*_OPENED.get(name, (f"#ifdef {name}",)), "#if 1"]
    numbers = [f"acs_{at}_{chunk}" for chunk in range(chunks)]
    values = ", ".join(
        f"{number} = ACS_THREE({_CHUNK * chunk}, {name})" for chunk, number in enumerate(numbers)
    )
    bounds = [f"__global char (*{number}_)[{number}]" for number in numbers]
    if chunks:
        bounds.append(f"__global char (*length)[sizeof(ACS_TEXT({name}))]")
    kernel = f"__kernel void acs_{at}({', '.join(bounds) or '__global char *a'}) {{ }}"
    return [*lines, f"enum {{ {values} }}; {kernel}" if chunks else kernel, "#endif", "#endif"]


def _read(name: str, kernel: cl.Kernel) -> _Macro:
    """Read an answer from the parameters of a kernel."""
    if kernel.num_args == 1 and not name.startswith(VALUE):
        return _Macro("", -1)
    bounds = [
        int(_BOUND.findall(str(kernel.get_arg_info(at, cl.kernel_arg_info.TYPE_NAME)))[0])
        for at in range(kernel.num_args)
    ]
    if name.startswith(VALUE):
        value = str(bounds[0] - 1)
        return _Macro(value, len(value))
    *values, size = bounds
    data = b"".join((value - 1).to_bytes(_CHUNK, "little") for value in values)
    return _Macro(data[: size - 1].decode("latin-1"), size - 1)
