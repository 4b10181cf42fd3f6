"""Rooms of the library, and who may import whom.

Data passes through rooms in one direction, so a room imports only those above it in the table.
That keeps each of them readable alone. A rule that gets in the way is changed here, in view of
everybody.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from imports import FOLDERS, MODULES, circles, imported, is_name, is_private, own, sources

BASE = ("__init__", "_version", "errors", "records", "ranges", "core", "handle")

# Modules at the top of the package belong to rooms too: a line each, with their names.
TOP = {
    **dict.fromkeys(BASE, "base"),
    **dict.fromkeys(("kernel", "program", "conditions", "plans", "transfers", "banded"), "kernel"),
    **dict.fromkeys(("call_sizes", "versions"), "kernel"),
    **dict.fromkeys(("closing", "at_exit"), "closing"),
    **dict.fromkeys(("options", "configuration"), "options"),
    **dict.fromkeys(("runtime", "calls"), "runtime"),
    "dask": "dask",
    "__main__": "tools",
}

# What a room may import besides itself. Read downwards it is the direction of data.
ROOMS = {
    "base": "",
    "host": "base",
    "devices": "base host",
    "opencl_c": "base host devices",
    "memory": "base devices",
    "access": "base host devices opencl_c memory",
    "launch": "base host devices memory access",
    "backends": "base devices launch",
    "scheduler": "base host devices opencl_c memory access launch backends",
    "closing": "base host devices access launch",
    "kernel": "base host devices opencl_c memory access launch scheduler",
    "observe": "base host access launch closing kernel emu",
    "graph": "base host devices opencl_c memory access launch scheduler closing kernel observe",
    "check": "base host devices opencl_c memory access launch scheduler closing",
    "several": "base host devices memory access launch backends",
    "options": "base host devices access launch backends scheduler emu",
    "runtime": "base host devices memory launch scheduler closing kernel observe graph check"
    " options several",
    "queue": "base host devices access launch closing kernel runtime",
    "dask": "base host memory access graph runtime",
    "testing": "base host devices opencl_c memory access launch scheduler closing kernel observe"
    " graph check options runtime queue",
    "tools": "base host devices opencl_c memory closing observe several options runtime queue"
    " benchmarks",
}

# The emulator runs on the library's records and models; benchmarks look at what they measure.
FOLDERS_MAY_IMPORT = {
    "kernels_cl": "",
    "emu": "base host devices launch backends scheduler",
    "benchmarks": "base host devices opencl_c access launch observe scheduler several dask"
    " kernels_cl emu",
}

# Rooms of the benchmarks, in the same direction; the modules above them are commands.
BENCHMARKS = ("workloads", "peers", "suite", "validation", "figures")

# Pure: values in, values out. Nothing here may reach a driver, a thread or a clock.
PURE = {"host.intervals", "records", "ranges", "launch.failures", "errors", "scheduler.proof"}
PURE |= {
    f"emu.reference.{name}"
    for name in ("footprints", "hazards", "lanes", "ranges", "spread", "table", "window")
}
IMPURE = {"pyopencl", "threading", "time", "datetime", "asyncio", "concurrent", "queue", "random"}


def room_of(name: str) -> str:
    """Name the room of a module: 'launch' of 'launch.window', 'base' of 'errors'."""
    first = name.partition(".")[0]
    return TOP.get(name, first)


LIBRARY = sorted(name for name in MODULES if name.partition(".")[0] not in FOLDERS[1:])
OTHERS = sorted(set(MODULES) - set(LIBRARY))


def test_every_module_has_a_room() -> None:
    homeless = sorted(name for name in LIBRARY if room_of(name) not in ROOMS)
    assert not homeless, f"say in TOP or ROOMS where these belong: {homeless}"
    top = [name for name in LIBRARY if "." not in name and MODULES[name].name != "__init__.py"]
    assert len(top) <= 22, f"the top of the package is for few: {top}"


def test_the_table_points_one_way() -> None:
    above = set(FOLDERS[1:])
    for room, may in ROOMS.items():
        assert set(may.split()) <= above, f"{room} may import {set(may.split()) - above}, not above"
        above.add(room)


def test_modules_import_rooms_above() -> None:
    wrong = []
    for name in LIBRARY:
        if name == "__init__":
            continue  # it hands out what the other rooms make
        room = room_of(name)
        beyond = {other for other in own(MODULES[name], types=True) if room_of(other) != room}
        beyond = {other for other in beyond if room_of(other) not in ROOMS[room].split()}
        if beyond:
            wrong.append(f"{name} imports {sorted(beyond)}; {room} may import {ROOMS[room]}")
    assert not wrong, "\n".join(wrong)


def test_folders_import_what_they_may() -> None:
    wrong = []
    for name in OTHERS:
        folder = name.partition(".")[0]
        may = {folder, *FOLDERS_MAY_IMPORT[folder].split()}
        beyond = sorted(other for other in own(MODULES[name]) if room_of(other) not in may)
        if beyond:
            wrong.append(f"{name} imports {beyond}; {folder} may import {sorted(may)}")
    assert not wrong, "\n".join(wrong)


def test_rooms_of_the_benchmarks_point_one_way() -> None:
    wrong = []
    for name in OTHERS:
        folder, room, *_ = *name.split("."), ""
        if folder != "benchmarks" or room not in BENCHMARKS:
            continue  # a command may use all rooms
        others = {
            other.split(".")[1] for other in own(MODULES[name]) if other.startswith("benchmarks.")
        }
        if beyond := others - set(BENCHMARKS[: BENCHMARKS.index(room) + 1]):
            wrong.append(f"{name} imports {sorted(beyond)}")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_imported_in_a_circle() -> None:
    assert not circles(types=False)


def test_annotations_tie_no_modules_in_circles() -> None:
    assert not circles(types=True)


def test_backends_know_nothing_of_calls() -> None:
    earlier = {"runtime", "kernel", "access", "memory"}
    for name in LIBRARY:
        if room_of(name) == "backends":
            assert not {room_of(other) for other in own(MODULES[name], types=True)} & earlier, name


@pytest.mark.parametrize("name", sorted(PURE))
def test_the_middle_is_pure(name: str) -> None:
    outside = {other.partition(".")[0] for other in imported(MODULES[name], types=True)}
    assert not outside & IMPURE, f"{name} imports {sorted(outside & IMPURE)}"
    assert own(MODULES[name], types=True) <= PURE | {"core"}, name  # whose arithmetic is pure


def test_folders_are_imported_by_their_installed_names() -> None:
    """`import emu` works in the sources and not in a wheel; so does `import acs_cl.tests`."""
    for path in [*MODULES.values(), *sources("tests")]:
        for name in imported(path, types=True):
            first, _, rest = name.partition(".")
            assert first not in FOLDERS[1:], f"{path.name} imports {name}, not acs_cl.{name}"
            assert first != "acs_cl" or rest.partition(".")[0] not in ("tests", "acs_cl"), name


def test_rooms_say_what_they_are_for() -> None:
    for room in ROOMS:
        if (package := MODULES.get(room)) and package.name == "__init__.py":
            assert ast.get_docstring(ast.parse(package.read_text("utf-8"))), room


ANY = 221
"""Annotations with `Any`. The number may only fall."""


def private_uses(name: str) -> list[str]:
    """Find the private members that a module uses and does not define."""
    nodes = list(ast.walk(ast.parse(MODULES[name].read_text("utf-8"))))
    mine = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and is_name(node.value, "self", "cls")
    }
    mine |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    mine |= {
        node.target.id
        for node in nodes
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return [
        node.attr
        for node in nodes
        if is_private(node) and not is_name(node.value, "_cl", "cl") and node.attr not in mine
    ]


def test_no_module_uses_private_members_of_others() -> None:
    found = {name: used for name in LIBRARY if (used := private_uses(name))}
    assert not found


def test_annotations_say_any_ever_less() -> None:
    found: Counter[str] = Counter()
    for name in LIBRARY:
        tree = ast.parse(MODULES[name].read_text("utf-8"))
        found[name] = sum(is_name(node, "Any") for node in ast.walk(tree))
    assert found.total() <= ANY, f"{found.total()}, of them {found.most_common(8)}"
