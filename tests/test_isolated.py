"""Helper processes take code from where this process has it, never from the current folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy
import order_counter
import priority_teller
import pyopencl
import pytest
from conftest import Enter, Environment

import acs_cl
from acs_cl import core, devices
from acs_cl.host import isolated
from acs_cl.opencl_c import cache
from acs_cl.scheduler.apart import Apart

SOURCE = "kernel void k(global int *x) { x[get_global_id(0)] += 1; }"
SCHEDULER = """
kernel void acs_scheduler(
    global uint *region, uint block, uint turns, uint polls, ulong slice_ns, uint mode) {}
"""
PLANTED = "json.py", "numpy.py", "pyopencl.py", "clang.py", "subprocess.py", "sitecustomize.py"
PACKAGE = Path(acs_cl.__file__).parent


@pytest.fixture
def planted(tmp_path: Path, enter: Enter, environment: Environment) -> Path:
    """A current folder full of modules that leave a mark when they are run."""
    here = tmp_path / "here"
    here.mkdir()
    for name in PLANTED:
        (here / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    enter(here)
    environment(ACS_CL_CACHE=str(tmp_path / "cache"))
    return tmp_path / "ran"


@pytest.fixture
def apart() -> Iterator[Apart]:
    with closing(Apart(devices.choose(), isolated.MODEST)) as process:
        yield process


def translations() -> list[Path]:
    folder = cache.folder()
    assert folder is not None
    return list(folder.glob("*.json"))


def test_a_helper_runs_nothing_from_the_current_folder(planted: Path, apart: Apart) -> None:
    assert apart.translate(SOURCE, [], "k_")
    assert translations()
    assert apart.compile(SCHEDULER, [], 1, "c11")
    assert not planted.exists()


@pytest.fixture
def look_first(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts folders in front of the search path."""
    return lambda *folders: monkeypatch.setattr(sys, "path", [*folders, *sys.path])


@pytest.mark.parametrize("path", [".", "", os.pathsep, "../here"])
def test_neither_do_relative_entries_of_the_search_path_count(
    planted: Path,
    apart: Apart,
    look_first: Callable[..., None],
    environment: Environment,
    path: str,
) -> None:
    environment(PYTHONPATH=path)
    look_first(path, "", ".", os.getcwd())
    assert apart.translate(SOURCE, [], "k_")
    assert translations()
    assert not planted.exists()


def test_a_helper_takes_one_order_after_another() -> None:
    assert order_counter.__spec__ is not None
    with closing(isolated.Helper(order_counter.__name__, isolated.POLITE)) as helper:
        assert [helper.ask({"before": number}) for number in range(3)] == [True] * 3
        assert not helper.ask({"before": 7}), "it fails, and ends"
        assert helper.ask({"before": 0}), "another one begins"
        (process,) = isolated._helpers
        process.kill()
        process.wait()
        assert helper.ask({"before": 0}), "as behind one that crashed later"


@pytest.mark.skipif(not hasattr(os, "nice"), reason="priorities are those of Unix")
@pytest.mark.parametrize("lower", [0, isolated.POLITE.lower, isolated.MODEST.lower])
def test_a_helper_leaves_the_processor_to_the_program(lower: int) -> None:
    assert priority_teller.__spec__ is not None
    manners = isolated.Manners(lower, lingers=False)
    with closing(isolated.Helper(priority_teller.__name__, manners)) as helper:
        assert helper.ask({"lower": lower})
        assert not helper.ask({"lower": lower - 1})


def test_a_package_that_is_not_loaded_yet_is_found_where_it_is_installed(
    planted: Path, look_first: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in isolated.LATER:
        monkeypatch.delitem(sys.modules, name, raising=False)
    look_first("", os.getcwd())
    places = isolated.places()
    for name in isolated.LATER:
        assert Path(places[name]) == Path(numpy.__file__).parent.parent
    assert "json" not in places


PROGRAM = f"""
import sys
import acs_cl
from acs_cl import devices
from acs_cl.opencl_c import cache
from acs_cl.host import isolated
from acs_cl.scheduler.apart import Apart
apart = Apart(devices.choose(), isolated.MODEST)
assert apart.translate({SOURCE!r}, [], "k_")
apart.close()
print(acs_cl.__file__, len(list(cache.folder().glob("*.json"))))
"""


def test_an_installation_that_only_pythonpath_knows_is_used(planted: Path, tmp_path: Path) -> None:
    there = tmp_path / "apart"
    no_code = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, there / "acs_cl", ignore=no_code)
    shutil.copytree(PACKAGE.parent / "kernels_cl", there / "acs_cl" / "kernels_cl")
    shutil.copy(str(core.native.__file__), there / "acs_cl")
    program = tmp_path / "elsewhere" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    # the interpreter below the virtual environment, which has none of the packages by itself
    path = os.pathsep.join([str(there), str(Path(pyopencl.__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(tmp_path / "byte")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [os.path.realpath(sys.executable), str(program)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    where, count = done.stdout.split()
    assert where.startswith(str(there))
    assert int(count) > 0
    assert not planted.exists()
    assert (tmp_path / "byte").exists()
    assert not list(there.rglob("__pycache__")), "a helper keeps byte code elsewhere than we do"
