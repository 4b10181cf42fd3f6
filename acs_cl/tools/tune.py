"""``acs-cl tune``: run a program whose graphs find their best order, and how to cut launches.

Input: a script, or a module with ``-m``, and its arguments. Output: the program's exit code; on
stderr what was found, which is kept for graphs with ``order="auto"`` and launches with
``bands="auto"``. A graph is tuned before its first replay.
"""

from __future__ import annotations

import argparse
import sys

from ..at_exit import INTERRUPTED
from . import run_script

FOUND = 'acs-cl tune: for graphs with order="auto", launches with bands="auto"'
NOTHING = "acs-cl tune: the program replayed no graph that can be tuned\n"


def main(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    run_script.ready(args)
    code, found = run_script.told(args, "ACS_CL_TUNE")
    if found:
        sys.stderr.write(f"{FOUND}\n{found}")
    elif code != INTERRUPTED:
        sys.stderr.write(NOTHING)
    return code
