"""Progress: how far something long has come, and how long the rest will take.

In: what is done now, and which share of the whole is behind. Out: a bar with the time left where
somebody looks (tqdm), else a line for each step. Everything goes to stderr, since stdout is for
results.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

BAR = "{percentage:3.0f}%|{bar:24}| {elapsed}<{remaining} {desc}"

LEAST_SHARE = 0.01
"""Below this nobody knows how long the rest will take."""


class Progress:
    """Tells of one thing at a time. An empty text ends it, and leaves the line of a bar empty."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._began: float | None = None
        self._bar: tqdm[object] | None = None

    def __call__(self, text: str, share: float) -> None:
        """`text` begins now, and this share of the whole is done."""
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
        """Move the bar; False where nothing draws one, as in a program that is no installation."""
        if self._bar is None:
            try:
                from tqdm import tqdm  # where nobody looks it is not needed
            except ImportError:
                return False
            self._bar = tqdm(
                total=1.0, file=stream, bar_format=BAR, leave=False, dynamic_ncols=True
            )
        self._bar.n = min(share, 1.0)
        self._bar.set_description_str(text)
        return True

    def hide(self) -> None:
        """Something else is printed now; what is told next draws the bar anew."""
        if self._bar is not None:
            self._bar.clear()

    def end(self) -> None:
        """Nothing is under way any more."""
        if self._bar is not None:
            self._bar.close()
        self._bar = self._began = None


def left_s(took_s: float, share: float) -> float | None:
    """How long the rest takes if all of it goes as this share went; None: nobody knows."""
    return took_s * (1 - share) / share if LEAST_SHARE <= share <= 1 else None


def duration(seconds: float) -> str:
    """A time for people: '5 s', '3:20', '1:02:00'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
