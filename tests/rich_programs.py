"""Random kernels with vectors, structures, arrays and loops of all kinds, which can be recorded.

In: a seed. Out: the text of a kernel, as `affine_programs` writes them, with more parameters: a
vector and a structure that are passed by value. Its variables are vectors, structures and arrays,
too, which are copied, changed by parts, given to helpers, and sometimes reached by address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from affine_programs import ARRAYS, NUMBERS, PLAIN, RECORDING, Writer

TYPES = """
typedef struct { int a, b; } Pair;
typedef struct { short s; int t[3]; Pair p; uchar c; int2 v; long l; } Many;
typedef struct __attribute__((packed)) { uchar c; int a; short s; } Packed;
typedef union { int i; short s[2]; } Either;
"""
RECORDING_FORM = TYPES + RECORDING
MORE = ", int2 v, uint4 u, Many k"
VALUES = {"v": "i4", "u": "u4"}
MANY = np.dtype(
    {"names": ["s", "t", "p", "c", "v", "l"],
     "formats": ["i2", ("i4", 3), ("i4", 2), "u1", ("i4", 2), "i8"],
     "offsets": [0, 4, 16, 24, 32, 40], "itemsize": 48}
)  # fmt: skip
_LANES = "xyzw"


def values(chance: Any) -> tuple[list[Any], dict[str, int]]:
    """Return what a launch is given besides arrays and numbers, and the numbers in it by name."""

    def small() -> int:
        return int(chance.choice([0, 1, 2, 3, 5, 8, 17, 40, -1, -6]))

    v = np.array([small(), small()], "i4")
    u = np.array([abs(small()) for _ in range(4)], "u4")
    k = np.zeros((), MANY)
    k["s"], k["c"], k["l"] = small(), abs(small()), small()
    k["t"], k["p"], k["v"] = [small() for _ in range(3)], [small(), small()], [small(), small()]
    found = {f"v.{_LANES[at]}": int(v[at]) for at in range(2)}
    found |= {f"u.{_LANES[at]}": int(u[at]) for at in range(4)}
    found |= {f"k.{name}": int(k[name]) for name in "scl"}
    found |= {f"k.t[{at}]": int(k["t"][at]) for at in range(3)}
    found |= {f"k.p.{name}": int(k["p"][at]) for at, name in enumerate("ab")}
    found |= {f"k.v.{name}": int(k["v"][at]) for at, name in enumerate("xy")}
    return [v, u, k], found


class RichWriter(Writer):
    """Writes one kernel."""

    def start(self) -> None:
        super().start()
        self.vectors = [("v", "int", 2), ("u", "uint", 4)]
        self.pairs = ["k.p"]
        self.manies = ["k"]
        self.arrays_of_three = ["k.t"]
        self.names += ["v.x", "v.y", "u.z", "k.t[1]", "k.p.a", "k.c", "k.v.y", "k.l"]
        self.changing += ["v.x", "u.y", "k.t[0]", "k.p.b", "k.s"]

    def kernel(self) -> str:
        text = super().kernel()
        arrays = ", ".join(f"global int *{name}" for name in ARRAYS)
        numbers = ", ".join(f"int {name}" for name in NUMBERS)
        head = f"kernel void k{self.seed}({arrays}, {numbers}"
        return text.replace(head, head + MORE)

    def statement(self, depth: int) -> str:
        chance = self.chance
        if self.inside or chance.random() < 0.45 or depth <= 0:
            return super().statement(depth)
        return chance.choice([
            self._vector, self._vector, self._vector, self._change_vector, self._change_vector,
            self._pair, self._change_pair, self._many, self._array, self.by_address,
            self._helper_of_values, self._row, self._count, self._count, self._count, self._move,
            self._rows, self._rows,
        ])(depth)  # fmt: skip

    def integer(self, depth: int) -> str:
        chance = self.chance
        if chance.random() < 0.85 or self.inside:
            return super().integer(depth)
        a, b = super().integer(depth - 1), super().integer(depth - 1)
        name, _, many = chance.choice(self.vectors)
        return chance.choice([
            f"abs((int)({a}))",
            f"select((int)({a}), (int)({b}), (int)({self._condition(0)}))",
            f"mul24((int)({a}) & 255, (int)({b}) & 63)",
            f"mad24((int)({a}) & 255, 3, (int)({b}))",
            f"convert_int({a})",
            f"{name}[{chance.randrange(many)}]",
            f"{name}.{_LANES[chance.randrange(many)]}",
            f"({name} + ({self._type_of(name)})({chance.randrange(3)})).x",
            f"{chance.choice(self.arrays_of_three)}[(uint)({a}) % 3]",
            f"{chance.choice(self.arrays_of_three)}[{chance.randrange(3)}]",
            f"{chance.choice(self.pairs)}.{chance.choice('ab')}",
        ])  # fmt: skip

    def _type_of(self, name: str) -> str:
        return next(f"{kind}{many}" for own, kind, many in self.vectors if own == name)

    def _vector_value(self, kind: str, many: int) -> str:
        chance = self.chance
        parts = ", ".join(f"({kind})({self.integer(1)})" for _ in range(many))
        like = [name for name, own, count in self.vectors if (own, count) == (kind, many)]
        other = [name for name, own, count in self.vectors if own == kind and count >= many]
        swizzle = "".join(chance.choice(_LANES[:2]) for _ in range(many))
        options = [f"({kind}{many})({parts})", f"({kind}{many})(({kind})({self.integer(1)}))"]
        if other:
            options.append(f"{chance.choice(other)}.{swizzle}")
            if many == 4:
                one = chance.choice(other)
                options.append(f"({kind}4)({one}.hi, {one}.s01)")
        if like:
            one, two = chance.choice(like), chance.choice(like)
            options += [
                one, f"({one} {chance.choice('+-*')} {two})", f"(-{one})",
                f"({one} + ({kind})({self.integer(1)}))", f"min({one}, {two})",
                f"clamp({one}, ({kind}{many})(0), ({kind}{many})({chance.randrange(1, 20)}))",
                f"({self._condition(1)} ? {one} : {two})", f"(({one} + {two}).{_LANES[1::-1]}"
                + f"{_LANES[2:many]})",
            ]  # fmt: skip
        different = [name for name, own, count in self.vectors if count == many and own != kind]
        if different:
            options.append(f"convert_{kind}{many}({chance.choice(different)})")
        return chance.choice(options)

    def _vector(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("q")
        kind = chance.choice(["int", "int", "int", "uint", "short", "uchar", "long"])
        many = chance.choice([2, 2, 3, 4])
        value = self._vector_value(kind, many)
        if chance.random() < 0.2:
            value = "{" + ", ".join(f"({kind})({self.integer(1)})" for _ in range(many)) + "}"
        self.vectors.append((name, kind, many))
        for lane in _LANES[:many]:
            self.names.append(f"{name}.{lane}")
            self.changing.append(f"{name}.{lane}")
        return f"{kind}{many} {name} = {value};"

    def _change_vector(self, depth: int) -> str:
        chance = self.chance
        name, kind, many = chance.choice(self.vectors)
        return chance.choice([
            f"{name} = {self._vector_value(kind, many)};",
            f"{name} {chance.choice(['+=', '-=', '*='])} {self._vector_value(kind, many)};",
            f"{name}.xy = {name}.yx;",
            f"{name}.s{chance.randrange(many)} = {self.integer(1)};",
            f"{name}.{_LANES[chance.randrange(many)]}++;",
            f"{name}++;",
            f"{name}[{chance.randrange(many)}] = {self.integer(1)};",
            f"{name}[(uint)({self.integer(1)}) % {many}] = {self.integer(1)};",
            f"{name}.lo = ({kind}{2 if many > 2 else ''})({self.integer(1)});"
            if many != 3 else f"{name}.even.x = {self.integer(1)};",
            f"if ({self._condition(1)}) {name}.y = {self.integer(1)};",
        ])  # fmt: skip

    def _pair(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("w")
        value = chance.choice(
            [f"{{{self.integer(1)}, {self.integer(1)}}}", chance.choice(self.pairs),
             f"{{.b = {self.integer(1)}, .a = {self.integer(1)}}}", f"{{{self.integer(1)}}}"]
        )  # fmt: skip
        self.pairs.append(name)
        self.names += [f"{name}.a", f"{name}.b"]
        self.changing += [f"{name}.a", f"{name}.b"]
        return f"Pair {name} = {value};"

    def _change_pair(self, depth: int) -> str:
        one, other = self.chance.choice(self.pairs), self.chance.choice(self.pairs)
        return f"{one} = {other};" if one != other else f"{one}.a = {self.integer(1)};"

    def _many(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("m")
        of = chance.choice(self.manies)
        self.manies.append(name)
        self.pairs.append(f"{name}.p")
        self.arrays_of_three.append(f"{name}.t")
        self.names += [f"{name}.s", f"{name}.v.x", f"{name}.t[2]"]
        self.changing += [f"{name}.s", f"{name}.v.y", f"{name}.t[2]", f"{name}.c"]
        if chance.random() < 0.3:
            packed = self._fresh("packed")
            self.names += [f"{packed}.a", f"{packed}.s"]
            parts = ", ".join(self.integer(1) for _ in range(3))
            return f"Many {name} = {of}; Packed {packed} = {{{parts}}};"
        return f"Many {name} = {of};"

    def _array(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("t")
        text = f"int {name}[3] = {{{self.integer(1)}, {self.integer(1)}, {self.integer(1)}}};"
        self.arrays_of_three.append(name)
        self.names.append(f"{name}[1]")
        self.changing.append(f"{name}[2]")
        if chance.random() < 0.4:
            text += f" {name}[(uint)({self.integer(1)}) % 3] = {self.integer(1)};"
        return text

    def by_address(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("o")
        return chance.choice([
            f"int *{name} = &{chance.choice(self.pairs)}.b; *{name} = {self.integer(1)};",
            f"int *{name} = {chance.choice(self.arrays_of_three)}; {name}[1] += {self.integer(1)};",
            f"*(&{chance.choice(self.arrays_of_three)}[1] + 1) = {self.integer(1)};",
            f"Either {name}; {name}.i = {self.integer(1)}; {name}.s[0] = 1; "
            f"{chance.choice(self.changing)} = {name}.i & 63;",
            f"{{ Pair *{name} = &{chance.choice(self.pairs)}; {name}->a = {self.integer(1)}; }}",
            f"{{ global int *{name} = x; vstore2((int2)({self.integer(1)}), 0, "
            f"(int *)&{chance.choice(self.pairs)}); }}",
        ])  # fmt: skip

    def _helper_of_values(self, depth: int) -> str:
        chance = self.chance
        name = self._fresh("given") + f"_{self.seed}"
        result = self._fresh("q")
        self.helpers.append(chance.choice([
            f"int2 {name}(int2 a, Pair b) {{ if (a.x > b.a) return a.yx; a.x += b.b; b.a = a.y; "
            f"return a + (int2)(b.a, {chance.randrange(9)}); }}",
            f"int2 {name}(int2 a, Pair b) {{ for (int i = 0; i < 3; i++) {{ if (a.y > 20) break; "
            f"a += (int2)(b.a & 7, {chance.randrange(4)}); b.b++; }} return (int2)(a.x, b.b); }}",
            f"int2 {name}(int2 a, Pair b) {{ Pair c = b; c.a = a.x; b = c; return (int2)(b.a, c.b)"
            f".{chance.choice(['xy', 'yx', 'xx'])}; }}",
            f"int2 {name}(int2 a, Pair b) {{ Pair *c = &b; c->a = 4; int2 d; d.x = b.a; "
            f"d.y = a.y; return d; }}",
        ]))  # fmt: skip
        one = [own for own, kind, many in self.vectors if (kind, many) == ("int", 2)]
        text = f"int2 {result} = {name}({chance.choice(one)}, {chance.choice(self.pairs)});"
        self.vectors.append((result, "int", 2))
        self.names += [f"{result}.x", f"{result}.y"]
        return text

    def _row(self, depth: int) -> str:
        array, name = self.chance.choice(ARRAYS), self._fresh("p")
        vector, _, _ = self.chance.choice(self.vectors)
        self.pointers.append((name, array))
        return f"global int *{name} = {array} + {vector}.y * {self.chance.choice([4, 16, 20])};"

    def _move(self, depth: int) -> str:
        """A pointer that is set to another place."""
        chance = self.chance
        name, array = chance.choice(self.pointers)
        return chance.choice([
            f"{name} += {chance.choice([1, 2, 4, -1])};", f"{name}++;",
            f"W({array}, {name}, 0, {self.integer(1)}); {name} = {name} + {chance.randrange(3)};",
        ])  # fmt: skip

    def _count(self, depth: int) -> str:
        """A loop that is no plain `for`."""
        chance = self.chance
        one, two, left = self._fresh("c"), self._fresh("d"), self._fresh("left")
        kept = [list(part) for part in self.scopes()]
        kind = chance.choice(["int", "int", "uint", "long", "short", "uchar", "size_t"])
        start = chance.choice(["0", "0", "g0", "g1", "v.x", f"({self.integer(1)} % 5)"])
        end = chance.choice(["n", "m", "u.x", "k.t[1]", "7", "g0"])
        by = chance.choice(["1", "1", "2", "3", "max(s, 1)", "get_global_size(0)", "k.p.a",
                            "get_local_size(0)"])  # fmt: skip
        moves = []
        if chance.random() < 0.5:
            name, _ = chance.choice(self.pointers)
            moves.append(f"{name} += {chance.choice(['1', '2', by, '-1', 'v.y'])};")
        if chance.random() < 0.4:
            moves.append(f"{chance.choice(self.changing)} += {chance.choice(['1', '3', by])};")
        declared = f"{kind} {one} = {start}; int {two} = {chance.choice(self.names)};"
        self.names += [one, two]
        inside = self.inner(depth - 1)[2:-2]
        spots = [inside, f"{two} += {chance.choice(['1', '2', by])};", *moves]
        chance.shuffle(spots)
        out = chance.choice(["", "", "", f"if ({self._condition(1)}) break;",
                             f"if ({self._condition(1)}) continue;"])  # fmt: skip
        spots.insert(chance.randrange(len(spots) + 1), out)
        more = chance.choice(["", f"{two} += 2;", *moves])
        body, guard = " ".join(spots), f"if (--{left} < 0) break;"
        text = chance.choice([
            f"for (; {one} < {end}; {one} += {by}) {{ {guard} {body} }}",
            f"for (; {one} < {end}; {one}++, {two} -= 2) {{ {guard} {body} }}",
            f"for (; {one} + 4 <= {end}; {one} += 4) {{ {guard} {body} }} "
            f"for (; {one} < {end}; {one}++) {{ {guard} {body} }}",
            f"for (; {one} != {end}; ++{one}) {{ {guard} {body} }}",
            f"for ({one} = {end}; {one} > 0; {one} >>= 1) {{ {guard} {body} }}",
            f"for ({one} = 1; {one} < {end}; {one} *= 2) {{ {guard} {body} }}",
            f"for ({one} = 1; {one} <= {end}; {one} <<= 1) {{ {guard} {body} }}",
            f"for (;;) {{ if ({one} >= {end}) break; {guard} {body} {one} += {by}; }}",
            f"while ({one}-- > 0) {{ {guard} {body} }}",
            f"while ({one}--) {{ {guard} {body} }}",
            f"while ({one} < {end}) {{ {guard} {body} {one} = {one} + {by}; }}",
            f"while ({one} < {end}) {{ {guard} {one}++; {body} }}",
            f"do {{ {guard} {body} {one} += {by}; }} while ({one} < {end});",
            f"do {{ {guard} {body} }} while (--{one} > 0);",
            f"do {{ {guard} {body} }} while ({one}++ < {end});",
            f"for (; {one} < {end}; ) {{ {guard} {body} {one} += {by}; }}",
            # that end in the middle of a turn
            f"for (;; {one} += {by}) {{ {guard} {body} if ({one} >= {end}) break; {more} }}",
            f"do {{ {guard} {body} {one} += {by}; if ({one} >= {end}) {{ {more} break; }} "
            f"{more} }} while (true);",
            f"do {{ {guard} if ({one} >= {end}) break; {more} {one} += {by}; {body} }} "
            f"while ({one} != {end} + 3);",
            f"while (1) {{ {guard} {body} {one} += 1; if ({one} + 2 > {end}) break; "
            f"if ({two} < {one}) break; {one} += {by}; {more} }}",
        ])  # fmt: skip
        for scope, old in zip(self.scopes(), kept, strict=True):
            scope[:] = old
        self.names += [one, two]
        return f"{declared} int {left} = 40; {text}"

    def _rows(self, depth: int) -> str:
        """Loops in loops that nothing but their conditions ends."""
        chance = self.chance
        one, two, j = self._fresh("e"), self._fresh("f"), self._fresh("j")
        kept = [list(part) for part in self.scopes()]
        name, array = chance.choice(self.pointers)
        bound = chance.choice(["3", "4", "(n & 3)", "(u.x & 3)", one, "(g0 & 3)", "0"])
        declared = f"int {j} = {chance.choice(self.names)};"
        self.names += [j, one]
        inner = chance.choice([
            f"for (int {two} = 0; {two} < {bound}; {two}++)",
            f"for (int {two} = {bound}; {two} > 0; {two} -= 2)",
            f"int {two} = 0; for (; {two} != {bound}; {two} += 1)",
            f"int {two} = {bound}; while ({two}-- > 0)",
            f"for (int {two} = 1; {two} <= {bound}; {two} *= 2)",
        ])  # fmt: skip
        move = chance.choice(
            [
                f"{name}++;",
                f"{name} += {chance.choice([2, 4, 'v.x'])};",
                f"{j} += {chance.choice([1, 2, 'k.c'])};",
                f"{j}++; {name} += 3;",
                f"{j} += 2; {name}++; {j} -= 1; {name} += {chance.choice([1, 2, 'k.c'])};",
            ]
        )
        again = chance.choice(
            [
                "",
                f"{name} += {chance.choice([1, 4, 7, '-2'])};",
                f"{j} += 5;",
                f"if (g0 > 3) {name} += 2;",
                f"{j} = {j} + {one};",
            ]
        )
        touch = f"W({array}, {name}, {chance.choice(['0', j, one])}, {self.integer(1)});"
        skips = chance.choice(["", "", "", f"if (({one} & 1) == 0) continue;"])
        after = chance.choice(["", f"W({array}, {name}, {j}, 1);"])
        for scope, old in zip(self.scopes(), kept, strict=True):
            scope[:] = old
        self.names.append(j)
        return (
            f"{declared} for (int {one} = 0; {one} < {chance.choice(['2', '3', '(m & 3)'])}; "
            f"{one}++) {{ {skips} {inner} {{ {touch} {move} }} {again} {after} }}"
        )

    def scopes(self) -> tuple[list[Any], ...]:
        return (self.names, self.changing, self.pointers, self.vectors, self.pairs, self.manies,
                self.arrays_of_three)  # fmt: skip

    def inner(self, depth: int) -> str:
        kept = [list(part) for part in self.scopes()]
        text = super().inner(depth)
        for scope, old in zip(self.scopes(), kept, strict=True):
            scope[:] = old
        return text

    block = inner


WRITER = RichWriter


def plain_form(kernel: str) -> str:
    """Return the text that is inferred from."""
    return TYPES + PLAIN + kernel
