"""``acs-cl tune`` and ``acs-cl verify``: run a program, and say what became of its graphs.

Input: a script, or a module with ``-m``, and its arguments; for `verify` also a file of
`graph.save`. Output: the program's exit code; on stderr what was found.

`tune` has graphs find their best order, and how to cut launches, before their first replay. That is
kept for graphs with ``order="auto"`` and launches with ``bands="auto"``. `verify` proves each graph
after its recording. Its exit code is 1 if one is not proven.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from pathlib import Path

from .. import at_exit
from ..errors import UsageError
from ..host.environment import changed
from ..runtime import Runtime
from .run_script import as_python_does, ready, too_late

ZIP = b"PK\3\4"
"""The first bytes of a zip."""

FOUND = 'acs-cl tune: for graphs with order="auto", launches with bands="auto"'
UNTUNED = "acs-cl tune: the program replayed no graph that can be tuned\n"
UNRECORDED = "acs-cl verify: the program recorded no graph (`with rt.record() as graph:`)\n"


def tune(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    ready(args)
    code, found = told(args, "ACS_CL_TUNE")
    sys.stderr.write(too_late(args, "--backend"))
    if found:
        sys.stderr.write(f"{FOUND}\n{found}")
    elif code != at_exit.INTERRUPTED:
        sys.stderr.write(UNTUNED)
    return code


def verify(args: argparse.Namespace) -> int:
    """Run the program; return its exit code, or 1 if a graph is not proven."""
    ready(args)
    if not args.module and is_graph(args.program):
        if args.arguments:
            raise UsageError(
                f"{args.program} is a graph and takes no arguments, got "
                f"{' '.join(args.arguments)}; options come before it"
            )
        with Runtime(backend=args.backend or "device") as rt:
            found = rt.load(args.program).verify()
            outcome = "proven" if found.proofs else "nothing to prove"
            print(f"acs-cl verify: {outcome}: {found}", file=sys.stderr)
        return 0
    code, text = told(args, "ACS_CL_VERIFY")
    lines = text.splitlines()
    sys.stderr.write(too_late(args, "--backend"))
    if code:
        print(f"acs-cl verify: the program ended with exit code {code}", file=sys.stderr)
    if lines or not code:
        sys.stderr.write(said(lines))
    return code


def told(args: argparse.Namespace, variable: str) -> tuple[int, str]:
    """Run a program with an environment variable that names a file for the library's texts. Return
    its exit code and these texts, also after Ctrl-C."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "told")
        values = {variable: str(out)}
        if args.backend:
            values["ACS_CL_BACKEND"] = args.backend
        try:
            with changed(values):
                code = as_python_does(args.program, args.module, args.arguments)
        except KeyboardInterrupt:
            print(f"acs-cl {args.command}: interrupted", file=sys.stderr)
            at_exit.interrupted, code = True, at_exit.INTERRUPTED
        return code, out.read_text("utf-8") if out.exists() else ""


def is_graph(path: str) -> bool:
    """Tell whether a file comes from `graph.save`. A zip that is not whole counts, because only
    loading it says what is wrong."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "graph.json" in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        with Path(path).open("rb") as file:
            return file.read(len(ZIP)) == ZIP
    except OSError:
        return False


def said(lines: list[str]) -> str:
    """Return the proofs as text; equal graphs appear once."""
    if not lines:
        return UNRECORDED
    text = f"acs-cl verify: graphs recorded {len(lines)}, and proven as far as they are segments\n"
    for line in dict.fromkeys(lines):
        count = lines.count(line)
        text += f"  {line}" + (f" ({count} times)\n" if count > 1 else "\n")
    if all("segment 1" not in line for line in lines):
        text += "  --backend device has the scheduler run them, whose words can be proven\n"
    return text
