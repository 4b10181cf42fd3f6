"""Calls that decide on the device: `when=` and `size(…)`.

Input: a kernel, the values of a call that decide, and the command of the call without them. Output:
a launch of a `DecidedCommand`.

Invariants: the values that decide are among the reads of the launch. The launch overwrites nothing
for sure, since it may be skipped. The values are read before the kernel writes anything: if the
kernel may write them itself, a launch copies them first.
"""

# Long because: a call that decides and the variants that it needs share cells, copies and faults.

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from . import core
from .access import arguments
from .devices.build import build
from .devices.driver import Events, OwnKernel, Place, is_svm, like
from .devices.pocl import compiles_late
from .errors import UsageError, describe, whole
from .launch.commands import KernelCommand, NoVariantError, TransferCommand
from .launch.decision import FLAGS, LARGEST, WIDTH, Cell, DecidedCommand, Decision, Fault
from .ranges import meet
from .records import Access
from .versions import RuntimeKernel, refuse_unfit

if TYPE_CHECKING:
    from .handle import Handle

ROUNDED = 64
"""An upper bound is rounded up to a multiple of this if the driver chooses the group size, so that
it finds a good one."""

_UINT32, _INT32 = FLAGS


class size:  # noqa: N801  read like `range` and `slice`
    """Takes a global size from the device: the value of `count`, one uint32 or int32 there.

    It is read when the launch starts. `upto` is the largest allowed value. A larger value is an
    error of that launch.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''
    ...         kernel void find(global const int *x, global uint *count, global int *found)
    ...         { int i = get_global_id(0); if (x[i] > 2) found[atomic_inc(count)] = i; }
    ...         kernel void clear(global int *x, global const int *found)
    ...         { x[found[get_global_id(0)]] = 0; }''')
    ...     x, found = rt.array([1, 5, 2, 7], "i4"), rt.empty(4, "i4")
    ...     count = rt.zeros(1, "u4")
    ...     handle = prog.find((4,), None, x, count, found)
    ...     handle = prog.clear(acs.size(count, upto=4), None, x, found)  # two work-items
    ...     print(x.get())
    [1 0 2 0]
    """

    __slots__ = ("count", "upto")

    def __init__(self, count: object, upto: int) -> None:
        most = whole(upto)
        if most is None or not 1 <= most <= LARGEST:
            raise UsageError(f"acs.size: got upto={describe(upto)}, expected 1 to {LARGEST}")
        self.count = count
        self.upto = most

    def __repr__(self) -> str:
        return f"acs_cl.size({self.count!r}, upto={self.upto})"


class Deciding:
    """One call that decides on the device."""

    def __init__(self, kernel: RuntimeKernel, global_size: tuple[Any, ...], when: object) -> None:
        self._kernel = kernel
        self._when = None if when is None else _cell(kernel, when, "when=")
        self._count: Cell | None = None
        self.global_size = global_size
        """The global size, with the upper bound in place of a count."""
        self._command: DecidedCommand | None = None
        if global_size and type(global_size[0]) is size:
            self._count = _cell(kernel, global_size[0].count, "the count of acs.size")
            self.global_size = (global_size[0].upto, *global_size[1:])

    @property
    def counts(self) -> bool:
        """Tell whether the device decides on the number of work-items."""
        return self._count is not None

    def launch(self, plain: KernelCommand, access: Access, wait_for: Events) -> Handle:
        """Launch `plain` with the decision."""
        engine = self._kernel.engine
        command, access, _kept = self.decided(plain, access, wait_for)
        if not engine.backend.decides:
            try:
                _ = command.guarded  # makes a fault of the variant an error of this call
            except NoVariantError as error:
                raise error.of_launch(engine.number + 1, plain.name) from None
        self._command = command
        return engine.launch(command, access, wait_for)

    @property
    def has_condition(self) -> bool:
        """Tell whether the device decides whether it runs."""
        return self._when is not None

    @property
    def variant(self) -> cl.Kernel | None:
        """Return the OpenCL kernel that reads the decision first, once a queue has needed it for
        the launch."""
        command = self._command
        if command is None:
            return None
        cells = [cell for cell in command.decision[:2] if cell is not None]
        kinds = [is_svm(cell.place.memory) is self._kernel.engine.store.is_svm for cell in cells]
        return command.variant if all(kinds) else None

    @property
    def rounded(self) -> int:
        """Return the first global size of the launch for a driver."""
        assert self._command is not None
        return self._command.guarded.global_size[0]

    def decided(
        self, plain: KernelCommand, access: Access, wait_for: Events = None
    ) -> tuple[DecidedCommand, Access, list[object]]:
        """Return `plain` with the decision, its access, and the memory of copies of cells that it
        may write. The copies are launched here, and have to live until the launch."""
        kernel, count = self._kernel, self._count
        cells = [cell for cell in (self._when, count) if cell is not None]
        reads = (*access.reads, *(cell.span for cell in cells))
        kept: list[object] = []
        for index, cell in enumerate(cells):
            if any(meet(cell.span, span) for span in access.writes):
                cells[index], memory = self._copy(cell, wait_for)
                reads += (cells[index].span,)
                kept.append(memory)
        local = plain.local_size
        group = local[0] if local and count is not None else 1
        when = cells[0] if self._when is not None else None
        counted = cells[-1] if count is not None else None
        decision = Decision(when, counted, (*self.global_size, 0)[0], group)
        if kernel.guards is None:
            kernel.guards = Guards()
        guards: Guards = kernel.guards
        command = DecidedCommand(
            plain,
            decision,
            lambda: guards.guarded(kernel, plain, decision, cells, local),
            guards.faults,
        )
        return command, Access(reads, access.writes), kept

    def _copy(self, cell: Cell, wait_for: Events) -> tuple[Cell, object]:
        """Copy a cell that the kernel may write, in program order. Otherwise its first groups would
        decide for the others. Return the copy, and what it is in."""
        engine = self._kernel.engine
        if is_svm(cell.place.memory) is not engine.store.is_svm:
            # no command copies from buffers to shared memory, or back
            place = like(engine.context, cell.place)
            known = core.native.memory_of(place.memory, engine.store.reserved)
            assert known is not None
            copies: object = place
            copied = cell._replace(place=place, span=known.span)
        else:
            copies = array = engine.new_array((1,), _UINT32)
            copied = cell._replace(place=array.where(), span=array.spans[0])
        access = Access((cell.span,), (copied.span,), (copied.span,))
        engine.launch(TransferCommand("copy", copied.place, cell.place), access, wait_for)
        return copied, copies


class Guards:
    """Holds the guarded variants of one kernel, and its words for counts that are not allowed.

    It does not hold its kernel: that would be a cycle that keeps the runtime alive.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._natives: dict[tuple[object, ...], tuple[OwnKernel, int, str]] = {}
        self._programs: dict[tuple[object, ...], tuple[cl.Program, str, str]] = {}

    def guarded(
        self,
        kernel: RuntimeKernel,
        plain: KernelCommand,
        decision: Decision,
        cells: Sequence[Cell],
        local: tuple[int, ...] | None,
    ) -> tuple[KernelCommand, Fault | None]:
        """Return the command that decides by itself, by the values in `cells`."""
        native, first, collective = self._native(kernel, plain.kernel, decision)
        pointers, values = plain.pointers, plain.values
        for cell in cells:
            pointers += (first, cell.place.memory)
            values += (first + 1, struct.pack("Q", cell.place.offset))
            first += 2
        global_size, fault = plain.global_size, None
        if decision.count is not None:
            if collective and local is None:
                why = "it needs a local size, so that each group runs as a whole or not at all"
                said = f"the kernel calls {collective}; with acs.size {why}"
                raise NoVariantError(kernel.name, said)
            fault = self._fault(kernel)
            bound, group = decision.upto, decision.group
            values += (first, struct.pack("I", bound), first + 1, struct.pack("I", group))
            pointers += (first + 2, fault.place.memory)
            step = group if local is not None else min(bound, ROUNDED)
            global_size = (-(-bound // step) * step, *global_size[1:])
        return plain._replace(
            kernel=native, global_size=global_size, local_size=local,
            pointers=pointers, values=values,
        ), fault  # fmt: skip

    def _fault(self, kernel: RuntimeKernel) -> Fault:
        try:
            return self.faults.pop()
        except IndexError:
            return Fault(kernel.engine.context)

    def _native(
        self, kernel: RuntimeKernel, plain: cl.Kernel, decision: Decision
    ) -> tuple[OwnKernel, int, str]:
        """Return the variant of an OpenCL kernel, the index of its first extra parameter, and a
        call in it that all work-items of a group have to reach together. Each mixture of SVM and
        buffers has a clone, as for kernels without a decision."""
        kinds = tuple(
            cell and is_svm(cell.place.memory) for cell in (decision.when, decision.count)
        )
        key = (plain, *kinds)
        found = self._natives.get(key)
        if found is None:
            offsets = kernel.versions.offsets_of(plain)
            program, name, collective = self._program(
                kernel, offsets, decision.when is not None, decision.count is not None
            )
            first = len(kernel.signature.parameters) + len(offsets)
            found = self._natives[key] = OwnKernel(program, name), first, collective
        return found

    def _program(
        self, kernel: RuntimeKernel, offsets: tuple[int, ...], when: bool, counted: bool
    ) -> tuple[cl.Program, str, str]:
        key = (offsets, when, counted)
        found = self._programs.get(key)
        if found is None:
            from .opencl_c.parse.clang import CannotParse
            from .opencl_c.variants.guards import with_guards

            refuse_unfit(
                kernel,
                "when= and acs.size take",
                "decide on the host, or keep the values in an array",
            )
            engine, options = kernel.engine, kernel.options
            source, name = kernel.versions.source(kernel, offsets)
            together = compiles_late(engine.device)
            try:
                guarded = with_guards(source, options, engine.device, name, when, counted, together)
            except CannotParse as error:
                raise NoVariantError(
                    kernel.name,
                    "when= and acs.size need a version of the kernel that decides on the device, "
                    f"and it cannot be rewritten: {error.reason}",
                ) from None
            built = guarded.source, tuple(options)
            program = engine.guarded.get(built)
            if program is None:
                program = build(engine.context, engine.device, *built)
                engine.guarded[built] = program
            found = self._programs[key] = program, guarded.kernel, guarded.collective
        return found


def _cell(kernel: RuntimeKernel, value: object, what: str) -> Cell:
    """Return the memory of a value that decides: one uint32 or int32 of this runtime, or four bytes
    of another library."""
    dtype = getattr(value, "dtype", None)
    try:
        found = arguments.resolve(kernel.engine, value)
    except UsageError as error:
        raise UsageError(f"{kernel.label()}, {what}: {error}") from None
    if found is None or not _is_one(value, dtype):
        raise UsageError(
            f"{kernel.label()}, {what}: got {describe(value)}, expected one uint32 or "
            "int32 on the device, such as flags[i : i + 1]"
        )
    span = found.spans[0]
    if span.start % WIDTH:
        raise UsageError(f"{kernel.label()}, {what}: it starts at byte {span.start}, between words")
    return Cell(Place(found.argument, found.offset, WIDTH), span, dtype == _INT32)


def _is_one(value: Any, dtype: object) -> bool:
    if dtype is not None:
        return dtype in FLAGS and value.size == 1
    return isinstance(value, (cl.Buffer, cl.SVMPointer)) and value.size == WIDTH
