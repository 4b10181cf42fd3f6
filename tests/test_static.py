"""Static networks are those that were published, and wired as they are drawn."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from widths import Watched, edges_of, widest, width

import acs_cl as acs
from acs_cl.benchmarks.workloads.cells import AMOEBANET, NASNET, Cell, CellsSize, add_cell
from acs_cl.benchmarks.workloads.described import Described
from acs_cl.benchmarks.workloads.inference import Inference, Model, reference
from acs_cl.benchmarks.workloads.layers import AVERAGE, Net
from acs_cl.benchmarks.workloads.layers_by_hand import wiring
from acs_cl.benchmarks.workloads.networks import ImagesSize
from acs_cl.benchmarks.workloads.randwire import NEIGHBOURS, total, watts_strogatz
from acs_cl.benchmarks.workloads.static import MODELS, WORKLOADS
from acs_cl.benchmarks.workloads.values import Layer, Value

TINY = {
    workload.name: partial(MODELS[workload.name], workload.presets["tiny"])
    for workload in WORKLOADS
}


def weights_of(model: Model) -> int:
    """All numbers of a network, without those of the classifier."""
    found = 0
    for layer in model.net.layers:
        if layer.kernel != "dense":
            constants = [arg for arg in layer.args if isinstance(arg, Value)]
            found += sum(arg.length for arg in constants if arg.buffer in model.net.constants)
    return found


def test_networks_have_as_many_weights_as_published() -> None:
    assert weights_of(MODELS["squeezenet"](ImagesSize(1, 32, 11), 0)) == 722_496  # 1.1
    nasnet = MODELS["nasnet"](CellsSize(6, 32, 32), 0)
    assert weights_of(nasnet) == pytest.approx(3.3e6, rel=0.02)  # 6 @ 768


# ---- wiring --------------------------------------------------------------------------------------


def pairs_of(layers: list[Layer], states: list[Value]) -> list[list[tuple[str, int]]]:
    """Which operations on which states a cell adds, found by going back from its sums."""
    makers = {value: layer for layer in layers for value in layer.writes}
    found = []

    def operation(value: Value) -> tuple[str, int]:
        if value in states:
            return "id", states.index(value)
        layer = makers[value]
        if layer.kernel == "pool":
            name = "avg" if layer.args[10] == AVERAGE else "max"
            return f"{name}{layer.args[7]}", states.index(layer.args[0])
        sizes = []
        for _ in range(2):  # twice the channels by themselves, then all of them together
            middle = makers[makers[value].args[0]]
            assert (makers[value].kernel, middle.kernel) == ("pointwise", "depthwise")
            sizes.append(middle.args[9])
            value = middle.args[0]
        assert sizes[0] == sizes[1]
        return f"sep{sizes[0]}", states.index(value)

    for layer in layers:
        if layer.kernel == "combine":
            a, b, _, _, out = layer.args[:5]
            found.append([operation(a), operation(b)])
            states.append(out)
    return found


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("style", [NASNET, AMOEBANET])
def test_cells_are_wired_as_they_are_drawn(style: tuple[Cell, Cell], stride: int) -> None:
    cell = style[stride - 1]
    net = Net(0)
    before, last = net.value(12, 8, 8), net.value(8, 8, 8)
    whole = add_cell(net, cell, before, last, 8, stride)
    states = [layer.writes[0] for layer in net.layers[:2]]
    assert pairs_of(net.layers, states) == [list(pair) for pair in cell.pairs]
    assert whole.shape == (8 * len(cell.joined), 8 // stride, 8 // stride)
    for number, state in enumerate(cell.joined):
        assert states[state] == net.part(whole, 8 * number, 8)


def test_of_states_all_that_no_operation_reads_are_concatenated() -> None:
    for cell in (*NASNET, *AMOEBANET):
        read = {state for pair in cell.pairs for _, state in pair}
        assert set(range(2, 7)) - read <= set(cell.joined)


def test_fire_modules_expand_what_was_squeezed() -> None:
    net = Net(1)
    x = net.value(8, 8, 8)
    whole = Described(net, {"x": x}).lines("y = x 4:1 [8:1 | 8:3]")
    model = Model(net, x, {"whole": whole}, np.random.default_rng(2).normal(size=(1, 8, 8, 8)))
    squeeze, narrow, wide = (
        [net.constants[arg.buffer].reshape(arg.shape).astype(float) for arg in layer.args[1:3]]
        for layer in net.layers
    )

    def each_pixel(weights: np.ndarray, image: np.ndarray) -> np.ndarray:
        return np.einsum("icd,cyx->idyx", weights, image).reshape(-1, 8, 8)

    few = each_pixel(squeeze[0][:, :, 0, 0], model.images[0]) + squeeze[1][:, None, None]
    few = np.maximum(few, 0)
    padded = np.pad(few, ((0, 0), (1, 1), (1, 1)))
    moved = [(v, u, padded[:, v : v + 8, u : u + 8]) for v in range(3) for u in range(3)]
    ones = each_pixel(narrow[0][:, :, 0, 0], few)
    threes = sum(each_pixel(wide[0][:, :, v, u], image) for v, u, image in moved)
    expected = np.concatenate([ones, threes])
    expected += np.concatenate([narrow[1], wide[1]])[:, None, None]
    np.testing.assert_allclose(reference(model)["whole"][0], np.maximum(expected, 0))


@pytest.mark.parametrize("nodes", [8, 32])
def test_random_wiring_keeps_the_number_of_links_and_hangs_together(nodes: int) -> None:
    for seed in range(20):
        inputs = watts_strogatz(nodes, np.random.default_rng(seed))
        links = {(a, b) for b, those in enumerate(inputs) for a in those}
        assert all(a < b for a, b in links)
        assert len(links) == sum(map(len, inputs)) == nodes * NEIGHBOURS // 2
        reached = {0}
        for _ in range(nodes):
            reached |= {b for link in links for b in link if set(link) & reached}
        assert reached == set(range(nodes))


def test_seeds_wire_differently() -> None:
    found = {str(watts_strogatz(32, np.random.default_rng(seed))) for seed in range(10)}
    assert len(found) == 10
    assert wiring(TINY["randwire"](0).net.layers) != wiring(TINY["randwire"](1).net.layers)


@pytest.mark.parametrize("count", range(1, 12))
def test_sums_of_many_take_four_at_a_time(count: int) -> None:
    net, random = Net(0), np.random.default_rng(count)
    x = net.value(count, 4, 32)
    weights = random.random(count)
    kept = {"sum": total(net, [net.part(x, number, 1) for number in range(count)], weights)}
    model = Model(net, x, kept, random.normal(size=(1, *x.shape)))
    expected = np.tensordot(weights, model.images[0], axes=1)
    np.testing.assert_allclose(reference(model)["sum"][0, 0], expected)
    assert len(net.layers) == max(1, -(-(count - 1) // 3))


# ---- what the runtime finds ----------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY)
def test_the_runtime_finds_the_edges_that_the_wiring_has(name: str) -> None:
    model = TINY[name](0)
    with acs.Runtime() as rt:
        assert edges_of(rt, model) == wiring(model.net.layers)


def test_cells_and_random_wiring_are_wide_and_fires_are_not() -> None:
    widths = {}
    for name, model in TINY.items():
        behind = wiring(model(0).net.layers)
        widths[name] = widest(len(behind), lambda a, b, behind=behind: a in behind[b])
    assert widths["squeezenet"] == 2
    assert min(widths["nasnet"], widths["amoebanet"]) > 6
    assert widths["randwire"] >= 3
    with acs.Runtime() as rt:
        platform = Watched(rt)
        Inference(platform, TINY["squeezenet"](0)).step()
        assert width(rt, platform.handles) == 2
