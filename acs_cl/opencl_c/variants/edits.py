"""Edits of a function's text, at places that its syntax tree tells.

Input: a parsed unit, a function of it, and edits. Output: the text of the function with them. Pure.
Invariant: no two edits replace the same bytes. Insertions at one place keep their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import IDLE_PRAGMAS, start_of
from acs_cl.opencl_c.parse.tree import Cursor, Type

from ...records import NamedTuple

_DROPPED = re.compile(r"\b(__private|restrict|__restrict)\b")
_PRAGMA = rb"#[ \t]*pragma[ \t]+"
_FIRST_PRAGMAS = re.compile(
    rb"(\s*" + _PRAGMA + rb"(OPENCL[ \t]+FP_CONTRACT|STDC|clang[ \t]+fp|float_control)\b[^\n]*\n)*"
)
"""Pragmas that have to be the first lines of a block."""
_LASTING_PRAGMA = re.compile(
    rb"^[ \t]*" + _PRAGMA + rb"(?!OPENCL[ \t]+EXTENSION\b|" + IDLE_PRAGMAS.encode() + rb")[^\n]*",
    re.MULTILINE,
)
"""Pragmas that may change what the functions behind them compute."""

Edits = list[tuple[int, int, str]]
"""(from, to, new text), in bytes."""


def place_of(unit: clang.Unit, kernel: Cursor, others: Iterable[Cursor] = ()) -> int:
    """Return where a variant of a kernel stands, with its own versions of other functions: where
    the kernel does, or behind the last of these functions."""
    end = max((one.extent.end.offset for one in others), default=0)
    return end if end > kernel.extent.end.offset else start_of(unit, kernel)


def edited(unit: clang.Unit, function: Cursor, edits: Edits, place: int) -> str:
    """Return the text of a function with edits, to stand at `place`. Raises `CannotParse` if it
    would mean something else there."""
    end = function.extent.end.offset
    inside = [one.extent for several in unit.functions.values() for one in several]
    for pragma in _LASTING_PRAGMA.finditer(unit.data, end, max(end, place)):
        at = pragma.start()
        if not any(one.start.offset <= at < one.end.offset for one in inside):
            text = pragma[0].decode("utf-8").strip()
            raise CannotParse(f"{text} stands behind {function.spelling}, and would hold for it")
    return changed(unit.data, start_of(unit, function), end, edits)


def placed(unit: clang.Unit, kernel: Cursor, text: str, place: int, stays: bool) -> str:
    """Return the source with the text of a variant at `place`. The kernel stays, or goes."""
    begin, end = start_of(unit, kernel), kernel.extent.end.offset
    edits: Edits = [(place, place, f"\n{text}\n")]
    return changed(unit.data, 0, len(unit.data), edits if stays else [*edits, (begin, end, "\n")])


def changed(data: bytes, at: int, until: int, edits: Edits) -> str:
    """Return a part of a text with edits."""
    pieces: list[bytes] = []
    for begin, end, text in sorted(edits, key=lambda one: one[:2]):
        pieces += data[at:begin], text.encode()
        at = end
    return b"".join([*pieces, data[at:until]]).decode("utf-8")


def renamed(unit: clang.Unit, cursor: Cursor, name: str) -> tuple[int, int, str]:
    """Return the edit that gives another name to what is declared at a cursor."""
    begin, own = cursor.location.offset, cursor.spelling.encode()
    if unit.data[begin : begin + len(own)] != own:
        raise CannotParse(f"{cursor.spelling} is not where it is declared")
    return begin, begin + len(own), name


def at_top(unit: clang.Unit, function: Cursor, lines: str) -> tuple[int, int, str]:
    """Return the edit that adds the first lines of a function, behind pragmas that come first."""
    top = n.body_of(function).extent.start.offset + 1
    pragmas = _FIRST_PRAGMAS.match(unit.data, top)
    top = pragmas.end() if pragmas else top
    return top, top, lines


def at_end(function: Cursor, lines: str) -> tuple[int, int, str]:
    """Return the edit that adds the last lines of a function."""
    end = n.body_of(function).extent.end.offset - 1
    return end, end, lines


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


class Pointer(NamedTuple):
    """The target of a pointer."""

    space: int
    bytes: int
    written: str
    """Its type in a cast."""
    least: int
    """Bytes that any access touches: of a structure it may be one of a member, of three components
    those of three."""


def pointer_of(spelled: Type) -> Pointer | None:
    """Return the target of a pointer, or of an array's name for a parameter, which is shown as it
    was written. None: no pointer."""
    canonical = spelled.get_canonical()
    shape = n.shape_of(canonical)
    if shape == n.ARRAY:
        target = canonical.get_array_element_type()
        written = f"{spelled.get_array_element_type().spelling} *"
    elif shape == n.POINTER:
        target = canonical.get_pointee()
        written = spelled.spelling
    else:
        return None
    written = " ".join(_DROPPED.sub(" ", written).split())
    nbytes = target.get_size()
    return Pointer(target.get_address_space(), nbytes, written, least_of(target, nbytes))


def least_of(target: Type, nbytes: int) -> int:
    """Return how many of the bytes of a pointer's target any access touches."""
    shape = n.shape_of(target)
    if shape == n.VECTOR and target.get_canonical().element_count == 3:
        return nbytes // 4 * 3
    return 1 if shape == n.RECORD else nbytes
