"""Modes: which checks a runtime was asked for.

In: `check=`, a text such as "access,order=7" or a sequence of such words. Out: `Modes`. Pure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import UsageError

NAMES = ("access", "order", "uninitialised", "leaks")


class Modes(NamedTuple):
    """The checks that are on."""

    access: bool = False
    order: bool = False
    uninitialised: bool = False
    leaks: bool = False
    seed: int = 0
    """Where the random orders begin."""
    every: int = 0
    """1: look at every launch; N: at one in N; 0: at all but those that are proven."""

    def __bool__(self) -> bool:
        return any(self[:4])

    def __str__(self) -> str:
        words = [name for name, on in zip(NAMES, self[:4], strict=True) if on]
        words = [f"order={self.seed}" if name == "order" else name for name in words]
        return ",".join([*words, f"every={self.every}"] if self.every else words)


def modes(given: Any, where: str = "check=") -> Modes:
    """What was asked for; `where` it was said, for the error."""
    if given is None or given is False:
        return Modes()
    if isinstance(given, Modes):
        return given
    words = given.split(",") if isinstance(given, str) else given
    if isinstance(words, (bool, bytes)) or not hasattr(words, "__iter__"):
        raise UsageError(f"{where}{given!r}: expected names of checks: {', '.join(NAMES)}")
    found: dict[str, Any] = {}
    for word in words:
        name, equals, seed = str(word).strip().partition("=")
        if not name and not equals:
            continue
        if name == "every" and seed.isdecimal() and int(seed):
            found["every"] = int(seed)
            continue
        if name not in NAMES or (equals and name != "order"):
            raise UsageError(
                f"{where}{given!r}: there is no check {word!r}; there are: {', '.join(NAMES)}, "
                "and order=SEED; every=N looks at one launch in N"
            )
        found[name] = True
        if equals:
            if not seed.isdecimal():
                raise UsageError(f"{where}{given!r}: order={seed} is no seed, a number is")
            found["seed"] = int(seed)
    return Modes(**found)


def together(one: Modes, other: Modes) -> Modes:
    """The checks of both; seed and share of the second where it has some."""
    return Modes(
        one.access or other.access,
        one.order or other.order,
        one.uninitialised or other.uninitialised,
        one.leaks or other.leaks,
        other.seed or one.seed,
        other.every or one.every,
    )
