"""Read who imports whom from the sources, for the tests of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("acs_cl", "emu", "benchmarks", "kernels_cl")  # what is installed, all below acs_cl


NOT_PRIVATE = {
    *("_replace", "_asdict", "_fields", "_make", "_exit", "_getframe"),
    *("_cl", "_Program", "_build", "_process_build_options", "_enqueue_marker_with_wait_list"),
    *("_enqueue_read_buffer", "_set_arg_multi", "_set_arg_buf_multi", "_set_arg_buf_pack_multi"),
    *("_set_enqueue_and_set_args", "_kind_id", "_tu", "_CXString"),
}
"""Names of others that look private: of named tuples and of Python, of PyOpenCL, whose functions
these are, and of libclang's binding, which has no public names for them."""


def sources(folder: str) -> Iterator[Path]:
    """Yield the Python files of a folder at the top."""
    return (path for path in sorted((ROOT / folder).rglob("*.py")))


def name_of(path: Path) -> str:
    """Name a module as below acs_cl: 'runtime', 'launch.window', 'launch', 'emu.engine'."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "acs_cl":
        parts = parts[1:]
    if parts[-1] == "__init__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)


MODULES = {name_of(path): path for folder in FOLDERS for path in sources(folder)}


def is_for_types(node: ast.AST) -> bool:
    """Say whether this is `if TYPE_CHECKING:`, whose imports never happen."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk(node: ast.AST, types: bool) -> Iterator[ast.AST]:
    """Yield what is below a node; without `types` not what only annotations need."""
    for child in ast.iter_child_nodes(node):
        if types or not is_for_types(child):
            yield child
            yield from walk(child, types)


@cache
def imported(path: Path, types: bool) -> tuple[str, ...]:
    """Name all that a file imports, 'acs_cl.runtime' for `from . import runtime`."""
    package = ["acs_cl", *name_of(path).split(".")]
    if path.name != "__init__.py" or package[-1] == "__init__":
        package.pop()
    found: list[str] = []
    for node in walk(ast.parse(path.read_text("utf-8")), types):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, node.module] if node.module else base)
            found += (f"{origin}.{alias.name}" for alias in node.names)
    return tuple(found)


def own(path: Path, types: bool = False) -> set[str]:
    """Name the modules of ours that a file imports; with `types`, for annotations too."""
    found = set()
    for name in imported(path, types):
        first, _, rest = name.partition(".")
        if first != "acs_cl":
            continue
        while rest and rest not in MODULES:  # a name inside of a module
            rest = rest.rpartition(".")[0]
        found.add(rest or "__init__")
    return found


def is_name(node: ast.AST, *names: str) -> bool:
    """Say whether a node is one of these names."""
    return isinstance(node, ast.Name) and node.id in names


def is_private(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Say whether this reads or sets what another object keeps for itself."""
    if not isinstance(node, ast.Attribute) or node.attr in NOT_PRIVATE:
        return False
    own = is_name(node.value, "self", "cls")
    return node.attr.startswith("_") and not node.attr.startswith("__") and not own


def circles(types: bool) -> list[list[str]]:
    """Find groups of modules that import each other, directly or not, by Tarjan's algorithm."""
    after = {name: own(path, types) - {name, "__init__"} for name, path in MODULES.items()}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        open_names.append(name)
        for other in after[name]:
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_names:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            at = open_names.index(name)
            circle = open_names[at:]
            del open_names[at:]
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in MODULES:
        if name not in number:
            visit(name)
    return found
