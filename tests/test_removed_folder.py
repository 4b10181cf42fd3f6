"""Programs whose current folder was removed while they run, as that of a batch job may be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyopencl as cl
import pytest
from conftest import Enter

import acs_cl as acs
from acs_cl.host import isolated

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")

SOURCE = "kernel void put(global int *x, int a) { x[get_global_id(0)] = a; }"


@pytest.fixture
def removed(tmp_path: Path, enter: Enter) -> None:
    """The current folder is none."""
    folder = tmp_path / "removed"
    folder.mkdir()
    enter(folder)
    folder.rmdir()


def test_launches_and_recordings_go_on(rt: acs.Runtime, removed: None) -> None:
    program, x = rt.build(SOURCE), rt.zeros(16, "i4")
    for turn in range(100):
        program.put((16,), None, x, turn)
    with rt.record() as graph:
        program.put((16,), None, x, 1)
    graph.replay().wait()
    assert x.get().tolist() == [1] * 16


def test_a_program_with_included_files_is_taken_by_what_the_driver_tells(
    rt: acs.Runtime, tmp_path: Path, removed: None
) -> None:
    """Which of two files is meant may depend on the current folder."""
    (tmp_path / "number.h").write_text("#define NUMBER 3\n", "utf-8")
    source = '#include "number.h"\n' + SOURCE.replace("= a", "= a + NUMBER")
    program, x = rt.build(source, options=[f"-I{tmp_path}"]), rt.zeros(16, "i4")
    program.put((16,), None, x, 4)
    assert x.get().tolist() == [7] * 16
    assert "cannot tell which file" in program.put.signature.unclear


def test_what_needs_the_folder_says_so(rt: acs.Runtime, removed: None) -> None:
    program, x, flag = rt.build(SOURCE), rt.zeros(16, "i4"), rt.zeros(1, "i4")
    with pytest.raises(acs.UsageError, match="the current folder is gone"):
        program.put((16,), None, x, 4, when=flag)
    message = "cannot read the program 'here.cl' in the current folder, which is gone"
    with pytest.raises(acs.UsageError, match=re.escape(message)):
        rt.build("here.cl")


def test_helpers_find_their_packages(device: cl.Device, removed: None) -> None:
    assert isolated.places()["acs_cl"]
