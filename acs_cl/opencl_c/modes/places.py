"""Places: what an expression names that can be read and written.

Input: the reading, and an expression that names a place. Output: the place, and the operations that
read it, write it, or return its address. Invariant: evaluating a place does something at most once
in what is returned, also where it is read and written, as in `y[k++] += 1`.
"""

from __future__ import annotations

from acs_cl.opencl_c.modes import taken
from acs_cl.opencl_c.modes.reading import Reading
from acs_cl.opencl_c.modes.values import (
    NOTHING,
    Memory,
    Other,
    Parts,
    Place,
    Slot,
    anything,
    has_effect,
    lost,
    opaque,
    parts_of,
)
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node


def place_of(reading: Reading, node: Node) -> Place:
    """Return the place that an expression names."""
    kind = node.kind
    if kind == n.DECL_REF_EXPR:
        if node.key in reading.parts:
            parts = reading.parts[node.key]
            return Parts(NOTHING, parts, tuple(parts.values()))
        slot = reading.slots.get(node.key) if node.key else None
        return slot if slot is not None else Other(NOTHING)
    if n.is_arrow(node):
        return Memory(reading.value(node.children[0]), node.children[0].pointee_bytes, False)
    if kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(node.children) == 1:
        inner = place_of(reading, node.children[0])
        if isinstance(inner, Memory) and kind == n.UNEXPOSED_EXPR:
            return inner._replace(exact=False)  # some components of a vector
        if isinstance(inner, Parts) and node.component is not None:
            return _components(node, inner)
        return inner
    if kind == n.MEMBER_REF_EXPR and node.children:
        child = node.children[0]
        if child.shape == n.POINTER:
            return _member(node, Memory(reading.value(child), child.pointee_bytes, True))
        return _member(node, place_of(reading, child))
    if kind == n.UNARY_OPERATOR and node.operator == n.DEREFERENCE:
        return _target(reading, node.children[0])
    if kind == n.ARRAY_SUBSCRIPT_EXPR and len(node.children) == 2:
        return _element(reading, node)
    return Other(reading.value(node))


def _member(node: Node, inner: Place) -> Place:
    """Return the place of a member in that of its structure."""
    if isinstance(inner, Memory):
        is_known = inner.exact and inner.bytes and node.bytes
        if is_known and 0 <= node.offset <= inner.bytes - node.bytes:
            at = ["+", inner.pointer, ["k", node.offset], 1] if node.offset else inner.pointer
            return Memory(at, node.bytes, True)
        return inner._replace(exact=False)
    if isinstance(inner, Parts):
        return _part(node, inner, node.offset)
    return inner if isinstance(inner, Other) else Other(NOTHING)


def _part(node: Node, of: Parts, at: int) -> Place:
    """Return the part of a variable that begins at an offset. Below 0: it is not known."""
    parts = parts_of(node)
    slots = {
        one.offset: of.slots[at + one.offset]
        for one in parts
        if at + one.offset in of.slots and of.slots[at + one.offset].type == one.number
    }
    is_known = of.is_known and at >= 0 and len(slots) == len(parts)
    if node.number and is_known and not has_effect(of.before):
        return slots[0]
    return of._replace(slots=slots if is_known else {}, is_known=is_known)


def _components(node: Node, of: Parts) -> Place:
    """Return components of a variable."""
    size = abs(next(iter(of.slots.values())).type) // 8 if of.slots else 0
    places = [at * size for at in node.component or ()]
    if not of.is_known or not places or not all(at in of.slots for at in places):
        return of._replace(slots={}, is_known=False)
    if node.number and not has_effect(of.before):
        return of.slots[places[0]]
    return of._replace(slots={size * to: of.slots[at] for to, at in enumerate(places)})


def _target(reading: Reading, pointer: Node) -> Place:
    """Return what a pointer points to."""
    if pointer.shape == n.ARRAY:
        inner = place_of(reading, pointer)
        if isinstance(inner, Memory):
            return _array_inside(inner)
        return inner if isinstance(inner, Other) else Other(NOTHING)
    return Memory(reading.value(pointer), pointer.pointee_bytes, True)


def _is_picked(vector: Node) -> bool:
    """Tell whether an expression is some components of a vector."""
    while vector.kind == n.PAREN_EXPR:
        vector = vector.children[0]
    return n.is_arrow(vector) or vector.component is not None


def _element(reading: Reading, node: Node) -> Place:
    base, index = node.children
    if base.shape != n.POINTER and index.shape == n.POINTER:
        base, index = index, base
    array = taken.array_of(base)
    if array.shape in (n.ARRAY, n.VECTOR):
        inner = place_of(reading, array)
        if _is_picked(array):  # compilers differ in what the index counts from
            at = reading.number(index)
            if isinstance(inner, Memory):
                return Other([",", at, ["esc", inner.pointer, "an element of some components"]])
            if isinstance(inner, Parts):
                return inner._replace(before=[",", inner.before, at], slots={}, is_known=False)
        if isinstance(inner, Parts):
            at = reading.number(index)
            found = inner._replace(before=[",", inner.before, at]) if has_effect(at) else inner
            place = -1 if index.literal is None else index.literal * node.bytes
            return _part(node, found, place if node.bytes else -1)
    at = reading.number(index)
    if base.shape == n.POINTER:
        size = base.pointee_bytes
        return Memory(["+", reading.value(base), at, size], size, True)
    inner = place_of(reading, base)
    if isinstance(inner, Memory):
        if base.shape == n.VECTOR:
            return Memory([",", at, inner.pointer], inner.bytes, False)
        return _array_inside(inner)
    return Other([",", at, inner.before] if isinstance(inner, Other) else at)


def _array_inside(array: Memory) -> Place:
    return Other(["esc", array.pointer, "an array inside of an element"])


def address(node: Node, place: Place) -> Made:
    """Return the address of a place."""
    if isinstance(place, Memory):
        if place.exact:
            return place.pointer
        # A member without bytes of its own may begin where the structure ends.
        more = 1 if node.sizeless and place.bytes else 0
        return ["in", place.pointer, place.bytes + more]
    return NOTHING if isinstance(place, Slot) else [",", place.before, NOTHING]


def load(node: Node, place: Place) -> Made:
    """Return what is in a place."""
    if isinstance(place, Slot):
        return ["s", place.number]
    if isinstance(place, Memory):
        return [",", ["r", place.pointer, place.bytes], anything(node)]
    return opaque(node, place.before)


def store(reading: Reading, place: Place, value: Made, is_pointer: bool) -> Made:
    """Assign a value to a place."""
    if isinstance(place, Slot):
        reading.assign(place)
        return ["=", place.number, value]
    if is_pointer:
        value = ["esc", value, "kept in memory"]
    if isinstance(place, Memory):
        return [",", value, ["w", place.pointer, place.bytes]]
    return [",", value, changed(reading, place)]


def changed(reading: Reading, place: Memory | Parts | Other) -> Made:
    """Load from a place and store there what is not followed."""
    if isinstance(place, Memory):
        return ["rw", place.pointer, place.bytes]
    if isinstance(place, Other):
        return place.before
    slots = list(place.slots.values()) if place.is_known else place.whole
    for one in slots:
        reading.assign(one)
    return [",", place.before, *lost(slots)]
