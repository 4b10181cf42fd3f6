"""Model footprints: the hazards of launches that come again and again with the same bytes.

Input: once the bytes that a recorded segment reads and writes, then a number for each replay.
Output: the edges that `Hazards` would give a launch with these bytes. Pure.

A footprint leaves a replay record on its nodes, which stands for its latest replay. If no other
launch meets the record, the next replay only waits for the previous one. If one does, those nodes
are noted, and the next replay searches them again, and no others.

Invariants:
- A record is live for as long as its footprint, or the latest launch that it stands for.
- A launch that erases a record, or is ordered after one, has met it: records are erased on nodes
  that the launch writes or covers, and there it searches for readers and writers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from weakref import WeakValueDictionary

from acs_cl.emu.reference.hazards import ANY, RAW, REUSE, WAR, WAW, Hazards, _Node
from acs_cl.records import Span

Dropped = tuple[int, Collection[int]]
"""The record of a footprint that is gone, and the memory that it was in."""


class Footprint:
    """The bytes of a segment. `record` is its name in the hazards that made it."""

    def __init__(
        self, record: int, reads: Iterable[Span], writes: Iterable[Span], dropped: deque[Dropped]
    ) -> None:
        self.record = record
        self.nodes: dict[_Node, bool] = {}
        """Its own nodes, and whether it writes them."""
        written = dict.fromkeys(writes)
        reads = [span for span in reads if span not in written]
        self.bases = frozenset(span.base for span in (*reads, *written))
        self.met: dict[_Node, bool] | None = None
        """Its own nodes where others met its record since the latest replay. None: possibly all."""
        self.new = [(span, False) for span in reads] + [(span, True) for span in written]
        """Spans that have no nodes yet."""
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append((self.record, self.bases))


class ReplayHazards(Hazards):
    """Hazards with footprints."""

    def __init__(self) -> None:
        super().__init__()
        self._footprints: WeakValueDictionary[int, Footprint] = WeakValueDictionary()
        self._dropped: deque[Dropped] = deque()
        self._met_dropped = False
        self._marks = 0

    def footprint(
        self, reads: Iterable[Span], writes: Iterable[Span], before: Footprint | None = None
    ) -> Footprint:
        """Make a footprint for `enter_footprint`. Its first replay waits for the latest one of
        `before`, which it replaces."""
        self._forget_dropped()
        self._marks -= 1
        made = Footprint(self._marks, reads, writes, self._dropped)
        self._footprints[made.record] = made
        self._replays[made.record] = self._replays[before.record] if before is not None else 0
        self._ancestors[made.record] = 0
        return made

    def move(self, footprint: Footprint, base: int, spans: Sequence[tuple[Span, bool]]) -> None:
        """Give `footprint`, from the next replay on, `spans` (and whether each is written) in place
        of its spans in `base`. Marks of earlier replays there now stand for the latest one."""
        record = footprint.record
        last = self._replays[record]
        for node in [node for node in footprint.nodes if node.span.base == base]:
            del footprint.nodes[node]
            if footprint.met is not None:
                footprint.met.pop(node, None)
            node.writers = tuple(last if one == record else one for one in node.writers)
            node.readers[:] = [last if one == record else one for one in node.readers]
        footprint.new = [one for one in footprint.new if one[0].base != base]
        footprint.new += spans
        footprint.bases = footprint.bases - {base} | {span.base for span, _ in spans}

    def enter_footprint(self, number: int, footprint: Footprint) -> dict[int, str]:
        """Return the upstream of launch `number`, which has the bytes of `footprint`."""
        live, record = self._ancestors, footprint.record
        found: dict[int, str] = {}
        last = self._replays[record]
        if last in live:
            found[last] = WAW
        if self._barrier in live:
            found[self._barrier] = ANY
        for base in [base for base in self._recycled if base in footprint.bases]:
            users = tuple(user for user in self._recycled[base] if user in live)
            found.update(dict.fromkeys(users, REUSE))
            if not users:
                del self._recycled[base]
        if footprint.met is None or footprint.met or footprint.new:
            self._look_again(footprint, found)
        footprint.met = {}
        self._replays[record] = number
        self._tidy()
        return self._prune(number, found)

    def _look_again(self, footprint: Footprint, found: dict[int, str]) -> None:
        """Search the nodes where others met the footprint, and record them again."""
        live, record = self._ancestors, footprint.record
        spans, footprint.new = footprint.new, []
        met = dict(footprint.nodes) if footprint.met is None else footprint.met
        for node in list(met):
            base = self._bases.get(node.span.base)
            if base is None or base.nodes.get(node.span) is not node:  # swept, without its record
                spans.append((node.span, met.pop(node)))
                del footprint.nodes[node]
        for span, written in spans:
            node = self._node(span)
            footprint.nodes[node] = met[node] = written
        for kind in (RAW, WAW, WAR):
            for node in [node for node, written in met.items() if written == (kind != RAW)]:
                for other in (node, *node.near):
                    for use in other.readers if kind == WAR else other.writers:
                        if use in live:
                            found.setdefault(use, kind)
        found.pop(record, None)
        self._resolve(found, list(met))
        for node in [node for node, written in met.items() if written]:
            node.take_over()
        for node, written in met.items():
            if written:
                node.writers = (record,)
            elif record not in node.readers:
                node.readers.append(record)

    def _resolve(
        self,
        found: dict[int, str],
        read: Sequence[_Node] | None = None,
        written: Sequence[_Node] = (),
    ) -> None:
        """Replace marks by latest replays, and note where these footprints were met. Without nodes,
        that is anywhere."""
        for record in [number for number in found if number < 0]:
            kind = found.pop(record)
            last = self._replays[record]
            if last in self._ancestors:
                found.setdefault(last, kind)
            footprint = self._footprints.get(record)
            if footprint is None:
                self._met_dropped = True
            if footprint is None or footprint.met is None:
                continue
            if read is None:
                footprint.met = None
                continue
            own, met = footprint.nodes, footprint.met
            for node in (*read, *written):
                for near in (node, *node.near):
                    if near in own and (record in near.writers or record in near.readers):
                        met[near] = own[near]

    def _forget_dropped(self) -> None:
        """Forget footprints that are gone: their marks go with the latest launch that they stand
        for. Their spans may be hulls, which many searches would meet, so they are swept."""
        self._met_dropped = False
        for _ in range(len(self._dropped)):
            record, bases = self._dropped.popleft()
            if self._replays[record] in self._ancestors:
                self._dropped.append((record, bases))
            else:
                del self._replays[record], self._ancestors[record]
                self._crowded += bases

    def _tidy(self) -> None:
        if self._met_dropped:
            self._forget_dropped()
        super()._tidy()
