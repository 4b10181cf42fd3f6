"""Random programs that mix everything: kernels, transfers, graphs, queues, failures and ends.

    python tests/random_mixes.py --seed 12                     # one program
    python tests/random_mixes.py --first 0 --count 500         # many
    python tests/random_mixes.py --seed 12 --cut               # the least steps that still fail

In: a seed. Out: counts of steps, or an `AssertionError`. A program is steps, some of which come
again and again with small changes, on one to three runtimes of one context, from one thread or
several. `mixed` says what the steps do. What takes too long is ended, with the stacks of all
threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
os.environ.setdefault("ACS_CL_POCL_CPU", "auto")

import numpy as np
import pyopencl as cl
from fuzz.threads import in_threads
from mixed import kernels, mix
from mixed.mix import Mix, Step
from mixed.places import Place, options
from pyopencl.tools import clear_first_arg_caches

import acs_cl as acs
from acs_cl import devices

LONGEST_S = 120.0
"""A program that takes longer hangs."""
WEIGHTS = {
    "launch": 30, "gated": 3, "open": 3, "many": 5, "transfer": 8, "task": 4, "fails": 2,
    "heal": 2, "get": 8, "settle": 2, "check": 3, "wait": 4, "finish": 3, "renew": 4, "hop": 3,
    "collect": 3, "wrong": 3, "record": 3, "replay": 9, "update": 3, "swap": 2, "look": 2,
    "arrange": 1, "save": 1, "queue": 10, "close": 1, "together": 1,
}  # fmt: skip
ALWAYS = ("launch", "check")


class Program(NamedTuple):
    """Options of its runtimes, and the steps of each thread. `collects`: how many new objects have
    garbage collected; `switches`: seconds after which another thread of Python runs. `closes`: the
    step of the first thread at which it closes what all of them use; -1: it does not."""

    places: list[dict[str, Any]]
    threads: list[list[Step]]
    collects: int
    switches: float
    closes: int


def program(seed: int) -> Program:
    """Draw a program."""
    chance = random.Random(f"mixes {seed}")
    count = chance.choice([1, 1, 2, 3])
    threads = chance.choice([1, 1, 1, 1, 2, 3])
    places = [options(chance) for _ in range(count)]
    drawn = [_steps(chance, threads > 1) for _ in range(threads)]
    collects, switches = chance.choice([700, 700, 700, 5, 50]), chance.choice([5e-3, 5e-3, 1e-5])
    closes = -1
    if threads > 1 and chance.random() < 0.15:
        closes = chance.randrange(len(drawn[0]))
    return Program(places, drawn, collects, switches, closes)


def _steps(chance: random.Random, is_threaded: bool) -> list[Step]:
    leaves = {name for name in WEIGHTS if name not in ALWAYS and chance.random() < 0.3}
    if is_threaded:
        leaves |= {"close"}
    weights = {name: weight * chance.choice([1, 1, 1, 4])
               for name, weight in WEIGHTS.items() if name not in leaves}  # fmt: skip
    names, many = list(weights), list(weights.values())

    def one() -> Step:
        return Step(chance.choices(names, many)[0], chance.randrange(1 << 30))

    steps = [one() for _ in range(chance.choice([5, 20, 60]))]
    for _ in range(chance.choice([0, 1, 2, 3])):
        body = [one() for _ in range(chance.choice([3, 8, 12, 30]))]
        trouble = chance.choice([0.0, 0.1, 0.4])
        for _ in range(chance.choice([4, 8, 16])):
            steps += [
                step._replace(spice=chance.randrange(1, 1 << 30)) if chance.random() < 0.2 else step
                for step in body
            ]
            if chance.random() < 0.7:
                steps.append(Step("check", chance.randrange(4)))
            if chance.random() < trouble:
                at = chance.randrange(len(body))
                if chance.random() < 0.5:
                    body[at] = one()
                else:
                    steps.append(one())
        steps += [one() for _ in range(chance.choice([0, 5, 20]))]
    return steps


class Ways:
    """Runs programs, each on runtimes of its own."""

    def __init__(self, device: Any = None) -> None:
        self.device = devices.choose(device)
        most = kernels.FEWER_TURNS.get(self.device.platform.name.strip())
        if most:
            kernels.TURNS[:] = [min(most, turns) for turns in kernels.TURNS]

    def one(self, seed: int) -> Counter[str]:
        """Run what a seed stands for."""
        return self.run(program(seed), seed)

    def run(self, drawn: Program, seed: int) -> Counter[str]:
        """Run a program; how often each kind of step was done."""
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("error", acs.errors.CheckWarning)
            return self._run(drawn, seed)

    def _run(self, drawn: Program, seed: int) -> Counter[str]:
        places = [Place(self.device, chosen) for chosen in drawn.places]
        alone = len(drawn.threads) == 1
        mixes = [Mix(self.device, places, seed + 31 * at, alone)
                 for at in range(len(drawn.threads))]  # fmt: skip

        def thread(at: int) -> None:
            try:
                steps(at)
            except (acs.UsageError, cl.LogicError) as error:  # the latter from calls of PyOpenCL
                if drawn.closes < 0 or "closed" not in str(error):
                    raise

        def steps(at: int) -> None:
            one = mixes[at]
            one.numpy.failed = not alone
            np.seterr(over="ignore")
            try:
                for number, step in enumerate(drawn.threads[at]):
                    if not at and number == drawn.closes:
                        one.open_gates()
                        places[0].close()
                    one.step(step)
                one.end()
            except BaseException as error:
                error.add_note(f"in step {one.counts.total()} of thread {at}, of seed {seed}")
                raise
            finally:
                one.open_gates()

        threshold, interval = gc.get_threshold(), sys.getswitchinterval()
        gc.set_threshold(drawn.collects, *threshold[1:])
        sys.setswitchinterval(drawn.switches)
        try:
            if alone:
                thread(0)
            else:
                in_threads(thread, len(mixes))
        finally:
            gc.set_threshold(*threshold)
            sys.setswitchinterval(interval)
            for place in places:
                place.close()
            # else what PyOpenCL built from its own cache would come to the next program, whose
            # queues have no source of it: then its kernels may touch any memory
            clear_first_arg_caches()
        counts: Counter[str] = Counter()
        for one in mixes:
            counts.update(one.counts)
        return counts


def configuration_of(seed: int) -> str:
    """What a seed is run on."""
    return "; ".join(", ".join(f"{name}={value}" for name, value in one.items())
                     for one in program(seed).places)  # fmt: skip


# ---- cutting down --------------------------------------------------------------------------------


def parse(text: str) -> list[list[int]]:
    """Steps to keep, of each thread: `0-4,7;2`."""
    found = []
    for part in text.split(";"):
        kept: list[int] = []
        for word in filter(None, part.split(",")):
            first, _, last = word.partition("-")
            kept += range(int(first), int(last or first) + 1)
        found.append(kept)
    return found


def shown(kept: Sequence[Sequence[int]]) -> str:
    """The text of steps to keep."""
    return ";".join(",".join(map(str, one)) for one in kept)


def kept_of(drawn: Program, kept: Sequence[Sequence[int]]) -> Program:
    """A program of some of the steps."""
    return drawn._replace(threads=[
        [steps[at] for at in places] for steps, places in zip(drawn.threads, kept, strict=True)
    ])  # fmt: skip


def fails(seed: int, kept: Sequence[Sequence[int]], times: int, limit_s: float) -> bool:
    """Whether a program fails, in processes of its own. No limit: in this one, by a wrong value."""
    if not limit_s:
        try:
            for _ in range(times):
                Ways().run(kept_of(program(seed), kept), seed)
        except Exception as error:
            return isinstance(error, (AssertionError, acs.AcsError))
        return False
    words = [sys.executable, __file__, "--seed", str(seed), "--only", shown(kept)]
    for _ in range(times):
        try:
            done = subprocess.run(words, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode:
            return True
    return False


def cut(seed: int, times: int, limit_s: float) -> list[list[int]]:
    """The least steps that still fail."""
    kept = [list(range(len(steps))) for steps in program(seed).threads]
    for thread in range(len(kept)):
        size = max(1, len(kept[thread]))
        while True:
            at, has_cut = 0, False
            while at < len(kept[thread]):
                now = [*kept]
                now[thread] = kept[thread][:at] + kept[thread][at + size :]
                if fails(seed, now, times, limit_s):
                    kept, has_cut = now, True
                    print(f"{sum(map(len, kept))} steps: --only '{shown(kept)}'", flush=True)
                else:
                    at += size
            if size == 1 and not has_cut:
                break
            size = max(1, size // 2)
    return kept


def main(words: Sequence[str] | None = None) -> int:
    """The tool."""
    parser = argparse.ArgumentParser(description="random programs that mix everything")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", default="", help="which of its steps")
    parser.add_argument("--cut", action="store_true", help="leave out what it fails without")
    parser.add_argument("--times", type=int, default=1, help="runs until a program counts as right")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LONGEST_S, help="seconds of a program")
    parser.add_argument("--show", action="store_true", help="print the steps")
    args = parser.parse_args(words)
    faulthandler.enable()
    ways = Ways()
    if args.show:
        mix.SHOWN.append(print)
    if args.cut:
        print(f"--only '{shown(cut(args.seed, args.times, args.limit))}'")
        return 0
    if args.seed is not None:
        drawn = program(args.seed)
        if args.only:
            drawn = kept_of(drawn, parse(args.only))
        print(configuration_of(args.seed))
        faulthandler.dump_traceback_later(args.limit, exit=True)
        for _ in range(args.times):
            print(dict(ways.run(drawn, args.seed)))
        return 0
    wrong = 0
    whole: Counter[str] = Counter()
    for seed in range(args.first, args.first + args.count):
        faulthandler.dump_traceback_later(args.limit, exit=True)
        print(f"seed {seed}", end=" ", flush=True)
        began = time.monotonic()
        try:
            whole.update(ways.one(seed))
            print(f"right, {time.monotonic() - began:.1f} s", flush=True)
        except Exception as error:
            wrong += 1
            print(f"WRONG {type(error).__name__}: {error} "
                  f"{getattr(error, '__notes__', '')}", flush=True)  # fmt: skip
    print(dict(whole), whole.total())
    return bool(wrong)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
