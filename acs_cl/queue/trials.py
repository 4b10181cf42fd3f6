"""Trials: they measure whether a program's commands take less time tracked or in bypass.

Overlap of launches does not say whether tracking pays: a tracked command costs the host more, and
the device may keep up either way. The time of a stretch includes both costs and the gain of
overlap. So a queue tries the other way now and then, for a few stretches, and stays with it if
these were faster. A trial in vain makes the next one come later.

Input: stretches of commands, each with its number of commands, its time, and whether it was in
bypass. Output: when to change, and to what. Pure: no clock, no queue.
"""

from __future__ import annotations

STRETCHES = 7
"""Stretches of either way that are compared, by their medians. Single ones vary by a fifth and
more, because programs have different commands in each, and machines have noise."""

GAIN = {True: 0.97, False: 0.9}
"""Largest ratio of a command's time to the time before at which a trial pays: of bypass, and of
tracking, which has more to lose."""

SOON, LATE, LATEST = 2, 16, 1024
"""When the first trial comes, in lengths of a trial: where little overlaps, and where much does. It
doubles after each trial in vain, up to the last number."""


class Trials:
    """Compares the times of commands, tracked and in bypass. `both`: also tries tracking, where
    nothing else says when it may pay."""

    def __init__(self, both: bool = False) -> None:
        self._both = both
        self._bypassed = False
        self._rates: list[float] = []
        """Seconds for a command in the last stretches, since the way changed."""
        self._before: float | None = None
        """Time of a command the other way, until it is compared."""
        self._returns = False
        self._patience = SOON
        self._waits_s = 0.0
        """Seconds of the patience that have passed."""

    def overlaps(self, parallelism: float) -> None:
        """Note that launches are tracked because they overlap."""
        self._patience = max(self._patience, SOON if parallelism < 2 else LATE)

    def stretch(self, bypassed: bool, commands: int, seconds: float) -> bool | None:
        """Note a stretch, and say whether to change. True: the next commands should bypass the
        runtime. False: they should be tracked. None: no change."""
        if bypassed != self._bypassed:
            known = len(self._rates) == STRETCHES and not self._returns
            self._before = _middle(self._rates) if known else None
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
        """Note that the change that was asked for cannot be made now."""
        self._in_vain()

    def _compared(self, before: float) -> bool | None:
        self._before = None
        if _middle(self._rates) <= GAIN[self._bypassed] * before:
            self._patience, self._waits_s = max(self._patience // 2, SOON), 0.0
            return None
        self._in_vain()
        self._returns = True
        return not self._bypassed

    def _in_vain(self) -> None:
        self._patience, self._waits_s = min(2 * self._patience, LATEST), 0.0


def _middle(rates: list[float]) -> float:
    """Return the median of `STRETCHES` rates. Python's own loads fractions and decimals."""
    return sorted(rates)[STRETCHES // 2]
