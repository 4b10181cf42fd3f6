"""Six programs, each with one bottleneck that was planted. Their reports have to name it.

In: nothing. Out: what was measured. Each runs a few steps, of which one thing takes most of the
time on any device: the kernels that are meant to be short have one small group.
"""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

import numpy as np

import acs_cl as acs
from acs_cl.observe.advice import findings
from acs_cl.observe.measure import Measure
from acs_cl.observe.record import Record

SOURCE = """
kernel void turn(global uint *y, uint rounds)
{
    uint v = y[get_global_id(0)] + 1;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[get_global_id(0)] = v;
}
kernel void scatter(global const uint *index, global uint *y, uint rounds)
{
    uint v = get_global_id(0) + 1;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[index[get_global_id(0)]] = v;
}
kernel void gather(global const uint *x, global uint *y, uint items, uint rounds)
{
    uint v = 1;
    for (uint i = 0; i < rounds; ++i)
    { v ^= x[i % items]; v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    y[get_global_id(0)] = v;
}
"""
ITEMS, PARTS, STEPS = 64, 6, 4
SHORT, LONG = 20_000, 400_000
"""Rounds of a loop."""


def _arrays(rt: acs.Runtime, count: int, items: int = ITEMS) -> list[acs.Array]:
    return [rt.zeros(items, np.uint32) for _ in range(count)]


def _warm(rt: acs.Runtime) -> acs.Program:
    """The program, whose kernels have been launched before."""
    prog = rt.build(SOURCE)
    x, y = _arrays(rt, 2)
    prog.turn((ITEMS,), (ITEMS,), x, 1)
    prog.scatter((ITEMS,), (ITEMS,), x, y, 1)
    prog.gather((1,), (1,), x, y, ITEMS, 1)
    rt.call(lambda a: None, reads=x).wait()
    return prog


def false_dependency() -> Measure:
    """Bands whose views overlap by a few elements that nobody writes."""
    with acs.Runtime(backend="lanes", lanes=2) as rt:
        prog = _warm(rt)
        index = rt.array(np.arange(ITEMS, dtype=np.uint32))
        image = rt.zeros(PARTS * ITEMS + 8, np.uint32)
        with rt.measure() as m:
            for _ in range(STEPS):
                for band in range(PARTS):
                    view = image[band * ITEMS : (band + 1) * ITEMS + 8]
                    prog.scatter((ITEMS,), (ITEMS,), index, view, SHORT)
        return m


def blocking_read() -> Measure:
    """A program that looks at a value in the middle of each step, and thinks about it."""
    with acs.Runtime(backend="lanes") as rt:
        prog = _warm(rt)
        x = rt.zeros(ITEMS, np.uint32)
        with rt.measure() as m:
            for _ in range(5 * STEPS):
                prog.turn((ITEMS,), (ITEMS,), x, SHORT // 20)
                x.get()
                sleep(0.001)
                prog.turn((ITEMS,), (ITEMS,), x, SHORT // 20)
        return m


def slow_host_task() -> Measure:
    """A host task between kernels, which takes longer than they do."""
    with acs.Runtime(backend="lanes") as rt:
        prog = _warm(rt)
        arrays = _arrays(rt, 2)
        with rt.measure() as m:
            for _ in range(STEPS):
                prog.turn((ITEMS,), (ITEMS,), arrays[0], SHORT)
                rt.call(_thinks, reads=arrays[0], writes=arrays[1])
                prog.turn((ITEMS,), (ITEMS,), arrays[1], SHORT)
                prog.turn((ITEMS,), (ITEMS,), arrays[0], SHORT)
        return m


def _thinks(values: np.ndarray, out: np.ndarray) -> None:
    sleep(0.01)
    out[:] = values


def long_kernel() -> Measure:
    """One kernel of one group, which all others wait for."""
    with acs.Runtime(backend="lanes") as rt:
        prog = _warm(rt)
        x, y = rt.zeros(PARTS * ITEMS, np.uint32), rt.zeros(ITEMS, np.uint32)
        with rt.measure() as m:
            for _ in range(STEPS):
                for part in range(PARTS):
                    view = x[part * ITEMS : (part + 1) * ITEMS]
                    prog.turn((ITEMS,), (ITEMS,), view, SHORT // 20)
                prog.gather((1,), (1,), x, y, PARTS * ITEMS, 40 * LONG)
                prog.turn((ITEMS,), (ITEMS,), y, SHORT // 20)
        return m


def small_window() -> Measure:
    """Independent kernels, of which the window holds one at a time."""
    with acs.Runtime(backend="lanes", lanes=4, window=1) as rt:
        prog = _warm(rt)
        arrays = _arrays(rt, PARTS)
        with rt.measure() as m:
            for _ in range(STEPS):
                for x in arrays:
                    prog.turn((ITEMS,), (ITEMS,), x, SHORT)
        return m


def transfers() -> Measure:
    """Large arrays that go to the device and back for a short kernel."""
    with acs.Runtime(backend="lanes") as rt:
        prog = _warm(rt)
        x = rt.zeros(1 << 22, np.uint32)
        there, back = rt.pinned(x.shape, np.uint32), rt.pinned(x.shape, np.uint32)
        x.set(there, copy=False)
        x.get(back)
        with rt.measure() as m:
            for _ in range(STEPS):
                x.set(there, copy=False)
                prog.turn((ITEMS,), (ITEMS,), x[:ITEMS], SHORT // 20)
                x.get(back, wait=False)
        return m


PLANTED: dict[str, Callable[[], Measure]] = {
    "false-dependency": false_dependency,
    "blocking": blocking_read,
    "host-task": slow_host_task,
    "long-kernel": long_kernel,
    "window-bound": small_window,
    "transfer-bound": transfers,
}
"""By what a report has to call it."""


TRIES = 12
"""A machine that does something else meanwhile may be what bounds a program."""


def measured(name: str) -> Record:
    """Run a program until its report names what was planted, at most a few times."""
    for _ in range(TRIES):
        found = PLANTED[name]().record(name)
        if findings(found)[0].kind == name:
            break
    return found
