"""Bands of a kernel's launches: how to cut them, and launches of parts on lanes.

Input: a call that asks for bands, with its arguments bound. Output: the `Cut` of a recorded launch,
for the scheduler or a replay; the parts of a launch that is not recorded, if lanes have them.
Otherwise there is a reason why it stays whole.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .access.bands import Groups
from .access.binder import Bound
from .access.cuts import AUTO, Cut, Policy
from .access.signature import Signature
from .devices.build import build
from .devices.driver import OwnKernel
from .devices.pocl import mixes_machine_code
from .errors import BuildError
from .launch.commands import KernelCommand
from .launch.parts import MOST_KEPT, LanePart, parts_of
from .records import Access, Sizes
from .versions import RuntimeKernel

if TYPE_CHECKING:
    from .launch.engine import Engine
    from .opencl_c.variants.parts import OfParts

POISONED = "bytes of it are poisoned, or may be: a launch fails as a whole"


class Bands:
    """Keeps what is known of the bands of one kernel's launches."""

    def __init__(self) -> None:
        self._kernels: dict[Any, tuple[OfParts, OwnKernel]] = {}
        """The kernel for parts, by the kernel of the whole launch."""
        self._parts: dict[Any, Any] = {}
        self._tuned: dict[Any, Cut] = {}

    def cut(
        self, kernel: RuntimeKernel, many: int | Policy, native: Any, bound: Bound,
        global_size: Sizes, offset: Sizes | None, decides: bool, is_declared: bool,
    ) -> Cut:  # fmt: skip
        """Return how a launch is to be cut, with a function for the access of any of its groups."""
        if decides:
            return Cut(many, None, "whether it runs, or how large it is, is found on the device")
        if is_declared:
            return Cut(many, None, "reads= or writes= say what it touches as a whole")
        binder, spans, numbers = kernel.binder, bound.spans, bound.numbers
        if kernel.declarations is not None or not binder.has_ranges:
            return Cut(many, None, "nobody knows what a part of it touches")
        if numbers is None:
            return Cut(many, None, "an argument of it is an image, or not one piece of memory")

        def touched(groups: Groups, local_size: Sizes) -> Access:
            return binder.touched(spans, numbers, global_size, local_size, offset, groups)

        about = spans, global_size, offset, *numbers
        made = partial(self.in_parts, kernel, native)
        return Cut(many, touched, "", about, made, self._parts)

    def parts(self, engine: Engine, command: KernelCommand, access: Access) -> list[LanePart] | str:
        """Return the parts of a launch that is not recorded, or the reason why it stays whole."""
        cut = command.cut
        assert cut is not None
        if reason := engine.uncut or cut.reason:
            return reason
        if cut.bands == AUTO:
            key = engine.tunings, cut.about, command.kernel, command.local_size
            if key not in self._tuned:
                if len(self._tuned) >= MOST_KEPT:
                    self._tuned.clear()
                tuned = engine.calls.as_tuned(engine, command, access)
                assert isinstance(tuned, KernelCommand)
                assert tuned.cut is not None
                self._tuned[key] = tuned.cut._replace(in_parts=None, touched=None)
            known = self._tuned[key]
            if known.reason:
                return known.reason
            command = command._replace(cut=cut._replace(bands=known.bands))
        return parts_of(command)

    def in_parts(
        self, kernel: RuntimeKernel, native: OwnKernel, has_local: bool, has_offset: bool
    ) -> OwnKernel | str:
        """Return the kernel for parts of a launch, or the reason why there is none."""
        if native not in self._kernels:
            self._kernels[native] = _made(kernel, native)
        asked, made = self._kernels[native]
        if not has_local and asked.groups:
            return f"it calls {asked.groups}, and no local size was given"
        if has_offset and asked.source:
            return "it has an offset, and asks for the numbers of its groups"
        return asked.reason or made


def repeats(signature: Signature, native: OwnKernel) -> bool:
    """Tell whether a launch leaves the same on each device where it runs, and nothing but bytes of
    its arguments."""
    unknown = signature.unsteady or signature.anywhere or signature.program_globals
    if unknown or signature.outline is None or native.origin is None:
        return False
    return "printf" not in native.origin[0]


def _made(kernel: RuntimeKernel, native: OwnKernel) -> tuple[OfParts, OwnKernel]:
    """Make a kernel for parts, in which they know what the whole launch would. Return it with its
    rewritten source."""
    from .opencl_c.variants.parts import of_parts

    engine = kernel.engine
    versions = kernel.versions
    source, name = versions.source(kernel, versions.offsets_of(native))
    asked = of_parts(source, kernel.options, engine.device, name)
    options = [*kernel.options]
    if not asked.source:
        if not mixes_machine_code(engine.device):
            return asked, native
        options.append("-DACS_CL_PARTS")  # forces machine code of its own
    if kernel.signature.program_globals:
        return asked._replace(reason="its program has variables, of which there is one"), native
    try:
        program = build(engine.context, engine.device, asked.source or source, options)
    except BuildError:  # it may have a name of ours
        return asked._replace(reason="its version for parts does not build"), native
    made = OwnKernel(program, name)
    made.signature = kernel.signature
    made.origin = asked.source or source, tuple(options), name
    return asked, made
