"""Each part of the library says what it is for, and how many lines that takes."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import NamedTuple

import pytest
from imports import ROOT

PAGE = ROOT / "docs" / "design" / "parts.md"
KINDS = {".py", ".pyi", ".cpp", ".hpp", ".h", ".js", ".css", ".html"}
NEAR = 0.1
"""How far a row may be off."""


class Row(NamedTuple):
    """A part: patterns of its files, its lines as they are told, and what holds it."""

    name: str
    patterns: list[str]
    lines: int
    holds: list[str]


def rows() -> list[Row]:
    """The table of the page."""
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and cells[2].replace(",", "").isdigit():
            name, patterns, lines, _, holds, _ = cells
            number = int(lines.replace(",", ""))
            found.append(
                Row(name, patterns.strip("`").split(), number, re.findall("`(.+?)`", holds))
            )
    return found


def lines_of_parts() -> dict[str, int]:
    """Lines of each part. A file is of the first one that names it."""
    counted = dict.fromkeys((row.name for row in rows()), 0)
    for path in (ROOT / "acs_cl").rglob("*.*"):
        name = path.relative_to(ROOT / "acs_cl").as_posix()
        if path.suffix not in KINDS or "__pycache__" in name:
            continue
        own = [row.name for row in rows() if any(is_named(name, one) for one in row.patterns)]
        assert own, f"no part has {name}"
        counted[own[0]] += len(path.read_text("utf-8").splitlines())
    return counted


def is_named(name: str, pattern: str) -> bool:
    """Whether a pattern names a file; `*` stays within a folder."""
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)


def test_lines_are_as_the_page_says() -> None:
    counted = lines_of_parts()
    off = {
        row.name: (row.lines, counted[row.name])
        for row in rows()
        if abs(row.lines - counted[row.name]) > NEAR * counted[row.name]
    }
    assert not off, f"docs/design/parts.md says other numbers of lines than there are: {off}"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_what_holds_a_part_exists(row: Row) -> None:
    assert row.holds, "a part that nothing holds has to go"
    for one in row.holds:
        command, _, name = one.rpartition(" ")
        if command == "run":
            assert (ROOT / "benchmarks" / "suite" / "measures" / f"{name}.py").exists(), one
        elif command == "benchmarks":
            assert f'"{name}": (' in (ROOT / "benchmarks" / "__main__.py").read_text("utf-8"), one
        else:
            assert (ROOT / one).exists(), one
