"""A device with what tries need on it, and traps that share a program.

In: a device and traps. Out: a result for each. Where a shared program does not build, each of its
traps is built alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from traps.case import Trap
from traps.trying import Result, Say, Try, log_of, short


class Bench:
    """A device with what the tries need on it. `say` hears what is begun, lest it kills us."""

    def __init__(self, device: cl.Device, say: Say) -> None:
        self.device, self.say = device, say
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.serial = self.runtime("serial")
        self.views = self.runtime("serial", memory="buffers")
        self.scheduled = self.serial

    def runtime(self, backend: str, **options: Any) -> acs.Runtime:
        return acs.Runtime(context=self.context, backend=backend, **options)

    def try_all(
        self, traps: Sequence[Trap], forms: dict[str, list[str]], step: int
    ) -> list[Result]:
        """Try traps that share a program (or one). `forms`: those of each trap, by its name.
        `step`: how many bytes are flipped at first; where several, the program that is measured is
        the runtime's, unchanged, which saves building another."""
        alone = len(traps) == 1
        source = "\n".join(named(trap, "" if alone else f"_{n}") for n, trap in enumerate(traps))
        with tempfile.TemporaryDirectory() as folder:
            for name, text in traps[0].files:
                Path(folder, name).write_text(text, encoding="utf-8")
            options = [*traps[0].options, *([f"-I{folder}"] if traps[0].files else [])]
            self.say("build")
            try:
                plain: Any = (
                    self.serial.build(source, options).native
                    if step > 1
                    else cl.Program(self.context, source).build(options, cache_dir=False)
                )
            except (cl.Error, acs.AcsError) as error:
                if len(traps) > 1:
                    return [one for trap in traps for one in self.try_all([trap], forms, step)]
                return [{"name": traps[0].name, "skipped": log_of(error)}]
            tries = [
                Try(self, trap, "k" if alone else f"k_{place}", source, options)
                for place, trap in enumerate(traps)
            ]
            results = [one.measured(plain, step) for one in tries]
            for one in tries:
                for form in forms[one.trap.name]:
                    if form != "device":
                        one.attempt(form)
            self.by_scheduler([one for one in tries if "device" in forms[one.trap.name]])
            return results

    def is_well(self) -> bool:
        """Whether the device still takes commands: a fault in a kernel ends a GPU's context."""
        try:
            memory = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4)
            cl.enqueue_copy(self.queue, np.empty(1, np.uint32), memory)
        except cl.Error:
            return False
        return True

    def by_scheduler(self, tries: list[Try]) -> None:
        """Run each kernel on a scheduler that has them all built in."""
        tries = [one for one in tries if "skipped" not in one.result]
        if not tries:
            return
        self.say(f"device {' '.join(one.trap.name for one in tries)}")
        with self.runtime("device") as self.scheduled:
            kernels = [(one.program(self.scheduled), one.trap.local) for one in tries]
            try:
                self.scheduled.prebuild(*((k, local) if local else k for k, local in kernels))
            except Exception as error:  # nothing of ours: it is told, and loses only this form
                for one in tries:
                    one.result["forms"]["device"] = f"failed: prebuild: {short(error)}"
                tries = []
            for one in tries:
                one.attempt("device")
            self.scheduled = self.serial


def named(trap: Trap, ending: str) -> str:
    """The source, with names of its own where it shares a program."""
    return trap.source.replace("$", ending)


def bundles(traps: Sequence[Trap], most: int) -> Iterator[list[Trap]]:
    """The traps in groups that share a program; those that cannot come alone."""
    together: list[Trap] = []
    for trap in traps:
        if not trap.shares or most == 1:
            yield [trap]
            continue
        together.append(trap)
        if len(together) == most:
            yield together
            together = []
    if together:
        yield together
