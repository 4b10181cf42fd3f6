"""The public surface: pinned, documented, and every example true."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.errors import INNER

NAMES = (
    "AcsError",
    "Array",
    "DeviceError",
    "Graph",
    "Handle",
    "Kernel",
    "PoisonedError",
    "Program",
    "Queue",
    "Row",
    "Runtime",
    "Spawn",
    "Strided",
    "Tile",
    "UsageError",
    "loop",
    "size",
)
"""Changing this tuple is changing the library's promise."""

MOST = 17
"""Thirteen, the three cuts that `bands=` takes, and `Spawn`, which `spawn=` takes."""

API = (Path(__file__).parent.parent / "docs" / "reference" / "api.md").read_text("utf-8")

MEMBERS = {
    "Array": (
        "T contiguous copy_from data dtype fill free get nbytes ndim reshape runtime set shape "
        "size strides view"
    ),
    "Graph": "arrange arrays close dag handles profile replay save swap tune update verify",
    "Handle": "access done event name number wait",
    "Kernel": "access infer_ranges launch_many name native signature",
    "Program": "kernels native",
    "Runtime": (
        "array build call close context dag device empty explain finish flush launch load measure "
        "options phase pinned plan prebuild record stats trace zeros"
    ),
}


def test_there_are_no_more_names_than_promised_and_they_are_these() -> None:
    assert tuple(acs.__all__) == NAMES
    assert len(NAMES) <= MOST


def test_tools_that_read_sources_find_every_name() -> None:
    tree = ast.parse(Path(acs.__file__).read_text("utf-8"))
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(typed.test) == "typing.TYPE_CHECKING"
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}
    assert homes == acs._HOMES


def test_programs_kernels_and_arrays_say_what_they_are(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial", trace=True) as rt:
        program = rt.build("kernel void one(global int *x) { *x = 1; } kernel void two() { }")
        assert repr(program) == "<acs_cl.Program with one, two>"
        assert repr(program.one) == "<acs_cl.Kernel one>"
        assert repr(rt.zeros((2, 3), "i4")) == "<acs_cl.Array (2, 3) int32>"
        assert repr(rt).startswith("<acs_cl.Runtime serial on ")
        with rt.measure() as measured:
            program.two((1,), None)
        assert repr(measured) == "<acs_cl measured block, launches: 1>"
        assert repr(rt.trace) == f"<acs_cl timeline, launches: {len(rt.trace.slices)}>"


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_public_members_are_pinned_too(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build("kernel void one(global int *x) { *x = 1; }")
        x = rt.zeros(1, "i4")
        things = (rt, program, program.one, x, program.one((1,), None, x), rt.record())
        for thing in things:
            name = type(thing).__name__
            found = public(dir(type(thing))) | public(getattr(thing, "__dict__", ()))
            found -= {"one"}  # a kernel
            assert found == {*MEMBERS[name].split(), *INNER[name].split()}, name


def test_a_shell_completes_what_is_promised_and_nothing_else(device: cl.Device) -> None:
    assert set(NAMES) <= public(dir(acs)) <= {*NAMES, "dask", "errors", "testing"}
    with acs.Runtime(device) as rt:
        program = rt.build("kernel void one(global int *x) { *x = 1; }")
        x = rt.zeros(1, "i4")
        with rt.record() as graph:
            recorded = program.one((1,), None, x)
        replay, queue = graph.replay(), acs.Queue(rt.context, runtime=rt)
        for thing in (rt, program.one, x, x.fill(0), graph):
            assert public(dir(thing)) == set(MEMBERS[type(thing).__name__].split())
        assert public(dir(recorded)) == set(MEMBERS["Handle"].split())
        assert public(dir(replay)) == {*MEMBERS["Handle"].split(), "rounds"}
        assert public(dir(queue)) == {*public(dir(cl.CommandQueue)), "allocator", "runtime"}


@pytest.mark.parametrize("name", NAMES)
def test_every_method_says_what_it_does(name: str) -> None:
    for member in MEMBERS.get(name, "").split():
        thing = inspect.getattr_static(getattr(acs, name), member, None)
        if isinstance(thing, property) or callable(thing):
            assert inspect.getdoc(thing), f"{name}.{member}"


def test_the_reference_has_the_promised_members_and_no_others() -> None:
    found = dict(
        re.findall(r"^::: acs_cl\.(\w+)\n    options:\n      members: \[(.*)\]$", API, re.M)
    )
    assert found.keys() >= MEMBERS.keys()
    for name, members in MEMBERS.items():
        assert found[name].split(", ") == members.split(), name


@pytest.mark.parametrize("name", ["acs_cl", *NAMES])
def test_the_example_of_every_name_is_true(name: str, device: cl.Device) -> None:
    thing = acs if name == "acs_cl" else getattr(acs, name)
    assert thing.__doc__, name
    assert is_true(name, thing.__doc__), f"{name} has no example"
    for member in MEMBERS.get(name, "").split():
        text = getattr(inspect.getattr_static(thing, member, None), "__doc__", None)
        is_true(f"{name}.{member}", inspect.cleandoc(text or ""))


def is_true(name: str, text: str) -> bool:
    """Run the example in a docstring, if there is one."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    result = runner.run(example, out=said.append)
    assert not result.failed, "".join(said)
    return bool(example.examples)
