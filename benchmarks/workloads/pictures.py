"""What dynamic networks look at: images whose means and textures differ from one to the next.

Input: how many, their side, a seed. Output: images of three colours.

Invariant: pixels are multiples of 1 / STEP, so that small networks can compute with them exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEP = 8
"""Pixels are multiples of 1 / STEP."""


def images(count: int, side: int, seed: int) -> np.ndarray[Any, Any]:
    """Draw waves and patches of colours. Means and textures differ from image to image."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    found = np.empty((count, 3, side, side))
    for image in found:
        for colour in image:
            colour[:] = random.normal(0, 0.5)
            for _ in range(3):
                fy, fx = random.normal(0, 12, 2)
                colour += random.gamma(1, 0.4) * np.sin(fy * y + fx * x + random.uniform(0, 6))
        top, left = random.integers(0, side // 2, 2)
        image[:, top : top + side // 3, left : left + side // 3] += random.normal(0, 1, (3, 1, 1))
    return np.rint(found * STEP) / STEP
