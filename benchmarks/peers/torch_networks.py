"""Compute the static networks in PyTorch: eager, and captured as CUDA graphs.

`eager` launches layer by layer. `graph` is the same, captured once and launched again. `graph,
streams` is captured on several streams, so that the graph has branches.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from acs_cl import UsageError
from acs_cl.benchmarks.peers.torch_layers import Network
from acs_cl.benchmarks.workloads.workload import Results

EAGER, GRAPH, STREAMS = "eager", "graph", "graph, streams"

WARM = 5
"""Inferences before any is timed or captured: libraries choose algorithms meanwhile."""

TOLERANCE = 1e-3
"""Of the largest result: convolutions by Winograd's way are less exact than sums."""


def torch_for(device: str) -> Any:
    """Return PyTorch, set to single precision throughout. Raise `UsageError` if it cannot use
    `device`."""
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


class Inference:
    """Compute one inference: `step` returns before it is through, `finish` waits for it."""

    def __init__(self, torch: Any, cuda: bool, compute: Callable[[], dict[str, Any]]) -> None:
        self._compute = compute
        self.finish: Callable[[], None] = torch.cuda.synchronize if cuda else lambda: None
        self.build_ms: float | None = None

    def reset(self) -> None:
        """Do nothing: an inference changes none of its inputs."""

    def step(self) -> None:
        """Launch it."""
        self._compute()

    def results(self) -> Results:
        """Return the results of one inference on the host."""
        found = self._compute()
        self.finish()
        return {name: tensor.cpu().numpy() for name, tensor in found.items()}


def inferences(torch: Any, network: Network) -> dict[str, Callable[[], Inference]]:
    """Return PyTorch's ways to run the network."""
    cuda = network.cuda

    def eager() -> Inference:
        return Inference(torch, cuda, network)

    def graph() -> Inference:
        return captured(torch, network)

    def streams() -> Inference:
        pool = [torch.cuda.Stream() for _ in range(max(network.lanes) + 1)]
        return captured(torch, lambda: network.on_streams(pool))

    return {EAGER: eager, GRAPH: graph, STREAMS: streams} if cuda else {EAGER: eager}


def captured(torch: Any, compute: Callable[[], dict[str, Any]]) -> Inference:
    """Make a CUDA graph of it. The time for that is kept apart."""
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

    inference = Inference(torch, True, replay)
    inference.build_ms = round(took * 1e3, 3)
    return inference


def wrong(got: Results, expected: Results) -> str:
    """Say what is wrong with results. Empty: they are right."""
    for name, right in expected.items():
        off = float(np.abs(got[name].reshape(right.shape) - right).max())
        allowed = TOLERANCE * float(np.abs(right).max())
        if not off <= allowed:
            return f"{name} is off by {off:.3g}, expected at most {allowed:.3g}"
    return ""
