"""Makers: from kernels to a scheduler that can be launched.

Input: kernels of programs, and which of them are together. Output: their translations into
functions, and a built scheduler with its limits. All of that is done by the thread of `builds`. It
has a process of its own translate and compile what is large, or what nobody waits for.

Invariant: `began` says when the present work began, without what another process does, which has a
limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ..devices.driver import Origin, OwnKernel
from ..devices.pocl import compiles_late
from ..host import isolated
from ..host.digest import digest
from ..opencl_c.functions import translated
from . import layout
from .apart import Apart
from .built import Facts, Scheduler, Text
from .children import ROOM, Room, give_pool
from .compiling import NAME, build_told, is_compiled, keep_note, note_of, warm_up
from .kept_sets import KeptSet
from .kernel_sets import KernelSet, Options
from .notes import MOST, TIMED, Notes
from .task import Body, Limits, Unfit

if TYPE_CHECKING:
    from ..opencl_c.functions.translated import Function, Functions

UNIT_BYTES, UNIT_REGISTERS = 64 << 10, 65536
"""Local memory and registers of a compute unit, at least."""

LARGE = 1 << 16
"""Characters of kernels from which on a process of its own translates and compiles them, whoever
waits. On PoCL 3.0 so many take two seconds of a processor, and a process one to start. A driver may
let nobody launch while it compiles in this one, and nobody could end it."""


class Maker:
    """Makes the schedulers of a runtime. `cap`: groups of each at most. `watched`: tasks note that
    they have begun and ended. `timed`: all are built in their timed form only."""

    def __init__(
        self,
        context: Any,
        device: Any,
        tier: str,
        cap: int | None = None,
        watched: bool = False,
        room: Room = ROOM,
        timed: bool = False,
    ) -> None:
        self._context, self.device, self.tier = context, device, tier
        self._cap, self._watched, self._room, self.timed = cap, watched, room, timed
        self.loops = bool(device.type & cl.device_type.CPU)
        # on a CPU kernels run on the cores that it needs
        manners = isolated.MODEST if self.loops else isolated.POLITE
        self._helper, self._prompt = Apart(device, manners), Apart(device, isolated.PROMPT)
        """The second one is for what somebody waits for."""
        self.tiled_group = 1 if self.loops else min(256, int(device.max_work_group_size))
        self._programs: dict[tuple[str, Options], Functions] = {}
        self.translated: dict[Origin, tuple[Function, str, Options]] = {}
        self._compiles_apart = tier == "ptx" or compiles_late(device)
        """Whether compiling would keep the program from launching."""
        self.notes_room = MOST
        """Tiles that each scheduler can note until the host reads."""
        self.takes_long = False
        """Whether something large is being translated or compiled in a process of its own."""
        self.waiting = 0
        """Threads that wait for builds, so that these are made here, which is sooner."""
        self.insisting = 0
        """Those of them that wait for large ones, too."""
        self.began: float | None = None
        """When the present work began. None while there is none."""

    def close(self) -> None:
        """End the processes."""
        with closing(self._helper), closing(self._prompt):
            pass

    def fitting(self, origin: Origin) -> tuple[Function, str, Options]:
        """Return the translation of a kernel. Raises `Unfit` if no scheduler can have it."""
        if origin not in self.translated:
            self._translate(origin)
        function, _, _ = found = self.translated[origin]
        if function.local_bytes > self.most_arena:
            raise Unfit(
                f"its __local variables take {function.local_bytes:,} bytes, which would halve the "
                "groups that run at the same time"
            )
        if function.blob_bytes > layout.MOST_ARGS_BYTES:
            raise Unfit(f"its arguments take {function.blob_bytes:,} bytes")
        return found

    def _translate(self, origin: Origin) -> None:
        source, options, name = origin
        if not source:
            raise Unfit("the driver does not give its source")
        found = self._programs.get((source, options))
        if found is None:  # once, so that all its kernels are in one text
            prefix = "k" + digest(repr((source, options)), 10) + "_"
            found = translated.load(source, options, self.device, prefix)
            # who waits has it sooner here: starting a process takes longer than the translation
            if found is None and (len(source) >= LARGE or not self.waiting):
                with self._apart(len(source)) as helper:
                    found = helper.translate(source, options, prefix)
            if found is None:
                # here, since the parser takes long to load
                from ..opencl_c.functions.translation import translate

                found = translate(source, options, self.device, prefix)
            self._programs[source, options] = found
        if name not in found.functions:
            raise Unfit(found.reasons.get(name, "its source has no such kernel"))
        self.translated[origin] = found.functions[name], found.text, found.options

    def build(self, there: KernelSet, kept: KeptSet | None) -> Scheduler:
        """Build the scheduler of a set of kernels. `kept`: the set to keep if it is built."""
        from .source import Body as Case
        from .source import build_options, scheduler_source

        started = perf_counter()
        group = there.group
        ordered = sorted(there.functions, key=repr)  # the same text, whatever the order of asking
        functions = [there.functions[origin][0] for origin in ordered]
        texts = sorted({there.functions[origin][1] for origin in ordered})
        args = max(function.blob_bytes for function in functions)
        spawn = self._spawns(group)
        children = {child for function in functions for child in function.children if spawn}
        source = scheduler_source(
            self.tier, group, there.arena_bytes, args,
            [Case(function.symbol, function.tiled) for function in functions], texts, self.loops,
            sorted(children), self._room,
            int(self.device.max_compute_units) if self.loops else layout.MOST_TASKS,
        )  # fmt: skip
        words = build_options(self.tier, there.options)
        if self._watched:
            words.append("-DACS_WATCHED=1")
        if self.timed:
            words.append(TIMED)
        length = sum(map(len, texts))
        native, notes, registers = self._form(source, words, group, length, kept)
        limits = self._limits(group, registers, there)
        if children:
            limits = limits._replace(spawn=spawn, child_slots=self._room.slots)
        pool = give_pool(self._context, native, limits.groups, notes is not None)
        facts = Facts(
            group,
            tuple(origin[2] for origin in ordered),
            registers,
            int(native.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, self.device)),
            limits.groups,
            round(perf_counter() - started, 3),
            tuple(sorted({why for function in functions for why in function.loops})),
        )
        bodies = {
            origin: Body(function, number, limits)
            for number, (origin, function) in enumerate(zip(ordered, functions, strict=True))
        }
        text = Text(source, tuple(words), registers, length)
        return Scheduler(native, limits, bodies, facts, pool, text, notes)

    def add_timed(self, scheduler: Scheduler) -> str:
        """Build the timed form of a scheduler, with as many registers, so that as many groups run.
        Return why there is none; empty: it is built."""
        source, words, registers, length = scheduler.text
        words = (*words, TIMED)
        if registers and self.tier == "ptx":
            words = (*words, f"-cl-nv-maxrregcount={registers}")
        try:
            native, notes, _ = self._form(source, words, scheduler.limits.group, length)
            scheduler.add_timed(native, notes)
        except Exception as error:  # the compiler or the driver failed: it goes on without
            said = " ".join(str(error).splitlines()[:2])
            return f"its timed form does not build: {said or error!r}"
        return ""

    def _form(
        self,
        source: str,
        words: Sequence[str],
        group: int,
        length: int,
        kept: KeptSet | None = None,
    ) -> tuple[OwnKernel, Notes | None, int | None]:
        """Build a launchable kernel. Return it, its notes if asked for, and its registers.
        `length`: characters of its kernels. `kept`: the set to keep if it is built."""
        is_noted = True
        if self._compiles_apart:
            note = note_of(self.device, source, words, group)
            is_noted = is_compiled(note)
            here = self.waiting and length < LARGE and self.tier != "ptx"
            if not is_noted and not here:
                with self._apart(length) as helper:
                    is_noted = helper.compile(source, words, group, self.tier, kept)
        self.began = perf_counter()
        program, registers = build_told(self._context, self.device, source, words, self.tier)
        native = OwnKernel(program, NAME)
        notes = None
        if TIMED in words:
            notes = Notes(self._context, self.device, program, self.notes_room)
        # some drivers compile at the first launch, so do that now
        warm_up(self._context, self.device, native, group, notes)
        if not is_noted:
            keep_note(note)
        if notes is not None:
            notes.begin()
        return native, notes, registers

    @contextmanager
    def _apart(self, length: int) -> Iterator[Apart]:
        """Return the process for so many characters of kernels. It has a limit of its own."""
        self.began, self.takes_long = inf, length >= LARGE
        try:
            yield self._prompt if self.insisting else self._helper
        finally:
            self.began, self.takes_long = perf_counter(), False

    def _spawns(self, group: int) -> int:
        """Return how items that tasks spawn are treated in groups of a size. 0: they run in loops.
        A compiler that makes loops of work-items has no barriers for more than that."""
        is_loop = self.loops and group > 1
        return 0 if is_loop else self._room.spawn.word

    def _limits(self, group: int, registers: int | None, there: KernelSet) -> Limits:
        units = int(self.device.max_compute_units)
        if self.loops:
            groups = 4 * units
        else:
            each = min(2048 // group, 16)
            if registers:
                each = min(each, UNIT_REGISTERS // (-(-registers // 8) * 8 * group))
            if there.arena_bytes > self.most_arena:
                each = min(each, UNIT_BYTES // there.arena_bytes)
            groups = max(1, each) * units
        if self._cap is not None:
            groups = min(groups, self._cap)
        tiles = 2 * groups if self.loops else 4 * groups
        return Limits(group, there.arena_bytes, groups, min(tiles, layout.MOST_TILES))

    @property
    def most_arena(self) -> int:
        """Return the local memory for a group with which four groups share a compute unit."""
        return int(self.device.local_mem_size) // (2 if self.loops else 4)
