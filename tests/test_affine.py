"""Ranges inferred from kernel bodies: exact where they should be, and never without an access."""

from __future__ import annotations

import gc
import itertools
import os
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import affine_programs as programs
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from conftest import Environment
from counting import calls

import acs_cl as acs
from acs_cl import core, devices, testing
from acs_cl.access import arguments
from acs_cl.access.bands import Groups
from acs_cl.access.binder import MOST_RUNS, Number, Reached, binder, names, needed
from acs_cl.access.cuts import in_runs
from acs_cl.access.inference import from_source
from acs_cl.access.signature import Signature
from acs_cl.records import Access, Span

Sizes = tuple[int, ...]


def reached(
    source: str, name: str, sizes: Sizes, local: Sizes | None = None, offset: Sizes | None = None,
    **numbers: int,
) -> dict[str, Reached]:  # fmt: skip
    signature = from_source(source, name, None, None)
    assert signature.outline is not None, signature.unclear
    return of(signature, sizes, local, offset, numbers)


def of(
    signature: Signature, sizes: Sizes, local: Sizes | None, offset: Sizes | None,
    numbers: dict[str, int], groups: Groups | None = None,
) -> dict[str, Reached]:  # fmt: skip
    made = binder(signature)
    wanted = [numbers.get(name, 0) for name in names(signature, made.numbers)]
    found = made.reached(sizes, local, offset, wanted, groups)
    return {
        parameter.name: found.get(index, Reached((), ()))
        for index, parameter in enumerate(signature.parameters)
        if parameter.is_pointer
    }


def cut(sizes: Sizes, local: Sizes, bands: int) -> list[Groups]:
    """The groups of each band of a launch."""
    counts = [-(-n // each) for n, each in zip(sizes, local, strict=True)]
    return [one.boxes[0] for one in in_runs(counts, bands).parts]


def elements(rectangles: Any, size: int, limit: int) -> set[int]:
    """The elements of an array that rectangles of bytes stand for."""
    if rectangles is None:
        return set(range(limit))
    end = limit * size
    return {
        byte // size
        for start, pitch, rows, width in rectangles
        for row in range(max(0, -(start + width) // pitch), min(rows, (end - start) // pitch + 1))
        for byte in range(max(start + row * pitch, 0), min(start + row * pitch + width, end))
    }


def recorder(seeds: list[int], context: Any) -> Any:
    text = programs.RECORDING + "\n".join(programs.Writer(seed).kernel() for seed in seeds)
    return cl.Program(context, text).build(["-w"])


def sizes_of(chance: random.Random) -> tuple[Sizes, Sizes | None, Sizes | None]:
    sizes: Sizes = (chance.choice([1, 2, 8, 16, 24]), chance.choice([1, 1, 3, 4]))
    local = None if chance.random() < 0.3 else (chance.choice([1, sizes[0], sizes[0] // 2 or 1]), 1)
    offset = None if chance.random() < 0.7 else (chance.randrange(9), chance.randrange(3))
    return sizes, local, offset


def record(
    kernel: Any, queue: Any, memory: list[Any], sizes: Any, numbers: dict[str, int],
    band: Groups | None, more: Sequence[Any] = (),
) -> dict[tuple[str, int], Any]:  # fmt: skip
    """Run the recording form of a kernel, or a band of its groups. Which elements of each array
    were read (0) and written (1)."""
    context, flags = queue.context, cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=one) for one in memory]
    seen = [np.zeros(programs.ELEMENTS, "u1") for _ in range(6)]
    notes = [cl.Buffer(context, flags, hostbuf=one) for one in seen]
    values = [np.int32(numbers[name]) for name in programs.NUMBERS]
    ends = [end for axis in band or ((0, 2**31 - 1),) * 2 for end in axis]
    global_size, local_size, offset = sizes
    kernel(
        queue, global_size, local_size, *buffers, *values, *more, *buffers, *notes,
        np.array(ends, "i4"), global_offset=offset,
    )  # fmt: skip
    for host, note in zip(seen, notes, strict=True):
        cl.enqueue_copy(queue, host, note)
    return {
        (name, flag): seen[3 * flag + index]
        for index, name in enumerate(programs.ARRAYS)
        for flag in range(2)
    }


def held(seen: Mapping[Any, Any], found: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Hold what a run touched, by name and whether it writes, against what is inferred. Return how
    many were touched, and of how many less than all is inferred."""
    count = less = 0
    for (name, flag), note in seen.items():
        touched = set(np.flatnonzero(note).tolist())
        allowed = elements(found[name][flag], 4, programs.ELEMENTS)
        assert touched <= allowed, (
            f"{'rw'[flag]} of {name}: {sorted(touched - allowed)[:9]} are not in "
            f"{found[name][flag]}; {where}"
        )
        if touched:
            count += 1
            less += len(allowed) < programs.ELEMENTS
    return count, less


def check(seeds: list[int]) -> tuple[int, int]:
    """Record what kernels do, and find it in what is inferred. How many ranges were inferred, and
    how many of them say less than all of the array."""
    device = devices.choose()
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = recorder(seeds, context)
    count = less = 0
    for seed in seeds:
        text = programs.PLAIN + programs.Writer(seed).kernel()
        signature = from_source(text, f"k{seed}", None, device)
        chance = random.Random(seed)
        if signature.outline is None:
            continue
        kernel = getattr(program, f"k{seed}")
        for turn in range(3):
            sizes, local, offset = sizes_of(chance)
            numbers = {
                "n": chance.choice([0, 1, 5, 13, 20, 64, -2]),
                "m": chance.choice([1, 3, 8, 17, 100, 2**31 - 1, -7]),
                "s": chance.choice([1, 2, 4, 20, 60, -3]),
            }
            memory = [np.array([chance.randrange(-4, 90) for _ in range(programs.ELEMENTS)], "i4")
                      for _ in programs.ARRAYS]  # fmt: skip
            bands: list[Groups | None] = [None]
            if local is not None:
                bands += cut(sizes, local, chance.choice([1, 2, 3, 8]))
            for band in bands:
                found = of(signature, sizes, local, offset, numbers, band)
                seen = record(kernel, queue, memory, (sizes, local, offset), numbers, band)
                where = (
                    f"seed {seed}, turn {turn}: sizes {sizes}, local {local}, offset {offset}, "
                    f"band {band}, {numbers}\n{text}"
                )
                some, narrower = held(seen, found, where)
                count, less = count + some, less + narrower
    return count, less


# Parameters x (read or written) and y, both of int; numbers n, m, s. What follows: body, sizes,
# numbers, and the bytes of x, `None` for all of it.
ALL = None
ANY = [(-(2**33), 2**34, 1, 2**34)]
G = "int i = get_global_id(0);"
KNOWN = [
    (f"{G} x[i] = 1;", (8,), {}, [(0, 32, 1, 32)]),
    (f"{G} x[i + n] = 1;", (8,), {"n": 3}, [(12, 32, 1, 32)]),
    (f"{G} x[i * s + n] = 1;", (8,), {"n": 3, "s": 4}, [(12, 16, 8, 4)]),
    (f"{G} x[n - i] = 1;", (8,), {"n": 10}, [(12, 32, 1, 32)]),
    (f"{G} x[4 * i] = x[4 * i + 1] = 1;", (8,), {}, [(0, 16, 8, 8)]),
    (f"{G} x[4 * i] = x[4 * i + 3] = 1;", (3,), {}, [(0, 16, 3, 4), (12, 16, 3, 4)]),
    (f"{G} if (i < n) x[i] = 1;", (8,), {"n": 5}, [(0, 20, 1, 20)]),
    (f"{G} if (i < n) x[i] = 1;", (8,), {"n": 0}, []),
    (f"{G} if (i >= n) return; x[i] = 1;", (8,), {"n": 5}, [(0, 20, 1, 20)]),
    (f"{G} if (!(i < n) || i == 0) return; x[i] = 1;", (8,), {"n": 5}, [(4, 16, 1, 16)]),
    (f"{G} if (i > 1 && i <= n) x[i] = 1;", (8,), {"n": 5}, [(8, 16, 1, 16)]),
    (f"{G} if (i + n < 7) x[i + n] = 1;", (8,), {"n": 3}, [(12, 16, 1, 16)]),
    (f"{G} x[i < n ? i : 9] = 1;", (8,), {"n": 3}, [(0, 40, 1, 40)]),
    (f"{G} x[min(i, n)] = 1;", (8,), {"n": 3}, [(0, 16, 1, 16)]),
    (f"{G} x[clamp(i - 2, 1, n)] = 1;", (8,), {"n": 3}, [(4, 12, 1, 12)]),
    (f"{G} x[clamp(i, 9, n)] = 1;", (8,), {"n": 3}, [(12, 28, 1, 28)]),  # either bound
    (f"{G} x[clamp(i++, 1, n)] = 1; y[i] = 1; x[clamp(i, 20, 21)] = 1;", (1,), {"n": 3},
     [(4, 4, 1, 4), (80, 4, 1, 4)]),
    (f"{G} int2 v = (int2)(n) < 9 ? (int2)(i++) : (int2)(i++); x[i] = v.x;", (1,), {},
     [(8, 4, 1, 4)]),
    (f"{G} x[i / 2] = 1;", (8,), {}, [(0, 16, 1, 16)]),
    (f"{G} x[i % n] = 1;", (8,), {"n": 3}, [(0, 12, 1, 12)]),
    (f"{G} x[i >> 1 & 1] = 1;", (8,), {}, [(0, 8, 1, 8)]),
    (f"{G} int j = get_global_id(1); x[j * n + i] = 1;", (4, 3), {"n": 10}, [(0, 40, 3, 16)]),
    (f"{G} int k = get_global_id(1) * n + i; x[k % n] = 1;", (4, 3), {"n": 10}, [(0, 16, 1, 16)]),
    ("x[get_group_id(0) * get_local_size(0) + get_local_id(0)] = 1;", (8,), {}, [(0, 32, 1, 32)]),
    ("for (int k = get_global_id(0); k < n; k += get_global_size(0)) x[k] = 1;", (8,),
     {"n": 30}, [(0, 120, 1, 120)]),
    ("for (int k = get_local_id(0); k < n; k += 4) x[k] = 1;", (8,), {"n": 7}, [(0, 28, 1, 28)]),
    (f"{G} for (int k = 0; k < n; k++) x[k * s + i] = 1;", (4,), {"n": 3, "s": 10},
     [(0, 40, 3, 16)]),
    (f"{G} for (int k = n; k > 0; --k) x[k] = 1;", (4,), {"n": 3}, [(4, 12, 1, 12)]),
    (f"{G} for (int k = 0; k < n; k++) {{ if (k == 2) continue; x[k] = 1; }}", (4,), {"n": 3},
     [(0, 8, 1, 8)]),
    # a loop without turns, and loops that say how they are compiled
    ("x[3] = 1; for (int k = m; k < n; k++) x[k] = 1; for (int k = n; k > m; k--) x[k] = 1;", (1,),
     {"m": 9, "n": 9}, [(12, 4, 1, 4)]),
    ("for (uint k = m; k < n && y[k]; k += 2) x[k] = 1; x[1] = 1;", (1,), {"m": 9, "n": 3},
     [(4, 4, 1, 4)]),
    ("\n#pragma unroll 2\nfor (int k = 0; k < n; k++) x[k] = 1;", (1,), {"n": 3}, [(0, 12, 1, 12)]),
    ("__attribute__((opencl_unroll_hint)) for (int k = 0; k < n; k++)\n#pragma unroll\n"
     "for (int j = 0; j < 2; j++) x[k * 4 + j] = 1;", (1,), {"n": 3}, [(0, 16, 3, 8)]),
    ("switch (n) { case 3: x[3] = 1; __attribute__((fallthrough)); case 4: x[4] = 1; }", (1,),
     {"n": 3}, [(12, 8, 1, 8)]),
    (f"{G} global int *p = x + n; p += i; *p = 1; p[2] = 1;", (4,), {"n": 3}, [(12, 24, 1, 24)]),
    (f"{G} global int *p = &x[n]; *p++ = 1; *p = 1;", (4,), {"n": 3}, [(12, 8, 1, 8)]),
    (f"{G} vstore4((int4)(0), i, x + n);", (2,), {"n": 3}, [(12, 32, 1, 32)]),
    (f"{G} atomic_add(x + i, 1);", (2,), {}, [(0, 8, 1, 8)]),
    (f"{G} ((global short *)x)[i] = 1;", (4,), {}, [(0, 8, 1, 8)]),
    (f"{G} put(x + i, n);", (4,), {"n": 2}, [(8, 16, 1, 16)]),
    (f"{G} x[abs(i - n)] = 1;", (4,), {"n": 2}, [(0, 12, 1, 12)]),
    # drivers differ in what the least number becomes, where it is read as signed
    ("if ((int)abs(n) < 0) x[5] = 1; else x[4] = 1;", (1,), {"n": -(1 << 31)}, [(16, 8, 1, 8)]),
    # parameters that are written as arrays are pointers: another element is another place
    (f"{G} four(x + i, n);", (4,), {"n": 2}, [(8, 16, 1, 16)]),
    (f"{G} four_next(x + i, n);", (4,), {"n": 2}, [(12, 16, 1, 16)]),
    (f"{G} four_named(x + i, n);", (4,), {"n": 2}, [(8, 16, 1, 16)]),
    (f"{G} rows(x + 4 * i, n);", (2,), {"n": 2}, [(24, 16, 2, 4)]),
    (f"{G} global int (*p)[4] = (global int (*)[4])x; p[i][n] = 1;", (2,), {"n": 2},
     [(8, 16, 2, 4)]),
    ("global int (*p)[4]; p = (global int (*)[sizeof(int)])x; (*++p)[n] = 1;", (1,), {"n": 2},
     [(24, 4, 1, 4)]),
    # arithmetic on pointers to void counts bytes, as clang does
    ("global void *p = x; *(global int *)(p + 4 * n) = 1;", (1,), {"n": 5}, [(20, 4, 1, 4)]),
    ("global void *p = x + n; *(global int *)(p - 4) = 1;", (1,), {"n": 5}, [(16, 4, 1, 4)]),
    ("global void *p = x; p += 4 * n; *(global int *)p = 1;", (1,), {"n": 5}, [(20, 4, 1, 4)]),
    ("global void *p = x + n; p -= 8; *(global int *)p = 1;", (1,), {"n": 5}, [(12, 4, 1, 4)]),
    ("global void *p = x; p++; ++p; *(global short *)p = 1;", (1,), {}, [(2, 2, 1, 2)]),
    ("global void *p = x + n; --p; p--; *(global short *)p = 1;", (1,), {"n": 5}, [(18, 2, 1, 2)]),
    ("global void *p = x; *(global char *)&p[n] = 1;", (1,), {"n": 5}, [(5, 1, 1, 1)]),
    (f"{G} byte(x, 4 * i);", (4,), {}, [(0, 4, 4, 1)]),
    # a type without a size is no number of bytes
    ("struct none {}; global struct none *p = x; p += n; *(global int *)p = 1;", (1,), {"n": 1},
     ALL),
    (f"{G} if (n > 1) put(x, i); else put(y, i);", (4,), {"n": 1}, []),
    # a while loop whose turns end by counting is a for loop
    (f"{G} while (i < n) {{ x[i] = 1; i += 2; }}", (2,), {"n": 7}, [(0, 28, 1, 28)]),
    (f"{G} int k = 0; while (k < n) {{ x[i + k] = 1; ++k; }}", (2,), {"n": 3}, [(0, 16, 1, 16)]),
    (f"{G} while (n > i) {{ if (y[n]) break; x[n - 1] = 1; (n--); }}", (4,), {"n": 6},
     [(0, 24, 1, 24)]),
    (f"{G} while (i < n) {{ for (int k = 0; k < 3; k++) {{ if (k == 1) continue; x[i] = 1; }} "
     "i += 2; }", (2,), {"n": 7}, [(0, 28, 1, 28)]),
    # unless something else changes its counter, or a turn may end before that
    (f"{G} while (i < n) {{ x[i + 1] = 1; if (y[i]) i = 90; i++; }}", (2,), {"n": 7},
     [(-(2**33) + 4, 2**33 + 28, 1, 2**33 + 28)]),
    (f"{G} while (i < n) {{ i += 2; x[i] = 1; }}", (2,), {"n": 7}, [(8, 28, 1, 28)]),
    (f"{G} while (i < n) {{ if (y[i]) {{ i = 80; continue; }} x[i] = 1; i++; }}", (2,), {"n": 7},
     [(-(2**33), 2**33 + 28, 1, 2**33 + 28)]),
    # statements with attributes are those statements
    (f"{G} \n#pragma unroll\nfor (int k = 0; k < 3; k++) x[k * 4 + i] = 1;", (2,), {},
     [(0, 16, 3, 8)]),
    (f"{G} \n#pragma nounroll\ndo x[i] = 1; while (y[0]);", (2,), {}, [(0, 8, 1, 8)]),
    ("__attribute__((opencl_unroll_hint(2))) for (int k = 0; k < n; k++) x[k] = 1;", (2,),
     {"n": 5}, [(0, 20, 1, 20)]),
    ("switch (n) { case 1: x[2] = 1; __attribute__((fallthrough)); case 2: x[3] = 1; }", (1,),
     {"n": 1}, [(8, 8, 1, 8)]),
    # what is not proven is all of it
    (f"{G} x[y[i]] = 1;", (8,), {}, [(-(2**33), 2**34, 1, 2**34)]),
    (f"{G} x[i * n] = 1;", (8,), {"n": 2**30}, [(-(2**33), 2**34, 1, 2**34)]),
    (f"{G} uint u = i; x[u - 1] = 1;", (8,), {}, [(0, 2**34, 1, 2**34)]),
    ("x[get_global_id(0) - 1] = 1;", (8,), {}, ALL),
    (f"{G} while (y[0]) {{ x[i] = 1; i += 2; }}", (8,), {}, [(-(2**33), 2**34, 1, 2**34)]),
    (f"{G} global int *p = n ? x : y; p[i] = 1;", (8,), {"n": 1}, [(0, 32, 1, 32)]),
    (f"{G} global int *p = y[0] ? x : y; p[i] = 1;", (8,), {}, ALL),
    (f"{G} global int *p = x; for (int k = 0; k < 3; k++) {{ *p = 1; p += n; }}", (8,), {}, ALL),
    (f"{G} global int *p[2] = {{x, y}}; p[n][i] = 1;", (8,), {"n": 1}, ALL),
    (f"{G} global int *p = x; global int **q = &p; **q = 1;", (8,), {}, ALL),
    (f"{G} int k = i; int *q = &k; *q = n; x[k] = 1;", (8,), {"n": 90},
     [(-(2**33), 2**34, 1, 2**34)]),
    (f"{G} if ((uint)i < (uint)-1) x[i] = 1;", (8,), {}, [(0, 32, 1, 32)]),
    (f"{G} for (uchar k = 0; k < 256; k++) {{ if (y[0]) break; x[k] = 1; }}", (8,), {},
     [(0, 1024, 1, 1024)]),
    (f"{G} switch (n) {{ case 1: i = 5; break; default: x[i] = 1; }} x[i] = 1;", (8,), {"n": 1},
     [(-(2**33), 2**34, 1, 2**34)]),
    # a pointer in a structure is one that is kept, with and without a name of its member
    ("struct { global int *p; int k; } v = {.k = 1, .p = x + n}; v.p[1] = 1;", (1,), {}, ALL),
    ("struct { global int *p; int k; } v = {p: x}; v.p[1] = 1;", (1,), {}, ALL),
    ("struct two { int k; global int *p; }; *((struct two){.p = x}).p = 1;", (1,), {}, ALL),
    # a word for the compiler in front changes nothing
    ("*(__extension__ (x + 3)) = 1; __extension__ n = 7; x[n] = 1;", (1,), {},
     [(12, 4, 1, 4), (28, 4, 1, 4)]),
    # a variable that is changed through an expression which is not understood
    ("int k = 3; _Generic(n, int: k) = 9; x[k] = 1;", (1,), {}, ANY),
    ("int k = 3; _Generic(n, long: n, int: k)++; x[k] = 1;", (1,), {}, ANY),
    ("int k = 3, *q = &_Generic(n, int: k); *q = 9; x[k] = 1;", (1,), {}, ANY),
    ("int k = 3; __builtin_choose_expr(1, k, n) += 9; x[k] = 1;", (1,), {}, ANY),
    ("_Generic(n, int: y) = x; y[n] = 1;", (1,), {}, ALL),
    # a variable whose declaration a label jumps over has any value of any type
    ("switch (n) { ulong u; case 0: u = -1; case 1: if (u > 1ul << 63) x[5] = 1; }", (1,), {},
     [(20, 4, 1, 4)]),
    ("switch (n) { case 2: ; ulong u = 0; case 1: u--; case 0: if (u > 1ul << 63) x[5] = 1; }",
     (1,), {"n": 1}, [(20, 4, 1, 4)]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sizes", "numbers", "expected"), KNOWN)
def test_ranges_are_what_the_body_says(
    body: str, sizes: Sizes, numbers: dict[str, int], expected: list[Any] | None
) -> None:
    source = (
        "void put(global int *p, int at) { p[at] = 1; }\n"
        "void four(global int p[static 4], int at) { p[at] = 1; }\n"
        "void four_next(global int p[4], int at) { p++; p[at] = 1; }\n"
        "typedef int quad[4]; void four_named(global quad p, int at) { p[at] = 1; }\n"
        "void rows(global int p[2][4], int at) { p[1][at] = 1; }\n"
        "void byte(global void *p, int at) { *(global char *)(p + at) = 1; }\n"
        f"kernel void k(global int *x, global int *y, int n, int m, int s) {{ {body} }}"
    )
    local = (4,) if "local" in body else None
    found = reached(source, "k", sizes, local, **numbers)["x"]
    assert found.writes == (None if expected is None else tuple(expected)), found.why
    assert expected is not None or found.why


B = "barrier(CLK_LOCAL_MEM_FENCE);"
MET = [
    # a driver may let all work-items of a group go on where the first one does
    (f"if (i >= n) return; {B} x[i] = 1;", 16),
    (f"if (i >= n) return; x[i] = 1; {B}", 16),
    (f"if (i < n) {{ x[i] = 1; {B} }}", 16),
    ("if (i < n) { x[i] = 1; meet(); }", 16),
    (f"if (i < n) {{ if (m) {{ {B} }} x[i] = 1; }}", 16),
    (f"if (i >= n) {{ if (m) return; }} else x[i] = 1; {B}", 16),
    (f"for (int k = 0; k < 1; k++) {{ if (i >= n) break; x[i] = 1; {B} }}", 16),
    (f"for (int k = 0; k < 1; k++) {{ if (i >= n) continue; {B} x[i] = 1; }}", 16),
    (f"if (y[0] < n) return; {B} x[i] = 1;", 16),
    # unless they all agree, or none of them meets another one there
    ("if (i >= n) return; x[i] = 1;", 11),
    (f"{B} if (i >= n) x[1] = 1; else x[i] = 1; {B}", 11),
    (f"if (i < n) {{ for (int k = 0; k < 2; k++) {{ if (i == n) break; x[i] = 1; }} }} {B}", 11),
    (f"int g = get_group_id(0); if (g >= m) return; {B} x[4 * g + get_local_id(0)] = 1;", 4),
    (f"for (int k = 0; k < m + 2; k++) {{ {B} x[k] = 1; {B} }}", 3),
    (f"if (n < 20 || m > 3) {{ {B} if (i < n) x[i] = 1; }}", 11),
    (f"if (n > 20) {{ {B} x[i] = 1; }}", 0),
]


@pytest.mark.parametrize(("body", "count"), MET)
def test_a_condition_with_a_barrier_narrows_for_whole_groups(body: str, count: int) -> None:
    source = (
        f"void meet() {{ {B} }}\n"
        "kernel void k(global int *x, global int *y, int n, int m)\n"
        f"{{ int i = get_global_id(0); {body} }}"
    )
    found = reached(source, "k", (16,), (4,), n=11, m=1)["x"]
    assert elements(found.writes, 4, 16) == set(range(count))


@pytest.mark.parametrize("body", [body for body, count in MET if count == 16])
def test_what_a_driver_lets_whole_groups_do_is_inside(body: str, device: cl.Device) -> None:
    source = (
        f"void meet() {{ {B} }}\nkernel void k(global int *x, global int *y, int n, int m)\n"
        f"{{ int i = get_global_id(0); {body} }}"
    )
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    x, y = cl.array.zeros(queue, 16, "i4"), cl.array.zeros(queue, 16, "i4")
    kernel = cl.Program(context, source).build(["-w"]).k
    kernel(queue, (16,), (4,), x.data, y.data, np.int32(11), np.int32(1))
    found = of(from_source(source, "k", None, device), (16,), (4,), None, {"n": 11, "m": 1})["x"]
    assert set(np.flatnonzero(x.get()).tolist()) <= elements(found.writes, 4, 16)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("goto end; end: x[0] = 1;", "goto"),
        ("switch (n) { { case 1: x[0] = 1; } }", "a case inside"),
    ],
)
def test_what_cannot_be_followed_is_said(body: str, reason: str) -> None:
    source = f"kernel void k(global int *x, int n) {{ {body} }}"
    signature = from_source(source, "k", None, None)
    assert signature.outline is None
    assert reason in signature.unclear


def writes_in_bytes(body: str) -> Any:
    return reached(f"kernel void k(global int *x, int n) {{ {body} }}", "k", (1,), n=3)["x"].writes


def test_a_type_that_drivers_may_give_other_bits_is_any_number_and_of_any_size() -> None:
    for kind in ("long long", "unsigned long long"):
        assert writes_in_bytes(f"{kind} a = n; a <<= 62; x[(int)(a >> 62)] = 1;") != (
            (12, 4, 1, 4),
        )
        assert writes_in_bytes(f"global {kind} *p = (global {kind} *)x; p[n] = 1;") is None
    structure = "struct s { char a; struct { long long b[2]; } c; }"
    assert writes_in_bytes(f"global {structure} *p = (global struct s *)x; p[n].a = 1;") is None
    assert writes_in_bytes("x[(int)(18446744073709551615ull + n) >> 60] = 1;") != ((0, 4, 1, 4),)
    assert writes_in_bytes("global long *p = (global long *)x; p[n] = 1;") == ((24, 8, 1, 8),)


def test_nested_clamps_do_not_multiply() -> None:
    index = "n"
    for _ in range(40):
        index = f"clamp(i, 0, {index})"
    source = f"kernel void k(global int *x, int n) {{ {G} x[{index}] = 1; }}"
    assert len(repr(from_source(source, "k", None, None).outline)) < 100 * 40
    assert reached(source, "k", (8,), n=3)["x"].writes == ((0, 16, 1, 16),)


def test_long_chains_of_numbers_take_few_steps() -> None:
    took = []
    for count in (50, 100):
        chain = "".join(f"int a{at + 1} = a{at} + 1;" for at in range(count))
        source = f"kernel void k(global int *x, int n) {{ int a0 = n; {chain} x[a{count}] = 1; }}"
        took.append(calls(partial(from_source, source, "k", None, None)))
        outline = from_source(source, "k", None, None).outline
        assert needed(outline) == [Number(1, 0, 32, "")]
    assert took[1] < 2.5 * took[0]


def test_a_number_that_only_an_unread_variable_takes_is_not_needed() -> None:
    source = """kernel void k(global int *x, int n, int m, int flag)
        { int i = n, unread = m; if (n > 3) unread += flag && m; x[i] = 1; }"""
    assert needed(from_source(source, "k", None, None).outline) == [Number(1, 0, 32, "")]


def test_assignments_in_one_another_are_read_once() -> None:
    took = []
    for count in (20, 40):
        names = [f"a{at}" for at in range(count)]
        body = f"int {', '.join(names)}; x[{' = '.join(names)} = n] = 1;"
        source = f"kernel void k(global int *x, int n) {{ {body} }}"
        took.append(calls(partial(from_source, source, "k", None, None)))
        assert reached(source, "k", (1,), n=3)["x"].writes == ((12, 4, 1, 4),)
    assert took[1] < 2.5 * took[0]


SHIFT = """kernel void shift(global const int *x, global int *y, int n, int from)
{ int i = get_global_id(0); if (i < n) y[from + i] = x[i]; }"""


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "device"])
def test_launches_on_one_array_are_independent_where_their_items_are(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        shift = rt.build(SHIFT).shift
        x, y = rt.array(np.arange(64, dtype="i4")), rt.zeros(64, "i4")
        first, second = shift((32,), None, x, y, 20, 0), shift((32,), None, x, y, 20, 20)
        third = shift((32,), None, x, y, 20, 19)
        assert not rt.explain(first, second).ordered
        meetings = rt.explain(second, third).meetings
        assert [(m.kind, m.bytes) for m in meetings] == [("WAW", (80, 156))]
        assert second.access.writes[0].nbytes == 80
        assert not second.access.overwrites
        shift.infer_ranges = False
        assert shift((32,), None, x, y, 20, 40).access.writes[0].nbytes == 256
        shift.infer_ranges = True
        offset = shift((8,), None, x, y, 64, 0, offset=(4,)).access
        assert (offset.reads[0].start, offset.reads[0].nbytes) == (16, 32)
        named = shift((8,), None, x, y, 64, 0, writes=[y])
        assert named.access.writes[0].nbytes == 256
        expected = np.zeros(64, "i4")
        for at, n in ((0, 20), (20, 20), (19, 20), (40, 20)):
            expected[at : at + n] = np.arange(n)
        expected[4:12] = np.arange(4, 12)
        expected[:8] = np.arange(8)
        np.testing.assert_array_equal(y.get(), expected)


SEVERAL = """kernel void several(global const int *x, global int *y, global int *z, int n, int by)
{
    int i = get_global_id(0);
    if (i < n) y[by * i] += x[i];
    z[x[i]] = 1;
}"""


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes", "device"])
def test_explain_says_what_was_inferred_for_each_argument_and_why(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        several = rt.build(SEVERAL).several
        x, y, z = rt.zeros(40, "i4"), rt.zeros(40, "i4"), rt.zeros(40, "i4")
        some = several((16,), None, x, y[8:], z, 10, 3)
        text = str(rt.explain(some))
        assert "with global size (16,), n = 10, by = 3:" in text
        assert "x is r (const): bytes 0..64 of its 160" in text
        assert "y is rw (" in text
        assert "): bytes 0..112 (10 rows of 4, 12 apart) of its 128" in text
        assert "z is w (only written in the body): all of its 160 bytes: nothing bounds" in text
        nothing = several((16,), None, x, y[8:], z, 0, 3)
        assert "y is rw (" in str(rt.explain(nothing))
        assert "): nothing" in str(rt.explain(nothing))
        for _ in range(20):  # which the native core makes, after a while, from whole views
            whole = several((40,), None, x, y, z, 40, 1)
        text = str(rt.explain(whole))
        assert "with global size (40,), n = 40, by = 1:" in text
        assert "x is r (const): all of its 160 bytes\n" in text
        assert "inferred" not in str(rt.explain(y.fill(1)))


def test_explain_names_all_kernels_of_a_name_that_can_have_made_a_launch() -> None:
    with acs.Runtime(backend="serial") as rt:
        one, other = (
            rt.build("kernel void k(global int *x) { x[get_global_id(0)] = 1; }"),
            rt.build("kernel void k(global int *all, int at) { all[at + get_global_id(0)] = 1; }"),
        )
        x = rt.zeros(16, "i4")
        alone = one.k((8,), None, x[:8])
        assert "x is w" in str(rt.explain(alone))
        either = other.k((8,), None, x, 0)
        text = str(rt.explain(either))
        assert "one of 2 kernels called 'k' made it:\n" in text
        assert "  x is w (only written in the body): all of its 32 bytes" in text
        assert "  all is w (only written in the body): " in text
        sure = one.k((16,), None, x)
        assert "one of" not in str(rt.explain(sure))
        assert "  x is w (only written in the body): all of its 64 bytes" in str(rt.explain(sure))


def test_explain_says_why_nothing_was_inferred(environment: Environment) -> None:
    with acs.Runtime(backend="serial") as rt:
        several = rt.build(SEVERAL).several
        x, y, z = rt.zeros(40, "i4"), rt.zeros(40, "i4"), rt.zeros(40, "i4")

        def said(**named: Any) -> str:
            return str(rt.explain(several((16,), None, x, y, z, 10, 1, **named)))

        assert "the launch has reads= or writes=" in said(writes=[y[:20], z])
        several.infer_ranges = False
        assert "turned off for this kernel" in said()
        several.infer_ranges = None
        several.access(y="rw[gid]")
        assert "kernel.access declares" in said()
        body = "kernel void jumps(global int *x) { goto end; end: x[0] = 1; }"
        jumps = rt.build(body).jumps
        text = str(rt.explain(jumps((4,), None, x)))
        assert "no ranges were inferred: " in text
        assert "goto" in text
        assert "x is w (only written in the body)" in text
        environment(ACS_CL_RANGES="off")
        other = rt.build(SEVERAL.replace("several(", "other(")).other
        assert "ACS_CL_RANGES" in str(rt.explain(other((16,), None, x, y, z, 10, 1)))


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_a_number_behind_a_typedef_is_a_number(backend: str) -> None:
    source = """typedef uchar index_t;
    kernel void put(global int *y, index_t n) { n += 9; y[n] = 1; }"""
    with acs.Runtime(backend=backend) as rt:
        y = rt.zeros(300, "i4")
        put = rt.build(source).put
        for number in (np.uint8(250), 250):
            handle = put((1,), None, y, number)
            assert [one.nbytes for one in handle.access.writes] == [4]
            assert np.flatnonzero(y.get()).tolist() == [3]
        with pytest.raises(acs.UsageError, match=r"n.*256"):
            put((1,), None, y, 256)


def test_a_graph_that_is_updated_has_the_ranges_of_its_new_numbers() -> None:
    with acs.Runtime(backend="out_of_order") as rt:
        shift = rt.build(SHIFT).shift
        x, y = rt.array(np.arange(64, dtype="i4")), rt.zeros(64, "i4")
        with rt.record() as graph:
            first = shift((32,), None, x, y, 20, 0)
            shift((32,), None, y, x, 20, 30)
        graph.replay()
        graph.update(first, **{"from": 10})
        graph.replay()
        a, b = np.arange(64, dtype="i4"), np.zeros(64, "i4")
        for at in (0, 10):
            b[at : at + 20] = a[:20]
            a[30:50] = b[:20]
        np.testing.assert_array_equal(y.get(), b)
        np.testing.assert_array_equal(x.get(), a)


def test_launches_in_the_scheduler_touch_what_they_reach() -> None:
    """By the core, one by one and many at once, with views anywhere."""
    with acs.Runtime(backend="device") as rt:
        shift = rt.build(SHIFT).shift
        rt.prebuild(shift)
        x, y = rt.array(np.arange(64, dtype="i4")), rt.zeros(256, "i4")
        for at in (0, *range(0, 64, 8)):
            shift((8,), None, x, y[:64], 8, at)
        before = testing.made_by_core(rt)
        handles = [shift((8,), None, x, y[64:], 8, at) for at in range(0, 64, 8)]
        shift.launch_many((8,), None, x, y[128:], 8, list(range(0, 64, 8)))
        short = shift((8,), None, x[4:], y[200:], 8, 0)
        assert testing.made_by_core(rt) == before + 17
        assert "in the scheduler" in str(rt.explain(short))
        assert [one.access.writes[0][1:] for one in handles] == [
            (256 + 4 * at, 32, 1, 32) for at in range(0, 64, 8)
        ]
        assert not rt.explain(handles[0], handles[1]).ordered
        assert short.access.reads[0][1:] == (16, 32, 1, 32)
        assert short.access.writes[0][1:] == (800, 32, 1, 32)
        expected = np.concatenate([np.tile(np.arange(8), 24), [0] * 64])
        expected[200:208] = np.arange(4, 12)
        np.testing.assert_array_equal(y.get(), expected)


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_ever_new_numbers_are_worked_out_for_a_while_only(backend: str) -> None:
    with acs.Runtime(backend=backend) as rt:
        shift = rt.build(SHIFT).shift
        if backend == "device":
            rt.prebuild(shift)
        x, y = rt.zeros(8, "i4"), rt.zeros(MOST_RUNS + 32, "i4")
        for at in range(MOST_RUNS):
            shift((8,), None, x, y, 8, at)
        whole = [shift((8,), None, x, y, 8, at) for at in range(MOST_RUNS, MOST_RUNS + 4)]
        before = testing.made_by_core(rt)
        whole += [shift((8,), None, x, y, 8, at) for at in range(MOST_RUNS + 4, MOST_RUNS + 8)]
        assert testing.made_by_core(rt) == before + 4
        assert {one.access.writes[0].nbytes for one in whole} == {y.nbytes}
        assert shift((8,), None, x, y, 8, 5).access.writes[0].nbytes == 32
        shift.infer_ranges = True
        assert shift((8,), None, x, y, 8, MOST_RUNS + 8).access.writes[0].nbytes == 32


def test_a_size_that_the_device_decides_narrows_nothing() -> None:
    with acs.Runtime(backend="serial") as rt:
        shift = rt.build(SHIFT).shift
        x, y = rt.zeros(64, "i4"), rt.zeros(64, "i4")
        count = rt.array(np.array([3], "u4"))
        handle = shift(acs.size(count, upto=8), None, x, y, 64, 0)
        assert handle.access.writes[0].nbytes == 256


PER_PROGRAM = 12


@pytest.mark.rotate("block", 2)
@pytest.mark.parametrize("block", range(4))
def test_no_access_of_a_random_kernel_is_missed(block: int) -> None:
    blocks = int(os.environ.get("ACS_CL_FUZZ", "0")) // (4 * PER_PROGRAM) or 1
    total = narrower = 0
    for one in range(block * blocks, (block + 1) * blocks):
        first = PER_PROGRAM * one
        count, less = check(list(range(first, first + PER_PROGRAM)))
        total, narrower = total + count, narrower + less
    print(f"seeds {block * blocks * PER_PROGRAM} on: {narrower} of {total} ranges are narrower")
    assert narrower > total // 5


WORDS = "typedef struct { int n; int d[0]; } words;"
STRUCTURES = f"""
typedef struct {{ int n; char d[]; }} bytes;
{WORDS}
typedef struct {{ int n; struct {{}} mark; }} marked;
typedef struct {{ int n; bytes inner; }} outer;
typedef struct {{ int n; char c; char d[]; }} padded;
"""
BEHIND = [
    ("global bytes *p, int i", "p->d[i] = 1;"),
    ("global bytes *p, int i", "*(p->d + i) = 1;"),
    ("global bytes *p, int i", "(*p).d[i] = 1;"),
    ("global bytes *p, int i", "(&p[1])->d[i] = 1;"),
    ("global words *p, int i", "p->d[i] = -1;"),
    ("global words *p, int i", "global int *q = p[1].d; q[i] = -1;"),
    ("global marked *p, int i", "((global char *)&p->mark)[i] = 1;"),
    ("global outer *p, int i", "p->inner.d[i] = 1;"),
    ("global padded *p, int i", "p->d[i] = 1;"),
    ("global void *p, int i", "((global bytes *)(p + 4))->d[i] = 1;"),
]


@pytest.mark.parametrize(("parameters", "body"), BEHIND)
def test_what_stands_behind_a_structure_is_not_missed(parameters: str, body: str) -> None:
    structures = STRUCTURES if "words" in parameters else STRUCTURES.replace(WORDS, "")
    source = f"{structures} kernel void k({parameters}) {{ {body} }}"
    with acs.Runtime(backend="serial") as rt:
        try:
            cl.Program(rt.context, source).build(["-w"])
        except cl.Error as error:  # Intel's compiler takes no arrays of length zero
            pytest.skip(f"the driver does not build it: {error}")
        array = rt.zeros(64, "u1")
        access = rt.build(source, ["-w"]).k((1,), None, array, 7).access
        written = set(np.flatnonzero(array.get()).tolist())
        said = {at for one in access.writes for at in range(one.start, one.start + one.width)}
        assert written, source
        assert written <= said, (written, access.writes)


def test_a_launch_has_its_own_number_of_axes_where_the_kernel_fixes_its_group() -> None:
    source = """__attribute__((reqd_work_group_size(4, 1, 1)))
        kernel void k(global int *x) { x[10 * get_work_dim() + get_global_id(0)] = 1; }"""
    for sizes, start in (((4,), 40), ((4, 2), 80), ((4, 2, 1), 120)):
        assert reached(source, "k", sizes)["x"].writes == ((start, 16, 1, 16),)


def test_numbers_that_do_not_matter_change_no_range() -> None:
    fewer = 0
    for seed in range(4 * PER_PROGRAM):
        text = programs.PLAIN + programs.Writer(seed).kernel()
        signature = from_source(text, f"k{seed}", None, None)
        assert signature.outline is not None
        made = binder(signature)
        whole = core.native.Binder(
            [*[("P", one.mode, 8, 1) for one in signature.parameters[:3]], *[("i", "", 4, 1)] * 3],
            signature.outline["functions"], [(at, 0, "i") for at in (3, 4, 5)],
            signature.group_size, (),
        )  # fmt: skip
        fewer += len(made.numbers) < 3
        chance = random.Random(seed)
        for _ in range(6):
            sizes, local, offset = sizes_of(chance)
            args = [0, 0, 0, *(chance.choice([0, 1, 3, 7, 20, -2]) for _ in range(3))]
            found = [
                one.reached(sizes, local, offset, [args[index] for index, *_ in one.numbers], None)
                for one in (made, whole)
            ]
            assert found[0] == found[1], (seed, sizes, args)
    assert fewer


def test_only_numbers_that_reach_an_address_or_a_branch_matter() -> None:
    signature = from_source(
        """kernel void k(global int *x, global int *y, int step, int n, int m, int far, int by,
                         uint seed, int unused)
           {
               int i = get_global_id(0), at = far, sum = step;
               for (int j = 0; j < m; j += by) { sum = sum * 3 + seed; at += 2; }
               if (i < n) y[at] = x[i] + sum + step;
           }""",
        "k", None, None,
    )  # fmt: skip
    made = binder(signature)
    names = [signature.parameters[index].name for index, *_ in made.numbers]
    assert names == ["n", "m", "far", "by"]


def test_numbers_of_more_than_64_bits_are_any_number() -> None:
    source = """kernel void k(global int *x, global int *y, ulong far)
        {
            ulong i = get_global_id(0), wild = i * 0x9E3779B97F4A7C15UL + far * far;
            if (wild < 8) x[wild] = 1;
            y[(i << 62) >> 62] = 1;
        }"""
    found = reached(source, "k", (4,), far=2**64 - 1)
    assert found["x"].writes == ((0, 32, 1, 32),)
    assert found["y"].writes == ((0, 16, 1, 16),)


@pytest.mark.parametrize("deep", [100, 300])
def test_a_body_that_is_nested_too_deeply_counts_with_whole_views(deep: int) -> None:
    index: list[object] = ["q", "get_global_id", ["k", 0], -64]
    for _ in range(deep):
        index = ["b", "+", -64, index, ["k", 1]]
    body = [["w", ["+", ["p", 0], index, 4], 4]]
    source = "kernel void k(global int *x) { x[get_global_id(0)] = 1; }"
    signature = from_source(source, "k", None, None)
    made = binder(signature._replace(outline={"functions": [[[0], body, True, []]]}))
    found = made.reached((4,), None, None, [], None)
    assert found[0].writes == (None if deep > 250 else ((400, 16, 1, 16),))


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_the_core_finds_ranges_of_new_numbers_by_itself(backend: str) -> None:
    source = """kernel void k(global int *x, global const int *y, long from, uint step, char back)
        { int i = get_global_id(0); x[from + i * step - back] = y[i]; }"""
    expected = np.zeros(4096, "i4")
    with acs.Runtime(backend=backend) as rt:
        kernel = rt.build(source).k
        if backend == "device":
            rt.prebuild(kernel)
        x, y = rt.zeros(4096, "i4"), rt.array(np.arange(64, dtype="i4"))
        kernel((16,), None, x, y, 0, 1, 0)
        before = testing.made_by_core(rt)
        for at in range(1, 41):
            start, step, back = 64 * at + 2, at % 3 + 1, at % 7 - 3
            handle = kernel((16,), None, x, y, start, step, back)
            expected[start - back + step * np.arange(16)] = np.arange(16)
            (span,) = handle.access.writes
            assert (span.start - x.offset, span.rows) == (
                4 * (start - back),
                1 if step == 1 else 16,
            )
            assert span.end - span.start == 4 * (15 * step + 1)
        assert testing.made_by_core(rt) - before >= 38
        found = x.get()
    assert np.array_equal(found[64:], expected[64:])


def test_what_others_bind_meanwhile_changes_nothing() -> None:
    """Making spans may run a finalizer, or let another thread come: so much that all is forgotten
    which is kept of other sizes."""
    source = "kernel void k(global int *x, int n) { x[get_global_id(0) + n] = 1; }"
    made = binder(from_source(source, "k", None, None))
    memory = arguments.Resolved(object(), (Span(1, 0, 1 << 20, 1, 1 << 20),), 0, True)
    sizes = itertools.count(1)

    def bind(size: int, n: int) -> Access:
        value = n.to_bytes(4, "little")
        found = made.bind(made, (size,), None, None, [memory, value], True, True)
        assert found is not None
        return found.access

    def others(phase: str, info: dict[str, int]) -> None:
        for _ in range(4100 if phase == "start" else 0):
            bind(next(sizes), 0)

    before = gc.get_threshold()
    for n in range(1, 3):
        gc.callbacks.append(others)
        gc.set_threshold(1)
        try:
            found = bind(16, n)
        finally:
            gc.callbacks.remove(others)
            gc.set_threshold(*before)
        assert found.writes == (Span(1, 4 * n, 64, 1, 64),)
    newest = next(sizes)
    for size in range(newest - 4000, newest):
        assert bind(size, 0).writes == (Span(1, 0, 4 * size, 1, 4 * size),)
