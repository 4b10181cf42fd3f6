"""The check `access`: a launch reads and writes only the bytes that it declares.

Input: a case, its outcome by the backend, and trials with other values in bytes that are not
declared as read. Output: the error. Either a byte changed that is not declared as written, or the
value of a byte matters that is not declared as read.

Comparing cannot judge a kernel whose outcome differs between runs from the same memory. If its body
allows that (`opencl_c.modes.steadiness`), no difference counts, because runs may agree by chance.
Any other kernel is run again from the same bytes before it is accused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Finding
from ..records import Access, NamedTuple
from .case import Case, Spot, Trial
from .findings import READ, WRITE, Who, finding
from .naming import listed, where_of

CONTROLS = 3
"""Runs from the same memory that have to agree before a kernel is accused."""
BLIND_CONTROLS = 30
"""Such runs for a kernel whose body is not known."""


class Matters(NamedTuple):
    """An element whose value matters though it should not. None: the outcome differs by itself, so
    the element is not known."""

    spot: Spot | None
    unwritten: bool = False


class Judged(NamedTuple):
    """A launch that was run alone: its error, whether its outcome differs by itself, and the run
    from the memory before it."""

    found: Finding | None
    is_doubtful: bool
    real: Trial


def judged(case: Case, who: Who, access: Access) -> Judged:
    """Run a launch alone, and compare it with its access. Memory is left as it comes."""
    trials = [case.trial(case.other()), case.trial(case.turned())]
    real = case.trial(case.before)
    spot = stray_write(case, (real, *trials))
    if spot is not None:
        return Judged(wrote(case, spot, who, access), False, real)
    matters = stray_read(case, real, trials, True, False)
    if matters is None or matters.spot is None:
        return Judged(None, matters is not None, real)
    return Judged(read(case, matters.spot, who, access), False, real)


def stray_write(case: Case, trials: Sequence[Trial]) -> Spot | None:
    """Return the first byte that changed in one of these runs and is not declared as written."""
    strays = [spot for trial in trials for spot in case.strays(trial)]
    return case.first(strays) if strays else None


def stray_read(
    case: Case, real: Trial, trials: Sequence[Trial], access: bool, unwritten: bool
) -> Matters | None:
    """Return the wrong read that the trials show. `access`, `unwritten`: the checks that are on."""
    for trial in trials:
        if not case.differ(real, trial):
            continue
        if case.may_differ or unsteady(case, real):
            return Matters(None)
        if access:
            spot = case.first_of(case.undeclared(), trial, real)
            if spot is not None:
                return Matters(spot)
        if unwritten:
            spot = case.first_of(case.unwritten_reads(), trial, real)
            if spot is not None:
                return Matters(spot, unwritten=True)
        if unsteady(case, real):  # or only the two together matter, which this cannot separate
            return Matters(None)
    return None


def unsteady(case: Case, real: Trial) -> bool:
    """Tell whether runs from the same memory differ."""
    for _ in range(BLIND_CONTROLS if case.blind else CONTROLS):
        again = case.trial([one.copy() for one in case.before])
        if case.differ(real, again) or any(
            (first != second).any() for first, second in zip(real.out, again.out, strict=True)
        ):
            return True
    return False


def wrote(case: Case, spot: Spot, who: Who, access: Access) -> Finding:
    """Report a launch that writes undeclared bytes."""
    byte = where_of(case, spot)
    return finding(
        WRITE, who, byte,
        f"{who}: writes {byte.text}, and does not declare it; declared as written: "
        f"{listed(access.writes)}",
    )  # fmt: skip


def read(case: Case, spot: Spot, who: Who, access: Access) -> Finding:
    """Report a launch that reads undeclared bytes."""
    byte = where_of(case, spot)
    return finding(
        READ, who, byte,
        f"{who}: its outcome depends on {byte.text}, and it does not declare that as read; "
        f"declared as read: {listed(access.reads)}",
    )  # fmt: skip
