"""Take a part of a product of parameters for each commit, and all of it over the commits.

A test on every backend with every kind of memory states one claim many times. The marker
`rotate("parameter", n)` keeps n values of that parameter for each combination of the others. Which
ones they are changes with the combination and with the files of the commit. So every value has its
turn, and whoever tests one commit tests the same. `ACS_CL_EVERY=1` keeps all.
`ACS_CL_SAMPLE=n` takes another sample; a run tells its own on top.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import cast
from zlib import crc32

import pytest


def _of_these_sources() -> int:
    """Return a number for what HEAD holds. Without a repository it is that of the day."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD^{tree}"]
    try:
        told = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return int(time.time() // 86_400)
    return int(told.stdout[:5], 16)


# In the environment, since the processes of one run have to choose alike.
SAMPLE = int(os.environ.get("ACS_CL_SAMPLE") or _of_these_sources())
os.environ["ACS_CL_SAMPLE"] = str(SAMPLE)
EVERY = bool(os.environ.get("ACS_CL_EVERY"))


def header() -> str:
    """Say how to take the same part again."""
    return "sample: everything" if EVERY else f"sample: ACS_CL_SAMPLE={SAMPLE} takes the same again"


def places(key: object, count: int, keep: int) -> set[int]:
    """Choose so many of `count` places in this sample, far from each other."""
    first = crc32(repr(key).encode()) + SAMPLE
    return {(first + turn * count // keep) % count for turn in range(keep)}


def of_other_samples(items: list[pytest.Item]) -> set[pytest.Item]:
    """Find the tests that a run leaves out."""
    groups: dict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in [] if EVERY else items:
        values = getattr(getattr(item, "callspec", None), "params", {})
        for parameter, keep in (marker.args for marker in item.iter_markers("rotate")):
            if parameter in values:
                others = tuple(repr(values[name]) for name in values if name != parameter)
                function = item.nodeid.partition("[")[0]
                groups[keep, function, parameter, others].append(item)
    left: set[pytest.Item] = set()
    for (keep, *_), group in groups.items():
        kept = places(group[0].nodeid, len(group), min(cast(int, keep), len(group)))
        left |= {item for place, item in enumerate(group) if place not in kept}
    return left
