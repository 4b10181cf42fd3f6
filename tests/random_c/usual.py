"""Random kernels as programs have them: work-items share arrays, and indices are sums.

In: a seed. Out: a `UsualKernel`. An index is a sum of multiples of work-item numbers, counters and
arguments, mostly one that each work-item has for itself. There are guards, loops, branches, helpers
and pointers that are moved, and no atomics, structures or vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from random_c.expressions import (
    INT,
    E,
    L,
    Q,
    V,
    asked,
    binary,
    both,
    builtin,
    cast,
    compare,
    number,
)
from random_c.kernels import Kernel
from random_c.meaning import full
from random_c.statements import S, Statements, pointer_variable, quietly

OFTEN, SELDOM = 0.7, 0.04


class Usual(Statements):
    """Statements and expressions of such kernels."""

    helper_forms = ("int", "pointer", "pointer")
    reading = SELDOM
    """How probable it is that a number is read from memory: often if it is stored, seldom where it
    decides what happens."""
    spellings = (*("{q}[{i}]",) * 4, "(*({q} + {i}))")

    def statement(self, depth: int) -> S:
        roll = self.chance.random()
        if depth <= 0 or roll < 0.45:
            return self.acting()
        if roll < 0.57:
            return self.declaration()
        if roll < 0.66:
            return self.pointing()
        if roll < 0.77:
            return self.branching(depth)
        if roll < 0.90:
            return self.loop(depth)
        return self.jump() if roll < 0.94 else self.switch(depth)

    def acting(self) -> S:
        """A store, else any effect."""
        some = [q for q in self.pointers if q.form != "list" and not q.const]
        if not some or self.chance.random() < 0.25:
            return super().acting()
        place = self.element(self.chance.choice(some), 2, False)
        self.reading = OFTEN
        e = self.stored(place, 2)
        self.reading = SELDOM
        return S([f"{e.c};"], quietly(full(e.run)))

    def number(self, depth: int, acts: bool = True) -> E:
        if depth > 0 and self.chance.random() < self.reading:
            self.reading = SELDOM
            q = self.pointer(depth, "", acts)
            if q is not None:
                return self.loaded(self.element(q, depth - 1, acts))
        return super().number(depth, False)  # statements act, expressions do not

    def query(self) -> E:
        if self.inside:  # PoCL 3.0 finds no symbol for some of them in helpers
            return self.variable(self.chance.choice(self.variables))
        whole = asked(*self.chance.choice([
            ("global_id", 0), ("local_id", 0), ("group_id", 0), ("global_size", 0),
            ("global_size", 1), ("num_groups", 0), ("global_offset", 0),
        ]))  # fmt: skip
        return whole if self.chance.random() < 0.4 else cast("int", whole)

    def statement_expression(self, a: E, b: E) -> E:
        return binary("+", a, b)

    def pointer(self, depth: int, element: str = "", acts: bool = True) -> Q | None:
        some = [q for q in self.pointers if q.form != "list" and element in ("", q.element)]
        if some and self.chance.random() < 0.9:
            return self.chance.choice(some)
        return super().pointer(depth, element, acts)

    def guard(self) -> S:
        """A condition in front of all, which leaves some work-items out."""
        g, h, n, m = (self.variable(V(name, INT)) for name in "ghnm")
        test = self.chance.choice([
            compare(">=", g, n), compare(">", g, m), compare("<=", n, g),
            both("||", compare(">=", g, n), compare(">=", h, m)),
            compare("<=", n, binary("+", g, h)), compare(">=", asked("global_id", 0), n),
            compare(">=", cast("uint", g), cast("uint", n)), compare("<", g, number(2)),
            binary("%", g, number(2)),
        ])  # fmt: skip
        asks = full(test.run)
        return S([f"if ({test.c}) return;"], lambda item: ("return", 0) if asks(item) else None)

    def atomic(self, place: L, depth: int) -> E:
        return self.stored(place, depth)

    def own(self, q: Q | None) -> Q | None:
        """Return the pointer itself: nothing is one work-item's own."""
        return q

    def pointing(self) -> S:
        """A pointer variable, declared or moved."""
        named = [q for q in self.pointers if q.name]
        if named and self.chance.random() < 0.4:
            return self.moving(self.chance.choice(named))
        q = self.pointer(1)
        if q is None:
            return self.acting()
        name, i = self.fresh("p"), self.number(2, False)
        run = full(self.at(q, i))
        self.pointers.append(q._replace(c=name, run=pointer_variable(name), acts=False, name=name))
        const = "const " if q.const else ""
        return S([f"global {const}{q.element} *{name} = {q.c} + {i.c};"],
                 lambda item: item.v.__setitem__(name, run(item)))  # fmt: skip

    def index(self, q: Q, depth: int, acts: bool) -> E:
        chance = self.chance
        if q.form == "list":
            return super().index(q, depth, acts)
        if chance.random() < 0.12:
            return self.number(2, acts)
        # of a helper's arguments only one is a number
        names = "bbbbb" if self.inside else "ghnms"
        g, h, n, m, s = (self.variable(V(name, INT)) for name in names)
        few = number(chance.choice([1, 2, 3, 5]))
        counters = [v for v in self.variables if v.name[0] == "t"]
        if counters and chance.random() < 0.5:
            t = self.variable(chance.choice(counters))
            wide = chance.choice([few, n, s, cast("int", asked("global_size", 0))])
            first, second = (g, t) if chance.random() < 0.4 else (t, g)
            return binary("+", binary("*", first, few if self.inside else wide), second)
        forms = [
            g,
            binary("+", g, chance.choice([n, m, few])),
            binary("+", binary("*", g, few), chance.choice([m, few])),
            binary("-", binary("-", n, number(1)), g),
            binary("+", binary("*", h, chance.choice([n, s, few])), g),
            binary("+", binary("*", g, s), m),
            binary("*", m, binary("+", g, few)),
            binary("+", binary("*", n, m), g),
            builtin("min", [g, n], min) if chance.random() < 0.3 else binary("/", g, few),
        ]
        if not self.inside:
            group = binary("*", asked("group_id", 0), asked("local_size", 0))
            forms += [binary("+", asked("global_id", 0), m),
                      binary("+", group, asked("local_id", 0))]  # fmt: skip
        return chance.choice(forms)


class UsualKernel(Kernel):
    """A kernel on two axes with two or three pointers and the integers n, m and s."""

    writes = Usual
    forms = ("shared",)
    names = (*Kernel.names, "h")
    most_records = 0
    most_steps = 6000

    def _shape(self, writer: Statements) -> None:
        chance = writer.chance
        self.axes, self.shifted, self.alone = 2, True, False
        kinds = ["int", "int", "int", "int", "uint", "short", "uchar", "long"]
        self.elements = [chance.choice(kinds) for _ in range(chance.choice([2, 2, 3]))]

    def _head(self) -> list[str]:
        return ["int g = get_global_id(0), h = get_global_id(1);"]

    def _locals(self, writer: Statements) -> tuple[list[str], list[tuple[str, int]]]:
        return [], []

    def _phase(self, writer: Statements) -> list[S]:
        assert isinstance(writer, Usual)
        guard = [writer.guard()] if writer.chance.random() < 0.5 else []
        return [*guard, *(writer.statement(3) for _ in range(writer.chance.randrange(2, 6)))]

    def _numbered(self, g: int, ids: Mapping[str, Sequence[int]]) -> dict[str, int]:
        return {"g": ids["global_id"][0], "h": ids["global_id"][1]}
