"""What a rewritten kernel may lose: sizes it asks for, groups, local memory, early ends, names."""

from __future__ import annotations

import numpy as np

from traps.case import Local, Trap, holding, i, mem

# A kernel of `y` on 8 work-items in groups of 4.
_SIZES = {
    "global size": "y[get_global_size(0)] = get_global_id(0) == 3;",
    "global size of other axes": (
        "y[get_global_size(1) + get_global_size(2) + get_global_size(3)] = 1;"
    ),
    "groups": "y[get_num_groups(0) * 7] = 1; y[get_num_groups(1)] = 2;",
    "group": "y[get_group_id(0) * 9 + get_local_id(0)] = get_local_size(0);",
    "linear": "y[get_global_linear_id()] = 1; y[get_local_linear_id() + 20] = 2;",
    "enqueued": "y[get_enqueued_local_size(0)] = 1;",
    "dimensions": "y[get_work_dim() * 9] = 1;",
    "offset": "y[get_global_offset(0) + 9] = 1;",
    "axis by an expression": (
        "uint a = get_work_dim() - 1; y[get_global_id(a) + get_global_size(a)] = 1;"
    ),
    "axis beyond": "y[get_global_id(7) + get_local_size(5) + 3] = 1;",
    "axis by data": "uint a = y[0] & 3; y[get_global_size(a) + 20] = 1;",
    "axis by a loop": "for (uint a = 0; a < 3; a++) y[get_global_size(a) * 5] = a;",
    "backwards": "y[get_global_size(0) - 1 - get_global_id(0)] = get_global_id(0);",
    "grid stride": "for (uint j = get_global_id(0); j < 40; j += get_global_size(0)) y[j] = j;",
    "last one": "if (get_global_id(0) == get_global_size(0) - 1) y[50] = 1;",
    "last group": "if (get_group_id(0) == get_num_groups(0) - 1) y[get_local_id(0) + 40] = 1;",
    "product": "y[get_group_id(0) * get_local_size(0) + get_local_id(0)] = 7;",
    "identity": "y[get_global_id(0)] = get_group_id(0) * 100 + get_local_id(0);",
    "in a ternary": "y[get_global_id(0) < get_global_size(0) / 2 ? 3 : 30] = 1;",
    "in an argument": "y[min((uint)get_global_size(0), 40u)] = 1;",
    "name in parentheses": "y[(get_global_size)(0)] = 1;",
    "call over lines": (
        "y[get_global_size\n(\n0\n)] = 1; y[get_num_groups /* ( */ ( /* ) */ 0)] = 2;"
    ),
    "call of a call": "y[get_global_size(get_global_size(1) - 1)] = 1;",
    "call with a cast": "y[(int)get_global_size((uint)0)] = 1;",
    "early return": "if (get_global_id(0) > 2) return; y[get_global_id(0)] = 1;",
    "early return in a loop": (
        "for (int j = 0; j < 9; j++) { if (j > get_global_id(0)) return; y[9 * get_local_id(0) + j"
        " & 63] = j; }"
    ),
    "return behind a barrier": (
        "y[get_global_id(0)] = 1; barrier(CLK_GLOBAL_MEM_FENCE); if (get_local_id(0)) return;"
        " y[get_group_id(0) + 20] = 2;"
    ),
    "local array": (
        "local int t[4]; uint l = get_local_id(0); t[l] = y[get_global_id(0)];"
        " barrier(CLK_LOCAL_MEM_FENCE); y[get_global_id(0)] = t[3 - l];"
    ),
    "two local arrays": (
        "local int t[4], u[4]; uint l = get_local_id(0); t[l] = l; u[3 - l] = l * 5;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[l] + u[l]] = 1;"
    ),
    "local and its pointer": (
        "local int t[4], *p; p = t + 1; if (get_local_id(0) == 0) p[2] = 9;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[3] + get_group_id(0)] = 1;"
    ),
    "local number": (
        "local int t; if (get_local_id(0) == 0) t = get_group_id(0) * 9;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t + get_local_id(0)] = 1;"
    ),
    "local structure": (
        "local struct { int a; char b[4]; } t; t.b[get_local_id(0)] = get_local_id(0) * 3; if"
        " (!get_local_id(0)) t.a = 20; barrier(CLK_LOCAL_MEM_FENCE); y[t.a + t.b[3 -"
        " get_local_id(0)]] = 1;"
    ),
    "local rows": (
        "local int t[2][4]; uint l = get_local_id(0); t[0][l] = l; t[1][3 - l] = l;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[0][l] * 4 + t[1][l]] = 1;"
    ),
    "local in a block": (
        "{ local int t[4]; t[get_local_id(0)] = 3; barrier(CLK_LOCAL_MEM_FENCE); y[t[0]] = 1; }"
        " local int t[4]; t[get_local_id(0)] = 9; barrier(CLK_LOCAL_MEM_FENCE); y[t[1]] = 2;"
    ),
    "local of a size": (
        "local int t[sizeof(int4) / sizeof(int)]; t[get_local_id(0)] = 3;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[3] + sizeof(t)] = 1;"
    ),
    "local vectors": (
        "local int4 t[4]; t[get_local_id(0)] = (int4)(get_local_id(0));"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[2].z] = 1; y[t[3].s0 + 20] = 2;"
    ),
    "local typedef": (
        "typedef int four[4]; local four t; t[get_local_id(0)] = 5; barrier(CLK_LOCAL_MEM_FENCE);"
        " y[t[2]] = 1;"
    ),
    "local volatile": (
        "volatile local int t[4]; t[get_local_id(0)] = 5; barrier(CLK_LOCAL_MEM_FENCE); y[t[2]]"
        " = 1;"
    ),
    "local named as a member": (
        "local int t[4]; struct { int t; } s = {9}; t[get_local_id(0)] = s.t;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[1] + s.t] = 1;"
    ),
    "local shadowed": (
        "local int t[4]; t[get_local_id(0)] = 3; { int t = 20; y[t] = 1; }"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[0]] = 2;"
    ),
    "local atomics": (
        "local int t; if (!get_local_id(0)) t = 0; barrier(CLK_LOCAL_MEM_FENCE); y[atomic_inc(&t) +"
        " 30] = 1;"
    ),
    "local given to a helper": (
        "local int t[4]; put$(t, get_local_id(0)); barrier(CLK_LOCAL_MEM_FENCE); y[t[3] + 9] = 1;"
    ),
    "barrier in a loop": (
        "local int t[4]; uint l = get_local_id(0); t[l] = l; for (int j = 0; j < 3; j++) {"
        " barrier(CLK_LOCAL_MEM_FENCE); int v = t[(l + 1) & 3]; barrier(CLK_LOCAL_MEM_FENCE); t[l]"
        " = v; } y[t[l] + 4 * get_group_id(0)] = 1;"
    ),
    "barrier under a uniform condition": (
        "if (get_group_id(0) == 0) { y[get_local_id(0)] = 1; barrier(CLK_GLOBAL_MEM_FENCE);"
        " y[get_local_id(0) + 20] = y[3 - get_local_id(0)]; }"
    ),
    "fences": (
        "y[get_global_id(0)] = 1; mem_fence(CLK_GLOBAL_MEM_FENCE);"
        " read_mem_fence(CLK_LOCAL_MEM_FENCE); write_mem_fence(CLK_GLOBAL_MEM_FENCE);"
        " y[get_global_id(0) + 20] = 2;"
    ),
    "atomics": (
        "atomic_add(&y[3], get_global_id(0)); atomic_max(y + 9, 5); atomic_or(&y[get_local_id(0) +"
        " 20], 1);"
    ),
    "atomic index": "int j = atomic_inc(&y[0]); y[(j & 7) + 20] = 1;",
    "helper asks": "y[who$()] = 1; y[sum$(get_global_size(0), who$())] = 2;",
    "helper asks by a helper": "y[deep$()] = 1;",
    "private array": (
        "int t[8]; for (int j = 0; j < 8; j++) t[j] = j * 7; y[t[get_global_id(0)]] = 1;"
    ),
    "async copy": (
        "local int t[8]; event_t e = async_work_group_copy(t, y + 8 * get_group_id(0), 8, 0);"
        " wait_group_events(1, &e); y[get_global_id(0) + 30] = t[7 - get_local_id(0)];"
    ),
    "async copy back": (
        "local int t[4]; t[get_local_id(0)] = 3; barrier(CLK_LOCAL_MEM_FENCE); event_t e ="
        " async_work_group_copy(y + 9 + 4 * get_group_id(0), t, 4, 0); wait_group_events(1, &e);"
    ),
    "async copy with strides": (
        "local int t[4]; event_t e = async_work_group_strided_copy(t, y + get_group_id(0), 4, 3,"
        " 0); wait_group_events(1, &e); y[get_global_id(0) + 40] = t[get_local_id(0)];"
    ),
    "async copy of vectors": (
        "local int3 t[2]; event_t e = async_work_group_copy(t, (global int3 *)y + get_group_id(0),"
        " 2, 0); wait_group_events(1, &e); y[get_global_id(0) + 40] = t[1].z;"
    ),
    "two async copies": (
        "local int t[4], u[4]; event_t e = async_work_group_copy(t, y, 4, 0); e ="
        " async_work_group_copy(u, y + 8, get_group_id(0) + 2, e); wait_group_events(1, &e);"
        " y[get_global_id(0) + 30] = t[get_local_id(0)] + u[0];"
    ),
    "prefetch": "prefetch(y + 3, 9); y[get_global_id(0)] = 1;",
}

_HELPERS = """
void put$(local int *t, int at) { t[at] = at * 3; }
size_t who$(void) { return get_global_size(0) + get_num_groups(0) * 2 + get_local_size(0); }
size_t sum$(size_t a, size_t b) { return a + b; }
size_t deep$(void) { return who$() + sum$(get_global_size(0), 1); }
"""

_ATTRIBUTES = {
    "required size": (
        "__attribute__((reqd_work_group_size(4, 1, 1))) kernel void k$(global int *y) {"
        " y[get_local_size(0) * 5 + get_group_id(0)] = 1; }"
    ),
    "required size behind": (
        "kernel __attribute__((reqd_work_group_size(4, 1, 1))) void k$(global int *y) {"
        " y[get_global_id(0)] = 1; }"
    ),
    "required size and dimensions": (
        "__attribute__((reqd_work_group_size(4, 1, 1))) kernel void k$(global int *y) {"
        " y[get_work_dim() * 10 + get_global_id(0)] = 1; }"
    ),
    "hints": (
        "__attribute__((work_group_size_hint(8, 1, 1))) __attribute__((vec_type_hint(float4)))"
        " kernel void k$(global int *y) { y[get_local_id(0)] = 1; }"
    ),
    "attributes in a row": (
        "kernel __attribute__((vec_type_hint(int), reqd_work_group_size(4, 1, 1))) void k$(global"
        " int *y) { y[get_global_id(0)] = 1; }"
    ),
    "void first": "void kernel k$(global int *y) { y[get_global_id(0)] = 1; }",
    "double underscores": "__kernel void k$(__global int *y) { y[get_global_id(0)] = 1; }",
    "attribute of a parameter": (
        "kernel void k$(global int *y __attribute__((unused)), int n __attribute__((unused))) {"
        " y[get_global_id(0)] = 1; }"
    ),
    "attribute behind": (
        "kernel void k$(global int *y) __attribute__((noinline)); kernel void k$(global int *y) {"
        " y[get_global_id(0)] = 1; }"
    ),
    "static kernel": "static kernel void k$(global int *y) { y[1] = 1; }",
    "inline kernel": "kernel inline void k$(global int *y) { y[1] = 1; }",
    "extern kernel": "extern kernel void k$(global int *y) { y[1] = 1; }",
    "no parameters": "kernel void k$(void) { }",
    "no parameters at all": "kernel void k$() { }",
    "empty body": "kernel void k$(global int *y) { }",
    "only a return": "kernel void k$(global int *y) { return; }",
    "body on lines": "kernel\nvoid\nk$\n(\nglobal\nint\n*\ny\n)\n{\ny[1]\n=\n1;\n}\n",
    "body of blocks": "kernel void k$(global int *y) {{{ y[1] = 1; }}{ y[2] = 2; }}",
    "calls itself by another": (
        "kernel void o$(global int *y) { y[get_global_id(0)] = 3; } kernel void k$(global int *y) {"
        " o$(y + get_num_groups(0)); }"
    ),
    "called by another": (
        "kernel void k$(global int *y) { y[get_global_id(0)] = get_global_size(0); } kernel void"
        " o$(global int *y) { k$(y); }"
    ),
    "calls a kernel with local memory": (
        "kernel void o$(global int *y, local int *t) { t[get_local_id(0)] = 3;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[0]] = 1; } kernel void k$(global int *y) { local int"
        " t[4]; o$(y, t); }"
    ),
    "calls two kernels with local arrays": (
        "kernel void o$(global int *y) { local int t[4]; int l = get_local_id(0); t[l] = l + 5;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[l] = t[3 - l]; } kernel void p$(global int *y) { local"
        " int t[4]; int l = get_local_id(0); t[l] = l + 50; barrier(CLK_LOCAL_MEM_FENCE);"
        " y[l + 20] = t[3 - l]; } kernel void k$(global int *y) { o$(y); p$(y); }"
    ),
    "helper named as a parameter": (
        "int y$(int n) { return n; } kernel void k$(global int *y) { y[y$(get_global_id(0))] = 1; }"
    ),
    "parameters named as ours": (
        "kernel void k$(global int *acs_when, global int *acs_count, ulong acs_when_at, ulong"
        " acs_offset_0) { acs_when[get_global_id(0)] = 1; acs_count[acs_when_at] = acs_offset_0; }"
    ),
    "locals named as sizes": (
        "kernel void k$(global int *y) { int counted = 3, size = 9, group = get_group_id(0);"
        " y[counted + group] = 1; y[size] = 2; }"
    ),
    "type of a parameter in its name": (
        "struct s$ { int a; }; kernel void k$(global struct s$ *y) { y[get_global_id(0)].a = 1; }"
    ),
    "type declared in the list": (
        "kernel void k$(global struct in$ { int a, b; } *y) { y[get_global_id(0)].b = 1; }"
    ),
    "statics": (
        "constant int table$[] = {3, 1, 4, 1, 5, 9, 2, 6}; kernel void k$(global int *y) {"
        " y[table$[get_global_id(0)]] = 1; }"
    ),
    "statics inside": (
        "kernel void k$(global int *y) { constant int t[] = {3, 1, 4, 1, 5, 9, 2, 6};"
        " y[t[get_global_id(0)]] = 1; }"
    ),
    "static inside a helper": (
        "int f$(int n) { constant int t[2] = {7, 9}; return t[n & 1]; } kernel void k$(global int"
        " *y) { y[f$(get_global_id(0))] = 1; }"
    ),
    "statics of a type inside": (
        "typedef int t$; kernel void k$(global int *y) { typedef short t$; constant t$ a[] ="
        " {(t$)40000, 5}; y[(a[0] < 0) + 3] = a[1]; }"
    ),
    "statics of a number inside": (
        "enum { N$ = 2, M$ = 30 }; kernel void k$(global int *y) { enum { N$ = 3, M$ = 9 };"
        " constant int a[N$] = {N$, M$, 5}; y[a[0] * 3 + a[1]] = 1; }"
    ),
    "statics that name statics": (
        "kernel void k$(global int *y) { constant int a[] = {3, 1, 4}; constant int *constant b ="
        " a + 1; constant int c[] = {sizeof(a), 2}; y[b[1] + c[0]] = c[1]; }"
    ),
    "two with the same local": (
        "kernel void o$(global int *y) { local int t[4]; t[0] = 1; y[0] = t[0]; } kernel void"
        " k$(global int *y) { local int t[8]; t[get_local_id(0) + 4] = 2;"
        " barrier(CLK_LOCAL_MEM_FENCE); y[t[5]] = 1; }"
    ),
    "counted in its name": (
        "size_t get_global_size_(uint d) { return d + 5; } kernel void k$(global int *y) {"
        " y[get_global_size_(1)] = 1; }"
    ),
    "printf": (
        'kernel void k$(global int *y) { printf("%d %s\\n", y[3], "get_global_size(0)"); y[1] ='
        " 1; }"
    ),
}

_ARGUMENTS = {
    "no parameters": (),
    "no parameters at all": (),
    "attribute of a parameter": (mem(), i(3)),
    "parameters named as ours": (mem(), mem(), np.uint64(3), np.uint64(9)),
}

_GRIDS = [
    Trap(
        f"grid {name}",
        f"kernel void k$(global int *y) {{ {text} }}",
        (mem(),),
        size=size,
        local=local,
        offset=offset,
    )
    for name, text in {
        "rows": "y[get_global_id(1) * 8 + get_global_id(0)] = get_local_id(1);",
        "asked": "y[get_work_dim() * 9 + get_global_size(1) + get_num_groups(0)] = 1;",
        "all axes": (
            "y[(get_global_id(2) * 3 + get_global_id(1)) * 4 + get_global_id(0) & 63] ="
            " get_group_id(1);"
        ),
        "offset taken away": (
            "y[get_global_id(0) - get_global_offset(0) + 9 * (get_global_id(1) -"
            " get_global_offset(1))] = 1;"
        ),
    }.items()
    for size, local, offset in [
        ((4, 2), (2, 1), None),
        ((4, 2), (2, 2), (3, 1)),
        ((2, 2, 2), (1, 2, 1), None),
        ((4,), (2,), (5,)),
    ]
]

_NAMED_GRIDS = [
    trap._replace(
        name=f"{trap.name} {'x'.join(map(str, trap.size))}{' offset' * (trap.offset is not None)}"
    )
    for trap in _GRIDS
]

_UNGIVEN = [
    Trap(f"local size not given {name}", source, (mem(),), size=(4,), local=None)
    for name, source in {
        "plain": "kernel void k$(global int *y) { y[get_global_id(0) * 3] = 1; }",
        "with a stride": (
            "kernel void k$(global int *y) { for (int j = get_global_id(0); j < 30; j +="
            " get_global_size(0)) y[j] = 1; }"
        ),
        "with an attribute": (
            "__attribute__((reqd_work_group_size(2, 1, 1))) kernel void k$(global int *y) {"
            " y[get_work_dim() * 10 + get_global_id(0)] = 1; }"
        ),
        "with a hint": (
            "__attribute__((work_group_size_hint(2, 1, 1))) kernel void k$(global int *y) {"
            " y[get_global_id(0)] = 1; }"
        ),
    }.items()
]

TRAPS: list[Trap] = [
    *(
        Trap(
            name,
            f"{_HELPERS}kernel void k$(global int *y) {{ {text} }}",
            (mem(),),
            size=(8,),
            local=(4,),
        )
        for name, text in _SIZES.items()
    ),
    *(
        Trap(f"declared {name}", source, _ARGUMENTS.get(name, (mem(),)), size=(8,), local=(4,))
        for name, source in _ATTRIBUTES.items()
    ),
    *_NAMED_GRIDS,
    *_UNGIVEN,
    Trap(
        "local arguments",
        "kernel void k$(local int *s, global int *y, local char *t) { uint l = get_local_id(0);"
        " s[l] = l; t[3 - l] = l * 3; barrier(CLK_LOCAL_MEM_FENCE); y[s[3 - l] + t[l] + 20 *"
        " get_group_id(0)] = 1; }",
        (Local(16), mem(), Local(4)),
        size=(8,),
        local=(4,),
    ),
    Trap(
        "table as an argument",
        "kernel void k$(global int *y, global const int *t) { y[t[get_global_id(0)] & 63] = 1; }",
        (mem(), holding([5, 3, 60, 9, 9, 1, 0, 63])),
        size=(8,),
        local=(4,),
    ),
]
