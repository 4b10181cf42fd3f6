"""Pieces: how a replay sends the launches of a graph.

Input: a recording, an order, and the cutter of the backend. Output: segments of the scheduler, runs
that are placed on devices, launches in parts, and single launches; the footprints of segments; the
bodies of loops that the device runs by itself. They change with the recording, as far as they can.

Invariant: no launch crosses the border of a loop.
"""

# Long because: what is sent, what changes in it, and what is told of it are one state.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import core
from ..access.cuts import EARLY
from ..kernel import Kernel
from ..launch.commands import KernelCommand
from ..launch.observers import Together
from ..ranges import merged
from ..records import Access, Command, Pair
from ..scheduler.cutting import Single
from ..scheduler.orders import Work
from ..scheduler.policy import AS_RULED
from ..scheduler.segment import Segment
from .arranging import arranged, keeps_order
from .bands import Parted, parted, told, told_parts
from .calls import Move, Recorded, union
from .loop_trial import LoopTrial
from .loops import Loop
from .recording import Recording
from .series import Series, series_of
from .verify import Verified, judged

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from ..scheduler.cutting import Cutter

Key = int | tuple[int, int, int]
"""Key of a segment: its place among the pieces, or the key of the loop."""

Piece = Segment | Single | Parted | Together
"""A part of a replay."""

Footprints = dict[Key, tuple[core.native.Footprint, Access]]

MOST_REASONS = 4
"""Reasons for cuts that an explanation lists."""


class Pieces:
    """The parts of a replay. Without `compile` there are none."""

    def __init__(
        self,
        engine: Engine,
        recording: Recording,
        footprints: Footprints,
        way: int = AS_RULED,
    ) -> None:
        self._engine = engine
        self.way = way
        """Which launches segments have: those that the policy says, all that they can, or none."""
        self.why = ""
        """Why that is so, for explanations."""
        self.order = "first_in"
        """The name of the order that launches go in."""
        self._recording = recording
        self.all: list[Piece] = []
        self.access = Access((), ())
        """Of a whole replay."""
        self.turns: list[int] = []
        """The launches in the order in which a replay sends them, which is that of the pieces."""
        self._turn_of: list[int] = []
        """The turn of each launch, the inverse of `turns`."""
        self._starts: list[int] = []
        """The first turn of each piece."""
        self._uncut: dict[int, str] = {}
        """Why single launches have no parts, by turn."""
        self._replays = -1
        """How often it was replayed with launches that have no device yet. -1: all have one."""
        self._bodies: dict[tuple[int, int, int], Segment | str] = {}
        """{the key of a loop: its body for the device, or why the device does not run it}, as
        found."""
        self._cutter: Cutter | None = None
        """What cut the launches into segments."""
        self._body_cutters: dict[tuple[int, int, int], Cutter] = {}
        """{the key of a loop: what made its body, or did not}."""
        self._trials: dict[tuple[int, int, int], LoopTrial] = {}
        """{the key of a loop: its trial}, as begun."""
        self.footprints = footprints
        self._segments: list[Segment] = []
        self._series: dict[int, Series] | None = None
        """By their first piece: launches that the core makes in one call. None: to be found."""

    def compile(self, order: str, work: Sequence[Work]) -> None:
        """Make pieces of the recorded launches. `work`: of each launch, if that is known."""
        self.order = order
        recorded, borders = self._recording.pairs(), self._recording.borders()
        self.turns = arranged(recorded, order, work, borders)
        self._turn_of = [0] * len(recorded)
        for turn, place in enumerate(self.turns):
            self._turn_of[place] = turn
        launches = [recorded[place] for place in self.turns]
        self._cutter = cutter = self._engine.cutter(self.way)
        if cutter is not None:
            self.all = cutter.pieces(launches, borders, self._in_bands)
        else:
            self.all = [Single(turn, "") for turn in range(len(launches))]
        numbered = dict(enumerate(launches))
        self.all = [self._in_parts(piece, numbered) for piece in self.all]
        self._replays = 0 if self._engine.is_several and self._engine.checker is None else -1
        self._lay_out()
        self.footprints = {
            number: self._footprint(union(piece.accesses), number)
            for number, piece in enumerate(self.all)
            if isinstance(piece, Segment)
        }
        self.access = self._recording.union_of(self._recording.all_calls)

    def _in_parts(self, piece: Piece, launches: Mapping[int, Pair]) -> Piece:
        """Return the piece, or the parts of a single launch that is to be cut."""
        if not isinstance(piece, Single):
            return piece
        found = parted(self._engine, piece.turn, *launches[piece.turn])
        if not isinstance(found, str):
            return found
        self._uncut[piece.turn] = found
        return piece

    def _in_bands(self, turn: int, many: int) -> KernelCommand | None:
        """Return a launch as one that is to be cut into its tiles, if the library may choose.
        `many`: `TILES` or `EACH_TILE`."""
        return self._in_bands_by_place(self.turns[turn], many)

    def _in_bands_by_place(self, place: int, many: int) -> KernelCommand | None:
        """Return the same by its place in the recording, as for bodies of loops."""
        recording = self._recording
        command, _, number, _ = recording.launches[place]
        kernel, args, keywords, _, _ = recording.calls[number]
        if type(command) is not KernelCommand or not isinstance(kernel, Kernel):
            return None
        said = keywords.get("bands", self._engine.options.bands)
        if said not in (EARLY, "auto") or not keywords.keys() <= {"bands", "offset"}:
            return None
        if len(recording.places[number]) != 1:
            return None  # some of many launches by one call
        offset = keywords.get("offset")
        return command._replace(cut=kernel.cut_into_tiles(many, *args, offset=offset))

    def _lay_out(self) -> None:
        """Note where the pieces begin, and which launches they have."""
        self._series = None
        self._segments = [piece for piece in self.all if isinstance(piece, Segment)]
        self._starts = [
            piece.turn if isinstance(piece, Single) else piece.first for piece in self.all
        ]
        for piece in self.all:
            if not isinstance(piece, Single):
                piece.places = self.turns[piece.first : piece.first + len(piece)]

    def _footprint(self, access: Access, key: Key) -> tuple[core.native.Footprint, Access]:
        before = self.footprints.get(key, (None,))[0]
        reads, writes = merged(access.reads), merged(access.writes)
        with self._engine.lock:
            footprint = self._engine.hazards.footprint(reads, writes, before)
        return footprint, access

    # ---- for replays ---------------------------------------------------------------------------

    @property
    def is_broken(self) -> bool:
        """Tell whether a segment has to be made again."""
        return any(segment.resident.broken for segment in self._segments)

    @property
    def is_behind(self) -> bool:
        """Tell whether schedulers are built by now that were not when launches were cut."""
        return self._cutter is not None and self._cutter.is_behind

    @property
    def awaits_builds(self) -> bool:
        """Tell whether such schedulers are still being built."""
        return self._cutter is not None and self._cutter.awaits

    def place(self) -> None:
        """Choose devices for launches that have none, if that is possible by now."""
        if self._replays < 0:
            return
        recorded = (self._recording.launches[place] for place in self.turns)
        launches = [(one.command, one.access, one.cutting) for one in recorded]
        found = self._engine.placed(launches, self._recording.borders(), self._replays)
        self._replays += 1
        if found is not None:
            self.all = [Single(one, "") if isinstance(one, int) else one for one in found]
            self._replays = -1
            self._lay_out()

    def series(self, number: int) -> Series | None:
        """Return the series of launches that begins with a piece."""
        if self._series is None:
            self._series = self._find_series()
        return self._series.get(number)

    def _find_series(self) -> dict[int, Series]:
        engine = self._engine
        if engine.is_several:  # placed runs make launches together there
            return {}
        with engine.lock:
            borders = self._recording.borders()
            return series_of(engine.hazards, self.all, self._launch_of, borders, engine.has_word)

    def _launch_of(self, piece: Single) -> tuple[int, Command, Access]:
        place = self.turns[piece.turn]
        found = self._recording.launches[place]
        return place, found.command, found.access

    def between(self, launches: range) -> range:
        """Return the pieces of consecutive launches that no border of a loop divides."""
        first = bisect_left(self._starts, launches.start)
        return range(first, bisect_left(self._starts, launches.stop))

    def looped(self, loop: Loop) -> Segment | str:
        """Return the body of a loop as a segment of its own, or why the host drives it."""
        found, before = self._bodies.get(loop.key), self._body_cutters.get(loop.key)
        is_over = found.broken if isinstance(found, Segment) else before and before.is_behind
        if found is None or is_over:
            cutter, body = self._engine.cutter(AS_RULED), self._recording.launches_of(loop.calls)
            if cutter is None:
                found = "only the scheduler on the device runs rounds by itself"
            elif loop.inner:
                found = "it holds a loop"
            else:
                pairs = self._recording.pairs(body)
                found = cutter.looped(pairs, body.start, self._in_bands_by_place)
                self._body_cutters[loop.key] = cutter
            self._bodies[loop.key] = found
        return found

    def trial_of(self, loop: Loop) -> LoopTrial | None:
        """Return what chooses who drives a loop that the device can run. None: the device does."""
        engine = self._engine
        if not engine.backend.tries_loops or engine.checker is not None:
            return None
        if not isinstance(self.looped(loop), Segment):
            return None
        found = self._trials.get(loop.key)
        if found is None:
            found = self._trials[loop.key] = LoopTrial(engine.now_us)
        return found

    def footprint_of(self, loop: Loop, access: Access) -> core.native.Footprint:
        """Return the footprint of a loop that the device runs."""
        key = loop.key
        if key not in self.footprints or self.footprints[key][1] != access:
            self.footprints[key] = self._footprint(access, key)
        return self.footprints[key][0]

    def verify(self) -> Verified:
        """Prove that they keep program order. Nothing is in flight."""
        proofs = [
            (piece.told, piece.prove(self._engine.backend.queues[0]))
            for piece in self.all
            if isinstance(piece, Segment) and not piece.broken
        ]
        recorded = self._recording.pairs()
        return judged(proofs, len(recorded), keeps_order(recorded, self.turns))

    # ---- changing ------------------------------------------------------------------------------

    def patch(
        self, recording: Recording, made: Mapping[int, list[Recorded]], move: Move | None
    ) -> bool:
        """Tell the pieces about a recording with other arguments, in the launches of calls that
        were `made` again. False: one cannot be changed."""
        self._recording, self._series = recording, None
        cutter = self._engine.cutter(AS_RULED)
        moved = set()
        fits = True
        for number, several in made.items():
            for place, new in zip(recording.places[number], several, strict=True):
                turn = self._turn_of[place]
                at = self._at(turn)
                piece = self.all[at]
                if isinstance(piece, Single | Parted):
                    single = self._in_parts(Single(turn, ""), {turn: new[:2]})
                    fits = fits and type(single) is type(piece)
                    if isinstance(single, Parted):
                        single.places = (place,)
                        self.all[at] = single
                elif not isinstance(piece, Segment):
                    with self._engine.lock:
                        fits = fits and move is None and piece.patch(turn, new.command)
                if isinstance(piece, Segment) and cutter is not None and fits:
                    with self._engine.lock:
                        pair = new.command, new.access
                        fits = cutter.patch(piece, turn, pair, self._in_bands)
                    moved.add(at)
                for body in self._bodies.values():
                    if isinstance(body, Segment) and cutter is not None and body.holds(place):
                        with self._engine.lock:
                            pair = new.command, new.access
                            fits &= cutter.patch(body, place, pair, self._in_bands_by_place)
        if move is not None and fits:
            for at in moved:
                self._move(at, move)
            self.access = move.access(self.access)
        return fits

    def _move(self, number: int, move: Move) -> None:
        """Move the memory of a segment to another place."""
        footprint, access = self.footprints[number]
        access = move.access(access)
        self.footprints[number] = footprint, access
        reads, writes = (
            merged(one for one in spans if one.base == move.to)
            for spans in (access.reads, access.writes)
        )
        new = [(one, False) for one in reads] + [(one, True) for one in writes]
        with self._engine.lock:
            self._engine.hazards.move(footprint, move.base, new)

    # ---- telling -------------------------------------------------------------------------------

    def _at(self, turn: int) -> int:
        """Return which piece has this turn."""
        return bisect_right(self._starts, turn) - 1

    def routes(self) -> list[str]:
        """Say on which way each launch goes."""
        routes = ["lane"] * len(self.turns)
        for number, piece in enumerate(self.all, 1):
            if isinstance(piece, Segment):
                for place in piece.places:
                    routes[place] = f"segment {number} of the scheduler"
            elif isinstance(piece, Parted):
                routes[self.turns[piece.first]] = f"lanes, {len(piece.parts)} bands"
            elif not isinstance(piece, Single):
                for turn, device in piece.devices():
                    place = self.turns[turn]
                    before = f"{routes[place]}, " if routes[place] != "lane" else ""
                    routes[place] = f"{before}device {device}"
        return routes

    def told(self) -> str:
        """Say what they are."""
        if self._engine.is_several:
            return self._told_devices()
        if self._engine.cutter(AS_RULED) is None:
            return "launch by launch, since only the scheduler on the device runs segments"
        segments = [piece for piece in self.all if isinstance(piece, Segment)]
        singles = [piece for piece in self.all if isinstance(piece, Single)]
        text = f"segments: {len(segments)}, of {sum(map(len, segments)):,} launches"
        if len(segments) > 1 and not singles:
            text += "; cut where no scheduler has the kernels of both sides"
        if cut := sum(bool(one.bands) for piece in segments for one in piece.cuts):
            text += f"; cut into bands: {cut:,}"
        if singles:
            text += f"; by themselves: {len(singles):,}"
        reasons = Counter(piece.reason for piece in singles).most_common()
        for reason, count in reasons[:MOST_REASONS]:
            text += f"; {reason}: {count:,}" if reason else ""
        return f"{text}; {self.why}" if self.why else text

    def _told_devices(self) -> str:
        """Say where the launches run."""
        runs = [one for one in self.all if not isinstance(one, Segment | Single | Parted)]
        alone = len(self._recording.launches) - sum(map(len, runs))
        if not runs:
            return "each replay places them" + (
                ", until it is known how long they take" if self._replays >= 0 else ""
            )
        counts = Counter(device for run in runs for _, device in run.devices())
        text = ", ".join(f"{many:,} on device {device}" for device, many in sorted(counts.items()))
        text += f"; copies between devices in each replay: {sum(run.copies for run in runs):,}"
        return text + (f"; by themselves: {alone:,}" if alone else "")

    def told_loops(self) -> str:
        """Say who reads the words of loops."""
        text, many = "", len(self._bodies)
        for number, (key, found) in enumerate(self._bodies.items(), 1):
            word = f"the word of loop {number}" if many > 1 else "the word of a loop"
            why, trial = "" if isinstance(found, Segment) else found, self._trials.get(key)
            if not why and trial is not None and trial.is_over and trial.by_host:
                why = f"its rounds took {trial.ratio:.2f} of the time that they took on the device"
            if why:
                text += f"; the host reads {word} in each round: {why}"
            else:
                text += f"; the device itself reads {word}"
        return text

    def told_bands(self, place: int, was_asked: bool) -> str:
        """Say how a launch is cut into bands. `was_asked`: say why it is not, too."""
        turn = self._turn_of[place]
        piece = self.all[self._at(turn)]
        is_cut = isinstance(piece, Segment) and piece.cuts[turn - piece.first].bands
        if not is_cut and not was_asked:
            return ""
        if isinstance(piece, Segment):
            return "\n" + told(piece, turn - piece.first)
        if isinstance(piece, Parted):
            return "\n" + told_parts(self._touched(turn), turn, self.turns)
        return f"\nbands: off, since {self._uncut.get(turn, 'it has several devices')}"

    def _touched(self, turn: int) -> list[list[Access]]:
        """Return the accesses of launches up to one of them, for launches on lanes by parts."""
        found: list[list[Access]] = []
        for place, own in enumerate(self.turns[: turn + 1]):
            piece = self.all[self._at(place)]
            parts = [one.access for one in piece.parts] if isinstance(piece, Parted) else []
            found.append(parts or [self._recording.launches[own].access])
        return found
