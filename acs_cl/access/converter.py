"""Converters: one generated function per kernel signature, for plain arguments.

In: a kernel. Out: a function from the arguments of a launch to driver arguments and `Access`.
PyOpenCL generates its invokers for the same reason: a loop over parameters costs more than the
launch itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import pyopencl as cl

from ..memory.array import Array
from ..records import Access
from . import scalars
from .called import Arguments, Called, Converted

Convert = Callable[[Any, Arguments], Converted]
"""Takes its kernel as an argument: a closure over it would be a cycle that keeps the runtime."""


def converter(kernel: Called) -> Convert:
    """Generate `convert(kernel, args)` for the plain case. The rest is handed to
    `Kernel.convert_slowly`.

    Plain: every pointer gets an array of this runtime that is one rectangle of bytes, every scalar
    a number that fits.
    """
    signature = kernel.signature
    plain = not (signature.anywhere or signature.program_globals)
    names = [f"a{index}" for index in range(len(signature.parameters))]
    lines = [f"        {', '.join(names)}{',' if len(names) == 1 else ''} = args"] if names else []
    pointers: list[str] = []
    values: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    scope: dict[str, object] = {
        "Access": Access,
        "Array": Array,
        "LocalMemory": cl.LocalMemory,
        "NOT_PLAIN": scalars.NOT_PLAIN,
        "native": kernel.native,
        "new": tuple.__new__,
    }
    tests: list[str] = []
    for index, parameter in enumerate(signature.parameters):
        name = names[index]
        if parameter.is_pointer and parameter.space in ("global", "constant"):
            tests.append(f"type({name}) is Array and {name}.home is kernel.engine")
            pointers.append(f"{index}, {name}.argument")
            if "r" in parameter.mode:
                reads.append(f"{name}.span")
            if "w" in parameter.mode:
                writes.append(f"{name}.span")
        elif parameter.space == "local" and parameter.is_pointer:
            tests.append(f"type({name}) is LocalMemory")
            pointers.append(f"{index}, {name}")
        else:
            pack = scalars.packer(parameter)
            if pack is None:
                plain = False
                break
            scope[f"pack{index}"] = pack
            values.append(f"{index}, pack{index}({name})")
    if not plain:
        return type(kernel).convert_slowly
    body = (
        f"return (native, {tuple_of(pointers)}, {tuple_of(values)}, "
        f"new(Access, ({tuple_of(reads)}, {tuple_of(writes)}, ())))"
    )
    text = "\n".join(
        [
            "def convert(kernel, args):",
            "    try:",
            *lines,
            f"        if {' and '.join(tests) or 'True'}:",
            f"            {body}",
            "    except NOT_PLAIN:",
            "        kernel.engine.counts.not_plain += 1",
            "    return kernel.convert_slowly(args)",
        ]
    )
    return generated("convert", text, "<arguments of a kernel>", scope)


def generated(name: str, text: str, where: str, scope: dict[str, object]) -> Callable[..., Any]:
    """The function `name` of a text, which sees what is in `scope`."""
    exec(_compiled(text, where), scope)
    found: Callable[..., Any] = scope.pop(name)  # type: ignore[assignment]  # or it would hold itself
    return found


@lru_cache(maxsize=256)
def _compiled(text: str, where: str) -> CodeType:
    """Kernels whose parameters are alike have one text, and compiling it takes longest."""
    return compile(text, where, "exec")


def tuple_of(parts: list[str]) -> str:
    """The text of a tuple."""
    return f"({', '.join(parts)},)" if parts else "()"
