"""Geometry of rigid bodies in NumPy: turns, angles of joints, segments.

Input: arrays whose last axis has the numbers of a vector, or of a quaternion x y z w. Output: the
same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def product(a: Array, b: Array) -> Array:
    """Multiply quaternions x y z w."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    straight = aw * bw - np.sum(av * bv, axis=-1, keepdims=True)
    return np.concatenate([aw * bv + bw * av + np.cross(av, bv), straight], axis=-1)


def rotate(q: Array, v: Array) -> Array:
    """Turn a vector by a quaternion, by its matrix."""
    x, y, z, w = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    each = [row[0] * v[..., 0] + row[1] * v[..., 1] + row[2] * v[..., 2] for row in rows]
    return np.stack(each, axis=-1)


def pivots(fixed: Array, moved: Array) -> tuple[list[Array], Array]:
    """Return axes in the world and angles of a joint, from the frames of both sides."""
    columns = [rotate(moved, axis) for axis in np.eye(3)]
    rows = [rotate(fixed, axis) for axis in np.eye(3)]
    matrix = [[np.sum(row * column, axis=-1) for column in columns] for row in rows]
    a = np.arctan2(-matrix[1][2], matrix[2][2])
    b = np.arcsin(np.clip(matrix[0][2], -1, 1))
    c = np.arctan2(-matrix[0][1], matrix[0][0])
    second = np.cos(a)[..., None] * rows[1] + np.sin(a)[..., None] * rows[2]
    return [rows[0], second, columns[2]], np.stack([a, b, c], axis=-1)


def nearest(from_a: Array, along_a: Array, from_b: Array, along_b: Array) -> tuple[Array, Array]:
    """Return how far along two segments their nearest points are. For nearly parallel ones it is
    the middle."""
    between = from_a - from_b
    aa, bb, ab, ar, br = (
        np.sum(u * v, axis=-1, keepdims=True)
        for u, v in (
            (along_a, along_a), (along_b, along_b), (along_a, along_b),
            (along_a, between), (along_b, between),
        )
    )  # fmt: skip
    even = 0.02 * aa * bb + 1e-6
    s = np.clip((ab * br - ar * bb + 0.5 * even) / (aa * bb - ab * ab + even), 0, 1)
    on_b = np.clip((ab * s + br) / (bb + 1e-6), 0, 1)
    return np.clip((ab * on_b - ar) / (aa + 1e-6), 0, 1), on_b
