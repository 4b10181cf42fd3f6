"""silx: median filters, a convolution and a back-projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from silx.opencl.backprojection import Backprojection
from silx.opencl.convolution import Convolution
from silx.opencl.medfilt import MedianFilter2D


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Each a few times on the same image."""
    context = cl.create_some_context(interactive=False)
    image = np.random.default_rng(1).random((256, 256), np.float32)
    median = MedianFilter2D(image.shape, kernel_size=(5, 5), ctx=context)
    kernel = np.hanning(9).astype(np.float32)
    convolution = Convolution(image.shape, kernel, ctx=context)
    projection = Backprojection((60, 128), ctx=context)
    sinogram = image[:60, :128].copy()

    def repeat(function: Callable[..., Any], given: Any) -> Callable[[], list[Any]]:
        return lambda: [np.array(function(given)) for _ in range(5)]

    return {
        "median": repeat(median.medfilt2d, image),
        "convolution": repeat(convolution, image),
        "back-projection": repeat(projection.filtered_backprojection, sinogram),
    }
