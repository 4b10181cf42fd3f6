"""Run parts of a benchmark in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter


def fresh_python(arguments: Sequence[str], **changes: str) -> tuple[str, float]:
    """Run a new interpreter to its end: what it printed, and seconds from its start to its end.

    It may keep its byte code, as installed packages do.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.update(changes)
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    took_s = perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a process of the benchmark failed:\n{done.stderr.strip()}")
    return done.stdout, took_s
