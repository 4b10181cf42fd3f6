"""Name the parts of a network: values, which are parts of buffers, and layers, which are launches.

Invariant: a value is written by one layer, but for what a layer says that it updates.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

ALIGNED = 128
"""Words: sub-buffers of bare PyOpenCL begin at such multiples on every driver that we know."""

F4, U4 = np.dtype(np.float32), np.dtype(np.uint32)


class Value(NamedTuple):
    """Part of a buffer, as an array: images are channels x rows x columns."""

    buffer: int
    first: int
    """In words."""
    shape: tuple[int, ...]

    @property
    def length(self) -> int:
        """Return its number of words."""
        return prod(self.shape)

    def meets(self, other: Value) -> bool:
        """Tell whether they share a word."""
        return (
            self.buffer == other.buffer
            and self.first < other.first + other.length
            and other.first < self.first + self.length
        )


class Gate(NamedTuple):
    """A decision: whoever has it runs if any of `flags` is not zero. On a device `flag` says so,
    which a launch computes where there are several `flags`. A host reads `reads`, which hold all of
    them, each whole."""

    flag: Value
    flags: tuple[Value, ...]
    reads: tuple[Value, ...]


class Layer(NamedTuple):
    """A launch: `args` are those of the kernel, `outputs` the positions of those it writes."""

    kernel: str
    items: int
    args: tuple[Any, ...]
    outputs: tuple[int, ...]
    gate: Gate | None
    on_device: bool
    """Whether it is there only for decisions on the device."""

    @property
    def writes(self) -> list[Value]:
        """Return the values that it writes."""
        return [self.args[position] for position in self.outputs]

    @property
    def reads(self) -> list[Value]:
        """Return its input values, without those that it only writes, and without its gate's
        flags."""
        updates = self.outputs if self.kernel in UPDATING else ()
        return [
            arg
            for position, arg in enumerate(self.args)
            if isinstance(arg, Value) and (position not in self.outputs or position in updates)
        ]


UPDATING = frozenset({"add_expert"})
"""Kernels that read what they write."""


def record(value: Value, number: int, count: int = ALIGNED) -> Value:
    """Return one of a row of small values that share a buffer."""
    return Value(value.buffer, value.first + number * ALIGNED, (count,))
