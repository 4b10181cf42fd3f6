"""Run benchmarks: `python -m acs_cl.benchmarks run overhead --json out.json`, or `all`.

Input: the benchmark and the device. Output: a table of the figures with their bars and, with
`--json`, everything measured, with the machine. The exit code is 0 if it ran. The reader judges
missed bars, since a busy machine misses them too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

from acs_cl import AcsError, devices
from acs_cl.benchmarks.suite.documents import (
    FIGURES,
    VERSION,
    Document,
    Run,
    exit_code,
    last_written,
    number,
)
from acs_cl.benchmarks.suite.machine import machine, noise
from acs_cl.benchmarks.suite.options import add_options, within_s
from acs_cl.benchmarks.suite.progress import say
from acs_cl.benchmarks.suite.settings import Settings, refuse_overrides

BENCHMARKS = {
    "overhead": "host cost of a launch, against a bare PyOpenCL call",
    "overlap": "independent chains on every backend, over serial",
    "memory": "what piles up over a million launches",
    "latency": "one launch and a read-back of four bytes, against bare PyOpenCL",
    "scheduler": "graphs of small tasks on the device's own scheduler, beside CUDA Graphs",
    "taskbench": "patterns of Task Bench, end to end per task, beside CUDA",
    "reductions": "small elementwise kernels and sums, alternating, on every backend",
    "builds": "launches beside builds of schedulers, and the first result of 100 kernels",
    "replay": "replays of recorded graphs, against bare PyOpenCL and launching anew",
    "orders": "recorded graphs in every order, beside one queue and queues by hand",
    "networks": "recorded networks by batches, beside one lane for each branch and one queue",
    "transfers": "GrCUDA's six with their transfers, beside one queue and queues by hand",
    "tiles": "a wavefront and a factorisation of tiles by groups of the scheduler, beside CUDA",
    "native": "hazard checks, launches for the scheduler and on the host backends, from Python",
    "prediction": "launches of steps that repeat, with prediction and without",
    "spawn": "kernels that give work away, flat and with each controller, and what a child costs",
    "queue": "unmodified programs on acs.Queue, against their own in-order queue",
    "checking": "what checks cost, over the same program without",
    "dask": "recorded graphs on workers of Dask, which are processes of this machine",
    "startup": "time to the first result of a fresh process, against plain PyOpenCL",
    "bands": "recorded launches in bands, beside whole ones, one queue and CUDA",
    "first_second": "what a fresh process gets done in its first second, against plain PyOpenCL",
}


def module_of(name: str) -> Any:
    """Return the module that measures a benchmark."""
    return import_module(f"acs_cl.benchmarks.suite.measures.{name}")


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    top = argparse.ArgumentParser(prog="benchmarks run", description=__doc__.split("\n")[0])
    commands = top.add_subparsers(dest="benchmark", metavar="BENCHMARK", required=True)
    for name, text in [*BENCHMARKS.items(), ("all", "all of them")]:
        one = commands.add_parser(name, help=text, description=text)
        add_options(one, "--device", "--json", "--quick", "--within")
        if name in ("overlap", "all"):
            one.add_argument(
                "--kernel-us", type=float, metavar="US", help="length of the kernels of overlap"
            )
        if name in ("memory", "all"):
            one.add_argument(
                "--launches", type=int, metavar="N", help="launches of memory (1,000,000)"
            )
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    args = parser().parse_args(argv)
    try:
        document = last_written(growing(args), args.json)
    except AcsError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    finally:
        say("", 1.0)
    print(f"\nmachine noise: {max(one['unrest'] for one in document['machine']['noise']):.0%} "
          "(quiet: below 5%)")  # fmt: skip
    return exit_code(document, 0)


def growing(args: argparse.Namespace, find: Callable[[str], Any] = module_of) -> Iterator[Document]:
    """Return the document of one run after each part of it, and print the tables as they come.
    `find`: returns the module of a benchmark."""
    refuse_overrides()
    settings = Settings(
        devices.choose(args.device),
        args.quick,
        getattr(args, "kernel_us", None),
        getattr(args, "launches", None),
    )
    there = machine(settings.device)
    print(f"{there['device']}, driver {there['driver']}, {there['cpus']} CPUs ({there['cpu']})")
    deadline = perf_counter() + within_s(args)
    names = list(BENCHMARKS) if args.benchmark == "all" else [args.benchmark]
    results: dict[str, Any] = {}
    there["noise"] = unrest = [noise()]
    document = {
        FIGURES: VERSION,
        "quick": settings.quick,
        "machine": there,
        "benchmarks": results,
    }
    for index, name in enumerate(names):
        if len(names) > 1:
            say(name, index / len(names))
        start = perf_counter()
        module = find(name)
        try:
            for result, is_cut in _results(module, settings, deadline):
                if is_cut:
                    result["left_out"] = f"what would have come after {args.within:g} s"
                result["took_s"] = round(perf_counter() - start, 1)
                run = Run(there["commit"], there["sources"], there["date"], 0.0)
                results[name] = {**result, "run": run.around(unrest[-1:])._asdict()}
                yield document
            unrest.append(noise())
            results[name]["run"] = run.around(unrest[-2:])._asdict()
        finally:
            say.hide()
            if name in results:
                _print(name, results[name], module.bars(results[name], there))
        yield document


def _results(
    module: Any, settings: Settings, deadline: float
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Return a benchmark's results so far, after each part if it has parts, and whether some were
    left out for lack of time."""
    if not hasattr(module, "growing"):
        yield module.measure(settings), False
        return
    parts = module.growing(settings)
    for result in parts:
        over = perf_counter() > deadline
        yield result, over
        if over:
            parts.close()
            return


def _print(name: str, result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    print(f"\n{name}, {result['took_s']} s")
    for row in rows:
        where = f" ({row['where']})" if "where" in row else ""
        around = ""
        if row["quartiles"] is not None:
            low, high = row["quartiles"]
            around = f"  quartiles {low:.2f} .. {high:.2f}"
        value = number(row["value"]) if isinstance(row["value"], (int, float)) else row["value"]
        said, judged = f" ({row['sense']} {row['limit']})", "met" if row["met"] else "MISSED"
        if row["limit"] is None:
            said = judged = ""
        print(f"  {judged:6} {row['what']}{where}: {value} {row['unit']}{said}{around}")
