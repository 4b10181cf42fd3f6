"""Files that a program asks for, such as timelines, graphs and reports, and lines that it does not.

Input: a path, a text, and what that is. Output: the file, or an error of the user; or a line on
stderr, or in a notebook.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ..errors import UsageError, describe
from ..records import Protocol


class Printer(Protocol):
    """What IPython and Jupyter show the value of a cell by, where its class has `_repr_pretty_`."""

    def text(self, text: str) -> None:
        """Show a text."""


def path_of(given: object, what: str) -> Path:
    """Return the path that a program gave for a file."""
    if not isinstance(given, (str, os.PathLike)) or "\0" in (path := os.fspath(given)):
        raise UsageError(f"the {what} goes to a path, got {describe(given)}")
    return Path(path)


def refuse_same(read: str | Path, written: str | Path) -> None:
    """Raise `UsageError` if a file would be written over the one that it is made of."""
    if Path(written).exists() and Path(written).samefile(read):
        raise UsageError(f"{written}: this is the file that is read; name another one")


def write(path: str | Path, text: str, what: str, mode: Literal["w", "a"] = "w") -> None:
    """Write a text to a file, in place of what was there or, with mode 'a', behind it. What UTF-8
    does not have, as a name of a file may, becomes '?'."""
    try:
        with path_of(path, what).open(mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"the {what} cannot be written: {error}") from None


def say(text: str) -> None:
    """Print a line on stderr, if there is one that takes it: whatever goes on goes on."""
    if sys.stderr is not None:
        with suppress(Exception):  # any object may be there, closed ones too
            print(text, file=sys.stderr, flush=True)
