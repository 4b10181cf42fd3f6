"""``acs-cl verify``: prove the graph of a file, or every graph that a program records.

Input: a file of `graph.save`; or a script, or a module with ``-m``, and its arguments. Output: the
program's exit code, or 1; on stderr the proofs. A graph is proven after its recording, before its
first replay.
"""

from __future__ import annotations

import argparse
import sys
import zipfile

from ..runtime import Runtime
from . import run_script

NOTHING = "acs-cl verify: the program recorded no graph (`with rt.record() as graph:`)\n"


def main(args: argparse.Namespace) -> int:
    """Run the program; return its exit code, or 1 if a graph is not proven."""
    run_script.ready(args)
    if not args.module and is_graph(args.program):
        with Runtime(backend=args.backend or "device") as rt:
            print(f"acs-cl verify: {rt.load(args.program).verify()}", file=sys.stderr)
        return 0
    code, text = run_script.told(args, "ACS_CL_VERIFY")
    lines = text.splitlines()
    if code:
        print(f"acs-cl verify: the program ended with exit code {code}", file=sys.stderr)
    if lines or not code:
        sys.stderr.write(said(lines))
    return code


def is_graph(path: str) -> bool:
    """Tell whether a file comes from `graph.save`."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "graph.json" in archive.namelist()


def said(lines: list[str]) -> str:
    """Return the proofs as text; equal graphs appear once."""
    if not lines:
        return NOTHING
    text = f"acs-cl verify: graphs recorded {len(lines)}, and proven as far as they are segments\n"
    for line in dict.fromkeys(lines):
        count = lines.count(line)
        text += f"  {line}" + (f" ({count} times)\n" if count > 1 else "\n")
    if all("segment 1" not in line for line in lines):
        text += "  --backend device has the scheduler run them, whose words can be proven\n"
    return text
