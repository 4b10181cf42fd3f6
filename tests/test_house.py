"""Rules of the repository that no tool checks: who imports whom, sizes, the public surface, words.

A rule that gets in the way is changed here, in view of everybody, or not at all.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from imports import MODULES, ROOT, sources
from test_public_surface import NAMES

import acs_cl

PUBLIC = set(NAMES)

LONG = 300  # lines; more of them need a reason

# Written in pieces, so that this file keeps its own rule.
MACHINE_PATHS = [rf"(?<![\w.])/{name}/" for name in ("work", "root", "tmp/bash_jobs", "tmp/x")]
PACKAGE_HOSTS = [r"pypi\." + "org", r"python" + r"hosted\.org", r"deb\.debian\." + "org"]
FORBIDDEN = re.compile("|".join([*MACHINE_PATHS, r"/home/" + r"\w", *PACKAGE_HOSTS]))

IMPORT_BUDGET = 1.0  # of what PyOpenCL's own import takes a processor in the same process
LAZY = ("clang", "pcpp", "matplotlib", "tabulate", "tqdm")  # loaded when first used, not at import


# ---- size and shape ------------------------------------------------------------------------------


def test_modules_say_what_they_are_for() -> None:
    paths = [*MODULES.values(), *sources("tests")]
    silent = [path for path in paths if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not silent, f"these have no docstring: {silent}"


def test_long_modules_give_their_reasons() -> None:
    for name, path in MODULES.items():
        lines = path.read_text("utf-8").splitlines()
        reason = any(line.startswith("# Long because: ") for line in lines[:60])
        assert len(lines) <= LONG or reason, (
            f"{name} has {len(lines)} lines; split it, or say '# Long because: ...' near its top"
        )


# ---- the public surface --------------------------------------------------------------------------


def test_public_surface_is_pinned_and_small() -> None:
    """Thirteen names, and the three cuts that `bands=` takes, and `Spawn`."""
    assert len(acs_cl.__all__) == len(set(acs_cl.__all__)) <= 17
    assert set(acs_cl.__all__) == PUBLIC


def test_nothing_else_looks_public() -> None:
    for name in PUBLIC:
        assert getattr(acs_cl, name) is not None  # which loads it
    seen = {
        name
        for name, value in vars(acs_cl).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert seen == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_has_docstring_with_example_that_runs(name: str) -> None:
    thing = getattr(acs_cl, name)
    text = vars(thing).get("__doc__")  # its own, not inherited
    assert text, f"acs_cl.{name} has no docstring"
    assert ">>> " in text, f"the docstring of acs_cl.{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for example in doctest.DocTestFinder().find(thing, name, module=inspect.getmodule(thing)):
        runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


# ---- words ---------------------------------------------------------------------------------------


def committed_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            raw = path.read_bytes()
            if b"\0" not in raw:
                yield name, raw.decode("utf-8")


def test_no_machine_or_host_is_named() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in committed_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert not found, "\n".join(found)


# ---- import --------------------------------------------------------------------------------------


def run_python(code: str, cache: Path) -> str:
    """Run code in a new interpreter that keeps its byte code, as an installed package does."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=cache,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.alone
def test_import_is_quick_and_loads_no_tools(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "begin = time.process_time()\n"
        "import pyopencl\n"
        "theirs = time.process_time()\n"
        "import acs_cl\n"
        "acs_cl.Runtime\n"
        "print((time.process_time() - theirs) / (theirs - begin))\n"
        f"print([name for name in {LAZY!r} if name in sys.modules])\n"
    )
    run_python(code, tmp_path)  # writes the byte code
    runs = [run_python(code, tmp_path).splitlines() for _ in range(5)]
    took = statistics.median(float(run[0]) for run in runs)
    assert took < IMPORT_BUDGET, f"import acs_cl took {took:.2f} of what PyOpenCL's own took"
    assert runs[0][1] == "[]", f"import acs_cl loads {runs[0][1]}"
