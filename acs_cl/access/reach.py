"""How far a launch reaches into each argument: an outline run for its sizes and numbers.

In: an outline (`opencl_c.modes.outline`), the sizes, offset and integer arguments of a launch. Out:
for each pointer parameter the byte rectangles that it may read and write, from its first byte on,
or None for all of it, with the reason. Pure.

All work-items are run at once. An integer is a sum of a constant and multiples of variables, each
of which has a range: work-item numbers, turns of loops, and whatever is not known. What is no such
sum gets a variable of its own with the range that it must be in. A condition narrows ranges where
it holds. Invariants: the values that a work-item can have are among those that the sum has for
some values of its variables in their ranges; arithmetic that may leave its type gives any value of
the type; what a loop changes is anything when a turn begins, but a counter that is proven not to
leave its type. So no access is missed, and the rectangles are exact where the sums are.
"""

# Long because: values, states and operations of one interpreter.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from acs_cl.opencl_c.outlines import Operation, Outline, OutlinedFunction
from acs_cl.ranges import Rectangle, rectangle

MOST_STEPS = 20_000
"""Operations that are run for one launch before it is given up."""

MOST_RECTANGLES = 4
"""Of one argument, read or written; more are taken as their hull."""

_FAR = 1 << 62  # bytes; beyond, addresses may come round again

Terms = tuple[tuple[int, int], ...]  # (variable, factor), by variable
Sum = tuple[int, Terms]
Pointer = tuple[str, int, Sum]  # 'p', parameter, bytes
Value = Sum | Pointer | None
Groups = tuple[tuple[int, int], ...]
"""Of each axis the first group that runs, and the one behind the last."""

_ZERO: Sum = (0, ())
_ONE: Sum = (1, ())


class Reached(NamedTuple):
    """What a launch may do to one argument; None is all of it, for the reason given."""

    reads: tuple[Rectangle, ...] | None
    writes: tuple[Rectangle, ...] | None
    why: str = ""


class TooMuch(Exception):  # noqa: N818  (an answer to the caller, not an error of the user)
    """The outline takes too long to run."""


class _State:
    """What is known at one place: variables of the kernel, ranges, and ranges of whole sums."""

    __slots__ = ("facts", "ranges", "slots")

    def __init__(
        self, slots: dict[int, Value], ranges: dict[int, tuple[int, int]],
        facts: dict[Terms, tuple[int, int]],
    ) -> None:  # fmt: skip
        self.slots = slots
        self.ranges = ranges
        self.facts = facts

    def copy(self) -> _State:
        return _State(self.slots.copy(), self.ranges.copy(), self.facts.copy())

    def terms(self, terms: Terms) -> tuple[int, int]:
        """The range of a sum without its constant."""
        low = high = 0
        for variable, factor in terms:
            least, most = self.ranges[variable]
            if factor < 0:
                least, most = most, least
            low += factor * least
            high += factor * most
        if len(terms) > 1 and self.facts:
            key, factor = _canonical(terms)
            fact = self.facts.get(key)
            if fact is not None:
                ends = fact[0] * factor, fact[1] * factor
                low, high = max(low, min(ends)), min(high, max(ends))
        return low, high

    def at_most(self, value: Sum, limit: int) -> bool:
        """Learn that a sum is at most `limit`; no if it cannot be."""
        constant, terms = value
        limit -= constant
        low, high = self.terms(terms)
        if low > limit:
            return False
        if high <= limit:
            return True
        low = sum(min(f * end for end in self.ranges[v]) for v, f in terms)  # without facts
        for variable, factor in terms:
            least, most = self.ranges[variable]
            room = limit - (low - min(factor * least, factor * most))
            if factor > 0:
                most = min(most, room // factor)
            else:
                least = max(least, -(room // -factor))
            if least > most:
                return False
            self.ranges[variable] = least, most
        if len(terms) > 1:
            key, factor = _canonical(terms)
            bound = limit // abs(factor)
            old = self.facts.get(key, (-_FAR * _FAR, _FAR * _FAR))
            self.facts[key] = (
                (old[0], min(old[1], bound)) if factor > 0 else (max(old[0], -bound), old[1])
            )
        return True


def _canonical(terms: Terms) -> tuple[Terms, int]:
    common = gcd(*(factor for _, factor in terms))
    if terms[0][1] < 0:
        common = -common
    return tuple((variable, factor // common) for variable, factor in terms), common


def _add(a: Sum, b: Sum, sign: int = 1) -> Sum:
    if not b[1]:
        return a[0] + sign * b[0], a[1]
    terms = dict(a[1])
    for variable, factor in b[1]:
        terms[variable] = terms.get(variable, 0) + sign * factor
    return a[0] + sign * b[0], tuple(sorted(pair for pair in terms.items() if pair[1]))


def _scale(a: Sum, by: int) -> Sum:
    if not by:
        return _ZERO
    return a[0] * by, tuple((variable, factor * by) for variable, factor in a[1])


def _limits(kind: int) -> tuple[int, int]:
    return (0, (1 << -kind) - 1) if kind < 0 else (-(1 << (kind - 1)), (1 << (kind - 1)) - 1)


def _quotient(a: int, b: int) -> int:
    """As C divides."""
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


class Launch(NamedTuple):
    """What of a launch an outline may ask for. `local`: None where the driver picks it. `groups`:
    the groups that run, where only a band of them does; it needs `local`."""

    sizes: tuple[int, ...]
    local: tuple[int, ...] | None
    offset: tuple[int, ...] | None
    numbers: Mapping[int, int]  # integer arguments, by parameter
    groups: Groups | None = None


def reach(outline: Outline, launch: Launch) -> dict[int, Reached]:
    """What a launch may touch of each argument that it touches at all."""
    if 0 in launch.sizes:
        return {}
    run = _Run(outline["functions"], launch)
    run.block(run.functions[0][1])
    return run.outcome()


class _Run:
    def __init__(self, functions: Sequence[OutlinedFunction], launch: Launch) -> None:
        self.functions = functions
        self.launch = launch
        self.state: _State | None = _State({}, {}, {})
        self.found: dict[tuple[int, str], list[Rectangle]] = {}
        self.whole: dict[int, str] = {}
        self.variables = 0
        self.work_items: dict[tuple[str, int], Sum] = {}
        self.depth = 0
        self.depths: dict[int, int] = {}  # of slots: how many loops they were declared in
        self.entries: list[_State] = []  # how the loops and switches that are open began
        self.returns: list[list[tuple[_State, Value]]] = [[]]
        self.steps = 0
        self._number_work_items()

    def outcome(self) -> dict[int, Reached]:
        result = {index: Reached(None, None, why) for index, why in self.whole.items()}
        for index, _ in self.found:
            if index not in result:
                result[index] = Reached(
                    _merged(self.found.get((index, "r"), [])),
                    _merged(self.found.get((index, "w"), [])),
                )
        return result

    # ---- values ----

    def fresh(self, low: int, high: int) -> Sum:
        if low == high:
            return low, ()
        self.variables += 1
        self.ranges[self.variables] = low, high
        return 0, ((self.variables, 1),)

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        assert self.state is not None
        return self.state.ranges

    def interval(self, value: Sum) -> tuple[int, int]:
        if not value[1]:
            return value[0], value[0]
        assert self.state is not None
        low, high = self.state.terms(value[1])
        return value[0] + low, value[0] + high

    def any_of(self, kind: int) -> Sum:
        return self.fresh(*_limits(kind))

    def fitting(self, kind: int, value: Sum) -> Sum:
        """The value where it is sure to be one of its type, else any."""
        low, high = self.interval(value)
        least, most = _limits(kind)
        if least <= low and high <= most:
            return value
        if not value[1] and kind < 0:
            return value[0] & most, ()
        return self.any_of(kind)

    def between(self, kind: int, low: int, high: int) -> Sum:
        least, most = _limits(kind)
        return self.fresh(low, high) if least <= low and high <= most else self.any_of(kind)

    # ---- running ----

    def block(self, operations: Sequence[Operation]) -> Value:
        value: Value = None
        for operation in operations:
            if self.state is None and operation[0] not in ("case", "again"):
                continue
            value = self.value(operation)
        return value

    def value(self, operation: Operation) -> Value:
        if self.state is None and operation[0] not in ("case", "again"):
            return _ZERO
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch
        return _RULES[operation[0]](self, operation)

    def number(self, operation: Operation) -> Sum:
        value = self.value(operation)
        if value is None or len(value) == 3:
            return self.any_of(64) if self.state is not None else _ZERO
        result: Sum = value
        return result

    def widen(self, value: Value, why: str) -> None:
        if value is not None and len(value) == 3:
            self.whole.setdefault(value[1], why)

    def touch(self, flags: str, pointer: Value, width: int) -> None:
        if self.state is None or pointer is None or len(pointer) != 3:
            return
        _, index, place = pointer
        if index in self.whole:
            return
        low, high = self.interval(place)
        if width <= 0 or low < -_FAR or high > _FAR:
            self.widen(pointer, "an index that may be any number" if width > 0 else "no size")
            return
        first, last, steps = place[0], place[0] + width, []
        for variable, factor in place[1]:
            least, most = self.ranges[variable]
            ends = factor * least, factor * most
            first += min(ends)
            last += max(ends)
            if most > least:
                steps.append((abs(factor), most - least + 1))
        found = _cut(rectangle(first, last, width, steps), low, high + width)
        for flag in flags:
            self.found.setdefault((index, flag), []).append(found)

    # ---- states ----

    def join(self, states: Sequence[_State | None]) -> _State | None:
        """What holds in whichever of the states it comes from."""
        live = [state for state in states if state is not None]
        if not live:
            return None
        joined = live[0]
        for other in live[1:]:
            joined = self._joined(joined, other)
        return joined

    def _joined(self, a: _State, b: _State) -> _State:
        ranges = {**b.ranges, **a.ranges}
        for variable in a.ranges.keys() & b.ranges.keys():
            one, two = a.ranges[variable], b.ranges[variable]
            if one != two:
                ranges[variable] = min(one[0], two[0]), max(one[1], two[1])
        facts = {}
        for key in a.facts.keys() & b.facts.keys():
            one, two = a.facts[key], b.facts[key]
            facts[key] = min(one[0], two[0]), max(one[1], two[1])
        result = _State({}, ranges, facts)
        for slot in a.slots.keys() & b.slots.keys():
            result.slots[slot] = self._either(result, a, a.slots[slot], b, b.slots[slot])
        return result

    def _either(self, result: _State, a: _State, one: Value, b: _State, two: Value) -> Value:
        if one == two:
            return one
        if one is not None and two is not None:
            if len(one) == 2 and len(two) == 2:
                return self._either_sum(result, a, one, b, two)
            if len(one) == 3 and len(two) == 3 and one[1] == two[1]:
                return "p", one[1], self._either_sum(result, a, one[2], b, two[2])
        self.widen(one, "a pointer that is one or the other")
        self.widen(two, "a pointer that is one or the other")
        return None

    def _either_sum(self, result: _State, a: _State, one: Sum, b: _State, two: Sum) -> Sum:
        if one == two:
            return one
        (c, terms), (d, others) = one, two
        low, high = a.terms(terms)
        least, most = b.terms(others)
        self.variables += 1
        result.ranges[self.variables] = min(c + low, d + least), max(c + high, d + most)
        return 0, ((self.variables, 1),)

    def forget(self, assigned: Sequence[Sequence[int]], why: str) -> None:
        """Slots that were assigned any number of times."""
        assert self.state is not None
        slots = self.state.slots
        for slot, kind in assigned:
            if slot in slots:
                if kind:
                    slots[slot] = self.any_of(kind)
                else:
                    self.widen(slots[slot], why)
                    slots[slot] = None

    # ---- conditions ----

    def branch(self, operation: Operation) -> tuple[_State | None, _State | None]:
        """The states where a condition holds, and where it does not."""
        if self.state is None:
            return None, None
        name = operation[0]
        if name == "!":
            yes, no = self.branch(operation[1])
            return no, yes
        if name in ("and", "or"):
            yes, no = self.branch(operation[1])
            if name == "and":
                self.state = yes
                yes, other = self.branch(operation[2])
                return yes, self.join([no, other])
            self.state = no
            other, no = self.branch(operation[2])
            return self.join([yes, other]), no
        if name == "cmp":
            a, b = self.number(operation[2]), self.number(operation[3])
            return self._compared(operation[1], a, b)
        if name == "c" and operation[2][0] in ("!", "and", "or", "cmp"):
            return self.branch(operation[2])
        if name == "," and len(operation) > 1:
            self.block(operation[1:-1])
            return self.branch(operation[-1])
        value = self.value(operation)
        if self.state is None:
            return None, None
        if value is None or len(value) == 3:
            return self.state, self.state.copy()
        return self._compared("!=", value, _ZERO)

    def _compared(self, sign: str, a: Sum, b: Sum) -> tuple[_State | None, _State | None]:
        if self.state is None:
            return None, None
        if sign in (">", ">="):
            sign, a, b = {">": "<", ">=": "<="}[sign], b, a
        if sign == "!=":
            no, yes = self._compared("==", a, b)
            return yes, no
        distance = _add(a, b, -1)
        yes, no = self.state, self.state.copy()
        back = _scale(distance, -1)
        if sign == "==":
            holds = yes.at_most(distance, 0) and yes.at_most(back, 0)
            return (yes if holds else None), (no if self._differs(no, distance) else None)
        limit = -1 if sign == "<" else 0
        return (
            yes if yes.at_most(distance, limit) else None,
            no if no.at_most(back, -limit - 1) else None,
        )

    @staticmethod
    def _differs(state: _State, distance: Sum) -> bool:
        """Learn that a sum is not zero; no if it must be."""
        constant, terms = distance
        if not terms:
            return constant != 0
        if len(terms) == 1:
            variable, factor = terms[0]
            least, most = state.ranges[variable]
            if constant % factor == 0:
                root = -constant // factor
                least += root == least
                most -= root == most
                if least > most:
                    return False
                state.ranges[variable] = least, most
        return True

    def _truth(self, operation: Operation) -> Value:
        yes, no = self.branch(operation)
        self.state = self.join([yes, no])
        if yes is None or no is None:
            return _ZERO if yes is None else _ONE
        return self.fresh(0, 1)

    # ---- operations ----

    def _constant(self, op: Operation) -> Value:
        return op[1], ()

    def _slot(self, op: Operation) -> Value:
        assert self.state is not None
        return self.state.slots.get(op[1])

    def _unknown(self, op: Operation) -> Value:
        return self.any_of(op[1]) if op[1] else None

    def _argument(self, op: Operation) -> Value:
        value = self.launch.numbers.get(op[1])
        if value is None:
            return self.any_of(op[2])
        least, most = _limits(op[2])
        return (value, ()) if least <= value <= most else self.any_of(op[2])

    def _cast(self, op: Operation) -> Value:
        kind = op[1]
        value = self.number(op[2])
        if self.state is None:
            return _ZERO
        low, high = self.interval(value)
        if kind == -1:
            if low > 0 or high < 0:
                return _ONE
            return self.fresh(0, min(1, max(abs(low), abs(high))))
        least, most = _limits(kind)
        if least <= low and high <= most:
            return value
        if not value[1]:
            return (value[0] - least) % (most - least + 1) + least, ()
        return self.any_of(kind)

    def _binary(self, op: Operation) -> Value:
        _, sign, kind, left, right = op
        a, b = self.number(left), self.number(right)
        if self.state is None:
            return _ZERO
        if sign in "+-":
            return self.fitting(kind, _add(a, b, 1 if sign == "+" else -1))
        if sign == "*":
            return self._product(kind, a, b)
        return _ARITHMETIC[sign](self, kind, a, b)

    def _product(self, kind: int, a: Sum, b: Sum) -> Sum:
        if not a[1] or not b[1]:
            return self.fitting(kind, _scale(a, b[0]) if not b[1] else _scale(b, a[0]))
        (p, q), (r, s) = self.interval(a), self.interval(b)
        corners = p * r, p * s, q * r, q * s
        return self.between(kind, min(corners), max(corners))

    def _split(self, a: Sum, by: int) -> tuple[Sum, Sum] | None:
        """a as `by` times the first plus the second, which is from 0 to by - 1; a is not below
        zero."""
        constant, terms = a
        outer = tuple((v, f // by) for v, f in terms if f % by == 0)
        inner = tuple((v, f) for v, f in terms if f % by)
        rest = constant % by, inner
        low, high = self.interval(rest)
        if low < 0 or high >= by:
            return None
        return (constant // by, outer), rest

    def _divide(self, kind: int, a: Sum, b: Sum) -> Sum:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        if least <= 0 <= most:
            if most <= 0:
                return self.any_of(kind)
            if least < 0:
                return self.any_of(kind)
            least = 1  # dividing by zero has no meaning
        if least == most and least > 0 and low >= 0:
            parts = self._split(a, least)
            if parts is not None:
                return parts[0]
        corners = [_quotient(x, y) for x in (low, high) for y in (least, most)]
        return self.between(kind, min(corners), max(corners))

    def _remainder(self, kind: int, a: Sum, b: Sum) -> Sum:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        if most <= 0 or least < 0:
            return self.any_of(kind)
        if low >= 0 and high < least:
            return a
        if least == most and low >= 0:
            parts = self._split(a, least)
            if parts is not None:
                return parts[1]
        return self.between(kind, max(low, 1 - most) if low < 0 else 0, max(0, min(high, most - 1)))

    def _left(self, kind: int, a: Sum, b: Sum) -> Sum:
        if b[1] or not 0 <= b[0] < abs(kind):
            return self.any_of(kind)
        return self.fitting(kind, _scale(a, 1 << b[0]))

    def _right(self, kind: int, a: Sum, b: Sum) -> Sum:
        low, high = self.interval(a)
        if b[1] or not 0 <= b[0] < abs(kind):
            return self.between(kind, 0, high) if low >= 0 else self.any_of(kind)
        if low >= 0:
            parts = self._split(a, 1 << b[0])
            if parts is not None:
                return parts[0]
        return self.between(kind, low >> b[0], high >> b[0])

    def _both_bits(self, kind: int, a: Sum, b: Sum) -> Sum:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        if low >= 0 and not b[1] and b[0] >= 0 and b[0] & (b[0] + 1) == 0:  # a mask: 2**k - 1
            return self._remainder(kind, a, (b[0] + 1, ()))
        if low >= 0 or least >= 0:
            return self.between(
                kind, 0, min(high if low >= 0 else most, most if least >= 0 else high)
            )
        return self.any_of(kind)

    def _any_bits(self, kind: int, a: Sum, b: Sum) -> Sum:
        (low, high), (least, most) = self.interval(a), self.interval(b)
        if low >= 0 and least >= 0:
            return self.between(kind, 0, (1 << max(high, most).bit_length()) - 1)
        return self.any_of(kind)

    def _negative(self, op: Operation) -> Value:
        value = _scale(self.number(op[2]), -1)
        return self.fitting(op[1], value) if self.state is not None else _ZERO

    def _complement(self, op: Operation) -> Value:
        value = _scale(self.number(op[2]), -1)
        if self.state is None:
            return _ZERO
        return self.fitting(op[1], (value[0] - 1 + ((1 << -op[1]) if op[1] < 0 else 0), value[1]))

    def _extreme(self, op: Operation) -> Value:
        _, name, kind, left, right = op
        a, b = self.number(left), self.number(right)
        if self.state is None:
            return _ZERO
        low, high = self.interval(_add(a, b, -1))
        if low >= 0:
            return a if name == "max" else b
        if high <= 0:
            return b if name == "max" else a
        (p, q), (r, s) = self.interval(a), self.interval(b)
        pick = max if name == "max" else min
        return self.between(kind, pick(p, r), pick(q, s))

    def _product24(self, op: Operation) -> Value:
        _, kind, left, right = op
        a, b = self.number(left), self.number(right)
        if self.state is None:
            return _ZERO
        least, most = _limits(24 if kind > 0 else -24)
        for value in (a, b):
            low, high = self.interval(value)
            if low < least or high > most:
                return self.any_of(kind)
        return self._product(kind, a, b)

    def _choice(self, op: Operation) -> Value:
        yes, no = self.branch(op[1])
        self.state = yes
        first = self.value(op[2])
        yes = self.state
        self.state = no
        second = self.value(op[3])
        no = self.state
        if yes is None or no is None:
            self.state = no if yes is None else yes
            return second if yes is None else first
        return self._settle([(yes, first), (no, second)])

    def _settle(self, ways: Sequence[tuple[_State, Value]]) -> Value:
        """Join states, each of which comes with a value."""
        key = -1
        for state, value in ways:
            state.slots[key] = value
        self.state = self.join([state for state, _ in ways])
        return self.state.slots.pop(key, None) if self.state is not None else _ZERO

    def _sequence(self, op: Operation) -> Value:
        return self.block(op[1:])

    # ---- pointers ----

    def _parameter(self, op: Operation) -> Value:
        return "p", op[1], _ZERO

    def _moved(self, op: Operation) -> Value:
        pointer, index = self.value(op[1]), self.number(op[2])
        if self.state is None or pointer is None or len(pointer) != 3:
            return None
        if not op[3]:
            self.widen(pointer, "no size")
            return None
        return "p", pointer[1], _add(pointer[2], _scale(index, op[3]))

    def _inside(self, op: Operation) -> Value:
        pointer = self.value(op[1])
        if self.state is None or pointer is None or len(pointer) != 3:
            return None
        if op[2] <= 0:
            self.widen(pointer, "no size")
            return None
        return "p", pointer[1], _add(pointer[2], self.fresh(0, op[2] - 1))

    def _touch(self, op: Operation) -> Value:
        self.touch(op[0], self.value(op[1]), op[2])
        return None

    def _touch_several(self, op: Operation) -> Value:
        pointer, count = self.value(op[2]), self.number(op[3])
        if self.state is None:
            return None
        _, most = self.interval(count)
        if most > 0:
            self.touch(op[1], pointer, most * op[4])
        return None

    def _escape(self, op: Operation) -> Value:
        self.widen(self.value(op[1]), op[2])
        return None

    # ---- statements ----

    def _assign(self, op: Operation) -> Value:
        value = self.value(op[2])
        if self.state is None:
            return _ZERO
        if value is not None and len(value) == 3 and self.depths.get(op[1], 0) < self.depth:
            self.widen(value, "a pointer that a loop changes")
            value = None
        self.state.slots[op[1]] = value
        return value

    def _new(self, op: Operation) -> Value:
        value = self.value(op[2])
        if self.state is not None:
            self.depths[op[1]] = self.depth
            self.state.slots[op[1]] = value
        return None

    def _post(self, op: Operation) -> Value:
        assert self.state is not None
        old = self.state.slots.get(op[1])
        self._assign(op)
        return old

    def _if(self, op: Operation) -> Value:
        yes, no = self.branch(op[1])
        self.state = yes
        if yes is not None:
            self.value(op[2])
            yes = self.state
        self.state = no
        if no is not None:
            self.value(op[3])
            no = self.state
        self.state = self.join([yes, no])
        return None

    def _loop(self, op: Operation) -> Value:
        _, assigned, condition, body, step, induction = op
        assert self.state is not None
        begin = self.state.slots.get(induction[0]) if induction else None
        self.depth += 1
        self.forget(assigned, "a pointer that a loop changes")
        after = self.state.copy()
        top = None
        if begin is not None and len(begin) == 2:
            top = self._counting(begin, after, condition, induction)
        if top is None:
            self.state = after.copy()
            top, _ = self.branch(condition)
            induction = None
        if top is not None:
            self.state = top.copy()
            self.entries.append(top)
            self.block(body)
            self.entries.pop()
            self.state = top
            counter = induction[0] if induction else None
            self.forget([pair for pair in assigned if pair[0] != counter], "")
            self.value(step)
        self.depth -= 1
        self.state = after
        return None

    def _counting(
        self, begin: Sum, after: _State, condition: Operation, induction: Operation
    ) -> _State | None:
        """The state at the top of a turn, with the counter as a sum that starts at `begin`; None if
        that is not proven."""
        slot, kind, by, sign = induction
        self.state = after.copy()
        distance = self.number(by)
        if distance[1] or distance[0] == 0 or self.state is None:
            return None
        by = sign * distance[0]
        least, most = _limits(kind)
        low, high = self.interval(begin)
        if self._dense(begin, abs(by)):
            counter = self.fresh(low, most) if by > 0 else self.fresh(least, high)
        else:
            turns = (most - low) // by if by > 0 else (high - least) // -by
            counter = _add(begin, _scale(self.fresh(0, max(turns, 0)), by))
        self.state.slots[slot] = counter
        top, _ = self.branch(condition)
        if top is None:
            return None
        self.state = top
        low, high = self.interval(counter)
        if top.slots[slot] != counter or high + by > most or low + by < least:
            return None
        return top

    def _dense(self, value: Sum, width: int) -> bool:
        """Whether a sum of several values leaves no gap and spans a step of a loop."""
        steps = []
        for variable, factor in value[1]:
            least, most = self.ranges[variable]
            steps.append((abs(factor), most - least + 1))
        if not steps:
            return False
        _, _, rows, covered = rectangle(0, 0, 1, steps)
        return rows == 1 and covered >= width

    def _again(self, op: Operation) -> Value:
        self.state = self.entries[-1].copy()
        self.forget(op[1], "a pointer that a loop changes")
        return None

    def _switch(self, op: Operation) -> Value:
        _, condition, assigned, body = op
        self.value(condition)
        if self.state is None:
            return None
        self.depth += 1
        self.forget(assigned, "a pointer that a switch changes")
        after = self.state.copy()
        self.entries.append(after)
        self.state = None
        self.block(body)
        self.entries.pop()
        self.depth -= 1
        self.state = after
        return None

    def _case(self, op: Operation) -> Value:
        entry = self.entries[-1]
        if self.state is not None:
            for slot, value in self.state.slots.items():
                if entry.slots.get(slot) != value:
                    self.widen(value, "a pointer that a switch changes")
        self.state = entry.copy()
        return None

    def _maybe(self, op: Operation) -> Value:
        assert self.state is not None
        self.depth += 1
        self.forget(op[1], "a pointer that is changed in an expression")
        after = self.state.copy()
        self.entries.append(after)
        for part in op[2]:
            self.state = after.copy()
            self.value(part)
        self.entries.pop()
        self.depth -= 1
        self.state = after
        return None

    def _return(self, op: Operation) -> Value:
        value = self.value(op[1])
        if self.state is not None:
            self.returns[-1].append((self.state, value))
            self.state = None
        return None

    def _leave(self, op: Operation) -> Value:
        self.state = None
        return None

    def _call(self, op: Operation) -> Value:
        parameters, body, _, own = self.functions[op[1]]
        values = [self.value(argument) for argument in op[2]]
        if self.state is None:
            return _ZERO
        for slot, value in zip(parameters, values, strict=True):
            if slot >= 0:
                self.depths[slot] = self.depth
                self.state.slots[slot] = value
        self.returns.append([])
        self.block(body)
        ways = self.returns.pop()
        if self.state is not None:
            ways.append((self.state, self.any_of(op[3]) if op[3] else None))
        if not ways:
            self.state = None
            return _ZERO
        for state, _ in ways:
            for slot in own:
                state.slots.pop(slot, None)
        return self._settle(ways)

    def _query(self, op: Operation) -> Value:
        _, name, axis_operation, kind = op
        axis = self.number(axis_operation)
        if self.state is None:
            return _ZERO
        if axis[1] or not 0 <= axis[0] < 3:
            return self.any_of(kind)
        return self._work_item(name, axis[0])

    def _work_item(self, name: str, axis: int) -> Sum:
        sizes, local, offset, *_ = self.launch
        inside = axis < len(sizes)
        size = sizes[axis] if inside else 1
        group = local[axis] if inside and local is not None else None if inside else 1
        if name == "get_global_size":
            return size, ()
        if name == "get_global_offset":
            return (offset[axis] if inside and offset is not None else 0), ()
        if name == "get_work_dim":
            return len(sizes), ()
        if name in ("get_local_size", "get_enqueued_local_size"):
            if group is None:
                return self.fresh(1, size)
            even = size % group == 0 or name == "get_enqueued_local_size"
            return (group, ()) if even else self.fresh(1, group)
        if name == "get_num_groups":
            return self.fresh(1, size) if group is None else (-(-size // group), ())
        return self.work_items.get((name, axis), _ZERO)  # the others are numbered from 0

    def _number_work_items(self) -> None:
        sizes, local, offset, _, groups = self.launch
        for axis, size in enumerate(sizes):
            begin = offset[axis] if offset is not None else 0
            group = local[axis] if local is not None else None
            first, last = 0, size - 1  # work-items and groups that run
            low, high = 0, (size if group is None else -(-size // group)) - 1
            if groups is not None and group is not None:
                low, high = groups[axis][0], groups[axis][1] - 1
                first, last = low * group, min((high + 1) * group, size) - 1
            inside = last - first if group is None else min(group - 1, last - first)
            self.work_items["get_global_id", axis] = self.fresh(begin + first, begin + last)
            self.work_items["get_local_id", axis] = self.fresh(0, inside)
            self.work_items["get_group_id", axis] = self.fresh(low, high)


def _cut(found: Rectangle, low: int, high: int) -> Rectangle:
    """Without what is outside of [low, high)."""
    start, pitch, rows, width = found
    if rows == 1:
        start, end = max(start, low), min(start + width, high)
        return start, end - start, 1, end - start
    skipped = max(0, (low - start - width) // pitch + 1)
    rows = min(rows, (high - 1 - start) // pitch + 1) - skipped
    start += skipped * pitch
    return (start, pitch, rows, width) if rows > 1 else (start, width, 1, width)


def _merged(found: list[Rectangle]) -> tuple[Rectangle, ...]:
    """The same bytes in few rectangles."""
    found = [one for one in found if one[2] > 0 and one[3] > 0]
    if len(found) == 1:
        return tuple(found)
    merged: list[Rectangle] = []
    for start, pitch, rows, width in sorted(set(found), key=lambda r: (r[2] > 1, r[1:3], r[0])):
        if merged and rows > 1:
            before = merged[-1]
            if before[1:3] == (pitch, rows) and start <= before[0] + before[3]:
                width = max(start + width, before[0] + before[3]) - before[0]
                merged[-1] = (before[0], pitch, rows, width)
                continue
        merged.append((start, pitch, rows, width))
    flat: list[Rectangle] = []
    rest: list[Rectangle] = []
    for start, pitch, rows, width in merged:
        if rows > 1 and width < pitch:
            rest.append((start, pitch, rows, width))
        else:
            whole = (rows - 1) * pitch + width
            flat.append((start, whole, 1, whole))
    out: list[Rectangle] = []
    for start, _, _, width in sorted(flat):
        if out and start <= out[-1][0] + out[-1][3]:
            first = out[-1][0]
            width = max(start + width, first + out[-1][3]) - first
            out[-1] = (first, width, 1, width)
        else:
            out.append((start, width, 1, width))
    for start, pitch, rows, width in rest:
        end = start + (rows - 1) * pitch + width
        if not any(one[0] <= start and end <= one[0] + one[3] for one in out if one[2] == 1):
            out.append((start, pitch, rows, width))
    if len(out) > MOST_RECTANGLES:
        out = _equidistant(out)
    if len(out) > MOST_RECTANGLES:
        first = min(one[0] for one in out)
        end = max(one[0] + (one[2] - 1) * one[1] + one[3] for one in out)
        return ((first, end - first, 1, end - first),)
    return tuple(out)


def _equidistant(found: list[Rectangle]) -> list[Rectangle]:
    """The same bytes with single rows of one width, at equal distances, as one rectangle."""
    by_width: dict[int, list[int]] = {}
    for start, _, rows, width in found:
        if rows == 1:
            by_width.setdefault(width, []).append(start)
    out = [one for one in found if one[2] > 1]
    for width, starts in by_width.items():
        starts.sort()
        at = 0
        while at < len(starts):
            pitch, rows = width, 1
            if at + 1 < len(starts):
                pitch = starts[at + 1] - starts[at]
                while starts[at + rows : at + rows + 1] == [starts[at] + rows * pitch]:
                    rows += 1
            if rows < 3:  # two may each begin a longer row
                pitch, rows = width, 1
            out.append((starts[at], pitch, rows, width))
            at += rows
    return out


_ARITHMETIC: dict[str, Callable[[_Run, int, Sum, Sum], Sum]] = {
    "/": _Run._divide, "%": _Run._remainder, "<<": _Run._left, ">>": _Run._right,
    "&": _Run._both_bits, "|": _Run._any_bits, "^": _Run._any_bits,
}  # fmt: skip

_RULES: dict[str, Callable[[_Run, Operation], Value]] = {
    "k": _Run._constant, "s": _Run._slot, "?": _Run._unknown, "a": _Run._argument,
    "c": _Run._cast, "b": _Run._binary, "neg": _Run._negative, "~": _Run._complement,
    "cmp": _Run._truth, "!": _Run._truth, "and": _Run._truth, "or": _Run._truth,
    "?:": _Run._choice, "mm": _Run._extreme, "24": _Run._product24, "q": _Run._query,
    ",": _Run._sequence, "p": _Run._parameter, "+": _Run._moved, "in": _Run._inside,
    "r": _Run._touch, "w": _Run._touch, "rng": _Run._touch_several, "esc": _Run._escape,
    "=": _Run._assign, "new": _Run._new, "post": _Run._post, "if": _Run._if, "loop": _Run._loop,
    "again": _Run._again, "switch": _Run._switch, "case": _Run._case, "maybe": _Run._maybe,
    "return": _Run._return, "leave": _Run._leave, "call": _Run._call,
}  # fmt: skip
