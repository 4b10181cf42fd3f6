"""Gains of networks by branches, policies of lanes and orders, batch by batch.

Input: a device. Output: for each network and batch milliseconds of one inference. The contestants
are a replay on one queue, and a replay with one lane for each branch, in program order, as in
Nimble. Then come the same launches by our default and by Opara's order, on lanes and by `auto`, and
the best of an expert's queues. Some networks also have CUDA Graphs of the same kernels, if there is
a CUDA compiler.

Results of one image are compared with NumPy's, and results of more with those of one queue, since
NumPy would take minutes. A contestant with wrong results is reported, and not timed. `auto` has
replayed for a while before it is timed, since it tries several ways and stays with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import Any

import acs_cl as acs
from acs_cl.benchmarks.peers.cuda_graphs import PeerError, compiler
from acs_cl.benchmarks.peers.cuda_networks import BRANCHES as CUDA_BRANCHES
from acs_cl.benchmarks.peers.cuda_networks import CHAIN, SameKernels
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spreads
from acs_cl.benchmarks.suite.timing import Deadline, interleave, timed
from acs_cl.benchmarks.workloads import catalogue, networks
from acs_cl.benchmarks.workloads.expert import Queues, overlaps_in_one
from acs_cl.benchmarks.workloads.inference import Inference, Model, reference
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.static import MODELS
from acs_cl.benchmarks.workloads.workload import Results, Workload, building_once, differences

BATCHES = (1, 8, 32)
NAMES = ("squeezenet", "nasnet", "googlenet", "inception", "deepfm", "bert", "t5")
IN_CUDA = ("squeezenet", "nasnet")
LANES = (4, 16)
"""Queues that an expert tries."""
ROUNDS, WITHIN_S, ROW_S = 15, 120.0, 3.0

BEFORE_S, TRIES, MOST_S = 0.3, 48, 3.0
"""How long `auto` replays before it tries other ways, at least; how many replays it takes to try
them; how long both may take."""

SERIAL, BRANCHES, EXPERT = "serial", "one lane per branch", "expert"
AUTO = "auto, opara_critical"
OVER_BRANCHES, BEST_OVER_SERIAL, LEAST, MOST_OF_CUDA = 1.29, 1.68, 0.98, 1.0


def growing(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure all networks one image at a time, then more of them, as far as time allows."""
    rows: dict[str, Any] = {}
    deadline = Deadline(WITHIN_S)
    for batch in BATCHES:
        for name in NAMES:
            workload = catalogue()[name]
            size = workload.presets[settings.preset]
            if batch > 1 and "batch" not in size._fields:
                continue
            if not deadline.has_time():
                return
            model = {**MODELS, **networks.MODELS}[name](
                size if batch == 1 else size._replace(batch=batch), 0
            )
            rows[f"{name}, {batch}"] = {
                "preset": settings.preset,
                **_row(settings, workload, model),
            }
            yield {"rows": rows}


def _row(settings: Settings, workload: Workload, model: Model) -> dict[str, Any]:
    expected: Results | None = reference(model) if model.net.images == 1 else None
    failed: dict[str, str] = {}
    samplers: dict[str, Callable[[], float]] = {}
    why: dict[str, str] = {}
    with ExitStack() as stack:
        for name, make in _contestants(settings.device, model, stack, why):
            step, finish, results = make()
            step()
            finish()
            found = results()
            expected = found if expected is None else expected
            if wrong := differences(workload, found, expected):
                failed[name] = wrong
            else:
                samplers[name] = timed(step, finish)
                if name == AUTO:
                    _settle(samplers[name])
        if workload.name in IN_CUDA and model.net.images == 1 and compiler() is not None:
            try:
                same = stack.enter_context(SameKernels(model))
            except PeerError as error:
                failed[CHAIN] = str(error)
            else:
                for name, sampler in same.samplers().items():
                    if wrong := differences(workload, same.results[name], expected or {}):
                        failed[name] = wrong
                    else:
                        samplers[name] = sampler
        turn_s = sum(sampler() for sampler in samplers.values()) * 1e-3
        rounds = 3 if settings.quick else int(min(ROUNDS, max(5, ROW_S / turn_s)))
        samples = interleave(samplers, rounds)
    over = {
        base: spreads({name: ratios(samples[base], s) for name, s in samples.items()})
        for base in (SERIAL, BRANCHES)
        if base in samples
    }
    return {
        "launches": len(model.net.layers),
        "failed": failed,
        "why": why,
        "ms": spreads(samples, 4),
        "over": over,
    }


def _settle(replay: Callable[[], float]) -> None:
    """Replay until it is known which way is the quickest."""
    began, left = perf_counter(), TRIES
    while left and perf_counter() - began < MOST_S:
        replay()
        left -= perf_counter() - began > BEFORE_S


Made = tuple[Callable[[], Any], Callable[[], Any], Callable[[], Results]]


def _contestants(
    device: Any, model: Model, stack: ExitStack, why: dict[str, str]
) -> Iterator[tuple[str, Callable[[], Made]]]:
    """Return names, and functions that make a step, a wait for it, and its results."""
    host = "out_of_order" if overlaps_in_one(device) else "lanes"

    def replay(name: str, backend: str, order: str, **options: Any) -> Made:
        runtime = stack.enter_context(acs.Runtime(device, backend=backend, **options))
        run = Inference(building_once(runtime), model)
        runtime.finish()
        with runtime.record() as graph:
            run.step()
        if order != "first_in":
            graph.profile()
            graph.arrange(order)
        why[name] = str(runtime.stats()["why"])
        return graph.replay, runtime.finish, run.results

    def by_hand(lanes: int | None) -> Made:
        queues = Queues(device, lanes=lanes)
        run = ByHand(queues, model)
        return run.step, queues.finish, run.results

    for name, backend, order, options in (
        (SERIAL, SERIAL, "first_in", {}),
        (BRANCHES, "lanes", "first_in",
         {"lanes": 16, "lane_after": "disjoint", "lane_new": "always"}),
        (host, host, "first_in", {}),
        (f"{host}, opara_critical", host, "opara_critical", {}),
        (AUTO, "auto", "opara_critical", {}),
    ):  # fmt: skip
        yield name, partial(replay, name, backend, order, **options)
    for lanes in (None, *LANES) if host == "out_of_order" else LANES:
        said = f"{lanes} lanes" if lanes else "out of order"
        yield f"{EXPERT}, {said}", partial(by_hand, lanes)


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare `auto`, and the best of ours, with one lane for each branch and one queue."""
    found = []
    best: dict[str, Any] = {}
    for name, row in result["rows"].items():
        peers = [one for one in (CHAIN, CUDA_BRANCHES) if one in row["ms"]]
        others = (EXPERT, SERIAL, BRANCHES, *peers)
        ours = [one for one in row["ms"] if not one.startswith(others)]
        for peer in peers:
            fast = min(ours, key=lambda one: row["ms"][one]["median"])
            over = row["ms"][fast]["median"] / row["ms"][peer]["median"]
            what = f"{name}: a replay, {fast}, over {peer}"
            found.append(target(what, over, "at most", MOST_OF_CUDA, "x"))
        for base, least in ((BRANCHES, OVER_BRANCHES), (SERIAL, LEAST)):
            over = {one: row["over"][base][one] for one in ours if base in row["over"]}
            fastest = max(over, key=lambda one: over[one]["median"], default=None)
            for one in dict.fromkeys(one for one in (AUTO, fastest) if one in over):
                what = f"{name}: over {base if base == BRANCHES else 'one queue'}, {one}"
                found.append(target(what, over[one], "at least", least, "x"))
            if base == SERIAL and fastest is not None:
                best[f"{name}, {fastest}"] = over[fastest]
    if best:
        which = max(best, key=lambda one: best[one]["median"])
        what = f"the best over one queue: {which}"
        found.append(target(what, best[which], "at least", BEST_OVER_SERIAL, "x"))
    return found
