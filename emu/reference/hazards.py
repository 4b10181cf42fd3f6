"""Model hazards: which launches a new launch must wait for, by the bytes that live ones touch.

Input: a launch's number and access, in program order, and the numbers of launches that retired.
Output: its upstream, with the kind of each edge. Pure: no clocks, no threads, no OpenCL. It is the
oracle of the core's index, and says what that does; it compares a new span with all of its base.

Every distinct span in use is one `_Node`. It has the last writers of exactly these bytes and their
readers since. A node knows its neighbours, the nodes it shares bytes with. So a launch on known
spans costs a dictionary look-up each, and only a new span costs a search.

Invariants:
- Two live launches that share a byte, one of them writing it, are ordered by a path of edges.
- There is never an edge between two reads, or between launches that share no byte (`ranges.overlap`
  says where its answer is conservative).
- Nodes of a base without a live launch are dropped before they outnumber the others more than
  twofold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acs_cl.errors import UsageError
from acs_cl.records import EVERYTHING, Span

from .ranges import covers, overlap

RAW, WAR, WAW, REUSE, ANY = "RAW", "WAR", "WAW", "reuse", "any"

REMEMBERED = 1024
"""How far back (in launches) transitive waiting is known. Farther edges are kept, not pruned."""

_MASK = (1 << REMEMBERED) - 1


class _Node:
    """A distinct span: its last writers, its readers since, and the nodes it shares bytes with."""

    __slots__ = ("near", "readers", "span", "writers")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.writers: tuple[int, ...] = ()
        self.readers: list[int] = []
        self.near: list[_Node] = []

    @property
    def all(self) -> tuple[_Node, ...]:
        """Return the nodes that share bytes with it, itself among them."""
        return self, *self.near

    def take_over(self) -> None:
        """Forget the users of these bytes: later launches follow their present writer."""
        for node in self.all:
            if covers(self.span, node.span):
                node.writers = ()
                node.readers.clear()


class _Base:
    """The nodes of one base, by their spans."""

    def __init__(self) -> None:
        self.nodes: dict[Span, _Node] = {}
        self.sweep_at = 64


class _AnyMemory(Exception):  # noqa: N818  a way out of `_enter`, not an error
    """A span names `EVERYTHING`. Raised before any change."""


class Hazards:
    """The index of live accesses. Launches enter in program order and leave in any order."""

    def __init__(self) -> None:
        self._bases: dict[int, _Base] = {}
        self._ancestors: dict[int, int] = {}
        """Live launches. Bit k of the value: launch `number - 1 - k` is waited for already."""
        self._recycled: dict[int, tuple[int, ...]] = {}
        """Recycled bases: live launches that used the memory before."""
        self._barrier = 0
        self._crowded: list[int] = []
        """Bases with too many nodes."""
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
        return sum(len(base.nodes) for base in self._bases.values())

    def enter(self, number: int, reads: Sequence[Span], writes: Sequence[Span]) -> dict[int, str]:
        """Enter launch `number`, and return its upstream: {upstream: kind of edge}."""
        try:
            found, read, written = self._find(reads, writes)
        except _AnyMemory:
            return self._enter_barrier(number)
        upstream = self._prune(number, found)
        self._read(number, read)
        for node in written:
            node.take_over()
            node.writers = (number,)
        self._tidy()
        return upstream

    def enter_many(
        self, first: int, accesses: Sequence[tuple[Sequence[Span], Sequence[Span]]]
    ) -> list[dict[int, str]]:
        """Enter the bands of one launch, numbered from `first` on, and return the upstream of each.
        They ignore each other, since OpenCL promises nothing about the order of groups."""
        try:
            found = [self._find(reads, writes) for reads, writes in accesses]
        except _AnyMemory:
            raise UsageError("what may touch any memory is not cut into bands") from None
        upstream = [self._prune(first + at, one[0]) for at, one in enumerate(found)]
        for _, _, written in found:
            for node in written:
                node.take_over()
        for number, (_, read, written) in enumerate(found, first):
            self._read(number, read)
            for node in written:  # other launches may write them, too
                node.writers += (number,)
        self._tidy()
        return upstream

    def sharers(self, reads: Sequence[Span], writes: Sequence[Span]) -> list[int]:
        """Return all launches, newest first, that the next one would share bytes with, if one of
        both writes them."""
        return sorted(self._find(reads, writes)[0], reverse=True)

    def _read(self, number: int, nodes: Iterable[_Node]) -> None:
        for node in nodes:
            node.readers[:] = [one for one in node.readers if one in self._ancestors]
            while node.readers and self._follows(number, node.readers[-1]):
                node.readers.pop()  # this one stands for it
            node.readers.append(number)

    def _follows(self, number: int, other: int) -> bool:
        """Tell whether a live launch is sure to follow another one. Marks of replays never do."""
        if not 0 < other < number <= other + REMEMBERED:
            return False
        return bool(self._ancestors[number] >> (number - 1 - other) & 1)

    def _find(
        self, reads: Sequence[Span], writes: Sequence[Span]
    ) -> tuple[dict[int, str], list[_Node], list[_Node]]:
        """Return the live launches that one with this access follows, and its nodes."""
        read, written = ([self._node(span) for span in spans] for spans in (reads, writes))
        found: dict[int, str] = {}
        for node in read:
            self._add(found, RAW, (one for near in node.all for one in near.writers))
        for base in {span.base for span in (*reads, *writes)}:
            self._add(found, REUSE, self._recycled.get(base, ()))
        self._add(found, ANY, (self._barrier,))
        for node in written:  # all writers first: the order of neighbours is arbitrary
            self._add(found, WAW, (one for near in node.all for one in near.writers))
            self._add(found, WAR, (one for near in node.all for one in near.readers))
        if found and self._replays:
            self._resolve(found, read, written)
        return found, read, written

    def _add(self, found: dict[int, str], kind: str, numbers: Iterable[int]) -> None:
        """Add live launches that are followed for this reason, if there is no earlier one."""
        for number in numbers:
            if number in self._ancestors:
                found.setdefault(number, kind)

    def retire(self, number: int) -> None:
        """Remove launch `number`, which has ended."""
        self._ancestors.pop(number, None)
        if len(self._ancestors) == len(self._replays):
            self._barrier = 0
            self._recycled.clear()

    def users(self, base: int) -> tuple[int, ...]:
        """Return the live launches that touch `base`."""
        index = self._bases.get(base)
        users = {self._barrier, *self._recycled.get(base, ())}
        for node in index.nodes.values() if index is not None else ():
            users.update(node.writers, node.readers)
        users = {self._replays.get(user, user) for user in users}
        return tuple(sorted(users & self._ancestors.keys()))

    def forget(self, base: int) -> None:
        """Forget `base`, whose spans never come again."""
        self._recycled.pop(base, None)
        self._bases.pop(base, None)

    def inherit(self, base: int, users: tuple[int, ...]) -> None:
        """Let all launches of `base` wait for `users`, which may still use its memory."""
        users = tuple(user for user in users if user in self._ancestors)
        if users:
            self._recycled[base] = users

    def is_live(self, number: int) -> bool:
        """Tell whether the launch has entered and not retired."""
        return number in self._ancestors

    def _enter_barrier(self, number: int) -> dict[int, str]:
        """Enter a launch that may touch any memory: it waits for all, and all later ones for it."""
        found = dict.fromkeys(self._ancestors, ANY)
        if self._replays:
            self._resolve(found)
        self._barrier = number
        return self._prune(number, found)

    def _resolve(
        self,
        found: dict[int, str],
        read: Sequence[_Node] | None = None,
        written: Sequence[_Node] = (),
    ) -> None:
        """Replace marks of replays by launches; a subclass with marks does this."""
        raise NotImplementedError

    def _prune(self, number: int, found: dict[int, str]) -> dict[int, str]:
        """Make launch `number` live. Return its upstream without launches that other ones imply."""
        mask = 0
        kept: dict[int, str] = {}
        for upstream in sorted(found, reverse=True):
            distance = number - upstream - 1
            if distance < REMEMBERED:
                if mask >> distance & 1:
                    self.pruned += 1
                    continue
                mask |= ((self._ancestors[upstream] << 1 | 1) << distance) & _MASK
            kind = kept[upstream] = found[upstream]
            self.edges[kind] += 1
        self._ancestors[number] = mask
        return kept

    def _node(self, span: Span) -> _Node:
        """Return the node of a span, a new one if there is none."""
        if span.base == EVERYTHING:
            raise _AnyMemory
        base = self._bases.setdefault(span.base, _Base())
        node = base.nodes.get(span)
        if node is None:
            if len(base.nodes) >= base.sweep_at:
                self._crowded.append(span.base)
            node = _Node(span)
            for other in base.nodes.values():
                if overlap(span, other.span):
                    node.near.append(other)
                    other.near.append(node)
            base.nodes[span] = node
        return node

    def _tidy(self) -> None:
        """Drop unused nodes of crowded bases, after a launch was entered."""
        crowded, self._crowded = self._crowded, []
        for base in crowded:
            self._sweep(base)

    def _sweep(self, base: int) -> None:
        """Drop the nodes of `base` without a live launch."""
        live, index = self._ancestors, self._bases.get(base)
        if index is None:
            return
        for node in index.nodes.values():
            node.writers = tuple(writer for writer in node.writers if writer in live)
            node.readers[:] = [reader for reader in node.readers if reader in live]
        kept = {span: one for span, one in index.nodes.items() if one.writers or one.readers}
        for node in kept.values():
            node.near = [near for near in node.near if near.span in kept]
        index.nodes, index.sweep_at = kept, max(64, 2 * len(kept))
        if not kept:
            del self._bases[base]
