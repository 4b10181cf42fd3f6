"""The binder of a kernel: arguments become what the driver takes, and the bytes that are touched.

In: a kernel's signature, with the outline of its body. Out: a binder of the core's, which gives a
`Bound` for the sizes and arguments of a launch. Of each view that counts with only the bytes that
the body can reach for these sizes and numbers (`_core/access/reach.cpp` says how).

Invariant: what is not proven stays all of the view; nothing is ever said to be overwritten for
sure, since a condition may skip it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from acs_cl import core

from ..host.environment import variable
from ..ranges import Rectangle
from ..records import Access, Sizes, Span
from . import scalars
from .needed import needed
from .signature import Parameter, Signature

MOST_RECTANGLES = 4
"""Of one argument, read or written; more are taken as their hull."""

MOST_RUNS = 1024
"""Sizes and numbers for which it is worked out which bytes a kernel reaches, unless the program
wants all. To do that takes as long as many launches. So a kernel that is called with ever new
numbers counts with all of its views in the end, for those. A network's kernel has hundreds."""

_NUMBERS = frozenset("bBhHiIqQfd")
"""What `struct` calls the numbers that the core packs."""


class Bound(NamedTuple):
    """The arguments of a launch, bound. The core makes these."""

    pointers: tuple[object, ...]
    """Index and object in turns, as the driver takes them."""
    values: tuple[object, ...]
    """Index and bytes in turns."""
    access: Access
    whole: Access
    """What it would be with all of its views."""
    views: tuple[Span, ...] | None
    """Of each parameter in memory, where each is one piece, and ranges are known."""
    numbers: tuple[int, ...] | None
    """Those that ranges depend on; None where `views` is."""


class Reached(NamedTuple):
    """What a launch may do to one argument; None is all of it, for the reason given."""

    reads: tuple[Rectangle, ...] | None
    writes: tuple[Rectangle, ...] | None
    why: str = ""


class Outcome(NamedTuple):
    """What was inferred for a launch, and from what."""

    sizes: tuple[Sizes, Sizes | None, Sizes | None]
    """Its global and local one, and its offset."""
    numbers: tuple[int, ...]
    """Those that matter."""
    views: Mapping[int, Span]
    """By parameter."""
    reached: Mapping[int, Reached]
    """The same; what is missing is not touched."""


def turned_off() -> bool:
    """Whether nothing is inferred in this process."""
    return variable("ACS_CL_RANGES") == "off"


def binder(
    signature: Signature, ranges: bool = True, more: Sequence[Span] = (), everything: bool = False
) -> core.native.Binder:
    """Make the binder of a kernel. `more`: what it writes besides its arguments; `everything`: that
    is all that counts; `ranges`: whether any are wanted."""
    outline = signature.outline if ranges and _has_ranges(signature) else None
    functions = None if outline is None else outline["functions"]
    parameters = [parameter_of(one) for one in signature.parameters]
    # one of a type that the driver calls by another name may be anything
    numbers = [one for one in sorted(needed(functions or ())) if parameters[one][0] in _NUMBERS]
    return core.native.Binder(
        parameters,
        functions,
        numbers,
        signature.group_size,
        tuple(more),
        everything,
    )


def _has_ranges(signature: Signature) -> bool:
    """Whether it can be told which bytes launches of a kernel reach."""
    return not (
        signature.outline is None
        or turned_off()
        or signature.anywhere
        or signature.program_globals
        or any(parameter.space in ("image", "pipe", "") for parameter in signature.parameters)
    )


def parameter_of(one: Parameter) -> tuple[str, str, int]:
    """What the core calls a parameter, how it is used, and its bytes; '?': what is given tells."""
    if one.is_pointer:
        code = {"global": "P", "constant": "P", "local": "L"}.get(one.space, "?")
        return code, one.mode, 4 if code == "L" else 8
    number = scalars.code(one) or ""
    if number in _NUMBERS:
        return number, "", struct.calcsize(f"={number}")
    return "?", one.mode or "rw", 0
