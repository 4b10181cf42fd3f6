"""Trials: whether a program's commands take less time tracked or in bypass.

In: stretches of commands, each from one wait of the host for results to the next: how many, how
long they took, and whether they bypassed the runtime. Out: when to change, and to what.

How far launches overlap does not say whether that pays. A tracked command costs the host more, and
the device may keep up with either. The time of a stretch has all of it: what the host pays for a
tracked command, what it pays for the same ones in bypass, and what overlap gains. So a queue tries
the other way now and then, for a few stretches, and stays there if these were faster.

Pure: no clock, no queue. A trial that did not pay makes the next one come later.
"""

from __future__ import annotations

from statistics import median

STRETCHES = 7
"""Stretches of either way that are compared, by their medians. Single ones vary by a fifth and
more: programs have other commands in each, and machines their moods."""

GAIN = {True: 0.97, False: 0.9}
"""How long a command may take at most, over one of the way before, for a trial to pay: of bypass,
and of tracking, which has more to lose."""

SOON, LATE, LATEST = 2, 16, 1024
"""After how many times a trial's length the first one comes: where little overlaps, where much
does. Twice that after each trial in vain, up to the last."""


class Trials:
    """Compare the times of commands, tracked and in bypass. `both`: trials of tracking, too, where
    nothing else says when that may pay."""

    def __init__(self, both: bool = False) -> None:
        self._both = both
        self._bypassed = False
        self._rates: list[float] = []
        """Seconds for a command in the last stretches, since the way changed."""
        self._before: float | None = None
        """What a command took the other way, until that is compared."""
        self._returns = False
        self._patience = SOON
        self._waits_s = 0.0
        """How much of the patience there has been."""

    def overlaps(self, parallelism: float) -> None:
        """Launches are tracked since so many of them overlap."""
        self._patience = max(self._patience, SOON if parallelism < 2 else LATE)

    def stretch(self, bypassed: bool, commands: int, seconds: float) -> bool | None:
        """Note a stretch. True: the next commands had better bypass the runtime. False: they had
        better be tracked. None: nothing changes."""
        if bypassed != self._bypassed:
            known = len(self._rates) == STRETCHES and not self._returns
            self._before = median(self._rates) if known else None
            self._bypassed, self._returns = bypassed, False
            self._rates.clear()
        self._rates = [*self._rates, seconds / commands][-STRETCHES:]
        self._waits_s += seconds
        if len(self._rates) < STRETCHES:
            return None
        if self._before is not None:
            return self._compared(self._before)
        may_try = self._both or not bypassed
        if may_try and self._waits_s >= self._patience * STRETCHES * seconds:
            return not bypassed
        return None

    def refused(self) -> None:
        """The change that was asked for cannot be made now."""
        self._in_vain()

    def _compared(self, before: float) -> bool | None:
        self._before = None
        if median(self._rates) <= GAIN[self._bypassed] * before:
            self._patience, self._waits_s = max(self._patience // 2, SOON), 0.0
            return None
        self._in_vain()
        self._returns = True
        return not self._bypassed

    def _in_vain(self) -> None:
        self._patience, self._waits_s = min(2 * self._patience, LATEST), 0.0
