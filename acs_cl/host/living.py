"""Living: objects that are remembered as long as somebody else holds them.

Input: objects. Output: those that are alive.

A `WeakSet` runs Python when one of its objects goes. A signal that comes there is lost, since
Python throws away what is raised in a finalizer. Here nothing runs then: entries of objects that
are gone are dropped when others come.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

Of = TypeVar("Of")

LEAST = 64
"""So many entries are kept without a look at which of them are gone."""


class Living(Generic[Of]):
    """Remembers objects without keeping them.

    >>> class One: ...
    >>> one, living = One(), Living()
    >>> living.add(one)
    >>> len(list(living))
    1
    >>> del one
    >>> len(list(living))
    0
    """

    def __init__(self) -> None:
        self._refs: list[weakref.ref[Of]] = []
        self._most = LEAST
        self._lock = threading.RLock()

    def add(self, one: Of) -> None:
        """Remember an object. It is added once."""
        with self._lock:
            if len(self._refs) >= self._most:
                self._refs = [ref for ref in self._refs if ref() is not None]
                self._most = max(LEAST, 2 * len(self._refs))
            self._refs.append(weakref.ref(one))

    def __iter__(self) -> Iterator[Of]:
        """Yield the objects that are alive, in the order in which they came."""
        with self._lock:
            refs = [*self._refs]
        return (one for ref in refs if (one := ref()) is not None)
