"""Counters of loops: variables that each turn changes in the same way.

Input: the operations of a loop, as `loops` makes them. Output: of each counter its variable, its
type, by what it is changed and how, and whether that comes behind the body. Invariant: the change
is made in every turn that another one follows. By what it is changed does not change. What is
changed more than once is only changed by sums, and no turn is left between these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from acs_cl.opencl_c.modes.values import ACCESSES, ASSIGNMENTS, NOTHING, has_effect, inside
from acs_cl.opencl_c.outlines import Made

from ...records import NamedTuple

_ALWAYS = frozenset(
    {*ACCESSES, *ASSIGNMENTS, ",", "+", "in", "b", "c", "cmp", "neg", "~", "!", "mm", "clamp", "24",
     "q", "call"}
)  # fmt: skip
"""Operations that evaluate all that they are made of, once."""
_FIRST = frozenset({"and", "or", "?:", "if", "if met", "switch"})
"""Those that evaluate the first part, once."""
_CHANGES = frozenset({"=", "post"})
_WAYS = {"*": "*", "<<": "*", "/": "/", ">>": "/"}


class Change(NamedTuple):
    """What a turn does to a variable."""

    by: Made
    how: int | str  # a factor of what is added, or `*`, or `/`


def assignments(operation: Made) -> dict[int, int]:
    """Count how often each variable is assigned in an operation."""
    return Counter(one[1] for one in inside(operation) if one[0] in ASSIGNMENTS)


def reads(operation: Made) -> set[int]:
    """Return the variables that an operation reads."""
    return {one[1] for one in inside(operation) if one[0] == "s"}


def sure(operation: object) -> Iterator[Made]:
    """Yield the assignments that an operation surely makes, once."""
    if not isinstance(operation, list) or not operation:
        return
    name = operation[0]
    if not isinstance(name, str):  # a list of operations
        for part in operation:
            yield from sure(part)
        return
    if name in _CHANGES:
        yield operation
    if name in _ALWAYS:
        for part in operation[1:]:
            yield from sure(part)
    elif name in _FIRST:
        yield from sure(operation[1])


def ends(types: Mapping[int, int], operations: Made) -> list[Made]:
    """Return the conditions of each `if (...) break;` in what a turn without `continue` does, or
    `return`, as they are when the next turn begins: if one had held, there would be none."""
    flat = list(_flat(operations))
    assigned = assignments(operations).keys()
    found = []
    for at, operation in enumerate(flat):
        if operation[0] not in ("if", "if met") or has_effect(operation[1]):
            continue
        *_, last = [NOTHING, *_flat(operation[2])]
        if last[0] not in ("leave", "return"):
            continue
        condition: Made | None = operation[1]
        behind = [operation[3], *flat[at + 1 :]]
        many = assignments(behind)
        for slot in reads(operation[1]) & many.keys():
            kind = types.get(slot, 0)
            own = [_change(slot, kind, one[2]) for one in sure(behind) if one[1] == slot]
            change = _sum_of(own) if kind and len(own) == many[slot] else None
            if condition is None or change is None or reads(change.by) & assigned:
                condition = None
            else:
                before = ["c", kind, ["b", "-", 64, ["s", slot], change.by]]
                condition = _with(condition, ["s", slot], before)
        if condition is not None:
            found.append(condition)
    return found


def _with(operation: Made, old: Made, new: Made) -> Made:
    """Return an operation with another one in place of each part that is like an old one."""
    if operation == old:
        return new
    return [_with(part, old, new) if isinstance(part, list) else part for part in operation]


def _flat(operation: Made) -> Iterator[Made]:
    """Yield operations in order, without what only holds some of them."""
    if operation and operation[0] != "," and isinstance(operation[0], str):
        yield operation
        return
    for part in operation:
        if isinstance(part, list):
            yield from _flat(part)


def counters(
    types: Mapping[int, int], assigned: Mapping[int, int], body: list[Made], step: Made,
    may_break: bool,
) -> list[Made]:  # fmt: skip
    """Return the counters of a loop, as the outline has them. `types`: of the variables.
    `assigned`: how often the loop assigns each. `body`: what surely runs in each turn.
    `may_break`: whether a turn may be left before its end."""
    found = _inner_counters(types, assigned, body)
    for part, in_step in ((body, False), (step, True)):
        changes: dict[int, list[Change | None]] = {}
        for operation in sure(part):
            slot = operation[1]
            if slot in types:
                changes.setdefault(slot, []).append(_change(slot, types[slot], operation[2]))
        for slot, own in changes.items():
            change = own[0] if len(own) == 1 else None if may_break else _sum_of(own)
            if change is None or assigned[slot] != len(own):
                continue
            if not (reads(change.by) & assigned.keys()) and not assignments(change.by):
                found.append([slot, types[slot], change.by, change.how, in_step])
    return found


def _sum_of(changes: Iterable[Change | None]) -> Change | None:
    """Return what changes do together. None: some are no sums."""
    by: Made | None = None
    for one in changes:
        if one is None or not isinstance(one.how, int):
            return None
        own = ["b", "*", 64, ["k", one.how], one.by]
        by = own if by is None else ["b", "+", 64, by, own]
    return None if by is None else Change(by, 1)


def _inner_counters(
    types: Mapping[int, int], assigned: Mapping[int, int], body: list[Made]
) -> list[Made]:
    """Return the variables that loops inside of a loop count with, and what changes them there, if
    each turn of the outer loop runs all of these."""
    sums: dict[int, list[Made]] = {}
    many: dict[int, int] = {}
    inner = list(_sure_loops(body))
    for loop in inner:
        own = assignments([loop[2], loop[3], loop[4]])
        for slot, _, by, how, _ in loop[5]:
            if isinstance(how, int) and loop[6] >= 0:
                turns = ["b", "*", 64, ["turns", loop[6]], ["b", "*", 64, ["k", how], by]]
                sums.setdefault(slot, []).append(turns)
                many[slot] = many.get(slot, 0) + own[slot]
    if not sums:
        return []
    for operation in sure(body):
        slot = operation[1]
        change = _change(slot, types[slot], operation[2]) if slot in sums else None
        if change and isinstance(change.how, int):
            sums[slot].append(["b", "*", 64, ["k", change.how], change.by])
            many[slot] += 1
    found = []
    for slot, parts in sums.items():
        by = parts[0]
        for part in parts[1:]:
            by = ["b", "+", 64, by, part]
        if many[slot] == assigned[slot] and not (reads(by) & assigned.keys() or assignments(by)):
            found.append([slot, types[slot], by, 1, False])
    return found


def _sure_loops(operation: Made) -> Iterator[Made]:
    """Yield the loops that operations surely come to, once."""
    for part in operation:
        if not isinstance(part, list) or not part:
            continue
        if part[0] in ("loop", "loop met"):
            yield part
        elif part[0] == "," or isinstance(part[0], list):
            yield from _sure_loops(part)


def _change(slot: int, kind: int, value: Made) -> Change | None:
    """Return what the assigned value is, beside the old one. None: something else."""
    if not kind:
        if value[0] == "+" and value[1] == ["s", slot] and value[3]:
            return Change(value[2], value[3])
        return None
    value = _inside(value, kind)
    if value[0] != "b" or abs(value[2]) < abs(kind):
        return None
    _, sign, _, left, right = value
    old = ["s", slot]
    if sign == "+" and _inside(right, kind) == old:
        left, right = right, left
    if _inside(left, kind) != old:
        return None
    if sign in "+-":
        return Change(right, 1 if sign == "+" else -1)
    if sign in ("/", ">>") and not _keeps(left, kind):
        return None
    if sign in ("<<", ">>"):
        right = ["b", "<<", 64, ["k", 1], right]
    return Change(right, _WAYS[sign]) if sign in _WAYS else None


def _inside(value: Made, kind: int) -> Made:
    """Return a value without conversions that keep the bits of a type."""
    while value[0] == "c" and abs(value[1]) >= abs(kind):
        value = value[2]
    return value


def _keeps(value: Made, kind: int) -> bool:
    """Tell whether conversions of a variable keep all of its values above zero."""
    while value[0] == "c":
        if kind < 0 < value[1] <= -kind:
            return False
        value = value[2]
    return True


def replaced(operation: Made, old: Made, new: Made) -> Made:
    """Return an operation with another one in place of a part of it."""
    if operation is old:
        return new
    return [replaced(part, old, new) if isinstance(part, list) else part for part in operation]
