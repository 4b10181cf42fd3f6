"""Newer OpenCL C, program-scope memory, and random expressions."""

from __future__ import annotations

import random
import re

from traps.case import Trap, i, mem

# Built with `-cl-std=CL2.0` or `CL3.0`; many drivers build few of these.
_NEWER = {
    "generic pointer": "int *p = y; p[n] = 1;",
    "generic or private": "int t[4]; int *p = n > 3 ? (int *)y : t; p[2] = 1;",
    "generic helper": "write(y + n); int t; write(&t); y[t] = 2;",
    "to_global": "int *p = y; global int *q = to_global(p); q[n] = 1;",
    "get_fence": "int *p = y; y[get_fence(p) + 3] = 1;",
    "program variable": "counter = n; y[counter] = 1;",
    "program array": "table[n & 3] = 9; y[table[1]] = 1;",
    "program pointer": "kept = y + 3; kept[n] = 1; kept = 0;",
    "static variable": "static global int s; s = n; y[s] = 1;",
    "program initialised": "y[start] = 1;",
    "C11 atomic": "atomic_store((global atomic_int *)y + n, 3);",
    "C11 fetch": (
        "atomic_fetch_add_explicit((global atomic_int *)y + n, 3, memory_order_relaxed); y[20] ="
        " atomic_load((global atomic_int *)y + 3) + 1;"
    ),
    "C11 exchange": (
        "int e = y[3]; y[20] = atomic_compare_exchange_strong((global atomic_int *)y + 3, &e, 9);"
        " y[21] = e;"
    ),
    "C11 flag": "atomic_flag_test_and_set((global atomic_flag *)y + n);",
    "C11 init": "atomic_init((global atomic_int *)y + n, 3);",
    "work-group reduction": "y[work_group_reduce_add(n)] = 1;",
    "work-group broadcast": "y[work_group_broadcast(n, 0)] = 1;",
    "work-group scan": "y[work_group_scan_inclusive_add(n)] = 1;",
    "sub-group": "y[get_sub_group_local_id() + 3] = 1;",
    "linear ids": "y[get_global_linear_id() + get_local_linear_id() + 3] = 1;",
    "block": "int (^f)(int) = ^(int a) { return a + 3; }; y[f(n)] = 1;",
    "block that writes": "void (^f)(int) = ^(int a) { y[a] = 1; }; f(n);",
    "clz and ctz": "y[ctz(8)] = 1; y[popcount(n) + 9] = 2;",
    "barrier of 2.0": "work_group_barrier(CLK_GLOBAL_MEM_FENCE); y[n] = 1;",
    "atomic fence": (
        "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_device);"
        " y[n] = 1;"
    ),
    "generic cast back": "int *p = (int *)(y + n); *(global int *)p = 1;",
    "generic in a structure": "struct { int *p; } s = {y + n}; *s.p = 1;",
    "generic loop": "for (int *p = y; p < y + n; p++) *p = 1;",
    "long vector of them": "int *p[2] = {y, y + 9}; p[n & 1][1] = 1;",
}
_PROGRAM = {
    "program variable": "global int counter;",
    "program array": "global int table[4] = {1, 2, 3, 4};",
    "program pointer": "global int *global kept;",
    "program initialised": "global int start = 7;",
    "generic helper": "void write(int *p) { *p = 7; }",
}

_LEAVES = (
    "n",
    "m",
    "g",
    "3",
    "7u",
    "-5",
    "(uchar)n",
    "(char)(g * 90)",
    "(short)m",
    "1l",
    "h",
    "(int)h",
    "c",
)
_BINARY = ("+", "-", "*", "/", "%", "&", "|", "^", "<", ">=", "==")


def _expression(chance: random.Random, depth: int) -> str:
    if not depth:
        return chance.choice(_LEAVES)
    a, b = (_expression(chance, depth - chance.randint(1, 2) if depth > 1 else 0) for _ in "ab")
    kind = chance.randrange(9)
    if kind == 0:
        return f"({a} ? {b} : {_expression(chance, depth - 1)})"
    if kind == 1:
        return f"({chance.choice(('uchar', 'char', 'ushort', 'uint', 'long', 'bool'))})({a})"
    if kind == 2:
        sign = chance.choice("-~!")
        return _wrapped("0", "-", a) if sign == "-" else f"{sign}({a})"
    if kind == 3:
        return f"(({a}) {chance.choice(('<<', '>>'))} {chance.randrange(7)})"
    operator = chance.choice(_BINARY)
    if operator in "/%":
        return f"(({a}) {operator} ((int)({b}) & 15 | 1))"
    return _wrapped(a, operator, b) if operator in "+-*" else f"(({a}) {operator} ({b}))"


def _wrapped(a: str, operator: str, b: str) -> str:
    """A sum or a product that no value makes undefined, since it is one of unsigned numbers."""
    return f"(int)((uint)({a}) {operator} (uint)({b}))"


def _statements(chance: random.Random, depth: int) -> str:
    text = ""
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(7 if depth else 3)
        value = _expression(chance, 2)
        name = chance.choice("hc")
        if kind == 0:
            sign = chance.choice(("", "+", "-", "*", "^", "&", "|"))
            text += f"{name} {sign}= {f'(uchar)({value})' if name == 'c' else value}; "
        elif kind == 1:
            text += f"y[(uint)({value}) % 64u] = {chance.randrange(9)}; "
        elif kind == 2:
            text += f"{name}{chance.choice(('++', '--'))}; y[(uint)({name} + {value}) % 64u] = 1; "
        elif kind == 3:
            text += (
                f"if ({value}) {{ {_statements(chance, depth - 1)}}} else {{"
                f" {_statements(chance, depth - 1)}}} "
            )
        elif kind == 4:
            j = f"j{depth}"
            step = chance.choice((f"{j}++", f"{j} += 3", f"{j} += 2"))
            text += (
                f"for (int {j} = {chance.randrange(-3, 3)}; {j} < {chance.randrange(2, 8)}; {step})"
                f" {{ y[(uint)({j} * {chance.randrange(1, 9)} + ({value})) % 64u] = 2;"
                f" {_statements(chance, depth - 1)}if ({_expression(chance, 1)})"
                f" {chance.choice(('break', 'continue', 'h++'))}; }} "
            )
        elif kind == 5:
            cases = "".join(
                f"case {label}: {_statements(chance, depth - 1)}{chance.choice(('break; ', ''))}"
                for label in chance.sample(range(-2, 9), 3)
            )
            text += f"switch ({value}) {{ {cases}default: c++; }} "
        else:
            text += (
                f"{{ global int *p{depth} = y + ((uint)({value}) & 31);"
                f" p{depth}[{chance.randrange(32)}] = 3; }} "
            )
    return text


def _random(seed: int) -> Trap:
    chance = random.Random(seed)
    text = (
        f"int g = get_global_id(0); uint h = (uint)n + g; uchar c = m; {_statements(chance, 3)}"
        " y[(h + c) % 64u] = 4;"
    )
    size = (chance.choice((1, 1, 2, 5)),)
    if size != (1,):  # work-items may meet, and it must not matter which comes last
        text = re.sub(r"(y\[.*?\]|\]) = \d;", r"\1 = 2;", text)
    numbers = (
        i(chance.choice((0, 1, 5, -1, 1000, -(2**31), 2**31 - 1))),
        i(chance.choice((0, 3, -7, 255, 2**30))),
    )
    return Trap(
        f"random {seed}",
        f"kernel void k$(global int *y, int n, int m) {{ {text} }}",
        (mem(), *numbers),
        size=size,
        local=size,
    )


TRAPS: list[Trap] = [
    *(
        Trap(
            f"{standard} {name}",
            f"{_PROGRAM.get(name, '')}\nkernel void k(global int *y, int n) {{ {text} }}",
            (mem(), i(5)),
            options=(f"-cl-std={standard}",),
        )
        for name, text in _NEWER.items()
        for standard in ("CL2.0", "CL3.0")
    ),
    *(_random(seed) for seed in range(120)),
]
