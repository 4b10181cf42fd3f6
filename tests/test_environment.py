"""The environment is read in one module, and the reference tells all of it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl.host.environment import VARIABLES, variable

ROOT = Path(__file__).resolve().parent.parent
READER = ROOT / "acs_cl" / "host" / "environment.py"


def test_only_one_module_reads_the_environment() -> None:
    readers = {
        path.name
        for path in (ROOT / "acs_cl").rglob("*.py")
        if re.search(r"\bos\.(environ|getenv)|from os import", path.read_text("utf-8"))
    }
    assert readers == {READER.name}


def test_every_name_that_is_read_is_in_the_table() -> None:
    asked = {
        name
        for path in (ROOT / "acs_cl").rglob("*.py")
        for name in re.findall(r"variable\(\"(\w+)\"\)", path.read_text("utf-8"))
    }
    assert asked <= set(VARIABLES)
    others = set(VARIABLES) - asked
    assert others == {"ACS_CL_CACHE", "XDG_CACHE_HOME", "HOME"}, "asked for by other means"


def test_reference_has_the_table() -> None:
    text = (ROOT / "docs" / "reference" / "options.md").read_text("utf-8")
    table = text.partition("## Environment")[2].partition("## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\S.*\S) \| (\S.*\S) \|$", table, re.MULTILINE)
    assert tuple(name for name, _, _ in rows) == VARIABLES
    assert len(rows) == table.count("\n| `")


def test_blanks_do_not_count_and_unset_is_empty(environment: Environment) -> None:
    environment(ACS_CL_RANGES=" off ")
    assert variable("ACS_CL_RANGES") == "off"
    environment(ACS_CL_RANGES=None)
    assert variable("ACS_CL_RANGES") == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ACS_CL_WATCHDGO", "ACS_CL_WATCHDOG"), ("ACS_CL_BACKENDS", "ACS_CL_BACKEND"),
     ("ACS_CL_MINE", ""), ("ACS_CL_EVERY", "")],
)  # fmt: skip
def test_a_name_that_is_nearly_right_is_warned_of(
    name: str, meant: str, environment: Environment, device: cl.Device
) -> None:
    environment(**{name: "1"})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        acs.Runtime(device, backend="serial").close()
    said = [str(one.message) for one in told if name in str(one.message)]
    assert said == ([f"{name} is set, and means nothing; did you mean {meant}?"] if meant else [])
    assert all(Path(one.filename) == Path(__file__) for one in told if name in str(one.message))


def test_a_text_that_means_nothing_is_warned_of(
    environment: Environment, device: cl.Device
) -> None:
    environment(ACS_CL_RANGES="no")
    with pytest.warns(UserWarning, match="ACS_CL_RANGES='no' means nothing; write 'off'"):
        acs.Runtime(device, backend="serial").close()


def test_a_name_without_a_row_is_a_fault_of_ours() -> None:
    with pytest.raises(KeyError, match="not in the table"):
        variable("ACS_CL_OTHER")
