"""The window: in order in, out of order out. Pure: events in, launches to dispatch out.

Input: launches in program order with their upstream (`insert`), and events about them (`done`,
`foreign_ended`). Output: lists of launch numbers to dispatch now, in a fixed order. The window
knows no bytes, queues, threads or clocks.

A launch's life: **waiting** outside a full window, **pending** inside while something holds it,
**executing** once handed out, **retired** at `done`, which frees its slot. Its kind and its
upstream decide what holds it:

- a launch that blocks on the host (a host task) holds its dependants until it is done;
- any other holds them only until it is dispatched: the driver then waits on its event;
- a launch that waits on the host is held by all its upstream until that is done. It is a host
  task, for which no driver waits, or any launch under the policy `ready_first`.

Invariant: a launch is handed out once, after all its upstream was handed out, and after all
upstream that blocks on the host was done. One that waits on the host is handed out after all its
upstream was done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class _Slot:
    __slots__ = (
        "blockers",
        "blocks_on_host",
        "dependants",
        "executing",
        "number",
        "waiting_on_host",
    )

    def __init__(self, number: int, blocks_on_host: bool) -> None:
        self.number = number
        self.blocks_on_host = blocks_on_host
        self.blockers = 0
        self.executing = False
        self.dependants: list[_Slot] = []
        self.waiting_on_host: list[_Slot] = []


class Window:
    """`size` slots; None is without bound."""

    def __init__(self, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise ValueError(f"a window needs at least one slot, got {size}")
        self.size = size
        self.slots: dict[int, _Slot] = {}
        self.waiting: deque[tuple[int, tuple[int, ...], bool, bool, bool]] = deque()
        """Launches outside the window, with the arguments of `insert`."""
        self._executing = 0
        self.most = 0
        self.full = 0
        """Launches that found it full."""

    def __len__(self) -> int:
        return self.occupied + len(self.waiting)

    def __contains__(self, number: int) -> bool:
        return number in self.slots

    @property
    def outside(self) -> int:
        """Return how many launches wait for a free slot."""
        return len(self.waiting)

    @property
    def held(self) -> int:
        """Return how many launches are not handed out yet."""
        return len(self.slots) - self._executing + len(self.waiting)

    @property
    def occupied(self) -> int:
        """Return how many slots are in use."""
        return len(self.slots)

    def insert(
        self,
        number: int,
        upstream: Iterable[int],
        blocks_on_host: bool = False,
        has_foreign: bool = False,
        waits_on_host: bool = False,
    ) -> list[int]:
        """Enter a launch behind all others. `has_foreign`: also held until `foreign_ended`."""
        if self.waiting or not self.has_room():
            self.waiting.append(
                (number, tuple(upstream), blocks_on_host, has_foreign, waits_on_host)
            )
            self.full += 1
            return []
        handed_out: list[int] = []
        self._enter(number, upstream, blocks_on_host, has_foreign, waits_on_host, handed_out)
        return handed_out

    def done(self, number: int) -> list[int]:
        """Note the end of a launch: its slot is free, and its dependants no longer wait for it."""
        slot = self.slots.pop(number)
        self._executing -= slot.executing
        handed_out: list[int] = []
        for dependant in (*slot.dependants, *slot.waiting_on_host):
            self._unblock(dependant, handed_out)
        while self.waiting and self.has_room():
            self._enter(*self.waiting.popleft(), handed_out)
        return handed_out

    def has_room(self) -> bool:
        """Tell whether a new launch may enter, if none waits outside."""
        return self.size is None or self.occupied < self.size

    def foreign_ended(self, number: int) -> list[int]:
        """Note that the foreign events of a launch have ended, also of one outside the window."""
        handed_out: list[int] = []
        slot = self.slots.get(number)
        if slot is not None:
            self._unblock(slot, handed_out)
            return handed_out
        for index, (waiting, upstream, blocks_on_host, _, waits_on_host) in enumerate(self.waiting):
            if waiting == number:
                self.waiting[index] = (number, upstream, blocks_on_host, False, waits_on_host)
                return handed_out
        raise KeyError(number)

    def _enter(
        self,
        number: int,
        upstream: Iterable[int],
        blocks_on_host: bool,
        has_foreign: bool,
        waits_on_host: bool,
        handed_out: list[int],
    ) -> None:
        slot = _Slot(number, blocks_on_host)
        slot.blockers = int(has_foreign)
        for other in upstream:
            parent = self.slots.get(other)
            if parent is not None and (
                waits_on_host or parent.blocks_on_host or not parent.executing
            ):
                (parent.waiting_on_host if waits_on_host else parent.dependants).append(slot)
                slot.blockers += 1
        self.slots[number] = slot
        self.most = max(self.most, self.occupied)
        if not slot.blockers:
            self._hand_out(slot, handed_out)

    def _unblock(self, slot: _Slot, handed_out: list[int]) -> None:
        slot.blockers -= 1
        if not slot.blockers:
            self._hand_out(slot, handed_out)

    def _hand_out(self, slot: _Slot, handed_out: list[int]) -> None:
        """Dispatch a slot, and then the slots that waited only for its dispatch."""
        ready = deque([slot])
        while ready:
            slot = ready.popleft()
            slot.executing = True
            self._executing += 1
            handed_out.append(slot.number)
            if not slot.blocks_on_host:
                dependants, slot.dependants = slot.dependants, []
                for dependant in dependants:
                    dependant.blockers -= 1
                    if not dependant.blockers:
                        ready.append(dependant)
