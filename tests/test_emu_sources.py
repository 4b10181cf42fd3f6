"""Constants of the emulator that cite results of ours: do these still say so?

Results move with machines and with the library, so a constant may be off by `MOST`; beyond that its
source says something else by now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from acs_cl.backends.device import FIRST_LOOK
from acs_cl.backends.sender import MOST_TASKS, Settings
from acs_cl.emu import spec
from acs_cl.tasks import SMALLEST_TILE

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MOST = 1.5
MOST_OF = {"scheduler, H200, an epoch's groups": 2.0}
"""A difference of differences over a few epochs varies more from run to run."""
KEYS = "device_in_epochs_us", "device_us"
RUNS = 10
"""Of each graph in the benchmark of the scheduler, whose epochs are counted."""
H200, POCL = "nvidia-h200-native", "pocl-native"
"""Results of launches that the core makes."""

Found = Callable[[Any], float]


def graph(chains: int, groups: int, *path: str) -> Found:
    """Of the benchmark of the scheduler, in nanoseconds."""

    def find(results: Any) -> float:
        graphs = results["benchmarks"]["scheduler"]["graphs"]
        found = next(one for one in graphs if (one["chains"], one["groups"]) == (chains, groups))
        for key in path:
            found = found[key]
        return 1000 * (found["median"] if isinstance(found, dict) else found)

    return find


def node_built(results: Any) -> float:
    graphs = [one["cuda"] for one in results["benchmarks"]["scheduler"]["graphs"]]
    return 1000 * median(one["new_graph_us"] - one["replay_us"] for one in graphs)


def launch(row: str, whose: str = "ours_us") -> Found:
    """Of the benchmark of overhead, in windows of 64."""

    def find(results: Any) -> float:
        windows = results["benchmarks"]["overhead"]["rows"][row]["windows"]
        return 1000 * float(windows["64"]["free"][whose]["median"])

    return find


def read_less_launch(name: str) -> Found:
    def find(results: Any) -> float:
        bare = results["benchmarks"]["latency"]["rows"][name]["bare"]["median"]
        return 1000 * float(bare) - launch(f"{name}-eager", "bare_us")(results)

    return find


def resident(results: Any) -> float:
    scheduler = results["benchmarks"]["scheduler"]["graphs"][0]["schedulers"][0]
    return float(scheduler["resident_groups"] / results["machine"]["compute_units"])


def epoch(results: Any) -> float:
    """With the wait for one: where epochs cost little, a run may not tell them apart."""
    return float(results["costs"]["epoch_ns"] + results["costs"]["epoch_wait_ns"])


def in_scheduler(name: str) -> Found:
    """What the validation has measured of it."""
    return lambda results: float(results["costs"]["scheduler"][name])


def group_of_an_epoch(results: Any) -> float:
    """What tasks take more in several epochs than in one, an epoch and a group."""

    def more(chains: int, length: int) -> float:
        tasks, epochs = chains * length, graph(chains, 1, "epochs")(results) / 1000 / RUNS
        inside, alone = (graph(chains, 1, key)(results) for key in KEYS)
        return (inside - alone) * tasks / epochs

    groups = resident(results) * results["machine"]["compute_units"]
    return (more(1024, 16) - more(1, 1024)) / (groups - 1)


CITED: dict[str, tuple[int, str, Found]] = {
    "launch in a stream": (spec.CUDA.launch_ns, "nvidia-h200", graph(1, 1, "cuda", "stream_us")),
    "a node built": (spec.CUDA.build_node_ns, "nvidia-h200", node_built),
    "a node in 64 chains": (
        spec.CUDA.graph_node_ns, "nvidia-h200", graph(64, 1, "cuda", "replay_us"),
    ),
    "a node behind another": (
        spec.CUDA.graph_edge_ns, "nvidia-h200", graph(1, 1, "cuda", "replay_us"),
    ),
    "acs_cl, H200, launch": (spec.ACS_CL_H200.launch_ns, H200, launch("serial-eager")),
    "acs_cl, H200, event": (
        spec.ACS_CL_H200.event_ns, H200,
        lambda found: launch("lanes-eager")(found) - launch("serial-eager")(found),
    ),
    "acs_cl, H200, wait": (spec.ACS_CL_H200.sync_ns, H200, read_less_launch("serial")),
    "acs_cl, PoCL, launch": (spec.ACS_CL_POCL.launch_ns, POCL, launch("out_of_order-eager")),
    "acs_cl, PoCL, wait": (spec.ACS_CL_POCL.sync_ns, POCL, read_less_launch("out_of_order")),
    "scheduler, H200, record": (
        spec.SCHEDULER_H200.record_ns, "nvidia-h200", graph(64, 1, "new_graph_us"),
    ),
    "scheduler, H200, epoch": (spec.SCHEDULER_H200.epoch_ns, "validation-nvidia-h200", epoch),
    "scheduler, H200, an epoch's groups": (
        spec.SCHEDULER_H200.begin_ns, "nvidia-h200", group_of_an_epoch,
    ),
    "scheduler, H200, queue": (
        spec.SCHEDULER_H200.queue_ns, "validation-nvidia-h200", in_scheduler("queue_ns"),
    ),
    "scheduler, H200, few": (
        spec.SCHEDULER_H200.slower_few, "validation-nvidia-h200", in_scheduler("slower_few"),
    ),
    "scheduler, H200, full": (
        spec.SCHEDULER_H200.slower_full, "validation-nvidia-h200", in_scheduler("slower_full"),
    ),
    "scheduler, PoCL, few": (
        spec.SCHEDULER_POCL.slower_few, "validation-pocl", in_scheduler("slower_few"),
    ),
    "scheduler, PoCL, full": (
        spec.SCHEDULER_POCL.slower_full, "validation-pocl", in_scheduler("slower_full"),
    ),
    "scheduler, H200, gang": (
        spec.SCHEDULER_H200.gang_ns, "nvidia-h200", graph(1, 16, "device_us"),
    ),
    "scheduler, H200, fused": (
        spec.SCHEDULER_H200.fused_ns, "nvidia-h200", graph(1, 1, "device_us"),
    ),
    "scheduler, H200, task": (
        spec.SCHEDULER_H200.task_ns, "nvidia-h200", graph(1024, 1, "device_us"),
    ),
    "scheduler, H200, groups": (spec.SCHEDULER_H200.groups, "nvidia-h200", resident),
    "scheduler, PoCL, record": (
        spec.SCHEDULER_POCL.record_ns, "pocl", graph(64, 1, "new_graph_us"),
    ),
    "scheduler, PoCL, epoch": (spec.SCHEDULER_POCL.epoch_ns, "validation-pocl", epoch),
    "scheduler, PoCL, fused": (spec.SCHEDULER_POCL.fused_ns, "pocl", graph(1, 1, "device_us")),
    "scheduler, PoCL, task": (spec.SCHEDULER_POCL.task_ns, "pocl", graph(64, 1, "device_us")),
}  # fmt: skip


@pytest.mark.parametrize("what", CITED)
def test_a_constant_is_what_its_source_says(what: str) -> None:
    constant, name, find = CITED[what]
    found = find(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))
    most = MOST_OF.get(what, MOST)
    assert constant / most <= found <= constant * most, (
        f"{what}: emu/spec.py has {constant}, {name}.json says {found:.0f}"
    )


def test_constants_of_the_code_are_the_codes() -> None:
    for one in (spec.SCHEDULER_H200, spec.SCHEDULER_POCL):
        assert one.first_look == FIRST_LOOK
        assert one.epoch_tasks == MOST_TASKS
        assert one.slice_ns == Settings().slice_s * 1e9
    assert spec.SCHEDULER_POCL.least_items == SMALLEST_TILE
    text = (ROOT / "acs_cl" / "schedulers.py").read_text(encoding="utf-8")
    ours = spec.SCHEDULER_POCL.most_tiles, spec.SCHEDULER_H200.most_tiles
    assert f"tiles = {ours[0]} * groups if self._loops else {ours[1]} * groups" in text
    assert f"groups = {spec.SCHEDULER_POCL.launched} * units" in text


def test_every_result_that_is_cited_is_looked_at() -> None:
    """A file named in emu/spec.py has to be there, and some constant is held against it."""
    text = (ROOT / "emu" / "spec.py").read_text(encoding="utf-8")
    named = set(re.findall(r"benchmarks/results/([\w-]+)\.json", text))
    assert named == {name for _, name, _ in CITED.values()}
