"""The arguments of a kernel, packed into bytes (a blob), and how a function reads them.

Input: a kernel's declaration and the prefix of its program's names. Output: fields, and the text of
an entry that reads them and calls the translated kernel. Invariant: fields are in the order of the
arguments. Each is at a multiple of its type's alignment, or of 16 if that is less. So all reads of
a blob are aligned if it starts at a multiple of 16.
"""

from __future__ import annotations

import re

from acs_cl.opencl_c.functions.survey import is_opaque
from acs_cl.opencl_c.functions.translated import CannotTranslate, Field
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.tree import Cursor, Type

from ...records import NamedTuple

_ALIGNMENT = 16  # of blobs
_QUALIFIERS = re.compile(r"\b(__private|const|volatile)\b")
_VECTORS = (113, 176)
_NAMES = {
    "signed char": "char", "unsigned char": "uchar", "unsigned short": "ushort",
    "unsigned int": "uint", "unsigned long": "ulong", "__fp16": "half", "_Float16": "half",
}  # fmt: skip


class Blob(NamedTuple):
    """All arguments of a kernel."""

    fields: tuple[Field, ...]
    bytes: int
    constants: bool  # some are `__constant` pointers, read as `__global` ones
    lines: tuple[str, ...]  # statements before the call
    arguments: tuple[str, ...]  # expressions, one for each parameter


def blob_of(kernel: Cursor, prefix: str, names: set[str], constants: bool) -> Blob:
    """Return how the arguments of a kernel are packed, with `constants` also `__constant` pointers.
    Raises `CannotTranslate`."""
    fields: list[Field] = []
    lines: list[str] = []
    arguments: list[str] = []
    end, has_constants = 0, False
    for cursor in n.parameters_of(kernel):
        kind, size, alignment = measure(cursor)
        if kind == "constant":
            if not constants:
                raise CannotTranslate(
                    f"argument {cursor.spelling} is a __constant pointer and may meet constants"
                    " of the program"
                )
            kind, has_constants = "pointer", True
        at = -(-end // alignment) * alignment
        end = at + size
        fields.append(Field(kind, at, size))
        place = f"acs_blob + {at}"
        if kind == "pointer":
            arguments.append(f"(__global void *)*(ACS_BLOB const ulong *)({place})")
        elif kind == "local":
            arguments.append(f"(__local void *)(acs_arena + *(ACS_BLOB const uint *)({place}))")
        else:
            line, argument = _value(cursor, place, f"acs_v{len(fields)}", prefix, names)
            lines += line
            arguments.append(argument)
    total = -(-end // _ALIGNMENT) * _ALIGNMENT
    return Blob(tuple(fields), total, has_constants, tuple(lines), tuple(arguments))


def measure(cursor: Cursor) -> tuple[str, int, int]:
    """Return kind, size and alignment of a parameter's field."""
    name = cursor.spelling or "without a name"
    canonical = cursor.type.get_canonical()
    shape = n.shape_of(canonical)
    if is_opaque(cursor.type):
        raise CannotTranslate(f"argument {name} is an image, a sampler, a pipe or a queue")
    if shape in (n.POINTER, n.ARRAY):  # a parameter written as an array is a pointer
        target = canonical.get_array_element_type() if shape == n.ARRAY else canonical.get_pointee()
        space = target.get_address_space() or canonical.get_address_space()
        if space == n.CONSTANT:
            return "constant", 8, 8
        if space == n.LOCAL:
            return "local", 4, 4
        if space != n.GLOBAL:
            raise CannotTranslate(f"argument {name} points to neither global nor local memory")
        return "pointer", 8, 8
    size, alignment = canonical.get_size(), canonical.get_align()
    if shape not in (n.NUMBER, n.BOOL, n.VECTOR, n.RECORD) and canonical._kind_id != 106:
        raise CannotTranslate(f"argument {name} is of a type that no value has")
    if size <= 0 or alignment <= 0:
        raise CannotTranslate(f"argument {name} has no known size")
    return "value", size, min(alignment, _ALIGNMENT)


def _value(
    cursor: Cursor, place: str, variable: str, prefix: str, names: set[str]
) -> tuple[list[str], str]:
    """Return the statements and the expression that read a value."""
    canonical = cursor.type.get_canonical()
    spelled = type_name(canonical, prefix, names)
    if canonical.get_align() <= _ALIGNMENT:
        return [], f"*(ACS_BLOB const {spelled} *)({place})"
    if canonical._kind_id in _VECTORS:
        # By elements: vload of 64 bytes gives wrong values on PoCL 3.0.
        count = canonical.element_count
        source = f"((ACS_BLOB const {spelled.removesuffix(str(count))} *)({place}))"
        return [], f"({spelled})({', '.join(f'{source}[{i}]' for i in range(count))})"
    return [
        f"{spelled} {variable};",
        f"for (uint acs_i = 0; acs_i < sizeof({variable}); ++acs_i)"
        f" ((uchar *)&{variable})[acs_i] = ({place})[acs_i];",
    ], variable


def type_name(canonical: Type, prefix: str, names: set[str]) -> str:
    if canonical._kind_id in _VECTORS:
        element = type_name(canonical.element_type.get_canonical(), prefix, names)
        return f"{element}{canonical.element_count}"
    spelled = " ".join(_QUALIFIERS.sub(" ", canonical.spelling).split())
    if canonical._kind_id == 106:  # an enumeration: any integer of its size converts to it
        return {1: "uchar", 2: "ushort", 8: "ulong"}.get(canonical.get_size(), "uint")
    if n.shape_of(canonical) != n.RECORD:
        return _NAMES.get(spelled, spelled)
    *tag, name = spelled.split(" ")
    if name not in names or tag not in ([], ["struct"], ["union"]):
        raise CannotTranslate(f"an argument's type has no name ({spelled})")
    return " ".join([*tag, prefix + name])


def entry(symbol: str, kernel: str, blob: Blob, context: str) -> str:
    """Return the text of the function that reads a blob and calls the translated kernel. `context`:
    words to pass before the arguments."""
    arguments = ", ".join(filter(None, [context, *blob.arguments]))
    body = "".join(f"    {line}\n" for line in (*blob.lines, f"{kernel}({arguments});"))
    return (
        f"static void {symbol}(ACS_CONTEXT, ACS_BLOB const uchar *acs_blob,"
        f" __local uchar *acs_arena) {{\n{body}}}\n"
    )
