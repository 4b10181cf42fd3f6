"""Model hazards: which launches a new launch must wait for, by the bytes that live ones touch.

Input: a launch's number and access, in program order, and the numbers of launches that retired.
Output: its upstream, with the kind of each edge. Pure: no clocks, no threads, no OpenCL.

Every distinct span in use is one `_Node`. It has the last writers of exactly these bytes and their
readers since. A node knows its neighbours, the nodes it shares bytes with. So a launch on known
spans costs a dictionary look-up each, and only a new span costs a search.

Invariants:
- Two live launches that share a byte, one of them writing it, are ordered by a path of edges.
- There is never an edge between two reads, or between launches that share no byte (`ranges.overlap`
  says where its answer is conservative).
- Nodes without a live launch are dropped before they outnumber the others more than twofold.
"""

# Long because: the search for edges and the index it searches are one structure.

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from acs_cl.errors import UsageError
from acs_cl.records import EVERYTHING, Span

from .ranges import covers, overlap

RAW, WAR, WAW, REUSE, ANY = "RAW", "WAR", "WAW", "reuse", "any"

SWEPT_AT = 16384
"""Nodes at which unused ones are dropped, at first: two for each launch that a runtime may have in
flight by default."""

REMEMBERED = 1024
"""How far back (in launches) transitive waiting is known. Farther edges are kept, not pruned."""

_MASK = (1 << REMEMBERED) - 1


class _Node:
    """A distinct span: its last writers, its readers since, and the nodes it shares bytes with."""

    __slots__ = ("covered", "near", "readers", "span", "sweep_at", "writers")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.writers: tuple[int, ...] = ()
        self.readers: list[int] = []
        self.near: list[_Node] = []
        self.covered: list[_Node] = []
        self.sweep_at = 16

    def __lt__(self, other: _Node) -> bool:
        return self.span < other.span

    def take_over(self) -> None:
        """Forget the users of these bytes: later launches follow their present writer."""
        self.writers = ()
        if self.readers:
            self.readers.clear()
        for covered in self.covered:
            covered.writers = ()
            covered.readers.clear()


class _Base:
    """The nodes of one base, in lists by size so that a search visits only possible overlaps."""

    __slots__ = ("by_size", "count", "sweep_at")

    def __init__(self) -> None:
        self.by_size: dict[int, list[_Node]] = {}
        self.count = 0
        self.sweep_at = 64

    def nodes(self) -> Iterable[_Node]:
        for nodes in self.by_size.values():
            yield from nodes

    def candidates(self, span: Span) -> Iterable[_Node]:
        """Return every node whose hull may meet the span's. Sizes in a class are within a factor of
        two."""
        for size_class, nodes in self.by_size.items():
            low = bisect_left(nodes, span.start - (1 << size_class), key=_start)
            for index in range(low, len(nodes)):
                node = nodes[index]
                if node.span.start >= span.end:
                    break
                yield node

    def add(self, node: _Node) -> None:
        insort(self.by_size.setdefault(_size_class(node.span), []), node)
        self.count += 1


class _AnyMemory(Exception):  # noqa: N818  a way out of `_enter`, not an error
    """A span names `EVERYTHING`. Raised before any change."""


def _start(node: _Node) -> int:
    return node.span.start


def _size_class(span: Span) -> int:
    return (span.end - span.start).bit_length()


class Hazards:
    """The index of live accesses. Launches enter in program order and leave in any order."""

    def __init__(self) -> None:
        self._nodes: dict[Span, _Node] = {}
        self._bases: dict[int, _Base] = {}
        self._ancestors: dict[int, int] = {}
        """Live launches. Bit k of the value: launch `number - 1 - k` is waited for already."""
        self._recycled: dict[int, tuple[int, ...]] = {}
        """Recycled bases: live launches that used the memory before."""
        self._barrier = 0
        self._sweep_at = SWEPT_AT
        self._crowded: list[int] = []
        self._replays: dict[int, int] = {}
        """Live marks of replays (`footprints`): negative numbers, each with its latest launch."""
        self.edges = {RAW: 0, WAR: 0, WAW: 0, REUSE: 0, ANY: 0}
        self.pruned = 0

    @property
    def live(self) -> int:
        """Return how many launches have entered and not retired."""
        return len(self._ancestors) - len(self._replays)

    @property
    def spans(self) -> int:
        """Return how many distinct spans are remembered."""
        return len(self._nodes)

    def enter(self, number: int, reads: Sequence[Span], writes: Sequence[Span]) -> dict[int, str]:
        """Enter launch `number`, and return its upstream: {upstream: kind of edge}."""
        try:
            return self._enter(number, reads, writes)
        except _AnyMemory:
            return self._enter_barrier(number)

    def enter_many(
        self, first: int, accesses: Sequence[tuple[Sequence[Span], Sequence[Span]]]
    ) -> list[dict[int, str]]:
        """Enter the bands of one launch, numbered from `first` on, and return the upstream of each.
        They ignore each other, since OpenCL promises nothing about the order of groups."""
        try:
            found = [self._find(reads, writes) for reads, writes in accesses]
        except _AnyMemory:
            raise UsageError("what may touch any memory is not cut into bands") from None
        upstream = [self._admit(first + at, one[0]) for at, one in enumerate(found)]
        for _, _, written in found:
            for node in written:
                node.take_over()
        for number, (_, read, written) in enumerate(found, first):
            self._read(number, read)
            for node in written:  # other launches may write them, too
                node.writers += (number,)
        self._tidy()
        return upstream

    def _enter(self, number: int, reads: Sequence[Span], writes: Sequence[Span]) -> dict[int, str]:
        found, read_nodes, written_nodes = self._find(reads, writes)
        found = self._admit(number, found)
        self._read(number, read_nodes)
        for node in written_nodes:
            node.take_over()
            node.writers = (number,)
        self._tidy()
        return found

    def _find(
        self, reads: Sequence[Span], writes: Sequence[Span]
    ) -> tuple[dict[int, str], list[_Node], list[_Node]]:
        """Return the live launches that one with this access follows, and its nodes."""
        live = self._ancestors
        nodes = self._nodes
        found: dict[int, str] = {}
        if self._recycled or self._barrier:
            self._find_rare(found, reads, writes)
        read_nodes: list[_Node] = []  # loops, since comprehensions are calls before Python 3.12
        written_nodes: list[_Node] = []
        for span in reads:
            node = nodes.get(span) or self._new_node(span)
            read_nodes.append(node)
            for writer in node.writers:
                if writer in live:
                    found[writer] = RAW
            for near in node.near:
                for writer in near.writers:
                    if writer in live:
                        found[writer] = RAW
        for span in writes:
            node = nodes.get(span) or self._new_node(span)
            written_nodes.append(node)
            for near in (
                node,
                *node.near,
            ):  # all writers first: the order of neighbours is arbitrary
                for writer in near.writers:
                    if writer in live and writer not in found:
                        found[writer] = WAW
            for near in (node, *node.near):
                for reader in near.readers:
                    if reader in live and reader not in found:
                        found[reader] = WAR
        if found and self._replays:
            self._resolve(found, read_nodes, written_nodes)
        return found, read_nodes, written_nodes

    def _admit(self, number: int, found: dict[int, str]) -> dict[int, str]:
        """Make launch `number` live. Return its upstream without launches that other ones imply."""
        if found:
            return self._prune(number, found)
        self._ancestors[number] = 0
        return found

    def _read(self, number: int, nodes: Iterable[_Node]) -> None:
        live = self._ancestors
        for node in nodes:
            readers = node.readers
            readers.append(number)
            if len(readers) > node.sweep_at:
                readers[:] = [reader for reader in readers if reader in live]
                node.sweep_at = max(16, 2 * len(readers))

    def retire(self, number: int) -> None:
        """Remove launch `number`, which has ended."""
        self._ancestors.pop(number, None)
        if len(self._ancestors) == len(self._replays):
            self._barrier = 0
            self._recycled.clear()

    def users(self, base: int) -> tuple[int, ...]:
        """Return the live launches that touch `base`."""
        index = self._bases.get(base)
        users = set(self._recycled.get(base, ()))
        if index is not None:
            for node in index.nodes():
                users.update(node.writers)
                users.update(node.readers)
        if self._barrier:
            users.add(self._barrier)
        if self._replays:
            users = {self._replays.get(user, user) for user in users}
        return tuple(sorted(users & self._ancestors.keys()))

    def forget(self, base: int) -> None:
        """Forget `base`, whose spans never come again."""
        self._recycled.pop(base, None)
        index = self._bases.pop(base, None)
        if index is not None:
            for node in index.nodes():
                del self._nodes[node.span]

    def inherit(self, base: int, users: tuple[int, ...]) -> None:
        """Let all launches of `base` wait for `users`, which may still use its memory."""
        users = tuple(user for user in users if user in self._ancestors)
        if users:
            self._recycled[base] = users

    def is_live(self, number: int) -> bool:
        """Tell whether the launch has entered and not retired."""
        return number in self._ancestors

    def _find_rare(
        self, found: dict[int, str], reads: Sequence[Span], writes: Sequence[Span]
    ) -> None:
        """Find edges without spans: recycled memory, launches that touch everything."""
        live = self._ancestors
        if self._barrier in live:
            found[self._barrier] = ANY
        for span in (*reads, *writes):
            users = self._recycled.get(span.base)
            if users is not None:
                users = tuple(user for user in users if user in live)
                for user in users:
                    found[user] = REUSE
                if users:
                    self._recycled[span.base] = users
                else:
                    del self._recycled[span.base]

    def _enter_barrier(self, number: int) -> dict[int, str]:
        """Enter a launch that may touch any memory: it waits for all, and all later ones for it."""
        found = dict.fromkeys(self._ancestors, ANY)
        if self._replays:
            self._resolve(found)
        found = self._prune(number, found)
        self._ancestors[number] = self._ancestors.get(number, 0)
        self._barrier = number
        return found

    def _resolve(
        self,
        found: dict[int, str],
        read: Sequence[_Node] | None = None,
        written: Sequence[_Node] = (),
    ) -> None:
        """Replace marks of replays by launches; a subclass with marks does this."""
        raise NotImplementedError

    def _prune(self, number: int, found: dict[int, str]) -> dict[int, str]:
        """Drop edges that another upstream implies; remember all that `number` waits for."""
        ancestors = self._ancestors
        edges = self.edges
        if len(found) == 1:
            ((upstream, kind),) = found.items()
            edges[kind] += 1
            distance = number - upstream - 1
            ancestors[number] = (
                ((ancestors[upstream] << 1 | 1) << distance) & _MASK if distance < REMEMBERED else 0
            )
            return found
        mask = 0
        kept: dict[int, str] = {}
        for upstream in sorted(found, reverse=True):
            distance = number - upstream - 1
            if distance < REMEMBERED:
                if mask >> distance & 1:
                    self.pruned += 1
                    continue
                mask |= ((ancestors[upstream] << 1 | 1) << distance) & _MASK
            kind = kept[upstream] = found[upstream]
            edges[kind] += 1
        ancestors[number] = mask
        return kept

    def _new_node(self, span: Span) -> _Node:
        if span.base == EVERYTHING:
            raise _AnyMemory
        index = self._bases.get(span.base)
        if index is None:
            index = self._bases[span.base] = _Base()
        if index.count >= index.sweep_at or len(self._nodes) >= self._sweep_at:
            self._crowded.append(span.base)
        node = _Node(span)
        for other in index.candidates(span):
            if overlap(span, other.span):
                node.near.append(other)
                other.near.append(node)
                if covers(span, other.span):
                    node.covered.append(other)
                if covers(other.span, span):
                    other.covered.append(node)
        index.add(node)
        self._nodes[span] = node
        return node

    def _tidy(self) -> None:
        """Drop excess data after a launch was entered."""
        if self._crowded:
            self._make_room()

    def _make_room(self) -> None:
        """Sweep bases that have too many nodes; never while a launch is half entered."""
        crowded, self._crowded = self._crowded, []
        if len(self._nodes) < self._sweep_at:
            for base in crowded:
                self._sweep(base)
            return
        for base in list(self._bases):
            self._sweep(base)
        self._sweep_at = max(SWEPT_AT, 2 * len(self._nodes))

    def _sweep(self, base: int) -> None:
        """Drop the nodes of `base` without a live launch."""
        live = self._ancestors
        index = self._bases.get(base)
        if index is None:
            return
        kept = _Base()
        idle = set()
        for node in index.nodes():
            node.writers = tuple(writer for writer in node.writers if writer in live)
            node.readers[:] = [reader for reader in node.readers if reader in live]
            if node.writers or node.readers:
                kept.add(node)
            else:
                idle.add(node)
                del self._nodes[node.span]
        for node in kept.nodes():
            if idle:
                node.near = [near for near in node.near if near not in idle]
                node.covered = [near for near in node.covered if near not in idle]
        index.by_size, index.count = kept.by_size, kept.count
        index.sweep_at = max(64, 2 * kept.count)
        if not index.count:
            del self._bases[base]
