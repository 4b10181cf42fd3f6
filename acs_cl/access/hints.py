"""Hints: how to mend a wrong call, as the end of its error message.

Input: what the program gave, and what exists. Output: text that begins with '; ', or nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import meant

KEYWORDS = ("reads", "writes", "wait_for", "offset", "when", "bands", "spawn")
"""Keywords of a launch."""

OF_MANY = ("count", "wait_for", "when")
"""Keywords of `launch_many`."""

BUILT_IN = "_cl_"
"""Prefix that PoCL gives a kernel with the name of a built-in function."""


def of_kernels(name: str, names: Sequence[str]) -> str:
    """Hint for a program that has no kernel of that name."""
    if not names:
        return "; mark a function with `kernel` in the source"
    if BUILT_IN + name in names:
        return f"; {name!r} is a built-in function of OpenCL C: give the kernel another name"
    return meant(name, names)


def of_sizes(value: object, what: str) -> str:
    """Hint for a value that is no size of a launch."""
    kind = type(value).__name__
    if kind in ("CommandQueue", "Queue", "Runtime", "Context"):
        return f"; a launch takes no {kind.removeprefix('Command').lower()}: leave it out"
    if what == "offset":
        return ""
    if what == "local_size":
        return "; the sizes come before the arguments, and None lets the driver choose this one"
    return "; the sizes come before the arguments"


def of_number(args: Sequence[object]) -> str:
    """Hint for a launch with the wrong number of arguments."""
    is_group = len(args) == 1 and isinstance(args[0], (tuple, list))
    return "; they come one by one: write *(…)" if is_group else ""


def of_keywords(
    unknown: Iterable[str], parameters: Sequence[str], there: Sequence[str] = KEYWORDS
) -> str:
    """Hint for keywords that a launch does not take. `parameters`: of the kernel. `there`: the
    keywords that there are."""
    first = next(iter(unknown))
    if first in parameters:
        return f"; arguments come in order, without names: {', '.join(parameters)}"
    return meant(first, there) or f"; there are {', '.join(there)}"
