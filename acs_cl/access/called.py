"""The kernel of a launch, as the rooms that find out its access know it."""

from __future__ import annotations

from typing import Any, Protocol

from ..memory.array import Home
from ..records import Access
from .signature import Signature

Converted = tuple[Any, tuple[Any, ...], tuple[Any, ...], Access]
"""(OpenCL kernel, pointers to set, values to set, access)."""


class Called(Protocol):
    """A kernel of a runtime."""

    name: str

    @property
    def engine(self) -> Home:
        """The engine of its runtime."""

    @property
    def native(self) -> Any:
        """The `pyopencl.Kernel`."""

    @property
    def signature(self) -> Signature:
        """What its parameters are."""

    def convert_slowly(self, args: tuple[Any, ...]) -> Converted:
        """Convert any arguments, and refuse wrong ones."""

    def label(self) -> str:
        """The name of its next launch, for errors."""
