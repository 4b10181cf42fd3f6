"""The switch of the checks: what can be asked for, what a wrong word says, what is off when off."""

from __future__ import annotations

import subprocess
import sys

import pyopencl as cl
import pytest
from test_check import SOURCE

import acs_cl as acs
from acs_cl.check.modes import Modes, modes
from acs_cl.errors import CheckError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Modes()),
        ("", Modes()),
        ("access", Modes(access=True)),
        ("access, order=7", Modes(access=True, order=True, seed=7)),
        (["leaks", "uninitialised"], Modes(uninitialised=True, leaks=True)),
    ],
)
def test_words_become_modes(given: object, expected: Modes) -> None:
    assert modes(given) == expected
    assert modes(str(expected)) == expected


@pytest.mark.parametrize("given", ["acess", "access=2", "order=x", ["order=-1"], True, 3])
def test_a_wrong_word_is_an_error_that_lists_the_right_ones(given: object) -> None:
    with pytest.raises(acs.UsageError, match=r"check=.*(access, order|seed)"):
        acs.Runtime(check=given)


def test_the_environment_adds_checks(device: cl.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACS_CL_CHECK", "access,order=3")
    with acs.Runtime(device, check="leaks") as rt:
        assert rt.options.check == Modes(access=True, order=True, leaks=True, seed=3)
    monkeypatch.setenv("ACS_CL_CHECK", "acess")
    with pytest.raises(acs.UsageError, match="ACS_CL_CHECK="):
        acs.Runtime(device)


def test_nothing_of_the_checks_is_loaded_where_they_are_off() -> None:
    code = (
        "import sys, acs_cl as acs\n"
        "with acs.Runtime() as rt:\n"
        "    rt.zeros(4).get()\n"
        "    assert rt._checker is None and 'check' not in rt.stats()\n"
        "print([name for name in sys.modules if name.startswith('acs_cl.check.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['acs_cl.check.modes']"


def test_stats_say_what_checks_did_and_cost(device: cl.Device) -> None:
    with acs.Runtime(device, check="access,order=1") as rt:
        prog = rt.build(SOURCE)
        x, y = rt.array(range(64), "f4"), rt.zeros(64)
        prog.twice((32,), None, x[:32])
        prog.add((32,), None, x[32:], y[:32])
        rt.finish()
        report = rt.stats()["check"]
    assert report["modes"] == "access,order=1"
    assert report["launches"] == 4
    assert report["orders"] >= 1
    assert report["runs"] > 4
    assert report["seconds"] > 0


def test_the_error_says_everything_in_fields(device: cl.Device) -> None:
    with acs.Runtime(device, check="access") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(64)
        with pytest.raises(CheckError) as caught:
            prog.twice((33,), None, x[:32])
        found = caught.value.finding
        assert found.kind == "write"
        assert (found.launch, found.kernel) == (2, "twice")
        assert (found.argument, found.parameter, found.first_byte) == (0, "x", 128)
        assert "test_check_modes.py" in found.site
        assert str(found) == str(caught.value)
        # the program may go on: nothing else is accused afterwards
        prog.twice((32,), None, x[:32])
        assert not x[:32].get().any()
