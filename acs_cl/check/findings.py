"""Findings: the errors that checks find, and their texts.

Input: a launch, and its error. Output: a `Finding`, which `CheckError.finding` is.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import CheckError

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
    from the beginning of the argument, or else of the array."""

    argument: int | None
    parameter: str
    first_byte: int
    text: str


class Finding(NamedTuple):
    """An error: its kind, its place, and the line of the program."""

    kind: str
    launch: int
    kernel: str
    argument: int | None
    parameter: str
    first_byte: int | None
    site: str
    text: str

    def __str__(self) -> str:
        return self.text


def finding(kind: str, who: Who, where: Where | None, text: str) -> Finding:
    """Make a finding about one launch."""
    argument, parameter, first = (None, "", None) if where is None else where[:3]
    return Finding(kind, who.launch, who.name, argument, parameter, first, who.site, text)


def error(found: Finding) -> CheckError:
    """Return the exception for a finding."""
    return CheckError(found.text, found)
