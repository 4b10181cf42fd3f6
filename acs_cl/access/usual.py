"""Usual arguments: what the core binds, from anything that a call may take.

Input: a kernel, and the arguments of one call. Output: memory as `Resolved`, values as bytes, and
the rest as the driver takes it. Whatever is wrong is refused by the number and name of its
parameter.

The core converts the common kinds of arguments itself, and asks here for the others.

Of some launches it is certain, before they are made, that they leave an array (`Bound.outside`).
That is known for the simplest bodies only: every work-item comes to the access, and its index is a
sum of work-item numbers. A write beyond the array changes another one's memory, so it is refused. A
value that is read there may be thrown away afterwards. A write beyond the view, but in the array,
is right as long as nothing else runs. So both are told of. Checks find all others.

An array without elements is a null pointer. What surely follows it is refused, and what may do so
is told of, since it may end the process. None is one that the program asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from ..devices.driver import is_svm
from ..errors import CheckWarning, UsageError, describe
from ..host.call_sites import warn_there
from ..memory.array import Array
from ..records import NamedTuple, Span
from . import arguments, hints, scalars
from .binder import Outside
from .called import Arguments, Called
from .signature import Parameter


class Usual(NamedTuple):
    """The arguments of one call."""

    arguments: list[object]
    offsets: dict[int, int]
    """The byte offset of each global pointer."""
    kinds: tuple[bool, ...]
    """Of each argument that is memory: whether it is shared virtual memory."""


def usual(kernel: Called, args: Arguments) -> Usual:
    """Convert the arguments of a call."""
    parameters = kernel.signature.parameters
    if len(args) != len(parameters):
        names = ", ".join(f"{p.type_name} {p.name}" for p in parameters)
        raise UsageError(
            f"{kernel.label()}: got {len(args)} arguments, expected {len(parameters)} ({names})"
            f"{hints.of_number(args)}"
        )
    found: list[object] = []
    offsets: dict[int, int] = {}
    kinds: list[bool] = []
    for index, (parameter, value) in enumerate(zip(parameters, args, strict=True)):
        memory = _memory(kernel, index, parameter, value)
        if memory is None:
            convert = _value if scalars.is_value(parameter, value) else _object
            found.append(convert(kernel, index, parameter, value))
            continue
        found.append(memory)
        kinds.append(is_svm(memory.argument))
        if parameter.space == "global":
            offsets[index] = memory.offset
        elif memory.offset:
            raise UsageError(
                f"{where(kernel, index, parameter)}: a view that starts inside its buffer can be "
                "passed to global pointers only; copy it"
            )
    return Usual(found, offsets, tuple(kinds))


def where(kernel: Called, index: int, parameter: Parameter) -> str:
    """Name an argument of the next launch, for errors."""
    told = f" ({parameter.type_name} {parameter.name})" if parameter.type_name else ""
    return f"{kernel.label()}, argument {index}{told}"


def check_const(
    kernel: Called, spans: Sequence[Sequence[Span] | None], writes: tuple[Span, ...]
) -> None:
    """Check that a declared write has a parameter that can write. `spans`: of each argument."""
    written = {span.base for span in writes}
    suspects: dict[int, tuple[int, Parameter]] = {}
    for index, (parameter, own) in enumerate(zip(kernel.signature.parameters, spans, strict=True)):
        for base in {span.base for span in own or ()} & written:
            if parameter.const:
                suspects.setdefault(base, (index, parameter))
            else:
                written.discard(base)
    for base in written & suspects.keys():
        raise UsageError(
            f"{where(kernel, *suspects[base])}: writes= names its memory, but the kernel "
            "takes it as const and by no other argument"
        )


def _memory(
    kernel: Called, index: int, parameter: Parameter, value: object
) -> arguments.Resolved | None:
    try:
        found = arguments.resolve(kernel.engine, value)
    except UsageError as error:
        raise UsageError(f"{where(kernel, index, parameter)}: {error}") from None
    if found is None:
        return None
    image = isinstance(value, cl.Image)
    if parameter.space not in (("image", "") if image else ("global", "constant", "pipe", "")):
        raise _wrong(kernel, index, parameter, value)
    least = scalars.alignment_of(parameter.element)
    if isinstance(value, Array) and value.offset % least:
        raise UsageError(
            f"{where(kernel, index, parameter)}: {value!r} begins at byte {value.offset:,} of its "
            f"array, and a {parameter.element} is at a multiple of {least}; begin it there, or "
            "copy it to an array of its own"
        )
    return found


def _value(kernel: Called, index: int, parameter: Parameter, value: object) -> bytes:
    try:
        return scalars.to_bytes(parameter, value)
    except (ValueError, TypeError) as error:
        kind = (
            f"a value of type {parameter.type_name}" if parameter.type_name else "memory or a value"
        )
        raise UsageError(
            f"{where(kernel, index, parameter)}: got {describe(value)}, expected {kind}: {error}"
        ) from None


def _object(kernel: Called, index: int, parameter: Parameter, value: object) -> object:
    """Take local memory, samplers and null pointers. Anything else is wrong here."""
    if isinstance(value, cl.LocalMemory) and not value.size:  # Intel's runtime would crash
        raise UsageError(
            f"{where(kernel, index, parameter)}: local memory of 0 bytes, give it 1 at least"
        )
    if parameter.space == "local" and isinstance(value, cl.LocalMemory):
        return value
    if parameter.space == "sampler" and isinstance(value, cl.Sampler):
        return value
    if value is None and parameter.space in ("global", "constant", ""):
        return None
    if parameter.space == "" and isinstance(value, (cl.LocalMemory, cl.Sampler)):
        return value
    raise _wrong(kernel, index, parameter, value)


def _wrong(kernel: Called, index: int, parameter: Parameter, value: object) -> UsageError:
    """Make the error for an argument that is not of the parameter's kind."""
    expected = {
        "local": "pyopencl.LocalMemory(nbytes)",
        "sampler": "a pyopencl.Sampler",
        "image": "a pyopencl.Image",
        "private": f"a value of type {parameter.type_name}",
    }.get(parameter.space, "an array, a view or a buffer")
    are_values = hasattr(value, "__array__") or isinstance(value, (list, tuple))
    is_array = are_values and parameter.space in ("global", "constant")
    hint = "; put it on the device with rt.array(…)" if is_array else ""
    return UsageError(
        f"{where(kernel, index, parameter)}: got {describe(value)}, expected {expected}{hint}"
    )


def tell_outside(kernel: Called, found: Outside, args: Arguments, told: set[int]) -> None:
    """Refuse a launch that surely writes outside of an array, or uses one without memory. Warn of
    any other that leaves what it was given, once for each parameter: `told` has these."""
    index, value = found.parameter, args[found.parameter]
    named = where(kernel, index, kernel.signature.parameters[index])
    access = f"{named}: the kernel {'writes' if found.writes else 'reads'} "
    if not found.is_sure:
        why = f"{named}: {value!r} has no memory, and the kernel may use some; then it may crash"
        if value is None:
            return
    elif not isinstance(value, Array) or value.base is None or not value.nbytes:
        raise UsageError(f"{access}byte {found.byte} of it, and {value!r} has no memory")
    else:
        access += f"element {found.byte // value.dtype.itemsize} (byte {found.byte})"
        whole = value.base.nbytes
        inside = value.offset or value.nbytes < whole
        begins = f" of a view that begins at byte {value.offset:,} of its array" if inside else ""
        why = f"{access}{begins}, and the array has {_size(value, whole)}"
        if 0 <= value.offset + found.byte < whole:
            why = (
                f"{access}, outside of the view of {value.nbytes:,} bytes that it is given; other "
                "launches on these bytes do not wait for it: pass a larger view, or declare them"
            )
        elif found.writes:
            raise UsageError(why)
    if index not in told:
        told.add(index)
        warn_there(why, CheckWarning)


def _size(array: Array, nbytes: int) -> str:
    return f"{nbytes // array.dtype.itemsize:,} elements ({nbytes:,} bytes)"
