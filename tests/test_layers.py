"""Layers of networks: kernels against twins, twins against loops, and how layers are wired."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.workloads import inference, layers
from acs_cl.benchmarks.workloads.bare import InOrder
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.inference import HostDecided, Inference, Model
from acs_cl.benchmarks.workloads.layer_twins import TWINS
from acs_cl.benchmarks.workloads.layers import Net
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand, wiring
from acs_cl.benchmarks.workloads.values import Value


def everything() -> Model:
    """One layer of each sort and setting, from an image to parts of one value."""
    net = Net(3)
    x = net.value(4, 8, 8)
    kept: dict[str, Value] = {}
    for after in range(5):
        kept[f"convolve, then {after}"] = net.convolve(x, 8, 3, 2, after)
    kept["convolve 5"] = net.convolve(x, 4, 5, before=True)
    kept["convolve 1, stride 2"] = net.convolve(x, 4, 1, 2)
    kept["convolve 1, stride 2, one further in"] = net.convolve(x, 4, 1, 2, pad=-1)
    kept["convolve 3 without a margin"] = net.convolve(x, 4, 3, pad=0)
    kept["pointwise"] = net.convolve(x, 8, 1, before=True)
    kept["depthwise"] = net.depthwise(x, 3, before=True)
    narrow = net.convolve(x, 4, 3, 4)
    kept["depthwise of two columns"] = net.depthwise(narrow)
    kept["depthwise 5, stride 2"] = net.depthwise(net.convolve(x, 4, 3, pad=0), 5, 2)
    kept["depthwise 7, stride 2"] = net.depthwise(x, 7, 2, layers.RELU6)
    for how in (layers.MAXIMUM, layers.AVERAGE):
        kept[f"pool {how}"] = net.pool(x, 3, 1, how)
        kept[f"pool {how}, stride 2"] = net.pool(x, 3, 2, how, pad=0)
    kept["sum"] = net.combine([x, x, x], [0.5, -1, 2], layers.RELU)
    kept["means of many"] = net.means(net.convolve(x, 4, after=layers.LINEAR, pad=4))
    kept["means"] = net.means(x)
    kept["dense"] = net.dense(kept["means"], 10)
    kept["scaled"] = net.scale_channels(x, kept["means"])
    both = net.value(8, 8, 8)
    net.convolve(x, 4, 1, out=net.part(both, 0, 4))
    net.pool(x, out=net.part(both, 4, 4))
    kept["concatenated"] = both
    images = np.random.default_rng(5).normal(size=(2, 4, 8, 8))
    return Model(net, x, kept, images)


def same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes", "device"])
def test_kernels_compute_what_their_twins_compute(backend: str) -> None:
    model = everything()
    with acs.Runtime(backend=backend) as rt:
        run = Inference(rt, model)
        if backend == "device":
            rt.prebuild(*run.kernels)
        run.step()
        same(run.results(), inference.reference(model))
        if backend == "device":
            found = rt.stats()["scheduler"]
            assert found["tasks"] == 2 * (1 + len(run.body) + len(model.kept))
            assert all(" runs on a lane" in reason for reason in found["on_lanes"])  # transfers


def test_by_hand_and_decided_by_the_host_it_is_the_same() -> None:
    model, device = everything(), devices.choose()
    expected = inference.reference(model)
    runs = [make(InOrder(device), model) for make in (Inference, HostDecided)]
    for run in (*runs, ByHand(Queues(device, lanes=3), model)):
        run.step()
        run.step()
        same(run.results(), expected)


def test_work_items_of_large_convolutions_have_four_pixels() -> None:
    net = Net(1)
    x = net.value(8, 32, 32)
    kept = {
        "product": net.convolve(x, 64, 1, before=True),
        "convolution": net.convolve(x, 64),
        "of every other pixel": net.convolve(x, 64, 5, 2, before=True),
    }
    assert [layer.kernel for layer in net.layers] == [
        "pointwise_four", "convolve_four", "convolve_four",
    ]  # fmt: skip
    images = np.random.default_rng(2).normal(size=(1, 8, 32, 32))
    model = Model(net, x, kept, images)
    with acs.Runtime() as rt:
        run = Inference(rt, model)
        run.step()
        same(run.results(), inference.reference(model))


@pytest.mark.parametrize(
    ("size", "stride", "pad"), [(1, 1, 0), (3, 1, 1), (5, 2, 2), (1, 2, -1), (3, 2, 0)]
)
def test_twins_of_windows_are_what_loops_compute(size: int, stride: int, pad: int) -> None:
    random = np.random.default_rng(4)
    image, side = random.normal(size=(4, 6, 6)), (6 + 2 * max(pad, 0) - size) // stride + 1
    full, alone = random.normal(size=(1, 4, size, size, 4)), random.normal(size=(4, size, size))
    bias = random.normal(size=4)
    expected = {name: np.zeros((4, side, side)) for name in ("full", "alone", "most", "mean")}
    for y in range(side):
        for x in range(side):
            sums, seen = {"full": bias.copy(), "alone": bias.copy()}, []
            for dy in range(size):
                for dx in range(size):
                    row, column = y * stride - pad + dy, x * stride - pad + dx
                    if 0 <= row < 6 and 0 <= column < 6:
                        pixel = image[:, row, column]
                        sums["full"] += pixel @ full[0, :, dy, dx]
                        sums["alone"] += pixel * alone[:, dy, dx]
                        seen.append(pixel)
            for name, values in sums.items():
                expected[name][:, y, x] = values
            expected["most"][:, y, x] = np.max(seen, axis=0)
            expected["mean"][:, y, x] = np.mean(seen, axis=0)
    sizes = (side, side, size, stride, pad)
    for name, kernel, args in (
        ("full", "convolve", (full.ravel(), bias, None, 4, 6, 6, 4, *sizes, 0, 0, size, pad, 1, 0)),
        ("alone", "depthwise", (alone.ravel(), bias, None, 4, 6, 6, *sizes, 0, 0, 1)),
        ("most", "pool", (None, 4, 6, 6, *sizes, layers.MAXIMUM, 1, 0)),
        ("mean", "pool", (None, 4, 6, 6, *sizes, layers.AVERAGE, 1, 0)),
    ):
        out = np.empty(4 * side * side)
        TWINS[kernel](image.ravel(), *[out if arg is None else arg for arg in args])
        np.testing.assert_allclose(out, expected[name].ravel(), err_msg=name)


def test_layers_come_after_those_that_they_need_and_no_others() -> None:
    net = Net(0)
    x = net.value(8, 4, 8)
    both = net.value(16, 4, 8)
    net.convolve(x, 8, out=net.part(both, 0, 8))
    net.convolve(x, 8, out=net.part(both, 8, 8))
    net.pool(both)
    net.pool(net.part(both, 8, 8))
    assert wiring(net.layers) == [[], [], [0, 1], [1]]


def test_wrong_layers_are_refused() -> None:
    net = Net(0)
    x = net.value(8, 4, 8)
    with pytest.raises(acs.UsageError, match="multiple of four"):
        net.convolve(x, 6)
    with pytest.raises(acs.UsageError, match="output has shape"):
        net.pool(x, 3, 2, out=net.value(8, 4, 8))
    with pytest.raises(acs.UsageError, match="a sum of"):
        net.combine([x, net.value(4, 4, 8)])
    with pytest.raises(acs.UsageError, match="multiple of 128"):
        net.means(net.part(x, 1, 4))
    with pytest.raises(acs.UsageError, match="rows 4 to 12"):
        net.part(x, 4, 8)
