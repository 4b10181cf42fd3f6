"""Kernels: from a call in PyOpenCL's order to a launch.

Input: calls `kernel(global_size, local_size, *args)`. Output: `KernelCommand` and `Access` for the
runtime.

A call comes to the core's `Caller` first. If one like it was made before, the core makes the launch
by itself, from the kernel's launch plan (`plans`). First and unusual calls go to `Kernel._call`.
The core binds their arguments, too (`access.binder`). Unusual arguments are converted before
(`Kernel._usual`), which knows every case and every error.
"""

# Long because: somebody has to know every argument there is, and every wrong one by name.

from __future__ import annotations

import struct
from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import pyopencl as cl

from . import core
from .access import arguments, elements, hints, scalars
from .access.binder import MOST_RUNS, Bound, binder
from .access.called import Arguments
from .access.cuts import AUTO, asked
from .access.signature import Parameter, Signature, by_arguments
from .banded import POISONED, Bands, launched, left_whole
from .conditions import Deciding, Guards, size
from .devices.build import build
from .devices.driver import Events, OwnKernel, is_svm, own_clone
from .errors import CheckWarning, UsageError, describe, no_attribute
from .host.call_sites import warn_there
from .launch import spawning as spawns
from .launch.commands import KernelCommand
from .launch.gates import events_of
from .launch.sizes import MOST, Unsuitable
from .memory.array import Array
from .plans import plan_bands, plan_launches
from .records import Access, Sizes, Span, interval

if TYPE_CHECKING:
    from .handle import Handle
    from .launch.engine import Engine

_new = tuple.__new__


class Kernel(core.native.Caller):
    """Launches its kernel when called: `kernel(global_size, local_size, *args)`.

    That is PyOpenCL's order, without the queue. Sizes are tuples of 1 to 3 integers, and count
    work-items. `local_size` may be None. The first global size may be `acs.size`. A call returns a
    `Handle` at once, and raises `UsageError` if it is wrong. Keywords:

    - `reads=`, `writes=`: arrays or views that replace what was inferred for the bases that they
      name.
    - `wait_for=`: a list of events of other queues.
    - `offset=`: the global offset.
    - `when=`: one uint32 or int32 on the device. The kernel runs only if it is not zero at the
      start.
    - `bands=`: how the launch is cut: a number, 'auto', 'off', `acs.Row()`, `acs.Tile(rows,
      columns)` or `acs.Strided(parts)`.
    - `spawn=`: what happens to items that it spawns: an `acs.Spawn` or the name of a controller.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''kernel void add(global const float *x, global float *y, float a)
    ...                        { int i = get_global_id(0); y[i] = x[i] + a; }''')
    ...     x, y = rt.zeros(4, "f4"), rt.empty(4, "f4")
    ...     handle = prog.add((4,), None, x, y, 3)
    ...     print([(p.name, p.mode) for p in prog.add.signature.parameters], y.get())
    [('x', 'r'), ('y', 'w'), ('a', '')] [3. 3. 3. 3.]
    """

    engine: Engine

    if TYPE_CHECKING:  # the core has it, for any arguments

        def __call__(
            self,
            global_size: object,
            local_size: object,
            *args: object,
            reads: object = None,
            writes: object = None,
            wait_for: Events = None,
            offset: object = None,
            when: object = None,
            bands: object = None,
            spawn: object = None,
        ) -> Handle:
            """Launch."""

    else:  # a type checker would take any name then
        __getattr__ = no_attribute

    def __getitem__(self, sizes: object) -> NoReturn:
        raise UsageError(
            f"kernel {self.name!r}: sizes are the first arguments of a call: "
            "kernel(global_size, local_size, …), where global_size counts work-items, not groups"
        )

    def __init__(
        self,
        engine: Engine,
        program: Any,
        native: OwnKernel,
        name: str,
        source: str,
        options: tuple[str, ...],
    ) -> None:
        self.engine = engine
        self._program = program
        self._native = native
        native.origin = source, options, name
        self.name = name
        self.source = source
        self.options = options
        self._signature: Signature | None = None
        self._is_new = True
        self.standing: Any = None
        self._sources: dict[tuple[int, ...], tuple[str, str]] = {(): (source, name)}
        self._variants: dict[tuple[int, ...], tuple[Any, str]] = {}
        self._clones: dict[tuple[tuple[int, ...], tuple[bool, ...]], Any] = {}
        self._bands = Bands()
        self.guards: Guards | None = None
        self._ranges: bool | None = None
        self._binder: core.native.Binder | None = None
        self.is_for_python = False

    def __repr__(self) -> str:
        return f"<acs_cl.Kernel {self.name}>"

    @property
    def native(self) -> OwnKernel:
        """Return the runtime's own `pyopencl.Kernel`. Its arguments change with every launch."""
        return self._native

    @property
    def signature(self) -> Signature:
        """Return its parameters, and what it may do to the memory behind them."""
        if self._signature is None:
            from .access.inference import signature_of

            self._signature = by_arguments(
                signature_of(self._native, self.source, self.options, self.engine.device),
                self.engine.options.dependencies,
            )
            self._native.signature = self._signature
            self.engine.kernels.add(self)
        return self._signature

    @property
    def binder(self) -> core.native.Binder:
        """Return the binder for the arguments of its launches."""
        if self._binder is None:
            signature = self.signature
            everything = bool(signature.anywhere)
            more = (self.globals_span(),) if signature.program_globals else ()
            self._binder = binder(
                signature,
                self._ranges is not False,
                arguments.ALL if everything else more,
                everything,
            )
            self._binder.most = -1 if self._ranges else MOST_RUNS
        return self._binder

    @property
    def infer_ranges(self) -> bool | None:
        """Say whether a launch counts only the bytes of its views that the body can reach.

        False: each view counts as a whole. True: always. None, the default: yes, up to very many
        different sizes and numbers. After that each view counts as a whole.
        """
        return self._ranges

    @infer_ranges.setter
    def infer_ranges(self, value: bool | None) -> None:
        if value not in (None, False, True):
            raise UsageError(f"infer_ranges={value!r}: expected True, False or None")
        self._ranges = value
        self._binder = None
        self._forget()

    def _call(
        self,
        global_size: object = ...,
        local_size: object = ...,
        *args: object,
        reads: object = None,
        writes: object = None,
        wait_for: Events = None,
        offset: object = None,
        when: object = None,
        bands: object = None,
        spawn: object = None,
        **unknown: object,
    ) -> Handle:
        """Launch what the core has no plan for, or what is unusual."""
        if local_size is ...:
            takes = ", ".join(parameter.name for parameter in self.signature.parameters)
            raise UsageError(
                f"kernel {self.name!r}: a launch takes global size, local size (or None), and its "
                f"arguments: ({takes})"
            )
        if unknown:
            names = [parameter.name for parameter in self.signature.parameters]
            raise UsageError(
                f"kernel {self.name!r}: a launch has no keyword {', '.join(unknown)}"
                f"{hints.of_keywords(unknown, names)}"
            )
        wait_for = events_of(wait_for)
        if self.engine.tracer is not None:
            self.engine.tracer.called()
        if type(global_size) is not tuple:
            global_size = _sizes(global_size, "global_size", self.name)
        for length in global_size:
            if length.__class__ is not int or not 0 < length <= MOST:
                global_size = self._lengths(global_size, "global size", decides=True)
                break
        if local_size is not None:
            if type(local_size) is not tuple:
                local_size = _sizes(local_size, "local_size", self.name)
            for length in local_size:
                if length.__class__ is not int or not 0 < length <= MOST:
                    local_size = self._lengths(local_size, "local size")
                    break
        if offset is not None:
            offset = self._offset(offset)
        required = self.signature.group_size
        if local_size or required or offset is not None or not 0 < len(global_size) <= 3:
            try:
                self.engine.sizes.check(global_size, local_size, offset, required)
            except Unsuitable as why:
                raise UsageError(f"{self.label()}: {why}") from None
        graph = self.engine.recorder()
        if graph is not None and not graph.is_capturing:
            return graph.capture(
                self, global_size, local_size, *args,
                reads=reads, writes=writes, wait_for=wait_for, offset=offset, when=when,
                bands=bands, spawn=spawn,
            )  # fmt: skip
        plain = reads is None and writes is None and offset is None and self.standing is None
        items = None if spawn is None else spawns.asked(spawn)
        if when is not None or (global_size and global_size[0].__class__ is size):
            deciding = Deciding(self, global_size, when)
            global_size = deciding.global_size
        else:
            deciding = None
        narrows = self.standing is None and not (deciding is not None and deciding.counts)
        native, bound = self._bind(args, global_size, local_size, offset, narrows)
        if self._is_new:
            self._look_at_types(args)
        access = bound.access
        many = asked(self.engine.options.bands if bands is None else bands)
        cut = None
        if many:
            how = deciding is not None, reads is not None or writes is not None
            cut = self._bands.cut(self, many, native, bound, global_size, offset, *how)
        if self.standing is not None or reads is not None or writes is not None:
            access = self._declare(access, global_size, local_size, offset, args, reads, writes)
        command = _new(
            KernelCommand,
            (
                self.name, native, global_size, local_size, bound.pointers, bound.values, offset,
                cut, items, "",
            ),
        )  # fmt: skip
        variant = None
        whole = ""
        if cut is not None and graph is None:
            parts = self._bands.parts(self.engine, command, access)
            if isinstance(parts, str):
                whole = parts
            else:
                made = launched(self.engine, command, access, parts, wait_for)
                if not isinstance(made, str):
                    if plain and items is None and many != AUTO:
                        said = None if bands is None else many
                        plan_bands(self, command, said, parts, args)
                    return made
                whole = made
            if self.engine.checker is None:
                command = command._replace(cut=None)
        if deciding is None:
            if plain and narrows and self.binder.has_ranges and self.engine.is_several:
                handle = self._launch_or_spread(command, access, bound, wait_for)
            else:
                handle = self.engine.launch(command, access, wait_for)
        else:
            handle = deciding.launch(command, access, wait_for)
            if deciding.counts:
                return handle
            variant = deciding.variant
        # with bands by default, only a call without bands= says what the next one is
        is_usual = bands is None and deciding is None and whole != POISONED
        if plain and items is None and (is_usual or not asked(self.engine.options.bands)):
            # a graph keeps commands, and makes tasks of them
            plan_launches(self, command, graph is not None, args, handle.number, variant)
        return left_whole(self.engine, handle, whole) if whole else handle

    def _launch_or_spread(
        self, command: KernelCommand, access: Access, bound: Bound, wait_for: Events
    ) -> Handle:
        """Launch on one of several devices, or in parts on all of them."""
        views, numbers = bound.views, bound.numbers

        def access_of(global_size: Sizes, offset: Sizes) -> Access:
            if views is None or numbers is None:
                return bound.whole
            return self.binder.touched(
                views, numbers, global_size, command.local_size, offset, None
            )

        return self.engine.launch_kernel(command, access, self.source, access_of, wait_for)

    def launch_many(
        self,
        global_size: object,
        local_size: object,
        *args: object,
        count: int | None = None,
        wait_for: Events = None,
        when: object = None,
    ) -> Any:
        """Launch many times by one call, like a loop of calls at a fraction of the cost.

        Each argument is one value for all launches, or has one for each: a list or tuple of arrays,
        a NumPy array or list of numbers. Sizes (lists, or NumPy arrays of one or two dimensions)
        and `when=` may differ too. `count=` gives the number of launches if nothing else does.

        Returns one handle, which waits for all of them. In a recording, it returns a list of
        handles. Launches before a wrong one are made.

        >>> import acs_cl as acs
        >>> with acs.Runtime() as rt:
        ...     prog = rt.build('''kernel void add(global int *x, int a)
        ...                        { x[get_global_id(0)] += a; }''')
        ...     x = rt.zeros((3, 2), "i4")
        ...     rows = [x[0], x[1], x[2]]
        ...     handle = prog.add.launch_many((2,), None, rows, [1, 2, 3])
        ...     print(x.get().tolist())
        [[1, 1], [2, 2], [3, 3]]
        """
        return self.engine.calls.launch_many(
            self, global_size, local_size, args, count, events_of(wait_for), when
        )

    def access(self, function: Any = None, /, **modes: str) -> Kernel:
        """Declare which bytes every launch of this kernel touches, in place of what was inferred.

        `kernel.access(x="r", y="w[4*gid:4*gid+4]")` names parameters, modes and ranges in elements.
        Ranges may use `gid`, `gsize0` and scalar parameters. As a last resort, pass a function
        `(global_size, local_size, *args) -> (reads, writes)` that returns lists of arrays and
        views.
        """
        from .access.declarations import Standing

        self.standing = Standing(self, function, modes)
        self._forget()
        return self

    def _look_at_types(self, args: Arguments) -> None:
        """Warn of arrays of other elements than the parameter's, at the first call."""
        self._is_new = False
        for index, (parameter, value) in enumerate(
            zip(self.signature.parameters, args, strict=True)
        ):
            if isinstance(value, Array) and (why := elements.mismatch(parameter, value.dtype)):
                warn_there(f"{self._where(index, parameter)}: {why}", CheckWarning)

    def _forget(self) -> None:
        """Stop the core from making its launches, until it has another plan."""
        core.native.forget(self)

    def _bind(
        self, args: Arguments, global_size: Sizes, local_size: Sizes | None, offset: Sizes | None,
        narrows: bool,
    ) -> tuple[cl.Kernel, Bound]:  # fmt: skip
        """Let the core bind the arguments of a launch. Return them with their OpenCL kernel."""
        engine = self.engine
        how = global_size, local_size, offset
        bound = self.binder.bind(engine, *how, args, False, narrows)
        if bound is not None:
            return self._native, bound
        engine.counts.not_plain += 1
        usual, native, starts = self._usual(args)
        bound = self.binder.bind(engine, *how, usual, True, narrows)
        assert bound is not None, "usual arguments are bound"
        return native, bound._replace(values=(*bound.values, *starts))

    def _usual(self, args: Arguments) -> tuple[list[object], cl.Kernel, list[object]]:
        """Convert any arguments to usual ones, and refuse wrong ones. Memory becomes `Resolved`, a
        value becomes bytes, and the rest is what the driver takes. Return them with the kernel for
        such memory, and the values that this kernel takes behind the others."""
        parameters = self.signature.parameters
        if len(args) != len(parameters):
            names = ", ".join(f"{p.type_name} {p.name}" for p in parameters)
            raise UsageError(
                f"{self.label()}: got {len(args)} arguments, expected {len(parameters)} ({names})"
                f"{hints.of_number(args)}"
            )
        usual: list[object] = []
        offsets: dict[int, int] = {}
        kinds: list[bool] = []
        for index, (parameter, value) in enumerate(zip(parameters, args, strict=True)):
            found = self._memory(index, parameter, value)
            if found is None:
                convert = self._value if scalars.is_value(parameter, value) else self._object
                usual.append(convert(index, parameter, value))
                continue
            usual.append(found)
            kinds.append(is_svm(found.argument))
            if parameter.space == "global":
                offsets[index] = found.offset
            elif found.offset:
                raise UsageError(
                    f"{self._where(index, parameter)}: a view that starts inside its buffer can be "
                    "passed to global pointers only; copy it"
                )
        if not any(offsets.values()):
            return usual, self.native_for((), tuple(kinds)), []
        starts: list[object] = []
        for extra, start in enumerate(offsets.values()):
            starts += (len(parameters) + extra, struct.pack("Q", start))
        return usual, self.native_for(tuple(offsets), tuple(kinds)), starts

    def _memory(self, index: int, parameter: Parameter, value: object) -> arguments.Resolved | None:
        try:
            found = arguments.resolve(self.engine, value)
        except UsageError as error:
            raise UsageError(f"{self._where(index, parameter)}: {error}") from None
        if found is None:
            return None
        image = isinstance(value, cl.Image)
        if parameter.space not in (("image", "") if image else ("global", "constant", "pipe", "")):
            raise self._wrong(index, parameter, value)
        return found

    def _value(self, index: int, parameter: Parameter, value: object) -> bytes:
        try:
            return scalars.to_bytes(parameter, value)
        except (ValueError, TypeError) as error:
            kind = (
                f"a value of type {parameter.type_name}"
                if parameter.type_name
                else "memory or a value"
            )
            raise UsageError(
                f"{self._where(index, parameter)}: got {describe(value)}, expected {kind}: {error}"
            ) from None

    def _object(self, index: int, parameter: Parameter, value: object) -> object:
        """Take local memory, samplers and null pointers. Anything else is wrong here."""
        if parameter.space == "local" and isinstance(value, cl.LocalMemory):
            return value
        if parameter.space == "sampler" and isinstance(value, cl.Sampler):
            return value
        if value is None and parameter.space in ("global", "constant", ""):
            return None
        if parameter.space == "" and isinstance(value, (cl.LocalMemory, cl.Sampler)):
            return value
        raise self._wrong(index, parameter, value)

    def _wrong(self, index: int, parameter: Parameter, value: object) -> UsageError:
        """Make the error for an argument that is not of the parameter's kind."""
        expected = {
            "local": "pyopencl.LocalMemory(nbytes)",
            "sampler": "a pyopencl.Sampler",
            "image": "a pyopencl.Image",
            "private": f"a value of type {parameter.type_name}",
        }.get(parameter.space, "an array, a view or a buffer")
        values = hasattr(value, "__array__") and parameter.space in ("global", "constant")
        hint = "; put it on the device with rt.array(…)" if values else ""
        return UsageError(
            f"{self._where(index, parameter)}: got {describe(value)}, expected {expected}{hint}"
        )

    def _lengths(
        self, lengths: tuple[object, ...], what: str, decides: bool = False
    ) -> tuple[Any, ...]:
        """Convert lengths to plain integers, because drivers divide by them. With `decides`, the
        first may be `acs.size`."""
        found: list[Any] = []
        for index, length in enumerate(lengths):
            if type(length) is size:
                if not decides or index:
                    raise UsageError(
                        f"{self.label()}: {what} {lengths}: only the first length of a global size "
                        "can be acs.size"
                    )
                found.append(length)
                continue
            try:
                plain = _whole(length)
            except (AttributeError, TypeError):
                raise UsageError(
                    f"{self.label()}: {what} {lengths}: every length is an integer, "
                    f"got {describe(length)}"
                ) from None
            if plain < 1:
                raise UsageError(f"{self.label()}: {what} {lengths}: every length is at least 1")
            if plain > MOST:
                raise UsageError(f"{self.label()}: {what} {lengths}: a length has 64 bits at most")
            found.append(plain)
        return tuple(found)

    def _offset(self, offset: object) -> tuple[int, ...]:
        found = _sizes(offset, "offset", self.name)
        if any(not 0 <= one <= MOST for one in found):
            raise UsageError(
                f"{self.label()}: offset {found}: every one is at least 0 and has 64 bits at most"
            )
        return found

    def _where(self, index: int, parameter: Parameter) -> str:
        told = f" ({parameter.type_name} {parameter.name})" if parameter.type_name else ""
        return f"{self.label()}, argument {index}{told}"

    def label(self) -> str:
        """Name the next launch, for errors."""
        return f"launch {self.engine.number + 1} of kernel {self.name!r}"

    def globals_span(self) -> Span:
        """Return the bytes of program-scope variables: a base per program, or else all memory."""
        if self._program is None:
            return arguments.ALL[0]
        return interval(-int(self._program.int_ptr), 0, 1)

    def native_for(self, offsets: tuple[int, ...], kinds: tuple[bool, ...]) -> Any:
        """Return the OpenCL kernel for some arguments. NVIDIA's driver refuses a buffer if the same
        kernel object was once given an SVM pointer. So each mixture of kinds has a clone of its
        own."""
        if not offsets and all(kind is self.engine.store.is_svm for kind in kinds):
            return self._native
        clone = self._clones.get((offsets, kinds))
        if clone is None:
            program, name = self._variant(offsets) if offsets else (self._program, self.name)
            clone = own_clone(self._native) if program is None else OwnKernel(program, name)
            self._clones[offsets, kinds] = clone
            clone.signature = self.signature
        return clone

    def _variant(self, offsets: tuple[int, ...]) -> tuple[Any, str]:
        """Return program and name of the version that adds byte offsets to some pointers. Views
        that start inside a buffer need it."""
        variant = self._variants.get(offsets)
        if variant is None:
            source, name = self.variant_source(offsets)
            engine = self.engine
            program = build(engine.context, engine.device, source, self.options)
            variant = self._variants[offsets] = program, name
        return variant

    def refuse_second_variables(self, why: str, instead: str) -> None:
        """Refuse a rewritten version of a kernel that uses variables of its program. The version is
        in another program, which has its own variables."""
        if self.signature.program_globals:
            raise UsageError(
                f"{self.label()}: {why} a rewritten version of the kernel, and that one would have "
                f"its own copy of the variables of the program; {instead}"
            )

    def variant_source(self, offsets: tuple[int, ...]) -> tuple[str, str]:
        """Return source and name of the version that adds byte offsets, or else its own."""
        found = self._sources.get(offsets)
        if found is None:
            if offsets:
                self.refuse_second_variables(
                    "a view starts inside its buffer, which takes",
                    "use memory='svm' or an array of its own",
                )
            from .opencl_c.parse.clang import CannotParse
            from .opencl_c.variants.offsets import with_byte_offsets

            device = self.engine.device
            try:
                found = with_byte_offsets(self.source, self.options, device, self.name, offsets)
            except CannotParse as error:
                raise UsageError(
                    f"{self.label()}: a view starts inside its buffer, and the kernel cannot be "
                    f"rewritten to add the offset: {error.reason}"
                ) from None
            self._sources[offsets] = found
        return found

    def offsets_of(self, native: Any) -> tuple[int, ...]:
        """Return the parameters that take a byte offset in one of its OpenCL kernels."""
        clones = self._clones.items()
        return next((offsets for (offsets, _), clone in clones if clone is native), ())

    def _declare(
        self,
        access: Access,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        offset: tuple[int, ...] | None,
        args: tuple[object, ...],
        reads: object,
        writes: object,
    ) -> Access:
        if self.standing is not None:
            access = self.standing.apply(access, global_size, local_size, offset, args)
        if reads is None and writes is None:
            return access
        _, read_spans, _ = arguments.declared(self.engine, reads, "reads", self.label())
        _, write_spans, exact = arguments.declared(self.engine, writes, "writes", self.label())
        self._check_const(args, write_spans)
        return arguments.replace(access, read_spans, write_spans, exact)

    def _check_const(self, args: tuple[object, ...], writes: tuple[Span, ...]) -> None:
        """Check that a declared write has a parameter that can write."""
        written = {span.base for span in writes}
        suspects: dict[int, tuple[int, Parameter]] = {}
        for index, (parameter, value) in enumerate(
            zip(self.signature.parameters, args, strict=True)
        ):
            found = arguments.resolve(self.engine, value)
            for base in {span.base for span in found.spans} & written if found else ():
                if parameter.const:
                    suspects.setdefault(base, (index, parameter))
                else:
                    written.discard(base)
        for base in written & suspects.keys():
            raise UsageError(
                f"{self._where(*suspects[base])}: writes= names its memory, but the kernel "
                "takes it as const and by no other argument"
            )


def _sizes(value: object, what: str, kernel: str) -> tuple[Any, ...]:
    try:
        if type(value) is size:
            return (value,)  # `Deciding` puts its bound there
        if hasattr(value, "__index__"):
            return (_whole(value),)
        if not isinstance(value, Iterable):
            raise TypeError
        return tuple(one if type(one) is size else _whole(one) for one in value)
    except (TypeError, AttributeError):
        raise UsageError(
            f"kernel {kernel!r}: {what} takes one to three integers, "
            f"got {describe(value)}{hints.of_sizes(value, what)}"
        ) from None


def _whole(number: object) -> int:
    """Convert an integer of Python, NumPy or others. A bool is none."""
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        raise TypeError
    return int(number.__index__())


def origin_of(engine: Engine, kernel: Any) -> tuple[tuple[str, tuple[str, ...], str], int]:
    """Return the origin of a kernel and the work-items of its groups, for `Runtime.prebuild`."""
    group = 0
    if isinstance(kernel, tuple) and len(kernel) == 2:
        kernel, local = kernel
        group = prod(_sizes(local, "the local size", getattr(kernel, "name", "kernel")))
    if not isinstance(kernel, Kernel) or kernel.engine is not engine:
        raise UsageError(f"prebuild takes kernels of this runtime, got {describe(kernel)}")
    required = kernel.signature.group_size
    return (kernel.source, kernel.options, kernel.name), group or prod(required or (0,))


def registers_of(kernel: Kernel) -> int:
    """Return how many registers a work-item has. 0: the compiler does not tell."""
    from .opencl_c.registers import of_program

    engine = kernel.engine
    told = of_program(engine.context, engine.device, kernel.source, kernel.options)
    return told.get(kernel.name, 0)
