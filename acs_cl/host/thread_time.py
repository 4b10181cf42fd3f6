"""The time of a program's thread, of which a timeline tells what was its own.

In: calls of the library, by the time of the host. Out: nanoseconds, and the launches that it has
waited for. Pure.
"""

from __future__ import annotations


class ThreadTime:
    """What a thread has done since its last launch."""

    __slots__ = (
        "before_ns", "called_ns", "inside", "left_ns", "number", "own_ns", "polled_ns",
        "polls", "waited",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.forget()

    def forget(self) -> None:
        """Nothing is known of it any more."""
        self.left_ns = 0
        """When the last call of the library ended, or what is counted up to; 0: not known."""
        self.inside = False
        """The library has been called, and has not come to a launch or to the end of a wait."""
        self.called_ns = 0
        """When that call began, as long as it may be a wait; 0: none."""
        self.own_ns = 0
        self.waited: dict[int, None] = {}
        self.polls = 0
        """The launch that it polls for, and has not seen ended; 0: none."""
        self.before_ns = 0
        """Its own time before it began to,"""
        self.polled_ns = 0
        """and when that was."""

    def count(self, now_ns: int) -> None:
        """Its own time goes up to here."""
        if self.left_ns and not self.inside:
            self.own_ns += now_ns - self.left_ns
            self.left_ns = now_ns
