"""What a trap is: a kernel named `k`, what it is launched with, and what it is built with.

In: sources. Out: `Trap`s. A `$` in a source ends a name at file scope; it stands for nothing where
the trap is built alone, and for a number where many traps share one program.

Invariant: whatever bytes a buffer holds, the kernel stays inside of its buffers and ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Buffer(NamedTuple):
    """An argument in device memory: its bytes before the launch."""

    data: bytes


class Same(NamedTuple):
    """The memory of an earlier argument once more."""

    index: int


class Local(NamedTuple):
    """So many bytes of local memory."""

    nbytes: int


class Image(NamedTuple):
    """An image of four bytes a pixel, of so many pixels along each axis. Of an array of images the
    last axis counts these."""

    shape: tuple[int, ...]
    data: bytes
    is_array: bool = False


class Trap(NamedTuple):
    """A hostile kernel. `files` are written to a folder that `-I` names."""

    name: str
    source: str
    args: tuple[Any, ...]
    options: tuple[str, ...] = ()
    size: tuple[int, ...] = (1,)
    local: tuple[int, ...] | None = (1,)
    offset: tuple[int, ...] | None = None
    files: tuple[tuple[str, str], ...] = ()

    @property
    def shares(self) -> bool:
        """Whether it may stand in one program with others."""
        return "$" in self.source and not self.options and not self.files


def some_bytes(count: int, seed: int = 0) -> bytes:
    """Bytes that look like nothing in particular, the same each time."""
    return bytes((37 * i * i + 101 * i + 59 * seed + 11) % 251 for i in range(count))


def mem(count: int = 64, width: int = 4, seed: int = 0) -> Buffer:
    """Memory for `count` elements of `width` bytes."""
    return Buffer(some_bytes(count * width, seed))


def holding(values: Any, dtype: str = "i4", count: int = 0) -> Buffer:
    """Memory that begins with these values, at least `count` elements of it."""
    data = np.asarray(values, dtype).tobytes()
    return Buffer(data + some_bytes(max(0, count * np.dtype(dtype).itemsize - len(data))))


def i(value: int) -> np.int32:
    """An int argument."""
    return np.int32(value)


def body(name: str, text: str, *args: Any, params: str = "", **more: Any) -> Trap:
    """A kernel with one array `y` of 64 ints, then `params`; `args` are theirs."""
    head = f"global int *y{', ' if params else ''}{params}"
    return Trap(name, f"kernel void k$({head}) {{ {text} }}", (mem(), *args), **more)


def around(name: str, before: str, text: str, *args: Any, params: str = "", **more: Any) -> Trap:
    """The same behind some text at file scope."""
    head = f"global int *y{', ' if params else ''}{params}"
    source = f"{before}\nkernel void k$({head}) {{ {text} }}"
    return Trap(name, source, (mem(), *args), **more)
