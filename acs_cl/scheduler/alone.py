"""Running one band alone, to measure what it does.

Input: a scheduler, a launch as its record, and one of its bands. Output: a function that runs the
band on a queue, beside the backend, as often as it is called.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl

from .. import core
from ..devices import driver
from ..devices.driver import OwnKernel, buffer_of, declare_svm, set_arguments
from . import layout
from .bands import Band
from .built import Scheduler
from .children import POOL_INDEX
from .compiling import launch_arguments
from .notes import HEADER
from .task import Task

Run = Callable[[cl.CommandQueue], cl.Event]


def alone(
    context: cl.Context,
    scheduler: Scheduler,
    task: Task,
    band: Band,
    memory: core.native.Reserved,
) -> Run:
    """Return a function that starts a run of a band and returns its event. `memory`: memory that
    the arguments may point to."""
    recorder = layout.Recorder()
    head = layout.band(task.head, band.first, band.tiles, band.run, band.stride)
    recorder.add(head, task.blob, task.shape, ())
    groups, group = min(scheduler.limits.groups, band.tiles), scheduler.limits.group
    image = recorder.image(2 * groups + 64)
    # a kernel object of its own: the core sets only the arguments that it knows of
    native = OwnKernel(scheduler.native.program, scheduler.native.function_name)
    if scheduler.pool is not None:
        native.set_arg(POOL_INDEX, scheduler.pool)
    unread: list[cl.Buffer] = []
    if scheduler.notes is not None:  # a timed form notes nothing here: there is no room
        unread = [buffer_of(context, np.zeros(HEADER, np.uint32))]
        native.set_arg(native.num_args - 1, unread[0])
    kept: list[cl.Buffer] = []

    def run(queue: cl.CommandQueue) -> cl.Event:
        kept[:] = *unread, buffer_of(context, image.words)  # a run changes the counts
        declare_svm(native, list(memory.sizes))
        set_arguments(native, (0, kept[-1]), launch_arguments())
        return driver.run(queue, native, groups * group, group)

    return run
