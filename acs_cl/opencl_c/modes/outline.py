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

# Long because: one walk over every kind of expression and statement.

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from acs_cl.opencl_c.modes import bodies, builtins, counters, taken, unread
from acs_cl.opencl_c.outlines import Made as Operation
from acs_cl.opencl_c.outlines import Outline
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

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
    {"r", "w", "rw", "rng", "esc", "=", "new", "post", "call", "loop", "loop met", "do", "do met",
     "again", "switch", "case", "maybe", "return", "leave"}
)  # fmt: skip
_NOTHING: Operation = [","]
MOST_BYTES = 1 << 16
"""Bytes of a structure among which a launch's numbers are told apart."""


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


class _Parts(NamedTuple):
    """An lvalue that is a variable of several numbers, or some of them. `slots`: by offset from
    where it begins. `is_known`: which of them it is."""

    before: Operation
    slots: dict[int, _Slot]
    whole: tuple[_Slot, ...]  # of the whole variable
    is_known: bool = True


class _Several(NamedTuple):
    """A value of several numbers. `before`: operations of its evaluation. `numbers`: by offset,
    without effects. One that is missing may be any."""

    before: list[Operation]
    numbers: dict[int, Operation]


class _Other(NamedTuple):
    """An lvalue that is not followed. `before`: operations of its evaluation."""

    before: Operation


_Place = _Memory | _Slot | _Parts | _Other


def outline(found: bodies.Bodies) -> Outline:
    """Return the outline of a kernel: its functions, the kernel first. Raises `Unclear`."""
    walk = _Walk(found.functions)
    keys = list(found.functions)
    walk.function(keys[0], True)
    return {"functions": unread.without(walk.done, walk.many)}


def has_effect(operation: object) -> bool:
    """Tell whether an operation does more than return a value."""
    left = [operation]
    while left:
        one = left.pop()
        if isinstance(one, list) and one:
            if one[0].__class__ is str and one[0] in _EFFECTS:
                return True
            left += [part for part in one if part.__class__ is list]
    return False


class _Walk:
    def __init__(self, functions: dict[int, bodies.Function]) -> None:
        self.functions = functions
        self.done: list[Operation] = []  # parameters, body, whether it touches, slots
        self.places: dict[int, int] = {}  # of functions in `done`
        self.open: set[int] = set()
        self.slots: dict[int, _Slot] = {}
        self.parts: dict[int, dict[int, _Slot]] = {}  # of variables of several numbers
        self.results: dict[int, dict[int, _Slot]] = {}  # of functions in `done`, the same
        self.takes: dict[int, list[_Slot | dict[int, _Slot] | None]] = {}  # their parameters
        self.result: dict[int, _Slot] = {}  # of the open function
        self.many = self.loops = 0  # variables, and loops with a number
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
        found: set[int] = set()
        changed: set[int] = set()
        around, self.meet.around = self.meet.around, [self.meet.within(function.body)]
        for statement in function.body:
            taken.collect(statement, found, changed)
        if is_kernel:  # PoCL gives all work-items of a group one copy of a structure
            found |= {one.key for one in function.parameters
                      if one.shape == n.RECORD and one.key in changed}  # fmt: skip
        self.taken = found | getattr(self, "taken", set())
        outer, self.result = self.result, {}
        parameters: list[int] = []
        first: list[Operation] = []
        takes = self.takes[place] = []
        for index, node in enumerate(function.parameters):
            slot, parts = self._new_slot(node), self._new_parts(node)
            takes.append(slot if parts is None else parts)
            if is_kernel:
                first += self._given(index, node, slot, parts)
            elif parts is not None:
                parameters += [one.number for one in parts.values()]
            else:
                parameters.append(-1 if slot is None else slot.number)
        body = self._several(function.body)
        self.results[place] = self.result
        first += [["=", one.number, ["?", one.type]] for one in self.result.values()]
        body = [*first, *body]
        own = sorted({slot for slot in parameters if slot >= 0} | _declared(body))
        self.done[place] = [parameters, body, _touches(body, self.done), own]
        self.meet.around, self.result = around, outer
        self.open.discard(key)
        return place

    def _given(
        self, index: int, node: Node, slot: _Slot | None, parts: dict[int, _Slot] | None
    ) -> list[Operation]:
        """Return the operations that give a parameter of a kernel its value."""
        value: Operation = ["?", node.number] if node.number else _NOTHING
        if node.shape == n.POINTER:
            value = ["p", index]
        elif node.number:
            value = ["a", index, node.number]
        if parts is not None:
            return [
                ["new", parts[one.offset].number,
                 ["part", index, one.offset, one.number, node.name + one.name]]
                for one in node.parts
                if one.offset < MOST_BYTES
            ]  # fmt: skip
        if slot is not None:
            return [["new", slot.number, value]]
        return [["esc", value, "its address is taken"]] if node.shape == n.POINTER else []

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
            slot = self.slots[node.key] = self._one_more(kind)
        return slot

    def _new_parts(self, node: Node) -> dict[int, _Slot] | None:
        """Return the variables of one of several numbers. None: it is not followed."""
        if not node.parts or node.key in self.taken or node.space not in (0, n.PRIVATE):
            return None
        if node.key not in self.parts:
            self.parts[node.key] = {one.offset: self._one_more(one.number) for one in node.parts}
        return self.parts[node.key]

    def _one_more(self, kind: int) -> _Slot:
        self.many += 1
        return _Slot(self.many - 1, kind)

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
            return self._loop(condition, body, None)
        if kind == n.DO:
            return self._do(node)
        if kind == n.SWITCH:
            return self._switch(node)
        if kind == n.RETURN_STMT:
            return self._return(node)
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
        parts = self._new_parts(node)
        if parts is not None:
            given = self._numbers(values[-1]) if values else _Several([], {})
            return [",", *self._spread(parts, given, "new")]
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

    def _return(self, node: Node) -> Operation:
        value = node.children[0] if node.children else None
        if value is None or not _is_several(value):
            return ["return", self._value(value) if value is not None else _NOTHING]
        if not self.result:
            self.result = {one.offset: self._one_more(one.number) for one in value.parts}
        given = self._numbers(value)
        return [",", *self._spread(self.result, given), ["return", _NOTHING]]

    def _for(self, node: Node) -> Operation:
        parts = node.children
        if len(parts) != 4:  # it is not known which part is missing
            is_first = len(parts) == 3 and parts[0].kind == n.DECL_STMT
            first = self._statement(parts[0]) if is_first else _NOTHING
            return [",", first, self._freely(parts[is_first:])]
        first = self._statement(parts[0])
        condition, step = (None if one.kind == n.NULL_STMT else one for one in parts[1:3])
        return [",", first, self._loop(condition, parts[3], step)]

    def _loop(self, condition: Node | None, body: Node, step: Node | None) -> Operation:
        self.assigned.append(set())
        parts = [one for one in (condition, body, step) if one is not None]
        name = "loop met" if self.meet.decided(parts, is_loop=True) else "loop"
        statements = [body]
        ends = _end_of(body) if condition is None or condition.literal else None
        if ends is not None:
            statements = ends.statements
            test: Operation = ["!", self._truth(ends.condition, self._value(ends.condition))]
        elif condition is None:
            test = ["k", 1]
        else:
            test = self._truth(condition, self._value(condition))
        self.meet.enter(parts)
        inside = self._several(statements)
        self.meet.around.pop()
        after = self._value(step) if step is not None else _NOTHING
        slots = self._within()
        made = counters.assignments([test, inside, after])
        first = []
        for one in counters.sure(test):  # `i-- > 0`: the body begins with what it does
            rest = counters.replaced(test, one, _NOTHING)
            if one[0] == "post" and made[one[1]] == 1 and one[1] not in counters.reads(rest):
                test = counters.replaced(test, one, ["s", one[1]])
                first.append(["=", *one[1:]])
        test = _asked(test)
        always = first if _has(body, set(), {n.CONTINUE}) else first + inside
        found = counters.counters(self.types, made, always, after)
        is_plain = ends is None and not first and not _has(body, {n.RETURN_STMT}, {n.BREAK})
        number = self._next_loop() if is_plain else -1
        return [name, self._list(slots), test, first + inside, after, found, number]

    def _next_loop(self) -> int:
        self.loops += 1
        return self.loops - 1

    def _do(self, node: Node) -> Operation:
        body, condition = node.children
        self.assigned.append(set())
        name = "do met" if self.meet.decided([body, condition], is_loop=True) else "do"
        self.meet.enter([body, condition])
        inside = self._several([body])
        self.meet.around.pop()
        test = self._truth(condition, self._value(condition))
        slots = self._within()
        made = counters.assignments([inside, test])
        always = [] if _has(body, set(), {n.CONTINUE}) else inside
        found = counters.counters(self.types, made, always, test)
        goes_on = test
        for one in counters.sure(test):  # `--i > 0`: what it is when the next turn begins
            if one[0] == "=" and made[one[1]] == 1:
                goes_on = counters.replaced(goes_on, one, ["s", one[1]])
        goes_on = _asked(goes_on)
        if has_effect(goes_on):
            goes_on = ["?", 32]
        return [name, self._list(slots), goes_on, inside, test, found, -1]

    def _freely(self, parts: list[Node]) -> Operation:
        """Return an operation for parts that run any number of times in any state."""
        self.assigned.append(set())
        self.meet.enter(parts)
        inside = [self._several([part]) for part in parts]
        self.meet.around.pop()
        slots = self._list(self._within())
        body: list[Operation] = []
        for operations in inside:
            body += [["again", slots], *operations]
        return ["loop", slots, ["?", 32], body, _NOTHING, [], -1]

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
            if node.key in self.parts:
                parts = self.parts[node.key]
                return _Parts(_NOTHING, parts, tuple(parts.values()))
            slot = self.slots.get(node.key) if node.key else None
            return slot if slot is not None else _Other(_NOTHING)
        if n.is_arrow(node):
            return _Memory(self._value(node.children[0]), node.children[0].pointee_bytes, False)
        if kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(node.children) == 1:
            inner = self._place(node.children[0])
            if isinstance(inner, _Memory) and kind == n.UNEXPOSED_EXPR:
                return inner._replace(exact=False)  # some components of a vector
            if isinstance(inner, _Parts) and node.component is not None:
                return self._components(node, inner)
            return inner
        if kind == n.MEMBER_REF_EXPR and node.children:
            child = node.children[0]
            if child.shape == n.POINTER:
                return self._member(node, _Memory(self._value(child), child.pointee_bytes, True))
            return self._member(node, self._place(child))
        if kind == n.UNARY_OPERATOR and node.operator == n.DEREFERENCE:
            child = node.children[0]
            return self._at(child)
        if kind == n.ARRAY_SUBSCRIPT_EXPR and len(node.children) == 2:
            return self._element(node)
        return _Other(self._value(node))

    def _member(self, node: Node, inner: _Place) -> _Place:
        if isinstance(inner, _Memory):
            if inner.exact and inner.bytes and 0 <= node.offset <= inner.bytes - node.bytes:
                pointer = ["+", inner.pointer, ["k", node.offset], 1] if node.offset else (
                    inner.pointer
                )  # fmt: skip
                if node.bytes:
                    return _Memory(pointer, node.bytes, True)
            return inner._replace(exact=False)
        if isinstance(inner, _Parts):
            return self._part(node, inner, node.offset)
        return inner if isinstance(inner, _Other) else _Other(_NOTHING)

    @staticmethod
    def _part(node: Node, of: _Parts, at: int) -> _Place:
        """Return the part of a variable that begins at an offset. Below 0: it is not known."""
        parts = node.parts or ([n.Part(0, node.number, "")] if node.number else [])
        slots = {
            one.offset: of.slots[at + one.offset]
            for one in parts
            if at + one.offset in of.slots and of.slots[at + one.offset].type == one.number
        }
        is_known = of.is_known and at >= 0 and len(slots) == len(parts)
        if node.number and is_known and not has_effect(of.before):
            return slots[0]
        return of._replace(slots=slots if is_known else {}, is_known=is_known)

    @staticmethod
    def _components(node: Node, of: _Parts) -> _Place:
        """Return components of a variable."""
        size = abs(next(iter(of.slots.values())).type) // 8 if of.slots else 0
        places = [at * size for at in node.component or ()]
        if not of.is_known or not places or not all(at in of.slots for at in places):
            return of._replace(slots={}, is_known=False)
        if node.number and not has_effect(of.before):
            return of.slots[places[0]]
        return of._replace(slots={size * to: of.slots[at] for to, at in enumerate(places)})

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
        array = taken.array_of(base)
        if array.shape in (n.ARRAY, n.VECTOR):
            inner = self._place(array)
            if isinstance(inner, _Parts):
                at = self._number(index)
                found = inner._replace(before=[",", inner.before, at]) if has_effect(at) else inner
                place = -1 if index.literal is None else index.literal * node.bytes
                return self._part(node, found, place if node.bytes else -1)
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
        return _NOTHING if isinstance(place, _Slot) else [",", place.before, _NOTHING]

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
        return [",", value, self._changed(place)]

    def _changed(self, place: _Memory | _Parts | _Other) -> Operation:
        """Load from a place and store there. Its own effects, as in `y[k++] += 1`, come once."""
        if isinstance(place, _Memory):
            return ["rw", place.pointer, place.bytes]
        if isinstance(place, _Parts):
            return [",", place.before, *self._lose(place)]
        return place.before

    def _changes(self, place: _Place) -> list[Operation]:
        return [] if isinstance(place, _Slot) else [self._changed(place)]

    def _lose(self, place: _Parts) -> list[Operation]:
        """Return operations after which a variable has any numbers where it may have changed."""
        slots = place.slots.values() if place.is_known else place.whole
        for one in slots:
            self._assign(one)
        return [["=", one.number, ["?", one.type]] for one in slots]

    # ---- values of several numbers ----

    def _spread(self, to: dict[int, _Slot], given: _Several, how: str = "=") -> list[Operation]:
        """Return operations that assign a value to variables."""
        own = {slot.number for slot in to.values()}
        reads = [counters.reads(one) & own for one in given.numbers.values()]
        if how == "=" and any(reads):  # `p.xy = p.yx`
            given = self._frozen(given)
        made = list(given.before)
        for at, slot in to.items():
            self._assign(slot)
            made.append([how, slot.number, given.numbers.get(at, ["?", slot.type])])
        return made

    def _frozen(self, given: _Several) -> _Several:
        """Return the same value, which later operations do not change."""
        before, numbers = list(given.before), {}
        for at, value in given.numbers.items():
            if value[0] == "k":
                numbers[at] = value
            else:
                slot = self._one_more(64)
                self._assign(slot)
                before.append(["new", slot.number, value])
                numbers[at] = ["s", slot.number]
        return _Several(before, numbers)

    def _single(self, node: Node) -> _Several:
        """Return an integer as a value of one number."""
        value = self._number(node)
        if has_effect(value):
            return self._frozen(_Several([], {0: value}))
        return _Several([], {0: value})

    def _together(self, given: Sequence[_Several]) -> tuple[list[Operation], list[_Several]]:
        """Return the operations of several values, and these without them."""
        if any(one.before for one in given[1:]):
            given = [self._frozen(one) for one in given]
        return [op for one in given for op in one.before], list(given)

    def _numbers(self, node: Node) -> _Several:
        """Return the value of an expression of several numbers."""
        kind, children = node.kind, node.children
        if node.component is not None:
            return self._picked(node)
        if kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR, n.ARRAY_SUBSCRIPT_EXPR):
            return self._loaded(node)
        if kind == n.PAREN_EXPR:
            return self._numbers(children[0])
        if kind in (n.UNEXPOSED_EXPR, n.CAST_EXPR, n.COMPOUND_LITERAL) and len(children) == 1:
            if _is_several(children[0]) and _alike(node, children[0]):
                return self._numbers(children[0])
            if children[0].parts and _alike_but_for_signs(node, children[0]):  # `as_uint2`
                given = self._numbers(children[0])
                kinds = {one.offset: one.number for one in node.parts}
                return given._replace(
                    numbers={at: ["c", kinds[at], one] for at, one in given.numbers.items()}
                )
            if node.shape == n.VECTOR and children[0].number == node.parts[0].number:
                own = self._single(children[0])
                return own._replace(numbers={one.offset: own.numbers[0] for one in node.parts})
        elif kind == n.INIT_LIST:
            return self._listed(node)
        elif kind == n.BINARY_OPERATOR:
            return self._binary_of_several(node)
        elif kind == n.COMPOUND_ASSIGNMENT:
            return self._compound_of_several(node)
        elif kind == n.UNARY_OPERATOR and node.operator in n.INCREMENTS:
            return self._increment_of_several(node)
        elif kind == n.UNARY_OPERATOR and node.operator in (7, 8, 9) and _alike(node, children[0]):
            given = self._numbers(children[0])
            name = {8: "neg", 9: "~"}.get(node.operator)
            if name is None:
                return given
            kinds = {one.offset: one.number for one in node.parts}
            return given._replace(
                numbers={at: [name, kinds[at], one] for at, one in given.numbers.items()}
            )
        elif kind == n.CONDITIONAL and children[0].number:
            return self._chosen(node)
        elif kind == n.CALL_EXPR:
            return self._called(node)
        return _Several([self._plain(node)], {})

    def _compound_of_several(self, node: Node) -> _Several:
        left, right = node.children
        place = self._place(left)
        sign = _SIGNS.get(n.ASSIGNING.get(node.operator, 0))
        if not (_is_several(right) and _alike(node, right) and sign):
            return _Several([self._value(right), *self._changes(place)], {})
        given = self._numbers(right)
        if not isinstance(place, _Parts) or not place.is_known:
            return _Several([*given.before, *self._changes(place)], {})
        old: dict[int, Operation] = {at: ["s", one.number] for at, one in place.slots.items()}
        made = self._by_parts(node, sign, _Several([], old), given)
        before = [place.before, *self._spread(place.slots, made)]
        return _Several([one for one in before if has_effect(one)], old)

    def _increment_of_several(self, node: Node) -> _Several:
        place = self._place(node.children[0])
        if not isinstance(place, _Parts) or not place.is_known:
            return _Several(self._changes(place), {})
        old = _Several([], {at: ["s", one.number] for at, one in place.slots.items()})
        if node.operator in (1, 2):
            old = self._frozen(old)
        by = _Several([], {at: ["k", 1] for at in old.numbers})
        more = self._by_parts(node, "+" if node.operator in (1, 3) else "-", old, by)
        before = [place.before, *self._spread(place.slots, more)]
        return old._replace(before=[one for one in before if has_effect(one)])

    def _loaded(self, node: Node) -> _Several:
        place = self._place(node)
        if isinstance(place, _Parts):
            before = [place.before] if has_effect(place.before) else []
            return _Several(before, {at: ["s", one.number] for at, one in place.slots.items()})
        if isinstance(place, _Slot):
            return _Several([], {})
        load = self._load(node, place)
        return _Several([load] if has_effect(load) else [], {})

    def _picked(self, node: Node) -> _Several:
        """Return components of a value."""
        base = node.children[0]
        if not _is_several(base):
            return _Several([self._plain(node)], {})
        given = self._numbers(base)
        size = abs(base.parts[0].number) // 8
        picked = enumerate(node.component or ())
        return given._replace(
            numbers={
                size * to: given.numbers[size * at]
                for to, at in picked
                if size * at in given.numbers
            }
        )

    def _listed(self, node: Node) -> _Several:
        """Return the value of a list of values."""
        given = [self._numbers(one) if _is_several(one) or one.parts else self._single(one)
                 if one.number else _Several([self._given_away(one, "kept in a value")], {})
                 for one in node.children]  # fmt: skip
        before, given = self._together(given)
        before = [one for one in before if has_effect(one)]
        kinds = {one.offset: one.number for one in node.parts}
        numbers: dict[int, Operation] = {}
        at = 0
        for index, (child, own) in enumerate(zip(node.children, given, strict=True)):
            if node.shape == n.VECTOR:
                begin = at
                at += (len(child.parts) or 1) * (abs(node.parts[0].number) // 8)
            elif index < len(node.fields):
                begin = node.fields[index]
            else:
                return _Several(before, {})
            parts = child.parts or ((n.Part(0, child.number, ""),) if child.number else ())
            if any(kinds.get(begin + one.offset) != one.number for one in parts):
                return _Several(before, {})  # without inner brackets, or with others
            numbers |= {begin + one: value for one, value in own.numbers.items()}
        return _Several(before, numbers)

    def _binary_of_several(self, node: Node) -> _Several:
        left, right = node.children
        if node.operator == n.ASSIGN:
            place = self._place(left)
            given = self._numbers(right) if _is_several(right) else None
            if isinstance(place, _Parts) and place.is_known and given is not None:
                before = [place.before, *self._spread(place.slots, given)]
                found = {at: ["s", slot.number] for at, slot in place.slots.items()}
                return _Several([one for one in before if has_effect(one)], found)
            value = [",", *given.before] if given is not None else self._value(right)
            if isinstance(place, _Slot):
                return _Several([value], {})
            return _Several([self._store(place, value, False)], {})
        if node.operator == n.COMMA:
            value = self._value(left)
            given = self._numbers(right)
            return given._replace(before=[value, *given.before] if has_effect(value)
                                  else given.before)  # fmt: skip
        sign = _SIGNS.get(node.operator)
        if sign and _is_several(left) and _is_several(right):
            return self._by_parts(node, sign, self._numbers(left), self._numbers(right))
        return _Several([self._plain(node)], {})

    def _by_parts(self, node: Node, sign: str, one: _Several, other: _Several) -> _Several:
        before, (one, other) = self._together([one, other])
        return _Several(before, {
            part.offset: ["b", sign, part.number, one.numbers[part.offset],
                          other.numbers[part.offset]]
            for part in node.parts
            if part.offset in one.numbers and part.offset in other.numbers
        })  # fmt: skip

    def _chosen(self, node: Node) -> _Several:
        condition, *both = node.children
        test = self._value(condition)
        slots = {one.offset: self._one_more(one.number) for one in node.parts}
        branches = [
            [",", *self._spread(slots, self._numbers(one) if _is_several(one)
                                else _Several([self._value(one)], {}), "new")]
            for one in both
        ]  # fmt: skip
        found: dict[int, Operation] = {at: ["s", one.number] for at, one in slots.items()}
        return _Several([["if", test, *branches]], found)

    def _called(self, node: Node) -> _Several:
        """Return what a call gives back."""
        target = bodies.called(node.children[0])
        arguments = node.children[1:]
        name = target.spelling if target is not None else ""
        if target is None or target.is_definition():
            operation = self._call(node)
            slots = self.results.get(operation[1], {}) if operation[0] == "call" else {}
            for slot in slots.values():
                self._assign(slot)
            return self._frozen(_Several([operation], {
                one.offset: ["s", slots[one.offset].number]
                for one in node.parts
                if one.offset in slots and slots[one.offset].type == one.number
            }))  # fmt: skip
        make = _BY_PARTS.get(name) or (_converted if _CONVERTS.match(name) else None)
        if make is None or not all(
            (_is_several(one) and len(one.parts) == len(node.parts))
            or one.number == node.parts[0].number for one in arguments
        ):  # fmt: skip
            return _Several([self._call(node)], {})
        given = [self._numbers(one) if _is_several(one) else self._single(one) for one in arguments]
        before, given = self._together(given)
        numbers = {}
        for index, part in enumerate(node.parts):
            places = [one.parts[index].offset if one.parts else 0 for one in arguments]
            kinds = [one.parts[index].number if one.parts else one.number for one in arguments]
            values = [
                own.numbers[at] for at, own in zip(places, given, strict=True) if at in own.numbers
            ]
            is_alike = all(one == part.number for one in kinds)
            if len(values) == len(arguments) and (is_alike or make is _converted):
                numbers[part.offset] = make(part.number, kinds, values)
        return _Several(before, numbers)

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
        if _is_several(node):
            return [",", *self._numbers(node).before, _NOTHING]
        if node.component is not None and node.number and _is_several(node.children[0]):
            given = self._picked(node)
            value = given.numbers.get(0, ["?", node.number])
            return [",", *given.before, value] if given.before else value
        return self._plain(node)

    def _plain(self, node: Node) -> Operation:
        """Return the value of an expression whose parts are not told apart."""
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
        if n.is_arrow(node):
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
        takes = self.takes[place]
        if len(takes) != len(arguments):
            raise Unclear("a call with variable arguments")
        if (
            not self.done[place][2]
            and not self.results[place]
            and not node.number
            and node.shape != n.POINTER
            and all(
                take is not None or argument.shape != n.POINTER
                for take, argument in zip(takes, arguments, strict=True)
            )
        ):
            values = [self._value(argument) for argument in arguments]
            kept = [value for value in values if has_effect(value)]
            return [",", *kept, _NOTHING] if kept else _NOTHING
        values = []
        for take, argument in zip(takes, arguments, strict=True):
            if isinstance(take, dict):
                values += self._handed(take, argument)
                continue
            given = self._value(argument)
            if take is None and argument.shape == n.POINTER:
                given = ["esc", given, "its address is taken in a helper"]
            values.append(given)
        result: Operation = ["call", place, values, node.number]
        return result

    def _handed(self, take: dict[int, _Slot], argument: Node) -> list[Operation]:
        """Return the values for a parameter of several numbers."""
        if not _is_several(argument):
            first, *others = (["?", slot.type] for slot in take.values())
            return [[",", self._value(argument), first], *others]
        given = self._numbers(argument)
        first, *others = (given.numbers.get(at, ["?", slot.type]) for at, slot in take.items())
        return [[",", *given.before, first] if given.before else first, *others]

    def _builtin(self, name: str, node: Node, arguments: list[Node]) -> Operation:
        if name.startswith("__builtin_"):  # some take an expression and do not evaluate it
            return self._perhaps(node, arguments, f"passed to {name}")
        if name in _QUERIES and node.number:
            axis = self._value(arguments[0]) if arguments else ["k", 0]
            return ["q", name, axis, node.number]
        if name in _LINEAR:
            return ["c", node.number, _linear(*_LINEAR[name])]
        if node.number and len(arguments) == 1 and arguments[0].number:
            made = _CONVERTS.match(name) and _converted(
                node.number, [arguments[0].number], [value := self._value(arguments[0])]
            )
            if made:
                return made
            if name == "abs" and not has_effect(value := self._value(arguments[0])):
                is_up: Operation = ["cmp", ">=", value, ["k", 0]]
                return ["c", node.number, ["?:", is_up, value, ["neg", 64, value]]]
        if name == "select" and node.number and all(one.number for one in arguments):
            no, yes, test = values = [self._value(argument) for argument in arguments]
            return ["?:", test, yes, no] if not has_effect(values) else self._opaque(node, *values)
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

    def enter(self, loop: Sequence[Node]) -> None:
        """Note that a loop is open."""
        self.around.append(self.around[0] and self.within(loop))

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


def _asked(condition: Operation) -> Operation:
    """Return a condition as a comparison, if it is a number."""
    return ["cmp", "!=", condition, ["k", 0]] if condition[0] == "s" else condition


class _End(NamedTuple):
    """A body that begins with a condition that ends its loop, and the other statements."""

    condition: Node
    statements: list[Node]


def _end_of(body: Node) -> _End | None:
    if body.kind != n.COMPOUND or not body.children or body.children[0].kind != n.IF:
        return None
    condition, *branches = body.children[0].children
    branch = branches[0]
    if branch.kind == n.COMPOUND and len(branch.children) == 1:
        branch = branch.children[0]
    if len(branches) > 1 or branch.kind != n.BREAK:
        return None
    return _End(condition, body.children[1:])


def _is_several(node: Node) -> bool:
    """Tell whether an expression has several numbers that are told apart."""
    return node.shape in (n.VECTOR, n.RECORD) and bool(node.parts)


def _alike(one: Node, other: Node) -> bool:
    """Tell whether two expressions have the same numbers at the same places."""
    return one.shape == other.shape and [part[:2] for part in one.parts] == [
        part[:2] for part in other.parts
    ]


def _alike_but_for_signs(one: Node, other: Node) -> bool:
    return one.shape == n.VECTOR == other.shape and [
        (part.offset, abs(part.number)) for part in one.parts
    ] == [(part.offset, abs(part.number)) for part in other.parts]


def _query(name: str, axis: int) -> Operation:
    return ["q", name, ["k", axis], -64]


def _linear(number: str, offset: str, size: str) -> Operation:
    """Return a work-item's number as if there were one axis."""
    found: Operation = ["k", 0]
    for axis in (2, 1, 0):
        own = _query(number, axis)
        if offset:
            own = ["b", "-", -64, own, _query(offset, axis)]
        found = ["b", "+", -64, ["b", "*", -64, found, _query(size, axis)], own]
    return found


_LINEAR = {
    "get_global_linear_id": ("get_global_id", "get_global_offset", "get_global_size"),
    "get_local_linear_id": ("get_local_id", "", "get_local_size"),
}
_CONVERTS = re.compile(r"(convert|as)_u?(char|short|int|long)\d*(_rt[ezpn])?$")


def _converted(kind: int, kinds: Sequence[int], values: Sequence[Operation]) -> Operation:
    return values[0] if kinds[0] == kind else ["c", kind, values[0]]


_BY_PARTS: dict[str, Callable[[int, Sequence[int], Sequence[Operation]], Operation]] = {
    "min": lambda kind, _, values: ["mm", "min", kind, *values],
    "max": lambda kind, _, values: ["mm", "max", kind, *values],
    "clamp": lambda kind, _, values: ["clamp", kind, *values],
    "mul24": lambda kind, _, values: ["24", kind, *values],
    "mad24": lambda kind, _, values: ["b", "+", kind, ["24", kind, *values[:2]], values[2]],
}
"""Built-in functions that do the same to each component of vectors."""


def _declared(operation: Operation) -> set[int]:
    """Return the slots of variables that are declared in it."""
    found = set()
    left = [operation]
    while left:
        one = left.pop()
        if one and one[0] == "new":
            found.add(one[1])
        left += [part for part in one if part.__class__ is list]
    return found


def _touches(operation: object, functions: list[Operation]) -> bool:
    """Tell whether arguments' memory may be touched, or their addresses passed on."""
    if not isinstance(operation, list):
        return False
    if operation and operation[0] in ("r", "w", "rw", "rng", "esc"):
        return True
    if operation and operation[0] == "call" and functions[operation[1]][2]:
        return True
    return any(_touches(part, functions) for part in operation)
