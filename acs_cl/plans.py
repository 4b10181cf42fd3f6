"""Teaching: the native core learns which launches are plain, and makes those like them itself.

In: launches that went to a scheduler or to a queue the long way. Out: what the core has to know of
the kernel, its sizes and its numbers. Invariant: what the core makes by itself is what the long way
would have made; whatever it was not taught takes that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyopencl as cl

from . import core
from .access import scalars
from .access.called import Called
from .memory.array import Array
from .records import Access
from .scheduler.layout import INLINE_BYTES, RECORD_BYTES

if TYPE_CHECKING:
    from .access.narrow import Narrow
    from .launch.engine import Engine
    from .scheduler.builds import Scheduler
    from .scheduler.task import Body

FLAGS = (np.dtype(np.uint32), np.dtype(np.int32))
"""Types of a word that `when=` looks at."""

_HEAD_BYTES = RECORD_BYTES - INLINE_BYTES
_MOST_POINTERS = 16
_MOST_PARAMETERS = 64

_NUMBERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float32, np.float64,
)  # fmt: skip
"""Types of numbers that convert without any Python code, besides Python's own."""

PATIENCE = 8192
"""Launches that the core may learn something new of a kernel by: the numbers that its ranges depend
on may be other ones in each. A network's kernel has hundreds, and some are learned again when a
scheduler was built."""


class Planned(Called, Protocol):
    """A kernel whose launches the core may make by itself."""

    infer_ranges: bool | None
    narrowing: Narrow | None
    """What makes its accesses narrower than whole views."""
    lessons: int
    """How often the core has learned something of it."""

    @property
    def engine(self) -> Engine:
        """The engine of its runtime."""


def use(handle: type) -> None:
    """What a launch gives back, once."""
    core.native.use(handle, Array, cl.LocalMemory, _NUMBERS, FLAGS)


def teach(
    kernel: Planned,
    offer: tuple[Scheduler, Body] | None,
    global_size: Any,
    local_size: Any,
    access: Access,
    args: tuple[Any, ...],
    number: int,
    variant: Any = None,
) -> None:
    """Launch `number`, without keywords but for `when=`, went to a backend: the core makes those
    like it from now on, with `when=` or without, as far as nothing is unusual when they come.
    `offer`: the scheduler that has the kernel, and its body there, if one has; `access`: what it
    touches without `when=`; `variant`: the OpenCL kernel that looks at that first, if there is
    one."""
    assert isinstance(kernel, core.native.Caller)
    teach_queues(kernel, global_size, local_size, access, args, number, variant)  # if it went there
    native, table = core.native, kernel.engine.table
    if offer is None or not table.usable:
        return
    if (
        kernel.infer_ranges and kernel.narrowing is not None
    ):  # for the scheduler it knows whole views only
        return
    scheduler, body = offer
    head = body.heads.get((global_size, local_size, None))
    if head is None or native.knows(kernel, global_size, local_size):
        return
    backend: Any = kernel.engine.backend
    if not backend.takes((kernel.name, global_size, local_size), head[2], scheduler):
        return
    if not native.is_taught(kernel):
        parameters = _layout(kernel, body)
        if parameters is None:
            return
        native.teach(
            kernel, table, scheduler, kernel.name, parameters, body.function.blob_bytes,
            body.function.local_bytes, body.limits.arena_bytes,
        )  # fmt: skip
    native.learn(kernel, global_size, local_size, head[0], head[1])


def _layout(kernel: Planned, body: Body) -> list[tuple[str, int, str]] | None:
    """For each parameter its code, its place in a record and its mode; None where the core cannot
    pack the arguments of the kernel."""
    signature, fields = kernel.signature, body.function.fields
    codes = _codes(kernel)
    if signature.anywhere or signature.program_globals or _too_many(codes):
        return None
    for (code, _), parameter, field in zip(codes, signature.parameters, fields, strict=True):
        kind = {"P": "pointer", "L": "local"}.get(code, "value")
        if code not in _KNOWN or field.kind != kind or parameter.space == "constant":
            return None
    return [
        (code, _HEAD_BYTES + field.offset, mode)
        for (code, mode), field in zip(codes, fields, strict=True)
    ]


_KNOWN = frozenset("PLbBhHiIqQfd")


def teach_queues(
    kernel: Planned,
    global_size: Any,
    local_size: Any,
    access: Access,
    args: tuple[Any, ...],
    number: int,
    variant: Any,
) -> None:
    """Launch `number`, without keywords but for `when=`, went to a queue. `access`: what it touches
    without that. `variant`: the OpenCL kernel that looks at it first, if there is one."""
    assert isinstance(kernel, core.native.Caller)
    engine = kernel.engine
    backend, table, native = engine.backend, engine.table, core.native
    if not table.usable or backend.core_queues is None or kernel.lessons >= PATIENCE:
        return
    key = kernel.name, global_size, local_size
    left, until, reason = backend.stays(number, kernel.native, key)
    if not left or not _are_plain(engine, args):
        return
    if engine.plan.scheduler == "all" and any(type(one) is cl.LocalMemory for one in args):
        return  # how much of it there is decides whether the scheduler takes the next one
    narrow = kernel.narrowing
    if not native.is_taught_queues(kernel):
        codes = _codes(kernel)
        signature = kernel.signature
        if (
            any(code not in _KNOWN for code, _ in codes)
            or _too_many(codes)
            or signature.anywhere
            or signature.program_globals
        ):
            kernel.lessons = PATIENCE
            return
        native.teach_queues(
            kernel, table, backend.core_queues, kernel.native, kernel.name, codes,
            engine.plan.memory == "svm", None if narrow is None else narrow.numbers,
        )  # fmt: skip
    covers = () if narrow is None else narrow.covers(global_size, local_size, args)
    if native.learn_queues(
        kernel, global_size, local_size, args, covers, access, left, until, reason
    ):
        kernel.lessons += 1
    if variant is not None:
        native.learn_gate(kernel, variant)


def _codes(kernel: Planned) -> list[tuple[str, str]]:
    """What each parameter is for the core, and how it is used; "" for what is left to Python."""
    codes = []
    for parameter in kernel.signature.parameters:
        code = scalars.code(parameter) or ""
        if parameter.is_pointer:
            code = {"global": "P", "constant": "P", "local": "L"}.get(parameter.space, "")
        codes.append((code, parameter.mode))
    return codes


def _too_many(codes: list[Any]) -> bool:
    return len(codes) > _MOST_PARAMETERS or sum(c[0] == "P" for c in codes) > _MOST_POINTERS


def _are_plain(engine: Any, args: tuple[Any, ...]) -> bool:
    """Whether all memory among the arguments is plain arrays of the runtime."""
    return all(
        value.home is engine
        if type(value) is Array
        else isinstance(value, (int, float, np.number, np.bool_)) or type(value) is cl.LocalMemory
        for value in args
    )
