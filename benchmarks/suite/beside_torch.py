"""Time the static networks in PyTorch and here, in one run.

Input: the name of a network and a preset. Output: the time of an inference for each contestant:
those of `peers.torch_networks`, and those of `acs-cl bench` on an OpenCL device. All compute the
same function with the same weights, in single precision, interleaved.

Invariant: a contestant with wrong results is reported as failed, and not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from acs_cl import UsageError, devices
from acs_cl.benchmarks.peers.torch_layers import Network
from acs_cl.benchmarks.peers.torch_networks import EAGER, WARM, inferences, torch_for, wrong
from acs_cl.benchmarks.suite.contestants import (
    SERIAL,
    Contestant,
    Plan,
    Sample,
    contestants,
    timer,
)
from acs_cl.benchmarks.suite.machine import machine, noise
from acs_cl.benchmarks.suite.statistics import quantile, spread
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.workloads.static import MODELS, WORKLOADS
from acs_cl.benchmarks.workloads.workload import PRESETS, Results, Workload

Timers = dict[str, Callable[[], Sample]]


def measure(
    name: str = "randwire",
    preset: str = "paper",
    device: str = "cuda",
    *,
    opencl: Any = None,
    backends: Sequence[str] = (SERIAL, "auto"),
    runs: int = 15,
    seed: int = 0,
) -> dict[str, Any]:
    """Time the inference of one image by PyTorch on `device`, and by acs_cl on `opencl`, a
    `pyopencl.Device`, unless that is None."""
    workload = next((one for one in WORKLOADS if one.name == name), None)
    if workload is None or preset not in workload.presets:
        raise UsageError(f"{name} at {preset}: expected one of {list(MODELS)} at one of {PRESETS}")
    torch = torch_for(device)
    model = MODELS[name](workload.presets[preset], seed)
    expected = workload.reference(workload.presets[preset], seed)
    failed: dict[str, str] = {}
    unrest = [noise()]
    plan = Plan(opencl, [workload], preset, backends, seed=seed)
    with torch.inference_mode(), _ours(plan, workload, expected, failed) as timers:
        network = Network(torch, model, device)
        theirs, build_ms = _theirs(torch, network, expected, failed)
        timers |= theirs
        samples = interleave(timers, runs) if timers else {}
        unrest.append(noise())
    return {
        "network": name,
        "preset": preset,
        "seed": seed,
        "runs": runs,
        "layers": len(model.net.layers),
        "pytorch": _versions(torch, device),
        "machine": machine(opencl) if opencl is not None else {},
        "noise": unrest,
        "build_ms": build_ms,
        "rows": compared(samples),
        "failed": failed,
    }


def _theirs(
    torch: Any, network: Network, expected: Results, failed: dict[str, str]
) -> tuple[Timers, dict[str, float]]:
    """Return timers of PyTorch's methods, checked, and the times to make their graphs."""
    timers: Timers = {}
    build_ms: dict[str, float] = {}
    for way, make in inferences(torch, network).items():
        try:
            inference = make()
            sample = timer(Contestant(inference, inference))
            for _ in range(WARM):
                sample()
            complaint = wrong(inference.results(), expected)
        except RuntimeError as error:  # PyTorch's, usually: out of memory, or no capture
            complaint = str(error)
        if complaint:
            failed[way] = complaint
            continue
        timers[way] = sample
        if inference.build_ms is not None:
            build_ms[way] = inference.build_ms
    return timers, build_ms


@contextmanager
def _ours(
    plan: Plan, workload: Workload, expected: Results, failed: dict[str, str]
) -> Iterator[Timers]:
    """Return checked timers of the contestants of `acs-cl bench`; none without an OpenCL device."""
    if plan.device is None:
        yield {}
        return
    devices.repair(plan.device)
    with contestants(plan, workload, expected, failed, lambda text, share: None) as ready:
        yield {f"acs_cl, {name}": timer(one) for name, one in ready.items()}


def compared(samples: Mapping[str, Sequence[Sample]]) -> dict[str, Any]:
    """Return the times of each, and its speed-ups over eager PyTorch in the same turns."""
    rows = {}
    for name, taken in samples.items():
        rows[name] = {
            "ms": spread([one.total * 1e3 for one in taken], 4),
            "launching_ms": round(quantile([one.launching * 1e3 for one in taken], 0.5), 4),
        }
        if EAGER in samples:
            pairs = zip(samples[EAGER], taken, strict=True)
            rows[name]["over_eager"] = spread([eager.total / one.total for eager, one in pairs])
    return rows


def _versions(torch: Any, device: str) -> dict[str, Any]:
    found = {"version": str(torch.__version__), "cuda": torch.version.cuda, "device": device}
    if device.startswith("cuda"):
        found["device"] = torch.cuda.get_device_name(device)
        found["cudnn"] = torch.backends.cudnn.version()
    return found
