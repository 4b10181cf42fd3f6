"""Rigid bodies: the paper's simulations for learning to walk and to grasp, in batches.

Input: sizes and seeds. Output: workloads. See `rigid_program` for what they launch.
"""

from __future__ import annotations

from acs_cl.benchmarks.workloads.rigid_expert import RigidByHand
from acs_cl.benchmarks.workloads.rigid_layout import lay_out
from acs_cl.benchmarks.workloads.rigid_models import MODELS
from acs_cl.benchmarks.workloads.rigid_program import Rigid, RigidByHost, RigidSize
from acs_cl.benchmarks.workloads.rigid_reference import reference
from acs_cl.benchmarks.workloads.rigid_start import start
from acs_cl.benchmarks.workloads.workload import Results, Workload


def rigid_reference(size: RigidSize, seed: int) -> Results:
    """Compute it in NumPy, in double precision."""
    layout = lay_out(MODELS[size.model])
    begin = start(layout, size.environments, seed)
    return reference(layout, begin, size.frames, size.substeps).results


def _workload(name: str, about: str) -> Workload:
    return Workload(
        name=name,
        family="rigid",
        about=about,
        presets={
            "tiny": RigidSize(name, 64, 64, 2, 2),
            "small": RigidSize(name, 512, 512, 8, 4),
            "paper": RigidSize(name, 512, 64, 4, 4),
        },
        make=Rigid,
        reference=rigid_reference,
        expert=RigidByHand,
        host_decided=RigidByHost,
        atol=3e-4,
    )


WORKLOADS = [
    _workload("ant", "four legs: nine bodies, eight hinges"),
    _workload("grasp", "a hand of four fingers above an object: fourteen bodies"),
    _workload("humanoid", "eleven bodies, seventeen degrees of freedom"),
    _workload("cheetah", "a running body in a plane: seven bodies, six hinges"),
    _workload("walker2d", "a walking body in a plane: seven bodies, six hinges"),
]
