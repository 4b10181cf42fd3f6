"""Observers: protocols of the higher modules that the engine calls.

Input: launches, and calls of the program. Output: what a recording graph, a check, a timeline or
the runtime makes of them. The engine knows them only by these protocols, so no lower module names a
class above it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ..devices.driver import Events, OwnKernel
from ..handle import Handle
from ..records import Access, Command, DType, Found, Launch, NamedTuple, Protocol, Report, Sizes

if TYPE_CHECKING:
    from ..memory.array import Array
    from ..memory.blocks import Base, Block


AccessOf = Callable[[Sizes, Sizes], Access]
"""Returns the access of a part of a launch, from its global size and its offset."""


class Cutting(NamedTuple):
    """How a launch can be cut into parts for several devices."""

    in_parts: Callable[[bool, bool], OwnKernel | str]
    """Returns the kernel for parts of a launch, or the reason why there is none. Takes whether the
    launch has a local size, and whether it has an offset."""
    access_of: AccessOf
    repeats: Callable[[], bool]
    """Tells whether the launch does the same on each device, and nothing but write its bytes."""


Unplaced = tuple[Command, Access, Cutting | None]
"""A recorded launch without a device, and how it can be cut if parts of it may run on several."""


class Together(Protocol):
    """A placed run: launches of a graph that have their devices and are made in one go."""

    first: int
    """The turn of the first one."""
    places: Sequence[int]
    """Their places in the graph."""

    def __len__(self) -> int:
        """Return how many launches there are."""

    @property
    def copies(self) -> int:
        """Return how many copies between devices there are among them."""

    def devices(self) -> list[tuple[int, int]]:
        """Return the turn and the device of each launch, or of each part of one."""

    def replay(self) -> list[int] | None:
        """Launch all of them. None: they have to go one by one."""

    def patch(self, turn: int, command: Command) -> bool:
        """Replace a command by another with the same access. Return whether that is possible."""


class Recorder(Protocol):
    """What captures the calls of a thread, for a graph."""

    @property
    def is_capturing(self) -> bool:
        """Tell whether it makes a call right now, and takes its launches."""

    def capture(self, function: Callable[..., object], *args: object, **keywords: object) -> Handle:
        """Make a call of the program, and keep it."""

    def take(
        self,
        command: Command,
        access: Access,
        wait_for: object,
        cutting: Cutting | None = None,
    ) -> Handle:
        """Keep a launch of the call that is being made. `cutting`: how it can be cut, if parts of
        it may run on several devices."""

    def keep(self, base: Base) -> None:
        """Keep memory that was allocated in the recording."""

    def expect_loop(self, site: str) -> int:
        """Note that the program made a loop, and where. Return a number for it."""

    def open_loop(self, number: int, flag: Array, at_most: int) -> Any:
        """Begin the body of an expected loop. It ends at `close_loop`, which takes what this
        returns."""

    def close_loop(self, opened: Any, is_whole: bool) -> None:
        """End the body of the loop that was opened last."""


class Watch(Protocol):
    """A watchdog, which is told of waits."""

    def bark(self, began: float) -> None:
        """Raise if nothing ends, in a call that waits since `began`."""

    def wait(self, books: Any, event: cl.Event, seconds: float) -> None:
        """Wait for an event without the lock, and raise if nothing ends."""

    def stop(self) -> None:
        """Watch no longer."""


class Checker(Protocol):
    """Checks around each launch."""

    guard: int
    """Extra bytes that every array gets."""

    def takes(self, access: Access) -> bool:
        """Tell whether a launch of this thread is checked first."""

    def launch(
        self,
        command: Command,
        access: Access,
        wait_for: Events,
        result: object,
        after: Sequence[int],
    ) -> Handle:
        """Launch, with checks around it. `after`: launches that it follows whatever their
        bytes."""

    def sync(self) -> None:
        """Look back, because the program waits or learns what has ended."""

    def allocated(self, base: Base, dtype: DType) -> None:
        """Note a new array."""

    def freed(
        self, number: int, block: Block, users: tuple[int, ...]
    ) -> list[tuple[Block, tuple[int, ...]]]:
        """Take memory that came back. Return the blocks that may be given out again."""

    def data_taken(self, array: Array) -> None:
        """Note that the program has the address of an array."""

    def report(self) -> Report:
        """Report what the checks did and cost."""

    def close(self) -> None:
        """Do the last checks before the runtime closes."""


class Tracer(Protocol):
    """A timeline. Its methods are told what happened."""

    device_of: Callable[[int], int]
    """Says on which of several devices a launch is."""

    def called(self) -> None:
        """The program has called the library."""

    def launches_more(self) -> None:
        """The call makes one more launch."""

    def waited(self, number: int = ...) -> None:
        """The program has waited."""

    def polled(self, number: int, done: bool) -> None:
        """The program has asked whether a launch is done."""

    def entered(self, number: int, started_ns: int) -> int:
        """A launch is in the hazards. Returns the time."""

    def launched(self, number: int, started_ns: int, entered_ns: int) -> None:
        """A launch was handed over."""

    def ended(self, launch: Launch, lane: int, event: object) -> None:
        """A launch has ended on the device."""

    def copied_at_once(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A copy between devices has been made."""

    def noted(self, found: Found) -> None:
        """Groups of the scheduler ran launches."""

    def ran_on_host(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A host task has ended."""

    def enter(self, phase: str) -> str:
        """A phase of the program begins. Returns the phase before."""

    def forget_times(self) -> None:
        """Times of the program so far say nothing about the next launch."""

    def summary(self) -> Report:
        """Return what was timed."""

    def save(self, path: str) -> None:
        """Write the timeline to a file."""
