"""Build a wheel whose core is laid out by how programs ran, as CPython's own binaries are.

    python packaging/profiled.py python3.12 FOLDER

Input: an interpreter with its headers. Output: a wheel of these sources in the folder. A core that
counts its branches is built first, the programs of `training.py` run on it, and the core of the
wheel is compiled by the counts. A launch then takes the host less time
(docs/notes/2026-11-30-profiled-wheels.md).

It takes GCC, and an OpenCL device, as PoCL's wheel brings one for Linux on x86-64. Without these
the wheel is built plainly, and the output says so. `--set NAME=VALUE` is for CMake.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("cmake>=3.18", "nanobind>=2.4", "ninja>=1.11", "pip>=23", "scikit-build-core>=0.11")
BUILD = ROOT / "build" / "profiled"


OURS = ("PYTHON", "ACS_CL_", "SKBUILD_", "VIRTUAL_ENV")
"""How variables begin that would change what is built, or what runs."""


def ask(
    *command: str | Path, folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    kept |= {"ACS_CL_POCL_CPU": os.environ.get("ACS_CL_POCL_CPU", "auto"), **environment}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=kept, capture_output=True, text=True, check=False)


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """Return what a command says. It must not fail."""
    done = ask(*command, folder=folder, **environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(python: str, where: Path, *packages: str | Path) -> Path:
    """Make a new environment, and return the folder of its commands."""
    run(python, "-m", "venv", "--clear", where)
    commands = where / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", *packages)
    return commands


def wheel(python: Path, out: Path, defines: dict[str, str]) -> Path:
    """Build a wheel. The object files have the same paths each time: counts are found by these."""
    made = BUILD / "made"
    shutil.rmtree(made, ignore_errors=True)
    all_defines = {"ACS_CL_PROFILE": "", **defines}  # CMake keeps those of the build before
    settings = {f"cmake.define.{name}": value for name, value in all_defines.items()}
    settings["build-dir"] = str(BUILD / "objects")
    given = [f"--config-settings={name}={value}" for name, value in settings.items()]
    pip = (python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps")
    run(*pip, "--no-build-isolation", *given, "--wheel-dir", made, ROOT)
    (found,) = made.glob("*.whl")
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(found, out / found.name))


def is_gcc() -> bool:
    """Tell whether CMake's compiler is GCC: others name and read their counts in other ways."""
    compiler = os.environ.get("CXX", "c++")
    try:
        said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return "Free Software Foundation" in said.stdout


def profiled(interpreter: str, out: Path, defines: dict[str, str]) -> Path:
    """Build the wheel for an interpreter."""
    shutil.rmtree(BUILD, ignore_errors=True)
    python = environment(interpreter, BUILD / "venv", *TOOLS) / "python"
    if not is_gcc():
        print("built plainly: the compiler is not GCC", file=sys.stderr)
        return wheel(python, out, defines)
    counts = {"ACS_CL_COUNTS": str(BUILD / "counts")}
    counting = wheel(python, BUILD, {**defines, **counts, "ACS_CL_PROFILE": "count"})
    run(python, "-m", "pip", "install", "--quiet", f"acs_cl[pocl] @ {counting.as_uri()}")
    found = ask(python, "-c", "from acs_cl import devices; devices.choose()", folder=BUILD)
    if found.returncode:
        print(f"built plainly: no device to count on\n{found.stderr}", file=sys.stderr)
        return wheel(python, out, defines)
    kept = str(BUILD / "cache")  # no scheduler of other programs is at hand, as on a new machine
    run(python, ROOT / "packaging" / "training.py", folder=BUILD, XDG_CACHE_HOME=kept)
    return wheel(python, out, {**defines, **counts, "ACS_CL_PROFILE": "use"})


def main() -> None:
    """Build one wheel, and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="an interpreter")
    parser.add_argument("out", type=Path, help="the folder of the wheel")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    defines = dict(one.split("=", 1) for one in given.set)
    print(profiled(given.python, given.out.resolve(), defines))


if __name__ == "__main__":
    main()
