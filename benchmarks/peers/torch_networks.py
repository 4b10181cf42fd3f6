"""The static networks in PyTorch, eager and as CUDA graphs, beside acs_cl in the same run.

In: the name of a network and a preset. Out: `measure`, a dictionary with the time of an inference
for each contestant: `eager`, which launches layer by layer; `graph`, the same captured as a CUDA
graph; `graph, streams`, captured on several streams, so that the graph has branches; and those of
`acs-cl bench` on an OpenCL device. All compute the same function with the same weights, in single
precision, and take turns.

    python -m acs_cl.benchmarks.peers.torch_networks --network randwire --preset paper

Invariant: who computes something else than the reference is reported as failed, and not timed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import tabulate

from acs_cl import UsageError, devices
from acs_cl.benchmarks import suite
from acs_cl.benchmarks.harness import interleave, quantile, spread
from acs_cl.benchmarks.machine import machine, noise
from acs_cl.benchmarks.peers.torch_layers import Network
from acs_cl.benchmarks.suite import Sample
from acs_cl.benchmarks.workloads.static import MODELS, WORKLOADS
from acs_cl.benchmarks.workloads.workload import PRESETS, Results, Workload

EAGER, GRAPH, STREAMS = "eager", "graph", "graph, streams"
WARM = 5
"""Inferences before any is timed or captured: libraries choose algorithms meanwhile."""
TOLERANCE = 1e-3
"""Of the largest result: convolutions by Winograd's way are less exact than sums."""


def torch_for(device: str) -> Any:
    """PyTorch, set to single precision throughout, if it can use `device`."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise UsageError(f"PyTorch cannot be imported here: {error}") from error
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"PyTorch {torch.__version__} sees no CUDA device here")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch


# ---- contestants ---------------------------------------------------------------------------------


class Contestant:
    """Something that computes one inference: `launch` returns before it is through."""

    def __init__(self, torch: Any, cuda: bool, launch: Callable[[], dict[str, Any]]) -> None:
        self.launch = launch
        self.wait: Callable[[], None] = torch.cuda.synchronize if cuda else lambda: None
        self.build_ms: float | None = None

    def results(self) -> Results:
        """Of one inference, on the host."""
        found = self.launch()
        self.wait()
        return {name: tensor.cpu().numpy() for name, tensor in found.items()}

    def sample(self) -> Sample:
        """Time one inference."""
        start = perf_counter()
        self.launch()
        launched = perf_counter()
        self.wait()
        return Sample(launched - start, perf_counter() - start)


def contestants(torch: Any, network: Network) -> dict[str, Callable[[], Contestant]]:
    """PyTorch's ways to run it."""
    cuda = network.cuda

    def eager() -> Contestant:
        return Contestant(torch, cuda, network)

    def graph() -> Contestant:
        return captured(torch, network)

    def streams() -> Contestant:
        pool = [torch.cuda.Stream() for _ in range(max(network.lanes) + 1)]
        return captured(torch, lambda: network.on_streams(pool))

    return {EAGER: eager, GRAPH: graph, STREAMS: streams} if cuda else {EAGER: eager}


def captured(torch: Any, compute: Callable[[], dict[str, Any]]) -> Contestant:
    """As a CUDA graph. The time to make it is kept apart."""
    cuda = torch.cuda
    aside = cuda.Stream()
    aside.wait_stream(cuda.current_stream())
    with cuda.stream(aside):
        for _ in range(WARM):
            compute()
            cuda.synchronize()
    cuda.current_stream().wait_stream(aside)
    cuda.synchronize()
    start = perf_counter()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        found = compute()
    cuda.synchronize()
    took = perf_counter() - start

    def replay() -> dict[str, Any]:
        graph.replay()
        return found

    contestant = Contestant(torch, True, replay)
    contestant.build_ms = round(took * 1e3, 3)
    return contestant


def wrong(got: Results, expected: Results) -> str:
    """What is wrong with results, in a sentence; empty if they are right."""
    for name, right in expected.items():
        off = float(np.abs(got[name].reshape(right.shape) - right).max())
        allowed = TOLERANCE * float(np.abs(right).max())
        if not off <= allowed:
            return f"{name} is off by {off:.3g}, expected at most {allowed:.3g}"
    return ""


# ---- measuring -----------------------------------------------------------------------------------


def measure(
    name: str = "randwire",
    preset: str = "paper",
    device: str = "cuda",
    *,
    opencl: Any = None,
    backends: Sequence[str] = (suite.SERIAL, "auto"),
    runs: int = 15,
    seed: int = 0,
) -> dict[str, Any]:
    """Inference of one image by PyTorch on `device`, and by acs_cl on `opencl`, a
    `pyopencl.Device`, unless that is None."""
    workload = next((one for one in WORKLOADS if one.name == name), None)
    if workload is None or preset not in workload.presets:
        raise UsageError(f"{name} at {preset}: expected one of {list(MODELS)} at one of {PRESETS}")
    torch = torch_for(device)
    model = MODELS[name](workload.presets[preset], seed)
    expected = workload.reference(workload.presets[preset], seed)
    failed: dict[str, str] = {}
    build_ms: dict[str, float] = {}
    unrest = [noise()]
    with torch.inference_mode(), _ours(workload, preset, opencl, backends, seed, failed) as timers:
        network = Network(torch, model, device)
        for way, make in contestants(torch, network).items():
            try:
                contestant = make()
                for _ in range(WARM):
                    contestant.sample()
                complaint = wrong(contestant.results(), expected)
            except RuntimeError as error:  # PyTorch's, as a rule: out of memory, or no capture
                complaint = str(error)
            if complaint:
                failed[way] = complaint
                continue
            timers[way] = contestant.sample
            if contestant.build_ms is not None:
                build_ms[way] = contestant.build_ms
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


@contextmanager
def _ours(
    workload: Workload,
    preset: str,
    opencl: Any,
    backends: Sequence[str],
    seed: int,
    failed: dict[str, str],
) -> Iterator[dict[str, Callable[[], Sample]]]:
    """Timers of those of `acs-cl bench`, checked."""
    if opencl is None:
        with nullcontext():
            yield {}
        return
    devices.repair(opencl)
    plan = suite.Plan(opencl, [workload], preset, backends, seed=seed)
    expected = workload.reference(workload.presets[preset], seed)
    with suite.contestants(plan, workload, expected, failed, lambda text, share: None) as ready:
        yield {f"acs_cl, {name}": suite.timer(one) for name, one in ready.items()}


def compared(samples: Mapping[str, Sequence[Sample]]) -> dict[str, Any]:
    """Times of each, and how many times faster than eager PyTorch it was in the same turns."""
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


def table(document: Mapping[str, Any]) -> str:
    """For a terminal."""
    rows = [
        [
            name,
            row["ms"]["median"],
            f"{row['ms']['p25']} to {row['ms']['p75']}",
            row["launching_ms"],
            row.get("over_eager", {}).get("median"),
            document["build_ms"].get(name),
        ]
        for name, row in document["rows"].items()
    ]
    headers = ["", "ms", "quartiles", "launching ms", "over eager", "building ms"]
    lines = [f"{document['network']} at {document['preset']}, {document['runs']} runs in turns"]
    lines.append(tabulate.tabulate(rows, headers))
    lines += [f"{name} failed: {why}" for name, why in document["failed"].items()]
    return "\n".join(lines)


def main() -> None:
    """Measure one network and print a table."""
    parser = argparse.ArgumentParser(description="static networks in PyTorch, beside acs_cl")
    parser.add_argument("--network", choices=list(MODELS), default="randwire")
    parser.add_argument("--preset", choices=PRESETS, default="paper")
    parser.add_argument("--device", default="cuda", help="of PyTorch; 'cpu' runs eager only")
    parser.add_argument("--opencl", metavar="SPEC", help="device of acs_cl; 'none' for none")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    opencl = None if args.opencl == "none" else devices.choose(args.opencl)
    try:
        document = measure(
            args.network, args.preset, args.device, opencl=opencl, runs=args.runs, seed=args.seed
        )
    except UsageError as error:
        parser.exit(2, f"{error}\n")
    if args.json:
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(table(document))


if __name__ == "__main__":
    main()
