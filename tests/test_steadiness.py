"""Which kernels may end otherwise by the order of their atomics."""

from __future__ import annotations

import pytest

from acs_cl.access.inference import from_source

ARGUMENTS = "global int *x, global int *y, global uint *u, int n"

STEADY = [
    "x[0] = n;",
    "atomic_add(x, n);",
    "atomic_inc(&u[n]); atomic_dec(u + 1); atomic_sub(u, 2);",
    "if (n) atomic_max(&x[n], 3); else atomic_max(x, 2);",
    "for (int i = 0; i < n; ++i) atomic_or(x, i);",
    "for (int i = 0; i < n; ++i) { while (n) { atomic_xor(x, i); } }",
    "do atomic_and(x, n); while (n);",
    "switch (n) { case 0: atomic_add(x, 1); break; default: atomic_inc(x); }",
    "atomic_max(x, n); atomic_add(y, n);",
    "x += n; atomic_max(x++, n); atomic_add(y, n);",
    "int a = x[0]; atom_add(y, a);",
    "add_to(x, n); atomic_inc(y);",
    "((n > 3)) ? x[0]++ : y[0]++;",
]

OPEN = [
    ("x[atomic_inc(u)] = n;", "uses what atomic_inc gives back"),
    ("int a = atomic_add(x, 1); y[a] = 1;", "uses what atomic_add gives back"),
    ("if (atomic_inc(x) == n) y[0] = 1;", "uses what atomic_inc gives back"),
    ("while (atomic_inc(x) < n) ;", "uses what atomic_inc gives back"),
    ("do { n--; } while (atomic_inc(x) < n);", "uses what atomic_inc gives back"),
    ("for (; atomic_inc(x) < n;) ;", "uses what atomic_inc gives back"),
    ("atomic_xchg(x, n);", "the order of its atomic_xchg may matter"),
    ("atomic_cmpxchg(x, n, 2);", "the order of its atomic_cmpxchg may matter"),
    ("atomic_max(x, n); atomic_add(x, n);", "atomic add and max may meet"),
    ("add_to(x, n); atomic_min(x, 3);", "atomic add and min may meet"),
    ("global int *p = n ? x : y; atomic_add(p, 1); atomic_and(x, 3);",
     "atomic add and and may meet"),
    ("x = y; atomic_add(x, n); atomic_min(y, 3);", "atomic add and min may meet"),
    ("if (n) (x) = y + 1; atomic_add(x, n); atomic_min(y, 3);", "atomic add and min may meet"),
    ("point(&x, y); atomic_add(x, n); atomic_min(y, 3);", "atomic add and min may meet"),
    ("x[place(u)] = n;", "uses what atomic_inc gives back"),
]  # fmt: skip

HELPERS = """
void add_to(global int *p, int n) { atomic_add(p, n); }
uint place(global uint *p) { return atomic_inc(p); }
void point(global int **where, global int *p) { *where = p; }
uint never_called(global uint *p) { return atomic_xchg(p, 3); }
"""


def found(body: str) -> str:
    source = f"{HELPERS}\nkernel void k({ARGUMENTS}) {{ {body} }}"
    return from_source(source, "k", None, None).unsteady


@pytest.mark.parametrize("body", STEADY)
def test_atomics_that_commute_and_give_nothing_back_are_steady(body: str) -> None:
    assert found(body) == ""


@pytest.mark.parametrize(("body", "why"), OPEN)
def test_a_kernel_whose_order_may_matter_is_said_to_be(body: str, why: str) -> None:
    assert why in found(body)
