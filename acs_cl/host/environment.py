"""Read the environment of the process, for the whole library.

Input: the name of a variable in the table below. Output: its text. Nothing else in acs_cl reads the
environment, so one table has everything that can change a program from outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from ..errors import nearest

VARIABLES = (
    "ACS_CL_BACKEND", "ACS_CL_TRACE", "ACS_CL_RANGES", "ACS_CL_CHECK", "ACS_CL_VERIFY",
    "ACS_CL_TUNE", "ACS_CL_WATCHDOG", "ACS_CL_CACHE", "ACS_CL_POCL_CPU", "ACS_CL_NO_PLANS",
    "PYOPENCL_CTX", "XDG_CACHE_HOME", "HOME",
)  # fmt: skip
"""All variables that the library reads, in the order of docs/reference/options.md, which says what
each of them means."""

PREFIX = "ACS_CL_"

ALIKE = 0.8
"""Least similarity of a name that counts as misspelt, from 0 to 1."""


def variable(name: str) -> str:
    """Return the text of a variable, without blanks around it; empty where it is unset."""
    if name not in VARIABLES:
        raise KeyError(f"{name} is not in the table of variables")
    return os.environ.get(name, "").strip()


def misspelt() -> list[str]:
    """Say which variables have no effect since they are misspelt, and what may be meant: their
    name is almost one of the table, or their text is none that there is."""
    known = [name.removeprefix(PREFIX) for name in VARIABLES if name.startswith(PREFIX)]
    ours = [name for name in os.environ if name.startswith(PREFIX) and name not in VARIABLES]
    said = [
        f"{name} is set, and means nothing; did you mean {PREFIX}{near}?"
        for name in ours
        if (near := nearest(name.removeprefix(PREFIX), known, ALIKE))
    ]
    if (ranges := variable("ACS_CL_RANGES")) not in ("", "off"):
        said.append(f"ACS_CL_RANGES={ranges!r} means nothing; write 'off', or leave it out")
    return said


@contextlib.contextmanager
def changed(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the block, also for processes started there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
