"""Lay bodies out as arrays, for the kernels and the reference.

Input: a `Model`. Output: a `Layout`: rows of numbers for each group, and the places of its
impulses.

Every array has the environments along its last axis. All impulses on the parts of one group lie
together, in a section. Each joint, actuator and contact has a slot there for each part that it acts
on, and nothing else writes it. So groups meet only in `accumulate`, which reads one section.

Invariant: rows are rounded to float32 once, here, and all computations start from the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.rigid_models import BOX, PAIR, Contacts, Model, Parts, Vector

Array = np.ndarray[Any, Any]

DT = 0.004
GRAVITY = -9.8
SKIN = 0.01
"""Depth below which a contact damps less: nothing about it is sudden."""
SLOW = 0.1
"""Speed below which friction is less than in full."""
FRICTION = 0.8
MARGIN = 0.05
"""How near the broad phase lets colliders come, beyond what they may travel meanwhile."""

POSE, MOTION, ROW, JOINT_ROW = 8, 6, 12, 24
"""Numbers of a pose (place, turn as x y z w, and one unused), a motion, a row of a part, of a
joint. An impulse has as many as a motion."""
LINE = 128
"""Words between two flags: each begins where a part of a buffer may begin."""

_STIFF, _DAMPED = 0.4, 0.5
"""Springs in units of their effective mass and DT: the shortest period is 16 sub-steps."""


class Section(NamedTuple):
    """A group of parts: its bodies, the slots that act on them, and for `accumulate` the table that
    says which slots act on which body, and under which flag."""

    bodies: slice
    slots: slice
    table: Array
    shapes: Array
    masses: Array


class Pull(NamedTuple):
    """A group of joints and its actuators: rows, where their impulses go, the first action."""

    dof: int
    rows: Array
    joint: tuple[slice, slice]
    actuator: tuple[slice, slice]
    action: int


class Push(NamedTuple):
    """A group of contacts: where its impulses go, and what it is made of. `flag` counts from 1:
    flag 0 says that somebody fell."""

    flag: int
    slots: tuple[slice, ...]
    pairs: Array
    stiffness: float
    damping: float


class Layout(NamedTuple):
    """A model in arrays; groups in the model's order."""

    model: Model
    sections: dict[str, Section]
    pulls: tuple[Pull, ...]
    pushes: tuple[Push, ...]
    bodies: int
    slots: int
    actions: int


class _Run(NamedTuple):
    """Slots that one group writes in one section: the body of each, and the flag."""

    key: tuple[str, int, int]
    bodies: tuple[int, ...]
    flag: int


def lay_out(model: Model) -> Layout:
    """Return rows and slots of a model."""
    parts = {part.name: part for part in model.parts}
    runs: dict[str, list[_Run]] = {name: [] for name in parts}
    for at, joints in enumerate(model.joints):
        count = len(joints.at)
        only = len(parts[joints.parent].ends) == 1
        ours = (0,) * count if only else tuple(range(count))
        for kind in ("joint", "actuator"):
            runs[joints.parent].append(_Run((kind, at, 0), ours, -1))
            runs[joints.child].append(_Run((kind, at, 1), tuple(range(count)), -1))
    for at, contact in enumerate(model.contacts):
        each = tuple(range(len(parts[contact.first].ends)))
        first = tuple(a for a, _ in contact.pairs) if contact.kind == PAIR else each
        runs[contact.first].append(_Run(("contact", at, 0), first, at + 1))
        if contact.kind == PAIR:
            second = tuple(b for _, b in contact.pairs)
            runs[contact.second].append(_Run(("contact", at, 1), second, at + 1))
    sections: dict[str, Section] = {}
    places: dict[tuple[str, int, int], slice] = {}
    bodies = slots = actions = 0
    for name, part in parts.items():
        begin = slots
        for run in runs[name]:
            places[run.key] = slice(slots, slots + len(run.bodies))
            slots += len(run.bodies)
        count = len(part.ends)
        sections[name] = Section(
            slice(bodies, bodies + count), slice(begin, slots),
            _table(count, runs[name]), _shapes(part), _masses(part, model.planar),
        )  # fmt: skip
        bodies += count
    pulls = []
    for at, joints in enumerate(model.joints):
        joint = places["joint", at, 0], places["joint", at, 1]
        actuator = places["actuator", at, 0], places["actuator", at, 1]
        rows = _joint_rows(joints, parts[joints.parent], parts[joints.child])
        pulls.append(Pull(len(joints.limits), rows, joint, actuator, actions))
        actions += len(joints.limits) * len(joints.at)
    pushes = tuple(_push(contact, at, parts, places) for at, contact in enumerate(model.contacts))
    return Layout(model, sections, tuple(pulls), pushes, bodies, slots, actions)


def _push(
    contact: Contacts, at: int, parts: dict[str, Parts], places: dict[tuple[str, int, int], slice]
) -> Push:
    """Return the spring and damper of a contact, and where its forces go."""
    both = [parts[name] for name in (contact.first, contact.second) if name]
    mass = 1 / sum(_give(part, _arm(part, contact.kind)) for part in both)
    return Push(
        at + 1, tuple(places["contact", at, side] for side in range(len(both))),
        np.array(contact.pairs, np.int32).reshape(-1, 2),
        mass * (_STIFF / DT) ** 2, 2 * _DAMPED * mass * _STIFF / DT,
    )  # fmt: skip


def _table(count: int, runs: Sequence[_Run]) -> Array:
    """Return where each body's entries begin, one number more, then the entries: a slot, counted
    from the section's first, and its flag. -1: the slot always counts."""
    entries: list[list[int]] = [[] for _ in range(count)]
    slot = 0
    for run in runs:
        for body in run.bodies:
            entries[body] += [slot, run.flag]
            slot += 1
    begins = np.cumsum([0, *(len(one) // 2 for one in entries)])
    return np.array([*begins, *(word for one in entries for word in one)], np.int32)


def middle(ends: tuple[Vector, Vector]) -> Array:
    """Return the place of a part: half-way between its ends."""
    return np.asarray(np.mean(np.array(ends, float), axis=0))


def _shapes(part: Parts) -> Array:
    """Return both ends from the middle, the radius, the radius around everything, half the box."""
    rows = np.zeros((len(part.ends), ROW))
    for row, ends in zip(rows, part.ends, strict=True):
        row[0:3], row[3:6] = np.array(ends, float) - middle(ends)
        row[6] = part.radius
        around = float(np.linalg.norm(row[3:6])) + part.radius
        if part.half is not None:
            row[8:11] = part.half
            around = max(around, float(np.linalg.norm(part.half)))
        row[7] = around
    return rows.astype(np.float32)


def _inertia(part: Parts) -> float:
    """Return the inertia of a ball as long as the part. It is the same about every axis, so
    momentum is kept."""
    long = float(np.linalg.norm(np.subtract(*part.ends[0])))
    return 0.4 * part.mass * (0.5 * long + part.radius) ** 2


def _masses(part: Parts, planar: bool) -> Array:
    """Return one over mass and inertia, the pull of the earth, then the free directions and
    axes."""
    row = np.zeros(ROW)
    if not part.fixed:
        row[:3] = 1 / part.mass, 1 / _inertia(part), GRAVITY
        row[3:9] = (1, 0, 1, 0, 1, 0) if planar else 1
    return np.tile(row, (len(part.ends), 1)).astype(np.float32)


def _give(part: Parts, arm: float) -> float:
    """Return how much a point at an arm's length yields to an impulse, at most."""
    return 0.0 if part.fixed else 1 / part.mass + arm**2 / _inertia(part)


def _arm(part: Parts, kind: str) -> float:
    row = _shapes(part)[0]
    return float(np.linalg.norm(row[8:11])) if kind == BOX else float(np.linalg.norm(row[3:6]))


def _joint_rows(joints: Any, parent: Parts, child: Parts) -> Array:
    rows = np.zeros((len(joints.at), JOINT_ROW))
    for n, row in enumerate(rows):
        place = np.array(joints.at[n], float)
        row[0:3] = place - middle(parent.ends[n if len(parent.ends) > 1 else 0])
        row[3:6] = place - middle(child.ends[n])
        row[6:10] = _frame(*joints.axes[n])
        arms = [float(np.linalg.norm(row[at : at + 3])) for at in (0, 3)]
        mass = 1 / (_give(parent, arms[0]) + _give(child, arms[1]))
        inertia = 1 / (1 / _inertia(child) + (0 if parent.fixed else 1 / _inertia(parent)))
        row[10:12] = mass * (_STIFF / DT) ** 2, 2 * _DAMPED * mass * _STIFF / DT
        row[12:15] = inertia * np.array([(_STIFF / DT) ** 2, 0.08 / DT, (_STIFF / DT) ** 2])
        row[15 : 15 + 2 * len(joints.limits)] = np.radians(joints.limits).ravel()
        row[21 : 21 + len(joints.gears)] = joints.gears
    return rows.astype(np.float32)


def _frame(first: Vector, second: Vector) -> Array:
    """Return the turn that takes x to the first axis and y to the second, as x y z w."""
    x = np.array(first, float)
    x /= np.linalg.norm(x)
    y = np.array(second, float) - x * np.dot(x, second)
    y /= np.linalg.norm(y)
    basis = np.stack([x, y, np.cross(x, y)], axis=1)
    values, vectors = np.linalg.eigh(
        np.array([_form(basis, a) for a in range(4)])  # Bar-Itzhack: the turn is the greatest's
    )
    return np.asarray(vectors[:, np.argmax(values)])


def _form(m: Array, row: int) -> list[float]:
    x, y, z = (m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
    return [
        [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], x],
        [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], y],
        [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], z],
        [x, y, z, m[0, 0] + m[1, 1] + m[2, 2]],
    ][row]
