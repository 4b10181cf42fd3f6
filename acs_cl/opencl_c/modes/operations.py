"""Count the arithmetic operations of a kernel's work-item, in its parsed body.

Input: the functions of `bodies.analyse`, numbers for the kernel's parameters, sizes. Output: a
number. The walk follows a work-item in the middle of the launch, with the whole numbers it knows.
Loops count as often as their bounds say.

It is an estimate, which separates kernels that compute from kernels that wait for memory. An
unknown bound counts as `TURNS` turns, an unknown condition as its longer branch. Computing the
address of an element counts as nothing: it is part of the access.
"""

# Long because: one walk follows all statements and expressions of one language.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil, log

from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

from ...records import NamedTuple

TURNS = 8
"""Turns of a loop whose bounds are not known."""
MOST_TURNS = 1 << 24
BITS = 64
"""Of the longest whole numbers. What goes beyond is not known, nor is a shift by more."""
DEEPEST = 16
"""Most nested calls. OpenCL C has no recursion, but a source may contain it."""
MOST_CALLS = 10_000
"""Most calls that are followed, since helpers that call helpers may come to billions."""

WIDTH = 4
"""Elements of a vector: the most common number."""
LONG, LONGEST = 8, 16
"""Operations of a function computed by a series, with one and with two arguments."""
QUOTIENT = 4
"""Operations of a division."""
_LONG = re.compile(
    r"(native_|half_)?(sqrt|rsqrt|cbrt|exp\w*|log\w*|sin\w*|cos\w*|tan\w*|a(sin|cos|tan)\w*|erfc?"
    r"|[tl]gamma|length|distance|normalize|fast_\w+)$"
)
_LONGEST = re.compile(r"(native_|half_)?(pow\w*|atan2(pi)?|hypot|fmod|remainder|rootn)$")
_NOTHING = re.compile(r"get_\w+|barrier|mem_fence|convert_\w+|as_\w+|v(load|store)\w*|__builtin\w*")
_TWO = re.compile(r"fma|mad(24|_hi|_sat)?|mix|dot$")

_DIVISIONS = frozenset({4, 5})
_ARITHMETIC = frozenset({*range(3, 10), 17, 18, 19})
_LESS, _MORE = frozenset({11, 13}), frozenset({12, 14})


class Sizes(NamedTuple):
    """Sizes of a launch, in each dimension."""

    items: Sequence[int]
    group: Sequence[int]


def operations(
    functions: Mapping[int, bodies.Function], scalars: Mapping[int, int], sizes: Sizes
) -> int:
    """Return the operations of one work-item. `functions`: the kernel, then the functions that it
    calls. `scalars`: whole numbers by the position of their parameter."""
    kernel = next(iter(functions.values()))
    count = _Count(functions, sizes)
    for position, number in scalars.items():
        count.known[kernel.parameters[position].key] = number
    return int(count.block(kernel.body))


class _Count:
    """A walk along the body. `known`: variables whose value is a known whole number."""

    def __init__(self, functions: Mapping[int, bodies.Function], sizes: Sizes) -> None:
        self.functions = functions
        self.sizes = sizes
        self.known: dict[int, float] = {}
        self.depth = self.calls = 0

    # ---- statements ----

    def block(self, nodes: Sequence[Node]) -> float:
        return sum(self.statement(node) for node in nodes)

    def statement(self, node: Node) -> float:
        kind = node.kind
        if n.is_expression(kind):
            return self.expression(node)
        if kind == n.VAR_DECL:
            return self._declared(node)
        if kind == n.IF:
            return self._branches(node)
        if kind == n.FOR:
            return self._for(node)
        if kind in (n.WHILE, n.DO):
            return self._repeated(node.children, TURNS)
        return self.block(node.children) if kind >= 200 else 0

    def _declared(self, node: Node) -> float:
        values = [child for child in node.children if n.is_expression(child.kind)]
        if not values:
            return 0
        count = self.expression(values[-1])
        self._set(node.key, self.value(values[-1]))
        return count

    def _branches(self, node: Node) -> float:
        condition, *branches = node.children
        count = self.expression(condition)
        taken = self.value(condition)
        before = dict(self.known)
        costs = []
        after = []
        for branch in branches:
            self.known = dict(before)
            costs.append(self.statement(branch))
            after.append(self.known)
        if len(branches) == 1:
            costs.append(0)
            after.append(before)
        if taken is not None:
            at = 0 if taken else 1
            self.known = after[at]
            return count + costs[at]
        self.known = {k: v for k, v in after[0].items() if after[1].get(k) == v}
        return count + max(costs)

    def _for(self, node: Node) -> float:
        parts = node.children
        if len(parts) != 4:
            return self._repeated(parts, TURNS)
        first, condition, step, body = parts
        count = self.statement(first)
        turns, counter, middle = self._turns(condition, step)
        self._forget(parts[1:])
        if counter:
            self._set(counter, middle)
        inside = self.expression(condition) + self.expression_of_step(step) + self.statement(body)
        self._forget(parts[1:])
        return count + turns * inside

    def _repeated(self, parts: Sequence[Node], turns: float) -> float:
        self._forget(parts)
        count = turns * self.block(parts)
        self._forget(parts)
        return count

    def _turns(self, condition: Node, step: Node) -> tuple[float, int, float | None]:
        """Return the turns of a loop, the key of its counter, and the counter's middle value."""
        test, counted = _bare(condition), _bare(step)
        place = _bare(counted.children[0]) if counted.children else None
        if test.kind != n.BINARY_OPERATOR or place is None or place.kind != n.DECL_REF_EXPR:
            return TURNS, 0, None
        left, right = test.children
        is_left = _bare(left).key == place.key
        start, end = self.value(place), self.value(right if is_left else left)
        if start is None or end is None:
            return TURNS, 0, None
        turns = self._steps(counted, start, end)
        if turns is None:
            return TURNS, 0, None
        return min(max(turns, 0), MOST_TURNS), place.key, (start + end) // 2

    def _steps(self, step: Node, start: float, end: float) -> float | None:
        """Return the steps from one number to another."""
        if step.kind == n.UNARY_OPERATOR and step.operator in n.INCREMENTS:
            return abs(end - start)
        if step.kind != n.COMPOUND_ASSIGNMENT:
            return None
        by, sign = self.value(step.children[1]), n.ASSIGNING.get(step.operator)
        if not by:
            return None
        if sign in (6, 7):
            return ceil(abs(end - start) / abs(by))
        if sign in (8, 9) and not 0 < by < BITS:
            return None
        factor = 2**by if sign in (8, 9) else by
        if sign in (3, 4, 8, 9) and factor > 1:
            low, high = sorted((max(abs(start), 1), max(abs(end), 1)))
            return ceil(log(high / low, factor)) + 1
        return None

    # ---- expressions ----

    def expression_of_step(self, step: Node) -> float:
        """Return the cost of a step. Counting up is part of the loop."""
        return 0 if _bare(step).kind == n.UNARY_OPERATOR else self.expression(step)

    def expression(self, node: Node) -> float:
        """Return the operations of an expression, and follow its assignments."""
        kind = node.kind
        if kind == n.ARRAY_SUBSCRIPT_EXPR or node.literal is not None:
            return sum(self._calls(child) for child in node.children)
        if kind == n.CALL_EXPR:
            return self._call(node)
        count = sum(self.expression(child) for child in node.children)
        width = WIDTH if node.shape == n.VECTOR else 1
        if kind == n.BINARY_OPERATOR:
            if node.operator == n.ASSIGN:
                self._assign(node.children[0], self.value(node.children[1]))
            elif node.operator in _ARITHMETIC and node.shape != n.POINTER:
                count += width * (QUOTIENT if node.operator in _DIVISIONS else 1)
        elif kind == n.COMPOUND_ASSIGNMENT:
            self._assign(node.children[0], None)
            sign = n.ASSIGNING.get(node.operator, 6)
            count += width * (QUOTIENT if sign in _DIVISIONS else 1)
        elif kind == n.UNARY_OPERATOR and node.operator in n.INCREMENTS:
            self._assign(node.children[0], None)
        return count

    def _calls(self, node: Node) -> float:
        """Return the operations of functions that are called to compute an address."""
        if node.kind == n.CALL_EXPR:
            return self._call(node)
        return sum(self._calls(child) for child in node.children)

    def _call(self, node: Node) -> float:
        callee, *arguments = node.children or [node]
        count = sum(self.expression(argument) for argument in arguments)
        cursor = bodies.called(callee) if node.children else None
        if cursor is None:
            return count
        function = self.functions.get(n.identity(cursor)) or self._of_name(cursor.spelling)
        if function is not None and self.depth < DEEPEST and self.calls < MOST_CALLS:
            self.calls += 1
            before = dict(self.known)
            for parameter, argument in zip(function.parameters, arguments, strict=False):
                self._set(parameter.key, self.value(argument))
            self.depth += 1
            count += self.block(function.body)
            self.depth -= 1
            self.known = before
            return count
        width = WIDTH if node.shape == n.VECTOR else 1
        return count + width * _of_builtin(cursor.spelling)

    def _of_name(self, name: str) -> bodies.Function | None:
        return next((one for one in self.functions.values() if one.name == name), None)

    # ---- whole numbers ----

    def value(self, node: Node) -> float | None:
        """Return a whole number, if it is known."""
        node = _bare(node)
        if node.literal is not None:
            return node.literal
        if node.kind == n.DECL_REF_EXPR:
            return self.known.get(node.key)
        if node.kind == n.BINARY_OPERATOR and len(node.children) == 2:
            left, right = (self.value(child) for child in node.children)
            return None if left is None or right is None else _made(node.operator, left, right)
        if node.kind == n.CONDITIONAL and len(node.children) == 3:
            test = self.value(node.children[0])
            return None if test is None else self.value(node.children[1 if test else 2])
        if node.kind == n.CALL_EXPR and node.children:
            return self._queried(node)
        return None

    def _queried(self, node: Node) -> float | None:
        callee, *arguments = node.children
        cursor = bodies.called(callee)
        name = cursor.spelling if cursor is not None else ""
        values = [self.value(argument) for argument in arguments]
        if name in ("min", "max") and None not in values:
            return (min if name == "min" else max)(v for v in values if v is not None)
        axis = int(values[0] or 0) if values else 0
        items, group = (
            sizes[axis] if 0 <= axis < len(sizes) else 1
            for sizes in (self.sizes.items, self.sizes.group)
        )
        return {
            "get_global_id": items // 2,
            "get_local_id": group // 2,
            "get_group_id": items // max(group, 1) // 2,
            "get_global_size": items,
            "get_local_size": group,
            "get_num_groups": items // max(group, 1),
            "get_global_offset": 0,
        }.get(name)

    def _assign(self, place: Node, value: float | None) -> None:
        place = _bare(place)
        if place.kind == n.DECL_REF_EXPR:
            self._set(place.key, value)

    def _set(self, key: int, value: float | None) -> None:
        if value is None:
            self.known.pop(key, None)
        else:
            self.known[key] = value

    def _forget(self, nodes: Sequence[Node]) -> None:
        """Forget the values of variables that are assigned below these nodes."""
        for node in nodes:
            if n.assigns(node.kind, node.operator):
                self._assign(node.children[0], None)
            self._forget(node.children)


def _bare(node: Node) -> Node:
    """Return an expression without brackets and conversions."""
    inside = (n.PAREN_EXPR, n.UNEXPOSED_EXPR, n.CAST_EXPR)
    while node.kind in inside and len(node.children) == 1 and node.literal is None:
        node = node.children[0]
    return node


def _made(sign: int, left: float, right: float) -> float | None:
    if sign in _DIVISIONS:
        if not right:
            return None
        return int(left / right) if sign == 4 else left - right * int(left / right)
    if sign in (8, 9):
        if not 0 <= right < BITS:
            return None
        return _fitting(int(left) << int(right) if sign == 8 else int(left) >> int(right))
    if sign in _LESS:
        return float(left < right if sign == 11 else left <= right)
    if sign in _MORE:
        return float(left > right if sign == 12 else left >= right)
    found = {3: left * right, 6: left + right, 7: left - right}
    found |= {15: float(left == right), 16: float(left != right)}
    return _fitting(found.get(sign))


def _fitting(number: float | None) -> float | None:
    """Return a number that a kernel can compute with; None: its own is another one."""
    return None if number is None or abs(number) >= 1 << BITS else number


def _of_builtin(name: str) -> int:
    if _NOTHING.match(name):
        return 0
    if _LONGEST.match(name):
        return LONGEST
    if _LONG.match(name):
        return LONG
    return 2 if _TWO.match(name) else 1
