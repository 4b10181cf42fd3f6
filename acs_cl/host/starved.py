"""How long threads of this process waited for a processor while others had them all.

Input: the counts of Linux for each thread. Output: seconds. On other systems the answer is 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

THREADS = Path("/proc/self/task")


def waited_s() -> dict[str, float]:
    """Return how long each thread has waited so far."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in THREADS.iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
                _, waited, *_ = (thread / "schedstat").read_text().split()
                found[thread.name] = int(waited) * 1e-9
    return found


def starved_s(before: Mapping[str, float]) -> float:
    """Return the longest wait of any thread since `waited_s` returned `before`."""
    now = waited_s()
    return max((now[one] - before.get(one, 0.0) for one in now), default=0.0)
