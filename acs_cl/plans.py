"""Launch plans: what the native core has to know of a kernel to make its launches by itself.

In: launches that Python made, and where they went. Out: a plan of the kernel, and what its sizes
and numbers come to. Invariant: what the core makes by itself is what Python would have made;
whatever the plan does not say comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyopencl as cl

from . import core
from .access.binder import parameter_of
from .access.called import Called
from .memory.array import Array
from .records import Access, Sizes
from .scheduler.layout import INLINE_BYTES, RECORD_BYTES

if TYPE_CHECKING:
    from .access.signature import Parameter
    from .launch.commands import KernelCommand
    from .launch.engine import Engine
    from .scheduler.builds import Scheduler
    from .scheduler.task import Body

_Parameter: TypeAlias = tuple[str, str, int]
"""What the core calls a parameter, how it is used, and its bytes."""

FLAGS = (np.dtype(np.uint32), np.dtype(np.int32))
"""Types of a word that `when=` looks at."""

_HEAD_BYTES = RECORD_BYTES - INLINE_BYTES
_MOST_POINTERS = 31
_MOST_PARAMETERS = 64

_NUMBERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float32, np.float64,
)  # fmt: skip
"""Types of numbers that convert without any Python code, besides Python's own."""


class Given(Protocol):
    """What a kernel of PyOpenCL's was given."""

    pointers: dict[int, object]
    """Memory and the like, by index."""
    values: dict[int, bytes]
    """All others."""


class Planned(Called, Protocol):
    """A kernel whose launches the core may make by itself."""

    is_for_python: bool
    """Whether the core can make none of its launches."""

    @property
    def engine(self) -> Engine:
        """The engine of its runtime."""

    @property
    def binder(self) -> core.native.Binder:
        """What binds the arguments of its launches."""


def use(handle: type) -> None:
    """What a launch gives back, once."""
    core.native.use(handle, Array, cl.LocalMemory, _NUMBERS, FLAGS)


def plan_launches(
    kernel: Planned,
    offer: tuple[Scheduler, Body] | None,
    global_size: Sizes,
    local_size: Sizes | None,
    access: Access,
    args: tuple[object, ...],
    number: int,
    variant: object = None,
) -> None:
    """Launch `number`, without keywords but for `when=`, went to a backend: the core makes those
    like it from now on, with `when=` or without, as far as nothing is unusual when they come.
    `offer`: the scheduler that has the kernel, and its body there, if one has; `access`: what it
    touches without `when=`; `variant`: the OpenCL kernel that looks at that first, if there is
    one."""
    assert isinstance(kernel, core.native.Caller)
    native, engine = core.native, kernel.engine
    if kernel.is_for_python or not engine.table.usable:
        return
    head = _head(kernel, offer, global_size, local_size)
    stay = _stay(kernel, global_size, local_size, args, number)
    if head is None and stay is None:
        return
    if not native.is_planned(kernel) and not _plan(kernel, _parameters(kernel), offer):
        kernel.is_for_python = True
        return
    native.learn(kernel, global_size, local_size, head, stay)
    if variant is not None:
        native.learn_gate(kernel, variant)


def plan_commands(
    joining: core.native.Joining,
    of_program: cl.Kernel,
    kernel: Planned,
    command: KernelCommand,
    given: Given,
    number: int,
) -> None:
    """Launch `number`, a command of an `acs.Queue`, went to a backend: the core makes those like it
    from now on. `of_program` is what the program launched, with the arguments that it was `given`;
    `kernel` is the runtime's own for it, which has the plan."""
    assert isinstance(kernel, core.native.Caller)
    native, engine = core.native, kernel.engine
    name, queued, global_size, local_size = command[:4]
    stay = engine.backend.stays(number, queued, (name, global_size, local_size))
    if not stay[0] or not engine.table.usable:
        return
    if not native.is_planned(kernel) and not _plan(kernel, _parameters(kernel, given), None):
        return
    native.learn(kernel, global_size, local_size, None, stay)
    native.set_arguments(joining, of_program, kernel, queued, given.pointers, given.values)


def _head(
    kernel: Planned,
    offer: tuple[Scheduler, Body] | None,
    global_size: Sizes,
    local_size: Sizes | None,
) -> tuple[bytes, bytes | None] | None:
    """What records of these sizes begin with, where the scheduler takes such launches."""
    if offer is None:
        return None
    scheduler, body = offer
    head = body.heads.get((global_size, local_size, None, None))
    if head is None:
        return None
    backend: Any = kernel.engine.backend
    takes = backend.takes((kernel.name, global_size, local_size), head[2], scheduler)
    return head[:2] if takes else None


def _stay(
    kernel: Planned,
    global_size: Sizes,
    local_size: Sizes | None,
    args: tuple[object, ...],
    number: int,
) -> tuple[int, int, str | None] | None:
    """How long launches like `number` go to lanes, where that one did."""
    engine = kernel.engine
    backend = engine.backend
    if backend.core_queues is None:
        return None
    stay = backend.stays(number, kernel.native, (kernel.name, global_size, local_size))
    if not stay[0] or not _are_plain(engine, args):
        return None
    if engine.plan.scheduler == "all" and any(type(one) is cl.LocalMemory for one in args):
        return None  # how much of it there is decides whether the scheduler takes the next one
    return stay


def _plan(
    kernel: Planned, parameters: list[_Parameter] | None, offer: tuple[Scheduler, Body] | None
) -> bool:
    """Give the core a plan for the kernel; false where it can have none."""
    assert isinstance(kernel, core.native.Caller)
    engine, signature = kernel.engine, kernel.signature
    if (
        parameters is None
        or _too_many(parameters)
        or signature.anywhere
        or signature.program_globals
    ):
        return False
    places, epoch = _places(kernel, parameters, offer)
    queues = engine.backend.core_queues
    lanes = None if queues is None else (queues, kernel.native, engine.plan.memory == "svm")
    core.native.plan(
        kernel, engine.table, kernel.name,
        [(*parameter, at) for parameter, at in zip(parameters, places, strict=True)],
        kernel.binder, lanes, epoch,
    )  # fmt: skip
    return True


def _places(
    kernel: Planned, codes: list[_Parameter], offer: tuple[Scheduler, Body] | None
) -> tuple[list[int], tuple[Scheduler, int, int, int] | None]:
    """Where each argument is in a record, and what else the core has to know of the scheduler; None
    where it cannot pack them."""
    nowhere = [0] * len(codes)
    if offer is None:
        return nowhere, None
    scheduler, body = offer
    function = body.function
    parameters = kernel.signature.parameters
    for (code, *_), parameter, field in zip(codes, parameters, function.fields, strict=True):
        kind = {"P": "pointer", "L": "local"}.get(code, "value")
        if field.kind != kind or parameter.space == "constant":
            return nowhere, None
    places = [_HEAD_BYTES + field.offset for field in function.fields]
    return places, (scheduler, function.blob_bytes, function.local_bytes, body.limits.arena_bytes)


def _parameters(kernel: Planned, given: Given | None = None) -> list[_Parameter] | None:
    """What each parameter is for the core, how it is used, and its bytes; None where one is left to
    Python. What a kernel of PyOpenCL's was `given` tells what the signature does not."""
    found = [
        _parameter(parameter, index, given)
        for index, parameter in enumerate(kernel.signature.parameters)
    ]
    return [one for one in found if one[0]] if all(code for code, *_ in found) else None


def _parameter(parameter: Parameter, index: int, given: Given | None) -> _Parameter:
    """One of them; no code where it is left to Python."""
    code, mode, nbytes = parameter_of(parameter)
    if given is None or code in "PL":
        return (code, mode, nbytes) if code != "?" else ("", "", 0)
    value = given.values.get(index)
    if value is not None:
        return (code, mode, nbytes) if len(value) == nbytes else ("v", "", len(value))
    is_memory = isinstance(given.pointers[index], (cl.MemoryObjectHolder, cl.SVMPointer))
    return ("M" if is_memory else "O"), mode or "rw", 8


def _too_many(parameters: Sequence[_Parameter]) -> bool:
    pointers = sum(code in "PM" for code, *_ in parameters)
    return len(parameters) > _MOST_PARAMETERS or pointers > _MOST_POINTERS


def _are_plain(engine: object, args: tuple[object, ...]) -> bool:
    """Whether all memory among the arguments is plain arrays of the runtime."""
    return all(
        value.home is engine
        if type(value) is Array
        else isinstance(value, (int, float, np.number, np.bool_)) or type(value) is cl.LocalMemory
        for value in args
    )
