"""Statements: what each of them does, in order.

Input: the reading, and a statement or an expression. Output: an operation of the outline. Raises
`Unclear` where control goes on in a way that an outline cannot tell, as with `goto`.
"""

from __future__ import annotations

from acs_cl.opencl_c.modes import expressions, loops, several
from acs_cl.opencl_c.modes.reading import Reading, Unclear
from acs_cl.opencl_c.modes.values import NOTHING, Several, has_effect, is_several
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_UNCLEAR = {
    n.CASE: "a case inside of another statement",
    n.DEFAULT: "a case inside of another statement",
    n.LABEL: "goto",
    n.GOTO: "goto",
    n.INDIRECT_GOTO: "goto",
    n.GCC_ASM_STMT: "inline assembly",
    n.MS_ASM_STMT: "inline assembly",
}


def statement(reading: Reading, node: Node) -> Made:
    """Return what a statement does."""
    clang.look_for_interrupts()
    kind = node.kind
    if n.is_expression(kind):
        return expressions.value(reading, node)
    if kind == n.VAR_DECL:
        return _declaration(reading, node)
    if kind == n.UNEXPOSED_STMT and len(node.children) == 1:
        return statement(reading, node.children[0])  # behind attributes or `#pragma unroll`
    if kind in (n.COMPOUND, n.DECL_STMT):
        return [",", *reading.statements(node.children)]
    if kind == n.IF:
        return _branches(reading, node)
    if kind == n.FOR:
        return loops.for_loop(reading, node)
    if kind == n.WHILE:
        condition, body = node.children
        return loops.loop(reading, condition, body, None)
    if kind == n.DO:
        return loops.do_loop(reading, node)
    if kind == n.SWITCH:
        return _switch(reading, node)
    if kind == n.RETURN_STMT:
        return _return(reading, node)
    if kind in (n.CONTINUE, n.BREAK):
        return ["leave"]
    if kind in _UNCLEAR:
        raise Unclear(_UNCLEAR[kind])
    if kind == n.TYPEDEF_DECL or kind < 100:
        return NOTHING  # a type or a function is declared
    if kind >= 200 and not node.children:
        return NOTHING
    raise Unclear("a statement that is not understood")


def _declaration(reading: Reading, node: Node) -> Made:
    values = [child for child in node.children if n.is_expression(child.kind)]
    parts = reading.parts_of(node)
    if parts is not None:
        given = several.numbers(reading, values[-1]) if values else Several([], {})
        return [",", *several.assign(reading, parts, given, "new")]
    slot = reading.slot_of(node)
    if slot is None:
        return [",", *(reading.given_away(value, "kept in a variable") for value in values)]
    if slot.type:
        value = reading.number(values[-1]) if values else ["?", slot.type]
    else:
        value = reading.value(values[-1]) if values else NOTHING
    reading.assign(slot)
    return ["new", slot.number, value]


def _branches(reading: Reading, node: Node) -> Made:
    condition, *branches = node.children
    test = reading.value(condition)
    both = [[",", *reading.statements([branch])] for branch in branches]
    if not has_effect(both):
        return test
    name = "if met" if reading.meetings.decided(branches) else "if"
    return [name, test, both[0], both[1] if len(both) > 1 else NOTHING]


def _switch(reading: Reading, node: Node) -> Made:
    condition, body = node.children
    test = reading.value(condition)
    if body.kind != n.COMPOUND:
        raise Unclear("a switch without a block")
    reading.begin_assigned()
    operations: list[Made] = []
    for child in body.children:
        while child.kind in (n.CASE, n.DEFAULT):
            operations.append(["case"])
            child = child.children[-1]
        operations += reading.statements([child])
    return ["switch", test, reading.end_assigned(), operations]


def _return(reading: Reading, node: Node) -> Made:
    value = node.children[0] if node.children else None
    if value is None or not is_several(value):
        return ["return", reading.value(value) if value is not None else NOTHING]
    if not reading.result:
        reading.result = reading.new_slots(value)
    given = several.numbers(reading, value)
    return [",", *several.assign(reading, reading.result, given), ["return", NOTHING]]
