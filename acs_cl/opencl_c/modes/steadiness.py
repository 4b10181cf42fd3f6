"""Steadiness: whether the order of work-items at their atomics can change a kernel's result.

Input: the functions of a kernel as plain nodes. Output: '' or the reason. Invariant: '' only if
there are no atomics, or all atomics on one variable commute, are of integers, and return no value
that is used. Other reads of such memory at the same time are a race of the program itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_ATOMIC = re.compile(r"atom(ic)?_|__(atomic|sync|c11_atomic|opencl_atomic)_")
_QUIET = re.compile(r"atomic_(work_item_fence|load(_explicit)?|init)$")
_COMMUTES = re.compile(r"atom(?:ic)?_(?:fetch_)?(add|sub|inc|dec|min|max|and|or|xor)(_explicit)?$")
_GROUPS = {"sub": "add", "inc": "add", "dec": "add"}
"""Operations that commute with each other."""


def unsteady(functions: Mapping[int, bodies.Function]) -> str:
    """Return why launches may differ by their atomics. '': they cannot. The kernel comes first."""
    aimed: dict[int, set[str]] = {}
    kernel = next(iter(functions.values()))
    own = {p.key for p in kernel.parameters} - _pointed_anew(kernel.body)
    for function in functions.values():
        for call, used in _atomics(function.body):
            name = _name(call)
            match = _COMMUTES.match(name)
            if match is None:
                return f"the order of its {name} may matter"
            if used:
                return f"it uses what {name} gives back"
            if not call.number:
                return f"{name} of numbers that are no integers"
            kind = _GROUPS.get(match[1], match[1])
            aimed.setdefault(_variable(call.children[1]), set()).add(kind)
    everywhere = set().union(*aimed.values(), set())
    several = next((one for one in aimed.values() if len(one) > 1), set())
    if not several and not aimed.keys() <= own and len(everywhere) > 1:
        several = everywhere  # it is not known which of them use the same memory
    return f"its atomic {' and '.join(sorted(several))} may meet" if several else ""


def _pointed_anew(body: Iterable[Node]) -> set[int]:
    """Return the variables that are assigned, or whose address is taken: they may come to point to
    other memory."""
    found: set[int] = set()
    left = list(body)
    while left:
        node = left.pop()
        if (node.kind == n.BINARY_OPERATOR and node.operator == n.ASSIGN) or (
            node.kind == n.UNARY_OPERATOR and node.operator == n.ADDRESS_OF
        ):
            target = node.children[0]
            while target.kind == n.PAREN_EXPR:
                target = target.children[0]
            if target.kind == n.DECL_REF_EXPR:
                found.add(target.key)
        left += node.children
    return found


def _atomics(body: Iterable[Node]) -> list[tuple[Node, bool]]:
    """Return the calls of atomics, and whether their results are used."""
    found: list[tuple[Node, bool]] = []
    left = [(statement, False) for statement in body]
    while left:
        node, used = left.pop()
        name = _name(node) if node.kind == n.CALL_EXPR else ""
        if _ATOMIC.match(name) and not _QUIET.match(name):
            found.append((node, used))
        left += [(child, _is_used(node, at)) for at, child in enumerate(node.children)]
    return found


def _is_used(parent: Node, at: int) -> bool:
    """Tell whether the value of a child is used."""
    kind, last = parent.kind, len(parent.children) - 1
    if kind == n.COMPOUND:
        return False
    if kind in (n.IF, n.WHILE):
        return at == 0
    if kind == n.DO:
        return at != 0
    if kind in (n.FOR, n.CASE, n.DEFAULT):
        return at != last
    return True


def _name(call: Node) -> str:
    """Return the name of a built-in function. '': it has a body, which is walked itself."""
    target = bodies.called(call.children[0]) if call.children else None
    return "" if target is None or target.is_definition() else target.spelling


def _variable(node: Node) -> int:
    """Return the variable that a pointer is made from. 0: not simple enough."""
    while node.kind != n.DECL_REF_EXPR:
        if not node.children:
            return 0
        if node.kind in (n.ARRAY_SUBSCRIPT_EXPR, n.UNARY_OPERATOR, n.UNEXPOSED_EXPR, n.CAST_EXPR,
                         n.PAREN_EXPR):  # fmt: skip
            node = node.children[0]
        elif node.kind == n.BINARY_OPERATOR and node.shape == n.POINTER:
            node = next((one for one in node.children if one.shape == n.POINTER), node.children[0])
        else:
            return 0
    return node.key
