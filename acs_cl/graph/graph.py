"""Graphs: launches recorded once and replayed many times.

Input: the calls of one thread inside `with rt.record() as graph`. Output: a `Graph`. To everything
else that runs, each `replay()` is exactly these launches in program order, with the arrays and
numbers that the graph has then.

Host backends get a replay launch by launch. A kernel with nothing but its arguments is called
again, which the native core makes short. Other launches go as usual, but their arguments are
converted and their accesses known.

On backend 'device' a run of launches that one scheduler can run is a segment: one launch for the
host, one access, no upload. A segment goes launch by launch too while bytes are poisoned, or could
get poisoned by a launch that has not run yet. Then a part of it may have to run, and a part not.

`cl_khr_command_buffer` is not used: docs/design/scheduler.md says why. It would belong where
`_single` issues launches one by one: a run of singles would be a command buffer.

Invariants:
- A graph holds the memory of all arrays that were used or made while it was recorded.
- A failure in a recording, in `update` or in `swap` leaves the graph as it was before that call.
"""

# Long because: recording, replaying and changing are the calls of one class.

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, NoReturn

from .. import core
from ..errors import (
    UsageError,
    describe,
    is_number,
    no_attribute,
    no_copy,
    offered,
    refuse_making,
    refuse_unknown,
    truth,
)
from ..handle import Handle
from ..host import output
from ..host.progress import Progress
from ..kernel import Kernel
from ..launch.commands import KernelCommand
from ..launch.decision import DecidedCommand
from ..launch.several_handles import numbers_of
from ..launch.waits import refuse_on_host_task
from ..memory.array import Array
from ..memory.blocks import Base
from ..observe.explain import Explanation
from ..records import EVERYTHING, Access, HostArray
from ..scheduler.cutting import Single
from ..scheduler.orders import ORDERS, Work
from ..scheduler.policy import AS_RULED
from ..scheduler.segment import Segment
from .arranging import arranged
from .calls import Call, Move, Recorded, again, frozen
from .handles import RecordedHandle, ReplayHandle
from .loops import Launched, Loop, Rounds, Run, check_written, checked, drive
from .pieces import Footprints, Piece, Pieces
from .recorder import Recorder
from .recording import Recording
from .trial import Trial
from .verify import Verified

if TYPE_CHECKING:
    from ..launch.engine import Engine
    from .costs import Profile
    from .loop_trial import LoopTrial
    from .tuning import Orders, Tuning

TUNING_S = 60.0

INTERRUPTED = "discarded: its recording ended with an exception"


class Graph:
    """Holds recorded launches and replays them. `Runtime.record` makes one.

    >>> import acs_cl as acs
    >>> with acs.Runtime() as rt:
    ...     prog = rt.build('''kernel void add(global const float *x, global float *y, float a)
    ...                        { int i = get_global_id(0); y[i] += a * x[i]; }''')
    ...     x, y = rt.array([1, 2, 3], "f4"), rt.zeros(3, "f4")
    ...     with rt.record() as graph:  # nothing runs
    ...         step = prog.add((3,), None, x, y, 1)
    ...     handle = graph.replay()
    ...     graph.update(step, a=10)
    ...     handle = graph.replay()
    ...     print(len(graph), y.get())
    1 [11. 22. 33.]
    """

    __slots__ = (
        "__weakref__", "_lock", "_order", "_pieces", "_profile", "_recorder", "_recording",
        "_state", "_thread", "_trial", "_tunes", "_way", "engine", "making",
    )  # fmt: skip

    if not TYPE_CHECKING:  # a type checker would take any name then
        __getattr__ = no_attribute

    __dir__ = offered

    def __new__(cls, *parts: object) -> Graph:
        """Refuse what a program may try."""
        refuse_making(cls, parts)
        return super().__new__(cls)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._lock = threading.RLock()
        self.making = core.native.Lock()
        """Held while the library makes calls in order to record them, as a `Recorder` does."""
        self._state = "not recorded yet"
        self._recording = Recording()
        self._pieces = Pieces(engine, self._recording, {})
        self._order = engine.options.order
        self._tunes = engine.options.tune_file is not None
        """Whether it is tuned before its next replay."""
        self._way: int | None = None
        """Which launches segments have, as for `Pieces`. None: a trial may still tell."""
        self._trial: Trial | None = None
        self._profile: Profile | None = None
        self._recorder: Recorder | None = None
        """While recording."""

    def __len__(self) -> int:
        return len(self._recording.launches)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Return the named arrays of a graph that was loaded. Swaps move them along."""
        return self._recording.named

    @arrays.setter
    def arrays(self, named: Mapping[str, Array]) -> None:
        self._recording.named = named

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the parts of a replay: segments, placed runs, and single launches."""
        return tuple(self._pieces.all)

    def __repr__(self) -> str:
        if self._state:
            return f"<acs_cl.Graph {self._state}>"
        segments = sum(isinstance(piece, Segment) for piece in self._pieces.all)
        return f"<acs_cl.Graph of {len(self):,} launches, segments: {segments}>"

    def __reduce__(self) -> NoReturn:
        no_copy(
            self, "a graph",
            "save(path) writes it to a file, and acs_cl.dask.Step(graph, x=x, …) is for Dask",
        )  # fmt: skip

    # ---- recording -----------------------------------------------------------------------------

    def __enter__(self) -> Graph:
        engine = self.engine
        engine.check_open()
        if self._state != "not recorded yet":
            raise UsageError("a graph is recorded once; rt.record() makes another one")
        self._thread = threading.get_ident()
        if self._thread in engine.recorders:
            raise UsageError("a recording inside a recording: end the first one before")
        with engine.lock:
            engine.end_bypasses()
        self._state = "being recorded"
        try:
            self._recorder = Recorder(self, self._recording, self.making)
            engine.recorders[self._thread] = self._recorder
            engine.table.recording(1)
            return self  # from here on `__exit__` hears of a signal
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def _end_recording(self) -> None:
        """Capture no more, whatever becomes of the graph."""
        if self.engine.recorders.pop(self._thread, None) is not None:
            self.engine.table.recording(-1)
        self._state = INTERRUPTED

    def _end_block(self, kind: object, error: object, trace: object) -> None:
        """Make pieces of what was recorded, or discard it."""
        recorder, self._recorder = self._recorder, None
        if kind is not None or recorder is None:
            self._let_go(INTERRUPTED)
            return
        if (wrong := recorder.end()) is not None:
            state, why = wrong
            self._let_go(state)
            raise UsageError(why)
        try:
            self._compile()
        except BaseException:
            self._let_go("discarded: it could not be compiled")
            raise
        self._state = ""
        if self.engine.options.proofs_file:
            path = self.engine.options.proofs_file
            output.write(path, f"{self.verify()}\n", "file of ACS_CL_VERIFY", "a")

    __exit__ = core.native.Leaving(_end_recording, _end_block)

    def _compile(self) -> None:
        """Make pieces of the recorded launches."""
        recorded, order = self._recording.pairs(), self._present_order()
        if order != "first_in" and self._profile is None:
            from .profile import known

            self._profile = known(self.engine, recorded)
        before, engine = self._pieces, self.engine
        self._trial = None
        self._pieces = self._made(order, before.footprints, self._way or AS_RULED)
        self._pieces.why = before.why
        if self._way is None and engine.backend.is_mixed and engine.checker is None:
            self._trial = Trial(engine, self._pieces)

    def _made(self, order: str, footprints: Footprints, way: int) -> Pieces:
        """Return pieces of the recorded launches. They do not hold the graph: that would be a cycle
        that keeps its memory."""
        pieces = Pieces(self.engine, self._recording, footprints, way)
        pieces.compile(order, self._work())
        return pieces

    def _present_order(self) -> str:
        """Return the name of the order that launches go in. For "auto" it is the tuned one."""
        if self._order != "auto":
            return self._order
        from .kept_tunings import tuned_order

        return tuned_order(self.engine.device, self._recording.pairs())

    def _work(self) -> list[Work]:
        """Return what each launch asks of the device, if that is known."""
        return [cost.work for cost in self._profile or ()]

    # ---- replaying -----------------------------------------------------------------------------

    def replay(self, *, while_: Array | None = None, at_most: int | None = None) -> ReplayHandle:
        """Launch all recorded launches again, and return a handle for all of them.

        Failures surface as those of single launches do.

        `while_` is one uint32 or int32 on the device: the graph is launched again and again as long
        as it is not 0. It is read before each round, the first included. `at_most` bounds the
        rounds, and `rounds` of the handle counts them. On backend 'device' the device reads the
        word, and on 'auto' where that is quicker. Elsewhere this call does, and returns when the
        loop is over.
        """
        self._check("replay")
        if self._tunes:
            self._tune_first()
        if at_most is not None and while_ is None:
            raise UsageError(
                "replay: at_most= bounds the rounds of while_=flag; without it, call replay() "
                "as often as the graph has to run"
            )
        numbers = Launched()
        self.engine.called()
        with self._lock:
            if self._state:  # another thread has closed it
                self._check("replay")
            loop = None if while_ is None else self._whole_loop(while_, at_most)
            if self._pieces.is_broken or self._pieces.is_behind:
                self._compile()
            if self._trial is not None:
                self._try(loop is None)
            self._pieces.place()
            if loop is None:
                self._run(self._recording.all_calls, self._recording.loops, numbers)
                rounds = Rounds(1)
            else:
                rounds = drive(self, loop, numbers)
            if self._trial is not None:
                self._trial.launched()
            self.engine.counts.replays += 1
            self.engine.counts.replayed += len(self)
            return ReplayHandle(self, numbers, self._pieces.access, rounds)

    def _try(self, is_once: bool) -> None:
        """Take the pieces that the trial chooses for this replay. `is_once`: it is one round."""
        trial = self._trial
        assert trial is not None
        if not is_once or self._recording.loops:  # how many rounds it has may change
            self._trial = None
            return
        before = self._pieces
        self._pieces = trial.begin(lambda way: self._made(before.order, {}, way))
        if trial.is_over:
            self._way = self._pieces.way
            self._trial = None
        if self._pieces.is_broken:  # pieces that were not used for a while
            self._pieces, self._way, self._trial = before, AS_RULED, None

    def _whole_loop(self, while_: Array, at_most: int | None) -> Loop:
        """Return the loop of a replay that repeats all of the graph."""
        calls, loops = self._recording.all_calls, tuple(self._recording.loops)
        flag, most = checked("replay(while_=)", self.engine, while_, at_most)
        check_written("replay(while_=)", flag, self._recording.union_of(calls))
        return Loop(flag, most, calls, loops)

    def _run(self, calls: range, loops: Iterable[Loop], numbers: Launched) -> None:
        """Launch consecutive calls, with the loops among them."""
        at = calls.start
        for loop in loops:
            self._without_loops(range(at, loop.calls.start), numbers)
            drive(self, loop, numbers)
            at = loop.calls.stop
        self._without_loops(range(at, calls.stop), numbers)

    def _without_loops(self, calls: range, numbers: list[int]) -> None:
        """Launch consecutive calls, none of which is in a loop."""
        pieces = self._pieces
        between = pieces.between(self._recording.launches_of(calls))
        number, series, first = between.start, None, 0
        while number < between.stop:
            if series is None or number >= series.stop:
                series, first = pieces.series(number), number
            if series is not None:
                many = series.stop - number
                launches = self.engine.launch_series(series.core, number - first, many)
                numbers += launches
                number += len(launches)
                if launches:
                    continue
            self._piece(number, numbers)
            number += 1

    def _piece(self, number: int, numbers: list[int]) -> None:
        """Launch one piece."""
        piece = self._pieces.all[number]
        if (trace := self.engine.tracer) is not None:
            trace.launches_more()
        if isinstance(piece, Single):
            numbers += self._single(self._pieces.turns[piece.turn])
        elif isinstance(piece, Segment):
            self._segment(number, piece, numbers)
        elif (made := piece.replay()) is not None:
            numbers += made
        else:
            for place in piece.places:
                numbers += self._single(place)

    # ---- for loops -----------------------------------------------------------------------------

    def body(self, loop: Loop) -> Launched:
        """Launch the body of a loop once. Return the launches."""
        numbers = Launched()
        self._run(loop.calls, loop.inner, numbers)
        return numbers

    def access_of(self, loop: Loop) -> Access:
        """Return the access of a loop, including its flag."""
        reads, writes, _ = self._recording.union_of(loop.calls)
        return Access((*loop.flag.spans, *reads), writes)

    def on_device(self, loop: Loop, most: int) -> tuple[int, Run, int] | None:
        """Launch up to `most` rounds at once, if the device can run them."""
        found = self._pieces.looped(loop)
        if not isinstance(found, Segment):
            return None
        engine, access = self.engine, self.access_of(loop)
        footprint = self._pieces.footprint_of(loop, access)
        if engine.may_be_poisoned(access):
            return None
        most = min(most, found.rounds)
        command = found.loop(loop.flag.address, most)
        assert command.run is not None
        engine.counts.segments += 1
        handle = engine.launch(command, access, None, None, footprint)
        return handle.number, command.run, most

    def trial_of(self, loop: Loop) -> LoopTrial | None:
        """Return what chooses who drives a loop that the device can run. None: the device does."""
        return self._pieces.trial_of(loop)

    def _single(self, place: int) -> tuple[int, ...]:
        engine, recording = self.engine, self._recording
        command, access, number, _ = recording.launches[place]
        call = recording.calls[number]
        is_whole = call.is_plain and len(recording.places[number]) == 1
        # the error of a wrong count says which launch of the graph it is, so that stays its command
        if (
            is_whole
            and isinstance(command, KernelCommand | DecidedCommand)
            and not command.is_counted
        ):
            handle: Handle = call.function(*call.args, **call.keywords)
            return numbers_of(handle)
        return numbers_of(engine.launch(again(command, place, engine.context), access))

    def _segment(self, number: int, segment: Segment, numbers: list[int]) -> None:
        engine = self.engine
        footprint, access = self._pieces.footprints[number]
        command = segment.command()
        made = engine.replay_segment(command, access, footprint)
        if not made:
            if engine.may_be_poisoned(access):
                for place in segment.places:
                    numbers += self._single(place)
                return
            made = engine.launch(command, access, None, None, footprint).number
        engine.counts.segments += 1
        numbers.append(made)

    def verify(self) -> Verified:
        """Prove that replays keep program order, from the words that are on the device.

        Waits for everything launched so far. Raises `InternalError` if the proof fails.
        """
        with self._locked("verify"):
            self.engine.drain()
            return self._pieces.verify()

    def dag(self, path: str | Path) -> None:
        """Write the graph of the recorded launches: '.dot', '.graphml' or '.json'."""
        from ..observe.dag import of_recorded, save

        self._check("dag")
        save(of_recorded(self._recording.pairs(), self._pieces.routes()), path)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Return a handle for each launch, in order. `update` takes it."""
        return tuple(
            RecordedHandle(self, place + 1, command.name, access, call, place - places.start)
            for call, places in enumerate(self._recording.places)
            for place, (command, access, *_) in zip(
                places, self._recording.of_call(call), strict=True
            )
        )

    def save(self, path: str | Path | IO[bytes], /, **arrays: Array) -> None:
        """Write the recorded calls to a file. `Runtime.load` makes a graph of it.

        The graph can be loaded in another program and on another device. The arrays that are given
        get names in the file, and no contents. Other memory that the graph reads keeps its present
        contents, and so does the rest of a named view's memory. Arguments have to be arrays of the
        runtime, numbers or NumPy values. Host tasks cannot be saved.
        """
        from .saving import save

        with self._locked("save"):
            names, recording = {**self.arrays, **arrays}, self._recording
            save(self.engine, path, recording.calls, recording.loops, self._pieces.access, names)

    # ---- changing ------------------------------------------------------------------------------

    def arrange(self, order: str) -> None:
        """Send the launches in another order from the next replay on.

        `order` says which of several ready launches goes first. The names are those of
        `Runtime(order=...)`. Each launch still waits for the same launches.
        """
        self._check("arrange")
        refuse_unknown("order", order, ("auto", *ORDERS))
        with self._locked("arrange"):
            before, self._order = self._order, order
            try:
                self._compile()
            except BaseException:
                self._order = before
                self._compile()
                raise

    def profile(self, fresh: bool = False) -> Profile:
        """Measure what each launch asks of the device, for orders from the next replay on.

        The profile has, for each launch, its time alone, bytes, operations, and whether it computes
        or waits for memory. Times that were kept on disk are used, unless `fresh`. Otherwise all
        launches run some times, one after another, host tasks too. Arrays then get their contents
        back, and a graph that writes other memory is refused.
        """
        from .profile import known

        self._check("profile")
        truth("fresh", fresh)
        self.engine.drain()  # what may fail yet
        with self._locked("profile"):
            found = None if fresh else known(self.engine, self._recording.pairs())
            if found is None:
                if why := self._why_not_tried():
                    raise UsageError(f"profile: {why}")
                found = self._measured()
            self._profile = found
            if self._order != "first_in":
                self._compile()
            return found

    def _measured(self) -> Profile:
        """Run all launches alone, and return what each asks of the device."""
        from .profile import measured

        recorded, saved = self._recording.pairs(), self._saved()
        return measured(self.engine, recorded, saved, lambda place: self._single(place)[-1])

    def tune(self, within_s: float = TUNING_S) -> Tuning:
        """Try in which order the launches go best, and how they are best cut into bands. Replays do
        so from the next one on.

        It takes up to about `within_s` seconds, in which the graph is replayed many times, host
        tasks too. Arrays get their contents back, and a graph that writes other memory is refused.
        The result is kept on disk, for launches with `bands="auto"` and graphs with `order="auto"`.
        What is not clearly faster stays in its order, and whole.
        """
        if not is_number(within_s) or not within_s > 0:
            raise UsageError(f"tune: within_s={within_s!r}: expected seconds above 0")
        self._check("tune")
        self.engine.drain()  # what may fail yet
        return self._tune(within_s, lambda text, share: None)

    def _tune(self, within_s: float, tell: Callable[[str, float], None]) -> Tuning:
        from .tuning import tuned, with_bands

        with self._locked("tune"):
            if why := self._why_not_tuned():
                raise UsageError(f"tune: {why}")
            began, orders = perf_counter(), self._orders()
            recording, calls = self._recording, self._recording.calls
            single = {
                number: recording.pairs(places)[0]
                for number, places in enumerate(recording.places)
                if len(places) == 1 and isinstance(calls[number].function, Kernel)
            }
            left_s = within_s - (perf_counter() - began)
            found, cuts = tuned(
                self.engine, calls, single, orders, self._again, self._saved(), left_s, tell
            )
            self._order = found.order
            default = self.engine.options.bands
            changed = {
                number: new
                for number, said in cuts.items()
                if (new := with_bands(calls[number], said)).keywords["bands"]
                != calls[number].keywords.get("bands", default)
            }
            if changed:
                self._change(changed)
            else:
                self._compile()
            return found

    def _orders(self) -> Orders:
        """Return the orders that send these launches in different ways. Before that they get a
        profile, by which some orders differ."""
        from .profile import known
        from .tuning import Orders

        recorded, now = self._recording.pairs(), self._present_order()
        if self._profile is None:
            self._profile = known(self.engine, recorded) or self._measured()
        names: dict[tuple[int, ...], str] = {}
        for order in (now, *ORDERS):
            names.setdefault(tuple(arranged(recorded, order, self._work())), order)
        return Orders(now, [*names.values()][1:], recorded)

    def _tune_first(self) -> None:
        """Tune it, if that is possible, and report it."""
        self._tunes = False
        path = self.engine.options.tune_file
        if path and not self._why_not_tuned():
            say = Progress()
            try:
                found = self._tune(TUNING_S, say)
                output.write(path, f"{found}\n", "file of ACS_CL_TUNE", "a")
            finally:
                say.end()

    def _why_not_tuned(self) -> str:
        """Say why it cannot be tuned; "" if it can."""
        if self._recording.loops:
            return "the graph has loops, which are not tuned"
        return self._why_not_tried()

    def _why_not_tried(self) -> str:
        """Say why its launches cannot run for a trial that leaves all as it was; "" if they can."""
        if self.engine.may_be_poisoned(self._pieces.access):
            return "launches that these depend on have failed, or may fail yet"
        for number, (command, access, *_) in enumerate(self._recording.launches, 1):
            if any(span.base <= EVERYTHING for span in access.writes):
                return (
                    f"launch {number} ({command.name}) writes memory that is not an array's, and "
                    "only arrays would get back what they had"
                )
        return ""

    def _saved(self) -> list[tuple[Array, HostArray]]:
        """Save the bytes of the program's arrays that the launches write."""
        from .contents import saved

        return saved(self._recording.pairs(), self._recording.arrays())

    def _again(self, calls: Sequence[Call], order: str) -> Graph:
        """Record a graph of other calls, in an order."""
        graph = Graph(self.engine)
        graph._tunes, graph._order, graph._way = False, order, self._way or AS_RULED
        with graph, self.making:  # let go before it is compiled: Ctrl-C is heard then
            assert graph._recorder is not None
            for call in calls:
                graph._recorder.capture(call.function, *call.args, **call.keywords)
        return graph

    def update(self, handle: Handle, /, **values: object) -> None:
        """Give a recorded launch of a kernel other numbers, by the names of its parameters.

        `handle` is what the launch returned in the recording. The numbers hold from the next replay
        on.
        """
        with self._locked("update"):
            number = self._call_of(handle)
            call = self._recording.calls[number]
            kernel = call.function
            if not isinstance(kernel, Kernel):
                raise UsageError(f"update: {handle.name} is no kernel, its values cannot change")
            args = list(call.args)
            names = [parameter.name for parameter in kernel.signature.parameters]
            for name, value in values.items():
                if name not in names:
                    raise UsageError(
                        f"update: kernel {kernel.name!r} has no parameter {name!r}; it has "
                        f"{', '.join(names)}"
                    )
                parameter = kernel.signature.parameters[names.index(name)]
                if parameter.is_pointer or parameter.space in ("image", "sampler"):
                    raise UsageError(
                        f"update: {parameter.type_name} {name} of kernel {kernel.name!r} is "
                        "memory; swap() gives a graph other arrays"
                    )
                args[2 + names.index(name)] = frozen(value, _same)
            self._change({number: call._replace(args=tuple(args))})

    def swap(self, old: Array, new: Array) -> None:
        """Use `new` in place of `old` from the next replay on.

        Both have the same shape, dtype and strides. Views of the memory of `old` move by as many
        bytes.
        """
        self._check("swap")
        self._check_pair(old, new)
        if not old.nbytes:
            return
        base, to, by = old.base, new.base, new.offset - old.offset
        assert base is not None
        assert to is not None

        def change(array: Array) -> Array:
            if array.base is not base:
                return array
            _check_place(array, to, by)
            return Array(
                array.engine, to, array.offset + by, array.shape, array.strides, array.dtype
            )

        with self._locked("swap"):
            recording = self._recording
            used = recording.users.get(base.number, set())
            if not used:
                raise UsageError(f"swap: the graph does not use the memory of {old!r}")
            changed = {n: recording.calls[n].with_arrays(change) for n in sorted(used)}
            loops = [one.with_flag(change) for one in recording.loops]
            named = {name: new if one is old else change(one) for name, one in self.arrays.items()}
            # a shift of all that uses a base keeps their hazards, but `to` may be in use already
            meets = base is not to and bool(recording.users.get(to.number))
            moved = recording.moved(base.number, to.number, loops, named)
            self._change(changed, Move(base.number, to.number, by), meets, moved)

    def _change(
        self,
        calls: dict[int, Call],
        move: Move | None = None,
        meets: bool = False,
        moved: Recording | None = None,
    ) -> None:
        """Make calls again, with other arguments. `move`: what it does to their accesses. Their
        hazards stay, unless a call `meets` memory that is used already. `moved`: the recording, but
        for the calls: one step changes all of it, whatever signals come."""
        engine, here, before = self.engine, threading.get_ident(), self._recording
        recorder = Recorder(self, before, self.making)
        made: dict[int, list[Recorded]] = {}
        with self.making:
            try:
                engine.recorders[here] = recorder
                engine.table.recording(1)
                for number, call in calls.items():
                    _, made[number], owned = recorder.make(call, number)
                    calls[number] = call._replace(owned=tuple(owned))
            finally:
                if engine.recorders.pop(here, None) is not None:
                    engine.table.recording(-1)
        alike = all(len(new) == len(before.places[number]) for number, new in made.items()) and all(
            new.access == (move.access(old.access) if move is not None else old.access)
            for number, several in made.items()
            for old, new in zip(before.of_call(number), several, strict=True)
        )
        owns = any(calls[number].owned or before.calls[number].owned for number in calls)
        self._recording = (moved or before).changed(calls, made)
        try:
            if meets or owns or not alike:
                self._profile = None
                self._compile()
            elif not all(one.patch(self._recording, made, move) for one in self._all_pieces):
                self._compile()
        except BaseException:
            self._recording = before
            self._compile()
            raise

    @property
    def _all_pieces(self) -> list[Pieces]:
        """Return the pieces of each way that a trial compares."""
        return [self._pieces] if self._trial is None else self._trial.pieces

    # ---- the rest ------------------------------------------------------------------------------

    def close(self) -> None:
        """Release memory. Replays in flight still finish with it."""
        with self._lock:
            if self._state == "being recorded":
                raise UsageError("close: the graph is being recorded")
            self._let_go("closed")

    def _let_go(self, state: str) -> None:
        self._state, named = state, self.arrays
        self._recording = Recording()
        self.arrays = named
        self._pieces = Pieces(self.engine, self._recording, {})
        self._trial = None

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        """Hold the graph for a call. Another thread may have closed it just before."""
        self._check(what)
        with self._lock:
            self._check(what)
            yield

    def _check(self, what: str) -> None:
        self.engine.check_open()
        refuse_on_host_task(what)  # a replay that waits for room may wait for a host task
        if threading.get_ident() in self.engine.recorders:
            raise UsageError(f"{what} inside a recording: a graph cannot be part of another one")
        if self._state:
            raise UsageError(f"{what}: the graph is {self._state}")

    def _call_of(self, handle: Handle) -> int:
        if not isinstance(handle, RecordedHandle) or not handle.is_of(self):
            raise UsageError(
                f"update: got {describe(handle)}, expected what a launch returned while this graph "
                "was recorded"
            )
        if handle.call < 0:
            raise UsageError(f"update: {handle.name} of no bytes was not recorded")
        return handle.call

    def _check_pair(self, old: Array, new: Array) -> None:
        for array in (old, new):
            if not isinstance(array, Array) or array.engine is not self.engine:
                raise UsageError(
                    f"swap: got {describe(array)}, expected arrays of the graph's runtime"
                )
            array.live()
        got, expected = ((a.shape, a.dtype, a.strides) for a in (new, old))
        if got != expected:  # texts of dtypes are made only then, since each takes microseconds
            raise UsageError(
                f"swap: got {got[0]} {got[1]} with strides {got[2]}, expected {expected[0]} "
                f"{expected[1]} with strides {expected[2]}"
            )

    def explain(self) -> Explanation:
        """Say how it is replayed."""
        backend = self.engine.plan.backend
        text = f"a replay of {len(self):,} launches on backend {backend}: "
        text += f"the graph is {self._state}" if self._state else self._pieces.told()
        if self._order != "first_in":
            text += f"; in order {self._order!r}"
        return Explanation(text + self._pieces.told_loops(), False, ())

    def told_bands(self, handle: RecordedHandle) -> str:
        """Say how a launch is cut into bands, if it is, or if that was asked for."""
        known = handle.call >= 0 and not self._state
        places = self._recording.places[handle.call] if known else range(0)
        if handle.nth >= len(places):  # it is one of no launches by now
            return ""
        place = places[handle.nth]
        command = self._recording.launches[place].command
        return self._pieces.told_bands(place, getattr(command, "cut", None) is not None)


def _same(array: Array) -> Array:
    return array


def _check_place(array: Array, base: Base, by: int) -> None:
    start = min(span.start for span in array.spans) + by
    end = max(span.end for span in array.spans) + by
    if start < 0 or end > base.nbytes:
        raise UsageError(
            f"swap: the graph uses a view {array!r} of the same memory, which would be bytes "
            f"{start}..{end} of {base.nbytes:,}"
        )
    item = array.dtype.itemsize
    unit = item & -item  # the alignment of its elements
    if by % unit and not array.offset % unit:
        raise UsageError(
            f"swap: the graph uses a view {array!r} of the same memory, which would start at byte "
            f"{array.offset + by}, between elements"
        )
