"""Packers: one generated function per kernel in a scheduler, for plain launches of it.

In: a kernel and its body. Out: `pack(kernel, global size, local size, args)`, which gives a
`TaskCommand` and its `Access`, or None for whatever is not plain: that takes the long way, by
`converter` and `Body.task`, which know every case and every error and give the same record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import scalars
from .arrays import Array
from .records import Access
from .tasks import Body, TaskCommand

if TYPE_CHECKING:
    from .kernel import Kernel

Pack = Callable[["Kernel", Any, Any, tuple[Any, ...]], "tuple[TaskCommand, Access] | None"]


def packer(kernel: Kernel, scheduler: Any, body: Body) -> Pack | None:
    """Generate it; None where no launch of the kernel is plain.

    Plain: sizes that were launched before, every pointer an array of this runtime that is one
    rectangle of bytes, every scalar a number that fits, arguments that fit into the record.
    """
    signature = kernel.signature
    if signature.anywhere or signature.program_globals or not body.fits:
        return None
    names = [f"a{index}" for index in range(len(signature.parameters))]
    tests: list[str] = []
    parts: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    for name, parameter, field in zip(
        names, signature.parameters, body.function.fields, strict=True
    ):
        if parameter.is_pointer and parameter.space == "global":
            tests.append(f"type({name}) is Array and {name}._home is runtime")
            parts.append(f"{name}._address")
            if "r" in parameter.mode:
                reads.append(f"{name}._span")
            if "w" in parameter.mode:
                writes.append(f"{name}._span")
        elif scalars.code(parameter) is not None and field.kind == "value":
            parts.append(name)
        else:
            return None
    scope: dict[str, Any] = {
        "Access": Access,
        "Array": Array,
        "TaskCommand": TaskCommand,
        "heads": body.heads,
        "new": tuple.__new__,
        "pack_record": body.record_packer(
            [scalars.code(parameter) for parameter in signature.parameters]
        ),
        "scheduler": scheduler,
    }
    access = f"new(Access, ({_tuple(reads)}, {_tuple(writes)}, ()))"
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
            f"        if {' and '.join(tests) or 'not args'}:",
            "            head, shape, tiles = heads[global_size, local_size, None]",
            f"            record = pack_record({', '.join(['head', *parts])})",
            f"            task = ({kernel.name!r}, scheduler, record, None, shape, tiles,",
            "                    global_size, local_size)",
            f"            return new(TaskCommand, task), {access}",
            "    except Exception:",
            "        pass",
            "    return None",
        ]
    )
    exec(compile(text, f"<records of {kernel.name}>", "exec"), scope)
    pack: Pack = scope["pack"]
    return pack


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"
