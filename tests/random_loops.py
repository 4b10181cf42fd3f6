"""Random loop programs, and what NumPy makes of them.

In: a seed. Out: a `LoopProgram`: small integer arrays, a body of random launches on views of them,
in random nested loops, and a decision of each loop that depends on the data. `expected` runs it on
the host, `actual` on a runtime.

Invariant: the numbers are unsigned and wrap, so that host and device compute the same bits.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
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
"""
GROUP = 4


class Step(NamedTuple):
    """A launch: a kernel, the places of its views in the pool, their length, and a number."""

    kernel: str
    x: int
    y: int
    n: int
    a: int
    is_decided: bool


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
        return Step(kernel, x, y, n, pick.randrange(1000), pick.random() < 0.1)

    # ---- on the host ---------------------------------------------------------------------------

    def expected(self) -> tuple[Any, list[int]]:
        """The arrays at the end, and the rounds of each replay."""
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
        x, y = self._pool[step.x, : step.n], self._pool[step.y]
        if step.kernel == "blend":
            y[: step.n] = y[: step.n] * np.uint32(5) + x + np.uint32(step.a)
        elif step.kernel == "turn":
            x[:] = (x << np.uint32(3) | x >> np.uint32(29)) ^ np.uint32(step.a)
        else:
            y[: step.n // GROUP] += x.reshape(-1, GROUP).sum(1, dtype=np.uint32)

    # ---- on a runtime --------------------------------------------------------------------------

    def actual(self, rt: acs.Runtime, prog: acs.Program) -> tuple[Any, list[int]]:
        """The same, of a runtime."""
        pool = rt.array(self.start)
        flags, states = rt.array(np.ones(self.loops, "u4")), rt.zeros(self.loops, "u4")
        with rt.record() as graph:
            self._record(rt, prog, self.outer, pool, flags, states)
        go = flags[0:1]
        rounds = [graph.replay(while_=go, at_most=self.outer.at_most) for _ in range(self.replays)]
        return pool.get(), [handle.rounds for handle in rounds]

    def _record(self, rt: Any, prog: Any, loop: Inner, pool: Any, flags: Any, states: Any) -> None:
        for one in loop.body:
            if isinstance(one, Inner):
                go = flags[one.number : one.number + 1]
                go.fill(1)
                states[one.number : one.number + 1].fill(0)
                with acs.loop(go, at_most=one.at_most):
                    self._record(rt, prog, one, pool, flags, states)
            else:
                x, y = pool[one.x, : one.n], pool[one.y, : one.n]
                when = {"when": flags[0:1]} if one.is_decided else {}
                if one.kernel == "blend":
                    prog.blend((one.n,), None, x, y, one.a, **when)
                elif one.kernel == "turn":
                    prog.turn((one.n,), None, x, one.a, **when)
                else:
                    import pyopencl as cl

                    prog.sums((one.n,), (GROUP,), x, y, cl.LocalMemory(4 * GROUP), **when)
        prog.decide(
            (1,), None, pool[loop.looks_at, 0:1], states[loop.number : loop.number + 1],
            flags[loop.number : loop.number + 1], loop.most, loop.bits,
        )  # fmt: skip


def programs(first: int, count: int) -> Iterator[tuple[int, LoopProgram]]:
    """Seeds, and their programs."""
    for seed in range(first, first + count):
        yield seed, LoopProgram(seed)


def differs(rt: acs.Runtime, prog: acs.Program, program: LoopProgram) -> str:
    """How a runtime's results differ from those of the host; empty: they do not."""
    (values, rounds), (found, counted) = program.expected(), program.actual(rt, prog)
    if rounds != counted:
        return f"rounds {counted}, expected {rounds}"
    if not (values == found).all():
        return f"values differ at {np.argwhere(values != found)[:4].tolist()}"
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
        if name not in self._made:
            rt = acs.Runtime(self._device, backend=name)
            self._made[name] = rt, rt.build(SOURCE)
        found = differs(*self._made[name], program)
        assert not found, found
        return Counter({"loops": program.loops, f"{name}: programs": 1})


def configuration_of(seed: int) -> str:
    """The backend of a seed."""
    return BACKENDS[seed % len(BACKENDS)]
