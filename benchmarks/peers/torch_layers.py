"""Layers of a network as calls of PyTorch's functions.

Input: a `Model`. Output: its `steps`, each a function of the results of earlier ones, and a
`Network`, which calls them on one stream or on several. A concatenation, which is a layout of
memory in the model, is a step here, as in any program for PyTorch.

Invariant: `steps` needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import LINEAR, MAXIMUM, RELU
from acs_cl.benchmarks.workloads.values import Layer, Value

IMAGE = -1
"""The input of steps that read the image."""
CONCATENATE = "concatenate"
LANES = 16


class Step(NamedTuple):
    """`layer` is None for a concatenation. `inputs` are numbers of steps, or `IMAGE`."""

    kind: str
    inputs: tuple[int, ...]
    value: Value
    layer: Layer | None


def steps(model: Model) -> list[Step]:
    """Return all steps, in program order."""
    found: list[Step] = []
    numbers: dict[Value, int] = {model.image: IMAGE}

    def number_of(value: Value) -> int:
        if value not in numbers:
            parts = sorted((one for one in numbers if value.meets(one)), key=lambda v: v.first)
            parts = [one for one in parts if found[numbers[one]].kind != CONCATENATE]
            if sum(one.length for one in parts) != value.length:
                raise UsageError(f"{value} is read before all of it is written")
            found.append(Step(CONCATENATE, tuple(numbers[one] for one in parts), value, None))
            numbers[value] = len(found) - 1
        return numbers[value]

    for layer in model.net.layers:
        if layer.gate is not None or layer.on_device:
            raise UsageError("a network with gates, expected one whose graph is always the same")
        inputs = [value for value in layer.reads if value.buffer not in model.net.constants]
        count = layer.args[9] if layer.kernel == "combine" else len(inputs)
        given = tuple(number_of(value) for value in inputs[:count])
        (out,) = layer.writes
        found.append(Step(layer.kernel, given, out, layer))
        numbers[out] = len(found) - 1
    return found


class Network:
    """A model in PyTorch on one device."""

    def __init__(self, torch: Any, model: Model, device: str) -> None:
        self.torch, self.cuda = torch, device.startswith("cuda")
        self.steps = steps(model)
        self.lanes = lanes(self.steps)
        crossing = (
            one
            for number, step in enumerate(self.steps)
            for one in step.inputs
            if one >= 0 and self.lanes[one] != self.lanes[number]
        )
        self.crossing = set(crossing)
        self.functions = [function(torch, model, step, device) for step in self.steps]
        self.image = torch.as_tensor(model.images.astype(np.float32), device=device)
        self.results = {name: self._last(model, name) for name in model.kept}
        self.alive: list[Any] = []
        """What several streams have used is given back all at once."""

    def _last(self, model: Model, name: str) -> int:
        value = model.kept[name]
        return next(number for number, step in enumerate(self.steps) if step.value == value)

    def __call__(self) -> dict[str, Any]:
        """Run one inference on the current stream."""
        values: list[Any] = []
        for step, compute in zip(self.steps, self.functions, strict=True):
            given = [values[one] if one >= 0 else self.image for one in step.inputs]
            values.append(compute(*given))
        return {name: values[number] for name, number in self.results.items()}

    def on_streams(self, streams: Sequence[Any]) -> dict[str, Any]:
        """Run one inference with branches on streams of their own."""
        current = self.torch.cuda.current_stream()
        begun = current.record_event()
        entered: set[int] = set()
        ended: dict[int, Any] = {}
        values: list[Any] = []
        for number, (step, compute) in enumerate(zip(self.steps, self.functions, strict=True)):
            lane = self.lanes[number]
            stream = streams[lane]
            if lane not in entered:
                stream.wait_event(begun)
                entered.add(lane)
            for one in step.inputs:
                if one >= 0 and self.lanes[one] != lane:
                    stream.wait_event(ended[one])
            with self.torch.cuda.stream(stream):
                given = [values[one] if one >= 0 else self.image for one in step.inputs]
                values.append(compute(*given))
                if number in self.crossing:
                    ended[number] = stream.record_event()
        for lane in entered:
            current.wait_stream(streams[lane])
        self.alive = values
        return {name: values[number] for name, number in self.results.items()}


def lanes(found: Sequence[Step]) -> list[int]:
    """Return a stream for each step: that of an input if no other step took it, else another
    one."""
    chosen: list[int] = []
    free: dict[int, int] = {}  # {step: its lane} where nobody went on
    fresh = 0
    for number, step in enumerate(found):
        lane = next((free.pop(one) for one in reversed(step.inputs) if one in free), None)
        if lane is None:
            lane, fresh = fresh % LANES, fresh + 1
        chosen.append(lane)
        free[number] = lane
    return chosen


# ---- layer by layer ------------------------------------------------------------------------------


def function(torch: Any, model: Model, step: Step, device: str) -> Callable[..., Any]:
    """Return the function of a step. Images are 1 x channels x rows x columns."""
    if step.layer is None:
        return lambda *parts: torch.cat(parts, dim=1)
    if step.kind not in _MAKERS:
        raise UsageError(f"a layer {step.kind}, expected one of {sorted(_MAKERS)}")

    def constant(value: Value) -> Any:
        values = model.net.constants[value.buffer].reshape(value.shape)
        return torch.as_tensor(values, device=device)

    functions = torch.nn.functional
    made: Callable[..., Any] = _MAKERS[step.kind](functions, constant, step.layer)
    return made


def _convolution(functions: Any, constant: Callable[[Value], Any], layer: Layer) -> Any:
    """Return the function of any convolution. `before` and `after` are a ReLU or nothing."""
    x, weights, bias = layer.args[0], constant(layer.args[1]), constant(layer.args[2])
    at = {"convolve": 13, "depthwise": 12}.get(layer.kernel.removesuffix("_four"), 7)
    before, after = bool(layer.args[at]), layer.args[at + 1]
    if after not in (LINEAR, RELU):
        raise UsageError(f"a convolution followed by {after}, expected ReLU or nothing")
    channels, size, stride, pad, groups = x.shape[0], 1, 1, 0, 1
    if layer.kernel == "depthwise":
        size, stride, pad, groups = *layer.args[9:12], channels
        weights = weights.reshape(channels, 1, size, size)
    else:
        if layer.kernel in ("convolve", "convolve_four"):
            size, stride, pad = layer.args[10:13]
        weights = weights.reshape(-1, channels, size, size, 4).permute(0, 4, 1, 2, 3)
        weights = weights.reshape(-1, channels, size, size).contiguous()
    further, pad = max(0, -pad), max(0, pad)

    def convolve(image: Any) -> Any:
        if before:
            image = functions.relu(image)
        if further:
            image = image[:, :, further:, further:]
        out = functions.conv2d(image, weights, bias, stride, pad, 1, groups)
        return functions.relu(out) if after == RELU else out

    return convolve


def _pool(functions: Any, constant: Callable[[Value], Any], layer: Layer) -> Any:
    size, stride, pad, how = layer.args[7:11]
    if how == MAXIMUM:
        return lambda image: functions.max_pool2d(image, size, stride, pad)
    return lambda image: functions.avg_pool2d(
        image, size, stride, pad, count_include_pad=False
    )  # fmt: skip


def _sum(functions: Any, constant: Callable[[Value], Any], layer: Layer) -> Any:
    count, after = layer.args[9], layer.args[11]
    factors = layer.args[5 : 5 + count]

    def add(first: Any, *others: Any) -> Any:
        found = first if factors[0] == 1 else first * factors[0]
        for other, factor in zip(others, factors[1:], strict=True):
            found = found.add(other, alpha=factor)
        return functions.relu(found) if after == RELU else found

    return add


def _means(functions: Any, constant: Callable[[Value], Any], layer: Layer) -> Any:
    runs, length = layer.args[2:4]
    return lambda x: x.reshape(runs, length).mean(1)


def _dense(functions: Any, constant: Callable[[Value], Any], layer: Layer) -> Any:
    weights, bias = constant(layer.args[1]).t().contiguous(), constant(layer.args[2])
    return lambda x: functions.linear(x.reshape(1, -1), weights, bias)


_MAKERS: dict[str, Callable[[Any, Callable[[Value], Any], Layer], Any]] = {
    "convolve": _convolution,
    "convolve_four": _convolution,
    "pointwise": _convolution,
    "pointwise_four": _convolution,
    "depthwise": _convolution,
    "pool": _pool,
    "combine": _sum,
    "means": _means,
    "dense": _dense,
}
