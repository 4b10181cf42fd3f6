"""Runs the scheduler kernel on a device without shared virtual memory or atomics of OpenCL 2, as
the simulator Oclgrind: atomics of OpenCL 1.2 stand in, and a kernel tells addresses of buffers.

`python grind.py GROUPS...` runs a graph with each number of groups and prints `right` for each.
"""

from __future__ import annotations

import random
import struct
import sys
import warnings
from typing import Any

import numpy as np
import pyopencl as cl
from graphs import NONE, SOURCE, Task, expected, graph, row_of

from acs_cl import devices
from acs_cl.launch.commands import KernelCommand
from acs_cl.opencl_c.functions.translation import translate
from acs_cl.opencl_c.kernel_files import kernel_source
from acs_cl.scheduler import layout
from acs_cl.scheduler.source import Body as Case
from acs_cl.scheduler.source import scheduler_source
from acs_cl.scheduler.task import Body, Limits

ATOMICS = """
#define acs_word(p) ((volatile __global uint *)(p))
#define acs_fence() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define acs_load(p) atomic_or(acs_word(p), 0u)
#define acs_load_acquire(p) atomic_or(acs_word(p), 0u)
#define acs_store(p, v) ((void)atomic_xchg(acs_word(p), (v)))
#define acs_add(p, v) atomic_add(acs_word(p), (v))
#define acs_sub_release_acquire(p, v) atomic_sub(acs_word(p), (v))
#define acs_or_acquire(p, v) atomic_or(acs_word(p), (v))
#define acs_exchange(p, v) atomic_xchg(acs_word(p), (v))
#define acs_swap_if_acquire(p, expected, desired) atomic_cmpxchg(acs_word(p), (expected), (desired))
#define acs_rest(looks)
inline ulong acs_clock_ns(void) { return 0; }
#define acs_group_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
"""

OPTIONS = ["-cl-opt-disable"]
"""Oclgrind does not know all that the optimiser makes."""

ADDRESS = "kernel void address(global uint *p, global ulong *out) { out[0] = (ulong)p; }"


class Bench:
    """A scheduler for groups of one size, on the only device there is."""

    def __init__(self, group: int, groups: int) -> None:
        device = devices.choose()
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.group, self.groups = group, groups
        found = translate(SOURCE, (), device, "k_")
        names = ["node", "flat"] if group == 1 else ["node", "turn", "swap"]
        functions = [found.functions[name] for name in names]
        text = scheduler_source(
            "c11", group, 1024, 64, [Case(one.symbol, one.tiled) for one in functions],
            [found.text], steady=False,
        )  # fmt: skip
        model = kernel_source("memory_model.h")
        assert model in text
        text = text.replace(model, ATOMICS)
        program = cl.Program(self.context, text).build(OPTIONS, cache_dir=False)
        self.kernel = cl.Kernel(program, "acs_scheduler")
        self.teller = cl.Kernel(cl.Program(self.context, ADDRESS).build(cache_dir=False), "address")
        limits = Limits(group, 1024, groups, 3 * groups)
        self.bodies = {
            name: Body(function, number, limits)
            for number, (name, function) in enumerate(zip(names, functions, strict=True))
        }

    def buffer(self, values: Any) -> tuple[Any, int]:
        """A buffer and its address."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        made, out = (cl.Buffer(self.context, flags, hostbuf=one) for one in (values, np.zeros(1)))
        self.teller(self.queue, (1,), (1,), made, out)
        address = np.zeros(1, np.uint64)
        cl.enqueue_copy(self.queue, address, out)
        return made, int(address[0])

    def record(self, tasks: list[Task], v: int, hits: int) -> layout.Recorder:
        """The tasks, on memory at two addresses."""
        recorder = layout.Recorder()
        for number, task in enumerate(tasks):
            ups = [*task.upstream, NONE, NONE, NONE][:3]
            sizes = [tasks[up].size if up != NONE else 1 for up in ups]
            numbers = [row_of(tasks), number, *ups, *sizes]
            values = [x for i, one in enumerate(numbers) for x in (2 + i, struct.pack("<I", one))]
            size: tuple[int, ...] = (task.size,)
            if task.kernel == "flat":
                width = next(w for w in (8, 4, 2, 1) if task.size % w == 0)
                size = (width, task.size // width)
            local = (task.local,) if task.local else None
            command = KernelCommand(task.kernel, None, size, local, (), tuple(values), None)
            made = self.bodies[task.kernel].task(command, lambda address: True)
            blob = made.blob
            assert blob is not None
            recorder.add(
                made.head, struct.pack("<QQ", v, hits) + blob[16:], made.shape, task.upstream
            )
        return recorder

    def run(self, tasks: list[Task], turns: int, polls: int, window: int) -> None:
        """Run until nothing is left, and compare."""
        nothing = np.zeros((len(tasks), row_of(tasks)), np.uint32)
        (v, v_at), (hits, hits_at) = self.buffer(nothing), self.buffer(nothing)
        recorder = self.record(tasks, v_at, hits_at)
        image = recorder.image(64 * self.groups + 64, window=window, gang=polls > 0)
        region, _ = self.buffer(image.words)
        status = np.ones(layout.STATUS_WORDS, np.uint32)
        for left in range(200, -1, -1):
            numbers = np.array([0, turns if left else 1 << 30, polls], np.uint32)
            self.kernel.set_args(region, *numbers, np.uint64(0), np.uint32(0))
            size = self.groups * self.group
            cl.enqueue_nd_range_kernel(self.queue, self.kernel, (size,), (self.group,))
            cl.enqueue_copy(self.queue, status, region, src_offset=4 * image.block)
            if not status[layout.UNFINISHED]:
                break
        assert status[layout.FAULT] == status[layout.UNFINISHED] == 0
        got, ran = np.ones_like(nothing), np.ones_like(nothing)
        cl.enqueue_copy(self.queue, got, v)
        cl.enqueue_copy(self.queue, ran, hits)
        assert (got == expected(tasks)).all()
        for number, task in enumerate(tasks):
            assert (ran[number, : task.size] == 1).all()
            assert not ran[number, task.size :].any()


def main(counts: list[int]) -> None:
    """A few graphs with each number of groups."""
    for groups in counts:
        for group in (1, 4, layout.RECORD_WORDS):  # which reads records ahead, as GPUs do
            bench = Bench(group, groups)
            kernels = ("node", "flat") if group == 1 else ("node", "turn", "swap")
            for seed, (turns, polls, window) in enumerate(
                ((1 << 30, 0, 0), (2, 0, 0), (1 << 30, 2, 0), (1 << 30, 0, 3))
            ):
                rng = random.Random(100 * groups + seed)
                tasks = graph(
                    rng, 12, kernels=kernels, sizes=(1, 5, 20, 300), locals_=(group,),
                    chains=2 if group == layout.RECORD_WORDS else 0,
                )  # fmt: skip
                bench.run(tasks, turns, polls, window)
                print("right", groups, group, seed, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main([int(one) for one in sys.argv[1:]])
