"""Kernel commands as records: arguments packed as by hand, tiles that cover all items once, and
what is left to queues."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from acs_cl.launch.commands import KernelCommand
from acs_cl.opencl_c.functions.translated import Field, Function
from acs_cl.scheduler.task import Body, Limits, NeedsArena, Task, Unfit

HOST = np.zeros(64, np.uint32)
POINTER = cl.SVM(HOST)
ADDRESS = HOST.ctypes.data
SMALL = Limits(1, 4096, 8, 16)


def body(
    fields: tuple[Field, ...] = (),
    tiled: bool = True,
    limits: Limits = SMALL,
    local_bytes: int = 0,
    group_size: tuple[int, int, int] | None = None,
) -> Body:
    end = max((field.offset + field.size for field in fields), default=0)
    whole = -(-end // 16) * 16
    function = Function("k", "entry", fields, whole, local_bytes, not tiled, group_size, tiled)
    return Body(function, 3, limits)


def command(
    size: tuple[int, ...] = (8,),
    local: tuple[int, ...] | None = None,
    pointers: tuple[Any, ...] = (),
    values: tuple[Any, ...] = (),
    offset: tuple[int, ...] | None = None,
) -> KernelCommand:
    return KernelCommand("k", None, size, local, pointers, values, offset)


def anything(address: int) -> bool:
    return True


def words(task: Task) -> list[int]:
    return np.frombuffer(task.head, np.uint32).tolist()


# ---- arguments -----------------------------------------------------------------------------------


def by_hand(fields: tuple[Field, ...], contents: list[bytes]) -> bytes:
    """The blob, byte by byte."""
    end = max((field.offset + field.size for field in fields), default=0)
    blob = bytearray(-(-end // 16) * 16)
    for field, content in zip(fields, contents, strict=True):
        assert len(content) == field.size
        blob[field.offset : field.offset + field.size] = content
    return bytes(blob)


@pytest.mark.parametrize("seed", range(20))
def test_arguments_are_packed_as_by_hand(seed: int) -> None:
    rng = random.Random(seed)
    fields: list[Field] = []
    contents: list[bytes] = []
    pointers: list[Any] = []
    values: list[Any] = []
    end, arena = 0, rng.choice((0, 4, 100, 128))
    local_bytes = arena
    for index in range(rng.randint(0, 12)):
        kind = rng.choice(("pointer", "null", "value", "value", "local"))
        if kind in ("pointer", "null"):
            size, alignment = 8, 8
            pointers += (index, POINTER if kind == "pointer" else None)
            content = struct.pack("<Q", ADDRESS if kind == "pointer" else 0)
        elif kind == "local":
            size = alignment = 4
            nbytes = rng.choice((4, 100, 128, 256))
            pointers += (index, cl.LocalMemory(nbytes))
            arena = -(-arena // 128) * 128
            content = struct.pack("<I", arena)
            arena += nbytes
        else:
            size, alignment = rng.choice(((1, 1), (2, 2), (4, 4), (8, 8), (12, 4), (16, 16)))
            content = rng.randbytes(size)
            values += (index, content)
        at = -(-end // alignment) * alignment
        end = at + size
        name = {"null": "pointer"}.get(kind, kind)
        fields.append(Field(name, at, size))
        contents.append(content)
    one = body(tuple(fields), local_bytes=local_bytes)
    task = one.task(command(pointers=tuple(pointers), values=tuple(values)), anything)
    expected = by_hand(tuple(fields), contents)
    assert (task.blob or b"").rstrip(b"\0") == expected.rstrip(b"\0")
    assert words(task)[0] >> 16 == len(expected) // 4


def test_local_memory_beyond_the_arena_asks_for_a_larger_one() -> None:
    one = body((Field("local", 0, 4), Field("local", 4, 4)), local_bytes=4)
    both = (0, cl.LocalMemory(4096), 1, cl.LocalMemory(4))
    with pytest.raises(NeedsArena) as caught:
        one.task(command(pointers=both), anything)
    # 4 bytes of its own, then each argument at a multiple of 128
    assert caught.value.nbytes == 128 + 4096 + 4


@pytest.mark.parametrize(
    ("memory", "owns", "why"),
    [
        (POINTER, lambda address: False, "another library"),
        (object(), anything, "buffer"),
    ],
)
def test_memory_without_an_address_that_lasts_is_for_lanes(
    memory: Any, owns: Callable[[int], bool], why: str
) -> None:
    one = body((Field("pointer", 0, 8),))
    with pytest.raises(Unfit, match=why):
        one.task(command(pointers=(0, memory)), owns)


# ---- heads and tiles -----------------------------------------------------------------------------


def items_of(task: Task, size: tuple[int, ...], local: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The global ids that the tiles of a task run, as kernels_cl/work.h says."""
    head = words(task)
    tiles, items, tile_items, local_items = head[4], head[5], head[6], head[9]
    assert tiles == task.tiles
    assert local_items == prod(local)
    groups = [whole // part for whole, part in zip(size, local, strict=True)]
    found = []
    for tile in range(tiles):
        first = tile * tile_items
        assert first < items, "a tile of nothing"
        for item in range(first, min(first + tile_items, items)):
            group, inner = divmod(item, local_items)
            ids = []
            for d, length in enumerate(local):
                ids.append(group % groups[d] * length + inner % length)
                group //= groups[d]
                inner //= length
            found.append(tuple(ids))
    return found


SIZES = [
    ((1,), (1,)),
    ((7,), (1,)),
    ((1000,), (1,)),
    ((960,), (64,)),
    ((24, 10), (1, 1)),
    ((24, 10), (8, 2)),
    ((6, 4, 10), (3, 2, 5)),
    ((1, 1, 3000), (1, 1, 1)),
]


@pytest.mark.parametrize(("size", "local"), SIZES)
@pytest.mark.parametrize("limits", [Limits(1, 0, 8, 16), Limits(64, 0, 528, 2112)], ids=str)
def test_tiles_cover_all_items_once(
    size: tuple[int, ...], local: tuple[int, ...], limits: Limits
) -> None:
    task = body(limits=limits).task(command(size, local), anything)
    assert task.tiles <= limits.most_tiles
    every = [tuple(int(i) for i in ids) for ids in np.ndindex(*size)]
    assert sorted(items_of(task, size, local)) == every
    assert (task.shape is not None) == (len(size) > 1)


@pytest.mark.parametrize(("size", "local"), [(s, part) for s, part in SIZES if prod(part) > 1])
def test_tiles_of_kernels_that_work_in_groups_are_whole_groups(
    size: tuple[int, ...], local: tuple[int, ...]
) -> None:
    for most in (1, 2, 3, 4096):
        limits = Limits(prod(local), 0, 4, most)
        task = body(tiled=False, limits=limits).task(command(size, local), anything)
        assert words(task)[6] % prod(local) == 0
        assert task.tiles <= most
        every = [tuple(int(i) for i in ids) for ids in np.ndindex(*size)]
        assert sorted(items_of(task, size, local)) == every


@pytest.mark.parametrize("items", [1, 2, 255, 256, 257, 4096, 65535, 65536, (1 << 31) - 1])
@pytest.mark.parametrize("group", [1, 256])
def test_tiles_of_any_length_end_where_the_items_end(items: int, group: int) -> None:
    for most in (1, 2, 7, 4096):
        head = words(body(limits=Limits(group, 0, 8, most)).task(command((items,)), anything))
        tiles, total, tile_items = head[4:7]
        assert total == items
        assert 1 <= tiles <= most
        assert (tiles - 1) * tile_items < items <= tiles * tile_items


def test_an_offset_makes_a_shape_and_no_offset_makes_none() -> None:
    one = body()
    assert one.task(command((8,)), anything).shape is None
    assert one.task(command((8,), offset=(0,)), anything).shape is None
    shape = one.task(command((8,), offset=(5,)), anything).shape
    assert shape is not None
    assert np.frombuffer(shape, np.uint32).tolist() == [8, 1, 1, 1, 1, 1, 5, 0, 0, 1]


@pytest.mark.parametrize(
    ("tiled", "size", "local", "required", "why"),
    [
        (True, (), None, None, "driver"),
        (True, (0,), None, None, "driver"),
        (True, (8,), (0,), None, "driver"),
        (True, (-8, -8), None, None, "driver"),
        (True, (8.0,), None, None, "driver"),
        (True, (8,), (4.0,), None, "driver"),
        (True, (8,), (4, 4), None, "driver"),
        (True, (1 << 33,), None, None, "driver"),
        (True, (8, 8), (8,), None, "driver"),
        (True, (10,), (4,), None, "multiple"),
        (True, (8,), (4,), (8, 1, 1), "requires"),
        (False, (8,), None, None, "no local size"),
        (False, (8,), (4,), None, "4 work-items, not 8"),
        (True, (1 << 16, 1 << 15), None, None, "2\\*\\*31"),
    ],
)
def test_sizes_that_are_the_drivers_to_judge_go_to_a_lane(
    tiled: bool,
    size: Any,
    local: Any,
    required: tuple[int, int, int] | None,
    why: str,
) -> None:
    one = body(tiled=tiled, limits=Limits(8, 0, 8, 16), group_size=required)
    with pytest.raises(Unfit, match=why):
        one.task(command(size, local), anything)


@pytest.mark.parametrize("offset", [(-1,), (1 << 32,), (1, 1), (1.5,)])
def test_offsets_that_are_the_drivers_to_judge_go_to_a_lane(offset: Any) -> None:
    with pytest.raises(Unfit, match="driver"):
        body().task(command((8,), offset=offset), anything)


def test_a_required_group_size_is_the_local_size() -> None:
    one = body(tiled=False, limits=Limits(8, 0, 8, 16), group_size=(4, 2, 1))
    task = one.task(command((8, 8)), anything)
    assert words(task)[9] == 8
    assert sorted(items_of(task, (8, 8), (4, 2))) == [
        tuple(int(i) for i in ids) for ids in np.ndindex(8, 8)
    ]
