"""A model of the device-side scheduler's protocol, and an explorer that tries every interleaving.

In: a small task graph (tiles of each task, edges), the groups of each launch, and how the protocol
is broken, if it is. Out: how many states there are, or a `ProtocolError` with the shortest trace.

Invariants, in every state: a tile is started once, and after every upstream tile has ended; counts
do not fall below zero; no ticket is as high as the ring has slots, so that no slot is used twice.
When all groups of a launch have left: `unfinished` says how many tasks are; what is ready is in the
queue, once, at a ticket that a taker will get; "abandoned" lies where a publisher will come. When
the last launch has ended, so have all tasks. No group waits for ever, and no execution is longer
than a bound. Of a loop, all this holds for each round; there are as many rounds as the word says; a
round begins when no other group does more than look for work, and its tiles see all that the rounds
before have written. A count that is refused ends the loop behind its round, and the host finds the
mark of each task whose count was refused.

The model is `scheduler.cl` at the granularity of one access to shared memory by lane 0 of a group,
on the words that `acs_cl/scheduler/layout.py` makes: heirs, successors, counts, entries and flags
are read from there. What a group does between two accesses goes with the first of them; only the
end of a tile waits for the next one, since that is what tells of it. Five simplifications lose
nothing:

- A look that finds nothing changes nothing, and a group may give up after any of them. So there is
  one state "look", in which a group finds what is there or gives up: all bounds on the number of
  looks at once.
- A slot is cleared together with the access that found what is in it: nobody else looks at it
  again, as tickets are below the ring's size.
- `unfinished` is subtracted together with the access that follows: only the host reads it, and
  takers who wonder whether to give up. In a loop it is an access of its own.
- Nobody but who closes a round reads the word and the number of rounds, or writes counts, tiles
  left and `unfinished` until entries are published. This is one access.
- The first tile of a task whose count is refused tells so and marks the task as it starts. Nobody
  looks there before the round is closed, which is after the end of the tile.
- Groups of a launch are alike: a state keeps them sorted. Whether a group is over its slice or its
  turns, or narrows, is any choice, in all launches but the last. Whether one of bands gives away
  what it keeps is any choice in all of them.

Order of memory is covered as far as what tiles write is concerned. Each group has the tiles whose
writes it sees: its own, and what others saw whose releases it has acquired, by way of a slot, of
left[t] or of count[t]. A tile is started only by a group that sees all tasks above it, near and
far. A group forgets what it saw when it asks the queue for an entry, so that whatever it needs has
to come with the entry. That a relaxed look finds an entry and an acquire follows is one access
here.

Not covered: the order of the protocol's own words (the model interleaves; that the kernel's
accesses may be seen so rests on their being atomic); what fused tasks do, which is private to a
group (here they are run as heirs that are kept); the lanes of a group, which count down and publish
side by side; faults other than refused counts of loops, and other decisions on the device.
"""

# Long because: the protocol, what must hold and how to search for a way around are one argument.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any, NamedTuple

from acs_cl.scheduler import layout

NONE, ABANDONED = 0, -1
LAUNCH, HEAD, TAIL, UNFINISHED, STARTED, BEHIND, SLOTS, LEFT, COUNTS, WINDOW = range(10)
LEFT_SEEN, COUNTS_SEEN, LOOP, SPAWNED, GROUPS = range(10, 15)
OPENED, ROUND, UNFINISHED_SEEN, FAULT = range(4)  # words of a loop, and what `unfinished` tells
ASKED, TAKEN = range(2)  # slots of the ring asked for by children, and which children are tasks
SEEN = GROUPS  # while a group moves: what it sees
UNSEEN = 1 << 40  # of an entry in a slot: who takes it sees nothing of what its publisher saw
REQUESTS, NEWEST, FINISHED, INSERTED = range(4)  # the words of the window, and what is so

TASK_MASK = layout.TASK_MASK

Words = tuple[int, ...]
State = tuple[Any, ...]
Group = tuple[Any, ...]
"""What a group does next, tiles that ended since its last access, tasks finished and not yet
subtracted, what that step needs, and the tiles whose writes it sees."""

GONE: Group = ("gone", 0, 0, 0)
LEAVES = GONE[:-1]
FIRST: Group = ("head", 0, 0, 0)
LOOKING = ("gone", "head", "look", "store", "open")
"""What a group does that has finished all it has taken."""


class ProtocolError(AssertionError):
    """The protocol does something it must not do."""


class Explored(NamedTuple):
    """What an exploration went through."""

    states: int
    steps: int
    longest: int


def task_of(reference: int) -> int:
    return (reference & TASK_MASK) - 1


def tiles_of(reference: int, first: int = 0) -> list[int]:
    """Entries for the tiles of a reference, from `first` on."""
    tiles = range(first, (reference >> layout.TASK_BITS) + 1)
    return [tile << layout.TASK_BITS | reference & TASK_MASK for tile in tiles]


def name_of(entry: int) -> str:
    if entry <= 0:
        return "abandoned" if entry else "empty"
    return f"{'ABCDEFGHIJ'[task_of(entry)]}{entry >> layout.TASK_BITS}"


def put(words: Words, place: int, value: int) -> Words:
    return (*words[:place], value, *words[place + 1 :])


class Family:
    """Who is whose child. Records are the tasks of a graph, then children: each is spawned by a
    tile, and has tiles of its own, which are tiles of the task at the root of it all."""

    def __init__(self, tiles: Sequence[int], children: Sequence[tuple[int, int]]) -> None:
        self.tiles = [*tiles, *(n for _, n in children)]
        self.first = [sum(self.tiles[:record]) for record in range(len(self.tiles))]
        """The first tile of each record, counted through all of them."""
        self.own = [(1 << n) - 1 << first for n, first in zip(self.tiles, self.first, strict=True)]
        n = len(tiles)
        self.root = [*range(n)]
        self.parents = [0] * n
        """Tiles that have run before a child's, from its parent up to the root."""
        self.bits = self.own[:n]
        """All tiles of a task, those of its children included."""
        self._children: dict[int, list[int]] = {}
        for record, (parent, _) in enumerate(children, n):
            above = next(i for i in range(record) if self.own[i] >> parent & 1)
            self.root.append(self.root[above])
            self.parents.append(self.parents[above] | 1 << parent)
            self.bits[self.root[above]] |= self.own[record]
            self._children.setdefault(parent, []).append(record)
        self.roots = frozenset(self.root[n:])

    def of(self, bits: int) -> Words:
        """The children of some tiles."""
        return tuple(
            child
            for parent, children in self._children.items()
            if bits >> parent & 1
            for child in children
        )


class Model:
    """One epoch under the protocol. `tiles` and `edges` are the graph, `launches` the groups of
    each launch; in all but the last, groups may leave whenever they choose what to run next.
    `children`: for each the tile that spawns it, counted through all tasks and then all children,
    and its own tiles; `room`: slots of the ring that children may take. `gives`: tasks are bands,
    of which groups may give away what they keep. `refused`: tasks whose counts are refused, and in
    which rounds."""

    def __init__(
        self,
        tiles: Sequence[int],
        edges: Sequence[tuple[int, int]],
        launches: Sequence[int],
        *,
        broken: str = "",
        polls: bool = True,
        ranks: int = 16,
        keeps: int = 62,
        window: int = 0,
        rounds: int = -1,
        children: Sequence[tuple[int, int]] = (),
        room: int | None = None,
        gives: bool = False,
        refused: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.refused = refused  # (round, task)
        self.moving, self.others = -1, ()
        self.rounds, self.loops = rounds, rounds >= 0
        self.launches, self.broken, self.polls = launches, broken, polls
        self.ranks, self.keeps, self.gives = ranks, keeps, gives
        self.n, self.tiles, self.window = len(tiles), tiles, window
        self.family = Family(tiles, children)
        recorder = layout.Recorder()
        for task, n in enumerate(tiles):
            head = layout.head(0, n, n, 1, 1, 0, spawn=int(task in self.family.roots))
            recorder.add(head, b"", None, [above for above, below in edges if below == task])
        spare = 2 * sum(launches)
        words = recorder.image(spare, window=window, gang=polls).words.tolist()
        at, successors = words[2], words[3]
        records = [words[at + i * layout.RECORD_WORDS :] for i in range(self.n)]
        self.heir = [record[layout.HEIR] for record in records]
        hands_over = broken == "a task that spawns hands its tiles over"
        self.gang = [
            polls and (record[layout.BODY] & layout.GANG > 0 or (hands_over and tiles[task] > 1))
            for task, record in enumerate(records)
        ]
        self.successors = [
            words[successors + record[layout.SUCCESSORS] :][: record[layout.N_SUCCESSORS]]
            for record in records
        ]
        self.initial = words[words[8] : words[8] + words[9]]
        self.counts = words[words[10] : words[10] + self.n]
        self.reuses = broken == "the ring has slots for the tickets of one launch"
        self.arrivals = ("open", 0, 0, 0) if self.loops else FIRST
        self.capacity = sum(tiles) * max(rounds, 1) + (2 * max(launches) if self.reuses else spare)
        grown = sum(n for _, n in children)
        self.room = grown * max(rounds, 1) if room is None else room
        self.capacity += self.room if broken != "the ring has no slots for children" else 0
        # tiles are bits: of a task with its children, and of all tasks above it
        self.bits = self.family.bits
        self.needs = [
            sum(self.bits[above] for above, below in edges if below == task)
            for task in range(self.n)
        ]
        self.above = []  # tiles of all tasks above, near and far
        for needs in self.needs:
            further = (self.above[i] for i in range(len(self.above)) if self.bits[i] & needs)
            self.above.append(needs | reduce(or_, further, 0))
        self.all = (1 << sum(tiles) + grown) - 1
        self.before = self.all + 1 if self.loops else 0  # all tiles of the rounds before
        self.above = [above | self.before for above in self.above]
        self.entries = {
            1 << self.family.first[task] + i: (task, entry)
            for task, n in enumerate((*tiles, *(n for _, n in children)))
            for i, entry in enumerate(tiles_of(n - 1 << layout.TASK_BITS | task + 1))
        }
        insertions = 20 * self.n * self.n if window else 0
        each = 3 * sum(tiles) + len(edges) + (self.n + 3 if self.loops else 0)
        each += 4 * grown + 2 * len(children) + sum(tiles) * bool(children)
        self.longest = 4 * self.capacity + each * max(rounds, 1) + len(launches) + insertions
        self.longest += 4 * sum(launches) if self.loops else 0

    def first(self) -> State:
        initial = [] if self.loops else self.initial
        slots = *initial, *[NONE] * (self.capacity - len(initial))
        inserted = min(self.window, self.n) if self.window else self.n
        groups = (self.arrivals,) * self.launches[0]
        unfinished = 1 if self.loops else self.n
        return (
            0, 0, len(initial), unfinished, 0, 0, slots, tuple(self.tiles), tuple(self.counts),
            (0, 0, 0, inserted), (0,) * self.n, (0,) * self.n, (0, 0, 0, 0), (0, 0), groups,
        )  # fmt: skip

    # ---- steps ---------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[int, State]]:
        """All that can happen next: which group moves, and the state behind that."""
        groups: tuple[Group, ...] = state[GROUPS]
        before: Group | None = None
        stuck = True
        for place, group in enumerate(groups):
            if group == before or group[0] == "gone":
                continue
            before = group
            self.moving = place
            self.others = others = groups[:place] + groups[place + 1 :]
            memory = [*state[:GROUPS], group[-1]]
            memory[BEHIND] |= group[1]
            for after, moved in getattr(self, "_" + group[0])(memory, *group[2:-1]):
                stuck = False
                moved = (*moved, after[SEEN] if moved[0] not in LOOKING[:3] else 0)
                yield place, (*after[:GROUPS], tuple(sorted((*others, moved))))
        if before is None:
            self.moving = -1
            self.check_all_left(state)
            if state[LAUNCH] + 1 < len(self.launches):
                launch = state[LAUNCH] + 1
                yield -1, (launch, *state[1:GROUPS], (self.arrivals,) * self.launches[launch])
        elif stuck:
            self.moving = -1
            raise ProtocolError("every group that is left waits, and for ever")

    def _head(self, memory: list[Any], fin: int) -> Any:
        memory[UNFINISHED] -= fin
        ticket = memory[HEAD]
        memory[HEAD] += 1
        self.check_ticket(ticket)
        return [(memory, ("look", 0, 0, ticket))]

    def _look(self, memory: list[Any], fin: int, ticket: int) -> Any:
        slot = ticket % self.capacity
        entry = memory[SLOTS][slot]
        if entry == ABANDONED:
            raise ProtocolError(f"the taker of ticket {ticket} finds the mark of another ticket")
        if entry != NONE:
            memory[SLOTS] = put(memory[SLOTS], slot, NONE)
            is_ordered = entry < UNSEEN and self.broken != "takes what a relaxed look found"
            memory[SEEN] = self.above_of(entry % UNSEEN) if is_ordered else 0
            return self.start(memory, 0, 0, entry % UNSEEN)
        if self.broken == "abandons with a plain store":
            return [(memory, ("store", 0, 0, ticket))]
        if self.broken == "leaves for good and drops its ticket":
            return [(memory, LEAVES)]
        return self._store(memory, fin, ticket)

    def _store(self, memory: list[Any], fin: int, ticket: int) -> Any:
        """The taker gives up: the compare-exchange, or what a broken protocol does."""
        memory[SLOTS] = put(memory[SLOTS], ticket % self.capacity, ABANDONED)
        return [(memory, LEAVES)]

    def start(self, memory: list[Any], ending: int, fin: int, entry: int) -> Any:
        record, tile = task_of(entry), entry >> layout.TASK_BITS
        task = self.family.root[record]
        bit = 1 << self.family.first[record] + tile
        if memory[STARTED] & bit:
            raise ProtocolError(f"{name_of(entry)} is run twice")
        if self.needs[task] & ~(memory[BEHIND] | ending):
            raise ProtocolError(f"{name_of(entry)} starts before its upstream has ended")
        if task >= memory[WINDOW][INSERTED]:
            raise ProtocolError(f"{name_of(entry)} starts outside of the window")
        if self.above_of(entry) & ~memory[SEEN]:
            raise ProtocolError(f"{name_of(entry)} need not see what was written for it")
        memory[STARTED] |= bit
        if not tile and (memory[LOOP][ROUND], record) in self.refused:
            self.set_loop(memory, FAULT, 1)
            memory[COUNTS] = put(memory[COUNTS], record, layout.FAULTY)
        kept = -1 if self.loops else self.above_of(entry)  # who counts a task tells of all it saw
        memory[SEEN] = memory[SEEN] & kept | bit
        if record >= self.n and self.broken == "a child counts nothing down":
            return self.choose(memory, ending | bit, fin, NONE)
        return self.offers(memory, ending | bit, fin, task, self.family.of(bit))

    def above_of(self, entry: int) -> int:
        """The tiles whose writes a tile has to see."""
        record = task_of(entry)
        return self.above[self.family.root[record]] | self.family.parents[record]

    def end_tile(self, memory: list[Any], ending: int, fin: int, task: int) -> Any:
        counted = task in self.family.roots and self.broken != "one tile is not counted"
        if self.tiles[task] > 1 or counted:
            return [(memory, ("sub", ending, fin, task))]
        return self.finish(memory, ending, fin, task, 0)

    # ---- children: acs_spawn -------------------------------------------------------------------

    def offers(self, memory: list[Any], ending: int, fin: int, task: int, todo: Words) -> Any:
        """The tile has run: each of its children becomes a task, or is run now, by any choice."""
        if not todo:
            return self.end_tile(memory, ending, fin, task)
        inline = self.inline(list(memory), ending, fin, task, todo)
        return [*inline, (memory, ("ask", ending, fin, task, todo))]

    def inline(self, memory: list[Any], ending: int, fin: int, task: int, todo: Words) -> Any:
        bits = self.family.own[todo[0]]
        if memory[STARTED] & bits:
            raise ProtocolError(f"{name_of(todo[0] + 1)} is run twice")
        memory[STARTED] |= bits
        memory[SEEN] |= bits
        return self.offers(memory, ending | bits, fin, task, (*todo[1:], *self.family.of(bits)))

    def _ask(self, memory: list[Any], fin: int, task: int, todo: Words) -> Any:
        """Ask for slots of the ring; without them the child is run now."""
        asked, taken = memory[SPAWNED]
        tiles = self.family.tiles[todo[0]]
        memory[SPAWNED] = (asked + tiles, taken)
        if asked + tiles > self.room and self.broken != "takes slots that are not there":
            return self.inline(memory, 0, fin, task, todo)
        memory[SPAWNED] = (asked + tiles, taken | 1 << todo[0])
        if self.broken == "children are not counted":
            return self.publish_child(memory, fin, task, todo, ("offers", task, todo[1:]))
        if self.broken == "counts children behind entries":
            return self.publish_child(memory, fin, task, todo, ("grow", task, todo))
        return [(memory, ("grow", 0, fin, task, todo))]

    def _grow(self, memory: list[Any], fin: int, task: int, todo: Words) -> Any:
        """Tiles of a child are tiles of its root."""
        more = self.family.tiles[todo[0]]
        memory[LEFT] = put(memory[LEFT], task, memory[LEFT][task] + more)
        if self.broken == "counts children behind entries":
            return self.offers(memory, 0, fin, task, todo[1:])
        return self.publish_child(memory, fin, task, todo, ("offers", task, todo[1:]))

    def publish_child(
        self, memory: list[Any], fin: int, task: int, todo: Words, later: tuple[Any, ...]
    ) -> Any:
        entries = tiles_of(self.family.tiles[todo[0]] - 1 << layout.TASK_BITS | todo[0] + 1)
        return self.publish(memory, 0, fin, tuple(entries), later)

    def _sub(self, memory: list[Any], fin: int, task: int) -> Any:
        before = memory[LEFT][task]
        memory[LEFT] = put(memory[LEFT], task, before - 1)
        memory[SEEN] |= memory[LEFT_SEEN][task]
        if self.broken != "ends a tile without a release":
            memory[LEFT_SEEN] = put(memory[LEFT_SEEN], task, memory[SEEN])
        rank, marks = before & 0xFFFF, before >> 16
        if self.broken == "the first finisher counts down":
            rank = self.tiles[task] + 1 - rank
        if rank == 0:
            raise ProtocolError("more tiles have ended than there are")
        if rank == 1:
            marks *= self.broken != "the last finisher ignores marks"
            return self.finish(memory, 0, fin, task, marks)
        if (
            self.gang[task] and rank <= self.ranks
            and rank - 1 <= self.heir[task] >> layout.TASK_BITS
        ):  # fmt: skip
            return [(memory, ("wait", 0, fin, task, rank))]
        return self.choose(memory, 0, fin, NONE)

    def _wait(self, memory: list[Any], fin: int, task: int, rank: int) -> Any:
        """A look at left[task], or the mark; the mark is set even where the task has ended."""
        before = memory[LEFT][task]
        tile = rank - 1 << layout.TASK_BITS | self.heir[task] & TASK_MASK
        if self.broken != "a rank goes on after a relaxed look":
            memory[SEEN] |= memory[LEFT_SEEN][task]
        marked = list(memory)
        marked[LEFT] = put(memory[LEFT], task, before | 1 << 15 + rank)
        if before & 0xFFFF and self.broken == "a rank waits without bound":
            return []
        if before & 0xFFFF and self.broken != "a rank does not wait":
            return self.choose(marked, 0, fin, NONE)
        late = NONE if self.broken == "a rank that marked goes in any case" else tile
        looked = self.choose(memory, 0, fin, tile)
        return [*looked, *self.choose(marked, 0, fin, late)]

    def finish(self, memory: list[Any], ending: int, fin: int, task: int, marks: int) -> Any:
        if self.window:
            return [(memory, ("end", ending, fin + 1, task))]
        return self.downs(memory, ending, fin + 1, task, marks, 0, ())

    def downs(
        self, memory: list[Any], ending: int, fin: int, task: int, marks: int, i: int, ready: Words
    ) -> Any:
        if i < len(self.successors[task]):
            return [(memory, ("down", ending, fin, task, marks, i, ready))]
        return self.release(memory, ending, fin, task, marks, ready)

    def _down(
        self, memory: list[Any], fin: int, task: int, marks: int, i: int, ready: Words
    ) -> Any:
        reference = self.successors[task][i]
        if self.count_down(memory, task_of(reference)):
            if len(ready) == self.keeps:
                later = ("down", task, marks, i + 1, ready)
                return self.publish(memory, 0, fin, tuple(tiles_of(reference)), later)
            ready = *ready, reference
        return self.downs(memory, 0, fin, task, marks, i + 1, ready)

    def count_down(self, memory: list[Any], task: int) -> bool:
        before: int = memory[COUNTS][task]
        if before == 0:
            raise ProtocolError(f"{name_of(task + 1)} is counted down below zero")
        memory[COUNTS] = put(memory[COUNTS], task, before - 1)
        memory[SEEN] |= memory[COUNTS_SEEN][task]
        told = memory[SEEN] & self.above[task]
        if self.broken == "counts down without a release":
            told = memory[COUNTS_SEEN][task]
        memory[COUNTS_SEEN] = put(memory[COUNTS_SEEN], task, told if before > 1 else 0)
        return before == 1

    def release(
        self, memory: list[Any], ending: int, fin: int, task: int, marks: int, ready: Words
    ) -> Any:
        heir = self.heir[task]
        held = min(self.tiles[task], self.ranks) if self.gang[task] else 1
        if self.broken == "all tiles of an heir count as held" and self.gang[task]:
            held = self.ranks
        todo = [
            entry
            for i, entry in enumerate(tiles_of(heir, 1) if heir else (), 1)
            if i >= held or marks >> i & 1
        ]
        for k, reference in enumerate(ready):
            todo += tiles_of(reference, 1 if k == 0 and not heir else 0)
        kept = heir or (ready[0] if ready else NONE)
        return self.publish(memory, ending, fin, tuple(todo), ("choose", kept & TASK_MASK))

    def publish(
        self, memory: list[Any], ending: int, fin: int, todo: Words, later: tuple[Any, ...]
    ) -> Any:
        if todo:
            return [(memory, ("tail", ending, fin, todo, later))]
        if later[0] == "choose":
            return self.choose(memory, ending, fin, later[1])
        if later[0] == "leave":
            return self.leave(memory, ending, fin)
        if later[0] in ("back", "grow"):
            return [(memory, (later[0], ending, fin, *later[1:]))]
        if later[0] == "offers":
            return self.offers(memory, ending, fin, *later[1:])
        return self.downs(memory, ending, fin, *later[1:])

    def _tail(self, memory: list[Any], fin: int, todo: Words, later: tuple[Any, ...]) -> Any:
        ticket = memory[TAIL]
        memory[TAIL] += 1
        self.check_ticket(ticket)
        return [(memory, ("exchange", 0, fin, todo, later, ticket))]

    def _exchange(
        self, memory: list[Any], fin: int, todo: Words, later: tuple[Any, ...], ticket: int
    ) -> Any:
        slot = ticket % self.capacity
        before = memory[SLOTS][slot]
        if before > 0:
            raise ProtocolError(f"{name_of(before)} is overwritten in its slot")
        if before == ABANDONED and self.broken != "publishes without a look at what was there":
            memory[SLOTS] = put(memory[SLOTS], slot, NONE)
            return self.publish(memory, 0, fin, todo, later)
        above, unseen = self.above_of(todo[0]), 0
        if above & ~memory[SEEN] or (above and self.broken == "publishes without a release"):
            unseen = UNSEEN
        memory[SLOTS] = put(memory[SLOTS], slot, todo[0] + unseen)
        return self.publish(memory, 0, fin, todo[1:], later)

    def choose(self, memory: list[Any], ending: int, fin: int, kept: int) -> Any:
        """It goes on with what it keeps, else with a ticket; or leaves, where that is allowed."""
        found = []
        last = memory[LAUNCH] + 1 == len(self.launches)
        if not last or self.broken == "leaves the last launch early":
            todo = (kept,) if kept and self.broken != "leaves with what it holds" else ()
            found += self.publish(list(memory), ending, fin, todo, ("leave",))
        if kept and self.gives:
            found += self.give(list(memory), ending, fin, kept)
        if kept:
            return found + self.start(memory, ending, fin, kept)
        if self.loops and fin:
            return [*found, (memory, ("count", ending, fin, False))]
        return [*found, (memory, ("head", ending, fin))]

    def give(self, memory: list[Any], ending: int, fin: int, kept: int) -> Any:
        """It publishes what it keeps and takes from the queue; it looked at what waits before, so
        that this may be anything."""
        todo = () if self.broken == "gives away without an entry" else (kept,)
        goes_on = kept if self.broken == "runs what it gave away" else NONE
        return self.publish(memory, ending, fin, todo, ("choose", goes_on))

    def leave(self, memory: list[Any], ending: int, fin: int) -> Any:
        if self.loops and fin and self.broken != "who leaves does not close":
            return [(memory, ("count", ending, fin, True))]
        memory[BEHIND] |= ending
        memory[UNFINISHED] -= fin if self.broken != "leaves without its count" else 0
        return [(memory, LEAVES)]

    # ---- rounds: acs_begin_round ---------------------------------------------------------------

    def set_loop(self, memory: list[Any], word: int, value: int) -> None:
        memory[LOOP] = put(memory[LOOP], word, value)

    def _open(self, memory: list[Any], fin: int) -> Any:
        """A group arrives; the first of all opens the first round."""
        if memory[LOOP][OPENED]:
            return [(memory, ("head", 0, 0))]
        if self.broken == "opens without an exchange":
            return [(memory, ("opened", 0, 0))]
        return self._opened(memory, fin)

    def _opened(self, memory: list[Any], fin: int) -> Any:
        self.set_loop(memory, OPENED, 1)
        return self.begin(memory, over=False)

    def _count(self, memory: list[Any], fin: int, over: bool) -> Any:
        """What a group has finished is counted; who comes down to the loop itself closes."""
        memory[UNFINISHED] -= fin
        told = memory[LOOP][UNFINISHED_SEEN]
        memory[SEEN] |= told
        if self.broken != "counts without a release":
            self.set_loop(memory, UNFINISHED_SEEN, memory[SEEN])
        if memory[UNFINISHED] == 1:
            return self.begin(memory, over)
        return [(memory, LEAVES if over else ("head", 0, 0))]

    def begin(self, memory: list[Any], over: bool) -> Any:
        done = memory[LOOP][ROUND]
        if done and memory[BEHIND] != self.all:
            raise ProtocolError(f"round {done} is closed before all of its tiles have ended")
        if done and memory[SEEN] & self.all != self.all:
            raise ProtocolError(f"round {done + 1} need not see what round {done} wrote")
        if done and any(group[0] not in LOOKING for group in self.others):
            raise ProtocolError(f"round {done} is closed in the middle of another group's work")
        fault = memory[LOOP][FAULT] and self.broken != "a refused count ends no loop"
        if done == self.rounds or fault:
            if not fault or self.broken == "counts are put back in any case":
                self.put_back(memory)
            memory[UNFINISHED] = 0
            return [(memory, LEAVES)]
        self.set_loop(memory, ROUND, done + 1)
        self.set_loop(memory, UNFINISHED_SEEN, 0)
        memory[STARTED] = memory[BEHIND] = 0
        asked = memory[SPAWNED][ASKED]
        memory[SPAWNED] = (0 if self.broken == "the room begins anew with a round" else asked, 0)
        memory[SEEN] = self.before
        if self.broken == "the ring begins anew with a round":
            memory[HEAD] = memory[TAIL] = 0
            memory[SLOTS] = (NONE,) * self.capacity
        kept = NONE if over else self.initial[0]
        later: tuple[Any, ...] = ("leave",) if over else ("choose", kept)
        if self.broken == "opens before its counts are back":
            later = ("back", *later)
        else:
            self.put_back(memory)
        if self.broken == "counts tasks behind entries":
            memory[UNFINISHED], later = 1, ("back", *later)
        else:
            memory[UNFINISHED] = self.n + 1
        return self.publish(memory, 0, 0, tuple(self.initial[not over :]), later)

    def put_back(self, memory: list[Any]) -> None:
        """Counts and tiles left are as a round begins with them."""
        if self.broken != "tiles that were left are not put back":
            memory[LEFT] = tuple(self.tiles)
        if self.broken != "counts are not put back":
            memory[COUNTS] = tuple(self.counts)
        memory[LEFT_SEEN] = memory[COUNTS_SEEN] = (0,) * self.n

    def _back(self, memory: list[Any], fin: int, *later: Any) -> Any:
        """A broken protocol does now what it should have done before."""
        if self.broken == "counts tasks behind entries":
            memory[UNFINISHED] = self.n + 1
        else:
            self.put_back(memory)
        return self.publish(memory, 0, fin, (), later)

    # ---- the window: acs_insert ----------------------------------------------------------------

    def _end(self, memory: list[Any], fin: int, task: int) -> Any:
        if self.broken == "asks before it tells that a task has ended":
            return self._request(memory, fin, task)
        return self.set_window(memory, FINISHED, memory[WINDOW][FINISHED] + 1, "request", fin, task)

    def _request(self, memory: list[Any], fin: int, task: int) -> Any:
        before = memory[WINDOW][REQUESTS]
        self.set_window(memory, REQUESTS, before + 1)
        if self.broken == "asks before it tells that a task has ended":
            return [(memory, ("late", 0, fin, task, before))]
        return self.requested(memory, fin, task, before)

    def _late(self, memory: list[Any], fin: int, task: int, before: int) -> Any:
        self.set_window(memory, FINISHED, memory[WINDOW][FINISHED] + 1)
        return self.requested(memory, fin, task, before)

    def requested(self, memory: list[Any], fin: int, task: int, before: int) -> Any:
        if before:
            return self.downs(memory, 0, fin, task, 0, 0, ())
        return [(memory, ("serve", 0, fin, task, ()))]

    def _serve(self, memory: list[Any], fin: int, task: int, ready: Words) -> Any:
        return [(memory, ("newest", 0, fin, task, ready, memory[WINDOW][REQUESTS]))]

    def _newest(self, memory: list[Any], fin: int, *rest: Any) -> Any:
        newest = memory[WINDOW][NEWEST] or min(self.window, self.n)
        return self.next_in(memory, fin, *rest, newest)

    def next_in(self, memory: list[Any], fin: int, *rest: Any) -> Any:
        return [(memory, ("room" if rest[-1] < self.n else "close", 0, fin, *rest))]

    def _room(self, memory: list[Any], fin: int, *rest: Any) -> Any:
        there = rest[-1] - memory[WINDOW][FINISHED] < self.window
        return [(memory, ("insert" if there else "close", 0, fin, *rest))]

    def _insert(self, memory: list[Any], fin: int, task: int, ready: Words, *rest: int) -> Any:
        asked, newest = rest
        if newest != memory[WINDOW][INSERTED]:
            raise ProtocolError(f"{name_of(newest + 1)} is inserted out of turn")
        ended = [bits & memory[BEHIND] == bits for bits in self.bits[:newest]]
        if newest - sum(ended) >= self.window:
            raise ProtocolError(f"{name_of(newest + 1)} is inserted into a window that is full")
        self.set_window(memory, INSERTED, newest + 1)
        if self.count_down(memory, newest):
            last = self.tiles[newest] - 1
            ready = *ready, last << layout.TASK_BITS | newest + 1
        return self.next_in(memory, fin, task, ready, asked, newest + 1)

    def _close(self, memory: list[Any], fin: int, *rest: Any) -> Any:
        return self.set_window(memory, NEWEST, rest[-1], "served", fin, *rest[:-1])

    def _served(self, memory: list[Any], fin: int, task: int, ready: Words, asked: int) -> Any:
        before = memory[WINDOW][REQUESTS]
        asked = before if self.broken == "drops requests that came meanwhile" else asked
        self.set_window(memory, REQUESTS, before - asked)
        if before == asked:
            return self.downs(memory, 0, fin, task, 0, 0, ready)
        return [(memory, ("serve", 0, fin, task, ready))]

    def set_window(
        self, memory: list[Any], word: int, value: int, then: str = "", fin: int = 0, *rest: Any
    ) -> Any:
        memory[WINDOW] = put(memory[WINDOW], word, value)
        return [(memory, (then, 0, fin, *rest))]

    # ---- checks --------------------------------------------------------------------------------

    def check_ticket(self, ticket: int) -> None:
        """No slot is used twice: the capacity is the one of `layout.py`, not rounded up."""
        if ticket >= self.capacity and not self.reuses:
            raise ProtocolError(f"ticket {ticket} on a ring of {self.capacity} slots")

    def check_all_left(self, state: State) -> None:
        """What must hold when all groups of a launch have left."""
        _, head, tail, unfinished, started, behind, slots = state[: SLOTS + 1]
        if started != behind:
            raise ProtocolError("a group left in the middle of a tile")
        still = [task for task in range(self.n) if self.bits[task] & ~behind]
        is_open, done, _, fault = state[LOOP]
        is_over = not self.loops or not unfinished
        for number, task in self.refused:
            if done > number:
                raise ProtocolError(f"round {done} follows a refused count")
            if done == number and is_over and state[COUNTS][task] != layout.FAULTY:
                raise ProtocolError(f"nobody finds that the count of {name_of(task + 1)} is wrong")
        if self.loops and not done:
            still, started, behind = [], self.all, self.all
        if unfinished - (not is_over) != len(still):
            raise ProtocolError(f"unfinished is {unfinished}, but {len(still)} tasks are")
        ready = [
            entry
            for bit, (task, entry) in self.entries.items()
            if not started & bit and self.is_ready(task, behind, state)
        ]
        queued = [entry for entry in slots if entry > 0]
        for entry in ready:
            if entry not in queued:
                raise ProtocolError(f"{name_of(entry)} is ready and in no slot when all have left")
        if len(queued) > len(ready):
            raise ProtocolError(
                f"{[*map(name_of, queued)]} are in slots, not all of them to be run"
            )
        for ticket, entry in enumerate(() if self.reuses else slots):
            if entry > 0 and not head <= ticket < tail:
                raise ProtocolError(f"nobody comes to {name_of(entry)} in slot {ticket}")
            if entry == ABANDONED and not tail <= ticket < head:
                raise ProtocolError(f"nobody comes to the mark in slot {ticket}")
        if state[LAUNCH] + 1 == len(self.launches) and (
            not is_over or (is_open and done < self.rounds and not fault)
        ):
            raise ProtocolError(f"the loop is in round {done} when the last launch ends")
        inserted = state[WINDOW][INSERTED]
        if inserted < self.n and sum(task < inserted for task in still) < self.window:
            raise ProtocolError(f"{name_of(inserted + 1)} is not in, but the window has room")
        if state[LAUNCH] + 1 == len(self.launches) and still:
            raise ProtocolError(f"{name_of(still[0] + 1)} is unfinished when the last launch ends")

    def is_ready(self, record: int, behind: int, state: State) -> bool:
        """Whether tiles of a task, or of a child, are to be run when they have not been."""
        if record >= self.n:
            return bool(state[SPAWNED][TAKEN] >> record & 1)
        return not self.needs[record] & ~behind and record < state[WINDOW][INSERTED]

    def describe(self, before: State, after: State) -> str:
        """What a step changed."""
        said = []
        for field, name in ((HEAD, "head"), (TAIL, "tail")):
            if before[field] != after[field]:
                said.append(f"ticket {before[field]} of {name}")
        for field, name in ((SLOTS, "slot"), (LEFT, "left"), (COUNTS, "count"), (WINDOW, "window")):
            for i, (old, new) in enumerate(zip(before[field], after[field], strict=True)):
                if old != new:
                    value = name_of(new) if field == SLOTS else hex(new & 0xFFFFFFFF)
                    said.append(f"{name}[{i}] = {value}")
        new = before[STARTED] ^ after[STARTED]
        said += [f"runs {name_of(entry)}" for bit, (_, entry) in self.entries.items() if bit & new]
        return ", ".join(said)


# ---- exploring -----------------------------------------------------------------------------------


def explore(model: Model) -> Explored:
    """Go through all states, at a time those that are equally many accesses from the first one.
    Raises `ProtocolError` with a shortest trace."""
    frontier = {model.first()}
    states = steps = 0
    for length in range(model.longest + 1):
        states += len(frontier)
        following = set()
        try:
            for state in frontier:
                for _, after in model.steps(state):
                    steps += 1
                    following.add(after)
        except ProtocolError as found:
            raise ProtocolError("\n".join([str(found), *trace(model)])) from None
        if not following:
            return Explored(states, steps, length)
        frontier = following
    raise ProtocolError(f"it goes on for more than {model.longest} accesses")


def trace(model: Model) -> list[str]:
    """A shortest way to a violation, as text."""
    came: dict[State, tuple[State, int]] = {}
    reached = [model.first()]
    for state in reached:  # grows meanwhile
        try:
            for place, after in model.steps(state):
                if after not in came:
                    came[after] = state, place
                    reached.append(after)
        except ProtocolError:
            break
    way = [state]
    while way[-1] in came:
        way.append(came[way[-1]][0])
    way.reverse()
    lines = []
    names = list(range(len(way[0][GROUPS])))
    for before, after in pairwise(way):
        place = came[after][1]
        if place < 0:
            names = list(range(len(after[GROUPS])))
            lines.append(f"  launch {after[LAUNCH]}")
            continue
        # groups are sorted anew after each step: find the one that moved
        others = [*before[GROUPS][:place], *before[GROUPS][place + 1 :]]
        moved = list(after[GROUPS])
        for other in others:
            moved.remove(other)
        said = model.describe(before, after)
        said = ", ".join(filter(None, (said, "leaves" if moved[0] == GONE else "")))
        lines.append(f"  group {names[place]} {before[GROUPS][place][0]}: {said or 'nothing'}")
        tagged = [*zip(others, names[:place] + names[place + 1 :], strict=True)]
        tagged.append((moved[0], names[place]))
        names = [name for _, name in sorted(tagged)]
    if model.moving >= 0:
        lines.append(f"  group {names[model.moving]} {way[-1][GROUPS][model.moving][0]}")
    return lines
