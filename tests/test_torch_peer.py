"""The peer in PyTorch computes what the workload does; shown with a stand-in, and with PyTorch
where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy_torch import Torch

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.figures import comparison_tables
from acs_cl.benchmarks.peers.torch_layers import CONCATENATE, LANES, Network, lanes, steps
from acs_cl.benchmarks.peers.torch_networks import EAGER, GRAPH, STREAMS, captured
from acs_cl.benchmarks.suite.beside_torch import measure
from acs_cl.benchmarks.workloads.inference import reference
from acs_cl.benchmarks.workloads.layers import Net
from acs_cl.benchmarks.workloads.static import MODELS, WORKLOADS
from acs_cl.benchmarks.workloads.values import U4

TINY = {
    workload.name: partial(MODELS[workload.name], workload.presets["tiny"])
    for workload in WORKLOADS
}


@pytest.fixture
def stand_in(imported_as: Callable[[str, object], None]) -> Torch:
    torch = Torch()
    imported_as("torch", torch)
    return torch


@pytest.mark.parametrize("name", TINY)
def test_steps_are_layers_and_concatenations(name: str) -> None:
    model = TINY[name](1)
    found = steps(model)
    assert [step.layer for step in found if step.layer] == model.net.layers
    for number, step in enumerate(found):
        assert all(-1 <= one < number for one in step.inputs)
        if step.kind == CONCATENATE:
            end = step.value.first
            for one in step.inputs:  # parts one after the other, without a gap
                assert (found[one].value.buffer, found[one].value.first) == (step.value.buffer, end)
                end += found[one].value.length
            assert end == step.value.first + step.value.length
    read = {one for step in found for one in step.inputs}
    assert read | {len(found) - 1} == set(range(-1, len(found)))


@pytest.mark.parametrize("name", TINY)
def test_on_several_streams_nothing_begins_before_what_it_reads(name: str) -> None:
    model, torch = TINY[name](0), Torch()
    network = Network(torch, model, "cuda")
    assert 1 < len(set(network.lanes)) <= LANES

    def watched(number: int, compute: Any) -> Any:
        def run(*args: Any) -> Any:
            stream = torch.cuda.current_stream()
            assert {one for one in network.steps[number].inputs if one >= 0} <= stream.seen
            stream.seen.add(number)
            return compute(*args)

        return run

    network.functions = [watched(*pair) for pair in enumerate(network.functions)]
    pool = [torch.cuda.Stream() for _ in range(LANES)]
    ends = []

    def compute() -> Any:
        for stream in pool:
            stream.seen.clear()
        found = network.on_streams(pool)
        ends.append(set(torch.cuda.current_stream().seen))
        return found

    results = captured(torch, compute).results()
    assert all(seen == set(range(len(network.steps))) for seen in ends)
    for key, right in reference(model).items():
        np.testing.assert_allclose(results[key].reshape(right.shape), right, rtol=1e-4, atol=1e-5)


def test_chains_stay_on_their_stream() -> None:
    net = Net(0)
    x = net.value(4, 8, 8)
    a = net.convolve(net.convolve(x, 4), 4)
    b = net.pool(net.pool(x))
    net.combine([a, b])
    model = TINY["squeezenet"](0)._replace(net=net, image=x, kept={})
    assert lanes(steps(model)) == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("name", TINY)
def test_all_ways_are_measured(name: str, stand_in: Torch) -> None:
    document = measure(name, "tiny", "cuda", runs=7)
    assert not document["failed"]
    assert list(document["rows"]) == [EAGER, GRAPH, STREAMS]
    assert all(row["ms"]["samples"] == 7 for row in document["rows"].values())
    assert document["rows"][EAGER]["over_eager"]["median"] == 1
    assert set(document["build_ms"]) == {GRAPH, STREAMS}
    assert not stand_in.backends.cudnn.allow_tf32
    assert "graph, streams" in comparison_tables.torch_text(document)


def test_ours_take_turns_with_them(stand_in: Torch) -> None:
    document = measure("squeezenet", "tiny", "cpu", opencl=devices.choose(), runs=3)
    assert not document["failed"]
    assert {EAGER, "acs_cl, bare", "acs_cl, serial", "acs_cl, auto"} <= set(document["rows"])


def test_who_computes_something_else_is_not_timed(stand_in: Torch) -> None:
    relu = stand_in.nn.functional.relu
    stand_in.nn.functional.relu = lambda x: relu(x) + 0.01
    document = measure("randwire", "tiny", "cpu", runs=3)
    assert "classes is off by" in document["failed"][EAGER]
    assert not document["rows"]


def test_what_is_missing_is_said(imported_as: Callable[[str, object], None]) -> None:
    imported_as("torch", None)
    with pytest.raises(acs.UsageError, match="cannot be imported here"):
        measure("randwire", "tiny")
    with pytest.raises(acs.UsageError, match="expected one of"):
        measure("alexnet", "tiny")
    blind = Torch()
    blind.cuda.is_available = lambda: False  # type: ignore[method-assign]
    imported_as("torch", blind)
    with pytest.raises(acs.UsageError, match="sees no CUDA device"):
        measure("randwire", "tiny")


def test_networks_that_decide_are_refused() -> None:
    net = Net(0)
    x, flags = net.value(4, 8, 8), net.value(1, dtype=U4)
    net.convolve(x, 4, gate=net.gate(flags, 0))
    with pytest.raises(acs.UsageError, match="with gates"):
        steps(TINY["squeezenet"](0)._replace(net=net, image=x, kept={}))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", TINY)
def test_in_pytorch_itself(name: str) -> None:
    document = measure(name, "tiny", "cpu", runs=3)
    assert not document["failed"]
