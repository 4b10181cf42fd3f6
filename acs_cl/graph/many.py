"""Many launches of a kernel by one call.

Input: the arguments of a call of the kernel. Each is one value for all launches, or a sequence with
one for each. Output: one handle for all. The launches are the same as in a loop of calls, in order.
The core runs the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import core
from ..devices.driver import Events
from ..errors import CheckError, UsageError, describe, whole
from ..handle import Handle
from ..launch.engine import Engine
from ..launch.several_handles import SeveralHandle, numbers_of
from ..launch.sizes import MOST
from ..memory.array import Array
from ..records import Access
from .calls import union

if TYPE_CHECKING:
    from ..kernel import Kernel

Column: TypeAlias = tuple[Any, bool]
"""A value for one argument, and whether each launch has its own."""


_NOT_ASKED = Access((), ())
_ONE = frozenset({Array, float, int, NoneType})
"""Types of most arguments that are one value for all launches, which are told quickest."""


class ManyHandle(SeveralHandle):
    """Stands for the launches of one `Kernel.launch_many`. `number` is that of the last."""

    __slots__ = ("_parts",)

    def __init__(
        self, engine: Engine, name: str, runs: list[Sequence[int]], parts: list[Any]
    ) -> None:
        super().__init__(engine, runs, name, _NOT_ASKED)
        self._parts = parts

    @property
    def access(self) -> Access:
        """Return the access of all of them."""
        return union(self._parts)

    def __len__(self) -> int:
        return len(self.numbers)


def launch_many(
    kernel: Kernel,
    global_size: object,
    local_size: object,
    args: Sequence[object],
    count: int | None,
    wait_for: Events,
    when: object,
) -> Any:
    """Implement `Kernel.launch_many`."""
    sizes = [_sizes(global_size), _sizes(local_size)]
    columns = [(value, _is_each(value)) for value in args]
    keywords: dict[str, Column] = {}
    if wait_for is not None:
        keywords["wait_for"] = wait_for, False
    if when is not None:
        keywords["when"] = when, _is_each(when)
    many = _count(kernel, count, sizes, columns, keywords)
    engine = kernel.engine
    made, at, error = core.native.launch_many(kernel, sizes, columns, keywords, many)
    if isinstance(error, UsageError):
        text = f"{error} (launch {at + 1} of {many} of one launch_many)"
        if isinstance(error, CheckError):
            raise CheckError(text, error.finding) from error
        raise UsageError(text) from error
    if error is not None:
        raise error
    if engine.recorder() is not None:
        return made
    runs: list[Sequence[int]] = []
    parts: list[Any] = []  # the accesses of some of them
    for one in made:
        if isinstance(one, Handle):
            runs.append(numbers_of(one))
            parts.append(one.access)
        elif isinstance(one, core.native.Touches):
            runs.append(range(one.first, one.first + one.many))
            parts.append(one)
    return ManyHandle(engine, kernel.name, runs, parts)


def _is_each(value: object) -> bool:
    """Tell whether an argument has a value for each launch."""
    if type(value) in _ONE:
        return False
    return isinstance(value, (list, tuple, range)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _sizes(value: object) -> Column:
    """Read a size for all launches, or a list of sizes: numbers, or tuples."""
    if value is None or type(value) is tuple:
        return value, False
    if isinstance(value, np.ndarray) and value.ndim:
        return [tuple(np.atleast_1d(size).tolist()) for size in value], True
    if isinstance(value, (list, range)):
        return [one if one is None or isinstance(one, tuple) else (one,) for one in value], True
    one = whole(value)
    return value if one is None else (one,), False


def _count(
    kernel: Kernel,
    count: int | None,
    sizes: list[Column],
    columns: list[Column],
    keywords: dict[str, Column],
) -> int:
    """Return how many launches there are. All sequences have to have the same length."""
    given = [*sizes, *columns, *keywords.values()]
    found = {len(value) for value, each in given if each}
    if count is None and len(found) == 1:
        return found.pop()
    names = ["the global size", "the local size"]
    names += [f"argument {index}" for index in range(len(columns))]
    names += [f"{name}=" for name in keywords]
    lengths = {name: len(value) for name, (value, each) in zip(names, given, strict=True) if each}
    if count is not None:
        many = whole(count)
        if many is None or not 0 <= many <= MOST >> 1:
            raise UsageError(
                f"{_what(kernel)}: count= takes a number of launches from 0 on, got "
                f"{describe(count)}"
            )
        lengths = {"count=": many, **lengths}
    if not lengths:
        rows = any(isinstance(value, Array) and value.ndim > 1 for value, _ in columns)
        hint = ", and list(x) gives the rows of an array" if rows else ""
        if any(hasattr(value, "__next__") for value, _ in columns):
            hint += ", and list(...) makes a sequence of what an iterator gives"
        raise UsageError(
            f"{_what(kernel)}: no argument is a sequence; count= says how many launches there are"
            f"{hint}"
        )
    first, *others_named = lengths.items()
    for name, length in others_named:
        if length != first[1]:
            raise UsageError(
                f"{_what(kernel)}: {name} has {length} values, expected {first[1]} as {first[0]}"
            )
    return first[1]


def _what(kernel: Kernel) -> str:
    return f"launch_many of kernel {kernel.name!r}"
