"""Measure loops on the device beside other drivers of the same work.

    python -m acs_cl.benchmarks loops

Input: a device, backends. Output: microseconds of a round of one, ten and forty small kernels, and
of solvers until they have converged. The drivers are interleaved: the loop on the device; replays
with the known count; the host, which reads the word before each round; and rounds as one long
recording, which shows what a round costs beyond its body. With a CUDA compiler and a card, a
conditional node of a CUDA Graph runs the same kernels.

Invariant: a driver with other rounds or other bits than the loop on the device is an error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.peers import cuda_loops
from acs_cl.benchmarks.suite import documents, provenance
from acs_cl.benchmarks.suite.machine import machine
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.suite.statistics import differences, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave
from acs_cl.benchmarks.workloads.solvers import SOLVERS

VERSION = 1
BODIES = (1, 10, 40)
ROUNDS = 1000
UNROLLED = 50
"""Rounds of the long recording."""
ITEMS = 256
AT_MOST = 4000
SOURCE = """
kernel void bump(global uint *x) { x[get_global_id(0)] += 1; }
kernel void last(global uint *x, global uint *go, uint most)
{ uint i = get_global_id(0); uint v = x[i] + 1; x[i] = v; if (i == 0) *go = v < most; }
"""


class Driver(NamedTuple):
    """One way to run a step until it is over; `run` gives the rounds."""

    name: str
    run: Callable[[], int]


def by_host(graph: acs.Graph, go: acs.Array) -> int:
    """Run a graph as long as a word is not zero, as a program does without loops."""
    rounds = 0
    while go.get()[0]:
        graph.replay()
        rounds += 1
    return rounds


def in_turns(
    drivers: Sequence[Driver], reset: Callable[[], None], wait: Callable[[], None], runs: int
) -> dict[str, list[float]]:
    """Return microseconds of a round by each driver, interleaved."""

    def sampler(driver: Driver) -> Callable[[], float]:
        def sample() -> float:
            reset()
            wait()
            start = perf_counter()
            rounds = driver.run()
            wait()
            return (perf_counter() - start) * 1e6 / max(rounds, 1)

        return sample

    found = interleave({driver.name: sampler(driver) for driver in drivers}, 1 + runs)
    return {name: samples[1:] for name, samples in found.items()}  # the first one warms up


def small_kernels(rt: acs.Runtime, kernels: int, runs: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure a round of a chain of kernels of one group each."""
    prog = rt.build(SOURCE)
    x, go = rt.zeros(ITEMS, "u4"), rt.zeros(1, "u4")

    def body(most: int) -> None:
        for _ in range(kernels - 1):
            prog.bump((ITEMS,), None, x)
        prog.last((ITEMS,), None, x, go, most)

    with rt.record() as graph:
        body(rounds * kernels)
    with rt.record() as unrolled:
        for _ in range(UNROLLED):
            body(rounds * kernels)

    def reset() -> None:
        x.fill(0)
        go.fill(1)

    def loop() -> int:
        return graph.replay(while_=go, at_most=AT_MOST).rounds

    def known() -> int:
        for _ in range(rounds):
            graph.replay()
        return rounds

    def long() -> int:
        for _ in range(rounds // UNROLLED):
            unrolled.replay()
        return rounds

    drivers = [Driver("loop", loop), Driver("unrolled", long), Driver("known count", known),
               Driver("host reads", lambda: by_host(graph, go))]  # fmt: skip
    for driver in drivers:
        reset()
        if (ran := driver.run()) != rounds or (x.get() != rounds * kernels).any():
            raise RuntimeError(f"{driver.name}: {ran} rounds, expected {rounds}")
    us = in_turns(drivers, reset, rt.finish, runs)
    beyond = spread(differences(us["loop"], us["unrolled"]))
    return {"kernels": kernels, "us_per_round": spreads(us), "beyond_its_body_us": beyond}


def solver(rt: acs.Runtime, name: str, runs: int, size: int | None = None) -> dict[str, Any]:
    """Measure a solver until it has converged."""
    make, _, full = SOLVERS[name]
    made = make(rt, size or full, 0)
    made.reset()
    rounds = made.graph.replay(while_=made.go, at_most=AT_MOST).rounds
    result = made.result.get()
    if (error := made.error(np.asarray(result, np.float64))) > made.tolerance:
        raise RuntimeError(f"{name} is {error} from NumPy")

    def loop() -> int:
        return made.graph.replay(while_=made.go, at_most=AT_MOST).rounds

    def known() -> int:
        for _ in range(rounds):
            made.graph.replay()
        return rounds

    with rt.record() as unrolled:
        for _ in range(rounds):
            made.step()

    def long() -> int:
        unrolled.replay()
        return rounds

    drivers = [Driver("loop", loop), Driver("unrolled", long), Driver("known count", known),
               Driver("host reads", lambda: by_host(made.graph, made.go))]  # fmt: skip
    for driver in drivers:
        made.reset()
        if driver.run() != rounds or not np.array_equal(made.result.get(), result):
            raise RuntimeError(f"{name}: {driver.name} differs from the loop")
    us = in_turns(drivers, made.reset, rt.finish, runs)
    return {
        "rounds": rounds, "us_per_round": spreads(us),
        "over_known_count": spread(ratios(us["loop"], us["unrolled"])),
        "host_over_loop": spread(ratios(us["host reads"], us["loop"])),
    }  # fmt: skip


def growing(device: Any, backends: Sequence[str], runs: int) -> Iterator[dict[str, Any]]:
    """Measure everything; return the document after each row."""
    found: dict[str, Any] = {
        "acs_cl_loops": VERSION, "machine": machine(device),
        "commit": provenance.sources()._asdict(), "small": {}, "solvers": {},
    }  # fmt: skip
    cuda = cuda_loops.measure(BODIES, ROUNDS, runs)
    found["cuda"] = cuda if "failed" in cuda else spreads(cuda)
    for number, backend in enumerate(backends):
        say(f"loops on {backend}", number / len(backends))
        small, solvers = found["small"].setdefault(backend, []), found["solvers"]
        for kernels in BODIES:
            with acs.Runtime(device, backend=backend) as rt:
                small.append(small_kernels(rt, kernels, runs))
            yield found
        for name in SOLVERS:
            with acs.Runtime(device, backend=backend) as rt:
                solvers.setdefault(backend, {})[name] = solver(rt, name, runs)
            yield found
    say("", 1.0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks loops", description=__doc__.split("\n")[0])
    parser.add_argument("--device", metavar="SPEC", help="as acs_cl takes it")
    parser.add_argument("--backend", action="append", help="several times; default: device")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(argv)
    some = growing(devices.choose(args.device), args.backend or ["device"], args.runs)
    found = documents.last_written(some, args.json)
    for backend, rows in found["small"].items():
        for row in rows:
            medians = {name: one["median"] for name, one in row["us_per_round"].items()}
            beyond = row["beyond_its_body_us"]["median"]
            print(f"{backend}, {row['kernels']} kernels, us a round: {medians}, beyond: {beyond}")
        for name, one in found["solvers"][backend].items():
            medians = {key: value["median"] for key, value in one["us_per_round"].items()}
            print(f"{backend}, {name}, {one['rounds']} rounds, us a round: {medians}")
    for kernels, us in found["cuda"].items():
        print(f"CUDA, {kernels} kernels, us a round: {us}")
    return 0
