"""The check `access`: what a launch reads and writes is what it declares.

In: a case, its outcome by the backend, and trials with other values in bytes that are not declared
as read. Out: what is wrong: a byte that changed and is not declared as written, or one that matters
and is not declared as read.

A kernel whose outcome is not the same each time from the same memory cannot be judged by comparing.
Where its body says that this may be (`opencl_c.modes.steadiness`) no difference counts: runs that
agree may agree by chance. Others are run again from the same bytes before they are accused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .case import Case, Spot, Trial

CONTROLS = 3
"""Runs from the same memory that have to agree before a kernel is accused."""
BLIND_CONTROLS = 30
"""The same for kernels whose body nobody knows."""


class Matters(NamedTuple):
    """An element whose value matters though it should not. `unsteady`: nobody can tell."""

    spot: Spot | None
    unwritten: bool = False
    unsteady: bool = False


def stray_write(case: Case, trials: Sequence[Trial]) -> Spot | None:
    """The first byte that changed in one of these runs and is not declared as written."""
    strays = [spot for trial in trials for spot in case.strays(trial)]
    return case.first(strays) if strays else None


def stray_read(
    case: Case, real: Trial, trials: Sequence[Trial], access: bool, unwritten: bool
) -> Matters | None:
    """What a launch has read, if the trials tell that something was not as it should be. `access`,
    `unwritten`: which of the two checks want to know."""
    for trial in trials:
        if not case.differ(real, trial):
            continue
        if case.may_differ or unsteady(case, real):
            return Matters(None, unsteady=True)
        if access:
            spot = case.first_of(case.undeclared(), trial, real)
            if spot is not None:
                return Matters(spot)
        if unwritten:
            spot = case.first_of(case.unwritten_reads(), trial, real)
            if spot is not None:
                return Matters(spot, unwritten=True)
        if unsteady(case, real):  # or the two together matter, which nothing here tells apart
            return Matters(None, unsteady=True)
    return None


def unsteady(case: Case, real: Trial) -> bool:
    """Whether runs from the same memory differ."""
    for _ in range(BLIND_CONTROLS if case.blind else CONTROLS):
        again = case.trial([one.copy() for one in case.before])
        if case.differ(real, again) or any(
            (first != second).any() for first, second in zip(real.out, again.out, strict=True)
        ):
            return True
    return False
