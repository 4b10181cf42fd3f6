"""Random statements: lines of OpenCL C, and a function of a work-item that says how it goes on.

A function returns None where the next statement follows, or a signal: `BREAK`, `CONTINUE`, or
`("return", value)`. A `goto` raises `Goto`.
"""

# Long because: each form has its rule in both languages side by side.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from random_c.expressions import (
    BUILTINS,
    INT,
    ROW,
    TABLE,
    E,
    Expressions,
    Helper,
    L,
    Q,
    V,
    as_kind,
    binary,
    both,
    builtin,
    cast,
    choice,
    compare,
    number,
)
from random_c.meaning import (
    BYTES,
    KINDS,
    Goto,
    Item,
    Place,
    Run,
    Undefined,
    arithmetic,
    called,
    full,
    in_any_order,
    moved,
    promoted,
    wrap,
)

BREAK, CONTINUE = ("break", None), ("continue", None)


class S(NamedTuple):
    """A statement."""

    c: list[str]
    run: Run


def block(parts: Sequence[S]) -> S:
    """Statements one after another."""
    runs = [part.run for part in parts]

    def run(item: Item) -> Any:
        for one in runs:
            signal = one(item)
            if signal is not None:
                return signal
        return None

    return S([line for part in parts for line in part.c], run)


class Statements(Expressions):
    """Statements of what is visible."""

    helper_forms: Sequence[str] = ("int", "pointer", "overloaded", "overloaded", "pick", "step")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.loops = 0
        self.switches = 0
        self.labels: list[str] = []
        self.vectors: list[tuple[str, str, int]] = []
        self.barred = False
        """Whether a barrier follows, which all have to reach."""
        self.result = ""
        """What a function that returns a value returns at any time."""

    def statement(self, depth: int) -> S:
        chance = self.chance
        roll = chance.random()
        if depth <= 0 or roll < 0.33:
            return self.acting()
        if roll < 0.45:
            return self.declaration()
        if roll < 0.53:
            return self.pointing()
        if roll < 0.64:
            return self.branching(depth)
        if roll < 0.80:
            return self.loop(depth)
        if roll < 0.86:
            return self.switch(depth)
        if roll < 0.91:
            return self.vector()
        if roll < 0.94:
            return self.jump()
        if roll < 0.955 and not self.inside:
            return self.labelled(depth)
        if roll < 0.97:
            return self.guarded()
        if roll < 0.99:
            return self.walked()
        return self.pointer_loop()

    def walked(self) -> S:
        """A place that moves from statement to statement: an index, or a pointer."""
        kept = list(self.changing), list(self.variables), list(self.pointers)
        q = self.own(self.pointer(1))
        if q is None or q.const:
            return self.acting()
        name = self.fresh("c")
        v = V(name, INT)
        self.variables, self.changing, self.pointers = [v], [v], []
        parts = []
        for _ in range(self.chance.randrange(2, 5)):
            i = self.changed(v, 0) if self.chance.random() < 0.7 else self.variable(v)

            def where(item: Item, values: list[Any]) -> Place:
                return values[0][0], values[0][1] + values[1] * BYTES[q.element]

            c = f"{q.c}[{i.c}]"
            e = self.stored(L(c, (q.run, i.run), True, where, q.element, False), 0)
            parts.append(S([f"{e.c};"], quietly(full(e.run))))
        self.changing, self.variables, self.pointers = kept
        start = self.chance.choice([0, 1, 3])
        first = S([f"int {name} = {start};"], lambda item: item.v.__setitem__(name, start))
        return block([first, *parts])

    def guarded(self) -> S:
        """An index that nothing limits but the condition in front of it."""
        chance = self.chance
        some = [q for q in self.pointers if q.form in ("own", "row") and not q.name]
        if not some:
            return self.acting()
        q = chance.choice(some)
        name, e = self.fresh("j"), cast("int", self.number(3))
        v = V(name, INT)
        self.variables.append(v)
        j, g = self.variable(v), self.variable(V("g", INT))
        at, base = (j, number(0)) if q.form == "own" or self.inside else (
            binary("+", binary("*", g, number(ROW)), j), binary("*", g, number(ROW)))  # fmt: skip
        few = chance.choice([1, 3, 8])
        more = number(chance.choice([1, 5]))
        low, high = chance.choice([
            (compare(">=", j, number(0)), compare("<", j, number(few))),
            (compare(">", j, number(-1)), compare("<=", j, number(few - 1))),
            (compare("<=", base, at), compare(">", binary("+", base, number(few)), at)),
            (compare(">=", binary("+", j, more), more),
             compare("<", binary("+", j, more), binary("+", more, number(few)))),
            (compare(">=", binary("*", j, number(3)), number(0)),
             compare("<", binary("*", j, number(2)), number(2 * few))),
            (compare("<", binary("-", number(-1), j), number(0)),
             compare(">", binary("-", number(few), j), number(0))),
            (compare("<", cast("uint", j), cast("uint", number(few))), number(1)),
            (compare("==", builtin("clamp", [j, number(0), number(few - 1)],
                                   BUILTINS["clamp"][1]), j), number(2)),
        ])  # fmt: skip
        guard = both("&&", low, high)
        yes = True
        if chance.random() < 0.3:
            nots = [E(f"(!{one.c})", _not(one.run), INT, one.acts) for one in (low, high)]
            guard, yes = both("||", *nots), False
        elif chance.random() < 0.2:
            guard = choice(low, high, number(0))

        def where(item: Item, values: list[Any]) -> Place:
            return values[0][0], values[0][1] + values[1] * BYTES[q.element]

        place = L(f"{q.c}[{at.c}]", (q.run, at.run), q.acts or at.acts, where, q.element, q.const)
        does = self.loaded(place) if q.const else self.stored(place, 1)
        begins, asks, run = full(e.run), full(guard.run), full(does.run)

        def act(item: Item) -> None:
            item.v[name] = begins(item)
            if bool(asks(item)) == yes:
                run(item)

        lines = [f"int {name} = {e.c};"]
        lines += [f"if ({guard.c}) {does.c};"] if yes else [f"if ({guard.c}) ;", f"else {does.c};"]
        return S(lines, act)

    def pointer_loop(self) -> S:
        """A loop whose counter is a pointer."""
        chance = self.chance
        q = self.own(self.pointer(1))
        if q is None:
            return self.acting()
        name, end, size = self.fresh("p"), self.fresh("p"), BYTES[q.element]
        first = binary("&", self.number(1, False), number(1))
        count = binary("&", self.number(2, False), number(3))
        const = "const " if q.const else ""
        kept = list(self.variables), list(self.changing), list(self.pointers)
        begins = full(q.run)
        offset, counts = full(first.run), full(count.run)
        self.pointers.append(Q(name, pointer_variable(name), q.element, "own", q.const))
        e = self.number(2) if q.const else self.effect(2)
        self.variables, self.changing, self.pointers = kept
        run, sign = full(e.run), chance.choice(["<", "!="])
        back = chance.random() < 0.3

        def loop(item: Item) -> None:
            begin = moved(item, begins(item), offset(item) * size)
            last = moved(item, begin, counts(item) * size)
            item.v[end] = last
            if back:
                begin, last = last, begin
            while begin != last:
                item.machine.turn()
                if back:
                    begin = moved(item, begin, -size)
                item.v[name] = begin
                run(item)
                begin = item.v[name]
                if not back:
                    begin = moved(item, begin, size)

        word = f"global {const}{q.element} *"
        if back:
            lines = [f"{word}{name} = {q.c} + {first.c}, *{end} = {name};", f"{name} += {count.c};",
                     f"while ({name} != {end}) {{", f"--{name};", f"{e.c};", "}"]  # fmt: skip
        else:
            lines = [f"{word}{name} = {q.c} + {first.c}, *{end} = {name} + {count.c};",
                     f"for (; {name} {sign} {end}; {name}++) {{", f"{e.c};", "}"]  # fmt: skip
        return S(lines, loop)

    def pointers_in_memory(self) -> S:
        """An array of pointers, or a structure of one."""
        chance = self.chance
        q = self.own(self.pointer(1))
        if q is None:
            return self.acting()
        r = self.own(self.pointer(1, q.element)) or q
        if r.const != q.const:
            r = q
        name, i = self.fresh("h"), binary("&", self.number(1, False), number(1))
        const = "const " if q.const else ""
        runs, index = full(in_any_order([q.run, r.run], q.acts or r.acts)), i.run

        def declare(item: Item) -> None:
            item.v[name] = runs(item)

        word = f"global {const}{q.element} *"
        if chance.random() < 0.5:
            lines = [f"{word}{name}[2] = {{{q.c}, {r.c}}};"]
            c = f"{name}[{i.c}]"
        else:
            lines = [f"struct {{ int k; {word}p; {word}q; }} {name} = {{1, {q.c}, {r.c}}};"]
            c = f"({i.c} ? {name}.q : {name}.p)"
        self.pointers.append(
            Q(c, lambda item: item.v[name][index(item)], q.element, "own", q.const)
        )
        return S(lines, declare)

    def several(self, depth: int, most: int = 3) -> S:
        """Statements whose declarations are not seen outside."""
        kept = (list(self.variables), list(self.changing), list(self.pointers), list(self.vectors))
        found = block([self.statement(depth) for _ in range(self.chance.randrange(1, most + 1))])
        self.variables, self.changing, self.pointers, self.vectors = kept
        return found

    # ---- plain ones ----

    def acting(self) -> S:
        e = self.effect(2) if self.chance.random() < 0.9 else self.number(3)
        run = full(e.run)

        def act(item: Item) -> None:
            run(item)

        return S([f"{e.c};"], act)

    def declaration(self) -> S:
        chance = self.chance
        roll = chance.random()
        if roll < 0.2:
            return self.array()
        if roll < 0.45 and not self.inside:
            name, at = self.fresh("k"), chance.choice([0, 0, 1, 7])
            v = V(name, INT)
            self.variables.append(v)
            self.changing.append(v)
            return S([f"int {name} = g * {ROW} + {at};"],
                     lambda item: item.v.__setitem__(name, item.v["g"] * ROW + at))  # fmt: skip
        kind = chance.choice(["int", "int", "int", *KINDS])
        name, value = self.fresh("v"), self.number(3)
        cell = chance.random() < 0.15
        v = V(name, KINDS[kind], cell)
        self.variables.append(v)
        self.changing.append(v)
        run, bits = full(value.run), KINDS[kind]

        def declare(item: Item) -> None:
            found = wrap(bits, run(item))
            item.v[name] = [found] if cell else found

        lines = [f"{kind} {name} = {value.c};"]
        if cell:
            self.pointers.append(Q(f"(&{name})", lambda item: (item.v[name], 0), kind, "list",
                                   count=1, word=""))  # fmt: skip
        return S(lines, declare)

    def array(self) -> S:
        """An array of the work-item, which may hold indices."""
        chance, name = self.chance, self.fresh("t")
        kind, count = chance.choice(["int", "uchar", "short", "uint"]), chance.choice([2, 4, 4, 8])
        values = [self.number(1) for _ in range(count)]
        acts = any(value.acts for value in values)
        runs, bits = full(in_any_order([value.run for value in values], acts)), KINDS[kind]
        self.pointers.append(Q(name, lambda item: (item.v[name], 0), kind, "list", count=count,
                               word=""))  # fmt: skip

        def declare(item: Item) -> None:
            item.v[name] = [wrap(bits, value) for value in runs(item)]

        words = ", ".join(f"({kind})({value.c})" for value in values)
        return S([f"{kind} {name}[{count}] = {{{words}}};"], declare)

    def pointing(self) -> S:
        """A pointer variable, declared or moved."""
        chance = self.chance
        named = [q for q in self.pointers if q.name]
        roll = chance.random()
        if named and roll < 0.35:
            q = chance.choice(named)
            name = q.name
            others = [r for r in self.pointers if (r.element, r.const) == (q.element, q.const)
                      and r.form == "own"]  # fmt: skip
            if chance.random() < 0.5 and others:
                r = chance.choice(others)
                i = self.small(1, True, 4)
                run = full(self.at(r, i))

                def assign(item: Item) -> None:
                    found = run(item)
                    if name in item.writes:
                        raise Undefined("changed twice in no order")
                    item.v[name] = found

                return S([f"{name} = {r.c} + {i.c};"], assign)
            return self.moving(q)
        steps = [one for one in self.helpers if one.kind == "step"]
        if named and steps and roll < 0.5:
            helper = chance.choice(steps)
            some = [q for q in named if q.element == helper.element and not q.const]
            if some:
                q, e = chance.choice(some), self.small(1, True, 4)
                name, by_of, of = q.name, full(e.run), helper.run
                return S([f"{helper.name}(&{name}, {e.c});"],
                         lambda item: item.v.__setitem__(
                             name, of(item, [item.v[name], by_of(item)])))  # fmt: skip
        if chance.random() < 0.06:
            return self.pointers_in_memory()
        q = self.own(self.pointer(1))
        if q is None:
            return self.acting()
        name, i = self.fresh("p"), self.small(2, True, 4)
        picks = [one for one in self.helpers
                 if (one.kind, one.element, one.const) == ("pick", q.element, q.const)]  # fmt: skip
        const = "const " if q.const else ""
        if picks and chance.random() < 0.4:
            helper = chance.choice(picks)
            values, of = in_any_order([q.run, i.run], q.acts or i.acts), helper.run
            run, c = full(lambda item: of(item, values(item))), f"{helper.name}({q.c}, {i.c})"
        else:
            run, c = full(self.at(q, i)), f"{q.c} + {i.c}"
        self.pointers.append(Q(name, pointer_variable(name), q.element, "own", q.const,
                               name=name))  # fmt: skip
        return S([f"global {const}{q.element} *{name} = {c};"],
                 lambda item: item.v.__setitem__(name, run(item)))  # fmt: skip

    def moving(self, q: Q) -> S:
        """A pointer variable is moved a few elements on or back."""
        name, size = q.name, BYTES[q.element]
        e = binary("-", self.small(1, False, 4), number(self.chance.choice([0, 1, 2])))
        by, sign = full(e.run), self.chance.choice("+-")

        def move(item: Item) -> None:
            step = by(item) * size
            item.v[name] = moved(item, item.v[name], step if sign == "+" else -step)

        return S([f"{name} {sign}= {e.c};"], move)

    # ---- branches and loops ----

    def branching(self, depth: int) -> S:
        test, yes = self.number(3), self.several(depth - 1)
        no = self.several(depth - 1) if self.chance.random() < 0.4 else block([])
        asks, one, other = full(test.run), yes.run, no.run
        c = [f"if ({test.c}) {{", *yes.c, "}"]
        if no.c:
            c += ["else {", *no.c, "}"]
        return S(c, lambda item: one(item) if asks(item) else other(item))

    def switch(self, depth: int) -> S:
        chance = self.chance
        test = self.number(2)
        if chance.random() < 0.6:
            test = binary("&", test, number(3))
        test = cast("int", test)
        labels: list[int | None] = [0, 1, 3, None]
        chance.shuffle(labels)
        self.switches += 1
        bodies = [self.several(depth - 1, 2) for _ in labels]
        self.switches -= 1
        ends = [chance.random() < 0.5 for _ in labels]
        c, places, runs = [f"switch ({test.c}) {{"], {}, []
        for label, body, ended in zip(labels, bodies, ends, strict=True):
            places[label] = len(runs)
            c += ["default: {" if label is None else f"case {label}: {{", *body.c,
                  "} break;" if ended else "}"]  # fmt: skip
            runs += [body.run, (lambda item: BREAK) if ended else (lambda item: None)]
        asks = full(test.run)

        def run(item: Item) -> Any:
            for one in runs[places.get(asks(item), places[None]) :]:
                signal = one(item)
                if signal is not None:
                    return None if signal == BREAK else signal
            return None

        return S([*c, "}"], run)

    def jump(self) -> S:
        chance = self.chance
        test = self.number(2)
        asks = full(test.run)
        ways: list[tuple[str, Any]] = []
        if self.loops or self.switches:
            ways += [("break;", BREAK)] * 2
        if self.loops:
            ways += [("continue;", CONTINUE)] * 2
        for label in self.labels:
            ways.append((f"goto {label};", label))
        if not self.barred:
            ways.append((f"return {self.result};" if self.result else "return;",
                         ("return", int(self.result or 0))))  # fmt: skip
        if not ways:
            return self.acting()
        c, signal = chance.choice(ways)
        if isinstance(signal, str):

            def leave(item: Item) -> None:
                if asks(item):
                    raise Goto(signal)

            return S([f"if ({test.c}) {c}"], leave)
        return S([f"if ({test.c}) {c}"], lambda item: signal if asks(item) else None)

    def labelled(self, depth: int) -> S:
        """A block out of which a `goto` may lead."""
        if self.chance.random() < 0.6:  # such a kernel counts with whole views
            return self.branching(depth)
        label = self.fresh("out")
        self.labels.append(label)
        body = self.several(depth - 1)
        self.labels.pop()
        run = body.run

        def runs(item: Item) -> Any:
            try:
                return run(item)
            except Goto as goto:
                if goto.args[0] != label:
                    raise
                return None

        return S(["{", *body.c, "}", f"{label}: ;"], runs)

    def loop(self, depth: int) -> S:
        chance = self.chance
        form = chance.randrange(9)
        name = self.fresh("t")
        kind = chance.choice(["int", "int", "int", "uint", "long", "uchar", "short", "ulong"])
        bits = KINDS[kind]
        v = V(name, bits)
        few = number(chance.choice([1, 2, 3, 4]))
        outer = [one for one in self.variables if one.name[0] == "t"]
        if outer and chance.random() < 0.5:  # bounds that depend on an outer counter
            few = self.variable(chance.choice(outer))
        elif chance.random() < 0.4:
            few = binary("&", self.number(2, False), number(3))
        elif chance.random() < 0.5:
            few = self.variable(V(chance.choice("nms"), INT)) if not self.inside else few
        kept = list(self.variables), list(self.changing)
        start, by = number(0), number(chance.choice([1, 1, 1, 2, 3]))
        if chance.random() < 0.25:
            start = self.number(1, False)
        t = self.variable(v)
        up = form in (0, 1, 2, 5, 6, 8)
        step_e: E
        self.variables.append(v)
        ends = form in (0, 1, 2)
        if chance.random() < 0.3:
            self.changing += [v, v]
            ends = False
        self.loops += 1
        if form == 3:  # counts down to zero, and wraps where it has no sign
            start, test = few, compare(">=" if bits > 0 else "!=", t, number(0))
        elif form == 4 and not self.inside:
            start, test = few, compare("<", t, cast("uint", self.variable(V("n", INT))))
        elif up:
            sign = chance.choice(["<", "<", "<=", "!="])
            test = compare(sign, t, few)
            ends = ends and sign != "!="
            if chance.random() < 0.2:
                test = E(f"({test.c} && {(more := self.number(1)).c})",
                         _and(test.run, more.run), INT, test.acts or more.acts)  # fmt: skip
        else:
            start, test = few, compare(">", t, number(0))
        body = self.several(depth - 1)
        self.loops -= 1
        step_e = self._step(v, "+" if up else "-", by)
        if up and chance.random() < 0.2:  # by what is known only when it is launched, or to powers
            ends = False
            sign, more = chance.choice(
                [
                    ("+", self.variable(V("s", INT)) if not self.inside else by),
                    ("*", number(2)),
                    ("+", binary("&", self.number(1, False), number(3))),
                ]
            )
            of, wide = self.compound(sign, promoted(bits), more), promoted(bits)
            more_run = more.run

            def stepping(item: Item) -> int:
                new = wrap(bits, of(item.v[name], more_run(item)))
                item.reads.add(name)
                item.writes.add(name)
                item.v[name] = new
                return new

            step_e = E(f"{name} {sign}= {more.c}", stepping, wide, True)
        if chance.random() < 0.2:
            more = self.changed(chance.choice(self.changing), 1) if self.changing else step_e
            if more is not step_e:
                one, other = step_e.run, more.run
                step_e = E(
                    f"{step_e.c}, {more.c}", lambda item: (one(item), other(item)), INT, True
                )
        self.variables, self.changing = kept
        if ends:
            return self._written(form, v, kind, start, test, step_e, body)
        # PoCL 3.0 compiles kernels wrongly that have an endless loop, even where nobody comes.
        fuel, most = self.fresh("u"), chance.choice([3, 9, 20])

        def burn(item: Item) -> int:
            item.reads.add(fuel)
            item.writes.add(fuel)
            item.v[fuel] += 1
            return int(item.v[fuel] <= most)

        test = both("&&", test, E(f"({fuel}++ < {most})", burn, INT, True))
        found = self._written(form, v, kind, start, test, step_e, body)
        runs = found.run

        def loop(item: Item) -> Any:
            item.v[fuel] = 0
            return runs(item)

        return S([f"{{ int {fuel} = 0;", *found.c, "}"], loop)

    def _written(
        self, form: int, v: V, kind: str, start: E, test: E, step_e: E, body: S
    ) -> S:  # fmt: skip
        """A loop in one of the ways to write it."""
        chance, name, bits = self.chance, v.name, v.kind
        begins, asks, steps = full(as_kind(start, bits)), full(test.run), full(step_e.run)
        runs, first = body.run, f"{kind} {name} = {start.c}"
        put = _put(name, bits, begins)
        if form in (6, 7):  # do
            c = [f"{first};", "do {", *body.c, f"}} while ({step_e.c}, {test.c});"]
            again = full(E("", _then(step_e.run, test.run), INT).run)
            return S(c, _looping(put, None, runs, again, None))
        if form == 5 or (form == 8 and chance.random() < 0.5):
            last = f"while ({test.c}) {{"
            c = [f"{first};", last, f"{step_e.c};", *body.c, "}"]
            return S(c, _looping(put, asks, _after(steps, runs), None, None))
        if form == 8:
            c = [f"for ({first}; {test.c};) {{", *body.c, f"{step_e.c};", "}"]
            return S(c, _looping(put, asks, _before(runs, steps), None, None))
        c = [f"for ({first}; {test.c}; {step_e.c}) {{", *body.c, "}"]
        return S(c, _looping(put, asks, runs, None, steps))

    def _step(self, v: V, sign: str, by: E) -> E:
        name, bits = v.name, v.kind
        wide = promoted(bits)
        one = by.c == "1" and self.chance.random() < 0.8
        step = int(by.c)
        c = self.chance.choice([f"{name}{sign * 2}", f"{sign * 2}{name}"]) if one else (
            f"{name} {sign}= {by.c}")  # fmt: skip

        def run(item: Item) -> int:
            item.reads.add(name)
            item.writes.add(name)
            item.v[name] = wrap(bits, arithmetic(sign, wide, item.v[name], step))
            return item.v[name]  # type: ignore[no-any-return]

        return E(c, run, wide, True)

    # ---- vectors ----

    def vector(self) -> S:
        chance = self.chance
        if not self.vectors or chance.random() < 0.4:
            return self.new_vector()
        name, element, count = chance.choice(self.vectors)
        kind = KINDS[element]
        roll = chance.random()
        if roll < 0.35:
            return self.kept_vector(name, element, count)
        if roll < 0.6:
            j = chance.randrange(count)
            place = L(f"{name}.{self.component_name(j, count)}", (), False,
                      lambda item, values: (item.v[name], j), element, False, own=True)  # fmt: skip
            e = self.stored(place, 2)
            run = full(e.run)

            def act(item: Item) -> None:
                run(item)

            return S([f"{e.c};"], act)
        if roll < 0.7:
            a, b = chance.sample(range(count), 2)
            i, j = (self.component_name(one, count, plain=True) for one in (a, b))
            c = (
                f"{name}.{i}{j} = {name}.{j}{i};"
                if count <= 4
                else f"{name}.s{a}{b} = {name}.s{b}{a};"
            )

            def swap(item: Item) -> None:
                cells = item.v[name]
                cells[a], cells[b] = cells[b], cells[a]

            return S([c], swap)
        if roll < 0.85 and element in ("int", "uint"):
            return self.chosen_vector(name, element, count)
        e = self.number(2)
        run = full(e.run)
        sign = chance.choice("&|^")

        def combine(item: Item) -> None:
            value = wrap(kind, run(item))
            item.v[name] = [arithmetic(sign, kind, old, value) for old in item.v[name]]

        return S([f"{name} {sign}= ({element}{count})(({element})({e.c}));"], combine)

    @staticmethod
    def component_name(j: int, count: int, plain: bool = False) -> str:
        if count <= 4 and (plain or j % 2):
            return "xyzw"[j]
        return f"s{j:x}"

    def new_vector(self) -> S:
        chance = self.chance
        name = self.fresh("q")
        element, count = chance.choice(["int", "int", "uint", "short", "uchar"]), chance.choice(
            [2, 3, 4, 4, 8])  # fmt: skip
        kind = KINDS[element]
        q = self.own(self.pointer(1, element)) if chance.random() < 0.7 else None
        if q is not None:
            i = self.small(1, True, max(1, ROW // count // 2))
            values = in_any_order([q.run, i.run], q.acts or i.acts)
            size = BYTES[element]

            def load(item: Item) -> list[int]:
                place, index = values(item)
                return [item.load((place[0], place[1] + (index * count + j) * size), element)
                        for j in range(count)]  # fmt: skip

            c, run = f"vload{count}({i.c}, {q.c})", full(load)
        elif chance.random() < 0.3:
            e = self.number(2)
            runs = e.run
            c, run = f"({element}{count})(({element})({e.c}))", full(
                lambda item: [wrap(kind, runs(item))] * count)  # fmt: skip
        else:
            parts = [self.number(1) for _ in range(count)]
            several = in_any_order([part.run for part in parts], any(part.acts for part in parts))
            words = ", ".join(f"({element})({part.c})" for part in parts)
            c, run = f"({element}{count})({words})", full(
                lambda item: [wrap(kind, value) for value in several(item)])  # fmt: skip
        self.vectors.append((name, element, count))

        def declare(item: Item) -> None:
            item.v[name] = run(item)

        return S([f"{element}{count} {name} = {c};"], declare)

    def kept_vector(self, name: str, element: str, count: int) -> S:
        """A vector that is stored."""
        q = self.own(self.pointer(1, element))
        if q is None or q.const:
            return self.new_vector()
        size, i = BYTES[element], self.small(1, True, max(1, ROW // count // 2))
        values = in_any_order([q.run, i.run], q.acts or i.acts)
        aligned = count in (2, 4) and self.chance.random() < 0.4

        def store(item: Item) -> None:
            place, index = values(item)
            whole = place[1] + index * count * size
            if aligned and (item.machine.views[place[0]].low + whole) % (count * size):
                raise Undefined("a place of the wrong alignment")
            for j, value in enumerate(item.v[name]):
                item.store((place[0], whole + j * size), element, value)

        c = f"vstore{count}({name}, {i.c}, {q.c});"
        if aligned:
            c = f"((global {element}{count} *){q.c})[{i.c}] = {name};"
        run = full(store)

        def act(item: Item) -> None:
            run(item)

        return S([c], act)

    def chosen_vector(self, name: str, element: str, count: int) -> S:
        """A choice by a vector, which evaluates both sides."""
        e = self.number(1, False)
        kind = KINDS[element]
        sides = [self.changed(self.chance.choice(self.changing), 1) if self.changing
                 and self.chance.random() < 0.7 else number(1) for _ in "ab"]  # fmt: skip
        value = e.run
        runs = in_any_order([side.run for side in sides], True)

        def choose(item: Item) -> None:
            bound = wrap(kind, value(item))
            one, other = runs(item)
            item.v[name] = [wrap(kind, one if cell < bound else other) for cell in item.v[name]]

        one, other = (f"({element}{count})(({element}){side.c})" for side in sides)
        c = f"{name} = ({name} < ({element}{count})(({element})({e.c}))) ? {one} : {other};"
        run = full(choose)

        def act(item: Item) -> None:
            run(item)

        return S([c], act)

    # ---- helpers ----

    def helper(self) -> str:
        """Add a helper, and give its text."""
        chance = self.chance
        form = chance.choice(self.helper_forms)
        name = f"{self.fresh('f')}_{self.seed}"
        elements = sorted({q.element for q in self.pointers if q.form != "list"})
        element = chance.choice(elements)
        const = chance.random() < 0.3
        if form == "pick":
            word = "const " if const else ""
            size = BYTES[element]
            self.helpers.append(Helper(name, "pick", element, lambda item, v: moved(
                item, v[0], v[1] * size), const))  # fmt: skip
            return chance.choice([
                f"global {word}{element} *{name}(global {word}{element} *p, int i)\n"
                f"{{ return p + i; }}",
                f"global {word}{element} *{name}(global {word}{element} *p, int i)\n"
                f"{{ while (i-- > 0) p++; return p; }}",
            ])  # fmt: skip
        if form == "step":
            size = BYTES[element]
            self.helpers.append(Helper(name, "step", element, lambda item, v: moved(
                item, v[0], v[1] * size)))  # fmt: skip
            return f"void {name}(global {element} **p, int i)\n{{ *p += i; }}"
        if form == "overloaded":
            kinds = ["int", "long", "pointer"]
            chance.shuffle(kinds)
            word = "__attribute__((overloadable)) "
            return "\n".join(
                self.function(name, kind, element, const, word)
                for kind in kinds[: chance.choice([2, 3])]
            )
        return self.function(name, form, element, const, "")

    def function(self, name: str, kind: str, element: str, const: bool, words: str) -> str:
        chance = self.chance
        outer = (self.variables, self.changing, self.pointers, self.vectors, self.loops,
                 self.switches, self.helpers, self.result, self.inside)  # fmt: skip
        a, b = V("a", KINDS.get(kind, INT)), V("b", INT)
        self.variables, self.changing, self.pointers, self.vectors = [b], [b], [], []
        self.loops = self.switches = 0
        self.helpers = [h for h in self.helpers if h.name != name]
        self.result, self.inside = str(chance.randrange(4)), True
        if kind == "pointer":
            self.pointers = [Q("a", pointer_variable("a"), element, "own", const, name="a")]
        else:
            self.variables.append(a)
            self.changing.append(a)
            self.pointers = [Q("TABLE", lambda item: (item.v.setdefault("TABLE", TABLE_CELLS), 0),
                               "int", "list", True, count=8, word="")]  # fmt: skip
        parts = [self.statement(1) for _ in range(chance.randrange(1, 3))]
        value = self.number(2)
        answer = full(as_kind(value, INT))
        body = block([*parts, S([f"return {value.c};"], lambda item: ("return", answer(item)))])
        (self.variables, self.changing, self.pointers, self.vectors, self.loops, self.switches,
         self.helpers, self.result, self.inside) = outer  # fmt: skip
        word = f"global {'const ' if const else ''}{element} *" if kind == "pointer" else f"{kind} "
        self.helpers.append(Helper(name, kind, element, called(["a", "b"], body.run, 0), const))
        text = "\n    ".join(body.c)
        return f"{words}int {name}({word}a, int b)\n{{\n    {text}\n}}"


TABLE_CELLS = list(TABLE)


def pointer_variable(name: str) -> Run:
    def run(item: Item) -> Any:
        item.reads.add(name)
        return item.v[name]

    return run


def quietly(run: Run) -> Run:
    def act(item: Item) -> None:
        run(item)

    return act


def _not(one: Run) -> Run:
    return lambda item: int(not one(item))


def _and(one: Run, other: Run) -> Run:
    return lambda item: int(bool(one(item)) and bool(other(item)))


def _then(one: Run, other: Run) -> Run:
    def run(item: Item) -> Any:
        one(item)
        return other(item)

    return run


def _put(name: str, bits: int, of: Run) -> Run:
    def run(item: Item) -> None:
        item.v[name] = wrap(bits, of(item))

    return run


def _after(first: Run, second: Run) -> Run:
    def run(item: Item) -> Any:
        first(item)
        return second(item)

    return run


def _before(first: Run, second: Run) -> Run:
    def run(item: Item) -> Any:
        signal = first(item)
        if signal is None:
            second(item)
        return signal

    return run


def _looping(begin: Run, asks: Run | None, body: Run, again: Run | None, step: Run | None) -> Run:
    """Return a loop: tests before each turn, or after it."""

    def run(item: Item) -> Any:
        begin(item)
        while asks is None or asks(item):
            item.machine.turn()
            signal = body(item)
            if signal is not None and signal != CONTINUE:
                return None if signal == BREAK else signal
            if step is not None:
                step(item)
            if again is not None and not again(item):
                break
        return None

    return run
