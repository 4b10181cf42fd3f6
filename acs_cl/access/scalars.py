"""Values passed to kernels by copy, and elements behind pointers: numbers, vectors, structs.

Input: a parameter and a Python number, NumPy scalar or array, or bytes. Output: the bytes that the
kernel expects. Numbers are converted to the parameter's type as in C, but a number that does not
fit is an error. For an array's dtype: what to write instead, if the kernel takes other elements.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyopencl as cl

from ..records import DType
from .signature import Parameter

_CODES = {
    "char": "b", "signed char": "b", "uchar": "B", "unsigned char": "B",
    "short": "h", "ushort": "H", "unsigned short": "H",
    "int": "i", "uint": "I", "unsigned int": "I", "unsigned": "I",
    "long": "q", "ulong": "Q", "unsigned long": "Q", "long long": "q", "unsigned long long": "Q",
    "size_t": "Q", "ptrdiff_t": "q", "intptr_t": "q", "uintptr_t": "Q",
    "half": "e", "float": "f", "double": "d",
}  # fmt: skip

_LARGEST = {"e": "65504", "f": "3.4e+38", "d": "1.8e+308"}
"""The largest numbers of types with fractions."""

_VECTORS = {
    f"{name}{many}": (code, many) for name, code in _CODES.items() for many in (2, 3, 4, 8, 16)
}


def is_value(parameter: Parameter, value: object) -> bool:
    """Tell whether the parameter takes bytes. If nothing is known of it, the argument decides."""
    if parameter.is_pointer or parameter.space in ("image", "sampler", "local", "pipe"):
        return False
    if parameter.space:
        return True
    return not isinstance(value, (cl.LocalMemory, cl.Sampler)) and value is not None


def code(parameter: Parameter) -> str | None:
    """Return the `struct` code for a number of its type. None: only `to_bytes` can convert it."""
    if parameter.space != "private" or parameter.is_pointer:
        return None
    return code_of(parameter.type_name)


def code_of(type_name: str) -> str | None:
    """Return the `struct` code of a type of numbers."""
    return _CODES.get(_plain(type_name))


def alignment_of(type_name: str) -> int:
    """Return what the addresses of numbers or vectors of a type are multiples of. 1: unknown."""
    number, many = _VECTORS.get(_plain(type_name)) or (code_of(type_name), 1)
    return struct.calcsize(f"={number}") * (4 if many == 3 else many) if number else 1


def to_bytes(parameter: Parameter, value: Any) -> bytes:
    """Convert any value. Raises ValueError or TypeError with the reason."""
    number = code(parameter)
    if number is not None:
        if isinstance(value, np.ndarray):
            if value.ndim:
                raise ValueError("it takes one number, such as values[0]")
            value = value[()]
        if isinstance(value, np.bool_):
            value = bool(value)
        try:
            return struct.pack("=" + number, value)
        except (struct.error, OverflowError):
            is_other = isinstance(value, (float, np.floating)) and number not in _LARGEST
            how = "; int(…) makes one of a float" if is_other else ""
            raise ValueError(f"it takes {_numbers(number)}{how}") from None
    if isinstance(value, (np.generic, np.ndarray)) and not value.dtype.isnative:
        value = np.asarray(value).astype(value.dtype.newbyteorder("="))
    if isinstance(value, (np.generic, np.ndarray, bytes, bytearray, memoryview)):
        data = value.tobytes() if hasattr(value, "tobytes") else bytes(value)
    else:
        try:
            data = bytes(memoryview(value))
        except TypeError:
            vector = _VECTORS.get(_plain(parameter.type_name))
            like = f", such as np.array([…], '{vector[0]}')" if vector else ""
            if isinstance(value, int) and parameter.size_bytes == 4:  # an enum
                like = f", such as np.int32({value})"
            raise TypeError(
                f"pass a NumPy scalar, array or bytes of exactly its size{like}, since its layout "
                "cannot be told from a Python object"
            ) from None
    if parameter.size_bytes and len(data) != parameter.size_bytes:
        hint = "; it has the bytes of four" if _plain(parameter.type_name)[-1:] == "3" else ""
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, np.dtype) and dtype.names and not dtype.isalignedstruct:
            hint = "; np.dtype(…, align=True) lays fields out as C does"
        raise ValueError(f"{len(data)} bytes instead of {parameter.size_bytes}{hint}")
    return data


def mismatch(parameter: Parameter, dtype: DType) -> str:
    """Say that a kernel's pointer is to other numbers than those of an array. Vectors, structures
    and bytes are for anything, and unsigned words for whatever has their size.

    A kernel may read any bytes as anything, so no call is refused. But `rt.array([1, 2, 3])` has
    64-bit integers, and a kernel that takes `int *` would get other numbers without a word."""
    code = code_of(parameter.element)
    if code is None or code in "bB" or dtype.kind not in "iuf":
        return ""
    wanted = np.dtype(code)
    is_same = (dtype.kind == "f") == (wanted.kind == "f") or wanted.kind == "u"
    if dtype.itemsize == wanted.itemsize and is_same:
        return ""
    return (
        f"its elements are {dtype}, and the kernel takes their bytes for {wanted}; make the array "
        f"with dtype {wanted.name!r}, or pass x.view({wanted.name!r}) if that is meant"
    )


def _numbers(code: str) -> str:
    """Say which numbers a type has, by its `struct` code."""
    if code in _LARGEST:
        return f"numbers up to {_LARGEST[code]}"
    bits = 8 * struct.calcsize("=" + code)
    least = -(1 << bits - 1) if code.islower() else 0
    return f"whole numbers from {least} to {least + (1 << bits) - 1}"


def _plain(type_name: str) -> str:
    words = [word for word in type_name.split() if word not in ("const", "volatile", "__private")]
    return " ".join(words)
