"""Notes what watchdogs report, in every process of a suite that runs under one.

In: `ACS_ALARMS`, a file. Out: a line of JSON there for each report, with the test that ran, and
whether that was planted: a program with a hang on purpose has `ACS_PLANTED`, a word that its report
has to have. Python runs this when it starts, by way of a .pth file (`__main__.py`), in the programs
that tests start, too. The library is not loaded for it: its watchdog is wrapped when the program
loads that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

WATCHDOG = "acs_cl.launch.watchdog"


class Listener(MetaPathFinder):
    """Finds the watchdog where Python does, and wraps its report."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != WATCHDOG:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def wrapped(module: ModuleType) -> None:
            load(module)
            listen(module)

        spec.loader.exec_module = wrapped  # type: ignore[method-assign]
        return spec


def listen(module: Any) -> None:
    """Have reports of a loaded watchdog noted."""
    report = module.report

    def noted(books: Any, seconds: float, inside: tuple[str, ...]) -> str:
        text: str = report(books, seconds, inside)
        note(seconds, text)
        return text

    module.report = noted


def note(seconds: float, text: str) -> None:
    """Add a line; those of several processes do not mix."""
    import json

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    word = os.environ.get("ACS_PLANTED", "")
    planted = bool(word) and word in text
    line = {"test": test, "seconds": seconds, "text": text, "load": os.getloadavg()[0]}
    line |= {"planted": planted}
    with open(os.environ["ACS_ALARMS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if "ACS_ALARMS" in os.environ:
    sys.meta_path.insert(0, Listener())
