"""Compute the same bodies in NumPy, in double precision.

Input: a `Layout` and a `Start`. Output: an `Outcome`: results as the kernels give them, and how
close each decision was. It is written from the equations, not from the kernels. Bodies are gathered
by index and impulses added by body, so that slots, tables and views are checked too.

Invariant: nothing here depends on the platform that runs the kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.rigid_geometry import nearest, pivots, product, rotate
from acs_cl.benchmarks.workloads.rigid_layout import (
    DT,
    FRICTION,
    MARGIN,
    MOTION,
    SKIN,
    SLOW,
    Layout,
)
from acs_cl.benchmarks.workloads.rigid_models import BOX, CAPSULE, PAIR, SPHERE
from acs_cl.benchmarks.workloads.rigid_start import Start
from acs_cl.benchmarks.workloads.workload import Results

Array = np.ndarray[Any, Any]

UP = np.array([0.0, 0.0, 1.0])


class Outcome(NamedTuple):
    """`results`, and the least distance of any decision from its threshold: of the broad phase, and
    of falling. What rounds by less decides alike."""

    results: Results
    broad: float
    fall: float


class World:
    """State: bodies x environments x numbers."""

    def __init__(self, layout: Layout, begin: Start) -> None:
        self.layout = layout
        self.starts = begin.poses.astype(np.float64).transpose(0, 2, 1)
        first = begin.first.astype(np.float64).transpose(0, 2, 1)
        self.place, self.turn = first[..., :3].copy(), first[..., 3:7].copy()
        motions = begin.motions.astype(np.float64).transpose(0, 2, 1)
        self.velocity, self.spin = motions[..., :3].copy(), motions[..., 3:].copy()
        self.phases = begin.phases.astype(np.float64)
        self.rates = begin.rates.astype(np.float64)[:, None]
        self.masses = np.concatenate([one.masses for one in layout.sections.values()])
        self.shapes = np.concatenate([one.shapes for one in layout.sections.values()])
        self.masses = self.masses.astype(np.float64)[:, None, :]
        self.shapes = self.shapes.astype(np.float64)[:, None, :]
        environments = self.place.shape[1]
        self.episodes = np.zeros(environments, np.int64)
        self.live = np.zeros(len(layout.pushes) + 1, np.int64)
        self.broad = self.fall = np.inf

    def frame(self, substeps: int) -> None:
        """Choose an action and run its sub-steps."""
        self.phases += self.rates
        self.phases[self.phases > 2 * np.pi] -= 2 * np.pi
        actions = np.sin(self.phases)
        self.begin_again(self.fallen())
        near = [self.near(group, DT * substeps) for group in range(len(self.layout.pushes))]
        self.live[1:] += np.array(near, np.int64)
        for _ in range(substeps):
            self.substep(actions, near)

    def substep(self, actions: Array, near: list[bool]) -> None:
        """Compute all forces from one state, then the motion."""
        shape = (*self.place.shape[:2], 3)
        force, torque = np.zeros(shape), np.zeros(shape)
        for group in range(len(self.layout.pulls)):
            self.pull(group, actions, force, torque)
        for group, live in enumerate(near):
            if live:
                self.push(group, force, torque)
        mass = self.masses
        self.velocity += DT * (mass[..., 0:1] * force + mass[..., 2:3] * UP)
        self.velocity *= mass[..., 3:6]
        self.spin += DT * mass[..., 1:2] * torque
        self.spin *= mass[..., 6:9]
        self.place += DT * self.velocity
        spin = np.concatenate([self.spin, np.zeros((*shape[:2], 1))], axis=-1)
        self.turn += 0.5 * DT * product(spin, self.turn)
        self.turn /= np.linalg.norm(self.turn, axis=-1, keepdims=True)

    # ---- decisions -------------------------------------------------------------------------------

    def fallen(self) -> Array:
        """Return which environments have to begin again."""
        fall = self.layout.model.fall
        distances = np.stack([
            self.place[0, :, 2] - fall.low,
            rotate(self.turn[0], UP)[:, 2] - fall.upright,
            fall.far - np.hypot(self.place[0, :, 0], self.place[0, :, 1]),
        ])  # fmt: skip
        least = distances.min(axis=0)
        self.fall = min(self.fall, float(np.abs(least).min()))
        return np.asarray(least < 0)

    def begin_again(self, fallen: Array) -> None:
        """Begin new episodes."""
        self.place[:, fallen] = self.starts[:, fallen, :3]
        self.turn[:, fallen] = self.starts[:, fallen, 3:7]
        self.velocity[:, fallen] = 0
        self.spin[:, fallen] = 0
        self.episodes += fallen
        self.live[0] += fallen.any()

    def near(self, group: int, time: float) -> bool:
        """Tell whether any pair of a group may touch within this time."""
        pairs = self.pairs(group)
        reach = self.shapes[..., 7] * (1 + time * np.linalg.norm(self.spin, axis=-1))
        reach = reach + time * np.linalg.norm(self.velocity, axis=-1)
        if self.layout.model.contacts[group].kind == PAIR:
            a, b = pairs.T
            gaps = np.linalg.norm(self.place[a] - self.place[b], axis=-1) - reach[a] - reach[b]
        else:
            gaps = self.place[pairs[:, 0], :, 2] - reach[pairs[:, 0]]
        least = float(gaps.min())
        self.broad = min(self.broad, abs(least - MARGIN))
        return least < MARGIN

    def pairs(self, group: int) -> Array:
        """Return the bodies of each pair; with the ground, of each collider."""
        contact = self.layout.model.contacts[group]
        first = self.layout.sections[contact.first].bodies
        if contact.kind != PAIR:
            return np.arange(first.start, first.stop)[:, None]
        second = self.layout.sections[contact.second].bodies
        return np.array([(first.start + a, second.start + b) for a, b in contact.pairs])

    # ---- forces ----------------------------------------------------------------------------------

    def pull(self, group: int, actions: Array, force: Array, torque: Array) -> None:
        """Pull at the joints of a group, with their actuators."""
        joints, pull = self.layout.model.joints[group], self.layout.pulls[group]
        parents = self.layout.sections[joints.parent].bodies
        child = np.arange(len(joints.at)) + self.layout.sections[joints.child].bodies.start
        parent = np.minimum(parents.start + np.arange(len(child)), parents.stop - 1)
        row = pull.rows.astype(float)[:, None, :]
        arms = [rotate(self.turn[parent], row[..., 0:3]), rotate(self.turn[child], row[..., 3:6])]
        apart = self.place[parent] + arms[0] - self.place[child] - arms[1]
        faster = self.velocity_at(parent, arms[0]) - self.velocity_at(child, arms[1])
        pulled = row[..., 10:11] * apart + row[..., 11:12] * faster
        axes, angles = pivots(
            product(self.turn[parent], row[..., 6:10]), product(self.turn[child], row[..., 6:10])
        )
        turned = row[..., 13:14] * (self.spin[parent] - self.spin[child])
        for i in range(3):
            angle = angles[..., i]
            if i < pull.dof:
                beyond = angle - np.clip(angle, row[..., 15 + 2 * i], row[..., 16 + 2 * i])
                which = pull.action + np.arange(len(child)) * pull.dof + i
                size = row[..., 21 + i] * actions[which] - row[..., 14] * beyond
            else:
                size = -row[..., 12] * angle
            turned += size[..., None] * axes[i]
        point = self.place[child] + arms[1] + 0.5 * apart
        np.add.at(force, child, pulled)
        np.add.at(torque, child, turned + np.cross(point - self.place[child], pulled))
        np.add.at(force, parent, -pulled)
        np.add.at(torque, parent, -turned - np.cross(point - self.place[parent], pulled))

    def push(self, group: int, force: Array, torque: Array) -> None:
        """Push the contacts of a group apart."""
        kind, push = self.layout.model.contacts[group].kind, self.layout.pushes[group]
        pairs = self.pairs(group)
        if kind == PAIR:
            self.push_apart(pairs, push.stiffness, push.damping, force, torque)
            return
        bodies = pairs[:, 0]
        shape = self.shapes[bodies]
        if kind == BOX:
            signs = np.array([(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])
            balls = [(sign * shape[..., 8:11], np.zeros(1)) for sign in signs]
        else:
            ends = {SPHERE: (3,), CAPSULE: (0, 3)}[kind]
            balls = [(shape[..., at : at + 3], shape[..., 6:7]) for at in ends]
        for middle, radius in balls:
            arm = rotate(self.turn[bodies], middle) - radius * UP
            depth = -(self.place[bodies] + arm)[..., 2:]
            v = self.velocity_at(bodies, arm)
            pushed = pressure(depth, UP, v, push.stiffness, push.damping)
            np.add.at(force, bodies, pushed)
            np.add.at(torque, bodies, np.cross(arm, pushed))

    def push_apart(
        self, pairs: Array, stiffness: float, damping: float, force: Array, torque: Array
    ) -> None:
        """Push capsules apart that touch each other."""
        a, b = pairs.T
        from_a = self.place[a] + rotate(self.turn[a], self.shapes[a][..., 0:3])
        from_b = self.place[b] + rotate(self.turn[b], self.shapes[b][..., 0:3])
        along_a = self.place[a] + rotate(self.turn[a], self.shapes[a][..., 3:6]) - from_a
        along_b = self.place[b] + rotate(self.turn[b], self.shapes[b][..., 3:6]) - from_b
        on_a, on_b = nearest(from_a, along_a, from_b, along_b)
        at_a, at_b = from_a + on_a * along_a, from_b + on_b * along_b
        apart = at_a - at_b
        far = np.linalg.norm(apart, axis=-1, keepdims=True)
        normal = apart / (far + 1e-6)
        radius_a, radius_b = self.shapes[a][..., 6:7], self.shapes[b][..., 6:7]
        point = 0.5 * (at_a - radius_a * normal + at_b + radius_b * normal)
        arms = point - self.place[a], point - self.place[b]
        v = self.velocity_at(a, arms[0]) - self.velocity_at(b, arms[1])
        pushed = pressure(radius_a + radius_b - far, normal, v, stiffness, damping)
        for bodies, arm, sign in ((a, arms[0], 1), (b, arms[1], -1)):
            np.add.at(force, bodies, sign * pushed)
            np.add.at(torque, bodies, sign * np.cross(arm, pushed))

    def velocity_at(self, bodies: Array, arm: Array) -> Array:
        """Return the velocity of a point of a body."""
        return np.asarray(self.velocity[bodies] + np.cross(self.spin[bodies], arm))

    # ---- what comes out --------------------------------------------------------------------------

    def results(self) -> Results:
        """Return the state in the form that the kernels store."""
        poses = np.concatenate([self.place, self.turn], axis=-1).transpose(0, 2, 1)
        motions = np.concatenate([self.velocity, self.spin], axis=-1).transpose(0, 2, 1)
        assert motions.shape[1] == MOTION
        return {
            "poses": poses,
            "motions": motions,
            "episodes": self.episodes.copy(),
            "live": self.live.copy(),
        }

    def momentum(self) -> tuple[Array, Array]:
        """Return the momentum of each environment as a whole: straight, and about the origin."""
        mass, inertia = 1 / self.masses[..., 0:1], 1 / self.masses[..., 1:2]
        straight = mass * self.velocity
        about = inertia * self.spin + np.cross(self.place, straight)
        return straight.sum(axis=0), about.sum(axis=0)


def reference(layout: Layout, begin: Start, frames: int, substeps: int) -> Outcome:
    """Compute what the kernels have to compute."""
    world = World(layout, begin)
    for _ in range(frames):
        world.frame(substeps)
    return Outcome(world.results(), world.broad, world.fall)


def pressure(depth: Array, normal: Array, v: Array, stiffness: float, damping: float) -> Array:
    """Return the force on a point that has sunk in by `depth`."""
    along = np.sum(v * normal, axis=-1, keepdims=True)
    sunk = np.maximum(depth, 0)
    held = np.minimum(sunk / SKIN, 1) * damping
    size = np.maximum(stiffness * sunk - held * along, 0)
    slip = v - along * normal
    speed = np.linalg.norm(slip, axis=-1, keepdims=True)
    return np.asarray(size * normal - np.minimum(FRICTION * size / (speed + SLOW), held) * slip)
