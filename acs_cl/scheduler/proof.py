"""Proofs: the words of an epoch keep the order that the bytes of its launches need.

Input: the words as the device has them, the access of each launch, and how the scheduler will be
launched. Output: a `Proof`, or the faults that were found. Pure. It is written a second time on
purpose: it shares nothing with the code that makes the words, so one mistake is not made twice. The
layout is that of `kernels_cl/descriptor.h`.

What is proven of every run, in whatever order groups take their tiles:

- No word names a place outside of the region, and no two parts of it share a word.
- Edges lead from lower to higher tasks, so there is no circle.
- A task starts once, when all of its upstream has ended. The tasks that it waits for count it down.
  Nobody counts down a sole successor. The ring holds at first the tasks that wait for nothing.
- The ring has a slot for every ticket that can be given out.
- Of two launches that touch a common byte, one of them writing, the earlier one ends before the
  later one starts. For launches that are cut into bands, that holds for each pair of bands.
- Bands of a launch have all of its tiles, each once.
"""

# Long because: the parts of an epoch are proven in the order in which they lie in it.

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..ranges import overlap
from ..records import EVERYTHING, Access, NamedTuple, Span

Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

VERSION = 0xAC500003
HEADER_WORDS, RECORD_WORDS = 32, 32
H_CHECK = 15
B_TAIL, B_UNFINISHED, B_STATE = 32, 64, 192
TASK_BITS, TASK_MASK = 20, 0xFFFFF
F_FUSED, F_GANG, F_PLAIN, F_BAND, F_ALIKE = 0x100, 0x200, 0x400, 0x1000, 0x2000
S_WORDS = 10
INLINE_WORDS = 16
MOST_TILES = 4096

MOST_TOLD = 16
"""Faults that are told one by one."""


class Sent(NamedTuple):
    """Say how the scheduler is launched for an epoch."""

    groups: int
    """Groups of a launch at most."""
    launches: int
    """Launches of the scheduler for one run at most."""
    bodies: int
    """Functions that the scheduler can call."""
    block: int = 0
    """The block that the run uses."""


class Fault(NamedTuple):
    """Say what is wrong: `kind` is a part of the proof, `tasks` are the tasks concerned."""

    kind: str
    text: str
    tasks: tuple[int, ...] = ()


class Proof(NamedTuple):
    """Say what was proven of the words of an epoch, or why nothing was."""

    tasks: int
    """Launches. The bands of a launch count as one."""
    edges: int
    pairs: int
    """Pairs of launches that touch a common byte, one of them writing."""
    slots: int
    """Slots of the ring."""
    tickets: int
    """Tickets that can be given out at most."""
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        if self.faults:
            return "; ".join(fault.text for fault in self.faults[:MOST_TOLD])
        return (
            f"{self.tasks:,} launches, {self.edges:,} edges without a circle, counts right, "
            f"{self.pairs:,} pairs that share bytes in order, {self.slots:,} slots for at most "
            f"{self.tickets:,} tickets"
        )


class _Epoch(NamedTuple):
    """The parts of an epoch. All are inside its words."""

    words: Words
    tasks: int
    records: Longs
    """A row for each task."""
    tiles: Longs
    """How many tiles each task has."""
    first: Longs
    """The number of its first tile in its launch."""
    spread: Longs
    """For a band whose tiles are not in a row. Low half: tiles in a row. High half: how far behind
    them the next ones begin."""
    successors: Longs
    initial: Longs
    counts: Longs
    window: int
    capacity: int
    parts: tuple[tuple[str, int, int], ...]
    """Name, place and words of each part, without the arguments, which lie between them."""
    head: Longs
    """The block up to its state."""
    state: Longs
    left: Longs
    ring: Longs


def prove(
    words: Words, accesses: Sequence[Access], sent: Sent, launches: Sequence[int] = ()
) -> Proof:
    """Prove an epoch. `accesses`: of each task, in program order. `launches`: the launch of each
    task, if some are bands; -1: it runs nothing."""
    faults: list[Fault] = []
    many = len({one for one in launches if one >= 0}) if launches else len(accesses)
    epoch = _opened(words, len(accesses), sent, faults)
    if epoch is None:
        return Proof(many, 0, 0, 0, 0, tuple(faults))
    faults += _records(epoch, sent)
    faults += _bands(epoch, launches or range(epoch.tasks))
    edges = [] if faults else list(_edges(epoch, faults))
    tickets = int(epoch.tiles.sum()) + 2 * sent.launches * sent.groups
    faults += _counts(epoch, edges)
    faults += _initial(epoch)
    faults += _block(epoch)
    faults += _hand_over(epoch)
    if epoch.capacity < tickets:
        faults.append(
            Fault("ring", f"the ring has {epoch.capacity:,} slots for {tickets:,} tickets")
        )
    before = _before(epoch.tasks, edges)
    pairs = 0
    if before is not None:
        pairs, unordered = _order(accesses, before, launches)
        faults += unordered
    return Proof(many, len(edges), pairs, epoch.capacity, tickets, tuple(faults))


# ---- the region ----------------------------------------------------------------------------------


def _opened(words: Words, tasks: int, sent: Sent, faults: list[Fault]) -> _Epoch | None:
    """Take an epoch apart, unless a part of it lies where it cannot."""
    header = _header(words, faults)
    if header is None:
        return None

    def wrong(kind: str, text: str) -> None:
        faults.append(Fault(kind, text))

    (_, n, records, successors, n_successors, blocks, block_words, mask, initial, n_initial, counts,
     window, _, total, loop) = header  # fmt: skip
    if loop:
        wrong("header", "the words are those of a loop")
    if n != tasks:
        wrong("header", f"the header says {n} tasks, there are {tasks} launches")
    if total != len(words):
        wrong("header", f"the header says {total} words, there are {len(words)}")
    capacity, rows = mask + 1, -(-n // 32)
    if capacity < 32 or capacity & mask:
        wrong("ring", f"a ring of {capacity} slots is not a power of two from 32 on")
    if block_words < B_STATE + 64 * rows + capacity:
        wrong("region", "a block is too small for its counts and its ring")
    parts = [
        ("header", 0, HEADER_WORDS),
        ("records", records, n * RECORD_WORDS),
        ("successors", successors, n_successors),
        ("initial entries", initial, n_initial),
        ("counts", counts, n),
        ("blocks", blocks, (sent.block + 1) * block_words),
    ]
    parts.sort(key=lambda part: part[1:])
    faults += _overlaps(parts, len(words))
    if faults:
        return None
    longs = words.astype(np.int64)
    table = longs[records:][: n * RECORD_WORDS].reshape(n, RECORD_WORDS)
    block = longs[blocks + sent.block * block_words :][:block_words]
    state, numbers, slots = block[B_STATE:], np.arange(n), np.arange(capacity)
    places = (numbers & 31) * rows + (numbers >> 5)
    return _Epoch(
        words=words,
        tasks=n,
        records=table,
        tiles=table[:, 4] & 0xFFFF,
        first=table[:, 4] >> 16,
        spread=table[:, 15],
        successors=longs[successors:][:n_successors],
        initial=longs[initial:][:n_initial],
        counts=longs[counts:][:n],
        window=window,
        capacity=capacity,
        parts=tuple(parts),
        head=block[:B_STATE],
        state=state[places],
        left=state[32 * rows + places],
        ring=state[64 * rows :][((slots & 31) * (capacity >> 5)) + (slots >> 5)],
    )


def _header(words: Words, faults: list[Fault]) -> list[int] | None:
    """Return the words of the header without its check sum, unless that is wrong."""
    if len(words) < HEADER_WORDS:
        faults.append(Fault("header", f"{len(words)} words are too few for a header"))
        return None
    *header, told = (int(word) for word in words[: H_CHECK + 1])
    check = 0
    for word in header:
        check = (check ^ word) * 16777619 & 0xFFFFFFFF
    if header[0] != VERSION or check != told:
        text = "the header is not one of this version, or not as it was written"
        faults.append(Fault("header", text))
        return None
    return header


def _overlaps(parts: Sequence[tuple[str, int, int]], many_words: int) -> Iterator[Fault]:
    """Check that the parts of an epoch lie behind one another in its words."""
    end, last = 0, "nothing"
    for name, at, many in parts:
        if at < end and many:
            yield Fault("region", f"{name} begin inside of {last}")
        if at + many > many_words:
            yield Fault("region", f"{name} end behind the region")
        end, last = max(end, at + many), name


# ---- tasks ---------------------------------------------------------------------------------------


def _each(wrong: Truths, kind: str, text: str) -> Iterator[Fault]:
    """Yield a fault for each task whose bit in `wrong` is set."""
    for task in np.flatnonzero(wrong)[:MOST_TOLD].tolist():
        yield Fault(kind, f"task {task}: {text}", (task,))


def _records(epoch: _Epoch, sent: Sent) -> Iterator[Fault]:
    """Check that every record describes its tiles, and names places inside the region."""
    records, words = epoch.records, len(epoch.words)
    body, items, tile_items, args, shape = (records[:, i] for i in (0, 5, 6, 7, 8))
    blob, tiles = body >> 16, epoch.tiles
    yield from _each((body & 0xFF) >= sent.bodies, "record", "there is no such body")
    bad = (tiles < 1) | (tiles > MOST_TILES)
    yield from _each(bad, "record", f"its tiles are not 1 to {MOST_TILES}")
    behind = epoch.first + tiles
    band = (body & F_BAND) != 0
    spread = np.where(band, epoch.spread, 0)
    run, at = np.maximum(spread & 0xFFFF, 1), tiles - 1
    in_launch = np.where(spread, at // run * (spread >> 16) + at % run, at)
    rest, last = behind * tile_items - items, (epoch.first + in_launch) * tile_items
    wrong = np.where(band, last >= np.maximum(items, 1), (rest < 0) | (rest >= tile_items))
    yield from _each(wrong, "record", "its tiles are not its items")
    yield from _each(
        ~band & (epoch.first != 0), "record", "it is no band, and lacks its first tiles"
    )
    outside = (records[:, 2] + records[:, 3]) > len(epoch.successors)
    yield from _each(outside, "successor", "its successors are outside of the list")
    yield from _each((args == 0) & (blob > INLINE_WORDS), "record", "its arguments do not fit")
    yield from _each((args != 0) & (args + blob > words), "record", "its arguments are outside")
    yield from _each((shape != 0) & (shape + S_WORDS > words), "record", "its sizes are outside")
    yield from _in_parts(epoch, args, blob * (args != 0), "arguments")
    yield from _in_parts(epoch, shape, S_WORDS * (shape != 0), "sizes")
    own = np.flatnonzero(args)
    own = own[np.argsort(args[own], kind="stable")]
    shared = args[own][:-1] + blob[own][:-1] > args[own][1:]
    for one, other in zip(own[:-1][shared].tolist(), own[1:][shared].tolist(), strict=True):
        text = f"tasks {one} and {other} have arguments in the same words"
        yield Fault("record", text, (one, other))
    plain = (body & F_PLAIN) != 0
    decides = (records[:, [8, 10, 11, 12, 13]] != 0).any(axis=1) | (args != 0) | (spread != 0)
    yield from _each(plain & decides, "record", "it is marked plain, and is not")


def _bands(epoch: _Epoch, launches: Sequence[int]) -> Iterator[Fault]:
    """Check that the tasks of a launch have all of its tiles, each once."""
    of: dict[int, list[int]] = {}
    for task, launch in enumerate(launches):
        if launch >= 0:
            of.setdefault(launch, []).append(task)
        elif epoch.records[task, 5]:
            yield Fault("band", f"task {task}: it is of no launch, and has work-items", (task,))
    flags = epoch.records[:, 0]
    for tasks in of.values():
        if len(tasks) == 1 and not flags[tasks[0]] & F_BAND:
            continue
        sizes = {tuple(epoch.records[task, 5:7].tolist()) for task in tasks}
        own = np.sort(np.concatenate([_tiles_of_band(epoch, one) for one in tasks]))
        items, each = next(iter(sizes))
        whole = np.array_equal(own, np.arange(-(-items // max(each, 1))))
        if len(sizes) != 1 or not whole:
            text = f"tasks {tasks[0]} to {tasks[-1]} are bands, and not all tiles of one launch"
            yield Fault("band", text, tuple(tasks))


def _tiles_of_band(epoch: _Epoch, task: int) -> Longs:
    """Return the tiles of its launch that a band has."""
    at = np.arange(min(int(epoch.tiles[task]), MOST_TILES))
    run, stride = int(epoch.spread[task]) & 0xFFFF, int(epoch.spread[task]) >> 16
    return int(epoch.first[task]) + (at // run * stride + at % run if run else at)


def _in_parts(epoch: _Epoch, places: Longs, many: Longs, what: str) -> Iterator[Fault]:
    """Check that the words that records refer to lie in no other part of the epoch."""
    for name, at, words in epoch.parts:
        inside = (many > 0) & (places < at + words) & (places + many > at)
        yield from _each(inside, "record", f"its {what} lie in the {name}")


def _edges(epoch: _Epoch, faults: list[Fault]) -> Iterator[tuple[int, int]]:
    """Yield all edges. An edge that cannot be is a fault."""
    n, tiles = epoch.tasks, epoch.tiles.tolist()
    listed = epoch.successors.tolist()
    owner: dict[int, int] = {}
    for task in range(n):
        heir, first, many = (int(word) for word in epoch.records[task, 1:4])
        for place in range(first, first + many):
            if owner.setdefault(place, task) != task:
                text = f"tasks {owner[place]} and {task} have successor {place} of the list both"
                faults.append(Fault("successor", text, (owner[place], task)))
        references = listed[first : first + many]
        for reference in [*references, heir] if heir else references:
            below, last = (reference & TASK_MASK) - 1, reference >> TASK_BITS
            if not 0 <= below < n:
                text = f"task {task}: its successor {below} is none of {n} tasks"
                faults.append(Fault("successor", text, (task,)))
            elif below <= task:
                text = f"task {task}: its successor {below} does not come behind it"
                faults.append(Fault("circle", text, (task, below)))
            elif last != tiles[below] - 1:
                text = f"task {task}: it publishes {last + 1} tiles of task {below}, not all"
                faults.append(Fault("successor", text, (task, below)))
            else:
                yield task, below


def _counts(epoch: _Epoch, edges: list[tuple[int, int]]) -> Iterator[Fault]:
    """Check that each count is the number of tasks that count it down. A sole successor has
    none."""
    heirs = epoch.records[:, 1]
    inherited = np.zeros(epoch.tasks, np.int64)
    named = heirs[heirs != 0] & TASK_MASK
    inside = (named >= 1) & (named <= epoch.tasks)
    np.add.at(inherited, named[inside] - 1, 1)
    below = np.array([one for _, one in edges], np.int64)
    counted = np.bincount(below, minlength=epoch.tasks) - inherited
    if epoch.window:
        counted[_slots(epoch) :] += 1  # its insertion counts it down
        yield from _each(inherited != 0, "heir", "it is an heir, and there is a window")
    yield from _each(inherited > 1, "heir", "it is the heir of several tasks")
    bad = (inherited == 1) & ((epoch.counts != 0) | (counted != 0))
    yield from _each(bad, "heir", "it is an heir, and is counted down as well")
    yield from _each(
        (inherited != 1) & (epoch.counts != counted), "count", "its count is not its upstream"
    )


def _slots(epoch: _Epoch) -> int:
    return min(epoch.window, epoch.tasks)


def _initial(epoch: _Epoch) -> Iterator[Fault]:
    """Check that the ring first holds each tile of the tasks that wait for nothing, once."""
    heirs = epoch.records[:, 1] & TASK_MASK
    waits = epoch.counts != 0
    waits[heirs[(heirs >= 1) & (heirs <= epoch.tasks)] - 1] = True
    yield from _once(epoch, epoch.initial, ~waits, "initial", "it waits for nothing")


def _once(epoch: _Epoch, entries: Longs, wanted: Truths, kind: str, why: str) -> Iterator[Fault]:
    """Check that entries are all tiles of the wanted tasks, each once."""
    tasks, tile = (entries & TASK_MASK) - 1, entries >> TASK_BITS
    known = (tasks >= 0) & (tasks < epoch.tasks)
    if not known.all():
        yield Fault(kind, f"an entry of the ring names {tasks[~known][0]}, which is no task")
    tiles = epoch.tiles
    outside = known & (tile >= tiles[np.where(known, tasks, 0)])
    for task in np.unique(tasks[outside])[:MOST_TOLD].tolist():
        yield Fault(kind, f"task {task}: an entry names a tile that it does not have", (task,))
    different = np.unique(entries[known & ~outside])
    each = np.bincount((different & TASK_MASK) - 1, minlength=epoch.tasks)
    many = np.bincount(tasks[known], minlength=epoch.tasks)
    yield from _each((many > each) & ~outside.any(), kind, "a tile of it is in the ring twice")
    yield from _each(wanted & (each != tiles), kind, f"{why}, and not all of it is in the ring")
    yield from _each(~wanted & (many != 0), kind, "it is in the ring, and waits for others")


def _block(epoch: _Epoch) -> Iterator[Fault]:
    """Check that the block of the run is as a run has to begin."""
    fresh = np.zeros(B_STATE, np.int64)
    fresh[B_TAIL], fresh[B_UNFINISHED] = len(epoch.initial), epoch.tasks
    for place in np.flatnonzero(epoch.head != fresh)[:MOST_TOLD].tolist():
        text = f"word {place} of the block is {epoch.head[place]}, not {fresh[place]}"
        yield Fault("block", text)
    yield from _each(epoch.state != epoch.counts, "block", "its count in the block is another")
    yield from _each(epoch.left != epoch.tiles, "block", "its tiles in the block differ")
    ring = np.zeros(epoch.capacity, np.int64)
    ring[: len(epoch.initial)] = epoch.initial[: epoch.capacity]
    for slot in np.flatnonzero(epoch.ring != ring)[:MOST_TOLD].tolist():
        yield Fault("block", f"slot {slot} of the ring is not as a run begins")


def _hand_over(epoch: _Epoch) -> Iterator[Fault]:
    """Check direct hand-overs: the task has a sole successor that is as wide as itself."""
    records = epoch.records
    body, heir, others, tiles = *(records[:, i] for i in (0, 1, 3)), epoch.tiles
    single = (heir >> TASK_BITS) == 0
    fused, gang = (body & F_FUSED) != 0, (body & F_GANG) != 0
    bad = fused & ((heir == 0) | (tiles != 1) | ~single | (others != 0))
    yield from _each(bad, "hand-over", "it is fused with an heir, and more has to be done")
    theirs = records[np.clip((heir & TASK_MASK) - 1, 0, epoch.tasks - 1)]
    marks = F_FUSED | F_ALIKE | F_GANG
    differ = ((records ^ theirs)[:, [4, 5, 6, 9]] != 0).any(axis=1)
    differ |= (
        ((body ^ theirs[:, 0]) & ~marks != 0) | (theirs[:, 0] & F_PLAIN == 0) | (theirs[:, 3] != 0)
    )
    bad = ((body & F_ALIKE) != 0) & (~fused | differ)
    yield from _each(bad, "hand-over", "it is marked as like its heir, and is not")
    bad = gang & ((heir == 0) | (tiles == 1) | single)
    yield from _each(bad, "hand-over", "its finishers shall wait for an heir of several tiles")
    if epoch.window:
        yield from _each(fused | gang, "hand-over", "it hands over, and there is a window")


# ---- order ---------------------------------------------------------------------------------------


def _before(tasks: int, edges: list[tuple[int, int]]) -> list[int]:
    """Return the set of tasks that end before each task starts, as the bits of a number. Edges lead
    upwards, so a task's set is complete when it is reached."""
    above: list[list[int]] = [[] for _ in range(tasks)]
    for upstream, task in edges:
        above[task].append(upstream)
    before: list[int] = []
    for upstream_tasks in above:
        found = 0
        for one in upstream_tasks:
            found |= before[one] | 1 << one
        before.append(found)
    return before


def _order(
    accesses: Sequence[Access], before: list[int], launches: Sequence[int] = ()
) -> tuple[int, list[Fault]]:
    """Count the pairs that touch a common byte, one of them writing, and return a fault for each
    pair without an order. Bands of one launch are no pairs."""
    beside: dict[int, int] = {}
    for task, launch in enumerate(launches):
        beside[launch] = beside.get(launch, 0) | 1 << task
    touch, write, everything = _users(accesses)
    meets = _meeting(list(touch))
    pairs = 0
    faults: list[Fault] = []
    for task, access in enumerate(accesses):
        needed = everything
        for span in access.reads:
            for other in meets[span]:
                needed |= write.get(other, 0)
        for span in access.writes:
            for other in meets[span]:
                needed |= touch[other]
        if everything >> task & 1:
            needed = -1
        needed &= (1 << task) - 1
        if launches:
            needed &= ~beside[launches[task]]
        pairs += needed.bit_count()
        missing = needed & ~before[task]
        while missing and len(faults) < MOST_TOLD:
            last = missing.bit_length() - 1
            missing ^= 1 << last
            text = f"tasks {last} and {task} touch common bytes, and nothing orders them"
            faults.append(Fault("order", text, (last, task)))
    return pairs, faults


def _users(accesses: Sequence[Access]) -> tuple[dict[Span, int], dict[Span, int], int]:
    """Return the tasks that touch and write each span, and those that may touch all, as bits."""
    touch: dict[Span, int] = {}
    write: dict[Span, int] = {}
    everything = 0
    for task, access in enumerate(accesses):
        own = 1 << task
        for span in access.reads:
            touch[span] = touch.get(span, 0) | own
        for span in access.writes:
            touch[span] = touch.get(span, 0) | own
            write[span] = write.get(span, 0) | own
        if any(span.base == EVERYTHING for span in (*access.reads, *access.writes)):
            everything |= own
    return touch, write, everything


def _meeting(spans: list[Span]) -> dict[Span, list[Span]]:
    """Return for each span the spans that share a byte with it, including itself."""
    by_base: dict[int, list[Span]] = {}
    for span in spans:
        by_base.setdefault(span.base, []).append(span)
    found: dict[Span, list[Span]] = {}
    for several in by_base.values():
        starts = np.array([span.start for span in several], np.int64)
        ends = np.array([span.end for span in several], np.int64)
        for span in several:
            near = np.flatnonzero((starts < span.end) & (ends > span.start)).tolist()
            found[span] = [one for one in (several[i] for i in near) if overlap(span, one)]
    return found
