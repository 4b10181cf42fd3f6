"""Launches that never ran, and what stands in for them.

In: numbers of launches that were poisoned or refused, with their upstream. Out: upstream lists in
which they are replaced by what they were waiting for. An edge to a launch that never runs would
order nothing, although its own upstream may still be under way; whoever should wait for it waits
for that instead. Pure.
"""

from __future__ import annotations

from collections.abc import Container


class Skipped(dict[int, tuple[int, ...]]):
    """{launch that never ran: live launches that stand in for it}."""

    def add(self, number: int, upstream: tuple[int, ...], live: Container[int]) -> bool:
        """A launch will not run. False if nothing it was waiting for is live any more."""
        left = tuple(other for other in self.expand(upstream) if other in live)
        if left:
            self[number] = left
        return bool(left)

    def expand(self, upstream: tuple[int, ...]) -> tuple[int, ...]:
        """The same upstream, with stand-ins for launches that never ran."""
        if not any(number in self for number in upstream):
            return upstream
        found: dict[int, None] = {}
        for number in upstream:
            found.update(dict.fromkeys(self.get(number, (number,))))
        return tuple(found)

    def ended(self, live: Container[int]) -> list[int]:
        """Launches ended: those that never ran and now have nothing left standing in for them."""
        gone = []
        for number, upstream in list(self.items()):
            left = tuple(other for other in upstream if other in live)
            if left:
                self[number] = left
            else:
                del self[number]
                gone.append(number)
        return gone
