"""Random kernels that have a meaning in Python too: every expression is written in both languages.

In: a seed. Out: a `Text`, OpenCL C and Python of the same kernel. `Oracle.run` is what a launch of
it does, one work-item after another, element by element, with the bytes that it touches. It refuses
launches whose outcome OpenCL leaves open: signed overflow, a division by zero, an element outside
of its view, two work-items of which one writes what the other touches; and those that take long. So
who launches only what the oracle accepts has kernels that end, and one right result.

Kernels have two or three pointers, to elements of different sizes, and integers `n`, `m`, `s`; they
have guards, loops, branches, helpers, pointers that are moved, indices from memory, and arithmetic
of all widths, signed and not.
"""

# Long because: each form has its rule in both languages side by side.

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

NUMBERS = ("n", "m", "s")
MOST_STEPS = 6000
"""Accesses and turns of loops of a launch."""

INT, UINT, LONG, ULONG, SHORT, UCHAR = 32, -32, 64, -64, 16, -8
TYPES = {"int": INT, "uint": UINT, "long": LONG, "size_t": ULONG, "short": SHORT, "uchar": UCHAR}
DTYPES = {"int": "i4", "uint": "u4", "short": "i2", "uchar": "u1", "long": "i8"}
"""Of elements."""


class Undefined(Exception):  # noqa: N818  (an answer, not a fault)
    """OpenCL does not say what the launch does, or it takes too long."""


class Text(NamedTuple):
    """A kernel. `elements`: the type behind each of its pointers."""

    name: str
    c: str
    python: str
    elements: tuple[str, ...]


class _E(NamedTuple):
    """An integer expression; `kind` is its type after promotion."""

    c: str
    py: str
    kind: int


class _P(NamedTuple):
    """A pointer: which parameter's, and how many elements on."""

    c: str
    array: str
    offset: str
    element: str


class _V(NamedTuple):
    """A variable and the type that it is kept in."""

    name: str
    kind: int


def _wrap(kind: int, text: str) -> str:
    return f"c{kind}({text})" if kind > 0 else f"u{-kind}({text})"


def _checked(kind: int, text: str) -> str:
    """Arithmetic in a type: unsigned wraps around, signed must not."""
    return _wrap(kind, text) if kind < 0 else f"s{kind}({text})"


def _common(a: int, b: int) -> int:
    if 64 in (abs(a), abs(b)):
        return ULONG if ULONG in (a, b) else LONG
    return UINT if UINT in (a, b) else INT


def _as(e: _E, kind: int) -> str:
    return e.py if e.kind == kind else _wrap(kind, e.py)


def _promoted(kind: int) -> int:
    return INT if abs(kind) < 32 else kind


def _number(value: int) -> _E:
    return _E(str(value) if value >= 0 else f"({value})", str(value), INT)


class Writer:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.name = f"k{seed}"
        self.count = 0
        self.names: list[_V] = []
        self.changing: list[_V] = []
        self.pointers: list[_P] = []
        self.helpers_c: list[str] = []
        self.helpers_py: list[str] = []
        self.loops = 0
        self.inside = False

    def text(self) -> Text:
        """The kernel."""
        chance = self.chance
        kinds = ["int", "int", "int", "int", "uint", "short", "uchar", "long"]
        elements = [chance.choice(kinds) for _ in range(chance.choice([2, 2, 3]))]
        self.elements = elements
        letters = "xyz"[: len(elements)]
        self.pointers = [_P(letters[i], str(i), "0", one) for i, one in enumerate(elements)]
        self.names = [_V(name, INT) for name in (*NUMBERS, "g0", "g1")]
        self.written: set[str] = set()
        c = ["int g0 = get_global_id(0), g1 = get_global_id(1);"]
        py: list[str] = []
        if chance.random() < 0.5:
            guard = self._guard()
            c.append(f"if ({guard.c}) return;")
            py += [f"if {guard.py}:", "    return"]
        for _ in range(chance.randrange(2, 6)):
            more_c, more_py = self._statement(3)
            c += more_c
            py += more_py
        if not self.written:
            more_c, more_py = self._write()
            c += more_c
            py += more_py
        arguments = []
        for i, one in enumerate(elements):
            const = "const " if str(i) not in self.written and chance.random() < 0.7 else ""
            arguments.append(f"global {const}{one} *{letters[i]}")
        body = "\n    ".join(c)
        head = ", ".join(arguments + [f"int {name}" for name in NUMBERS])
        python = [
            *self.helpers_py, "def item(g0, g1, n, m, s, l0, w0, sizes, groups, offset):",
            *(f"    {line}" for line in py or ["pass"]),
        ]  # fmt: skip
        text = "\n".join([*self.helpers_c, f"kernel void {self.name}({head})\n{{\n    {body}\n}}"])
        return Text(self.name, text, "\n".join(python) + "\n", tuple(elements))

    # ---- expressions ----

    def _v(self, name: str) -> _E:
        kind = next((v.kind for v in self.names if v.name == name), INT)
        return _E(name, name, _promoted(kind))

    def _any_variable(self) -> _E:
        return self._v(self.chance.choice(self.names).name)

    def _arithmetic(self, operator: str, a: _E, b: _E) -> _E:
        kind = _common(a.kind, b.kind)
        one, two = _as(a, kind), _as(b, kind)
        c = f"({a.c} {operator} {b.c})"
        if operator in "/%":
            name = "quotient" if operator == "/" else "remainder"
            return _E(c, _checked(kind, f"{name}({one}, {two})"), kind)
        if operator in "&|^":
            return _E(c, f"({one} {operator} {two})", kind)
        return _E(c, _checked(kind, f"{one} {operator} {two}"), kind)

    def _shifted(self, operator: str, a: _E, by: int) -> _E:
        c = f"({a.c} {operator} {by})"
        if operator == ">>":
            return _E(c, f"({a.py} >> {by})", a.kind)
        text = f"{a.py} << {by}"
        if a.kind > 0:
            text = f"positive({a.py}) << {by}"
        return _E(c, _checked(a.kind, text), a.kind)

    def _cast(self, name: str, a: _E) -> _E:
        kind = TYPES[name]
        return _E(f"(({name})({a.c}))", _wrap(kind, a.py), _promoted(kind))

    def _least(self, name: str, a: _E, b: _E) -> _E:
        return _E(f"{name}((int)({a.c}), (int)({b.c}))", f"{name}({_as(a, INT)}, {_as(b, INT)})",
                  INT)  # fmt: skip

    def _int(self, depth: int) -> _E:
        """An integer expression."""
        chance = self.chance
        roll = chance.random()
        if depth <= 0 or roll < 0.35:
            if chance.random() < 0.35:
                return _number(chance.choice([0, 1, 2, 3, 4, 5, 8, 16, 30, -1, -3, 100]))
            return self._any_variable()
        a, b = self._int(depth - 1), self._int(depth - 1)
        if roll < 0.62:
            return self._arithmetic(chance.choice("++++--**"), a, b)
        if roll < 0.69:
            return self._arithmetic(chance.choice("/%"), a,
                                    _number(chance.choice([1, 2, 3, 4, 7, 8, 20])))  # fmt: skip
        if roll < 0.72:
            return self._arithmetic(chance.choice("/%"), a, self._least("max", b, _number(1)))
        if roll < 0.77:
            by = chance.choice([1, 2, 3, 7])
            operator = chance.choice(["&", "|", "^", "<<", ">>"])
            if operator in "&|^":
                return self._arithmetic(operator, a, _number(by))
            return self._shifted(operator, a, by)
        if roll < 0.82:
            return self._least(chance.choice(["min", "max"]), a, b)
        if roll < 0.85:
            high = chance.choice([3, 9, 50])
            return _E(f"clamp((int)({a.c}), 0, {high})", f"min(max({_as(a, INT)}, 0), {high})", INT)
        if roll < 0.89:
            test, kind = self._condition(depth - 1), _common(a.kind, b.kind)
            return _E(f"({test.c} ? {a.c} : {b.c})",
                      f"({_as(a, kind)} if {test.py} else {_as(b, kind)})", kind)  # fmt: skip
        if roll < 0.93:
            return self._cast(chance.choice(list(TYPES)), a)
        if roll < 0.95:
            return _E(f"(-({a.c}))", _checked(a.kind, f"-{a.py}"), a.kind)
        return self._work_item() if chance.random() < 0.6 else self._read()

    def _work_item(self) -> _E:
        if self.inside:
            return self._any_variable()
        c, py = self.chance.choice([
            ("get_global_id(0)", "g0"), ("get_local_id(0)", "l0"), ("get_group_id(0)", "w0"),
            ("get_global_size(0)", "sizes[0]"), ("get_global_size(1)", "sizes[1]"),
            ("get_num_groups(0)", "groups"), ("get_global_offset(0)", "offset"),
        ])  # fmt: skip
        whole = _E(c, py, ULONG)
        return whole if self.chance.random() < 0.4 else self._cast("int", whole)

    def _condition(self, depth: int) -> _E:
        chance = self.chance
        a, b = self._int(depth - 1), self._int(depth - 1)
        sign, kind = chance.choice(["<", "<", "<=", ">", ">=", "==", "!="]), _common(a.kind, b.kind)
        test = _E(f"({a.c} {sign} {b.c})", f"({_as(a, kind)} {sign} {_as(b, kind)})", INT)
        roll = chance.random()
        if depth > 0 and roll < 0.2:
            other = self._condition(depth - 1)
            c, py = chance.choice([("&&", "and"), ("||", "or")])
            return _E(f"({test.c} {c} {other.c})", f"({test.py} {py} {other.py})", INT)
        return _E(f"!{test.c}", f"(not {test.py})", INT) if roll > 0.93 else test

    def _guard(self) -> _E:
        c, py = self.chance.choice([
            ("g0 >= n", "g0 >= n"), ("g0 > m", "g0 > m"), ("n <= g0", "n <= g0"),
            ("g0 >= n || g1 >= m", "g0 >= n or g1 >= m"), ("n <= g0 + g1", "n <= g0 + g1"),
            ("get_global_id(0) >= n", "g0 >= u64(n)"), ("(uint)g0 >= (uint)n", "g0 >= u32(n)"),
            ("!(g0 < n)", "not (g0 < n)"), ("g0 < 2", "g0 < 2"), ("g0 % 2", "g0 % 2"),
        ])  # fmt: skip
        return _E(c, py, INT)

    # ---- places ----

    def _index(self, write: bool) -> _E:
        """An index: mostly what programs write, of which each work-item has its own."""
        chance = self.chance
        if chance.random() < (0.08 if write else 0.3):
            return self._int(3)
        g0, g1 = self._v("a" if self.inside else "g0"), self._v("b" if self.inside else "g1")
        n, m, s = (self._v(v) for v in (("b", "b", "b") if self.inside else NUMBERS))
        few = _number(chance.choice([1, 2, 3, 5]))
        last = self.names[-1] if self.loops else None
        form = chance.randrange(11)
        if last is not None and chance.random() < 0.5:
            t = self._v(last.name)
            wide = chance.choice([few, n, s, self._cast("int", _E("get_global_size(0)", "sizes[0]",
                                                                  ULONG))])  # fmt: skip
            if self.inside:
                wide = few
            first, second = (g0, t) if chance.random() < 0.4 else (t, g0)
            return self._arithmetic("+", self._arithmetic("*", first, wide), second)
        if form == 0:
            return g0
        if form == 1:
            return self._arithmetic("+", g0, chance.choice([n, m, few]))
        if form == 2:
            return self._arithmetic("+", self._arithmetic("*", g0, few), chance.choice([m, few]))
        if form == 3:
            return self._arithmetic("-", self._arithmetic("-", n, _number(1)), g0)
        if form == 4:
            return self._arithmetic("+", self._arithmetic("*", g1, chance.choice([n, s, few])), g0)
        if form == 5:
            return self._arithmetic("+", self._arithmetic("*", g0, s), m)
        if form == 6 and not self.inside:
            return self._arithmetic("+", _E("get_global_id(0)", "g0", ULONG), m)
        if form == 7 and not self.inside:
            group = _E("get_group_id(0)", "w0", ULONG)
            size = _E("get_local_size(0)", "sizes[2]", ULONG)
            inner = _E("get_local_id(0)", "l0", ULONG)
            return self._arithmetic("+", self._arithmetic("*", group, size), inner)
        if form == 8:
            return self._arithmetic("*", m, self._arithmetic("+", g0, few))
        if form == 9 and not write:
            return self._arithmetic("/", g0, few)
        return self._arithmetic("+", self._arithmetic("*", n, m), g0)

    def _read(self) -> _E:
        p = self.chance.choice(self.pointers)
        i = self._index(False)
        return _E(f"{p.c}[{i.c}]", f"R({p.array}, {p.offset} + {i.py})",
                  _promoted(TYPES[p.element]))  # fmt: skip

    def _write(self) -> tuple[list[str], list[str]]:
        p = self.chance.choice(self.pointers)
        self._writes(p)
        i = self._index(True)
        value = self._read() if self.chance.random() < 0.7 else self._int(1)
        if self.chance.random() < 0.4:
            value = self._arithmetic("^", value, self._int(1))
        kind = TYPES[p.element]
        place = f"{p.array}, {p.offset} + {i.py}"
        if self.chance.random() < 0.2:
            more = _promoted(kind)
            both = _common(more, value.kind)
            old = _E("", f"R({place})", more)
            text = f"{_as(old, both)} ^ {_as(value, both)}"
            return [f"{p.c}[{i.c}] ^= {value.c};"], [f"W({place}, {_wrap(kind, text)})"]
        return [f"{p.c}[{i.c}] = {value.c};"], [f"W({place}, {_wrap(kind, value.py)})"]

    def _writes(self, p: _P) -> None:
        arrays = {"0", "1", "2"} if not p.array.isdigit() else {p.array}
        self.written |= arrays

    # ---- statements ----

    def _fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def _statement(self, depth: int) -> tuple[list[str], list[str]]:
        chance = self.chance
        roll = chance.random()
        if roll < 0.38 or depth <= 0:
            return self._write()
        if roll < 0.50:
            kind, value = chance.choice(["int", "int", "int", *TYPES]), self._int(3)
            if chance.random() < 0.3:
                value = self._read()
            variable = _V(self._fresh("v"), TYPES[kind])
            self.names.append(variable)
            self.changing.append(variable)
            return ([f"{kind} {variable.name} = {value.c};"],
                    [f"{variable.name} = {_wrap(variable.kind, value.py)}"])  # fmt: skip
        if roll < 0.56 and self.changing:
            return self._assignment()
        if roll < 0.63:
            return self._pointer()
        if roll < 0.66 and self.pointers[-1].c.startswith("p") and not self.inside:
            p = self.pointers[-1]
            by = self._int(1)
            return [f"{p.c} += {by.c};"], [f"{p.offset} = moved({p.array}, {p.offset} + {by.py})"]
        if roll < 0.77:
            test = self._condition(2)
            c, py = self._inner(depth - 1)
            c, py = [f"if ({test.c}) {{", *c, "}"], [f"if {test.py}:", *py]
            if chance.random() < 0.4:
                more_c, more_py = self._inner(depth - 1)
                c, py = [*c, "else {", *more_c, "}"], [*py, "else:", *more_py]
            return c, py
        if roll < 0.90:
            return self._loop(depth)
        if roll < 0.92:
            test = self._condition(1)
            result = (" a", " a") if self.inside else ("", "")
            return ([f"if ({test.c}) return{result[0]};"],
                    [f"if {test.py}:", f"    return{result[1]}"])  # fmt: skip
        if roll < 0.95:
            return self._switch(depth)
        return self._write() if self.inside else self._call()

    def _assignment(self) -> tuple[list[str], list[str]]:
        chance = self.chance
        v = chance.choice(self.changing)
        old = _E(v.name, v.name, _promoted(v.kind))
        if chance.random() < 0.4:
            sign = chance.choice("+-")
            more = self._arithmetic(sign, old, _number(1))
            return [f"{v.name}{sign * 2};"], [f"{v.name} = {_wrap(v.kind, more.py)}"]
        value = self._int(2)
        operator = chance.choice(["", "+", "-", "*"])
        more = self._arithmetic(operator, old, value) if operator else value
        return [f"{v.name} {operator}= {value.c};"], [f"{v.name} = {_wrap(v.kind, more.py)}"]

    def _pointer(self) -> tuple[list[str], list[str]]:
        p, by = self.chance.choice(self.pointers), self._int(2)
        name = self._fresh("p")
        new = _P(name, f"{name}_k", f"{name}_o", p.element)
        c, array, offset = p.c, p.array, p.offset
        same = [q for q in self.pointers if q.element == p.element and q.c != p.c]
        if same and self.chance.random() < 0.2:
            q, test = self.chance.choice(same), self._condition(1)
            c = f"({test.c} ? {p.c} : {q.c})"
            py = [f"{name}_k, {name}_o = ({p.array}, {p.offset}) if {test.py} "
                  f"else ({q.array}, {q.offset})"]  # fmt: skip
            array, offset = f"{name}_k", f"{name}_o"
        else:
            py = [f"{name}_k = {array}"]
        py.append(f"{name}_o = moved({array}, {offset} + {by.py})")
        self.pointers.append(new)
        return [f"global {p.element} *{name} = (global {p.element} *){c} + {by.c};"], py

    def _inner(self, depth: int) -> tuple[list[str], list[str]]:
        """Statements whose declarations are not seen outside."""
        kept = len(self.names), len(self.changing), len(self.pointers)
        c: list[str] = []
        py: list[str] = []
        for _ in range(self.chance.randrange(1, 3)):
            more_c, more_py = self._statement(depth)
            c += more_c
            py += more_py
        del self.names[kept[0] :], self.changing[kept[1] :], self.pointers[kept[2] :]
        return c, [f"    {line}" for line in py]

    def _switch(self, depth: int) -> tuple[list[str], list[str]]:
        value = self._cast("int", self._int(1))
        bodies = [self._inner(depth - 1) for _ in range(3)]
        name = self._fresh("w")
        c = [f"switch ({value.c}) {{"]
        py = [f"{name} = {value.py}"]
        for label, word, (more_c, more_py) in zip(
            ("case 0", "case 1", "default"), (f"if {name} == 0:", f"elif {name} == 1:", "else:"),
            bodies, strict=True,
        ):  # fmt: skip
            c += [f"{label}: {{", *more_c, "} break;"]
            py += [word, *more_py]
        return [*c, "}"], py

    def _loop(self, depth: int) -> tuple[list[str], list[str]]:
        chance, name = self.chance, self._fresh("t")
        kind = chance.choice(["int", "int", "int", "uint", "long"])
        variable = _V(name, TYPES[kind])
        first, second, third = ("a", "b", "a") if self.inside else ("n", "m", "s")
        item = self._v("a" if self.inside else "g0")
        small = self._arithmetic("%", self._int(1), _number(7))
        start = chance.choice([_number(0), _number(0), item, small])
        stop = chance.choice([self._v(first), self._v(second), _number(4), item, small])
        by = chance.choice([_number(1), _number(1), _number(3), self._least(
            "max", self._v(third), _number(1)), _E("get_global_size(0)", "sizes[0]", ULONG)
            if not self.inside else _number(2)])  # fmt: skip
        down = chance.random() < 0.2
        if down:
            start, stop, by = stop, start, _number(1)
        kept = list(self.names), list(self.changing)
        self.names.append(variable)
        self.loops += 1
        counter = _E(name, name, _promoted(variable.kind))
        if chance.random() < 0.15:
            self.changing.append(variable)
        body_c, body_py = self._inner(depth - 1)
        skip = self._condition(1) if chance.random() < 0.3 else None
        self.loops -= 1
        self.names, self.changing = kept
        kind_of = _common(counter.kind, stop.kind)
        sign = ">" if down else "<"
        test_py = f"{_as(counter, kind_of)} {sign} {_as(stop, kind_of)}"
        test_c = f"{name} {sign} {stop.c}"
        more = self._arithmetic("-" if down else "+", counter, by)
        step_py = f"{name} = {_wrap(variable.kind, more.py)}"
        step_c = f"{name} {'-' if down else '+'}= {by.c}"
        start_py = f"{name} = {_wrap(variable.kind, start.py)}"
        begin = [start_py]
        roll = chance.random()
        out_c: list[str] = []
        out_py: list[str] = []
        if skip is not None and roll < 0.7 and chance.random() < 0.5:
            out_c = [f"if ({skip.c}) continue;"]
            out_py = [f"    if {skip.py}:", f"        {step_py}", "        continue"]
        elif skip is not None:
            out_c, out_py = [f"if ({skip.c}) break;"], [f"    if {skip.py}:", "        break"]
        if roll < 0.7:
            c = [f"for ({kind} {name} = {start.c}; {test_c}; {step_c}) {{", *out_c, *body_c, "}"]
            return c, [*begin, f"while {test_py}:", "    turn()", *out_py, *body_py,
                       f"    {step_py}"]  # fmt: skip
        c = [f"{kind} {name} = {start.c};"]
        if roll < 0.85:
            c += [f"while ({test_c}) {{", *out_c, *body_c, f"{step_c};", "}"]
            return c, [*begin, f"while {test_py}:", "    turn()", *out_py, *body_py,
                       f"    {step_py}"]  # fmt: skip
        c += ["do {", *out_c, *body_c, f"{step_c};", f"}} while ({test_c});"]
        return c, [*begin, "while True:", "    turn()", *out_py, *body_py, f"    {step_py}",
                   f"    if not ({test_py}):", "        break"]  # fmt: skip

    def _call(self) -> tuple[list[str], list[str]]:
        """A helper, and a call of it."""
        name = f"{self._fresh('helper')}_{self.name}"
        p = self.chance.choice(self.pointers)
        outer = self.names, self.changing, self.pointers, self.loops
        a, b = _V("a", INT), _V("b", INT)
        self.names, self.changing = [a, b], [a]
        self.pointers, self.inside, self.loops = [_P("q", "k", "o", p.element)], True, 0
        c: list[str] = []
        py: list[str] = []
        for _ in range(2):
            more_c, more_py = self._statement(1)
            c += more_c
            py += more_py
        result = self._int(2)
        (self.names, self.changing, self.pointers, self.loops), self.inside = outer, False
        head = f"int {name}(global {p.element} *q, int a, int b)"
        self.helpers_c.append(
            f"{head}\n{{\n    " + "\n    ".join([*c, f"return {result.c};"]) + "\n}"
        )
        self.helpers_py += [f"def {name}(k, o, a, b):", *(f"    {line}" for line in py),
                            f"    return {_wrap(INT, result.py)}"]  # fmt: skip
        first = self._v(self.chance.choice(["g0", "g0", self.chance.choice(self.names).name]))
        second = self._int(1)
        value = _V(self._fresh("v"), INT)
        self.names.append(value)
        self.changing.append(value)
        return (
            [f"int {value.name} = {name}((global {p.element} *){p.c}, {first.c}, {second.c});"],
            [f"{value.name} = {name}({p.array}, {p.offset}, {_as(first, INT)}, "
             f"{_as(second, INT)})"],
        )  # fmt: skip


# ---- what it means -------------------------------------------------------------------------------


def _checking(bits: int) -> Callable[[int], int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def checked(value: int) -> int:
        if low <= value <= high:
            return value
        raise Undefined("signed overflow")

    return checked


def _wrapping(bits: int) -> Callable[[int], int]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda value: ((value + half) & mask) - half


def _masking(bits: int) -> Callable[[int], int]:
    mask = (1 << bits) - 1
    return lambda value: value & mask


def _quotient(a: int, b: int) -> int:
    if not b:
        raise Undefined("a division by zero")
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


def _positive(value: int) -> int:
    if value < 0:
        raise Undefined("a negative number is shifted")
    return value


_MEANING: dict[str, Any] = {
    **{f"c{bits}": _wrapping(bits) for bits in (16, 32, 64)},
    **{f"u{bits}": _masking(bits) for bits in (8, 32, 64)},
    "s32": _checking(32), "s64": _checking(64), "quotient": _quotient, "remainder": _remainder,
    "positive": _positive,
}  # fmt: skip


class View(NamedTuple):
    """Elements `low` on, `count` of them, of a base: its number and its values."""

    base: int
    values: list[int]
    low: int
    count: int


class Touched(NamedTuple):
    """The elements of each base that a launch reads and writes."""

    reads: dict[int, set[int]]
    writes: dict[int, set[int]]


class Oracle:
    """Runs one kernel."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._meaning = dict(_MEANING, R=self._read, W=self._write, turn=self._turn,
                             moved=self._moved)  # fmt: skip
        exec(compile(text.python, f"<{text.name}>", "exec"), self._meaning)
        self._views: Sequence[Any] = ()
        self._item = 0
        self._steps = 0
        self._undo: list[tuple[list[int], int, int]] = []

    def run(
        self, views: Sequence[View], numbers: Sequence[int], sizes: tuple[int, int], local: int,
        offset: tuple[int, int],
    ) -> Touched:  # fmt: skip
        """Run a launch on the values of its views, and say what it touched. Raises `Undefined`, and
        the values are as they were."""
        readers: dict[int, dict[int, int]] = {}
        writers: dict[int, dict[int, int]] = {}
        for one in views:
            readers.setdefault(one.base, {})
            writers.setdefault(one.base, {})
        self._views = [
            (one.values, one.low, one.count, readers[one.base], writers[one.base]) for one in views
        ]
        self._steps, self._undo = 0, []
        item = self._meaning["item"]
        groups = sizes[0] // local
        try:
            for g1 in range(offset[1], offset[1] + sizes[1]):
                for at in range(sizes[0]):
                    self._item += 1
                    item(offset[0] + at, g1, *numbers, at % local, at // local, (*sizes, local),
                         groups, offset[0])  # fmt: skip
        except Undefined:
            for values, index, old in reversed(self._undo):
                values[index] = old
            raise
        return Touched(
            {base: set(some) for base, some in readers.items()},
            {base: set(some) for base, some in writers.items()},
        )

    def _turn(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Undefined("it takes too long")

    def _read(self, array: int, index: int) -> int:
        values, low, count, readers, writers = self._views[array]
        if not 0 <= index < count:
            raise Undefined("an element outside of the view")
        index += low
        item = self._item
        if writers.get(index, item) != item:
            raise Undefined("one work-item reads what another writes")
        if readers.setdefault(index, item) != item:
            readers[index] = -1  # several
        self._turn()
        return values[index]  # type: ignore[no-any-return]

    def _write(self, array: int, index: int, value: int) -> None:
        values, low, count, readers, writers = self._views[array]
        if not 0 <= index < count:
            raise Undefined("an element outside of the view")
        index += low
        item = self._item
        if writers.setdefault(index, item) != item:
            raise Undefined("two work-items write an element")
        if readers.get(index, item) != item:
            raise Undefined("one work-item writes what another reads")
        self._turn()
        self._undo.append((values, index, values[index]))
        values[index] = value

    def _moved(self, array: int, index: int) -> int:
        if not 0 <= index <= self._views[array][2]:
            raise Undefined("a pointer outside of its view")
        return index
