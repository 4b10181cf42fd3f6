"""The watchdog names what hangs, on every backend, and never what goes on.

Endless is what ends when the test says so (`endless.py`), or lasts several times as long as the
watchdog waits. What hangs waits for a gate, or is a host task that waits for the test.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import endless
import inside
import numpy as np
import pyopencl as cl
import pytest
from conftest import Environment
from endless import ENDED, End

import acs_cl as acs
from acs_cl.errors import StalledError
from acs_cl.host import starved
from acs_cl.launch import watchdog
from acs_cl.launch.watchdog import Watchdog
from acs_cl.scheduler import layout, snapshot
from acs_cl.testing import Gate, hold

ROOT = Path(__file__).parents[1]
BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto", "emulated")
WATCHDOG_S = 0.15
LASTS_S = 4 * WATCHDOG_S
"""How long an endless kernel lasts, about, where it does not hear of its end."""
MAY_RUN = "is with the device, and runs if that has begun it"
N = 64

SOURCE = (
    endless.SOURCE
    + """
kernel void spin_wide(global volatile int *x, ulong n, ulong end)
{ int i = get_global_id(0) + 8 * get_global_id(1); SPIN(x[i]) }
kernel void spin_together(global volatile int *x, ulong n, ulong end, local int *own)
{ int l = get_local_id(0); own[l] = l; barrier(CLK_LOCAL_MEM_FENCE);
  if (get_global_id(0) == 0) { SPIN(x[own[0]]) } }
kernel void add(global const int *x, global int *y) { int i = get_global_id(0); y[i] += x[i]; }
"""
)


@pytest.fixture(autouse=True)
def no_other_watchdog(environment: Environment) -> None:
    """What the environment asks for comes before what a test asks for."""
    environment(ACS_CL_WATCHDOG=None)


class Setting:
    """A runtime with a program and arrays, what holds launches back, and how to let them go."""

    def __init__(self, rt: acs.Runtime, gate: Gate) -> None:
        self.rt, self.gate = rt, gate
        self.prog = rt.build(SOURCE)
        self.x, self.y, self.z = (rt.zeros(N, "i4") for _ in range(3))
        self.released = threading.Event()
        self.end = End(rt.device, LASTS_S)
        self.rounds, self.address = self.end.rounds, self.end.address
        rt.prebuild(self.prog.spin, self.prog.add)
        rt.finish()

    def task(self, x: np.ndarray) -> None:
        assert self.released.wait(60)

    def rehearse(self, plant: Plant) -> None:
        """Plant what ends at once: a driver compiles a kernel when it comes, and until then the
        report says that it does not run."""
        rounds, self.rounds = self.rounds, 1
        plant(self)
        wait_to_the_end(self.rt)
        self.rounds = rounds

    def release(self) -> None:
        """Whatever was planted ends."""
        self.end.set()
        self.gate.open()
        self.released.set()


@contextmanager
def setting(rt: acs.Runtime) -> Iterator[Setting]:
    """What is planted ends with this, if not before."""
    with hold(rt) as gate:
        at = Setting(rt, gate)
        try:
            yield at
        finally:
            at.release()


Plant = Callable[[Setting], acs.Handle]
"""Plants something endless; the handle of what has to be named."""


def alone(at: Setting) -> acs.Handle:
    return at.prog.spin((1,), None, at.x, at.rounds, at.address)


def behind_others(at: Setting) -> acs.Handle:
    for _ in range(5):
        at.prog.add((N,), None, at.y, at.x)
    return alone(at)


def with_dependants(at: Setting) -> acs.Handle:
    handle = alone(at)
    for _ in range(3):
        at.prog.add((N,), None, at.x, at.y)
        at.prog.add((N,), None, at.y, at.z)
    return handle


def beside_others(at: Setting) -> acs.Handle:
    handle = alone(at)
    for _ in range(5):
        at.prog.add((N,), None, at.y, at.z)
    return handle


def one_of_two(at: Setting) -> acs.Handle:
    handle = at.prog.spin((1,), None, at.x, at.rounds, at.address)
    at.prog.spin((1,), None, at.y, at.rounds // 1024, at.address)
    return handle


def by_a_decision(at: Setting) -> acs.Handle:
    go = at.rt.array([1], "i4")
    return at.prog.spin((1,), None, at.x, at.rounds, at.address, when=go)


def together(at: Setting) -> acs.Handle:
    return at.prog.spin_together((32,), (8,), at.x, at.rounds, at.address, cl.LocalMemory(32))


def in_two_dimensions(at: Setting) -> acs.Handle:
    return at.prog.spin_wide((2, 2), (1, 1), at.x, at.rounds // 2, at.address)


def one_of_many(at: Setting) -> acs.Handle:
    parts = [at.x[i : i + 1] for i in range(8)]
    rounds = [1, 1, 1, at.rounds, 1, 1, 1, 1]
    return at.prog.spin.launch_many((1,), None, parts, rounds, at.address)


def in_a_graph(at: Setting) -> acs.Handle:
    with at.rt.record() as graph:
        at.prog.add((N,), None, at.y, at.x)
        at.prog.spin((1,), None, at.x, at.rounds, at.address)
        at.prog.add((N,), None, at.x, at.y)
    return graph.replay()


def gated(at: Setting) -> acs.Handle:
    return at.prog.add((N,), None, at.y, at.x, wait_for=[at.gate.event])


def gated_with_dependants(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.prog.add((N,), None, at.x, at.z)
    return handle


def a_copy_behind_a_gate(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.z.copy_from(at.x)
    return handle


def a_fill_behind_a_gate(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.x.fill(3)
    return handle


def a_read_behind_a_gate(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.x.get(wait=False)
    return handle


def a_host_task(at: Setting) -> acs.Handle:
    return at.rt.call(at.task, writes=at.x)


def behind_a_host_task(at: Setting) -> acs.Handle:
    handle = a_host_task(at)
    at.prog.add((N,), None, at.x, at.y)
    return handle


def a_host_task_behind_a_gate(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.released.set()
    at.rt.call(at.task, reads=at.x)
    return handle


def a_replay_behind_a_host_task(at: Setting) -> acs.Handle:
    with at.rt.record() as graph:
        at.prog.add((N,), None, at.x, at.y)
        at.prog.add((N,), None, at.y, at.z)
    handle = a_host_task(at)
    graph.replay()
    return handle


def a_gate_and_a_task(at: Setting) -> acs.Handle:
    handle = gated(at)
    at.rt.call(at.task, writes=at.y)
    return handle


class Planted(NamedTuple):
    """What is planted, what the report says of it, and how the program waits."""

    plant: Plant
    said: str


ENDLESS = (
    alone, behind_others, with_dependants, beside_others, one_of_two, by_a_decision, together,
    in_two_dimensions, one_of_many, in_a_graph,
)  # fmt: skip
HANGS = (
    gated, gated_with_dependants, a_copy_behind_a_gate, a_fill_behind_a_gate,
    a_read_behind_a_gate, a_host_task, behind_a_host_task, a_host_task_behind_a_gate,
    a_replay_behind_a_host_task, a_gate_and_a_task,
)  # fmt: skip
WAITS: dict[str, Callable[[Setting, acs.Handle], object]] = {
    "finish": lambda at, handle: at.rt.finish(),
    "wait": lambda at, handle: handle.wait(),
    "get": lambda at, handle: at.x.get(),
}


def test_twenty_are_planted() -> None:
    assert len(set(ENDLESS)) + len(set(HANGS)) == 20


def test_what_is_named_is_counted_by_backend(tmp_path: Path) -> None:
    """By the tool that counts for the documents."""
    from seeing import counted

    name, other = "test_what_hangs_is_named[lanes-alone]", "test_page[host-task]"
    failed = f'<testcase name="{name}"><failure/></testcase>'
    path = tmp_path / "ends.xml"
    path.write_text(f'<t><testcase name="{name}"/>{failed}<testcase name="{other}"/></t>', "utf-8")
    lanes, rest = {"planted": 2, "named": 1}, {"planted": 1, "named": 1}
    assert counted(path) == {"lanes": lanes, "all": rest}


def wait_to_the_end(rt: acs.Runtime) -> None:
    until = perf_counter() + 60
    while perf_counter() < until:
        try:
            rt.finish()
        except StalledError:
            continue
        return
    raise AssertionError("what was planted does not end")


@pytest.mark.rotate("plant", 4)
@pytest.mark.parametrize("plant", [*ENDLESS, *HANGS], ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_hangs_is_named(
    backend: str, plant: Plant, device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(device, backend=backend, watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:
        if plant in ENDLESS:
            at.rehearse(plant)
        capfd.readouterr()
        how = list(WAITS)[([*ENDLESS, *HANGS].index(plant) + BACKENDS.index(backend)) % 3]
        handle = plant(at)
        with pytest.raises(StalledError) as caught:
            WAITS[how](at, handle)
        text = str(caught.value)
        at.release()
        wait_to_the_end(rt)
    told = [line for line in text.splitlines() if named_in(line, plant, handle)]
    assert told, text
    if plant in ENDLESS and backend != "emulated":
        assert any(runs(line, device) for line in told), text
    assert capfd.readouterr().err.count(text) == 1


def named_in(line: str, plant: Plant, handle: acs.Handle) -> bool:
    """Whether a line tells of what was planted."""
    if plant in ENDLESS:
        return "spin" in line or f"replayed by launch {handle.number}" in line
    return f"launch {handle.number} (" in line and ("wait_for=" in line or "of the host" in line)


def runs(line: str, device: cl.Device) -> bool:
    """Whether a line tells that something runs. NVIDIA's driver does not say which kernel does."""
    if "NVIDIA" not in device.platform.name:
        line = line.replace(MAY_RUN, "")
    return "runs" in line


# ---- no false alarms -----------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_alarm_while_launches_end(
    backend: str, device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(device, backend=backend, watchdog_s=0.5) as rt:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(N, "i4"), rt.zeros(N, "i4")
        rt.prebuild(prog.add)
        until, launched = perf_counter() + 1.2, 0
        while perf_counter() < until:
            prog.add((N,), None, x, y)
            launched += 1
        assert y.get().tolist() == [0] * N
        rt.finish()
    assert "nothing has ended" not in capfd.readouterr().err


def test_no_alarm_while_the_host_makes_transfers(device: cl.Device) -> None:
    """They are launches, and end."""
    passed = [0.0]
    clock = inside.watchdog_clock(lambda: perf_counter() + passed[0])
    with clock, acs.Runtime(device, backend="lanes", watchdog_s=100) as rt, setting(rt) as at:
        handle, dog = a_host_task(at), dog_of(rt)
        for value in range(2 * watchdog.LOOKS):
            at.y.fill(value).wait()
            passed[0] += 100 / watchdog.LOOKS
            dog.look()
        assert not handle.done
        assert not dog.text
        at.release()
        handle.wait()


@pytest.mark.parametrize("backend", ["lanes", "device"])
def test_no_alarm_while_the_program_does_something_else(
    backend: str, device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(device, backend=backend, watchdog_s=WATCHDOG_S) as rt:
        x = rt.zeros(N, "i4")
        rt.finish()
        x.fill(1)  # nobody looks whether it has ended, but for the watchdog
        rt.flush()
        sleep(4 * WATCHDOG_S)  # the program's own time is what is tested
        assert x.get().tolist() == [1] * N
    assert "nothing has ended" not in capfd.readouterr().err


def test_no_alarm_while_the_program_has_an_event_to_set(
    device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(device, backend="lanes", watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:
        handle = gated(at)
        sleep(4 * WATCHDOG_S)  # the program's own time is what is tested
        assert "nothing has ended" not in capfd.readouterr().err
        with pytest.raises(StalledError):
            handle.wait()
        at.release()
        handle.wait()


def test_who_goes_on_waiting_gets_the_values(device: cl.Device) -> None:
    with (
        acs.Runtime(device, backend="lanes", watchdog_s=WATCHDOG_S) as rt,
        setting(rt) as at,
    ):
        alone(at)
        with pytest.raises(StalledError):
            rt.finish()
        at.release()
        wait_to_the_end(rt)
        assert at.x.get()[0] == ENDED


def test_another_thread_hears_of_it_too(device: cl.Device) -> None:
    heard: list[str] = []
    with acs.Runtime(device, watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:

        def wait(handle: acs.Handle) -> None:
            try:
                handle.wait()
            except StalledError as error:
                heard.append(str(error))

        thread = threading.Thread(target=wait, args=(alone(at),))
        thread.start()
        thread.join(60)
        at.release()
        wait_to_the_end(rt)
    assert len(heard) == 1
    assert "(spin)" in heard[0]


# ---- off, and from outside -----------------------------------------------------------------------


def test_without_a_watchdog_there_is_no_thread(device: cl.Device) -> None:
    def threads() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if "watchdog" in one.name]

    before = threads()  # of earlier tests, which look for the last time soon
    with acs.Runtime(device) as rt:
        assert rt.engine.watchdog is None
        assert not set(threads()) - set(before)
    with acs.Runtime(device, watchdog_s=100):
        assert len(set(threads()) - set(before)) == 1


def dog_of(rt: acs.Runtime) -> Watchdog:
    found = rt.engine.watchdog
    assert isinstance(found, Watchdog)
    return found


def test_a_program_without_a_processor_is_no_stall_up_to_a_bound(
    device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    has_one, asked = threading.Event(), threading.Event()

    def starved_s(before: object) -> float:
        asked.set()
        return 0.0 if has_one.is_set() else 1e9

    with acs.Runtime(device, backend="lanes", watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:
        dog_of(rt).starved_s = starved_s
        handle = a_host_task(at)
        assert asked.wait(30)
        assert "nothing has ended" not in capfd.readouterr().err
        has_one.set()
        with pytest.raises(StalledError):
            handle.wait()
    has_one.clear()
    with acs.Runtime(device, backend="lanes", watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:
        dog_of(rt).starved_s, dog_of(rt).most = starved_s, 2
        handle = a_host_task(at)
        with pytest.raises(StalledError):
            handle.wait()


def test_time_in_which_the_program_was_stopped_is_no_stall(
    device: cl.Device,
) -> None:
    """All clocks go on meanwhile, but for what is stopped, too."""
    stopped = [0.0]
    clock = inside.watchdog_clock(lambda: perf_counter() + stopped[0])
    tick = 100 / watchdog.LOOKS
    with clock, acs.Runtime(device, backend="lanes", watchdog_s=100) as rt, setting(rt) as at:
        handle = a_host_task(at)
        dog = dog_of(rt)

        def looks(many: int, every: float) -> None:
            for _ in range(many):
                stopped[0] += every
                dog.look()

        looks(1 + watchdog.LOOKS // 2, tick)
        looks(1, 3600)
        looks(2, tick)
        assert not dog.text
        looks(watchdog.LOOKS, tick)
        assert "nothing has ended for 100 s" in dog.text
        dog.text = ""  # calls that wait have the clock as it is
        at.release()
        handle.wait()


def test_threads_tell_how_long_they_waited_for_a_processor() -> None:
    before = starved.waited_s()
    assert starved.starved_s(before) >= 0.0
    if sys.platform == "linux" and starved.THREADS.exists():
        assert str(threading.get_native_id()) in before


def test_a_hang_on_several_devices_is_named(
    device: cl.Device, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(devices=[device, device], watchdog_s=WATCHDOG_S) as rt, setting(rt) as at:
        at.rehearse(alone)
        capfd.readouterr()
        handle = alone(at)
        with pytest.raises(StalledError, match=r"on 2 x .*\n.*\(spin\) runs"):
            handle.wait()
        at.end.set()
        wait_to_the_end(rt)
        assert "(spin)" in capfd.readouterr().err


def test_queue_is_watched_from_outside(
    device: cl.Device, environment: Environment, capfd: pytest.CaptureFixture[str]
) -> None:
    environment(ACS_CL_WATCHDOG=str(WATCHDOG_S))
    context = cl.Context([device])
    queue = acs.Queue(context)
    program = cl.Program(context, SOURCE).build()
    x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * N)
    cl.enqueue_fill_buffer(queue, x, np.int32(0), 0, 4 * N)
    queue.finish()
    end = End(device, LASTS_S)
    program.spin(queue, (1,), None, x, np.uint64(end.rounds), np.uint64(end.address))
    try:
        with pytest.raises(cl.RuntimeError, match=r"nothing has ended for .*\n  launch 2 \(spin\)"):
            queue.finish()
    finally:
        end.set()
    wait_to_the_end(queue.runtime)
    assert "(spin)" in capfd.readouterr().err


STALLS = """
import os, sys
from subprocess import run

def test_stalls():
    run([sys.executable, __file__], check=True, env=os.environ | {"ACS_PLANTED": "(spin)"})

def test_is_endless_on_purpose():
    run([sys.executable, __file__], check=True, env=os.environ | {"ACS_PLANTED": "(<lambda>"})

if __name__ == "__main__":
    import threading
    import acs_cl as acs
    told = threading.Event()
    with acs.Runtime() as rt:
        rt.call(lambda x: told.wait(20) and None, writes=rt.zeros(1, "i4"))
        try:
            rt.finish()
        except acs.errors.StalledError:
            told.set()
"""


def test_a_suite_is_listened_to_with_the_programs_that_it_starts(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(STALLS, encoding="utf-8")
    out = tmp_path / "alarms.json"
    done = subprocess.run(
        [sys.executable, ROOT / "tests/alarms", "--out", out, "--seconds", "0.3", "-q", "-p",
         "no:cacheprovider", tmp_path / "test_it.py"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["tests"] == {"passed": 2}
    assert found["reports_of_planted_hangs"] == 1
    (alarm,) = found["alarms"]
    assert alarm["test"].endswith("test_it.py::test_stalls")
    assert "runs on a thread of the host" in alarm["text"]


PROGRAM = """
import acs_cl as acs
rt = acs.Runtime(backend="{backend}", watchdog_s={watchdog_s})
prog = rt.build("kernel void spin(global volatile int *x) {{ while (x[0] == 0) ; }}")
x = rt.array([{word}], "i4")
prog.spin((1,), None, x)
print("runs", flush=True)
{then}
"""


def run_program(then: str, word: int, watchdog_s: float | None) -> subprocess.CompletedProcess[str]:
    text = PROGRAM.format(backend="lanes", then=then, word=word, watchdog_s=watchdog_s)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def compiled() -> None:
    """The driver has the kernel of the program in its cache: while it compiles, nothing runs."""
    assert run_program("rt.close()", 1, None).returncode == 0


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("then", ["x.get()", "rt.close()", "pass", "with rt: pass"])
def test_program_with_an_endless_kernel_ends(then: str, device: cl.Device) -> None:
    done = run_program(then, 0, 0.2)
    assert done.returncode == 1, done.stderr  # also where only the end of the process waits for it
    assert done.stdout == "runs\n"
    told = [line for line in done.stderr.splitlines() if line.startswith("  launch 2 (spin) ")]
    assert any(runs(line, device) for line in told), done.stderr


@pytest.mark.parametrize("wrong", [0, -1, "ten", True])
def test_wrong_time_is_refused(device: cl.Device, wrong: object) -> None:
    with pytest.raises(acs.UsageError, match=r"watchdog_s=.*: expected seconds above 0"):
        acs.Runtime(device, watchdog_s=wrong)  # type: ignore[arg-type]


def test_wrong_time_from_outside_is_refused(device: cl.Device, environment: Environment) -> None:
    environment(ACS_CL_WATCHDOG="soon")
    with pytest.raises(acs.UsageError, match="ACS_CL_WATCHDOG='soon': expected seconds"):
        acs.Runtime(device)


# ---- words of an epoch ---------------------------------------------------------------------------


def test_words_tell_who_runs_and_who_waits() -> None:
    recorder = layout.Recorder()
    for tiles, upstream in ((1, ()), (3, ()), (1, (0,)), (1, (0, 1)), (2, (1,)), (1, ())):
        recorder.add(layout.head(0, tiles, 10 * tiles, 10, 1, 0), b"", None, list(upstream))
    image = recorder.image(64)
    words = image.words.copy()
    block = words[image.block :]
    state = block[layout.STATE_WORD :]
    ring = state[64:]
    assert snapshot.read(words, block, 6).running.tolist() == [0] * 6
    state[32 + 0] = snapshot.STARTED | 1  # task 0 runs, and one of the tiles of task 1
    state[32 + 1 * 1] = 2
    ring[:] = 0
    ring[0] = 1 << layout.TASK_BITS | 2  # the other is in the ring
    found = snapshot.read(words, block, 6)
    assert found.running.tolist() == [1, 1, 0, 0, 0, 0]
    assert found.queued.tolist() == [0, 1, 0, 0, 0, 0]
    said = "\n".join(snapshot.lines(found, 4, lambda task: f"number {task}"))
    assert "runs: number 0" in said
    assert "runs: number 1, groups at it: 1, tiles left 2" in said
    assert "tasks 3, the oldest is number 2, which waits for 1" in said
