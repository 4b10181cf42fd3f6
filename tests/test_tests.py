"""Tests state behaviour: how often they still reach into the library is counted, and may only fall.

`acs_cl.testing` and `inside` are there for what they need of it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from imports import is_private

HERE = Path(__file__).parent

PRIVATE = 51
"""Accesses to `x._name`, but for those of `self` and of named tuples."""
PATCHES = 58
"""Calls by which pytest's `MonkeyPatch` changes something for a test."""

CHANGES = {"setattr", "delattr", "setitem", "delitem", "setenv", "delenv", "chdir"}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of every test and helper, with the name of its file."""
    for path in sorted(HERE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield path.name, node


def is_patch(node: ast.AST) -> bool:
    """Whether this is a call like `monkeypatch.setattr(...)`; `patch` is one for a while."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in CHANGES:
        return False
    return isinstance(called.value, ast.Name) and called.value.id not in ("os", "self")


def test_tests_reach_into_the_library_ever_less() -> None:
    private = Counter(name for name, node in nodes() if is_private(node))
    patches = Counter(name for name, node in nodes() if is_patch(node))
    for limit, counted in ((PRIVATE, private), (PATCHES, patches)):
        found = counted.total()
        assert found <= limit, f"{found}, where {limit} were: {counted.most_common(12)}"


SECOND_TRY = """
tries = []

def test_passes_then():
    tries.append(1)
    assert len(tries) > 1, "too soon"

def test_never_does():
    assert not "right"
"""


def test_only_tests_by_the_clock_are_tried_again(tmp_path: Path) -> None:
    for name in ("test_quick.py", "test_values.py"):
        (tmp_path / name).write_text(SECOND_TRY, "utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "--rootdir", tmp_path, tmp_path],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True, text=True,
    )  # fmt: skip
    assert sorted(re.findall(r"^FAILED (\S+)", found.stdout, re.MULTILINE)) == [
        "test_quick.py::test_never_does", "test_values.py::test_never_does",
        "test_values.py::test_passes_then",
    ]  # fmt: skip
    again = re.findall(r"^tried again: (\S+): (.*)$", found.stdout, re.MULTILINE)
    assert [name for name, _ in again] == ["test_quick.py::test_passes_then"]
