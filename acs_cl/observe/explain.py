"""Explanations: which bytes ordered two launches, where a launch ran, and what holds it back.

Input: handles. Output: an `Explanation`, which prints as a sentence. It is computed on request,
from the accesses that handles keep, with the arithmetic of the hazards. The launch table and the
foreign events tell what holds a launch back. Nothing is recorded in advance, except the times of
its states with `trace=True`, which are the host's.

For each argument of one launch, there is a line with the range that was inferred, and the reason.
Launches keep nothing for it. Sizes and numbers are found again by the access, in the data that the
kernel keeps for its next launch. There are no such lines if no kernel of that name can have made
the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .. import core
from ..access.binder import Outcome, Reached, turned_off
from ..access.binder import names as names_of
from ..access.signature import Parameter
from ..host.output import Printer
from ..launch.several_handles import CutHandle
from ..ranges import Rectangle
from ..records import EVERYTHING, Access, NamedTuple, Span
from .edges import Meeting, meetings

if TYPE_CHECKING:
    from ..handle import Handle
    from ..kernel import Kernel
    from ..launch.engine import Engine

NAMED = 4
"""Launches that an explanation names. The others are only counted."""

MOST_WAYS = 2
"""Listed sizes and numbers, where several fit the launch."""


class Explanation(NamedTuple):
    """`ordered`: whether the two launches conflict. `meetings`: the bytes of the conflict."""

    text: str
    ordered: bool
    meetings: tuple[Meeting, ...]

    def __str__(self) -> str:
        return self.text

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """Show what `print` does."""
        printer.text(str(self))


def explain(engine: Engine, first: Handle, second: Handle | None) -> Explanation:
    """Do the work of `Runtime.explain`."""
    if second is None:
        access = first.access
        about = reasons(engine.kernels, first.name, access)
        if isinstance(first, CutHandle):
            about = "\n".join(filter(None, (about, first.bands)))
        reads = "; ".join(map(str, access.reads)) or "nothing"
        writes = "; ".join(map(str, access.writes)) or "nothing"
        with engine.lock:
            held = _held(engine, first.number)
            states = "".join(f"; {one}" for one in (held, _states(engine, first.number)) if one)
            launch = engine.table.launch(first.number) if held else None
        # the route of a launch that is held is open, unless it is a host task
        has_route = not held or (launch is not None and launch.command.on_host)
        where = engine.backend.where(first.number) if has_route else ""
        return Explanation(
            f"launch {first.number} ({first.name}) on backend {engine.plan.backend}: "
            f"{where}reads {reads}; writes {writes}; {engine.plan.why.removesuffix('.')}{states}"
            + (f"\n{about}" if about else ""),
            False,
            (),
        )
    if first.number > second.number:
        first, second = second, first
    names = f"launch {first.number} ({first.name}) and launch {second.number} ({second.name})"
    met = tuple(meetings(first.access, second.access))
    if not met:
        return Explanation(
            f"nothing orders {names}: no byte that one writes is touched by the other "
            "(recycled memory and launches between them may)",
            False,
            (),
        )
    text = "; ".join(
        str(one) if one.base != EVERYTHING else "one of them may touch any memory" for one in met
    )
    return Explanation(f"{names} are ordered: {text}", True, met)


def _held(engine: Engine, number: int) -> str:
    """Say what holds a launch back, if anything does."""
    table = engine.table
    state = table.state(number)
    if state == "held":
        return f"it does not run yet: the window of {engine.window} launches is full"
    if state == "never ran":
        return "it never ran"
    if state != "pending":
        return ""
    blockers = table.blockers(number)
    waits = [f"launch {one} ({table.launch(one).command.name})" for one in blockers[:NAMED]]
    if len(blockers) > NAMED:
        waits.append(f"{len(blockers) - NAMED} more")
    if events := len(engine.foreign.get(number, ())):
        waits.append(f"foreign events: {events}")
    return f"it does not run yet: it waits on the host for {', '.join(waits)}"


def _states(engine: Engine, number: int) -> str:
    """Say when the launch went from one state to the next, if that was kept."""
    steps = engine.table.transitions(number)
    if not steps:
        return ""
    began = steps[0][2]
    return "on the host's clock: " + ", ".join(
        f"{after} after {(ns - began) / 1e3:.1f} us" for _, after, ns in steps
    )


def reasons(kernels: Iterable[Kernel], name: str, access: Access) -> str:
    """Explain the ranges of a launch. '': no kernel can have made it. A launch does not keep its
    kernel: where several of that name can have made it, all of these are explained."""
    same = [kernel for kernel in list(kernels) if kernel.name == name]
    texts: dict[str, None] = {}
    for kernel in same:
        outcomes = [] if kernel.declarations is not None else kernel.binder.outcomes(access)
        if outcomes:
            texts["\n".join(_inferred(kernel, outcomes))] = None
    if len(texts) > 1:
        return "\n".join([f"one of {len(texts)} kernels called {name!r} made it:", *texts])
    if texts:
        return next(iter(texts))
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
    names = names_of(kernel.signature, kernel.binder.numbers)
    ways = [_said_of(one, names) for one in outcomes]
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


def _said_of(outcome: Outcome, names: Sequence[str]) -> str:
    """Return the sizes and numbers that led to an outcome."""
    called = ("global size", "local size", "offset")
    sizes = zip(called, outcome.sizes, strict=True)
    known = [f"{name} {size}" for name, size in sizes if size is not None]
    known += [f"{name} = {value}" for name, value in zip(names, outcome.numbers, strict=True)]
    return ", ".join(known)


def _part(view: Span, rectangles: Sequence[Rectangle] | None, why: str) -> str:
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
