"""Cost of checks: a program under each of them, over the same without, on `serial`.

Input: a device. Output: microseconds a launch and ratios, interleaved, of 128 launches along a ring
of arrays with a read-back after every 32. There are two kernels of four lengths. The body of
`affine` shows the bytes of a launch, so later launches are proven and let through. `gather` has an
index from memory, so the device watches each launch. `every=64` checks one launch in 64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave, timed

ROUNDS = {False: 11, True: 3}  # by "is quick"
SPINS = (3, 150, 600, 3000)
"""Turns of the kernels' loop."""
ITEMS, ARRAYS, LAUNCHES, READ_EVERY = 256, 16, 128, 32
MOST = 5.0
ALL = "access,order=1,uninitialised"
CHECKS = {
    "affine": ("access", "order=1", "uninitialised", ALL),
    "gather": ("access", "order=1", "uninitialised", ALL, f"{ALL},every=64"),
}
SOURCE = """
uint spun(uint v, uint rounds)
{
  for (uint i = 0; i < rounds; i++) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
  return v;
}
kernel void affine(global const uint *x, global const uint *at, global uint *y, uint rounds)
{ uint i = get_global_id(0); y[i] = spun(x[i] + at[i] + y[i], rounds); }
kernel void gather(global const uint *x, global const uint *at, global uint *y, uint rounds)
{ uint i = get_global_id(0); y[i] = spun(x[at[i]] + y[i], rounds); }
"""


def measure(settings: Settings) -> dict[str, Any]:
    """Measure both kernels, at all lengths, under all checks."""
    rows = [
        _row(settings, kernel, spins, checks)
        for kernel, checks in CHECKS.items()
        for spins in SPINS
    ]
    return {"rows": rows}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    return [
        target(
            f"{row['kernel']}, {row['plain_us']['median']:.0f} us a launch without checks, under "
            f"{check}",
            found["ratio"], "at most", MOST, "x",
        )
        for row in result["rows"]
        for check, found in row["checks"].items()
    ]  # fmt: skip


def _row(settings: Settings, kernel: str, spins: int, checks: tuple[str, ...]) -> dict[str, Any]:
    with ExitStack() as stack:
        samplers = {
            check: _program(stack, settings, check, kernel, spins) for check in ("", *checks)
        }
        samples = interleave(samplers, ROUNDS[settings.quick])
    plain = samples[""]
    return {
        "kernel": kernel,
        "rounds": spins,
        "plain_us": spread(plain, 2),
        "checks": {
            check: {
                "us": spread(samples[check], 2),
                "ratio": spread(ratios(samples[check], plain), 2),
            }
            for check in checks
        },
    }


def _program(
    stack: ExitStack, settings: Settings, check: str, name: str, spins: int
) -> Callable[[], float]:
    """Return a function that runs the program, and returns microseconds a launch."""
    runtime = stack.enter_context(
        acs.Runtime(settings.device, backend="serial", check=check or None)
    )
    kernel = getattr(runtime.build(SOURCE), name)
    arrays = [runtime.zeros(ITEMS, np.uint32) for _ in range(ARRAYS + 1)]
    at = runtime.array(np.random.default_rng(1).permutation(ITEMS).astype(np.uint32))

    def run() -> None:
        for number in range(LAUNCHES):
            place = number % ARRAYS
            kernel((ITEMS,), (64,), arrays[place], at, arrays[place + 1], spins)
            if number % READ_EVERY == READ_EVERY - 1:
                arrays[3].get()

    return _warm(timed(run, runtime.finish, 1e6 / LAUNCHES))


def _warm(sample: Callable[[], float]) -> Callable[[], float]:
    """Have kernels built, signatures known, and the first launches checked."""
    sample()
    sample()
    return sample
