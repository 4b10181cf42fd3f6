"""The runtimes of this process, for its exit, for forks, and for waits on events they will set.

Input: the books of each. Output: those that are alive.
"""

from __future__ import annotations

import pyopencl as cl

from ..host.living import Living
from .books import Books

_books = Living[Books]()


def register(books: Books) -> None:
    """Remember a runtime."""
    _books.add(books)


def registered() -> list[Books]:
    """Return the live runtimes."""
    return list(_books)


def promised() -> list[cl.UserEvent]:
    """Return user events that runtimes of this process have given out and will set."""
    return [event for books in registered() for event in list(books.user_events.values())]
