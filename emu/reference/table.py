"""Model the launch table of the core: the state of each launch in flight, and its upstream.

Input: launches in program order, and their ends. Output: launches that are ready, in order, and the
state of each. The window (`window.py`) decides which launches are held. The table adds the states,
launches that never ran, and launches that a failure has reached.

Invariant: a launch follows the steps in `STEPS`, and is in the table until it is over. A launch
that never ran stays as a name until its upstream has ended, which replaces it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .window import Window

STEPS: dict[str, tuple[str, ...]] = {
    "none": ("held", "pending", "ready"),
    "held": ("pending", "ready"),
    "pending": ("ready",),
    "ready": ("executing", "never ran"),
    "executing": ("ended", "failed"),
    "ended": (),
    "failed": (),
    "never ran": (),
}
"""States that may follow each state."""


class Table:
    """Keeps launches in flight, in a window of `size`. None: no limit."""

    def __init__(self, size: int | None = None) -> None:
        self.window = Window(size)
        self.states: dict[int, str] = {}
        self.log: list[tuple[int, str, str]] = []
        self.ended = 0
        self.retired: list[int] = []
        """Launches that the hazards may forget, in order."""
        self._stand_ins: dict[int, tuple[int, ...]] = {}
        self._ready: deque[int] = deque()
        self._lost: set[int] = set()

    def __len__(self) -> int:
        return len(self.states)

    def __contains__(self, number: int) -> bool:
        return number in self.states

    def state(self, number: int) -> str | None:
        """Return the state of a launch. None: it is over, or never was."""
        return self.states.get(number) or ("never ran" if number in self._stand_ins else None)

    def go(self, number: int, state: str) -> None:
        """Put a launch into a state; raise if that may not follow."""
        before = self.states.get(number, "none")
        if state not in STEPS[before]:
            raise RuntimeError(f"launch {number} cannot be {state}: it is {before}")
        self.log.append((number, before, state))
        self.states[number] = state

    def insert(
        self,
        number: int,
        upstream: Iterable[int],
        blocks_on_host: bool = False,
        has_foreign: bool = False,
        waits_on_host: bool = False,
    ) -> bool:
        """Enter a launch behind all others. Return whether it is ready; then the caller has it."""
        handed_out = self.window.insert(
            number, upstream, blocks_on_host, has_foreign, waits_on_host
        )
        if not handed_out:
            self.go(number, "pending" if number in self.window else "held")
        else:
            self.go(number, "ready")
        return bool(handed_out)

    def start(self, number: int) -> None:
        """Note that a launch was handed to its route."""
        self.go(number, "executing")

    def end(self, number: int, failed: bool) -> None:
        """Note the end of a launch, and whether it failed."""
        self.go(number, "failed" if failed or number in self._lost else "ended")
        self._give_up(number)
        self.retired.append(number)
        self._let_stand_ins_end()

    def never_ran(self, number: int, upstream: Iterable[int]) -> None:
        """Note that a launch will not run: its upstream replaces it."""
        self.go(number, "never ran")
        left = tuple(one for one in self.expand(upstream) if one in self.states and one != number)
        self._give_up(number)
        if left:
            self._stand_ins[number] = left
        else:
            self.retired.append(number)
        self._let_stand_ins_end()

    def expand(self, upstream: Iterable[int]) -> tuple[int, ...]:
        """Return the upstream, with launches that never ran replaced."""
        found: dict[int, None] = {}
        for number in upstream:
            found.update(dict.fromkeys(self._stand_ins.get(number, (number,))))
        return tuple(found)

    def foreign_ended(self, number: int) -> None:
        """Note that the foreign events of a launch have ended."""
        self._hand_out(self.window.foreign_ended(number))

    def lose(self, number: int) -> None:
        """Note that a failure has reached a launch: whatever its end, it has failed."""
        self._lost.add(number)

    def next_ready(self) -> int:
        """Return the next launch that became ready, or 0."""
        return self._ready.popleft() if self._ready else 0

    def _give_up(self, number: int) -> None:
        del self.states[number]
        self._lost.discard(number)
        self.ended += 1
        self._hand_out(self.window.done(number))

    def _hand_out(self, numbers: list[int]) -> None:
        """Note that launches are ready, and let others into the window behind them."""
        for number, state in list(self.states.items()):
            if state == "held" and number in self.window and number not in numbers:
                self.go(number, "pending")
        for number in numbers:
            self.go(number, "ready")
            self._ready.append(number)

    def _let_stand_ins_end(self) -> None:
        for number, upstream in list(self._stand_ins.items()):
            left = tuple(one for one in upstream if one in self.states)
            if left:
                self._stand_ins[number] = left
            else:
                del self._stand_ins[number]
                self.retired.append(number)
