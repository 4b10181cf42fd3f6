"""Simulate what bands would gain: launches in parts that are ordered by their own bytes.

    python -m acs_cl.benchmarks bands                  # all workloads and shapes, write the JSON
    python -m acs_cl.benchmarks bands jacobi gemms     # these, and print the table only

Input: steps of workloads, and shapes made for this, as traces with and without bands. Output:
`results/bands.json`, from which `report` makes `docs/measurements/bands.md`. Everything is
simulated, on the model's clock.

The policy `ideal` has no host and shows the gain of the device alone. `on_device` adds the measured
costs of our scheduler: a record for each band, and the hand-over between bands. So it shows whether
bands are worth that.

Invariant: with and without bands, a launch has the same groups, the same work, and edges by the
bytes that its body reaches.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl import UsageError
from acs_cl.benchmarks.suite.documents import write
from acs_cl.benchmarks.validation.dry import Dry, traced
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.emu.machines import machine
from acs_cl.emu.policies import simulate
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import KERNEL, Trace

VERSION = 1
RESULT = Path(__file__).resolve().parents[1] / "results" / "bands.json"
MACHINES = ("h200-acs_cl", "cpu2")
POLICIES = ("ideal", "on_device")
BANDS = (1, 2, 4, 8, 16)
GROUP_NS = 20_000
"""How long a group takes where nobody has counted what the kernel does."""

SOURCE = """
kernel void scale(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] = 2 * x[i]; }
kernel void sweep(global const float *x, global float *y, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
    y[j * n + i] = x[j * n + i - 1] + x[j * n + i + 1] + x[(j - 1) * n + i] + x[(j + 1) * n + i];
}
kernel void gemm(global const float *x, global float *y, int n, global const float *z)
{
    int i = get_global_id(0), j = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k++) sum += x[j * n + k] * z[k * n + i];
    y[j * n + i] = sum;
}
kernel void transpose(global const float *x, global float *y, int n)
{ int i = get_global_id(0), j = get_global_id(1); y[i * n + j] = x[j * n + i]; }
"""


class Shape(NamedTuple):
    """A program of a few dependent launches, each of some waves of groups."""

    steps: int
    kernel: str
    square: bool = True
    """Groups of 16 x 16 on two axes, not of 64 on one."""
    others: int = 0
    """Arrays that all launches read, beside the two that they take turns with."""


SHAPES = {
    "elementwise": Shape(2, "scale", square=False),
    "elementwise-chain": Shape(32, "scale", square=False),
    "gemms": Shape(2, "gemm", others=1),
    "jacobi": Shape(16, "sweep"),
    "transposes": Shape(4, "transpose"),
}
"""Two elementwise kernels, a chain of them, two matrix products, sweeps of a stencil, and
transposes, whose bands all need each other."""


def shape_trace(name: str, waves: float, on: Machine, bands: int) -> Trace:
    """Make the trace of a shape whose launches fill the device so many times."""
    steps, kernel, square, others = SHAPES[name]
    local = (16, 16) if square else (64,)
    at_once = on.gpu.units * min(on.gpu.groups, on.gpu.threads // prod(local))
    groups = max(1, round(waves * at_once))
    n = local[0] * (max(1, round(groups**0.5)) if square else groups)
    size = (n,) * len(local)
    dry = Dry(group_ns=GROUP_NS, bands=bands)
    prog = dry.build(SOURCE)
    pair = [dry.empty(prod(size)) for _ in range(2)]
    more = [dry.empty(prod(size)) for _ in range(others)]
    for step in range(steps):
        getattr(prog, kernel)(size, local, pair[step % 2], pair[1 - step % 2], n, *more)
    return dry.trace(f"{name}, {waves:g} waves")


def gains(make: Callable[[int], Trace], on: Machine, cuts: Sequence[int] = BANDS) -> dict[str, Any]:
    """Return the time of each cut by policy, and how many times as fast it is as whole launches."""
    runs: dict[str, Any] = {}
    whole: dict[str, int] = {}
    for bands in cuts:
        trace = make(bands)
        kernels = sum(one.kind == KERNEL for one in trace.entries)
        edges = sum(len(one.upstream) for one in trace.entries)
        run: dict[str, Any] = {"tasks": kernels, "edges": edges}
        for policy in POLICIES:
            took = simulate(policy, trace, on).makespan_ns
            whole.setdefault(policy, took)
            run[policy] = {"us": round(took / 1e3, 1), "gain": round(whole[policy] / took, 3)}
        runs[str(bands)] = run
    return runs


WAVES = (0.25, 0.75, 1.25, 1.5, 2.5, 4.5)


def shapes(names: Sequence[str], on: Machine) -> dict[str, Any]:
    """Measure all shapes at several numbers of waves."""
    return {
        f"{name}, {waves:g} waves": gains(
            lambda bands, name=name, waves=waves: shape_trace(name, waves, on, bands),  # type: ignore[misc]
            on,
        )
        for name in names
        for waves in WAVES
    }


def workloads(names: Sequence[str], on: Machine, preset: str) -> dict[str, Any]:
    """Measure steps of workloads. If no trace can be made without a device, say why."""
    found: dict[str, Any] = {}
    there = catalogue()
    for name in names:
        try:
            found[name] = gains(
                lambda bands, name=name: traced(  # type: ignore[misc]
                    there[name],
                    preset,
                    group_ns=GROUP_NS,
                    bands=bands,
                    counted=bool(on.gpu.flops_per_cycle),  # else it has no roofline
                ),
                on,
                (1, 4, 16),
            )
        except UsageError as error:
            found[name] = {"left out": str(error)}
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Simulate, print, and write the JSON where all were asked for."""
    parser = argparse.ArgumentParser(prog="python -m acs_cl.benchmarks bands", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*SHAPES, *catalogue()])}")
    parser.add_argument("--preset", default="small", help="of the workloads")
    options = parser.parse_args(words)
    there = [*SHAPES, *catalogue()]
    unknown = [name for name in options.names if name not in there]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(there)}")
    names = options.names or there
    document: dict[str, Any] = {
        "what": "bands, simulated", "version": VERSION, "preset": options.preset,
        "group_ns": GROUP_NS, "machines": {},
    }  # fmt: skip
    for name in MACHINES:
        on = machine(name)
        document["machines"][name] = {
            "shapes": shapes([one for one in names if one in SHAPES], on),
            "workloads": workloads([one for one in names if one not in SHAPES], on, options.preset),
        }
        for kind in ("shapes", "workloads"):
            for label, runs in document["machines"][name][kind].items():
                print(f"{name:12} {label:32} {line(runs)}", flush=True)
    if not options.names:
        write(RESULT, document)
    return 0


def line(runs: dict[str, Any]) -> str:
    """Write the gains of one program on one line."""
    if "left out" in runs:
        return f"left out: {runs['left out']}"
    return "  ".join(
        f"{policy}: " + " ".join(f"{cut}:{run[policy]['gain']:.2f}" for cut, run in runs.items())
        for policy in POLICIES
    )
