"""The scheduler on the device: what it has built, extreme settings, and faults made on purpose."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

import numpy as np
import pyopencl as cl

from acs_cl import core, testing
from acs_cl.devices import driver
from acs_cl.graph import tuning
from acs_cl.graph.tuning import Gain, Replayed
from acs_cl.kernel import Kernel, origin_of
from acs_cl.launch import parts as parts_module
from acs_cl.launch.parts import touched_of
from acs_cl.records import Access
from acs_cl.runtime import Runtime
from acs_cl.scheduler import apart, builds, layout, maker
from acs_cl.scheduler import policy as choice
from acs_cl.scheduler import sender as sender_module
from acs_cl.scheduler import task as task_module
from acs_cl.scheduler.bands import Band, bands_of
from acs_cl.scheduler.builds import Schedulers
from acs_cl.scheduler.built import Scheduler as BuiltScheduler
from acs_cl.scheduler.compiling import launch_arguments
from acs_cl.scheduler.maker import Maker
from acs_cl.scheduler.sender import Sender
from acs_cl.testing.changing import changed

P = ParamSpec("P")


CLEANS, COMPANY_AT = 1, 8
"""Bits of a launch's mode, as in _core/epoch/sender.hpp. Above the last one is how many groups run
at one time."""

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, *[ctypes.c_void_p] * 2, ctypes.c_uint32, *[ctypes.c_void_p] * 3,
    ctypes.c_uint32, *[ctypes.c_void_p] * 2,
)  # fmt: skip
"""OpenCL's function that launches a kernel."""


@contextmanager
def compared_by(gain: Callable[[Replayed, Replayed], Gain]) -> Iterator[None]:
    """Have tuning compare two graphs by this function, and measure nothing."""
    with changed(tuning, "compared", gain):
        yield


@contextmanager
def launching(made: Callable[[Callable[..., int]], Callable[..., int]]) -> Iterator[None]:
    """Have the core launch kernels by `made(function)` instead of the driver's function."""
    functions, place = driver.functions(), driver.FUNCTIONS.index("clEnqueueNDRangeKernel")
    kept = LAUNCH(made(LAUNCH(functions[place])))
    functions[place] = ctypes.cast(kept, ctypes.c_void_p).value or 0
    core.native.open_driver(functions)
    try:
        yield
    finally:
        core.native.open_driver(driver.functions())


@contextmanager
def marked(mark: Callable[[layout.Image], None], seen: list[layout.Image]) -> Iterator[None]:
    """Have a function change the words of each segment that is made in the block; collect these."""

    def noting(image: Callable[P, layout.Image]) -> Callable[P, layout.Image]:
        def made(*args: P.args, **options: P.kwargs) -> layout.Image:
            found = image(*args, **options)
            mark(found)
            seen.append(found)
            return found

        return made

    with changed(layout.Recorder, "image", noting(layout.Recorder.image)):
        yield


@contextmanager
def bands_touch(told: Callable[[int, Access], Access]) -> Iterator[None]:
    """Have bands touch `told(number, access)` instead of the inferred access."""

    def bands(*args: Any) -> tuple[Band, ...]:
        found = bands_of(*args)
        return tuple(
            band._replace(access=told(number, band.access)) for number, band in enumerate(found)
        )

    def touched(*args: Any) -> list[Access]:
        return [told(number, access) for number, access in enumerate(touched_of(*args))]

    with changed(task_module, "bands_of", bands), changed(parts_module, "touched_of", touched):
        yield


@contextmanager
def long_launch(microseconds: float) -> Iterator[None]:
    """Make `backend='auto'` count launches as long, and so better on lanes, from this length on."""
    with changed(choice, "LONG_US", microseconds):
        yield


BUILD_STEPS = {
    "translation": (Maker, "_translate"),
    "build": (Maker, "build"),
    "form": (Maker, "_form"),
    "renewal": (Schedulers, "_renew"),
    "limits": (Maker, "_limits"),
}
"""What building schedulers consists of, by the methods that do it."""


@contextmanager
def build_step(
    step: str, made: Callable[[Callable[..., object]], Callable[..., object]]
) -> Iterator[None]:
    """Have one of `BUILD_STEPS` done by what is made of the function that does it."""
    kind, name = BUILD_STEPS[step]
    with changed(kind, name, made(vars(kind)[name])):
        yield


@contextmanager
def slow_builds() -> Iterator[threading.Event]:
    """Take all programs for large ones, in runtimes that are made meanwhile.

    The process that compiles them ends when the event is set. It fails, so the library compiles.
    """
    goes_on = threading.Event()

    def compiled(*_: object) -> bool:
        goes_on.wait()
        return False

    with (
        changed(maker, "LARGE", 0),
        changed(maker, "compiles_late", lambda _: True),
        changed(apart.Apart, "translate", lambda *_: None),
        changed(apart.Apart, "compile", compiled),
    ):
        try:
            yield goes_on
        finally:
            goes_on.set()


@contextmanager
def waits_for_builds(told: Callable[[str], object]) -> Iterator[None]:
    """Have waits for builds say at once what for, by calling a function."""
    with changed(builds, "SAY_S", 0.0), changed(builds, "say", told):
        yield


@contextmanager
def waits_of_graphs(seconds: float) -> Iterator[None]:
    """Have graphs wait so long for builds, which are not large."""
    with changed(builds, "GRAPH_S", seconds), changed(maker, "LARGE", 1 << 30):
        yield


def built_beside(builds: Schedulers, rt: Runtime, *kernels: Kernel) -> list[set[str]]:
    """Have kernels built while nobody waits. Return the kernels of each scheduler."""
    with builds._lock:  # all together
        for kernel in kernels:
            builds.ask(*origin_of(rt.engine, kernel))
        for _ in range(1200):
            if builds._pending:
                builds._lock.wait(0, 1.0)
        assert not builds._pending
    return [set(fact.kernels) for fact in builds.facts()]


class Scheduler(testing.Scheduler):
    """A scheduler with its inside: what it has built, its sender, and extreme settings."""

    @property
    def last_epoch(self) -> cl.Event | None:
        """Return the event of the newest epoch that was sent and is not known to have ended."""
        newest = self.backend.sender.newest
        assert newest is not None
        event: cl.Event | None = newest.event
        return event

    @property
    def builds(self) -> Schedulers:
        """Return the object that builds schedulers, with the ones built."""
        return self.backend.schedulers

    @property
    def built(self) -> list[BuiltScheduler]:
        """Return the schedulers that are built."""
        return self.builds.built()

    @property
    def policy(self) -> choice.Choice | None:
        """Return the rule that selects launches for it. None: all possible launches."""
        return self.backend.choice

    @property
    def sender(self) -> Sender:
        """Return the object that sends its epochs."""
        return self.backend.sender

    @property
    def pinned_places(self) -> tuple[int, int]:
        """Return the number of pinned arrays for status of epochs, and of the free ones."""
        return self.sender.places

    def land_in_pinned_memory(self) -> None:
        """Put status buffers in pinned memory, as on a GPU, with all places free."""
        self.sender.use_pinned()

    def change_words(self, change: Callable[[layout.Image], object] | None) -> None:
        """Have a function change collected epochs' words before they are sent. None: stop that."""

        def seen(words: memoryview, placed: core.native.Placed) -> None:
            assert change is not None
            parts = placed.tasks, placed.width, placed.block, placed.block_words
            change(layout.Image(np.frombuffer(words, np.uint32), *parts))

        self.sender.on_words = None if change is None else seen

    def kernels_by_group(self) -> dict[int, set[str]]:
        """Return the kernels that are built in, by the size of a group."""
        return {facts.group: set(facts.kernels) for facts in self.builds.facts()}

    def allow_footprints(self, ns: int) -> None:
        """Set the time per launch that the footprint of a foreseen epoch may take.

        Less than zero: every footprint counts as slow.
        """
        self.runtime.engine.table.allow_footprints(ns)

    def foresee_without_a_clock(self) -> None:
        """Have no time end what is foreseen, however late a clock is read on a busy machine."""
        self.allow_footprints(1 << 40)
        self.runtime.engine.table.count_for(1 << 60)

    def cut_epochs(self, least: int, gain: float, timed_gain: float, runs: int = 3) -> None:
        """Set when foreseen epochs are cut: tasks of a section, and what sections have to gain."""
        self.runtime.engine.table.cut_epochs(least, gain, timed_gain, runs)

    def set(self, **settings: Any) -> None:
        """Change how epochs are run: turns, polls, window, order, most_tasks, slice_s."""
        self.backend.settings = self.backend.settings._replace(**settings)

    def number_epochs_from(self, number: int) -> None:
        """Have the next epoch get this number."""
        self.sender.newest_number = number - 1

    def set_groups(self, groups: int = 0, times: int = 0) -> None:
        """Run each built scheduler by this many groups, or by this many times its own number."""
        for one in self.built:
            one.limits = one.limits._replace(groups=groups or times * one.limits.groups)

    @contextmanager
    def ordering_wrongly(self, priority: list[float]) -> Iterator[None]:
        """Give each epoch that is sent in the block these priorities, however many tasks it has."""
        order = dict.fromkeys(["other"])
        ours: Any = lambda *_, **__: priority  # noqa: E731
        with changed(sender_module, "ORDERS", order), changed(layout.Recorder, "priorities", ours):
            self.set(order="other")
            try:
                yield
            finally:
                self.set(order="first_in")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Restore settings and groups at the end of the block."""
        settings, limits = self.backend.settings, [(one, one.limits) for one in self.built]
        try:
            yield
        finally:
            self.backend.settings = settings
            for one, before in limits:
                one.limits = before

    @contextmanager
    def refusing(self, after: int = 0) -> Iterator[list[cl.Event]]:
        """Make the driver refuse launches on the scheduler's queue in the block, except the first
        `after`, whose events are collected."""
        own, events = self.backend.queues[0].int_ptr, list[cl.Event]()

        def made(real: Callable[..., int]) -> Callable[..., int]:
            def launch(queue: int, *rest: Any) -> int:
                if queue != own:
                    return int(real(queue, *rest))
                if len(events) >= after:
                    return int(cl.status_code.OUT_OF_RESOURCES)
                event = ctypes.c_void_p()
                status: int = real(queue, *rest[:-1], ctypes.byref(event))
                if rest[-1]:
                    ctypes.c_void_p.from_address(rest[-1]).value = event.value
                events.append(cl.Event.from_int_ptr(event.value or 0, retain=bool(rest[-1])))
                return status

            return launch

        with launching(made):
            yield events

    @contextmanager
    def cut_short(self, turns: int, company: int) -> Iterator[None]:
        """Have one replay run by one group for at most `turns` tiles, as if `company` groups ran,
        and by no later launch of the scheduler."""
        own, launched = self.backend.queues[0].int_ptr, list[int]()

        def made(real: Callable[..., int]) -> Callable[..., int]:
            def launch(
                queue: int, kernel: int, axes: int, offset: int, items: int, *rest: Any
            ) -> int:
                if queue != own:
                    return int(real(queue, kernel, axes, offset, items, *rest))
                if launched:
                    return 0
                launched.append(kernel)
                arguments = launch_arguments(0, turns, 0, 0, CLEANS | company << COMPANY_AT)
                native: Any = cl.Kernel.from_int_ptr(kernel)
                native._set_arg_buf_multi(arguments)
                group = rest[0]
                return int(real(queue, kernel, axes, offset, group, *rest))

            return launch

        with launching(made):
            yield
