"""Decide a network of gates on the device, or by reads: a part of `scheduler`.

Each gate depends on the values of the network itself. Without `when=` the host has to read four
bytes for each one, and to wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import interleave

GATES, GATED_ITEMS = 64, 256

GATES_GAIN = 5.0

ROUNDS = {False: 9, True: 3}  # by "is quick"

SOURCE = """
kernel void gate(global const uint *x, global uint *open, uint which)
{ open[0] = (x[0] >> (which & 7)) & 1u; }
kernel void cell(global uint *x, uint a) { size_t i = get_global_id(0); x[i] = x[i] * 3u + a; }
"""


def gates(settings: Settings) -> dict[str, Any]:
    """Time the network, decided on the device, by reads, and by PyOpenCL alone."""
    with acs.Runtime(settings.device, backend="device", predict=False) as runtime:
        ours, by_bare = Gates(runtime), _BareGates(runtime.context)
        ours.on_device()
        decided = ours.x.get()
        ours.by_reads()
        if not np.array_equal(decided, ours.x.get()):
            raise RuntimeError("gates decided on the device gave something else")
        by_bare()
        if not np.array_equal(decided, by_bare.result()):
            raise RuntimeError("gates decided by bare PyOpenCL gave something else")
        sides: dict[str, Callable[[], float]] = {
            "device": ours.on_device, "reads": ours.by_reads, "bare": by_bare,
        }  # fmt: skip
        samples = interleave(sides, ROUNDS[settings.quick])
    return {
        "on_device_us": spread(samples["device"], 1),
        "by_reads_us": spread(samples["reads"], 1),
        "by_bare_us": spread(samples["bare"], 1),
        "gain": spread(ratios(samples["reads"], samples["device"])),
        "over_bare": spread(ratios(samples["bare"], samples["device"])),
    }


class Gates:
    """The network on a runtime. `on_device` and `by_reads` return microseconds."""

    def __init__(self, runtime: acs.Runtime) -> None:
        self.runtime = runtime
        self.program = runtime.build(SOURCE)
        runtime.prebuild(self.program.gate, self.program.cell)
        self.x = runtime.zeros(GATED_ITEMS, "u4")
        flags = runtime.zeros(GATES, "u4")
        self.views = [flags[i : i + 1] for i in range(GATES)]

    def _begin(self) -> float:
        self.x.fill(12345)
        self.runtime.finish()
        return perf_counter()

    def _took_us(self, begin: float) -> float:
        self.runtime.finish()
        return (perf_counter() - begin) * 1e6

    def launch(self) -> None:
        """Launch the network once. The device decides each gate."""
        program, x = self.program, self.x
        for i, view in enumerate(self.views):
            program.gate((1,), None, x, view, i)
            program.cell((GATED_ITEMS,), None, x, i, when=view)

    def on_device(self) -> float:
        """Decide each gate on the device."""
        begin = self._begin()
        self.launch()
        return self._took_us(begin)

    def by_reads(self) -> float:
        """Read each gate, and decide here."""
        program, x = self.program, self.x
        begin = self._begin()
        for i, view in enumerate(self.views):
            program.gate((1,), None, x, view, i)
            if view.get()[0]:
                program.cell((GATED_ITEMS,), None, x, i)
        return self._took_us(begin)


class _BareGates:
    """The network in bare PyOpenCL: one in-order queue, typed arguments, and a blocking read
    of four bytes for each gate."""

    def __init__(self, context: Any) -> None:
        self.queue = cl.CommandQueue(context)
        program = cl.Program(context, SOURCE).build()
        self.gate, self.cell = program.gate, program.cell
        self.gate.set_scalar_arg_dtypes([None, None, np.uint32])
        self.cell.set_scalar_arg_dtypes([None, np.uint32])
        flags = cl.mem_flags.READ_WRITE
        self.x = cl.Buffer(context, flags, 4 * GATED_ITEMS)
        self.open, self.said = cl.Buffer(context, flags, 4), np.zeros(1, np.uint32)

    def __call__(self) -> float:
        queue, gate, cell, x, said = self.queue, self.gate, self.cell, self.x, self.said
        cl.enqueue_fill_buffer(queue, x, np.array([12345], np.uint32), 0, x.size)
        queue.finish()
        begin = perf_counter()
        for i in range(GATES):
            gate(queue, (1,), None, x, self.open, i)
            cl.enqueue_copy(queue, said, self.open)
            if said[0]:
                cell(queue, (GATED_ITEMS,), None, x, i)
        queue.finish()
        return (perf_counter() - begin) * 1e6

    def result(self) -> Any:
        """Return the result of the network."""
        values = np.empty(GATED_ITEMS, np.uint32)
        cl.enqueue_copy(self.queue, values, self.x)
        return values


def bars_of(gates: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare with bare PyOpenCL with reads, which a user without a scheduler would write."""
    over, same = gates["over_bare"], gates["gain"]
    return [
        target(f"{GATES} gates decided on the device, over bare PyOpenCL in order that reads each",
               over, "at least", GATES_GAIN, "x"),
        target(f"{GATES} gates decided on the device, over a read of each on the same backend",
               same, "at least", None, "x"),
    ]  # fmt: skip
