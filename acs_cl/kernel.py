"""Kernels: from a call in PyOpenCL's order to a launch.

Input: calls `kernel(global_size, local_size, *args)`. Output: `KernelCommand` and `Access` for the
runtime.

A call comes to the core's `Caller` first. If one like it was made before, the core makes the launch
by itself, from the kernel's launch plan (`plans`). First and unusual calls go to `Kernel._call`.
There sizes become plain integers (`call_sizes`), and the core binds the arguments, if need be after
`access.usual` has converted them. The launch goes to the runtime, whole or in parts (`banded`), in
any case or if the device says so (`conditions`). Then the core gets a plan for the next one.
"""

# Long because: a call passes here through everything that a launch may ask for.

from __future__ import annotations

import struct
import weakref
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import pyopencl as cl

from . import core
from .access import arguments, hints, scalars
from .access.binder import MOST_RUNS, Bound, Ranges, binder
from .access.call_signature import CallSignature
from .access.called import Arguments
from .access.cuts import AUTO, LANES, Cut, Policy, asked
from .access.elements import ElementTypes
from .access.signature import Signature, by_arguments
from .access.usual import check_const, tell_outside, usual, where
from .banded import POISONED, Bands, repeats
from .call_sizes import global_size_of, local_size_of, offset_of
from .conditions import Deciding, Guards, size
from .devices.driver import Events, OwnKernel
from .errors import (
    CheckWarning,
    UsageError,
    describe,
    no_attribute,
    no_copy,
    offered,
    refuse_making,
    truth,
)
from .host.call_sites import warn_there
from .launch import spawning as spawns
from .launch.commands import KernelCommand, NoVariantError
from .launch.foreign_events import events_of
from .launch.observers import Cutting
from .launch.several_handles import CutHandle
from .launch.sizes import Sizing, Unsuitable, may_have_rests
from .plans import Asked, plan_bands, plan_counted, plan_launches
from .records import Access, NamedTuple, Sizes, Span, interval
from .versions import Versions

if TYPE_CHECKING:
    from .access.declarations import Declarations
    from .handle import Handle
    from .launch.engine import Engine

ASKED_LANE = "bands='lanes' was asked for"

_new = tuple.__new__
"""Makes a `NamedTuple` of its fields, without the function in Python that its class has."""

_Sizes = tuple[tuple[Any, ...], Sizes | None, Sizes | None]
"""Global size, local size and offset of a call. The global size may begin with `acs.size`."""


class _Call(NamedTuple):
    """A call whose sizes are plain: what it says, and in which ways it is unusual. The steps of the
    launch go by this."""

    args: Arguments
    sizes: _Sizes
    wait_for: Events
    reads: object
    writes: object
    bands: object
    """What it says of bands; None: nothing, and the runtime's option holds."""
    items: spawns.Spawn | None
    """What it says of items that it spawns; None: nothing."""
    deciding: Deciding | None
    """What the device decides: whether it runs, or how large it is."""
    is_recorded: bool
    """Whether a recording keeps it."""
    is_declared: bool
    """Whether it has `reads=` or `writes=`."""
    is_plain: bool
    """Whether the arguments and the sizes alone say which bytes it touches, from the first group
    on."""
    declarations: Declarations | None
    """The `Declarations` of its kernel, or None."""
    found: Asked
    """What a plan for the next one like it is made from."""
    repeats: bool
    """Whether the core may make that."""

    @property
    def by_function(self) -> bool:
        """Tell whether a function declares what it touches. The core knows no such kernel."""
        return self.declarations is not None and self.declarations.function is not None

    @property
    def is_cut_by_python(self) -> bool:
        """Tell whether Python alone cuts it into bands, since it has an offset or is declared."""
        return self.is_declared or self.sizes[2] is not None


class Kernel(core.native.Caller):
    """Launches its kernel when called: `kernel(global_size, local_size, *args)`.

    That is PyOpenCL's order, without the queue. Sizes are tuples of 1 to 3 integers, and count
    work-items. `local_size` may be None: the size that the kernel requires, or one that the driver
    chooses. The first global size may be `acs.size`. A call returns a `Handle` at once, and raises
    `UsageError` if it is wrong. Keywords:

    - `reads=`, `writes=`: arrays or views that replace what was inferred for the bases that they
      name.
    - `wait_for=`: a list of events of other queues.
    - `offset=`: the global offset.
    - `when=`: one uint32 or int32 on the device. The kernel runs only if it is not zero at the
      start.
    - `bands=`: how the launch is cut: a number, 'early', 'auto', 'off', `acs.Row()`,
      `acs.Tile(rows, columns)` or `acs.Strided(parts)`. With 'lanes' it is not cut, and no
      scheduler runs it.
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

    __slots__ = (
        "__weakref__", "_bands", "_binder", "_may_have_rests", "_native", "_ranges", "_signature",
        "_told", "declarations", "elements", "guards", "is_for_python", "name", "options",
        "program", "source", "versions",
    )  # fmt: skip

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

    __dir__ = offered
    __iter__ = None  # it would be tried by `[]`
    __signature__ = CallSignature()

    def __getitem__(self, sizes: object) -> NoReturn:
        raise UsageError(
            f"kernel {self.name!r}: sizes are the first arguments of a call: "
            "kernel(global_size, local_size, …), where global_size counts work-items, not groups"
        )

    def __new__(cls, *parts: object) -> Kernel:
        """Refuse what a program may try."""
        refuse_making(cls, parts)
        return super().__new__(cls)

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
        self.program = program
        self._native = native
        native.origin, native.owner = (source, options, name), weakref.ref(self)
        self.name = name
        self.source = source
        self.options = options
        self._may_have_rests = may_have_rests(options)
        self._signature: Signature | None = None
        self.elements = ElementTypes()
        self._told: set[int] = set()
        """Parameters whose arrays a launch was told to leave."""
        self.declarations: Declarations | None = None
        self.versions = Versions()
        """Its OpenCL kernels: `native`, and others for unusual memory."""
        self._bands = Bands()
        self.guards: Guards | None = None
        self._ranges: bool | None = None
        self._binder: core.native.Binder | None = None
        self.is_for_python = False

    def __repr__(self) -> str:
        return f"<acs_cl.Kernel {self.name}>"

    def __reduce__(self) -> NoReturn:
        no_copy(self, "a kernel", "send its source, and build that there")

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
            self._binder = binder(self.signature, self._ranges is not False, self._beside())
            self._binder.most = -1 if self._ranges else MOST_RUNS
        return self._binder

    def _beside(self) -> list[Span]:
        """Return what launches read and write besides their arguments."""
        more = [self.globals_span()] if self.signature.program_globals else []
        return [*more, *arguments.ALL] if self.signature.anywhere else more

    @property
    def infer_ranges(self) -> bool | None:
        """Say whether a launch counts only the bytes of its views that the body can reach.

        False: each view counts as a whole. True: always. None, the default: yes, up to very many
        different sizes and numbers. After that each view counts as a whole.
        """
        return self._ranges

    @infer_ranges.setter
    def infer_ranges(self, value: bool | None) -> None:
        self._ranges = (
            None if value is None else truth("infer_ranges", value, "True, False or None")
        )
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
        """Launch what the core has no plan for, or what is unusual: check the sizes, note what the
        call says, and go on with `_launch`. A recording keeps the call instead."""
        if local_size is ... or unknown:
            raise self._no_launch(unknown)
        wait_for, engine = events_of(wait_for), self.engine
        forgets = self.forgets  # before what it counts: another thread may declare others now
        declarations = self.declarations
        by_function = declarations is not None and declarations.function is not None
        declared = None if by_function else declarations
        known = declared or self
        if engine.tracer is not None:
            engine.tracer.called()
        sizes = self._sizes(global_size, local_size, offset)
        recorder = engine.recorder()
        if recorder is not None and not recorder.is_capturing:
            return recorder.capture(
                self, *sizes[:2], *args,
                reads=reads, writes=writes, wait_for=wait_for, offset=sizes[2], when=when,
                bands=bands, spawn=spawn,
            )  # fmt: skip
        items = None if spawn is None else spawns.asked(spawn)
        deciding = None
        if when is not None or sizes[0][0].__class__ is size:
            deciding = Deciding(self, sizes[0], when)
            sizes = deciding.global_size, *sizes[1:]
        is_declared = reads is not None or writes is not None
        is_plain = declarations is None and sizes[2] is None and not is_declared
        call = _new(
            _Call,
            (
                args, sizes, wait_for, reads, writes, bands, items, deciding, recorder is not None,
                is_declared, is_plain, declarations,
                _new(Asked, (forgets, known.signature, known.binder)),
                items is None and not by_function,
            ),
        )  # fmt: skip
        return self._launch(call, None if declared is None else declared.ranges)

    def _launch(self, call: _Call, ranges: Ranges | None) -> Handle:
        """Bind the arguments of a call, cut it into bands if it asks for that, find what it
        touches, and launch. `ranges`: gives those that are declared; None: none are."""
        sizes, deciding = call.sizes, call.deciding
        narrows = call.declarations is None and not (deciding is not None and deciding.counts)
        native, bound = self._bind(call.found.binder, call.args, sizes, narrows, ranges)
        self._tell_mistakes(call, bound)
        many = asked(self.engine.options.bands if call.bands is None else call.bands)
        cut = self._cut(call, many, native, bound) if many and many != LANES else None
        access = bound.access
        if call.is_declared or call.by_function:
            access = self._declare(call, bound)
        command = _new(
            KernelCommand,
            (
                self.name, native, *sizes[:2], bound.pointers, bound.values, sizes[2], cut,
                call.items, ASKED_LANE if many == LANES else "",
            ),
        )  # fmt: skip
        if cut is not None and not call.is_recorded:
            return self._launch_in_parts(call, command, access, bound)
        return self._launch_whole(call, command, access, bound)

    def _no_launch(self, unknown: dict[str, object]) -> UsageError:
        """Make the error for a call without sizes, or with keywords that nobody knows."""
        names = self._names()
        if unknown:
            return UsageError(
                f"kernel {self.name!r}: a launch has no keyword {', '.join(unknown)}"
                f"{hints.of_keywords(unknown, names)}"
            )
        return UsageError(
            f"kernel {self.name!r}: a launch takes global size, local size (or None), and its "
            f"arguments: ({', '.join(names)})"
        )

    def _names(self) -> list[str]:
        return [parameter.name for parameter in self.signature.parameters]

    def _sizes(self, global_size: object, local_size: object, offset: object) -> _Sizes:
        """Return the sizes of a call as the driver takes them, and refuse what the device cannot
        run. A local size of None becomes the one that the kernel requires, if it does: some drivers
        refuse None there."""
        required = self.signature.group_size
        whole = global_size_of(self, global_size)
        local = local_size_of(self, local_size)
        if local is None and required is not None:
            local = tuple(required)[: len(whole)]
        found = whole, local, offset_of(self, offset)
        try:
            self.engine.sizes.check(_new(Sizing, (*found, required, self._may_have_rests)))
        except Unsuitable as why:
            raise UsageError(f"{self.label()}: {why}") from None
        return found

    def _cut(self, call: _Call, many: int | Policy, native: cl.Kernel, bound: Bound) -> Cut:
        """Return how a launch is to be cut into bands."""
        global_size, _, offset = call.sizes
        how = call.deciding is not None, call.is_declared
        return self._bands.cut(self, many, native, bound, global_size, offset, *how)

    def cut_into_tiles(
        self,
        many: int,
        global_size: object,
        local_size: object,
        *args: object,
        offset: object = None,
    ) -> Cut:
        """Return how a launch is cut into the tiles that a scheduler makes of it. `many`: `TILES`
        or `EACH_TILE`."""
        sizes = self._sizes(global_size, local_size, offset)
        native, bound = self._bind(self.binder, args, sizes, self.declarations is None, None)
        return self._bands.cut(self, many, native, bound, sizes[0], sizes[2], False, False)

    def _launch_in_parts(
        self, call: _Call, command: KernelCommand, access: Access, bound: Bound
    ) -> Handle:
        """Launch in bands, or whole if that is not possible."""
        engine, cut = self.engine, command.cut
        assert cut is not None
        parts = self._bands.parts(engine, command, access)
        if isinstance(parts, str):
            why = parts
        elif (numbers := engine.launch_parts(parts, access, call.wait_for)) is None:
            why = POISONED
        else:
            if call.repeats and not call.is_cut_by_python and cut.bands != AUTO:
                said = None if call.bands is None else cut.bands
                plan_bands(self, command, said, parts, call.args, call.found)
            return CutHandle(engine, numbers, self.name, access)
        if engine.checker is None:
            command = command._replace(cut=None)
        return self._launch_whole(call, command, access, bound, why)

    def _launch_whole(
        self, call: _Call, command: KernelCommand, access: Access, bound: Bound, why: str = ""
    ) -> Handle:
        """Launch, and give the core a plan for the next launch. `why`: the reason why there are no
        bands, if they were asked for."""
        engine, deciding = self.engine, call.deciding
        if deciding is not None:
            handle = deciding.launch(command, access, call.wait_for)
            if deciding.counts:
                if call.repeats and not call.is_recorded and call.bands is None:
                    origin = call.args, handle.number, call.found
                    plan_counted(self, command, *origin, deciding)
                return handle
        elif engine.is_several and call.is_plain and self.binder.has_ranges:
            cutting = self._cutting(command, bound)
            handle = engine.launch_kernel(command, access, cutting, call.wait_for)
        else:
            handle = engine.launch(command, access, call.wait_for)
        if self._tells_of_next(call, command, bound, why):
            # a graph keeps commands, and makes tasks of them
            variant = None if deciding is None else deciding.variant
            what = call.args, handle.number, call.found, variant
            plan_launches(self, command, call.is_recorded, *what)
        if not why:
            return handle
        return CutHandle(engine, (handle.number,), handle.name, handle.access, why)

    def _tells_of_next(self, call: _Call, command: KernelCommand, bound: Bound, why: str) -> bool:
        """Tell whether the core may make the next launch as this one, which went whole."""
        if not call.repeats or command.lane:
            return False
        if call.is_declared and bound.outside is not None:
            return False  # it is refused, or told of, when it comes without declarations
        if not asked(self.engine.options.bands):
            return True
        # where bands are the default, the next one may have them, though this one had not
        is_without = call.bands is not None or call.deciding is not None or call.is_cut_by_python
        return not is_without and why != POISONED

    def _cutting(self, command: KernelCommand, bound: Bound) -> Cutting:
        """Return how a launch can be cut into parts for several devices."""
        spans, numbers = bound.spans, bound.numbers

        def access_of(global_size: Sizes, offset: Sizes) -> Access:
            if numbers is None:
                return bound.access
            return self.binder.touched(
                spans, numbers, global_size, command.local_size, offset, None
            )

        made = partial(self._bands.in_parts, self, command.kernel)
        return Cutting(made, access_of, partial(repeats, self.signature, self.native))

    def launch_many(
        self,
        global_size: object,
        local_size: object,
        *args: object,
        count: int | None = None,
        wait_for: Events = None,
        when: object = None,
        **unknown: object,
    ) -> Any:
        """Launch many times by one call. That is a loop of calls, but the core runs it. It pays for
        dozens of launches.

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
        if unknown:
            raise UsageError(
                f"kernel {self.name!r}: launch_many has no keyword {', '.join(unknown)}"
                f"{hints.of_keywords(unknown, self._names(), hints.OF_MANY)}"
            )
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
        from .access.declarations import Declarations

        self.declarations = Declarations(self, function, modes, self._beside())
        self._forget()
        return self

    def _tell_mistakes(self, call: _Call, bound: Bound) -> None:
        """Refuse or warn of arguments that are surely wrong: arrays of other elements once for each
        type, and any access that leaves its array. A check looks closer at the latter."""
        for index, dtype in self.elements.new(self, call.args):
            parameter = self.signature.parameters[index]
            if why := scalars.mismatch(parameter, dtype):
                warn_there(f"{where(self, index, parameter)}: {why}", CheckWarning)
        is_sure = not call.is_declared and call.deciding is None
        if bound.outside is not None and is_sure and self.engine.checker is None:
            tell_outside(self, bound.outside, call.args, self._told)

    def _forget(self) -> None:
        """Stop the core from making its launches, until it has another plan."""
        core.native.forget(self)

    def _bind(
        self, binder: core.native.Binder, args: Arguments, sizes: _Sizes, narrows: bool,
        ranges: Ranges | None,
    ) -> tuple[cl.Kernel, Bound]:  # fmt: skip
        """Let the core bind the arguments of a launch. Return them with their OpenCL kernel."""
        engine = self.engine
        bound = binder.bind(engine, *sizes, args, False, narrows, ranges)
        if bound is not None:
            return self._native, bound
        engine.counts.not_plain += 1
        found = usual(self, args)
        bound = binder.bind(engine, *sizes, found.arguments, True, narrows, ranges)
        assert bound is not None, "usual arguments are bound"
        if not any(found.offsets.values()):
            return self.versions.native(self, (), found.kinds), bound
        try:
            native = self.versions.native(self, tuple(found.offsets), found.kinds)
        except NoVariantError as error:
            raise error.of_launch(engine.number + 1, self.name) from None
        starts: list[object] = []
        for index, start in enumerate(found.offsets.values(), len(found.arguments)):
            starts += (index, struct.pack("Q", start))
        return native, bound._replace(values=(*bound.values, *starts))

    def label(self) -> str:
        """Name the next launch, for errors."""
        return f"launch {self.engine.number + 1} of kernel {self.name!r}"

    def globals_span(self) -> Span:
        """Return the bytes of program-scope variables: a base per program, or else all memory."""
        if self.program is None:
            return arguments.ALL[0]
        return interval(-int(self.program.int_ptr), 0, 1)

    def _declare(self, call: _Call, bound: Bound) -> Access:
        """Put what was declared for this launch in place of what was inferred."""
        access, engine, label = bound.access, self.engine, self.label()
        if call.declarations is not None and call.by_function:
            where = f"{label}: the access function"
            said = call.declarations.said(*call.sizes[:2], call.args, where)
            access, _ = arguments.replaced(engine, access, bound.spans, said, where)
        if call.is_declared:
            named = call.reads, call.writes
            access, writes = arguments.replaced(engine, access, bound.spans, named, label)
            check_const(self, bound.spans, writes)
        return access


def origin_of(engine: Engine, kernel: Any) -> tuple[tuple[str, tuple[str, ...], str], int]:
    """Return the origin of a kernel and the work-items of its groups, for `Runtime.prebuild`."""
    local = None
    if isinstance(kernel, tuple) and len(kernel) == 2:
        kernel, local = kernel
    if not isinstance(kernel, Kernel) or kernel.engine is not engine:
        raise UsageError(f"prebuild takes kernels of this runtime, got {describe(kernel)}")
    group = local_size_of(kernel, local) or kernel.signature.group_size
    return (kernel.source, kernel.options, kernel.name), prod(group or (0,))


def registers_of(kernel: Kernel) -> int:
    """Return how many registers a work-item has. 0: the compiler does not tell."""
    from .opencl_c.registers import of_program

    engine = kernel.engine
    told = of_program(engine.context, engine.device, kernel.source, kernel.options)
    return told.get(kernel.name, 0)
