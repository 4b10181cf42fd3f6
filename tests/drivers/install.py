"""Fetch drivers into build/drivers: Intel's CPU runtime by pip, Oclgrind and Rusticl from Debian.

In: the name of a driver. Out: the environment in which PyOpenCL finds it, or `Missing` with the
reason. Nothing is installed on the system but, for Rusticl, `libclc`, which Mesa looks for in one
place only; that takes root. What was fetched before is used as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / "build" / "drivers"
INTEL = PLACE / "intel" / "lib" / "libintelocl.so"
SYSTEM = Path("/")
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
LIBCLC = Path("/usr/lib/clc/spirv64-mesa3d-.spv")
PLATFORM = "ACS_CL_TEST_PLATFORM"
"""The tests take only devices whose platform has this in its name."""

Environment = dict[str, str]


class Missing(Exception):  # noqa: N818  (no fault of anybody)
    """A driver that cannot be had here, and why."""


def at_hand() -> Environment:
    """The driver that PyOpenCL finds by itself: a GPU's, or that of PoCL's wheel."""
    return {}


def pocl() -> Environment:
    """PoCL, which PyOpenCL brings along if its wheel is installed."""
    return _environment("Portable", _vendors("pocl"))


def intel() -> Environment:
    """Intel's CPU runtime. The files by which its wheel registers hold a path that is nowhere."""
    _needs_linux()
    with _alone():
        if not INTEL.exists():
            _fetch_intel(INTEL.parents[1])
    return _environment("Intel", _vendors("intel", INTEL))


def _fetch_intel(place: Path) -> None:
    """All of it, or nothing. Where there is no network, that is told soon."""
    requirements, new = extra("drivers"), place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    print(f"fetching {', '.join(requirements)}", flush=True)
    _run([
        sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
        "--retries", "1", "--timeout", "20", "--prefix", str(new), "--ignore-installed",
        "--no-compile", "--no-warn-script-location", *requirements,
    ])  # fmt: skip
    new.replace(place)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One process at a time fetches; others wait for it."""
    import fcntl  # not on every system

    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def oclgrind() -> Environment:
    """A simulator, which has no threads and no shared virtual memory."""
    place = _unpacked("oclgrind", "oclgrind")
    library = place / "usr/lib/oclgrind/liboclgrind-rt-icd.so"
    return _environment("Oclgrind", _vendors("oclgrind", library), place)


def rusticl() -> Environment:
    """Mesa's, on its rasterizer for CPUs."""
    place = _unpacked("rusticl", "mesa-opencl-icd")
    if not LIBCLC.exists():
        if os.geteuid():
            raise Missing(f"it needs {LIBCLC}: install Debian's libclc, which takes root")
        wanted = [one for one in _not_installed("mesa-opencl-icd") if one.startswith("libclc-")]
        _run(["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *wanted])
    library = place / LIBRARIES / "libRusticlOpenCL.so.1"
    found = _environment("rusticl", _vendors("rusticl", library), place)
    return found | {"RUSTICL_ENABLE": "llvmpipe"}


DRIVERS: dict[str, Callable[[], Environment]] = {
    "at hand": at_hand,
    "PoCL": pocl,
    "Intel": intel,
    "Oclgrind": oclgrind,
    "Rusticl": rusticl,
}


def extra(name: str) -> list[str]:
    """The requirements of one of the extras of this project."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{name} = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise Missing(f"pyproject.toml has no extra {name!r}")
    return re.findall(r'"([^";]+)[^"]*"', found[1])


def _environment(name: str, vendors: Path, place: Path = SYSTEM) -> Environment:
    found = {"OCL_ICD_VENDORS": str(vendors), "PYOPENCL_CTX": name, PLATFORM: name}
    if place != SYSTEM:
        found["LD_LIBRARY_PATH"] = str(place / LIBRARIES)
    return found


def _vendors(name: str, *libraries: Path) -> Path:
    """A folder that registers these libraries and no others."""
    folder = PLACE / "vendors" / name
    folder.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        if not library.exists():
            raise Missing(f"no {library.name} in what was fetched")
        (folder / f"{name}.icd").write_text(f"{library}\n", encoding="utf-8")
    return folder


def _needs_linux() -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Missing(f"there is none for {platform.machine()} {platform.system()}")


def _unpacked(name: str, package: str) -> Path:
    """A Debian package and what it needs, unpacked and not installed, which takes no root. The
    system's own, if it has the package."""
    _needs_linux()
    place = PLACE / name
    if not (place / "usr").exists():
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise Missing(f"no {tool} on this machine")
        wanted = _not_installed(package)
        if package not in wanted:
            return SYSTEM
        archives = place / "archives"
        archives.mkdir(parents=True, exist_ok=True)
        print(f"fetching Debian's {package}", flush=True)
        _run(["apt-get", "download", "--quiet", *wanted], archives)
        for archive in sorted(archives.glob("*.deb")):
            _run(["dpkg-deb", "--extract", str(archive), str(place)])
        shutil.rmtree(archives)
    return place


def _not_installed(package: str) -> list[str]:
    """A package and what it needs that is not there yet."""
    listed = _run(["apt-get", "install", "--simulate", "--no-install-recommends", package])
    found = re.findall(r"^Inst (\S+)", listed, re.MULTILINE)
    return [one for one in found if not re.search(r"-dev$|^lib32|-i386$", one)]


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Missing(f"{' '.join(command[:3])} failed: {''.join(last)}")
    return done.stdout


def main() -> int:
    """Fetch what was named. Fail where something that exists for this machine did not come."""
    parser = argparse.ArgumentParser(description="fetch drivers into build/drivers")
    parser.add_argument("drivers", nargs="+", choices=sorted(DRIVERS))
    code = 0
    for name in parser.parse_args().drivers:
        try:
            DRIVERS[name]()
        except Missing as missing:
            print(f"{name} is not here: {missing}")
            code = code or int("failed" in str(missing))
    return code


if __name__ == "__main__":
    sys.exit(main())
