"""Programs: a built OpenCL program whose kernels are attributes.

In: a PyOpenCL program with its source and options. Out: one `Kernel` for each name asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from .driver import OwnKernel
from .kernel import Kernel

if TYPE_CHECKING:
    from .runtime import Runtime


class Program:
    """A built OpenCL program; its kernels are attributes. Made by `Runtime.build`.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build("kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }")
    ...     x = rt.array([1.0, 2.0])
    ...     handle = prog.twice((2,), None, x)
    ...     print(prog.kernels, x.get())
    ('twice',) [2. 4.]
    """

    def __init__(self, runtime: Runtime, native: Any, source: str, options: Sequence[str]) -> None:
        self._runtime = runtime
        self._native = native
        self._source = source
        self._options = tuple(options)
        self._kernels: dict[str, Kernel] = {}

    @property
    def native(self) -> Any:
        """The `pyopencl.Program`."""
        return self._native

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels."""
        names = self._native.get_info(cl.program_info.KERNEL_NAMES)
        return tuple(name for name in names.split(";") if name)

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._kernels[name]
        except KeyError:
            pass
        try:
            native = OwnKernel(self._native, name)
        except cl.LogicError:
            raise AttributeError(
                f"the program has no kernel {name!r}; it has: {', '.join(self.kernels)}"
            ) from None
        kernel = self._kernels[name] = Kernel(
            self._runtime, self._native, native, name, self._source, self._options
        )
        return kernel
