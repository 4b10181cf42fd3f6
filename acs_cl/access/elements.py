"""Which elements the arrays had that a kernel was launched with.

Input: the arguments of launches that Python makes. Output: arrays of element types that no launch
before had, which a kernel may read as other numbers; and those types for the core, which makes
launches with no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import core
from ..memory.array import Array
from ..records import DType

MOST = 4
"""Types of one parameter that are told apart. A kernel for more takes any bytes."""


class ElementTypes:
    """Knows the element types of a kernel's arrays. Holds them, since the core compares them by
    identity."""

    def __init__(self) -> None:
        self._known: dict[int, list[DType]] = {}

    def new(
        self, kernel: core.native.Caller, args: Sequence[object]
    ) -> Iterator[tuple[int, DType]]:
        """Note the types of these arguments, for the core, too. Return the new ones, with the
        indices of their parameters."""
        for index, value in enumerate(args):
            if not isinstance(value, Array):
                continue
            known, dtype = self._known.setdefault(index, []), value.dtype
            if len(known) > MOST or any(one is dtype for one in known):
                continue
            is_new = dtype not in known
            known.append(dtype)
            self._tell_one(kernel, index)
            if is_new:
                yield index, dtype

    def tell(self, kernel: core.native.Caller) -> None:
        """Tell the core all of them, for a new launch plan."""
        for index in self._known:
            self._tell_one(kernel, index)

    def _tell_one(self, kernel: core.native.Caller, index: int) -> None:
        known = self._known[index]
        for dtype in known if len(known) <= MOST else (None,):
            core.native.plan_elements(kernel, index, dtype)
