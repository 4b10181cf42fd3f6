"""The memory of a mixed program, and what NumPy makes of its commands.

In: commands, in program order. Out: `Memory`, the bytes of each base with two masks of the same
layout. `bad`: surely poisoned, so that reading it raises. `vague`: whether it was poisoned follows
from how exact inference is, so nobody can say what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mixed.kernels import KERNELS, Host

BYTES = 1536
"""Of a base."""


class View(NamedTuple):
    """A part of a base. `form` is `flat`, `steps` (every so manieth element), `tile` or `turned`
    (rows, columns and pitch)."""

    base: int
    dtype: str
    first: int
    form: str
    numbers: tuple[int, ...]

    @property
    def span(self) -> int:
        """How many elements lie between its ends."""
        n = self.numbers
        if self.form == "flat":
            return n[0]
        return n[0] * n[1] if self.form == "steps" else n[0] * n[2]

    def of(self, array: Any) -> Any:
        """The view of a base: of NumPy's, or of ours."""
        end = self.first + self.span * np.dtype(self.dtype).itemsize
        flat, n = array[self.first : end].view(self.dtype), self.numbers
        if self.form == "flat":
            return flat
        if self.form == "steps":
            return flat[:: n[1]]
        rows = flat.reshape(n[0], n[2])[:, : n[1]]
        return rows.T if self.form == "turned" else rows


LAYOUT = np.zeros(BYTES, "u1")
"""Stands for any base, to find out which views share bytes."""


def meet(one: Any, other: Any) -> bool:
    """Whether two views, or parts of the layout, share a byte."""
    return bool(np.shares_memory(one, other))


class Launch(NamedTuple):
    """A launch of a kernel. `lost`: what it waits for fails."""

    name: str
    n: int
    m: int
    local: int
    views: tuple[View, ...]
    numbers: tuple[Any, ...]
    offset: int = 0
    when: View | None = None
    count: View | None = None
    bands: int = 0
    declared: bool = False
    waits: str = ""
    """For an event that the program sets later: `gate`, or `lost` if that fails."""


class Many(NamedTuple):
    """Launches of one call that differ in their last number."""

    launch: Launch
    last: tuple[int, ...]

    @property
    def all(self) -> list[Launch]:
        """Each of them."""
        one = self.launch
        return [one._replace(numbers=(*one.numbers[:-1], number)) for number in self.last]


class Copy(NamedTuple):
    """A copy of a view."""

    target: View
    source: View


class Fill(NamedTuple):
    """A fill of a view."""

    view: View
    value: int


class Set(NamedTuple):
    """Values of the host."""

    view: View
    seed: int


class Task(NamedTuple):
    """A host task, which may fail."""

    reads: tuple[View, ...]
    writes: tuple[View, ...]
    seed: int
    fails: bool

    def function(self) -> Any:
        """What it runs."""

        def task(*arrays: Host) -> int:
            if self.fails:
                raise ArithmeticError("this host task fails")
            found = self.seed + sum(
                int(one.astype(np.uint64).sum()) for one in arrays[: self.count]
            )
            for place, one in enumerate(arrays[self.count :]):
                one[...] = values(found + place, one.shape, one.dtype)
            return found

        return task

    @property
    def count(self) -> int:
        """How many arrays it only reads."""
        return len(self.reads)


class Loop(NamedTuple):
    """Commands that are repeated as long as a flag is not zero."""

    flag: View
    at_most: int
    body: tuple[Any, ...]


Command = Launch | Many | Copy | Fill | Set | Task | Loop


def values(seed: int, shape: tuple[int, ...], dtype: Any) -> Host:
    """Values that look random and are the same everywhere."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    mixed = np.arange(count, dtype=np.uint64) + np.uint64(seed % 100_003 * 977)
    mixed = (mixed * np.uint64(2654435761)) >> np.uint64(11)
    return (mixed % np.uint64(251)).astype("u1").view(dtype).reshape(shape)


class Memory:
    """The bytes of a base."""

    def __init__(self, seed: int) -> None:
        self.bytes = values(seed, (BYTES,), "u1").copy()
        self.bad, self.vague = np.zeros(BYTES, "u1"), np.zeros(BYTES, "u1")

    def twin(self) -> Memory:
        """Another memory that holds the same by now."""
        found = Memory(0)
        for name, held in vars(self).items():
            setattr(found, name, held.copy())
        return found

    @property
    def is_clean(self) -> bool:
        """Whether nothing of it is lost."""
        return not (self.bad.any() or self.vague.any())

    def copied(self, view: View) -> tuple[Host, bool, Host]:
        """What a view holds now, whether reading it has to raise, and where that is not known."""
        return (
            view.of(self.bytes).copy(), bool(_any(view.of(self.bad))),
            _marks(view.of(self.vague)) != 0,
        )  # fmt: skip


def _any(mask: Host) -> bool:
    return bool(_marks(mask).any())


def _marks(mask: Host) -> Host:
    """Masks of floats compare as integers: all bits set is no number."""
    if mask.dtype.kind == "f":
        return mask.view(f"u{mask.dtype.itemsize}")
    return mask


def _mark(mask: Host, on: bool) -> None:
    marks = _marks(mask)
    marks[...] = np.iinfo(marks.dtype).max if on else 0


Memories = Sequence[Memory]


class Numpy:
    """Runs commands. `rounds` are those of the loops, as the program asked for them."""

    def __init__(self) -> None:
        self.failed = False
        """Something has failed that a wait may tell."""
        self.cuts = False
        """A launch may be several, of which some read poison and others do not."""

    def run(self, command: Command, of: Memories) -> int:
        """Run a command, at once; how many rounds a loop had."""
        if isinstance(command, Launch):
            self._launch(command, of)
        elif isinstance(command, Many):
            for launch in command.all:
                self._launch(launch, of)
        elif isinstance(command, Copy):
            target, source = of[command.target.base], of[command.source.base]
            for part in ("bytes", "bad", "vague"):
                held = command.source.of(getattr(source, part)).copy()
                command.target.of(getattr(target, part))[...] = held
            # A copy that reads poison does not run: none of its target is known then.
            if _any(command.target.of(target.bad)):
                _mark(command.target.of(target.bad), True)
            if _any(command.target.of(target.vague)):
                self._lose(command.target, target)
        elif isinstance(command, Fill):
            self._put(command.view, of, command.value)
        elif isinstance(command, Set):
            shape = command.view.of(LAYOUT).shape
            self._put(command.view, of, values(command.seed, shape, command.view.dtype))
        elif isinstance(command, Task):
            self._task(command, of)
        else:
            return self._loop(command, of)
        return 0

    @staticmethod
    def _put(view: View, of: Memories, values: Any) -> None:
        memory = of[view.base]
        view.of(memory.bytes)[...] = values
        _mark(view.of(memory.bad), False)
        _mark(view.of(memory.vague), False)

    @staticmethod
    def _lose(view: View, memory: Memory) -> None:
        """Nobody knows what a view holds, where it is not surely poisoned."""
        _mark(view.of(memory.vague), True)

    def _task(self, task: Task, of: Memories) -> None:
        bad = any(_any(view.of(of[view.base].bad)) for view in task.reads)
        vague = any(_any(view.of(of[view.base].vague)) for view in task.reads)
        self.failed |= task.fails
        if bad or task.fails:
            for view in task.writes:
                _mark(view.of(of[view.base].bad), True)
            return
        arrays = [view.of(of[view.base].bytes) for view in (*task.reads, *task.writes)]
        task.function()(*arrays)
        for view in task.writes:
            _mark(view.of(of[view.base].bad), False)
            _mark(view.of(of[view.base].vague), vague)

    def _launch(self, launch: Launch, of: Memories) -> None:
        kernel = KERNELS[launch.name]
        shape = launch.offset, launch.n, launch.m, launch.numbers
        bad = [view.of(of[view.base].bad) for view in launch.views]
        vague = [view.of(of[view.base].vague) for view in launch.views]
        reads, writes = kernel.reach(bad, *shape)
        cells = [cell for cell in (launch.when, launch.count) if cell is not None]
        lost = launch.waits == "lost" or any(map(_any, reads))
        lost |= any(_any(cell.of(of[cell.base].bad)) for cell in cells)
        n = launch.n
        if launch.count is not None and not lost:
            n = int(launch.count.of(of[launch.count.base].bytes)[0])
            if launch.when is None or launch.when.of(of[launch.when.base].bytes)[0]:
                lost = n > launch.n
                self.failed |= lost
        self.failed |= launch.waits == "lost"
        written = _written(launch)
        doubtful = any(
            _any(mask) for each in (bad, vague)
            for mask, (_, mode) in zip(each, kernel.views, strict=True) if "r" in mode
        ) or any(_any(cell.of(of[cell.base].vague)) for cell in cells)  # fmt: skip
        if lost and not self.cuts:
            for mask in writes:
                _mark(mask, True)
        if lost or doubtful:
            for view in written:
                self._lose(view, of[view.base])
            return
        if launch.when is not None and not launch.when.of(of[launch.when.base].bytes)[0]:
            return
        kernel.run(
            [view.of(of[view.base].bytes) for view in launch.views],
            launch.offset, min(n, launch.n), launch.m, launch.numbers,
        )  # fmt: skip
        if launch.declared and launch.when is None and launch.count is None:
            for view in written:
                _mark(view.of(of[view.base].bad), False)
                _mark(view.of(of[view.base].vague), False)

    def _loop(self, loop: Loop, of: Memories) -> int:
        rounds, cell = 0, loop.flag.of(of[loop.flag.base].bytes)
        before, self.failed = self.failed, False
        is_doubtful = any(
            _any(mask) for view in views_of(loop)
            for mask in (view.of(of[view.base].bad), view.of(of[view.base].vague))
        )  # fmt: skip
        while rounds < loop.at_most and cell[0] and not self.failed:
            for command in loop.body:
                self.run(command, of)
            rounds += 1
        # it ends with its error, and nobody knows how far it came; as one launch it does not begin
        if self.failed or is_doubtful:
            for view in _written(loop):
                self._lose(view, of[view.base])
        self.failed |= before
        return rounds


def views_of(command: Command) -> list[View]:
    """Every view that a command is given."""
    if isinstance(command, Launch):
        return [*command.views, *(one for one in (command.when, command.count) if one)]
    if isinstance(command, Many):
        return views_of(command.launch)
    if isinstance(command, Copy):
        return [command.target, command.source]
    if isinstance(command, (Fill, Set)):
        return [command.view]
    if isinstance(command, Task):
        return [*command.reads, *command.writes]
    return [command.flag, *(view for one in command.body for view in views_of(one))]


def _written(command: Command) -> list[View]:
    """Return the views that a command may write."""
    if isinstance(command, Launch):
        modes = KERNELS[command.name].views
        return [view for view, (_, mode) in zip(command.views, modes, strict=True) if "w" in mode]
    if isinstance(command, Many):
        return [view for one in command.all for view in _written(one)]
    if isinstance(command, Loop):
        return [view for one in command.body for view in _written(one)]
    if isinstance(command, Task):
        return list(command.writes)
    return [command.target if isinstance(command, Copy) else command.view]
