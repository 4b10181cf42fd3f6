"""Random kernels whose accesses can be recorded: the same text with two meanings of two macros.

In: a seed. Out: the text of a kernel in which every access is `R(array, pointer, index)` or
`W(array, pointer, index, value)`. With `PLAIN` in front these are what a kernel does, which the
inference reads; with `recording` in front they note the element, and leave alone what is outside of
the array. Every loop ends, nothing is divided by zero.
"""

from __future__ import annotations

import random

ELEMENTS = 600
ARRAYS = ("x", "y", "z")
NUMBERS = ("n", "m", "s")
_TYPES = ("int", "int", "int", "uint", "size_t", "long", "short", "uchar")

PLAIN = """
#define R(b, p, i) ((p)[i])
#define W(b, p, i, v) (p)[i] = (v)
#define MORE
#define PASS
#define BEGIN
"""

RECORDING = f"""
int note_read(global int *base, global int *at, global uchar *seen)
{{
    long i = at - base;
    if (i < 0 || i >= {ELEMENTS}) return 0;
    seen[i] = 1;
    return *at;
}}
void note_write(global int *base, global int *at, global uchar *seen, int value)
{{
    long i = at - base;
    if (i < 0 || i >= {ELEMENTS}) return;
    seen[i] = 1;
    *at = value;
}}
#define R(b, p, i) note_read(base_##b, (p) + (i), seen_r##b)
#define W(b, p, i, v) note_write(base_##b, (p) + (i), seen_w##b, v)
#define MORE , global int *base_x, global int *base_y, global int *base_z, \\
    global uchar *seen_rx, global uchar *seen_ry, global uchar *seen_rz, \\
    global uchar *seen_wx, global uchar *seen_wy, global uchar *seen_wz, int4 band
#define PASS , base_x, base_y, base_z, seen_rx, seen_ry, seen_rz, seen_wx, seen_wy, seen_wz, band
#define BEGIN if (get_group_id(0) < band.x || get_group_id(0) >= band.y || \\
    get_group_id(1) < band.z || get_group_id(1) >= band.w) return;
"""
"""`band`: the groups of both axes that run, from the first to behind the last."""


class Writer:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.count = 0
        self.names: list[str] = []  # integers that can be read
        self.changing: list[str] = []  # and changed
        self.pointers: list[tuple[str, str]] = []  # and their arrays
        self.helpers: list[str] = []
        self.inside = False  # of a helper

    def kernel(self) -> str:
        """The text of kernel `k<seed>`, helpers in front of it."""
        self.start()
        body = ["BEGIN", *(f"int g{a} = get_global_id({a});" for a in range(2))]
        self.names += ["g0", "g1"]
        if self.chance.random() < 0.4:
            guard = self.chance.choice(["g0 >= n", "g0 > m", "g0 >= n || g1 >= m", "n <= g0 + g1"])
            body.append(f"if ({guard}) return;")
        body += [self.statement(3) for _ in range(self.chance.randrange(3, 8))]
        text = "\n    ".join(body)
        arrays = ", ".join(f"global int *{name}" for name in ARRAYS)
        numbers = ", ".join(f"int {name}" for name in NUMBERS)
        return "\n".join(
            [
                *self.helpers,
                f"kernel void k{self.seed}({arrays}, {numbers} MORE)\n{{\n    {text}\n}}",
            ]
        )

    def start(self) -> None:
        self.names = list(NUMBERS)
        self.changing = []
        self.pointers = [(name, name) for name in ARRAYS]

    def _fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def integer(self, depth: int) -> str:
        """An integer expression."""
        chance = self.chance
        roll = chance.random()
        if depth <= 0 or roll < 0.35:
            if chance.random() < 0.35:
                return str(chance.choice([0, 1, 2, 3, 4, 5, 8, 16, 30, -1, -3, 100]))
            return chance.choice(self.names)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        if roll < 0.62:
            return f"({a} {chance.choice('++++--**')} {b})"
        if roll < 0.70:
            return f"({a} {chance.choice('/%')} {chance.choice([1, 2, 3, 4, 7, 8, 20])})"
        if roll < 0.74:
            return f"({a} {chance.choice('/%')} max((int)({b}), 1))"
        if roll < 0.79:
            return (
                f"({a} {chance.choice(['&', '|', '^', '<<', '>>'])} {chance.choice([1, 2, 3, 7])})"
            )
        if roll < 0.84:
            return f"{chance.choice(['min', 'max'])}((int)({a}), (int)({b}))"
        if roll < 0.87:
            return f"clamp((int)({a}), 0, {chance.choice([3, 9, 50])})"
        if roll < 0.91:
            return f"({self._condition(depth - 1)} ? {a} : {b})"
        if roll < 0.95:
            return f"(({chance.choice(_TYPES)})({a}))"
        if roll < 0.97:
            return f"(-{a})" if not a.startswith("-") else a
        where = chance.choice(
            ["global_size", "local_id", "group_id", "local_size", "num_groups", "global_offset"]
        )
        return f"(int)get_{where}(0)" if chance.random() < 0.7 else self._read(depth - 1)

    def _condition(self, depth: int) -> str:
        sign = self.chance.choice(["<", "<", "<=", ">", ">=", "==", "!="])
        text = f"({self.integer(depth - 1)} {sign} {self.integer(depth - 1)})"
        roll = self.chance.random()
        if depth > 0 and roll < 0.2:
            return f"({text} {self.chance.choice(['&&', '||'])} {self._condition(depth - 1)})"
        return f"!{text}" if roll > 0.93 else text

    def _read(self, depth: int) -> str:
        pointer, array = self.chance.choice(self.pointers)
        return f"R({array}, {pointer}, {self.integer(depth)})"

    def statement(self, depth: int) -> str:
        chance = self.chance
        roll = chance.random()
        if roll < 0.30 or depth <= 0:
            pointer, array = chance.choice(self.pointers)
            value = self._read(2) if chance.random() < 0.6 else self.integer(1)
            return f"W({array}, {pointer}, {self.integer(3)}, {value});"
        if roll < 0.45:
            name, kind, value = self._fresh("v"), chance.choice(_TYPES), self.integer(3)
            self.names.append(name)
            self.changing.append(name)
            return f"{kind} {name} = {value};"
        if roll < 0.52 and self.changing:
            name = chance.choice(self.changing)
            if chance.random() < 0.4:
                return f"{name}{chance.choice(['++', '--'])};"
            return f"{name} {chance.choice(['=', '+=', '-=', '*='])} {self.integer(2)};"
        if roll < 0.60:
            name, (pointer, array) = self._fresh("p"), chance.choice(self.pointers)
            text = f"global int *{name} = {pointer} + {self.integer(2)};"
            self.pointers.append((name, array))
            return text
        if roll < 0.63 and len(self.pointers) > len(ARRAYS):
            name, array = chance.choice(self.pointers[len(ARRAYS) :])
            return f"{name} += {self.integer(1)};"
        if roll < 0.75:
            text = f"if ({self._condition(2)}) {self.block(depth - 1)}"
            return text + (f" else {self.block(depth - 1)}" if chance.random() < 0.4 else "")
        if roll < 0.90:
            return self._loop(depth)
        if roll < 0.93:
            return f"if ({self._condition(1)}) return;"
        if roll < 0.96:
            return (
                f"switch ({self.integer(1)}) {{ case 0: {self.inner(depth - 1)} break; "
                f"case 1: {self.inner(depth - 1)} default: {self.inner(depth - 1)} }}"
            )
        return "" if self.inside else self.helped()

    def inner(self, depth: int) -> str:
        """Statements whose declarations are not seen outside."""
        kept = len(self.names), len(self.changing), len(self.pointers)
        text = " ".join(self.statement(depth) for _ in range(self.chance.randrange(1, 3)))
        del self.names[kept[0] :], self.changing[kept[1] :], self.pointers[kept[2] :]
        return "{ " + text + " }"

    block = inner

    def _loop(self, depth: int) -> str:
        chance, name = self.chance, self._fresh("t")
        left = self._fresh("left")
        kept = list(self.names), list(self.changing)
        self.names.append(name)
        if chance.random() < 0.2:
            self.changing.append(name)  # a counter that the body changes
        first, second, third = ("a", "b", "a") if self.inside else ("n", "m", "s")
        item = "a" if self.inside else "g0"
        start = chance.choice(["0", "0", item, f"({self.integer(1)} % 7)"])
        stop = chance.choice([first, second, "7", item, f"({self.integer(1)} % 11)"])
        more = ["3", f"max({third}, 1)", "get_global_size(0)"]
        step = chance.choice([f"{name}++", f"{name}++", *(f"{name} += {by}" for by in more)])
        sign = "<"
        if chance.random() < 0.2:
            start, stop, sign, step = stop, start, ">", f"--{name}"
        kind = chance.choice(["int", "int", "uint", "long"])
        body = self.inner(depth - 1)[2:-2]
        extra = chance.choice(
            ["", "", f"if ({self._condition(1)}) continue;", f"if ({self._condition(1)}) break;"]
        )
        self.names, self.changing = kept
        roll = chance.random()
        guard = f"if (--{left} < 0) break;"
        before = f"int {left} = 40;"
        first, test = f"{kind} {name} = {start};", f"{name} {sign} {stop}"
        if roll < 0.7:
            return f"{before} for ({first} {test}; {step}) {{ {guard} {extra} {body} }}"
        if roll < 0.85:
            return f"{before} {first} while ({test}) {{ {guard} {extra} {body} {step}; }}"
        return f"{before} {first} do {{ {guard} {extra} {body} {step}; }} while ({test});"

    def helped(self) -> str:
        """A helper, and a call of it."""
        name = self._fresh("helper") + f"_{self.seed}"
        outer = self.names, self.changing, self.pointers
        self.names, self.changing, self.pointers = ["a", "b"], ["a"], [("p", "_")]
        array, self.inside = self.chance.choice(ARRAYS), True
        body = " ".join(self.statement(1) for _ in range(2)) if len(self.helpers) < 3 else ";"
        result = self.integer(2)
        body = body.replace("(_, ", f"({array}, ").replace("return;", "return a;")
        result = result.replace("(_, ", f"({array}, ")
        (self.names, self.changing, self.pointers), self.inside = outer, False
        self.helpers.append(
            f"int {name}(global int *p, int a, int b MORE)\n{{ {body} return {result}; }}"
        )
        pointers = [pointer for pointer, of in self.pointers if of == array]
        value = self._fresh("v")
        text = (f"int {value} = {name}({self.chance.choice(pointers)}, {self.integer(1)}, "
                f"{self.integer(1)} PASS);")  # fmt: skip
        self.names.append(value)
        self.changing.append(value)
        return text
