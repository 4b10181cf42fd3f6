"""Versions of a kernel: the OpenCL kernels that a launch of it may need.

Input: a kernel of a runtime, and which of its arguments are shared virtual memory, buffers, or
views that start inside a buffer. Output: the OpenCL kernel for them. Most launches take the first.

There are two reasons for others. NVIDIA's driver refuses a buffer if the same kernel object was
once given an SVM pointer, so each mixture of kinds has a clone. A view that starts inside a buffer
has no pointer of its own, so it goes to a variant of the kernel, which adds a byte offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyopencl as cl

from .access.called import Called
from .access.elements import ElementTypes
from .devices.build import build
from .devices.driver import OwnKernel, own_clone
from .launch.commands import NoVariantError
from .records import Protocol

if TYPE_CHECKING:
    from .launch.engine import Engine

Offsets: TypeAlias = tuple[int, ...]
"""The parameters that take a byte offset."""
Kinds: TypeAlias = tuple[bool, ...]
"""Of each argument that is memory: whether it is shared virtual memory."""


class RuntimeKernel(Called, Protocol):
    """A `kernel.Kernel`, as the modules use it that plan, cut and decide its launches."""

    program: Any
    """Its OpenCL program, or None for a kernel that came without one."""
    source: str
    versions: Versions
    declarations: Any
    """What `access` declares for all launches, or None."""
    guards: Any
    """Its variants that decide on the device (`conditions.Guards`), once it needed any."""
    elements: ElementTypes
    """What the arrays of its launches consist of."""
    is_for_python: bool
    """Whether the core can make none of its launches."""

    @property
    def forgets(self) -> int:
        """Return how many times it was told to forget its launch plan."""

    @property
    def engine(self) -> Engine:
        """Return the engine of its runtime."""


class Versions:
    """Makes the OpenCL kernels of one kernel, and keeps them. It does not keep the kernel itself:
    each call names it."""

    def __init__(self) -> None:
        self._sources: dict[Offsets, tuple[str, str]] = {}
        self._programs: dict[Offsets, tuple[cl.Program, str]] = {}
        self._natives: dict[tuple[Offsets, Kinds], OwnKernel] = {}

    def native(self, kernel: RuntimeKernel, offsets: Offsets, kinds: Kinds) -> OwnKernel:
        """Return the OpenCL kernel for some arguments."""
        if not offsets and all(kind is kernel.engine.store.is_svm for kind in kinds):
            return kernel.native
        made = self._natives.get((offsets, kinds))
        if made is None:
            if offsets:
                made = OwnKernel(*self._program(kernel, offsets))
            elif kernel.program is None:
                made = own_clone(kernel.native)
            else:
                made = OwnKernel(kernel.program, kernel.name)
            made.signature, made.owner = kernel.signature, kernel.native.owner
            source, name = self.source(kernel, offsets)
            made.text = source, tuple(kernel.options), name
            # another thread may have made one meanwhile: `offsets_of` knows only those kept
            made = self._natives.setdefault((offsets, kinds), made)
        return made

    def offsets_of(self, native: object) -> Offsets:
        """Return the parameters that take a byte offset in one of these OpenCL kernels."""
        return next((offsets for (offsets, _), made in self._natives.items() if made is native), ())

    def source(self, kernel: RuntimeKernel, offsets: Offsets) -> tuple[str, str]:
        """Return source and name of the variant that adds byte offsets. No offsets: its own."""
        if not offsets:
            return kernel.source, kernel.name
        found = self._sources.get(offsets)
        if found is None:
            found = self._sources[offsets] = _rewritten(kernel, offsets)
        return found

    def _program(self, kernel: RuntimeKernel, offsets: Offsets) -> tuple[cl.Program, str]:
        """Return the program with the variant that adds byte offsets, and its name."""
        found = self._programs.get(offsets)
        if found is None:
            source, name = self.source(kernel, offsets)
            engine = kernel.engine
            program = build(engine.context, engine.device, source, kernel.options)
            found = self._programs[offsets] = program, name
        return found


def refuse_unfit(kernel: RuntimeKernel, why: str, instead: str) -> None:
    """Refuse a variant of a kernel whose source the driver does not give. Refuse one of a kernel
    that uses variables of its program, too: the variant is in another program, which has its own
    variables."""
    if not kernel.source:
        raise NoVariantError(
            kernel.name,
            f"{why} a rewritten version of the kernel, and the driver does not give its source, as "
            "of a program that is gone, or from PyOpenCL's cache; build it with cache_dir=False, "
            "and keep it",
        )
    if kernel.signature.program_globals:
        raise NoVariantError(
            kernel.name,
            f"{why} a rewritten version of the kernel, and that one would have its own copy of the "
            f"variables of the program; {instead}",
        )


def _rewritten(kernel: RuntimeKernel, offsets: Offsets) -> tuple[str, str]:
    refuse_unfit(
        kernel,
        "a view starts inside its buffer, which takes",
        "use memory='svm' or an array of its own",
    )
    from .opencl_c.parse.clang import CannotParse
    from .opencl_c.variants.offsets import with_byte_offsets

    device = kernel.engine.device
    try:
        return with_byte_offsets(kernel.source, kernel.options, device, kernel.name, offsets)
    except CannotParse as error:
        why = "a view starts inside its buffer, and the kernel cannot be rewritten to add the"
        raise NoVariantError(kernel.name, f"{why} offset: {error.reason}") from None
