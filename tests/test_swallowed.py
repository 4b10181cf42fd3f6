"""No failure is hidden: who catches everything passes it on, uses it, or says why."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "acs_cl"
EVERYTHING = {"Exception", "BaseException"}


def is_broad(node: ast.expr | None) -> bool:
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(one is None or (isinstance(one, ast.Name) and one.id in EVERYTHING) for one in names)


def swallows(node: ast.AST) -> bool:
    """Whether a statement catches everything and loses it."""
    if isinstance(node, ast.ExceptHandler):
        inside = [one for statement in node.body for one in ast.walk(statement)]
        is_used = any(
            isinstance(one, ast.Raise) or (isinstance(one, ast.Name) and one.id == node.name)
            for one in inside
        )
        return is_broad(node.type) and not is_used
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        return any(is_broad(one) for one in node.args)
    return False


def lost(text: str) -> list[int]:
    """Lines that swallow everything, and have no comment that argues for it."""
    lines = text.splitlines()
    found = [node for node in ast.walk(ast.parse(text)) if swallows(node)]
    numbers = [node.lineno for node in found if isinstance(node, (ast.ExceptHandler, ast.expr))]
    return [number for number in numbers if "  # " not in lines[number - 1]]


def test_nothing_is_swallowed_without_a_reason() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 50
    found = {path.name: lost(path.read_text("utf-8")) for path in files}
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try: pass\nexcept Exception:\n    pass", [2]),
        ("try: pass\nexcept:\n    pass", [2]),
        ("try: pass\nexcept (OSError, BaseException):\n    pass", [2]),
        ("try: pass\nexcept Exception:  # as asked for\n    pass", []),
        ("try: pass\nexcept Exception as error:\n    print(error)", []),
        ("try: pass\nexcept Exception:\n    raise", []),
        ("try: pass\nexcept OSError:\n    pass", []),
        ("with suppress(Exception): pass", [1]),
        ("with contextlib.suppress(OSError): pass", []),
    ],
)
def test_what_counts_as_swallowed(text: str, expected: list[int]) -> None:
    assert lost(text) == expected
