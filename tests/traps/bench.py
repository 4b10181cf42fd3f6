"""A device with what tries need on it, and traps that share a program or a scheduler.

In: a device and traps. Out: a result for each. Where a shared program does not build, each of its
traps is built alone; so is each scheduler.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from traps.case import Trap
from traps.processes import Job
from traps.trying import Result, Say, Try, log_of, short


class Bench:
    """A device with what the tries need on it. `say` hears what is begun, lest it kills us."""

    def __init__(self, device: cl.Device, say: Say) -> None:
        self.device, self.say = device, say
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.serial = self.runtime("serial")
        self.views = self.runtime("serial", memory="buffers")
        self.checked = self.runtime("serial", check="access,every=1")
        self.scheduled = self.serial
        self.natives: dict[Any, Any] = {}

    def runtimes(self) -> tuple[acs.Runtime, ...]:
        """All of them; the scheduled one may be closed."""
        return self.serial, self.views, self.checked, self.scheduled

    def build(self, runtime: acs.Runtime, source: str, options: Sequence[str]) -> acs.Program:
        """Build a program once in a job, whatever runtimes use it."""
        key = source, tuple(options)
        native = self.natives.get(key)
        if native is None:
            native = self.natives[key] = self.serial.build(source, options).native
        return acs.Program(runtime.engine, native, source, options)

    def runtime(self, backend: str, **options: Any) -> acs.Runtime:
        return acs.Runtime(context=self.context, backend=backend, **options)

    def try_all(self, traps: Sequence[Trap], job: Job) -> list[Result]:
        """Try traps in all of their forms."""
        tries: list[Try] = []
        results: list[Result] = []
        self.natives.clear()
        with contextlib.ExitStack() as folders:
            for group in bundles(traps, job.together):
                for one in self.built(group, folders):
                    if isinstance(one, Try):
                        one.measured(job.step)
                        tries.append(one)
                    results.append(one.result if isinstance(one, Try) else one)
            for one in tries:
                for form in job.forms[one.trap.name]:
                    if form != "device":
                        one.attempt(form)
            self.by_scheduler([one for one in tries if "device" in job.forms[one.trap.name]])
        return results

    def built(self, traps: Sequence[Trap], folders: contextlib.ExitStack) -> list[Try | Result]:
        """Build traps that share a program (or one)."""
        alone = len(traps) == 1
        source = "\n".join(named(trap, "" if alone else f"_{n}") for n, trap in enumerate(traps))
        folder = folders.enter_context(tempfile.TemporaryDirectory())
        for name, text in traps[0].files:
            Path(folder, name).write_text(text, encoding="utf-8")
        options = [*traps[0].options, *([f"-I{folder}"] if traps[0].files else [])]
        self.say(f"build {traps[0].name}")
        try:
            plain = self.build(self.serial, source, options).native
        except (cl.Error, acs.AcsError) as error:
            if not alone:
                return [one for trap in traps for one in self.built([trap], folders)]
            return [{"name": traps[0].name, "skipped": log_of(error)}]
        return [
            Try(self, trap, "k" if alone else f"k_{place}", source, options, plain)
            for place, trap in enumerate(traps)
        ]

    def is_well(self) -> bool:
        """Whether the device still takes commands: a fault in a kernel ends a GPU's context."""
        try:
            memory = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4)
            cl.enqueue_copy(self.queue, np.empty(1, np.uint32), memory)
        except cl.Error:
            return False
        return True

    def by_scheduler(self, tries: Sequence[Try]) -> None:
        """Run each kernel on a scheduler that has them all built in; where that does not build, on
        two that have half of them each."""
        tries = [one for one in tries if one.is_measured]
        if not tries:
            return
        self.say(f"device {' '.join(one.trap.name for one in tries)}")
        failed = ""
        with self.runtime("device") as self.scheduled:
            kernels = [(one.program(self.scheduled), one.trap.local) for one in tries]
            try:
                self.scheduled.prebuild(*((k, local) if local else k for k, local in kernels))
            except Exception as error:  # it is told of the trap that does it alone
                failed = f"failed: prebuild: {short(error)}"
            else:
                for one in tries:
                    one.attempt("device")
        self.scheduled = self.serial
        if failed and len(tries) == 1:
            tries[0].result["forms"]["device"] = failed
        elif failed:
            half = len(tries) // 2
            self.by_scheduler(tries[:half])
            self.by_scheduler(tries[half:])


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
