"""Calls: of functions that have a body, and of OpenCL C's own.

Input: the reading, and a call. Output: an operation of the outline, which has all accesses of the
call. A function that has a body is read when it is first called. Invariant: a pointer that goes to
a function of which nothing is known is in an `esc`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acs_cl.opencl_c.modes import bodies, builtins, expressions, integers, several
from acs_cl.opencl_c.modes.reading import ReadFunction, Reading, Unclear
from acs_cl.opencl_c.modes.values import (
    NOTHING,
    Slot,
    Slots,
    effective,
    has_effect,
    is_several,
    opaque,
    paired,
)
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_VECTOR_MEMORY = re.compile(r"v(load|store)(a?)(_half)?(\d*)(_rt[ezpn])?$")
_ONE_PLACE = re.compile(r"atom(ic)?_|(native_|half_)?sincos$|fract$|modf$|frexp$|remquo$|lgamma_r$")


def call(reading: Reading, node: Node) -> Made:
    """Return the value of a call."""
    callee, *arguments = node.children
    target = bodies.called(callee)
    if target is None:
        raise Unclear("a call through a function pointer")
    if not target.is_definition():
        return _builtin(reading, target.spelling, node, arguments)
    function = reading.function(n.identity(target))
    if len(function.takes) != len(arguments):
        raise Unclear("a call with variable arguments")
    if _is_idle(function, node, arguments):
        kept = effective([reading.value(argument) for argument in arguments])
        return [",", *kept, NOTHING] if kept else NOTHING
    values = []
    for take, argument in zip(function.takes, arguments, strict=True):
        if isinstance(take, dict):
            values += _handed(reading, take, argument)
        elif take is None:
            values.append(reading.given_away(argument, "its address is taken in a helper"))
        else:
            values.append(_passed(reading, take, argument))
    return ["call", function.place, values, node.number]


def _is_idle(function: ReadFunction, node: Node, arguments: Sequence[Node]) -> bool:
    """Tell whether a call does nothing and gives back nothing that is followed."""
    if function.touches or function.result or node.number or node.shape == n.POINTER:
        return False
    return all(
        take is not None or argument.shape != n.POINTER
        for take, argument in zip(function.takes, arguments, strict=True)
    )


def _passed(reading: Reading, take: Slot, argument: Node) -> Made:
    """Return the value for a parameter of one number, or a pointer."""
    if not take.type:
        return reading.value(argument)
    # Where the types of parameters stand behind the names, arguments are not converted to them.
    number = reading.number(argument)
    return integers.converted(take.type, argument.number or 64, number)


def _handed(reading: Reading, take: Slots, argument: Node) -> list[Made]:
    """Return the values for a parameter of several numbers."""
    if is_several(argument):
        value = several.numbers(reading, argument)
        first, *others = (number for _, number in paired(value.numbers, take))
        return [[",", *value.before, first] if value.before else first, *others]
    first, *others = (number for _, number in paired({}, take))
    return [[",", reading.value(argument), first], *others]


# ---- functions of OpenCL C ----


def _builtin(reading: Reading, name: str, node: Node, arguments: Sequence[Node]) -> Made:
    if name.startswith("__builtin_"):  # some take an expression and do not evaluate it
        return expressions.perhaps(reading, node, arguments, f"passed to {name}")
    if name in integers.QUERIES and node.number:
        axis = reading.value(arguments[0]) if arguments else ["k", 0]
        return ["q", name, axis, node.number]
    if linear := integers.linear(name):
        return ["c", node.number, linear]
    if name in integers.IMAGE_SIZES and len(arguments) == 1 and node.number:
        return _size_of_image(reading, name, node, arguments[0])
    if any(argument.shape == n.POINTER for argument in arguments):
        return _of_memory(reading, name, node, arguments)
    values = [reading.value(argument) for argument in arguments]
    return _computed(name, node, arguments, values) or opaque(node, *values)


def _size_of_image(reading: Reading, name: str, node: Node, image: Node) -> Made:
    """Return a size of an image."""
    if image.shape != n.IMAGE:
        return opaque(node, reading.value(image))
    given = several.numbers(reading, image)
    size = given.numbers.get(integers.IMAGE_SIZES[name])
    found = ["?", node.number] if size is None else integers.converted(node.number, 32, size)
    return [",", *given.before, found] if given.before else found


def _computed(name: str, node: Node, arguments: Sequence[Node], values: list[Made]) -> Made | None:
    """Return the value of a function of whole numbers. None: it is not followed."""
    if not node.number or not arguments or not all(one.number for one in arguments):
        return None
    if name == "select" and not has_effect(values):
        no, yes, test = values
        return ["?:", test, yes, no]
    if len(arguments) == 1:
        return integers.of_one(name, node.number, arguments[0].number, values[0])
    compute = integers.of_alike(name, len(arguments))
    if compute is None or any(one.number != node.number for one in arguments):
        return None
    return compute(node.number, values)


def _of_memory(reading: Reading, name: str, node: Node, arguments: Sequence[Node]) -> Made:
    """Return the value of a function that takes a pointer."""
    if builtins.returns_its_argument(name):
        return reading.value(arguments[0])
    match = _VECTOR_MEMORY.match(name)
    if match and len(arguments) == (2 if match[1] == "load" else 3):
        *data, index, pointer = arguments
        count = int(match[4] or 1)
        unit = 2 if match[3] else pointer.pointee_bytes
        step = 4 if match[2] and count == 3 else count
        at = ["+", reading.value(pointer), reading.number(index), step * unit]
        flag = "r" if match[1] == "load" else "w"
        return opaque(node, *(reading.value(one) for one in data), [flag, at, step * unit])
    effects = builtins.effects(name, len(arguments))
    if effects is not None and _ONE_PLACE.match(name):
        parts = []
        for argument, flags in zip(arguments, effects, strict=True):
            value = reading.value(argument)
            if argument.shape == n.POINTER and flags:
                value = [flags, value, argument.pointee_bytes]
            parts.append(value)
        return opaque(node, *parts)
    if name == "async_work_group_copy" and len(arguments) == 4:
        to, of, count_node, event = arguments
        count_of = reading.number(count_node)
        many = ["?", 64] if has_effect(count_of) else count_of  # it is evaluated once
        return opaque(
            node, reading.value(event), count_of,
            ["rng", "w", reading.value(to), many, to.pointee_bytes],
            ["rng", "r", reading.value(of), many, of.pointee_bytes],
        )  # fmt: skip
    return opaque(node, *(reading.given_away(one, f"passed to {name}") for one in arguments))
