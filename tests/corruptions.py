"""Runs graphs whose words are corrupted on their way to the device, and says what came of it.

`python corruptions.py COUNT KIND...` corrupts one word in each of COUNT epochs for each kind of
word. A line says what is about to be done, so that a crash names it; another one says `error`,
`right` or `wrong`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import random
import sys
from typing import Any

import numpy as np
from graphs import SOURCE, Run, graph, prebuild
from inside import Scheduler

import acs_cl as acs
from acs_cl.scheduler import layout
from acs_cl.testing import runtime_of

VALUES = (0, 1, 2, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
RECORD_KINDS = {
    "body": 0, "heir": 1, "successors": 2, "n_successors": 3, "tiles": 4, "items": 5,
    "tile_items": 6, "args": 7, "shape": 8, "local": 9, "when": 10, "size": 12, "parent": 15,
}  # fmt: skip
BLOCK_KINDS = {"head": 0, "tail": 32, "unfinished": 64, "gone": 96, "fault": 128, "inserting": 160}
KINDS = ("header", *RECORD_KINDS, "edges", "initial", "counts", *BLOCK_KINDS, "count", "left",
         "queue", "closes")  # fmt: skip

SURE = {"header", "successors", "n_successors", "tiles", "args", "shape", "parent", "edges"}
SURE |= {"initial", "counts", "unfinished", "gone", "fault", "head", "tail", "count", "left"}
SURE |= {"closes"}
"""Kinds after which no wrong result can look like a right one. With the others a word may come to
mean another launch that could be meant: another kernel, fewer items, another task."""


def changed(rng: random.Random, word: int) -> int:
    """Another value."""
    while True:
        new = rng.choice(
            (rng.choice(VALUES), word ^ 1 << rng.randrange(32), rng.getrandbits(32), word + 1,
             word - 1)
        ) & 0xFFFFFFFF  # fmt: skip
        if new != word:
            return new


def corrupt(rng: random.Random, image: layout.Image, kind: str) -> str:
    """Change one word; what was done."""
    words = image.words
    n, records, edges_at, edges = (int(words[i]) for i in (1, 2, 3, 4))
    capacity, initial, n_initial, counts = int(words[7]) + 1, *(int(words[i]) for i in (8, 9, 10))
    state = image.block + layout.STATE_WORD
    places = state + layout.task_places(n)
    task = rng.randrange(n)
    if kind == "edges" and not edges:
        return "edges of no task"
    if kind == "header":
        at = rng.randrange(15)
    elif kind in RECORD_KINDS:
        at = records + 32 * task + RECORD_KINDS[kind]
    elif kind in BLOCK_KINDS:
        at = image.block + BLOCK_KINDS[kind] + (rng.randrange(4) if kind == "inserting" else 0)
    elif kind == "edges":
        at = edges_at + rng.randrange(edges)
    elif kind == "initial":
        at = initial + rng.randrange(n_initial)
    elif kind == "counts":
        at = counts + task
    elif kind in ("queue", "closes"):
        at = state + 64 * -(-n // 32) + (rng.randrange(capacity) if kind == "queue" else 0)
    else:
        at = int(places[task]) + (32 * -(-n // 32) if kind == "left" else 0)
    before = int(words[at])
    new = changed(rng, before)
    if kind == "closes":  # what no entry is: a group that ends a round of a loop says it to itself
        new = 0xFFFFFFFF
    if kind in ("args", "shape"):  # inside the region arguments would be what they are not
        new = rng.choice((len(words) - 9 + rng.randrange(9), 0xFFFFFFFF - rng.randrange(70)))
    if kind in ("when", "size"):  # an address that may be read, of the task's first argument
        record = records + 32 * task
        words[record] &= ~np.uint32(layout.PLAIN)
        words[at : at + 2] = words[record + layout.INLINE_WORD :][:2]
        words[record + layout.UPTO] = new  # of the size, else nobody asks
        return f"{kind} of task {task}: an address at word {at}, and {new:#x} as the bound"
    words[at] = new
    return f"{kind} of task {task}: word {at} of {len(words)} from {before:#x} to {new:#x}"


def main(count: int, kinds: list[str]) -> None:
    """Try each kind of word so many times."""
    rt = acs.Runtime(backend="device")
    program = rt.build(SOURCE)
    prebuild(program, 4)
    plan: list[tuple[random.Random, str]] = []

    def change(image: layout.Image) -> None:
        if plan:
            print(corrupt(plan[0][0], image, plan.pop()[1]), flush=True)

    Scheduler(rt).change_words(change)
    for kind in kinds:
        for seed in range(count):
            faulthandler.dump_traceback_later(240, exit=True)
            rng = random.Random(f"{kind} {seed}")
            print(f"{kind} {seed}", flush=True)
            with Scheduler(rt).kept():
                once(program, rng, kind, plan)
    x = Run(program, graph(random.Random(1), 20))
    x.launch_all().check()
    rt.close()
    print("done", flush=True)


def once(program: acs.Program, rng: random.Random, kind: str, plan: list[Any]) -> None:
    """One epoch, with one word changed."""
    rt = runtime_of(program)
    scheduler = Scheduler(rt)
    kernels = rng.choice((("node",), ("node", "flat"), ("big", "node"), ("turn", "swap")))
    if kind in ("local", "body") and "turn" in kernels:
        kernels = ("node",)  # where groups work together a wrong size is wrong memory
    tasks = graph(rng, rng.randint(5, 40), kernels=kernels, sizes=(1, 64, 1000))
    scheduler.set(
        window=rng.choice((2, 3, 5) if kind == "inserting" else (0, 0, 0, 3, 100)),
        turns=rng.choice((1 << 30, 1 << 30, 1, 2)),
        most_tasks=len(tasks),
        polls=rng.choice((0, 0, 5)),
    )
    one = Run(program, tasks)
    rt.finish()
    plan.append((rng, kind))
    try:
        one.launch_all().check()
        print("-> right", flush=True)
    except acs.PoisonedError as error:
        told = "scheduler" in str(error) or (kind == "size" and "its count" in str(error))
        print("-> error" if told else f"-> {error!r}", flush=True)
    except AssertionError as error:
        print("-> wrong", str(error)[:200], flush=True)
    plan.clear()
    with contextlib.suppress(acs.PoisonedError):
        rt.finish()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
