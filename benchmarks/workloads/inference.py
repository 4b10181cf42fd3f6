"""Run the layers of a network for a few images in a row, on a platform or in NumPy.

Input: a complete `Net`, images, and the values to keep of each image. Output: runs of a workload.
`Inference` launches every layer, and the device decides (`when=`) which of them run. Without gates
it works on any platform. `HostDecided` reads the flags back and launches only the open layers.
`reference` computes the same layers in NumPy, `layers_by_hand` with queues.

Invariant: a step starts from images alone. A layer that was not run leaves its output as it was. So
a value is read only if a flag says that it is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.layer_twins import TWINS
from acs_cl.benchmarks.workloads.layers import GROUP, MOST_GROUPS, Net, place
from acs_cl.benchmarks.workloads.values import Gate, Layer, Value
from acs_cl.benchmarks.workloads.workload import Results, ready
from acs_cl.opencl_c.kernel_files import kernel_source


class Model(NamedTuple):
    """A network, where its image goes, and what is kept of each image by name."""

    net: Net
    image: Value
    kept: Mapping[str, Value]
    images: np.ndarray[Any, Any]
    """Those of one step, images x channels x rows x columns."""


class Call(NamedTuple):
    """A layer on a platform."""

    ready: Callable[..., Any]
    when: Any
    """The flag on the device; None without a gate, or on a platform without `when=`."""
    layer: Layer
    kernel: Any


class OnPlatform:
    """Programs and memory of a model."""

    decides = False
    """Whether kernels take decisions from device memory."""

    def __init__(self, platform: Any, model: Model) -> None:
        self.model = model
        self.program = platform.build(kernel_source("networks.cl"))
        net = model.net
        self.buffers = [
            platform.array(net.constants[number])
            if number in net.constants
            else platform.zeros(size, dtype)
            for number, (size, dtype) in enumerate(net.sizes)
        ]
        count = len(model.images)
        self.images = [platform.array(image.ravel(), np.float32) for image in model.images]
        self.found = {
            name: [platform.zeros(value.length, net.sizes[value.buffer][1]) for _ in range(count)]
            for name, value in model.kept.items()
        }
        self._views: dict[Value, Any] = {}
        self.body = [
            self._call(layer) for layer in net.layers if self.decides or not layer.on_device
        ]
        self.starts = [self._keep(image, self._array(model.image)) for image in self.images]
        self.ends = [
            [
                self._keep(self._array(model.kept[name]), rows[k])
                for name, rows in self.found.items()
            ]
            for k in range(count)
        ]

    @property
    def kernels(self) -> list[Any]:
        """Return all kernels that it launches."""
        return list(
            {call.layer.kernel: call.kernel for call in (*self.starts, *self.body)}.values()
        )

    def reset(self) -> None:
        """Do nothing: a step reads nothing of the step before."""

    def results(self) -> Results:
        """Return what was kept: a row for each image."""
        return {
            name: np.stack([row.get() for row in rows]).reshape(
                len(rows), *self.model.kept[name].shape
            )
            for name, rows in self.found.items()
        }

    def _call(self, layer: Layer) -> Call:
        groups = min(MOST_GROUPS * self.model.net.images, -(-layer.items // GROUP))
        args = tuple(self._given(arg) if isinstance(arg, Value) else arg for arg in layer.args)
        when = self._array(layer.gate.flag) if layer.gate and self.decides else None
        kernel = getattr(self.program, layer.kernel)
        return Call(ready(kernel, (groups * GROUP,), (GROUP,), *args), when, layer, kernel)

    def _keep(self, source: Any, target: Any) -> Call:
        length = len(source)
        items = (min(MOST_GROUPS, -(-length // GROUP)) * GROUP,)
        layer = Layer("keep", length, (), (), None, False)
        kernel = self.program.keep
        launch = ready(kernel, items, (GROUP,), source, target, length, 0, 0)
        return Call(launch, None, layer, kernel)

    def _given(self, value: Value) -> Any:
        """Return a value as a kernel gets it. A kernel that is told the place of a part gets all of
        the buffer."""
        return self.buffers[value.buffer] if place(value) else self._array(value)

    def _array(self, value: Value) -> Any:
        """Return the memory of a value: a flat array, or a view of one. Each view is made once."""
        found = self._views.get(value)
        if found is None:
            buffer = self.buffers[value.buffer]
            if value.length != self.model.net.sizes[value.buffer][0]:
                buffer = buffer[value.first : value.first + value.length]
            found = self._views[value] = buffer
        return found


class Inference(OnPlatform):
    """All layers; those with a gate look at their flag on the device."""

    decides = True

    def step(self) -> None:
        """Run one image after the other."""
        for start, ends in zip(self.starts, self.ends, strict=True):
            for launch, when, _, _ in (start, *self.body, *ends):
                if when is None:
                    launch()
                else:
                    launch(when=when)


class HostDecided(OnPlatform):
    """Flags are read back where a layer needs them first; only what is open is launched."""

    def __init__(self, platform: Any, model: Model) -> None:
        super().__init__(platform, model)
        self.launched: list[list[int]] = []
        """For each image of the last step, the layers that were launched."""

    def step(self) -> None:
        """Run one image after the other."""
        self.launched.clear()
        for start, ends in zip(self.starts, self.ends, strict=True):
            start.ready()
            known: dict[Value, Any] = {}
            opened: list[int] = []
            self.launched.append(opened)
            for number, (launch, _, layer, _) in enumerate(self.body):
                if layer.gate is None or self._is_open(layer.gate, known):
                    launch()
                    opened.append(number)
            for end in ends:
                end.ready()

    def _is_open(self, gate: Gate, known: dict[Value, Any]) -> bool:
        for group in gate.reads:
            if group not in known:
                known[group] = self._array(group).get().ravel()
        return is_open(gate, known)


def is_open(gate: Gate, known: Mapping[Value, Any]) -> bool:
    """Tell whether flags on the host open a gate."""
    return any(
        known[group][flag.first - group.first]
        for group in gate.reads
        for flag in gate.flags
        if group.meets(flag)
    )


def reference(model: Model) -> Results:
    """Compute the same layers in NumPy, in double precision."""
    net = model.net
    memory = [
        net.constants[number].astype(np.float64)
        if number in net.constants
        else np.zeros(size, np.float64 if dtype.kind == "f" else dtype)
        for number, (size, dtype) in enumerate(net.sizes)
    ]

    def array(value: Value) -> Any:
        return memory[value.buffer][value.first : value.first + value.length]

    found: dict[str, list[Any]] = {name: [] for name in model.kept}
    for image in model.images:
        array(model.image)[:] = image.ravel()
        for layer in net.layers:
            gate = layer.gate
            if gate is None or any(array(flag).any() for flag in gate.flags):
                args = [array(arg) if isinstance(arg, Value) else arg for arg in layer.args]
                TWINS[layer.kernel](*args)
        for name, value in model.kept.items():
            found[name].append(array(value).reshape(value.shape).copy())
    return {name: np.stack(rows) for name, rows in found.items()}
