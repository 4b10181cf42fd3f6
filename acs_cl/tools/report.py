"""``acs-cl report``: a page about a timeline that a program has saved.

Input: a file of `rt.measure().save`, `rt.trace.save` or ``ACS_CL_TRACE``. Output: an HTML file that
needs no network; its path on stdout.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..host.output import refuse_same
from ..observe.record import load
from ..observe.report.page import write


def main(args: argparse.Namespace) -> int:
    """Write the page; return the exit code."""
    timeline = Path(args.timeline)
    record = load(timeline)
    if args.title:
        record = record._replace(title=args.title)
    out = Path(args.out) if args.out else timeline.with_suffix(".html")
    refuse_same(timeline, out)
    write(record, out, not args.no_what_if)
    count = len(record.slices)
    launches = "1 launch" if count == 1 else f"{count} launches"
    print(f"{out}: {launches}, {out.stat().st_size / 1e6:.2f} MB")
    return 0
