"""What is told of the bands of a recorded launch.

In: a segment and a launch of it. Out: text.
"""

from __future__ import annotations

from ..scheduler.laying import JOINT
from ..scheduler.segment import Segment

MOST_TOLD = 64
"""Bands that are told one by one."""


def told(segment: Segment, launch: int) -> str:
    """Say into how many bands a launch is cut, what each writes and waits for; or why it is not."""
    laid, cuts = segment.laid, segment.cuts[launch]
    own = laid.tasks[launch]
    if not cuts.bands:
        return f"bands: off, since {cuts.reason}"
    lines = [f"bands: {len(own)}"]
    for number, (task, band) in enumerate(zip(own, cuts.bands, strict=True)):
        if number == MOST_TOLD:
            lines.append(f"  and {len(own) - number:,} more")
            break
        writes = "; ".join(map(str, band.access.writes)) or "nothing"
        lines.append(
            f"  band {number}, tiles {band.tiles}: {_waits(segment, task)}; writes {writes}"
        )
    return "\n".join(lines)


def _waits(segment: Segment, task: int) -> str:
    laid = segment.laid
    of: dict[int, list[int]] = {}
    for above in laid.upstream[task]:
        joined = laid.upstream[above] if laid.launches[above] == JOINT else (above,)
        for one in joined:
            of.setdefault(laid.launches[one], []).append(one)
    found = []
    for launch, tasks in sorted(of.items()):
        theirs = laid.tasks[launch]
        bands = _runs([task - theirs.start for task in tasks]) if len(theirs) > 1 else ""
        found.append(f"{bands}launch {segment.places[launch] + 1}")
    return f"waits for {', '.join(found)}" if found else "waits for nothing"


def _runs(bands: list[int]) -> str:
    """Numbers of bands, with runs of them in short."""
    runs: list[list[int]] = []
    for band in sorted(bands):
        if runs and band == runs[-1][-1] + 1:
            runs[-1].append(band)
        else:
            runs.append([band])
    text = ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs)
    return f"band{'s' if len(bands) > 1 else ''} {text} of "
