"""Static networks that are irregular: NASNet-A, AmoebaNet-A, SqueezeNet and RandWire.

Input: sizes and seeds. Output: workloads; a step is the inference of one image. The graph is the
same for each image, but regular in nothing: cells (`cells`), random wiring (`randwire`), and
modules of two branches (`networks`).

Invariant: the seed decides the weights, the image, and RandWire's wiring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acs_cl.benchmarks.workloads import networks
from acs_cl.benchmarks.workloads.cells import AMOEBANET, NASNET, CellsSize, cells
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.networks import ImagesSize, workload
from acs_cl.benchmarks.workloads.randwire import RandWireSize, randwire
from acs_cl.benchmarks.workloads.workload import Workload

MODELS: dict[str, Callable[[Any, int], Model]] = {
    "nasnet": lambda size, seed: cells(NASNET, size, seed),
    "amoebanet": lambda size, seed: cells(AMOEBANET, size, seed),
    "squeezenet": networks.MODELS["squeezenet"],
    "randwire": randwire,
}
"""By name of the workload: (size, seed) -> model."""


def _workload(name: str, about: str, **presets: Any) -> Workload:
    return workload(name, "static", about, MODELS[name], **presets)


WORKLOADS = [
    _workload(
        "nasnet",
        "NASNet-A: cells of separable convolutions and pooling",
        tiny=CellsSize(1, 4, 16),
        small=CellsSize(2, 16, 32),
        paper=CellsSize(6, 32, 32),
    ),
    _workload(
        "amoebanet",
        "AmoebaNet-A: the same with cells that evolution has found",
        tiny=CellsSize(1, 4, 16),
        small=CellsSize(2, 16, 32),
        paper=CellsSize(6, 36, 32),
    ),
    _workload(
        "squeezenet",
        "SqueezeNet: fire modules",
        tiny=ImagesSize(4, 32, 11),
        small=ImagesSize(1, 32, 11),
        paper=ImagesSize(1, 32, 11),
    ),
    _workload(
        "randwire",
        "RandWire: three random graphs of separable convolutions",
        tiny=RandWireSize(8, 8, 16),
        small=RandWireSize(32, 32, 32),
        paper=RandWireSize(32, 80, 32),
    ),
]
