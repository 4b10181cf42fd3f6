"""Constants of the emulator that cite results of ours: do these still say so?

Results move with machines and with the library, so a constant may be off by `MOST`; beyond that its
source says something else by now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acs_cl.emu import machines, spec
from acs_cl.scheduler.sender import FIRST_LOOK, MOST_TASKS, Settings
from acs_cl.scheduler.task import SMALLEST_TILE

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MOST = 1.5
H200, POCL = "nvidia-h200", "pocl"

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


def cuda(takes: Callable[[Any], float]) -> Found:
    """The least of all graphs of that benchmark, of CUDA's side."""
    return lambda results: min(
        1000 * takes(one["cuda"]) for one in results["benchmarks"]["scheduler"]["graphs"]
    )


def cost(*path: str) -> Found:
    """What the validation has measured of the host."""

    def find(results: Any) -> float:
        found = results["costs"]
        for key in path:
            found = found[key]
        return float(found)

    return find


def wait_alone(results: Any) -> float:
    """Without the kernel that was waited for, as a queue runs it."""
    lasts, more = results["costs"]["edges"][0]
    return float(results["costs"]["sync_ns"] - lasts - more)


def resident(results: Any) -> float:
    return float(results["costs"]["scheduler"]["groups"] / results["machine"]["compute_units"])


def in_scheduler(name: str) -> Found:
    """What the validation has measured of it."""
    return lambda results: float(results["costs"]["scheduler"][name])


def of_both(name: str, host: spec.HostSpec, ours: spec.SchedulerSpec) -> dict[str, Any]:
    """What the validation has measured on a device."""
    said = {
        "launch": (host.launch_ns, cost("launch_ns", "serial")),
        "wait": (host.sync_ns, wait_alone),
        "record": (ours.record_ns, cost("launch_ns", "device")),
        "epoch": (ours.epoch_ns, cost("epoch_ns")),
        "wait for an epoch": (ours.wait_ns, cost("epoch_wait_ns")),
        "queue": (ours.queue_ns, in_scheduler("queue_ns")),
        "few": (ours.slower_few, in_scheduler("slower_few")),
        "full": (ours.slower_full, in_scheduler("slower_full")),
    }
    return {
        f"{name}, {what}": (value, f"validation-{name}", find)
        for what, (value, find) in said.items()
    }


CITED: dict[str, tuple[int, str, Found]] = {
    "launch in a stream": (
        machines.CUDA.launch_ns, "nvidia-h200", cuda(lambda one: float(one["stream_us"])),
    ),
    "a node built": (
        machines.CUDA.build_node_ns, "constants/cuda-nvidia-h200",
        cuda(lambda one: float(one["new_graph_us"] - one["replay_us"])),
    ),
    "a node in 64 chains": (
        machines.CUDA.graph_node_ns, "nvidia-h200", graph(64, 1, "cuda", "replay_us"),
    ),
    "a node behind another": (
        machines.CUDA.graph_edge_ns, "nvidia-h200", graph(1, 1, "cuda", "replay_us"),
    ),
    **of_both(H200, machines.ACS_CL_H200, machines.SCHEDULER_H200),
    f"{H200}, event": (machines.ACS_CL_H200.event_ns, f"validation-{H200}", cost("event_ns")),
    f"{H200}, an epoch's groups": (
        machines.SCHEDULER_H200.begin_ns, f"validation-{H200}", in_scheduler("begin_ns"),
    ),
    f"{H200}, a tile": (
        machines.SCHEDULER_H200.tile_ps, f"validation-{H200}", cost("epoch_tile_ps"),
    ),
    f"{H200}, an epoch behind another": (
        machines.SCHEDULER_H200.behind_ns, f"validation-{H200}", cost("epoch_behind_ns"),
    ),
    f"{H200}, gang": (
        machines.SCHEDULER_H200.gang_ns, f"validation-{H200}", in_scheduler("gang_ns"),
    ),
    f"{H200}, fused": (
        machines.SCHEDULER_H200.fused_ns, f"validation-{H200}", in_scheduler("fused_ns"),
    ),
    f"{H200}, groups": (machines.SCHEDULER_H200.groups, f"validation-{H200}", resident),
    f"{H200}, task": (machines.SCHEDULER_H200.task_ns, H200, graph(1024, 1, "device_us")),
    **of_both(POCL, machines.ACS_CL_POCL, machines.SCHEDULER_POCL),
    f"{POCL}, fused": (machines.SCHEDULER_POCL.fused_ns, POCL, graph(1, 1, "device_us")),
    f"{POCL}, task": (machines.SCHEDULER_POCL.task_ns, POCL, graph(64, 1, "device_us")),
}  # fmt: skip


@pytest.mark.parametrize("what", CITED)
def test_a_constant_is_what_its_source_says(what: str) -> None:
    constant, name, find = CITED[what]
    found = find(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))
    assert constant / MOST <= found <= constant * MOST, (
        f"{what}: emu/machines.py has {constant}, {name}.json says {found:.0f}"
    )


def test_constants_of_the_code_are_the_codes() -> None:
    for one in (machines.SCHEDULER_H200, machines.SCHEDULER_POCL):
        assert one.first_look == FIRST_LOOK
        assert one.epoch_tasks == MOST_TASKS
        assert one.slice_ns == Settings().slice_s * 1e9
    assert machines.SCHEDULER_POCL.least_items == SMALLEST_TILE
    text = (ROOT / "acs_cl" / "scheduler" / "maker.py").read_text(encoding="utf-8")
    ours = machines.SCHEDULER_POCL.most_tiles, machines.SCHEDULER_H200.most_tiles
    assert f"tiles = {ours[0]} * groups if self.loops else {ours[1]} * groups" in text
    assert f"groups = {machines.SCHEDULER_POCL.launched} * units" in text


def test_every_result_that_is_cited_is_looked_at() -> None:
    """A file named in emu/machines.py has to be there, and some constant is held against it."""
    text = (ROOT / "emu" / "machines.py").read_text(encoding="utf-8")
    named = set(re.findall(r"benchmarks/results/([\w/-]+)\.json", text))
    assert named == {name for _, name, _ in CITED.values()}
