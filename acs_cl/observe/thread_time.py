"""The time of a program's thread outside of calls of the library, for a timeline.

Input: calls of the library, with the host's time. Output: nanoseconds, and the launches that it has
waited for. Pure.
"""

from __future__ import annotations


class ThreadTime:
    """The time of a thread since its last launch."""

    __slots__ = (
        "before_ns", "called_ns", "inside", "left_ns", "number", "own_ns", "polled_ns",
        "polls", "waited",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.forget()

    def forget(self) -> None:
        """Forget all times."""
        self.left_ns = 0
        """End of the last call of the library, or of the counted time. 0: not known."""
        self.inside = False
        """The library was called, and has not come to a launch or to the end of a wait."""
        self.called_ns = 0
        """When that call began, as long as it may be a wait. 0: none."""
        self.own_ns = 0
        self.waited: dict[int, None] = {}
        self.polls = 0
        """The launch that it polls and that has not ended. 0: none."""
        self.before_ns = 0
        """Its own time before it began to poll,"""
        self.polled_ns = 0
        """and when it last polled."""

    def count(self, now_ns: int) -> None:
        """Count its own time up to now."""
        if self.left_ns and not self.inside:
            self.own_ns += now_ns - self.left_ns
            self.left_ns = now_ns
