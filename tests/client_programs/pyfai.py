"""pyFAI: azimuthal integration of images by a sparse matrix on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
from pyFAI.integrator.azimuthal import AzimuthalIntegrator
from pyFAI.opencl.azim_csr import OCL_CSR_Integrator


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Ten images."""
    context = cl.create_some_context(interactive=False)
    shape = 256, 256
    integrator = AzimuthalIntegrator(
        dist=0.1, poni1=0.0128, poni2=0.0128, pixel1=1e-4, pixel2=1e-4, wavelength=1e-10
    )
    engine = integrator.setup_sparse_integrator(
        shape, 200, unit="q_nm^-1", split="bbox", algo="CSR", scale=False
    )
    on_device = OCL_CSR_Integrator(engine.lut, int(np.prod(shape)), ctx=context, empty=0.0)
    images = np.random.default_rng(1).random((10, *shape), np.float32)

    def integrate() -> list[Any]:
        return [np.array(on_device.integrate_ng(image).intensity) for image in images]

    return {"integration": integrate}
