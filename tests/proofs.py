"""Random epochs as the library makes them, and faults that are planted in them: what a proof says.

    python tests/proofs.py --graphs 10000 --json proofs.json

In: seeds. Out: words and what each task touches, which a proof has to accept; the same with a fault
of a kind, which it has to name. A graph is random launches on a few bases. Their bytes are compared
one by one in `shared_pairs`, which knows nothing of spans; a fault is planted only where it does
harm by that measure.
"""

# Long because: each kind of fault is a function of its own.

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from acs_cl import core
from acs_cl.benchmarks.suite import documents, provenance
from acs_cl.host.progress import Progress
from acs_cl.ranges import intervals
from acs_cl.records import EVERYTHING, Access, Span
from acs_cl.scheduler import layout, proof
from acs_cl.scheduler.orders import ORDERS

GROUPS, LAUNCHES, BODIES = 4, 17, 5
EACH = 5
"""Faults of each kind."""
SEEDS = 400
"""In which there has to be a place for so many."""
SAVED_EVERY = 500


class Made(NamedTuple):
    """An epoch that the library made."""

    words: proof.Words
    accesses: list[Access]
    sent: proof.Sent

    def faults(self) -> tuple[proof.Fault, ...]:
        return proof.prove(self.words, self.accesses, self.sent).faults


def span(rng: random.Random, base: int) -> Span:
    if rng.random() < 0.25:
        width = rng.choice((1, 4, 8))
        return Span(base, rng.randrange(24), rng.choice((8, 16)), rng.randint(2, 4), width)
    width = rng.choice((1, 4, 16, 40))
    return Span(base, rng.randrange(64), width, 1, width)


def accesses(rng: random.Random, n: int) -> list[Access]:
    bases = rng.choice((1, 3, 12, 60))
    found = []
    for _ in range(n):
        spans = [
            tuple(span(rng, rng.randint(1, bases)) for _ in range(rng.randint(least, 2)))
            for least in (0, 1)
        ]
        if rng.random() < 0.005:
            spans[1] = (Span(EVERYTHING, 0, 1, 1, 1),)
        found.append(Access(spans[0], spans[1]))
    return found


def made(
    rng: random.Random,
    n: int = 0,
    *,
    window: int | None = None,
    wide: float | None = None,
    order: str = "",
) -> Made:
    """An epoch of random launches."""
    n = n or rng.choice((1, 2, 3, 8, 20, 33, 64, 90))
    touched = accesses(rng, n)
    hazards, recorder = core.native.Hazards(), layout.Recorder()
    share = rng.choice((0.0, 0.3, 1.0)) if wide is None else wide
    for number, access in enumerate(touched, 1):
        upstream = hazards.enter(number, access.reads, access.writes)
        tiles = rng.choice((2, 3, 17, 40)) if rng.random() < share else 1
        blob = rng.randbytes(rng.choice((0, 4, 16, 64, 68, 200)))
        shape = layout.shape((tiles * 2, 5), (2, 5), None) if rng.random() < 0.2 else None
        body = number % BODIES
        head = layout.head(body, tiles, tiles * 10, 10, 1, len(blob), shape is not None)
        recorder.add(head, blob, shape, [other - 1 for other in upstream])
    if window is None:
        window = rng.choice((0, 0, 0, 3, 100))
    order = order or rng.choice(("first_in", "first_in", "critical_path", "narrow_first"))
    image = recorder.image(
        2 * GROUPS * LAUNCHES, ORDERS[order], window, rng.choice((1, 2)), rng.random() < 0.8,
    )  # fmt: skip
    return Made(image.words.copy(), touched, proof.Sent(GROUPS, LAUNCHES, BODIES))


def bytes_of(spans: tuple[Span, ...]) -> set[tuple[int, int]]:
    return {(s.base, at) for s in spans for low, end in intervals(s) for at in range(low, end)}


def shared_pairs(touched: list[Access]) -> set[tuple[int, int]]:
    """The pairs that have to be ordered, by their bytes one by one."""
    reads = [bytes_of(access.reads) for access in touched]
    writes = [bytes_of(access.writes) for access in touched]
    every = [any(s.base == EVERYTHING for s in (*a.reads, *a.writes)) for a in touched]
    return {
        (a, b)
        for b in range(len(touched))
        for a in range(b)
        if every[a] or every[b] or writes[a] & (reads[b] | writes[b]) or reads[a] & writes[b]
    }


# ---- planted faults ------------------------------------------------------------------------------


class Parts:
    """The words of an epoch, to be changed."""

    def __init__(self, one: Made) -> None:
        self.words, self.accesses, self.sent = one.words.copy(), list(one.accesses), one.sent
        header = [int(word) for word in self.words[:11]]
        _, self.n, self.at_records, self.at_successors, self.n_successors = header[:5]
        self.at_blocks, _, mask, self.at_initial, self.n_initial, self.at_counts = header[5:]
        self.capacity, self.rows = mask + 1, -(-self.n // 32)

    def record(self, task: int) -> proof.Words:
        return self.words[self.at_records + 32 * task :][:32]

    def successors(self, task: int) -> proof.Words:
        record = self.record(task)
        return self.words[self.at_successors + int(record[2]) :][: int(record[3])]

    def listed(self) -> list[tuple[int, int, int]]:
        """Edges of the list: upstream, downstream, and place in the words."""
        return [
            (task, (int(word) & proof.TASK_MASK) - 1, self.at_successors + int(record[2]) + i)
            for task in range(self.n)
            for record in [self.record(task)]
            for i, word in enumerate(self.successors(task))
        ]

    def heirs(self) -> list[tuple[int, int]]:
        pairs = [(t, (int(self.record(t)[1]) & proof.TASK_MASK) - 1) for t in range(self.n)]
        return [(task, heir) for task, heir in pairs if heir >= 0]

    def set_count(self, task: int, count: int) -> None:
        """In both places, as one who believes in it would."""
        self.words[self.at_counts + task] = count
        self.words[self.state(task)] = count

    def count(self, task: int) -> int:
        return int(self.words[self.at_counts + task])

    def state(self, task: int) -> int:
        return self.at_blocks + proof.B_STATE + task % 32 * self.rows + task // 32

    def slot(self, number: int) -> int:
        ring = self.at_blocks + proof.B_STATE + 64 * self.rows
        return ring + number % 32 * (self.capacity // 32) + number // 32

    def seal(self) -> None:
        """The header as one has it who wrote these words on purpose."""
        self.words[proof.H_CHECK] = layout.header_check(self.words[: proof.H_CHECK].tolist())

    def reference(self, task: int) -> int:
        return (int(self.record(task)[4]) - 1) << proof.TASK_BITS | (task + 1)

    def made(self) -> Made:
        return Made(self.words, self.accesses, self.sent)


def is_needed(parts: Parts, edges: set[tuple[int, int]]) -> bool:
    """Whether with these edges a pair that shares bytes is not ordered."""
    above: list[set[int]] = [set() for _ in range(parts.n)]
    for upstream, task in sorted(edges, key=lambda edge: edge[1]):
        above[task] |= {upstream} | above[upstream]
    return any(a not in above[b] for a, b in shared_pairs(parts.accesses))


def all_edges(parts: Parts) -> set[tuple[int, int]]:
    return {(a, b) for a, b, _ in parts.listed()} | set(parts.heirs())


Planter = Callable[[Parts, random.Random], bool]
"""Plants a fault; False if there is no place for it in this epoch."""

PLANTERS: dict[str, tuple[str, Planter]] = {}


def plants(kind: str, **how: object) -> Callable[[Planter], Planter]:
    """Register what plants a fault that the proof has to call by this kind."""

    def register(planter: Planter) -> Planter:
        PLANTERS[planter.__name__] = kind, planter
        HOW[planter.__name__] = how
        return planter

    return register


HOW: dict[str, dict[str, object]] = {}


@plants("order", window=0)
def an_edge_is_missing_and_nobody_counts_it(parts: Parts, rng: random.Random) -> bool:
    edges = parts.listed()
    rng.shuffle(edges)
    for upstream, task, place in edges:
        if parts.count(task) > 1 and is_needed(parts, all_edges(parts) - {(upstream, task)}):
            first = parts.at_successors + int(parts.record(upstream)[2])
            last = first + int(parts.record(upstream)[3]) - 1
            parts.words[place] = parts.words[last]
            parts.record(upstream)[3] -= 1
            parts.set_count(task, parts.count(task) - 1)
            return True
    return False


@plants("order", window=0)
def two_edges_lead_to_each_others_tasks(parts: Parts, rng: random.Random) -> bool:
    edges = parts.listed()
    rng.shuffle(edges)
    for a, below_a, at_a in edges:
        for b, below_b, at_b in edges:
            if len({a, b, below_a, below_b}) == 4 and a < below_b and b < below_a:
                swapped = all_edges(parts) - {(a, below_a), (b, below_b)}
                if is_needed(parts, swapped | {(a, below_b), (b, below_a)}):
                    parts.words[[at_a, at_b]] = parts.words[[at_b, at_a]]
                    return True
    return False


@plants("order")
def a_launch_writes_a_byte_more(parts: Parts, rng: random.Random) -> bool:
    if parts.n < 2:
        return False
    edges = all_edges(parts)
    order = list(range(1, parts.n))
    rng.shuffle(order)
    for task in order:
        other = rng.randrange(task)
        before = parts.accesses[task], parts.accesses[other]
        more = (Span(999, 5, 1, 1, 1),)
        parts.accesses[task] = before[0]._replace(writes=before[0].writes + more)
        parts.accesses[other] = before[1]._replace(reads=before[1].reads + more)
        if is_needed(parts, edges):
            return True
        parts.accesses[task], parts.accesses[other] = before
    return False


@plants("order", window=0)
def an_heir_does_not_wait(parts: Parts, rng: random.Random) -> bool:
    for task, heir in rng.sample(parts.heirs(), len(parts.heirs())):
        if int(parts.record(heir)[4]) != 1 or not is_needed(
            parts, all_edges(parts) - {(task, heir)}
        ):
            continue
        parts.record(task)[1] = 0
        parts.record(task)[0] &= ~np.uint32(proof.F_FUSED | proof.F_GANG)
        at = parts.at_initial - 1  # it is ready at first, and takes a word that nobody uses
        if parts.words[at] or at < parts.at_successors + parts.n_successors:
            continue
        parts.words[at] = heir + 1
        parts.words[8], parts.words[9] = at, parts.n_initial + 1
        rest = parts.words[parts.at_initial : parts.at_counts].copy()
        for slot, entry in enumerate([heir + 1, *rest.tolist()]):
            parts.words[parts.slot(slot)] = entry
        parts.words[parts.at_blocks + proof.B_TAIL] = parts.n_initial + 1
        parts.seal()
        return True
    return False


@plants("count", window=0)
def a_count_is_too_high(parts: Parts, rng: random.Random) -> bool:
    tasks = [task for task in range(parts.n) if parts.count(task)]
    if tasks:
        task = rng.choice(tasks)
        parts.set_count(task, parts.count(task) + rng.choice((1, 1, 5)))
    return bool(tasks)


def lower_a_count(parts: Parts, rng: random.Random, first: int) -> bool:
    """Have a task, of the first one named on, wait for one less than it follows."""
    tasks = [task for task in range(first, parts.n) if parts.count(task) > 1]
    if tasks:
        task = rng.choice(tasks)
        parts.set_count(task, parts.count(task) - 1)
    return bool(tasks)


@plants("count")
def a_count_is_too_low(parts: Parts, rng: random.Random) -> bool:
    return lower_a_count(parts, rng, 0)


@plants("count", window=3)
def a_task_does_not_wait_for_the_window(parts: Parts, rng: random.Random) -> bool:
    return lower_a_count(parts, rng, 3)


@plants("heir", window=0)
def an_heir_is_counted_too(parts: Parts, rng: random.Random) -> bool:
    heirs = parts.heirs()
    if heirs:
        _, heir = rng.choice(heirs)
        parts.set_count(heir, 1)
    return bool(heirs)


@plants("heir", window=0)
def two_tasks_have_one_heir(parts: Parts, rng: random.Random) -> bool:
    for task, heir in parts.heirs():
        for other in range(heir):
            if other != task and not parts.record(other)[1] and not parts.record(other)[3]:
                parts.record(other)[1] = parts.record(task)[1]
                return True
    return False


@plants("circle")
def an_edge_leads_back(parts: Parts, rng: random.Random) -> bool:
    edges = [edge for edge in parts.listed() if edge[0] > 0]
    if edges:
        upstream, _, place = rng.choice(edges)
        parts.words[place] = parts.reference(rng.randrange(upstream))
    return bool(edges)


@plants("circle")
def a_task_waits_for_itself(parts: Parts, rng: random.Random) -> bool:
    edges = parts.listed()
    if edges:
        upstream, _, place = rng.choice(edges)
        parts.words[place] = parts.reference(upstream)
    return bool(edges)


@plants("circle", window=0)
def an_heir_is_before_its_task(parts: Parts, rng: random.Random) -> bool:
    heirs = [task for task, _ in parts.heirs() if task]
    if heirs:
        task = rng.choice(heirs)
        parts.record(task)[1] = parts.reference(rng.randrange(task))
    return bool(heirs)


@plants("successor")
def a_successor_is_no_task(parts: Parts, rng: random.Random) -> bool:
    edges = parts.listed()
    if edges:
        parts.words[rng.choice(edges)[2]] = rng.choice((0, parts.n + 1, proof.TASK_MASK))
    return bool(edges)


@plants("successor", wide=1.0)
def a_successor_is_published_in_part(parts: Parts, rng: random.Random) -> bool:
    edges = parts.listed()
    if edges:
        place = rng.choice(edges)[2]
        parts.words[place] -= np.uint32(1 << proof.TASK_BITS)
    return bool(edges)


@plants("successor")
def successors_of_two_tasks_are_the_same(parts: Parts, rng: random.Random) -> bool:
    having = [task for task in range(parts.n) if parts.record(task)[3]]
    for task, following in pairwise(having):
        parts.record(following)[2] = parts.record(task)[2]
        return True
    return False


@plants("successor")
def a_list_of_successors_ends_behind_the_list(parts: Parts, rng: random.Random) -> bool:
    having = [task for task in range(parts.n) if parts.record(task)[3]]
    if having:
        parts.record(having[-1])[3] += 1
    return bool(having)


@plants("initial", wide=1.0)
def a_tile_is_not_in_the_ring(parts: Parts, rng: random.Random) -> bool:
    last = parts.at_initial + parts.n_initial - 1
    parts.words[parts.slot(parts.n_initial - 1)] = 0
    parts.words[last] = 0
    parts.words[9] -= 1
    parts.words[parts.at_blocks + proof.B_TAIL] -= 1
    parts.seal()
    return True


@plants("initial", wide=1.0)
def a_tile_is_in_the_ring_twice(parts: Parts, rng: random.Random) -> bool:
    one, other = rng.sample(range(parts.n_initial), 2)
    parts.words[parts.at_initial + one] = parts.words[parts.at_initial + other]
    parts.words[parts.slot(one)] = parts.words[parts.at_initial + other]
    return True


@plants("initial")
def a_task_that_waits_is_in_the_ring(parts: Parts, rng: random.Random) -> bool:
    waiting = [task for task in range(parts.n) if parts.count(task)]
    if waiting:
        entry, at = rng.choice(waiting) + 1, rng.randrange(parts.n_initial)
        parts.words[parts.at_initial + at] = entry
        parts.words[parts.slot(at)] = entry
    return bool(waiting)


@plants("ring")
def the_ring_is_half_as_large(parts: Parts, rng: random.Random) -> bool:
    entries = parts.words[parts.at_initial : parts.at_initial + parts.n_initial].copy()
    ring = parts.at_blocks + proof.B_STATE + 64 * parts.rows
    tickets = int(sum(parts.record(task)[4] for task in range(parts.n))) + 2 * GROUPS * LAUNCHES
    while parts.capacity >= tickets:
        parts.capacity //= 2
    if parts.capacity < 32 or parts.capacity < parts.n_initial:
        return False
    parts.words[ring : ring + 2 * parts.capacity] = 0
    for slot, entry in enumerate(entries.tolist()):
        parts.words[parts.slot(slot)] = entry
    parts.words[7] = parts.capacity - 1
    parts.seal()
    return True


@plants("ring")
def more_groups_come_than_the_ring_is_for(parts: Parts, rng: random.Random) -> bool:
    parts.sent = parts.sent._replace(groups=parts.capacity)
    return True


@plants("ring")
def the_ring_is_no_power_of_two(parts: Parts, rng: random.Random) -> bool:
    parts.words[7] -= rng.choice((1, 7))
    parts.seal()
    return True


@plants("block")
def a_count_in_the_block_is_another(parts: Parts, rng: random.Random) -> bool:
    parts.words[parts.state(rng.randrange(parts.n))] += 1
    return True


@plants("block")
def tiles_in_the_block_are_others(parts: Parts, rng: random.Random) -> bool:
    parts.words[parts.state(rng.randrange(parts.n)) + 32 * parts.rows] += 1
    return True


@plants("block")
def the_block_is_of_another_run(parts: Parts, rng: random.Random) -> bool:
    """Of one that has ended: nothing is left to do."""
    parts.words[parts.at_blocks + proof.B_UNFINISHED] = 0
    return True


@plants("block")
def a_slot_of_the_ring_was_given_up(parts: Parts, rng: random.Random) -> bool:
    parts.words[parts.slot(rng.randrange(parts.n_initial, parts.capacity))] = 0xFFFFFFFF
    return True


@plants("hand-over", wide=0.0, window=0)
def a_fused_task_has_other_successors(parts: Parts, rng: random.Random) -> bool:
    tasks = [task for task, _ in parts.heirs() if parts.record(task)[3]]
    if tasks:
        parts.record(rng.choice(tasks))[0] |= np.uint32(proof.F_FUSED)
    return bool(tasks)


@plants("hand-over", wide=0.0, window=0)
def a_task_is_marked_as_like_an_heir_of_another_function(parts: Parts, rng: random.Random) -> bool:
    pairs = [(t, h) for t, h in parts.heirs() if parts.record(t)[0] & np.uint32(proof.F_FUSED)]
    pairs = [(t, h) for t, h in pairs if (parts.record(t)[0] ^ parts.record(h)[0]) & 0xFF]
    if pairs:
        parts.record(rng.choice(pairs)[0])[0] |= np.uint32(proof.F_ALIKE)
    return bool(pairs)


@plants("hand-over", wide=0.5, window=0)
def finishers_wait_for_an_heir_of_one_tile(parts: Parts, rng: random.Random) -> bool:
    tasks = [t for t, h in parts.heirs() if parts.record(t)[4] > 1 and parts.record(h)[4] == 1]
    if tasks:
        parts.record(rng.choice(tasks))[0] |= np.uint32(proof.F_GANG)
    return bool(tasks)


@plants("record")
def there_is_no_such_function(parts: Parts, rng: random.Random) -> bool:
    parts.record(rng.randrange(parts.n))[0] |= np.uint32(0x80)
    return True


@plants("record")
def a_record_has_a_tile_more_than_items_for_it(parts: Parts, rng: random.Random) -> bool:
    parts.record(rng.randrange(parts.n))[5] -= np.uint32(10)
    return True


@plants("record")
def arguments_lie_behind_the_region(parts: Parts, rng: random.Random) -> bool:
    record = parts.record(rng.randrange(parts.n))
    record[0] |= np.uint32(40 << 16)
    record[7] = len(parts.words) - rng.randrange(40)
    return True


@plants("record")
def arguments_are_the_counts(parts: Parts, rng: random.Random) -> bool:
    tasks = [task for task in range(parts.n) if parts.record(task)[7]]
    if tasks:
        parts.record(rng.choice(tasks))[7] = parts.at_counts
    return bool(tasks)


@plants("record")
def two_tasks_have_the_same_arguments(parts: Parts, rng: random.Random) -> bool:
    tasks = [task for task in range(parts.n) if parts.record(task)[7]]
    if len(tasks) > 1:
        one, other = rng.sample(tasks, 2)
        parts.record(one)[7] = parts.record(other)[7]
    return len(tasks) > 1


@plants("record")
def a_task_that_decides_is_marked_plain(parts: Parts, rng: random.Random) -> bool:
    record = parts.record(rng.randrange(parts.n))
    record[10], record[0] = 4096, record[0] | np.uint32(proof.F_PLAIN)
    return True


@plants("region")
def the_blocks_begin_in_the_counts(parts: Parts, rng: random.Random) -> bool:
    parts.words[5] = parts.at_counts
    parts.seal()
    return True


@plants("region")
def a_block_is_too_small(parts: Parts, rng: random.Random) -> bool:
    parts.words[6] = proof.B_STATE + 64 * parts.rows
    parts.seal()
    return True


@plants("region")
def the_next_run_uses_a_block_that_is_not_there(parts: Parts, rng: random.Random) -> bool:
    parts.sent = parts.sent._replace(block=2)
    return True


@plants("header")
def one_bit_of_the_header_is_another(parts: Parts, rng: random.Random) -> bool:
    parts.words[rng.randrange(15)] ^= np.uint32(1 << rng.randrange(32))
    return True


@plants("header")
def a_task_is_missing(parts: Parts, rng: random.Random) -> bool:
    parts.words[1] -= 1
    parts.seal()
    return True


def refused(seed: int) -> str:
    """What a proof has against a good graph; empty: nothing."""
    one = made(random.Random(f"graph {seed}"))
    found = proof.prove(one.words, one.accesses, one.sent)
    return str(found) if found.faults else ""


def missed(name: str, kind: str, plant: Planter) -> list[str]:
    """Plant `EACH` faults that have to be called `kind`; what was said of each that was not."""
    planted, wrong = 0, []
    for seed in range(SEEDS):
        rng = random.Random(f"{name} {seed}")
        one = made(rng, rng.randint(8, 40), **HOW[name])  # type: ignore[arg-type]
        assert not one.faults()
        parts = Parts(one)
        if not plant(parts, rng):
            continue
        found = Counter(fault.kind for fault in parts.made().faults())
        if not found[kind]:
            wrong.append(f"{name}, seed {seed}: {dict(found)}, expected {kind}")
        planted += 1
        if planted == EACH:
            return wrong
    raise AssertionError(f"{name}: {planted} of {EACH} could be planted")


def main(
    words: Sequence[str] | None = None,
    planters: Mapping[str, tuple[str, Planter]] = PLANTERS,
) -> int:
    """The tool: 1 if a good graph was refused, or a fault was not found."""
    parser = argparse.ArgumentParser(description="proofs of random graphs, and of planted faults")
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="where the report goes")
    args = parser.parse_args(words)
    say, began = Progress(), perf_counter()
    report: dict[str, Any] = {
        "what": "proofs of random graphs, and of planted faults", **provenance.sources().plain(),
        "core": core.ABOUT, "graphs": 0, "refused": [], "planted": 0, "missed": [], "kinds": {},
    }  # fmt: skip

    def save() -> None:
        report["seconds"] = round(perf_counter() - began, 1)
        if args.json:
            documents.write(args.json, report)

    for name, (kind, plant) in planters.items():
        report["missed"] += missed(name, kind, plant)
        report["planted"] += EACH
        report["kinds"][kind] = report["kinds"].get(kind, 0) + EACH
    for seed in range(args.graphs):
        if seed % SAVED_EVERY == 0:
            say(f"{seed} graphs", seed / args.graphs)
            save()
        if found := refused(seed):
            report["refused"].append({"seed": seed, "what": found})
        report["graphs"] = seed + 1
    say.end()
    save()
    wrong = [*report["refused"], *report["missed"]]
    print(
        f"{report['graphs']} good graphs, {len(report['refused'])} refused; {report['planted']} "
        f"planted faults, {len(report['missed'])} not found; {report['seconds']} s"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
