"""Launch plans: what the native core has to know of a kernel to make its launches by itself.

Input: launches that Python made, and where they went. Output: a plan of the kernel, with entries
for sizes. Invariant: the core makes the same launch as Python would have. Anything that the plan
does not cover comes to Python.
"""

# Long because: what is added to a plan needs its parameters, its places and its lease.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyopencl as cl

from . import core
from .access.binder import parameter_of
from .access.cuts import asked
from .conditions import Deciding, size
from .launch.backend import ALL, NO_ITEMS, Lease
from .launch.decision import FLAGS
from .memory.array import Array
from .records import NamedTuple
from .scheduler.layout import INLINE_BYTES, MOST_ARGS_BYTES, RECORD_BYTES
from .versions import RuntimeKernel

if TYPE_CHECKING:
    from .access.signature import Parameter, Signature
    from .launch.commands import KernelCommand
    from .launch.parts import LanePart
    from .opencl_c.functions.translated import Function
    from .scheduler.homes import Head

_Parameter: TypeAlias = tuple[str, str, int]
"""The core's code of a parameter, how it is used, and its bytes."""

_HEAD_BYTES = RECORD_BYTES - INLINE_BYTES
_MOST_POINTERS = 31
_MOST_PARAMETERS = 64

_NUMBERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float32, np.float64,
)  # fmt: skip
"""Types of numbers that convert without any Python code, besides Python's own."""

_VALUES = (np.void, np.record, np.ndarray)
"""Types of structures and vectors whose bytes are read without any Python code, besides bytes."""


_EVENTS = (cl.Event, cl.UserEvent, cl.NannyEvent)
"""Types of events whose status the driver has. It may not know that of an `acs.Queue`'s."""

_TIMED = Lease(ALL, reason="the program may ask for its times", items=0)
"""Of launches on a queue that keeps times: no scheduler takes them."""


class Asked(NamedTuple):
    """What a call found in its kernel, which another thread may change meanwhile."""

    forgets: int
    """How many plans it had forgotten. With another number it takes no plan."""
    signature: Signature
    """Its parameters, with the modes that the program declares."""
    binder: core.native.Binder
    """The binder for them."""


class ArgumentValues(NamedTuple):
    """The arguments of a PyOpenCL kernel at one moment. Setters called later do not change it."""

    pointers: dict[int, object]
    """Memory and the like, by index."""
    values: dict[int, bytes]
    """All others."""

    @property
    def many(self) -> int:
        """Return how many arguments are known."""
        return len(self.pointers) + len(self.values)


def use(handle: type, cut_handle: type) -> None:
    """Tell the core once which classes are handles, of a launch and of one in bands."""
    core.native.use(
        handle, cut_handle, Array, cl.LocalMemory, cl.SVM, _EVENTS, _NUMBERS, _VALUES, FLAGS, size,
        np.bool_,
    )  # fmt: skip


def plan_launches(
    kernel: RuntimeKernel,
    command: KernelCommand,
    is_kept: bool,
    args: tuple[object, ...],
    number: int,
    found: Asked,
    variant: object = None,
) -> None:
    """Let the core make launches like `number`, with `when=`, `reads=` and `writes=` or without,
    while nothing is unusual. That launch had no others but `offset=` and `wait_for=`. `command`:
    the launch without `when=`. `is_kept`: a graph has it. `variant`: the OpenCL kernel that reads
    `when=` first, if there is one."""
    assert isinstance(kernel, core.native.Caller)
    native, engine = core.native, kernel.engine
    if kernel.is_for_python or not engine.table.usable:
        return
    may_record = not is_kept and command.kernel is kernel.native
    heads: list[Head] = engine.backend.heads(command) if may_record else []
    # a recorded launch went nowhere: its number is one of the graph
    lease = _lease(kernel, command, args, 0 if is_kept else number)
    if not heads and lease is None:
        return
    origin: Any = kernel.native.origin
    function = heads[0][0].bodies[origin].function if heads else None
    if not _has_plan(kernel, function, found):
        return
    sizes = command.global_size, command.local_size, command.offset
    native.plan_sizes(kernel, *sizes, heads, lease)
    starts = kernel.versions.offsets_of(command.kernel)
    if variant is not None:
        native.plan_variant(kernel, variant, starts, True)
    elif starts:
        native.plan_variant(kernel, command.kernel, starts, False)


def plan_counted(
    kernel: RuntimeKernel,
    command: KernelCommand,
    args: tuple[object, ...],
    number: int,
    found: Asked,
    deciding: Deciding,
) -> None:
    """Let the core make launches like `number` on lanes, whose global size the device decides.
    `command`: the launch with the upper bound. `deciding`: the decision."""
    assert isinstance(kernel, core.native.Caller)
    native, engine, variant = core.native, kernel.engine, deciding.variant
    if kernel.is_for_python or not engine.table.usable or asked(engine.options.bands):
        return
    lease = _lease(kernel, command, args, number)
    if lease is None or variant is None or not engine.has_word():
        return
    if not _has_plan(kernel, None, found):
        return
    sizes = command.global_size, command.local_size, command.offset
    native.plan_counted(kernel, *sizes, deciding.rounded, lease)
    starts = kernel.versions.offsets_of(command.kernel)
    native.plan_variant(kernel, variant, starts, deciding.has_condition, True)


def plan_bands(
    kernel: RuntimeKernel,
    command: KernelCommand,
    asked: object,
    parts: Sequence[LanePart],
    args: tuple[object, ...],
    found: Asked,
) -> None:
    """Let the core make bands like those of a launch that went to lanes in parts, there or in a
    scheduler. `asked`: the value of `bands=`. `command`: the whole launch."""
    assert isinstance(kernel, core.native.Caller)
    native, engine = core.native, kernel.engine
    if kernel.is_for_python or not engine.table.usable or command.kernel is not kernel.native:
        return
    if not _are_plain(engine, args):
        return
    heads = engine.backend.bands(command)
    function = None
    if heads is not None:
        function = heads.scheduler.bodies[kernel.native.origin].function
    if not _has_plan(kernel, function, found):
        return
    what = kernel, command.global_size, command.local_size, asked
    if heads is not None:
        native.plan_bands(*what, heads.unit, heads.heads, None, heads[:3])
    if engine.backend.core_queues is not None:
        bands = [((one.groups,), one.command.global_size, one.command.offset) for one in parts]
        lanes = parts[-1].command.kernel, parts[-1].command.lane
        native.plan_bands(*what, parts[0].unit, bands, lanes, None)


def plan_commands(
    tracker: core.native.Tracker,
    of_program: cl.Kernel,
    kernel: RuntimeKernel,
    command: KernelCommand,
    given: ArgumentValues,
    number: int,
    is_timed: bool,
) -> None:
    """Let the core make commands like launch `number`, a command of an `acs.Queue`. `of_program`:
    the program's kernel, with the arguments that it was `given`. `kernel`: the runtime's own kernel
    for it, which has the plan. `is_timed`: the program may ask for times, which only lanes tell."""
    assert isinstance(kernel, core.native.Caller)
    native, engine = core.native, kernel.engine
    lease = _TIMED
    if not is_timed:
        lease = engine.backend.lease(number, command.kernel, command.key)
    if not lease.launches or not engine.table.usable:
        return
    found = Asked(kernel.forgets, kernel.signature, kernel.binder)
    parameters = _parameters(kernel.signature, given)
    if not native.is_planned(kernel, False) and not _plan(kernel, parameters, None, found):
        return
    native.plan_sizes(kernel, command.global_size, command.local_size, command.offset, (), lease)
    arguments = command.kernel, given.pointers, given.values
    native.set_arguments(tracker, of_program, kernel, *arguments)


def _lease(
    kernel: RuntimeKernel, command: KernelCommand, args: tuple[object, ...], number: int
) -> Lease | None:
    """Return the lease of launches like `number` on lanes, if it went to one. None: it did not."""
    engine = kernel.engine
    backend = engine.backend
    if backend.core_queues is None:
        return None
    lease = backend.lease(number, command.kernel, command.key)
    if asked(engine.options.bands):  # they are decided by sizes
        lease = lease._replace(items=NO_ITEMS)
    if not lease.launches or not _are_plain(engine, args):
        return None
    if engine.plan.scheduler == "all" and any(type(one) is cl.LocalMemory for one in args):
        return None  # the size of local memory decides whether the scheduler takes the next one
    return lease


def _has_plan(kernel: RuntimeKernel, function: Function | None, found: Asked) -> bool:
    """Give the core a plan for the kernel, if it has none yet. `function`: a scheduler's, for its
    records. Return False if it can have none: then all launches of it come to Python."""
    assert isinstance(kernel, core.native.Caller)
    if core.native.is_planned(kernel, function is not None):
        return True
    kernel.is_for_python = not _plan(kernel, _parameters(found.signature), function, found)
    return not kernel.is_for_python


def _plan(
    kernel: RuntimeKernel,
    parameters: list[_Parameter] | None,
    function: Function | None,
    found: Asked,
) -> bool:
    """Give the core a plan for the kernel. Return False if it can have none."""
    assert isinstance(kernel, core.native.Caller)
    engine, signature = kernel.engine, found.signature
    if (
        parameters is None
        or _too_many(parameters)
        or signature.anywhere
        or signature.program_globals
    ):
        return False
    places, record = _places(kernel, parameters, function)
    queues = engine.backend.core_queues
    lanes = None if queues is None else (queues, kernel.native, engine.plan.memory == "svm")
    core.native.plan(
        kernel, engine.table, kernel.name,
        [(*parameter, at) for parameter, at in zip(parameters, places, strict=True)],
        found.binder, lanes, record, found.forgets,
    )  # fmt: skip
    kernel.elements.tell(kernel)
    return True


def _places(
    kernel: RuntimeKernel, codes: list[_Parameter], function: Function | None
) -> tuple[list[int], tuple[int, int] | tuple[()] | None]:
    """Return the place of each argument in a record, and the bytes of all arguments and of local
    memory. The pair is empty if the core cannot pack them, and None if there are no records."""
    nowhere = [0] * len(codes)
    if function is None:
        return nowhere, None
    parameters = kernel.signature.parameters
    for (code, *_), parameter, field in zip(codes, parameters, function.fields, strict=True):
        kind = {"P": "pointer", "L": "local"}.get(code, "value")
        if field.kind != kind or parameter.space == "constant":
            return nowhere, ()
    places = [_HEAD_BYTES + field.offset for field in function.fields]
    return places, (function.blob_bytes, function.local_bytes)


def _parameters(
    signature: Signature, given: ArgumentValues | None = None
) -> list[_Parameter] | None:
    """Return the code, mode and bytes of each parameter. None: one is left to Python. `given`:
    arguments of a PyOpenCL kernel, which tell what the signature does not."""
    found = [
        _parameter(parameter, index, given) for index, parameter in enumerate(signature.parameters)
    ]
    return found if all(code for code, *_ in found) else None


def _parameter(parameter: Parameter, index: int, given: ArgumentValues | None) -> _Parameter:
    """Return the code, mode and bytes of a parameter. Without a code it is left to Python."""
    code, mode, nbytes, _ = parameter_of(parameter)  # the core asks the binder for the last
    if given is None or code in "PL":
        return (code, mode, nbytes) if code not in "?M" else ("", "", 0)
    value = given.values.get(index)
    if value is not None:
        return (code, mode, nbytes) if len(value) == nbytes else ("v", "", len(value))
    is_memory = isinstance(given.pointers[index], (cl.MemoryObjectHolder, cl.SVMPointer))
    return ("M" if is_memory else "O"), mode or "rw", nbytes if code == "M" else 8


def _too_many(parameters: Sequence[_Parameter]) -> bool:
    pointers = sum(code in "PM" for code, *_ in parameters)
    nbytes = sum(-(-size // 8) * 8 for *_, size in parameters)
    too_long = len(parameters) > _MOST_PARAMETERS or nbytes > MOST_ARGS_BYTES
    return too_long or pointers > _MOST_POINTERS


def _are_plain(engine: object, args: tuple[object, ...]) -> bool:
    """Tell whether all memory among the arguments is plain arrays of the runtime, which may start
    inside their buffers."""
    return all(
        value.home is engine or (value.is_inside and value.engine is engine)
        if type(value) is Array
        else isinstance(value, (int, float, bytes, np.generic, np.ndarray))
        or type(value) is cl.LocalMemory
        for value in args
    )
