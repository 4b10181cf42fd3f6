"""Laying: the launches of a segment become tasks, which wait only for the bytes that they need.

Input: recorded launches with their tasks, some of which are cut into bands. Output: a `Laid`: all
tasks in a recorder, and the launch of each. Pure.

Bands of one launch never wait for each other, since OpenCL promises nothing about the order of its
groups. If many bands wait for the same many bands of another launch, a *joint* task goes in between
and runs nothing. So B bands behind B others have 2 B edges, not B times B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .. import core
from ..records import Access, NamedTuple, Pair
from . import layout
from .task import Task

MOST_DIRECT = 4
"""Bands of one launch that bands of another may wait for without a joint task."""

JOINT = -1
"""Stands in place of a launch for a joint task."""


class Laid(NamedTuple):
    """Launches as tasks."""

    recorder: layout.Recorder
    tasks: list[range]
    """Tasks of each launch."""
    launches: list[int]
    """The launch of each task, or `JOINT`."""
    accesses: list[Access]
    """The access of each task."""
    upstream: list[tuple[int, ...]]
    """The upstream tasks of each task."""


NOTHING = Access((), ())


def laid(launches: Sequence[Pair], tasks: Sequence[Task]) -> Laid:
    """Put launches into a recorder, in program order."""
    found = Laid(layout.Recorder(), [], [], [], [])
    hazards = core.native.Hazards()
    numbers = [JOINT]  # the task of each number of the hazards, which begin with 1
    joints: dict[frozenset[int], int] = {}
    heads: dict[tuple[bytes, int], list[bytes]] = {}  # shared by launches that are cut alike
    for launch, ((_, access), task) in enumerate(zip(launches, tasks, strict=True)):
        bands = task.cuts.bands
        touched = [band.access for band in bands] or [access]
        if bands:
            edges = hazards.enter_many(len(numbers), touched)
        else:
            edges = [hazards.enter(len(numbers), access.reads, access.writes)]
        above = [tuple(sorted(map(numbers.__getitem__, one))) for one in edges]
        if len(above) > 1 and max(map(len, above)) > MOST_DIRECT:
            above = _joined(found, above, joints)
        first = len(found.launches)
        key = task.head, id(bands)
        if key not in heads:
            heads[key] = heads_of(task)
        for head, waits, own in zip(heads[key], above, touched, strict=True):
            _add(found, head, task.blob, task.shape, waits, launch, own)
        found.tasks.append(range(first, len(found.launches)))
        numbers += found.tasks[-1]
    return found


def heads_of(task: Task) -> list[bytes]:
    """Return how the records of its bands begin, or its own record if it has no bands."""
    return [
        layout.band(task.head, band.first, band.tiles, band.run, band.stride)
        for band in task.cuts.bands
    ] or [task.head]


def _add(
    found: Laid, head: bytes, blob: bytes, shape: bytes | None, above: tuple[int, ...], launch: int,
    access: Access,
) -> int:  # fmt: skip
    found.upstream.append(above)
    found.launches.append(launch)
    found.accesses.append(access)
    return found.recorder.add(head, blob, shape, above)


def _joined(
    found: Laid, above: list[tuple[int, ...]], joints: dict[frozenset[int], int]
) -> list[tuple[int, ...]]:
    """Return the upstream of the bands of one launch, with joint tasks. A joint task replaces many
    tasks of one launch that several of the bands wait for."""
    groups: list[dict[int, set[int]]] = []
    for one in above:
        by_launch: dict[int, set[int]] = {}
        for task in one:
            by_launch.setdefault(found.launches[task], set()).add(task)
        groups.append(by_launch)
    wanted = Counter(
        frozenset(tasks)
        for by_launch in groups
        for tasks in by_launch.values()
        if len(tasks) > MOST_DIRECT
    )
    for tasks, times in wanted.items():
        if times > 1 and tasks not in joints:
            upstream = tuple(sorted(tasks))
            joints[tasks] = _add(found, layout.JOINT, b"", None, upstream, JOINT, NOTHING)
    return [
        tuple(
            sorted(
                task
                for own in map(frozenset, by_launch.values())
                for task in ((joints[own],) if own in joints else own)
            )
        )
        for by_launch in groups
    ]
