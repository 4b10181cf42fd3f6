"""What is modelled: devices, hosts, the hardware window, our scheduler; every constant, its source.

In: nothing. Out: frozen records of whole numbers, and machines made of them, by name. `free` takes
the overheads off a machine, for bounds and tests.

Invariant: a constant names its source, which is a public specification, the paper, or a
measurement of this project (`benchmarks/results/`, `docs/`). Where none is known for a part, the
nearest measured one is used and the comment says so. Nothing here was fitted to a published result.
"""

# Long because: half of it is where the numbers come from.

from __future__ import annotations

from typing import NamedTuple

from acs_cl.errors import UsageError


class GpuSpec(NamedTuple):
    """A device. Per compute unit: threads, groups, registers, local memory (0: no limit)."""

    name: str
    units: int
    threads: int
    groups: int
    registers: int
    local_bytes: int
    warp: int
    """Threads are handed out in so many."""
    kernels: int
    """That may run at the same time."""
    clock_mhz: int
    flops_per_cycle: int
    """Of a unit; 0 where the preset knows none, and then a trace has to say how long groups
    take."""
    bytes_per_ns: int
    """Of the whole device's memory."""
    group_bytes_per_cycle: int
    """Of one group at most."""
    step_cycles: int = 0
    """From an arithmetic operation of a work-item to one that needs its result."""
    load_cycles: int = 0
    """From a load of a work-item to what needs it."""
    begin_cycles: int = 0
    """From when a kernel may run to its first group, whatever else runs meanwhile. 0 on real parts,
    where it is within what the host's constants say."""

    @property
    def whole(self) -> tuple[str, int]:
        """What of it is in use at a time, and how much there is: threads; units where each has one
        group, of whatever size, as on a CPU."""
        if self.groups == 1:
            return "units", self.units
        return "threads", self.units * self.threads


class HostSpec(NamedTuple):
    """The program's side; all in nanoseconds, and for each launch where nothing else is said."""

    name: str
    launch_ns: int
    latency_ns: int
    """From the end of the call to the device; 0 where it is known only within `sync_ns`."""
    event_ns: int
    """More for a launch that waits for an event of another stream."""
    sync_ns: int
    """From the end of a kernel to the thread that waits for it."""
    edge_ns: int
    """From the end of a kernel to the start of the next in a stream or behind an event."""
    queue_depth: int
    """Launches sent and not ended; beyond them a launch waits."""
    update_ns: int
    """To take a finished kernel out of the window of ACS-SW, under the window's lock."""
    checks: tuple[tuple[int, int, int, int], tuple[int, int, int, int]]
    """A check for hazards: two rows of (segments, ns among 0, among 16, among 32 kernels)."""
    build_node_ns: int
    """Of a graph, for each launch."""
    launch_graph_ns: int
    graph_edge_ns: int
    """Within a graph, from the end of a node to the start of one behind it."""
    graph_node_ns: int
    """Nodes start one after another, so far apart."""


class WindowSpec(NamedTuple):
    """The hardware window. Cycles of -1: as the paper has it, N to insert and N - 1 to update."""

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
    """Of the host: an upload and a launch."""
    tile_ps: int
    """Picoseconds more of that for each tile: the queue of the ready is part of the upload."""
    behind_ns: int
    """Of the device, for an epoch that comes at once behind another: its upload, its launch."""
    wait_ns: int
    """From the end of an epoch to the thread that waits for it."""
    epoch_tasks: int
    first_look: int
    """Tasks at which an epoch is sent if the device is idle; then as many as were sent before, if
    that is more."""
    open_ns: int
    """After which an epoch is sent if the device has less than two."""
    begin_ns: int
    """Of the device, for an epoch, and for each group that it is launched with."""
    queue_ns: int
    """From the end of a task to the start of one behind it, through the queue."""
    gang_ns: int
    """The same where the groups of one task of several go on with another; 0: they never do."""
    fused_ns: int
    """The same where one group goes on without the queue."""
    task_ns: int
    """Tasks start one after another, so far apart."""
    slower_few: int
    """Thousandths that a kernel takes in it of its time alone, where it has fewer tiles than there
    are groups,"""
    slower_full: int
    """and where it has more. Less than 1000 is taken as 1000."""
    groups: int
    """That run at the same time on a compute unit."""
    launched: int
    """On a compute unit; more than that come when others have left."""
    group: int
    """Work-items of a group. 1: it runs a tile item by item."""
    least_items: int
    """Of a tile."""
    most_tiles: int
    """Of a task, for each group launched."""
    slice_ns: int
    """After which groups leave and the scheduler is launched again."""
    leaves: bool
    """Whether a group leaves when it finds nothing ready: on a CPU, where it would keep others from
    the cores."""
    holds: bool
    """Whether sending an epoch holds the program until it has ended: where the driver reads into
    memory that is not pinned, it waits for what comes before the read."""


class Machine(NamedTuple):
    """All of it."""

    name: str
    gpu: GpuSpec
    host: HostSpec
    window: WindowSpec
    scheduler: SchedulerSpec


# ---- devices -------------------------------------------------------------------------------------
# Limits of a unit: "CUDA C++ Programming Guide", table "Technical Specifications per Compute
# Capability" (8.6: 1,536 threads, 16 blocks, 65,536 registers, 100 KB shared; 9.0: 2,048, 32,
# 65,536, 228 KB; both 128 resident grids, warps of 32). Flops: 128 lanes, a fused multiply-add
# each. A group's bytes: the 64 bytes a cycle from L2 to one unit in Jia et al., "Dissecting the
# NVIDIA Volta GPU Architecture via Microbenchmarking", arXiv 1804.06826; later parts are taken
# to have no less. Latencies are from there too (Volta: 4 cycles for dependent arithmetic, 193 for a
# load that hits L2, where what the kernel before has written is), and taken for later parts.

RTX_3060 = GpuSpec(
    name="RTX 3060-like",
    units=28,  # the paper, and NVIDIA's specification of the GeForce RTX 3060
    threads=1536,
    groups=16,
    registers=65536,
    local_bytes=100 * 1024,
    warp=32,
    kernels=128,
    clock_mhz=1777,  # boost clock in NVIDIA's specification
    flops_per_cycle=256,
    bytes_per_ns=360,  # 192 bits at 15 Gbit/s, 360 GB/s
    group_bytes_per_cycle=64,
    step_cycles=4,
    load_cycles=193,
)
RTX_3070 = RTX_3060._replace(
    name="RTX 3070-like, simulated",
    units=46,  # the paper
    clock_mhz=1400,  # the paper: 1.4 GHz
    bytes_per_ns=448,  # NVIDIA's specification of the GeForce RTX 3070: 448 GB/s
)
H200 = GpuSpec(
    name="H200-class",
    units=132,  # CL_DEVICE_MAX_COMPUTE_UNITS, benchmarks/results/nvidia-h200.json
    threads=2048,
    groups=32,
    registers=65536,
    local_bytes=228 * 1024,
    warp=32,
    kernels=128,
    clock_mhz=1980,  # boost clock of H100 and H200 SXM in public databases
    flops_per_cycle=256,
    bytes_per_ns=4800,  # NVIDIA's data sheet of the H200: 4.8 TB/s
    group_bytes_per_cycle=64,
    step_cycles=4,
    load_cycles=193,
)
CPU_2 = GpuSpec(
    name="CPU with 2 threads",
    units=2,
    threads=4096,  # PoCL's largest group
    groups=1,  # a thread runs a group to its end before it takes another (PoCL's design)
    registers=0,
    local_bytes=0,
    warp=1,
    kernels=1024,  # PoCL has no limit of its own
    clock_mhz=1000,
    flops_per_cycle=0,
    bytes_per_ns=0,
    group_bytes_per_cycle=0,
)

# ---- hosts ---------------------------------------------------------------------------------------

PAPER_CHECKS = ((6, 0, 410, 510), (10, 0, 700, 1640))
"""The paper: 410 and 700 ns among 16 kernels with 6 and 10 segments, 510 and 1,640 among 32."""

NO_CHECKS = ((6, 0, 0, 0), (10, 0, 0, 0))

CUDA = HostSpec(
    name="CUDA C++",
    # benchmarks/results/nvidia-h200.json: CUDA C++, a stream; the least of six graphs, since a host
    # that is held up can only take longer
    launch_ns=3_000,
    latency_ns=0,  # within sync_ns
    event_ns=2_700,  # measured, H200, OpenCL from C: 5.3 us without events, 8 with a wait
    sync_ns=7_000,  # the paper: launch plus sync 5-20 us, whose geometric mean is 10
    edge_ns=750,  # measured, H200: a node of a CUDA Graph of one chain, an empty kernel included
    queue_depth=1_024,  # documented nowhere; streams are widely reported to block about there
    update_ns=410,  # the paper gives none: taken as its cheapest check
    checks=PAPER_CHECKS,
    # benchmarks/results/constants/cuda-nvidia-h200.json, kept since later hosts were slower:
    # a new graph less its replay, a node, and again the least.
    # Earlier readings on another host with an H200 were 7-13 us; the emulator's page says what
    # follows from that.
    build_node_ns=2_250,
    launch_graph_ns=3_000,  # as one launch
    # measured, H200: 0.75 us a node in one chain; 0.94 in benchmarks/results/nvidia-h200.json, each
    # with a kernel in it
    graph_edge_ns=750,
    graph_node_ns=170,  # benchmarks/results/nvidia-h200.json: replays, 64 chains
)
# Of this library: `python -m acs_cl.benchmarks validate`, medians of all its workloads, where
# nothing else is said.
ACS_CL_H200 = CUDA._replace(
    name="acs_cl, H200",  # benchmarks/results/validation-nvidia-h200.json
    launch_ns=8_400,  # on `serial`
    event_ns=350,
    sync_ns=8_700,  # without the kernel that was waited for
    queue_depth=8_192,  # the runtime's backlog
    checks=NO_CHECKS,  # hazards are part of launch_ns
)
ACS_CL_POCL = HostSpec(
    name="acs_cl, PoCL",  # benchmarks/results/validation-pocl.json
    launch_ns=3_900,  # on `serial`
    latency_ns=1_450,  # measured from C: 0.6-1.0 us on the host, 1.6-2.9 end to end
    event_ns=0,  # none was seen
    sync_ns=52_400,  # without the kernel that was waited for
    edge_ns=1_450,  # as latency_ns: a thread takes the next kernel from the driver's list
    queue_depth=8_192,  # the runtime's backlog
    update_ns=0,  # part of launch_ns, as hazards are
    checks=NO_CHECKS,
    build_node_ns=2_500,  # no command buffers there: recording, taken as a launch
    launch_graph_ns=2_500,
    graph_edge_ns=1_450,
    graph_node_ns=0,
)

# ---- the scheduler on the device -----------------------------------------------------------------

# From the same two files, where nothing else is said.
SCHEDULER_H200 = SchedulerSpec(
    record_ns=450,
    epoch_ns=69_000,
    tile_ps=3_500,
    behind_ns=55_000,
    wait_ns=21_500,
    epoch_tasks=4_096,  # docs/design/scheduler.md
    first_look=192,  # FIRST_LOOK of acs_cl/backends/device.py
    open_ns=1_000_000,  # docs/design/scheduler.md
    begin_ns=3,  # an epoch with a tile for each group, less one of one tile
    queue_ns=4_030,  # two tasks, crosswise
    gang_ns=1_600,  # a chain of tasks of several groups, their kernels included
    fused_ns=400,  # a chain of tasks of one
    task_ns=3,  # benchmarks/results/nvidia-h200.json: 1,024 chains
    slower_few=1_420,  # three kinds of kernels
    slower_full=1_017,
    groups=5,  # 660 groups on 132 units
    launched=5,
    group=256,
    least_items=256,  # one turn of a group
    most_tiles=4,  # acs_cl/schedulers.py
    slice_ns=50_000_000,  # docs/design/scheduler.md
    leaves=False,
    holds=False,
)
SCHEDULER_POCL = SCHEDULER_H200._replace(
    record_ns=850,
    epoch_ns=74_000,
    tile_ps=0,  # its cores are those of the host
    behind_ns=0,
    wait_ns=48_000,
    begin_ns=0,  # its threads come one by one: `leaves`
    queue_ns=117,
    slower_few=1_080,
    slower_full=1_070,
    fused_ns=44,  # benchmarks/results/pocl.json: one chain, its small kernels included
    task_ns=45,  # the same, 64 chains
    gang_ns=0,
    groups=1,
    launched=4,  # acs_cl/schedulers.py
    group=1,
    least_items=256,  # SMALLEST_TILE of acs_cl/tasks.py
    most_tiles=2,  # acs_cl/schedulers.py
    leaves=True,
)

MACHINES = {
    "paper": Machine("paper", RTX_3070, CUDA, WindowSpec(), SCHEDULER_H200),
    "paper-3060": Machine("paper-3060", RTX_3060, CUDA, WindowSpec(), SCHEDULER_H200),
    "h200": Machine("h200", H200, CUDA, WindowSpec(clock_mhz=1980), SCHEDULER_H200),
    "h200-acs_cl": Machine(
        "h200-acs_cl", H200, ACS_CL_H200, WindowSpec(clock_mhz=1980), SCHEDULER_H200
    ),
    "cpu2": Machine("cpu2", CPU_2, ACS_CL_POCL, WindowSpec(clock_mhz=1000), SCHEDULER_POCL),
}
"""The first two have no measurements of our scheduler: those of the H200 stand in."""


def machine(name: str) -> Machine:
    """A preset by its name."""
    if name not in MACHINES:
        raise UsageError(f"no machine is called {name!r}; there are {', '.join(MACHINES)}")
    return MACHINES[name]


def free(machine: Machine) -> Machine:
    """The same device, where nothing but the groups themselves takes time."""
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
    """A check of `segments` against so many kernels: between the published points by straight
    lines, beyond them on along the last one, and in proportion to the segments below the first.

    >>> check_ns(CUDA, 16, 6), check_ns(CUDA, 32, 10), check_ns(CUDA, 24, 8)
    (410, 1640, 815)
    """
    (few, *few_ns), (many, *many_ns) = host.checks
    low, high = _along(few_ns, kernels), _along(many_ns, kernels)
    if segments <= few:
        return low * segments // few
    return low + (high - low) * (segments - few) // (many - few)


def _along(ns: list[int], kernels: int) -> int:
    """Among 0, 16 and 32 kernels it is ns[0], ns[1], ns[2]."""
    if kernels <= 16:
        return ns[0] + (ns[1] - ns[0]) * kernels // 16
    return ns[1] + (ns[2] - ns[1]) * (kernels - 16) // 16
