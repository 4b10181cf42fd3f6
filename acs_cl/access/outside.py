"""Outside: launches of which it is certain, before they are made, that they leave an array.

Input: a kernel, an access that its body surely makes (`Bound.outside`), and the arguments. Output:
an error, or a warning.

That is known for the simplest bodies only: every work-item comes to the access, and its index is a
sum of work-item numbers. A write beyond the array changes another one's memory, so it is refused. A
value that is read there may be thrown away afterwards. A write beyond the view, but in the array,
is right as long as nothing else runs. So both are told of. Checks find all others.
"""

from __future__ import annotations

from ..errors import CheckWarning, UsageError
from ..host.call_sites import warn_there
from ..memory.array import Array
from .binder import Outside
from .called import Arguments, Called
from .usual import where


def look(kernel: Called, found: Outside, args: Arguments) -> None:
    """Refuse a launch that surely writes outside of an array, or uses one without memory. Warn of
    any other that leaves what it was given."""
    value = args[found.index]
    parameter = kernel.signature.parameters[found.index]
    verb = "writes" if found.writes else "reads"
    access = f"{where(kernel, found.index, parameter)}: the kernel {verb} "
    if not isinstance(value, Array) or value.base is None or not value.nbytes:
        raise UsageError(f"{access}byte {found.byte} of it, and {value!r} has no memory")
    access += f"element {found.byte // value.dtype.itemsize} (byte {found.byte})"
    whole = value.base.nbytes
    if 0 <= value.offset + found.byte < whole:
        warn_there(
            f"{access}, outside of the view of {value.nbytes:,} bytes that it is given; other "
            "launches on these bytes do not wait for it: pass a larger view, or declare them",
            CheckWarning,
        )
    elif found.writes:
        raise UsageError(f"{access}, and the array has {_size(value, whole)}")
    else:
        warn_there(f"{access}, and the array has {_size(value, whole)}", CheckWarning)


def _size(array: Array, nbytes: int) -> str:
    return f"{nbytes // array.dtype.itemsize:,} elements ({nbytes:,} bytes)"
