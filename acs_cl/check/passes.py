"""Passes: launches that need not be looked at, since the answer is known, or since they were told
to be left to chance.

In: commands with their accesses; those that were looked at and found right. Out: the command to
launch in place of the next one, if that is let through. A launch is *proven* if the outline of its
body, run with its sizes and numbers, reaches no byte beyond what the launch declares: then nothing
in memory can make it touch any. One that is not proven may be *watched*: the device looks at each
of its accesses. Both are our own work and may be wrong, so that the first launches of each kernel
are looked at all the same. Invariant: what is let through uses memory of the runtime alone, and is
proven or watched, or the program has asked for `every=N`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from random import Random

from .. import core
from ..access.binder import binder
from ..access.scalars import code
from ..access.signature import Signature
from ..launch.commands import KernelCommand
from ..ranges import intervals
from ..records import Access, Modes, Span
from .case import Argument
from .memory import Interval, Memory, merged, without
from .naming import arguments_of, place_of, signature_of, token_of
from .watch import Watch

FIRST = 4
"""Launches of each kernel that are looked at in any case."""

MOST_ROWS = 1024
"""Rows of a rectangle that are looked for one by one."""

MOST_KEPT = 1 << 16


class Passes:
    """What one checker lets through."""

    def __init__(self, memory: Memory, modes: Modes, watch: Watch | None) -> None:
        self._memory = memory
        self._any_body = modes.uninitialised and not (modes.access or modes.order)
        """Whether it does not matter what a launch touches besides what it declares."""
        self._watch = watch
        self._every = modes.every
        self._random = Random(modes.seed)
        self._unwritten = modes.uninitialised
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._proven: dict[tuple[object, ...], bool] = {}
        self._own: set[Access] = set()
        self._binders: dict[int, tuple[Signature, core.native.Binder]] = {}
        self._batches = True
        """Whether the next batch of orders is one that is judged."""
        self.passed = self.watched = 0

    def lets(
        self, command: KernelCommand, kernel: KernelCommand, access: Access, watches: bool
    ) -> tuple[KernelCommand, bool] | None:
        """What to launch instead of looking, and whether it is watched; None if a launch has to be
        looked at. `watches`: what is noted of a watched one would be of use."""
        every = self._every
        if every == 1:
            return None
        known: bool | None
        try:
            if every:
                known = self._seen[_kind(kernel)] >= FIRST and self._random.random() * every >= 1
                known = known and self._is_own(access)
            else:
                known = self._is_proven(kernel, access)
        except TypeError:  # an argument that cannot be a key
            return None
        if known:
            self.passed += 1
            return command, False
        if every or known is None or not watches or self._watch is None:
            return None
        watched = self._watch.of(kernel, access)
        if watched is None:
            return None
        self.passed += 1
        self.watched += 1
        return watched, True

    def judged(self, kernel: KernelCommand) -> bool:
        """Whether the batch of orders that a launch would begin is one that is judged."""
        return self._batches or self._every < 2 or self._seen[_kind(kernel)] < FIRST

    def batch_ended(self) -> None:
        """Draw for the next one."""
        if self._every > 1:
            self._batches = self._random.random() * self._every < 1

    def right(self, kernel: KernelCommand) -> None:
        """A launch was looked at, and nothing is wrong with it."""
        if self._every != 1:
            self._seen[_kind(kernel)] += 1

    def _is_own(self, access: Access) -> bool:
        """Whether all that a launch touches is arrays of the runtime, and nothing of it unwritten
        where somebody wants to know of that. What is so once stays so."""
        if access in self._own:
            return True
        spans = (*access.reads, *access.writes)
        for span in spans:
            part = self._memory.parts.get(span.base)
            if part is None or part.region.foreign:
                return False
        if self._unwritten:
            for region, low, high in self._memory.intervals(spans):
                if region.unwritten[low:high].any():
                    return False
        if len(self._own) >= MOST_KEPT:
            self._own.clear()
        self._own.add(access)
        return True

    def _is_proven(self, kernel: KernelCommand, access: Access) -> bool | None:
        """None where it cannot be let through: too few launches of its kernel were looked at, or
        it touches what is not the runtime's own."""
        key = _key(kernel, access)
        known = self._proven.get(key)
        if known is None and self._seen[_kind(kernel)] >= FIRST and self._is_own(access):
            if len(self._proven) >= MOST_KEPT:
                self._proven.clear()
            known = self._proven[key] = self._proof(kernel, access)
        return known

    def _proof(self, kernel: KernelCommand, access: Access) -> bool:
        if self._any_body:
            return True
        signature = signature_of(kernel)
        if signature is None:
            return False
        followed = self._binders.get(id(signature))
        if followed is None:
            followed = self._binders[id(signature)] = signature, binder(signature)
        outline = followed[1]
        if not outline.has_ranges:
            return False
        values: dict[int, bytes] = dict(zip(kernel.values[::2], kernel.values[1::2], strict=True))
        numbers: list[int] = []
        for index in outline.numbers:
            letter = code(signature.parameters[index])
            if letter is None or letter in "efd" or index not in values:
                return False
            numbers += struct.unpack("=" + letter, values[index])
        reached = outline.reached(
            kernel.global_size, kernel.local_size, kernel.offset, numbers, None
        )
        memory = self._memory
        reads, writes = memory.read(access), memory.intervals(access.writes)
        places = {one.number: one for one in arguments_of(kernel, memory)}
        for index, found in reached.items():
            for rectangles, declared in ((found.reads, reads), (found.writes, writes)):
                if rectangles is None:
                    return False
                if rectangles and index not in places:
                    return False
                for start, pitch, rows, width in rectangles:
                    span = Span(0, start, pitch, rows, width)
                    if not _inside(places[index], span, declared):
                        return False
        return True


def _kind(kernel: KernelCommand) -> tuple[object, ...]:
    return token_of(kernel), kernel.global_size, kernel.local_size


def _key(kernel: KernelCommand, access: Access) -> tuple[object, ...]:
    """What the proof of a launch rests on."""
    return (
        token_of(kernel),
        *kernel[2:4],
        *map(place_of, kernel.pointers[1::2]),
        *kernel[5:],
        access,
    )


def _inside(place: Argument, span: Span, declared: Sequence[Interval]) -> bool:
    """Whether bytes counted from an argument are declared."""
    region, start = place.region, place.offset
    if not without([Interval(region, start + span.start, start + span.end)], declared):
        return True
    if span.rows > MOST_ROWS:
        return False
    rows = [Interval(region, start + low, start + high) for low, high in intervals(span)]
    return not without(merged(rows), declared)
