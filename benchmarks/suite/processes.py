"""Run parts of a benchmark in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any

LAST_S = 30.0
"""Time limit for the end of a process."""


def fresh_python(arguments: Sequence[str], **changes: str) -> tuple[str, float]:
    """Run a new interpreter to its end; return its output, and seconds from its start to its end.

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


class Served:
    """A process that answers each line with a line of JSON, so that processes can be interleaved.
    It writes one line when it is ready."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self) -> Any:
        """Wait for its next line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the benchmark ended with {self._process.wait()}")
        return json.loads(line)

    def ask(self, order: str = "") -> Any:
        """Have it do one more thing, and wait for that."""
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return self.answer()

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(LAST_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
