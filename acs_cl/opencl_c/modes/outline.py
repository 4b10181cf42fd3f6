"""Outline: the part of a kernel that decides where it touches its arguments.

That is its integers, pointers and branches. Input: the functions of a kernel as nodes. Output: an
outline, a program of nested lists that `reach` runs for the sizes and numbers of a launch, or the
reason why there is none. Invariant: it has every access of a global argument. A pointer is followed
from variable to variable and into helpers. If it goes to anything else (memory, a structure, an
unknown function), the outline says `esc`, which stands for any access through it. Values that are
neither integers nor pointers are left out, with all that only they need.

An operation is a list that begins with its name:
k value · s slot · ? type · c type value · b sign type x y · cmp operator x y · neg/~ type x · ! x
· and/or x y · ?: condition x y · mm name type x y · clamp type x least most · 24 type x y
· q name axis type
· p parameter · + pointer index bytes · in pointer bytes · a parameter type
· r/w/rw pointer bytes · rng flags pointer count bytes · esc pointer why
· = slot value · new slot value · post slot value · , operations · call function arguments
· if condition then else · loop assigned condition body step induction · again assigned
· if met/loop met: the same, where work-items of a group wait for each other in what it decides
· switch condition assigned body · case · maybe assigned operations · return value · leave
A type is a number of bits, negative where unsigned; 0 stands for a pointer.
"""

# Long because: one walk over every kind of expression and statement.

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from acs_cl.opencl_c.modes import bodies, builtins
from acs_cl.opencl_c.outlines import Outline
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

Operation = list[Any]
"""An operation under construction; `outlines` defines its meaning."""

_SIGNS = {3: "*", 4: "/", 5: "%", 6: "+", 7: "-", 8: "<<", 9: ">>", 17: "&", 18: "^", 19: "|"}
_COMPARISONS = {11: "<", 12: ">", 13: "<=", 14: ">=", 15: "==", 16: "!="}
_AND, _OR, _ADD, _SUB = 20, 21, 6, 7
_QUERIES = frozenset(
    {"get_global_id", "get_local_id", "get_group_id", "get_global_size", "get_local_size",
     "get_num_groups", "get_global_offset", "get_enqueued_local_size", "get_work_dim"}
)  # fmt: skip
_VECTOR_MEMORY = re.compile(r"v(load|store)(a?)(_half)?(\d*)(_rt[ezpn])?$")
_ONE_PLACE = re.compile(r"atom(ic)?_|(native_|half_)?sincos$|fract$|modf$|frexp$|remquo$|lgamma_r$")
_MEETS = re.compile(r"barrier$|(work|sub)_group_|async_work_group_|wait_group_events$")
_LOOPS = frozenset({n.FOR, n.WHILE, n.DO})
_EFFECTS = frozenset(
    {"r", "w", "rw", "rng", "esc", "=", "new", "post", "call", "loop", "loop met", "again",
     "switch", "case", "maybe", "return", "leave"}
)  # fmt: skip
_NOTHING: Operation = [","]


class Unclear(Exception):  # noqa: N818  (an answer to the caller, not an error of the user)
    """There is no outline; the argument says why."""


class _Memory(NamedTuple):
    """An lvalue in memory: somewhere in `bytes` from the pointer on; if `exact`, at the pointer."""

    pointer: Operation
    bytes: int
    exact: bool


class _Slot(NamedTuple):
    """An lvalue that is a variable of the work-item."""

    number: int
    type: int  # 0 for pointers


class _Other(NamedTuple):
    """An lvalue that is not followed. `before`: operations of its evaluation."""

    before: Operation


_Place = _Memory | _Slot | _Other


def outline(found: bodies.Bodies) -> Outline:
    """Return the outline of a kernel: its functions, the kernel first. Raises `Unclear`."""
    walk = _Walk(found.functions)
    keys = list(found.functions)
    walk.function(keys[0], True)
    return {"functions": walk.done}


def has_effect(operation: object) -> bool:
    """Tell whether an operation does more than return a value."""
    if not isinstance(operation, list):
        return False
    if operation and isinstance(operation[0], str) and operation[0] in _EFFECTS:
        return True
    return any(has_effect(part) for part in operation)


class _Walk:
    def __init__(self, functions: dict[int, bodies.Function]) -> None:
        self.functions = functions
        self.done: list[Operation] = []  # parameters, body, whether it touches, slots
        self.places: dict[int, int] = {}  # of functions in `done`
        self.open: set[int] = set()
        self.slots: dict[int, _Slot] = {}
        self.assigned: list[set[int]] = [set()]
        self.types: dict[int, int] = {}
        self.meet = _Meetings(functions)

    # ---- functions ----

    def function(self, key: int, is_kernel: bool = False) -> int:
        if key in self.open:
            raise Unclear("a function that calls itself")
        if key in self.places:
            return self.places[key]
        function = self.functions.get(key)
        if function is None:
            raise Unclear("a function that is not found")
        self.open.add(key)
        place = self.places[key] = len(self.done)
        self.done.append([])
        taken: set[int] = set()
        around, self.meet.around = self.meet.around, [self.meet.within(function.body)]
        for statement in function.body:
            _addresses_taken(statement, taken)
        self.taken = taken | getattr(self, "taken", set())
        parameters, first = [], []
        for index, node in enumerate(function.parameters):
            slot = self._new_slot(node)
            if is_kernel:
                parameters.append(-1)
                value: Operation = ["?", node.number] if node.number else _NOTHING
                if node.shape == n.POINTER:
                    value = ["p", index]
                elif node.number:
                    value = ["a", index, node.number]
                if slot is not None:
                    first.append(["new", slot.number, value])
                elif node.shape == n.POINTER:
                    first.append(["esc", value, "its address is taken"])
            else:
                parameters.append(-1 if slot is None else slot.number)
        body = [*first, *self._several(function.body)]
        own = sorted({slot for slot in parameters if slot >= 0} | _declared(body))
        self.done[place] = [parameters, body, _touches(body, self.done), own]
        self.meet.around = around
        self.open.discard(key)
        return place

    def _new_slot(self, node: Node) -> _Slot | None:
        if node.key in self.taken or node.space not in (0, n.PRIVATE):
            return None
        if node.shape == n.POINTER:
            kind = 0
        elif node.number:
            kind = node.number
        else:
            return None
        slot = self.slots.get(node.key)
        if slot is None:
            slot = self.slots[node.key] = _Slot(len(self.slots), kind)
        return slot

    # ---- statements ----

    def _several(self, nodes: Sequence[Node]) -> list[Operation]:
        out = []
        for node in nodes:
            operation = self._statement(node)
            if has_effect(operation):
                out.append(operation)
        return out

    def _statement(self, node: Node) -> Operation:
        kind = node.kind
        if n.is_expression(kind):
            return self._value(node)
        if kind == n.VAR_DECL:
            return self._declare(node)
        if kind == n.UNEXPOSED_STMT and len(node.children) == 1:
            return self._statement(node.children[0])  # behind attributes or `#pragma unroll`
        if kind in (n.COMPOUND, n.DECL_STMT):
            return [",", *self._several(node.children)]
        if kind == n.IF:
            condition, *branches = node.children
            test = self._value(condition)
            both = [[",", *self._several([branch])] for branch in branches]
            name = "if met" if self.meet.decided(branches) else "if"
            operation = [name, test, both[0], both[1] if len(both) > 1 else _NOTHING]
            return operation if has_effect(both) else test
        if kind == n.FOR:
            return self._for(node)
        if kind == n.WHILE:
            condition, body = node.children
            return self._loop(condition, *_parts_of_turn(body))
        if kind == n.DO:
            return self._freely([node.children[0], node.children[1]])
        if kind == n.SWITCH:
            return self._switch(node)
        if kind == n.RETURN_STMT:
            value = self._value(node.children[0]) if node.children else _NOTHING
            return ["return", value]
        if kind in (n.CONTINUE, n.BREAK):
            return ["leave"]
        if kind in (n.CASE, n.DEFAULT):
            raise Unclear("a case inside of another statement")
        if kind in (n.LABEL, n.GOTO, n.INDIRECT_GOTO):
            raise Unclear("goto")
        if kind in (n.GCC_ASM_STMT, n.MS_ASM_STMT):
            raise Unclear("inline assembly")
        if kind >= 200 and not node.children:
            return _NOTHING
        if kind == n.TYPEDEF_DECL or kind < 100:
            return _NOTHING  # a type or a function is declared
        raise Unclear("a statement that is not understood")

    def _declare(self, node: Node) -> Operation:
        values = [child for child in node.children if n.is_expression(child.kind)]
        slot = self._new_slot(node)
        if slot is None:
            return [",", *(self._given_away(value, "kept in a variable") for value in values)]
        if slot.type:
            value = self._number(values[-1]) if values else ["?", slot.type]
        else:
            value = self._value(values[-1]) if values else _NOTHING
        self._assign(slot)
        return ["new", slot.number, value]

    def _assign(self, slot: _Slot) -> None:
        self.assigned[-1].add(slot.number)
        self.types[slot.number] = slot.type

    def _within(self) -> set[int]:
        inside = self.assigned.pop()
        self.assigned[-1] |= inside
        return inside

    def _list(self, slots: set[int]) -> list[list[int]]:
        return [[slot, self.types[slot]] for slot in sorted(slots)]

    def _for(self, node: Node) -> Operation:
        parts = node.children
        if len(parts) == 4:
            first = self._statement(parts[0])
            loop = self._loop(parts[1], [parts[3]], parts[2])
            return [",", first, loop]
        if len(parts) == 3 and parts[0].kind == n.DECL_STMT:
            return [",", self._statement(parts[0]), self._freely(parts[1:])]
        return self._freely(parts)  # the tree does not tell which part is missing

    def _loop(self, condition: Node, body: Sequence[Node], step: Node | None) -> Operation:
        self.assigned.append(set())
        parts = [condition, *body, *([] if step is None else [step])]
        name = "loop met" if self.meet.decided(parts, is_loop=True) else "loop"
        test = self._value(condition)
        self.meet.around.append(self.meet.within(parts))
        inside = self._several(body)
        self.meet.around.pop()
        before = set(self.assigned[-1])
        after = self._value(step) if step is not None else _NOTHING
        induction = self._induction(step, before) if step is not None else None
        slots = self._within()
        return [name, self._list(slots), test, inside, after, induction]

    def _induction(self, step: Node | None, elsewhere: set[int]) -> Operation | None:
        """Return [slot, type, distance, sign] of a counter that only the step changes, by a
        constant."""
        while step is not None and step.kind == n.PAREN_EXPR:
            step = step.children[0]
        if step is None or not step.children:
            return None
        place = self._place(step.children[0])
        if not isinstance(place, _Slot) or not place.type or place.number in elsewhere:
            return None
        if step.kind == n.UNARY_OPERATOR and step.operator in n.INCREMENTS:
            return [place.number, place.type, ["k", 1], 1 if step.operator in (1, 3) else -1]
        if step.kind == n.COMPOUND_ASSIGNMENT and step.operator in (26, 27):
            by = self._number(step.children[1])
            if has_effect(by) or _reads(by) & (elsewhere | {place.number}):
                return None
            return [place.number, place.type, by, 1 if step.operator == 26 else -1]
        return None

    def _freely(self, parts: list[Node]) -> Operation:
        """Return an operation for parts that run any number of times in any state."""
        self.assigned.append(set())
        self.meet.around.append(self.meet.within(parts))
        inside = [self._several([part]) for part in parts]
        self.meet.around.pop()
        slots = self._list(self._within())
        body: list[Operation] = []
        for operations in inside:
            body += [["again", slots], *operations]
        return ["loop", slots, ["?", 32], body, _NOTHING, None]

    def _switch(self, node: Node) -> Operation:
        condition, body = node.children
        test = self._value(condition)
        if body.kind != n.COMPOUND:
            raise Unclear("a switch without a block")
        self.assigned.append(set())
        operations: list[Operation] = []
        for child in body.children:
            while child.kind in (n.CASE, n.DEFAULT):
                operations.append(["case"])
                child = child.children[-1]
            operations += self._several([child])
        return ["switch", test, self._list(self._within()), operations]

    # ---- places ----

    def _place(self, node: Node) -> _Place:
        kind = node.kind
        if kind == n.DECL_REF_EXPR:
            slot = self.slots.get(node.key) if node.key else None
            return slot if slot is not None else _Other(_NOTHING)
        if bodies.is_arrow(node):
            return _Memory(self._value(node.children[0]), node.children[0].pointee_bytes, False)
        if kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(node.children) == 1:
            inner = self._place(node.children[0])
            if isinstance(inner, _Memory) and kind == n.UNEXPOSED_EXPR:
                return inner._replace(exact=False)  # some components of a vector
            return inner
        if kind == n.MEMBER_REF_EXPR and node.children:
            child = node.children[0]
            if child.shape == n.POINTER:
                return _Memory(self._value(child), child.pointee_bytes, False)
            inner = self._place(child)
            return inner._replace(exact=False) if isinstance(inner, _Memory) else _Other(
                inner.before if isinstance(inner, _Other) else _NOTHING
            )  # fmt: skip
        if kind == n.UNARY_OPERATOR and node.operator == n.DEREFERENCE:
            child = node.children[0]
            return self._at(child)
        if kind == n.ARRAY_SUBSCRIPT_EXPR and len(node.children) == 2:
            return self._element(node)
        return _Other(self._value(node))

    def _at(self, pointer: Node) -> _Place:
        if pointer.shape == n.ARRAY:
            inner = self._place(pointer)
            if isinstance(inner, _Memory):
                return _Other(["esc", inner.pointer, "an array inside of an element"])
            return inner if isinstance(inner, _Other) else _Other(_NOTHING)
        return _Memory(self._value(pointer), pointer.pointee_bytes, True)

    def _element(self, node: Node) -> _Place:
        base, index = node.children
        if base.shape != n.POINTER and index.shape == n.POINTER:
            base, index = index, base
        at = self._number(index)
        if base.shape == n.POINTER:
            size = base.pointee_bytes
            return _Memory(["+", self._value(base), at, size], size, True)
        inner = self._place(base)
        if isinstance(inner, _Memory):
            if base.shape == n.VECTOR:
                return _Memory([",", at, inner.pointer], inner.bytes, False)
            return _Other(["esc", inner.pointer, "an array inside of an element"])
        return _Other([",", at, inner.before] if isinstance(inner, _Other) else at)

    def _address(self, node: Node, place: _Place) -> Operation:
        if isinstance(place, _Memory):
            if place.exact:
                return place.pointer
            # A member without bytes of its own may begin where the structure ends.
            more = 1 if node.sizeless and place.bytes else 0
            return ["in", place.pointer, place.bytes + more]
        return [",", place.before, _NOTHING] if isinstance(place, _Other) else _NOTHING

    def _load(self, node: Node, place: _Place) -> Operation:
        if isinstance(place, _Slot):
            return ["s", place.number]
        value: Operation = ["?", node.number] if node.number else _NOTHING
        if isinstance(place, _Memory):
            return [",", ["r", place.pointer, place.bytes], value]
        return [",", place.before, value] if has_effect(place.before) else value

    def _store(self, place: _Place, value: Operation, is_pointer: bool) -> Operation:
        if isinstance(place, _Slot):
            self._assign(place)
            return ["=", place.number, value]
        if is_pointer:
            value = ["esc", value, "kept in memory"]
        if isinstance(place, _Memory):
            return [",", value, ["w", place.pointer, place.bytes]]
        return [",", value, place.before]

    @staticmethod
    def _changed(place: _Memory | _Other) -> Operation:
        """Load from a place and store there. Its own effects, as in `y[k++] += 1`, come once."""
        if isinstance(place, _Memory):
            return ["rw", place.pointer, place.bytes]
        return place.before

    # ---- values ----

    def _number(self, node: Node) -> Operation:
        """Return the value of an integer. Any integer stands for values that are not followed."""
        value = self._value(node)
        return value if node.number else [",", value, ["?", 64]]

    def _given_away(self, node: Node, why: str) -> Operation:
        value = self._value(node)
        return ["esc", value, why] if node.shape == n.POINTER else value

    def _opaque(self, node: Node, *before: Operation) -> Operation:
        kept = [one for one in before if has_effect(one)]
        value: Operation = ["?", node.number] if node.number else _NOTHING
        return [",", *kept, value] if kept else value

    def _value(self, node: Node) -> Operation:
        kind = node.kind
        if node.literal is not None:
            return ["k", node.literal]
        if kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR, n.ARRAY_SUBSCRIPT_EXPR):
            return self._read(node)
        if kind == n.PAREN_EXPR:
            return self._value(node.children[0])
        if kind in (n.UNEXPOSED_EXPR, n.CAST_EXPR) and len(node.children) == 1:
            return self._convert(node)
        if kind == n.UNARY_OPERATOR:
            return self._unary(node)
        if kind == n.BINARY_OPERATOR:
            return self._binary(node)
        if kind == n.COMPOUND_ASSIGNMENT:
            return self._compound(node)
        if kind == n.CONDITIONAL:
            return self._conditional(node)
        if kind == n.CALL_EXPR:
            return self._call(node)
        if kind == n.STATEMENT_EXPRESSION:
            return self._statement_expression(node)
        if kind in (n.SIZEOF_EXPR, n.INTEGER_LITERAL, n.FLOATING_LITERAL, n.STRING_LITERAL,
                    n.CHARACTER_LITERAL):  # fmt: skip
            return self._opaque(node)
        if kind in (n.COMPOUND_LITERAL, n.INIT_LIST):
            return self._opaque(
                node, *(self._given_away(child, "kept in a value") for child in node.children)
            )
        if kind == n.BLOCK_EXPR:
            raise Unclear("a block of code as a value")
        return self._perhaps(node, node.children, "used in an expression that is not understood")

    def _perhaps(self, node: Node, children: list[Node], why: str) -> Operation:
        """Return the value of an expression that may or may not evaluate these parts."""
        self.assigned.append(set())
        parts: list[Operation] = [
            self._given_away(child, why) if n.is_expression(child.kind) else self._statement(child)
            for child in children
        ]
        return self._opaque(node, ["maybe", self._list(self._within()), parts])

    def _read(self, node: Node) -> Operation:
        if node.kind == n.DECL_REF_EXPR and node.reference is not None:
            return _NOTHING
        place = self._place(node)
        return self._address(node, place) if node.shape == n.ARRAY else self._load(node, place)

    def _convert(self, node: Node) -> Operation:
        child = node.children[0]
        if bodies.is_arrow(node):
            return self._load(node, self._place(node))
        if child.shape == n.ARRAY and node.shape == n.POINTER:
            return self._address(child, self._place(child))
        if child.shape == n.VECTOR:
            return self._opaque(node, self._value(child))
        value = self._value(child)
        if node.shape == n.POINTER:
            return value if child.shape == n.POINTER else [",", value, _NOTHING]
        if child.shape == n.POINTER:
            if node.shape != n.BOOL and node.shape != n.VOID:
                value = ["esc", value, "turned into a number"]
            return self._opaque(node, value)
        if not node.number:
            return value if not child.number else self._opaque(node, value)
        if not child.number:
            return self._opaque(node, value)
        return value if node.number == child.number else ["c", node.number, value]

    def _unary(self, node: Node) -> Operation:
        child = node.children[0]
        if node.operator == n.ADDRESS_OF:
            return self._address(child, self._place(child))
        if node.operator == n.DEREFERENCE:
            place = self._place(node)
            return self._address(node, place) if node.shape == n.ARRAY else self._load(node, place)
        if node.operator in n.INCREMENTS:
            return self._increment(node)
        value = self._value(child)
        if node.operator == n.LOGICAL_NOT:
            return ["!", value] if child.number else self._opaque(node, value)
        if not node.number or not child.number:
            return self._opaque(node, value)
        if node.operator == 7:
            return value
        names = {8: "neg", 9: "~"}
        if node.operator in names:
            return [names[node.operator], node.number, value]
        return self._opaque(node, value)

    def _increment(self, node: Node) -> Operation:
        place = self._place(node.children[0])
        if not isinstance(place, _Slot):
            return [",", self._changed(place), self._opaque(node)]
        up = node.operator in (1, 3)
        if place.type:
            wide = place.type if abs(place.type) >= 32 else 32
            more: Operation = ["b", "+" if up else "-", wide, ["s", place.number], ["k", 1]]
            more = ["c", place.type, more]
        else:
            size = node.pointee_bytes
            more = ["+", ["s", place.number], ["k", 1 if up else -1], size]
        self._assign(place)
        return ["post" if node.operator in (1, 2) else "=", place.number, more]

    def _binary(self, node: Node) -> Operation:
        left, right = node.children
        operator = node.operator
        if operator == n.ASSIGN:
            place = self._place(left)
            slot_of_number = isinstance(place, _Slot) and place.type
            value = self._number(right) if slot_of_number else self._value(right)
            stored = self._store(place, value, right.shape == n.POINTER)
            return stored if isinstance(place, _Slot) else [",", stored, self._opaque(node)]
        first, second = self._value(left), self._value(right)
        if operator == n.COMMA:
            return [",", first, second]
        if operator in (_AND, _OR):
            return ["and" if operator == _AND else "or", self._truth(left, first),
                    self._truth(right, second)]  # fmt: skip
        if operator in _COMPARISONS and left.number and right.number:
            return ["cmp", _COMPARISONS[operator], first, second]
        if node.shape == n.POINTER and operator in (_ADD, _SUB):
            if left.shape != n.POINTER:
                left, right, first, second = right, left, second, first
            if right.number:
                size = node.pointee_bytes
                return ["+", first, second, size if operator == _ADD else -size]
            return [",", ["esc", first, "moved by what is no integer"], second, _NOTHING]
        if node.number and left.number and right.number and operator in _SIGNS:
            return ["b", _SIGNS[operator], node.number, first, second]
        return self._opaque(node, first, second)

    @staticmethod
    def _truth(node: Node, value: Operation) -> Operation:
        return value if node.number else [",", value, ["?", 32]]

    def _compound(self, node: Node) -> Operation:
        left, right = node.children
        place = self._place(left)
        value = self._value(right)
        operator = n.ASSIGNING.get(node.operator, 0)
        if not isinstance(place, _Slot):
            return [",", value, self._changed(place), self._opaque(node)]
        if not place.type:
            size = node.pointee_bytes if node.operator == 26 else -node.pointee_bytes
            by = value if right.number else [",", value, ["?", 64]]
            more: Operation = ["+", ["s", place.number], by, size]
        elif not right.number or operator not in _SIGNS:
            more = [",", value, ["?", place.type]]
        else:
            # the right side already has the type of the computation, except in shifts
            wide = place.type if abs(place.type) >= 32 else 32
            kind = wide if operator in (8, 9) else right.number
            old = ["c", kind, ["s", place.number]]
            more = ["c", place.type, ["b", _SIGNS[operator], kind, old, value]]
        self._assign(place)
        return ["=", place.number, more]

    def _conditional(self, node: Node) -> Operation:
        condition, first, second = node.children
        test = self._truth(condition, self._value(condition))
        both = [self._value(first), self._value(second)]
        if condition.shape == n.VECTOR:  # it picks components, of values that are both computed
            return self._opaque(node, test, *both)
        if node.number or node.shape == n.POINTER or has_effect(both):
            return ["?:", test, *both]
        return self._opaque(node, test)

    def _statement_expression(self, node: Node) -> Operation:
        block = node.children[0] if node.children else None
        if block is None or not block.children:
            return _NOTHING
        first = self._several(block.children[:-1])
        return [",", *first, self._statement(block.children[-1])]

    # ---- calls ----

    def _call(self, node: Node) -> Operation:
        callee, *arguments = node.children
        target = bodies.called(callee)
        if target is None:
            raise Unclear("a call through a function pointer")
        if not target.is_definition():
            return self._builtin(target.spelling, node, arguments)
        place = self.function(n.identity(target))
        parameters, _, touches, _ = self.done[place]
        if len(parameters) != len(arguments):
            raise Unclear("a call with variable arguments")
        if (
            not touches
            and not node.number
            and node.shape != n.POINTER
            and all(
                slot >= 0 or argument.shape != n.POINTER
                for slot, argument in zip(parameters, arguments, strict=True)
            )
        ):
            values = [self._value(argument) for argument in arguments]
            kept = [value for value in values if has_effect(value)]
            return [",", *kept, _NOTHING] if kept else _NOTHING
        values = []
        for slot, argument in zip(parameters, arguments, strict=True):
            given = self._value(argument)
            if slot < 0 and argument.shape == n.POINTER:
                given = ["esc", given, "its address is taken in a helper"]
            values.append(given)
        result: Operation = ["call", place, values, node.number]
        return result

    def _builtin(self, name: str, node: Node, arguments: list[Node]) -> Operation:
        if name.startswith("__builtin_"):  # some take an expression and do not evaluate it
            return self._perhaps(node, arguments, f"passed to {name}")
        if name in _QUERIES and node.number:
            axis = self._value(arguments[0]) if arguments else ["k", 0]
            return ["q", name, axis, node.number]
        if node.number and arguments and all(a.number == node.number for a in arguments):
            values = [self._value(argument) for argument in arguments]
            if name in ("min", "max") and len(values) == 2:
                return ["mm", name, node.number, *values]
            if name == "clamp" and len(values) == 3:
                return ["clamp", node.number, *values]
            if name == "mul24" and len(values) == 2:
                return ["24", node.number, *values]
            if name == "mad24" and len(values) == 3:
                return ["b", "+", node.number, ["24", node.number, *values[:2]], values[2]]
            return self._opaque(node, *values)
        if not any(argument.shape == n.POINTER for argument in arguments):
            return self._opaque(node, *(self._value(argument) for argument in arguments))
        return self._memory_builtin(name, node, arguments)

    def _memory_builtin(self, name: str, node: Node, arguments: list[Node]) -> Operation:
        if builtins.returns_its_argument(name):
            return self._value(arguments[0])
        match = _VECTOR_MEMORY.match(name)
        if match and len(arguments) == (2 if match[1] == "load" else 3):
            *data, index, pointer = arguments
            count = int(match[4] or 1)
            unit = 2 if match[3] else pointer.pointee_bytes
            step = 4 if match[2] and count == 3 else count
            at = ["+", self._value(pointer), self._number(index), step * unit]
            flag = "r" if match[1] == "load" else "w"
            return self._opaque(node, *(self._value(one) for one in data), [flag, at, step * unit])
        effects = builtins.effects(name, len(arguments))
        if effects is not None and _ONE_PLACE.match(name):
            parts = []
            for argument, flags in zip(arguments, effects, strict=True):
                value = self._value(argument)
                if argument.shape == n.POINTER and flags:
                    value = [flags, value, argument.pointee_bytes]
                parts.append(value)
            return self._opaque(node, *parts)
        if name == "async_work_group_copy" and len(arguments) == 4:
            to, of, count_node, event = arguments
            count_of = self._number(count_node)
            many = ["?", 64] if has_effect(count_of) else count_of  # it is evaluated once
            return self._opaque(
                node, self._value(event), count_of,
                ["rng", "w", self._value(to), many, to.pointee_bytes],
                ["rng", "r", self._value(of), many, of.pointee_bytes],
            )  # fmt: skip
        return self._opaque(
            node, *(self._given_away(one, f"passed to {name}") for one in arguments)
        )


class _Meetings:
    """Tells where work-items of a group wait for each other. `around`: whether they do in the open
    function, and in each open loop of it."""

    def __init__(self, functions: dict[int, bodies.Function]) -> None:
        self.functions = functions
        self.around = [False]
        self.known: dict[int, bool] = {}  # by function

    def within(self, nodes: Sequence[Node]) -> bool:
        """Tell whether they do so below some nodes."""
        return any(self._calls(node) or self.within(node.children) for node in nodes)

    def decided(self, nodes: Sequence[Node], is_loop: bool = False) -> bool:
        """Tell whether the condition of these nodes decides which work-items do so: below them, or
        behind them, if one may leave the function or the loop there."""
        if not self.around[0]:
            return False
        if self.within(nodes):
            return True
        leaves = {n.RETURN_STMT}
        ends = {n.BREAK, n.CONTINUE} if self.around[-1] and not is_loop else set()
        return any(_has(node, leaves, ends) for node in nodes)

    def _calls(self, node: Node) -> bool:
        target = bodies.called(node.children[0]) if node.kind == n.CALL_EXPR else None
        if target is None:
            return False
        if not target.is_definition():
            return bool(_MEETS.search(target.spelling))
        key = n.identity(target)
        if key not in self.known:
            self.known[key] = False  # if it calls itself, there is no outline
            function = self.functions.get(key)
            self.known[key] = function is not None and self.within(function.body)
        return self.known[key]


def _has(node: Node, leaves: set[int], ends: set[int]) -> bool:
    """Tell whether a statement below a node leaves the function, or ends a turn of the loop around
    the node."""
    if node.kind in leaves or node.kind in ends:
        return True
    ends = set() if node.kind in _LOOPS else ends
    return any(_has(child, leaves, ends) for child in node.children)


def _parts_of_turn(body: Node) -> tuple[Sequence[Node], Node | None]:
    """Return the statements of a `while` loop, and its last one by itself where that counts up or
    down and ends each turn, as the step of a `for` loop does."""
    if body.kind != n.COMPOUND or not body.children or _has(body, set(), {n.CONTINUE}):
        return [body], None
    *statements, last = body.children
    step = last
    while step.kind == n.PAREN_EXPR:
        step = step.children[0]
    counts = step.kind == n.UNARY_OPERATOR and step.operator in n.INCREMENTS
    return (statements, last) if counts or step.kind == n.COMPOUND_ASSIGNMENT else ([body], None)


def _addresses_taken(node: Node, found: set[int]) -> None:
    """Collect the variables whose address is taken below a node, or that may be what it changes
    where the place is not understood, as in `_Generic(n, int: k) = 1`."""
    if node.kind == n.UNARY_OPERATOR and node.operator == n.ADDRESS_OF:
        below = _bare(node.children[0])
        if below.kind == n.DECL_REF_EXPR:
            found.add(below.key)
        else:
            _variables_of(below, found)
    elif (
        node.kind == n.COMPOUND_ASSIGNMENT
        or (node.kind == n.BINARY_OPERATOR and node.operator == n.ASSIGN)
        or (node.kind == n.UNARY_OPERATOR and node.operator in n.INCREMENTS)
    ):
        _variables_of(_bare(node.children[0]), found)
    for child in node.children:
        _addresses_taken(child, found)


def _bare(node: Node) -> Node:
    """Return an lvalue without brackets, conversions, and components of a vector."""
    while node.kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(node.children) == 1:
        node = node.children[0]
    return node


def _variables_of(place: Node, found: set[int]) -> None:
    """Collect the variables in an lvalue that is neither one of them nor a part of memory."""
    if place.kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR, n.ARRAY_SUBSCRIPT_EXPR,
                      n.COMPOUND_LITERAL):  # fmt: skip
        return
    if place.kind == n.UNARY_OPERATOR and place.operator == n.DEREFERENCE:
        return
    found.update(bodies.variables(place))


def _reads(operation: object) -> set[int]:
    """Return the slots that an operation reads."""
    if not isinstance(operation, list):
        return set()
    if len(operation) == 2 and operation[0] == "s":
        return {operation[1]}
    return set().union(*(_reads(part) for part in operation), set())


def _declared(operation: object) -> set[int]:
    """Return the slots of variables that are declared in it."""
    if not isinstance(operation, list):
        return set()
    found: set[int] = {operation[1]} if operation and operation[0] == "new" else set()
    return found.union(*(_declared(part) for part in operation))


def _touches(operation: object, functions: list[Operation]) -> bool:
    """Tell whether arguments' memory may be touched, or their addresses passed on."""
    if not isinstance(operation, list):
        return False
    if operation and operation[0] in ("r", "w", "rw", "rng", "esc"):
        return True
    if operation and operation[0] == "call" and functions[operation[1]][2]:
        return True
    return any(_touches(part, functions) for part in operation)
