"""Segments: recorded launches that one launch of the scheduler on the device runs.

Input: consecutive launches of a graph, as tasks of one scheduler. Output: a `Segment`, a command
for each replay of it, and the outcome of the replay.

A segment is an epoch that is compiled once and stays on the device in a region of its own. A replay
uploads nothing: it uses one of the two blocks of the region and cleans the other for the next
replay. `update` and `swap` change words of records, which are written before the next replay.

Invariant: a replay runs with the words that the segment had when the replay was asked for. This
holds even if the replay is held until after the next change.
"""

# Long because: what is on the device, and what the host says of it, change together.

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..errors import DeviceError
from ..launch.decision import DecidedCommand
from ..records import Access, NamedTuple, Pair, ReplayTask
from . import layout, rounds
from .bands import alike
from .built import Scheduler
from .laying import JOINT, laid
from .rounds import LoopRun
from .task import Task

if TYPE_CHECKING:
    from .proof import Proof

MOST_LAUNCHES = 17
"""Launches of the scheduler that one replay may take."""

MOST_WRITES = 16
"""Changed records that are written one by one. More of them are written in one piece, with what is
between them."""


class Settings(NamedTuple):
    """Say how segments are compiled. `layout.Recorder.image` has the details."""

    window: int
    gang: bool
    least: int = 1
    """Fewer launches in a row stay single."""


class SegmentError(DeviceError):
    """Launches of a replay did not run. `tasks` has their numbers in the segment."""

    def __init__(self, message: str, tasks: Sequence[int]) -> None:
        super().__init__(message)
        self.tasks = frozenset(tasks)


class SegmentCommand(NamedTuple):
    """One replay of a segment."""

    segment: Segment
    version: int
    """How many changes of the segment came before."""
    accesses: Sequence[Access]
    """The accesses of its launches; of a loop, those of one round."""
    run: LoopRun | None = None
    """For a loop: tells how many rounds there were."""

    @property
    def name(self) -> str:
        """Return the name that users see."""
        if self.run is not None:
            return f"loop of {len(self.segment)} launches"
        return f"replay of {len(self.accesses)} launches"

    @property
    def on_host(self) -> bool:
        """Return False: it runs on the device."""
        return False

    @property
    def is_apart(self) -> bool:
        """Tell whether only the launches that read lost bytes are lost with these. Of a loop all is
        lost, since nobody knows how many rounds there would have been."""
        return self.run is None

    @property
    def is_counted(self) -> bool:
        """Tell whether one of its launches may turn out to have had a wrong count."""
        return bool(self.segment.counted)

    def enqueue(self, queue: Any, wait_for: Any) -> Any:
        """Refuse: only the scheduler runs segments."""
        raise TypeError("a segment is not for a queue")


class Segment:
    """Holds the launches of a graph from `first` on, compiled for the device."""

    def __init__(
        self,
        context: Any,
        scheduler: Scheduler,
        first: int,
        launches: Sequence[Pair],
        tasks: Sequence[Task],
        settings: Settings,
        is_loop: bool = False,
    ) -> None:
        self.first = first
        self.places: Sequence[int] = range(first, first + len(launches))
        """Places of its launches in the graph, which may have another order."""
        self.scheduler = scheduler
        self.accesses = [access for _, access in launches]
        self._names = [command.name for command, _ in launches]
        self.counted = {
            index: command
            for index, (command, _) in enumerate(launches)
            if isinstance(command, DecidedCommand) and command.is_counted
        }
        self.cuts = [task.cuts for task in tasks]
        """How each launch is cut into bands."""
        self.laid = laid(launches, tasks)
        recorder = self.laid.recorder
        width, room = recorder.width, scheduler.limits.child_slots
        if not is_loop and not room:
            width = min(width, recorder.groups_wanted(context.devices[0].max_compute_units))
        groups = min(scheduler.limits.groups, width)
        self.rounds = rounds.most_rounds(recorder.entries) if is_loop else 1
        """Rounds of a run at most."""
        self.expected = 1
        """Rounds that the next run is expected to have."""
        more = (self.rounds - 1) * recorder.entries
        image = recorder.image(
            more + room + 2 * MOST_LAUNCHES * groups + 64,
            window=settings.window, blocks=2, gang=settings.gang,
        )  # fmt: skip
        self._loop = 0
        if is_loop:
            image, self._loop = rounds.looped(image)
        region = driver.buffer_of(context, image.words)
        rows = -(-image.tasks // 32)
        self.status_words = layout.STATE_WORD + 32 * rows if self.counted else layout.STATUS_WORDS
        self._words = image.words[: image.block].copy()
        self.image = image._replace(words=image.words[:0].copy(), width=width)
        placed = core.native.Placed(image.tasks, width, image.block, image.block_words)
        self.resident = core.native.Resident(region, placed)
        """What is on the device."""
        self._shared = False
        """Whether replays keep `accesses`."""
        self._changed: dict[int, int] = {}
        self._changes: deque[tuple[int, list[tuple[int, layout.Words]]]] = deque()
        self._version = 0

    def __len__(self) -> int:
        return len(self.accesses)

    def holds(self, place: int) -> bool:
        """Tell whether the segment has the launch at a place of the graph."""
        return self.first <= place < self.first + len(self)

    def parts(self) -> list[ReplayTask]:
        """Return its tasks in the form that users see."""
        found = []
        for task, launch in enumerate(self.laid.launches):
            access, upstream = self.laid.accesses[task], self.laid.upstream[task]
            if launch == JOINT:
                found.append(ReplayTask(self.name(task), 0, -1, (), (), tuple(upstream)))
                continue
            own = self.laid.tasks[launch]
            band = task - own.start if len(own) > 1 else -1
            reads, writes = tuple(access.reads), tuple(access.writes)
            place = self.places[launch] + 1
            found.append(
                ReplayTask(self._names[launch], place, band, reads, writes, tuple(upstream))
            )
        return found

    @property
    def broken(self) -> bool:
        """Tell whether a run failed, so that the state of its blocks is unknown."""
        return self.resident.broken

    # ---- changes -------------------------------------------------------------------------------

    def patch(self, index: int, launch: Pair, task: Task) -> bool:
        """Give launch `index` other arguments. Return False if that needs another segment."""
        command, access = launch
        own = self.laid.tasks[index]
        if (
            not alike(self.cuts[index], task.cuts, self.accesses[index], access)
            or task.tiles != sum(int(self._record(one)[layout.TILES]) & 0xFFFF for one in own)
            or not all(self._fits(one, task) for one in own)
        ):
            return False
        self.cuts[index] = task.cuts
        for one, band in zip(own, task.cuts.bands, strict=False):
            self.laid.accesses[one] = band.access
        if not task.cuts.bands:
            self.laid.accesses[own[0]] = access
        for one in own:
            self._put(one, task)
        if access != self.accesses[index]:
            if self._shared:
                self.accesses, self._shared = [*self.accesses], False
            self.accesses[index] = access
        if index in self.counted and isinstance(command, DecidedCommand):
            self.counted[index] = command
        return True

    def _record(self, task: int) -> layout.Words:
        at = layout.HEADER_WORDS + task * layout.RECORD_WORDS
        return self._words[at : at + layout.RECORD_WORDS]

    def _fits(self, number: int, task: Task) -> bool:
        """Tell whether task `number` differs from `task` in arguments only."""
        record, head = self._record(number), np.frombuffer(task.head, np.uint32)
        same = [layout.ITEMS, layout.TILE_ITEMS, layout.LOCAL]
        return not (
            (record[same] != head[same]).any() or (int(record[0]) ^ int(head[0])) & 0xFFFF00FF
        )

    def _put(self, number: int, task: Task) -> None:
        """Write other arguments into the record of task `number`."""
        at = layout.HEADER_WORDS + number * layout.RECORD_WORDS
        head = np.frombuffer(task.head, np.uint32)
        blob = np.frombuffer(task.blob.ljust(-(-len(task.blob) // 4) * 4, b"\0"), np.uint32)
        inline = len(task.blob) <= layout.INLINE_BYTES
        place = at + layout.INLINE_WORD if inline else int(self._record(number)[layout.ARGS])
        self._change(at + layout.WHEN, head[layout.WHEN : layout.UPTO + 1])
        self._change(place, blob)

    def _change(self, at: int, new: layout.Words) -> None:
        if (self._words[at : at + len(new)] != new).any():
            # noted first: Ctrl-C in between does no harm then
            self._changed[at] = max(len(new), self._changed.get(at, 0))
            self._words[at : at + len(new)] = new

    def command(self) -> SegmentCommand:
        """Return a replay of the segment as it is now."""
        if self._changed:
            places = sorted(self._changed.items())
            if len(places) > MOST_WRITES:
                start, end = places[0][0], max(at + n for at, n in places)
                places = [(start, end - start)]
            self._version += 1
            batch = [(at, self._words[at : at + n].copy()) for at, n in places]
            self._changes.append((self._version, batch))
            self._changed.clear()
        self._shared = True
        return SegmentCommand(self, self._version, self.accesses)

    def loop(self, flag: int, at_most: int) -> SegmentCommand:
        """Return a run of a loop, of at most `at_most` rounds. `flag`: the address of the word that
        decides."""
        self._change(self._loop, rounds.asked(flag, at_most))
        return self.command()._replace(run=LoopRun(self.expected))

    def changes(self, version: int) -> list[tuple[int, layout.Words]] | None:
        """Return the words to write before a replay of that version, each with its place in bytes.
        They stay changes until they are written. None: there are none."""
        if not self._changes:
            return None
        return [
            (4 * at, new) for due, batch in self._changes if due <= version for at, new in batch
        ]

    def has_written(self, version: int) -> None:
        """Forget these changes."""
        while self._changes and self._changes[0][0] <= version:
            self._changes.popleft()

    # ---- proofs --------------------------------------------------------------------------------

    def prove(self, queue: cl.CommandQueue) -> Proof:
        """Prove the words on the device, with what the next run writes there before it starts. No
        run of the segment may be in flight."""
        from . import proof

        region = self.resident.region
        words = np.empty(region.size // 4, np.uint32)
        whole = driver.Place(region, 0, words.nbytes)
        driver.wait_for_event(driver.read(queue, words, whole, None))
        for _, batch in self._changes:
            for at, new in batch:
                words[at : at + len(new)] = new
        for at, many in self._changed.items():
            words[at : at + many] = self._words[at : at + many]
        sent = proof.Sent(
            min(self.scheduler.limits.groups, self.image.width), MOST_LAUNCHES,
            len(self.scheduler.bodies), self.resident.next,
        )  # fmt: skip
        return proof.prove(words, self.laid.accesses, sent, self.laid.launches)

    # ---- runs ----------------------------------------------------------------------------------

    def refused(self, status: layout.Words) -> SegmentError | None:
        """Return an error that names the counts refused in a run. `status`: what the run left.
        None: no launch that has a count, so that something has overwritten words of the segment."""
        if not self.counted:  # then the state of tasks is not read back
            return None
        values = status[layout.STATE_WORD :][layout.task_places(self.image.tasks)]
        tasks = np.flatnonzero(values >= layout.FAULTY).tolist()
        launches = [self.laid.launches[task] for task in tasks]
        if not launches or not self.counted.keys() >= {*launches}:
            return None
        first = launches[0]
        wrong = self.counted[first].wrong(
            self.places[first] + 1, layout.told_counts(status).get(tasks[0])
        )
        return SegmentError(f"of the graph, {wrong}", launches)

    def told(self, task: int) -> str:
        """Say what a task is, to a reader who knows the graph."""
        launch = self.laid.launches[task]
        if launch == JOINT:
            return self.name(task)
        return f"launch {self.places[launch] + 1} of the graph ({self.name(task)})"

    def name(self, task: int) -> str:
        """Say what a task is."""
        launch = self.laid.launches[task]
        if launch == JOINT:
            return "what bands wait for together"
        own = self.laid.tasks[launch]
        band = f", band {task - own.start}" if len(own) > 1 else ""
        return f"{self._names[launch]}{band}"
