"""Progress: how far a long activity has come, and how long the rest will take.

Input: the present step, and the share that is done. Output: on a terminal a bar with the time left
(tqdm), else a line for each step. Everything goes to stderr, since stdout is for results.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

BAR = "{percentage:3.0f}%|{bar:24}| {elapsed}<{remaining} {desc}"

LEAST_SHARE = 0.01
"""The time left is not estimated below this share."""


class Progress:
    """Shows one activity at a time. An empty text ends it, and clears the bar."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._began: float | None = None
        self._bar: tqdm[object] | None = None

    def __call__(self, text: str, share: float) -> None:
        """Begin the step `text`; this share of the whole is done."""
        if not text:
            self.end()
            return
        if self._began is None:
            self._began = perf_counter()
        stream = self._stream or sys.stderr
        if not (stream.isatty() and self._draws(stream, text, share)):
            left = left_s(perf_counter() - self._began, share)
            rest = f", {duration(left)} left" if left is not None else ""
            print(f"[{share:4.0%}{rest}] {text}", file=stream, flush=True)

    def _draws(self, stream: TextIO, text: str, share: float) -> bool:
        """Move the bar. False: there is none, as in a program without an installation."""
        if self._bar is None:
            try:
                from tqdm import tqdm  # not needed without a terminal
            except ImportError:
                return False
            self._bar = tqdm(
                total=1.0, file=stream, bar_format=BAR, leave=False, dynamic_ncols=True
            )
        self._bar.n = min(share, 1.0)
        self._bar.set_description_str(text)
        return True

    def hide(self) -> None:
        """Clear the bar before other output; the next step draws it again."""
        if self._bar is not None:
            self._bar.clear()

    def end(self) -> None:
        """End the activity."""
        if self._bar is not None:
            self._bar.close()
        self._bar = self._began = None


def left_s(took_s: float, share: float) -> float | None:
    """Return the time left if the rest goes as the share so far. None: not known."""
    return took_s * (1 - share) / share if LEAST_SHARE <= share <= 1 else None


def duration(seconds: float) -> str:
    """Format a time: '5 s', '3:20', '1:02:00'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
