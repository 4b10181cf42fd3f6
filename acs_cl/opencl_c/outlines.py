"""Outlines of kernels as data: what `modes.outline` makes and the core runs.

An operation is a list: its name, and what that name says of the rest. Records on disk hold them, so
they are plain data: numbers, strings, None, and lists of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Operation: TypeAlias = Sequence[Any]
"""One operation. What stands behind its name depends on the name."""

OutlinedFunction: TypeAlias = Sequence[Any]
"""Slots of the parameters, operations of the body, whether it touches memory, slots of its own."""

Outline: TypeAlias = Mapping[str, Sequence[OutlinedFunction]]
"""The functions of a kernel, the kernel first, under the one name `functions`."""
