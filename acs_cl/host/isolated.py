"""A module of ours in a process of its own, which takes no code from the folder it runs in.

A helper started by `python -m` looks for every module in the current folder first: a `json.py` that
somebody left there would run with the user's rights. So Python is started isolated (`-I`): without
the current folder, without what `PYTHON...` variables say, without the user's own site folder. That
also hides installations which are known to this process alone (`PYTHONPATH`, a folder put into
`sys.path`). The helper is told where this process has each of its modules instead, and their byte
code.

Starting one takes longer than many of its orders: Python, NumPy and the driver are loaded. So a
helper takes one order after another.

A helper that compiles for a GPU goes on for a while when the program ends. Otherwise a program that
is shorter than its builds would begin them anew each time it runs.

In: the name of a module, and orders, as lines of JSON on stdin. Out: whether its `main(order)`
ended well; `TooLate` if it did not end, and was stopped. A helper writes a byte for each order that
it has done into a file, since on Windows a pipe tells nothing without a wait. Invariants: a module
of the standard library is never taken from anywhere else. A helper that fails costs time and
nothing else. None outlives the program by more than `LINGER_S`, however that ended; on Windows,
unless it was killed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, TypeAlias

from ..records import NamedTuple
from . import threads

if TYPE_CHECKING:
    import subprocess  # loaded by programs that begin a process, which few do

PATIENCE_S = 120.0
"""How long a helper may take for an order."""

LINGER_S = 10.0
"""How long a helper may go on after the program has ended, if it may at all."""

TICK_S = 0.02
"""How often the end of an order is looked for."""


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

PROMPT = Manners(0, False)
"""For what somebody waits for."""

_helpers: dict[subprocess.Popen[str], Manners] = {}
"""Those that there are."""

_stopped: list[bool] = []
"""Not empty once the program ends."""

Order: TypeAlias = dict[str, Any]
"""What a helper is to do, as JSON has it."""

LATER = "clang", "pcpp", "platformdirs"
"""Packages that a helper may need before this process has loaded them."""

_START = """
import os
import sys
if hasattr(os, "nice"):
    os.nice(int(sys.argv[1]))
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import DistributionFinder, MetadataPathFinder
from json import loads
from threading import Thread
from time import sleep
done = os.dup(1)
os.dup2(2, 1)  # for what drivers say
told = loads(sys.stdin.readline())
def leave():
    while os.getppid() == told["parent"]:
        sleep(0.1)
    sleep(told["lingers_s"])
    os._exit(1)
if hasattr(os, "nice"):
    Thread(target=leave, daemon=True).start()
places = told["places"]
class Told:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [places[name]]) if name in places else None
    @staticmethod
    def find_distributions(context=None):  # packages ask for their own version
        about = {"name": getattr(context, "name", None), "path": sorted(set(places.values()))}
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(**about))
sys.meta_path.insert(0, Told)
main = import_module(told["module"]).main
for order in sys.stdin:
    main(loads(order))
    os.write(done, b".")
"""


class TooLate(Exception):  # noqa: N818  (said to the program as a reason)
    """What was asked for does not end, or not soon enough."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it had not ended after {seconds:g} s")


class Helper:
    """A process for the orders of one module. It begins with the first of them, and ends with one
    that fails; the next order begins another."""

    def __init__(self, module: str, manners: Manners) -> None:
        self._module = module
        self._manners = manners
        self._running: tuple[subprocess.Popen[str], int] | None = None
        """The process, and the file of what it has done."""

    def ask(self, order: Order, patience_s: float = PATIENCE_S) -> bool:
        """Run the module's `main` with an order; whether it ended well. Not where the executable is
        not Python but the program itself. Raises `TooLate` if it takes longer than `patience_s`, or
        the program ends."""
        if not sys.executable or getattr(sys, "frozen", False):
            return False
        import subprocess

        is_done, began = False, perf_counter()
        try:
            is_done = self._does(order, patience_s)
        except (OSError, subprocess.SubprocessError):  # none can begin, or it ended before
            if _stopped:  # while it was told
                raise TooLate(perf_counter() - began) from None
        finally:
            if not is_done:
                self.close()
        return is_done

    def close(self) -> None:
        """End the process. One that may linger does its order, if the program ends."""
        if self._running is None:
            return
        (process, answers), self._running = self._running, None
        del _helpers[process]
        if _stopped and self._manners.lingers:
            process.returncode = 0  # else Python warns that nobody waits for it
        else:
            process.kill()
            process.wait()
        os.close(answers)
        assert process.stdin is not None
        with suppress(OSError):  # it has not read all
            process.stdin.close()

    def _begin(self) -> tuple[subprocess.Popen[str], int]:
        import subprocess

        bytecode = ["-B"] if sys.dont_write_bytecode else []
        if sys.pycache_prefix and os.path.isabs(sys.pycache_prefix):
            bytecode += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
        with tempfile.TemporaryFile() as answers:
            process = subprocess.Popen(
                [sys.executable, "-I", *bytecode, "-c", _START, str(self._manners.lower)],
                stdin=subprocess.PIPE, stdout=answers, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            _helpers[process] = self._manners
            self._running = process, os.dup(answers.fileno())
        lingers_s = LINGER_S if self._manners.lingers else 0.0
        told = {"module": self._module, "parent": os.getpid(), "lingers_s": lingers_s}
        _tell(process, told | {"places": places()})
        return self._running

    def _does(self, order: Order, patience_s: float) -> bool:
        began = perf_counter()
        if _stopped:
            raise TooLate(0.0)
        if self._running is not None and self._running[0].poll() is not None:
            self.close()  # it crashed behind an order
        process, answers = self._running or self._begin()
        before = _size(answers)
        _tell(process, order)
        with threads.turns(wanted=False):
            while process.poll() is None and not _stopped:
                if _size(answers) > before:
                    return True
                if perf_counter() - began > patience_s:
                    raise TooLate(patience_s)
                sleep(TICK_S)
        if _stopped:
            raise TooLate(perf_counter() - began)
        return False


def _tell(process: subprocess.Popen[str], told: Order) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(told) + "\n")
    process.stdin.flush()


def _size(answers: int) -> int:
    return os.fstat(answers).st_size


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
