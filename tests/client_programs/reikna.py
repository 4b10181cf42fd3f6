"""reikna: Fourier transforms and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from reikna.cluda import ocl_api
from reikna.fft import FFT
from reikna.linalg import MatrixMul


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Each in a chain."""
    thread = ocl_api().Thread.create()
    start = np.random.default_rng(1).random((64, 256)).astype(np.complex64)
    transform = FFT(start, axes=(1,)).compile(thread)
    matrix = np.random.default_rng(2).random((128, 128)).astype(np.float32) / 64
    product = MatrixMul(matrix, matrix).compile(thread)

    def fourier() -> list[Any]:
        x = thread.to_device(start)
        for _ in range(10):
            transform(x, x)
            transform(x, x, inverse=True)
        return [x.get()]

    def products() -> list[Any]:
        a, b, c = (thread.to_device(matrix) for _ in range(3))
        for _ in range(10):
            product(c, a, b)
            product(b, a, c)
        return [b.get()]

    return {"Fourier": fourier, "matrix products": products}
