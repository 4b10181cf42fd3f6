"""One process of random programs: a range of seeds in, counts out, as far as it came.

In: a kind, a range of seeds, a device, a time to end at. Out: a file of JSON with what was counted
and the first seed that was not, written every few seeds and at the end; beside it the seed that is
being run, which says where a process died. Kind `pool` is programs of kernels that are built once
(`fuzz`), a seed each. Kind `kernels` is programs of newly made kernels (`random_launches`), of
which a seed stands for several. Kind `repeats` is programs that nearly repeat their steps
(`fuzz.repeats`), a seed each. Kind `devices` is programs on several devices (`fuzz.several`), a
seed each. Kind `loops` is loop programs (`random_loops`), `trees` is trees of spawned items
(`random_trees`), `bands` recorded programs in bands (`random_bands`), and `mixes` programs that mix
everything (`random_mixes`), a seed each. Exit code 3: a seed took too long.

`random_batches.py` runs many of these.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
os.environ.setdefault("ACS_CL_POCL_CPU", "auto")

import random_bands
import random_launches
import random_loops
import random_mixes
import random_trees
from fuzz import repeats, several
from fuzz.runtimes import Ways, configuration_of

from acs_cl import core, devices

KINDS = ("pool", "kernels", "repeats", "devices", "loops", "trees", "bands", "mixes")
LONGEST_S = 300.0
"""A seed that takes longer hangs; building for the scheduler takes a while beside other work."""
SAVED_EVERY = 25
MOST_WRONG = 10
"""Mismatches after which a process ends."""
HANGS = 3

State = dict[str, Any]


class Pool:
    """Programs of kernels that are built once."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._ways = Ways(device)
        self.counts: Counter[str] = Counter()

    def one(self, seed: int) -> None:
        """The programs of a seed."""
        try:
            done = self._ways.one(seed)
        except Exception:
            self._ways = Ways(self._device)  # what the old runtimes are in is not known
            raise
        for name, value in (("programs", done.programs), ("operations", done.operations)):
            self.counts[name] += value
            self.counts[f"{done.configuration}: {name}"] += value

    def about(self, seed: int) -> str:
        """What a seed is run on."""
        return configuration_of(seed)


class Kernels:
    """Programs of newly made kernels; a seed is a pool of them."""

    def __init__(self, device: Any) -> None:
        self._runner = random_launches.Runner(device)
        self.counts = self._runner.counts

    def one(self, seed: int) -> None:
        """The programs of a seed."""
        try:
            self._runner.pool(seed, random_launches.PROGRAMS)
        except Exception:
            self._runner.renew()
            raise

    def about(self, seed: int) -> str:
        """Where it is."""
        return self._runner.now


class Repeats:
    """Programs that nearly repeat their steps, on runtimes that predict and one that does not."""

    def __init__(self, device: Any) -> None:
        self._ways = repeats.Ways(device)
        self.counts: Counter[str] = Counter()

    def one(self, seed: int) -> None:
        """The programs of a seed."""
        for name, value in self._ways.one(seed).items():
            self.counts[name] += value

    def about(self, seed: int) -> str:
        """Where it is."""
        return repeats.configuration_of(seed)


class OneEach:
    """Programs of ways that are given, a seed each. `about`: what a seed is run on."""

    def __init__(self, ways: Any, about: Callable[[int], str]) -> None:
        self._ways, self.about = ways, about
        self.counts: Counter[str] = Counter()

    def one(self, seed: int) -> None:
        """The program of a seed."""
        self.counts.update(self._ways.one(seed))  # zeros included
        self.counts["programs"] += 1


Runner = Pool | Kernels | Repeats | OneEach

RUNNERS: dict[str, Callable[[Any], Runner]] = {
    "pool": Pool,
    "kernels": Kernels,
    "repeats": Repeats,
    "devices": lambda device: OneEach(several.Ways(device), several.configuration_of),
    "loops": lambda device: OneEach(random_loops.Ways(device), random_loops.configuration_of),
    "trees": lambda device: OneEach(random_trees.Ways(device), random_trees.configuration_of),
    "bands": lambda device: OneEach(random_bands.Ways(device), random_bands.configuration_of),
    "mixes": lambda device: OneEach(random_mixes.Ways(device), random_mixes.configuration_of),
}


def run(kind: str, first: int, count: int, device: Any, until: float, path: Path) -> bool:
    """A range of seeds; whether all came out right."""
    runner = RUNNERS[kind](devices.choose(device))
    state: State = {"next": first, "counts": {}, "wrong": [], **machine(device)}
    now = os.open(f"{path}.now", os.O_WRONLY | os.O_CREAT, 0o644)
    _save(state, path)
    seed, began = first, time.monotonic()

    def watch() -> None:
        last, since = seed, began
        while True:
            time.sleep(1)
            if seed != last:
                last, since = seed, time.monotonic()
            elif time.monotonic() - since > LONGEST_S:
                os._exit(HANGS)

    threading.Thread(target=watch, daemon=True).start()
    while seed < first + count and time.time() < until and len(state["wrong"]) < MOST_WRONG:
        os.pwrite(now, f"{seed:20}".encode(), 0)
        try:
            runner.one(seed)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            wrong = {"seed": seed, "kind": kind, "where": runner.about(seed), "what": text[:2000]}
            state["wrong"].append(wrong)
            traceback.print_exc()
        seed += 1
        if (seed - first) % SAVED_EVERY == 0 or kind == "kernels":
            state |= {"next": seed, "counts": dict(runner.counts)}
            _save(state, path)
    state |= {"next": seed, "counts": dict(runner.counts)}
    _save(state, path)
    return not state["wrong"]


def machine(device: Any) -> dict[str, str]:
    """What it runs on."""
    device = devices.choose(device)
    return {
        "device": device.name.strip(),
        "platform": device.platform.version.strip(),
        "driver": device.driver_version.strip(),
        "core": core.ABOUT,
    }


def chosen(name: str) -> Any:
    """The device whose name or platform holds a text; the one by default for none."""
    if not name:
        return None
    for device in devices.devices():
        about = f"{device.name} {device.platform.name} {device.platform.version}"
        if name.lower() in about.lower():
            return device
    raise SystemExit(f"no device is called {name!r}")


def _save(state: State, path: Path) -> None:
    """At once, or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state), encoding="utf-8")
    new.replace(path)


def main(words: Sequence[str] | None = None) -> int:
    """The tool."""
    parser = argparse.ArgumentParser(description="random programs, in one process")
    parser.add_argument("--kind", choices=KINDS, default="pool")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--device", default="")
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(words)
    device = chosen(args.device)
    right = run(args.kind, args.first, args.count, device, args.until, args.out)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(not right)  # what a failed program left does not keep the process


if __name__ == "__main__":
    sys.exit(main())
