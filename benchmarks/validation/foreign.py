"""Try one foreign source: build it, translate it, build that, and perhaps run it.

Input: a file with OpenCL C, with its options beside it if it has some, and a device. Output: plain
values for JSON. Invariant: of a source that the device's own compiler does not build, only the
reason is told. Files lack the macros that their host programs define. A name without a definition
counts as such a macro.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.validation import agreement

MOST_GUESSES = 12
GUESSES = [  # what a host program may have to define, by the parser's complaint
    (re.compile(r"use of undeclared identifier '(\w+)'"), "16"),
    (re.compile(r"unknown type name '(\w*2)'"), "float2"),
    (re.compile(r"unknown type name '(\w*(?:4|VEC)\w*)'"), "float4"),
    (re.compile(r"unknown type name '(\w+)'"), "float"),
]
_ERROR = re.compile(r"error:(?: \S+:\d+:\d+(?: <[^>]*>)?:)? (.*)")

_CALLER = """
__kernel void acs_caller_{i}(__global uchar *packed, __local uchar *blob, __local uchar *arena) {{
    acs_context context = {{ {{ get_global_id(0) }} }};
    blob[get_local_id(0)] = packed[get_local_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    {symbol}(&context, blob, arena);
}}
"""


def attempt(path: Path, device: Any, mode: str = "--work") -> dict[str, Any]:
    """Find out what becomes of one source: built as it is (`--plain`), translated and built
    (`--work`), or also run (`--runs`)."""
    import pyopencl as cl

    from acs_cl.opencl_c.functions.translation import CannotTranslate, translate
    from acs_cl.opencl_c.kernel_files import kernel_source
    from acs_cl.opencl_c.parse import clang

    source = path.read_text("utf-8", errors="replace")
    beside = path.with_suffix(".options")
    options = beside.read_text("utf-8") if beside.exists() else ""
    words = clang.split_options(options)
    around = [where for above in list(path.parents)[:3] for where in (above, above / "include")]
    for where in (*around, Path(cl.__file__).parent / "cl"):
        words += ["-I", str(where)] if where.is_dir() else []
    context = cl.Context([device])
    words, guessed = complete(source, words, device)
    try:
        program = cl.Program(context, source).build(words, cache_dir=False)  # type: ignore[arg-type]
        kernels = [kernel.function_name for kernel in program.all_kernels()]
    except cl.Error as error:
        return {"excluded": complaint(error)}
    out: dict[str, Any] = {"guessed": guessed, "misses": {}, "kernels": kernels}
    if mode == "--plain":
        return out
    try:
        found = translate(source, words, device, "p1_")
    except (CannotTranslate, clang.CannotParse) as failed:
        return {**out, "misses": dict.fromkeys(kernels, failed.reason)}
    out["misses"] = {name: found.reasons.get(name, "not seen") for name in kernels
                     if name not in found.functions}  # fmt: skip
    text = kernel_source("context.h") + found.text
    for i, function in enumerate(found.functions.values()):
        text += _CALLER.format(i=i, symbol=function.symbol)
    try:
        cl.Program(context, text).build(list(found.options), cache_dir=False)  # type: ignore[arg-type]
    except cl.Error as error:
        why = f"built text: {complaint(error)}"
        out["misses"] = {name: out["misses"].get(name, why) for name in kernels}
    else:
        if mode == "--runs":
            header = kernel_source("context.h")
            out["runs"] = agreement.compare(context, source, words, found, header)
    return out


def complaint(error: Exception) -> str:
    """Return the first error in the text of a compiler."""
    match = _ERROR.search(str(error))
    return match.group(1).strip() if match else "does not build"


def complete(source: str, words: list[str], device: Any) -> tuple[list[str], int]:
    """Add the macros that the host program would have defined; return options and their number."""
    from acs_cl.opencl_c.parse import clang

    for guessed in range(MOST_GUESSES):
        try:
            clang.parse(source, words, device)
        except clang.CannotParse as failed:
            for pattern, value in GUESSES:
                match = pattern.search(failed.reason)
                if match and f"-D{match.group(1)}={value}" not in words:
                    words = [*words, f"-D{match.group(1)}={value}"]
                    break
            else:
                return words, guessed
        else:
            return words, guessed
    return words, MOST_GUESSES
