"""Values of several numbers: vectors, structures and arrays whose numbers are told apart.

Input: the reading, and an expression of such a type. Output: its value (`Several`), or the
operations that assign it to variables. Invariant: a number that is not understood is missing
in the value, and may be any.
"""

# Long because: one function for each kind of expression.

from __future__ import annotations

import sys
from collections.abc import Sequence

from acs_cl.opencl_c.modes import bodies, integers, places
from acs_cl.opencl_c.modes.counters import reads
from acs_cl.opencl_c.modes.reading import Reading
from acs_cl.opencl_c.modes.values import (
    SIGNS,
    UNARY,
    Parts,
    Place,
    Several,
    Slot,
    Slots,
    effective,
    has_effect,
    held,
    is_several,
    paired,
    parts_of,
    types_of,
)
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node


def numbers(reading: Reading, node: Node) -> Several:
    """Return the value of an expression of several numbers."""
    kind, children = node.kind, node.children
    if node.component is not None:
        return picked(reading, node)
    if kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR, n.ARRAY_SUBSCRIPT_EXPR):
        return _loaded(reading, node)
    if kind == n.PAREN_EXPR:
        return numbers(reading, children[0])
    if kind in (n.UNEXPOSED_EXPR, n.CAST_EXPR, n.COMPOUND_LITERAL) and len(children) == 1:
        if is_several(children[0]) and _alike(node, children[0]):
            return numbers(reading, children[0])
        if children[0].parts and _alike_but_for_signs(node, children[0]):  # `as_uint2`
            return _each(node, "c", numbers(reading, children[0]))
        if node.shape == n.VECTOR and _is_repeated(children[0], node.parts[0].number):
            own = _single(reading, children[0])
            return own._replace(numbers={one.offset: own.numbers[0] for one in node.parts})
    elif kind == n.INIT_LIST:
        return _listed(reading, node)
    elif kind == n.BINARY_OPERATOR:
        return _binary(reading, node)
    elif kind == n.COMPOUND_ASSIGNMENT:
        return _compound(reading, node)
    elif kind == n.UNARY_OPERATOR and node.operator in n.INCREMENTS:
        return _increment(reading, node)
    elif kind == n.UNARY_OPERATOR and node.operator in UNARY and _alike(node, children[0]):
        value, name = numbers(reading, children[0]), UNARY[node.operator]
        return _each(node, name, value) if name else value
    elif kind == n.CONDITIONAL and children[0].number:
        return _chosen(reading, node)
    elif kind == n.CALL_EXPR:
        return _called(reading, node)
    return Several([reading.plain(node)], {})


def _is_repeated(number: Node, kind: int) -> bool:
    """Tell whether a number that becomes a vector is each component. `true` becomes -1."""
    is_made = number.kind == n.UNEXPOSED_EXPR and len(number.children) == 1
    return number.number == kind and not (is_made and number.children[0].shape == n.BOOL)


def picked(reading: Reading, node: Node) -> Several:
    """Return components of a value."""
    base = node.children[0]
    if not is_several(base):
        return Several([reading.plain(node)], {})
    value = numbers(reading, base)
    size = abs(base.parts[0].number) // 8
    found = {}
    for to, at in enumerate(node.component or ()):
        if size * at in value.numbers:
            found[size * to] = value.numbers[size * at]
    return value._replace(numbers=found)


def assign(reading: Reading, to: Slots, value: Several, how: str = "=") -> list[Made]:
    """Return operations that assign a value to variables. `how`: `new` where these begin."""
    own = {slot.number for slot in to.values()}
    if how == "=" and any(reads(one) & own for one in value.numbers.values()):  # `p.xy = p.yx`
        value = _frozen(reading, value)
    made = list(value.before)
    for slot, number in paired(value.numbers, to):
        reading.assign(slot)
        made.append([how, slot.number, number])
    return made


# ---- parts of values ----


def _alike(one: Node, other: Node) -> bool:
    """Tell whether two expressions have the same numbers at the same places."""
    return one.shape == other.shape and types_of(one) == types_of(other)


def _alike_but_for_signs(one: Node, other: Node) -> bool:
    return one.shape == n.VECTOR == other.shape and [
        (part.offset, abs(part.number)) for part in one.parts
    ] == [(part.offset, abs(part.number)) for part in other.parts]


def _frozen(reading: Reading, value: Several) -> Several:
    """Return the same value, which later operations do not change."""
    before, kept = list(value.before), {}
    for at, number in value.numbers.items():
        if number[0] == "k":
            kept[at] = number
        else:
            slot = reading.new_slot(64)
            reading.assign(slot)
            before.append(["new", slot.number, number])
            kept[at] = ["s", slot.number]
    return Several(before, kept)


def _single(reading: Reading, node: Node) -> Several:
    """Return an integer as a value of one number."""
    number = reading.number(node)
    value = Several([], {0: number})
    return _frozen(reading, value) if has_effect(number) else value


def _together(reading: Reading, values: Sequence[Several]) -> tuple[list[Made], list[Several]]:
    """Return the operations of several values, and these without them."""
    if any(one.before for one in values[1:]):
        values = [_frozen(reading, one) for one in values]
    return [operation for one in values for operation in one.before], list(values)


def _each(node: Node, name: str, value: Several) -> Several:
    """Return what an operation makes of each number."""
    kinds = types_of(node)
    return value._replace(numbers={at: [name, kinds[at], one] for at, one in value.numbers.items()})


def _by_parts(reading: Reading, node: Node, sign: str, one: Several, other: Several) -> Several:
    """Return what an operator makes of the numbers of two values."""
    before, (one, other) = _together(reading, [one, other])
    return Several(before, {
        part.offset: ["b", sign, part.number, one.numbers[part.offset], other.numbers[part.offset]]
        for part in node.parts
        if part.offset in one.numbers and part.offset in other.numbers
    })  # fmt: skip


# ---- kinds of expressions ----


def _loaded(reading: Reading, node: Node) -> Several:
    place = places.place_of(reading, node)
    if isinstance(place, Parts):
        return Several(effective([place.before]), held(place.slots))
    return Several(effective([places.load(node, place)]), {})


def _listed(reading: Reading, node: Node) -> Several:
    """Return the value of a list of values."""
    values = []
    for child in node.children:
        if is_several(child) or child.parts:
            values.append(numbers(reading, child))
        elif child.number:
            values.append(_single(reading, child))
        else:
            values.append(Several([reading.given_away(child, "kept in a value")], {}))
    before, values = _together(reading, values)
    before = effective(before)
    kinds = types_of(node)
    found: dict[int, Made] = {}
    at = 0
    for index, (child, own) in enumerate(zip(node.children, values, strict=True)):
        if node.shape == n.VECTOR:
            begin = at
            at += (len(child.parts) or 1) * (abs(node.parts[0].number) // 8)
        elif index < len(node.fields):
            begin = node.fields[index]
            if not _fills(node, index, child):
                return Several(before, {})  # without inner brackets, or with named values
        else:
            return Several(before, {})
        if any(kinds.get(begin + one.offset) != one.number for one in parts_of(child)):
            return Several(before, {})
        found |= {begin + one: number for one, number in own.numbers.items()}
    return Several(before, found)


def _fills(values: Node, index: int, value: Node) -> bool:
    """Tell whether a value in a list has all numbers of the member that it may be for."""
    begin, *behind = values.fields[index : index + 2]
    end = behind[0] if behind else sys.maxsize
    own = [one.offset - begin for one in values.parts if begin <= one.offset < end]
    return own == [one.offset for one in parts_of(value)]


def _binary(reading: Reading, node: Node) -> Several:
    left, right = node.children
    if node.operator == n.ASSIGN:
        return _assignment(reading, left, right)
    if node.operator == n.COMMA:
        before = effective([reading.value(left)])
        value = numbers(reading, right)
        return value._replace(before=[*before, *value.before])
    sign = SIGNS.get(node.operator)
    if sign and is_several(left) and is_several(right):
        one = numbers(reading, left)
        return _by_parts(reading, node, sign, one, numbers(reading, right))
    return Several([reading.plain(node)], {})


def _assignment(reading: Reading, left: Node, right: Node) -> Several:
    place = places.place_of(reading, left)
    value = numbers(reading, right) if is_several(right) else None
    if isinstance(place, Parts) and place.is_known and value is not None:
        before = [place.before, *assign(reading, place.slots, value)]
        return Several(effective(before), held(place.slots))
    one = [",", *value.before] if value is not None else reading.value(right)
    if isinstance(place, Slot):
        return Several([one], {})
    return Several([places.store(reading, place, one, False)], {})


def _compound(reading: Reading, node: Node) -> Several:
    left, right = node.children
    place = places.place_of(reading, left)
    sign = SIGNS.get(n.ASSIGNING.get(node.operator, 0))
    if not (is_several(right) and _alike(node, right) and sign):
        return Several([reading.value(right), *_changes(reading, place)], {})
    value = numbers(reading, right)
    if not isinstance(place, Parts) or not place.is_known:
        return Several([*value.before, *_changes(reading, place)], {})
    made = _by_parts(reading, node, sign, Several([], held(place.slots)), value)
    before = [place.before, *assign(reading, place.slots, made)]
    return Several(effective(before), held(place.slots))


def _increment(reading: Reading, node: Node) -> Several:
    place = places.place_of(reading, node.children[0])
    if not isinstance(place, Parts) or not place.is_known:
        return Several(_changes(reading, place), {})
    old = Several([], held(place.slots))
    if node.operator in n.POSTFIX:
        old = _frozen(reading, old)
    by = Several([], {at: ["k", 1] for at in old.numbers})
    more = _by_parts(reading, node, "+" if node.operator in n.UPWARDS else "-", old, by)
    before = [place.before, *assign(reading, place.slots, more)]
    return old._replace(before=effective(before))


def _changes(reading: Reading, place: Place) -> list[Made]:
    return [] if isinstance(place, Slot) else [places.changed(reading, place)]


def _chosen(reading: Reading, node: Node) -> Several:
    """Return the value of `condition ? one : other`."""
    condition, *both = node.children
    test = reading.value(condition)
    slots = reading.new_slots(node)
    branches = []
    for one in both:
        value = numbers(reading, one) if is_several(one) else Several([reading.value(one)], {})
        branches.append([",", *assign(reading, slots, value, "new")])
    return Several([["if", test, *branches]], held(slots))


def _called(reading: Reading, node: Node) -> Several:
    """Return what a call gives back."""
    target = bodies.called(node.children[0])
    if target is None or target.is_definition():
        return _given_back(reading, node)
    arguments = node.children[1:]
    if target.spelling == "get_image_dim" and arguments and arguments[0].shape == n.IMAGE:
        image = numbers(reading, arguments[0])
        found = {one.offset: image.numbers[one.offset] for one in node.parts[:3]}
        return image._replace(numbers=found | {one.offset: ["k", 0] for one in node.parts[3:]})
    made = _componentwise(reading, node, target.spelling)
    return made if made is not None else Several([reading.call(node)], {})


def _given_back(reading: Reading, node: Node) -> Several:
    """Return what a function that has a body gives back."""
    operation = reading.call(node)
    slots = reading.read[operation[1]].result if operation[0] == "call" else {}
    for slot in slots.values():
        reading.assign(slot)
    kinds = types_of(node)
    known = {at: slot for at, slot in slots.items() if kinds.get(at) == slot.type}
    return _frozen(reading, Several([operation], held(known)))


def _componentwise(reading: Reading, node: Node, name: str) -> Several | None:
    """Return the value of a built-in function that does the same to each component. None: it is
    another one."""
    arguments = node.children[1:]
    converts = integers.is_conversion(name)
    compute = integers.of_alike(name, len(arguments))
    element = node.parts[0].number
    if (compute is None and not converts) or not all(
        len(one.parts) == len(node.parts) if is_several(one) else one.number == element
        for one in arguments
    ):
        return None
    before, values = _together(reading, [
        numbers(reading, one) if is_several(one) else _single(reading, one) for one in arguments
    ])  # fmt: skip
    found: dict[int, Made] = {}
    for index, part in enumerate(node.parts):
        sources = [parts_of(one)[index if one.parts else 0] for one in arguments]
        own = [
            value.numbers[one.offset]
            for one, value in zip(sources, values, strict=True)
            if one.offset in value.numbers
        ]
        if len(own) < len(arguments):
            continue
        if converts:
            found[part.offset] = integers.converted(part.number, sources[0].number, own[0])
        elif compute is not None and all(one.number == part.number for one in sources):
            found[part.offset] = compute(part.number, own)
    return Several(before, found)
