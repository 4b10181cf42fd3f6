"""What failed, whom it reached, and who has been told.

In: failed launches. Out: the launches that must not run (`doomed`), the poisoned bytes, and the
errors that `wait`, `get`, `finish` and `close` raise. The walk itself is pure (`poison`); this
keeps the books.

Invariant: every failure surfaces at least once, at the first of: a wait on a launch it reached, a
`get` of bytes it reached, `finish`, `close`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from ..errors import PoisonedError
from ..records import Access, Launch, Span
from .poison import Poison

REMEMBERED = 4096
"""Failed or poisoned launches whose handles can still tell why."""


class Failure(NamedTuple):
    """The first launch that failed, and how."""

    number: int
    name: str
    site: str
    error: BaseException

    def __str__(self) -> str:
        where = f", launched at {self.site}" if self.site else ""
        return f"launch {self.number} ({self.name}{where}) failed: {self.error!r}"


class Failures:
    """The books of one runtime."""

    def __init__(self) -> None:
        self.poison = Poison()
        self.doomed: dict[int, Failure] = {}
        """Launches that are not to run, though nobody handed them out yet."""
        self._of: dict[int, Failure] = {}
        self._untold: dict[int, Failure] = {}
        self.count = 0
        self.any = False
        """Whether anything ever failed: one test on the way of every launch."""

    def record(
        self,
        failure: Failure,
        access: Access,
        later: Iterable[Launch],
        carriers: Container[int] = (),
    ) -> list[int]:
        """A launch failed. The numbers of the `later` live launches that it poisons."""
        self._untold[failure.number] = failure
        self.count += 1
        self.any = True
        reached = self.poison.follow(
            ((launch.number, launch.access) for launch in later), failure, access.writes, carriers
        )
        for number in (failure.number, *reached):
            self.note(number, failure)
        return reached

    def note(self, number: int, failure: Failure) -> None:
        """Launch `number` failed, or never ran, because of `failure`."""
        self._of[number] = failure
        if len(self._of) > REMEMBERED:
            del self._of[next(iter(self._of))]

    def reads_poison(self, access: Access) -> Failure | None:
        """Why a new launch cannot run, or None."""
        found: Failure | None = self.poison.find(access.reads)
        return found

    def knows(self, number: int) -> bool:
        """Whether the launch failed or was poisoned."""
        return number in self._of

    def raise_for_launch(self, number: int, what: str) -> None:
        """Raise if the launch failed or was poisoned."""
        failure = self._of.get(number)
        if failure is not None:
            self._raise(failure, number, what)

    def raise_for_bytes(self, spans: Iterable[Span], what: str) -> None:
        """Raise if any of these bytes are poisoned."""
        if self.poison:
            failure = self.poison.find(spans)
            if failure is not None:
                self._raise(failure, None, what)

    def raise_untold(self) -> None:
        """Raise the first failure that nobody was told of, and consider all told."""
        if self._untold:
            untold, self._untold = self._untold, {}
            first = untold[min(untold)]
            more = f"; {len(untold) - 1} more failed" if len(untold) > 1 else ""
            raise PoisonedError(f"{first}{more}") from first.error

    def _raise(self, failure: Failure, number: int | None, what: str) -> None:
        self._untold.pop(failure.number, None)
        if number == failure.number:
            raise PoisonedError(str(failure)) from failure.error
        raise PoisonedError(f"{what} is poisoned: {failure}") from failure.error
