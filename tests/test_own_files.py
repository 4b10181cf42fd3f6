"""What is kept on disk counts only where nobody but the user can have written it."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pyopencl as cl
import pytest
from conftest import Environment

from acs_cl.access import inference
from acs_cl.access.inference import from_source
from acs_cl.host import files
from acs_cl.host.digest import digest
from acs_cl.opencl_c import cache
from acs_cl.several import links
from acs_cl.several.policies import ASSUMED, Link

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are a POSIX matter")

NOBODY = 65534
SOURCE = "kernel void k(global int *x, global int *y) { x[0] = y[0]; }"
Give = Callable[[Path], None]


@pytest.fixture
def folder(own_cache: Path) -> Path:
    cache.store("entry", {"i": 1})
    return own_cache / "signatures"


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Make a file somebody else's; where only root may do that, make us somebody else."""

    def give_away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        else:
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: other)

    return give_away


def modes() -> str:
    """What the parameters of the kernel are taken for."""
    inference.forget_programs()
    return "".join(one.mode for one in from_source(SOURCE, "k", None, None).parameters)


def plant(folder: Path) -> Path:
    """An entry that says of the kernel's first parameter that it is only read."""
    assert modes() == "wr"
    (entry,) = folder.glob("*.lines")
    _, name, text = entry.read_text().strip().split(" ", 2)
    record = json.loads(text)
    record["parameters"][0] = record["parameters"][1]
    rest = f"{name} {json.dumps(record)}"
    entry.write_text(f"{digest(rest, 16)} {rest}\n")
    assert modes() == "rr"  # it is believed as long as it can only be the user's
    return entry


def test_a_planted_signature_that_others_may_write_is_not_believed(folder: Path) -> None:
    plant(folder).chmod(0o666)
    assert modes() == "wr"


def test_a_planted_signature_of_somebody_else_is_not_believed(folder: Path, give: Give) -> None:
    give(plant(folder))
    assert modes() == "wr"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_nothing_is_read_from_a_folder_that_others_may_write(folder: Path, mode: int) -> None:
    plant(folder)
    folder.chmod(mode)
    assert modes() == "wr"
    assert cache.load("entry") is None


def test_nothing_is_read_from_the_folder_of_somebody_else(folder: Path, give: Give) -> None:
    give(folder)
    assert cache.load("entry") is None


def test_nothing_is_written_to_a_folder_that_is_refused(folder: Path) -> None:
    folder.chmod(0o777)
    before = sorted(folder.iterdir())
    cache.store("other", {"i": 2})
    cache.add_line("other", "k", {"i": 2})
    assert sorted(folder.iterdir()) == before


def test_nothing_is_added_to_a_file_that_others_may_write(folder: Path) -> None:
    cache.add_line("lines", "k", {"i": 2})
    file = folder / "lines.lines"
    file.chmod(0o622)
    before = file.read_bytes()
    cache.add_line("lines", "other", {"i": 2})
    assert file.read_bytes() == before


def test_a_file_that_is_refused_can_be_replaced(folder: Path) -> None:
    (folder / "entry.json").chmod(0o666)
    assert cache.load("entry") is None
    cache.store("entry", {"i": 2})
    assert cache.load("entry") == {"i": 2}
    assert stat.S_IMODE((folder / "entry.json").stat().st_mode) == 0o600


NOTHING = [
    "", "{", "null", "[]", "[" * 100_000, "{}", '{"format": 1}', '{"format": "1"}', "NaN",
    '{"format": 99, "us": 1, "bands": "off", "link": [1, 1], "operations_per_us": 1, '
    '"bytes_per_us": 1}',
    '{"us": 1, "bands": "off", "link": [1, 1], "operations_per_us": 1, "bytes_per_us": 1}',
    '{"format": 1, "us": "x", "bands": "x", "link": [1], "operations_per_us": 1}',
    '{"format": 1, "us": null, "bands": null, "link": null, "operations_per_us": null, '
    '"bytes_per_us": 1}',
    f'{{"format": 1, "us": 1{"0" * 999}, "link": [1{"0" * 999}, 1], '
    f'"operations_per_us": 1{"0" * 999}, "bytes_per_us": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("text", NOTHING)
def test_a_damaged_record_counts_as_none_whoever_reads_it(
    text: str, folder: Path, device: cl.Device
) -> None:
    links.keep(device, device, Link(1.0, 1.0))
    files.keep("links", "file", 1, {"us": 1})
    assert links.links_of([device, device])[0][1] == Link(1.0, 1.0)
    assert files.kept("links", "file", 1, dict) == {"format": 1, "us": 1}
    for file in (folder.parent / "links").iterdir():
        file.write_text(text)
    found = files.kept("links", "file", 1, dict)
    assert found is None or found["format"] == 1
    assert links.links_of([device, device]) == [[ASSUMED] * 2] * 2


def test_a_link_counts_as_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert cache.load("entry") == {"i": 1}
    elsewhere.chmod(0o777)
    assert cache.load("entry") is None


def test_what_is_no_file_is_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe.json", 0o600)
    assert cache.load("pipe") is None
    os.mkfifo(folder / "pipe.lines", 0o600)
    cache.add_line("pipe", "k", {})


def test_a_refusal_is_one_line_and_is_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.chmod(0o777)
    with caplog.at_level(logging.WARNING, "acs_cl"):
        for _ in range(3):
            assert cache.load("entry") is None
    (said,) = caplog.messages
    assert "\n" not in said
    for part in (str(folder), "others may write to it (mode 0777)", "ACS_CL_CACHE"):
        assert part in said


def test_what_is_made_is_the_users_alone_whatever_the_umask(
    tmp_path: Path, environment: Environment
) -> None:
    environment(ACS_CL_CACHE=str(tmp_path / "new"))
    before = os.umask(0)
    try:
        cache.store("entry", {"i": 1})
        cache.add_line("entry", "k", {"i": 1})
    finally:
        os.umask(before)
    folder = tmp_path / "new" / "signatures"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
