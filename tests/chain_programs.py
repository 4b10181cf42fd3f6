"""Random programs of recorded chains: rows of launches that follow each other, with breaks.

A program is made twice from one seed, on two runtimes, and has to leave the same bytes. `python
tests/chain_programs.py 1000` runs that many of them, from seed 0 or the second argument on.
"""

from __future__ import annotations

import random
import sys
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs

ITEMS = 64
GROUPS = (2, 3, 4, 8, 16, 40)
MOST = ITEMS * max(GROUPS)
ARRAYS = 4

SOURCE = """
kernel void grow(global uint *x, uint a) { int i = get_global_id(0); x[i] = x[i] * 3 + a; }
kernel void copy(global const uint *x, global uint *y, uint a)
{ int i = get_global_id(0); y[i] = x[i] * 5 + a; }
kernel void both(global const uint *x, global uint *y, uint a)
{ int i = get_global_id(0); y[i] = y[i] * 7 + x[i] + a; }
kernel void turn(global const uint *x, global uint *y, uint n)
{ int i = get_global_id(0); y[i] = y[i] + x[n - 1 - i]; }
kernel void near(global const uint *x, global uint *y, uint n)
{ int i = get_global_id(0); y[i] = x[i] + (i > 0 ? x[i - 1] : 0) + (i + 1 < n ? x[i + 1] : 0); }
kernel void more(global uint *n, global uint *go, uint most) { *n += 1; *go = *n < most; }
kernel void sum(global const uint *x, global uint *y, uint n)
{ uint s = 0; for (uint i = 0; i < n; i++) s += x[i]; y[get_global_id(0)] = s; }
"""
NUMBERED = ("grow", "copy", "both")
"""Kernels whose last argument is any number."""


def stretch(rng: random.Random, prog: Any, arrays: list[Any], found: list[Any]) -> None:
    """Launch a row of kernels on the same part of arrays, each behind the last one or so."""
    groups = rng.choice(GROUPS)
    first = ITEMS * rng.randrange(0, max(GROUPS) - groups + 1, 2)
    size, part = ITEMS * groups, slice(first, first + ITEMS * groups)
    x, y = rng.sample(arrays, 2)
    names = rng.sample(("grow", "copy", "both", "turn", "near"), 2)
    local = rng.choice(((ITEMS,), (ITEMS,), None))
    for _ in range(rng.choice((1, 2, 4, 8, 12))):
        if rng.random() < 0.05:
            names = ["sum", *names]
        name = names[0] if rng.random() < 0.8 else names[-1]
        number = rng.randrange(9) if name in NUMBERED else size
        where = (x[part],) if name == "grow" else (x[part], y[part])
        found.append((name, getattr(prog, name)((size,), local, *where, np.uint32(number))))
        names = [one for one in names if one != "sum"]
        if rng.random() < 0.4:
            x, y = y, x
        if rng.random() < 0.1:
            y = rng.choice([one for one in arrays if one is not x])


def run(rt: acs.Runtime, prog: Any, seed: int) -> tuple[list[Any], acs.Graph]:
    """Run a program; return its arrays, and the graph that it recorded. Some of its replays go on
    for several rounds."""
    rng = random.Random(seed)
    arrays = [rt.array(np.arange(MOST) * (at + 1), "u4") for at in range(ARRAYS)]
    spare = rt.array(np.arange(MOST) * 9, "u4")
    rounds, go = rt.zeros(1, "u4"), rt.zeros(1, "u4")
    found: list[tuple[str, acs.Handle]] = []
    with rt.record() as graph:
        for array in arrays:  # each can be swapped
            prog.grow((ITEMS,), None, array[:ITEMS], 1)
        for _ in range(rng.choice((1, 3, 8))):
            stretch(rng, prog, arrays, found)
        prog.more((1,), None, rounds, go, 3)

    def replay() -> None:
        if rng.random() < 0.5:
            graph.replay()
            return
        rounds.fill(0)
        go.fill(1)
        handle = graph.replay(while_=go, at_most=9)
        handle.wait()
        assert handle.rounds == 3

    replay()
    for again in range(2):
        name, handle = rng.choice(found)
        if name in NUMBERED:
            graph.update(handle, a=np.uint32(100 + again))
        if rng.random() < 0.5:
            at = rng.randrange(ARRAYS)
            graph.swap(arrays[at], spare)
            arrays[at], spare = spare, arrays[at]
        replay()
    return [array.get() for array in (*arrays, spare)], graph


def compared(
    ours: tuple[acs.Runtime, Any], other: tuple[acs.Runtime, Any], seed: int, proves: bool
) -> bool:
    """Run a program on both runtimes. Return whether any launch of it was cut."""
    found, graph = run(*ours, seed)
    expected, _ = run(*other, seed)
    if not all(map(np.array_equal, found, expected)):
        raise RuntimeError(f"program {seed} leaves other bytes")
    if proves:
        graph.verify()
    return "cut into bands" in str(graph.explain())


def main() -> None:
    """Run programs on the device, and on backend `serial`."""
    many = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    until, cut, seed = perf_counter() + seconds, 0, first
    with acs.Runtime(backend="device") as rt, acs.Runtime(backend="serial") as plain:
        ours, other = (rt, rt.build(SOURCE)), (plain, plain.build(SOURCE))
        while seed < first + many and perf_counter() < until:
            cut += compared(ours, other, seed, seed % 10 == 0)
            seed += 1
    print(f"{seed - first} programs, {cut} with launches cut, 0 wrong", flush=True)


if __name__ == "__main__":
    main()
