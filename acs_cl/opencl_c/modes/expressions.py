"""Expressions: the value of a node that is one number or one pointer, and what it does.

Input: the reading, and an expression. Output: an operation of the outline. Invariant: it does all
that evaluating the expression does to memory and to variables, in order and as often.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.opencl_c.modes import places, several
from acs_cl.opencl_c.modes.reading import Reading, Unclear
from acs_cl.opencl_c.modes.values import (
    NOTHING,
    SIGNS,
    UNARY,
    Slot,
    has_effect,
    is_several,
    opaque,
    promoted,
    truth,
)
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_COMPARISONS = {11: "<", 12: ">", 13: "<=", 14: ">=", 15: "==", 16: "!="}
_LOGIC = {20: "and", 21: "or"}
_ADD, _SUB, _SHIFTS, _ADD_ASSIGN = 6, 7, (8, 9), 26
_OPAQUE = frozenset(
    {n.SIZEOF_EXPR, n.INTEGER_LITERAL, n.FLOATING_LITERAL, n.STRING_LITERAL, n.CHARACTER_LITERAL}
)


def value(reading: Reading, node: Node) -> Made:
    """Return the value of an expression. What has several numbers is only evaluated."""
    if is_several(node):
        return [",", *several.numbers(reading, node).before, NOTHING]
    if node.component is not None and node.number and is_several(node.children[0]):
        given = several.picked(reading, node)
        number = given.numbers.get(0, ["?", node.number])
        return [",", *given.before, number] if given.before else number
    return plain(reading, node)


def plain(reading: Reading, node: Node) -> Made:
    """Return the value of an expression whose parts are not told apart."""
    kind = node.kind
    if node.literal is not None:
        return ["k", node.literal]
    if kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR, n.ARRAY_SUBSCRIPT_EXPR):
        if kind == n.DECL_REF_EXPR and node.reference is not None:
            return NOTHING
        return _in_place(reading, node)
    if kind == n.PAREN_EXPR:
        return value(reading, node.children[0])
    if kind in (n.UNEXPOSED_EXPR, n.CAST_EXPR) and len(node.children) == 1:
        return _converted(reading, node)
    if kind == n.UNARY_OPERATOR:
        return _unary(reading, node)
    if kind == n.BINARY_OPERATOR:
        return _binary(reading, node)
    if kind == n.COMPOUND_ASSIGNMENT:
        return _compound(reading, node)
    if kind == n.CONDITIONAL:
        return _conditional(reading, node)
    if kind == n.CALL_EXPR:
        return reading.call(node)
    if kind == n.STATEMENT_EXPRESSION:
        return _statements(reading, node)
    if kind in _OPAQUE:
        return opaque(node)
    if kind in (n.COMPOUND_LITERAL, n.INIT_LIST):
        why = "kept in a value"
        return opaque(node, *(reading.given_away(child, why) for child in node.children))
    if kind == n.BLOCK_EXPR:
        raise Unclear("a block of code as a value")
    why = "used in an expression that is not understood"
    return perhaps(reading, node, node.children, why)


def perhaps(reading: Reading, node: Node, children: Sequence[Node], why: str) -> Made:
    """Return the value of an expression that may or may not evaluate these parts."""
    reading.begin_assigned()
    parts: list[Made] = [
        reading.given_away(child, why) if n.is_expression(child.kind) else reading.statement(child)
        for child in children
    ]
    return opaque(node, ["maybe", reading.end_assigned(), parts])


def _in_place(reading: Reading, node: Node) -> Made:
    """Return what is in a variable, a member or an element, or the address of an array."""
    place = places.place_of(reading, node)
    return places.address(node, place) if node.shape == n.ARRAY else places.load(node, place)


def _converted(reading: Reading, node: Node) -> Made:
    child = node.children[0]
    if n.is_arrow(node):
        return places.load(node, places.place_of(reading, node))
    if child.shape == n.ARRAY and node.shape == n.POINTER:
        return places.address(child, places.place_of(reading, child))
    own = value(reading, child)
    if child.shape == n.VECTOR:
        return opaque(node, own)
    if node.shape == n.POINTER:
        return own if child.shape == n.POINTER else [",", own, NOTHING]
    if child.shape == n.POINTER:
        if node.shape != n.BOOL and node.shape != n.VOID:
            own = ["esc", own, "turned into a number"]
        return opaque(node, own)
    if not node.number and not child.number:
        return own
    if not node.number or not child.number:
        return opaque(node, own)
    return own if node.number == child.number else ["c", node.number, own]


def _unary(reading: Reading, node: Node) -> Made:
    child = node.children[0]
    if node.operator == n.ADDRESS_OF:
        return places.address(child, places.place_of(reading, child))
    if node.operator == n.DEREFERENCE:
        return _in_place(reading, node)
    if node.operator in n.INCREMENTS:
        return _increment(reading, node)
    own = value(reading, child)
    if node.operator == n.LOGICAL_NOT:
        return ["!", own] if child.number else opaque(node, own)
    if node.operator not in UNARY or not node.number or not child.number:
        return opaque(node, own)
    name = UNARY[node.operator]
    return [name, node.number, own] if name else own


def _increment(reading: Reading, node: Node) -> Made:
    place = places.place_of(reading, node.children[0])
    if not isinstance(place, Slot):
        return [",", places.changed(reading, place), opaque(node)]
    is_up = node.operator in n.UPWARDS
    old = ["s", place.number]
    if place.type:
        more: Made = ["b", "+" if is_up else "-", promoted(place.type), old, ["k", 1]]
        more = ["c", place.type, more]
    else:
        more = ["+", old, ["k", 1 if is_up else -1], node.pointee_bytes]
    reading.assign(place)
    return ["post" if node.operator in n.POSTFIX else "=", place.number, more]


def _binary(reading: Reading, node: Node) -> Made:
    left, right = node.children
    operator = node.operator
    if operator == n.ASSIGN:
        place = places.place_of(reading, left)
        of_number = isinstance(place, Slot) and place.type
        own = reading.number(right) if of_number else value(reading, right)
        stored = places.store(reading, place, own, right.shape == n.POINTER)
        return stored if isinstance(place, Slot) else [",", stored, opaque(node)]
    first, second = value(reading, left), value(reading, right)
    if operator == n.COMMA:
        return [",", first, second]
    if operator in _LOGIC:
        return [_LOGIC[operator], truth(left, first), truth(right, second)]
    if operator in _COMPARISONS and left.number and right.number:
        return ["cmp", _COMPARISONS[operator], first, second]
    if node.shape == n.POINTER and operator in (_ADD, _SUB):
        if left.shape != n.POINTER:
            right, first, second = left, second, first
        if right.number:
            size = node.pointee_bytes
            return ["+", first, second, size if operator == _ADD else -size]
        return [",", ["esc", first, "moved by what is no integer"], second, NOTHING]
    if node.number and left.number and right.number and operator in SIGNS:
        return ["b", SIGNS[operator], node.number, first, second]
    return opaque(node, first, second)


def _compound(reading: Reading, node: Node) -> Made:
    left, right = node.children
    place = places.place_of(reading, left)
    own = value(reading, right)
    if not isinstance(place, Slot):
        return [",", own, places.changed(reading, place), opaque(node)]
    operator = n.ASSIGNING.get(node.operator, 0)
    old = ["s", place.number]
    if not place.type:
        size = node.pointee_bytes if node.operator == _ADD_ASSIGN else -node.pointee_bytes
        by = own if right.number else [",", own, ["?", 64]]
        more: Made = ["+", old, by, size]
    elif not right.number or operator not in SIGNS:
        more = [",", own, ["?", place.type]]
    else:
        # the right side already has the type of the computation, except in shifts
        kind = promoted(place.type) if operator in _SHIFTS else right.number
        more = ["c", place.type, ["b", SIGNS[operator], kind, ["c", kind, old], own]]
    reading.assign(place)
    return ["=", place.number, more]


def _conditional(reading: Reading, node: Node) -> Made:
    condition, first, second = node.children
    test = truth(condition, value(reading, condition))
    both = [value(reading, first), value(reading, second)]
    if condition.shape == n.VECTOR:  # it picks components, of values that are both computed
        return opaque(node, test, *both)
    if node.number or node.shape == n.POINTER or has_effect(both):
        return ["?:", test, *both]
    return opaque(node, test)


def _statements(reading: Reading, node: Node) -> Made:
    """Return the value of `({ ...; value; })`."""
    block = node.children[0] if node.children else None
    if block is None or not block.children:
        return NOTHING
    first = reading.statements(block.children[:-1])
    return [",", *first, reading.statement(block.children[-1])]
