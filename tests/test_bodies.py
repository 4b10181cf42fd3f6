"""Modes of pointer arguments as read from kernel bodies: precise where claimed, sound always."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from counting import calls

from acs_cl.access.inference import from_source
from acs_cl.access.signature import Signature
from acs_cl.devices.facts import CannotParse


def analyse(body: str, parameters: str = "__global float *a, __global float *b, int n",
            before: str = "", options: str = "") -> Signature:  # fmt: skip
    return from_source(f"{before}\n__kernel void k({parameters}) {{ {body} }}", "k", options, None)


def modes(signature: Signature) -> str:
    return " ".join(p.mode or "-" for p in signature.parameters if p.is_pointer)


# Each entry: modes of a and b, what the kernel does, and helpers in front of it.
KNOWN = [
    ("r w", "b[0] = a[0];", ""),
    ("- -", "int i = get_global_id(0);", ""),
    ("rw -", "a[0] += 1;", ""),
    ("rw -", "a[0]++;", ""),
    ("rw -", "--*a;", ""),
    ("r -", "float x = -a[n] + a[n + 1];", ""),
    ("r w", "*(b + n) = *(a + 1);", ""),
    ("r w", "n[b] = 0[a];", ""),
    ("w w", "a[0] = b[0] = 3;", ""),
    ("r w", "b[(int)a[0]] = 1;", ""),
    ("r w", "__global float *p = a; b[0] = p[1];", ""),
    ("rw rw", "__global float *p = a; p[0] = p[1]; p = b; *p = 1;", ""),
    ("w w", "__global float *p = n ? a : b; *p = 1;", ""),
    ("w w", "(n ? a : b)[3] = 1;", ""),
    ("r w", "float x = (n++, a)[0]; *(n, b) = x;", ""),
    ("r w", "*&b[n] = *&a[n];", ""),
    ("- w", "__global float *p = &a[n]; p = b; b[0] = 1;", ""),
    ("- -", "bool same = a == b; int far = (int)(a - b);", ""),
    ("- -", "int i = sizeof(a[0]) + sizeof *b;", ""),
    ("r w", "vstore4(vload4(n, a), 0, b);", ""),
    ("r w", "vstore_half(vload_half(0, (__global half *)a), 1, (__global half *)b);", ""),
    ("r w", "vstore_half4_rtz(vload_half4(0, (__global half *)a), 1, (__global half *)b);", ""),
    ("rw -", "atomic_add((volatile __global int *)a, 1);", ""),
    ("rw rw", "atomic_inc((__global int *)a); atomic_cmpxchg((__global int *)b, 1, 2);", ""),
    ("r w", "float c; b[0] = sincos(a[0], &c);", ""),
    ("r w", "float x = fract(a[0], b);", ""),
    ("r w", "int e; b[1] = frexp(a[0], &e) + modf(a[1], b);", ""),
    ("r -", "prefetch(a, 16);", ""),
    ("r -", 'printf("%f %p", a[0], a);', ""),
    ("r w", "__local float l[4]; event_t e = async_work_group_copy(l, a, 4, 0); "
     "wait_group_events(1, &e); e = async_work_group_copy(b, l, 4, 0);", ""),
    ("r w", "((__global float4 *)b)[n].xz = ((__global float2 *)a)[n];", ""),
    ("r w", "((__global float4 *)b)->y = ((__global float4 *)a)->s3;", ""),
    ("rw -", "((__global float4 *)a)->xy += 1;", ""),
    ("r w", "b[0] = as_float(as_int(a[0]) + 1);", ""),
    ("r w", "for (__global float *p = a, *e = a + n; p != e; p++) *b++ = *p;", ""),
    ("r w", "switch (n) { case 1: b[0] = 1; break; default: while (a[0] > 1) n--; }", ""),
    ("r w", "__global float *p[2] = {a, a + 1}; b[0] = p[n][0];", ""),
    ("rw rw", "struct s v = {a, b, 1}; v.out[v.n] = v.in[0];", "STRUCT"),
    ("rw rw", "struct s v = {.out = b, .in = a}; struct s *q = &v; *q->out = *(*q).in;", "STRUCT"),
    ("rw rw", "struct s v; v.in = a; v.out = b; run(v);", "STRUCT"),
    ("w w", "__extension__ a = b; a[n] = 1;", ""),
    ("rw rw", "_Generic(n, int: a) = b; a[n] = 1;", ""),
    ("rw rw", "__global float **p = &_Generic(n, int: a); *p = b; a[n] = 1;", ""),
    ("r w", "copy(a, b);", "void copy(__global float *x, __global float *y) { *y = *x; }"),
    ("r w", "float x = get(a); put(b, x);", "float get(__global float *p) { return p[0]; }\n"
     "void put(__global float *p, float x) { p[0] = x; }"),
    ("r w", "b[0] = *step(a, n);", "__global float *step(__global float *p, int i) "
     "{ return p + i; }"),
    ("r w", "*step(b, n) = down(a, n);", "__global float *step(__global float *p, int i) "
     "{ return i ? p + i : p; }\nfloat down(__global float *p, int i) "
     "{ return i ? down(p + 1, i - 1) : p[0]; }"),
    ("rw rw", "swap(a, b);", "void swap(__global float *x, __global float *y) "
     "{ float t = *x; *x = *y; *y = t; }"),
    ("r w", "__global float *p; point(&p, a); b[0] = p[0];",
     "void point(__global float **where, __global float *p) { *where = p; }"),
    ("r w", "b[0] = ({ float x = a[0]; x * 2; });", ""),
    ("r w", "READ(a); WRITE(b);", "#define READ(p) float got = p[0]\n#define WRITE(p) p[0] = got"),
    ("- -", "if (0) ; unused(n);", "void other(__global float *p) { p[0] = 1; }\n"
     "void unused(int i) { }"),
    ("r w", "__global float *p = 0; if (n) p = a; b[0] = p[0];", ""),
    ("r w", "const __global float4 *v = (const __global float4 *)a; b[0] = dot(v[0], v[1]);", ""),
    ("rw -", "__global float *p = (__global float *)(const __global float *)a; p[0] = a[0];", ""),
]  # fmt: skip
_STRUCT = (
    "struct s { __global float *in, *out; int n; };"
    "void run(struct s v) { for (int i = 0; i < v.n; i++) v.out[i] = v.in[i]; }"
)


@pytest.mark.parametrize(("expected", "body", "before"), KNOWN)
def test_known_bodies_have_known_modes(expected: str, body: str, before: str) -> None:
    signature = analyse(body, before=_STRUCT if before == "STRUCT" else before)
    assert modes(signature) == expected
    assert signature.anywhere == ""
    assert not signature.program_globals


# What the analysis must not claim to know, with the modes that it may at most claim.
ESCAPES = [
    ("rw -", "unknown(a);", "passed to unknown function unknown"),
    ("rw -", "n = (int)(size_t)a;", "its address is turned into a number"),
    ("rw w", "((__global size_t *)b)[0] = (size_t)a;", "its address is turned into a number"),
    ("rw w", "*(__global float * __global *)b = a;",
     "its address is stored in memory"),
    ("rw -", "__global float * __local t[2]; __global float * __local *u = t; "
     "unknown(u); t[0] = a;", "its address is stored"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "body", "why"), ESCAPES)
def test_an_address_that_gets_away_is_read_write(expected: str, body: str, why: str) -> None:
    signature = analyse(body)
    assert modes(signature) == expected
    assert signature.parameters[0].why.startswith(why)


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("float x = **(__global float * __global *)a;", ""),
        ("*(__global float *)(size_t)n = 1;", ""),
        ("*(__global float *)0x100000000ul = 1;", ""),  # no null pointer, though its low half is 0
        ("struct node v = *(__global struct node *)a; v.next->x = 1;", "NODE"),
        ("((__global struct node *)a)->next->next->x = 1;", "NODE"),
        ("union { size_t n; __global float *p; } u; u.n = n; *u.p = 1;", ""),
        ('__asm__ volatile("");', ""),
        ("__global float *p; *(size_t *)&p = n; *p = 1;", ""),
        ("__global float *p = a; ((uint *)(void *)&p)[1] = n; *p = 1;", ""),
        ("size_t m = n; **(__global float **)&m = 1;", ""),
        ("__global float *p = a; unknown(&p); *p = 1;", ""),
        ("union { size_t n; __global float *p; } u = {n}; *u.p = 1;", ""),
    ],
)
def test_a_pointer_of_unknown_origin_means_anywhere(body: str, before: str) -> None:
    node = "struct node { __global struct node *next; float x; };"
    assert analyse(body, before=node if before else "").anywhere != ""


def test_inline_assembly_makes_everything_read_write() -> None:
    signature = analyse('b[0] = a[0]; asm volatile("" : : : "memory");')
    assert modes(signature) == "rw rw"
    assert signature.parameters[0].why == "inline assembly"


def test_a_pun_through_a_union_is_followed() -> None:
    before = "union pun { __global float *p; ulong bits; };"
    signature = analyse("union pun u; u.p = a; ulong x = u.bits + 4; "
                        "((__global ulong *)b)[0] = x;", before=before)  # fmt: skip
    assert signature.parameters[0].mode == "rw"


def test_a_union_is_one_whatever_its_word_is_made_of() -> None:
    body = "PUN u; u.bits = ((__global ulong *)b)[0]; *u.p = 1;"
    for before, options in (
        ("typedef union { __global float *p; ulong bits; } PUN;", ""),
        ("#define U uni##on\ntypedef U { __global float *p; ulong bits; } PUN;", ""),
        ("#define U uni#\\\n#on\ntypedef U { __global float *p; ulong bits; } PUN;", ""),
        ("typedef un\\\nion { __global float *p; ulong bits; } PUN;", ""),
        ("typedef U { __global float *p; ulong bits; } PUN;", "-DU=union"),
        ("typedef U { __global float *p; ulong bits; } PUN;", "-D U=union"),
    ):
        assert analyse(body, before=before, options=options).anywhere, before
    both = analyse("b[0] = a[0];", before="#define J(x, y) x##y\nfloat J(s, t)(float x);")
    assert (modes(both), both.anywhere) == ("r w", "")


def test_typeof_is_refused_whatever_its_word_is_made_of() -> None:
    for before, options in (("#define T __type##of__", ""), ("", "-DT=__typeof__")):
        with pytest.raises(CannotParse, match="typeof"):
            analyse("T(n) m = n; b[m] = a[m];", before=before, options=options)


@pytest.mark.parametrize("name", ["min", "vload2", "work_group_any", "sub_group_any"])
def test_a_call_that_may_mean_a_built_in_function_is_not_followed(name: str) -> None:
    """Drivers choose among both by the arguments; the parser leaves its own out."""
    before = f"int {name}(int x, char y) {{ return x; }}"
    clear = f"const int m = {name}(n + 1, (char)2); char c = 1; b[{name}(m, c)] = a[0];"
    assert modes(analyse(clear, before=before)) == "r w"
    for body in (f"{clear} b[{name}(n, 20)] = 1;", f"{clear} n = {name}((uint)n, c);"):
        with pytest.raises(CannotParse, match=f"a call of {name} may mean the source's function"):
            analyse(body, before=before)


@pytest.mark.parametrize(
    ("own", "call"),
    [
        (
            "int mix(int a, int b, int c, int d, int e, int f) { return a; }",
            "mix(n, 1u, 2, 3, 4, 5)",
        ),
        ("float step(global float *x, int i) { return x[i]; }", "step(a, get_global_id(0))"),
        ("float dot(struct pair p, int i) { return p.x; }", "dot(pair, 1u)"),
        ("float length(global struct pair *p, int i) { return p->x; }", "length(pairs, 1u)"),
    ],
)
def test_a_function_whose_arguments_no_built_in_one_takes_is_the_source_s(
    own: str, call: str
) -> None:
    before = f"struct pair {{ float x, y; }}; {own}"
    body = f"struct pair pair = {{1, 2}}; global struct pair *pairs = 0; b[0] = {call};"
    assert modes(analyse(body, before=before))[-1] == "w"


@pytest.mark.parametrize(
    ("own", "call"),
    [
        ("float mix(float a, float b, int c) { return a; }", "mix(1.0f, 2.0f, 1u)"),
        ("float fract(float x, float *y) { return x; }", "fract(n, &f)"),
        ("float fract(float x, float *y) { return x; }", "fract(n, 0)"),
        ("float4 vload4(long at, global float *x) { return 0; }", "vload4(n, a).x"),
        ("int atomic_add(global int *x, long y) { return 0; }", "atomic_add(m, n)"),
        ("float step(int edge, float x) { return x; }", "step(f, f)"),
    ],
)
def test_one_that_a_built_in_function_may_take_is_not_followed(own: str, call: str) -> None:
    with pytest.raises(CannotParse, match="may mean the source's function"):
        analyse(f"float f = 1; global int *m = 0; b[0] = {call};", before=own)


def test_a_number_beside_a_pointer_in_a_structure_gives_nothing_away() -> None:
    signature = analyse("struct s v = {a, a, n}; b[0] = v.n;", before=_STRUCT)
    assert modes(signature) == "- w"


def test_array_parameters_are_pointers() -> None:
    helper = "void put(__global float p[4], int i) { __global float *q = p; *(q + 1) = 1; p++; }"
    parameters = "__global float a[], __global float b[8], int n"
    signature = analyse("float x = (a)[0]; put(n ? b : b + 1, 1);", parameters, before=helper)
    assert modes(signature) == "r w"
    assert [p.type_name for p in signature.parameters] == ["float*", "float*", "int"]


def test_program_scope_variables_are_noticed_and_constant_ones_are_not() -> None:
    before = "__global int counter = 0; __constant float table[2] = {1, 2};"
    assert analyse("atomic_inc(&counter);", before=before, options="-cl-std=CL3.0").program_globals
    quiet = analyse("b[0] = table[n];", before=before, options="-cl-std=CL3.0")
    assert not quiet.program_globals
    assert modes(quiet) == "- w"


def test_only_functions_that_the_kernel_reaches_count() -> None:
    other = "__kernel void other(__global float *a) { a[0] = 1; unknown(a); }"
    assert modes(analyse("float x = a[0];", before=other)) == "r -"


def test_images_go_by_their_qualifier() -> None:
    signature = analyse(
        "sampler_t s = 0; write_imagef(y, (int2)(0, 0), read_imagef(x, s, (int2)(0, 0)));",
        "__read_only image2d_t x, __write_only image2d_t y",
    )
    assert [(p.space, p.mode) for p in signature.parameters] == [("image", "r"), ("image", "w")]


def test_c11_atomics_are_told_apart() -> None:
    body = "atomic_store_explicit(a, atomic_load_explicit(b, memory_order_relaxed, " \
           "memory_scope_device), memory_order_relaxed, memory_scope_device);"  # fmt: skip
    parameters = "__global atomic_int *a, __global atomic_int *b"
    assert modes(analyse(body, parameters, options="-cl-std=CL2.0")) == "w r"


def copied_by_statements(count: int) -> Signature:
    begin = "".join(f"global float *p{at} = a;" for at in range(count))
    copies = "".join(f"p{at} = p{at + 1};" for at in range(count - 1))
    return analyse(f"{begin} {copies} p{count - 1} = b; *p0 = 1;")


def passed_by_helpers(count: int) -> Signature:
    helpers = "global float *f0(global float *p) { return p; }\n" + "".join(
        f"global float *f{at}(global float *p) {{ return f{at - 1}(p); }}\n"
        for at in range(1, count)
    )
    return analyse(f"a[0] = 2; *f{count - 1}(b) = 1;", before=helpers)


@pytest.mark.parametrize("make", [copied_by_statements, passed_by_helpers])
def test_long_chains_of_pointers_take_few_rounds(
    make: Callable[[int], Signature], own_cache: Path
) -> None:
    """As many as a chain is long would take minutes for chains of a thousand."""
    assert modes(make(10)) == "w w"
    few, many = calls(lambda: make(60)), calls(lambda: make(120))
    assert many < 2.5 * few
    assert modes(make(120)) == "w w"


def test_reasons_name_the_helper() -> None:
    before = "void put(__global float *p) { p[0] = 1; }"
    signature = analyse("float x = b[0]; put(a);", before=before)
    assert [p.why for p in signature.parameters] == [
        "written by helper put", "only read in the body", ""
    ]  # fmt: skip


# ---- random kernels, executed ----


class Generator:
    """Random kernels over four pointers that stay inside 64 elements."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pointers = ["p0", "p1", "p2", "p3"]
        self.locals = 0

    def index(self) -> str:
        return self.random.choice(["i", "(i + 1) % 16", "3", "(int)(gid & 7)"])

    def pointer(self, depth: int = 0) -> str:
        choice = self.random.randrange(6 if depth < 2 else 1)
        if choice < 2:
            return self.random.choice(self.pointers)
        if choice == 2:
            return f"(i & 1 ? {self.pointer(depth + 1)} : {self.pointer(depth + 1)})"
        if choice == 3:
            return f"step({self.pointer(depth + 1)}, i & 3)"
        if choice == 4:
            return f"(&{self.pointer(depth + 1)}[i & 3])"
        return f"((__global int *)(__global char *){self.pointer(depth + 1)})"

    def value(self, depth: int = 0) -> str:
        choice = self.random.randrange(6 if depth < 2 else 2)
        if choice == 0:
            return str(self.random.randrange(100))
        if choice == 1:
            return f"{self.pointer()}[{self.index()}]"
        if choice == 2:
            return f"({self.value(depth + 1)} + 3 * {self.value(depth + 1)})"
        if choice == 3:
            return f"vload2(0, {self.pointer()}).y"
        if choice == 4:
            return f"get({self.pointer()}, {self.index()})"
        return f"(*(s.second) ^ {self.value(depth + 1)})"

    def statement(self) -> str:
        place = f"{self.pointer()}[{self.index()}]"
        choice = self.random.randrange(11)
        if choice == 0:
            self.locals += 1
            line = f"__global int *q{self.locals} = {self.pointer()};"
            self.pointers.append(f"q{self.locals}")
            return line
        return [
            f"{place} = {self.value()};",
            f"{place} = {self.value()};",
            f"{place} += {self.value()};",
            f"put({self.pointer()}, {self.value()});",
            f"atomic_add({self.pointer()}, {self.value()});",
            f"vstore2((int2)({self.value()}), 1, {self.pointer()});",
            f"x += {self.value()};",
            f"s.first = {self.pointer()}; x ^= s.first[1];",
            f"redirect(&{self.random.choice(self.pointers)}, {self.pointer()});",
            f"((__global int4 *){self.random.choice(self.pointers[:4])})->yz = {self.value()};",
        ][choice - 1]

    def source(self) -> str:
        body = "\n  ".join(self.statement() for _ in range(self.random.randrange(1, 7)))
        return f"""
struct pair {{ __global int *first, *second; }};
__global int *step(__global int *p, int by) {{ return p + by; }}
int get(__global int *p, int i) {{ return p[i]; }}
void put(__global int *p, int x) {{ p[2] = x + 1; }}
void redirect(__global int **where, __global int *p) {{ if (p[0] & 1) *where = p; }}
__kernel void k(__global int *p0, __global int *p1, __global int *p2, __global int *p3) {{
  int gid = get_global_id(0), i = gid, x = 0;
  struct pair s = {{p0, {self.random.choice(self.pointers[:4])}}};
  {body}
  if (x == 12345) p3[0] = x;
}}
"""


@pytest.mark.parametrize("seed", range(25))
def test_what_is_called_read_only_never_changes(context: cl.Context, seed: int) -> None:
    source = Generator(seed).source()
    device = context.devices[0]
    signature = from_source(source, "k", [], device)
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, source).build().k
    for fill in (0, 7):
        before = [np.arange(64, dtype=np.int32) * (k + 3) + fill for k in range(4)]
        buffers = [
            cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values) for values in before
        ]
        kernel(queue, (8,), (1,), *buffers)
        for parameter, buffer, old in zip(signature.parameters, buffers, before, strict=True):
            if "w" not in parameter.mode:
                new = np.empty_like(old)
                cl.enqueue_copy(queue, new, buffer)
                assert np.array_equal(new, old), (seed, parameter, source)


@pytest.mark.parametrize("seed", range(25))
def test_what_is_called_unread_does_not_matter(context: cl.Context, seed: int) -> None:
    # Other contents behind what is said to be never read: nothing else may come out differently.
    source = Generator(seed).source()
    signature = from_source(source, "k", [], context.devices[0])
    unread = [k for k, p in enumerate(signature.parameters) if "r" not in p.mode]
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, source).build().k
    results = []
    for noise in (0, 1):
        values = [np.arange(64, dtype=np.int32) * (k + 3) for k in range(4)]
        for k in unread:
            values[k] += noise
        buffers = [cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=v) for v in values]
        kernel(queue, (1,), (1,), *buffers)
        for value, buffer in zip(values, buffers, strict=True):
            cl.enqueue_copy(queue, value, buffer)
        results.append(values)
    for k in set(range(4)) - set(unread):
        assert np.array_equal(results[0][k], results[1][k]), (seed, signature.parameters, source)
    for k in unread:  # untouched, or overwritten the same way
        same = results[0][k] == results[1][k]
        untouched = results[0][k] + 1 == results[1][k]
        assert np.all(same | untouched), (seed, signature.parameters, source)
