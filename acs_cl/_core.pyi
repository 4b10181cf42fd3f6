"""Declare what Python sees of the native core, `acs_cl/_core/*.cpp`.

This file is the whole border. `tests/test_core_stub.py` holds it against the module that was built:
every name here exists there, and every name there stands here. Words are those of the glossary in
`docs/design/glossary.md`.

Two rules hold for all of it:

- Everything that changes a launch is called with the runtime's lock held. The core takes that lock
  itself where Python calls it without (`Caller.__call__`, commands of an `acs.Queue`).
- The core reads some containers of Python in place (`Joining`). Python never replaces such a
  container; it empties and refills it.
"""

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .access.bands import Groups
from .access.binder import Bound, Outcome, Reached
from .errors import AcsError
from .records import Access, HostArray, Launch, Span
from .records import Command as Launchable

Spans: TypeAlias = Iterable[Span]
Sizes: TypeAlias = tuple[int, ...]
Edges: TypeAlias = dict[int, str]
"""Launches that one follows, with the first reason for each: RAW, WAR, WAW, reuse or any."""

_Side: TypeAlias = tuple[int, int, int]

Ended: TypeAlias = "list[End]"
"""Launches that ended, and that Python has to hear of. Those that the core made and that ended well
on a lane are over already."""

INTERFACE: Final[int]
"""Counts the versions of this border. `core.py` refuses a module with another number."""

UPLOAD_BYTES: Final[int]
"""Says from how many bytes on an upload takes a lane of its own."""

SOURCES: Final[str]
"""Tells the sources that it was built from: a digest."""

# ---- views ------------------------------------------------------------------------------------

def index_view(index: object, shape: Sizes, strides: Sizes) -> tuple[Sizes, Sizes, int] | None:
    """Index as NumPy does: the view's shape, strides and byte offset; None for what is no index."""

def spans_of_view(
    base: int, offset: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[Span, ...]:
    """Say which bytes a strided view of `base` touches, in as few rectangles as will do."""

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
    """How many sizes and numbers are worked out; others touch all of their views (below 0: any)."""

    def __init__(
        self,
        parameters: Iterable[tuple[str, str, int]],
        functions: Sequence[Any] | None,
        numbers: Sequence[int],
        group: Sequence[int] | None,
        more: tuple[Span, ...],
        everything: bool,
    ) -> None:
        """Take code, mode and bytes of each parameter; the functions of an outline, and the
        parameters whose numbers matter there; the group size that the kernel asks for; what it
        writes besides, or, with `everything`, in place of all that."""

    @property
    def has_ranges(self) -> bool:
        """Say whether it knows which bytes launches reach."""
    @property
    def numbers(self) -> list[int]:
        """Return the parameters whose numbers matter."""
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
    ) -> Bound | None:
        """Bind arguments of a launch; None where one is not plain. `are_usual`: each is a
        `Resolved`, bytes, or an object of the driver's. `narrows`: what it reaches counts."""
    def touched(
        self,
        views: Sequence[Span],
        numbers: Sequence[int],
        global_size: Sizes,
        local_size: Sizes | None,
        offset: Sizes | None,
        groups: Groups | None,
    ) -> Access:
        """Say what a launch touches of these views, or a box of its groups."""
    def reached(
        self,
        global_size: Sizes,
        local_size: Sizes | None,
        offset: Sizes | None,
        numbers: Sequence[int],
        groups: Groups | None,
    ) -> dict[int, Reached]:
        """Say the same in bytes from where each argument begins."""
    def outcomes(self, access: Access) -> list[Outcome]:
        """Say of what launches with this access were made; several if it came of several sizes or
        numbers, none if it is kept no longer."""

# ---- hazards ----------------------------------------------------------------------------------

def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same bytes in fewer spans, by base; the hull of a base where they are many."""

class Footprint:
    """The merged spans of a recording, prepared for entering again and again."""

    @property
    def mark(self) -> int:
        """The replay record that stands in the index for this footprint."""

class Hazards:
    """Index the bytes that launches in flight read and write.

    The model is `emu/reference/hazards.py`; both give the same edges."""

    def enter(self, number: int, reads: Spans, writes: Spans) -> Edges:
        """Add a launch and return what it follows. Numbers only grow."""
    def enter_many(self, first: int, accesses: Sequence[Access]) -> list[Edges]:
        """Add the bands of one launch, numbered from `first` on, and return what each follows:
        never another one of them. No two of them may write the same span."""
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
    def _held(self) -> int:
        """Count the spans that somebody holds. For tests of leaks."""
    wide: int
    """Neighbours of a span from which on only those in use are looked at. For tests."""
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

def hook_signals() -> None:
    """Look for new handlers of signals, as locks do now and then."""

def end_process(
    seconds: float, status: int, own: Literal["none", "failed", "any"], keeps: object
) -> None:
    """End the process after so many seconds, whatever it does then, with a status; before that
    without what drivers do at exit. `own`: which statuses of the program's own it has then in place
    of this one. `keeps`: what Python never frees."""

def call_to_the_end(call: Callable[[bool], None]) -> None:
    """Call it, and again when Ctrl-C ended that, until it returns or another exception comes.

    It is told whether it was interrupted before."""

def mark_host_task() -> None:
    """Note that this thread runs host tasks."""

def on_host_task() -> bool:
    """Say whether this thread runs host tasks."""

def wait_for_event(event: int, seconds: float = -1) -> bool:
    """Wait until the event with this handle has ended; False after so many seconds.

    A handler of a signal that raises ends the wait."""

def carry(copies: Sequence[tuple[_Side, _Side, int, tuple[int, int, int]]], is_svm: bool) -> int:
    """Copy bytes to devices of other contexts, beside each other, and wait; return the driver's
    status.

    A copy is its source, its target, the number of bytes and its staging memory. A side is a queue,
    memory and an offset. Staging memory is an address, the bytes of a slot, and the number of
    slots."""

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
        """Wait without the lock for an event, or for `notify`; False after so many seconds.

        The lock is held again whatever happens."""
    def notify(self) -> None:
        """Wake who waits for anything to move."""

class End:
    """Tell that a launch ended.

    With `epoch`, it tells that of the launches of an epoch that the core made: all ended well."""

    number: int
    status: int
    """The driver's: 0, or an error below 0."""
    event: Any
    """The launch's event, where somebody may ask for times."""
    lane: int
    epoch: int
    def __init__(self, number: int, status: int, event: Any, lane: int, epoch: int = 0) -> None: ...

class Due:
    """Tell what a queue of the program's has to see to behind its commands."""

    queue: Any
    settles: int
    """A launch to wait for first, with all that the host can look behind; 0: none."""
    is_sampled: bool
    """Whether a sample of its launches is complete."""
    has_waited: bool
    """Whether the host has waited for results."""

STEPS: Final[dict[str, tuple[str, ...]]]
"""Which states of a launch may follow each. `docs/design/launch-table.md` draws them."""

class Table:
    """Keep a row for each launch in flight, whoever made it: its state, and what it waits for.

    The model is `emu/reference/table.py`. Launches of the core's own are rows as others are."""

    number: int
    """The number of the newest launch."""
    usable: bool
    """Whether the core may make launches by itself at all."""
    generation: int
    """Launch plans of an older generation are not used any more."""
    poisoned: bool
    """Whether any bytes are: then the core makes no launches by itself."""

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
    def give_back(self, base: int, block: Any) -> None:
        """Keep memory that the program dropped until the next launch takes note of it."""
    def take_back(self) -> tuple[int, Any] | None:
        """Return one of those, with its base."""
    @property
    def has_returned(self) -> bool:
        """Whether there are any."""

    # -- from one state to the next
    def take(
        self,
        command: Launchable,
        access: Access,
        footprint: Footprint | None,
        after: Sequence[int],
        holds: bool,
        gated: bool,
        patient: bool,
        counted: bool,
    ) -> tuple[int, bool]:
        """Enter a launch of Python's: into the hazards and the window. `after`: launches that it
        follows whatever it touches; the rest as for `insert`. Its number, and whether it is
        ready."""

    def insert(
        self,
        launch: Launch,
        holds: bool = False,
        gated: bool = False,
        patient: bool = False,
        counted: bool = False,
    ) -> bool:
        """Enter a launch behind all others; return whether it is ready, and the caller has it.

        `holds`: it holds back what follows it until it is done. `gated`: it is held until
        `open_gate`. `patient`: it is held until all that it follows is done. `counted`: it may turn
        out wrong only when it has ended."""
    def start(self, number: int) -> None:
        """Note that a lane, an epoch or a thread of the host has a launch that was ready."""
    def end(self, number: int, failed: bool) -> None:
        """Note the end of a launch, well or not. The hazards forget it."""
    def never_ran(self, number: int, upstream: Sequence[int]) -> None:
        """Note that a ready launch will not run. Until `upstream` ends, that stands in for it."""
    def expand(self, upstream: tuple[int, ...]) -> tuple[int, ...]:
        """Return the same upstream, with what stands in for launches that never ran."""
    def open_gate(self, number: int) -> None:
        """Note that what a launch was gated on has come."""
    def lose(self, number: int) -> None:
        """Note that a failure has reached a launch: however it ends, it has failed."""
    def next_ready(self) -> int:
        """Return the next launch that became ready, or 0. The caller has it then."""
    @property
    def has_ready(self) -> bool:
        """Whether there is one."""

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
    def log(self) -> None:
        """Keep from now on when each launch went from which state to which."""
    def transitions(self, number: int) -> list[tuple[str, str, int]]:
        """Return that of a launch: from, to, and when on the clock of `perf_counter_ns`."""
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
        """Count those of them that wait for room in the window."""
    @property
    def occupied(self) -> int:
        """Count the launches in the window."""
    @property
    def is_counted(self) -> bool:
        """Whether any launch may turn out wrong only when it has ended."""
    @property
    def has_stand_ins(self) -> bool:
        """Whether there are launches that never ran, and that something stands in for."""

    # -- epochs
    def new_queue(self) -> int:
        """Number another queue of the program's."""

    def assign(self, number: int, queue: int, shown: bool) -> None:
        """Say of which queue a launch is, and whether the host can look behind it."""

    def newest_of(self, queue: int) -> int:
        """Number the newest launch that a queue ever had; 0: none."""

    def of_queue(self, queue: int, last: int, shown: bool) -> list[int]:
        """List what a queue has in flight, up to a launch. `shown`: what the host looks behind."""

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
        """Take an epoch's launches out of it; return those that have to be ended one by one."""
    def end_epoch(self, epoch: int) -> None:
        """End the others of an epoch that was left: launches of the core's own."""
    @property
    def in_epochs(self) -> int:
        """Count the launches in epochs."""
    def tell(self, reasons: dict[str, int], where: dict[int, str]) -> None:
        """Have the core note there why each of its launches went to a lane."""
    def open(
        self,
        epoch: int,
        recorder: Recorder,
        scheduler: Any,
        least_tasks: int,
        most_tasks: int,
        most_entries: int,
        next_look: int,
    ) -> None:
        """Let the core add tasks to an epoch, within these limits."""
    def shut(self) -> list[int]:
        """End that, and return the launches outside of any epoch that this one has to wait for."""

    @property
    def counts(self) -> bool:
        """Whether launches of the open epoch are only counted."""
    @property
    def wants_attention(self) -> bool:
        """Whether launches of the open epoch are only counted, and nobody looks at it."""
    @property
    def is_complete(self) -> bool:
        """Whether all launches of the open epoch came as foreseen: it is to be sent."""
    @property
    def follows(self) -> bool:
        """Whether the open epoch is like an earlier one up to here, and that went on."""
    def predict(self, on: bool) -> None:
        """Remember epochs from now on, and compare the next ones with them; or neither."""
    def allow_footprints(self, ns: int) -> None:
        """Let a footprint take so long for each of its launches; less than nothing: none may."""
    def forget_epochs(self) -> None:
        """Remember none of those so far."""
    def look(self, engine: Any) -> None:
        """Look after what is due, but for launches that are only counted."""
    def drop(self, resident: object) -> None:
        """Forget the epoch that was kept as `resident`."""
    def was_foreseen(self, number: int) -> bool:
        """Whether a launch was only counted, as far as that is remembered."""
    def forecasts(self) -> dict[str, int]:
        """Count epochs and launches that came as foreseen, and what is remembered."""

# ---- what kernels, handles and arrays inherit from --------------------------------------------

class Caller:
    """Call a kernel: make the launch here if there is a plan for it, else call `_call`."""

    engine: Any
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

class Handle:
    """Hold what a launch returned, without what it can do."""

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
    """Hold what launches ask of an array: its memory, its spans and its runtime."""

    __slots__ = (
        "address",
        "argument",
        "dtype",
        "engine",
        "home",
        "nbytes",
        "place",
        "size",
        "spans",
    )

    dtype: np.dtype[Any]
    size: int
    nbytes: int
    engine: Any
    home: Any
    """The runtime while the array is plain and alive, else None."""
    argument: Any
    """What a driver takes for it: a buffer or an SVM pointer."""
    address: int
    place: Any
    """Where it lies, as the driver takes it; None: not asked for yet."""
    spans: tuple[Span, ...]
    @property
    def holders(self) -> int:
        """Count those who hold the span of this array. For tests of leaks."""

# ---- launch plans -----------------------------------------------------------------------------

def use(
    handle: type,
    cut_handle: type,
    array: type,
    local_memory: type,
    numbers: tuple[type, ...],
    flags: Iterable[npt.DTypeLike],
    /,
) -> None:
    """Say which classes launches meet: handles, arrays, local memory, numbers, flags of `when=`."""

def plan(
    kernel: Caller,
    table: Table,
    name: str,
    parameters: Iterable[tuple[str, str, int, int]],
    binder: Binder,
    lanes: tuple[Queues, Any, bool] | None,
    record: tuple[int, int] | tuple[()] | None,
) -> None:
    """Give a kernel its launch plan: code, mode, bytes and place in a record by parameter.

    `binder` tells which bytes it reaches. `lanes`: queues, kernel, whether memory goes there by
    address. `record`: bytes of arguments in records, and of local memory of the kernel's own;
    empty where the arguments do not go there, None where no scheduler has the kernel."""

def learn(
    kernel: Caller,
    global_size: Sizes,
    local_size: Sizes | None,
    heads: Iterable[tuple[Any, int, bytes, bytes | None]],
    stay: tuple[int, int, str | None] | None,
) -> None:
    """Add sizes to that plan. `heads`: each scheduler that takes them, first the one where they
    live, its local memory, how records of these sizes begin there, and their shape. `stay`: so many
    launches up to this number go to lanes before Python decides again, for this reason."""

def learn_bands(
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

def learn_gate(kernel: Caller, variant: Any) -> None:
    """Give a launch plan the kernel that looks at the flag of `when=` first."""

def is_planned(kernel: Caller, for_epochs: bool) -> bool:
    """Say whether a kernel has a valid launch plan; one that knows of records, if asked for."""

def forget(kernel: Caller, /) -> None:
    """Drop the launch plan of a kernel."""

class Touches:
    """Hold what the launches of one `launch_many` touch."""

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
    """Make launches in order: what they are, how many, and what the next one was refused for.

    A column holds the values of one parameter, and whether there is one for each launch. Those that
    are not plain are calls of the kernel."""

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
        """Tell who is waited for, and who waits, edge by edge, and the tiles of each task."""
    def _image(
        self,
        spare: int,
        priority: Sequence[float],
        window: int,
        stale: int,
        blocks: int,
        gang: bool,
    ) -> tuple[bytearray, int, int]:
        """Return all words, and block 0 with its length. Tasks of higher `priority` go first where
        several are ready; where there are none, those that came first."""
    @property
    def tasks(self) -> int:
        """Count the tasks."""
    @property
    def entries(self) -> int:
        """Count the entries that the ring of ready tiles needs."""
    @property
    def width(self) -> int:
        """Bound how many tiles can be ready or running at a time."""

# ---- lanes ------------------------------------------------------------------------------------

def declare_memory(kernel: int, addresses: Sequence[int]) -> int:
    """Tell the driver which allocations a kernel may reach by pointers in memory, all at once;
    return its status."""

def open_driver(functions: Sequence[int]) -> None:
    """Give the core the addresses of the OpenCL functions that it calls."""

class QueueKernel:
    """A kernel as the core launches it: arguments that stay the same are not set again."""

    def __init__(self, kernel: Any) -> None:
        """Launch a kernel whose arguments nobody else sets from now on."""

class Launcher:
    """What is sent of a scheduler: its kernel, and how many groups of it run at a time."""

    groups: int
    takes_notes: bool
    """Whether it writes down when groups began and ended, which Python reads behind each epoch."""
    child_slots: int
    """Slots that a ring has for children."""

    def __init__(self, kernel: QueueKernel, group: int, has_pool: bool) -> None:
        """Launch a kernel in groups of so many work-items. `has_pool`: tasks may spawn others."""

    def use(self, kernel: QueueKernel) -> None:
        """Launch another form of it from now on."""

class Placed:
    """Say where the parts of an image are in its region, and what its tasks need."""

    def __init__(self, tasks: int, width: int, block: int, block_words: int) -> None:
        """Take note of it."""
    @property
    def tasks(self) -> int:
        """Count the tasks."""
    @property
    def width(self) -> int:
        """Bound how many tiles can be ready or running at a time."""
    @property
    def block(self) -> int:
        """Say where block 0 begins."""
    @property
    def block_words(self) -> int:
        """Count the words of a block."""

class Resident:
    """An epoch that came often and stays on the device, in two blocks that take turns."""

    broken: bool
    """Whether a run of it ended as none should: nobody knows how its blocks are."""

    def __len__(self) -> int:
        """Count the tasks."""

class Epoch:
    """Hold launches that are handed to the scheduler at once. The table has which they are."""

    trusted: bool
    """Whether it is sent however small it is."""
    is_clocked: bool
    """Whether its queue keeps times."""
    is_plain: bool
    """Whether nothing but its outcome says how it went."""
    opened: float
    """When its first task was seen; 0: none was."""
    resident: Resident | None
    """Where it stays, if it does."""

    def __init__(self, scheduler: Any, number: int, recorder: Recorder) -> None:
        """Take launches for a scheduler."""
    @property
    def scheduler(self) -> Any:
        """Return what runs it."""
    @property
    def recorder(self) -> Any:
        """Return what takes its tasks."""
    @property
    def number(self) -> int:
        """Return its number."""
    @property
    def attended(self) -> float:
        """Say since when somebody looks at it now and then; 0: nobody does, and its first task
        wakes who sends it."""
    @property
    def sent(self) -> float:
        """Say when it was sent."""
    @property
    def wait_for(self) -> int:
        """Count the events that it goes behind."""
    @property
    def refused(self) -> int:
        """Return what the driver said to its commands, if that was not good."""
    error: Any
    """What kept it from the driver, if anything did."""
    @property
    def counts(self) -> Placed:
        """Say where its parts are, once it was sent."""
    @property
    def launches(self) -> int:
        """Count the launches of the scheduler."""
    @property
    def block(self) -> int:
        """Say which of its blocks the device uses."""
    @property
    def groups(self) -> int:
        """Count the groups of a launch."""
    @property
    def foreseen(self) -> int:
        """Count its launches, if these came as foreseen and were not collected."""
    @property
    def region(self) -> Any:
        """Return the memory that has its words."""
    @property
    def _event(self) -> int: ...
    @property
    def _first(self) -> int: ...
    @property
    def _last(self) -> int: ...
    @property
    def _status(self) -> bytes: ...

class Sender:
    """Send the epochs of one queue, in order, and keep those that the device has.

    `acs_cl/scheduler/sender.py` has what is unusual."""

    is_timed: bool
    """Whether launches have events."""
    by_itself: bool
    """Whether the core sends an epoch that is due without Python."""
    on_words: Callable[[memoryview, Placed], object] | None
    """Sees the words of each epoch that was collected, and may change them, for tests."""
    tasks_sent: int
    cuts: int
    """Epochs that were sent since something waits for one."""

    def __init__(
        self,
        table: Table,
        memory: Reserved,
        constants: Any,
        classes: tuple[Any, Any, Any],
        on_cpu: bool,
        units: int,
    ) -> None:
        """Send epochs of the table's launches. `classes`: of epochs, of recorders, and of memory
        by its bytes."""
    @property
    def launches(self) -> int:
        """Count the launches of schedulers."""
    @property
    def epochs_sent(self) -> int:
        """Count the epochs."""
    @property
    def waits(self) -> int:
        """Count the launches outside of epochs that these were made to wait for."""
    def _set(
        self,
        polls: int,
        polls_staying: int,
        turns: int,
        slice_s: float,
        order: Callable[[Any], Sequence[float]] | None,
        window: int,
        stale: int,
        gang: bool,
        most_tasks: int,
        most_entries: int,
        few: int,
    ) -> None: ...
    def join(self) -> None:
        """Have the table ask for what is due from now on."""
    def _requeue(self, queue: Any, lanes: Queues | None, is_timed: bool) -> None: ...
    @property
    def open(self) -> Any:
        """Return the open epoch, or None."""
    @property
    def newest(self) -> Any:
        """Return the newest epoch that was sent and not seen to end, or None."""
    @property
    def sent(self) -> list[Any]:
        """Return all of those."""
    @property
    def has_any(self) -> bool:
        """Say whether there are any, or an open one."""
    @property
    def has_sent(self) -> bool:
        """Say whether any were sent and not seen to end."""
    @property
    def unsent(self) -> bool:
        """Say whether the open epoch has launches."""
    @property
    def in_hand(self) -> int:
        """Count the epochs that the device has not finished, up to two: with two, nothing is gained
        by sending another one."""
    def find(self, number: int) -> Any:
        """Return an epoch by its number; None where it is not known, or was seen to end."""
    def take_ended(self) -> Any:
        """Return the oldest that was sent, where it has ended, and take it out; else None."""
    def new_epoch(self, scheduler: Any, trusted: bool) -> Any:
        """Return an epoch that is not the open one."""
    def open_for(self, scheduler: Any, trusted: bool) -> Any:
        """Return a new open epoch, in place of one without tasks. Its first task is not seen yet:
        the core calls for a look when it makes that one."""
    def shut(self) -> list[int]:
        """Let the open epoch take no more; return launches in no epoch that it waits for."""
    def attend(self) -> None:
        """Note that somebody looks at the open epoch now and then: tasks need not say that they
        have come."""
    def leave_alone(self) -> None:
        """Note that nobody looks at it any more."""
    def grow_to(self, tasks: int) -> None:
        """Let it grow to so many tasks before a look at the device; 0: to any."""
    def is_due(self) -> bool:
        """Say whether it is full, or has some tasks and the device none."""
    def follow(self, epoch: Any, number: int) -> None:
        """Have an epoch wait for a launch, unless that is in one before, or has ended."""
    def send_open(self, opens: bool) -> None:
        """Send the open epoch; `opens`: the next one is open at once."""
    def push(self, epoch: Any) -> None:
        """Put one of Python's making behind those that were sent."""
    def enqueue(
        self,
        epoch: Any,
        region: Any,
        image: Placed,
        writes: Sequence[tuple[int, Any]],
        launches: list[tuple[int, tuple[int | bytes, ...]]] | None,
        groups: int,
        status_words: int,
        which: int = 0,
        cleans: int = 0,
        rounds: int = 0,
    ) -> None:
        """Send an epoch of Python's image. `launches`: groups and arguments of each, for tests;
        None: as many as it takes."""
    def has_ended_well(self, epoch: Any) -> bool:
        """Say whether a plain epoch has ended, and well: then that is all that was to be done."""
    def let_go(self, epoch: Any, tasks: int, well: bool) -> None:
        """Have others use what an epoch had that has ended, with so many tasks."""
    def let_go_of_all(self) -> None:
        """Let go of memory for epochs to come, and of all epochs."""
    def land_in(self, make: Callable[[], list[Any]] | None) -> None:
        """Read the outcomes of epochs into memory that `make` gives, in pieces of one size."""
    @property
    def places(self) -> tuple[int, int]:
        """Count the pieces of pinned memory that epochs have, and those that are free."""

class FromC:
    """Enqueue a kernel again and again from C++. The benchmarks' lower limit."""

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
    bare: int
    """Counts launches that got no event of their own."""
    unasked_enough: int

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
    def join(self, table: Table) -> None:
        """Connect the lanes with the table of their runtime."""
    def time_on(self, queue: Any) -> None:
        """Take one queue more, in order, that keeps times: for launches that are to be timed."""
    def upload_on(self, queue: Any) -> None:
        """Take one queue more, in order, for long uploads that follow nothing in flight."""
    def submit(
        self, launch: Launch, behind: Iterable[Any] | None = None, timed: bool = False
    ) -> None:
        """Enqueue a launch on a lane, behind what it follows and behind foreign events. `timed`:
        on the one that keeps times."""
    def poll(self, most: int = 64) -> Ended:
        """Return launches that ended."""
    def poll_up_to(self, number: int) -> Ended:
        """Return those that ended up to a launch."""
    def read_now(self, engine: Any, array: View, host: npt.NDArray[Any]) -> bool | int | None:
        """Read an array into host memory and wait.

        True: `host` has the values. False: the driver failed. None: Python has to make the launch.
        A number: that launch exists, and Python has to wait for it."""
    def transfer(self, engine: Any, target: Any, source: Any, copied: bool = False) -> Any:
        """Copy what is in one piece, to an array or from one; a source of fewer bytes is a pattern.
        `copied`: only where the source may change when this returns.

        Returns a handle; None: Python has to make the launch."""
    def stage_in(self, make: Callable[[], list[Any]]) -> None:
        """Have long uploads go by way of memory that `make` gives, in pieces of one size."""
    def land_in(self, make: Callable[[], list[Any]] | None) -> None:
        """Have short reads that are waited for land in memory that `make` gives, in pieces of one
        size."""
    @property
    def places(self) -> tuple[int, int]:
        """Count the pieces of it that reads have, and those that are free."""
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

class Look:
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

class Passing:
    """Hold the bypass of a queue: commands that go to the driver's own queue as they are."""

    passing: bool
    """Whether commands bypass the tracking now."""
    passed: int
    wanted: int
    satisfied: int
    began: float
    waits_first: bool
    """Whether a blocking transfer is quicker where nothing is in flight: on a GPU."""
    look: Look
    @property
    def lock(self) -> Lock: ...
    @property
    def rests(self) -> bool:
        """Whether the bypass stays open however much is in flight."""
    def __init__(self, queue: Any, engine: Any, pointer: int, behind: int) -> None: ...
    def wait_until_idle(self) -> bool:
        """Wait until nothing is in flight on the driver's queue. False: the driver refuses."""
    def rest(self, seconds: float, /) -> None:
        """Keep the bypass open for so long."""
    commands: int
    """How many have come since the host last waited for results."""
    least_commands: int
    """How many make a stretch."""
    def take_stretch(self) -> tuple[int, float] | None:
        """End a stretch. Return its commands and seconds, or None if it says nothing."""
    def spoil_stretch(self) -> None:
        """Have the stretch that is under way say nothing."""

class Given:
    """Remember from what a kernel's arguments were set, until somebody asks."""

    @property
    def generation(self) -> int: ...
    def __init__(self, kernel: Any) -> None: ...
    def take(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return the calls that set arguments, in their order, and forget them."""

class Setter:
    """Replace a method of PyOpenCL's kernels that sets arguments: do the same, and remember."""

    __name__: str
    __doc__: str | None
    def __new__(cls, original: Any, otherwise: Any, note: Any, kind: int, step: int) -> Setter: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def __get__(self, object: Any, type: type | None = None, /) -> Any: ...

class Command:
    """Replace a function of PyOpenCL that enqueues a command."""

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
        joins: int,
    ) -> Command: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...

class Joining:
    """Launch the plain commands of one `acs.Queue` from the core."""

    def __init__(
        self,
        queue: Any,
        engine: Any,
        table: Table,
        queues: Queues,
        store: Reserved,
        number: int,
        section: Passing | None,
        empty: tuple[Any, ...],
        in_order: bool,
        chains: bool,
    ) -> None: ...

def begin_noting(arguments: type, types: tuple[type, ...]) -> None:
    """Start to remember arguments with this class; objects of `types` never change."""

def use_queues(type: type, elsewhere: dict[str, int]) -> None:
    """Say what PyOpenCL's class of queues is, and where commands on those not ours are counted."""

def note_queue(hash: int, lives: bool) -> None:
    """Say that a queue of ours, of this hash, begins, or that it is gone."""

def give_word() -> None:
    """Note that a program was told by a queue of ours that something is complete."""

def take_word() -> bool:
    """Say whether that was noted since it was asked for last."""

def use_events(events: tuple[Any, ...]) -> None:
    """Say which classes of events there are, and what makes one from a handle."""

def use_kinds(
    kinds: tuple[Any, ...],
    native_error: Callable[[AcsError], BaseException],
    call: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any],
    /,
) -> None:
    """Say how PyOpenCL names what joins; which error a program expects for one of ours; and what
    makes the record of a transfer."""

def bind_transfer(
    joins: int,
    original: Callable[..., Any],
    args: tuple[Any, ...],
    host: HostArray | None,
    store: Reserved,
    is_busy: bool,
) -> tuple[Any, tuple[tuple[Span, ...], ...], int, bool, bool, Any, bool] | None:
    """Bind a transfer of a queue: its record, what it reads, writes and overwrites, its kind,
    whether the host can look behind it, whether the program waits, what its event keeps, and
    whether the program's memory has to be copied first. None: nobody understands it."""

def set_arguments(
    joining: Joining,
    kernel: Any,
    own: Caller,
    queued: Any,
    pointers: dict[int, Any],
    values: dict[int, bytes],
) -> None:
    """Say what a kernel of PyOpenCL's was given so far. Its launches go by the plan of `own`, the
    runtime's kernel for it, to lanes as `queued`."""

# ---- memory of the driver's -----------------------------------------------------------------

class Reserved:
    """Keep where a store's allocations start, and their sizes."""

    def __init__(self) -> None: ...
    def add(self, start: int, size: int) -> None:
        """Note an allocation, by its address or its handle."""
    def remove(self, start: int) -> int:
        """Forget it; return its size."""
    def include(self, other: Reserved) -> None:
        """Count what another store has, too."""
    def owns(self, address: int) -> bool:
        """Say whether an address, or a handle, is inside of an allocation."""
    @property
    def sizes(self) -> dict[int, int]: ...

class Memory:
    """What is known of one of PyOpenCL's objects for memory, which keeps it as `acs_span`."""

    @property
    def span(self) -> Span: ...
    @property
    def is_placed(self) -> bool:
        """Say whether an argument of it begins where its bytes do."""
    @property
    def is_host(self) -> bool:
        """Whether the host may look at it without another command."""

def memory_of(object: Any, store: Reserved) -> Memory | None:
    """Return the bytes of an object for the runtime of a store; None: it is no memory."""

def new_memory(span: Span, store: Reserved) -> Memory:
    """Make what memory of the runtime's own keeps that is given to PyOpenCL."""

def foreign_spans(object: Any) -> tuple[Span, ...]:
    """Return the bytes of an object as the driver calls them, and by their address where they are
    the program's own; nothing for what is no memory."""
