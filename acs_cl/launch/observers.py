"""Observers: what the engine tells, or asks, of the rooms above it.

In: launches, and calls of the program. Out: what a graph that records, a check, a timeline or the
public face makes of them. The engine knows them by these protocols alone, so that nothing below
names a class above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyopencl as cl

from ..devices.driver import Events
from ..handle import Handle
from ..records import Access, Command, DType, Found, Launch, Report, Sizes

if TYPE_CHECKING:
    from ..memory.array import Array
    from ..memory.blocks import Base, Block


AccessOf = Callable[[Sizes, Sizes], Access]
"""What a part of a launch touches, by its global size and its offset."""

Unplaced = tuple[Command, Access, tuple[str, AccessOf] | None]
"""A recorded launch without a device. The last is there where parts of it may run on several: its
source, and what a part touches."""


class Together(Protocol):
    """Launches of a graph that have their devices, and are made in one go."""

    first: int
    """The turn of the first one."""
    places: Sequence[int]
    """Where they are in the graph."""

    def __len__(self) -> int:
        """How many launches there are."""

    @property
    def copies(self) -> int:
        """How many copies between devices are among them."""

    def devices(self) -> list[tuple[int, int]]:
        """The turn and the device of each, or of each part of one."""

    def replay(self) -> list[int] | None:
        """Make them; None: they have to go one by one."""

    def patch(self, turn: int, command: Command) -> bool:
        """Another command, which touches the same, takes the place of one; whether that can be."""


class Recorder(Protocol):
    """A graph that captures the calls of a thread."""

    @property
    def is_capturing(self) -> bool:
        """Whether it makes a call right now, whose launches it takes."""

    def capture(self, function: Callable[..., object], *args: object, **keywords: object) -> Handle:
        """Make a call of the program, and keep it."""

    def take(
        self,
        command: Command,
        access: Access,
        wait_for: object,
        cutting: tuple[str, AccessOf] | None = None,
    ) -> Handle:
        """Keep a launch of the call that is being made. `cutting`: where several devices may have
        parts of it, its source, and what a part touches."""

    def keep(self, base: Base) -> None:
        """Keep memory that was allocated in the recording."""

    def open_loop(self, flag: Array, at_most: int) -> None:
        """What is recorded from here to `close_loop` is the body of a loop."""

    def close_loop(self, is_whole: bool) -> None:
        """The body of the loop opened last ends."""


class Watch(Protocol):
    """A watchdog, which is told of waits."""

    def bark(self, began: float) -> None:
        """Raise if nothing ends, in a call that waits since `began`."""

    def wait(self, books: Any, event: cl.Event, seconds: float) -> None:
        """Wait for an event without the lock, and raise if nothing ends."""


class Checker(Protocol):
    """Checks around each launch."""

    guard: int
    """Bytes that every array gets more."""

    def takes(self, access: Access) -> bool:
        """Whether a launch of this thread goes there first."""

    def launch(self, command: Command, access: Access, wait_for: Events, result: object) -> Handle:
        """Launch, with checks around it."""

    def sync(self) -> None:
        """The program waits, or learns what is done."""

    def allocated(self, base: Base, dtype: DType) -> None:
        """There is a new array."""

    def freed(
        self, number: int, block: Block, users: tuple[int, ...]
    ) -> list[tuple[Block, tuple[int, ...]]]:
        """Memory came back; gives the blocks that may be given out again."""

    def data_taken(self, array: Array) -> None:
        """The program has the address of an array."""

    def report(self) -> Report:
        """What the checks did and cost."""

    def close(self) -> None:
        """The runtime is about to close."""


class Tracer(Protocol):
    """A timeline."""

    device_of: Callable[[int], int]
    """Says on which of several devices a launch is."""

    def called(self) -> None:
        """The program has called the library."""

    def goes_on(self) -> None:
        """The call makes one more launch."""

    def waited(self, number: int = ...) -> None:
        """The program has waited."""

    def polled(self, number: int, done: bool) -> None:
        """The program has asked whether a launch is done."""

    def entered(self, number: int, started_ns: int) -> int:
        """A launch is in the hazards; gives the time."""

    def launched(self, number: int, started_ns: int, entered_ns: int) -> None:
        """A launch was handed over."""

    def ended(self, launch: Launch, lane: int, event: object) -> None:
        """A launch has ended on the device."""

    def copied_at_once(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A copy between devices has been made."""

    def noted(self, found: Found) -> None:
        """What groups of the scheduler ran of launches."""

    def ran_on_host(self, launch: Launch, start_ns: int, end_ns: int) -> None:
        """A host task has ended."""

    def enter(self, phase: str) -> str:
        """A phase of the program begins; gives the one before."""

    def forget_times(self) -> None:
        """Times of the program so far say nothing about the next launch."""

    def summary(self) -> Report:
        """What was timed."""

    def save(self, path: str) -> None:
        """Write the timeline."""
