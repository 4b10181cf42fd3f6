"""A variant of one kernel whose pointers take a byte offset each.

Input: a program's source and options, a kernel, indices of pointer parameters. Output: a source and
the name of the kernel to use in it. The new kernel stands behind the preprocessed text. It takes
one more `ulong` for each index, in the given order, and starts by adding them to the pointers. It
does not call the old kernel, so `__local` variables and barriers stay legal. Invariant: except for
the start of these pointers, the variant computes the same as the kernel.
"""

from __future__ import annotations

import re

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import start_of, unit_with
from acs_cl.opencl_c.parse.tree import Cursor

_DROPPED = re.compile(r"\b(__private|restrict|__restrict)\b")


def with_byte_offsets(
    source: str,
    options: BuildOptions,
    device: cl.Device | None,
    kernel: str,
    parameters: tuple[int, ...],
) -> tuple[str, str]:
    """Return source and kernel name of a variant that adds byte offsets to `parameters`. Raises
    `CannotParse` if the source, or one of these parameters, cannot be read."""
    with clang.LOCK:
        unit = unit_with(source, options, device, kernel)
        name = f"{kernel}__acs_offset_{'_'.join(map(str, parameters))}"
        result = f"{unit.source}\n{_variant(unit, unit.kernels[kernel], name, parameters)}\n"
        clang.parse(result, options, device)
        return result, name


def _variant(unit: clang.Unit, kernel: Cursor, name: str, parameters: tuple[int, ...]) -> str:
    """Return the text of the kernel with its name, parameter list and first lines changed."""
    collect = clang.library().collect
    data = unit.source.encode("utf-8")
    children = collect(kernel)
    declared = [c for c in children if c._kind_id == n.PARM_DECL]
    body = next(c for c in children if 200 <= c._kind_id < 300)
    start = start_of(unit, kernel)
    edits: list[tuple[int, int, str]] = []  # (from, to, new text)
    place = kernel.location.offset
    edits.append((place, place + len(kernel.spelling), name))
    extra, lines = "", ""
    for index in parameters:
        cursor = declared[index]
        own = cursor.spelling
        extra += f", ulong {own or f'acs_{index}'}__acs_offset"
        if not own:  # a parameter without a name is not used
            continue
        place = cursor.location.offset
        if data[place : place + len(own)] != own.encode():
            raise CannotParse(f"parameter {own} is not where it is declared")
        edits.append((place, place + len(own), f"{own}__acs_base"))
        lines += _adjusted(cursor)
    if declared:
        place = closing(data, declared[-1].extent.end.offset)
        edits.append((place, place, extra))
    place = body.extent.start.offset + 1
    edits.append((place, place, lines))
    out, at = b"", start
    for begin, end, text in sorted(edits):
        out += data[at:begin] + text.encode()
        at = end
    return (out + data[at : kernel.extent.end.offset]).decode("utf-8")


def _adjusted(cursor: Cursor) -> str:
    """Return the line that sets a parameter to the pointer plus its offset."""
    name = cursor.spelling
    shape = n.shape_of(cursor.type)
    canonical = cursor.type.get_canonical()
    if shape == n.ARRAY:  # shown as written, but a parameter is a pointer
        target = canonical.get_array_element_type()
        written = cursor.type.get_array_element_type().spelling + " *"
    elif shape == n.POINTER:
        target = canonical.get_pointee()
        written = cursor.type.spelling
    else:
        raise CannotParse(f"parameter {name} is not a pointer")
    space = n.SPACES.get(target.get_address_space(), "global")
    written = " ".join(_DROPPED.sub(" ", written).split())
    if "(" in written or "[" in written:
        raise CannotParse(f"parameter {name} has a type that cannot be written in one piece")
    return (
        f" {written} {name} = ({written})((__{space} char *){name}__acs_base + {name}__acs_offset);"
    )


def closing(data: bytes, at: int) -> int:
    """Return the offset of the parenthesis that closes the parameter list."""
    depth = 0
    while at < len(data):
        sign = data[at : at + 1]
        if sign == b"(":
            depth += 1
        elif sign == b")":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    raise CannotParse("the parameter list does not end")
