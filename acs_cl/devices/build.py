"""Build programs. Input: source and options. Output: a program, or a `BuildError` with the log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from numbers import Complex, Integral, Number, Real
from pathlib import Path

import numpy as np
import pyopencl as cl
from pyopencl import _cl

from .. import core, devices
from ..errors import BuildError, UsageError, describe
from . import contexts
from .facts import may_include

CUDA = {
    "__global__": "`kernel`, whose pointers are `global`",
    "__device__": "no word at all",
    "__shared__": "`local`",
    "threadIdx.": "get_local_id(…)",
    "blockIdx.": "get_group_id(…)",
    "blockDim.": "get_local_size(…)",
    "__syncthreads()": "barrier(CLK_LOCAL_MEM_FENCE)",
    "atomicAdd(": "atomic_add(…)",
}
"""What OpenCL C calls the words of CUDA."""


ARGUMENT_INFO = "-cl-kernel-arg-info"
_WITHOUT_PARAMETERS = r"\w\s*\(\s*(?:void\s*)?\)\s*\{"

TAKE_THE_NEXT = {"-I", "-D", "-U", "-include", "-x"}
"""Options whose value may be the next word."""


def words_of(options: Sequence[str]) -> list[str]:
    """Return options one by one. One text with several options is cut at blanks."""
    words = options.split() if isinstance(options, str) else options
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"options={options!r}: expected text, or a list of it, as ['-DN=4']")
    for word in words:
        refuse_no_text(f"the option {word!r}", word)
    return list(words)


def refuse_no_text(what: str, text: str) -> None:
    """Refuse a text that no driver can be given: UTF-8 has no halves of characters, and texts of C
    end at their first zero."""
    if text.isascii() and "\0" not in text:
        return
    wrong = re.search(r"[\0\ud800-\udfff]", text)
    if wrong is not None:
        raise UsageError(f"{what} has {wrong[0]!r} at {wrong.start()}, which drivers cannot read")


def driver_options(context: cl.Context, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options as the driver gets them, cut at blanks. PyOpenCL adds the folder of its
    own headers, definitions for a platform, and PYOPENCL_BUILD_OPTIONS."""
    words, _ = cl.Program._process_build_options(context, list(options))
    return cut_at_blanks(words.decode())


def asked_options(context: cl.Context, words: Sequence[str]) -> tuple[str, ...]:
    """Return the options that a program asked for, out of those that the driver gets. The ones that
    PyOpenCL adds belong to this machine."""
    added = driver_options(context, [])
    own = len(words) - len(added)
    if added and tuple(words[own:]) == added:
        words = words[:own]
    return tuple(word for word in words if word)


def cut_at_blanks(options: str) -> tuple[str, ...]:
    """Return the text of options in parts. Joining them with blanks restores the text."""
    return tuple(options.split(" "))


def build(
    context: cl.Context, device: cl.Device, source: str, options: Sequence[str]
) -> cl.Program:
    """Build a program on one device, with argument information. In a shared context, use the
    program if it was built there before. Options are those of `driver_options`, or none.

    This uses PyOpenCL's inner program. The outer one warns about every text of the compiler, and
    some compilers write texts without a reason. Warnings cannot be caught in several threads at
    once.
    """
    words = " ".join([*options, ARGUMENT_INFO]).encode()
    # the files that a source includes may have changed
    kept = None if may_include(source, options) else contexts.shared(context)
    known = None if kept is None else kept.find((source, words))
    if known is not None:
        return cl.Program(known)
    program, error = try_to_build(context, device, source, words)
    if error is not None and re.search(_WITHOUT_PARAMETERS, source):
        # NVIDIA's driver builds no kernel without parameters if it is to tell about parameters
        program, error = try_to_build(context, device, source, " ".join(options).encode())
    if error is not None:
        log = _build_log(program, device) or str(error)
        line = _first_error_line(log)
        shown = ""
        lines = source.splitlines()
        if line is not None and 0 < line <= len(lines):
            shown = f"\nline {line}: {lines[line - 1].strip()}"
        shown += devices.advice(log) + _of_words(source) + _of_blanks(options)
        raise BuildError(f"the program does not build:\n{log.strip()}{shown}", log, line)
    if kept is not None:
        kept.keep((source, words), program)
    return cl.Program(program)


def try_to_build(
    context: cl.Context, device: cl.Device, source: str, words: bytes
) -> tuple[_cl._Program, cl.Error | None]:
    """Build with these options; return the program, and the error if it did not build."""
    signals = core.native.signals()
    for last in (False, True):
        program = _cl._Program(context, source)
        try:
            program._build(words, [device])
        except cl.Error as error:
            # on a signal, compilers of LLVM remove the files that they are writing
            if last or core.native.signals() == signals:
                return program, error
        else:
            break
    return program, None


def _of_blanks(options: Sequence[str]) -> str:
    """Name the words that are no options, as after a folder with a blank in its name."""
    words = [word for word in options if word]
    alone = [
        word for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in TAKE_THE_NEXT
    ]  # fmt: skip
    said = f"\ndrivers cut options at blanks, and get {', '.join(map(repr, alone))} as others"
    return said + "; a folder may be given relative to the current one" if alone else ""


def _of_words(source: str) -> str:
    """Hint for source that does not build: it is CUDA C++, or spawns without our header."""
    if "ACS_SPAWN(" in source and "#define ACS_SPAWN" not in source:
        return "\nACS_SPAWN needs #include <acs_spawn.h> in the source"
    found = [f"{theirs} is {ours}" for theirs, ours in CUDA.items() if theirs in source]
    return f"\nthis looks like CUDA; in OpenCL C {', '.join(found)}" if found else ""


def _first_error_line(log: str) -> int | None:
    """Return the line of the first error. Compilers write `file:line:column:` beside the word."""
    for text in log.splitlines():
        found = re.search(r":(\d+):\d+:", text)
        if found and "error" in text:
            return int(found.group(1))
    return None


def _build_log(program: _cl._Program, device: cl.Device) -> str:
    try:
        return str(program.get_build_info(device, cl.program_build_info.LOG)).strip()
    except (cl.Error, AttributeError):
        return ""


def read_source(source: str | Path) -> str:
    """Return source text as it is, or of a path (a `Path`, or a line that ends in .cl)."""
    if not isinstance(source, (str, Path)):
        hint = "; rt.launch takes its kernels" if isinstance(source, cl.Program) else ""
        raise UsageError(
            f"build takes OpenCL C as text, or a path; got {type(source).__name__}{hint}"
        )
    if isinstance(source, Path) or ("\n" not in source and source.endswith(".cl")):
        try:
            source = Path(source).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"the program {str(source)!r} is no UTF-8 at byte {error.start}; save it as that, "
                "or pass its text"
            ) from None
        except ValueError as error:
            raise UsageError(f"cannot read the program {str(source)!r}: {error}") from None
        except OSError as error:
            try:
                here = str(Path.cwd())
            except OSError:
                here = "the current folder, which is gone"
            raise UsageError(
                f"cannot read the program {str(source)!r} in {here}: {error.strerror}; build "
                "takes a path, or the source itself"
            ) from None
    refuse_no_text("the source", source.replace("\0", " "))  # which compilers read as a blank
    return source


def macro_options(macros: Mapping[str, object] | None) -> list[str]:
    """Return `{"N": 4, "FAST": None}` as compiler options."""
    if not isinstance(macros, Mapping | None):
        raise UsageError(f"macros={macros!r}: expected a mapping, such as {{'N': 4}}")
    return [_macro_option(name, value) for name, value in (macros or {}).items()]


def _macro_option(name: object, value: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"macros={{{name!r}: …}}: expected the name of a macro, such as 'N'")
    if value is None:
        return f"-D{name}"
    text = _as_text(name, value)
    refuse_no_text(f"macros={{{name!r}: …}}", text)
    if any(one.isspace() for one in text):
        raise UsageError(
            f"macros={{{name!r}: {value!r}}}: drivers cut options at blanks; write #define {name} "
            "in the source, or a value without blanks"
        )
    return f"-D{name}={text}"


def _as_text(name: str, value: object) -> str:
    """Return the value of a macro as OpenCL C has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, (Integral, np.bool_)):
        return str(int(value))
    # a Decimal is a number, but neither real nor complex to Python
    if isinstance(value, Real) or (isinstance(value, Number) and not isinstance(value, Complex)):
        number = float(value)  # type: ignore[arg-type]
        if isfinite(number):  # a float of NumPy has fewer digits
            return str(value if isinstance(value, np.floating) else number)
        return "NAN" if isnan(number) else f"({'-' * (number < 0)}INFINITY)"
    raise UsageError(
        f"macros={{{name!r}: …}}: expected text, a number, or None for a macro without a value; "
        f"got {describe(value)}"
    )
