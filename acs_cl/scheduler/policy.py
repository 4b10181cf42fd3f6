"""The choice between the scheduler and lanes, launch by launch, for a runtime that mixes them.

In: what was measured of launches (their time on a lane, the tiles they have, how many tasks epochs
had, and how long they took). Out: a reason to take a lane, or None. Pure: numbers in, sentences
out.

The rule compares what a launch costs the host on a lane and in a record. A record saves
`SAVED_US`, and may cost time on the device: a scheduler runs a kernel in fewer or narrower groups
than a queue does. An epoch costs the host about as much as `FEW` launches on lanes, so that smaller
ones go to lanes, and a program whose epochs are smaller in the mean is left alone for a while. On a
GPU kernels are left alone whose tasks take the device longer than their launches would take the
host: there the scheduler saves nothing, and a queue runs a kernel with as many registers and groups
as suit it. On a CPU those are left alone whose epochs take longer, against the times on lanes, than
they save.

A GPU takes some 30 us longer for an epoch on a queue that keeps times. What the program sees of it,
from sending it to finding it ended, is enough for most: it never is less than what the device took.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..records import Sizes

HOT = 32
"""Launches of a kernel before a scheduler is built for it: a build takes a core for a while."""

SAMPLES = 3
"""Launches of a kernel at one size whose time on a lane is measured."""

SAVED_US = 5.0
"""What a record saves the host against a launch: measured on PoCL 3.0 and on an H200 (driver
580)."""

SLOWDOWN = 0.3
"""How much longer a kernel takes in a scheduler on a CPU at worst: measured on PoCL 3.0 with loops
of float arithmetic, where nothing is lost to half as much again."""

REMEMBERED = 4096
"""Kernels at a size whose times are kept."""

FEW = 12
"""Tasks of an epoch that cost the host on lanes what the epoch costs."""

STREAK = 4
"""Epochs that are collected for nothing before the scheduler is left alone, or as much lost by more
of them."""

REST, LONGEST_REST = 64, 4096
"""Launches for which it is left alone, twice as many each time, until what was lost is made up
for."""


LONG_US = 20.0
"""Time of the device for each task of an epoch from which on the host is not what limits: twice
what a launch on a lane took it on an H200 (driver 580, 6 to 12 us). There kernels of 25 us on a
queue took 49 in the scheduler; tasks of networks with shorter ones took at most 11."""

LONG_STREAK = 2
"""Long epochs in a row before their kernels are left alone."""

LONG_REST, LONGEST = 1024, 1 << 16
"""Launches for which they are, twice as many each time."""

CALM, LONGEST_CALM = 16, 4096
"""Epochs that seem long for which the device is not asked, after it has said that one was not:
twice as many each time. A program that looks late sees long epochs only."""


Names = Callable[[], Mapping[str, int]]
"""Which kernels an epoch has, and how many launches of each."""


Key: TypeAlias = tuple[str, Sizes, Sizes | None]
"""A kernel and its sizes: what launches are alike for."""


class Choice:
    """The rule with what it remembers. `on_cpu`: one work-item runs a group; `units`: how many
    launches the device runs at a time, as far as lanes are concerned."""

    def __init__(self, on_cpu: bool, units: int = 1) -> None:
        self.on_cpu = on_cpu
        self.units = units
        self._times: dict[Key | None, list[float]] = {}
        self._means: dict[str, tuple[float, int]] = {}
        """{kernel: its mean time on a lane, of so many launches that may go to the scheduler}."""
        self._lost = 0
        """Tasks by which epochs fell short of `FEW`, less those beyond it: one that was collected
        for nothing falls short by all of it."""
        self._rest = REST
        self._builds = 0
        self._long = 0
        self._long_rest = LONG_REST
        self._long_names: dict[str, tuple[int, str]] = {}
        """{kernel: the launch before which it is left alone, and why}."""
        self.doubts = False
        """Whether the device has to keep the times of epochs: as the program saw it, one took
        long."""
        self._calm = 0
        self._next_calm = CALM
        self.resting_until = 0
        """The launch before which the scheduler is left alone."""
        self.trusts = False
        """Whether the next epoch is sent however small it turns out: the last one was large enough.
        Its launches need not be kept for lanes, so that the core may make all of them."""

    def look_again(self, builds: int) -> None:
        """There are more schedulers than before, or larger ones: small epochs of the time when
        half of the kernels were not in them say nothing any more."""
        if builds != self._builds:
            self._builds = builds
            self._lost, self._rest, self.resting_until = 0, REST, 0

    def wants_time(self, key: Key | None) -> bool:
        """Whether a launch of `key` on a lane should be timed."""
        return self.on_cpu and len(self._times.get(key, ())) < SAMPLES

    def timed(self, key: Key, us: float) -> None:
        """A launch on a lane took so long on the device."""
        if len(self._times) >= REMEMBERED:  # a program whose sizes never repeat
            self._times.clear()
        self._times.setdefault(key, []).append(us)
        if us * SLOWDOWN <= SAVED_US:
            mean, many = self._means.get(key[0], (0.0, 0))
            self._means[key[0]] = (mean * many + us) / (many + 1), many + 1

    def refusal(self, number: int, key: Key | None, tiles: int, groups: int) -> str | None:
        """Why launch `number`, of `key` and with so many tiles, should take a lane, where the
        scheduler has `groups` groups."""
        if key is not None and (alone := self._too_long(number, key[0])) is not None:
            return alone[1]
        if tiles > max(1, groups // 2):
            return (
                f"it fills the device by itself: {tiles} tiles, the scheduler has {groups} groups"
            )
        times = self._times.get(key)
        if times:
            us = sorted(times)[len(times) // 2]
            if us * SLOWDOWN > SAVED_US:
                return (
                    f"it takes {us:.0f} us: a record saves the host {SAVED_US:.0f} us, and the "
                    f"scheduler may take {us * SLOWDOWN:.0f} us longer"
                )
        return None

    def epoch(self, tasks: int, number: int, trusted: bool) -> bool:
        """An epoch of `tasks` is complete, launch `number` its last: whether the scheduler gets
        it. `trusted`: it has to, since nobody knows any more what to do with it elsewhere."""
        self.trusts = tasks >= FEW
        is_sent = self.trusts or trusted
        self._lost = max(0, self._lost + FEW - (tasks if is_sent else 0))
        if not self._lost:
            self._rest = REST
        elif self._lost >= STREAK * FEW and not self.trusts:
            self._lost -= FEW  # as soon as it falls short again
            self.resting_until = number + self._rest
            self._rest = min(2 * self._rest, LONGEST_REST)
        return is_sent

    def took(self, us: float, tasks: int, width: int, number: int, names: Names) -> bool:
        """An epoch of `tasks`, of which `width` may run at a time, took the device so long;
        `number` is the newest launch. Whether its kernels are left alone from now on."""
        if tasks < FEW:  # which says little
            return False
        why = (self._lost_on_cpu if self.on_cpu else self._lost_on_gpu)(us, tasks, width, names)
        if not why:
            self._was_short()
            if self.doubts:
                self.doubts, self._calm = False, self._next_calm
                self._next_calm = min(2 * self._next_calm, LONGEST_CALM)
            return False
        self._long += 1
        if self._long < LONG_STREAK:
            return False
        for name in names():
            self._long_names[name] = number + self._long_rest, why
        self._long_rest = min(2 * self._long_rest, LONGEST)
        return True

    def saw(self, us: float, tasks: int) -> None:
        """An epoch of `tasks`, whose time the device did not keep, was found to have ended so long
        after it was sent."""
        if tasks < FEW:
            return
        if us <= LONG_US * tasks:
            self._was_short()
        elif self._calm:
            self._calm -= 1
        else:
            self.doubts = True

    def _was_short(self) -> None:
        self._long, self._long_rest = 0, LONG_REST

    def _lost_on_gpu(self, us: float, tasks: int, width: int, names: Names) -> str:
        if us <= LONG_US * tasks:
            return ""
        return f"in the scheduler a task took {us / tasks:.0f} us, a launch takes the host less"

    def _lost_on_cpu(self, us: float, tasks: int, width: int, names: Names) -> str:
        """Against what lanes would have taken at best, of what was timed there."""
        on_lanes = 0.0
        for name, many in names().items():
            if name not in self._means:
                return ""
            on_lanes += self._means[name][0] * many
        on_lanes /= max(1, min(self.units, width))
        if us - on_lanes <= SAVED_US * (tasks - FEW):
            return ""
        return (
            f"in the scheduler {tasks} tasks took {us:.0f} us, on lanes {on_lanes:.0f} us: it "
            f"saves the host {SAVED_US * (tasks - FEW):.0f} us"
        )

    def left_alone(self, number: int, name: str) -> tuple[int, str]:
        """Before which launch `number`, of a kernel of this name, has to take a lane, and why."""
        alone = self._too_long(number, name)
        if alone is not None:
            return alone
        if number < self.resting_until:
            return self.resting_until, "epochs were too small lately to be worth sending"
        return 0, ""

    def _too_long(self, number: int, name: str) -> tuple[int, str] | None:
        """The same for its tasks' time alone; None where nothing is known against it."""
        alone = self._long_names.get(name)
        return alone if alone is not None and number < alone[0] else None
