"""Named tuples of the library are those of `typing`, but quicker to define."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import re
import typing
from collections.abc import Callable

import pytest
from imports import MODULES

from acs_cl.records import Access, NamedTuple, Span


class Ours(NamedTuple):
    """A tuple of ours."""

    first: int
    second: str
    third: tuple[int, ...] = ()
    fourth: float = 0.5

    @property
    def both(self) -> str:
        return f"{self.first}{self.second}"


class Theirs(typing.NamedTuple):
    """A tuple of theirs."""

    first: int
    second: str
    third: tuple[int, ...] = ()
    fourth: float = 0.5

    @property
    def both(self) -> str:
        return f"{self.first}{self.second}"


KINDS: tuple[typing.Any, ...] = (Ours, Theirs)


def told(call: Callable[[], object]) -> str:
    """Return what a call returns or raises, as text without the name of its class."""
    try:
        found = repr(call())
    except (TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
    return re.sub("Ours|Theirs", "Tuple", found)


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: kind(1, "a"),
        lambda kind: kind(1, "a", (2,), 3.0),
        lambda kind: kind(1, second="a", fourth=2.0),
        lambda kind: kind(1),
        lambda kind: kind(1, "a", (), 2.0, 3),
        lambda kind: kind(1, "a", fifth=3),
        lambda kind: kind(1, "a").both,
        lambda kind: kind(1, "a")[1:],
        lambda kind: kind(1, "a") == (1, "a", (), 0.5),
        lambda kind: {kind(1, "a"): 1}[(1, "a", (), 0.5)],
        lambda kind: kind(1, "a")._replace(second="b"),
        lambda kind: kind(1, "a")._asdict(),
        lambda kind: kind._make([1, "a", (), 2.0]),
        lambda kind: kind._fields,
        lambda kind: kind.__match_args__,
        lambda kind: kind.__slots__,
        lambda kind: typing.get_type_hints(kind),
        lambda kind: list(inspect.signature(kind).parameters),
        lambda kind: pickle.loads(pickle.dumps(kind(1, "a"))),
        lambda kind: copy.copy(kind(1, "a")),
        lambda kind: setattr(kind(1, "a"), "first", 2),
        lambda kind: setattr(kind(1, "a"), "fifth", 2),
        lambda kind: type(kind),
        lambda kind: kind.__module__,
    ],
)  # fmt: skip
def test_they_do_what_those_of_typing_do(use: Callable[[object], object]) -> None:
    ours, theirs = (told(lambda kind=kind: use(kind)) for kind in KINDS)  # type: ignore[misc]
    assert ours == theirs


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Span has no fields \['other'\]"):
        Span(1, 0, 4, 1, 4)._replace(other=1)  # type: ignore[call-arg]


def test_fields_without_a_default_come_first() -> None:
    with pytest.raises(TypeError, match="Wrong: fields without a default come first"):
        exec("class Wrong(kind):\n    a: int = 1\n    b: int", {"kind": NamedTuple}, {})


def test_their_classes_share_their_methods() -> None:
    # a class with methods of its own costs a start of the library fifteen times as long
    for name in ("_replace", "_asdict", "__repr__", "__getnewargs__"):
        assert name not in vars(Span)
        assert getattr(Span, name) is getattr(Access, name)


def test_modules_define_no_tuples_of_typing() -> None:
    library = (name for name in MODULES if name.partition(".")[0] not in ("emu", "benchmarks"))
    wrong = [
        name
        for name in library
        for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections")
        if {"NamedTuple", "namedtuple"} & {one.name for one in node.names}
    ]
    own = ["records", "tools.pytest_plugin"]  # the latter must not load NumPy, as records does
    assert wrong == own, "a start takes longer; take NamedTuple from records"
