"""Tell what a long measurement is doing."""

from __future__ import annotations

import shutil
import sys

BAR = 24
"""Signs of the bar that shows progress."""


def say(text: str, share: float) -> None:
    """Progress: a bar in one line of a terminal, gone with an empty text; else a line each."""
    if sys.stderr.isatty():
        done = int(share * BAR)
        line = f"[{'#' * done}{'.' * (BAR - done)}] {share:4.0%} {text}" if text else ""
        wide = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:wide]:<{wide}}\r", end="", file=sys.stderr, flush=True)
    elif text:
        print(f"[{share:4.0%}] {text}", file=sys.stderr, flush=True)
