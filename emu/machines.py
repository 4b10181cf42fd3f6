"""Constants of the modelled machines, each with its source, and machines by name.

Invariant: a constant names its source: a public specification, the paper, or a measurement of this
project (`benchmarks/results/`, `docs/`). If no source is known for a part, the nearest measured
value is used and the comment says so. Nothing here was fitted to a published result.
"""

from __future__ import annotations

from acs_cl.emu.spec import NO_CHECKS, GpuSpec, HostSpec, Machine, SchedulerSpec, WindowSpec
from acs_cl.errors import UsageError

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

CUDA = HostSpec(
    name="CUDA C++",
    # benchmarks/results/nvidia-h200.json: CUDA C++, a stream; the least of six graphs, since a
    # delayed host only takes longer
    launch_ns=3_000,
    latency_ns=0,  # within sync_ns
    event_ns=2_700,  # measured, H200, OpenCL from C: 5.3 us without events, 8 with a wait
    sync_ns=7_000,  # the paper: launch plus sync 5-20 us, whose geometric mean is 10
    edge_ns=750,  # measured, H200: a node of a CUDA Graph of one chain, an empty kernel included
    queue_depth=1_024,  # documented nowhere; streams are widely reported to block near this number
    update_ns=410,  # the paper gives none: assumed to be its cheapest check
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
    launch_ns=9_500,  # on `serial`
    event_ns=830,
    sync_ns=3_500,  # without the kernel that was waited for
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
    record_ns=700,
    epoch_ns=26_500,
    tile_ps=4_200,
    behind_ns=41_700,
    wait_ns=10_500,
    epoch_tasks=4_096,  # docs/design/scheduler.md
    first_look=192,  # FIRST_LOOK of acs_cl/scheduler/sender.py
    open_ns=1_000_000,  # docs/design/scheduler.md
    begin_ns=7,  # an epoch with a tile for each group, less one of one tile
    queue_ns=3_870,  # two tasks, crosswise
    gang_ns=1_850,  # a chain of tasks of several groups, their kernels included
    fused_ns=320,  # a chain of tasks of one
    task_ns=3,  # benchmarks/results/nvidia-h200.json: 1,024 chains
    slower_few=1_434,  # three kinds of kernels
    slower_full=1_039,
    groups=3,  # 396 groups on 132 units
    launched=3,
    group=256,
    least_items=256,  # one turn of a group
    most_tiles=4,  # acs_cl/scheduler/maker.py
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
    launched=4,  # acs_cl/scheduler/maker.py
    group=1,
    least_items=256,  # SMALLEST_TILE of acs_cl/scheduler/task.py
    most_tiles=2,  # acs_cl/scheduler/maker.py
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
"""The first two have no measurements of our scheduler; they use the H200's."""


def machine(name: str) -> Machine:
    """Return a preset by its name."""
    if name not in MACHINES:
        raise UsageError(f"no machine is called {name!r}; there are {', '.join(MACHINES)}")
    return MACHINES[name]
