"""A module of ours in a process of its own, which takes no code from the folder it runs in.

A helper started by `python -m` looks for every module in the current folder first: a `json.py` that
somebody left there would run with the user's rights. So Python is started isolated (`-I`): without
the current folder, without what `PYTHON...` variables say, without the user's own site folder. That
also hides installations which are known to this process alone (`PYTHONPATH`, a folder put into
`sys.path`). The helper is told where this process has each of its modules instead, and their byte
code.

A helper that compiles for a GPU goes on for a while when the program ends. Otherwise a program that
is shorter than its builds would begin them anew each time it runs.

In: the name of a module, and an order, as JSON on stdin. Out: whether its `main(order)` ended well;
`TooLate` if it did not end, and was stopped. Invariants: a module of the standard library is never
taken from anywhere else. A helper that fails costs time and nothing else. None outlives the program
by more than `LINGER_S`, however that ended; on Windows, unless it was killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec, PathFinder
from time import perf_counter, sleep
from typing import Any, NamedTuple, TypeAlias

from . import threads

PATIENCE_S = 120.0
"""How long a helper may take."""

LINGER_S = 10.0
"""How long a helper may go on after the program has ended, if it may at all."""

TICK_S = 0.02
"""How often the end of a helper is looked for."""


class Manners(NamedTuple):
    """How much a helper takes from the program and from others."""

    lower: int
    """How much lower its priority is than the program's."""
    lingers: bool
    """Whether it goes on for a while after the program has ended."""


POLITE, MODEST = Manners(5, hasattr(os, "nice")), Manners(10, False)
"""The second is for programs whose kernels need the same cores: Linux then gives the helper a tenth
of a core that both want. With less it would not end within its time where many other programs
run. On Windows no helper would see that the program has ended, so none may linger there."""

_helpers: dict[subprocess.Popen[str], Manners] = {}
"""Those that are at work."""

_stopped: list[bool] = []
"""Not empty once the program ends."""

Order: TypeAlias = dict[str, Any]
"""What a worker is to do, as JSON has it."""

LATER = "clang", "pcpp", "platformdirs"
"""Packages that a helper may need before this process has loaded them."""

_START = """
import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import DistributionFinder, MetadataPathFinder
from json import load
from threading import Thread
from time import sleep
order = load(sys.stdin)
def leave():
    while os.getppid() == order["parent"]:
        sleep(0.1)
    sleep(order["lingers_s"])
    os._exit(1)
if hasattr(os, "nice"):
    os.nice(order["lower"])
    Thread(target=leave, daemon=True).start()
places = order["places"]
class Told:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [places[name]]) if name in places else None
    @staticmethod
    def find_distributions(context=None):  # packages ask for their own version
        told = {"name": getattr(context, "name", None), "path": sorted(set(places.values()))}
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(**told))
sys.meta_path.insert(0, Told)
sys.exit(import_module(order["module"]).main(order["order"]))
"""


class TooLate(Exception):  # noqa: N818  (said to the program as a reason)
    """What was asked for does not end, or not soon enough."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it had not ended after {seconds:g} s")


def ask(
    module: str, order: Order, patience_s: float = PATIENCE_S, manners: Manners = POLITE
) -> bool:
    """Run a module's `main` with an order; whether it ended well. Not where the executable is not
    Python but the program itself. Raises `TooLate` if it takes longer than `patience_s`, or the
    program ends."""
    if not sys.executable or getattr(sys, "frozen", False):
        return False
    told = {"places": places(), "module": module, "order": order, "parent": os.getpid()}
    told |= {"lower": manners.lower, "lingers_s": LINGER_S if manners.lingers else 0.0}
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    if sys.pycache_prefix and os.path.isabs(sys.pycache_prefix):
        bytecode += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    none = subprocess.DEVNULL
    try:
        helper = subprocess.Popen(
            [sys.executable, "-I", *bytecode, "-c", _START],
            stdin=subprocess.PIPE, stdout=none, stderr=none, text=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    _helpers[helper] = manners
    try:
        return _ends_well(helper, json.dumps(told), patience_s)
    except OSError:  # it ended before it had its order
        return False
    finally:
        del _helpers[helper]
        if _stopped and manners.lingers:
            helper.returncode = 0  # else Python warns that nobody waits for it
        else:
            helper.kill()
            helper.wait()


def _ends_well(helper: subprocess.Popen[str], told: str, patience_s: float) -> bool:
    began = perf_counter()
    assert helper.stdin is not None
    with helper.stdin as order:
        if not _stopped:
            order.write(told)
    with threads.turns(wanted=False):
        while not _stopped and helper.poll() is None:
            if perf_counter() - began > patience_s:
                raise TooLate(patience_s)
            sleep(TICK_S)
    if _stopped:
        raise TooLate(perf_counter() - began)
    return helper.returncode == 0


def stop() -> None:
    """The program ends, and nobody waits for its helpers. Stop them, now and later, unless they may
    linger. One that gets what others leave of the processors may take minutes."""
    _stopped.append(True)
    for helper, manners in list(_helpers.items()):
        if not manners.lingers:
            helper.kill()


threads.stops.append(stop)


def places() -> dict[str, str]:
    """The folder that this process has each package from, by name."""
    ours = ("__main__", "__mp_main__", *sys.builtin_module_names, *sys.stdlib_module_names)
    names = {name for name in list(sys.modules) if "." not in name}.difference(ours)
    specs = {name: getattr(sys.modules.get(name), "__spec__", None) for name in names}
    found = {name: _folder(spec) for name, spec in specs.items()}
    folders = _searched(found["acs_cl"])
    for name in LATER:
        found[name] = found.get(name) or _folder(PathFinder.find_spec(name, folders))
    return {name: folder for name, folder in found.items() if folder is not None}


def _searched(own: str | None) -> list[str]:
    """Where to look for a package that is not loaded: the search path without what is relative, and
    without the current folder, unless this package is there itself."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was removed
        here = ""
    return [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and (entry == own or os.path.realpath(entry) != here)
    ]


def _folder(spec: ModuleSpec | None) -> str | None:
    """What a module was found in; None if that is not an absolute path."""
    if spec is None:
        return None
    inside = spec.submodule_search_locations
    if spec.has_location and spec.origin:  # an editable package may be in several folders
        path = os.path.dirname(spec.origin) if inside is not None else spec.origin
    else:
        path = next(iter(inside or ()), "")
    return os.path.dirname(path) if os.path.isabs(path) else None
