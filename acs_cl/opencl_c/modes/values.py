"""Values and places: what the nodes of a body come to while an outline is made of it.

Input: nodes and operations. Output: small tuples for places and for values of several numbers, and
the operations that all readers of nodes make. Nothing here knows where in a body it is used.

A value of one number, or of a pointer, is an operation of the outline. `NOTHING` stands for a value
that is not followed and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

from ...records import NamedTuple

SIGNS = {3: "*", 4: "/", 5: "%", 6: "+", 7: "-", 8: "<<", 9: ">>", 17: "&", 18: "^", 19: "|"}
"""Operators of two whole numbers, by their kinds in the parser, and their names in an outline."""
UNARY = {7: "", 8: "neg", 9: "~"}
"""Operators of one whole number. The first one changes nothing."""
NOTHING: Made = [","]
ACCESSES = "r", "w", "rw", "rng", "esc"
ASSIGNMENTS = "=", "new", "post"
LOOPS = "loop", "loop met", "do", "do met"
"""Operations by their names. No sets, since a list may be looked up there."""
_EFFECTS = frozenset(
    {*ACCESSES, *ASSIGNMENTS, *LOOPS, "call", "again", "switch", "case", "maybe", "return", "leave"}
)


# ---- places ----


class Slot(NamedTuple):
    """A variable of the work-item, and the place that it is."""

    number: int
    type: int  # 0 for pointers


Slots: TypeAlias = dict[int, Slot]
"""Variables of the numbers in a larger one, by their offsets in bytes."""


class Memory(NamedTuple):
    """A place in memory: somewhere in `bytes` from the pointer on; if `exact`, at the pointer."""

    pointer: Made
    bytes: int
    exact: bool


class Parts(NamedTuple):
    """A place that is a variable of several numbers, or some of them. `slots`: by offset from where
    it begins. `is_known`: which of them it is."""

    before: Made
    slots: Slots
    whole: tuple[Slot, ...]  # of the whole variable
    is_known: bool = True


class Other(NamedTuple):
    """A place that is not followed. `before`: operations of its evaluation."""

    before: Made


Place: TypeAlias = Memory | Slot | Parts | Other


# ---- values of several numbers ----


class Several(NamedTuple):
    """A value of several numbers. `before`: operations of its evaluation. `numbers`: by offset,
    without effects. One that is missing may be any."""

    before: list[Made]
    numbers: dict[int, Made]


def is_several(node: Node) -> bool:
    """Tell whether an expression has several numbers that are told apart."""
    return node.shape in (n.VECTOR, n.RECORD, n.IMAGE) and bool(node.parts)


def parts_of(node: Node) -> Sequence[n.Part]:
    """Return the numbers in what a node is; an integer is one itself."""
    return node.parts or ((n.Part(0, node.number, ""),) if node.number else ())


def types_of(node: Node) -> dict[int, int]:
    """Return the types of the numbers in what a node is, by offset."""
    return {one.offset: one.number for one in node.parts}


def held(slots: Slots) -> dict[int, Made]:
    """Return what variables hold, by offset."""
    return {at: ["s", slot.number] for at, slot in slots.items()}


def lost(slots: Iterable[Slot]) -> list[Made]:
    """Return operations after which variables may have any numbers."""
    return [["=", slot.number, ["?", slot.type]] for slot in slots]


def paired(numbers: Mapping[int, Made], slots: Slots) -> Iterator[tuple[Slot, Made]]:
    """Yield each variable with its number in a value: any, if it is missing there."""
    for at, slot in slots.items():
        yield slot, numbers.get(at, ["?", slot.type])


# ---- operations ----


def inside(operation: Made) -> Iterator[Made]:
    """Yield an operation, or a list of them, and all that it is made of, in any order."""
    left = [operation]
    while left:
        one = left.pop()
        if one:
            yield one
            left += [part for part in one if part.__class__ is list]


def has_effect(operation: Made) -> bool:
    """Tell whether an operation does more than return a value."""
    return any(one[0].__class__ is str and one[0] in _EFFECTS for one in inside(operation))


def effective(operations: Iterable[Made]) -> list[Made]:
    """Return those operations that do more than return a value."""
    return [one for one in operations if has_effect(one)]


def anything(node: Node) -> Made:
    """Return what stands for the value of a node that is not followed."""
    return ["?", node.number] if node.number else NOTHING


def opaque(node: Node, *before: Made) -> Made:
    """Return any value of a node, behind what its evaluation does."""
    kept = effective(before)
    return [",", *kept, anything(node)] if kept else anything(node)


def truth(node: Node, value: Made) -> Made:
    """Return the value of a condition: any number, if it is not followed."""
    return value if node.number else [",", value, ["?", 32]]


def promoted(kind: int) -> int:
    """Return the type in which numbers of a type are computed."""
    return kind if abs(kind) >= 32 else 32
