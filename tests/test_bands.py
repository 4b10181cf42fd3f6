"""Bands: cuts of a launch, and what each band may touch."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acs_cl as acs
from acs_cl.access.bands import group_count, group_counts, rows, tiles
from acs_cl.access.inference import from_source
from acs_cl.access.narrow import narrow
from acs_cl.access.reach import MOST_RECTANGLES, Reached
from acs_cl.benchmarks.validation import bands
from acs_cl.emu.machines import machine

COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=3)


def groups_of(box: Any) -> set[tuple[int, ...]]:
    return set(product(*(range(first, behind) for first, behind in box)))


@given(COUNTS, st.integers(1, 40))
def test_rows_are_all_groups_once_and_in_order(counts: list[int], bands: int) -> None:
    cut = rows(counts, bands)
    assert 1 <= len(cut) <= bands
    seen = [sorted(groups_of(box), key=lambda group: group[::-1]) for box in cut]
    numbered = sorted(product(*map(range, counts)), key=lambda group: group[::-1])
    assert [group for band in seen for group in band] == numbered
    assert [group_count(box) for box in cut] == [len(band) for band in seen]


@given(COUNTS, st.data())
def test_tiles_are_all_groups_once(counts: list[int], data: st.DataObject) -> None:
    pieces = [data.draw(st.integers(1, count)) for count in counts]
    cut = tiles(counts, pieces)
    assert len(cut) == prod(pieces)
    seen = [group for box in cut for group in groups_of(box)]
    assert sorted(seen) == sorted(product(*map(range, counts)))
    for axis in range(len(counts)):  # nearly equal
        lengths = {box[axis][1] - box[axis][0] for box in cut}
        assert max(lengths) - min(lengths) <= 1


def test_a_cut_that_cannot_be_is_refused() -> None:
    with pytest.raises(acs.UsageError, match="1 band or more, got 0"):
        rows((4,), 0)
    with pytest.raises(acs.UsageError, match=r"\(4, 2\) groups cannot be cut into \(5, 1\) pieces"):
        tiles((4, 2), (5, 1))


KERNELS = (
    bands.SOURCE
    + """
kernel void pose(global const float *x, global float *y, int n)
{ int i = get_global_id(0); for (int k = 0; k < 7; k++) y[k * n + i] = x[k * n + i]; }
kernel void gather(global const int *x, global float *y, int n, global const float *z)
{ int i = get_global_id(0); y[i] = z[x[i]]; }
"""
)


def footprints(
    name: str, size: tuple[int, ...], local: tuple[int, ...], bands: int, n: int
) -> list[dict[str, Reached]]:
    signature = from_source(KERNELS, name, None, None)
    made = narrow(signature)
    assert made is not None
    args = [n if parameter.name == "n" else 0 for parameter in signature.parameters]
    found = []
    for box in rows(group_counts(size, local), bands):
        reached = made.reached(size, local, None, args, box)
        found.append(
            {
                parameter.name: reached[index]
                for index, parameter in enumerate(signature.parameters)
                if index in reached
            }
        )
    return found


def flat(start: int, width: int) -> tuple[tuple[int, int, int, int], ...]:
    return ((start, width, 1, width),)


def test_a_band_of_an_elementwise_kernel_touches_its_elements() -> None:
    for at, band in enumerate(footprints("scale", (1024,), (64,), 4, 1000)):
        last = min(256 * (at + 1), 1000)
        assert band["y"].writes == flat(1024 * at, 4 * last - 1024 * at)
        assert band["x"].reads == flat(1024 * at, 4 * last - 1024 * at)


def test_a_band_of_a_sweep_reads_a_row_more_on_each_side() -> None:
    bands = footprints("sweep", (64, 64), (8, 8), 8, 64)
    for at, band in enumerate(bands):
        first, behind = max(8 * at, 1), min(8 * (at + 1), 63)
        assert band["y"].writes == ((256 * first + 4, 256, behind - first, 248),)
        for start, pitch, many, width in band["x"].reads or ():
            assert start >= 256 * (first - 1)
            assert start + (many - 1) * pitch + width <= 256 * (behind + 1)


def test_a_band_of_a_matrix_product_has_its_rows_and_all_of_the_other_matrix() -> None:
    for at, band in enumerate(footprints("gemm", (64, 64), (16, 16), 4, 64)):
        assert band["x"].reads == flat(4096 * at, 4096)
        assert band["y"].writes == flat(4096 * at, 4096)
        assert band["z"].reads == flat(0, 16384)


def test_a_band_of_a_transpose_writes_columns() -> None:
    for at, band in enumerate(footprints("transpose", (64, 64), (16, 16), 4, 64)):
        assert band["x"].reads == flat(4096 * at, 4096)
        assert band["y"].writes == ((64 * at, 256, 64, 64),)


def test_numbers_at_equal_distances_are_one_rectangle() -> None:
    assert MOST_RECTANGLES < 7
    for at, band in enumerate(footprints("pose", (256,), (64,), 4, 256)):
        assert band["y"].writes == ((256 * at, 1024, 7, 256),)


def test_what_is_gathered_may_be_anywhere() -> None:
    for at, band in enumerate(footprints("gather", (256,), (64,), 4, 256)):
        assert band["y"].writes == flat(256 * at, 256)
        read = band["z"].reads
        assert read is None or (read[0][0] <= 0 and read[0][3] > 1024)


# ---- what they would gain, simulated ----


def test_three_groups_on_two_threads_take_three_steps_of_four() -> None:
    found = bands.gains(
        lambda cut: bands.shape_trace("elementwise", 1.5, machine("cpu2"), cut), machine("cpu2")
    )
    assert found["1"]["tasks"] == 2
    assert found["4"]["tasks"] == 6  # as many as there are groups
    assert [found[cut]["ideal"]["gain"] for cut in ("1", "2", "4")] == [1, 1.333, 1.333]


def test_bands_that_all_need_each_other_gain_nothing() -> None:
    made = {
        cut: bands.shape_trace("transposes", 1.5, machine("h200-acs_cl"), cut) for cut in (1, 4)
    }
    found = bands.gains(made.__getitem__, machine("h200-acs_cl"), (1, 4))
    assert found["4"]["ideal"]["gain"] == 1
    later = [one for one in made[4].entries if one.upstream]
    assert all(len(one.upstream) == 4 for one in later)


@pytest.mark.parametrize("name", bands.SHAPES)
def test_a_cut_keeps_groups_and_work(name: str) -> None:
    whole, cut = (bands.shape_trace(name, 2.5, machine("cpu2"), count) for count in (1, 4))
    assert whole.edges == cut.edges == "upstream"
    assert sum(one.groups for one in whole.entries) == sum(one.groups for one in cut.entries)
    assert {one.group_ns for one in cut.entries} == {bands.GROUP_NS}
    sent = [one.name for one in cut.entries]
    assert len(sent) > len(whole.entries)
    assert list(dict.fromkeys(sent)) == list(dict.fromkeys(one.name for one in whole.entries))


def test_a_workload_without_a_trace_says_why() -> None:
    found = bands.workloads(["chains"], machine("cpu2"), "nothing")
    assert "no preset 'nothing'" in found["chains"]["left out"]
