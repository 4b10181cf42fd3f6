"""``acs-cl tune``: run a program whose graphs find the best cuts of their launches into bands.

Input: a script, or a module with ``-m``, and its arguments. Output: the program's exit code; on
stderr the cuts, which are kept for launches with ``bands="auto"``. A graph is tuned before its
first replay.
"""

from __future__ import annotations

import argparse
import sys

from ..at_exit import INTERRUPTED
from . import run_script

NOTHING = "acs-cl tune: the program replayed no graph that can be tuned\n"


def main(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    run_script.ready(args)
    code, found = run_script.told(args, "ACS_CL_TUNE")
    if found:
        sys.stderr.write(f'acs-cl tune: for launches with bands="auto"\n{found}')
    elif code != INTERRUPTED:
        sys.stderr.write(NOTHING)
    return code
