"""Graphs on workers of Dask: the cost of a remote replay, and the gain of a second worker.

Input: a device. Output: microseconds from `submit` to the result of a graph of one short kernel,
one after the other and many in flight, beside an empty task with the same arguments, and without a
task. Also tasks a second of a graph of some 50 ms, on one worker and on two, interleaved, with one
thread of the CPU each.

Workers are processes of this machine. The second one helps if each has a GPU of its own, or if the
device is the CPU, of which each then takes one thread. On one GPU that both share it cannot help.

Invariant: every result is compared with the result of one runtime here.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl import devices
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import differences, ratios, spread, spreads
from acs_cl.benchmarks.suite.timing import interleave, timed

SOURCE = """
kernel void work(global float *x, int turns)
{ int i = get_global_id(0); float v = x[i]; for (int k = 0; k < turns; ++k) v = v * 0.999f + 0.5f;
  x[i] = v; }
"""
ITEMS, LAUNCHES, GRAPH_MS = 4096, 25, 50.0
TASKS = {False: 16, True: 6}  # by "is quick"
ROUNDS = {False: 7, True: 3}
CALLS = {False: 300, True: 60}
ONE_THREAD = {"POCL_MAX_PTHREAD_COUNT": "1"}
TIMEOUT_S = 120

LEAST_GAIN, MOST_US = 1.8, 1000.0


def measure(settings: Settings) -> dict[str, Any]:
    """Measure both, on workers of this machine."""
    from distributed import Client, LocalCluster

    import acs_cl.dask as acs_dask

    small, large, expected = _steps(settings)
    values = np.arange(ITEMS, dtype="f4")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            env=ONE_THREAD,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.register_plugin(acs_dask.Worker(_positions(settings)))
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
        sent = client.scatter([small, large], broadcast=True)

        def tasks(step: Any, many: int, where: list[str], outputs: list[str]) -> list[Any]:
            """Return futures, spread over workers by hand: Dask's own choice is not measured."""
            return [
                client.submit(
                    acs_dask.replay, step, {"x": values}, outputs, pure=False,
                    workers=[where[at % len(where)]],
                )
                for at in range(many)
            ]  # fmt: skip

        def rate(where: list[str]) -> float:
            start = perf_counter()
            futures = tasks(sent[1], TASKS[settings.quick], where, ["x"])
            for future in futures:
                if not np.array_equal(future.result(TIMEOUT_S)["x"], expected):
                    raise RuntimeError("a worker computed something else than this process")
            return len(futures) / (perf_counter() - start)

        samplers = {"one": lambda: rate(workers[:1]), "two": lambda: rate(workers)}
        for name in samplers:
            samplers[name]()
        rates = interleave(samplers, ROUNDS[settings.quick])
        there = acs_dask.Direct(client, small, workers[0])

        def empty() -> None:
            task = client.submit(
                nothing, sent[0], {"x": values}, [], pure=False, workers=workers[:1]
            )
            task.result(TIMEOUT_S)

        calls = {
            "direct": timed(lambda: there.replay({"x": values}, []), scale=1e6),
            "alone": timed(lambda: tasks(sent[0], 1, workers, [])[0].result(TIMEOUT_S), scale=1e6),
            "empty": timed(empty, scale=1e6),
        }
        us = {name: one[10:] for name, one in interleave(calls, CALLS[settings.quick]).items()}
        many = timed(lambda: client.gather(tasks(sent[0], 100, workers, [])), scale=1e4)
        together = [many() for _ in range(ROUNDS[settings.quick])]
    return {
        "graph_ms": 1000 / spread(rates["one"])["median"],
        "per_s": spreads(rates),
        "gain": spread(ratios(rates["two"], rates["one"])),
        "alone_us": spread(us["alone"]),
        "empty_us": spread(us["empty"]),
        "over_empty_us": spread(differences(us["alone"], us["empty"])),
        "in_flight_us": spread(together),
        "direct_us": spread(us["direct"]),
    }


def nothing(step: object, inputs: object, outputs: object) -> None:
    """Take the arguments of a replay, on a worker."""


def _positions(settings: Settings) -> list[int]:
    """Return the indices of the device and of another one like it, if there is one."""
    found = devices.devices()
    alike = [at for at, one in enumerate(found) if one.name == settings.device.name]
    return [settings.position, *(at for at in alike if at != settings.position)][:2]


def _steps(settings: Settings) -> tuple[Any, Any, Any]:
    """Return a graph of one short kernel, one of GRAPH_MS milliseconds, and its result."""
    import acs_cl.dask as acs_dask

    with acs.Runtime(settings.device, backend="serial") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(ITEMS)

        def step(launches: int, turns: int) -> acs.Graph:
            with rt.record() as graph:
                for _ in range(launches):
                    prog.work((ITEMS,), (64,), x, turns)
            return graph

        turns, seconds = 500, 0.0
        both_threads = 2 if settings.on_cpu else 1  # a worker has one of them
        while seconds < GRAPH_MS / 1000 / both_threads:
            turns *= 2
            graph = step(LAUNCHES, turns)
            start = perf_counter()
            graph.replay().wait()
            seconds = perf_counter() - start
        x.set(np.arange(ITEMS))
        graph.replay()
        return acs_dask.Step(step(1, 1), x=x), acs_dask.Step(graph, x=x), x.get()


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare the results with their bars."""
    gain, alone, flight = (result[name] for name in ("gain", "alone_us", "in_flight_us"))
    empty, over = result["empty_us"], result["over_empty_us"]
    graph = f"graphs of {result['graph_ms']:.0f} ms on two workers of Dask over one"
    made = [
        target(graph, gain, "at least", LEAST_GAIN, "x"),
        target("a remote replay, from submit to result", alone, "at most", MOST_US, "us"),
        target("a task of Dask that takes the same and does nothing", empty, "at most", None, "us"),
        target("a remote replay over such a task", over, "at most", MOST_US, "us"),
        target("a remote replay among 100 in flight", flight, "at most", None, "us"),
    ]  # fmt: skip
    if direct := result.get("direct_us"):  # results from before there was one lack it
        what = "a remote replay without a task, `acs.dask.Direct`"
        made.append(target(what, direct, "at most", MOST_US, "us"))
    return made
