"""State of the process is listed in one document, name by name, and nothing else is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "acs_cl"
LISTED = ROOT / "docs" / "design" / "process-state.md"

DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MAKERS = {
    *("Lock", "RLock", "local", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "Counter"),
    *("OrderedDict", "defaultdict", "deque", "count", "set", "dict", "list", "bytearray", "Living"),
}
CACHES = {"cache", "lru_cache", "memo"}
IN_CXX = re.compile(
    r"^\s*inline (?:static )?(?!.*\bconst\b)[\w:<>,* ]+?[ *](\w+)(?:\[\w+\])?(?: = [^(]*)?;"
)


def last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    node = node.value if isinstance(node, ast.Subscript) else node
    return ast.unparse(node).rpartition(".")[2]


def is_state(name: str, value: ast.expr | None) -> bool:
    """Whether a name at the top of a module or class is a container, a lock or a counter. A
    display with a name in capitals is a constant."""
    if isinstance(value, ast.Call):
        is_plain = last_name(value) in {"dict", "list", "set"}
        return last_name(value) in MAKERS and not (is_plain and name.isupper())
    return isinstance(value, DISPLAYS) and not name.isupper() and not name.startswith("__")


def assigned(body: list[ast.stmt]) -> list[tuple[str, ast.expr | None]]:
    pairs: list[tuple[str, ast.expr | None]] = []
    for node in body:
        if isinstance(node, ast.Assign):
            pairs += [(one.id, node.value) for one in node.targets if isinstance(one, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs.append((node.target.id, node.value))
    return pairs


def found_in(text: str) -> set[str]:
    """Names of the state of one module: rebound ones, containers, locks, caches of functions."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    found = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    found |= {name for name, value in assigned(tree.body) if is_state(name, value)}
    for node in nodes:
        if isinstance(node, ast.ClassDef) and "NamedTuple" not in map(last_name, node.bases):
            inside = assigned(node.body)
            found |= {f"{node.name}.{name}" for name, value in inside if is_state(name, value)}
        elif isinstance(node, ast.FunctionDef) and CACHES & set(
            map(last_name, node.decorator_list)
        ):
            found.add(node.name)
    return found


def test_every_piece_of_state_is_listed_and_every_line_is_one() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for path in PACKAGE.rglob("*.py")
        for name in found_in(path.read_text("utf-8"))
    } | {
        f"{path.relative_to(PACKAGE / '_core').as_posix()} {match[1]}"
        for path in (PACKAGE / "_core").rglob("*.[ch]pp")
        for line in path.read_text("utf-8").splitlines()
        if (match := IN_CXX.match(line))
    }
    assert len(found) > 30
    rows = re.findall(r"^\| `([\w./]+)` \| ([^|]+) \| [^|]+ \|$", LISTED.read_text("utf-8"), re.M)
    listed = {
        f"{where} {name}" for where, names in rows for name in re.findall(r"`([\w.]+)`", names)
    }
    assert found - listed == set(), "state that is not listed"
    assert listed - found == set(), "listed, and not there"


def test_what_counts_as_state() -> None:
    assert found_in("a = []\nB = {1: 2}\n_C = frozenset()\n__all__ = ['a']") == {"a"}
    assert found_in("from threading import Lock\n_lock = Lock()\nX = WeakSet()") == {"_lock", "X"}
    assert found_in("_all = Living[int]()") == {"_all"}
    assert found_in("n = 0\ndef f():\n    global n\n    n += 1") == {"n"}
    assert found_in("@cache\ndef f(): ...\nclass A:\n    b = {}") == {"f", "A.b"}
