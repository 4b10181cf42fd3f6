"""The kernel of a launch, as the modules use it that find its access, decide or cut it."""

from __future__ import annotations

from typing import TypeAlias

from .. import core
from ..devices.driver import OwnKernel
from ..memory.array import Home
from ..records import Protocol
from .signature import Signature

Arguments: TypeAlias = tuple[object, ...]
"""Arguments of a launch. They may be anything until they are checked."""


class Called(Protocol):
    """A kernel of a runtime."""

    name: str
    options: tuple[str, ...]

    @property
    def engine(self) -> Home:
        """Return the engine of its runtime."""

    @property
    def native(self) -> OwnKernel:
        """Return the `pyopencl.Kernel`."""

    @property
    def signature(self) -> Signature:
        """Return its parameters."""

    @property
    def binder(self) -> core.native.Binder:
        """Return the binder for the arguments of its launches."""

    def label(self) -> str:
        """Return the name of its next launch, for errors."""
