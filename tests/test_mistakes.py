"""Each mistake on the page of errors says what the page says, and nothing is lost by it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from acs_cl import AcsError
from acs_cl.access import hints

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "errors.md"
TEXT = PAGE.read_text("utf-8").split("## What is often written", 1)[1]
SETUP = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
ROWS = re.findall(r"^\| (?!mistake|---)(.*?) \| `(.*?)` \| (\w+): (.*) \|$", TEXT, re.MULTILINE)


def test_page_shows_what_stands_in_angle_brackets() -> None:
    assert not [title for title, _, _, message in ROWS if re.search(r"(?<!\\)<", message)]


def test_page_has_the_commonest() -> None:
    assert len(ROWS) >= 20
    assert len({title for title, *_ in ROWS}) == len(ROWS)


@pytest.fixture(scope="module")
def names(device: cl.Device) -> Any:
    found: dict[str, Any] = {}
    exec(SETUP, found)
    yield found
    with contextlib.suppress(AcsError):  # a failure that nobody asks about is told at the end
        found["failed"].get()
    for name in ("other", "rt"):
        found[name].close()


@pytest.mark.parametrize(("title", "code", "kind", "message"), ROWS, ids=[row[0] for row in ROWS])
def test_mistake_says_what_the_page_says(
    title: str, code: str, kind: str, message: str, names: dict[str, Any]
) -> None:
    with pytest.raises((AttributeError, AcsError)) as caught:
        exec(code, names)
    assert type(caught.value).__name__ == kind, title
    said = str(caught.value).replace("\n", " ")
    pattern = ".*".join(map(re.escape, message.replace("\\<", "<").split("…")))
    assert re.fullmatch(pattern, said), f"the page says\n{message}\nand the library\n{said}"


def test_nothing_was_lost(names: dict[str, Any]) -> None:
    y = names["y"]
    names["prog"].add((16,), None, names["rt"].array(np.ones(16), "f4"), y, 16)
    assert y.get().tolist() == [1.0] * 16


@pytest.mark.parametrize(
    ("name", "kernels", "said"),
    [
        ("step", ["_cl_step"], "; 'step' is a built-in function of OpenCL C: give the kernel"),
        ("add", [], "; mark a function with `kernel` in the source"),
        ("adds", ["add", "sum"], "; did you mean 'add'?"),
        ("what", ["add", "sum"], ""),
    ],
)
def test_kernel_that_is_not_there(name: str, kernels: list[str], said: str) -> None:
    found = hints.of_kernels(name, kernels)
    assert found.startswith(said)
    assert bool(found) == bool(said)
