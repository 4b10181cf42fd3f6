"""Style and types: Ruff and mypy have nothing to say about the tree.

They are configured in pyproject.toml. Both are part of the `dev` extra, so `make test` never skips
them; a run of pytest in some other environment skips what is not installed there, and says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("emu", "benchmarks", "kernels_cl")  # installed below acs_cl, see pyproject.toml


def run_tool(tool: str, *arguments: str, cwd: Path = ROOT) -> str:
    """Run a checker and return what it complains about: empty when it is content."""
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed here: pip install -e '.[dev]'")
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1200,
    )
    return done.stdout if done.returncode else ""


def installed_layout(where: Path) -> Path:
    """Links under `where` that look like the installed package: acs_cl with emu and all in it.

    Type checkers know nothing of the import hook of an editable installation, so they are shown
    the tree as a wheel lays it out. The place is the same at each run, which keeps mypy's cache
    good.
    """
    package = where / "acs_cl"
    package.mkdir(parents=True, exist_ok=True)
    sources = [*(ROOT / "acs_cl").iterdir(), *(ROOT / name for name in MAPPED)]
    wanted = {source.name: source for source in sources if source.name != "__pycache__"}
    if not (where / "inside").exists():
        (where / "inside").symlink_to(ROOT / "tests" / "inside", target_is_directory=True)
    # Only differences are touched, so that two runs of the tests may share the links.
    for link in package.iterdir():
        if link.name not in wanted:
            link.unlink(missing_ok=True)
    for name, source in wanted.items():
        with contextlib.suppress(FileExistsError):
            (package / name).symlink_to(source, target_is_directory=source.is_dir())
    return where


def test_ruff_finds_nothing() -> None:
    folders = ("acs_cl", "tests", "examples", "docs", *MAPPED)
    complaints = run_tool("ruff", "check", "--output-format=concise", *folders)
    assert not complaints, f"\n{complaints}"


PROGRAM = """
import numpy as np
import numpy.typing as npt

import acs_cl as acs
from acs_cl.errors import BuildError, CheckError


def step(rt: acs.Runtime, kernel: acs.Kernel, x: acs.Array) -> acs.Handle:
    with rt.record() as graph:
        kernel((x.size,), None, x[1:], reads=[x], when=x[:1], bands=acs.Row())
    graph.replay(while_=x[:1], at_most=3)
    return kernel((x.size,), (8,), x, np.float32(2))


def values(x: acs.Array) -> npt.NDArray[np.float32]:
    later: acs.Handle = x.get(wait=False)
    later.wait()
    return x.get()


def first_byte(error: CheckError) -> int | None:
    return error.finding.first_byte


def line(error: BuildError) -> int | None:
    return error.line
"""
"""A program of a user: nothing that it returns is `Any` to a type checker."""


def test_a_users_program_is_typed() -> None:
    layout = installed_layout(ROOT / "build" / "typecheck")
    program = ROOT / "build" / "user_program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    complaints = run_tool(
        "mypy", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}", str(program), cwd=layout
    )
    assert not complaints, f"\n{complaints}"


def test_mypy_strict_finds_nothing() -> None:
    layout = installed_layout(ROOT / "build" / "typecheck")
    complaints = run_tool(
        "mypy",
        f"--config-file={ROOT / 'pyproject.toml'}",
        f"--cache-dir={ROOT / '.mypy_cache'}",
        "--package=acs_cl",
        "--package=inside",
        cwd=layout,
    )
    for name in MAPPED:
        complaints = complaints.replace(os.path.join("acs_cl", name, ""), os.path.join(name, ""))
    assert not complaints, f"\n{complaints}"
