"""Needed numbers: the integer parameters that decide where a kernel touches memory.

Input: the functions of an outline (`opencl_c.modes.outline` lists the operations). Output: the
numbers that reach an address, a count, or a branch: parameters, and those in structures and
vectors. Pure, but it remembers.

Invariant: only the number of runs of `reach` depends on it. A number that `reach` does not get is
any of its type there. So one that is left out by mistake widens ranges, and never misses an access.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from acs_cl.opencl_c.outlines import Operation, OutlinedFunction

from ..records import NamedTuple

_PLAIN = frozenset({"c", "b", "cmp", "neg", "~", "!", "mm", "clamp", "24", "q", "+", "in"})
"""Operations that only give a value. They are needed if their value is."""

_ACTS = frozenset(
    {"r", "w", "rw", "rng", "esc", "call", "=", "new", "post", "loop", "loop met", "do", "do met",
     "return", "leave"}
)  # fmt: skip

_LOOPS = frozenset({"loop", "loop met", "do", "do met"})


class Number(NamedTuple):
    """A number of a launch."""

    parameter: int
    offset: int  # in a structure or a vector, in bytes
    bits: int  # negative if unsigned
    name: str  # of a part, with that of the parameter


KEPT = 1024
_known: dict[int, tuple[Sequence[OutlinedFunction], frozenset[Number]]] = {}
"""{identity of functions: these, and what is needed}. A program that generates its kernels builds
the same source again and again, and all these kernels have one outline."""
_lock = threading.RLock()  # the collector may call code of the program, which comes here again


def needed(functions: Sequence[OutlinedFunction]) -> frozenset[Number]:
    """Return the numbers of a kernel's launches that matter."""
    known = _known.get(id(functions))
    if known is not None:
        return known[1]
    found = frozenset(_walked(functions))
    with _lock:
        _known[id(functions)] = functions, found
        if len(_known) > KEPT:
            del _known[next(iter(_known))]
    return found


def _walked(functions: Sequence[OutlinedFunction]) -> set[Number]:
    walk = _Walk()
    before = -1
    while before != len(walk.slots):  # a needed variable needs the values that it was given
        before = len(walk.slots)
        for _, body, *_ in functions[:: walk.turn]:
            walk.several(body)
        walk.turn = -walk.turn  # values may come from in front, or in a loop from behind
    return walk.arguments


class _Walk:
    def __init__(self) -> None:
        self.arguments: set[Number] = set()
        self.slots: set[int] = set()
        self.turn = -1  # backwards if below zero

    def several(self, operations: Sequence[Operation], is_needed: bool = False) -> None:
        for operation in operations[:: self.turn]:
            if operation.__class__ in (list, tuple):
                self.visit(operation, is_needed)

    def visit(self, op: Operation, is_needed: bool) -> None:
        """Visit an operation. `is_needed`: whether its value is."""
        name = op[0]
        if name == "a":
            if is_needed:
                self.arguments.add(Number(op[1], 0, op[2], ""))
        elif name == "part":
            if is_needed:
                self.arguments.add(Number(*op[1:]))
        elif name == "s":
            if is_needed:
                self.slots.add(op[1])
        elif name in ("=", "new", "post"):
            if is_needed:
                self.slots.add(op[1])
            self.visit(op[2], op[1] in self.slots)
        elif name == ",":
            self.several(op[1:-1])
            self.several(op[1:][-1:], is_needed)
        elif name in _PLAIN:
            self.several(op[1:], is_needed)
        elif name in ("and", "or", "?:"):
            self.visit(op[1], is_needed or any(_acts(part) for part in op[2:]))
            self.several(op[2:], is_needed)
        elif name in ("if", "if met"):
            self.visit(op[1], True)
            self.several(op[2:])
        elif name in _LOOPS:
            _, _, condition, body, step, counters, _ = op
            self.visit(condition, True)
            self.several(body)
            self.several([step])
            for slot, _, by, *_ in counters:
                self.visit(by, slot in self.slots)
        elif name == "switch":
            self.visit(op[1], True)
            self.several(op[3])
        elif name == "maybe":
            self.several(op[2])
        else:
            for part in op[1:]:
                if part.__class__ in (list, tuple) and part:
                    # the arguments of a call are a list of operations
                    each = [part] if isinstance(part[0], str) else part
                    self.several(each, True)


def _acts(operation: Operation) -> bool:
    """Tell whether an operation does more than give a value."""
    if operation.__class__ not in (list, tuple) or not operation:
        return False
    return operation[0] in _ACTS or any(_acts(part) for part in operation)
