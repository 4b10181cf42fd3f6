"""Networks that are described as text: what they compute, who waits for whom, published sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_static import weights_of
from widths import edges_of

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.peers import cuda_networks
from acs_cl.benchmarks.workloads import networks
from acs_cl.benchmarks.workloads.described import Described
from acs_cl.benchmarks.workloads.expert import Queues
from acs_cl.benchmarks.workloads.inference import Inference, reference
from acs_cl.benchmarks.workloads.layers import Net
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand, wiring
from acs_cl.benchmarks.workloads.values import ALIGNED, Value
from acs_cl.benchmarks.workloads.workload import building_once, differences

WORKLOADS = {workload.name: workload for workload in networks.WORKLOADS}


@pytest.fixture(scope="module")
def runtime(device: Any) -> Any:
    with acs.Runtime(device, backend="lanes") as rt:
        yield building_once(rt)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", WORKLOADS)
def test_networks_compute_what_numpy_computes(runtime: Any, name: str, batch: int) -> None:
    model = networks.MODELS[name](WORKLOADS[name].presets["tiny"]._replace(batch=batch), 0)
    expected = reference(model)
    for platform, made in ((runtime, Inference), (Queues(devices.choose(), lanes=3), ByHand)):
        run = made(platform, model)
        platform.finish()
        run.step()
        assert differences(WORKLOADS[name], run.results(), expected) == ""


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_runtime_finds_the_edges_of_networks(runtime: Any, name: str) -> None:
    """Parts that begin where no sub-buffer may are told from one another."""
    model = networks.MODELS[name](WORKLOADS[name].presets["tiny"], 0)
    assert edges_of(runtime, model) == wiring(model.net.layers)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("googlenet", 5.97e6),  # without the classifier of 1.02 million
        ("inception", 21.79e6),  # without that of 2.05 million
    ],
)
def test_networks_have_the_published_weights(name: str, published: float) -> None:
    model = networks.MODELS[name](WORKLOADS[name].presets["paper"], 0)
    assert weights_of(model) == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(("name", "published"), [("bert", 7_087_872), ("t5", 7.343e6)])
def test_layers_of_sequences_have_the_published_weights(name: str, published: float) -> None:
    size = WORKLOADS[name].presets["paper"]._replace(words=8, tokens=1)
    one, two = (weights_of(networks.MODELS[name](size._replace(layers=n), 0)) for n in (1, 2))
    assert two - one == pytest.approx(published, rel=0.005)


def test_text_that_is_wrong_is_refused() -> None:
    for text, said in (
        ("y = z 4:1", "no value 'z'"),
        ("y = x 4:1 [8:1", "do not match"),
        ("y = x fold", "a step 'fold'"),
        ("y = x [norm | 4:1]", "expected a convolution"),
        ("\n", "without a line"),
    ):
        net = Net(0)
        with pytest.raises(acs.UsageError, match=said):
            Described(net, {"x": net.image(4, 8, 8)}).lines(text)


def test_programs_for_cuda_have_the_same_launches() -> None:
    model = networks.MODELS["inception"](WORKLOADS["inception"].presets["tiny"], 0)
    layers = model.net.layers
    rest = iter(cuda_networks.as_words(model).tolist())
    names, text = cuda_networks.translated()
    buffers = []
    for _ in range(next(rest)):
        size, filled = next(rest), next(rest)
        buffers.append(np.array([next(rest) if filled else 0 for _ in range(size)], np.uint32))
    for number, values in model.net.constants.items():
        np.testing.assert_array_equal(buffers[number].view(np.float32), values)
    np.testing.assert_allclose(buffers[-2].view(np.float32), model.images[0].ravel(), rtol=1e-6)
    found = []
    for _ in range(next(rest)):
        name, groups, args = names[next(rest)], next(rest), []
        for _ in range(next(rest)):
            args.append((next(rest), next(rest)) if next(rest) else next(rest))
        found.append((name, groups, args, [next(rest) for _ in range(next(rest))]))
    assert [name for name, *_ in found] == ["keep", *(one.kernel for one in layers), "keep"]
    for layer, earlier, (_, groups, args, upstream) in zip(
        layers, wiring(layers), found[1:-1], strict=True
    ):
        assert set(upstream) - {0} == {one + 1 for one in earlier}  # the first brings the image
        assert groups == min(192, -(-layer.items // 64))
        for given, arg in zip(args, layer.args, strict=True):
            if isinstance(arg, Value):
                assert given == (arg.buffer, 0 if arg.first % ALIGNED else arg.first)
            else:
                kind = np.float32 if isinstance(arg, float) else np.int32
                assert np.uint32(given).view(kind) == kind(arg)
    assert (next(rest), next(rest), next(rest, None)) == (len(buffers) - 1, 10, None)
    assert not re.search(r"\bglobal |\(float4\)|^kernel ", text, re.MULTILINE)
