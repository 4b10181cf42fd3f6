"""Random expressions, each as text of OpenCL C and as a function of a work-item.

In: a seed. Out: `E`, an integer expression; `L`, a place in memory; `Q`, a pointer. Each work-item
has elements of its own, in rows of `ROW` or in columns, and most indices lead there: else most
launches would have no outcome.
"""

# Long because: each form has its rule in both languages side by side.

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from random_c.meaning import (
    BYTES,
    FORMS,
    KINDS,
    Item,
    Place,
    Run,
    Undefined,
    Vector,
    arithmetic,
    common,
    fit,
    in_any_order,
    moved,
    promoted,
    shifted,
    wrap,
)  # fmt: skip

INT, UINT, ULONG = 32, -32, -64
ROW = 8
"""Elements of a work-item in an array of rows."""

TABLE = (3, 1, 4, 1, 5, 2, 6, 0)
"""At program scope, in constant memory."""


class E(NamedTuple):
    """An integer expression. `kind` is its type after promotion; `acts`: it has effects."""

    c: str
    run: Run
    kind: int
    acts: bool = False


class V(NamedTuple):
    """An integer variable. `cell`: its address is taken, so it is a list of one."""

    name: str
    kind: int
    cell: bool = False


class Q(NamedTuple):
    """A pointer. `form`: where a work-item's own elements are: a 'row' or a 'column' of them, or at
    the pointer ('own'); or they are a list of `count` elements ('list')."""

    c: str
    run: Run
    element: str
    form: str
    const: bool = False
    acts: bool = False
    name: str = ""
    """Of a variable that may be moved."""
    count: int = 0
    word: str = "global "


class L(NamedTuple):
    """A place in memory: parts that nothing puts in order, and the place that they make."""

    c: str
    runs: tuple[Run, ...]
    acts: bool
    where: Callable[[Item, list[Any]], Place]
    element: str
    const: bool
    align: int = 0
    own: bool = False
    """Whether it has no address in global memory of its own: a component, or private."""
    vector: Vector | None = None
    """Of a component: the vector that is touched with it."""


class Member(NamedTuple):
    """A number in a structure: how it is written behind it, where it is, and what it is."""

    c: str
    at: int
    element: str


class Record(NamedTuple):
    """A structure of a program."""

    name: str
    c: str
    size: int
    align: int
    members: tuple[Member, ...]


class Helper(NamedTuple):
    """A function of a program: parameters are 'int', or a pointer's type."""

    name: str
    kind: str
    element: str
    run: Callable[[Item, list[Any]], Any]
    const: bool = False


def assignment(runs: Sequence[Run], acts: bool, finish: Callable[[Item, list[Any]], Any]) -> Run:
    """Return what evaluates parts in any order, and then changes something that they do not."""
    evaluate = in_any_order(runs, acts)

    def run(item: Item) -> Any:
        reads, writes = item.reads, item.writes
        item.reads, item.writes = set(), set()
        values = evaluate(item)
        before, item.writes = item.writes, set()
        result = finish(item, values)
        if item.writes & before:
            raise Undefined("changed twice in no order")
        item.reads |= reads
        item.writes |= before | writes
        return result

    return run


def number(value: int) -> E:
    return E(str(value) if value >= 0 else f"({value})", lambda item: value, INT)


def asked(name: str, axis: int) -> E:
    """Return what the work-item is told of itself, such as its number."""
    return E(f"get_{name}({axis})", lambda item: item.ids[name][axis], ULONG)


def cast(name: str, a: E) -> E:
    kind, run = KINDS[name], a.run
    return E(f"(({name})({a.c}))", lambda item: wrap(kind, run(item)), promoted(kind), a.acts)


def as_kind(a: E, kind: int) -> Run:
    run = a.run
    return run if a.kind == kind else lambda item: wrap(kind, run(item))


def binary(sign: str, a: E, b: E) -> E:
    kind = common(a.kind, b.kind)
    both = in_any_order([as_kind(a, kind), as_kind(b, kind)], a.acts or b.acts)
    return E(f"({a.c} {sign} {b.c})", lambda item: arithmetic(sign, kind, *both(item)), kind,
             a.acts or b.acts)  # fmt: skip


def shift(sign: str, a: E, b: E) -> E:
    both, kind = in_any_order([a.run, b.run], a.acts or b.acts), a.kind
    return E(f"({a.c} {sign} {b.c})", lambda item: shifted(sign, kind, *both(item)), kind,
             a.acts or b.acts)  # fmt: skip


_TESTS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def compare(sign: str, a: E, b: E) -> E:
    kind, test = common(a.kind, b.kind), _TESTS[sign]
    both = in_any_order([as_kind(a, kind), as_kind(b, kind)], a.acts or b.acts)
    return E(f"({a.c} {sign} {b.c})", lambda item: int(test(*both(item))), INT, a.acts or b.acts)


def both(sign: str, a: E, b: E) -> E:
    one, other = a.run, b.run
    if sign == "&&":
        return E(f"({a.c} && {b.c})", lambda item: int(bool(one(item)) and bool(other(item))), INT,
                 a.acts or b.acts)  # fmt: skip
    return E(f"({a.c} || {b.c})", lambda item: int(bool(one(item)) or bool(other(item))), INT,
             a.acts or b.acts)  # fmt: skip


def choice(test: E, a: E, b: E) -> E:
    kind, asks = common(a.kind, b.kind), test.run
    yes, no = as_kind(a, kind), as_kind(b, kind)
    return E(f"({test.c} ? {a.c} : {b.c})",
             lambda item: yes(item) if asks(item) else no(item), kind,
             test.acts or a.acts or b.acts)  # fmt: skip


_INTS = frozenset({"n", "m", "s", "g"})


def builtin(name: str, parts: Sequence[E], of: Callable[..., int], kind: int = INT) -> E:
    """A built-in function of ints."""
    acts = any(part.acts for part in parts)
    values = in_any_order([as_kind(part, INT) for part in parts], acts)
    words = ", ".join(part.c if part.c in _INTS or part.c.isdigit() else f"(int)({part.c})"
                      for part in parts)  # fmt: skip
    return E(f"{name}({words})", lambda item: of(*values(item)), kind, acts)


def _short(value: int) -> int:
    if not -(1 << 23) <= value < 1 << 23:
        raise Undefined("more than 24 bits")
    return value


def _rotated(value: int, by: int) -> int:
    value, by = value & 0xFFFFFFFF, by % 32
    return wrap(INT, (value << by) | (value >> (32 - by)))


def _clamped(value: int, low: int, high: int) -> int:
    if low > high:
        raise Undefined("bounds that cross")
    return min(max(value, low), high)


BUILTINS: dict[str, tuple[int, Callable[..., int], int]] = {
    "min": (2, min, INT), "max": (2, max, INT), "clamp": (3, _clamped, INT),
    "abs": (1, abs, UINT), "popcount": (1, lambda a: bin(a & 0xFFFFFFFF).count("1"), INT),
    "clz": (1, lambda a: 32 - (a & 0xFFFFFFFF).bit_length(), INT), "rotate": (2, _rotated, INT),
    "select": (3, lambda a, b, c: b if c else a, INT),
    "mul24": (2, lambda a, b: wrap(INT, _short(a) * _short(b)), INT),
    "mad24": (3, lambda a, b, c: fit(INT, wrap(INT, _short(a) * _short(b)) + c), INT),
    "mul_hi": (2, lambda a, b: (a * b) >> 32, INT),
    "abs_diff": (2, lambda a, b: abs(a - b), UINT),
    "hadd": (2, lambda a, b: (a + b) >> 1, INT),
    "add_sat": (2, lambda a, b: min(max(a + b, -(1 << 31)), (1 << 31) - 1), INT),
}  # fmt: skip


class Expressions:
    """What is visible at a place of a kernel, and expressions of it."""

    spellings: Sequence[str] = (*("{q}[{i}]",) * 4, "(*({q} + {i}))", "{i}[{q}]")
    """Of an element `i` of a pointer `q`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.count = 0
        self.variables: list[V] = []
        self.changing: list[V] = []
        self.pointers: list[Q] = []
        self.records: list[Record] = []
        self.helpers: list[Helper] = []
        self.alone = False
        """Whether launches have one work-item, so that any index is its own."""
        self.inside = False
        """Of a helper."""

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # ---- numbers ----

    def variable(self, v: V) -> E:
        name, cell = v.name, v.cell

        def run(item: Item) -> int:
            found = item.v[name]
            item.reads.add((id(found), 0) if cell else name)
            return found[0] if cell else found  # type: ignore[no-any-return]

        return E(name, run, promoted(v.kind))

    def leaf(self) -> E:
        chance = self.chance
        if chance.random() < 0.3 or not self.variables:
            return number(chance.choice([0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -3, 100]))
        if chance.random() < 0.12:
            return self.query()
        return self.variable(chance.choice(self.variables))

    def query(self) -> E:
        name, axis = self.chance.choice([
            ("global_id", 0), ("global_id", 1), ("global_id", 2), ("local_id", 0),
            ("local_id", 1), ("group_id", 0), ("group_id", 1), ("global_size", 0),
            ("global_size", 1), ("local_size", 0), ("num_groups", 0), ("num_groups", 1),
            ("global_offset", 0), ("global_offset", 1),
        ])  # fmt: skip
        whole = asked(name, axis)
        return whole if self.chance.random() < 0.4 else cast("int", whole)

    def number(self, depth: int, acts: bool = True) -> E:
        """An integer expression; with effects, if `acts`."""
        chance = self.chance
        if depth <= 0 or chance.random() < 0.22:
            return self.leaf()
        if acts and chance.random() < 0.2:
            return self.effect(depth)
        a = self.number(depth - 1, acts)
        roll = chance.random()
        if roll < 0.08:
            sign, few = chance.choice("/%"), number(chance.choice([1, 2, 3, 4, 7, 8]))
            return binary(sign, a, few)
        if roll < 0.12:
            return cast(chance.choice(list(KINDS)), a)
        if roll < 0.16:
            return self.unary(a)
        b = self.number(depth - 1, acts)
        if roll < 0.44:
            return binary(chance.choice("+++--**&|^"), a, b)
        if roll < 0.49:
            by = binary("&", b, number(chance.choice([1, 3, 7])))
            return shift(chance.choice(["<<", ">>", ">>"]), a, by)
        if roll < 0.53:
            return compare(chance.choice(list(_TESTS)), a, b)
        if roll < 0.59:
            return both(chance.choice(["&&", "||"]), a, b)
        if roll < 0.67:
            return choice(self.number(depth - 1, acts), a, b)
        if roll < 0.70:
            one, other = a.run, b.run
            return E(f"({a.c}, {b.c})", lambda item: (one(item), other(item))[1], b.kind,
                     a.acts or b.acts)  # fmt: skip
        if roll < 0.82:
            return self.call_builtin(a, b, depth, acts)
        if roll < 0.86 and self.chance.random() < 0.5:
            return self.macro(a, b)
        if roll < 0.89 and self.helpers:
            return self.call(depth, acts)
        if roll < 0.91 and not self.inside:
            return self.statement_expression(a, b)
        return self.loaded(self.place(depth - 1, acts))

    def unary(self, a: E) -> E:
        run, kind = a.run, a.kind
        sign = self.chance.choice("-~!")
        if sign == "!":
            return E(f"(!{a.c})", lambda item: int(not run(item)), INT, a.acts)
        if sign == "~":
            return E(f"(~{a.c})", lambda item: wrap(kind, ~run(item)), kind, a.acts)
        return E(f"(-({a.c}))", lambda item: fit(kind, -run(item)), kind, a.acts)

    def call_builtin(self, a: E, b: E, depth: int, acts: bool) -> E:
        name = self.chance.choice(["min", "max", "clamp", *BUILTINS])
        count, of, kind = BUILTINS[name]
        c = self.number(depth - 1, acts) if count == 3 else a
        if name == "clamp" and self.chance.random() < 0.6:
            low = self.chance.choice([0, 0, 1, -2])
            b, c = number(low), number(low + self.chance.choice([1, 3, 7]))
        return builtin(name, [a, b, c][:count], of, kind)

    def macro(self, a: E, b: E) -> E:
        """A macro that evaluates its arguments more than once."""
        c, kind = f"MOST({a.c}, {b.c})", common(a.kind, b.kind)
        whole = choice(compare(">", a, b), a, b)
        return E(c, whole.run, kind, whole.acts)

    def call(self, depth: int, acts: bool) -> E:
        """A call of a helper that returns an int, of whichever overload takes these arguments."""
        chance = self.chance
        some = [one for one in self.helpers if one.kind in ("int", "long", "pointer")]
        if not some:
            return self.leaf()
        helper = chance.choice(some)
        if helper.kind == "pointer":
            q = self.own(self.pointer(depth - 1, helper.element, acts))
            if q is None or (q.const and not helper.const):
                return self.leaf()
            first: tuple[str, Run, bool] = q.c, q.run, q.acts
        else:
            e = cast(helper.kind, self.number(depth - 1, acts))
            first = e.c, e.run, e.acts
        second = self.number(depth - 1, acts)
        any_acts = first[2] or second.acts
        values, of = in_any_order([first[1], as_kind(second, INT)], any_acts), helper.run
        return E(f"{helper.name}({first[0]}, {second.c})", lambda item: of(item, values(item)), INT,
                 True)  # fmt: skip

    def statement_expression(self, a: E, b: E) -> E:
        name = self.fresh("w")
        one, other = as_kind(a, INT), b.run

        def run(item: Item) -> int:
            item.v[name] = one(item)
            return other(item)  # type: ignore[no-any-return]

        return E(f"({{ int {name} = {a.c}; {b.c}; }})", run, b.kind, True)

    # ---- effects ----

    def effect(self, depth: int) -> E:
        """An expression that changes a variable or memory, with its value."""
        chance = self.chance
        roll = chance.random()
        if roll < 0.55 and self.changing:
            return self.changed(chance.choice(self.changing), depth)
        place = self.place(depth - 1, True)
        if place.const:
            return self.loaded(place)
        if roll < 0.68 and place.element in ("int", "uint") and not place.own:
            return self.atomic(place, depth)
        return self.stored(place, depth)

    def changed(self, v: V, depth: int) -> E:
        chance, name, kind, cell = self.chance, v.name, v.kind, v.cell
        wide = promoted(kind)

        def put(item: Item, value: int) -> None:
            if cell:
                item.writes.add((id(item.v[name]), 0))
                item.v[name][0] = value
            else:
                item.writes.add(name)
                item.v[name] = value

        def get(item: Item) -> int:
            found = item.v[name]
            item.reads.add((id(found), 0) if cell else name)
            return found[0] if cell else found  # type: ignore[no-any-return]

        if chance.random() < 0.5:
            sign, after = chance.choice("+-"), chance.random() < 0.6

            def step(item: Item, values: list[Any]) -> int:
                old = get(item)
                new = wrap(kind, arithmetic(sign, wide, old, 1))
                put(item, new)
                return old if after else new

            c = f"{name}{sign * 2}" if after else f"{sign * 2}{name}"
            return E(f"({c})", assignment([], False, step), wide, True)
        value = self.number(depth - 1)
        sign = chance.choice(["", "", "+", "-", "*", "&", "|", "^", "%", ">>"])
        if sign in ("%", ">>"):
            value = binary("&", value, number(3))
            value = value if sign == ">>" else binary("+", value, number(1))
        of = self.compound(sign, wide, value)

        def assign(item: Item, values: list[Any]) -> int:
            new = wrap(kind, of(get(item) if sign else 0, values[0]))
            put(item, new)
            return new

        return E(f"({name} {sign}= {value.c})", assignment([value.run], value.acts, assign), wide,
                 True)  # fmt: skip

    @staticmethod
    def compound(sign: str, wide: int, value: E) -> Callable[[int, int], int]:
        """Return what a compound assignment computes of the old value and the right side."""
        if not sign:
            return lambda old, new: new
        if sign in (">>", "<<"):
            return lambda old, new: shifted(sign, wide, old, new)
        kind = common(wide, value.kind)
        return lambda old, new: arithmetic(sign, kind, wrap(kind, old), wrap(kind, new))

    def loaded(self, place: L) -> E:
        parts, where, element = in_any_order(place.runs, place.acts), place.where, place.element
        align, vector = place.align, place.vector

        def run(item: Item) -> int:
            return item.load(where(item, parts(item)), element, align, vector)

        if element in FORMS:
            return E(f"((int){place.c})", lambda item: wrap(INT, run(item)), INT, place.acts)
        return E(place.c, run, promoted(KINDS[element]), place.acts)

    def stored(self, place: L, depth: int) -> E:
        """An assignment to memory, simple or compound, or a step."""
        chance, element, where, align = self.chance, place.element, place.where, place.align
        vector = place.vector
        is_float = element in FORMS
        kind = KINDS.get(element, INT)
        wide = promoted(kind)
        count = len(place.runs)
        if chance.random() < 0.3 and not is_float:
            sign, after = chance.choice("+-"), chance.random() < 0.6

            def step(item: Item, values: list[Any]) -> int:
                at = where(item, values)
                old = item.load(at, element, align, vector)
                new = wrap(kind, arithmetic(sign, wide, old, 1))
                item.store(at, element, new, align, vector)
                return old if after else new

            c = f"{place.c}{sign * 2}" if after else f"{sign * 2}{place.c}"
            return E(f"({c})", assignment(place.runs, place.acts, step), wide, True)
        value = self.number(depth - 1)
        signs = (
            ["", "", "+", "-"] if is_float else ["", "", "+", "-", "*", "&", "|", "^", "<<", ">>"]
        )
        sign = chance.choice(signs)
        if sign in ("<<", ">>"):
            value = binary("&", value, number(3))
        if is_float:
            value = binary("%", cast("int", value), number(100))
        of = self.compound(sign, wide, value)

        def assign(item: Item, values: list[Any]) -> int:
            at, old = where(item, values), 0
            if sign:
                item.is_whole(at, element)
                old = item.load(at, element, align, vector)
            new = wrap(kind, of(old, values[count]))
            item.store(at, element, new, align, vector)
            return new

        runs = [*place.runs, value.run]
        c = f"({place.c} {sign}= {value.c})"
        if is_float:
            c = f"((int)({place.c} {sign}= ({element})({value.c})))"
        return E(c, assignment(runs, place.acts or value.acts, assign), wide, True)

    def atomic(self, place: L, depth: int) -> E:
        """An atomic function, whose argument is the place's address."""
        chance, element, where = self.chance, place.element, place.where
        kind = KINDS[element]
        name = chance.choice(["inc", "dec", "add", "sub", "xchg", "min", "max", "and", "or", "xor",
                              "cmpxchg"])  # fmt: skip
        wanted = {"inc": 0, "dec": 0, "cmpxchg": 2}.get(name, 1)
        values = [self.number(depth - 1) for _ in range(wanted)]
        count = len(place.runs)
        does: dict[str, Callable[[int, list[int]], int]] = {
            "inc": lambda old, v: old + 1, "dec": lambda old, v: old - 1,
            "add": lambda old, v: old + v[0], "sub": lambda old, v: old - v[0],
            "xchg": lambda old, v: v[0], "min": lambda old, v: min(old, v[0]),
            "max": lambda old, v: max(old, v[0]), "and": lambda old, v: old & v[0],
            "or": lambda old, v: old | v[0], "xor": lambda old, v: old ^ v[0],
            "cmpxchg": lambda old, v: v[1] if old == v[0] else old,
        }  # fmt: skip
        of = does[name]

        def finish(item: Item, parts: list[Any]) -> int:
            at = where(item, parts)
            old = item.load(at, element)
            item.store(at, element, wrap(kind, of(old, parts[count:])))
            return old

        runs = [*place.runs, *(as_kind(value, kind) for value in values)]
        acts = place.acts or any(value.acts for value in values)
        words = "".join(f", ({element})({value.c})" for value in values)
        return E(f"atomic_{name}(&{place.c}{words})", assignment(runs, acts, finish), kind, True)

    # ---- places ----

    def small(self, depth: int, acts: bool, most: int = ROW) -> E:
        """An index from 0 to `most` - 1, a power of two."""
        chance = self.chance
        e = self.number(depth, acts)
        roll = chance.random()
        if roll < 0.3:
            return number(chance.randrange(most))
        if roll < 0.6:
            return binary("&", e, number(most - 1))
        if roll < 0.8:
            return builtin("clamp", [e, number(0), number(most - 1)], _clamped)
        return binary("%", cast("uint", e), number(most))

    def index(self, q: Q, depth: int, acts: bool) -> E:
        """An index from a pointer to an element of the work-item."""
        chance = self.chance
        if q.form == "list":
            return self.small(depth, acts, 1 << (q.count.bit_length() - 1))
        if (self.alone or q.const) and chance.random() < 0.5:
            return self.number(depth, acts)
        if chance.random() < 0.03:
            return self.number(depth, acts)
        cursors = [v for v in self.changing if v.name[0] == "k"]
        if cursors and q.form == "row" and chance.random() < 0.4:
            v = chance.choice(cursors)
            if acts and chance.random() < 0.7:
                return self.changed(v, 1)
            return self.variable(v)
        j = self.small(depth, acts)
        counters = [v for v in self.variables if v.name[0] == "t"]
        if counters and chance.random() < 0.5:
            j = self.variable(chance.choice(counters))
        elif self.changing and chance.random() < 0.12:
            v = chance.choice(self.changing)
            j = self.changed(v, 1) if acts and chance.random() < 0.5 else self.variable(v)
        if q.form == "own" or self.inside:
            return j
        g = self.variable(V("g", INT))
        if q.form == "column":
            total = self.variable(V("gs", INT))
            return binary("+", binary("*", j, total), g)
        return self.in_row(g, j)

    def in_row(self, g: E, j: E) -> E:
        """Element `j` of the work-item's row, written in one way or another."""
        chance = self.chance
        form = chance.randrange(12)
        row = binary("*", g, number(ROW))
        if form == 0:
            return binary("|", shift("<<", g, number(3)), j)
        if form == 1:
            return binary("-", binary("-", binary("*", binary("+", g, number(1)), number(ROW)),
                                      number(1)), j)  # fmt: skip
        if form == 2:
            whole = binary("*", binary("+", row, j), number(2))
            return binary("/", binary("+", whole, number(chance.randrange(2))), number(2))
        if form == 3:
            return binary("^", binary("+", row, j), number(chance.choice([1, 2, 7])))
        if form == 4:
            return binary("+", row, binary("%", binary("+", j, number(3)), number(ROW)))
        if form == 5:
            total = self.variable(V("gs", INT))
            back = binary("-", binary("-", total, number(1)), g)
            return binary("+", binary("*", binary("-", binary("-", total, number(1)), back),
                                      number(ROW)), j)  # fmt: skip
        if form == 6:
            return builtin("mad24", [g, number(ROW), j], BUILTINS["mad24"][1])
        if form == 7:
            return cast(chance.choice(["long", "uint", "short", "ulong"]), binary("+", row, j))
        return binary("+", row, j)

    def pointer(self, depth: int, element: str = "", acts: bool = True) -> Q | None:
        """A pointer of global memory, to these elements."""
        chance = self.chance
        some = [q for q in self.pointers if q.form != "list" and element in ("", q.element)]
        if not some:
            return None
        q = chance.choice(some)
        roll = chance.random()
        if roll < 0.12 and q.name and acts:
            return self.stepped(q)
        if (roll < 0.2 and q.form == "own") or (roll < 0.2 and q.form == "row"):
            i = (
                self.small(depth - 1, acts, 4)
                if q.form == "own"
                else self.index(q, depth - 1, acts)
            )
            run, form = self.at(q, i), "own"
            c = chance.choice([f"({q.c} + {i.c})", f"(&{q.c}[{i.c}])"])
            return q._replace(c=c, run=run, form=form, acts=q.acts or i.acts, name="")
        if roll < 0.26:
            same = [r for r in some if (r.element, r.form, r.const) == (q.element, q.form, q.const)]
            r, test = chance.choice(same), self.number(depth - 1, acts)
            asks, yes, no = test.run, q.run, r.run
            return q._replace(c=f"({test.c} ? {q.c} : {r.c})",
                              run=lambda item: yes(item) if asks(item) else no(item),
                              acts=test.acts or q.acts or r.acts, name="")  # fmt: skip
        return q

    def own(self, q: Q | None) -> Q | None:
        """A pointer to the work-item's own elements. None: they are in a column."""
        if q is None or q.form == "own" or self.inside:
            return q
        if q.form != "row":
            return None
        i = binary("*", self.variable(V("g", INT)), number(ROW))
        return q._replace(c=f"({q.c} + {i.c})", run=self.at(q, i), form="own", name="")

    @staticmethod
    def at(q: Q, i: E) -> Run:
        """Return the place of an element."""
        parts = in_any_order([q.run, i.run], q.acts or i.acts)
        size = 1 if q.form == "list" else BYTES[q.element]

        def run(item: Item) -> Place:
            place, index = parts(item)
            return moved(item, place, index * size)

        return run

    def stepped(self, q: Q) -> Q:
        """A pointer that is moved meanwhile."""
        chance, name, size = self.chance, q.name, BYTES[q.element]
        sign, after = chance.choice("++-"), chance.random() < 0.7
        by = size if sign == "+" else -size

        def step(item: Item, values: list[Any]) -> Place:
            old = item.v[name]
            new = moved(item, old, by)
            item.reads.add(name)
            item.writes.add(name)
            item.v[name] = new
            return old if after else new

        c = f"{name}{sign * 2}" if after else f"({sign * 2}{name})"
        if chance.random() < 0.3:
            step_by = chance.choice([1, 2])
            by, after, c = by * step_by, False, f"({name} {sign}= {step_by})"
        return q._replace(c=c, run=assignment([], False, step), acts=True, name="", form="own")

    def place(self, depth: int, acts: bool) -> L:
        """A place in memory that the work-item may use."""
        chance = self.chance
        lists = [q for q in self.pointers if q.form == "list"]
        if lists and chance.random() < 0.25:
            return self.element(chance.choice(lists), depth, acts)
        q = self.pointer(depth, "", acts)
        if q is None:
            return self.element(chance.choice(lists), depth, acts)
        roll = chance.random()
        if q.form in ("own", "row"):
            if roll < 0.1:
                found = self.reinterpreted(q, depth, acts)
            elif roll < 0.25:
                found = self.member(q, depth, acts)
            elif roll < 0.34:
                found = self.component(q, depth, acts)
            else:
                found = None
            if found is not None:
                return found
        if roll > 0.85 and q.form == "own":
            run = q.run
            return L(f"(*{q.c})", (run,), q.acts, lambda item, v: v[0], q.element, q.const)
        return self.element(q, depth, acts)

    def element(self, q: Q, depth: int, acts: bool) -> L:
        i = self.index(q, depth, acts)
        size = 1 if q.form == "list" else BYTES[q.element]

        def where(item: Item, values: list[Any]) -> Place:
            place, index = values[0], values[1]
            return place[0], place[1] + index * size

        c = self.chance.choice(self.spellings).format(q=q.c, i=i.c)
        return L(c, (q.run, i.run), q.acts or i.acts, where, q.element, q.const,
                 own=q.form == "list")  # fmt: skip

    def block(self, q: Q, size: int, depth: int, acts: bool) -> E | None:
        """An index of things of `size` bytes at a pointer. None: the work-item has no room."""
        room = ROW * BYTES[q.element]
        if size > room:
            return None
        count = 1
        while count * 2 * size <= room and count < 4:
            count *= 2
        j = self.small(depth, acts, count)
        if q.form == "own" or self.inside:
            return j
        if room % size:
            return None
        g = self.variable(V("g", INT))
        return binary("+", binary("*", g, number(room // size)), j)

    def inner(
        self, q: Q, words: str, size: int, member: Member, depth: int, acts: bool, align: int = 0
    ) -> L | None:
        """A number of `member.element` within things of `size` bytes."""
        i = self.block(q, size, depth, acts)
        if i is None:
            return None
        at = member.at

        def where(item: Item, values: list[Any]) -> Place:
            place = values[0]
            whole = place[1] + values[1] * size
            if align and (item.machine.views[place[0]].low + whole) % align:
                raise Undefined("a place of the wrong alignment")
            return place[0], whole + at

        const = "const " if q.const else ""
        pointer = f"((global {const}{words} *){q.c})"
        if member.c.startswith(".") and self.chance.random() < 0.3:
            c = f"({pointer} + {i.c})->{member.c[1:]}"
        else:
            c = f"{pointer}[{i.c}]{member.c}"
        return L(c, (q.run, i.run), q.acts or i.acts, where, member.element, q.const)

    def reinterpreted(self, q: Q, depth: int, acts: bool) -> L | None:
        element = self.chance.choice(list(KINDS))
        return self.inner(q, element, BYTES[element], Member("", 0, element), depth, acts,
                          BYTES[element])  # fmt: skip

    def member(self, q: Q, depth: int, acts: bool) -> L | None:
        if not self.records:
            return None
        record = self.chance.choice(self.records)
        member = self.chance.choice(record.members)
        words = f"struct {record.name}"
        return self.inner(q, words, record.size, member, depth, acts, record.align)

    def component(self, q: Q, depth: int, acts: bool) -> L | None:
        """A component of a vector. It is stored with its neighbours, so nobody may touch those."""
        element, count = self.chance.choice([("int", 4), ("short", 2), ("uchar", 4), ("uint", 2),
                                             ("int", 2)])  # fmt: skip
        j = self.chance.randrange(count)
        name = self.chance.choice(["xyzw"[j], f"s{j}", ("lo" if j < count // 2 else "hi") + (
            "" if count == 2 else f".{'xy'[j % 2]}")])  # fmt: skip
        size = BYTES[element]
        member, whole = Member(f".{name}", size * j, element), size * count
        found = self.inner(q, f"{element}{count}", whole, member, depth, acts, whole)
        vector = Vector(member.at, whole)
        return None if found is None else found._replace(own=True, vector=vector)
