"""Unread variables: an outline without those that nothing needs.

Input: functions of an outline. Output: the same, without assignments of variables that no access,
branch or needed variable reads. Invariant: what an assigned value does is kept, and comes once.

The parameters whose variables are left are the numbers that a launch's accesses depend on.
"""

from __future__ import annotations

from acs_cl.opencl_c.modes.values import ACCESSES, ASSIGNMENTS, LOOPS, has_effect
from acs_cl.opencl_c.outlines import Made

_LISTS = {"again": 1, "switch": 2, "maybe": 1, **dict.fromkeys(LOOPS, 1)}
"""Where an operation lists the variables that it may assign."""
_NOTHING: Made = [","]
_ALL, _NONE = -1, -2
"""What a value is for, instead of a variable: something that is surely needed, and nothing."""


def without(functions: Made, many: int) -> Made:
    """Return functions without their unread variables, of which there are so many in all."""
    reading = _Reading(functions, many)
    for _, body, *_ in functions:
        reading.several(body, _NONE)
    kept = reading.closed()
    if len(kept) == many:
        return functions
    numbers = {slot: at for at, slot in enumerate(sorted(kept))}
    return [
        [
            [numbers.get(one, -1) for one in parameters],
            _rewritten(body, numbers),
            touches,
            [numbers[one] for one in own if one in numbers],
        ]
        for parameters, body, touches, own in functions
    ]


class _Reading:
    def __init__(self, functions: Made, many: int) -> None:
        self.functions = functions
        self.read: set[int] = set()
        self.by: list[set[int]] = [set() for _ in range(many)]  # what the value of each one reads

    def several(self, operations: Made, of: int) -> None:
        for one in operations:
            if isinstance(one, list):
                self.visit(one, of)

    def visit(self, operation: Made, of: int) -> None:
        """Visit an operation. `of`: what its value is for."""
        name = operation[0] if operation else None
        if not isinstance(name, str):
            self.several(operation, of)
        elif name == "s":
            self.note(operation[1], of)
        elif name in ASSIGNMENTS:
            self.visit(operation[2], operation[1])
            self.note(operation[1], of)
        elif name in LOOPS:
            self.visit(operation[2], _ALL)
            self.several(operation[3], _NONE)
            self.visit(operation[4], _NONE)
            for slot, _, by, *_ in operation[5]:
                self.visit(by, slot)
        elif name == "call":
            for slot, value in zip(self.functions[operation[1]][0], operation[2], strict=True):
                self.visit(value, slot if slot >= 0 else _NONE)
        elif name in ("if", "if met"):
            self.visit(operation[1], _ALL)
            self.several(operation[2:], _NONE)
        elif name in ("and", "or", "?:"):
            self.visit(operation[1], _ALL if has_effect(operation[2:]) else of)
            self.several(operation[2:], of)
        elif name == "switch":
            self.visit(operation[1], _ALL)
            self.several(operation[3], _NONE)
        elif name == "maybe":
            self.several(operation[2], _NONE)
        elif name == ",":
            self.several(operation[1:-1], _NONE)
            self.several(operation[1:][-1:], of)
        else:
            is_needed = name in ACCESSES or name == "return"
            self.several(operation[1:], _ALL if is_needed else of)

    def note(self, slot: int, of: int) -> None:
        if of == _ALL:
            self.read.add(slot)
        elif of != _NONE:
            self.by[of].add(slot)

    def closed(self) -> set[int]:
        kept = set(self.read)
        left = list(kept)
        while left:
            new = self.by[left.pop()] - kept
            kept |= new
            left += new
        return kept


def _rewritten(operation: Made, numbers: dict[int, int]) -> Made:
    if not isinstance(operation, list) or not operation:
        return operation
    name = operation[0]
    if not isinstance(name, str):  # a list of operations
        return [_rewritten(part, numbers) for part in operation]
    if name == "s":
        return ["s", numbers[operation[1]]] if operation[1] in numbers else _NOTHING
    if name in ASSIGNMENTS:
        value = _rewritten(operation[2], numbers)
        return [name, numbers[operation[1]], value] if operation[1] in numbers else value
    made = [_rewritten(part, numbers) if isinstance(part, list) else part for part in operation]
    if name in _LISTS:
        at = _LISTS[name]
        made[at] = [[numbers[slot], kind] for slot, kind in operation[at] if slot in numbers]
    if name in LOOPS:
        made[5] = [
            [numbers[slot], kind, _rewritten(by, numbers), how, in_step]
            for slot, kind, by, how, in_step in operation[5]
            if slot in numbers
        ]
    return made
