"""Records of the modelled parts: devices, hosts, the hardware window, our scheduler.

Input: whole numbers; `machines` has those of known parts, with their sources. Output: frozen
records. `free` removes the overheads of a machine, for bounds and tests.
"""

from __future__ import annotations

from typing import NamedTuple


class GpuSpec(NamedTuple):
    """A device. Per compute unit: threads, groups, registers, local memory (0: no limit)."""

    name: str
    units: int
    threads: int
    groups: int
    registers: int
    local_bytes: int
    warp: int
    """Threads are allocated in multiples of this."""
    kernels: int
    """Kernels that may run at the same time."""
    clock_mhz: int
    flops_per_cycle: int
    """Rate of a unit. 0: not known; then a trace has to tell the time of groups."""
    bytes_per_ns: int
    """Bandwidth of the whole device's memory."""
    group_bytes_per_cycle: int
    """Bandwidth of one group at most."""
    step_cycles: int = 0
    """Latency of an arithmetic operation whose result the next one needs."""
    load_cycles: int = 0
    """Latency of a load whose result is needed."""
    begin_cycles: int = 0
    """From when a kernel may run to its first group, whatever else runs meanwhile. 0 on real parts:
    the host's constants include it."""

    @property
    def whole(self) -> tuple[str, int]:
        """Return the unit of occupancy and its number: threads; or compute units, if each has one
        group of any size, as on a CPU."""
        if self.groups == 1:
            return "units", self.units
        return "threads", self.units * self.threads


class HostSpec(NamedTuple):
    """The program's side. All times are nanoseconds, and for each launch unless stated
    otherwise."""

    name: str
    launch_ns: int
    latency_ns: int
    """From the end of the call to the device. 0: known only as a part of `sync_ns`."""
    event_ns: int
    """Extra time of a launch that waits for an event of another stream."""
    sync_ns: int
    """From the end of a kernel to the thread that waits for it."""
    edge_ns: int
    """From the end of a kernel to the start of the next in a stream or behind an event."""
    queue_depth: int
    """Most launches sent and not ended; more launches wait."""
    update_ns: int
    """Time to take a finished kernel out of the window of ACS-SW, under the window's lock."""
    checks: tuple[tuple[int, int, int, int], tuple[int, int, int, int]]
    """Time of a hazard check: two rows of (segments, ns among 0, among 16, among 32 kernels)."""
    build_node_ns: int
    """Time to build a graph, for each launch."""
    launch_graph_ns: int
    graph_edge_ns: int
    """Within a graph, from the end of a node to the start of one behind it."""
    graph_node_ns: int
    """Time between the starts of two nodes."""


class WindowSpec(NamedTuple):
    """The hardware window. Cycles of -1: as in the paper, N to insert and N - 1 to update."""

    slots: int = 32  # the paper's evaluation
    distance: int = 32  # the paper leaves M open; see docs/design/emulator.md
    id_bits: int = 8  # the paper: 8-bit ids
    clock_mhz: int = 1400  # the paper's simulated GPU; 0: takes no time
    insert_cycles: int = -1
    update_cycles: int = -1


class SchedulerSpec(NamedTuple):
    """This project's scheduler on the device."""

    record_ns: int
    epoch_ns: int
    """Time of the host: an upload and a launch."""
    tile_ps: int
    """Extra picoseconds of that for each tile: the queue of ready tiles is part of the upload."""
    behind_ns: int
    """Time of the device for an epoch that comes directly behind another: its upload, its
    launch."""
    wait_ns: int
    """From the end of an epoch to the thread that waits for it."""
    epoch_tasks: int
    first_look: int
    """Tasks at which an epoch is sent if the device is idle. Later, the number sent before, if that
    is more."""
    open_ns: int
    """Time after which an epoch is sent if the device has less than two."""
    begin_ns: int
    """Time of the device for an epoch, and for each group that it is launched with."""
    queue_ns: int
    """From the end of a task to the start of one behind it, through the queue."""
    gang_ns: int
    """The same time if the groups of one task of several go on with another. 0: they never do."""
    fused_ns: int
    """The same time if one group goes on without the queue."""
    task_ns: int
    """Time between the starts of two tasks."""
    slower_few: int
    """Time of a kernel in it, in thousandths of its time alone, if it has fewer tiles than there
    are groups,"""
    slower_full: int
    """and if it has more. Values below 1000 count as 1000."""
    groups: int
    """Groups that run at the same time on a compute unit."""
    launched: int
    """Groups launched on a compute unit. If that is more, the rest come when others have left."""
    group: int
    """Work-items of a group. 1: it runs a tile item by item."""
    least_items: int
    """Least work-items of a tile."""
    most_tiles: int
    """Most tiles of a task, for each group launched."""
    slice_ns: int
    """Time after which groups leave and the scheduler is launched again."""
    leaves: bool
    """Whether a group leaves when no tile is ready. On a CPU it would block a core."""
    holds: bool
    """Whether sending an epoch blocks the program until it has ended. If the driver reads into
    memory that is not pinned, it waits for everything before the read."""


class Machine(NamedTuple):
    """All parts of a machine."""

    name: str
    gpu: GpuSpec
    host: HostSpec
    window: WindowSpec
    scheduler: SchedulerSpec


NO_CHECKS = ((6, 0, 0, 0), (10, 0, 0, 0))


def free(machine: Machine) -> Machine:
    """Return the same device with only the time of the groups themselves."""
    host = HostSpec("free", 0, 0, 0, 0, 0, machine.host.queue_depth, 0, NO_CHECKS, 0, 0, 0, 0)
    tasks = machine.scheduler.epoch_tasks
    groups = machine.gpu.groups
    scheduler = SchedulerSpec(
        0, 0, 0, 0, 0, tasks, 1, 0, 0, 0, 0, 0, 0, 0, 0, groups, groups, 0, 0, 0, 1,
        leaves=False, holds=False,
    )  # fmt: skip
    window = machine.window._replace(clock_mhz=0)
    return Machine(f"{machine.name}, free", machine.gpu, host, window, scheduler)


def check_ns(host: HostSpec, kernels: int, segments: int) -> int:
    """Return the time of a check of `segments` against kernels. Between the published points it is
    linear, also beyond the last one. Below the first it is proportional to the segments.

    >>> from acs_cl.emu.machines import CUDA
    >>> check_ns(CUDA, 16, 6), check_ns(CUDA, 32, 10), check_ns(CUDA, 24, 8)
    (410, 1640, 815)
    """
    (few, *few_ns), (many, *many_ns) = host.checks
    low, high = _along(few_ns, kernels), _along(many_ns, kernels)
    if segments <= few:
        return low * segments // few
    return low + (high - low) * (segments - few) // (many - few)


def _along(ns: list[int], kernels: int) -> int:
    """Interpolate: among 0, 16 and 32 kernels the values are ns[0], ns[1], ns[2]."""
    if kernels <= 16:
        return ns[0] + (ns[1] - ns[0]) * kernels // 16
    return ns[1] + (ns[2] - ns[1]) * (kernels - 16) // 16
