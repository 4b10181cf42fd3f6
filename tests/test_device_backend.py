"""The device-side scheduler as a backend, made to run under conditions that are hard on it.

The oracle is NumPy (`graphs`): every value, and how often every item ran. Nothing here can hang: a
test that takes too long ends the process, with a traceback of all threads.
"""

# Long because: everything that the scheduler has to survive is told in one place.

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from fuzz.kernels import IN_GROUPS, MODES
from fuzz.kernels import SOURCE as PROGRAMS
from fuzz.machine import AcsMachine
from fuzz.oracle import NumpyMachine
from fuzz.steps import compare, run
from fuzz.threads import in_threads
from graphs import GROUPED, SOURCE, TILED, Run, Task, expected, graph, prebuild
from inside import Scheduler

import acs_cl as acs
from acs_cl import testing
from acs_cl.devices import driver
from acs_cl.launch.backend import End
from acs_cl.scheduler import ends
from acs_cl.scheduler.policy import (
    COOLDOWN,
    CUTS,
    FILLS,
    LONG_REST,
    LONG_US,
    REST,
    SAMPLES,
    SAVED_US,
    STREAK,
    SURE,
    UNJUDGED,
    Choice,
)
from acs_cl.testing import runtime_of

HERE = Path(__file__).resolve().parent

MORE = """
kernel void inc(global uint *x, uint a) { x[get_global_id(0)] += a; }
kernel void twice(global const uint *x, global uint *y)
{ size_t i = get_global_id(0); y[i] = 2 * x[i]; }
kernel void nothing(uint a) { }
kernel void say(global uint *x) { x[get_global_id(0)] += 1; if (x[0] == 12345678) printf("no"); }
kernel void read(global uint *x, constant uint *k) { x[get_global_id(0)] += k[0]; }
kernel void look(global volatile uint *flag, global uint *seen)
{ uint i = 0;
  while (i < 2000000000u && !*flag) ++i;
  *seen = *flag; }
kernel void bits(global const float *x, global float *y, float a)
{ size_t i = get_global_id(0);
  float v = x[i], s = 0;
  for (int k = 1; k < 9; ++k) s += sin(v * k) * a / k + exp(-v * v) * y[i];
  y[i] = s + sqrt(fabs(v)) - v / (a + 3.0f) + mad(v, a, s); }
kernel void folded(global const float *x, global float *y, local float *t)
{ size_t l = get_local_id(0), n = get_local_size(0);
  t[l] = x[get_global_id(0)] * 1.1f + y[get_global_id(0)];
  for (size_t h = n / 2; h; h /= 2)
  { barrier(CLK_LOCAL_MEM_FENCE); if (l < h) t[l] += t[l + h] * 0.7f; }
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = t[0] / (l + 1) + tanh(x[get_global_id(0)]); }
"""

UNGROUPED = ("inc", "twice", "nothing", "read", "look", "bits")
CASES = (*TILED, *GROUPED)


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """End the process rather than wait for ever."""
    faulthandler.dump_traceback_later(400, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def start(device: cl.Device, **options: Any) -> acs.Program:
    """A runtime on backend 'device' with all kernels built, by a program of it."""
    try:
        rt = acs.Runtime(device, backend="device", **options)
    except acs.UsageError as error:
        pytest.skip(str(error))
    program = rt.build(SOURCE + MORE)
    prebuild(program, 4, 16, more=(*UNGROUPED, "say"), grouped=(("folded", 16),))
    return program


@pytest.fixture(scope="module")
def kept(device: cl.Device) -> Iterator[acs.Program]:
    """One runtime for all tests that leave it as it was."""
    program = start(device)
    yield program
    runtime_of(program).close()


@pytest.fixture
def program(kept: acs.Program) -> Iterator[acs.Program]:
    """The kept one, which afterwards is as before, with nothing under way."""
    rt = runtime_of(kept)
    with Scheduler(rt).kept():
        yield kept
        with contextlib.suppress(acs.PoisonedError):
            rt.finish()


def make(
    program: acs.Program, polls: int = 0, groups: int = 0, times: int = 0, **settings: Any
) -> Scheduler:
    """Make how epochs are run extreme. `times`: so many times the groups there would be."""
    scheduler = Scheduler(runtime_of(program))
    scheduler.set(**settings, polls=polls)
    if groups or times:
        scheduler.set_groups(groups, times)
    return scheduler


@pytest.fixture
def kept_open(program: acs.Program) -> Iterator[acs.Program]:
    """Epochs stay open until something asks for them."""
    with testing.open_epochs():
        Scheduler(runtime_of(program)).keep_open()
        yield program


def run_script(body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of its own, with the folder of the tests to import from."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", body],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# ---- random graphs under hard conditions ---------------------------------------------------------

CONDITIONS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "one group": {"groups": 1},
    "ten times more groups than can be resident": {"times": 10},
    "one turn": {"turns": 1},
    "two turns": {"turns": 2, "groups": 3},
    "three turns": {"turns": 3},
    "one turn of one group": {"turns": 1, "groups": 1},
    "slices": {"slice_s": 1e-6},
    "epochs of one": {"most_tasks": 1},
    "epochs of seven": {"most_tasks": 7},
    "groups that look again": {"polls": 20},
    "groups that look long": {"polls": 2000, "groups": 2},
    "critical path first": {"order": "critical_path"},
    "critical path first, one turn": {"order": "critical_path", "turns": 1},
    "narrow tasks first": {"order": "narrow_first", "turns": 3},
    "a window of 1": {"window": 1},
    "a window of 2": {"window": 2},
    "a window of 5, looking again": {"window": 5, "polls": 20},
    "a window of 32": {"window": 32, "turns": 2},
    "a window of 5, critical path first": {"window": 5, "order": "critical_path"},
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_random_graphs_run_every_item_once_and_in_order(
    program: acs.Program, condition: str
) -> None:
    backend = make(program, **CONDITIONS[condition])
    before = backend.counters["tasks"]
    count = 0
    for seed in range(3):
        rng = random.Random(f"{condition} {seed}")
        kernels = (TILED, ("turn", "swap"), ("node",))[seed]
        tasks = graph(
            rng, 150, kernels=kernels, chains=(0, 6, 0)[seed],
            sizes=(1, 1, 4, 64, 700, 5000), upstream=3 - seed // 2,
        )  # fmt: skip
        print(f"seed {seed}")
        Run(program, tasks).launch_all().check()
        count += len(tasks)
    assert backend.counters["tasks"] - before == count


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_groups_that_give_up_are_launched_again(kept_open: acs.Program, turns: int) -> None:
    backend = make(kept_open, turns=turns, groups=2)
    epochs, launches = backend.counters["epochs"], backend.counters["launches"]
    Run(kept_open, graph(random.Random(turns), 200, chains=3)).launch_all().check()
    assert backend.counters["epochs"] == epochs + 1
    assert backend.counters["launches"] >= launches + 2


def test_wide_tasks_behind_wide_tasks_are_handed_over_by_gangs(kept_open: acs.Program) -> None:
    for polls, groups in ((5, 3), (1000, 2), (50, 80)):
        make(kept_open, polls=polls, groups=groups)
        tasks = graph(random.Random(polls), 120, sizes=(257, 3000, 4096), chains=2)
        Run(kept_open, tasks).launch_all().check()


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("seed", range(2))
def test_lanes_mixed_in_keep_all_edges(program: acs.Program, share: float, seed: int) -> None:
    rng = random.Random(f"{share} {seed}")
    tasks = graph(rng, 400, kernels=("node", "flat", "big"), lanes=share, sizes=(1, 5, 64, 700))
    backend = Scheduler(runtime_of(program))
    lanes, before = backend.reasons.get("prints", 0), backend.counters["tasks"]
    Run(program, tasks).launch_all().check()
    aside = sum(task.kernel == "aside" for task in tasks)
    assert aside
    assert backend.reasons["prints"] - lanes == aside
    assert backend.counters["tasks"] - before == len(tasks) - aside


def test_group_sizes_mixed_in_one_program_keep_all_edges(program: acs.Program) -> None:
    rng = random.Random(11)
    tasks = graph(rng, 300, kernels=CASES, locals_=(4, 16), lanes=0.03, sizes=(1, 5, 64, 700))
    before = Scheduler(runtime_of(program)).counters["tasks"]
    Run(program, tasks).launch_all().check()
    aside = sum(task.kernel == "aside" for task in tasks)
    assert Scheduler(runtime_of(program)).counters["tasks"] - before == len(tasks) - aside


# ---- sizes ---------------------------------------------------------------------------------------


def test_an_epoch_of_nothing_is_not_sent(program: acs.Program) -> None:
    rt = runtime_of(program)
    before = Scheduler(rt).counters["epochs"]
    rt.flush()
    rt.finish()
    assert Scheduler(rt).counters["epochs"] == before


def test_a_single_launch_runs_without_being_asked_for(program: acs.Program) -> None:
    x = runtime_of(program).zeros(4, "u4")
    handle = program.inc((4,), None, x, 3)
    while not handle.done:
        pass
    assert x.get().tolist() == [3] * 4


@pytest.mark.parametrize("groups", [0, 1])
def test_an_epoch_of_a_hundred_thousand_launches(device: cl.Device, groups: int) -> None:
    with testing.open_epochs(), acs.Runtime(device, backend="device", backlog=1 << 20) as rt:
        program = rt.build(MORE)
        rt.prebuild(program.inc)
        backend = make(program, most_tasks=100_000, groups=groups)
        backend.keep_open()
        cells = [rt.zeros(1, "u4") for _ in range(100)]
        rt.finish()
        for number in range(100_000):
            program.inc((1,), None, cells[number % 100], number)
        sums = [sum(range(first, 100_000, 100)) & 0xFFFFFFFF for first in range(100)]
        assert [int(cell.get()[0]) for cell in cells] == sums
        assert backend.counters["epochs"] == 1
        assert backend.counters["tasks"] == 100_000


@pytest.mark.parametrize("kernel", ["turn", "swap", "node"])
def test_a_task_of_65535_groups(program: acs.Program, kernel: str) -> None:
    local = 4 if kernel in GROUPED else 0
    size = 65535 * 4
    tasks = [Task(kernel, size, local, ()), Task(kernel, size, local, (0,))]
    backend = Scheduler(runtime_of(program))
    before = backend.counters["tasks"]
    Run(program, tasks).launch_all().check()
    assert backend.counters["tasks"] == before + 2


def test_arrays_of_several_slabs_meet_in_one_launch(device: cl.Device) -> None:
    lengths = [400_000, 300_000, 500_000, 400_001, 17_000_000, 300_000]
    with acs.Runtime(device, backend="device") as rt:
        program = rt.build(MORE)
        rt.prebuild(program.inc, program.twice)
        arrays = [rt.zeros(length, "u4") for length in lengths]
        for step, (x, y) in enumerate(zip(arrays, arrays[1:] + arrays[:1], strict=True)):
            n = min(len(x), len(y))
            program.inc((n,), None, x[:n], step + 1)
            program.twice((n,), None, x[len(x) - n :], y[:n])
        addresses = {array.data.svm_ptr for array in arrays}
        slabs = rt.engine.store.reserved.sizes
        assert len({max(s for s in slabs if s <= address) for address in addresses}) > 2
        hosts = [np.zeros(length, "u4") for length in lengths]
        for step, (a, b) in enumerate(zip(hosts, hosts[1:] + hosts[:1], strict=True)):
            n = min(len(a), len(b))
            a[:n] += np.uint32(step + 1)
            b[:n] = 2 * a[len(a) - n :]
        for array, host in zip(arrays, hosts, strict=True):
            assert (array.get() == host).all()
        assert Scheduler(rt).counters["tasks"] == 2 * len(lengths)


def test_a_kernel_without_pointers_runs_before_there_is_any_memory(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device") as rt:
        program = rt.build(MORE)
        rt.prebuild(program.nothing)
        program.nothing((3,), None, 1)
        rt.finish()
        assert Scheduler(rt).counters["tasks"] == 1


def test_numbers_with_fractions_are_those_of_the_serial_backend_to_the_bit(
    device: cl.Device, program: acs.Program
) -> None:
    came = []
    start = np.random.default_rng(3).standard_normal((2, 4096)).astype("f4")
    with acs.Runtime(device, backend="serial") as serial:
        for rt, prog in ((serial, serial.build(SOURCE + MORE)), (runtime_of(program), program)):
            x, y = rt.array(start[0]), rt.array(start[1])
            before = rt.stats().get("scheduler", {}).get("tasks", 0)
            for step in range(6):
                prog.bits((4096,), (64,) if step % 2 else None, x, y, 0.3 * step)
                prog.folded((4096,), (16,), x, y, cl.LocalMemory(64))
            came.append(y.get())
        assert rt.stats()["scheduler"]["tasks"] - before == 12
    assert np.isfinite(came[0]).all()
    assert came[0].tobytes() == came[1].tobytes()


# ---- epochs and everything beside them -----------------------------------------------------------


def test_a_get_in_the_middle_gives_what_program_order_says(kept_open: acs.Program) -> None:
    x, y = runtime_of(kept_open).zeros(8, "u4"), runtime_of(kept_open).zeros(8, "u4")
    for step in range(30):
        kept_open.inc((8,), None, x, 1)
        kept_open.twice((8,), None, x, y)
        if step % 7 == 3:
            assert y.get().tolist() == [2 * (step + 1)] * 8
            assert x.get().tolist() == [step + 1] * 8
    assert y.get().tolist() == [60] * 8


def test_lanes_and_copies_move_on_beside_an_open_epoch(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    backend = Scheduler(rt)
    make(kept_open, polls=1000)
    x, y, z = (rt.zeros(8, "u4") for _ in range(3))
    rt.finish()
    kept_open.inc((8,), None, x, 1)
    others = [kept_open.say((8,), None, y), z.fill(5)]
    assert backend.has_open_epoch
    for queue in backend.backend.lanes.queues:
        queue.finish()
    events = [backend.backend.lanes.event(handle.number) for handle in others]
    assert all(event is None or driver.status(event) == 0 for event in events)
    assert backend.has_open_epoch
    assert (x.get()[0], y.get()[0], z.get()[0]) == (1, 1, 5)


def test_lanes_and_copies_end_while_a_scheduler_has_groups_without_work(
    kept_open: acs.Program,
) -> None:
    """One task of the epoch waits for what a lane writes, as no program should, and all others have
    ended: it would look in vain if those groups kept the lane from running."""
    rt = runtime_of(kept_open)
    backend = Scheduler(rt)
    if rt.device.max_compute_units < 2:
        pytest.skip("one thread, which the waiting task has")
    others = rt.zeros((40, 4), "u4")
    flag, seen, y, z = rt.zeros(2, "u4"), *(rt.zeros(1, "u4") for _ in range(3))
    rt.finish()
    kept_open.look((1,), None, flag, seen, reads=flag[1:])  # which is not true
    for row in range(len(others)):
        kept_open.inc((4,), None, others[row], 1)
    rt.flush()
    epoch = backend.last_epoch
    kept_open.say((1,), None, y)
    z.copy_from(y)
    assert (y.get()[0], z.get()[0]) == (1, 1)
    assert driver.status(epoch) > 0
    kept_open.say((1,), None, flag)
    rt.flush()
    assert (seen.get()[0], others.get().tolist()) == (1, [[1] * 4] * 40)


def test_a_lane_that_waits_for_the_open_epoch_sends_it(kept_open: acs.Program) -> None:
    backend = Scheduler(runtime_of(kept_open))
    x = runtime_of(kept_open).zeros(8, "u4")
    kept_open.inc((8,), None, x, 1)
    cuts = backend.counters["cuts"]
    kept_open.say((8,), None, x)
    assert backend.counters["cuts"] == cuts + 1
    assert not backend.has_open_epoch
    kept_open.inc((8,), None, x, 1)
    assert x.get().tolist() == [3] * 8


def test_a_wait_for_a_lane_sends_the_open_epoch(kept_open: acs.Program) -> None:
    """Otherwise that would begin later than it can."""
    rt = runtime_of(kept_open)
    backend = Scheduler(rt)
    x, z = rt.zeros(8, "u4"), rt.zeros(1 << 23, "u4")
    rt.finish()
    with inside.held_by_driver(rt) as gate:
        kept_open.inc((8,), None, x, 1)
        other = z.fill(5)
        assert backend.has_open_epoch
        threading.Timer(0.05, gate.open).start()
        other.wait()
        assert not backend.has_open_epoch
    assert (x.get()[0], z.get()[0]) == (1, 5)


def test_closing_runs_what_was_not_sent(device: cl.Device) -> None:
    host = np.zeros(4, np.uint32)
    with testing.open_epochs(), acs.Runtime(device, backend="device") as rt:
        program = rt.build(MORE)
        rt.prebuild(program.inc)
        x = rt.zeros(4, "u4")
        program.inc((4,), None, x, 5)
        x.get(out=host, wait=False)
        program.inc((4,), None, x, 5)
        assert Scheduler(rt).has_open_epoch
    assert host.tolist() == [5] * 4


def test_memory_recycled_inside_an_epoch_keeps_its_order(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    kept_rows = []
    for step in range(100):
        x = rt.empty(640, "u4")
        y = rt.empty(640, "u4")
        x.fill(step) if step % 10 == 0 else kept_open.twice((640,), None, kept_rows[-1], x)
        kept_open.twice((640,), None, x, y)
        kept_open.inc((640,), None, y, step)
        del x
        kept_rows.append(y)
        if len(kept_rows) > 3:
            kept_rows.pop(0)
    value = 0
    for step in range(100):
        value = (2 * (step if step % 10 == 0 else 2 * value) + step) & 0xFFFFFFFF
    assert (kept_rows[-1].get() == value).all()


def test_memory_that_runs_out_sends_the_open_epoch_and_goes_on(
    kept_open: acs.Program,
) -> None:
    rt = runtime_of(kept_open)
    scheduler = Scheduler(rt)
    rt.finish()
    x = rt.zeros(1000, "u4")
    kept_open.inc((1000,), None, x, 1)
    assert scheduler.has_open_epoch
    with inside.scarce_memory(rt), pytest.raises(MemoryError):
        rt.empty(17_000_001, "u4")
    assert not scheduler.has_open_epoch
    kept_open.inc((1000,), None, x, 1)
    y = rt.empty(17_000_001, "u4")
    kept_open.twice((1000,), None, x, y[-1000:])
    assert (y[-1000:].get() == 4).all()


def test_two_runtimes_do_not_disturb_each_other(device: cl.Device, program: acs.Program) -> None:
    other = start(device)
    with runtime_of(other):
        tasks = graph(random.Random(5), 300, lanes=0.05)
        runs = [Run(program, tasks), Run(other, tasks)]
        for number in range(len(tasks)):
            for one in runs:
                one.launch(number)
        for one in runs:
            one.check()


def test_threads_that_launch_at_once_keep_their_orders(program: acs.Program) -> None:
    together = threading.Barrier(4)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        one = Run(program, graph(rng, 200, kernels=CASES[:4], lanes=0.03))
        together.wait()
        one.launch_all().check()

    in_threads(work, 4)


# ---- plain launches, which are packed in one step ------------------------------------------------


def test_plain_launches_give_what_numpy_gives_whatever_is_passed(program: acs.Program) -> None:
    rt = runtime_of(program)
    x, y = rt.zeros(64, "u4"), rt.zeros(64, "u4")
    a, b = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    rng = random.Random(3)
    for step in range(300):
        n, at = rng.randint(1, 32), rng.randint(0, 32)
        value: Any = rng.choice((step, np.uint32(step), np.int64(step), True, 2**32 - 1))
        program.inc((n,), rng.choice((None, (1,))), x[at:], value)
        a[at : at + n] += np.uint32(value)
        program.twice((n,), None, x[at:], y)
        b[:n] = 2 * a[at : at + n]
        if rng.random() < 0.1:
            x = rt.array(a)
    assert (x.get() == a).all()
    assert (y.get() == b).all()


NUMBERS: tuple[Any, ...] = (
    0, 1, -1, True, 1.5, -0.0, float("nan"), float("inf"), 1e39, 1e308, 127, 128, -129, 255, 256,
    65535, 65536, -(2**31), 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64, 10**30,
    np.float32(1.5), np.float64(1e300), np.int8(-1), np.uint64(2**64 - 1), np.float16(2),
    np.bool_(True), np.array(3), np.array([3]), np.array(2.5), "1", b"1", None, 1j,
)  # fmt: skip
TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "long": "i8", "ulong": "u8", "float": "f4",
}  # fmt: skip


def test_numbers_of_all_types_mean_what_they_mean_to_the_serial_backend(
    device: cl.Device,
) -> None:
    source = "\n".join(
        f"kernel void k_{name}(global {name} *x, {name} a) {{ x[get_global_id(0)] = a; }}"
        for name in TYPES
    )
    came: list[list[Any]] = []
    for backend in ("serial", "device"):
        came.append([])
        with acs.Runtime(device, backend=backend) as rt:
            program = rt.build(source)
            rt.prebuild(*(getattr(program, f"k_{name}") for name in TYPES))
            for name, dtype in TYPES.items():
                x = rt.zeros(2, dtype)
                for value in (1, 2, *NUMBERS):
                    try:
                        getattr(program, f"k_{name}")((2,), None, x, value)
                        came[-1].append((name, value, x.get().tobytes()))
                    except acs.UsageError as error:
                        came[-1].append((name, value, str(error).partition(", argument")[2]))
    for one, other in zip(*came, strict=True):
        assert one[2] == other[2], (one, other)


@pytest.mark.parametrize("value", [-1, 2**32, 1.5, "x", None])
def test_wrong_numbers_are_errors_of_the_call_as_on_any_backend(
    program: acs.Program, value: Any
) -> None:
    x = runtime_of(program).zeros(4, "u4")
    for _ in range(3):
        program.inc((4,), None, x, 1)
    with pytest.raises(acs.UsageError, match="argument 1"):
        program.inc((4,), None, x, value)
    assert x.get().tolist() == [3] * 4


@pytest.mark.parametrize(
    ("size", "local", "offset"),
    [
        ((8,), (8.5,), None),
        ((9.5,), None, None),
        ((-8, -8), None, None),
        ((8,), (8, 8), None),
        ((8,), None, (-1,)),
        ((8,), None, (1, 1)),
        (("8",), None, None),
    ],
)
def test_sizes_that_make_no_sense_are_errors_and_leave_nothing_to_wait_for(
    program: acs.Program, size: Any, local: Any, offset: Any
) -> None:
    x = runtime_of(program).zeros(64, "u4")
    program.inc((8,), None, x, 1)
    with pytest.raises(acs.UsageError):
        program.inc(size, local, x, 1, offset=offset)
    runtime_of(program).finish()
    program.inc((8,), None, x, 1)
    assert x.get().tolist() == [2] * 8 + [0] * 56


def test_arrays_of_other_runtimes_and_freed_ones_are_refused(
    device: cl.Device, program: acs.Program
) -> None:
    x, freed = runtime_of(program).zeros(4, "u4"), runtime_of(program).zeros(4, "u4")
    program.inc((4,), None, x, 1)
    freed.free()
    with pytest.raises(acs.UsageError):
        program.inc((4,), None, freed, 1)
    with acs.Runtime(device, backend="device") as other, pytest.raises(acs.UsageError):
        program.inc((4,), None, other.zeros(4, "u4"), 1)


def test_random_programs_run_nine_tenths_of_their_kernels_in_the_scheduler(
    device: cl.Device,
) -> None:
    with acs.Runtime(device, backend="device") as rt:
        program = rt.build(PROGRAMS)
        plain = [name for name in MODES if "_" not in name and name not in IN_GROUPS]
        rt.prebuild(*(getattr(program, name) for name in plain))
        kernels = 0
        before = rt.stats()["scheduler"]["tasks"]
        for seed in range(4):
            rng = random.Random(seed)
            names = [*plain, *plain, "copy", "host", "new", "fill", "set", "get"]
            steps = [(rng.choice(names), rng.randbytes(11)) for _ in range(200)]
            oracle = NumpyMachine()
            run(steps, oracle)
            machine = AcsMachine(rt, program)
            count = _counting(machine)
            try:
                run(steps, machine)
            finally:
                machine.let_go()
            compare(steps, oracle, machine)
            kernels += count[0]
        said = rt.stats()["scheduler"]
        inside = said["tasks"] - before
        print(f"{inside} of {kernels} in the scheduler; {said['on_lanes']}")
        assert inside >= 0.9 * kernels


def _counting(machine: AcsMachine) -> list[int]:
    count, kernel = [0], machine.kernel

    def counted(*arguments: Any) -> None:
        count[0] += 1
        kernel(*arguments)

    machine.kernel = counted  # type: ignore[method-assign]
    return count


# ---- decisions -----------------------------------------------------------------------------------


def test_decisions_are_taken_in_the_scheduler(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    backend = Scheduler(rt)
    rng = random.Random(9)
    x = rt.zeros(600, "u4")
    flags, counts = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    a = np.zeros(600, np.uint32)
    f, c = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    rt.finish()
    tasks = backend.counters["tasks"]
    launches = 0
    for step in range(200):
        i, j = rng.randrange(8), rng.randrange(8)
        if step % 3 == 0:
            kept_open.inc((1,), None, flags[i : i + 1], 1 if f[i] == 0 else 0xFFFFFFFF)
            f[i] = not f[i]
            kept_open.inc((1,), None, counts[j : j + 1], add := rng.randrange(70))
            c[j] = c[j] + add
            launches += 2
        when = flags[i : i + 1] if rng.random() < 0.7 else None
        size: Any = 600
        n = 600
        if rng.random() < 0.7 and c[j] <= 600:
            size, n = acs.size(counts[j : j + 1], upto=600), int(c[j])
        kept_open.inc((size,), None, x, step, when=when)
        launches += 1
        if when is None or f[i]:
            a[:n] += np.uint32(step)
    assert (x.get() == a).all()
    assert backend.counters["tasks"] - tasks == launches


def test_a_count_beyond_its_bound_is_the_error_of_its_launch(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    backend = Scheduler(rt)
    x, y, z = rt.zeros(600, "u4"), rt.zeros(600, "u4"), rt.zeros(600, "u4")
    count = rt.array(np.array([601, 600, 0xFFFFFFFF], "u4"))
    rt.finish()
    tasks = backend.counters["tasks"]
    good = kept_open.inc((acs.size(count[1:2], upto=600),), None, x, 1)
    bad = kept_open.inc((acs.size(count[:1], upto=600),), None, y, 1)
    worse = kept_open.inc((acs.size(count[2:].view("i4"), upto=600),), None, z, 1)
    after = kept_open.inc((600,), None, x, 1)
    behind = kept_open.twice((600,), None, y, z)
    assert backend.counters["tasks"] == tasks + 5
    good.wait()
    after.wait()
    for handle, number in ((bad, bad.number), (worse, worse.number), (behind, bad.number)):
        with pytest.raises(acs.PoisonedError, match=f"launch {number} .*did not run"):
            handle.wait()
    with pytest.raises(acs.PoisonedError, match=f"launch {bad.number} "):
        y.get()
    assert (x.get() == 2).all()
    y.fill(1)
    assert (y.get() == 1).all()


def test_a_count_that_is_not_whole_groups_is_an_error(program: acs.Program) -> None:
    rt = runtime_of(program)
    v, hits = rt.zeros((1, 64), "u4"), rt.zeros((1, 64), "u4")
    count = rt.array(np.array([6, 8], "u4"))
    none = (0xFFFFFFFF,) * 3
    bad = program.turn((acs.size(count[:1], upto=64),), (4,), v, hits, 64, 0, *none, 1, 1, 1)
    with pytest.raises(acs.PoisonedError, match=f"launch {bad.number} .*did not run"):
        bad.wait()
    v.fill(0)
    hits.fill(0)
    program.turn((acs.size(count[1:], upto=64),), (4,), v, hits, 64, 0, *none, 1, 1, 1).wait()
    assert hits.get().tolist() == [[1] * 8 + [0] * 56]
    assert v.get()[0, :8].tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


# ---- failures ------------------------------------------------------------------------------------


def test_poison_goes_through_lanes_and_epochs_and_no_further(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    x, y, z, free = (rt.zeros(8, "u4") for _ in range(4))

    def fail(array: Any) -> None:
        raise ValueError("on purpose")

    kept_open.inc((8,), None, free, 1)
    failed = rt.call(fail, writes=[x])
    behind = [
        kept_open.twice((8,), None, x, y),
        kept_open.say((8,), None, y),
        kept_open.twice((8,), None, y, z),
    ]
    kept_open.inc((8,), None, free, 1)
    for handle in (failed, *behind):
        with pytest.raises(acs.PoisonedError, match="on purpose"):
            handle.wait()
    assert free.get().tolist() == [2] * 8
    for array in (x, y, z):
        with pytest.raises(acs.PoisonedError):
            array.get()
        array.fill(1)
    kept_open.twice((8,), None, x, y)
    assert y.get().tolist() == [2] * 8


def test_what_the_driver_refuses_fails_the_epoch_and_nothing_else(
    kept_open: acs.Program,
) -> None:
    rt = runtime_of(kept_open)
    x, y = rt.zeros(8, "u4"), rt.zeros(8, "u4")
    rt.finish()
    handle = kept_open.inc((8,), None, x, 1)
    with Scheduler(rt).refusing():
        rt.flush()
    with pytest.raises(acs.PoisonedError, match="OUT_OF_RESOURCES"):
        handle.wait()
    with pytest.raises(acs.PoisonedError):
        x.get()
    kept_open.inc((8,), None, y, 1)
    assert y.get().tolist() == [1] * 8


def test_an_epoch_behind_a_wait_is_sent_though_the_program_calls_nothing_more(
    device: cl.Device,
) -> None:
    """Its first task tells nobody that it is there, where somebody looks anyway."""
    with acs.Runtime(device, backend="device") as rt:
        inc = rt.build("kernel void inc(global uint *x) { x[get_global_id(0)] += 1; }").inc
        rt.prebuild(inc)
        x = rt.zeros(8, "u4")
        scheduler = Scheduler(rt)
        for turn in range(1, 30):
            inc((8,), None, x)
            rt.finish()
            sent = scheduler.counters["epochs"]
            inc((8,), None, x)
            testing.wait_until(lambda sent=sent: scheduler.counters["epochs"] > sent)
            assert (x.get() == 2 * turn).all()


def test_what_the_driver_took_before_it_refused_has_ended_when_that_is_told(
    device: cl.Device,
) -> None:
    """Or it would write memory that the program has back."""
    with testing.open_epochs(), acs.Runtime(device, backend="device") as rt:
        spin = rt.build(
            "kernel void spin(global uint *x, uint rounds) {"
            "  uint y = x[0];"
            "  for (uint i = 0; i < rounds; ++i) y = y * 3u + 1u ^ y >> 7; x[0] = y; }"
        ).spin
        rt.prebuild(spin)
        x = rt.zeros(1, "u4")
        rt.finish()
        Scheduler(rt).set(turns=1)  # more than one launch
        spin((1,), (1,), x, 1 << 26)
        last = spin((1,), (1,), x, 1)
        with Scheduler(rt).refusing(after=1) as events:
            rt.flush()
        with pytest.raises(acs.PoisonedError, match="the driver reports OUT_OF_RESOURCES"):
            last.wait()
        assert [driver.status(event) for event in events] == [driver.COMPLETE]
        with pytest.raises(acs.PoisonedError):
            rt.finish()


def test_a_gate_that_fails_poisons_what_was_recorded_behind_it(kept_open: acs.Program) -> None:
    rt = runtime_of(kept_open)
    x = rt.zeros(8, "u4")
    gate = cl.UserEvent(rt.context)
    kept_open.inc((8,), None, x, 1, wait_for=[gate])
    behind = kept_open.inc((8,), None, x, 1)
    gate.set_status(-5)
    with pytest.raises(acs.PoisonedError):
        behind.wait()


# ---- other devices and drivers -------------------------------------------------------------------

SCRIPT = """
import faulthandler, random, sys
faulthandler.dump_traceback_later(240, exit=True)
import acs_cl as acs
from graphs import GROUPED, SOURCE, TILED, Run, graph, prebuild
from inside import Scheduler
with acs.Runtime(backend="device") as rt:
    program = rt.build(SOURCE)
    prebuild(program, 4)
    for seed, kernels in enumerate((TILED, GROUPED, ("node",))):
        print("seed", seed, flush=True)
        tasks = graph(random.Random(seed), 200, kernels=kernels, sizes=(1, 5, 64, 700), lanes=.02)
        Run(program, tasks).launch_all().check()
    backend = Scheduler(rt)
    for change in dict(turns=1), dict(window=2), dict(order="critical_path"):
        with backend.kept():
            backend.set(**change)
            Run(program, graph(random.Random(7), 200, lanes=.02)).launch_all().check()
    print("units", rt.device.max_compute_units, "tasks", backend.counters["tasks"] > 1000)
"""


def test_one_thread_of_pocl_drains_every_epoch(device: cl.Device) -> None:
    if "Portable" not in device.platform.name:
        pytest.skip(f"{device.platform.name.strip()} is not PoCL")
    done = run_script(SCRIPT, POCL_MAX_PTHREAD_COUNT="1", POCL_CPU_MAX_CU_COUNT="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "units 1 tasks True" in done.stdout


def test_a_forked_child_is_refused_and_the_parent_goes_on(device: cl.Device) -> None:
    done = run_script(
        "import os, acs_cl as acs\n"
        f"rt = acs.Runtime(backend='device'); p = rt.build({MORE!r})\n"
        "rt.prebuild(p.inc); x = rt.zeros(4, 'u4'); p.inc((4,), None, x, 1); x.get()\n"
        "p.inc((4,), None, x, 1)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: p.inc((4,), None, x, 1)\n"
        "    except acs.UsageError as error: print('child:', error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0); p.inc((4,), None, x, 1); print('parent:', x.get()[0]); rt.close()"
    )
    assert "child: the runtime is of another process" in done.stdout, done.stderr
    assert "parent: 3" in done.stdout


def test_expected_is_what_the_serial_backend_gives(device: cl.Device) -> None:
    tasks = graph(random.Random(1), 60, kernels=CASES, locals_=(4, 16), lanes=0.2)
    with acs.Runtime(device, backend="serial") as rt:
        one = Run(rt.build(SOURCE), tasks).launch_all()
        one.check()
        assert (one.v.get() == expected(tasks)).all()


def test_small_epochs_of_the_time_before_a_build_are_forgotten() -> None:
    choice = Choice(on_cpu=False)
    choice.built_anew(1)
    for number in range(1, 40):
        choice.epoch(1, number, False)
    assert choice.resting_until > 40
    choice.built_anew(1)
    assert choice.resting_until > 40  # nothing new
    choice.built_anew(2)
    assert choice.resting_until == 0
    for number in range(41, 41 + STREAK):
        choice.epoch(1, number, False)
    assert choice.resting_until == 40 + STREAK + REST  # as in the beginning


@pytest.mark.parametrize("on_cpu", [False, True])
def test_epochs_that_are_small_in_the_mean_are_left_alone(on_cpu: bool) -> None:
    """Each second one is large enough, so that the one after it is sent however small it is."""

    def rests(large: int, small: int, choice: Choice, start: int = 0) -> int:
        for number in range(start, start + 400, 2):
            choice.epoch(large, number, choice.last_was_large)
            choice.epoch(small, number + 1, choice.last_was_large)
            if choice.resting_until > number:
                return number + 1
        return 0

    choice = Choice(on_cpu)
    few = choice.few
    assert not rests(few + 5, few - 5, choice), "they even out"
    choice = Choice(on_cpu)
    first = rests(few + 1, few - 5, choice)
    assert choice.resting_until == first + REST
    again = rests(few + 1, few - 5, choice, 1000)
    assert again < 1010, "no better afterwards"
    assert choice.resting_until == again + 2 * REST
    choice.epoch(20 * few, 2000, choice.last_was_large)
    assert rests(few + 1, few - 5, choice, 3000) > 3010, "what was lost is made up for"
    assert choice.resting_until < 3100 + REST


def test_the_epoch_after_a_large_one_is_sent_however_small() -> None:
    choice = Choice(on_cpu=False)
    assert not choice.last_was_large
    assert choice.epoch(choice.few, 20, False)
    assert choice.last_was_large
    assert choice.epoch(1, 21, True)
    assert not choice.last_was_large
    assert not choice.epoch(choice.few - 1, 40, False)
    assert not choice.last_was_large


def test_kernels_that_cut_epochs_stay_unless_they_take_very_long() -> None:
    choice, key = Choice(on_cpu=True, units=2), ("dense", (64,), (1,))
    names = {"dense": 2, "relu": 28}

    def timed(name: str, us: float) -> None:
        for _ in range(SAMPLES):
            choice.timed_on_lane((name, *key[1:]), us)

    timed("relu", 4.0)
    timed("dense", 19.0)
    why = choice.refusal(1, key, 1, 8)
    assert why is not None
    assert "it takes 19 us" in why
    assert [choice.cut(key) for _ in range(CUTS + 2)] == [False] * (CUTS - 1) + [True] + [False] * 2
    assert choice.refusal(1, key, 1, 8) is None
    assert choice.refusal(1, key, 8, 8) == FILLS
    # what it loses there is seen: on two units its epoch took 75 us on lanes
    assert not choice.timed_by_device(160.0, 30, 30, 1, lambda: names)
    assert not choice.timed_by_device(400.0, 30, 30, 1, lambda: names)
    assert choice.timed_by_device(400.0, 30, 30, 1, lambda: names)
    assert choice.on_lanes_until(2, "dense")[0]

    timed("long", 300.0)
    long = ("long", *key[1:])
    assert not any(choice.cut(long) for _ in range(2 * CUTS))
    assert choice.refusal(1, long, 1, 8) is not None
    assert not any(choice.cut(other) for other in (None, ("relu", *key[1:]), ("new", *key[1:])))


def test_kernels_whose_tasks_take_longer_than_launches_are_left_alone() -> None:
    choice = Choice(on_cpu=False)

    def took(each_us: float, number: int, tasks: int = 100) -> bool:
        return choice.timed_by_device(
            each_us * tasks, tasks, 9, number, lambda: {"conv": 1, "relu": 1}
        )

    assert not took(60.0, 200)  # once is no habit
    assert not took(2.0, 300)
    assert not took(60.0, 400)
    assert choice.on_lanes_until(401, "conv") == (0, "")
    assert took(60.0, 500)
    until, why = choice.on_lanes_until(501, "conv")
    assert until == 500 + LONG_REST
    assert "60 us" in why
    assert choice.on_lanes_until(until, "conv") == (0, "")
    assert choice.on_lanes_until(501, "other") == (0, "")
    assert choice.refusal(501, ("relu", (8,), None), 1, 100) == why
    assert choice.refusal(until, ("relu", (8,), None), 1, 100) is None
    assert choice.refusal(501, ("other", (8,), None), 1, 100) is None
    assert took(60.0, 2000)  # the first after the rest
    assert choice.on_lanes_until(2001, "relu")[0] == 2000 + 2 * LONG_REST
    assert not took(2.0, 8000)
    assert not took(60.0, 8100, choice.few - 1)  # too few to say anything
    assert not took(60.0, 8200)
    assert took(60.0, 8300)
    assert choice.on_lanes_until(8301, "conv")[0] == 8300 + LONG_REST


def test_of_good_epochs_only_some_are_looked_at() -> None:
    choice = Choice(on_cpu=False)

    def took(each_us: float) -> bool:
        return choice.timed_by_device(each_us * 100, 100, 9, 1, lambda: {"conv": 100})

    for _ in range(SURE):
        assert choice.judges_next()
        assert not took(1.0)
    for _ in range(3):
        assert [choice.judges_next() for _ in range(UNJUDGED + 1)] == [False] * UNJUDGED + [True]
        choice.seen_by_program(1.0, 100)
    assert [choice.judges_next() for _ in range(UNJUDGED + 1)] == [False] * UNJUDGED + [True]
    assert not took(60.0)
    assert choice.judges_next(), "one of them was long"
    assert took(60.0)
    assert choice.judges_next()


def test_on_a_cpu_what_epochs_lose_against_lanes_counts() -> None:
    choice = Choice(on_cpu=True, units=2)
    names = {"near": 80, "far": 20}

    def took(us: float, number: int, width: int = 50) -> bool:
        return choice.timed_by_device(us, 100, width, number, lambda: names)

    saved = SAVED_US * (100 - choice.few)
    assert not any(took(1e6, number) for number in range(5)), "nothing is known of lanes"
    for key, us in (("near", 4.0), ("near", 6.0), ("far", 10.0), ("far", 900.0)):
        choice.timed_on_lane((key, (64,), None), us)  # at 900 it would not be in the scheduler
    assert not any(took(300 + saved, number) for number in range(5)), "(80 * 5 + 20 * 10) / 2"
    assert not took(310 + saved, 10)
    assert took(310 + saved, 11)
    until, why = choice.on_lanes_until(12, "far")
    assert until == 11 + LONG_REST
    assert "on lanes 300 us" in why
    chain = Choice(on_cpu=True, units=2)
    chain._means = choice._means
    for number in range(5):
        assert not chain.timed_by_device(600 + saved, 100, 1, number, lambda: names), (
            "no lane helps a chain"
        )


def with_policy(rt: acs.Runtime) -> Scheduler:
    """The scheduler that `auto` chooses to use or not, if it has one."""
    try:
        found = Scheduler(rt)
    except acs.UsageError as error:
        pytest.skip(str(error))
    if found.policy is None:
        pytest.skip("auto uses it for all that it can")
    return found


class Timeless:
    """An event of a driver that has no times of this command."""

    @property
    def profile(self) -> object:
        raise cl.LogicError("PROFILING_INFO_NOT_AVAILABLE")


def test_launches_whose_times_the_driver_does_not_have_end_all_the_same(device: cl.Device) -> None:
    with inside.long_launch(0.0), acs.Runtime(device) as rt:
        choice: Any = with_policy(rt).policy
        choice.on_cpu = True
        backend: Any = rt.engine.backend
        key = ("add", (8,), None)
        backend._ends.timed[1] = key
        end = End(1, 0, Timeless(), 0)
        assert backend.from_queues([end]) == [end]
        assert choice.wants_time(key)


def test_a_program_whose_tasks_are_long_goes_to_lanes(
    device: cl.Device,
) -> None:
    """As on a GPU, where launches on lanes are not timed one by one. An epoch ends by a wait."""
    with (
        inside.long_launch(0.0),
        inside.unattended(),
        testing.open_epochs(),
        acs.Runtime(device) as rt,
    ):
        choice: Any = with_policy(rt).policy
        choice.on_cpu = False
        add = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }").add
        rt.prebuild(add)
        x = rt.zeros(8, "i4")
        handle = None
        for step in range(40):
            for _ in range(50):
                handle = add((8,), None, x)
            assert x.get().tolist() == [50 * (step + 1)] * 8
        epochs = rt.stats()["scheduler"]["epochs"]
        assert 2 <= epochs <= 5, epochs
        assert handle is not None
        assert "a launch takes the host less" in str(rt.explain(handle))


def test_the_device_is_asked_for_times_only_of_what_seems_long() -> None:
    choice = Choice(on_cpu=False)

    def took(each_us: float) -> bool:
        return choice.timed_by_device(each_us * 100, 100, 9, 50, lambda: {"conv": 1})

    choice.seen_by_program(LONG_US * 100, 100)
    choice.seen_by_program(1e9, choice.few - 1)  # too few to say anything
    assert not choice.needs_timing
    choice.seen_by_program(LONG_US * 100 + 1, 100)
    assert choice.needs_timing
    assert not took(2.0)  # it was the program that came late
    for calm in (COOLDOWN, 2 * COOLDOWN):
        for _ in range(calm):
            assert not choice.needs_timing
            choice.seen_by_program(1e9, 100)
        choice.seen_by_program(1e9, 100)
        assert choice.needs_timing
        assert not took(2.0)
    for _ in range(4 * COOLDOWN + 1):
        choice.seen_by_program(1e9, 100)
    assert choice.needs_timing
    assert not took(60.0)
    assert choice.needs_timing, "it stays in doubt until the device says that it was not long"
    assert took(60.0)
    choice.seen_by_program(1.0, 100)
    assert not took(60.0), "one that was seen to be short ends a row of long ones"


def test_epochs_take_the_queue_without_times_until_one_seems_long(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU."""
    with inside.long_launch(1e9), acs.Runtime(device) as rt:
        backend: Any = with_policy(rt).backend
        choice: Any = with_policy(rt).policy
        choice.on_cpu = False
        backend._clockless = [cl.CommandQueue(rt.context, rt.device)]
        add = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }").add
        rt.prebuild(add)
        x = rt.zeros(8, "i4")
        used = []
        choose = backend._choose_queue

        def chosen() -> None:
            choose()
            is_clocked = backend.queues is backend._clocked
            used.append((backend.sender._queue is backend._clocked[0], is_clocked))

        monkeypatch.setattr(backend, "_choose_queue", chosen)

        def steps(many: int) -> None:
            for _ in range(many):
                before = x.get()
                for _ in range(50):
                    add((8,), None, x)
                assert (x.get() == before + 50).all()

        steps(6)
        assert set(used) == {(False, False)}
        with inside.long_launch(-1.0):  # all seem long
            steps(1)
            assert choice.needs_timing
            used.clear()
            steps(1)
        assert set(used) == {(True, True)}
        assert rt.stats()["scheduler"]["epochs"] >= 8


def test_the_oldest_reasons_are_forgotten_many_at_a_time() -> None:
    kept = ends.REMEMBERED
    where = dict.fromkeys(range(2 * kept - 1), "why")
    ends.forget_oldest(where)
    assert len(where) == 2 * kept - 1
    where[2 * kept - 1] = "why"
    ends.forget_oldest(where)
    assert list(where) == list(range(kept, 2 * kept))
