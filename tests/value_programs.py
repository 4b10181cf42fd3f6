"""Random kernels whose values are of all types: read, changed, passed and returned by parts.

In: a seed. Out: the text of a kernel, as `rich_programs` writes them. Each variable has a type of
`TYPES`, and whatever is in it can be read and changed: members, elements, components. Helpers get
such values as they are, by address and as arrays, and give some back. Pointers to global memory
are kept in structures and arrays, too.
"""

# Long because: a generator has a rule for each form of the language.

from __future__ import annotations

from typing import Any, NamedTuple

import rich_programs as rich
from affine_programs import ARRAYS, PLAIN, RECORDING

TYPES = (
    rich.TYPES
    + """
typedef int Four[4];
typedef int Rows[2][3];
typedef Pair Pairs[2];
typedef struct { Pair q[2]; int4 w; struct { int d, e; }; } Deep;
typedef struct { int a; union { int f; short g[2]; }; Pair p; } Mixed;
typedef struct { struct { float f; union { int i; } w; } u; int a, b; } Under;
typedef struct { int k; global int *p; int j; global int *r[2]; } Hold;
typedef global int *Place;
typedef Place Places[2];
typedef struct { Rows t; Deep d; char c; } Large;
"""
)
RECORDING_FORM = TYPES + RECORDING


def plain_form(kernel: str) -> str:
    """The text that is inferred from. It has no union that is not used: with one, no structure
    can be followed that has a pointer."""
    lines = [line for line in TYPES.splitlines() if "union" not in line or any(
        name in kernel for name in ("Either", "Mixed", "Under") if name in line)]  # fmt: skip
    return "\n".join([*lines, PLAIN, kernel])


_INTS = ("int", "uint", "short", "uchar", "long", "char", "ushort")
_VECTORS = {
    "int2": ("int", 2), "int3": ("int", 3), "int4": ("int", 4), "uint2": ("uint", 2),
    "short4": ("short", 4), "uchar2": ("uchar", 2), "long2": ("long", 2), "int8": ("int", 8),
    "uint4": ("uint", 4), "char4": ("char", 4),
}  # fmt: skip
_RECORDS = {
    "Pair": {"a": "int", "b": "int"},
    "Many": {"s": "short", "t": "int[3]", "p": "Pair", "c": "uchar", "v": "int2", "l": "long"},
    "Packed": {"c": "uchar", "a": "int", "s": "short"},
    "Either": {"i": "int", "s": "short[2]"},
    "Deep": {"q": "Pairs", "w": "int4", "d": "int", "e": "int"},
    "Mixed": {"a": "int", "f": "int", "g": "short[2]", "p": "Pair"},
    "Under": {"a": "int", "b": "int"},
    "Hold": {"k": "int", "j": "int"},
    "Large": {"t": "Rows", "d": "Deep", "c": "char"},
}
_LISTS = {"Four": ("int", 4), "Rows": ("int[3]", 2), "Pairs": ("Pair", 2), "int[3]": ("int", 3),
          "short[2]": ("short", 2)}  # fmt: skip
_LETTERS = "xyzw"


def _below(kind: str, has_address: bool = False) -> frozenset[str]:
    """The types of what is in a type, itself among them; of what has an address, if asked."""
    inner: list[str] = []
    if kind in _RECORDS:
        inner = list(_RECORDS[kind].values())
    elif kind in _LISTS:
        inner = [_LISTS[kind][0]]
    found = frozenset({kind}).union(*(_below(one, has_address) for one in inner))
    if kind in _VECTORS and not has_address:
        element, count = _VECTORS[kind]
        found |= {element, *(name for name, (one, many) in _VECTORS.items()
                             if one == element and many < count)}  # fmt: skip
    return found


_TYPES = (*_INTS, *_VECTORS, *_RECORDS, *_LISTS)
_BELOW = {has: {kind: _below(kind, has) for kind in _TYPES} for has in (False, True)}


class Value(NamedTuple):
    """A place in a variable: how it is written, its type, and whether it has an address."""

    c: str
    type: str
    has_address: bool = True


class Helper(NamedTuple):
    """A function of a program. `array`: what its pointer to global memory points into."""

    name: str
    takes: tuple[tuple[str, str], ...]  # types, and how they are taken: `value`, `address`, `list`
    gives: str
    array: str


class ValueWriter(rich.RichWriter):
    """Writes one kernel."""

    def start(self) -> None:
        super().start()
        self.values = [Value("v", "int2"), Value("u", "uint4"), Value("k", "Many")]
        self.known: list[Helper] = []
        self.holds: list[tuple[str, str]] = []
        self.depth = 0
        self.is_plain = False
        self.has_unions = self.seed % 4 == 0
        self.has_asides = self.seed % 8 == 1

    def scopes(self) -> tuple[list[Any], ...]:
        return (*super().scopes(), self.values, self.holds)

    # ---- places ----

    def place(self, kind: str, has_address: bool = False) -> Value | None:
        """A place of a type, in any variable. None: there is none."""
        some = [one for one in self.values if kind in _BELOW[has_address][one.type]]
        if not some:
            return None
        found = self.chance.choice(some)
        while found.type != kind:
            found = self._inner(found, kind, has_address)
        return found

    def _inner(self, of: Value, kind: str, has_address: bool) -> Value:
        """A part of a place that has a type in it."""
        chance = self.chance
        if of.type in _VECTORS:
            return self._component(of, kind)
        if of.type in _RECORDS:
            members = [(name, one) for name, one in _RECORDS[of.type].items()
                       if kind in _BELOW[has_address][one]]  # fmt: skip
            name, one = chance.choice(members)
            return Value(f"{of.c}.{name}", one)
        element, count = _LISTS[of.type]
        at = chance.randrange(count)
        return Value(chance.choice([
            *[f"{of.c}[{at}]"] * 4, f"(*({of.c} + {at}))", f"{at}[{of.c}]",
            f"{of.c}[(uint)({self.number()}) % {count}]",
        ]), element)  # fmt: skip

    def _component(self, of: Value, kind: str) -> Value:
        """Components of a vector."""
        chance = self.chance
        _, count = _VECTORS[of.type]
        if kind in _VECTORS:
            lanes = "".join(chance.sample("01234567"[:count], _VECTORS[kind][1]))
            letters = "".join(_LETTERS[int(lane)] for lane in lanes) if count <= 4 else ""
            forms = [f"{of.c}.s{lanes}", f"{of.c}.{letters or 's' + lanes}"]
            if 2 * _VECTORS[kind][1] == count:
                forms += [f"{of.c}.{name}" for name in ("lo", "hi", "odd", "even")]
            return Value(chance.choice(forms), kind, False)
        at = chance.randrange(count)
        forms = [f"{of.c}.s{at:x}", f"{of.c}[{at}]"]
        if count <= 4:
            forms += [f"{of.c}.{_LETTERS[at]}"] * 3
            forms.append(f"{of.c}.{_LETTERS[:count][::-1]}.s{count - 1 - at}")
        if count in (4, 8):
            half = count // 2
            forms.append(f"{of.c}.{'lo' if at < half else 'hi'}.s{at % half}")
            forms.append(f"{of.c}.{'odd' if at % 2 else 'even'}.s{at // 2}")
        return Value(chance.choice(forms), kind, False)

    def number(self) -> str:
        """A plain number, or a variable's name."""
        return self.chance.choice([*self.names, "1", "2"])

    def by_address(self, depth: int) -> str:
        text = super().by_address(depth)
        return text if self.has_unions or "Either" not in text else self._by_pointer(depth)

    def helped(self) -> str:
        self.is_plain = True
        text = super().helped()
        self.is_plain = False
        return text

    # ---- values ----

    def value(self, kind: str, depth: int = 1) -> str:
        """An expression of a type."""
        chance = self.chance
        own = self.place(kind)
        calls = [one for one in self.known if one.gives == kind]
        if calls and depth > 0 and chance.random() < 0.25:
            text = self.call(chance.choice(calls), depth - 1)
            if text is not None:
                return text
        if kind in _LISTS:
            raise ValueError(kind)
        if own is not None and (depth <= 0 or chance.random() < 0.45):
            return own.c
        if kind in _INTS:
            return f"({kind})({self.integer(depth)})"
        if own is not None and chance.random() < 0.3:
            other = self.place(kind) or own
            more = [f"({self._condition(0)} ? {own.c} : {other.c})",
                    f"({self.integer(0)}, {own.c})",
                    f"({{ {kind} one = {own.c}; one; }})"]  # fmt: skip
            if kind in _VECTORS:
                more += [f"({own.c} {chance.choice('+-*&')} {other.c})", f"min({own.c}, {other.c})",
                         f"(-{own.c})", f"({own.c} + ({_VECTORS[kind][0]})({self.integer(0)}))",
                         f"({own.c} << ({kind})({chance.choice([0, 1, 2])}))"]  # fmt: skip
            return chance.choice(more)
        return self.made(kind, depth)

    def made(self, kind: str, depth: int) -> str:
        """A value of a type that is made of its parts."""
        chance = self.chance
        if kind in _VECTORS:
            element, count = _VECTORS[kind]
            roll = chance.random()
            same = [name for name, (_, many) in _VECTORS.items() if many == count and name != kind]
            if roll < 0.2 and same:
                other = self.place(chance.choice(same))
                if other is not None:
                    return f"convert_{kind}({other.c})"
            if roll < 0.4:
                return f"({kind})(({element})({self.integer(depth)}))"
            halves = f"{element}{count // 2}"
            if roll < 0.6 and count in (4, 8) and halves in _VECTORS:
                low, high = self.value(halves, depth - 1), self.value(halves, depth - 1)
                return f"({kind})({low}, {high})"
            parts = ", ".join(f"({element})({self.integer(depth)})" for _ in range(count))
            return f"({kind})({parts})"
        return f"({kind}){self.listed(kind, depth)}"

    def listed(self, kind: str, depth: int) -> str:
        """A list of values for a structure or an array."""
        chance = self.chance
        if kind in _LISTS:
            element, count = _LISTS[kind]
            many = count if chance.random() < 0.7 else chance.randrange(1, count + 1)
            inner = [self.part(element, depth) for _ in range(many)]
            if chance.random() < 0.15:
                inner = [f"[{at}] = {one}" for at, one in enumerate(inner)][::-1]
            return "{" + ", ".join(inner) + "}"
        if kind == "Under":
            one, two, three = (self.integer(depth) for _ in range(3))
            return chance.choice(
                [
                    f"{{{{1.0f, {{{one}}}}}, {two}, {three}}}",
                    f"{{1.0f, {one}, {two}, {three}}}",
                    f"{{1.0f, {one}, {two}}}",
                ]
            )
        if kind in ("Deep", "Either", "Mixed", "Hold"):
            return "{0}"
        members = list(_RECORDS[kind].items())
        named = chance.random() < 0.3
        if chance.random() < 0.3:
            members = members[: chance.randrange(1, len(members) + 1)]
        inner = [(f".{name} = " if named else "") + self.part(one, depth) for name, one in members]
        if named:
            chance.shuffle(inner)
        return "{" + ", ".join(inner) + "}"

    def part(self, kind: str, depth: int) -> str:
        """A value in a list of values."""
        if kind in ("Four", "int[3]", "Pair") and self.chance.random() < 0.15:  # without brackets
            many = _LISTS[kind][1] if kind in _LISTS else 2
            return ", ".join(self.value("int", depth - 1) for _ in range(many))
        if kind in _LISTS or (kind in _RECORDS and self.chance.random() < 0.5):
            return self.listed(kind, depth - 1)
        return self.value(kind, depth - 1)

    def integer(self, depth: int) -> str:
        if not self.is_plain and self.chance.random() < 0.3:
            own = self.place(self.chance.choice(["int", "int", "int", *_INTS]))
            if own is not None:
                return f"(int)({own.c})"
        return super().integer(depth)

    def call(self, helper: Helper, depth: int) -> str | None:
        """A call of a helper. None: nothing fits."""
        chance = self.chance
        given = []
        for kind, how in helper.takes:
            if how == "value":
                given.append(self.value(kind, depth))
            elif how == "global":
                some = [name for name, array in self.pointers if array == helper.array]
                if not some:
                    return None
                given.append(f"({chance.choice(['global int *', 'global void *'])})"
                             f"({chance.choice(some)} + {self.integer(0)})")  # fmt: skip
            else:
                own = self.place(kind, True)
                if own is None:
                    return None
                given.append(own.c if how == "list" else f"&{own.c}")
        return f"{helper.name}({', '.join(given)} PASS)"

    # ---- statements ----

    def statement(self, depth: int) -> str:
        if self.is_plain or depth <= 0 or self.chance.random() < 0.4:
            return super().statement(depth)
        forms = [self._declared, self._declared, self._assigned, self._assigned, self._assigned,
                 self._changed, self._by_pointer, self._stored, self._stored, self._held,
                 self._filled, self._called, self._counted, self._block]  # fmt: skip
        if self.has_asides:
            forms += [self._aside, self._aside]
        if self.depth < 2 and len(self.known) < 4:
            forms += [self._helper, self._helper]
        return self.chance.choice(forms)(depth)

    def _kind(self) -> str:
        kinds = ["Pair", "Pair", "Many", "Deep", "Large", "Four", "Rows", "Pairs", "Packed"]
        if self.has_unions:
            kinds += ["Either", "Mixed", "Mixed", *["Under"] * 5]
        return self.chance.choice([*kinds, *_VECTORS, *_INTS])

    def _declared(self, depth: int) -> str:
        kind, name = self._kind(), self._fresh("o")
        lists = kind in _LISTS or (kind in _RECORDS and self.chance.random() < 0.5)
        value = self.listed(kind, 2) if lists else self.value(kind, 2)
        if kind in _INTS:
            value = f"({kind})({value})"
        self.values.append(Value(name, kind))
        return f"{kind} {name} = {value};{self._told(self.values[-1])}"

    def _told(self, of: Value) -> str:
        """Sometimes: a part of a value is where something is stored."""
        if self.chance.random() < 0.5:
            return ""
        kept, self.values = self.values, [of]
        own = self.place(self.chance.choice(["int", "int", "int", *_INTS]))
        self.values = kept
        name, array = self.chance.choice(self.pointers)
        return "" if own is None else f" W({array}, {name}, {own.c}, 1);"

    def _assigned(self, depth: int) -> str:
        chance = self.chance
        kind = self._kind()
        to = self.place(kind)
        if to is None or kind in _LISTS:
            return self._stored(depth)
        value = self.value(kind, 2)
        if kind in _INTS or kind in _VECTORS:
            sign = chance.choice(["=", "=", "=", "+=", "-=", "*=", "&=", "|=", "^=", "<<="])
            if sign == "<<=":
                value = f"({kind})(1)"
            return f"{to.c} {sign} {value};"
        two = self.place(kind)
        if two is not None and chance.random() < 0.2 and to.c != two.c:
            return f"{to.c} = {two.c} = {value};"
        return f"{to.c} = {value};"

    def _changed(self, depth: int) -> str:
        chance = self.chance
        to = self.place(chance.choice([*_INTS, *_VECTORS]))
        if to is None:
            return self._stored(depth)
        text = chance.choice([f"{to.c}++;", f"--{to.c};"])
        return f"if ({self._condition(1)}) {text}" if chance.random() < 0.4 else text

    def _by_pointer(self, depth: int) -> str:
        """Something is changed by its address."""
        chance, name = self.chance, self._fresh("a")
        kind = chance.choice(["Pair", "Many", "Deep", "int", "int2", "int4", "short", "Pairs"])
        to = self.place(kind, True)
        if to is None or "Packed" in to.type:
            return self._stored(depth)
        declared = f"{kind} *{name} = &{to.c};"
        own = Value(chance.choice([f"(*{name})", f"{name}[0]"]), kind)
        kept, self.values = self.values, [own]
        changed = self._assigned(0)
        self.values = kept
        if chance.random() < 0.3:
            self.values.append(own)
        return f"{declared} {changed}"

    def pointer(self) -> tuple[str, str]:
        """An expression that points into global memory, and the array."""
        chance = self.chance
        name, array = chance.choice(self.pointers)
        e = self.integer(1)
        return chance.choice([
            name, name, f"({name} + {e})", f"(&{name}[{e}])",
            f"((global int (*)[4]){name})[{e}]", f"(*(global Four *)({name} + {e}))",
            f"((global Many *){name})[{e}].t", f"(&((global Pair *){name})[{e}].b)",
            f"(&((global Many *){name} + {e})->p.a)", f"((global Rows *){name})[{e}][1]",
            f"((global int *)((global char *){name} + 4 * ({e})))",
            f"((global int *)((global int4 *){name} + {e}))",
            f"({self._condition(0)} ? {name} : {name} + 2)",
            f"({{ global int *at = {name}; at += {e}; at; }})",
        ]), array  # fmt: skip

    def _stored(self, depth: int) -> str:
        pointer, array = self.pointer()
        return f"W({array}, {pointer}, {self.integer(2)}, {self.integer(1)});"

    def _held(self, depth: int) -> str:
        """Pointers that are kept in structures and arrays."""
        chance, name = self.chance, self._fresh("h")
        if self.holds and chance.random() < 0.5:
            hold, array = chance.choice(self.holds)
            own = [one for one, of in self.pointers if of == array] or [f"{hold}.p"]
            return chance.choice([
                f"{hold}.p += {self.integer(0)};", f"{hold}.p = {chance.choice(own)};",
                f"{hold}.r[{chance.randrange(2)}] = {chance.choice(own)} + {self.integer(1)};",
                f"W({array}, {hold}.r[{chance.randrange(2)}], {hold}.k, 1);",
                f"W({array}, {hold}.p++, {hold}.j, 1);",
                f"Hold {name} = {hold}; W({array}, {name}.p, {name}.k++, 1); {hold} = {name};",
            ])  # fmt: skip
        one, array = self.pointer()
        own = [other for other, of in self.pointers if of == array]
        other = chance.choice(own)
        if chance.random() < 0.3:
            self.pointers.append((f"{name}[{chance.randrange(2)}]", array))
            return f"Places {name} = {{{one}, {other}}};"
        self.holds.append((name, array))
        self.values.append(Value(name, "Hold"))
        self.pointers.append((f"{name}.{chance.choice(['p', 'r[0]', 'r[1]'])}", array))
        return chance.choice([
            f"Hold {name} = {{{self.integer(1)}, {one}, {self.integer(0)}, {{{other}, {one}}}}};",
            f"Hold {name} = {{.p = {one}, .r = {{{other}, {other}}}, .k = {self.integer(0)}}};",
            f"Hold {name}; {name}.p = {one}; {name}.r[0] = {name}.r[1] = {other}; "
            f"{name}.k = {self.integer(1)}; {name}.j = 2;",
        ])  # fmt: skip

    def _aside(self, depth: int) -> str:
        """Parts of values that are only asked of the compiler."""
        own = self.place(self.chance.choice(["int", "short", "int2"]))
        if own is None:
            return self._stored(depth)
        name = self._fresh("t")
        return self.chance.choice([
            f"int {name}[sizeof({own.c})]; *{name} = 1;",
            f"typedef int {name}[sizeof({own.c})];",
            f'_Static_assert(sizeof({own.c}) > 0, "");',
            f"int {name} __attribute__((aligned(2 * sizeof({own.c})))) = 1;",
            f"int {name} = sizeof({own.c}) ?: {self.integer(0)};",
        ])  # fmt: skip

    def _filled(self, depth: int) -> str:
        """An array that a loop fills."""
        name, at = self._fresh("t"), self._fresh("i")
        self.values.append(Value(name, "Four"))
        text = f"{name}[{at}] = {self.integer(1)} + {at};"
        return f"Four {name}; for (int {at} = 0; {at} < 4; {at}++) {text}"

    def _called(self, depth: int) -> str:
        if not self.known:
            return self._declared(depth)
        helper = self.chance.choice(self.known)
        text = self.call(helper, 1)
        if text is None:
            return self._declared(depth)
        if helper.gives == "void":
            return f"{text};"
        name = self._fresh("o")
        self.values.append(Value(name, helper.gives))
        return f"{helper.gives} {name} = {text};{self._told(self.values[-1])}"

    def _counted(self, depth: int) -> str:
        """A loop that counts with several parts of variables."""
        chance = self.chance
        at, left = self._fresh("i"), self._fresh("left")
        one, two = self.place("int"), self.place(chance.choice(_INTS))
        if one is None or two is None:
            return self._stored(depth)
        start, by = self.integer(0), chance.choice([1, 1, 2, 3])
        kept = [list(part) for part in self.scopes()]
        self.names.append(at)
        body = self.inner(depth - 1)[2:-2]
        touched = self._stored(0)
        for scope, old in zip(self.scopes(), kept, strict=True):
            scope[:] = old
        step = chance.choice([f"{one.c} += {by}", f"{one.c}++", f"{two.c}--, {at}++",
                              f"{at} += {by}, {one.c}++, {two.c} += 2"])  # fmt: skip
        test = chance.choice([f"{at} < 5", f"{one.c} < n" if not self.inside else f"{one.c} < a",
                              f"{at} < 3 && {two.c} != 7", f"{one.c} != {by * 4}"])  # fmt: skip
        guard = f"if (--{left} < 0) break;"
        if chance.random() < 0.15:
            way = chance.choice(["break", "break", "continue"]) if "," in step else "break"
            step = f"({{ if (--{left} < 0 || {self._condition(0)}) {way}; {step}; 0; }})"
        first = f"int {left} = 30, {at} = {start};"
        parts = [body, touched, f"{two.c} += {by};" if chance.random() < 0.4 else ""]
        chance.shuffle(parts)
        text, told = " ".join(parts), self._told(one)
        return chance.choice([
            f"{first} for (; {test}; {step}) {{ {guard} {text} }}{told}",
            f"{first} while ({test}) {{ {guard} {text} {step}; }}{told}",
            f"{first} do {{ {guard} {text} {step}; }} while ({test});{told}",
            f"{first} for (;;) {{ {guard} if (!({test})) break; {text} {step}; }}{told}",
        ])  # fmt: skip

    def _block(self, depth: int) -> str:
        """A block with a variable that hides another one."""
        own = [one for one in self.values if one.c.isalnum() and one.type != "Hold"]
        if not own:
            return self._stored(depth)
        one = self.chance.choice(own)
        kept = [list(part) for part in self.scopes()]
        value = (self.listed if one.type in _LISTS else self.made)(one.type, 1) if (
            one.type not in _INTS) else "3"  # fmt: skip
        hidden = self._fresh("z")
        inner = " ".join(self.statement(depth - 1) for _ in range(2))
        for scope, old in zip(self.scopes(), kept, strict=True):
            scope[:] = old
        if one.type in _LISTS:
            return f"{{ {one.type} {hidden} = {value}; {inner} *{hidden}; }}"
        return f"{{ {one.type} {hidden} = {value}; {{ {one.type} {one.c} = {hidden}; {inner} }} }}"

    # ---- helpers ----

    def _helper(self, depth: int) -> str:
        """A helper, and a call of it."""
        chance, name = self.chance, self._fresh("does") + f"_{self.seed}"
        array = chance.choice(ARRAYS)
        gives = chance.choice(["int", "int2", "Pair", "Many", "Deep", "void", "int4", "uchar"])
        outer, was_inside = [list(part) for part in self.scopes()], self.inside
        known, self.known = self.known, [one for one in self.known if one.array == array]
        for scope in self.scopes():
            scope.clear()
        self.inside = True
        self.depth += 1
        takes, words = self._taken(array)
        body = self._body(gives)
        self.inside = was_inside
        self.depth -= 1
        for scope, old in zip(self.scopes(), outer, strict=True):
            scope[:] = old
        made = Helper(name, takes, gives, array)
        self.known = [*known, made]
        self.helpers.append(f"{gives} {name}({words} MORE)\n{{ {body} }}")
        text = self.call(made, 1)
        return f"{text};" if text is not None else ";"

    def _taken(self, array: str) -> tuple[tuple[tuple[str, str], ...], str]:
        """Parameters of a helper, which its body sees. Return how calls give them, and the text."""
        chance = self.chance
        pointer = chance.choice([
            "global int *p", "global int p[4]", "global int p[static 2]", "global int p[]",
            "global int p[const 3]", "global Four p", "global int *restrict p", "Place p",
        ])  # fmt: skip
        takes = [("int", "value"), ("int", "value"), ("int", "global")]
        words = ["int a", "int b", pointer]
        self.values += [Value("a", "int"), Value("b", "int")]
        for _ in range(chance.randrange(3)):
            own = self._fresh("g")
            kind = chance.choice(["Pair", "Many", "Deep", "int2", "int4", "Four", "Rows", "Pairs",
                                  "int3", "Large"])  # fmt: skip
            how = "list" if kind in _LISTS else chance.choice(["value", "value", "address"])
            word = f"{kind} {'*' if how == 'address' else ''}{own}"
            if kind in ("Four", "Pairs") and chance.random() < 0.5:
                element, count = _LISTS[kind]
                word = f"{element} {own}[{count}]"
            takes.append((kind, how))
            words.append(word)
            self.values.append(Value(f"(*{own})" if how == "address" else own, kind))
        self.names += ["a", "b"]
        self.changing.append("a")
        self.pointers.append(("p", array))
        self.vectors.append(("((int2)(1, 2))", "int", 2))
        self.vectors += [(one.c, "int", 2) for one in self.values if one.type == "int2"]
        self.pairs += [one.c for one in self.values if one.type == "Pair"]
        return tuple(takes), ", ".join(words)

    def _body(self, gives: str) -> str:
        """What a helper does, with one way out or several."""
        chance = self.chance
        result, early = self._given(gives, 1), f"if ({self._condition(1)}) return;"
        body = [self.statement(chance.choice([1, 1, 2])) for _ in range(chance.randrange(1, 4))]
        if chance.random() < 0.5:
            body.insert(chance.randrange(len(body)), early)
            body.append(f"return{self._given(gives, 2)} ;")
        body.append("return;")
        return " ".join(body).replace("return;", f"return{result};")

    def _given(self, gives: str, depth: int) -> str:
        return "" if gives == "void" else f" {self.value(gives, depth)}"


WRITER = ValueWriter
