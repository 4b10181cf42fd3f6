"""Watched launches: the device itself checks them while they run.

Input: a launch of a kernel whose body shows each access (`opencl_c.variants.watched`), and its
declarations. Output: a launch of a variant of the kernel, which notes any other access, and whether
one was noted since the last question. This costs very little and holds for all contents of memory:
an index read from memory is checked when it is used.

A note says that a kernel touched undeclared bytes. It does not say which launch did, nor whether it
matters: for that the launches run again. Invariant: a variant does the work of its kernel.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence

import numpy as np
import pyopencl as cl

from ..access.signature import Signature
from ..devices.build import build
from ..devices.driver import OwnKernel, Place, read, wait_for_event, write
from ..devices.facts import CannotParse
from ..errors import BuildError
from ..launch.commands import KernelCommand
from ..opencl_c.parse.nodes import TOO_DEEP
from ..opencl_c.variants.watched import Watched, watching
from ..records import Access, NamedTuple, Span
from .case import Argument
from .memory import Memory
from .naming import arguments_of, place_of, signature_of, token_of

KERNELS = 256
"""Most kernels that can be watched at a time."""

INTS = 2
"""Places of each in the notes: whether there was a stray, and a zero, the mode `WATCH`."""

MOST_KEPT = 1 << 14
"""Launches whose limits are kept for the next equal launch."""

Values = tuple[int | bytes, ...]
"""Index and bytes in turn."""


class Variant(NamedTuple):
    """The watched variant of a kernel: its number of parameters, the ones with limits, and the
    constants of the program that it uses, with their bytes."""

    kernel: OwnKernel
    parameters: int
    watched: list[int]
    constants: list[tuple[str, int]]
    slot: int

    def command(
        self, command: KernelCommand, limits: Values, notes: cl.Buffer, slot: int
    ) -> KernelCommand:
        """Return a launch of it in place of one of its kernel. `limits`: values of its limits."""
        extra = self.parameters + 2 * len(self.watched)
        return command._replace(
            kernel=self.kernel,
            pointers=(*command.pointers, extra, notes),
            values=(*command.values, *limits, extra + 1, struct.pack("i", slot)),
            cut=None,
            lane="",
        )


class Watch:
    """The watched kernels of a runtime. Nothing is watched before `of` is called."""

    def __init__(self, context: cl.Context, device: cl.Device, memory: Memory) -> None:
        self._context, self._device, self._memory = context, device, memory
        self._variants: dict[int, Variant | None] = {}
        self._dropped: set[int] = set()
        """Kernels that are watched no more."""
        self._limits: dict[tuple[object, ...], Values] = {}
        self._names: list[str] = []
        self._strays: cl.Buffer | None = None

    def of(self, command: KernelCommand, access: Access) -> KernelCommand | None:
        """Return a watched launch in place of this one, which touches only arrays of the runtime.
        None: it cannot be watched."""
        token = token_of(command)
        if token in self._dropped:
            return None
        variant = self.variant(command)
        if variant is None:
            return None
        key = token, access, *map(place_of, command.pointers[1::2])
        limits = self._limits.get(key)
        if limits is None:
            if len(self._limits) >= MOST_KEPT:
                self._limits.clear()
            limits = self._limits[key] = self._limited(variant, command, access)
        assert self._strays is not None
        return variant.command(command, limits, self._strays, INTS * variant.slot)

    def variant(self, command: KernelCommand) -> Variant | None:
        """Return the variant of a launch's kernel. None: not all of its accesses can be seen."""
        token = token_of(command)
        try:
            return self._variants[token]
        except KeyError:
            made = self._variants[token] = self._made(command)
            return made

    def strayed(self) -> list[str]:
        """Return the kernels that touched undeclared bytes since the last call, and stop watching
        them. Nothing is in flight."""
        strays = self._strays
        if strays is None or not self._names:
            return []
        notes = np.empty((len(self._names), INTS), np.int32)
        used = Place(strays, 0, notes.nbytes)
        wait_for_event(read(self._memory.queue, notes, used, None))
        if not notes.any():
            return []
        slots = set(np.flatnonzero(notes[:, 0]).tolist())
        for token, variant in self._variants.items():
            if variant is not None and variant.slot in slots:
                self._dropped.add(token)
        self._clear(strays)
        return [self._names[slot] for slot in sorted(slots)]

    def _clear(self, strays: cl.Buffer) -> None:
        nothing = np.zeros(INTS * KERNELS, np.int32)
        whole = Place(strays, 0, nothing.nbytes)
        wait_for_event(write(self._memory.queue, whole, nothing, None))

    def _made(self, command: KernelCommand) -> Variant | None:
        """Build the variant, if all accesses of the kernel can be seen."""
        kernel = command.kernel
        origin, signature = kernel.text or kernel.origin, signature_of(command)
        if origin is None or signature is None or len(self._names) >= KERNELS:
            return None
        if signature.anywhere or signature.program_globals:
            return None
        source, options, name = origin
        with contextlib.suppress(CannotParse, BuildError, *TOO_DEEP):
            rewritten = watching(source, options, self._device, name)
            words = [*options, "-w"]
            made = OwnKernel(
                build(self._context, self._device, rewritten.source, words), rewritten.kernel
            )
            made.signature = signature
            return self._added(made, signature, rewritten)
        return None

    def _added(self, kernel: OwnKernel, signature: Signature, rewritten: Watched) -> Variant:
        if self._strays is None:
            flags = cl.mem_flags.READ_WRITE
            strays = cl.Buffer(self._context, flags, 4 * INTS * KERNELS)
            self._clear(strays)
            self._strays = strays
        slot = len(self._names)
        self._names.append(signature.kernel)
        return Variant(kernel, rewritten.parameters, rewritten.limited, rewritten.constants, slot)

    def _limited(self, variant: Variant, command: KernelCommand, access: Access) -> Values:
        """Return the limits of each pointer."""
        places = {one.number: one for one in arguments_of(command, self._memory)}
        values: list[int | bytes] = []
        extra = variant.parameters
        for index in variant.watched:
            for spans in (access.reads, access.writes):
                values += extra, _limit(places.get(index), spans)
                extra += 1
        return tuple(values)


def _limit(place: Argument | None, declared: Sequence[Span]) -> bytes:
    """Return the declared bytes of an argument's array, counted from the pointer: the span that the
    argument begins in, or else the largest. Other declared spans may be another argument's."""
    part = place.region.part_at(place.offset) if place is not None else None
    if place is None or part is None:
        return bytes(4 * struct.calcsize("q"))
    by = part.low - place.offset
    own = [one._replace(start=one.start + by) for one in declared if one.base == part.number]
    if not own:
        return bytes(4 * struct.calcsize("q"))
    found = max(own, key=lambda one: (one.start <= 0 < one.end, one.nbytes))
    return struct.pack("4q", found.start + place.lead, found.pitch, found.rows, found.width)
