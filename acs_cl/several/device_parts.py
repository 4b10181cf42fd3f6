"""Parts for devices: a launch that is spread becomes one for each device, with some of the groups.

Input: a launch of a kernel, and the access of a part of it. Output: the parts, or why it stays
whole. A part is the same kernel with fewer work-items and, but for the first one, a global offset.
Then it may be a variant of the kernel, which knows the numbers of its groups.

Invariants: no part touches what another one writes. The parts are whole groups, and together all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product

from ..devices.driver import OwnKernel
from ..launch.commands import KernelCommand
from ..launch.observers import AccessOf, Cutting
from ..ranges import overlapping
from ..records import EVERYTHING, Access, NamedTuple, Span
from .device_commands import pinned_because

LEAST_US = 200.0
"""A shorter launch is not spread."""

BORDER = 8
"""A border that is run first has at most this share of a part."""

UNIT = 64
"""A part of a launch without a local size has a multiple of this many work-items."""


Kernels = tuple[OwnKernel, OwnKernel]
"""The kernel of a launch, for the part at its beginning, and the one for parts elsewhere. Some
drivers have to keep the two apart (`mixes_machine_code`)."""


class DevicePart(NamedTuple):
    """Some of the groups of a launch."""

    command: KernelCommand
    access: Access
    kernels: Kernels


def parts_of(
    command: KernelCommand, access: Access, many: int, cutting: Cutting
) -> list[DevicePart]:
    """Return the parts of a launch for `many` devices; none if it has to stay whole."""
    if pinned_because(command, access) or (command.offset is not None and any(command.offset)):
        return []
    kernel = cutting.in_parts(command.local_size is not None, False)
    if isinstance(kernel, str):
        return []
    parts = cut(command, (command.kernel, kernel), many, cutting.access_of)
    return parts if len(parts) > 1 and are_apart(parts) else []


def cut(
    command: KernelCommand, kernels: Kernels, many: int, access_of: AccessOf
) -> list[DevicePart]:
    """Cut a launch along its slowest axis into at most `many` parts of nearly equal size."""
    whole, unit = command.global_size[-1], _unit(command)
    units = -(-whole // unit)
    parts = min(many, units)
    edges = [min(whole, units * at // parts * unit) for at in range(parts)] + [whole]
    return [_between(command, kernels, *ends, access_of) for ends in pairwise(edges)]


def border_first(part: DevicePart, wanted: Sequence[Span], access_of: AccessOf) -> list[DevicePart]:
    """Cut a part so that the groups at its ends which write some wanted bytes are parts of their
    own, in front of the rest. If the groups which write them are many, it stays whole.

    Another device can then have these bytes while the rest runs."""
    command, unit = part.command, _unit(part.command)
    begin = command.offset[-1] if command.offset else 0
    end = begin + command.global_size[-1]
    between = partial(_between, command, part.kernels)

    def without(first: int, last: int) -> DevicePart:
        return between(begin + first * unit, end - last * unit, access_of)

    most = (end - begin) // unit // BORDER
    if not most or overlapping(without(most, most).access.writes, wanted):
        return [part]
    sizes = sorted({0, *(1 << power for power in range(most.bit_length())), most})
    for first, last in sorted(product(sizes, sizes), key=sum):
        rest = without(first, last)
        if not overlapping(rest.access.writes, wanted):
            break
    inner = begin + first * unit, end - last * unit
    borders = [one for one in ((begin, inner[0]), (inner[1], end)) if one[0] < one[1]]
    found = [*(between(*one, access_of) for one in borders), rest]
    return found if are_apart(found) else [part]


def _unit(command: KernelCommand) -> int:
    """Return how many items along the slowest axis stay together."""
    axis = len(command.global_size) - 1
    return command.local_size[axis] if command.local_size else UNIT if axis == 0 else 1


def _between(
    command: KernelCommand, kernels: Kernels, begin: int, end: int, access_of: AccessOf
) -> DevicePart:
    """Return the part of a launch between two places of its slowest axis."""
    others = command.global_size[:-1]
    size, offset = (*others, end - begin), (*(0 for _ in others), begin)
    made = command._replace(kernel=kernels[begin > 0], global_size=size, offset=offset)
    return DevicePart(made, access_of(size, offset), kernels)


def are_apart(parts: Sequence[DevicePart]) -> bool:
    """Tell whether parts touch memory of the runtime only, and none touches another's writes."""
    for one in parts:
        if any(span.base <= EVERYTHING for span in (*one.access.reads, *one.access.writes)):
            return False
        for other in parts:
            if other is not one and overlapping(
                one.access.writes, (*other.access.writes, *other.access.reads)
            ):
                return False
    return True
