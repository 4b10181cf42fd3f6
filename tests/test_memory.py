"""Memory of a runtime: where blocks begin, and that what nobody uses goes back to the driver."""

from __future__ import annotations

import ctypes
import gc
import mmap
import weakref
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from counting import calls

import acs_cl as acs
from acs_cl.devices import driver
from acs_cl.errors import OutOfMemory, whole
from acs_cl.memory import blocks as memory
from acs_cl.memory.huge_pages import HUGE, LEAST, whole_pages
from acs_cl.testing.changing import changed


@pytest.fixture
def store(context: cl.Context, device: cl.Device) -> memory.SvmStore:
    if not device.svm_capabilities:
        pytest.skip("no shared virtual memory")
    found = memory.store_for(context, device, "svm")
    assert isinstance(found, memory.SvmStore)
    return found


@pytest.mark.parametrize("value", [5, np.int32(5), (3, 4), 2.5, "text", None, int])
def test_whether_a_length_is_a_number_takes_one_call(value: object) -> None:
    """Python 3.11 takes 5 us to tell whether a value is a `typing.SupportsIndex`."""
    assert calls(lambda: whole(value)) <= 2  # and the lambda


def never(launch: int) -> bool:
    return False


def blocks(store: memory.SvmStore, *sizes: int) -> list[memory.Block]:
    found = [store.allocate(size, never) for size in sizes]
    return [block for block in found if block is not None]


def has_huge_pages_asked_for(address: int) -> bool:
    """Ask the system about the memory at an address."""
    maps = Path("/proc/self/smaps")
    if not maps.exists() or "VmFlags" not in (text := maps.read_text()):
        pytest.skip("the system does not tell")
    inside = False
    for line in text.splitlines():
        word = line.split()[0]
        if "-" in word:
            first, end = (int(part, 16) for part in word.split("-"))
            inside = first <= address < end
        elif inside and word == "VmFlags:":
            return "hg" in line.split()
    raise AssertionError("no memory there")


def test_large_allocations_ask_for_huge_pages(store: memory.SvmStore, device: cl.Device) -> None:
    if not device.type & cl.device_type.CPU:
        pytest.skip("a device with memory of its own")
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        pytest.skip("the system has none")
    asked: list[range] = []
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int

    def noting(first: int, nbytes: int, advice: int) -> int:
        asked.append(range(first, first + nbytes))
        return int(advise(first, nbytes, advice))

    with changed(ctypes, "CDLL", lambda _: SimpleNamespace(madvise=noting)):
        small, *slabs = blocks(store, 1 << 20, 3 << 20, 5 << 20, memory.SLAB)
    # the system may say so of these, too, where larger ones were before
    for block in small, slabs[0]:
        assert not any(
            block.address < one.stop and one.start < block.address + block.size for one in asked
        )
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("the system has none")
    for block in slabs[1:]:
        assert has_huge_pages_asked_for(-(-block.address // HUGE) * HUGE)


@pytest.mark.parametrize(
    ("address", "nbytes", "found"),
    [
        (8 * HUGE, 3 * HUGE, (8 * HUGE, 3 * HUGE)),
        (8 * HUGE + 16, 3 * HUGE, (9 * HUGE, 2 * HUGE)),
        (8 * HUGE - 16, 3 * HUGE, (8 * HUGE, 2 * HUGE)),
        (8 * HUGE, LEAST, (0, 0)),
        (8 * HUGE, 4096, (0, 0)),
    ],
)
def test_only_whole_huge_pages_of_a_large_allocation_count(
    address: int, nbytes: int, found: tuple[int, int]
) -> None:
    assert whole_pages(address, nbytes) == found


@pytest.mark.parametrize("size", [memory.LARGE, 1 << 20, 5 << 20, memory.SLAB])
def test_large_blocks_begin_at_different_places_of_a_page(
    store: memory.SvmStore, size: int, device: cl.Device
) -> None:
    found = blocks(store, *[size] * 6)
    places = [block.address % memory.PAGE for block in found]
    if not device.type & cl.device_type.CPU:
        pytest.skip("a device with caches of its own")
    assert not any(place % memory.GRANULE for place in places)
    around = [abs(a - b) for a, b in combinations(places, 2)]
    assert min(min(gap, memory.PAGE - gap) for gap in around) >= 2 * memory.GRANULE
    if size >= memory.LARGER:
        assert all(block.address % memory.PHASE < memory.PAGE for block in found)


def test_blocks_do_not_overlap_and_lie_in_what_is_reserved(store: memory.SvmStore) -> None:
    sizes = [1, 300, 70_000, 3 << 20, 100, 1 << 16, memory.SLAB // 2 + 1, 90_000] * 3
    found = sorted(blocks(store, *sizes), key=lambda block: block.address)
    assert len(found) == len(sizes)
    for before, behind in pairwise(found):
        assert before.address + before.size <= behind.address
    for block in found:
        assert store.owns(block.address)
        assert store.owns(block.address + block.size - 1)
        assert block.address - block.offset in store.reserved.sizes
        assert block.offset + block.size <= len(block.memory)


def test_only_allocations_of_one_block_go_back(store: memory.SvmStore) -> None:
    small, *large = blocks(store, 1000, memory.SLAB, memory.SLAB, memory.SLAB)
    kept, gone, used = large
    reserved = store.reserved_bytes
    store.free(gone, (6,))
    store.free(used, (6, 7))  # launch 7 is in flight
    store.free(small, ())
    store.release_unused({7}.__contains__)
    assert reserved - store.reserved_bytes >= gone.size
    assert not store.owns(gone.address)
    assert store.owns(small.address)
    assert store.owns(kept.address)
    assert store.owns(used.address)
    (again,) = blocks(store, 1000)
    assert again is small


def test_a_block_may_be_as_large_as_the_device_allows(
    store: memory.SvmStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    allocate = store._allocate_svm

    def noted(size: int) -> Any:
        asked.append(size)
        return allocate(size)

    monkeypatch.setattr(store, "_allocate_svm", noted)
    monkeypatch.setattr(store, "largest", memory.SLAB)
    blocks(store, 1 << 20, memory.SLAB, memory.SLAB)
    assert max(asked) == memory.SLAB
    with pytest.raises(OutOfMemory, match="allows at most"):
        store.allocate(memory.SLAB + 1, never)


def test_pinned_memory_is_not_mapped_on_a_queue_without_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is unmapped when the array goes, and on Intel's runtime a queue without order must not be
    released while that runs."""
    queues: list[Any] = []
    real = vars(driver)["_map"]

    def noted(queue: Any, *arguments: Any) -> Any:
        queues.append(queue)
        return real(queue, *arguments)

    monkeypatch.setattr(driver, "_map", noted)
    with acs.Runtime(backend="out_of_order") as rt:
        host = rt.pinned(16)
        assert host.size == 16
    (queue,) = queues
    assert not queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


def watch(held: memory.Memory) -> Callable[[], bool]:
    """Return a function that tells whether nobody else has this memory."""
    if isinstance(held, cl.Buffer):
        own = cl.Buffer.from_int_ptr(held.int_ptr, True)
        return lambda: bool(own.reference_count == 1)
    there = weakref.ref(held)
    return lambda: there() is None


@pytest.mark.parametrize("kind", ["svm", "buffers"])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_close_gives_back_what_no_array_has(device: cl.Device, kind: str, when: str) -> None:
    """Handles and other arrays keep the engine. `when`: whether an array is dropped before `close`,
    or behind it."""
    if kind == "svm" and not device.svm_capabilities:
        pytest.skip("no shared virtual memory")
    rt = acs.Runtime(device, memory=kind)
    # the second one has memory of its own; with no command on it, since a driver may let go of that
    # some time after its end
    kept, x = rt.zeros(4), rt.empty(memory.SLAB // 4)
    handle = kept.fill(1)
    rt.finish()
    assert x.base is not None
    is_gone = watch(x.base.block.memory)
    if when == "before":
        del x
    rt.close()
    if when == "behind":
        assert not is_gone()
        del x
    gc.collect()
    assert is_gone()
    assert handle.done
    assert kept.shape == (4,)


def test_memory_of_a_dropped_array_is_not_in_use(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        before = rt.stats()["memory"]["in_use_bytes"]
        x = rt.zeros(1 << 16)
        assert rt.stats()["memory"]["in_use_bytes"] >= before + 4 * (1 << 16)
        x.get()
        del x
        assert rt.stats()["memory"]["in_use_bytes"] == before
        y = rt.zeros(1 << 16)
        y.free()
        assert rt.stats()["memory"]["in_use_bytes"] == before
