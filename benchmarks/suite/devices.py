"""Several devices: the same programs on one device and on all of them, results compared.

    python -m acs_cl.benchmarks devices                         # all devices of the platform
    python -m acs_cl.benchmarks devices --devices 0 0 --scale 0.1

In: devices, given as indices; one that comes twice stands for two, for a rehearsal. Out: a line for
each program: milliseconds a step on one device and on all, copies and bytes a step, parts of
launches. A rehearsal on one device says nothing about speed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import numpy as np

from ... import Runtime
from ...records import HostArray, Report

SOURCES = {
    "jacobi": """
kernel void jacobi(global const float *x, global float *y, int n)
{
    int i = get_global_id(0), j = get_global_id(1);
    if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
        y[j * n + i] = 0.25f * (x[j * n + i - 1] + x[j * n + i + 1]
                                + x[(j - 1) * n + i] + x[(j + 1) * n + i]);
}""",
    "black_scholes": """
kernel void price(global const float *spot, global float *value)
{
    int i = get_global_id(0);
    float s = spot[i], d = (log(s / 60.0f) + 0.0175f) / 0.1f;
    float n1 = 0.5f * erfc(-d * 0.70710678f), n2 = 0.5f * erfc((0.1f - d) * 0.70710678f);
    value[i] = s * n1 - 60.0f * exp(-0.0125f) * n2;
}""",
    "product": """
kernel void product(global const float *a, global const float *b, global float *c, int n)
{
    int column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}""",
    "bodies": """
kernel void forces(global const float *x, global float *f, int n)
{
    int i = get_global_id(0);
    float sum = 0;
    for (int k = 0; k < n; ++k) {
        float d = x[k] - x[i];
        sum += d / (d * d + 0.01f);
    }
    f[i] = sum;
}
kernel void move(global float *x, global const float *f, float step)
{ int i = get_global_id(0); x[i] += step * f[i]; }""",
}

Step = tuple[Callable[[], object], Callable[[], HostArray]]
"""One step of a program, and what it has computed."""


def jacobi(runtime: Runtime, scale: float) -> Step:
    """Sweeps over a square."""
    n = max(32, int(16384 * scale**0.5) // 32 * 32)
    program = runtime.build(SOURCES["jacobi"])
    start = np.random.default_rng(1).random((n, n), np.float32)
    pair = [runtime.array(start), runtime.array(start)]

    def step() -> None:
        program.jacobi((n, n), None, pair[0], pair[1], n)
        pair.reverse()

    return step, lambda: pair[0].get()


def black_scholes(runtime: Runtime, scale: float) -> Step:
    """Ten independent sets of options."""
    n = max(64, int((1 << 22) * scale))
    program = runtime.build(SOURCES["black_scholes"])
    spots = np.random.default_rng(2).uniform(40, 80, (10, n)).astype(np.float32)
    sets = [(runtime.array(one), runtime.empty(n)) for one in spots]

    def step() -> None:
        for spot, value in sets:
            program.price((n,), None, spot, value)

    return step, lambda: np.concatenate([value.get() for _, value in sets])


def product(runtime: Runtime, scale: float) -> Step:
    """A product of square matrices."""
    n = max(32, int(4096 * scale ** (1 / 3)) // 32 * 32)
    program = runtime.build(SOURCES["product"])
    values = np.random.default_rng(3).integers(-2, 3, (2, n, n)).astype(np.float32)
    a, b, c = runtime.array(values[0]), runtime.array(values[1]), runtime.empty((n, n))
    return lambda: program.product((n, n), None, a, b, c, n), lambda: c.get()


def bodies(runtime: Runtime, scale: float) -> Step:
    """Forces between all pairs, and moves."""
    n = max(64, int(65536 * scale**0.5) // 64 * 64)
    program = runtime.build(SOURCES["bodies"])
    x = runtime.array(np.random.default_rng(4).random(n, np.float32))
    f = runtime.empty(n)

    def step() -> None:
        program.forces((n,), None, x, f, n)
        program.move((n,), None, x, f, 1e-6)

    return step, lambda: x.get()


PROGRAMS = {
    "jacobi": jacobi, "black_scholes": black_scholes, "product": product, "bodies": bodies,
}  # fmt: skip

Made = tuple[float, HostArray, Report]


def run(
    name: str, devices: Sequence[int], scale: float, steps: int, spread: bool | None = None
) -> Made:
    """Run a program. Gives milliseconds a step, its result, and what the runtime counted."""
    several = {"devices": list(devices), "spread": spread} if len(devices) > 1 else {}
    only = devices[0] if len(devices) == 1 else None
    with Runtime(only, **several) as runtime:  # type: ignore[arg-type]
        step, result = PROGRAMS[name](runtime, scale)
        times = []
        for _ in range(steps):
            runtime.finish()
            began = perf_counter()
            step()
            runtime.finish()
            times.append((perf_counter() - began) * 1e3)
        return median(times[steps // 2 :]), result(), runtime.stats()


def line(
    name: str, devices: Sequence[int], scale: float, steps: int, spread: bool | None
) -> Report:
    """Compare one device with all: the results have to be the same."""
    one_ms, expected, _ = run(name, devices[:1], scale, steps)
    all_ms, got, stats = run(name, devices, scale, steps, spread)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    links = [link for one in stats["devices"] for link in one["from"].values()]
    return {
        "program": name,
        "one_ms": round(one_ms, 3),
        "all_ms": round(all_ms, 3),
        "times": round(one_ms / all_ms, 2),
        "copies": sum(link["copies"] for link in links),
        "bytes": sum(link["bytes"] for link in links),
        "launches": [one["launches"] for one in stats["devices"]],
    }


def main(words: Sequence[str]) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="devices", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[0, 1], help="indices")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--spread", action="store_true", help="cut whatever can be cut")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    spread = True if args.spread else None
    found = [line(name, args.devices, args.scale, args.steps, spread) for name in PROGRAMS]
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    for one in found:
        print("  ".join(f"{key} {value}" for key, value in one.items()))
    return 0
