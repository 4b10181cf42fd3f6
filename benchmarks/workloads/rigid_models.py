"""Describe the five bodies: their parts, joints, and possible contacts.

Input: nothing. Output: `MODELS`. Parts, joints and contacts come in groups of like ones, and a
kernel launch works on one group. Trees and numbers of degrees of freedom are those of the
well-known MuJoCo models. Lengths are close to theirs; masses and gains are our own.

Invariant: at rest no part is turned, so that axes and ends are given in the world's axes. z is up,
the ground is z = 0. The part that is watched comes first, and its group has one part.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

Vector = tuple[float, float, float]
X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)


class Parts(NamedTuple):
    """Like parts: capsules between two ends, spheres where both are the same. `half`: half the
    sides of its box. What is `fixed` does not move."""

    name: str
    mass: float
    ends: tuple[tuple[Vector, Vector], ...]
    radius: float
    half: Vector | None = None
    fixed: bool = False


class Joints(NamedTuple):
    """Like joints, the n-th between the n-th of `child` and the n-th, or the only one, of `parent`.
    There are as many degrees of freedom as `limits` (in degrees); an axis of rotation for each
    of the first two. `gears`: the greatest torque of each actuator."""

    name: str
    parent: str
    child: str
    at: tuple[Vector, ...]
    axes: tuple[tuple[Vector, ...], ...]
    limits: tuple[tuple[float, float], ...]
    gears: tuple[float, ...]


class Contacts(NamedTuple):
    """Like pairs of colliders; the kind names their kernel. With the ground, each of `first` is
    one; else `pairs` says which of `first` may touch which of `second`. The sphere of a part is at
    its second end."""

    kind: str
    first: str
    second: str = ""
    pairs: tuple[tuple[int, int], ...] = ()


class Fall(NamedTuple):
    """An episode ends where the part that is watched is lower, less upright (the cosine of its
    angle with z), or farther from the origin than this."""

    low: float
    upright: float
    far: float


class Model(NamedTuple):
    """A body. A `planar` one stays in the plane of x and z."""

    name: str
    parts: tuple[Parts, ...]
    joints: tuple[Joints, ...]
    contacts: tuple[Contacts, ...]
    fall: Fall
    planar: bool = False


SPHERE, CAPSULE, BOX = "sphere_plane", "capsule_plane", "box_plane"
PAIR = "capsule_capsule"


def _ant() -> Model:
    """Make a torso and four legs of two parts. Front and hind legs are groups of their own."""
    z = 0.62
    sides = {"front": ((1, 1), (1, -1)), "hind": ((-1, 1), (-1, -1))}
    parts = [Parts("torso", 6.0, (((0, 0, z), (0, 0, z)),), 0.25)]
    joints = []
    contacts = [Contacts(SPHERE, "torso")]
    for side, ways in sides.items():
        hips = tuple((0.2 * x, 0.2 * y, z) for x, y in ways)
        knees = tuple((0.42 * x, 0.42 * y, z) for x, y in ways)
        feet = tuple((0.72 * x, 0.72 * y, z - 0.5) for x, y in ways)
        thighs, shins = f"{side} thighs", f"{side} shins"
        parts.append(Parts(thighs, 1.2, tuple(zip(hips, knees, strict=True)), 0.08))
        parts.append(Parts(shins, 1.2, tuple(zip(knees, feet, strict=True)), 0.08))
        across = tuple(((-y / sqrt(2), x / sqrt(2), 0.0), Z) for x, y in ways)
        joints += [
            Joints(f"{side} hips", "torso", thighs, hips, ((Z, X),) * 2, ((-35, 35),), (8,)),
            Joints(f"{side} ankles", thighs, shins, knees, across, ((-45, 30),), (7,)),
        ]
        contacts += [
            Contacts(CAPSULE, thighs),
            Contacts(SPHERE, shins),
            Contacts(PAIR, shins, shins, ((0, 1),)),
        ]
    contacts.append(Contacts(PAIR, "front shins", "hind shins", ((0, 0), (1, 1))))
    return Model("ant", tuple(parts), tuple(joints), tuple(contacts), Fall(0.22, 0.0, 50))


def _cheetah() -> Model:
    """Make a long torso, a hind and a front leg of three parts."""
    z = 0.7
    hips = ((-0.5, 0.0, z), (0.5, 0.0, z))
    knees = ((-0.35, 0.0, z - 0.24), (0.38, 0.0, z - 0.24))
    ankles = ((-0.55, 0.0, z - 0.46), (0.5, 0.0, z - 0.44))
    toes = ((-0.4, 0.0, z - 0.62), (0.6, 0.0, z - 0.6))
    side = ((Y, X),) * 2
    return Model(
        "cheetah",
        (
            Parts("torso", 6.0, ((hips[0], hips[1]),), 0.05),
            Parts("thighs", 1.5, tuple(zip(hips, knees, strict=True)), 0.046),
            Parts("shins", 1.2, tuple(zip(knees, ankles, strict=True)), 0.046),
            Parts("feet", 0.8, tuple(zip(ankles, toes, strict=True)), 0.046),
        ),
        (
            Joints("hips", "torso", "thighs", hips, side, ((-45, 45),), (12,)),
            Joints("knees", "thighs", "shins", knees, side, ((-50, 50),), (7,)),
            Joints("ankles", "shins", "feet", ankles, side, ((-30, 40),), (3,)),
        ),
        (
            Contacts(CAPSULE, "torso"),
            Contacts(CAPSULE, "thighs"),
            Contacts(CAPSULE, "shins"),
            Contacts(CAPSULE, "feet"),
            Contacts(PAIR, "shins", "shins", ((0, 1),)),
            Contacts(PAIR, "feet", "feet", ((0, 1),)),
            Contacts(PAIR, "feet", "torso", ((0, 0), (1, 0))),
        ),
        Fall(0.15, 0.2, 50),
        planar=True,
    )


def _walker2d() -> Model:
    """Make a torso on two legs of three parts. The legs pass each other."""
    sides = (-1, 1)
    hips = tuple((0.0, 0.06 * y, 1.05) for y in sides)
    knees = tuple((0.0, 0.06 * y, 0.6) for y in sides)
    ankles = tuple((0.0, 0.06 * y, 0.12) for y in sides)
    toes = tuple((0.2, 0.06 * y, 0.08) for y in sides)
    side = ((Y, X),) * 2
    return Model(
        "walker2d",
        (
            Parts("torso", 5.0, (((0, 0, 1.05), (0, 0, 1.5)),), 0.06),
            Parts("thighs", 2.5, tuple(zip(hips, knees, strict=True)), 0.05),
            Parts("shins", 2.0, tuple(zip(knees, ankles, strict=True)), 0.04),
            Parts("feet", 1.0, tuple(zip(ankles, toes, strict=True)), 0.06),
        ),
        (
            Joints("hips", "torso", "thighs", hips, side, ((-60, 25),), (20,)),
            Joints("knees", "thighs", "shins", knees, side, ((0, 80),), (15,)),
            Joints("ankles", "shins", "feet", ankles, side, ((-40, 40),), (4,)),
        ),
        (
            Contacts(CAPSULE, "torso"),
            Contacts(CAPSULE, "thighs"),
            Contacts(CAPSULE, "shins"),
            Contacts(CAPSULE, "feet"),
        ),
        Fall(0.9, 0.6, 50),
        planar=True,
    )


_HUMANOID_CONTACTS = (
    Contacts(CAPSULE, "torso"),
    Contacts(CAPSULE, "pelvis"),
    Contacts(CAPSULE, "thighs"),
    Contacts(SPHERE, "shins"),
    Contacts(SPHERE, "upper arms"),
    Contacts(SPHERE, "lower arms"),
    Contacts(PAIR, "thighs", "thighs", ((0, 1),)),
    Contacts(PAIR, "shins", "shins", ((0, 1),)),
    Contacts(PAIR, "lower arms", "torso", ((0, 0), (1, 0))),
    Contacts(PAIR, "lower arms", "thighs", ((0, 0), (1, 1))),
)


def _humanoid() -> Model:
    """Make eleven parts with seventeen degrees of freedom."""
    sides = (-1, 1)
    hips = tuple((0.0, 0.1 * y, 0.9) for y in sides)
    knees = tuple((0.0, 0.1 * y, 0.5) for y in sides)
    feet = tuple((0.0, 0.1 * y, 0.1) for y in sides)
    shoulders = tuple((0.0, 0.22 * y, 1.4) for y in sides)
    elbows = tuple((0.0, 0.38 * y, 1.22) for y in sides)
    hands = tuple((0.16, 0.3 * y, 1.08) for y in sides)
    return Model(
        "humanoid",
        (
            Parts("torso", 8.0, (((0, -0.1, 1.38), (0, 0.1, 1.38)),), 0.12),
            Parts("waist", 3.0, (((0, -0.06, 1.14), (0, 0.06, 1.14)),), 0.1),
            Parts("pelvis", 5.0, (((0, -0.08, 0.98), (0, 0.08, 0.98)),), 0.1),
            Parts("thighs", 4.0, tuple(zip(hips, knees, strict=True)), 0.06),
            Parts("shins", 2.5, tuple(zip(knees, feet, strict=True)), 0.06),
            Parts("upper arms", 1.6, tuple(zip(shoulders, elbows, strict=True)), 0.04),
            Parts("lower arms", 1.2, tuple(zip(elbows, hands, strict=True)), 0.04),
        ),
        (
            Joints(
                "abdomen", "torso", "waist", ((0, 0, 1.24),), ((Z, Y),),
                ((-40, 40), (-60, 30)), (12, 12),
            ),
            Joints(
                "pelvis", "waist", "pelvis", ((0, 0, 1.06),), ((X, Y),), ((-30, 30),), (8,)
            ),
            Joints(
                "hips", "pelvis", "thighs", hips, ((X, Y),) * 2,
                ((-25, 10), (-70, 20), (-40, 40)), (15, 25, 12),
            ),
            Joints("knees", "thighs", "shins", knees, ((Y, X),) * 2, ((0, 100),), (15,)),
            Joints(
                "shoulders", "torso", "upper arms", shoulders, ((X, Y),) * 2,
                ((-60, 60), (-60, 60)), (4, 4),
            ),
            Joints(
                "elbows", "upper arms", "lower arms", elbows, ((Z, X), (Z, X)), ((-50, 50),), (2,)
            ),
        ),
        _HUMANOID_CONTACTS,
        Fall(1.0, 0.3, 50),
    )  # fmt: skip


def _grasp() -> Model:
    """Make a palm that is held, and four fingers of three parts around an object."""
    ways = ((1, 0), (0, 1), (-1, 0), (0, -1))
    roots = tuple((0.1 * x, 0.1 * y, 0.5) for x, y in ways)
    middles = tuple((0.22 * x, 0.22 * y, 0.42) for x, y in ways)
    ends = tuple((0.22 * x, 0.22 * y, 0.26) for x, y in ways)
    tips = tuple((0.2 * x, 0.2 * y, 0.1) for x, y in ways)
    across = tuple(((-float(y), float(x), 0.0), Z) for x, y in ways)
    ring = tuple((n, (n + 1) % 4) for n in range(4))
    onto = tuple((n, 0) for n in range(4))
    return Model(
        "grasp",
        (
            Parts("object", 0.5, (((0, 0, 0.07), (0, 0, 0.21)),), 0.05, half=(0.06, 0.06, 0.12)),
            Parts("palm", 5.0, (((0, 0, 0.5), (0, 0, 0.5)),), 0.1, fixed=True),
            Parts("roots", 0.4, tuple(zip(roots, middles, strict=True)), 0.03),
            Parts("middles", 0.3, tuple(zip(middles, ends, strict=True)), 0.03),
            Parts("tips", 0.25, tuple(zip(ends, tips, strict=True)), 0.03, half=(0.03, 0.03, 0.1)),
        ),
        (
            Joints("knuckles", "palm", "roots", roots, across, ((-40, 40), (-15, 15)), (0.7, 0.3)),
            Joints("second joints", "roots", "middles", middles, across, ((-50, 50),), (0.4,)),
            Joints("last joints", "middles", "tips", ends, across, ((-50, 50),), (0.2,)),
        ),
        (
            Contacts(BOX, "object"),
            Contacts(BOX, "tips"),
            Contacts(CAPSULE, "middles"),
            Contacts(PAIR, "tips", "object", onto),
            Contacts(PAIR, "middles", "object", onto),
            Contacts(PAIR, "tips", "tips", ring),
            Contacts(SPHERE, "roots"),
        ),
        Fall(0.0, 0.6, 0.6),
    )


MODELS = {model.name: model for model in (_ant(), _grasp(), _humanoid(), _cheetah(), _walker2d())}
