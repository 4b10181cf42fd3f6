"""Reasons: the range that was inferred for each argument of a launch, and why.

Input: the access of a launch that was made, and the kernels of its name. Output: text, a line for
each memory argument. Launches keep nothing for it. Sizes and numbers are found again by the access,
in the data that the kernel keeps for its next launch.

Invariant: a range comes with its reason. The text is empty if no kernel of that name can have made
the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .. import core
from ..access.binder import Outcome, Reached, turned_off
from ..access.signature import Parameter
from ..records import Access, Span

if TYPE_CHECKING:
    from ..kernel import Kernel

MOST_WAYS = 2
"""Listed sizes and numbers, where several fit the launch."""

Rectangles = Sequence[tuple[int, int, int, int]]


def reasons(kernels: Iterable[Kernel], name: str, access: Access) -> str:
    """Explain the ranges of a launch. '': no kernel can have made it."""
    same = [kernel for kernel in list(kernels) if kernel.name == name]
    for kernel in same:
        outcomes = [] if kernel.declarations is not None else kernel.binder.outcomes(access)
        if outcomes:
            return "\n".join(_inferred(kernel, outcomes))
    whys = {_whole(kernel) for kernel in same}
    modes = {"; ".join(map(_mode, _memory(kernel))) for kernel in same}
    if len(whys) != 1 or len(modes) != 1:
        return ""
    return f"no ranges were inferred: {whys.pop()}\n  {modes.pop()}"


def _whole(kernel: Kernel) -> str:
    """Return why all bytes of the kernel's views count."""
    signature = kernel.signature
    if kernel.declarations is not None:
        return "kernel.access declares what every launch touches"
    if kernel.infer_ranges is False:
        return "they are turned off for this kernel (infer_ranges)"
    if turned_off():
        return "they are turned off by ACS_CL_RANGES"
    if signature.anywhere:
        return f"the kernel may touch any memory: {signature.anywhere}"
    if not kernel.binder.has_ranges:
        return signature.unclear or "the kernel has arguments of other kinds, or globals"
    return (
        "the launch has reads= or writes=, or views of several rows; or too many others were "
        "worked out since, or before it (kernel.infer_ranges = True has all worked out)"
    )


def _memory(kernel: Kernel) -> list[Parameter]:
    return [one for one in kernel.signature.parameters if one.mode]


def _mode(one: Parameter) -> str:
    return f"{one.name} is {one.mode} ({one.why})"


def _inferred(kernel: Kernel, outcomes: Sequence[Outcome]) -> Iterator[str]:
    parameters = kernel.signature.parameters
    names = [parameters[index].name for index in kernel.binder.numbers]
    ways = [_way(one, names) for one in outcomes]
    if len(ways) > MOST_WAYS:
        ways[MOST_WAYS:] = ["others"]
    yield f"inferred from the body, with {'; or with '.join(ways)}:"
    outcome = outcomes[0]
    for index, view in outcome.views.items():
        found = outcome.reached.get(index, Reached((), ()))
        one = parameters[index]
        parts = {}
        for what, letter, rectangles in (
            ("reads", "r", found.reads), ("writes", "w", found.writes)
        ):  # fmt: skip
            if letter in one.mode:
                parts[what] = _part(view, rectangles, found.why)
        same = len(set(parts.values())) == 1
        said = next(iter(parts.values())) if same else "; ".join(
            f"{what} {text}" for what, text in parts.items()
        )  # fmt: skip
        yield f"  {_mode(one)}: {said}"


def _way(outcome: Outcome, names: Sequence[str]) -> str:
    """Return the sizes and numbers that led to an outcome."""
    called = ("global size", "local size", "offset")
    sizes = zip(called, outcome.sizes, strict=True)
    known = [f"{name} {size}" for name, size in sizes if size is not None]
    known += [f"{name} = {value}" for name, value in zip(names, outcome.numbers, strict=True)]
    return ", ".join(known)


def _part(view: Span, rectangles: Rectangles | None, why: str) -> str:
    """Return the touched part of a view, in bytes from its beginning."""
    whole = f"all of its {view.nbytes} bytes"
    if rectangles is None:
        return f"{whole}: {why}"
    found = [
        one._replace(start=one.start - view.start) for one in core.native.cut(view, rectangles)
    ]
    if not found:
        return "nothing"
    if [one.nbytes for one in found] != [view.nbytes]:
        return " and ".join(map(_bytes, found)) + f" of its {view.nbytes}"
    low = min(start for start, _, _, _ in rectangles)
    high = max(start + (rows - 1) * pitch + width for start, pitch, rows, width in rectangles)
    if low < 0 or high > view.nbytes:
        return f"{whole}: nothing bounds it closer than bytes {low}..{high}"
    return whole


def _bytes(span: Span) -> str:
    return str(span).replace(f" of base {span.base}", "")
