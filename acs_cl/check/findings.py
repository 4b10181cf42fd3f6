"""Findings: the errors that checks find, their texts, and how the program is told.

Input: a launch, and its error. Output: a `Finding`, which `CheckError.finding` is, or a warning.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import NoReturn

from ..errors import CheckError, CheckWarning, Finding
from ..records import NamedTuple

MOST_SAID = 100
"""Most texts of findings that are kept."""

WRITE = "write"
"""A byte was written that is not declared as written."""
READ = "read"
"""The written values depend on a byte that is not declared as read."""
ORDER = "order"
"""A legal order of launches gives other bytes than program order."""
ALIAS = "alias"
"""Two foreign objects share bytes, and launches on them are not ordered."""
FREED = "freed"
"""Memory was freed or released while a launch may use it."""
HOST = "host memory"
"""Host memory was changed before the transfer from it was known to be done."""


class Who(NamedTuple):
    """A launch, in words."""

    launch: int
    name: str
    site: str
    on_host: bool = False
    part: str = ""
    """The band, if it is a band of a launch."""

    def __str__(self) -> str:
        kind = "host task" if self.on_host else "kernel"
        part = f"{self.part} of " if self.part else ""
        return f"{part}launch {self.launch} of {kind} {self.name!r}, at {self.site}"


class Where(NamedTuple):
    """A byte, seen from a launch. `argument`: None if no argument is near it. `first_byte` counts
    from the beginning of the argument, or else of the array. None: it is too far away."""

    argument: int | None
    parameter: str
    first_byte: int | None
    text: str


def finding(
    kind: str, who: Who, where: Where | None, text: str, item: tuple[int, ...] | None = None
) -> Finding:
    """Make a finding about one launch. `item`: its work-item, if it is known."""
    argument, parameter, first = (None, "", None) if where is None else where[:3]
    return Finding(kind, who.launch, who.name, argument, parameter, first, who.site, text, item)


class Findings:
    """What the checks of a runtime found, and told the program."""

    def __init__(self) -> None:
        self.count = 0
        self.said: deque[str] = deque(maxlen=MOST_SAID)
        """The newest findings and warnings, for reports."""
        self.unsteady: set[str] = set()
        """Kernels whose reads cannot be determined."""
        self._warned: set[str] = set()

    def fail(self, found: Finding) -> NoReturn:
        """Raise an error."""
        self.count += 1
        self.said.append(found.text)
        raise CheckError(found.text, found)

    def fail_if(self, found: Finding | None) -> None:
        """Raise an error, if there is one."""
        if found is not None:
            self.fail(found)

    def warn(self, text: str, site: str) -> None:
        """Warn, once for each text."""
        if text in self._warned:
            return
        self._warned.add(text)
        self.said.append(text)
        path, _, line = site.rpartition(":")
        warnings.warn_explicit(text, CheckWarning, path or site, int(line or 0))

    def warn_of_unwritten(self, who: Who, text: str) -> None:
        """Warn that a launch uses bytes that nobody wrote."""
        self.count += 1
        self.warn(f"{text}, which nobody wrote", who.site)

    def warn_of_unsteady(self, who: Who, why: str) -> None:
        """Warn that the reads of a kernel cannot be determined."""
        self.unsteady.add(who.name)
        text = f"{who}: its outcome is not the same each time from the same memory"
        if why:
            text += f", or depends on what it does not declare; which is open, since {why}"
        self.warn(f"{text}; so what it reads is not checked", who.site)

    def leave_open(self, first: Who, last: Who, kernels: Sequence[str]) -> None:
        """Warn that neither the wrong launch nor its effect can be determined."""
        names = ", ".join(map(repr, kernels))
        self.warn(
            f"launches {first.launch} to {last.launch} (until {last.site}): kernel {names} touched "
            "what it does not declare; in which of them, and whether it matters, is open, since "
            "something ran among them that cannot be run again",
            last.site,
        )
