"""Loops: recorded launches that repeat as long as a word on the device, the flag, is not zero.

Input: the flag, the largest number of rounds, the launches of the body. Output: launches, round by
round, and the number of rounds. docs/design/loops.md has the meaning, and this is its one
implementation: the host reads the flag before each round. If the scheduler on the device has the
whole body, it reads the flag itself, and `Driven.on_device` runs many rounds by one launch.

Invariants:
- A loop ends at the first of these: the flag is zero, `at_most` rounds, a round in which a launch
  failed, a flag whose value is lost. In the last case all that the body writes is lost.
- A round begins when the round before it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import PoisonedError, UsageError, describe, whole
from ..handle import Handle
from ..host.call_sites import caller
from ..launch.decision import FLAGS, LARGEST, WIDTH
from ..memory.array import Array
from ..ranges import meet
from ..records import Access, HostArray, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..launch.engine import Engine
    from .loop_trial import LoopTrial


class Loop(NamedTuple):
    """A loop of a graph."""

    flag: Array
    at_most: int
    calls: range
    """The body: the calls of the graph that it repeats."""
    inner: tuple[Loop, ...] = ()
    """The loops in it, in program order."""

    @property
    def key(self) -> tuple[int, int, int]:
        """Return a key that differs from those of other loops of the graph. Loops around the same
        calls differ in how many others they hold."""
        held = sum(1 for _ in self.all_inner) if self.inner else 0
        return self.calls.start, self.calls.stop, held

    def with_flag(self, change: Callable[[Array], Array]) -> Loop:
        """Return the loop, and the loops in it, with other flags."""
        inner = tuple(one.with_flag(change) for one in self.inner)
        return self._replace(flag=change(self.flag), inner=inner)

    @property
    def all_inner(self) -> Iterator[Loop]:
        """Yield the loops in it, and in these."""
        for loop in self.inner:
            yield loop
            yield from loop.all_inner


class Launched(list[int]):
    """The launches of a replay so far. `error`: a flag was lost before it was read."""

    error: PoisonedError | None = None


class Run(Protocol):
    """Rounds that one launch on the device runs."""

    rounds: int
    """How many there were, once the launch has ended."""


class Rounds:
    """Counts the rounds of a loop, including those of a launch in flight."""

    def __init__(self, counted: int = 0, run: Run | None = None) -> None:
        self._counted, self._run = counted, run

    @property
    def count(self) -> int:
        """Return their number, if nothing of the loop is in flight."""
        return self._counted + (self._run.rounds if self._run is not None else 0)


class Driven(Protocol):
    """A graph, as its loops use it."""

    engine: Engine

    def body(self, loop: Loop) -> Launched:
        """Launch the body once. Return the launches."""

    def access_of(self, loop: Loop) -> Access:
        """Return the access of a loop, including its flag."""

    def on_device(self, loop: Loop, most: int) -> tuple[int, Run, int] | None:
        """Launch up to `most` rounds at once. Return the launch, its rounds, and how many there may
        be. None: that is impossible."""

    def trial_of(self, loop: Loop) -> LoopTrial | None:
        """Return what chooses who drives a loop that the device can run. None: the device does."""


def drive(graph: Driven, loop: Loop, numbers: Launched) -> Rounds:
    """Run a loop, and add its launches to `numbers`. Waits for all but the last rounds, if the
    device counts these itself."""
    engine, done, word = graph.engine, 0, np.empty(1, np.uint32)
    flag: Flag | None = None
    trial = graph.trial_of(loop)
    if trial is not None:
        trial.begin()
    while done < loop.at_most:
        most, found = loop.at_most - done, None
        if trial is None or not trial.by_host:
            found = graph.on_device(loop, most if trial is None else min(most, trial.left))
        if found is not None:
            number, run, most = found
            numbers.append(number)
            if done + most == loop.at_most:
                return Rounds(done, run)
            engine.wait_quietly(number)
            done, flag = done + run.rounds, None
            if run.rounds < most or _any_failed(engine, [number]):
                break
            if trial is not None:
                trial.had(most)
            continue
        if flag is None:
            flag = _read(graph, loop, word, [])
        if not _is_set(graph, loop, flag, numbers):
            break
        ones = graph.body(loop)
        numbers += ones
        numbers.error = ones.error
        done, flag = done + 1, None
        if done < loop.at_most and ones.error is None:
            flag = _read(graph, loop, word, ones)
        else:
            engine.wait_for_all(ones)
        if ones.error is not None or _any_failed(engine, ones):
            if isinstance(flag, Handle):
                numbers.append(flag.number)  # if it failed, too, the replay says so
            break
        if trial is not None and trial.by_host:
            trial.had(1)
    return Rounds(done)


Flag = HostArray | Handle | PoisonedError
"""What a flag is; the read that tells, if something is unusual; or why its value is lost."""


def _read(graph: Driven, loop: Loop, word: HostArray, behind: Sequence[int]) -> Flag:
    """Have the flag read behind launches of the body, and wait for these. `word`: memory for it."""
    engine, calls, flag = graph.engine, graph.engine.calls, loop.flag
    # the read goes right behind the round: one way to the device and back, not two
    try:
        if calls.core_reads(engine, flag, word, behind):
            return word
        read = calls.read(engine, flag, None)
    except PoisonedError as error:
        engine.wait_for_all(behind)
        return error
    engine.wait_for_all([*behind, read.number])
    return read


def _is_set(graph: Driven, loop: Loop, flag: Flag, numbers: Launched) -> bool:
    """Tell whether the flag is set. If its value is lost, so is all that the body writes."""
    engine = graph.engine
    if isinstance(flag, np.ndarray):
        return bool(flag[0])
    if isinstance(flag, PoisonedError):  # no launch says so
        numbers.error = flag
    else:
        if not _any_failed(engine, [flag.number]):
            return bool(flag.wait().item())
        numbers.append(flag.number)
    engine.lose(Access(loop.flag.spans, graph.access_of(loop).writes))
    return False


def _any_failed(engine: Engine, numbers: Sequence[int]) -> bool:
    return engine.failures.any and any(map(engine.failures.knows, numbers))


def checked(what: str, engine: Engine | None, flag: object, at_most: object) -> tuple[Array, int]:
    """Check the flag and the largest number of rounds that the program gave."""
    most = whole(at_most)
    if most is None or not 1 <= most <= LARGEST:
        raise UsageError(
            f"{what}: got at_most={at_most!r}, expected 1 to {LARGEST}: a loop on the "
            "device needs a bound"
        )
    if not isinstance(flag, Array) or flag.dtype not in FLAGS or flag.size != 1:
        raise UsageError(
            f"{what}: got {describe(flag)}, expected one uint32 or int32 on the device, such as "
            "flags[i : i + 1]"
        )
    if flag.engine is not engine:
        raise UsageError(f"{what}: got {describe(flag)}, an array of another runtime")
    flag.live()
    if flag.offset % WIDTH:
        raise UsageError(f"{what}: the word starts at byte {flag.offset}, between words")
    return flag, most


def check_written(what: str, flag: Array, access: Access) -> None:
    """Refuse a body that cannot change the flag: it would not run, or run `at_most` rounds.
    `access`: of the body."""
    word = flag.spans[0]
    if word not in access.writes and not any(meet(word, span) for span in access.writes):
        raise UsageError(
            f"{what}: no launch of the body writes the word that decides ({flag!r}); a loop with a "
            "known count is a Python loop over replays"
        )


class loop:  # noqa: N801  read like `size`
    """Repeats the launches recorded inside `with acs.loop(flag, at_most=n)` while `flag` is not 0.

    `flag` is one uint32 or int32 on the device. It is read before each round, the first included:
    if it is 0 then, there is no round. `at_most` bounds the rounds. A loop is part of a recording,
    and may hold others.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''kernel void halve(global int *x, global int *go)
    ...                        { *x /= 2; *go = *x > 10; }''')
    ...     x, go = rt.array([1000], "i4"), rt.array([1], "i4")
    ...     with rt.record() as graph:
    ...         with acs.loop(go, at_most=50):
    ...             handle = prog.halve((1,), None, x, go)
    ...     handle = graph.replay()
    ...     print(x.get())
    [7]
    """

    __slots__ = ("_number", "_opened", "_recorder", "_what")

    def __init__(self, flag: Array, *, at_most: int) -> None:
        engine = cast("Engine", flag.engine) if isinstance(flag, Array) else None
        recorder = engine.recorder() if engine is not None else None
        if engine is not None and recorder is None:
            raise UsageError(
                "acs.loop outside of a recording of the runtime that has the flag: it repeats what "
                "`with rt.record()` captures; record it, and replay the graph"
            )
        self._what = checked("acs.loop", engine, flag, at_most)
        self._recorder = recorder
        self._number = recorder.expect_loop(caller())
        self._opened: list[Loop] = []

    def __enter__(self) -> None:
        self._opened.append(self._recorder.open_loop(self._number, *self._what))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._recorder.close_loop(self._opened[-1], is_whole=kind is None)
        self._opened.pop()
