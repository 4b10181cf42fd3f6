"""Tests state behaviour: how often they still reach into the library is counted, and may only fall.

`acs_cl.testing` and `inside` are there for what they need of it.
"""

from __future__ import annotations

import ast
import re
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


def test_files_that_the_makefile_names_are_there() -> None:
    """Where one is missing, pytest runs none of the others either."""
    text = (HERE.parent / "Makefile").read_text("utf-8").replace("\\\n", " ")
    for variable in ("PURE", "SANE_PROGRAMS"):
        (names,) = re.findall(rf"^{variable} := (.*)$", text, re.MULTILINE)
        assert len(names.split()) > 10
        assert [name for name in names.split() if not (HERE / f"test_{name}.py").is_file()] == []
