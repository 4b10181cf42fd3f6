"""Options of a runtime: from arguments, overridden by the environment.

Input: arguments of the program. Output: checked `Options`. The environment wins, so that a program
can run on another backend without a change. `PYOPENCL_CTX` chooses the device if the program names
none. docs/reference/options.md has all variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from warnings import warn

from .access.cuts import asked as bands_asked
from .access.signature import DEPENDENCIES
from .errors import UsageError, is_number, refuse_unknown, truth
from .host.environment import misspelt, variable
from .launch import spawning as spawns
from .records import CHECKS, LANE_AFTER, LANE_NEW, Modes, Options, Placing
from .scheduler.children import Room
from .scheduler.orders import ORDERS
from .scheduler.sender import Settings

ISSUE = ("eager", "ready_first")
MEMORY = ("svm", "buffers")
PREFETCH = ("auto", "on", "off")
NO_CHECKS = ("off", "no", "none", "false", "0")
"""What programs write for no checks."""
BACKLOG = 8192
MOST = (1 << 62) - 1
"""What the core's numbers of launches can hold."""
MOST_DIGITS = 18
"""Digits of a number in the name of a check."""
MOST_LANES = 1024
"""More queues than any device runs at a time. Each takes the driver memory, and time to make."""


def options(given: Options, check: Any) -> Options:
    """Check what the program gave, and apply the environment."""
    bands_asked(given.bands)
    for said in misspelt():
        warn(said, stacklevel=3)
    refuse_unknown("prefetch", given.prefetch, PREFETCH)
    refuse_unknown("dependencies", given.dependencies, DEPENDENCIES)
    checks = modes(check)
    from_outside = variable("ACS_CL_CHECK")
    if from_outside:
        checks = together(checks, modes(from_outside, "ACS_CL_CHECK="))
    refuse_unknown("issue policy", given.issue, ISSUE)
    if given.memory is not None:
        refuse_unknown("memory", given.memory, MEMORY)
    for name, least in (("window", 1), ("lanes", 1), ("backlog", 2)):
        value = getattr(given, name)
        is_left = value is None and name != "backlog"
        most = MOST_LANES if name == "lanes" else MOST
        if not is_left and (not is_whole(value) or not least <= value <= most):
            to = f"{most:,}" if name == "lanes" else "2**62 - 1"
            raise UsageError(f"{name}={value!r}: expected an integer from {least} to {to}")
    refuse_unknown("order", given.order, ("auto", *ORDERS))
    truth("predict", given.predict)
    truth("trace", given.trace, "True or False; ACS_CL_TRACE names a file")
    watchdog_s, said = given.watchdog_s, f"watchdog_s={given.watchdog_s!r}"
    if from_outside := variable("ACS_CL_WATCHDOG"):
        said, watchdog_s = f"ACS_CL_WATCHDOG={from_outside!r}", _seconds(from_outside)
    if watchdog_s is not None and not (is_number(watchdog_s) and 0 < watchdog_s < 1e6):
        raise UsageError(f"{said}: expected seconds above 0")
    backend, trace_file = variable("ACS_CL_BACKEND") or given.backend, variable("ACS_CL_TRACE")
    return given._replace(
        backend=backend,
        overruled=given.backend if given.backend != backend else None,
        trace=bool(given.trace) or bool(trace_file),
        trace_file=_file("ACS_CL_TRACE", trace_file),
        check=checks,
        plans=variable("ACS_CL_NO_PLANS") in ("", "0"),
        proofs_file=_file("ACS_CL_VERIFY", variable("ACS_CL_VERIFY")),
        watchdog_s=watchdog_s,
        predict=bool(given.predict),
        tune_file=_file("ACS_CL_TUNE", variable("ACS_CL_TUNE")),
    )


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
        number = _number(seed)
        if name == "every" and number:
            found["every"] = number
            continue
        if name not in CHECKS or (equals and name != "order"):
            hint = "; for none, leave it out" if name.lower() in NO_CHECKS else ""
            raise UsageError(
                f"{where}{given!r}: there is no check {word!r}; there are: {', '.join(CHECKS)}, "
                f"and order=SEED; every=N checks one launch in N, which is 1 or more{hint}"
            )
        found[name] = True
        if equals:
            if number is None:
                raise UsageError(f"{where}{given!r}: order={seed} is no seed, a number is")
            found["seed"] = number
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


def _file(name: str, told: str) -> str | None:
    """Return the path that an environment variable tells, from the root on, since the program may
    go to another folder."""
    if not told:
        return None
    path = Path(told).absolute()
    if not path.parent.is_dir():
        raise UsageError(f"{name}={told!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise UsageError(f"{name}={told!r}: it is a folder; name a file")
    return str(path)


def is_whole(value: object) -> bool:
    """Tell whether a value can be a number of something."""
    return isinstance(value, int) and not isinstance(value, bool)


def _number(text: str) -> int | None:
    """Return a whole number from 0 that a text says. None: it says none, or one of no use."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def placing(after: str, new: str, known: Placing) -> Placing:
    """Return how launches are placed on lanes: as asked for, or else as known of the device."""
    refuse_unknown("lane_after", after, ("auto", *LANE_AFTER))
    refuse_unknown("lane_new", new, ("auto", *LANE_NEW))
    if after == new == "auto":
        return known
    own = Placing()
    return Placing(own.after if after == "auto" else after, own.new if new == "auto" else new)


def prefetches(asked: str, on_cpu: bool) -> bool:
    """Tell whether long uploads go ahead. On a CPU the copies would take time from its kernels."""
    return asked == "on" or (asked == "auto" and not on_cpu)


def scheduler_settings(
    groups: Any,
    slice_ms: Any,
    order: str,
    window: int | None,
    watched: bool,
    timed: bool,
    room: Room,
) -> Settings:
    """Check the options of the scheduler on the device."""
    if groups is not None and (not is_whole(groups) or groups < 1):
        raise UsageError(f"groups={groups!r}: expected an integer of at least 1")
    if not is_number(slice_ms) or not 0 < slice_ms < 1e9:
        raise UsageError(f"slice_ms={slice_ms!r}: expected a time above 0")
    of_epochs = "first_in" if order == "auto" else order  # only graphs are tuned
    return Settings(
        groups, slice_ms / 1e3, order=of_epochs, window=window or 0, watched=watched, timed=timed,
        room=room,
    )  # fmt: skip


def spawning(asked: object) -> Room:
    """Check the option for items that kernels spawn."""
    return asked if isinstance(asked, Room) else Room(spawns.asked(asked))  # tests pass a room
