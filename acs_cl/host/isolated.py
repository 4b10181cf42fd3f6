"""A module of ours in a process of its own, which takes no code from the folder it runs in.

A helper started by `python -m` looks for every module in the current folder first: a `json.py` that
somebody left there would run with the user's rights. So Python is started isolated (`-I`): without
the current folder, without what `PYTHON...` variables say, without the user's own site folder. That
also hides installations which are known to this process alone (`PYTHONPATH`, a folder put into
`sys.path`). The helper is told where this process has each of its modules instead, and their byte
code.

In: the name of a module, and an order, as JSON on stdin. Out: whether its `main(order)` ended well;
`TooLate` if it did not end, and was stopped. Invariant: a module of the standard library is never
taken from anywhere else, and a helper that fails costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec, PathFinder
from time import perf_counter
from typing import Any, TypeAlias

from . import threads

PATIENCE_S = 120.0
"""How long a helper may take."""

POLITE, MODEST = 5, 10
"""How much lower the priority of a helper is than the program's. The second is for programs whose
kernels need the same cores: Linux then gives the helper a tenth of a core that both want. With less
it would not end within its time where many other programs run."""

_helpers: set[subprocess.Popen[str]] = set()
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
order = load(sys.stdin)
if hasattr(os, "nice"):
    os.nice(order["nice"])
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


def ask(module: str, order: Order, patience_s: float = PATIENCE_S, nice: int = POLITE) -> bool:
    """Run a module's `main` with an order; whether it ended well. Not where the executable is not
    Python but the program itself. Raises `TooLate` if it takes longer than `patience_s`, or the
    program ends. `nice`: how much lower its priority is."""
    if not sys.executable or getattr(sys, "frozen", False):
        return False
    told = {"places": places(), "module": module, "order": order, "nice": nice}
    bytecode = ["-B"] if sys.dont_write_bytecode else []
    if sys.pycache_prefix and os.path.isabs(sys.pycache_prefix):
        bytecode += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    began = perf_counter()
    try:
        with subprocess.Popen(
            [sys.executable, "-I", *bytecode, "-c", _START],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as helper:  # fmt: skip
            _helpers.add(helper)
            try:
                if not _stopped:
                    helper.communicate(json.dumps(told), timeout=patience_s)
            except subprocess.TimeoutExpired:
                raise TooLate(patience_s) from None
            finally:
                _helpers.discard(helper)
                helper.kill()  # if it has not ended
    except (OSError, subprocess.SubprocessError):
        return False
    if _stopped:
        raise TooLate(perf_counter() - began)
    return helper.returncode == 0


def stop() -> None:
    """Stop all helpers, now and later: the program ends, and nobody needs what they make. One that
    gets what others leave of the processors may take minutes for it."""
    _stopped.append(True)
    for helper in list(_helpers):
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
    here = os.path.realpath(os.getcwd())
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
