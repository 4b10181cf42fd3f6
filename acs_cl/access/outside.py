"""Outside: launches of which it is certain, before they are made, that they leave an array.

Input: a kernel, an access that its body surely makes (`Bound.outside`), and the arguments. Output:
an error, or a warning.

That is known for the simplest bodies only: every work-item comes to the access, and its index is a
sum of work-item numbers. A write beyond the array changes another one's memory, so it is refused. A
value that is read there may be thrown away afterwards. A write beyond the view, but in the array,
is right as long as nothing else runs. So both are told of. Checks find all others.

An array without elements is a null pointer. What surely follows it is refused, and what may do so
is told of, since it may end the process. None is one that the program asked for.
"""

from __future__ import annotations

from ..errors import CheckWarning, UsageError
from ..host.call_sites import warn_there
from ..memory.array import Array
from .binder import Outside
from .called import Arguments, Called
from .usual import where


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
