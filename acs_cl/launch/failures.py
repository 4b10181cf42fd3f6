"""Failures: which launches failed, which bytes that reached, and who has been told.

Input: failed launches, and the later ones that are still live, in program order. Output: launches
that must not run (`doomed`), poisoned bytes, and the errors of `wait`, `get`, `finish` and `close`.
Pure, and slow: it runs only after a failure. Poison is followed in program order, so the order of
completions does not matter.

Invariants:
- Every failure surfaces at least once, at the first of: a wait on a launch it reached, a `get` of
  bytes it reached, `finish`, `close`.
- A launch is poisoned exactly if it reads a byte whose last writer before it failed or is itself
  poisoned. Only reads spread poison; only a complete overwrite, or `forget`, ends it. Memory that
  is given to `keep` stays alive until then, so that its number does not come to mean another.
- Copies between devices are the exception: they run, and their bytes are poisoned as at the source.
"""

# Long because: poison, failures and who was told of them are one account.

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from .. import core
from ..errors import PoisonedError
from ..ranges import Rows, first_shared, rows_of, without
from ..records import EVERYTHING, Access, Launch, NamedTuple, Span, interval

REMEMBERED = 4096
"""Failed or poisoned launches whose handles can still tell why, and failures that nobody was told
of."""

WITH_FRAMES = 16
"""The newest failures, which keep the local variables of the frames in which they were raised, for
debuggers. They may hold large arrays."""


class Poisoned(NamedTuple):
    """Poisoned bytes of one base, and the failure behind each interval of them."""

    rows: Rows
    failures: list[object]


class Poison:
    """Holds poisoned bytes of each base. They are exact: a hull of rows would poison bytes that
    are good, or heal bytes that nobody wrote."""

    def __init__(self) -> None:
        self.bases: dict[int, Poisoned] = {}
        self.addressed: dict[int, Span] = {}
        """{base whose address the program has: its bytes}. A launch on any memory may write it."""
        self.kept: list[tuple[Span, object]] = []
        """Memory that is held while bytes of it are poisoned."""
        self._gone: dict[int, Sequence[int]] = {}
        """{base that was given back: launches in flight that may still fail to write it}."""

    def __bool__(self) -> bool:
        return bool(self.bases)

    def find(self, spans: Iterable[Span]) -> Any:
        """Return the failure behind the first poisoned byte in `spans`, or None."""
        for span in spans:
            if span.base == EVERYTHING:
                for poisoned in self.bases.values():
                    return poisoned.failures[0]
                continue
            here = self.bases.get(span.base)
            if here is not None:
                first = first_shared(span, here.rows)
                if first is not None:
                    return here.failures[first]
        return None

    def add(self, spans: Iterable[Span], failure: object) -> None:
        """Note that these bytes were not written, because of `failure`."""
        by_base = _by_base(spans)
        if by_base.pop(EVERYTHING, None) is not None:
            by_base |= {base: [whole] for base, whole in self.addressed.items()}
        for base, found in by_base.items():
            rows = rows_of(found)
            self._put(base, Poisoned(rows, [failure] * len(rows.lows)))

    def overwrite(self, spans: Iterable[Span]) -> None:
        """Note that these bytes are good: a launch writes all of them without reading poison."""
        healed = False
        for base, found in _by_base(spans).items():
            if base in self.bases:
                self._take_out(base, rows_of(found))
                healed = True
        if healed and self.kept:
            core.native.let_go(self.kept)
            self.kept = [one for one in self.kept if self.find((one[0],)) is not None]

    def carry(self, access: Access) -> None:
        """Copy the poison of the bytes that are read to the bytes that are written. One of them may
        be all of a staging place, which is longer than the copy."""
        (source,), (target,) = access.reads, access.writes
        self.overwrite((target,))
        here = self.bases.get(source.base)
        if here is not None:
            nbytes = min(source.end - source.start, target.end - target.start)
            lows = np.maximum(here.rows.lows, source.start)
            highs = np.minimum(here.rows.highs, source.start + nbytes)
            read = lows < highs
            there = target.start - source.start
            failures = [here.failures[index] for index in np.flatnonzero(read)]
            self._put(
                target.base, Poisoned(Rows(lows[read] + there, highs[read] + there), failures)
            )

    def keep(self, span: Span, memory: object) -> None:
        """Hold `memory`, which contains `span`, as long as any of these bytes are poisoned."""
        if self.find((span,)) is not None:
            self.kept.append((span, memory))

    def forget(self, base: int, users: Sequence[int], is_live: Callable[[int], bool]) -> None:
        """Forget memory that was given back. Nothing is noted of it any more, also if launches that
        still use it fail."""
        core.native.let_go(self.bases.pop(base, None))
        self.addressed.pop(base, None)
        if users:
            self._gone[base] = users
        while self._gone and not any(map(is_live, self._gone[oldest := next(iter(self._gone))])):
            del self._gone[oldest]

    def _put(self, base: int, poisoned: Poisoned) -> None:
        """Add poisoned bytes, in place of earlier poison there."""
        if not poisoned.failures or base in self._gone:
            return
        self._take_out(base, poisoned.rows)
        here = self.bases.get(base)
        if here is not None:
            lows = np.append(here.rows.lows, poisoned.rows.lows)
            highs = np.append(here.rows.highs, poisoned.rows.highs)
            failures = here.failures + poisoned.failures
            order = np.argsort(lows)
            poisoned = Poisoned(
                Rows(lows[order], highs[order]), [failures[index] for index in order]
            )
        self.bases[base] = poisoned

    def _take_out(self, base: int, rows: Rows) -> None:
        here = self.bases.get(base)
        if here is None:
            return
        core.native.let_go(here)
        left, source = without(here.rows, rows)
        if len(source):
            self.bases[base] = Poisoned(left, [here.failures[index] for index in source])
        else:
            del self.bases[base]

    def spans(self) -> tuple[Span, ...]:
        """Return the poisoned bytes of all bases as plain intervals."""
        return tuple(
            interval(base, low, high - low)
            for base, poisoned in self.bases.items()
            for low, high in zip(*map(np.ndarray.tolist, poisoned.rows), strict=True)
        )

    def follow(
        self,
        later: Iterable[tuple[int, Access]],
        failure: object,
        written: Iterable[Span],
        carriers: Container[int] = (),
    ) -> list[int]:
        """Return the launches among `later` (in program order) that a failed launch poisons.

        `carriers`: launches that run whatever is poisoned, and carry it on. Bytes that are still
        poisoned at the end of the program so far are added here.
        """
        spreading = Poison()
        spreading.addressed = self.addressed
        spreading.add(written, failure)
        reached = []
        for number, access in later:
            if not spreading:
                break
            if number in carriers:
                spreading.carry(access)
            elif spreading.find(access.reads) is not None:
                reached.append(number)
                spreading.add(access.writes, failure)
            else:
                spreading.overwrite(access.overwrites)
        for base, poisoned in spreading.bases.items():
            self._put(base, poisoned)
        return reached


def _by_base(spans: Iterable[Span]) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for span in spans:
        found.setdefault(span.base, []).append(span)
    return found


def lost(accesses: Iterable[Access], failed: Container[int]) -> tuple[Span, ...]:
    """Return the bytes that are poisoned at the end, after launches with these accesses ran in
    order. `failed`: indices of launches that failed."""
    poison = Poison()
    for index, access in enumerate(accesses):
        if index in failed or poison.find(access.reads) is not None:
            poison.add(access.writes, True)
        else:
            poison.overwrite(access.overwrites)
    return poison.spans()


class Failure(NamedTuple):
    """The first launch that failed, and its error."""

    number: int
    name: str
    site: str
    error: BaseException

    def __str__(self) -> str:
        where = f", launched at {self.site}" if self.site else ""
        return f"launch {self.number} ({self.name}{where}) failed: {_described(self.error)}"


def _described(error: BaseException) -> str:
    """Return an error's type and message. Arguments of PyOpenCL's errors show nothing, and a
    program's own error may fail to show itself."""
    kind = type(error).__name__
    try:
        text = repr(error)
        return f"{kind}({str(error)!r})" if " object at 0x" in text else text
    except Exception:  # whatever the program's own error raises
        return kind


def _clear_frames(error: BaseException | None) -> None:
    """Let go of the local variables of an error's frames, and of those of its causes."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


class _Frames:
    """Lets go of the local variables of an error's frames when it goes itself: without the lock,
    since finalizers of the program may go with them."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __del__(self) -> None:
        _clear_frames(self._error)


class Failures:
    """Holds the failures of one runtime."""

    def __init__(self) -> None:
        self.poison = Poison()
        self.doomed: dict[int, Failure] = {}
        """Launches that must not run and are not dispatched yet."""
        self._of: dict[int, Failure] = {}
        self._untold: dict[int, Failure] = {}
        self._untold_later = 0
        """How many more there are."""
        self._of_queues: dict[int, int] = {}
        """{queue of the program: its first launch that failed since the queue was asked}."""
        self._with_frames: deque[Failure] = deque()
        self.given_up: set[int] = set()
        """Launches that failed only because their runtime closes."""
        self.count = 0
        self.any = False
        """Whether anything ever failed: one test for every launch."""

    def record(
        self,
        failure: Failure,
        access: Access,
        later: Iterable[Launch],
        carriers: Container[int] = (),
    ) -> list[int]:
        """Record a failed launch. Return which of the `later` live launches it poisons."""
        if len(self._untold) < REMEMBERED:
            self._untold[failure.number] = failure
        else:
            self._untold_later += 1
        self._with_frames.append(failure)
        if len(self._with_frames) > WITH_FRAMES:
            core.native.let_go(_Frames(self._with_frames.popleft().error))
        self.count += 1
        self.any = True
        reached = self.poison.follow(
            ((launch.number, launch.access) for launch in later), failure, access.writes, carriers
        )
        for number in (failure.number, *reached):
            self.note(number, failure)
        return reached

    def note(self, number: int, failure: Failure) -> None:
        """Note that launch `number` failed, or never ran, because of `failure`."""
        self._of[number] = failure
        if len(self._of) > REMEMBERED:
            core.native.let_go(self._of.pop(next(iter(self._of))))

    def note_queue(self, queue: int, number: int) -> None:
        """Note that a launch is of a queue (0: none), if it failed."""
        if queue and self.knows(number):
            self._of_queues.setdefault(queue, number)

    def reads_poison(self, access: Access) -> Failure | None:
        """Return why a new launch cannot run, or None."""
        found: Failure | None = self.poison.find(access.reads)
        return found

    def knows(self, number: int) -> bool:
        """Tell whether the launch failed or was poisoned."""
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

    def raise_untold(self, given_up: bool = True) -> None:
        """Raise the first failure that was not told yet, and count all as told. `given_up`: also
        that of a launch that was given up."""
        untold, later = self._untold, self._untold_later
        self._untold, self._untold_later = {}, 0
        if not given_up:
            untold = {n: failure for n, failure in untold.items() if n not in self.given_up}
        if untold:
            first = untold[min(untold)]
            others = len(untold) - 1 + later
            more = f"; {others} more failed" if others else ""
            raise PoisonedError(f"{first}{more}") from first.error

    def raise_for_queue(self, queue: int) -> None:
        """Raise if launches of this queue failed or were poisoned since the last call."""
        number = self._of_queues.pop(queue, 0)
        self.raise_for_launch(number, f"launch {number}")

    def _raise(self, failure: Failure, number: int | None, what: str) -> None:
        self._untold.pop(failure.number, None)
        if number == failure.number:
            raise PoisonedError(str(failure)) from failure.error
        raise PoisonedError(f"{what} is poisoned: {failure}") from failure.error
