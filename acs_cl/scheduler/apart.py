"""Translating and compiling in a process of its own, beside the program.

No launch then waits for the interpreter, for libclang, or for a driver that lets no other thread of
the process launch while it compiles (`compiling`). One process does both, since it takes as long to
start as to translate, and a driver makes itself ready once.

Input: a source, or the text of a scheduler, with its build options. Output: the translation, which
the process leaves in a file, and the machine code in the driver's cache, where the caller finds it.

Invariant: a process that fails costs only time; the caller then does the same. A process that takes
too long is stopped, and the same text is not built here: NVIDIA's compiler never ends on some
kernels, and no launch would be possible meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import pyopencl as cl

from .. import devices
from ..devices import contexts
from ..devices.driver import OwnKernel
from ..devices.facts import CannotParse
from ..host import isolated
from ..opencl_c.functions import translated
from ..opencl_c.functions.translated import CannotTranslate, Functions
from .compiling import NAME, build_told, keep_note, note_of, warm_up
from .kept_sets import KeptSet, KeptSets, read_set
from .notes import TIMED, Notes


class Apart:
    """The process of one thread. It begins with the first order."""

    def __init__(self, device: cl.Device, manners: isolated.Manners) -> None:
        self._device = device
        self.manners = manners
        self._helper = isolated.Helper(__spec__.name, manners)

    def translate(self, source: str, options: Sequence[str], prefix: str) -> Functions | None:
        """Have a source translated. None: the process failed. Raises `TooLate`, or
        `CannotTranslate` with the reason why it cannot be."""
        try:
            with tempfile.TemporaryDirectory(prefix="acs_cl-") as folder:
                answer = os.path.join(folder, "translation")
                # included files are looked for from here, wherever the process has begun
                if not self._ask("translate", source, options, answer=answer, here=os.getcwd()):
                    return None
                return translated.read(answer, prefix)
        except (OSError, ValueError):  # no folder for temporary files, or the current one is gone
            return None

    def compile(
        self,
        source: str,
        options: Sequence[str],
        group: int,
        tier: str,
        kept: KeptSet | None = None,
    ) -> bool:
        """Have a scheduler built and launched: the driver keeps the result on disk. Tell whether
        that went well. `kept`: the set to keep then, since the program may have ended. Raises
        `TooLate`."""
        return self._ask("compile", source, options, group=group, tier=tier, kept=kept)

    def close(self) -> None:
        """End the process."""
        self._helper.close()

    def _ask(self, what: str, source: str, options: Sequence[str], **more: object) -> bool:
        order = {"what": what, "source": source, "options": list(options), **more}
        order["position"] = devices.devices().index(self._device)
        return self._helper.ask(order)


def main(order: isolated.Order) -> None:
    """Translate or compile. This is the main function of the process."""
    device = devices.devices()[order["position"]]
    devices.repair(device)
    contexts.shared_context(device)  # which the parser asks, too
    _WHAT[order["what"]](device, order)


def _translate(device: cl.Device, order: isolated.Order) -> None:
    from ..opencl_c.functions.translation import translate

    os.chdir(order["here"])
    try:
        found = translate(order["source"], order["options"], device, translated.MARK)
    except (CannotParse, CannotTranslate) as refused:
        translated.write(order["answer"], None, refused.reason)
    else:
        translated.write(order["answer"], found)


def _compile(device: cl.Device, order: isolated.Order) -> None:
    source, options, group, tier = (order[key] for key in ("source", "options", "group", "tier"))
    context = contexts.shared_context(device)
    program, _ = build_told(context, device, source, options, tier)
    notes = Notes(context, device, program) if TIMED in options else None
    warm_up(context, device, OwnKernel(program, NAME), group, notes)
    keep_note(note_of(device, source, options, group))
    if order["kept"] is not None:
        KeptSets(device, tier).keep(read_set(order["kept"]), group)


_WHAT = {"translate": _translate, "compile": _compile}
