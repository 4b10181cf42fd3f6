"""Dynamic networks: three whose layers depend on the image. One image at a time.

Input: sizes and seeds. Output: workloads. A step is two images, one after the other. Shapes are
those of the networks that they are named after: what is measured is how launches follow from
images, not what is recognised.
"""

from __future__ import annotations

from typing import Any

from acs_cl.benchmarks.workloads import inference
from acs_cl.benchmarks.workloads.condconv import CondConvSize, condconv
from acs_cl.benchmarks.workloads.inference import HostDecided, Inference
from acs_cl.benchmarks.workloads.instanas import InstaNasSize, instanas
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.routing import RoutingSize, routing
from acs_cl.benchmarks.workloads.workload import Make, Results, Workload


def _workload(name: str, about: str, build: Any, presets: dict[str, Any]) -> Workload:
    def make(run: Any) -> Make:
        return lambda platform, size, seed: run(platform, build(size, seed))

    def reference(size: Any, seed: int) -> Results:
        return inference.reference(build(size, seed))

    return Workload(
        name=name,
        family="dynamic",
        about=about,
        presets=presets,
        make=make(Inference),
        reference=reference,
        expert=make(ByHand),
        host_decided=make(HostDecided),
        rtol=1e-3,
        atol=1e-4,
    )


WORKLOADS = [
    _workload(
        "instanas",
        "17 stages of five branches, of which a controller picks some for each image",
        instanas,
        {
            "tiny": InstaNasSize(2, 16, 0.25, 6),
            "small": InstaNasSize(2, 32, 0.75, 17),
            "paper": InstaNasSize(2, 32, 1.0, 17),
        },
    ),
    _workload(
        "routing",
        "a lattice of layers and scales whose nodes decide where they send to",
        routing,
        {
            "tiny": RoutingSize(2, 16, 4, 5, 3),
            "small": RoutingSize(2, 32, 24, 16, 4),
            "paper": RoutingSize(2, 32, 32, 16, 4),
        },
    ),
    _workload(
        "condconv",
        "weights mixed for each image from those of the experts that count",
        condconv,
        {
            "tiny": CondConvSize(2, 16, 0.25, 1),
            "small": CondConvSize(2, 32, 0.375, 8),
            "paper": CondConvSize(2, 32, 0.5, 8),
        },
    ),
]
