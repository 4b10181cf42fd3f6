"""Runtimes of a mixed program, with the kernels and queues of each.

In: a device and options. Out: `Place`. A program has several; one that it closed is made anew with
other options. What differs between two runtimes is drawn by `options`.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pyopencl as cl
from pyopencl.characterize import has_coarse_grain_buffer_svm

import acs_cl as acs
from acs_cl.records import LANE_AFTER, LANE_NEW
from mixed.kernels import SOURCE, SPAWNING

BACKENDS = ("serial", "out_of_order", "lanes", "lanes", "device", "device", "auto", "auto")


def options(chance: random.Random) -> dict[str, Any]:
    """Options of a runtime."""
    backend = chance.choice(BACKENDS)
    found: dict[str, Any] = {"backend": backend}
    is_likely = chance.random

    def maybe(name: str, often: float, *choices: Any) -> None:
        if is_likely() < often:
            found[name] = chance.choice(choices)

    maybe("issue", 0.2, "ready_first")
    maybe("window", 0.25, 1, 2, 3, 8)
    maybe("predict", 0.15, False)
    maybe("bands", 0.3, 2, 3, "auto", "lanes", acs.Row())
    maybe("order", 0.2, "critical_path", "auto", "opara")
    maybe("spawn", 0.3, "always", "never", "ccqs")
    maybe("prefetch", 0.15, "on")
    maybe("trace", 0.08, True)
    maybe("profiling", 0.05, True)
    maybe("dependencies", 0.05, "with-const", "no-const")
    if backend == "lanes":
        maybe("lanes", 0.4, 1, 2, 3, 7)
        maybe("lane_after", 0.3, *LANE_AFTER)
        maybe("lane_new", 0.3, *LANE_NEW)
    if backend in ("serial", "out_of_order", "lanes"):
        maybe("memory", 0.3, "buffers")
        maybe("check", 0.06, "access", "order=3")
    maybe("backlog", 0.08, 2, 5, 40)
    return found


def suited(device: cl.Device, chosen: dict[str, Any]) -> dict[str, Any]:
    """Options that a device takes: a scheduler on it needs shared virtual memory."""
    if chosen["backend"] == "device" and not has_coarse_grain_buffer_svm(device):
        return chosen | {"backend": "lanes"}
    return chosen


class Place:
    """A runtime."""

    def __init__(self, device: cl.Device, chosen: dict[str, Any]) -> None:
        self.options = suited(device, chosen)
        self.runtime = acs.Runtime(device, **self.options)
        self.program = self.runtime.build(SOURCE)
        self.spawning = self.runtime.build(SPAWNING)
        self.context = self.runtime.context
        self.queues: list[Any] = []
        self.is_open = True

    @property
    def is_exact(self) -> bool:
        """Whether poison spreads by the bytes that a launch touches."""
        return "dependencies" not in self.options and not self.options.get("check")

    @property
    def cuts(self) -> bool:
        """Whether a launch may be several, of which some read poison and some do not."""
        return self.options.get("bands", "off") != "off"

    @property
    def takes_gates(self) -> bool:
        """Whether launches may wait for events that the program sets later: a backlog has room."""
        return "backlog" not in self.options and not self.options.get("check")

    def close(self) -> None:
        """Close the runtime, whatever has failed there."""
        with contextlib.suppress(acs.PoisonedError):
            self.runtime.close()

    def kernel(self, name: str) -> Any:
        """A kernel."""
        return getattr(self.spawning if name == "give" else self.program, name)

    def queue(self, number: int) -> Any:
        """One of its queues."""
        while len(self.queues) <= number:
            more = {"bypass": False} if len(self.queues) == 1 else {}
            self.queues.append(acs.Queue(self.context, runtime=self.runtime, **more))
        return self.queues[number]
