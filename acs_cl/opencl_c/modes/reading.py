"""Reading: the state of a walk over a kernel's functions that makes an outline of them.

Input: the functions as nodes. Output: a variable of the outline (`Slot`) for each one that is
followed, the variables that a part of the body assigns, and the functions that are read already.

Expressions hold places, calls and statements, which hold expressions. So whoever reads one kind of
node reaches the others by the abstract methods here. `outline` says which functions they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.modes.meetings import Meetings
from acs_cl.opencl_c.modes.values import Slot, Slots, has_effect
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node


class Unclear(Exception):  # noqa: N818  (an answer to the caller, not an error of the user)
    """There is no outline; the argument says why."""


class ReadFunction:
    """A function that is read, or being read."""

    def __init__(self, place: int) -> None:
        self.place = place  # among the functions of the outline
        self.is_open = True
        self.takes: list[Slot | Slots | None] = []  # its parameters; None: not followed
        self.result: Slots = {}  # of what it returns, if that is several numbers
        self.touches = False  # whether it may touch the memory of arguments
        self.outlined: Made = []


class Reading(ABC):
    """What is known while functions are read."""

    def __init__(self, functions: Mapping[int, bodies.Function]) -> None:
        self.functions = functions
        self.meetings = Meetings(functions)
        self.read: list[ReadFunction] = []  # in the order of the outline
        self.by_key: dict[int, ReadFunction] = {}  # the same
        self.result: Slots = {}  # of the open function
        self.taken: set[int] = set()  # variables that are not followed
        self.slots: dict[int, Slot] = {}  # of variables of one number
        self.parts: dict[int, Slots] = {}  # of variables of several numbers
        self.many = self.loops = 0  # variables, and loops with a number
        self._assigned: list[set[int]] = [set()]
        self._types: dict[int, int] = {}

    # ---- how nodes are read ----

    @abstractmethod
    def value(self, node: Node) -> Made:
        """Return the value of an expression. What has several numbers is only evaluated."""

    @abstractmethod
    def plain(self, node: Node) -> Made:
        """Return the value of an expression whose parts are not told apart."""

    @abstractmethod
    def call(self, node: Node) -> Made:
        """Return the value of a call."""

    @abstractmethod
    def statement(self, node: Node) -> Made:
        """Return what a statement does."""

    @abstractmethod
    def function(self, key: int) -> ReadFunction:
        """Read a function, unless it is read already."""

    def number(self, node: Node) -> Made:
        """Return the value of an integer. Any integer stands for values that are not followed."""
        value = self.value(node)
        return value if node.number else [",", value, ["?", 64]]

    def given_away(self, node: Node, why: str) -> Made:
        """Return a value that goes where pointers are not followed."""
        value = self.value(node)
        return ["esc", value, why] if node.shape == n.POINTER else value

    def statements(self, nodes: Sequence[Node]) -> list[Made]:
        """Return what statements do, without those that do nothing."""
        out = []
        for node in nodes:
            operation = self.statement(node)
            if has_effect(operation):
                out.append(operation)
        return out

    # ---- variables ----

    def slot_of(self, node: Node) -> Slot | None:
        """Return the variable of a declared number or pointer. None: it is not followed."""
        if not self._is_followed(node) or (node.shape != n.POINTER and not node.number):
            return None
        if node.key not in self.slots:
            self.slots[node.key] = self.new_slot(0 if node.shape == n.POINTER else node.number)
        return self.slots[node.key]

    def parts_of(self, node: Node) -> Slots | None:
        """Return the variables of a declared one of several numbers. None: it is not followed."""
        if not self._is_followed(node) or not node.parts:
            return None
        if node.key not in self.parts:
            self.parts[node.key] = self.new_slots(node)
        return self.parts[node.key]

    def _is_followed(self, node: Node) -> bool:
        return node.key not in self.taken and node.space in (0, n.PRIVATE)

    def new_slots(self, node: Node) -> Slots:
        """Make a variable for each number in what a node is."""
        return {one.offset: self.new_slot(one.number) for one in node.parts}

    def new_slot(self, kind: int) -> Slot:
        """Make a variable of a type."""
        self.many += 1
        return Slot(self.many - 1, kind)

    def new_loop(self) -> int:
        """Make the number of a loop."""
        self.loops += 1
        return self.loops - 1

    # ---- what a part of the body assigns ----

    def assign(self, slot: Slot) -> None:
        """Note that a variable is assigned."""
        self._assigned[-1].add(slot.number)
        self._types[slot.number] = slot.type

    @property
    def types(self) -> Mapping[int, int]:
        """Return the types of the variables that were assigned so far."""
        return self._types

    def begin_assigned(self) -> None:
        """Begin a part of the body."""
        self._assigned.append(set())

    def end_assigned(self) -> list[list[int]]:
        """End that part. Return the variables assigned in it, and their types."""
        inside = self._assigned.pop()
        self._assigned[-1] |= inside
        return [[slot, self._types[slot]] for slot in sorted(inside)]
