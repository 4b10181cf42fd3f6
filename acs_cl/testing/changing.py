"""Replace an attribute for a while. All other modules here use the library's own terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def changed(owner: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute for a while."""
    of_type = getattr(type(owner), name, None)
    own = getattr(owner, name) if hasattr(of_type, "__set__") else vars(owner).get(name, owner)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is owner:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
