"""Passes: launches that need not be looked at, since the answer is known, or since they were told
to be left to chance.

In: commands with their accesses; those that were looked at and found right. Out: whether the next
one is let through. A launch is *proven* if the outline of its body, run with its sizes and numbers,
reaches no byte beyond what the launch declares: then nothing in memory can make it touch any. An
outline is our own work and may be wrong, so that the first launches of each kernel are looked at
all the same. Invariant: what is let through uses memory of the runtime alone, and is proven, or the
program has asked for `every=N`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyopencl as cl

from ..commands import KernelCommand
from ..narrow import Narrow, narrow
from ..ranges import intervals
from ..records import Access, Span
from ..scalars import code
from .case import Argument
from .memory import Interval, Memory, merged, without
from .naming import signature_of

FIRST = 4
"""Launches of each kernel that are looked at in any case."""

MOST_ROWS = 1024
"""Rows of a rectangle that are looked for one by one."""

MOST_KEPT = 1 << 16


class Passes:
    """What one checker lets through. `every`: 0 for what is proven, 1 for nothing, N for all but
    one in N."""

    def __init__(self, memory: Memory, every: int, seed: int, unwritten: bool) -> None:
        self._memory = memory
        self._every = every
        self._random = Random(seed)
        self._unwritten = unwritten
        self._seen: Counter[Any] = Counter()
        self._proven: dict[Any, bool] = {}
        self._own: set[Access] = set()
        self._narrows: dict[int, tuple[Any, Narrow | None]] = {}
        self._batches = True
        """Whether the next batch of orders is one that is judged."""
        self.passed = 0

    def lets(self, kernel: KernelCommand, access: Access) -> bool:
        """Whether a launch need not be looked at."""
        every = self._every
        if every == 1:
            return False
        try:
            if every:
                known = self._seen[_kind(kernel)] >= FIRST and self._random.random() * every >= 1
            else:
                known = self._proven.get(_key(kernel, access), False)
        except TypeError:  # an argument that cannot be a key
            return False
        return known and self._is_own(access)

    def judged(self, kernel: KernelCommand) -> bool:
        """Whether the batch of orders that a launch would begin is one that is judged."""
        return self._batches or self._every < 2 or self._seen[_kind(kernel)] < FIRST

    def batch_ended(self) -> None:
        """Draw for the next one."""
        if self._every > 1:
            self._batches = self._random.random() * self._every < 1

    def right(
        self, kernel: KernelCommand, access: Access, arguments: Sequence[Argument],
        reads: Sequence[Interval], writes: Sequence[Interval],
    ) -> None:  # fmt: skip
        """A launch was looked at, and nothing is wrong with it."""
        if self._every == 1:
            return
        kind = _kind(kernel)
        self._seen[kind] += 1
        if self._every or self._seen[kind] < FIRST:
            return
        key = _key(kernel, access)
        try:
            if key not in self._proven:
                if len(self._proven) >= MOST_KEPT:
                    self._proven.clear()
                self._proven[key] = self._is_proven(kernel, arguments, reads, writes)
        except TypeError:
            pass

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

    def _is_proven(
        self, kernel: KernelCommand, arguments: Sequence[Argument],
        reads: Sequence[Interval], writes: Sequence[Interval],
    ) -> bool:  # fmt: skip
        signature = signature_of(kernel)
        if signature is None:
            return False
        known = self._narrows.get(id(signature))
        if known is None:
            known = self._narrows[id(signature)] = signature, narrow(signature)
        outline = known[1]
        if outline is None:
            return False
        numbers: list[Any] = [None] * len(signature.parameters)
        for at in range(0, len(kernel.values), 2):
            index, value = kernel.values[at : at + 2]
            if index in outline.numbers:
                letter = code(signature.parameters[index])
                if letter is None or letter in "efd":
                    return False
                numbers[index] = struct.unpack("=" + letter, value)[0]
        if any(numbers[index] is None for index in outline.numbers):
            return False
        reached = outline.reached(kernel.global_size, kernel.local_size, kernel.offset, numbers)
        places = {one.number: one for one in arguments}
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


def _kind(kernel: KernelCommand) -> tuple[Any, ...]:
    return kernel.kernel, kernel.global_size, kernel.local_size


def _key(kernel: KernelCommand, access: Access) -> tuple[Any, ...]:
    """What the proof of a launch rests on. A view made anew has the address that it had before."""
    places = [_address(given) for given in kernel.pointers[1::2]]
    return *kernel[1:4], *places, *kernel[5:], access


def _address(given: Any) -> Any:
    if isinstance(given, cl.SVMPointer):
        return given.svm_ptr
    return given.int_ptr if isinstance(given, cl.Buffer) else given


def _inside(place: Argument, span: Span, declared: Sequence[Interval]) -> bool:
    """Whether bytes counted from an argument are declared."""
    region, start = place.region, place.offset
    if not without([Interval(region, start + span.start, start + span.end)], declared):
        return True
    if span.rows > MOST_ROWS:
        return False
    rows = [Interval(region, start + low, start + high) for low, high in intervals(span)]
    return not without(merged(rows), declared)
