"""Watched launches: those that the device itself looks at, while they run.

In: a launch of a kernel whose body shows each access (`opencl_c.variants.watched`), and what it
declares. Out: the same launch of a variant of the kernel that notes an access to anything else, and
whether one was noted since somebody last asked. That costs next to nothing, and holds whatever
values are in memory: an index that is read there is compared with what is declared when it is used.

A note says that a kernel touched more than it declares, not that it matters, nor which launch it
was: whoever asks runs the launches again. Invariant: a variant does what its kernel does.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from ..access.signature import Signature
from ..devices.build import build
from ..devices.driver import OwnKernel, Place, read, wait_for_event, write
from ..devices.facts import CannotParse
from ..errors import BuildError
from ..launch.commands import KernelCommand
from ..opencl_c.variants.watched import watching
from ..records import Access, Span
from .case import Argument
from .memory import Memory
from .naming import arguments_of, place_of, signature_of, token_of

KERNELS = 256
"""Kernels that can be watched at a time."""

MOST_KEPT = 1 << 14
"""Launches whose limits are kept for the next one like them."""

_new = tuple.__new__


class _Variant(NamedTuple):
    """What stands for a kernel: its number of parameters, and those that have limits."""

    kernel: OwnKernel
    parameters: int
    watched: list[int]
    slot: int


class Watch:
    """The watched kernels of a runtime. Nothing is watched before `of` is asked."""

    def __init__(self, context: cl.Context, device: cl.Device, memory: Memory) -> None:
        self._context, self._device, self._memory = context, device, memory
        self._variants: dict[int, _Variant | None] = {}
        self._limits: dict[tuple[object, ...], tuple[int | bytes, ...]] = {}
        self._names: list[str] = []
        self._strays: cl.Buffer | None = None

    def of(self, command: KernelCommand, access: Access) -> KernelCommand | None:
        """A launch that is watched in place of this one; None if there is none. All that it touches
        is arrays of the runtime."""
        name, _, global_size, local_size, pointers, values, offset, *_ = command
        token = token_of(command)
        try:
            variant = self._variants[token]
        except KeyError:
            variant = self._variants[token] = self._variant(command)
        if variant is None:
            return None
        key = token, access, *map(place_of, pointers[1::2])
        limits = self._limits.get(key)
        if limits is None:
            if len(self._limits) >= MOST_KEPT:
                self._limits.clear()
            limits = self._limits[key] = self._limited(variant, command, access)
        pointers = *pointers, variant.parameters + 2 * len(variant.watched), self._strays
        made: KernelCommand = _new(
            KernelCommand,
            (
                name,
                variant.kernel,
                global_size,
                local_size,
                pointers,
                values + limits,
                offset,
                None,
                command.spawn,
                "",
            ),
        )
        return made

    def strayed(self) -> list[str]:
        """The kernels that touched what they do not declare, since this was last asked; they are
        not watched any more. Nothing is in flight."""
        if not self._names:
            return []
        notes = np.empty(len(self._names), np.int32)
        used = Place(self._strays, 0, notes.nbytes)
        wait_for_event(read(self._memory.queue, notes, used, None))
        if not notes.any():
            return []
        slots = set(np.flatnonzero(notes).tolist())
        for token, variant in self._variants.items():
            if variant is not None and variant.slot in slots:
                self._variants[token] = None
        self._clear()
        return [self._names[slot] for slot in sorted(slots)]

    def _clear(self) -> None:
        nothing = np.zeros(KERNELS, np.int32)
        whole = Place(self._strays, 0, nothing.nbytes)
        wait_for_event(write(self._memory.queue, whole, nothing, None))

    def _variant(self, command: KernelCommand) -> _Variant | None:
        """Build it, if the kernel's accesses can all be seen."""
        origin, signature = command.kernel.origin, signature_of(command)
        if origin is None or signature is None or len(self._names) >= KERNELS:
            return None
        if signature.anywhere or signature.program_globals:
            return None
        source, options, name = origin
        with contextlib.suppress(CannotParse, BuildError, RecursionError):
            text, called, watched = watching(source, options, self._device, name)
            kernel = OwnKernel(build(self._context, self._device, text, [*options, "-w"]), called)
            kernel.signature = signature
            return self._added(kernel, signature, watched)
        return None

    def _added(self, kernel: OwnKernel, signature: Signature, watched: list[int]) -> _Variant:
        if self._strays is None:
            flags = cl.mem_flags.READ_WRITE
            self._strays = cl.Buffer(self._context, flags, 4 * KERNELS)
            self._clear()
        slot = len(self._names)
        self._names.append(signature.kernel)
        return _Variant(kernel, len(signature.parameters), watched, slot)

    def _limited(
        self, variant: _Variant, command: KernelCommand, access: Access
    ) -> tuple[int | bytes, ...]:
        """More values for the variant: what each pointer may touch, and its slot."""
        places = {one.number: one for one in arguments_of(command, self._memory)}
        values: list[int | bytes] = []
        extra = variant.parameters
        for index in variant.watched:
            for spans in (access.reads, access.writes):
                values += extra, _limit(places.get(index), spans)
                extra += 1
        return *values, extra + 1, struct.pack("i", variant.slot)


def _limit(place: Argument | None, declared: Sequence[Span]) -> bytes:
    """What is declared of an argument's array, counted from the argument: the span that it begins
    in, or else the largest one. What is declared besides may be another argument's."""
    part = place.region.part_at(place.offset) if place is not None else None
    if place is None or part is None:
        return bytes(4 * struct.calcsize("q"))
    by = part.low - place.offset
    own = [one._replace(start=one.start + by) for one in declared if one.base == part.number]
    if not own:
        return bytes(4 * struct.calcsize("q"))
    found = max(own, key=lambda one: (one.start <= 0 < one.end, one.nbytes))
    return struct.pack("4q", found.start, found.pitch, found.rows, found.width)
