"""Packers: one generated function per kernel in a scheduler, for plain launches of it.

In: a kernel and its body. Out: `pack(kernel, global size, local size, args)`, which gives a
`TaskCommand` and its `Access`, or None for whatever is not plain: that takes the long way, by
`converter` and `Body.task`, which know every case and every error and give the same record.

The core is taught to do the same and all that follows (`teaching`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from . import scalars
from .arrays import Array
from .commands import KernelCommand
from .converter import generated, tuple_of
from .epochs import with_when
from .ranges import overlap
from .records import EVERYTHING, Access
from .tasks import LOCAL_ALIGN, Body, TaskCommand

if TYPE_CHECKING:
    from .kernel import Kernel

Pack = Callable[["Kernel", Any, Any, tuple[Any, ...]], "tuple[TaskCommand, Access] | None"]


def packer(kernel: Kernel, scheduler: Any, body: Body) -> Pack | None:
    """Generate it; None where no launch of the kernel is plain.

    Plain: sizes that were launched before, every pointer an array of this runtime that is one
    rectangle of bytes, every scalar a number that fits.
    """
    signature = kernel.signature
    if signature.anywhere or signature.program_globals:
        return None
    names = [f"a{index}" for index in range(len(signature.parameters))]
    tests: list[str] = []
    parts: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    pointers: list[str] = []
    numbers: list[str] = []
    arena: list[str] = []
    for index, (name, parameter, field) in enumerate(
        zip(names, signature.parameters, body.function.fields, strict=True)
    ):
        if parameter.is_pointer and parameter.space == "global":
            tests.append(f"type({name}) is Array and {name}._home is runtime")
            parts.append(f"{name}._address")
            pointers.append(f"{index}, {name}._argument")
            if "r" in parameter.mode:
                reads.append(f"{name}._span")
            if "w" in parameter.mode:
                writes.append(f"{name}._span")
        elif parameter.is_pointer and parameter.space == "local" and field.kind == "local":
            tests.append(f"type({name}) is LocalMemory")
            arena.append(f"            at{index} = -(-used // {LOCAL_ALIGN}) * {LOCAL_ALIGN}")
            arena.append(f"            used = at{index} + {name}.size")
            parts.append(f"at{index}")
            pointers.append(f"{index}, {name}")
        elif scalars.code(parameter) is not None and field.kind == "value":
            parts.append(name)
            numbers.append(name)
        else:
            return None
    if arena:
        most = body.limits.arena_bytes
        arena.insert(0, f"            used = {body.function.local_bytes}")
        arena.append(f"            if used > {most}: return None")
    scope: dict[str, Any] = {
        "Access": Access,
        "Array": Array,
        "LocalMemory": cl.LocalMemory,
        "NOT_PLAIN": scalars.NOT_PLAIN,
        "TaskCommand": TaskCommand,
        "heads": body.heads,
        "new": tuple.__new__,
        "plain": _Plain(kernel),
        "put": body.packer([scalars.code(parameter) for parameter in signature.parameters]),
        "scheduler": scheduler,
    }
    if body.fits:
        record, blob = f"put({', '.join(['head', *parts])})", "None"
    else:
        record, blob = "head", f"put({', '.join(parts)})"
    access = f"new(Access, ({tuple_of(reads)}, {tuple_of(writes)}, ()))"
    text = "\n".join(
        [
            "def pack(kernel, global_size, local_size, args):",
            "    try:",
            *(
                [f"        {', '.join(names)}{',' if len(names) == 1 else ''} = args"]
                if names
                else []
            ),
            "        runtime = kernel._runtime",
            f"        if {' and '.join(tests) or ('True' if names else 'not args')}:",
            *arena,
            "            head, shape, tiles = heads[global_size, local_size, None]",
            f"            task = ({kernel.name!r}, scheduler, {record}, {blob}, shape, tiles,",
            f"                    global_size, local_size, plain, {tuple_of(pointers)},",
            f"                    {tuple_of(numbers)})",
            f"            return new(TaskCommand, task), {access}",
            "    except NOT_PLAIN:",
            "        kernel._runtime._stats.not_plain += 1",
            "    return None",
        ]
    )
    pack: Pack = generated("pack", text, "<records of a kernel>", scope)
    return pack


def with_flag(
    packed: tuple[TaskCommand, Access], when: Any, runtime: Any
) -> tuple[TaskCommand, Access] | None:
    """The same launch, run only if a flag on the device is not zero; None where that is not plain:
    the flag is no array of this runtime of one word, or the kernel may write it."""
    command, access = packed
    if type(when) is not Array or when._home is not runtime:
        return None
    span = when._span
    if span is None or when.size != 1 or when.dtype not in FLAGS or when._address % 4:
        return None
    for written in access.writes:
        if written.base == EVERYTHING or (written.base == span.base and overlap(written, span)):
            return None
    record = with_when(command.record, when._address)
    task = tuple.__new__(TaskCommand, (*command[:2], record, *command[3:]))
    return task, Access((*access.reads, span), access.writes)


FLAGS = (np.dtype(np.uint32), np.dtype(np.int32))


class _Plain:
    """Gives back the command for a queue that a task stands for. It does not hold the kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._native = kernel.native
        packers = [scalars.packer(parameter) for parameter in kernel.signature.parameters]
        self._packers = [(index, pack) for index, pack in enumerate(packers) if pack is not None]

    def __call__(self, task: TaskCommand) -> KernelCommand:
        values: list[Any] = []
        for (index, pack), number in zip(self._packers, task.numbers, strict=True):
            values += (index, pack(number))
        return KernelCommand(
            task.name, self._native, task.global_size, task.local_size, task.pointers,
            tuple(values), None,
        )  # fmt: skip
