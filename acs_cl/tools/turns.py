"""Turns: run a program on its own queues and on ours, interleaved, and compare the times.

Input: the program, its arguments, and the number of turns. Output: seconds of each run, and a
sentence. Each run has a process of its own, whose output is dropped. Nothing is traced there, so
launches take their usual routes. A run before the first turn fills the caches of the driver for
both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from ..host.progress import Progress

OWN, OURS = "on its own queues", "on ours"
HAS_OURS = "acs_cl.Queue"
"""What a run by itself writes behind its seconds if its queues are ours anyway."""

_ALONE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
from acs_cl.tools.run_script import alone
sys.exit(alone(*sys.argv[1:5], sys.argv[5:]))
"""


def in_turns(args: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Return the seconds of each run on both sides. Empty: one failed, or the program's own queues
    are ours, which is said under that name. `folder`: where it begins."""
    say = Progress()
    times: dict[str, list[float]] = {OWN: [], OURS: []}
    runs = [OWN]  # not counted
    for turn in range(args.turns):
        runs += (OWN, OURS) if turn % 2 else (OURS, OWN)
    try:
        for index, side in enumerate(runs):
            say(f"the program runs again, {side}", index / len(runs))
            said = _run(args, folder, side)
            if not said:
                return {}
            if side == OWN and said[1:]:
                return {HAS_OURS: []}
            if index:
                times[side].append(float(said[0]))
    finally:
        say.end()
    return times


def _run(args: argparse.Namespace, folder: Path, side: str) -> list[str]:
    """Run the program in another process. Return what it wrote: its seconds, and maybe `HAS_OURS`.
    Empty: it failed there."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "seconds")
        queues = (args.backend or "auto") if side == OURS else ""
        told = [args.program, "module" if args.module else "", str(out), queues, *args.arguments]
        done = subprocess.run(
            [sys.executable, "-c", _ALONE, *told],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=folder, check=False,
        )  # fmt: skip
        return out.read_text("ascii").split() if done.returncode == 0 and out.exists() else []


def compared(times: Mapping[str, Sequence[float]]) -> str:
    """Say what a program gained. `times`: the seconds of each run."""
    if not times:
        return "  no times to compare: the program failed\n"
    if HAS_OURS in times:
        return f"  nothing to compare: the program makes {HAS_OURS}s by itself\n"
    own, ours = sorted(times[OWN]), sorted(times[OURS])
    ratio = median(own) / max(median(ours), 1e-9)
    apart = ours[-1] < own[0] or own[-1] < ours[0] if len(own) > 1 else True
    doubt = "" if apart else "; the runs vary by more than that"
    return (
        f"  took {_spread(ours)} {OURS}, {_spread(own)} {OWN}: {ratio:.2f}x "
        f"(interleaved, medians of {len(own)}{doubt})\n"
    )


def _spread(seconds: Sequence[float]) -> str:
    if len(seconds) == 1:
        return f"{seconds[0]:.3f} s"
    return f"{median(seconds):.3f} s ({seconds[0]:.3f} .. {seconds[-1]:.3f})"
