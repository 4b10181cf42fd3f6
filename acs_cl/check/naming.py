"""Names: from a command to its arguments, and from a byte to the argument near it.

Input: commands, and bytes of regions. Output: `Argument` and `Where` records, and the sentences of
findings.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import count

import pyopencl as cl

from ..access.signature import Parameter, Signature
from ..launch.commands import KernelCommand
from ..opencl_c.variants import strays
from ..records import Span
from .case import Argument, Case, Spot
from .findings import Where
from .memory import Memory, Region
from .patterns import kind_of_element, word

_tokens = count(1)


def token_of(command: KernelCommand) -> int:
    """Return a token for its kernel. It keeps its arguments alive, so do not store it."""
    kernel = command.kernel
    if getattr(kernel, "token", None) is None:
        kernel.token = next(_tokens)
    token: int = kernel.token
    return token


def signature_of(command: KernelCommand) -> Signature | None:
    """Return the signature of its kernel, if it is known."""
    return getattr(command.kernel, "signature", None)


def arguments_of(command: KernelCommand, memory: Memory) -> list[Argument]:
    """Return its memory arguments."""
    signature = signature_of(command)
    parameters = signature.parameters if signature is not None else ()
    starts = _starts(command, parameters)
    found = []
    for at in range(0, len(command.pointers), 2):
        index, given = command.pointers[at : at + 2]
        kind = name = type_name = ""
        if index < len(parameters):
            parameter = parameters[index]
            name, type_name = parameter.name, parameter.type_name
            if parameter.is_pointer:
                kind = kind_of_element(parameter.element, parameter.element_bytes)
        place = memory.argument(given, kind or "i4")
        if place is None:
            continue
        region, offset = place
        lead = starts.get(index, 0)
        offset += lead
        part = region.part_at(offset)
        if part is not None and kind and part.kind != kind:
            region.retype(part, kind)
        nbytes = given.size if region.foreign or isinstance(given, cl.SVMPointer) else None
        found.append(Argument(index, name, type_name, region, offset, kind or "i4", nbytes, lead))
    return found


def place_of(given: object) -> object:
    """Return a key for an argument's place. A new view of the same memory has the same key."""
    if isinstance(given, cl.SVMPointer):
        return given.svm_ptr
    return given.int_ptr if isinstance(given, cl.Buffer) else given


def _starts(command: KernelCommand, parameters: Sequence[Parameter]) -> dict[int, int]:
    """Return the byte offsets that the kernel adds to its pointers. They are values behind its own
    parameters, one for each pointer to global memory."""
    given = dict(zip(command.values[::2], command.values[1::2], strict=True))
    pointers = [n for n, one in enumerate(parameters) if one.is_pointer and one.space == "global"]
    found = {}
    for extra, index in enumerate(pointers):
        value = given.get(len(parameters) + extra)
        if isinstance(value, bytes) and len(value) == struct.calcsize("Q"):
            found[index] = struct.unpack("Q", value)[0]
    return found


def where(arguments: Sequence[Argument], region: Region, offset: int) -> Where:
    """Describe a byte by the arguments of a launch."""
    part = region.part_at(offset)
    nearest = _nearest(arguments, region, offset)
    if part is None:
        text = "memory that belongs to no array"
    elif not part.live:
        text = f"memory of an array that was given back (made at {part.site})"
    elif region.foreign:
        text = f"byte {offset} of a foreign buffer of {region.size:,} bytes"
    elif offset >= part.high:
        text = f"{offset - part.high + 1} bytes behind the end of the array made at {part.site}"
    else:
        text = f"byte {offset - part.low} of the array made at {part.site}"
    if nearest is None:
        first = offset - part.low if part is not None else offset
        return Where(None, "", first, f"{text}, which is no argument of it")
    first = offset - nearest.offset
    step = word(nearest.kind)
    what = f"argument {nearest.number}{_told(nearest.type_name, nearest.parameter)}"
    element = f", its element {first // step}," if first >= 0 else ""
    if nearest.nbytes is not None and not 0 <= first < nearest.nbytes:
        element += f" outside of its view of {nearest.nbytes:,} bytes,"
    return Where(
        nearest.number, nearest.parameter, first, f"byte {first} of {what}{element} or {text}"
    )


def outside(place: Argument, byte: int) -> Where:
    """Describe a byte, counted from an argument, that is not in its array."""
    region, step = place.region, word(place.kind)
    own = region.part_at(place.offset)
    assert own is not None, "the argument begins in an array"
    array = f"the array of {own.high - own.low:,} bytes made at {own.site}"
    if region.foreign:
        array = f"the foreign buffer of {region.size:,} bytes"
    first, text = _counted(byte)
    text += f" argument {place.number}{_told(place.type_name, place.parameter)}"
    if first is None:
        return Where(place.number, place.parameter, None, f"{text}, outside of {array}")
    text += f", its element {byte // step}, which is outside of {array}"
    offset = place.offset + byte
    other = region.part_at(offset) if offset >= 0 else None
    if other is not None and other is not own and other.live and offset < other.high:
        text += f", in the one made at {other.site}"
    return Where(place.number, place.parameter, byte, text)


def nowhere(command: KernelCommand, index: int, byte: int) -> Where:
    """Describe a byte, counted from an argument without memory."""
    signature = signature_of(command)
    name = type_name = ""
    if signature is not None and index < len(signature.parameters):
        name, type_name = signature.parameters[index].name, signature.parameters[index].type_name
    first, text = _counted(byte)
    text += f" argument {index}{_told(type_name, name)}, which has no memory: it is "
    return Where(index, name, first, f"{text}None or an array without elements")


def of_constant(name: str, nbytes: int, byte: int) -> Where:
    """Describe a byte, counted from a constant of the program, that is in none of its constants."""
    first, text = _counted(byte)
    text += f" the constant {name!r} of its program, which has {nbytes:,} bytes"
    return Where(None, name, first, text)


def _counted(byte: int) -> tuple[int | None, str]:
    """Return a byte of something, and how to say it. None: only its direction is known
    (`strays.FAR`)."""
    if byte in strays.FAR:
        return None, f"a byte some 2 GiB or further {'in front of' if byte < 0 else 'behind'}"
    return byte, f"byte {byte} of"


def _told(type_name: str, parameter: str) -> str:
    return f" ({type_name} {parameter})" if parameter else ""


def listed(spans: Sequence[Span]) -> str:
    """Name the first of some spans."""
    return "; ".join(map(str, spans[:4])) + ("; …" if len(spans) > 4 else "") or "nothing"


def where_of(case: Case, spot: Spot) -> Where:
    """Describe a byte of a case."""
    index, low, _ = spot
    window = case.windows[index]
    return where(case.arguments, window.region, window.low + low)


def _nearest(arguments: Sequence[Argument], region: Region, offset: int) -> Argument | None:
    """Return the argument whose array has the byte, or that begins before it."""
    here = [one for one in arguments if one.region is region]
    part = region.part_at(offset)
    own = [one for one in here if part is not None and part is region.part_at(one.offset)]
    for some in (own, here):
        before = [one for one in some if one.offset <= offset]
        if before:
            return max(before, key=lambda one: (one.offset, -one.number))
        if some:
            return min(some, key=lambda one: one.offset)
    return None
