"""Modes: the checks that a runtime was asked for.

Input: `check=`, a text such as "access,order=7" or a sequence of such words. Output: `Modes`. Pure.
"""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from ..records import CHECKS, Modes

NONE = ("off", "no", "none", "false", "0")
"""What programs write for no checks."""


def modes(given: object, where: str = "check=") -> Modes:
    """Return the checks asked for. `where`: the source of the text, for the error."""
    if given is None or given is False:
        return Modes()
    if isinstance(given, Modes):
        return given
    words = given.split(",") if isinstance(given, str) else given
    if isinstance(words, (bool, bytes)) or not hasattr(words, "__iter__"):
        raise UsageError(f"{where}{given!r}: expected names of checks: {', '.join(CHECKS)}")
    found: dict[str, Any] = {}
    for word in words:
        name, equals, seed = str(word).strip().partition("=")
        if not name and not equals:
            continue
        if name == "every" and seed.isdecimal() and int(seed):
            found["every"] = int(seed)
            continue
        if name not in CHECKS or (equals and name != "order"):
            hint = "; for none, leave it out" if name.lower() in NONE else ""
            raise UsageError(
                f"{where}{given!r}: there is no check {word!r}; there are: {', '.join(CHECKS)}, "
                f"and order=SEED; every=N checks one launch in N, which is 1 or more{hint}"
            )
        found[name] = True
        if equals:
            if not seed.isdecimal():
                raise UsageError(f"{where}{given!r}: order={seed} is no seed, a number is")
            found["seed"] = int(seed)
    return Modes(**found)


def together(one: Modes, other: Modes) -> Modes:
    """Join two sets of checks. Seed and share come from the second one, if it has them."""
    return Modes(
        one.access or other.access,
        one.order or other.order,
        one.uninitialised or other.uninitialised,
        one.leaks or other.leaks,
        other.seed or one.seed,
        other.every or one.every,
    )
