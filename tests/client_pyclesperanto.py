"""pyclesperanto_prototype as a client: its filters against SciPy's. Run by clients.py, not here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cle: Any = pytest.importorskip("pyclesperanto_prototype")


def picture(seed: int) -> Any:
    return np.random.default_rng(seed).random((48, 64)).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic(seed: int) -> None:
    one, other = picture(seed), picture(seed + 10)
    found = cle.pull(cle.add_images_weighted(one, other, None, 2, -1))
    assert np.allclose(found, 2 * one - other, atol=1e-6)
    assert np.allclose(cle.pull(cle.multiply_images(one, other)), one * other)


@pytest.mark.parametrize("radius", [1, 2])
def test_box(radius: int) -> None:
    image = picture(1)
    found = np.asarray(cle.pull(cle.maximum_box(image, radius_x=radius, radius_y=radius)))
    inner = slice(radius, -radius)
    size = 2 * radius + 1
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    assert np.array_equal(found[inner, inner], windows.max((2, 3)))
    found = np.asarray(cle.pull(cle.mean_box(image, radius_x=radius, radius_y=radius)))
    assert np.allclose(found[inner, inner], windows.mean((2, 3)), atol=1e-5)


def test_sums_and_projections() -> None:
    image = picture(2)
    assert np.isclose(cle.sum_of_all_pixels(image), image.sum(), rtol=1e-4)
    assert np.isclose(cle.maximum_of_all_pixels(image), image.max())
    stack = np.stack([picture(seed) for seed in range(5)])
    assert np.array_equal(np.asarray(cle.pull(cle.maximum_z_projection(stack))), stack.max(0))


def test_a_pipeline() -> None:
    blobs = np.zeros((48, 64), np.float32)
    for row, column in ((8, 8), (8, 40), (30, 20), (40, 55)):
        blobs[row - 3 : row + 3, column - 3 : column + 3] = 1
    smooth = cle.gaussian_blur(cle.push(blobs), sigma_x=1, sigma_y=1)
    labels = cle.connected_components_labeling_box(cle.greater_constant(smooth, constant=0.5))
    assert cle.maximum_of_all_pixels(labels) == 4
