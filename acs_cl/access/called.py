"""The kernel of a launch, as the rooms that find out its access know it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from ..devices.driver import OwnKernel
from ..memory.array import Home
from .signature import Signature

Arguments: TypeAlias = tuple[object, ...]
"""What a program passes to a launch: anything, until it is looked at."""


class Called(Protocol):
    """A kernel of a runtime."""

    name: str

    @property
    def engine(self) -> Home:
        """The engine of its runtime."""

    @property
    def native(self) -> OwnKernel:
        """The `pyopencl.Kernel`."""

    @property
    def signature(self) -> Signature:
        """What its parameters are."""

    def label(self) -> str:
        """The name of its next launch, for errors."""
