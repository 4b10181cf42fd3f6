"""Bounds: whether a kernel stays within its arrays, asked of the device before the launch is made.

Input: a launch of a kernel that can be watched (`watch`), and the memory before it. Output: the
error, if it touches a byte outside. The watched variant of the kernel runs in its place, from the
memory before the launch, and each access outside goes to spare bytes. So nothing else changes, even
where the launch itself would end the process. Each access is compared as it is made, so a guard
that holds it back is respected.

Outside is a write that is not declared, and a read that is in none of the arrays given, nor in a
constant of the program that the kernel names. A read
inside an array that is not declared counts only if it matters, which comparing tells (`access`).
Invariant: the caller of `wrong` puts back the memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np
import pyopencl as cl

from ..devices.driver import Place, read, wait_for_event, write
from ..errors import Finding
from ..launch.commands import KernelCommand
from ..launch.decision import Cell, DecidedCommand
from ..opencl_c.variants import strays
from ..records import EVERYTHING, Access, Command, NamedTuple
from .case import Argument, Case
from .findings import READ, WRITE, Who, finding
from .memory import Memory
from .naming import arguments_of, listed, nowhere, of_constant, outside, where
from .watch import Values, Variant, Watch

NOTHING = struct.pack("4q", 0, 0, 1, 0)
ANYTHING = struct.pack("4q", -(1 << 62), 0, 1, (1 << 63) - 1)
"""Limits of foreign memory of unknown size."""


_CONSTANT = re.compile(r"\b(__)?constant\b")


class Stray(NamedTuple):
    """A byte outside: the parameter, or the constant of the program and its bytes; whether it is
    written, the byte from where that begins, and the work-item, if it is known."""

    of: int | tuple[str, int]
    written: bool
    byte: int
    item: tuple[int, ...] | None


class Bounds:
    """Runs launches within bounds. `watch`: makes the variants. `run`: starts a command."""

    def __init__(
        self, context: cl.Context, memory: Memory, watch: Watch, run: Callable[[Command], cl.Event]
    ) -> None:
        self._context, self._memory, self._watch, self._start = context, memory, watch, run
        self._notes: cl.Buffer | None = None
        self._ints = 0

    def wrong(self, case: Case, command: Command, access: Access, who: Who) -> Finding | None:
        """Run a launch within bounds, and return its error, if there is one. Memory is left as it
        comes."""
        plain = self._decided(command)
        variant = None if plain is None else self._watch.variant(plain)
        if plain is None or variant is None:
            return None
        arguments = {one.number: one for one in arguments_of(plain, self._memory)}
        given = dict(zip(plain.pointers[::2], plain.pointers[1::2], strict=True))
        limits: list[int | bytes] = []
        extra = variant.parameters
        for index in variant.watched:
            known = index in arguments or given.get(index) is None
            for one in self._limits(arguments.get(index), access) if known else (ANYTHING,) * 2:
                limits += extra, one
                extra += 1
        try:
            stray = self._stray(case, plain, variant, tuple(limits))
        except cl.Error:  # too many parameters, or the launch itself will be refused
            return None
        if stray is None:
            return None
        return _named(stray, arguments, access, who, plain)

    def names_constants(self, command: KernelCommand) -> bool:
        """Tell whether a kernel names constants of its program, which ranges say nothing about."""
        origin = command.kernel.text or command.kernel.origin
        if origin is None or not _CONSTANT.search(origin[0]):
            return False
        variant = self._watch.variant(command)
        return variant is not None and bool(variant.constants)

    def _decided(self, command: Command) -> KernelCommand | None:
        """Return the launch that the device's values make of a command. None: there is none."""
        if not isinstance(command, DecidedCommand):
            assert isinstance(command, KernelCommand)
            return command
        plain, (when, count, upto, group) = command.plain, command.decision
        if when is not None and not self._value(when):
            return None
        if count is None:
            return plain
        many = self._value(count)
        if many is None or not 0 < many <= upto or many % group:
            return None
        return plain._replace(global_size=(many, *plain.global_size[1:]))

    def _value(self, cell: Cell) -> int | None:
        for region, low, high in self._memory.intervals([cell.span]):
            return int(region.mirror[low:high].view(np.uint32)[0])
        return None

    def _limits(self, place: Argument | None, access: Access) -> tuple[bytes, bytes]:
        """Return what may be read and written from a pointer on, without the many pieces that a
        declaration may have."""
        part = None if place is None else place.region.part_at(place.offset)
        if place is None or part is None:
            return NOTHING, NOTHING
        by = part.low - place.offset + place.lead
        whole = struct.pack("4q", by, 0, 1, part.high - part.low)
        if place.region.foreign or any(one.base == EVERYTHING for one in access.writes):
            return whole, whole
        declared = [one for one in access.writes if one.base == part.number]
        if len(declared) == 1:
            _, start, pitch, rows, width = declared[0]
            return whole, struct.pack("4q", start + by, pitch, rows, width)
        if not declared:
            return whole, NOTHING
        low, high = min(one.start for one in declared), max(one.end for one in declared)
        return whole, struct.pack("4q", low + by, 0, 1, high - low)

    # ---- on the device -------------------------------------------------------------------------

    def _stray(
        self, case: Case, command: KernelCommand, variant: Variant, limits: Values
    ) -> Stray | None:
        notes = self._run(case, variant, command, limits, strays.FIND, 0, 0)
        lowest = notes[strays.LOWEST : strays.LOWEST + 2 * _sides(variant)]
        found = np.flatnonzero(lowest != strays.NONE).tolist()
        if not found:
            return None
        side = min(found, key=lambda one: (one % 2 == 0, one))  # writes come first
        byte = int(lowest[side])
        item = int(self._run(case, variant, command, limits, strays.WHO, side, byte)[strays.ITEM])
        who = None if item == strays.NONE else _item(command, item)
        sides: list[int | tuple[str, int]] = [*variant.watched, *variant.constants]
        return Stray(sides[side // 2], side % 2 == 1, byte, who)

    def _run(
        self, case: Case, variant: Variant, command: KernelCommand, limits: Values,
        mode: int, side: int, byte: int,
    ) -> np.ndarray[tuple[int], np.dtype[np.int32]]:  # fmt: skip
        """Run the variant from the memory before the launch. Return its notes."""
        queue, many = self._memory.queue, strays.ints_of(_sides(variant))
        if self._notes is None or many > self._ints:
            self._notes = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, 4 * many)
            self._ints = many
        notes = np.zeros(many, np.int32)
        notes[[strays.MODE, strays.SIDE, strays.BYTE, strays.ITEM]] = mode, side, byte, strays.NONE
        notes[strays.LOWEST : strays.LOWEST + 2 * _sides(variant)] = strays.NONE
        place = Place(self._notes, 0, notes.nbytes)
        wait_for_event(write(queue, place, notes, None))
        watched = variant.command(command, limits, self._notes, 0)
        case.run(case.before, lambda: self._start(watched))
        wait_for_event(read(queue, notes, place, None))
        return notes


def _sides(variant: Variant) -> int:
    return len(variant.watched) + len(variant.constants)


def _named(
    stray: Stray, arguments: dict[int, Argument], access: Access, who: Who, command: KernelCommand
) -> Finding:
    """Say which byte it is, of which argument, and who touches it."""
    kind, verb = (WRITE, "writes") if stray.written else (READ, "reads")
    said = f"{who}: work-item {stray.item} {verb}" if stray.item else f"{who}: {verb}"
    rest = ""
    if isinstance(stray.of, tuple):
        byte = of_constant(*stray.of, stray.byte)
    elif stray.of not in arguments:
        byte = nowhere(command, stray.of, stray.byte)
    else:
        place, is_far = arguments[stray.of], stray.byte in strays.FAR
        first = stray.byte if is_far else stray.byte - place.lead
        if not is_far and _is_inside(place, first):
            byte = where([place], place.region, place.offset + first)
            rest = f", and does not declare it; declared as written: {listed(access.writes)}"
        else:
            byte = outside(place, first)
    return finding(kind, who, byte, f"{said} {byte.text}{rest}", stray.item)


def _is_inside(place: Argument, byte: int) -> bool:
    """Tell whether a byte is in the array that an argument begins in."""
    part = place.region.part_at(place.offset)
    return part is not None and part.low <= place.offset + byte < part.high


def _item(command: KernelCommand, number: int) -> tuple[int, ...]:
    """Return the global id of the work-item of this number."""
    found = []
    offset = command.offset or (0,) * len(command.global_size)
    for size, first in zip(command.global_size, offset, strict=True):
        found.append(first + number % size)
        number //= size
    return tuple(found)
