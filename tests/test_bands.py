"""Bands: cuts of a launch, and what each band may touch."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acs_cl as acs
from acs_cl.access.bands import box_of, run_length, tiles
from acs_cl.access.binder import MOST_RECTANGLES, Reached, binder
from acs_cl.access.cuts import Cut, Policy, Shares, asked, in_runs
from acs_cl.access.inference import from_source
from acs_cl.access.policies import policy
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.validation import bands
from acs_cl.benchmarks.validation.dry import Dry
from acs_cl.emu.machines import machine
from acs_cl.emu.trace import Trace
from acs_cl.graph.calls import union
from acs_cl.ranges import overlap
from acs_cl.records import Access, Span
from acs_cl.scheduler import layout
from acs_cl.scheduler.bands import Band, Cuts, Sizes, bands_of, tiles_of
from acs_cl.scheduler.laying import JOINT, laid
from acs_cl.scheduler.task import Task

COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=3)


def groups_of(box: Any) -> set[tuple[int, ...]]:
    return set(product(*(range(first, behind) for first, behind in box)))


@given(COUNTS, st.integers(1, 40))
def test_runs_are_all_groups_once_and_in_order(counts: list[int], bands: int) -> None:
    cut = in_runs(counts, bands).parts
    assert 1 <= len(cut) <= bands
    seen = [sorted(groups_of(one.boxes[0]), key=lambda group: group[::-1]) for one in cut]
    numbered = sorted(product(*map(range, counts)), key=lambda group: group[::-1])
    assert [group for band in seen for group in band] == numbered
    assert [(one.run, one.many, len(one.boxes)) for one in cut] == [(len(s), 1, 1) for s in seen]


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


@given(COUNTS, st.data())
def test_the_box_of_a_run_is_the_smallest_one(counts: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, prod(counts) - 1))
    behind = data.draw(st.integers(first + 1, prod(counts)))
    numbered = sorted(product(*map(range, counts)), key=lambda group: group[::-1])
    run = numbered[first:behind]
    hull = tuple((min(axis), max(axis) + 1) for axis in zip(*run, strict=True))
    assert box_of(counts, first, behind) == hull


@given(COUNTS, st.integers(1, 40))
def test_a_band_of_one_length_is_a_box(counts: list[int], bands: int) -> None:
    length, every = run_length(counts, bands), prod(counts)
    assert 1 <= -(-every // length) <= bands
    for first in range(0, every, length):
        behind = min(first + length, every)
        assert len(groups_of(box_of(counts, first, behind))) == behind - first


@given(COUNTS, st.integers(1, 40), st.integers(1, 300), st.sampled_from((1, 4, 16)), st.booleans())
def test_bands_are_all_tiles_once(
    counts: list[int], bands: int, tile_items: int, local: int, is_tiled: bool
) -> None:
    whole = tile_items if is_tiled else -(-tile_items // local) * local
    sizes = Sizes(tuple(counts), (local,), local, whole, is_tiled, 8)
    boxes: list[Any] = []

    def touched(groups: Any, _: Any) -> Access:
        boxes.append(groups)
        return Access((), ())

    for cut in (bands, acs.Row(bands), acs.Tile(bands, 3), acs.Strided(1 + bands % 3)):
        boxes.clear()
        how = cut.shares(counts) if not isinstance(cut, int) else in_runs(counts, cut)
        if isinstance(how, str):
            continue
        items, each = tiles_of(sizes, how.unit)
        assert is_tiled or items % local == 0  # a group is in one tile
        assert items * each == how.unit * local
        found = bands_of(sizes, Cut(cut, touched), how, items)
        every = [groups_in(part) for part in how.parts]
        assert sorted(group for one in every for group in one) == [*range(prod(counts))]
        own = [tiles_in(band) for band in found]
        assert sorted(tile for one in own for tile in one) == [*range(-(-sizes.items // items))]
        for groups, numbers in zip(every, own, strict=True):  # the same work-items
            items_of = {i for group in groups for i in range(group * local, (group + 1) * local)}
            assert {item // items for item in items_of} == {*numbers}
        seen = [group for box in boxes for group in groups_of(box)]
        assert sorted(seen) == sorted(product(*map(range, counts)))


def groups_in(part: Any) -> list[int]:
    """The groups of a part, by their numbers."""
    return [part.first + k * part.stride + i for k in range(part.many) for i in range(part.run)]


def tiles_in(band: Band) -> list[int]:
    """The tiles of a band, as the scheduler finds them."""
    run = band.run or band.tiles
    return [band.first + t // run * band.stride + t % run for t in range(band.tiles)]


@pytest.mark.parametrize("wrong", [0, -1, 1025, 2.5, True, "rows", (2, 2), acs.Row])
def test_a_number_of_bands_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(
        acs.UsageError, match=r"bands=.*expected 'early', 'auto', 'off', 'lanes' or 1 to 1,024"
    ):
        asked(wrong)


def test_numbers_of_cuts_may_be_numpys() -> None:
    found = acs.Tile(np.int64(2), np.uint8(3))
    assert str(found) == "Tile(rows=2, columns=3)"
    assert policy(str(found)) == found


def test_cuts_that_cannot_be_are_refused() -> None:
    for make, wrong in ((acs.Row, (0,)), (acs.Tile, (2, 2.5)), (acs.Strided, (True,))):
        with pytest.raises(acs.UsageError, match="expected whole numbers from 1 to "):
            make(*wrong)  # type: ignore[operator]
    (band,) = acs.Row(5000).shares((3, 4000)).parts  # type: ignore[union-attr]
    assert band.run == 3 * 4000
    with pytest.raises(acs.UsageError, match="expected 1,024 bands at most"):
        acs.Tile(64, 32)
    with pytest.raises(ValueError, match="is no cut"):
        policy("Cone(rows=1)")
    told: dict[str, Policy] = {
        "no multiple of 3": acs.Strided(3),
        "on three axes": acs.Tile(2, 2),
        "2,000 rows of groups, more than 1,024": acs.Row(),
    }
    for reason, cut in told.items():
        assert reason in str(cut.shares((4, 3, 2000)))
    assert "would have 2,000 bands" in str(acs.Strided(2).shares((4000,)))
    for cut in (acs.Row(3), acs.Tile(2, 5), acs.Strided(4)):
        assert policy(str(cut)) == cut


PRODUCTS = """
kernel void product(global const float *x, global const float *w, global float *y, int n, int k)
{
    int j = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int at = 0; at < k; at++) sum += x[i * k + at] * w[at * n + j];
    y[i * n + j] = sum;
}
kernel void point(global const float *x, global float *y, int n)
{ int j = get_global_id(0), i = get_global_id(1); y[i * n + j] = x[i * n + j]; }
kernel void head(global const float *qkv, global float *y, int n)
{
    int j = get_global_id(0), i = get_global_id(1);
    y[i * n + j] = qkv[i * 3 * n + j] + qkv[i * 3 * n + n + j] * qkv[i * 3 * n + 2 * n + j];
}
"""


@pytest.mark.parametrize(
    ("first", "second", "cuts", "waits"),
    [
        # the rows of a product need those of the one before
        ("product", "product", (acs.Row(), acs.Row()), [[0], [1], [2], [3]]),
        ("product", "product", (acs.Row(2), acs.Row(1)), [[0], [0], [1], [1]]),
        ("product", "product", (acs.Tile(2, 3), acs.Tile(2, 1)), [[0, 1, 2], [3, 4, 5]]),
        # elementwise: tile by tile, whatever their sizes
        ("product", "point", (acs.Tile(2, 3), acs.Tile(2, 3)), [[0], [1], [2], [3], [4], [5]]),
        ("product", "point", (acs.Tile(1, 3), acs.Tile(2, 3)), [[0], [1], [2]] * 2),
        ("point", "point", (4, acs.Tile(4, 1)), [[0], [1], [2], [3]]),
        # a head needs its column of each of the three matrices that lie side by side
        ("qkv", "head", (acs.Strided(3), acs.Tile(1, 6)), [[0], [1], [2], [3], [4], [5]]),
        ("qkv", "head", (acs.Row(), acs.Row()), [[0], [1], [2], [3]]),
    ],
    ids=str,
)
def test_what_a_cut_waits_for_follows_from_the_bytes(
    first: str, second: str, cuts: tuple[Any, Any], waits: list[list[int]]
) -> None:
    """Fields of 4 x 6 groups of 8 x 4 work-items."""
    accesses = []
    for at, (name, cut) in enumerate(zip((first, second), cuts, strict=True)):
        wide = 3 if name == "qkv" else 1
        counts, n = (6 * wide, 4), 48 * wide
        signature = from_source(PRODUCTS, name.replace("qkv", "product"), None, None)
        made = binder(signature)
        names = [one.name for one in signature.parameters]
        numbers = [{"n": n, "k": 48}[names[index]] for index, *_ in made.numbers]
        bases = {"x": at + 1, "qkv": at + 1, "y": at + 2, "w": 9}
        how = in_runs(counts, cut) if isinstance(cut, int) else cut.shares(counts)
        assert isinstance(how, Shares)
        each = []
        for part in how.parts:
            spans: tuple[list[Span], list[Span]] = ([], [])
            for box in part.boxes:
                reached = made.reached((n, 16), (8, 4), None, numbers, box)
                for index, found in reached.items():
                    for rectangles, into in zip(found[:2], spans, strict=True):
                        assert rectangles is not None
                        into += [Span(bases[names[index]], *one) for one in rectangles]
            each.append(Access(*map(tuple, spans)))
        accesses.append(each)
    assert [
        [at for at, above in enumerate(accesses[0]) if conflict(above, below)]
        for below in accesses[1]
    ] == waits


# ---- launches as tasks, by their bytes ----


def test_bands_are_ordered_as_their_bytes_ask() -> None:
    """By brute force: of two bands of different launches that share a byte, one of them writing,
    the later one waits for the earlier one; and no band waits for one of its own launch."""
    joints = 0
    for seed in range(200):
        rng = random.Random(seed)
        launches, tasks = [], []
        for _ in range(rng.randint(2, 8)):
            own = bands_at_random(rng)
            launches.append((Plain("k"), union(band.access for band in own)))
            tasks.append(
                Task(layout.head(0, len(own), 10 * len(own), 10, 1, 0), b"", None, len(own))
            )
            if len(own) > 1:
                tasks[-1] = tasks[-1]._replace(cuts=Cuts(tuple(own), ""))
        made = laid(launches, tasks)  # type: ignore[arg-type]
        before: list[set[int]] = []
        for task, upstream in enumerate(made.upstream):
            before.append({one for other in upstream for one in (other, *before[other])})
            for other in range(task):
                if conflict(made.accesses[other], made.accesses[task]):
                    is_beside = made.launches[other] == made.launches[task]
                    assert (other in before[task]) != is_beside, (seed, other, task)
            assert not any(made.launches[one] == made.launches[task] >= 0 for one in before[task])
        assert [task for own in made.tasks for task in own] == [
            task for task, launch in enumerate(made.launches) if launch != JOINT
        ]
        joints += made.launches.count(JOINT)
    assert joints > 10


@pytest.mark.parametrize(
    ("widths", "units", "groups"),
    [
        ([1] * 6, 4, 4),  # a chain keeps one group busy, and the units are there
        ([40, 2, 2, 2], 4, 23),  # 46 tiles in 4 levels, twice
        ([300, 300], 132, 600),
        ([1], 132, 132),
    ],
)
def test_a_replay_has_groups_for_twice_the_tiles_of_a_level(
    widths: list[int], units: int, groups: int
) -> None:
    span = Span(1, 0, 100, 1, 100)
    access = Access((span,), (span,))
    tasks = [Task(layout.head(0, n, 10 * n, 10, 1, 0), b"", None, n) for n in widths]
    made = laid([(Plain("k"), access) for _ in widths], tasks)  # type: ignore[misc]
    assert made.recorder.groups_wanted(units) == groups


def test_many_bands_wait_for_many_through_one_task() -> None:
    whole, n = Span(2, 0, 800, 1, 800), 8
    writes = [Access((), (Span(2, 100 * at, 100, 1, 100),)) for at in range(n)]
    reads = [Access((whole,), (Span(3, 100 * at, 100, 1, 100),)) for at in range(n)]
    cuts = [
        Cuts(tuple(Band(at, 1, one) for at, one in enumerate(several)), "")
        for several in (writes, reads, reads)
    ]
    tasks = [Task(layout.head(0, n, 10 * n, 10, 1, 0), b"", None, n, one) for one in cuts]
    made = laid([(Plain("k"), union(b.access for b in one.bands)) for one in cuts], tasks)  # type: ignore[misc]
    assert made.launches.count(JOINT) == 1
    assert made.upstream[n] == tuple(range(n))
    assert made.upstream[n + 1 : 2 * n + 1] == [(n,)] * n
    assert made.upstream[2 * n + 1 :] == [(at,) for at in range(n + 1, 2 * n + 1)]  # each its own


class Plain(NamedTuple):
    """A command of which only the name is asked."""

    name: str


def bands_at_random(rng: random.Random) -> list[Band]:
    """Bands that write bytes of their own and read any, or all."""
    many, each = rng.choice((1, 1, 2, 5, 6, 9)), rng.randint(1, 9)
    base, source = rng.sample((1, 2, 3), 2)
    how, found = rng.choice(("own", "halo", "any", "all")), []
    for at in range(many):
        low, high = {
            "own": (at * each, (at + 1) * each),
            "halo": (max(0, at * each - 1), (at + 1) * each + 1),
            "any": (rng.randrange(20), 30),
            "all": (0, 90),
        }[how]
        read = Span(source, low, high - low, 1, high - low)
        found.append(Band(at, 1, Access((read,), (Span(base, at * each, each, 1, each),))))
    return found


def conflict(one: Access, other: Access) -> bool:
    """Whether they share a byte that one of them writes."""
    return any(
        a.base == b.base and overlap(a, b)
        for a, b in (
            *product(one.writes, (*other.reads, *other.writes)),
            *product(one.reads, other.writes),
        )
    )


def test_a_cut_that_cannot_be_is_refused() -> None:
    with pytest.raises(acs.UsageError, match=r"\(4, 2\) groups cannot be cut into \(5, 1\) pieces"):
        tiles((4, 2), (5, 1))


KERNELS = """
kernel void scale(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] = 2 * x[i]; }
kernel void sweep(global const float *x, global float *y, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
    y[j * n + i] = x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i] + x[(j + 1) * n + i];
}
kernel void gemm(global const float *x, global float *y, int n, global const float *z)
{
    int i = get_global_id(0), j = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += x[j * n + k] * z[k * n + i];
    y[j * n + i] = sum;
}
kernel void transpose(global const float *x, global float *y, int n)
{ int i = get_global_id(0), j = get_global_id(1); y[i * n + j] = x[j * n + i]; }
kernel void pose(global const float *x, global float *y, int n)
{ int i = get_global_id(0); for (int k = 0; k < 7; k++) y[k * n + i] = x[k * n + i]; }
kernel void gather(global const int *x, global float *y, int n, global const float *z)
{ int i = get_global_id(0); y[i] = z[x[i]]; }
"""


def footprints(
    name: str, size: tuple[int, ...], local: tuple[int, ...], bands: int, n: int
) -> list[dict[str, Reached]]:
    signature = from_source(KERNELS, name, None, None)
    made = binder(signature)
    assert {signature.parameters[index].name for index, *_ in made.numbers} <= {"n"}
    found = []
    counts = [-(-n // each) for n, each in zip(size, local, strict=True)]
    for one in in_runs(counts, bands).parts:
        (box,) = one.boxes
        reached = made.reached(size, local, None, [n] * len(made.numbers), box)
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


def dry(name: str, size: tuple[int, ...], cut: int, launches: int = 2) -> Trace:
    """Dependent launches of a kernel, from x to y and back, cut into bands."""
    made = Dry(group_ns=bands.GROUP_NS, bands=cut)
    kernel = getattr(made.build(KERNELS), name)
    x, y, z = (made.empty(prod(size)) for _ in range(3))
    local = (16, 16) if len(size) == 2 else (64,)
    for _ in range(launches):
        kernel(size, local, x, y, size[0], *([z] if name == "gemm" else []))
        x, y = y, x
    return made.trace(name)


def test_three_groups_on_two_threads_take_three_steps_of_four() -> None:
    found = bands.gains(
        lambda cut: bands.row_trace(2, bands.Measured(3, bands.GROUP_NS), cut), machine("cpu2"),
        (1, 2, 4),
    )  # fmt: skip
    assert found["1"]["tasks"] == 2
    assert found["4"]["tasks"] == 6  # as many as there are groups
    assert [found[cut]["ideal"]["gain"] for cut in ("1", "2", "4")] == [1, 1.333, 1.333]


def test_bands_that_all_need_each_other_gain_nothing() -> None:
    made = {cut: dry("transpose", (496, 496), cut, 4) for cut in (1, 4)}
    found = bands.gains(made.__getitem__, machine("h200-acs_cl"), (1, 4))
    assert found["4"]["ideal"]["gain"] == 1
    later = [one for one in made[4].entries if one.upstream]
    assert all(len(one.upstream) == 4 for one in later)


@pytest.mark.parametrize("name", ["scale", "sweep", "gemm", "transpose"])
def test_a_cut_keeps_groups_and_work(name: str) -> None:
    size = (320,) if name == "scale" else (64, 64)
    whole, cut = (dry(name, size, count) for count in (1, 4))
    assert whole.edges == cut.edges == "upstream"
    assert sum(one.groups for one in whole.entries) == sum(one.groups for one in cut.entries)
    assert {one.group_ns for one in cut.entries} == {bands.GROUP_NS}
    sent = [one.name for one in cut.entries]
    assert len(sent) > len(whole.entries)
    assert list(dict.fromkeys(sent)) == list(dict.fromkeys(one.name for one in whole.entries))


def test_the_emulator_says_what_was_measured_of_rows_on_two_threads() -> None:
    """Within a tenth. On the card it is below what was measured; the page has both."""
    there = documents.read(bands.RESULT)["machines"]["cpu2"]["rows"]
    rows = documents.read(bands.RESULT.with_name("pocl.json"))["benchmarks"]["bands"]["rows"]
    for name, runs in there.items():
        said, measured = runs["3"]["on_device"]["gain"], rows[name]["over_whole"]["median"]
        assert said == pytest.approx(measured, rel=0.1), name


def test_a_workload_without_a_trace_says_why() -> None:
    found = bands.workloads(["chains"], machine("cpu2"), "nothing")
    assert "no preset 'nothing'" in found["chains"]["left out"]
