"""How long threads of this process had to wait for a processor, while others had them all.

In: what the kernel of Linux counts for each thread. Out: seconds. Elsewhere nobody tells, and 0 is
the answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

THREADS = Path("/proc/self/task")


def waited_s() -> dict[str, float]:
    """How long each thread has waited so far."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in THREADS.iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
                _, waited, *_ = (thread / "schedstat").read_text().split()
                found[thread.name] = int(waited) * 1e-9
    return found


def starved_s(before: Mapping[str, float]) -> float:
    """How long the thread has waited that waited longest, since `waited_s` told this."""
    now = waited_s()
    return max((now[one] - before.get(one, 0.0) for one in now), default=0.0)
