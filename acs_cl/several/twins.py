"""Twins: kernels of the first device, built for the other devices.

Input: an OpenCL kernel of a launch. Output: the same kernel in the context of another device. A
twin is built when a launch needs it, and kept as long as the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from ..devices.build import build, cut_at_blanks
from ..devices.driver import OwnKernel
from ..errors import DeviceError


class Twins:
    """Holds the kernels of a runtime for all of its devices."""

    def __init__(self, contexts: Sequence[cl.Context], devices: Sequence[cl.Device]) -> None:
        self._contexts = contexts
        self._devices = devices
        self._kernels: dict[tuple[OwnKernel, int], OwnKernel] = {}

    def kernel(self, kernel: OwnKernel, device: int) -> OwnKernel:
        """Return the kernel for a device; for the first device, the kernel itself."""
        if not device:
            return kernel
        found = self._kernels.get((kernel, device))
        if found is None:
            source, options, name = self._origin(kernel)
            context, chosen = self._contexts[device], self._devices[device]
            found = OwnKernel(build(context, chosen, source, options), name)
            found.signature = kernel.signature
            self._kernels[kernel, device] = found
        return found

    def _origin(self, kernel: OwnKernel) -> tuple[str, Sequence[str], str]:
        if kernel.origin is not None:
            source, options, name = kernel.origin
            return source, options, name
        try:
            program: cl.Program = kernel.get_info(cl.kernel_info.PROGRAM)  # type: ignore[assignment]
            source = str(program.get_info(cl.program_info.SOURCE))
            what = cl.program_build_info.OPTIONS
            words = str(program.get_build_info(self._devices[0], what))  # type: ignore[no-untyped-call]
        except cl.Error as error:
            raise DeviceError(
                f"the driver does not tell the source of kernel {kernel.function_name!r}, which "
                f"another device needs ({error})"
            ) from None
        return source, cut_at_blanks(words), kernel.function_name
