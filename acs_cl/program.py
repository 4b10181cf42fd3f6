"""Programs: a built OpenCL program whose kernels are attributes, and items.

Input: a PyOpenCL program with its source and options. Output: one `Kernel` for each name asked for,
and for each `pyopencl.Kernel` of other code that is launched.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyopencl as cl

from .access.hints import of_kernels
from .devices import foreign_programs
from .devices.build import build, cut_at_blanks, driver_options, macro_options, read_source
from .devices.driver import OwnKernel, own_clone
from .errors import DeviceError, UsageError, describe, no_copy, refuse_making
from .kernel import Kernel
from .opencl_c.kernel_files import kernel_source, with_spawn_header

if TYPE_CHECKING:
    from .launch.engine import Engine

ADOPTED = 1024
"""Foreign kernels that a runtime remembers."""

RELEASED = 256
"""Those of them whose programs the program has released; it may still have the kernels."""

LOOKED_AT = 32
"""After so many more, those beyond `RELEASED` are forgotten."""

NOTHING_TOLD = "", ("-cl-std=CL3.0",)
"""Source and options that the driver does not tell. They may be of any standard."""

_unknown = itertools.count(1)


class Program:
    """Holds a built OpenCL program; its kernels are attributes. `Runtime.build` makes one.

    A kernel with the name of a member of this class is an item: `prog["native"]`. As with a dict,
    `in` asks for names of kernels, and a loop goes through them.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build("kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }")
    ...     x = rt.array([1.0, 2.0])
    ...     handle = prog.twice((2,), None, x)
    ...     print(prog.kernels, x.get())
    ('twice',) [2. 4.]
    """

    def __new__(cls, *parts: object) -> Program:
        """Refuse what a program may try."""
        refuse_making(cls, parts)
        return super().__new__(cls)

    def __init__(
        self, engine: Engine, native: cl.Program, source: str, options: Sequence[str]
    ) -> None:
        self._engine = engine
        self._native = native
        self._source = source
        self._options = tuple(options)
        self._known: dict[str, Kernel] = {}

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse names of kernels: they come from the source."""
        if not name.startswith("_"):
            raise AttributeError(f"attributes of a program are its kernels; {name!r} cannot be set")
        super().__setattr__(name, value)

    @property
    def native(self) -> cl.Program:
        """Return the `pyopencl.Program`."""
        return self._native

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the names of its kernels."""
        try:  # the count first: NVIDIA's driver ends the process when it is to name none
            if not self._native.get_info(cl.program_info.NUM_KERNELS):
                return ()
            names = str(self._native.get_info(cl.program_info.KERNEL_NAMES))
        except cl.LogicError as error:  # the answer of OpenCL for a program that has none
            if error.code != cl.status_code.INVALID_PROGRAM_EXECUTABLE:
                raise
            return ()
        return tuple(name for name in names.split(";") if name)

    def __repr__(self) -> str:
        return f"<acs_cl.Program with {', '.join(self.kernels) or 'no kernels'}>"

    def __reduce__(self) -> NoReturn:
        no_copy(self, "a program", "send its source, and build that there")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.kernels})

    def __contains__(self, name: object) -> bool:
        """Tell whether it has a kernel of that name."""
        return name in self.kernels

    def __iter__(self) -> Iterator[str]:
        """Go through the names of its kernels, as through the keys of a dict."""
        return iter(self.kernels)

    def __getattr__(self, name: str) -> Kernel:
        """Make a kernel that was not asked for before. From then on it is a normal attribute,
        because coming here takes Python longer than a launch."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        # a member of that name stays: loading asks for any kernel in this way
        kernel = self._kernel(name)
        vars(self).setdefault(name, kernel)
        return kernel

    def __getitem__(self, name: str) -> Kernel:
        """Return the kernel of that name, whatever it is."""
        try:
            return self._kernel(name)
        except AttributeError as error:
            raise UsageError(str(error)) from None

    def _kernel(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise UsageError(f"kernels of a program have names, got {describe(name)}")
        known = self._known.get(name)
        if known is not None:
            return known
        try:
            native = OwnKernel(self._native, name)
        except (cl.Error, TypeError) as error:  # of names that are no UTF-8, it is the latter
            if name in self.kernels:
                raise DeviceError(
                    f"the driver cannot make kernel {name!r}, though the program has built: {error}"
                ) from None
            raise AttributeError(
                f"the program has no kernel {name!r}; it has: {', '.join(self.kernels) or 'none'}"
                f"{of_kernels(name, self.kernels)}"
            ) from None
        kernel = Kernel(self._engine, self._native, native, name, self._source, self._options)
        return self._known.setdefault(name, kernel)  # another thread may have made it meanwhile


def source_text(source: str | Path) -> str:
    """Read the text to build. Add the header of spawned items if the text includes it."""
    return with_spawn_header(read_source(source))


def engine_of(program: Program) -> Engine:
    """Return the engine of a program's runtime. As a member it would hide a kernel of that name."""
    return program._engine


def adopted_kernel(engine: Engine, native: object) -> Kernel:
    """Return our kernel for a foreign `pyopencl.Kernel`. It is a clone, so that the caller's
    arguments stay."""
    if not isinstance(native, cl.Kernel):
        hint = f"; write program.{native}(…)" if isinstance(native, str) else ""
        raise UsageError(f"launch takes a pyopencl.Kernel, got {describe(native)}{hint}")
    key = key_of(native)
    with engine.lock:
        known = engine.programs.get(key)
        if known is None:
            if native.get_info(cl.kernel_info.CONTEXT) != engine.context:
                raise UsageError(
                    f"kernel {native.function_name!r} belongs to another context; make the runtime "
                    "with context="
                )
            many = len(engine.programs)
            if many and many % LOOKED_AT == 0:
                _forget_released(engine.programs)
            if many >= ADOPTED:
                engine.programs.pop(next(iter(engine.programs)), None)
            # the program is kept too, so that no other program gets its address
            known = engine.programs[key] = _adopt(engine, native)
    found: Kernel = known[0]
    return found


def _forget_released(programs: dict[Any, tuple[Kernel, Any]]) -> None:
    """Forget the oldest kernels of programs that were released."""
    held = foreign_programs.is_held
    keys = [key for key, (kernel, *_) in programs.items() if not held(kernel.program)]
    for key in keys[:-RELEASED]:
        del programs[key]


def key_of(native: Any) -> tuple[int, str]:
    """Return a key shared by kernels of the same program and name. The kernel keeps the key, so a
    kernel of an unknown program differs from all others."""
    key: tuple[int, str] | None = getattr(native, "acs_key", None)
    if key is None:
        program = _program_of(native)
        number = -next(_unknown) if program is None else program.int_ptr
        key = native.acs_key = number, native.function_name
    return key


def _program_of(native: cl.Kernel) -> Any:
    """Return a kernel's program. None: the driver does not tell. Intel's CPU runtime does not once
    the program's owner has released it."""
    try:
        return native.get_info(cl.kernel_info.PROGRAM)
    except cl.Error:
        return None


def own_kernels(
    engine: Engine,
    file: str,
    touches: Mapping[str, Mapping[str, str]],
    macros: Mapping[str, object],
) -> list[Kernel]:
    """Build a file of the library's own. Return kernels of it, which touch what is said by kernel
    and parameter. Until a scheduler has them they cut epochs, which are too small then to be worth
    building one. So one is asked for them at once."""
    text, options = kernel_source(file), driver_options(engine.context, macro_options(macros))
    program = Program(engine, build(engine.context, engine.device, text, options), text, options)
    kernels = [program[name].access(**modes) for name, modes in touches.items()]
    for kernel in kernels:
        kernel.native.ask_at_once()
    return kernels


def _told_options(engine: Engine, program: Any) -> str:
    """Return the options that the driver names. Rusticl names none of a program from a binary."""
    found: str = program.get_build_info(engine.device, cl.program_build_info.OPTIONS)
    return found


def options_of(engine: Engine, native: cl.Kernel) -> tuple[str, ...]:
    """Return the options by which a kernel was compiled."""
    program = _program_of(native)
    return (NOTHING_TOLD if program is None else _source_of(engine, program))[1]


def _adopt(engine: Engine, native: cl.Kernel) -> tuple[Kernel, Any]:
    program, name = _program_of(native), native.function_name
    if program is not None:
        own = OwnKernel(program, name)
        return Kernel(engine, program, own, name, *_source_of(engine, program)), program
    try:
        own = own_clone(native)
    except cl.Error as error:
        raise DeviceError(
            f"the driver neither tells which program {name!r} belongs to nor copies the kernel "
            f"({error}); build the program with Runtime.build"
        ) from None
    return Kernel(engine, None, own, name, *NOTHING_TOLD), None


def _source_of(engine: Engine, program: Any) -> tuple[str, tuple[str, ...]]:
    """Return the source and the options. Of a program without a source, which was linked or is a
    binary, drivers do not tell by which options it was compiled."""
    try:
        handle = program.int_ptr
        source = foreign_programs.source_of(handle) or program.get_info(cl.program_info.SOURCE)
        options = _told_options(engine, program) or foreign_programs.options_of(handle)
    except cl.Error:
        return NOTHING_TOLD
    return (source, cut_at_blanks(options)) if source else NOTHING_TOLD
