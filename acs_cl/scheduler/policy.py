"""The choice between the scheduler and lanes, launch by launch, for a runtime that mixes them.

Input: measurements of launches (time on a lane, number of tiles) and of epochs (number of tasks,
time). Output: a reason to take a lane, or None. The module is pure: numbers in, sentences out.

The rule compares the cost for the host of a launch on a lane with that of a record. A record saves
`SAVED_US`. It may cost time on the device, where a scheduler runs a kernel in fewer or narrower
groups than a queue does.

An epoch takes about as long as a few launches on lanes, so smaller epochs go to lanes. If the
epochs of a program are smaller than that on average, it uses lanes only for a while.

On a GPU a kernel goes to lanes if its tasks take the device longer than its launches would take the
host. There the scheduler saves nothing, and a queue gives a kernel the registers and groups that
suit it. On a CPU a kernel goes to lanes if its epochs lose more time, against the times on lanes,
than they save. Kernels that take long go there at once, but not those that would cut an epoch in
two each time and take less than that costs. Steps of the program are tried without these rules,
too (`steps`).

A GPU takes some 30 us longer for an epoch on a queue that keeps times. So most epochs are timed by
the program, from sending to finding the end. That time is never less than what the device took.
"""

# Long because: the rules, and what they were measured by, are one decision.

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..records import Key

HOT = 32
"""Launches of a kernel before its scheduler is built. A build keeps a core busy for a while."""

SAMPLES = 3
"""Launches of a kernel at one size whose time on a lane is measured."""

SAVED_US = 5.0
"""Time of the host that a record saves against a launch, measured on PoCL 3.0 and on an H200
(driver 580)."""

SLOWDOWN = 0.3
"""How much longer a kernel takes at worst in a scheduler on a CPU: 0.3 is 30 %. Measured on PoCL
3.0 with loops of float arithmetic. Values up to one and a half times this lose nothing."""

CUTS = 4
"""Epochs that launches of a kernel at one size cut by going to lanes, before they stay. So many
come within a step or two of a program that has such launches, and seldom elsewhere. A step of 63
launches, of which 3 went to lanes, took seven times as long on PoCL 3.0 as one epoch of all did."""

REMEMBERED = 4096
"""Kernels at one size whose times are kept."""

FEW_ON_CPU, FEW_ON_GPU = 12, 6
"""Tasks of an epoch that take as long on lanes as the epoch does. On an H200 (driver 580) a small
epoch took 32 to 40 us, and each launch on lanes 7 to 10 us."""

STREAK = 4
"""Epochs collected for nothing, or an equal loss by more epochs, before all launches use lanes."""

REST, LONGEST_REST = 64, 4096
"""For how many launches that lasts. It doubles each time, until the loss is made up for."""


FILLS = "it fills the device by itself: it has more tiles than half the scheduler's groups"

LONG_US = 20.0
"""Time of the device per task of an epoch above which the host is not the limit. It is twice what a
launch on a lane took the host on an H200 (driver 580, 6 to 12 us). There kernels of 25 us on a
queue took 49 in the scheduler; tasks of networks with shorter kernels took at most 11."""

LONG_STREAK = 2
"""Long epochs in a row before their kernels go to lanes."""

LONG_REST, LONGEST = 1024, 1 << 16
"""For how many launches they do. It doubles each time."""

COOLDOWN, LONGEST_COOLDOWN = 16, 4096
"""How many epochs that seem long are not timed by the device, after it found one that was not long.
It doubles each time. A program that polls late sees long epochs only."""


COUNTED_REST = 256
"""Launches that go to lanes behind one whose size the device decides. There the core makes it by
itself, at the cost of another launch. As a task it takes the host several times as long, and so do
launches behind it. On PoCL 3.0 a mixture of experts took ten times as long in epochs."""

COUNTED = "the device decides the size of a launch near it, which takes the host less on a lane"

AS_RULED, IN_SCHEDULER, ON_LANES = range(3)
"""Ways of launches: by the rules, all in the scheduler that it can run, or all on lanes."""

SURE, UNJUDGED = 8, 15
"""After so many good epochs in a row, so many are not judged. To judge one takes the host as
long as several launches."""


NEVER = 1 << 62
"""A launch that never comes."""

Names = Callable[[], Mapping[str, int]]
"""Returns the kernels of an epoch, and how many launches of each it has."""


class Choice:
    """Holds the rule and its measurements. `on_cpu`: one work-item runs a group. `units`: how many
    launches the device runs at one time on lanes."""

    def __init__(self, on_cpu: bool, units: int = 1) -> None:
        self.on_cpu = on_cpu
        self.units = units
        self.way = AS_RULED
        self.gained: float | None = None
        """What steps take the present way, over what they take by the rules. None while ways are
        tried."""
        self.has_refused = False
        """Whether a rule has sent a launch to a lane that the scheduler could run."""
        self.few = FEW_ON_CPU if on_cpu else FEW_ON_GPU
        """Tasks from which on an epoch is worth sending."""
        self._times: dict[Key | None, list[float]] = {}
        self._cuts: dict[Key | None, int] = {}
        """How many epochs launches cut that take long."""
        self._means: dict[str, tuple[float, int]] = {}
        """{kernel: its mean time on a lane, number of launches timed}, for launches that may go to
        the scheduler."""
        self._lost = 0
        """Tasks that epochs had too few to reach `few`, less the tasks that others had beyond it.
        An epoch that was collected for nothing counts with all of `few`."""
        self._rest = REST
        self._builds = 0
        self._long = 0
        self._long_rest = LONG_REST
        self._long_names: dict[str, tuple[int, str]] = {}
        """{kernel: the launch until which it goes to lanes, reason}."""
        self._good = self._unjudged = 0
        """Good epochs in a row; how many are not judged from now on."""
        self.needs_timing = False
        """Whether the device has to keep times of epochs, because the program saw a long one."""
        self._cooldown = 0
        self._next_cooldown = COOLDOWN
        self.resting_until = 0
        """The launch until which all launches go to lanes."""
        self.counting_until = 0
        """The same, because of one whose size the device decides."""
        self.last_was_large = False
        """Whether the last epoch was worth sending. Then the next one is sent however small it
        gets. Its launches need not be kept for lanes, so the core may make all of them."""

    def built_anew(self, builds: int) -> None:
        """Forget small epochs after a build, because kernels were missing in the schedulers."""
        if builds != self._builds:
            self._builds = builds
            self._lost, self._rest, self.resting_until = 0, REST, 0

    def wants_time(self, key: Key | None) -> bool:
        """Tell whether a launch of `key` on a lane should be timed."""
        return self.on_cpu and len(self._times.get(key, ())) < SAMPLES

    def timed_on_lane(self, key: Key, us: float) -> None:
        """Note the time that a launch took the device on a lane."""
        if len(self._times) >= REMEMBERED:  # a program whose sizes never repeat
            self._times.clear()
            self._cuts.clear()
        self._times.setdefault(key, []).append(us)
        if us * SLOWDOWN <= SAVED_US:
            self._may_go(key, us)

    def _may_go(self, key: Key, us: float) -> None:
        mean, many = self._means.get(key[0], (0.0, 0))
        self._means[key[0]] = (mean * many + us) / (many + 1), many + 1

    def refusal(self, number: int, key: Key | None, tiles: int, groups: int) -> str | None:
        """Say why launch `number`, of `key`, should take a lane. `tiles`: its tiles. `groups`: how
        many groups the scheduler has."""
        if self.way == AS_RULED:
            return self.ruled(number, key, tiles, groups)
        return self._all_on_lanes() if self.way == ON_LANES else None

    def ruled(self, number: int, key: Key | None, tiles: int, groups: int) -> str | None:
        """Say the same by the rules, whatever way launches go now."""
        if key is not None and (found := self._too_long(number, key[0])) is not None:
            return found[1]
        reason = FILLS if tiles > max(1, groups // 2) else self._takes_long(key)
        self.has_refused = self.has_refused or reason is not None
        return reason

    def takes_long(self, key: Key | None) -> str | None:
        """Say why launches of `key` should take a lane for their times there. It is known before a
        scheduler has the kernel, so that none is built for kernels that take long."""
        return None if self.way == IN_SCHEDULER else self._takes_long(key)

    def _takes_long(self, key: Key | None) -> str | None:
        us = self._least_us(key)
        if us * SLOWDOWN <= SAVED_US or self._cuts.get(key, 0) >= CUTS:
            return None
        self.has_refused = True
        return (
            f"it takes {us:.0f} us: a record saves the host {SAVED_US:.0f} us, and the "
            f"scheduler may take {us * SLOWDOWN:.0f} us longer"
        )

    def _all_on_lanes(self) -> str:
        if self.gained is None:
            return "steps of the program are tried with all launches on lanes"
        return f"steps take {self.gained:.2f} of the time with all launches on lanes"

    def _least_us(self, key: Key | None) -> float:
        """Return the least time of a launch, since other programs only add to it."""
        return min(self._times.get(key, (0.0,)))

    def cut(self, key: Key | None) -> bool:
        """Note that a launch of `key` cut the open epoch, because it went to a lane and follows it.
        Tell whether launches like it stay in the scheduler from now on. An epoch more takes as long
        as `few` launches on lanes, which may be more than they gain there."""
        us = self._least_us(key)
        if key is None or not SAVED_US < us * SLOWDOWN <= SAVED_US * (1 + self.few):
            return False
        self._cuts[key] = self._cuts.get(key, 0) + 1
        if self._cuts[key] != CUTS:
            return False
        for taken in self._times[key]:
            self._may_go(key, taken)
        return True

    def counted(self, number: int) -> None:
        """Note that the device decides about the size of launch `number`, of which the core makes
        the next ones if they go to lanes."""
        self.counting_until = number + COUNTED_REST

    def epoch(self, tasks: int, number: int, is_sent_anyway: bool) -> bool:
        """Tell whether the scheduler gets an epoch of `tasks` whose last launch is `number`.
        `is_sent_anyway`: it has to, because its launches were not kept for lanes."""
        self.last_was_large = tasks >= self.few or self.way == IN_SCHEDULER
        if self.way == IN_SCHEDULER:
            return True
        is_sent = self.last_was_large or is_sent_anyway
        self._lost = max(0, self._lost + self.few - (tasks if is_sent else 0))
        if not self._lost:
            self._rest = REST
        elif self._lost >= STREAK * self.few and not self.last_was_large:
            self._lost -= self.few  # as soon as it falls short again
            self.resting_until, self.has_refused = number + self._rest, True
            self._rest = min(2 * self._rest, LONGEST_REST)
        return is_sent

    def judges_next(self) -> bool:
        """Tell whether the time of the next epoch is judged. It is unless the last ones were
        all good."""
        if not self._unjudged:
            return True
        self._unjudged -= 1
        return False

    def timed_by_device(self, us: float, tasks: int, width: int, number: int, names: Names) -> bool:
        """Take the device's time for an epoch, and tell whether its kernels go to lanes from now
        on. `width`: how many of its tasks may run at one time. `number`: the newest launch."""
        if tasks < self.few:  # so few say little
            return False
        why = (self._lost_on_cpu if self.on_cpu else self._lost_on_gpu)(us, tasks, width, names)
        if not why:
            self._was_short()
            if self.needs_timing:
                self.needs_timing, self._cooldown = False, self._next_cooldown
                self._next_cooldown = min(2 * self._next_cooldown, LONGEST_COOLDOWN)
            return False
        self._long += 1
        self._good = 0
        if self._long < LONG_STREAK:
            return False
        for name in names():
            self._long_names[name] = number + self._long_rest, why
        self._long_rest = min(2 * self._long_rest, LONGEST)
        return True

    def seen_by_program(self, us: float, tasks: int) -> None:
        """Take the time from sending an epoch of `tasks` to finding its end, as the program saw
        it."""
        if tasks < self.few:
            return
        if us <= LONG_US * tasks:
            self._was_short()
        elif self._cooldown:
            self._cooldown -= 1
        else:
            self.needs_timing, self._good = True, 0

    def _was_short(self) -> None:
        self._long, self._long_rest = 0, LONG_REST
        self._good += 1
        if self._good >= SURE:
            self._unjudged = UNJUDGED

    def _lost_on_gpu(self, us: float, tasks: int, width: int, names: Names) -> str:
        if us <= LONG_US * tasks:
            return ""
        return f"in the scheduler a task took {us / tasks:.0f} us, a launch takes the host less"

    def _lost_on_cpu(self, us: float, tasks: int, width: int, names: Names) -> str:
        """Compare with the best time on lanes, if all kernels of the epoch were timed there."""
        on_lanes = 0.0
        for name, many in names().items():
            if name not in self._means:
                return ""
            on_lanes += self._means[name][0] * many
        on_lanes /= max(1, min(self.units, width))
        if us - on_lanes <= SAVED_US * (tasks - self.few):
            return ""
        return (
            f"in the scheduler {tasks} tasks took {us:.0f} us, on lanes {on_lanes:.0f} us: it "
            f"saves the host {SAVED_US * (tasks - self.few):.0f} us"
        )

    def on_lanes_until(self, number: int, name: str) -> tuple[int, str]:
        """Return the launch until which a kernel goes to lanes, and why. 0: it need not."""
        if self.way != AS_RULED:
            return (NEVER, self._all_on_lanes()) if self.way == ON_LANES else (0, "")
        found = self._too_long(number, name)
        if found is not None:
            return found
        if number < self.resting_until:
            return self.resting_until, "epochs were too small lately to be worth sending"
        if number < self.counting_until:
            return self.counting_until, COUNTED
        return 0, ""

    def _too_long(self, number: int, name: str) -> tuple[int, str] | None:
        """Return the launch until which a kernel goes to lanes because its tasks take long, and
        why. None: they are not known to."""
        found = self._long_names.get(name)
        return found if found is not None and number < found[0] else None
