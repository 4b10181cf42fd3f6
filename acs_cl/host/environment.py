"""Read the environment of the process, for the whole library.

Input: the name of a variable in the table below. Output: its text. Nothing else in acs_cl reads the
environment, so one table has everything that can change a program from outside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..errors import nearest


class Variable(NamedTuple):
    """Describe a variable: what it means, and what holds while it is unset or empty."""

    name: str
    default: str
    meaning: str


VARIABLES = (
    Variable("ACS_CL_BACKEND", "what the program says", "the backend"),
    Variable(
        "ACS_CL_TRACE",
        "no trace",
        "trace, and write the timeline to this file at the end; further runtimes number theirs",
    ),
    Variable("ACS_CL_RANGES", "inferred", "`off`: every launch counts with all of its views"),
    Variable("ACS_CL_CHECK", "none", "checks, besides those that the program asks for"),
    Variable(
        "ACS_CL_VERIFY",
        "no proofs",
        "prove each graph when it was recorded, and add a line about it to this file",
    ),
    Variable(
        "ACS_CL_TUNE",
        "no tuning",
        "tune each graph before its first replay, and add what was found to this file",
    ),
    Variable(
        "ACS_CL_WATCHDOG",
        "none",
        "seconds in which nothing ends, after which a runtime says what it runs",
    ),
    Variable(
        "ACS_CL_CACHE",
        "the user's cache folder",
        "folder for measurements of devices, signatures, translations, and which kernels share a "
        "scheduler; `off` for none",
    ),
    Variable(
        "ACS_CL_POCL_CPU",
        "PoCL is left alone",
        "`auto`, or a CPU's name: repair a PoCL that does not know the CPU, with the first "
        "`Runtime` or `acs.Queue`",
    ),
    Variable(
        "ACS_CL_NO_PLANS",
        "the core plans",
        "`1`: the core makes no launch by itself, each one is planned in Python; slow, for tests",
    ),
    Variable(
        "PYOPENCL_CTX",
        "a GPU, else PoCL",
        "the device where the program names none, as in PyOpenCL",
    ),
    Variable("XDG_CACHE_HOME", "`~/.cache`", "the user's cache folder, on Linux"),
    Variable("HOME", "what the system says", "the user's folder, for the cache folder"),
)
"""All variables that the library reads, in the order of the reference."""

PREFIX = "ACS_CL_"

ALIKE = 0.8
"""Least similarity of a name that counts as misspelt, from 0 to 1."""

_NAMES = frozenset(variable.name for variable in VARIABLES)


def variable(name: str) -> str:
    """Return the text of a variable, without blanks around it; empty where it is unset."""
    if name not in _NAMES:
        raise KeyError(f"{name} is not in the table of variables")
    return os.environ.get(name, "").strip()


def misspelt() -> list[str]:
    """Say which variables have no effect since they are misspelt, and what may be meant: their
    name is almost one of the table, or their text is none that there is."""
    known = [name.removeprefix(PREFIX) for name in _NAMES if name.startswith(PREFIX)]
    ours = [name for name in os.environ.keys() - _NAMES if name.startswith(PREFIX)]
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
