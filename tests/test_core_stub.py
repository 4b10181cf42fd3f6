"""The stub of the native core, `_core.pyi`, says what the built module has: no name more or less,
and of each function the same parameters in the same order. And the other direction: the page on the
routes of a launch lists every method that the core calls by its name."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import acs_cl
from acs_cl import core

STUB = Path(acs_cl.__file__).parent / "_core.pyi"
SOURCES = sorted((Path(__file__).parent.parent / "acs_cl" / "_core").rglob("*.?pp"))
ROUTES = Path(__file__).parent.parent / "docs" / "design" / "where-a-launch-goes.md"
ATTRIBUTES = {
    *("acs_span", "acs_arguments", "told", "complete", "is_shared", "_runs", "count", "upto"),
    *("acs_native", "returned"),
}
"""Names that the core reads or sets, and does not call."""
OF_OTHERS = {
    *(
        "INTERFACE",
        "MOST_ROWS",
        "UPLOAD_BYTES",
        "SOURCES",
        "IS_PROFILED",
        "STEPS",
        "Caller",
        "Command",
        "KernelArguments",
        "Handle",
        "Tracker",
        "Leaving",
        "Loan",
        "Lock",
        "Memory",
        "Bypass",
    ),
    *("Setter", "View", "Access", "CoreCommand", "Launch", "Span", "append", "enqueue", "get"),
    *("int_ptr", "is_blocking"),
    *("FIRST_LOOK", "MOST_TASKS", "launcher"),
    *(
        "copy",
        "fill",
        "marker",
        "read",
        "release",
        "size",
        "svm_ptr",
        "wait",
        "wait_for",
        "when",
        "write",
    ),
    *("bands", "offset", "reads", "writes"),
}
"""Public names in the sources that no method of ours has: of classes of the core and of records, of
Python's and PyOpenCL's objects, of keywords, and of launches."""
INHERITED = {
    "__module__", "__doc__", "__new__", "__nb_signature__", "__vectorcalloffset__",
    "__setattr__", "__delattr__",
}  # fmt: skip
"""What a class of an extension has, whatever it is for; any class of Python can set attributes."""


def declared() -> dict[str, ast.stmt]:
    """Return the classes, functions and constants of the stub by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = node
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and "TypeAlias" not in ast.unparse(node.annotation)
        ):
            found[node.target.id] = node
    return found


def members(node: ast.ClassDef) -> set[str]:
    """Return the names that the stub gives a class."""
    names = set()
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            names.add(one.name)
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            names.add(one.target.id)
    return names


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the parameters of a function; those without a name for callers are numbered."""
    without = [one.arg for one in node.args.posonlyargs if one.arg not in ("self", "cls")]
    named = [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
    return [f"#{index}" for index in range(len(without))] + named


def built_parameters(function: Any) -> list[str] | None:
    """Return the same of a built function, or None where it is of Python's own kind."""
    signatures = getattr(function, "__nb_signature__", None)
    if not signatures:
        return None
    text = re.sub(r"^def \w+\(|\) -> .*$", "", signatures[0][0])
    names, depth, start = [], 0, 0
    for at, letter in enumerate(text + ","):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            names.append(text[start:at].split(":")[0].split("=")[0].strip())
            start = at + 1
    names = [name for name in names if name not in ("self", "/", "")]
    return [f"#{name[3:]}" if re.fullmatch(r"arg\d*", name) else name for name in names]


def test_the_stub_has_every_name_of_the_module_and_no_other() -> None:
    there = {name for name in dir(core.native) if not name.startswith("__")}
    assert set(declared()) == there


@pytest.mark.parametrize(
    "name", [name for name, node in declared().items() if isinstance(node, ast.ClassDef)]
)
def test_a_class_has_the_members_that_the_stub_gives_it(name: str) -> None:
    node = declared()[name]
    assert isinstance(node, ast.ClassDef)
    there = set(vars(getattr(core.native, name))) - INHERITED
    assert members(node) - {"__init__", "__new__", "__doc__"} == there - {"__init__"}


def functions() -> list[tuple[str, ast.FunctionDef]]:
    """Return every function and method of the stub with its dotted name."""
    found = []
    for name, node in declared().items():
        if isinstance(node, ast.FunctionDef):
            found.append((name, node))
        elif isinstance(node, ast.ClassDef):
            inner = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found += [(f"{name}.{one.name}", one) for one in inner if not one.decorator_list]
    return found


def test_functions_have_the_parameters_that_the_stub_gives_them() -> None:
    compared = 0
    for dotted, node in functions():
        built: Any = core.native
        for part in dotted.split("."):
            built = vars(built)[part] if isinstance(built, type) else getattr(built, part)
        there = built_parameters(built)
        if there is None:
            continue
        if there == ["#"]:  # nanobind does not number a single one
            there = ["#0"]
        assert parameters(node) == there, dotted
        compared += 1
    assert compared > 50


def test_every_function_of_the_border_says_what_it_does() -> None:
    silent = [
        dotted
        for dotted, node in functions()
        if not dotted.rpartition(".")[2].startswith("_") and not ast.get_docstring(node)
    ]
    assert set(silent) <= {"Lock.acquire", "Lock.release"}  # as Python's own locks


def test_the_methods_that_the_core_calls_by_name_are_listed() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCES]
    pattern = r'(?:InternFromString|attr)\("(\w+)"'
    used = {name for text in texts for name in re.findall(pattern, text)} - ATTRIBUTES - OF_OTHERS
    table = ROUTES.read_text(encoding="utf-8").partition("## What C++ asks of Python")[2]
    rows = [line.split("|")[1] for line in table.partition("## ")[0].splitlines() if "|" in line]
    listed = {name for row in rows for name in re.findall(r"`\w+\.(\w+)`", row)}
    assert used == listed
