"""Call sites: the line of the user's program that a call comes from."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_HERE = str(Path(__file__).parent.parent)  # the package


def caller() -> str:
    """Return `file:line` of the innermost frame outside this package."""
    frame = _outside()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_there(text: str, kind: type[Warning]) -> None:
    """Warn at the line of the innermost frame outside this package."""
    frame = _outside()
    known = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, kind, frame.f_code.co_filename, frame.f_lineno, registry=known)


def _outside() -> FrameType:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame
