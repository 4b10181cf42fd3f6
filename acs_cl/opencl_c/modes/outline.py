"""Outline: the part of a kernel that decides where it touches its arguments.

That is its integers, pointers and branches. Input: the functions of a kernel as nodes. Output: an
outline, a program of nested lists that `reach` runs for the sizes and numbers of a launch. Raises
`Unclear` with the reason where there is none. Invariant: it has every access of a global argument.
A pointer is followed from variable to variable and into helpers. If it goes to anything else
(memory, a structure, an unknown function), the outline says `esc`, which stands for any access
through it. Values that are neither integers nor pointers are left out, with all that only they
need.

This module walks the functions. Modules beside it read the nodes in them: `statements` and `loops`,
`expressions` and `calls` (with `integers`, the built-in functions that an outline computes), values
of several numbers (`several`), and `places`. Each of their functions gets the state of the walk, a
`Reading`, and a node. `values` has what they give each other. `unread` drops what nobody reads.

An operation is a list that begins with its name:
k value · s slot · ? type · c type value · b sign type x y · cmp operator x y · neg/~ type x · ! x
· and/or x y · ?: condition x y · mm name type x y · clamp type x least most · 24 type x y
· q name axis type
· p parameter · + pointer index bytes · in pointer bytes · a parameter type
· part parameter offset type name: a number in a structure or a vector
· r/w/rw pointer bytes · rng flags pointer count bytes · esc pointer why
· = slot value · new slot value · post slot value · , operations · call function arguments
· if condition then else · loop assigned condition body step counters number · again assigned
· turns number: of a loop. A loop of a number below 0 may end early
· do: a loop whose first turn asks for no condition; its step does what the condition does
· if met/loop met/do met: where work-items of a group wait for each other in what it decides
· switch condition assigned body · case · maybe assigned operations · return value · leave
A type is a number of bits, negative where unsigned; 0 stands for a pointer.

A variable that is a vector, a structure or an array of whole numbers is one variable for each of
them, unless its address is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.opencl_c.modes import bodies, calls, expressions, statements, taken, unread
from acs_cl.opencl_c.modes.reading import ReadFunction, Reading, Unclear
from acs_cl.opencl_c.modes.values import ACCESSES, NOTHING, Slot, Slots, inside, lost
from acs_cl.opencl_c.outlines import Made, Outline
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_MOST_BYTES = 1 << 16
"""Bytes of a structure among which a launch's numbers are told apart."""


def outline(found: bodies.Bodies) -> Outline:
    """Return the outline of a kernel: its functions, the kernel first. Raises `Unclear`."""
    reading = _Reading(found.functions)
    reading.function(next(iter(found.functions)))
    return {"functions": unread.without([one.outlined for one in reading.read], reading.many)}


def _function(reading: Reading, key: int) -> ReadFunction:
    """Read a function, unless it is read already. The first one is the kernel."""
    if (known := reading.by_key.get(key)) is not None:
        if known.is_open:
            raise Unclear("a function that calls itself")
        return known
    source = reading.functions.get(key)
    if source is None:
        raise Unclear("a function that is not found")
    function = reading.by_key[key] = ReadFunction(len(reading.read))
    reading.read.append(function)
    is_kernel = function.place == 0
    with reading.meetings.function(source.body):
        reading.taken |= _taken(source, is_kernel)
        outer, reading.result = reading.result, function.result
        parameters, begin = _parameters(reading, source, function, is_kernel)
        body = reading.statements(source.body)
        function.result, reading.result = reading.result, outer
    body = [*begin, *lost(function.result.values()), *body]
    function.touches = _touches(body, reading.read)
    own = sorted({slot for slot in parameters if slot >= 0} | _declared(body))
    function.outlined = [parameters, body, function.touches, own]
    function.is_open = False
    return function


class _Reading(Reading):
    """The reading, with the functions that read each kind of node."""

    value = expressions.value
    plain = expressions.plain
    call = calls.call
    statement = statements.statement
    function = _function


def _taken(source: bodies.Function, is_kernel: bool) -> set[int]:
    """Return the variables of a function that are not followed."""
    found: set[int] = set()
    changed: set[int] = set()
    for statement in source.body:
        taken.collect(statement, found, changed)
    if is_kernel:  # PoCL gives all work-items of a group one copy of a structure
        found |= {one.key for one in source.parameters
                  if one.shape == n.RECORD and one.key in changed}  # fmt: skip
    return found


def _parameters(
    reading: Reading, source: bodies.Function, function: ReadFunction, is_kernel: bool
) -> tuple[list[int], list[Made]]:
    """Return the variables that calls give values to, and operations that the body begins with."""
    parameters: list[int] = []
    begin: list[Made] = []
    for index, node in enumerate(source.parameters):
        slot, parts = reading.slot_of(node), reading.parts_of(node)
        function.takes.append(slot if parts is None else parts)
        if is_kernel:
            begin += _launched(index, node, slot, parts)
        elif parts is not None:
            parameters += [one.number for one in parts.values()]
        else:
            parameters.append(-1 if slot is None else slot.number)
    return parameters, begin


def _launched(index: int, node: Node, slot: Slot | None, parts: Slots | None) -> list[Made]:
    """Return the operations that give a parameter of a kernel its value."""
    if parts is not None:
        return [
            ["new", parts[one.offset].number,
             ["part", index, one.offset, one.number, node.name + one.name]]
            for one in node.parts
            if one.offset < _MOST_BYTES
        ]  # fmt: skip
    value: Made = ["p", index] if node.shape == n.POINTER else NOTHING
    if node.number:
        value = ["a", index, node.number]
    if slot is not None:
        return [["new", slot.number, value]]
    return [["esc", value, "its address is taken"]] if node.shape == n.POINTER else []


def _declared(body: Made) -> set[int]:
    """Return the variables that are declared in a body."""
    return {one[1] for one in inside(body) if one[0] == "new"}


def _touches(body: Made, functions: Sequence[ReadFunction]) -> bool:
    """Tell whether arguments' memory may be touched, or their addresses passed on."""
    return any(
        one[0] in ACCESSES or (one[0] == "call" and functions[one[1]].touches)
        for one in inside(body)
    )
