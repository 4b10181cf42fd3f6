"""Draw where rigid bodies begin: poses, motions and actions, by a seed.

Input: a `Layout`, a number of environments, a seed. Output: a `Start`.

Invariant: it is rounded to float32 once, here, and all computations start from the same values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.rigid_geometry import Array, rotate
from acs_cl.benchmarks.workloads.rigid_layout import MOTION, POSE, Layout, middle

WORN = 16
"""Up to two of so many environments begin with a body that has fallen."""


class Start(NamedTuple):
    """What a seed gives. `poses`: where each episode begins; `first`: the same, but some
    environments have just fallen. `phases`: of each actuator's wave."""

    poses: Array
    first: Array
    motions: Array
    phases: Array
    rates: Array


def start(layout: Layout, environments: int, seed: int) -> Start:
    """Draw a start by a seed. A batch begins in a pose of its own. Its environments differ a little
    from it, so that most of them are near to the same things."""
    rng = np.random.default_rng([seed, layout.bodies])
    model = layout.model
    height = rng.uniform(-0.04, 0.1)
    tilt = rng.normal(0, 0.12, (3, 1)) + rng.normal(0, 0.02, (3, environments))
    lifted = height + rng.uniform(0, 0.02, environments)
    speed = rng.normal(0, 0.3, (3, 1)) + rng.normal(0, 0.05, (3, environments))
    if model.planar:
        tilt[0], tilt[2], speed[1] = 0, 0, 0
    if any(part.fixed for part in model.parts):  # what is held does not begin elsewhere
        tilt[:], speed[:] = 0, 0
        lifted = 0.1 * lifted
    rest = np.concatenate([np.array([middle(e) for e in part.ends]) for part in model.parts])
    poses = _placed(rest, tilt, lifted)
    fallen = rng.permutation(environments) < rng.integers(0, 3) * environments // WORN
    lying = tilt.copy()
    lying[1, fallen] += 2.5
    motions = np.zeros((layout.bodies, MOTION, environments))
    motions[:, :3] = speed
    fixed = [part.fixed for part in model.parts for _ in part.ends]
    motions[fixed] = 0
    phases = rng.uniform(0, 2 * np.pi, (layout.actions, 1))
    spread = rng.normal(0, 0.1, (layout.actions, environments))
    return Start(
        poses.astype(np.float32),
        np.where(fallen, _placed(rest, lying, lifted), poses).astype(np.float32),
        motions.astype(np.float32),
        ((phases + spread) % (2 * np.pi)).astype(np.float32),
        rng.uniform(0.05, 0.3, layout.actions).astype(np.float32),
    )


def _placed(rest: Array, tilt: Array, lifted: Array) -> Array:
    """Return poses of the model as a whole, turned about the part that is watched, and lifted."""
    angle = np.linalg.norm(tilt, axis=0)
    axis = tilt / np.maximum(angle, 1e-9)
    turn = np.concatenate([axis * np.sin(angle / 2), np.cos(angle / 2)[None]])
    poses = np.zeros((len(rest), POSE, tilt.shape[1]))
    for pose, place in zip(poses, rest, strict=True):
        pose[:3] = rest[0][:, None] + rotate(turn.T, place - rest[0]).T
        pose[2] += lifted
        pose[3:7] = turn
    return poses
