"""Dynamic networks: images decide what runs, every device decides alike, nothing stale is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from widths import Watched

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.workloads import (
    condconv,
    dynamic,
    inference,
    instanas,
    layer_twins,
    routing,
)
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.inference import HostDecided, Inference, Model
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.workload import PRESETS, differences

NETWORKS = {workload.name: workload for workload in dynamic.WORKLOADS}
BUILD: dict[str, Any] = {
    "instanas": instanas.instanas,
    "routing": routing.routing,
    "condconv": condconv.condconv,
}
each_network = pytest.mark.parametrize("name", NETWORKS)


def model(name: str, seed: int = 0) -> Model:
    found: Model = BUILD[name](NETWORKS[name].presets["tiny"], seed)
    return found


def other_images(name: str) -> Model:
    """Two images whose decisions differ, then the first again."""
    first, second = model(name, 1).images
    return model(name)._replace(images=np.stack([first, second, first]))


def alone(found: Model) -> dict[str, Any]:
    """What each image gives in a memory that no image was in before."""
    single = [inference.reference(found._replace(images=image[None])) for image in found.images]
    return {key: np.concatenate([one[key] for one in single]) for key in single[0]}


@each_network
def test_two_inputs_give_two_graphs(name: str) -> None:
    platform = InOrder(devices.choose())
    graphs = []
    for seed in (0, 1):
        run = HostDecided(platform, model(name, seed))
        run.step()
        graphs += [frozenset(launched) for launched in run.launched]
    assert len(set(graphs)) > 2
    assert len(set(map(len, graphs))) > 1
    always = frozenset.intersection(*graphs)
    assert 0 < len(always) < min(map(len, graphs))


@each_network
def test_nothing_is_left_of_images_before(name: str) -> None:
    """Closed layers leave their outputs as they were, and nobody reads them."""
    found = other_images(name)
    expected = alone(found)
    assert (expected["open"][0] != expected["open"][1]).any()
    assert not differences(NETWORKS[name], inference.reference(found), expected)
    device = devices.choose()
    with acs.Runtime(backend="out_of_order") as rt:
        runs = (
            Inference(rt, found),
            HostDecided(rt, found),
            HostDecided(InOrder(device), found),
            ByHand(Queues(device, lanes=4), found),
        )
        for run in runs:
            run.step()
            run.step()  # without a wait in between
            assert not differences(NETWORKS[name], run.results(), expected)


@each_network
def test_what_was_not_run_is_never_read(name: str) -> None:
    """Everything that a layer writes is NaN before the first image."""
    found = model(name)
    with acs.Runtime(backend="serial") as rt:
        run = Inference(rt, found)
        for number, (_, dtype) in enumerate(found.net.sizes):
            if number not in found.net.constants and dtype.kind == "f":
                run.buffers[number].fill(np.nan)
        run.step()
        assert not differences(NETWORKS[name], run.results(), inference.reference(found))


@each_network
def test_the_scheduler_runs_all_of_it_and_skips_what_is_closed(name: str) -> None:
    found = model(name)
    with acs.Runtime(backend="device") as rt:
        run = Inference(rt, found)
        rt.prebuild(*run.kernels)
        run.step()
        assert not differences(NETWORKS[name], run.results(), inference.reference(found))
        scheduler = rt.stats()["scheduler"]
        per_image = 1 + len(run.body) + len(found.kept)
        assert scheduler["tasks"] == len(found.images) * per_image
        not_tasks = scheduler["on_lanes"]  # transfers, and moves, which nobody had built before
        assert all(
            " runs on a lane" in one or one == "its scheduler is not built yet" for one in not_tasks
        )


@each_network
def test_the_step_can_be_replayed_for_what_it_decides_on_the_device(name: str) -> None:
    found = model(name)
    with acs.Runtime(backend="out_of_order") as rt:
        run = Inference(rt, found)
        with rt.record() as graph:
            run.step()
        turned = found._replace(images=found.images[::-1])
        for array, image in zip(run.images, turned.images, strict=True):
            array.set(image.ravel().astype(np.float32))
        graph.replay()
        assert not differences(NETWORKS[name], run.results(), inference.reference(turned))


def test_branches_of_a_stage_are_independent() -> None:
    with acs.Runtime() as rt:
        platform = Watched(rt)
        run = Inference(platform, model("instanas"))
        run.step()
        stage = next(n for n, call in enumerate(run.body) if call.layer.kernel == "mean_of_open")
        ends = [number for number in range(stage) if run.body[number].when is not None]
        one, two = ends[:3], ends[3:6]
        handles = platform.handles[1:]  # the first brings the image
        for mine in one:
            for other in two:
                assert not rt.explain(handles[mine], handles[other]).ordered
        assert rt.explain(handles[one[0]], handles[one[1]]).ordered
        assert rt.explain(handles[one[2]], handles[stage]).ordered


def test_nodes_of_a_layer_and_weights_of_a_block_are_independent() -> None:
    with acs.Runtime() as rt:
        for name, kernel in (("routing", "join"), ("condconv", "add_expert")):
            platform = Watched(rt)
            run = Inference(platform, model(name))
            run.step()
            layers = [call.layer for call in run.body]
            at = [number for number, layer in enumerate(layers) if layer.kernel == kernel]
            # of the experts of three arrays the first, and the nodes of a layer with three
            at = at[0:12:4] if name == "condconv" else at[-3:]
            handles = [platform.handles[1 + number] for number in at]
            for k, one in enumerate(handles):
                assert not any(rt.explain(one, other).ordered for other in handles[k + 1 :])


@pytest.mark.parametrize("preset", PRESETS)
def test_the_controller_of_instanas_computes_exactly(preset: str) -> None:
    """So that decisions need no margin: in single precision sums are the same in every order."""
    size = NETWORKS["instanas"].presets[preset]
    net, image = (found := instanas.instanas(size, 0)).net, found.image
    last = next(number for number, layer in enumerate(net.layers) if layer.kernel == "pick")
    inputs, weights, thresholds = net.layers[last].args[:3]
    probe = Model(net.first(last), image, {"features": inputs}, found.images)
    for features in inference.reference(probe)["features"]:
        terms = features * net.constants[weights.buffer].reshape(-1, inputs.length)
        terms = np.column_stack([terms, -net.constants[thresholds.buffer]])
        unit = 2.0**-14
        assert (terms / unit == np.rint(terms / unit)).all()
        assert np.abs(terms).sum(axis=1).max() / unit < 2**24


def test_images_too_close_to_a_threshold_are_refused() -> None:
    values, flags = np.zeros(4), np.zeros(4)
    weights, bias = np.zeros(8), np.array([1e-6, 1.0, -1.0, 0.0])
    with pytest.raises(acs.UsageError, match="take another seed"):
        layer_twins.decide(np.ones(2), weights, bias, values, flags, 2, 0b111)
    layer_twins.decide(np.ones(2), weights, bias, values, flags, 2, 0b110)
    assert flags.tolist() == [0, 1, 0, 1]
    level = np.log(layer_twins.FLOOR / (1 - layer_twins.FLOOR))
    with pytest.raises(acs.UsageError, match="take another seed"):
        layer_twins.route(np.ones(2), weights, np.full(4, level), np.zeros(5), flags, 2)


def test_at_least_one_branch_and_one_expert_are_open() -> None:
    features, flags, shares = np.ones(1), np.zeros(10), np.zeros(10)
    weights = np.array([-3, -1, -2, -4, -5, 1, -1, 2, -1, -1])
    layer_twins.pick(features, weights, np.zeros(10), flags, shares, 2, 1)
    assert flags.tolist() == [0, 1, 0, 0, 0, 1, 0, 1, 0, 0]
    assert shares.tolist() == [0, 1, 0, 0, 0, 0.5, 0, 0.5, 0, 0]
    routing, some = np.zeros(5), np.zeros(4)
    layer_twins.route(np.ones(1), np.zeros(4), np.array([-3, -2, -1, -4.0]), routing, some, 1)
    assert (some.tolist(), routing[4]) == ([0, 0, 1, 0], 2)


def test_networks_have_the_shapes_that_they_are_named_after() -> None:
    paper = {name: workload.presets["paper"] for name, workload in NETWORKS.items()}
    assert (len(instanas.STAGES), paper["instanas"].stages) == (17, 17)
    assert (paper["routing"].layers, paper["routing"].scales) == (16, 4)
    assert sum(block[4] for block in condconv.BLOCKS) == 32
    for name in NETWORKS:
        found = BUILD[name](paper[name], 0)
        groups = Counter(-(-layer.items // 64) for layer in found.net.layers)
        assert found.net.layers
        assert found.images.shape[1:] == (3, 32, 32)
        assert max(groups) > 64  # and most are small
        assert sum(count for size, count in groups.items() if size < 200) > 0.6 * groups.total()
