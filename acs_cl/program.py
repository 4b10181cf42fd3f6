"""Programs: a built OpenCL program whose kernels are attributes.

In: a PyOpenCL program with its source and options. Out: one `Kernel` for each name asked for; and
for each `pyopencl.Kernel` of other code that is launched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from .access import describe
from .building import cut_at_blanks
from .driver import OwnKernel
from .errors import DeviceError, UsageError
from .kernel import Kernel

if TYPE_CHECKING:
    from .runtime import Runtime

ADOPTED = 1024
"""Foreign kernels remembered by a runtime."""


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

    def __repr__(self) -> str:
        return f"<acs_cl.Program with {', '.join(self.kernels) or 'no kernels'}>"

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


def adopted_kernel(runtime: Runtime, native: Any) -> Kernel:
    """Our kernel for a foreign `pyopencl.Kernel`: its own clone, so that the caller's arguments
    stay."""
    if not isinstance(native, cl.Kernel):
        raise UsageError(f"launch takes a pyopencl.Kernel, got {describe(native)}")
    try:
        program: Any = native.get_info(cl.kernel_info.PROGRAM)
    except cl.Error as error:  # Intel's CPU runtime
        raise DeviceError(
            f"the driver does not tell which program {native.function_name!r} belongs to "
            f"({error}); build the program with Runtime.build"
        ) from None
    name = native.function_name
    key = (program.int_ptr, name)
    with runtime._lock:
        known = runtime._programs.get(key)
        if known is None:
            if native.get_info(cl.kernel_info.CONTEXT) != runtime.context:
                raise UsageError(
                    f"kernel {name!r} belongs to another context; make the runtime with context="
                )
            if len(runtime._programs) >= ADOPTED:
                del runtime._programs[next(iter(runtime._programs))]
            clone = OwnKernel(program, name)
            kernel = Kernel(runtime, program, clone, name, *_source_of(runtime, program))
            # the program is kept too, so that its address is not given to another
            known = runtime._programs[key] = (kernel, program)
    found: Kernel = known[0]
    return found


def _source_of(runtime: Runtime, program: Any) -> tuple[str, tuple[str, ...]]:
    try:
        source = program.get_info(cl.program_info.SOURCE)
        options = program.get_build_info(runtime.device, cl.program_build_info.OPTIONS)
    except cl.Error:
        return "", ()
    return source, cut_at_blanks(options)
