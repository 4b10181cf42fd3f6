"""Files that a program asks for, such as timelines, graphs and reports.

Input: a path, a text, and what that is. Output: the file, or an error of the user.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import UsageError


def write(path: str | Path, text: str, what: str) -> None:
    """Write a text to a file, in place of what was there."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the {what} cannot be written: {error}") from None
