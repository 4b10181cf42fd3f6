"""Passes: launches that go unchecked, because they are proven right or because chance decided so.

Input: commands with their accesses, and the launches that were checked without an error. Output:
the command to launch instead, if it is let through. A launch is *proven* if the outline of its
body, run with its sizes and numbers, reaches only declared bytes. Then no contents of memory can
make it touch others. A launch that is not proven may be *watched*: the device compares each of its
accesses. Both methods may have faults of ours, so the first launches of each kernel are always
checked.

Invariant: a launch that is let through uses only memory of the runtime. It is proven or watched, or
the program asked for `every=N`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from random import Random

from .. import core
from ..access.binder import binder
from ..access.signature import Signature
from ..launch.commands import KernelCommand
from ..ranges import intervals
from ..records import Access, Modes, Span
from .case import Argument
from .memory import Interval, Memory, merged, without
from .naming import arguments_of, place_of, signature_of, token_of
from .watch import Watch

FIRST = 4
"""Launches of each kernel that are always checked."""

MOST_ROWS = 1024
"""Most rows of a rectangle that are looked up one by one."""

MOST_KEPT = 1 << 16

_NO_POINTERS = frozenset({"image", "pipe"})
"""Memory of which a body's outline tells nothing."""


class Let(Enum):
    """How a launch passes the checks."""

    NOT = "it is checked, by trials if it is a kernel"
    PROVEN = "no contents of memory can make it touch undeclared bytes"
    WATCHED = "the device compares each of its accesses"
    BY_CHANCE = "the program asked for every=N, and this is not one of them"

    @property
    def is_known(self) -> bool:
        """Whether a launch does what it declares, or notes that it does not."""
        return self in (Let.PROVEN, Let.WATCHED)


class Passes:
    """Decides which launches of a checker are let through."""

    def __init__(self, memory: Memory, modes: Modes, watch: Watch | None) -> None:
        self._memory = memory
        self._any_body = modes.uninitialised and not (modes.access or modes.order)
        """Whether undeclared accesses do not matter."""
        self._watch = watch
        self._every = modes.every
        self._random = Random(modes.seed)
        self._unwritten = modes.uninitialised
        self._seen: Counter[tuple[object, ...]] = Counter()
        self._proofs: dict[tuple[object, ...], bool] = {}
        """{all that the proof of a launch depends on: whether it is proven}."""
        self._own: set[Access] = set()
        self._binders: dict[int, tuple[Signature, core.native.Binder]] = {}
        self._batches = True
        """Whether the next batch of orders is judged."""
        self.passed = self.watched = 0

    def lets(
        self, command: KernelCommand, kernel: KernelCommand, access: Access, watches: bool
    ) -> tuple[KernelCommand, Let]:
        """Return how a launch passes, and the command for that. `watches`: notes of a watched
        launch would be of use."""
        every = self._every
        if every == 1:
            return command, Let.NOT
        known: bool | None
        try:
            if every:
                known = self._seen[_kind(kernel)] >= FIRST and self._random.random() * every >= 1
                known = known and self._is_own(access)
            else:
                known = self._is_proven(kernel, access)
        except TypeError:  # an argument that cannot be a key
            return command, Let.NOT
        if known:
            self.passed += 1
            return command, Let.BY_CHANCE if every else Let.PROVEN
        if every or known is None or not watches or self._watch is None:
            return command, Let.NOT
        watched = self._watch.of(kernel, access)
        if watched is None:
            return command, Let.NOT
        self.passed += 1
        self.watched += 1
        return watched, Let.WATCHED

    def judged(self, kernel: KernelCommand) -> bool:
        """Tell whether a batch of orders that begins with this launch is judged."""
        return self._batches or self._every < 2 or self._seen[_kind(kernel)] < FIRST

    def batch_ended(self) -> None:
        """Decide by chance about the next batch."""
        if self._every > 1:
            self._batches = self._random.random() * self._every < 1

    def right(self, kernel: KernelCommand) -> None:
        """Note that a launch was checked without an error."""
        if self._every != 1:
            self._seen[_kind(kernel)] += 1

    def stays_inside(self, kernel: KernelCommand, access: Access) -> bool:
        """Tell whether it is proven that a launch touches only what it declares."""
        try:
            return self._kept_proof(kernel, access)
        except TypeError:  # an argument that cannot be a key
            return False

    def _is_own(self, access: Access) -> bool:
        """Tell whether a launch touches only arrays of the runtime, and no unwritten bytes if that
        check is on. A positive answer stays valid."""
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
        """Tell whether a launch is proven. None: too few launches of its kernel were checked, or it
        touches memory that is not the runtime's."""
        if self._seen[_kind(kernel)] < FIRST or not self._is_own(access):
            return None
        return self._kept_proof(kernel, access)

    def _kept_proof(self, kernel: KernelCommand, access: Access) -> bool:
        """Tell whether a launch is proven. Raises `TypeError` for arguments that cannot be keys."""
        key = _key(kernel, access)
        known = self._proofs.get(key)
        if known is None:
            if len(self._proofs) >= MOST_KEPT:
                self._proofs.clear()
            known = self._proofs[key] = self._proof(kernel, access)
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
        if not outline.has_ranges or any(one.space in _NO_POINTERS for one in signature.parameters):
            return False
        values: dict[int, bytes] = dict(zip(kernel.values[::2], kernel.values[1::2], strict=True))
        numbers: list[int] = []
        for index, offset, letter in outline.numbers:
            if letter in "fd" or index not in values:
                return False
            numbers += struct.unpack_from("=" + letter, values[index], offset)
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
    """Return a key of everything that the proof of a launch depends on."""
    return (
        token_of(kernel),
        *kernel[2:4],
        *map(place_of, kernel.pointers[1::2]),
        kernel.values,
        kernel.offset,
        access,
    )


def _inside(place: Argument, span: Span, declared: Sequence[Interval]) -> bool:
    """Tell whether bytes counted from an argument are declared, and in its array."""
    region, start = place.region, place.offset
    part = region.part_at(start)
    if part is None or start + span.start < part.low or start + span.end > part.high:
        return False
    if not without([Interval(region, start + span.start, start + span.end)], declared):
        return True
    if span.rows > MOST_ROWS:
        return False
    rows = [Interval(region, start + low, start + high) for low, high in intervals(span)]
    return not without(merged(rows), declared)
