"""Ids of work-items in the scheduler: those of the serial backend, for launches of any shape.

A tile may begin and end anywhere in a launch, in the middle of a group as well. On a CPU the items
of a tile are run in rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs

pytestmark = pytest.mark.usefixtures("scheduler")

SOURCE = """
kernel void ids(global uint *found, uint salt, uint from_x, uint from_y, uint from_z)
{
    size_t x = get_global_id(0) - from_x, y = get_global_id(1) - from_y;
    size_t row = (get_global_id(2) - from_z) * get_global_size(1) + y;
    size_t at = row * get_global_size(0) + x;
    global uint *own = found + 8 * at;
    for (uint d = 0; d < 3; ++d) {
        own[d] += get_global_id(d) + salt;
        own[3 + d] += get_global_size(d) + 1000 * get_global_offset(d);
    }
    own[6] += get_work_dim();
    own[7] += 1;
}
"""

ITEMS = 6000


def sizes(choose: random.Random) -> tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...]]:
    """Return global size, local size and offset of a launch of up to `ITEMS` work-items."""
    dimensions = choose.randrange(1, 4)
    while True:
        local = [choose.choice((1, 1, 2, 3, 4, 7, 8, 16, 33)) for _ in range(dimensions)]
        groups = [choose.choice((1, 2, 3, 5, 8, 13, 40)) for _ in range(dimensions)]
        whole = tuple(a * b for a, b in zip(local, groups, strict=True))
        if prod(whole) <= ITEMS and prod(local) <= 256:
            break
    offset = tuple(choose.choice((0, 0, 1, 5, 64)) for _ in range(dimensions))
    return whole, (tuple(local) if choose.random() < 0.7 else None), offset


@pytest.fixture(scope="module")
def runtimes(device: cl.Device) -> Iterator[list[acs.Runtime]]:
    with (
        acs.Runtime(device, backend="serial") as serial,
        acs.Runtime(device, backend="device") as scheduled,
    ):
        yield [serial, scheduled]


@pytest.mark.parametrize("seed", range(12))
def test_ids_are_those_of_the_launch(runtimes: list[acs.Runtime], seed: int) -> None:
    choose = random.Random(seed)
    launches = [(*sizes(choose), choose.randrange(100)) for _ in range(8)]
    results = []
    for runtime in runtimes:
        kernel, found = runtime.build(SOURCE).ids, []
        warm = runtime.zeros(8 * ITEMS, "u4")
        for _ in range(40):  # until it is in a scheduler
            kernel((64,), (8,), warm, 0, 0, 0, 0)
        runtime.prebuild()
        for whole, local, offset, salt in launches:
            x = runtime.zeros(8 * prod(whole), "u4")
            start = (*offset, 0, 0)[:3]
            handle = kernel(whole, local, x, salt, *start, offset=offset)
            found.append((x, handle))
        if runtime is runtimes[1]:
            for _, one in found:
                assert "in the scheduler" in str(runtime.explain(one)), runtime.explain(one)
        results.append([x.get().reshape(-1, 8) for x, _ in found])
    for (whole, local, *_), want, got in zip(launches, *results, strict=True):
        assert (want[:, 7] == 1).all()
        assert np.array_equal(want, got), (whole, local)
