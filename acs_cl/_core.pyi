"""Declare what Python sees of the native core, `acs_cl/_core/*.cpp`.

This file is the whole border. `tests/test_core_stub.py` holds it against the module that was built:
every name here exists there, and every name there stands here. Words are those of the glossary in
`docs/design/glossary.md`.

Two rules hold for all of it:

- Everything that changes a launch is called with the runtime's lock held. The core takes that lock
  itself where Python calls it without (`Caller.__call__`, commands of an `acs.Queue`).
- The core reads some containers of Python in place (`Tracker`). Python never replaces such a
  container; it empties and refills it.
"""

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .access.bands import Groups
from .access.binder import Bound, Outcome, Ranges, Reached
from .errors import AcsError
from .launch.backend import Lease
from .launch.commands import KernelCommand, TransferCommand
from .records import Access, HostArray, Launch, Span
from .records import Command as Launchable
from .several.model import Parcel, Piece
from .several.policies import Lack, Links

Spans: TypeAlias = Iterable[Span]
Sizes: TypeAlias = tuple[int, ...]
Edges: TypeAlias = dict[int, str]
"""Upstream of a launch, with the first reason for each: RAW, WAR, WAW, reuse or any."""

_Side: TypeAlias = tuple[int, int, int]

_Owner = TypeVar("_Owner")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

Ended: TypeAlias = "list[End]"
"""Launches that ended and that Python has to know about. A launch that the core made, and that
ended well on a lane, is not among them."""

INTERFACE: Final[int]
"""Counts the versions of this border. `core.py` refuses a module with another number."""

MOST_ROWS: Final[int]
"""A span with more rows counts on several devices as all bytes from its first to its last one."""

UPLOAD_BYTES: Final[int]
"""Uploads of at least this many bytes get their own lane."""

SOURCES: Final[str]
"""Digest of the sources that the module was built from."""

IS_PROFILED: Final[bool]
"""Whether its code is laid out by how programs ran, as that of a wheel."""

# ---- views ------------------------------------------------------------------------------------

def index_view(index: object, shape: Sizes, strides: Sizes) -> tuple[Sizes, Sizes, int] | None:
    """Index as NumPy does: return shape, strides and byte offset of the view. None: no index."""

def spans_of_view(
    base: int, offset: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[Span, ...]:
    """Return the bytes of a strided view of `base`, in as few rectangles as possible."""

def lay_out(
    array: View,
    engine: object,
    base: object | None,
    ground: tuple[int, int, Any, int, Callable[[int, int], tuple[Any, int, int]]] | None,
    offset: int,
    shape: Sizes,
    strides: Sizes,
    dtype: np.dtype[Any],
    itemsize: int,
) -> None:
    """Fill a new array. `ground`: the number of the base, its address, its memory or None, where
    that begins, and what gives the place of some bytes otherwise."""

def indexed(array: View, index: object) -> Any:
    """Return a view of an array. None: the index is wrong, or Python has to make it."""

def release(array: View) -> None:
    """Release the memory of an array."""

def overlap(a: Span, b: Span) -> bool:
    """Say whether two spans of one base share a byte.

    Never no when they do. It is exact unless both have many rows and different pitches."""

def covers(a: Span, b: Span) -> bool:
    """Say whether every byte of `b` is in `a`: maybe no for exotic pairs, never a wrong yes."""

def cut(span: Span, reached: Sequence[tuple[int, int, int, int]] | None) -> list[Span]:
    """Return the bytes of an argument that are reached, in rectangles from its first one on.

    None: all of them."""

# ---- bodies -----------------------------------------------------------------------------------

class Binder:
    """Bind the arguments of a kernel's launches: what the driver takes, and what they touch.

    `acs_cl/access/binder.py` makes it."""

    most: int
    """Largest number of sizes and numbers with known ranges; launches with others touch whole
    views. Below 0: no limit."""

    def __init__(
        self,
        parameters: Iterable[tuple[str, str, int, int]],
        functions: Sequence[Any] | None,
        numbers: Sequence[tuple[int, int, str]],
        group: Sequence[int] | None,
        more: tuple[Span, ...],
    ) -> None:
        """Take code, mode and bytes of each parameter; the functions of an outline, and the
        numbers that matter there, as parameter, offset in it and code; the group size that the
        kernel asks for; what it reads and writes besides.

        An 'o' in a mode says that all of the argument is overwritten. Pointers among the parameters
        have ranges that the program declares."""

    @property
    def has_ranges(self) -> bool:
        """Say whether it knows which bytes launches reach."""
    @property
    def numbers(self) -> list[tuple[int, int, str]]:
        """Return the numbers that matter, as parameter, offset in it and code."""
    @property
    def runs(self) -> int:
        """Count the sizes and numbers that were worked out."""

    def bind(
        self,
        home: Any,
        global_size: Sizes,
        local_size: Sizes | None,
        offset: Sizes | None,
        args: Sequence[object],
        are_usual: bool,
        narrows: bool,
        ranges: Ranges | None = None,
    ) -> Bound | None:
        """Bind the arguments of a launch; None if one of them is not plain. `are_usual`: each is a
        `Resolved`, bytes, or an object of the driver. `narrows`: use the bytes that the kernel
        reaches. `ranges`: evaluates those that the program declares, once for the same sizes,
        numbers and bytes of arguments."""
    def touched(
        self,
        spans: Sequence[Sequence[Span] | None],
        numbers: Sequence[int],
        global_size: Sizes,
        local_size: Sizes | None,
        offset: Sizes | None,
        groups: Groups | None,
    ) -> Access:
        """Return what a launch, or a box of its groups, touches of its arguments."""
    def reached(
        self,
        global_size: Sizes,
        local_size: Sizes | None,
        offset: Sizes | None,
        numbers: Sequence[int],
        groups: Groups | None,
    ) -> dict[int, Reached]:
        """Return the reached bytes of each argument, counted from its start."""
    def outcomes(self, access: Access) -> list[Outcome]:
        """Return the sizes and numbers of launches with this access: several if several gave it,
        none if it was dropped."""

def replaced(
    access: Access,
    arguments: Sequence[Sequence[Span] | None],
    reads: Spans,
    writes: Spans,
    exact: Spans,
) -> Access:
    """Put what a program names in place of what was inferred for the arguments of which that is a
    part. What may as well belong to another argument stays. Those of the writes that are `exact`
    are sure to be overwritten, unless they are read."""

# ---- hazards ----------------------------------------------------------------------------------

def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same bytes in fewer spans, by base. For many spans: the hull of the base."""

class Footprint:
    """The merged spans of a recording, prepared for entering again and again."""

    @property
    def record(self) -> int:
        """The replay record that stands in the index for this footprint."""

class Hazards:
    """Index the bytes that launches in flight read and write.

    The model is `emu/reference/hazards.py`; both give the same edges."""

    def enter(self, number: int, reads: Spans, writes: Spans) -> Edges:
        """Add a launch and return what it follows. Numbers only grow."""
    def enter_many(self, first: int, accesses: Sequence[Access]) -> list[Edges]:
        """Add the bands of one launch, numbered from `first` on, and return what each follows:
        never another one of them. No two of them may write the same span."""
    def sharers(self, reads: Spans, writes: Spans) -> list[int]:
        """Return all launches, newest first, that the next one would share bytes with, if one of
        both writes them: also those that others imply."""
    def retire(self, number: int, /) -> None:
        """Remove a launch that ended."""
    def forget(self, base: int, /) -> None:
        """Drop everything known of a base whose memory was given back."""
    def leave(self, base: int, /) -> None:
        """Leave launches that touch a base to Python."""
    def take_up(self, base: int, /) -> None:
        """Let the core make launches that touch a base, as it does by default."""
    def inherit(self, base: int, numbers: Sequence[int], /) -> None:
        """Let a new base follow the launches that still use its block of memory."""
    def users(self, base: int) -> tuple[int, ...]:
        """Return the launches in flight that use a base."""
    def is_used(self, base: int) -> bool:
        """Tell whether a launch in flight uses a base."""
    def is_live(self, number: int, /) -> bool:
        """Say whether a launch is in the index."""
    def footprint(self, reads: Spans, writes: Spans, before: Footprint | None = None) -> Footprint:
        """Prepare the merged spans of a recording; `before` is the one that it replaces."""
    def enter_footprint(self, number: int, footprint: Footprint) -> Edges:
        """Add a replay and return what it follows."""
    def move(self, footprint: Footprint, base: int, spans: Iterable[tuple[Span, bool]]) -> None:
        """Replace the spans of one base in a footprint, each with whether it is written."""
    def _measure(self, number: int, accesses: Sequence[Access], window: int) -> float:
        """Return the nanoseconds that entering and retiring these launches takes. A benchmark."""
    @property
    def live(self) -> int:
        """Count the launches in the index."""
    @property
    def spans(self) -> int:
        """Count the spans in the index."""
    @property
    def edges(self) -> dict[str, int]:
        """Count the edges found so far, by kind."""
    @property
    def pruned(self) -> int:
        """Count the edges left out because others imply them."""
    @property
    def compared(self) -> int:
        """Count the comparisons of new spans with others."""
    @property
    def listed(self) -> int:
        """Count the neighbours of wide spans that came back, or were listed anew."""
    @property
    def _held(self) -> int:
        """Count the spans that are referenced. For tests of leaks."""
    wide: int
    """With at least this many neighbours, only those in use are compared. For tests."""
    def looks_at(self, span: Span) -> int:
        """Count the neighbours that a launch on a span looks at. For tests."""

# ---- orders -------------------------------------------------------------------------------------

def heights(
    upstream: Sequence[int], downstream: Sequence[int], took: Sequence[float], edge: float
) -> list[float]:
    """Return the longest way to the end from each task. `edge`: what each step of it adds.

    Edges come in the order of `downstream`."""

def sequence(
    upstream: Sequence[int],
    downstream: Sequence[int],
    keys: Sequence[float],
    classes: Sequence[int],
) -> list[int]:
    """Return all tasks, each behind its upstream: always the ready one with the smallest key.

    Two classes, 0 and 1, take turns where both have a ready task."""

# ---- the runtime's lock and books -------------------------------------------------------------

def use_main_thread(thread: int) -> None:
    """Tell the core in which thread Python handles signals: at import, and after a fork."""

def signals() -> int:
    """Count the signals that have come and that Python handles."""

def interrupt_waits() -> bool:
    """Say whether Ctrl-C waits for a lock of ours, in the main thread."""

def may_hear() -> bool:
    """Say whether this is the main thread, without a lock of ours."""

def hear() -> None:
    """Run the handlers of signals that wait, and raise what one of them raises."""

def want_turns(does: bool) -> bool:
    """Say whether the calling thread works beside the program, from now on; return whether it did.
    Threads that launch go without the GIL for it now and then. It matters on Linux only."""

def end_process(
    seconds: float, status: int, own: Literal["none", "failed", "any"], keeps: object
) -> None:
    """Skip what drivers do at exit, and end the process with `status` if this thread does nothing
    for so many seconds, or has not ended it after ten times as long. `own`: statuses of the program
    that are kept in place of this one. `keeps`: an object that Python never frees."""

def fail_at_the_end(status: int) -> None:
    """Have the process end with this status, if it would report success."""

def call_to_the_end(call: Callable[[bool], None]) -> None:
    """Call it, and again when Ctrl-C ended that, until it returns or another exception comes.

    It is told whether it was interrupted before."""

def hold_finalizers(held: bool) -> None:
    """Count this thread as inside of the core, or no longer. Until it is outside, what the core
    lets go of waits, and the collector of cycles does."""

def let_go(object: object) -> None:
    """Keep an object that may not be needed any more until the thread is outside of the core. With
    it may go objects of the program, whose finalizers run any code."""

def need_stack(frames: int) -> None:
    """Raise a `RecursionError` now, if there is no stack for so many frames of Python."""

def mark_host_task(runs: bool) -> None:
    """Note whether this thread runs host tasks."""

def on_host_task() -> bool:
    """Say whether this thread runs host tasks."""

def wait_for_event(event: int, seconds: float = -1) -> bool:
    """Wait until an event has ended; False after `seconds`. A raising signal handler ends it."""

def bridge(event: int, user: int) -> None:
    """Let a user event end with an event of another context, for which a thread waits."""

def carry(copies: Sequence[tuple[_Side, _Side, int, tuple[int, int, int]]], is_svm: bool) -> int:
    """Copy bytes to devices of other contexts, beside each other, and wait; return the driver's
    status.

    A copy is its source, its target, the number of bytes and its staging memory. A side is a queue,
    memory and an offset. Staging memory is an address, the bytes of a slot, and the number of
    slots."""

class Prepared:
    """Keeps what is the same each time that a launch of a kernel on a device comes again."""

    is_plain: bool
    """Whether the core can make it."""

    def __init__(
        self,
        hazards: Hazards,
        command: KernelCommand,
        access: Access,
        counted: tuple[int, int, int, bool] | None = None,
    ) -> None:
        """`counted`: the device decides the size. So each launch takes a word for a wrong count,
        which the command does not have: index of its argument, what the count may be at most, the
        number of which it is a multiple, and whether it is signed."""

    def launch(self, queues: Queues) -> int:
        """Launch, and return the number. A negative one: no lane took it, but it is in the
        table. 0: there is no word for a wrong count."""

class Series:
    """Keeps launches that are made one after another on the lanes of one device."""

    def __init__(self, launches: tuple[Prepared, ...]) -> None: ...
    def launch(self, first: int, most: int, queues: Queues) -> int:
        """Make up to `most` of them, from the one at `first` on, up to one that no lane took.
        Return the number of the last one, as `Prepared.launch` does. 0: Python has to make the
        first one, because something is unusual."""

class Together:
    """Keeps launches that are made together: the parts of a launch, or all of it on each device.

    A launch is given with its device, the spans that it needs there, and those that it writes."""

    def __init__(
        self, launches: Sequence[tuple[Prepared, int, Sequence[Span], Sequence[Span]]]
    ) -> None: ...
    def bring(self, coherence: Coherence, links: Links, prefetch: int) -> list[Parcel]:
        """Return the copies that they need, and note that these are made."""

    def launch(
        self,
        first: int,
        coherence: Coherence,
        clock: Clock,
        lanes: Sequence[Queues],
        now_us: float,
        took_us: Sequence[float],
    ) -> int:
        """Make the launches from the one at `first` on, up to one that no lane took. Return the
        number of the last one, as `Prepared.launch` does. What is written is noted, except by a
        launch that no lane took. `took_us`: how long each takes."""

class Clock:
    """Tells when devices will have done their launches, and when data will be ready. Times are in
    microseconds, on a clock that the caller chooses."""

    free_us: list[float]
    """When each device will have done all its launches."""

    def __init__(self, devices: int) -> None: ...
    def runs(
        self,
        writes: Sequence[Span],
        device: int,
        start_us: float,
        took_us: float,
        number: int = 0,
    ) -> None:
        """Note that a launch begins at a time, one with a number if it is really made."""

    def ended_us(self, numbers: Iterable[int]) -> float:
        """Return when some launches will have ended; 0: they have."""

    def ready_us(self, spans: Sequence[Span]) -> tuple[float, ...]:
        """Return when each device will have done the last launch there that writes memory of some
        spans; 0: it has."""

    def forget(self, base: int, device: int) -> None:
        """Forget a base that was freed."""

class Stage:
    """Keeps what is known of memory of the host that copies go through."""

    def __init__(self, hazards: Hazards, start: int, span: Span) -> None: ...

class Crossing:
    """Keeps what is the same each time that a copy from one device to another one comes again.

    `command` returns the record of a half, for one that no lane took. Numbers are as above."""

    def __init__(
        self,
        hazards: Hazards,
        is_svm: bool,
        source: tuple[int, int],
        target: tuple[int, int],
        nbytes: int,
        read: Span,
        written: Span,
    ) -> None: ...
    def is_used(self) -> bool:
        """Tell whether launches may be under way that use the memory at either end."""

    def launch(
        self,
        there: Queues,
        here: Queues,
        stage: Stage,
        read: Callable[[], TransferCommand],
        write: Callable[[], TransferCommand],
    ) -> int:
        """Launch the half that reads from a device and, unless no lane took that, the one that
        writes to another device behind it. Return the number of the last one."""

    def write(
        self,
        queues: Queues,
        stage: Stage,
        command: Callable[[], TransferCommand],
        behind: Queues,
        number: int,
    ) -> int:
        """Launch the second half, which writes to another device, behind the first one there."""

class Coherence:
    """Where the bytes of each base are valid, with several devices; `several.model` says what
    a piece and a set of devices are.

    Spans of memory without a number are passed over. Links are given by source, then by target."""

    def missing(self, span: Span, device: int) -> list[Piece]:
        """Return the written bytes of a span that are not valid on a device, in order."""

    def is_there(self, spans: Sequence[Span], device: int) -> bool:
        """Tell whether nothing of some spans is missing on a device."""

    def lacking(self, spans: Sequence[Span], devices: int) -> tuple[tuple[Lack, ...], ...]:
        """Return what each device lacks of some spans."""

    def bring(
        self, spans: Sequence[Span], device: int, links: Links, prefetch: int
    ) -> list[Parcel]:
        """Return the copies that a device needs to have some spans, and note that they are made.

        Up to `prefetch` bytes between two pieces go along, if the device lacks them."""

    def cover(self, span: Span) -> list[Piece]:
        """Cut an interval into as few pieces as possible, each valid as a whole on some device."""

    def everywhere(self, span: Span) -> int:
        """Return the devices that have all written bytes of a span; 0 if none was written."""

    def unwritten(self, span: Span) -> list[Span]:
        """Return the parts of a span that were never written."""

    def moved(self, piece: Piece, device: int) -> None:
        """Note that a piece was copied to a device."""

    def lost(self, piece: Piece, device: int) -> None:
        """Note that a device did not get a copy after all."""

    def put(self, piece: Piece) -> None:
        """Note that exactly these devices have a piece."""

    def written(self, span: Span, device: int) -> None:
        """Note that a launch on a device may have written a span, so no other device has it now."""

    def settle(self, base: int, nbytes: int) -> bool:
        """Tell whether only the first device has bytes of a base. If so, count all as written."""

    def forget(self, base: int) -> None:
        """Forget a base."""

    def all_of(self, base: int) -> list[Piece]:
        """Return the written pieces of a base with their devices."""

    def copy(self) -> Coherence:
        """Return a copy that can be changed by itself."""

    @property
    def bases(self) -> list[int]:
        """The bases with at least one interval."""

    @property
    def intervals(self) -> int:
        """The number of intervals of all bases."""

class Lock:
    """Lock as `threading.RLock` does; the core can test whether another thread holds it.

    While the main thread holds one, signals wait: handlers run once it was given back."""

    def acquire(self) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def is_owned(self) -> bool:
        """Say whether the calling thread has the lock."""
    def wait(self, event: int = 0, seconds: float = -1, /) -> bool:
        """Release the lock and wait for an event, or for `notify`; False after `seconds`.
        Afterwards the lock is held again in any case."""
    def notify(self) -> None:
        """Wake the threads that wait for progress."""

class Leaving(Generic[_Owner, _Parameters, _Result]):
    """Make a method of two functions, for `__exit__`. The first one runs whatever signals come, and
    makes them wait. The second one does not run if a handler has raised; that is raised then."""

    def __new__(
        cls,
        first: Callable[[_Owner], None],
        then: Callable[Concatenate[_Owner, _Parameters], _Result],
        /,
    ) -> Leaving[_Owner, _Parameters, _Result]: ...
    def __call__(
        self, owner: _Owner, /, *args: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> _Result: ...
    def __get__(self, owner: _Owner, kind: type[_Owner], /) -> Callable[_Parameters, _Result]: ...

class End:
    """Tell that a launch ended.

    With `epoch`, it tells that of the launches of an epoch that the core made: all ended well."""

    number: int
    status: int
    """The driver's: 0, or an error below 0."""
    event: Any
    """The event of the launch, kept if its times may be asked for."""
    lane: int
    epoch: int
    def __init__(self, number: int, status: int, event: Any, lane: int, epoch: int = 0) -> None: ...

class Due:
    """What a queue of the program has to do after its commands."""

    queue: Any
    settles: int
    """A launch to wait for first, with all launches that the host can look behind; 0: none."""
    is_sampled: bool
    """Whether a sample of its launches is complete."""
    has_waited: bool
    """Whether the host has waited for results."""

STEPS: Final[dict[str, tuple[str, ...]]]
"""Which states of a launch may follow each. `docs/design/launch-table.md` draws them."""

class Reasons:
    """Why launches went to lanes beside a scheduler."""

    def __init__(self) -> None: ...
    def note(self, number: int, reason: str) -> None:
        """Keep why a launch went to a lane, and count it."""
    def keep(self, number: int, where: str) -> None:
        """Keep where else a launch went: it is not counted."""
    def of(self, number: int) -> str | None:
        """Give what was kept of a launch, if that is known."""
    def reaches(self, number: int) -> bool:
        """Say whether it would still be known of a launch that it was kept."""
    def counts(self) -> dict[str, int]:
        """Count the launches for each reason."""

class Loan:
    """Gives a block back to a launch table, under the number of its base, when it is dropped.

    No Python runs then, so that nothing can be raised in between, as by Ctrl-C."""

    def __new__(cls, table: Table, base: int, block: Any, /) -> Loan: ...
    def __del__(self) -> None: ...

class Table:
    """Keeps a row for each launch in flight: its state, and its upstream. Launches that the core
    made have rows too. The model is `emu/reference/table.py`."""

    number: int
    """The number of the newest launch."""
    usable: bool
    is_closed: bool
    """Memory that is dropped from then on goes back to the driver."""
    """Whether the core may make launches by itself at all."""
    generation: int
    """Launch plans of an older generation are not used any more."""
    poisoned: bool
    """Whether any bytes are poisoned. If so, the core makes no launches by itself."""

    def join(
        self,
        hazards: Hazards,
        lock: Lock,
        backlog: int,
        window: int | None,
        ready_first: bool,
        in_order: bool,
    ) -> None:
        """Connect the table with the rest of its runtime, once."""
    def recording(self, change: int) -> None:
        """Count recordings under way: they have every launch made by Python."""
    def bypassing(self, change: int) -> None:
        """Count queues whose commands bypass the runtime."""
    def take_back(self) -> tuple[int, Any] | None:
        """Return one block whose loan has ended, with its base."""
    @property
    def has_returned(self) -> bool:
        """Whether there is any such block."""

    # -- from one state to the next
    def take(
        self,
        command: Launchable,
        access: Access,
        footprint: Footprint | None,
        after: Sequence[int],
        blocks_on_host: bool,
        has_foreign: bool,
        waits_on_host: bool,
        counted: bool,
    ) -> tuple[int, bool]:
        """Enter a launch of Python's: into the hazards and the window. `after`: launches that it
        follows whatever it touches; the rest as for `insert`. Its number, and whether it is
        ready."""

    def insert(
        self,
        launch: Launch,
        blocks_on_host: bool = False,
        has_foreign: bool = False,
        waits_on_host: bool = False,
        counted: bool = False,
    ) -> bool:
        """Enter a launch behind all others; return whether it is ready, and the caller has it.

        `blocks_on_host`: it holds back what follows it until it is done. `has_foreign`: it is held
        until `foreign_ended`. `waits_on_host`: it is held until all that it follows is done.
        `counted`: it may turn out wrong only when it has ended."""
    def start(self, number: int) -> None:
        """Note that a lane, an epoch or a thread of the host has a launch that was ready."""
    def end(self, number: int, failed: bool) -> None:
        """Note the end of a launch, well or not. The hazards forget it."""
    def never_ran(self, number: int, upstream: Sequence[int]) -> None:
        """Note that a ready launch will not run. Until `upstream` ends, it stands in."""
    def expand(self, upstream: tuple[int, ...]) -> tuple[int, ...]:
        """Return the upstream; launches that never ran are replaced by their stand-ins."""
    def foreign_ended(self, number: int) -> None:
        """Note that the foreign events of a launch have ended."""
    def lose(self, number: int) -> None:
        """Note that a failure has reached a launch: however it ends, it has failed."""
    def next_ready(self) -> int:
        """Return the next launch that became ready, or 0. The caller has it then."""
    def put_back(self, number: int) -> None:
        """Give back a ready launch that reached nobody, because of an error. It is the next one
        again."""
    def withdraw(self, number: int) -> None:
        """Note that a ready launch will not run, if it reached nobody."""
    @property
    def has_ready(self) -> bool:
        """Whether there is a ready launch."""

    # -- asking
    def __len__(self) -> int:
        """Count the launches in flight."""
    def __contains__(self, number: int) -> bool:
        """Say whether a launch is in flight."""
    def live(self) -> list[int]:
        """Return the launches in flight, in order."""
    def nth(self, place: int) -> int:
        """Return one of them by its place in that list, or 0."""
    def oldest(self) -> int:
        """Return the oldest of them, or 0."""
    def newest(self, last: int) -> int:
        """Return the newest of them up to `last`, or 0."""
    def state(self, number: int) -> str | None:
        """Return the state of a launch; None of one that is over, or never was."""
    def launch(self, number: int) -> Any:
        """Return the record of a launch in flight (`records.Launch`), or None."""
    def later(self, number: int) -> list[Launch]:
        """Return the records of all launches in flight behind one."""
    def blockers(self, number: int) -> list[int]:
        """Return which launches hold a launch back."""
    def has_count(self, number: int) -> bool:
        """Return whether only the end of a launch in flight tells if its count was right."""
    def log(self) -> None:
        """Keep the changes of state of each launch from now on."""
    def transitions(self, number: int) -> list[tuple[str, str, int]]:
        """Return the changes of a launch: from, to, and the time of `perf_counter_ns`."""
    @property
    def most(self) -> int:
        """The largest number of launches in the window so far."""
    @property
    def full(self) -> int:
        """Count the launches that found the window full."""
    @property
    def ended(self) -> int:
        """Count the launches that are over."""
    @property
    def by_core(self) -> int:
        """Count the launches that the core made by itself."""
    @property
    def held(self) -> int:
        """Count the launches that are held back."""
    @property
    def outside(self) -> int:
        """Count the held launches that wait for room in the window."""
    @property
    def occupied(self) -> int:
        """Count the launches in the window."""
    @property
    def is_counted(self) -> bool:
        """Whether any launch may turn out wrong only when it has ended."""
    @property
    def has_stand_ins(self) -> bool:
        """Whether a launch that never ran has stand-ins."""

    # -- epochs
    def new_queue(self) -> int:
        """Number another queue of the program's."""

    def assign(self, number: int, queue: int, shown: bool) -> None:
        """Note the queue of a launch, and whether the host can look behind the launch."""

    def queue_of(self, number: int) -> int:
        """Return the queue of a launch in flight; 0: none."""

    def newest_of(self, queue: int) -> int:
        """Return the newest launch that a queue ever had; 0: none."""

    def of_queue(self, queue: int, last: int, shown: bool) -> list[int]:
        """List a queue's launches in flight, up to one. `shown`: those the host can look behind."""

    def put(self, number: int, epoch: int, task: int) -> None:
        """Note that a launch is a task of an epoch. Epochs count from 1."""
    def epoch(self, number: int) -> int:
        """Return the epoch of a launch, or 0."""
    def task(self, number: int, epoch: int) -> int:
        """Return which task of that epoch a launch is, or -1."""
    def of_epoch(self, epoch: int) -> list[int]:
        """Return the launches of an epoch, by task."""
    def names(self, epoch: int) -> dict[str, int]:
        """Count the core's own launches of an epoch by the name of their kernel."""
    def leave(self, epoch: int, one_by_one: bool = False) -> list[int]:
        """Take the launches of an epoch out of it; return those that end one by one."""
    def end_epoch(self, epoch: int) -> None:
        """End the other launches of an epoch that was given up: those that the core made."""
    @property
    def in_epochs(self) -> int:
        """Count the launches in epochs."""
    def tell(self, reasons: Reasons) -> None:
        """Let the core note there why its launches went to lanes."""
    def open(
        self,
        epoch: int,
        recorder: Recorder,
        scheduler: Any,
        least_tasks: int,
        most_tasks: int,
        most_entries: int,
        next_poll: int,
    ) -> None:
        """Let the core add tasks to an epoch, within these limits."""
    def shut(self) -> list[int]:
        """Close the epoch for new tasks. Return its external upstream."""

    @property
    def counts(self) -> bool:
        """Whether launches of the open epoch are only counted."""
    @property
    def wants_attention(self) -> bool:
        """Whether launches of the open epoch are only counted, and no poll asks for it."""
    @property
    def is_complete(self) -> bool:
        """Whether all launches of the open epoch came as foreseen, so that it can be sent."""
    @property
    def follows(self) -> bool:
        """Whether the open epoch follows a remembered one that was longer."""
    def predict(self, on: bool) -> None:
        """Remember epochs from now on, and compare the next ones with them; or neither."""
    def allow_footprints(self, ns: int) -> None:
        """Let a footprint take so long for each of its launches; less than nothing: none may."""
    def count_for(self, ns: int) -> None:
        """Only count launches for so long before Python polls, which ends that."""
    def cut_epochs(self, least: int, gain: float, timed_gain: float, runs: int) -> None:
        """Cut foreseen epochs into sections of so many tasks at least, which gain this share of the
        time, by the model and then by the clock, in so many runs. A share above 1: never. One below
        0: also where they lose."""
    def forget_epochs(self) -> None:
        """Forget the remembered epochs."""
    def poll(self, engine: Any) -> None:
        """Do what is due, except for launches that are only counted."""
    def drop(self, resident: object) -> None:
        """Forget the epoch that was kept as `resident`."""
    def was_foreseen(self, number: int) -> bool:
        """Tell whether a launch was only counted, if that is still known."""
    def forecasts(self) -> dict[str, int]:
        """Count foreseen epochs, foreseen launches, and remembered epochs."""

# ---- what kernels, handles and arrays inherit from --------------------------------------------

class Caller:
    """Call a kernel: make the launch here if there is a plan for it, else call `_call`."""

    engine: Any
    @property
    def forgets(self) -> int:
        """How many times it was told to forget its launch plan."""
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

class Handle:
    """Holds the result of a launch. `Handle` adds the methods."""

    number: int
    name: str
    engine: Any
    _result: Any
    def __init__(
        self, engine: Any, number: int, name: str, access: Access, result: Any = None
    ) -> None: ...
    @property
    def access(self) -> Access:
        """The bytes that the launch reads and writes."""

class View:
    """Holds what launches need of an array: its memory, its spans and its runtime."""

    dtype: np.dtype[Any]
    shape: Sizes
    strides: Sizes
    """In bytes."""
    size: int
    nbytes: int
    engine: Any
    base: Any
    """What it shares with its views, or None if it has no memory."""
    offset: int
    """Bytes from the beginning of the base to the first element."""
    lead: int
    """Bytes that it touches before its first element."""
    home: Any
    is_inside: bool
    """The runtime while the array is plain and alive, else None."""
    address: int
    @property
    def argument(self) -> Any:
        """Return the argument for a driver: a buffer or an SVM pointer. None: it is not plain."""

    @property
    def place(self) -> Any:
        """Return its place in the form that the driver takes. None: it has no memory."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return the bytes that it touches."""

    @property
    def span(self) -> Span | None:
        """Return the same if it is plain, which is one span. None: it is not."""

    @property
    def holders(self) -> int:
        """Count the references to the span of this array. For tests of leaks."""

# ---- launch plans -----------------------------------------------------------------------------

def use(
    handle: type,
    cut_handle: type,
    array: type,
    local_memory: type,
    pointer: type,
    events: tuple[type, ...],
    numbers: tuple[type, ...],
    values: tuple[type, ...],
    flags: Iterable[npt.DTypeLike],
    size: type,
    truth: type,
    /,
) -> None:
    """Give the core the classes that it meets: handles, arrays, memory, events, numbers, values,
    flags, sizes that the device decides, and truths of NumPy."""

def plan(
    kernel: Caller,
    table: Table,
    name: str,
    parameters: Iterable[tuple[str, str, int, int]],
    binder: Binder,
    lanes: tuple[Queues, Any, bool] | None,
    record: tuple[int, int] | tuple[()] | None,
    forgets: int,
) -> None:
    """Give a kernel its launch plan: code, mode, bytes and place in a record by parameter.

    It gets none if it had to forget plans since it was `forgets`. An 'o' in a mode says that all of
    the argument is overwritten. `binder` tells which bytes it reaches. `lanes`: queues, kernel,
    whether memory goes there by address. `record`: bytes of arguments in records, and of local
    memory of the kernel's own; empty where the arguments do not go there, None where no scheduler
    has the kernel."""

def plan_sizes(
    kernel: Caller,
    global_size: Sizes,
    local_size: Sizes | None,
    offset: Sizes | None,
    heads: Iterable[tuple[Any, int, bytes, bytes | None, tuple[int, int, int, int] | None]],
    lease: Lease | None,
) -> None:
    """Add sizes to that plan. `heads`: for each scheduler that takes them, beginning with the home
    of the sizes: its local memory, the start of their records there, their shape, and a `Tiling`,
    if other sizes follow from these."""

def plan_bands(
    kernel: Caller,
    global_size: Sizes,
    local_size: Sizes | None,
    asked: Any,
    unit: Sizes,
    bands: Iterable[tuple[Sequence[Groups], Sizes, Sizes | None] | tuple[Sequence[Groups], bytes]],
    lanes: tuple[Any, str] | None,
    record: tuple[Any, int, bytes | None] | None,
) -> None:
    """Add to that plan how launches of these sizes are cut where `bands=` is `asked`.

    `bands`: the groups of each, as boxes of groups of `unit` work-items, and its size and offset on
    a lane, or how its record begins. `lanes`: the kernel of those with an offset, and why they are
    there. `record`: the scheduler, its local memory, and the shape of records."""

def plan_counted(
    kernel: Caller,
    global_size: Sizes,
    local_size: Sizes | None,
    offset: Sizes | None,
    rounded: int,
    lease: Lease,
) -> None:
    """Add to that plan that lanes take launches of these sizes with a count of up to the first one.
    `rounded`: that one for the driver."""

def plan_variant(
    kernel: Caller, variant: Any, starts: Iterable[int], decides: bool, counts: bool = False
) -> None:
    """Give a launch plan a variant of the kernel for lanes. `starts`: parameters whose arrays may
    start inside their buffers; it takes the first byte of each, behind its other parameters.
    `decides`: then it takes the flag of `when=`, which it reads first. `counts`: then the count,
    what that may be, and the word for a wrong one."""

def plan_elements(kernel: Caller, parameter: int, type: np.dtype[Any] | None) -> None:
    """Let a launch plan take arrays of these elements for a parameter, known by identity. Python
    holds the type. Without one it takes any. Launches with others come to Python."""

def is_planned(kernel: Caller, for_epochs: bool) -> bool:
    """Tell whether a kernel has a valid launch plan, with records if these are asked for."""

def forget(kernel: Caller, /) -> None:
    """Drop the launch plan of a kernel."""

class Touches:
    """Holds the access of the launches of one `launch_many`."""

    @property
    def first(self) -> int:
        """Return the number of the first one."""
    @property
    def many(self) -> int:
        """Count the launches that were made."""
    @property
    def reads(self) -> list[Span]: ...
    @property
    def writes(self) -> list[Span]: ...

def launch_many(
    kernel: Caller,
    sizes: list[tuple[Any, bool]],
    columns: list[tuple[Any, bool]],
    keywords: dict[str, tuple[Any, bool]],
    many: int,
) -> tuple[list[Touches | Handle], int, BaseException | None]:
    """Make launches in order. Return their group, their number, and why the next one was refused. A
    column holds the values of one parameter, and whether there is one for each launch. Launches
    that are not plain are calls of the kernel."""

# ---- the scheduler on the device --------------------------------------------------------------

class Recorder:
    """Collect the tasks of an epoch as the words that the scheduler reads.

    `acs_cl/scheduler/layout.py` describes the words, and `Recorder` there asks for them."""

    def add(
        self,
        record: bytes,
        blob: bytes | None,
        task_shape: bytes | None,
        upstream: Iterable[int],
    ) -> int:
        """Add a task behind earlier ones and return its index."""
    def _edges(self) -> tuple[list[int], list[int], list[int]]:
        """Return upstream and downstream tasks, edge by edge, and the tiles of each task."""
    def _image(
        self,
        spare: int,
        priority: Sequence[float],
        window: int,
        blocks: int,
        gang: bool,
    ) -> tuple[bytearray, int, int]:
        """Return all words, and block 0 with its length. If several tasks are ready, higher
        `priority` goes first. Without priorities, the order of the tasks counts."""
    @property
    def tasks(self) -> int:
        """Count the tasks."""
    @property
    def entries(self) -> int:
        """Count the entries that the ring of ready tiles needs."""
    @property
    def width(self) -> int:
        """Return a bound of the tiles that can be ready or running at one time."""

# ---- lanes ------------------------------------------------------------------------------------

def declare_memory(kernel: int, addresses: Sequence[int]) -> int:
    """Tell the driver the allocations that a kernel may reach by pointers. Return its status."""

def open_driver(functions: Sequence[int]) -> None:
    """Give the core the addresses of the OpenCL functions that it calls."""

class QueueKernel:
    """A kernel as the core launches it. Arguments that do not change are not set again."""

    def __init__(self, kernel: Any) -> None:
        """Launch a kernel whose arguments only the core sets from now on."""

class Launcher:
    """The kernel of a scheduler, and the number of groups that run at one time."""

    groups: int
    takes_notes: bool
    """Whether it writes when groups began and ended. Python reads this after each epoch."""
    child_slots: int
    """Slots that a ring has for children."""

    def __init__(self, kernel: QueueKernel, group: int, has_pool: bool) -> None:
        """Launch a kernel in groups of `group` work-items. `has_pool`: tasks may spawn others."""

    def use(self, kernel: QueueKernel) -> None:
        """Launch another form of it from now on."""

class Placed:
    """Where the parts of an image are in its region, and what its tasks need."""

    def __init__(self, tasks: int, width: int, block: int, block_words: int) -> None:
        """Take note of it."""
    @property
    def tasks(self) -> int:
        """Count the tasks."""
    @property
    def width(self) -> int:
        """Return a bound of the tiles that can be ready or running at one time."""
    @property
    def block(self) -> int:
        """Return the word at which block 0 begins."""
    @property
    def block_words(self) -> int:
        """Count the words of a block."""

class Resident:
    """An epoch that stays on the device, in two blocks that take turns: a segment of a graph, or
    one that came often."""

    region: Any
    next: int
    """The block that its next run uses."""
    broken: bool
    """Whether a run of it ended in an unexpected way, or the driver refused one. Then the state of
    its blocks is unknown. Behind a refused run no other one is sent."""

    def __init__(self, region: Any, placed: Placed) -> None:
        """Keep an image that is in `region`."""
    def __len__(self) -> int:
        """Count the tasks."""

class Epoch:
    """Holds launches that go to the scheduler by one command. The table knows which these are."""

    is_sent_anyway: bool
    """Whether it is sent even if it is very small."""
    is_clocked: bool
    """Whether its queue keeps times."""
    is_plain: bool
    """Whether only its outcome says how it went."""
    is_judged: bool
    """Whether a scheduler beside lanes looks at the time that it took."""
    opened: float
    """When its first task was seen; 0: none was."""
    resident: Resident | None
    """The epoch that came often, as which it runs, if any."""
    segment: Any
    """The segment that it replays, if any."""

    def __init__(self, scheduler: Any, number: int, recorder: Recorder) -> None:
        """Take launches for a scheduler."""
    @property
    def scheduler(self) -> Any:
        """Return the scheduler that runs it."""
    @property
    def recorder(self) -> Any:
        """Return the recorder of its tasks."""
    @property
    def number(self) -> int:
        """Return its number."""
    @property
    def attended(self) -> float:
        """Return since when it is polled; 0: it is not, and its first task wakes the sender."""
    @property
    def sent(self) -> float:
        """Return when it was sent."""
    @property
    def wait_for(self) -> int:
        """Count the events that it waits for."""
    @property
    def refused(self) -> int:
        """Return the driver's status of its commands, if that is an error."""
    error: Any
    """The exception that kept it from the driver, if any."""
    @property
    def counts(self) -> Placed:
        """Return the places of its parts, once it was sent."""
    @property
    def launches(self) -> int:
        """Count the launches of the scheduler."""
    @property
    def block(self) -> int:
        """Return which of its blocks the device uses."""
    @property
    def groups(self) -> int:
        """Count the groups of a launch."""
    @property
    def foreseen(self) -> int:
        """Count its launches that came as foreseen and were not collected."""
    @property
    def is_replay(self) -> bool:
        """Tell whether it is a replay of a segment that the core made."""
    @property
    def region(self) -> Any:
        """Return the memory of its words."""
    @property
    def _event(self) -> int: ...
    @property
    def _first(self) -> int: ...
    @property
    def _last(self) -> int: ...
    @property
    def _status(self) -> bytes: ...

def best_sections(
    tasks: int,
    edges: Sequence[tuple[int, int]],
    host_s: float,
    device_s: float,
    least: int,
    gain: float,
) -> list[int]:
    """Return where the sections of an epoch end that should take least. `edges`: pairs of tasks, by
    downstream task. `host_s`: seconds until the whole epoch is sent; `device_s`: until it has ended
    then. Each section has at least `least` tasks, and they gain at least this share of the time."""

class Sender:
    """Sends the epochs of one queue, in order, and keeps those that are on the device.
    `acs_cl/scheduler/sender.py` handles unusual cases."""

    is_timed: bool
    """Whether launches have events."""
    by_itself: bool
    """Whether the core sends an epoch that is due without Python."""
    on_words: Callable[[memoryview, Placed], object] | None
    """Receives the words of each collected epoch, and may change them, for tests."""
    tasks_sent: int
    cuts: int
    """Number of epochs that were sent early because of a wait."""
    newest_number: int
    """Number of the newest epoch. Tests set it."""

    def __init__(
        self,
        table: Table,
        memory: Reserved,
        constants: Any,
        classes: tuple[Any, Any, Any],
        on_cpu: bool,
        units: int,
    ) -> None:
        """Send epochs of the table's launches. `classes`: of epochs, recorders and memory."""
    @property
    def launches(self) -> int:
        """Count the launches of schedulers."""
    @property
    def epochs_sent(self) -> int:
        """Count the epochs."""
    @property
    def waits(self) -> int:
        """Count the external upstream of these epochs."""
    def _set(
        self,
        polls: int,
        turns: int,
        slice_s: float,
        order: Callable[[Any], Sequence[float]] | None,
        window: int,
        most_tasks: int,
        most_entries: int,
        few: int,
    ) -> None: ...
    def join(self) -> None:
        """Let the table ask for epochs that are due from now on."""
    def _requeue(self, queue: Any, lanes: Queues | None, is_timed: bool) -> None: ...
    @property
    def open(self) -> Any:
        """Return the open epoch, or None."""
    @property
    def newest(self) -> Any:
        """Return the newest epoch that was sent and not seen to end, or None."""
    @property
    def sent(self) -> list[Any]:
        """Return all epochs that were sent and not seen to end."""
    @property
    def has_any(self) -> bool:
        """Tell whether there are such epochs, or an open one."""
    @property
    def has_sent(self) -> bool:
        """Tell whether any epochs were sent and not seen to end."""
    @property
    def unsent(self) -> bool:
        """Say whether the open epoch has launches."""
    @property
    def in_hand(self) -> int:
        """Count the epochs that the device has not finished, up to two. More would gain nothing."""
    def find(self, number: int) -> Any:
        """Return an epoch by its number; None if it is not known, or was seen to end."""
    def take_ended(self) -> Any:
        """Take out the oldest sent epoch and return it, if it has ended; else None."""
    def new_epoch(self, scheduler: Any, is_sent_anyway: bool) -> Any:
        """Return an epoch that is not the open one."""
    def open_for(self, scheduler: Any, is_sent_anyway: bool) -> Any:
        """Return a new open epoch, in place of one without tasks. Its first task is not seen yet:
        the core calls for a poll when it makes that one."""
    def shut(self) -> list[int]:
        """Close the open epoch for new tasks; return its external upstream."""
    def attend(self) -> None:
        """Note that polls look at the open epoch, so tasks need not report that they have come."""
    def leave_alone(self) -> None:
        """Note that no poll looks at it any more."""
    def grow_to(self, tasks: int) -> None:
        """Let it grow to this many tasks before a poll of the device; 0: no limit."""
    def is_due(self) -> bool:
        """Tell whether it is full, or it has enough tasks and the device has no epoch."""
    def follow(self, epoch: Any, number: int) -> None:
        """Let an epoch wait for a launch, unless the launch is in an earlier epoch or has ended."""
    def send_open(self, opens: bool) -> None:
        """Send the open epoch; `opens`: the next one is open at once."""
    def push(self, epoch: Any) -> None:
        """Append an epoch that Python made to those that were sent."""
    def replay(
        self,
        scheduler: Any,
        command: Any,
        access: Access,
        footprint: Footprint,
        resident: Resident,
        writes: Sequence[tuple[int, Any]] | None,
    ) -> int:
        """Make a launch of a `SegmentCommand` and send it, behind the open epoch. Return its
        number. 0: something is unusual, so that Python has to, and nothing has changed. `writes`:
        words to write before it, each with its place in bytes."""
    def send_resident(
        self,
        epoch: Any,
        resident: Resident,
        writes: Sequence[tuple[int, Any]] | None,
        status_words: int,
        rounds: int,
    ) -> None:
        """Send an epoch of Python that is on the device already. `rounds`: about how many a loop
        will have, or 0."""
    def has_ended_well(self, epoch: Any) -> bool:
        """Tell whether a plain epoch has ended well. If so, nothing else is to be done for it."""
    def let_go(self, epoch: Any, tasks: int, well: bool) -> None:
        """Release what an ended epoch had, so that others can use it."""
    def let_go_of_all(self) -> None:
        """Release the memory kept for later epochs, and all epochs."""
    def land_in(self, make: Callable[[], list[Any]] | None) -> None:
        """Read the outcomes of epochs into memory from `make`, in pieces of one size."""
    @property
    def places(self) -> tuple[int, int]:
        """Count the pieces of pinned memory of epochs, and the free ones."""

class FromC:
    """Enqueues a kernel again and again from C++: the lower limit of the benchmarks."""

    def __init__(
        self,
        queues: Sequence[int],
        kernel: int,
        svm: bool,
        memory: Sequence[Sequence[int]],
        value: int,
        events: bool,
        /,
    ) -> None: ...
    def run(self) -> int:
        """Launch once for each item of `memory`; return the driver's status."""

class Queues:
    """Place launches on the lanes of a device and notice their ends."""

    waits: int
    """Counts events that launches were made to wait for."""
    by_host: int
    """Counts transfers that the host has made by itself."""
    bare: int
    """Counts launches that got no event of their own."""
    narrow: int
    """Counts launches on one lane, because all lanes would not be quicker."""
    unasked_enough: int
    clock_s: float | None
    """The time by which stretches of launches are measured. None: the clock's."""

    def __init__(
        self,
        queues: list[Any],
        out_of_order: bool,
        profiling: bool,
        classes: tuple[type, ...],
        make_event: Callable[[int, bool], Any],
        /,
    ) -> None: ...
    def place_by(self, after: int, fresh: int) -> None:
        """Choose lanes by a policy: numbers of `LANE_AFTER` and `LANE_NEW`."""
    def keep_machine_code_apart(self, others: Queues | None = None, by_size: bool = True) -> None:
        """Have launches that the driver makes different machine code for never run at one time:
        with an offset and without one, and `by_size`, larger than all before them. `others`: lanes
        of the same runtime that keep them apart already, and count as well."""
    def join(self, table: Table) -> None:
        """Connect the lanes with the table of their runtime."""
    def time_on(self, queue: Any) -> None:
        """Take another in-order queue that keeps times, for launches that have to be timed."""
    def upload_on(self, queue: Any) -> None:
        """Take another in-order queue, for long uploads without upstream in flight."""
    def submit(
        self, launch: Launch, behind: Iterable[Any] | None = None, timed: bool = False
    ) -> None:
        """Enqueue a launch on a lane, behind what it follows and behind foreign events. `timed`:
        on the one that keeps times."""
    def poll(self, most: int = 64) -> Ended:
        """Return launches that ended, always in one list. What is left in it is told again."""
    def poll_up_to(self, number: int) -> Ended:
        """Return launches up to a number that ended."""
    def wait(self, engine: Any, number: int) -> bool:
        """Wait for a launch, if a lane has it and nothing is unusual. Return whether it has ended,
        and the engine knows of it."""
    def read_now(
        self, engine: Any, array: View, host: npt.NDArray[Any], beside_counts: bool = False
    ) -> bool | int | None:
        """Read an array into host memory and wait. `beside_counts`: the caller sees to counts that
        may turn out to be wrong.

        True: `host` has the values. False: the driver failed. None: Python has to make the launch.
        A number: that launch exists, and Python has to wait for it."""
    def transfer(self, engine: Any, target: Any, source: Any, copied: bool = False) -> Any:
        """Copy what is in one piece, to an array or from one; a source of fewer bytes is a pattern.
        `copied`: only where the source may change when this returns.

        Returns a handle; None: Python has to make the launch."""
    def stage_in(self, make: Callable[[], list[Any]]) -> None:
        """Let long uploads pass through memory from `make`, in pieces of one size."""
    def land_in(self, make: Callable[[], list[Any]] | None) -> None:
        """Let short blocking reads end in memory from `make`, in pieces of one size."""
    @property
    def places(self) -> tuple[int, int]:
        """Count the pieces of this memory that reads use, and the free ones."""
    def see(self, memory: Reserved) -> None:
        """Let the host make short transfers of this memory by itself, which it sees without a
        command. It does where nothing in flight uses the bytes."""
    def add_word(self, memory: Any, address: int) -> None:
        """Add a word for a wrong count. The host sees it at that address without a transfer."""
    @property
    def words(self) -> int:
        """Count these words."""
    @property
    def free_words(self) -> int:
        """Count the words that no launch has."""
    def refused(self, number: int) -> tuple[int, int, int, bool] | None:
        """Return the wrong count of a launch that ended, once: its bits, its bound, what divides
        it, and whether it is signed."""
    def event(self, number: int) -> Any:
        """Return the driver's event of a launch in flight, or None."""
    def oldest(self) -> Any:
        """Return the event of the oldest launch in flight, or None."""
    def flush(self) -> None:
        """Start everything that was enqueued."""
    def forget(self) -> None:
        """Release all events. The runtime is closing."""
    def used(self) -> list[int]:
        """Count the launches of each lane."""
    @property
    def in_flight(self) -> int:
        """Count the launches on lanes."""

# ---- acs.Queue --------------------------------------------------------------------------------

class Sample:
    """Sample how far launches in a row overlap."""

    def note(self, number: int, upstream: Sequence[int], live: Any) -> None:
        """Add a launch; `live` answers which of its upstream are in flight."""
    @property
    def many(self) -> int:
        """Count the launches sampled."""
    @property
    def steps(self) -> int:
        """Return the length of the longest chain among them."""
    @property
    def overlap(self) -> float:
        """Return launches per step of that chain."""

class Bypass:
    """Holds the bypass of a runtime's queues: commands go unchanged to one queue of the driver."""

    takes_more: bool
    """Whether commands bypass the tracking now."""
    passed: int
    wanted: int
    satisfied: int
    began: float
    waits_first: bool
    """Whether a blocking transfer is faster when nothing is in flight. This is so on a GPU."""
    sample: Sample
    @property
    def lock(self) -> Lock: ...
    @property
    def has_ended(self) -> bool:
        """Whether all its commands have ended well, as far as the last one tells."""
    rests_until: float
    """The time, by `perf_counter`, until which it stays open, even with many launches in flight."""
    is_mixed: bool
    """Whether the current stretch cannot be judged: some of it was tracked, and some was not."""
    most_apart: int
    """How many commands of `behind` may be such that plain queues could run them beside the one
    before. With more, a joint bypass closes."""
    def __init__(self, pointer: int, behind: int, most_apart: int) -> None: ...
    def go_to(self, pointer: int, members: list[tuple[Any, int, bool]]) -> None:
        """Take commands to the driver's queue with this handle. `members`: the queues whose, their
        numbers in the launch table, and whether they are in order."""
    def join_in(self, stand_in: Any) -> None:
        """Let this queue of PyOpenCL stand in for those of the members. Only this thread's commands
        are taken."""
    def leave(self, number: int) -> None:
        """Take no more commands of a queue."""
    def takes(self, queue: Any) -> bool:
        """Say whether it takes commands of a queue while it is open."""
    def shares(self) -> list[int]:
        """List the queues, by their numbers, that have commands in this bypass."""
    def maker(self, event: int) -> int:
        """Return the number of the queue whose command the event of a joint bypass is of, by its
        handle; 0: unknown."""
    def is_under_way(self, event: int) -> bool:
        """Say whether a driver's event, by its handle, is of a command of a joint bypass that has
        not ended."""
    @property
    def is_joint(self) -> bool:
        """Whether the commands go to a queue that none of the members is."""
    @property
    def takes_this_thread(self) -> bool:
        """Whether it takes commands that this thread makes."""
    def wait_until_idle(self) -> bool:
        """Wait until nothing is in flight on the driver's queue. False: the driver refuses."""
    commands: int
    """Number of commands since the host last waited for results."""
    least_commands: int
    """Least number of commands of a stretch."""
    def take_stretch(self) -> tuple[int, float] | None:
        """End a stretch. Return its commands and seconds, or None if it cannot be judged."""

class KernelArguments:
    """Remembers how a kernel's arguments were set, until a launch needs them."""

    @property
    def generation(self) -> int: ...
    @property
    def is_shared(self) -> bool: ...
    def __init__(self, kernel: Any) -> None: ...
    def take(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return the calls that set arguments, in their order, and forget them."""

class Setter:
    """Replaces a method of PyOpenCL's kernels that sets arguments, and remembers these."""

    __name__: str
    __doc__: str | None
    def __new__(cls, original: Any, otherwise: Any, note: Any, kind: int, step: int) -> Setter: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def __get__(self, object: Any, type: type | None = None, /) -> Any: ...

class Command:
    """Replaces a function of PyOpenCL that enqueues a command."""

    __name__: str
    __doc__: str | None
    def __new__(
        cls,
        original: Any,
        otherwise: Any,
        names: tuple[str, ...],
        queue: int,
        waits: int,
        blocks: int,
        tracked: int,
    ) -> Command: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

class Tracker:
    """Launches the plain commands of one `acs.Queue` from the core."""

    def __init__(
        self,
        queue: Any,
        engine: Any,
        table: Table,
        queues: Queues,
        store: Reserved,
        number: int,
        bypass: Bypass | None,
        empty: tuple[Any, ...],
        behind: list[int],
        in_order: bool,
        chains: bool,
        profiles: bool,
        steps: bool,
    ) -> None: ...

def flush_by(otherwise: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return the method of queues that flushes. In bypass it is the driver's function alone."""

def begin_noting(arguments: type, types: tuple[type, ...], values: tuple[type, ...]) -> None:
    """Start to remember arguments with this class. Objects of `types` never change. Those of
    `values` are values that may."""

def use_queues(type: type, elsewhere: dict[str, int]) -> None:
    """Name PyOpenCL's class of queues, and the counter of commands on other queues than ours."""

def note_queue(hash: int, lives: bool) -> None:
    """Note that an `acs.Queue` with this hash begins, or that it is gone."""

def give_word() -> None:
    """Note that an `acs.Queue` told the program that some command is complete."""

def words_to_keep() -> int:
    """Return how often that was noted until now. 0: nothing was since the last `note_kept`."""

def note_kept(words: int) -> None:
    """Note that so many of these commands are complete, the first ones."""

def use_events(events: tuple[Any, ...]) -> None:
    """Give the core the classes of events, and the function that makes one from a handle."""

def use_kinds(
    kinds: tuple[Any, ...],
    native_error: Callable[[AcsError], BaseException],
    call: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any],
    marker: Callable[[], Any],
    watched: Callable[[Any], Any],
    maps: tuple[Callable[..., Any], ...],
    /,
) -> None:
    """Give the core the kinds of events of tracked commands, the conversion of errors, and the
    makers of records of calls and of markers. `watched`: makes of a record one that keeps its
    event. `maps`: what makes the array of a map, what waits for one, and what unmaps what the
    program does not get."""

def bind_transfer(
    tracked: int,
    original: Callable[..., Any],
    args: tuple[Any, ...],
    host: HostArray | None,
    store: Reserved,
    is_busy: bool,
    may_copy: bool,
) -> tuple[Any, tuple[tuple[Span, ...], ...], int, bool, bool, Any, bool] | None:
    """Bind a transfer of a queue. Return its record; its reads, writes and overwrites; its kind;
    whether the host can look behind it; whether the program waits; what its event keeps; and
    whether the program's memory has to be copied first. None: the transfer is not understood."""

def bind_call(
    tracked: int, args: tuple[Any, ...], host: HostArray | None, store: Reserved
) -> tuple[str, int, tuple[Span, ...], tuple[Span, ...]] | None:
    """Bind a command of a queue that counts with all bytes of its memory objects. Return its name,
    the kind of its event, its reads and its writes. None: some of it is no memory."""

def set_arguments(
    tracker: Tracker,
    kernel: Any,
    own: Caller,
    queued: Any,
    pointers: dict[int, Any],
    values: dict[int, bytes],
) -> None:
    """Pass on the arguments that a PyOpenCL kernel has so far. Its launches follow the plan of
    `own`, the runtime's kernel for it, and go to lanes as `queued`."""

# ---- memory of the driver's -----------------------------------------------------------------

class Reserved:
    """Keep where a store's allocations start, and their sizes."""

    def __init__(self) -> None: ...
    def add(self, start: int, size: int) -> None:
        """Note an allocation, by its address or its handle."""
    def remove(self, start: int) -> int:
        """Forget it; return its size."""
    def include(self, other: Reserved) -> None:
        """Count the allocations of another store, too."""
    def owns(self, address: int) -> bool:
        """Tell whether an address, or a handle, is inside an allocation."""
    @property
    def sizes(self) -> dict[int, int]: ...

class Memory:
    """What is known of a PyOpenCL memory object, which keeps it as `acs_span`."""

    @property
    def span(self) -> Span: ...
    @property
    def is_placed(self) -> bool:
        """Tell whether its bytes begin where the argument begins."""
    @property
    def is_host(self) -> bool:
        """Whether the host may look at it without another command."""

def memory_of(object: Any, store: Reserved) -> Memory | None:
    """Return the bytes of an object for the runtime of a store, by the name that all launches use.
    None: it is not memory."""

def new_memory(span: Span, store: Reserved) -> Memory:
    """Return what an object of the runtime's own memory keeps when it goes to PyOpenCL."""
