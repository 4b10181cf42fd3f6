"""Bases: memory of arrays, from the store and back.

Input: the books, and sizes. Output: a `Base` for each array, with a number of its own. Invariant:
if launches may still use a block that comes back, its next owner waits for them.
"""

from __future__ import annotations

from .. import core
from ..errors import OutOfMemory
from ..memory.blocks import Base
from .books import Books


def allocate(books: Books, nbytes: int) -> Base | None:
    """Return a new base. None: there is no room for it. Called under the lock."""
    if books.table.has_returned:
        take_back(books)
    guard = books.checker.guard if books.checker is not None else 0
    block = books.store.allocate(nbytes + guard, books.hazards.is_live)
    if block is None:
        return None
    number = books.bases = books.bases + 1
    if block.users:
        books.hazards.inherit(number, block.users)
    loan = core.native.Loan(books.table, number, block)
    return Base(number, nbytes, block, books.store, loan)


def take_back(books: Books) -> None:
    """Take back blocks of dropped arrays. Their hazards become the launches that the next owner
    waits for. Called under the lock."""
    while (returned := books.table.take_back()) is not None:
        number, block = returned
        users = books.hazards.users(number)
        books.hazards.forget(number)
        books.ahead.pop(number, None)
        books.failures.poison.forget(number, users, books.hazards.is_live)
        books.note_poison()
        if books.checker is None:
            books.store.free(block, users)
            continue
        for old, old_users in books.checker.freed(number, block, users):
            books.store.free(old, old_users)


def none_left(books: Books, nbytes: int) -> OutOfMemory:
    """Make the error for missing room."""
    store = books.store
    return OutOfMemory(
        f"no {nbytes:,} bytes left on {books.device.name.strip()} "
        f"({store.reserved_bytes:,} reserved, {store.in_use_bytes:,} in arrays)"
    )
