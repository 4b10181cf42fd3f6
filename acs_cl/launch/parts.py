"""Parts: the bands of a launch that runs on lanes.

Input: a launch that is to be cut. Output: launches of the same kernel with a global offset, which
share its groups, or the reason why it stays whole. Pure, except that a kernel may be built.

Invariant: the parts of a launch have all of its work-items, each once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..access.bands import Groups
from ..access.cuts import AUTO, Cut, in_runs, refusal, touched_by
from ..records import Access, NamedTuple
from .commands import KernelCommand

MOST = 256
"""Parts of a launch at most. So many are launched without a check for room."""

MOST_KEPT = 256
"""Launches of a kernel whose parts are kept."""

UNIT = 64
"""Without a local size, a number of parts have a multiple of this many work-items each, as most
devices like. Otherwise a work-item counts as a group, as in the scheduler."""


IS_PART = "it is a part of a launch"
"""Why a part goes to a lane: some of the other parts could go nowhere else."""


class LanePart(NamedTuple):
    """Some groups of a launch."""

    command: KernelCommand
    access: Access
    groups: Groups
    unit: tuple[int, ...]
    """Work-items of a group."""


def parts_of(command: KernelCommand) -> list[LanePart] | str:
    """Return the parts of a launch, or the reason why it has none."""
    cut = command.cut
    if cut is None or cut.touched is None:
        return cut.reason if cut is not None else "nobody asked"
    if cut.bands == AUTO:
        return "nobody has tuned it, and on lanes only that tells whether it pays"
    kept = {} if cut.parts is None else cut.parts
    key = cut.bands, cut.about, command.kernel, command.local_size
    found = kept.get(key)
    if found is None:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        found = kept[key] = _parts_of(command, cut)
    if isinstance(found, str):
        return found
    return [
        part._replace(
            command=part.command._replace(pointers=command.pointers, values=command.values)
        )
        for part in found
    ]


def _parts_of(command: KernelCommand, cut: Cut) -> tuple[LanePart, ...] | str:
    """Return the parts without arguments."""
    size = command.global_size
    local = command.local_size
    if local and any(whole % part for whole, part in zip(size, local, strict=True)):
        return "its global size is not a multiple of its local size"
    is_number = isinstance(cut.bands, int)
    unit = local or (UNIT if is_number else 1, *[1] * (len(size) - 1))
    counts = tuple(-(-whole // part) for whole, part in zip(size, unit, strict=True))
    shares = in_runs(counts, cut.bands) if isinstance(cut.bands, int) else cut.bands.shares(counts)
    if isinstance(shares, str):
        return shares
    boxes = [box for part in shares.parts for box in part.boxes]
    if len(boxes) > MOST:
        return f"lanes would get {len(boxes):,} launches, more than {MOST}"
    accesses = touched_of(cut, boxes, unit)
    if reason := refusal(accesses):
        return reason
    begins = command.offset or (0,) * len(size)
    kernel = cut.in_parts(bool(local), any(begins)) if cut.in_parts else "nobody knows its source"
    if isinstance(kernel, str):
        return kernel
    found = []
    for box, access in zip(boxes, accesses, strict=True):
        first = tuple(low * each for (low, _), each in zip(box, unit, strict=True))
        ends = (high * each for (_, high), each in zip(box, unit, strict=True))
        own = tuple(
            min(end, whole) - low for low, end, whole in zip(first, ends, size, strict=True)
        )
        offset = tuple(begin + low for begin, low in zip(begins, first, strict=True))
        part = command._replace(
            kernel=kernel if any(offset) else command.kernel,
            global_size=own,
            offset=offset,
            cut=None,
            pointers=(),
            values=(),
            lane=IS_PART,
        )
        found.append(LanePart(part, access, box, unit))
    return tuple(found)


def touched_of(cut: Cut, boxes: Sequence[Groups], unit: tuple[int, ...]) -> list[Access]:
    """Return the access of each part."""
    return [touched_by(cut, (box,), unit) for box in boxes]
