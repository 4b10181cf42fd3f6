"""Programs on tiles: what they compute, on every configuration there is; and their peer in CUDA.

In: the wavefront and the factorisation, small. Out: what NumPy computes. The sizes that both sides
are compiled with stand in three files, and are compared here.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_tiles
from acs_cl.benchmarks.suite.measures import tiles as measured
from acs_cl.benchmarks.workloads import tiles
from acs_cl.opencl_c.kernel_files import kernel_source


@pytest.mark.parametrize("kind", tiles.PROGRAMS, ids=lambda kind: kind.name)
def test_a_program_computes_what_numpy_does(rt: acs.Runtime, kind: Any) -> None:
    program = kind(rt, 3, 2)
    for _ in range(2):
        program.reset()
        program.launch()
        assert np.allclose(program.result(), program.expected(), 1e-4, 1e-4)


@pytest.mark.parametrize("kind", tiles.PROGRAMS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("groups", [None, 1, 3])
def test_any_number_of_groups_runs_a_replay(context: Any, kind: Any, groups: int | None) -> None:
    with acs.Runtime(context=context, backend="device", groups=groups) as rt:
        program = kind(rt, 4, 1)
        with rt.record() as graph:
            program.launch()
        graph.replay().wait()
        assert np.allclose(program.result(), program.expected(), 1e-4, 1e-4)


def test_sizes_are_the_same_in_opencl_in_cuda_and_here() -> None:
    here = {"WAVE": tiles.WAVE, "EDGE": tiles.EDGE, "GROUP": tiles.GROUP}
    text = kernel_source("tiles.cl")
    assert {name: int(re.findall(rf"#define {name} (\d+)", text)[0]) for name in here} == here
    said = ", ".join(f"{name} = {value}" for name, value in here.items())
    assert f"const int {said};" in cuda_tiles.SOURCE.read_text("utf-8")


def test_bars_are_held_against_cuda_and_against_groups_by_hand() -> None:
    def spread(median: float) -> dict[str, float]:
        return {"median": median, "p25": median, "p75": median}

    times = {measured.CHOSEN: 100.0, measured.ANEW: 300.0, "24": 96.0, "48": 120.0}
    row = {"tiles": 48, "us": {name: spread(us) for name, us in times.items()}}
    row["over_cuda"] = spread(1.1)
    found = measured.bars({"rows": {"wavefront": row}}, {"kind": "GPU"})
    judged = {one["what"].split(" of ")[0]: one["met"] for one in found if one["limit"]}
    assert [one["value"] for one in found] == [100.0, 300.0, 0.96, 1.1]
    assert list(judged.values()) == [False, False]
