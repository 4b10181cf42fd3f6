"""Outlines of kernels as data: `modes.outline` makes them and the core runs them.

An operation is a list: its name, and values whose meaning depends on the name. Records on disk hold
outlines, so they are plain data: numbers, strings, None, and lists of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Operation: TypeAlias = Sequence[Any]
"""One operation. The meaning of the values behind its name depends on the name."""

Made: TypeAlias = list[Any]
"""An operation, or a list of operations, under construction."""

OutlinedFunction: TypeAlias = Sequence[Any]
"""Slots of the parameters, operations of the body, whether it touches memory, own slots."""

Outline: TypeAlias = Mapping[str, Sequence[OutlinedFunction]]
"""The functions of a kernel, the kernel first, under the one name `functions`."""
