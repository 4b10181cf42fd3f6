"""A variant of one kernel whose pointers take a byte offset each.

Input: a program's source and options, a kernel, indices of pointer parameters. Output: a source and
the name of the kernel to use in it. The new kernel stands in the preprocessed text where the old
one was. The text has no other kernel unless something in it names one. The new kernel takes one
more `ulong` for each index, in the given order, and starts by adding them to the pointers. It does
not call the old kernel, so `__local` variables and barriers stay legal. Invariant: except for
the start of these pointers, the variant computes the same as the kernel.
"""

from __future__ import annotations

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import is_named, unit_with
from acs_cl.opencl_c.parse.tree import Cursor
from acs_cl.opencl_c.variants.edits import (
    Edits,
    at_top,
    closing,
    edited,
    place_of,
    placed,
    pointer_of,
    renamed,
)


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
        cursor, stays = unit.kernels[kernel], is_named(source, options, device, kernel)
        place = place_of(unit, cursor)
        variant = _variant(unit, cursor, name, parameters, place)
        result = placed(unit, cursor, variant, place, stays)
        clang.parse(result, options, device)
        return result, name


def _variant(
    unit: clang.Unit, kernel: Cursor, name: str, parameters: tuple[int, ...], place: int
) -> str:
    """Return the text of the kernel with its name, parameter list and first lines changed, to stand
    at `place`."""
    declared = n.parameters_of(kernel)
    edits: Edits = [renamed(unit, kernel, name)]
    extra, lines = "", ""
    for index in parameters:
        cursor = declared[index]
        own = cursor.spelling
        extra += f", ulong {own or f'acs_{index}'}__acs_offset"
        if not own:  # a parameter without a name is not used
            continue
        edits.append(renamed(unit, cursor, f"{own}__acs_base"))
        lines += _adjusted(cursor)
    if declared:
        end = closing(unit.data, declared[-1].extent.end.offset)
        edits.append((end, end, extra))
    edits.append(at_top(unit, kernel, lines))
    return edited(unit, kernel, edits, place)


def _adjusted(cursor: Cursor) -> str:
    """Return the line that sets a parameter to the pointer plus its offset."""
    name, pointer = cursor.spelling, pointer_of(cursor.type)
    if pointer is None:
        raise CannotParse(f"parameter {name} is not a pointer")
    space, written = n.SPACES.get(pointer.space, "global"), pointer.written
    if "(" in written or "[" in written:
        raise CannotParse(f"parameter {name} has a type that cannot be written in one piece")
    return (
        f" {written} {name} = ({written})((__{space} char *){name}__acs_base + {name}__acs_offset);"
    )
