"""The demo computes what NumPy does, its graph follows from the picture, its launches overlap."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from conftest import Enter, Environment

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks import demo
from acs_cl.benchmarks.figures.timelines import Panel, Run, draw, rows_of
from acs_cl.benchmarks.workloads.treatments import SCENES, TILE, Filter, reference
from acs_cl.errors import InternalError
from acs_cl.observe.slices import Slice
from acs_cl.opencl_c.kernel_files import kernel_source
from acs_cl.tools import cli

SIDE = 4 * TILE


@pytest.fixture(autouse=True)
def _plain_environment(environment: Environment) -> None:
    for name in ("ACS_CL_BACKEND", "ACS_CL_TRACE"):
        environment(**{name: None})


@pytest.fixture(scope="module")
def work(device: cl.Device) -> Iterator[Filter]:
    with acs.Runtime(device) as runtime:
        yield Filter(runtime, SIDE)


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def slice_of(
    number: int, start_ns: int, end_ns: int, lane: int = 0, clock: str = "device"
) -> Slice:
    return Slice(number, "kernel", lane, clock, start_ns, end_ns, (), 1, 0, 0)


# ---- the command ---------------------------------------------------------------------------------


def test_quick_demo_prints_a_table_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], device: cl.Device
) -> None:
    picture = tmp_path / "timelines.png"
    assert cli.main(["demo", "--quick", "--out", str(picture)]) == 0
    printed = capsys.readouterr()
    for word in ("serial", "speed-up", "in flight", str(picture), *SCENES):
        assert word in printed.out
    assert printed.err == ""  # no progress bar where nobody looks
    width, height = png_size(picture)
    assert 1000 < width < 4000
    assert 300 < height < 4000


def test_wrong_result_is_said_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], device: cl.Device
) -> None:
    def wrong(picture: np.ndarray) -> tuple:
        result, treatments = reference(picture)
        result[5, 7] += 1
        return result, treatments

    monkeypatch.setattr(demo, "reference", wrong)
    assert cli.main(["demo", "--quick"]) == 1
    assert re.search(r"sky on serial is 1 grey levels off NumPy", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "magic"], "unknown backend 'magic'"),
        (["--device", "no such device"], "no device is called"),
        (["--out", "no/such/folder/picture.png"], "there is no folder"),
    ],
)
def test_wrong_option_is_one_message(
    arguments: list[str],
    message: str,
    enter: Enter,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    device: cl.Device,
) -> None:
    enter(tmp_path)
    assert cli.main(["demo", "--quick", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_backend_from_the_environment_is_refused(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would make the serial side something else."""
    environment(ACS_CL_BACKEND="lanes")
    assert cli.main(["demo", "--quick"]) == 1
    assert "unset ACS_CL_BACKEND" in capsys.readouterr().err


def test_busy_machine_is_said() -> None:
    assert "a load of 9.0 on 4 processors" in demo.busy(9.0, 4)
    assert demo.busy(1.0, 4) == ""


# ---- the pipeline --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENES)
def test_filter_is_numpys(work: Filter, name: str) -> None:
    picture = SCENES[name](SIDE)
    result, treatments = work.run(picture)
    expected, expected_treatments = reference(picture)
    assert treatments == expected_treatments
    np.testing.assert_allclose(result, expected, atol=demo.TOLERANCE)


def test_two_pictures_give_two_graphs(work: Filter) -> None:
    graphs = []
    for name in SCENES:
        work.run(SCENES[name](SIDE))
        graphs.append(list(work.launched))
    assert graphs[0] != graphs[1]
    assert {launch.split()[0] for graph in graphs for launch in graph} == {
        "measure", "smooth", "denoise", "sharpen", "blend",
    }  # fmt: skip
    work.run(SCENES["sky"](SIDE))
    assert work.launched == graphs[0]


def test_launches_overlap_by_the_device_clock(device: cl.Device) -> None:
    if device.max_compute_units < 2:
        pytest.skip("one compute unit: nothing can overlap")
    if device.platform.name.strip() != devices.POCL_PLATFORM:
        pytest.skip("how much overlaps elsewhere is a question for the benchmarks")
    picture = SCENES["city"](SIDE)
    for backend in ("serial", "out_of_order", "lanes"):
        with acs.Runtime(device, backend=backend, trace=True) as runtime:
            work = Filter(runtime, SIDE)
            work.run(picture)
            seen = []
            for _ in range(8):  # other programs can only take overlap away
                runtime.finish()
                runtime.trace.clear()
                work.run(picture)
                runtime.finish()
                seen.append(runtime.trace.overlap())
                if max(seen) > 1.2:
                    break
        if backend == "serial":
            assert max(seen) <= 1.01, seen
        else:
            assert max(seen) > 1.2, (backend, seen)


# ---- pictures and files --------------------------------------------------------------------------


def test_rows_of_one_queue_are_packed() -> None:
    slices = [slice_of(1, 0, 10), slice_of(2, 5, 15), slice_of(3, 10, 12), slice_of(4, 12, 30)]
    rows = [[one.number for one in row] for _, row in rows_of(slices)]
    assert rows == [[1, 3, 4], [2]]


def test_rows_of_lanes_are_lanes() -> None:
    slices = [slice_of(1, 0, 10, lane=2), slice_of(2, 20, 30, lane=0)]
    assert [name for name, _ in rows_of(slices)] == ["lane 0", "lane 2"]


def test_clocks_are_not_mixed(tmp_path: Path) -> None:
    run = Run("both", [slice_of(1, 0, 10), slice_of(2, 0, 10, clock="host")])
    with pytest.raises(acs.UsageError, match="of one clock"):
        draw([Panel("panel", [run])], tmp_path / "picture.png", "title")


def test_picture_without_image_is_drawn(tmp_path: Path) -> None:
    run = Run("many lanes", [slice_of(n, n, n + 40, lane=n) for n in range(40)])
    draw([Panel("panel", [run])], tmp_path / "picture.png", "title")
    assert png_size(tmp_path / "picture.png")[1] < 800


def test_unknown_kernel_file_names_what_there_is() -> None:
    assert "kernel void measure" in kernel_source("demo.cl")
    with pytest.raises(InternalError, match=r"no kernel source 'nothing\.cl'.*demo\.cl"):
        kernel_source("nothing.cl")
