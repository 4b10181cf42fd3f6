"""Random loop programs, and what NumPy makes of them.

In: a seed. Out: a `LoopProgram`: small integer arrays, a body of random launches on views of them,
in random nested loops, and a decision of each loop that depends on the data. So do the sizes of
some launches, and a few of these sizes are wrong. `expected` runs it on the host, `actual` on a
runtime.

Invariant: the numbers are unsigned and wrap, so that host and device compute the same bits. A
program with a wrong size is compared with the same on a queue of one launch at a time, where the
host drives all loops: what is lost and what is not, and the rounds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void blend(global const uint *x, global uint *y, uint a)
{ size_t i = get_global_id(0); y[i] = y[i] * 5u + x[i] + a; }
kernel void turn(global uint *x, uint a)
{ size_t i = get_global_id(0); x[i] = rotate(x[i], 3u) ^ a; }
kernel void sums(global const uint *x, global uint *y, local uint *part)
{
    size_t i = get_local_id(0);
    part[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!i) { uint all = 0; for (uint k = 0; k < get_local_size(0); ++k) all += part[k];
              y[get_group_id(0)] += all; }
}
kernel void decide(global const uint *x, global uint *state, global uint *go, uint most, uint bits)
{ state[0] += 1u; go[0] = state[0] < most && (x[0] & 15u) >= bits; }
kernel void tally(global uint *rounds) { rounds[0] += 1u; }
kernel void tell(global const uint *x, global uint *count, uint most, uint unit)
{ count[0] = (x[0] >> 3) % (most + 1u) * unit; }
"""
GROUP = 4


class Step(NamedTuple):
    """A launch: a kernel, the places of its views in the pool, their length, and a number. `most`:
    its size is what a launch before it finds, up to that many items or groups. -1: it is `n`."""

    kernel: str
    x: int
    y: int
    n: int
    a: int
    is_decided: bool
    most: int

    @property
    def unit(self) -> int:
        """What its size is a multiple of."""
        return GROUP if self.kernel == "sums" else 1


class WrongSizeError(Exception):
    """A size is above its bound."""


class Inner(NamedTuple):
    """A loop: steps and loops, and when it goes on."""

    number: int
    body: list[Any]
    at_most: int
    most: int
    bits: int
    looks_at: int


class LoopProgram:
    """What a seed stands for. `replays`: how often the graph is replayed in all."""

    def __init__(self, seed: int) -> None:
        self._random = pick = random.Random(seed)
        self.size = pick.choice([16, 64, 640])
        self.counted = pick.choice([0.0, 0.2, 0.5])
        self.is_wrong = False
        self.wrong = pick.choice([0.0, 0.0, 0.2, 0.5])
        self.pool = 4
        self.loops = 0
        self.outer = self._loop(depth=0, most_depth=pick.choice([0, 0, 1, 2]))
        self.replays = pick.choice([1, 1, 2, 3])
        self.start = np.random.default_rng(seed).integers(
            0, 1 << 16, (self.pool, self.size), dtype=np.uint32
        )

    def _loop(self, depth: int, most_depth: int) -> Inner:
        pick, number = self._random, self.loops
        self.loops += 1
        body: list[Any] = []
        for _ in range(pick.randint(1, 8)):
            if depth < most_depth and pick.random() < 0.3:
                body.append(self._loop(depth + 1, most_depth))
            else:
                body.append(self._step())
        most = pick.choice([0, 1, 2, 3, 7]) if depth else pick.choice([1, 2, 5, 20])
        at_most = pick.choice([1, 2, 5, 50])
        return Inner(number, body, at_most, most, pick.choice([0, 0, 0, 1, 8]), pick.randrange(4))

    def _step(self) -> Step:
        pick = self._random
        kernel = pick.choice(["blend", "blend", "turn", "turn", "sums"])
        n = pick.choice([GROUP, self.size // 2, self.size])
        x, y = pick.sample(range(self.pool), 2)
        is_decided, most = pick.random() < 0.1, -1
        if pick.random() < self.counted:
            unit = GROUP if kernel == "sums" else 1
            most = n // unit + pick.choice([1, 1, 8]) * (pick.random() < self.wrong)
        return Step(kernel, x, y, n, pick.randrange(1000), is_decided, most)

    # ---- on the host ---------------------------------------------------------------------------

    def expected(self) -> tuple[Any, list[int]]:
        """The arrays at the end, and the rounds of each replay. Raises `WrongSizeError`."""
        self._pool, self._flags, self._states = (
            self.start.copy(), np.ones(self.loops, np.uint32), np.zeros(self.loops, np.uint32)
        )  # fmt: skip
        return self._pool, [self._run(self.outer) for _ in range(self.replays)]

    def _run(self, loop: Inner) -> int:
        rounds = 0
        while rounds < loop.at_most and self._flags[loop.number]:
            for one in loop.body:
                if isinstance(one, Inner):
                    self._flags[one.number] = 1
                    self._states[one.number] = 0
                    self._run(one)
                else:
                    self._step_here(one)
            self._states[loop.number] += 1
            self._flags[loop.number] = self._states[loop.number] < loop.most and bool(
                self._pool[loop.looks_at, 0] & 15 >= loop.bits
            )
            rounds += 1
        return rounds

    def _step_here(self, step: Step) -> None:
        if step.is_decided and not self._flags[0]:
            return
        n = step.n
        if step.most >= 0:
            n = int(self._pool[step.x, 1] >> 3) % (step.most + 1) * step.unit
        if n > step.n:
            raise WrongSizeError
        x, y = self._pool[step.x, :n], self._pool[step.y]
        if step.kernel == "blend":
            y[:n] = y[:n] * np.uint32(5) + x + np.uint32(step.a)
        elif step.kernel == "turn":
            x[:] = (x << np.uint32(3) | x >> np.uint32(29)) ^ np.uint32(step.a)
        else:
            y[: n // GROUP] += x.reshape(-1, GROUP).sum(1, dtype=np.uint32)

    # ---- on a runtime --------------------------------------------------------------------------

    def actual(self, rt: acs.Runtime, prog: acs.Program) -> tuple[Any, list[int]]:
        """The same, of a runtime."""
        pool, flags, graph = self._recorded(rt, prog)
        go = flags[0:1]
        rounds = [graph.replay(while_=go, at_most=self.outer.at_most) for _ in range(self.replays)]
        return pool.get(), [handle.rounds for handle in rounds]

    def left(self, rt: acs.Runtime, prog: acs.Program) -> list[Any]:
        """What two replays leave, each with all arrays as at the start: how it failed, the
        rounds by a launch that nothing makes fail, and pieces of the rows, None where lost."""
        pool, flags, graph = self._recorded(rt, prog)
        found: list[Any] = []
        cuts = sorted({0, 1, GROUP, self.size // 2 // GROUP, self.size // 2, self.size})
        for _ in range(2):
            pool.set(self.start)
            flags.set(np.ones(self.loops, "u4"))
            self._states.fill(0)
            self._rounds.fill(0)
            self._counts.fill(0)
            handle = graph.replay(while_=flags[0:1], at_most=self.outer.at_most)
            try:
                handle.wait()
                found.append("")
            except acs.PoisonedError as error:
                found.append(str(error).partition("its count on the device is")[1])
            found.append(int(self._rounds.get()[0]))
            for row in pool:
                for start, end in pairwise(cuts):
                    try:
                        found.append(row[start:end].get().tolist())
                    except acs.PoisonedError:
                        found.append(None)
        return found

    def _recorded(self, rt: acs.Runtime, prog: acs.Program) -> tuple[Any, Any, acs.Graph]:
        pool, flags = rt.array(self.start), rt.array(np.ones(self.loops, "u4"))
        self._states, self._rounds = rt.zeros(self.loops, "u4"), rt.zeros(1, "u4")
        self._counts = rt.zeros(64, "u4")
        with rt.record() as graph:
            prog.tally((1,), None, self._rounds)
            self._record(rt, prog, self.outer, pool, flags, self._states)
        return pool, flags, graph

    def _record(self, rt: Any, prog: Any, loop: Inner, pool: Any, flags: Any, states: Any) -> None:
        for place, one in enumerate(loop.body):
            if isinstance(one, Inner):
                go = flags[one.number : one.number + 1]
                go.fill(1)
                states[one.number : one.number + 1].fill(0)
                with acs.loop(go, at_most=one.at_most):
                    self._record(rt, prog, one, pool, flags, states)
            else:
                x, y = pool[one.x, : one.n], pool[one.y, : one.n]
                when = {"when": flags[0:1]} if one.is_decided else {}
                size = one.n
                if one.most >= 0:
                    count = self._counts[place : place + 1]
                    prog.tell((1,), None, pool[one.x, 1:2], count, one.most, one.unit)
                    size = acs.size(count, upto=one.n)
                if one.kernel == "blend":
                    prog.blend((size,), None, x, y, one.a, **when)
                elif one.kernel == "turn":
                    prog.turn((size,), None, x, one.a, **when)
                else:
                    import pyopencl as cl

                    prog.sums((size,), (GROUP,), x, y, cl.LocalMemory(4 * GROUP), **when)
        prog.decide(
            (1,), None, pool[loop.looks_at, 0:1], states[loop.number : loop.number + 1],
            flags[loop.number : loop.number + 1], loop.most, loop.bits,
        )  # fmt: skip


def programs(first: int, count: int) -> Iterator[tuple[int, LoopProgram]]:
    """Seeds, and their programs."""
    for seed in range(first, first + count):
        yield seed, LoopProgram(seed)


Place = tuple[acs.Runtime, acs.Program]


def differs(way: Place, serial: Place, program: LoopProgram) -> str:
    """How a runtime's results differ from those of the host; empty: they do not. `serial` is the
    oracle for programs with wrong sizes."""
    try:
        values, rounds = program.expected()
    except WrongSizeError:
        return differs_behind_wrong(way, serial, program)
    found, counted = program.actual(*way)
    if rounds != counted:
        return f"rounds {counted}, expected {rounds}"
    if not (values == found).all():
        return f"values differ at {np.argwhere(values != found)[:4].tolist()}"
    return ""


def differs_behind_wrong(way: Place, serial: Place, program: LoopProgram) -> str:
    """The same for a program with a wrong size. If it has inner loops, more may be lost, and what
    that decides may be another: the device loses all that a loop writes if it reads what was lost
    while it was in flight."""
    program.is_wrong = True
    expected, found = program.left(*serial), program.left(*way)
    pairs = [*zip(expected, found, strict=True)]
    if program.loops > 1 and any(one is not None and two is None for one, two in pairs):
        pairs = pairs[:1]
    for place, (one, two) in enumerate(pairs):
        if one != two:
            return f"item {place} is {two}, expected {one}"
    return ""


BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto", "emulated")


class Ways:
    """Runtimes of a process, one for each backend."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._made: dict[str, tuple[acs.Runtime, acs.Program]] = {}

    def one(self, seed: int) -> Counter[str]:
        """Run what a seed stands for; an `AssertionError` says what is wrong."""
        name, program = configuration_of(seed), LoopProgram(seed)
        for backend in (name, "serial"):
            if backend not in self._made:
                rt = acs.Runtime(self._device, backend=backend)
                self._made[backend] = rt, rt.build(SOURCE)
        found = differs(self._made[name], self._made["serial"], program)
        assert not found, found
        return Counter({"loops": program.loops, f"{name}: programs": 1, "wrong": program.is_wrong})


def configuration_of(seed: int) -> str:
    """The backend of a seed."""
    return BACKENDS[seed % len(BACKENDS)]
