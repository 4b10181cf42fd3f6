"""Solvers to convergence: rounds and results are the same whoever drives them, and NumPy's."""

from __future__ import annotations

import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.benchmarks.peers import cuda_graphs, cuda_loops
from acs_cl.benchmarks.suite import loops
from acs_cl.benchmarks.workloads.solvers import SOLVERS


@pytest.mark.parametrize("backend", ["serial", "lanes", "device"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solver_converges_however_it_is_driven(name: str, backend: str, device: cl.Device) -> None:
    with acs.Runtime(device, backend=backend) as rt:
        found = loops.solver(rt, name, 1, SOLVERS[name][1])
        assert 5 < found["rounds"] < 100
        assert set(found["us_per_round"]) == {"loop", "unrolled", "known count", "host reads"}
        assert (rt.stats()["segments"] > 0) == (backend == "device")


def test_rounds_of_small_kernels_are_measured_by_each_way(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        found = loops.small_kernels(rt, 3, 1, rounds=50)
    assert set(found["us_per_round"]) == {"loop", "unrolled", "known count", "host reads"}


def test_cuda_that_computed_something_else_is_an_error() -> None:
    right = '{"kernels": 10, "wrong": 0, "us_per_round": [10.5, 10.7]}\n'
    assert cuda_loops.parsed(right) == {"10": [10.5, 10.7]}
    with pytest.raises(cuda_graphs.PeerError, match="3 words"):
        cuda_loops.parsed(right.replace('"wrong": 0', '"wrong": 3'))
