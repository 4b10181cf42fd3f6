"""The sources of a figure: their commit, and a digest that proves it.

Input: the sources that run, and git in a checkout. Output: `Sources`, which goes into every result,
and a stamp, which carries a commit to a machine without a checkout:

    make stamp                             # here: prints it, and leaves it in build/stamp
    ACS_CL_COMMIT="$(cat stamp)" ...       # there

A commit that was typed beside a result proves nothing. So a stamp holds the digest of its sources,
and a run with other sources refuses it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from acs_cl import UsageError, core

VARIABLE = "ACS_CL_COMMIT"
PACKAGES = ("acs_cl", "acs_cl.benchmarks", "acs_cl.emu", "acs_cl.kernels_cl")
KINDS = (".py", ".cl", ".h")
"""Endings of files that run; the core's own digest has the C++ ones."""
CHANGED = "with changes"
DIGITS = 16


class Sources(NamedTuple):
    """The sources of a figure."""

    commit: str
    """Empty: not known. It has a mark if the sources differ from it."""
    digest: str
    """Digest of all that runs, the core's own sources included."""

    @property
    def changed(self) -> bool:
        """Tell whether no commit has exactly these sources."""
        return not self.commit or CHANGED in self.commit

    def plain(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return self._asdict()


def sources() -> Sources:
    """Return the sources that run now. Raise `UsageError` if the environment's stamp has others."""
    now = digest()
    root = Path(__file__).resolve().parents[2]
    if (root / ".git").exists():
        return Sources(_of_checkout(root), now)
    stamp = os.environ.get(VARIABLE, "")
    if not stamp:
        return Sources("", now)
    commit, _, stamped = stamp.strip().rpartition(" ")
    if not commit or stamped != now:
        raise UsageError(
            f"{VARIABLE}={stamp!r}: expected '<commit> {now}', since these sources run here"
        )
    return Sources(commit, now)


def digest() -> str:
    """Return the digest of all our code that runs; equal for a checkout and for a wheel of it."""
    whole = sha256()
    for name, path in sorted(_files()):
        whole.update(f"{name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    whole.update(f"core {core_digest()}\n".encode())
    return whole.hexdigest()[:DIGITS]


def core_digest() -> str:
    """Return the digest of the sources that the core was built from."""
    return core.native.SOURCES


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        folder = Path(str(import_module(package).__file__)).parent
        nested = {folder / other.rpartition(".")[2] for other in PACKAGES}
        for path in folder.rglob("*"):
            below = path.relative_to(folder)
            if path.suffix in KINDS and "_core" not in below.parts and not nested & {*path.parents}:
                yield f"{package}/{below.as_posix()}", path


def _of_checkout(root: Path) -> str:
    """Return the commit, marked if any file that runs differs from it, the built core included."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short=7", "HEAD")
        what = ("acs_cl", "benchmarks/*.py", "emu", "kernels_cl")
        changed = git("status", "--porcelain", "--", *what)
    except OSError:
        return ""
    stale = core_digest() != tree_core_digest(root)
    return f"{commit} {CHANGED}" if commit and (changed or stale) else commit


def tree_core_digest(root: Path) -> str:
    """Return `core_digest` for a core built from this tree; CMake computes it in the same way."""
    whole = sha256()
    core_folder = root / "acs_cl/_core"
    names = [path.relative_to(core_folder).as_posix() for path in core_folder.rglob("*.?pp")]
    for name in sorted(names, key=str.encode):
        whole.update(f"{name} {sha256((core_folder / name).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:DIGITS]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the stamp of these sources; exit code 1 if no commit has them."""
    ArgumentParser(prog="benchmarks stamp", description=main.__doc__).parse_args(argv)
    found = sources()
    if found.changed:
        print(f"these sources are not those of a commit: {found.commit!r}", file=sys.stderr)
        return 1
    print(f"{found.commit} {found.digest}")
    return 0
