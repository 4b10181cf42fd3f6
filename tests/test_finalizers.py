"""Finalizers: the collector runs them on any thread, in the middle of anything, and at the end of
the interpreter."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest
from ctrl_c import Ctrl

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.graph.function import Function
from acs_cl.launch import books, failures
from acs_cl.queue.bypass import BEHIND
from tests.test_queue import READ_WRITE, ROUNDS, N, buffer, kernels_of, values_of

# Errors that Python can only print, of finalizers and of threads, fail the test.
pytestmark = pytest.mark.filterwarnings(
    "error::pytest.PytestUnraisableExceptionWarning",
    "error::pytest.PytestUnhandledThreadExceptionWarning",
)


@pytest.fixture(autouse=True)
def all_collected() -> Iterator[None]:
    """What the test left is collected while it is listened to."""
    yield
    gc.collect()


def test_ctrl_c_as_an_array_is_dropped_is_heard_and_its_memory_comes_back(
    device: cl.Device,
) -> None:
    with acs.Runtime(device) as rt:
        arrays, ctrl, heard = [rt.zeros(1 << 20)], Ctrl(), list[None]()
        rt.finish()

        def dropped() -> None:
            nonlocal heard
            heard += [-ctrl]
            del arrays[:]
            rt.finish()

        with pytest.raises(KeyboardInterrupt):
            dropped()
        assert (len(heard), len(arrays)) == (1, 0)
        assert rt.engine.table.has_returned


def test_memory_of_an_array_in_a_cycle_comes_back_whole(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        store, before = rt.engine.store, rt.engine.store.in_use_bytes
        for _ in range(10):
            cycle: list[Any] = [rt.zeros(1 << 20)]
            cycle.append(cycle)
            del cycle
            gc.collect()
        assert not rt.zeros(4).get().any()
        assert store.in_use_bytes - before < 2 << 22


def wait_for_ends() -> None:
    for one in threading.enumerate():
        if one.name == "acs_cl end of a queue":
            one.join(30)
            assert not one.is_alive()


def gated(context: cl.Context, kernels: Any) -> tuple[acs.Queue, cl.Buffer]:
    """A queue in a cycle, with commands that wait for another queue's."""
    other, queue = cl.CommandQueue(context), acs.Queue(context)
    slow, a = cl.Buffer(context, READ_WRITE, 4 * N), buffer(queue, np.zeros(N))
    for step in range(4):
        long = ROUNDS // 10 if context.devices[0].type & cl.device_type.CPU else 4 * ROUNDS
        rounds = np.int32(long if step == 0 else 1)
        gate = kernels["slow"](other, (N,), None, slow, np.int32(0), rounds)
        kernels["add"](queue, (N,), None, a, np.int32(1), wait_for=[gate])
    queue.cycle = queue  # type: ignore[attr-defined]
    return queue, a


def test_a_queue_that_goes_inside_of_its_runtime(context: cl.Context) -> None:
    """Its last commands were moved along by the finalizer, in the middle of the same loop of the
    same thread: KeyError."""
    kernels = kernels_of(context)
    queue, a = gated(context, kernels)
    runtime, last, gone = queue.runtime, [queue], weakref.ref(queue)

    def drop() -> None:
        if last and threading.current_thread() is threading.main_thread():
            assert runtime.engine.lock.is_owned()
            del last.pop().cycle  # type: ignore[attr-defined]

    del queue
    with testing.at("before foreign events are looked at", drop):
        runtime.flush()
    assert not last, "the gates were open before anybody looked"
    assert gone() is None
    wait_for_ends()
    assert not runtime.engine.foreign
    runtime.finish()
    assert (values_of(cl.CommandQueue(context), a) == 4).all()
    assert id(runtime) not in inside.users()


@pytest.fixture
def own_collector() -> Iterator[None]:
    """What others have set does not count, nor what they have made."""
    before = gc.get_threshold(), gc.isenabled()
    gc.collect()
    yield
    gc.set_threshold(*before[0])
    (gc.enable if before[1] else gc.disable)()
    gc.freeze()  # again, else the collections of other tests visit all that the process has


def turned_on_by_another_thread() -> None:
    thread = threading.Thread(target=gc.enable)
    thread.start()
    thread.join()


@pytest.mark.parametrize("turned_on", [turned_on_by_another_thread, gc.enable, gc.isenabled])
def test_no_finalizer_runs_while_its_thread_has_the_lock(
    own_collector: None, turned_on: Callable[[], None]
) -> None:
    """The collector is off then, unless somebody turns it on."""
    lock, had = core.native.Lock(), list[bool]()
    gc.unfreeze()
    gc.collect()
    frozen = gc.get_freeze_count()  # immortal objects, which collections of Python 3.12 put there
    gc.set_threshold(10, 1, 1)
    with lock:
        turned_on()
        Finalized(lambda: had.append(lock.is_owned()))
        kept = [[] for _ in range(100)]  # type: ignore[var-annotated]
        gc.collect()
    assert (had, len(kept)) == ([], 100)
    assert gc.isenabled()
    gc.collect()
    assert had == [False]
    assert gc.get_freeze_count() == frozen


def test_another_thread_collects_while_one_has_the_lock(own_collector: None) -> None:
    lock, had = core.native.Lock(), list[bool]()
    with lock:
        Finalized(lambda: had.append(lock.is_owned()))
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()
        assert had == [False]


def test_a_collection_that_was_due_before_the_lock_is_none_inside(own_collector: None) -> None:
    """Python 3.12 begins one that is due, although it was turned off meanwhile."""
    lock, had = core.native.Lock(), list[bool]()
    gc.disable()
    Finalized(lambda: had.append(lock.is_owned()))
    gc.set_threshold(gc.get_count()[0] + 50, 1000, 1000)
    gc.enable()
    # in C from the first of these to the lock, so that nothing can be collected in between
    made = list(chain(enumerate(range(100)), starmap(lock.acquire, [()])))
    many = [[] for _ in range(100)]  # type: ignore[var-annotated]
    assert True not in had
    lock.release()
    gc.collect()
    assert had == [False]
    assert (len(made), len(many)) == (101, 100)


def test_queues_come_and_go_on_all_threads(context: cl.Context) -> None:
    """The collector runs as often as it can, so that finalizers meet every line."""
    kernels, wrong = kernels_of(context), []
    program = cl.Program(context, "kernel void one(global int *x) { x[get_global_id(0)] += 1; }")
    program.build()
    ones = [cl.Kernel(program, "one") for _ in range(3)]
    before = gc.get_threshold()

    def work(which: int) -> None:
        for step in range(12):
            queue = acs.Queue(context)
            twin = acs.Queue(context) if step % 3 else queue
            a = buffer(queue, np.zeros(N))
            for _ in range(5):
                ones[which](twin, (N,), None, a)
                ones[which](queue, (N,), None, a)
            if step % 2:
                mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.READ, 0, (N,), np.int32)
                del mapped
            queue.cycle = [queue, twin]  # type: ignore[attr-defined]
            if values_of(queue, a)[0] != 10:
                wrong.append((which, step))
            del queue, twin

    gc.set_threshold(7, 2, 2)
    try:
        threads = [threading.Thread(target=work, args=(which,)) for which in range(3)]
        for one in threads:
            one.start()
        for _ in range(3):
            gated(context, kernels)
        for one in threads:
            one.join(120)
            assert not one.is_alive()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    wait_for_ends()
    assert not wrong


def test_runtimes_are_counted_while_others_are_made(device: cl.Device) -> None:
    """Waits look at all of them, from any thread."""

    class Runtime:
        pass

    stop, made = threading.Event(), 0

    def make() -> None:
        nonlocal made
        kept: list[Any] = []
        while not stop.is_set():
            kept.append(Runtime())
            books.register(kept[-1])
            made += 1
            del kept[:-5]

    maker = threading.Thread(target=make)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    maker.start()
    try:
        looks = 0
        while looks < 2000 or (made <= 100 and maker.is_alive()):
            books.registered()
            looks += 1
    finally:
        stop.set()
        maker.join()
        sys.setswitchinterval(before)
    assert made > 100


AT_EXIT = """
import sys
import warnings
import numpy as np, pyopencl as cl, pyopencl.array
import acs_cl as acs
from acs_cl import devices
context = cl.Context([devices.choose(None)])
source = "kernel void one(global int *x) { x[get_global_id(0)] += 1; }"
warnings.simplefilter("ignore", cl.CompilerWarning)  # some compilers always say something
one = cl.Program(context, source).build().one
made = [acs.Queue(context), acs.Queue(context, backend="lanes"), acs.Queue(context, trace=True)]
kept = []
for queue in made:
    a = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
    cl.enqueue_copy(queue, a, np.zeros(64, np.int32))
    events = [one(queue, (64,), None, a) for _ in range(5)]
    mapped, _ = cl.enqueue_map_buffer(queue, a, cl.map_flags.READ, 0, (64,), np.int32)
    gate = cl.UserEvent(context)
    # a program of NVIDIA's does not end while a command waits for one, on plain queues either
    if "NVIDIA" not in context.devices[0].platform.name:
        one(queue, (64,), None, a, wait_for=[gate])
    x = cl.array.zeros(queue, 64, np.int32, allocator=queue.allocator) + 1
    kept.append((queue, a, events, mapped, gate, x))
    if "cycle" in sys.argv:
        queue.cycle = kept
if "delete" in sys.argv:
    del queue, made, kept, events, mapped, a, x, gate
print("done")
"""


@pytest.mark.parametrize("words", [(), ("cycle",), ("delete",), ("cycle", "delete")])
def test_an_interpreter_that_ends_says_nothing(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, *words],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


class Finalized:
    """In a cycle, so that only the collector ends it. Then it makes a call."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call, self.cycle = call, self

    def __del__(self) -> None:
        self.call()


@contextlib.contextmanager
def collected_after(objects: int) -> Iterator[None]:
    """The collector runs with the next object behind so many that are made and not gone."""
    before = gc.get_threshold()
    gc.set_threshold(gc.get_count()[0] + objects, 1000, 1000)
    gc.enable()
    try:
        yield
    finally:
        gc.disable()
        gc.set_threshold(*before)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The collector runs only where a test says so."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("backend", ["device", "lanes"])
def test_a_finalizer_that_launches_finds_no_launch_half_made(
    device: cl.Device, uncollected: None, backend: str
) -> None:
    """The collector ran while the core or Python had the lock, or filled a record of an epoch: the
    launch of the finalizer was lost, or the program never ended."""
    with acs.Runtime(device, backend=backend) as rt:
        prog = rt.build("kernel void one(global int *x) { x[get_global_id(0)] += 1; }")
        x, y, flag = rt.zeros(8, "i4"), rt.zeros(8, "i4"), rt.array([1], "i4")
        own, handles, finalized = rt.zeros(8, "i4"), list[acs.Handle](), 0
        with rt.record() as graph:
            prog.one((8,), None, x)
            prog.one((8,), None, y)

        def launches() -> None:
            nonlocal finalized
            handles.append(prog.one((8,), None, own[:]))
            handles.append(prog.one((8,), None, own, when=flag))
            finalized += 2

        calls: list[Callable[[], object]] = [
            lambda: handles.append(prog.one((8,), None, x)),
            lambda: prog.one((8,), None, x[:], when=flag),
            lambda: prog.one.launch_many((4,), None, [x[:4], x[4:]]),
            lambda: y[:].copy_from(x),
            graph.replay,
        ]
        want_x = want_y = 0
        for objects in range(30):
            for number, call in enumerate(calls):
                Finalized(launches)
                with collected_after(objects):
                    call()
                want_x += number != 3
                want_y = want_x if number == 3 else want_y + (number == 4)
        # another thread may be in the middle of a collection, and this one then collects nothing
        testing.wait_until(lambda: gc.collect() >= 0 and finalized == 2 * 150)
        assert len(handles) == 2 * 150 + 30
        assert (own.get() == finalized).all()
        assert (x.get() == want_x).all()
        assert (y.get() == want_y).all()
        for handle in handles:
            handle.wait()


@pytest.mark.parametrize("check", ["access", "access,order=1", "order=1"])
def test_a_finalizer_that_launches_is_no_part_of_what_is_checked(
    device: cl.Device, uncollected: None, check: str
) -> None:
    """It was undone with a launch that ran to be checked, or what it wrote was held against that
    launch."""
    with acs.Runtime(device, backend="lanes", check=f"{check},every=1") as rt:
        add = rt.build("kernel void add(global int *x, int a) { x[get_global_id(0)] += a; }").add
        x, own, finalized = rt.zeros(8, "i4"), rt.zeros(8, "i4"), 0

        def launches() -> None:
            nonlocal finalized
            finalized += 1
            add((8,), None, own, 1)

        for objects in range(20, 260, 4):
            Finalized(launches)
            with collected_after(objects):
                add((8,), None, x, 1)
                rt.finish()
            gc.collect()
        assert finalized == 60
        assert (own.get() == 60).all()
        assert (x.get() == 60).all()


READS = """
import faulthandler, gc
from acs_cl.access.inference import from_source

faulthandler.dump_traceback_later(120, exit=True)
SOURCE = "kernel void k(global int *x) {{ x[{}] = 1; }}"

class Reads:
    def __init__(self, number):
        self.number, self.cycle = number, self
    def __del__(self):
        found.append(from_source(SOURCE.format(self.number), "k", "", None).kernel)

found, before = [], gc.get_threshold()
from_source(SOURCE.format(0), "k", "", None)
gc.disable()
for objects in range(400):
    Reads(1000 + objects)
    gc.set_threshold(gc.get_count()[0] + objects, 1000, 1000)
    gc.enable()
    from_source(SOURCE.format(1 + objects), "k", "", None)
    gc.disable()
    gc.set_threshold(*before)
    gc.collect()
print(len(found), set(found))
"""


def test_a_finalizer_may_read_a_source_while_its_thread_reads_one(own_cache: Path) -> None:
    """It waited for a lock that its own thread had."""
    done = subprocess.run(
        [sys.executable, "-c", READS], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.returncode) == ("400 {'k'}\n", 0), done.stderr


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("what", ["capture", "update", "swap"])
def test_what_a_finalizer_launches_is_no_part_of_a_call_that_is_recorded(
    device: cl.Device, uncollected: None, what: str, window: int | None
) -> None:
    """It was: a replay made the call twice, and the finalizer's launch in its place or never."""
    with acs.Runtime(device, backend="lanes", window=window) as rt:
        prog = rt.build("kernel void add(global int *x, int a) { x[get_global_id(0)] += a; }")
        for objects in range(0, 60, 2):
            x, y, own = rt.zeros(8, "i4"), rt.zeros(8, "i4"), rt.zeros(8, "i4")
            after = functools.partial(collected_after, objects)
            with rt.record() as graph:
                Finalized(lambda own=own: prog.add((8,), None, own, 10))  # type: ignore[misc]
                with after() if what == "capture" else contextlib.nullcontext():
                    step = prog.add((8,), None, x, 1)
            with after():
                if what == "update":
                    graph.update(step, a=1)
                if what == "swap":
                    graph.swap(x, y)
            gc.collect()
            graph.replay()
            graph.replay()
            assert (y if what == "swap" else x).get().tolist() == [2] * 8
            # inside of the recording it is one call more
            assert own.get()[0] == (10 if len(graph) == 1 else 20)
            assert len(graph) == 1 or what == "capture"


def test_a_finalizer_frees_an_array_that_is_being_looked_at(
    device: cl.Device, uncollected: None
) -> None:
    """Memory was read that was no longer there."""
    with acs.Runtime(device) as rt:
        for objects in range(8):
            for look in (lambda one: one[2:4], lambda one: one.spans, lambda one: one.place):
                array = rt.zeros(16)
                Finalized(array.free)
                with collected_after(objects):
                    look(array)
                gc.collect()
                assert array.base is None
                assert array.place is None
                with pytest.raises(acs.UsageError, match="free"):
                    array.get()
        assert not rt.zeros(4).get().any()


def test_the_collector_is_as_the_program_set_it(device: cl.Device) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        rt.zeros(4).get()
        assert gc.isenabled()
        with rt.engine.lock:
            assert not gc.isenabled()
            with pytest.raises(KeyError), rt.engine.lock:
                raise KeyError
            assert not gc.isenabled()
            rt.engine.lock.wait(0, 0.001)  # which holds nothing meanwhile
            assert not gc.isenabled()
        assert gc.isenabled()
        gc.disable()
        try:
            rt.zeros(4).get()
            assert not gc.isenabled()
        finally:
            gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_collector_runs_in_a_fork_of_a_program_whose_threads_launch() -> None:
    """A thread that has the lock is not in the child, and does not give it back there."""
    code = """
import gc, os, threading
from acs_cl import closing, core
lock, has, ends = core.native.Lock(), threading.Event(), threading.Event()
def holds():
    with lock:
        has.set()
        ends.wait()
thread = threading.Thread(target=holds)
thread.start()
has.wait()
assert not gc.isenabled()
child = os.fork()
if not child:
    os._exit(not gc.isenabled())
ends.set()
thread.join()
assert gc.isenabled()
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


class Last:
    """Makes a call when nobody knows it any more. `had_lock`: whether its thread had the lock of
    the runtime then, each time."""

    def __init__(self, rt: acs.Runtime, call: Callable[[], object], had_lock: list[bool]) -> None:
        self.rt, self.call, self.had_lock = rt, call, had_lock

    def __del__(self) -> None:
        self.had_lock.append(self.rt.engine.lock.is_owned())
        self.call()


class Values(np.ndarray[Any, Any]):
    """Holds something besides values."""

    last: Last


HELD: dict[str, dict[str, Any]] = {
    "alone": {},
    "ready_first": {"window": 2, "issue": "ready_first"},
    "traced": {"trace": True},
    "checked": {"check": "access"},
}


@pytest.mark.parametrize("options", HELD)
@pytest.mark.parametrize("backend", ["device", "lanes"])
def test_what_a_launch_takes_along_as_it_ends_finds_no_launch_half_made(
    device: cl.Device, uncollected: None, backend: str, options: str
) -> None:
    """The record of a launch was the last to know a host task, or the target of a read. It went
    under the lock, often in the middle of another launch. With a check the program never ended,
    since two threads waited for each other's lock."""
    ended = threading.Event()

    def work() -> None:
        with acs.Runtime(device, backend=backend, **HELD[options]) as rt:
            launch_and_drop(rt)
        ended.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert ended.is_set()


def launch_and_drop(rt: acs.Runtime) -> None:
    """Launch what holds the last reference to something, in every way, and compare."""
    prog = rt.build("kernel void one(global int *x) { x[get_global_id(0)] += 1; }")
    x, own, had_lock = rt.zeros(8, "i4"), rt.zeros(8, "i4"), list[bool]()
    made = threading.Semaphore(0)

    def last() -> Last:
        return Last(rt, lambda: (prog.one((8,), None, own), made.release()), had_lock)

    def values(size: int) -> Values:
        found = np.zeros(size, "i4").view(Values)
        found.last = last()
        return found

    def failing(bad: object) -> None:
        raise ValueError

    for _ in range(4):
        big, bad = rt.zeros(1 << 18, "i4"), rt.zeros(8, "i4")
        rt.call(functools.partial(lambda last, values: None, last()), reads=x)
        prog.one((8,), None, x)
        x.get(out=values(8), wait=False)
        big.set(values(1 << 18), copy=False)
        big.get(out=values(1 << 18), wait=False)
        rt.call(failing, writes=bad)
        rt.call(functools.partial(lambda last, values: None, last()), reads=bad)
        gate = cl.UserEvent(rt.engine.context)
        prog.one((8,), None, x, wait_for=[gate])
        rt.call(functools.partial(lambda last, values: None, last()), reads=x)
        x.get(out=values(8), wait=False)
        gate.set_status(cl.command_execution_status.COMPLETE)
        with pytest.raises(acs.PoisonedError):
            rt.finish()
    for _ in range(4 * 7):  # other threads drop some
        assert made.acquire(timeout=30)
    assert had_lock == [False] * (4 * 7)
    assert (own.get() == 4 * 7).all()
    assert (x.get() == 8).all()


def test_what_a_failure_takes_along_as_it_is_forgotten_finds_no_launch_half_made(
    device: cl.Device, uncollected: None
) -> None:
    """The newest failures keep the frames of their errors. Those of an older one were cleared under
    the lock, before the poison of the newest one was noted."""
    with acs.Runtime(device, backend="lanes") as rt:
        prog = rt.build("kernel void one(global int *x) { x[get_global_id(0)] += 1; }")
        own, bad, had_lock = rt.zeros(8, "i4"), rt.zeros(8, "i4"), list[bool]()

        def launch() -> None:
            if not rt.engine.is_closed:  # then the newest ones go
                prog.one((8,), None, own)

        def failing(values: object) -> None:
            last = Last(rt, launch, had_lock)
            raise ValueError(last is None)

        for _ in range(2 * failures.WITH_FRAMES):
            rt.call(failing, writes=bad)
            with pytest.raises(acs.PoisonedError):
                rt.finish()
        assert had_lock == [False] * failures.WITH_FRAMES
        assert (own.get() == failures.WITH_FRAMES).all()


@pytest.mark.parametrize("status", [0, -5, None])
def test_an_event_that_held_a_launch_goes_without_a_lock(
    device: cl.Device, uncollected: None, status: int | None
) -> None:
    had_lock = list[bool]()
    with contextlib.suppress(acs.PoisonedError), acs.Runtime(device, backend="lanes") as rt:
        prog = rt.build("kernel void put(global int *x, int a) { x[get_global_id(0)] = a; }")
        gate: Any = cl.UserEvent(rt.context)
        gate.last = Last(rt, lambda: None, had_lock)
        prog.put((16,), None, rt.zeros(16, "i4"), 3, wait_for=[gate])
        if status is not None:
            gate.set_status(status)
        del gate
        assert not had_lock
        if status is not None:
            rt.finish()
    assert had_lock == [False]


def test_memory_that_was_kept_while_it_was_poisoned_goes_without_a_lock(
    context: cl.Context, uncollected: None
) -> None:
    queue, had_lock = acs.Queue(context, bypass=False), list[bool]()
    rt = queue.runtime
    prog = rt.build("kernel void put(global int *x, int a) { x[get_global_id(0)] = a; }")
    memory: Any = cl.Buffer(context, READ_WRITE, 64)
    memory.last = Last(rt, lambda: None, had_lock)
    gate = cl.UserEvent(context)
    gated = prog.put((16,), None, memory, 3, wait_for=[gate])
    gate.set_status(-5)
    with pytest.raises(acs.PoisonedError):
        gated.wait()
    same = cl.Buffer.from_int_ptr(memory.int_ptr)
    del memory, gated
    assert not had_lock
    cl.enqueue_fill_buffer(queue, same, np.int32(1), 0, 64)
    queue.finish()
    assert had_lock == [False]


@pytest.mark.parametrize("when", ["with the next command", "with the bypass"])
def test_memory_of_a_transfer_in_bypass_goes_without_a_lock(
    context: cl.Context, uncollected: None, when: str
) -> None:
    """An event of some commands ago was kept, with its memory, and went under the lock of the
    bypass. A finalizer that launched waited there for the lock of the runtime, and another thread
    had these two the other way round."""
    had_lock, many = list[bool](), 4 * BEHIND if when == "with the next command" else BEHIND
    with bypassing(context) as (queue, a):
        bypass, engine = queue.bypass, queue.runtime.engine
        assert bypass is not None

        class Notes:
            def __del__(self) -> None:
                had_lock.append(bypass.lock.is_owned() or engine.lock.is_owned())

        for _ in range(many):
            values: Any = np.zeros(N, "i4").view(Values)
            values.last = Notes()
            cl.enqueue_copy(queue, values, a, is_blocking=False)
            del values
        assert bypass.open
        with engine.lock:
            engine.end_bypasses()
        queue.finish()
    assert had_lock == [False] * many


def test_a_queue_is_collected_though_memory_of_a_transfer_in_bypass_knows_it(
    context: cl.Context,
) -> None:
    """The queue kept an event of PyOpenCL, which keeps the memory, and hides it from Python."""
    with bypassing(context) as (queue, a):
        for _ in range(2 * BEHIND):
            values: Any = np.zeros(N, "i4").view(Values)
            values.last = queue
            cl.enqueue_copy(queue, values, a, is_blocking=False)
            del values
        queue.finish()
        gone = weakref.ref(queue)
    del queue
    gc.collect()
    assert gone() is None


@contextlib.contextmanager
def bypassing(context: cl.Context) -> Iterator[tuple[acs.Queue, cl.Buffer]]:
    """A queue whose commands bypass its runtime, and memory."""
    program = "kernel void one(global int *x) { x[get_global_id(0)] += 1; }"
    one = cl.Kernel(cl.Program(context, program).build(), "one")
    with testing.bypass(always=True, short=False):
        queue = acs.Queue(context)
        a = buffer(queue, np.zeros(N))
        while not testing.is_bypassing(queue):
            one(queue, (N,), None, a)
        yield queue, a


ADD_ONE = "kernel void add(global float *x, float a) { x[get_global_id(0)] += a; }"


def test_a_function_that_is_called_in_the_middle_of_itself_says_so(tmp_path: Path) -> None:
    """Such as by a finalizer, or by an input that is made when it is asked for."""
    with acs.Runtime() as runtime:
        prog, x = runtime.build(ADD_ONE), runtime.zeros(4, "f4")
        with runtime.record() as graph:
            prog.add((4,), None, x, 1.0)
        graph.save(tmp_path / "graph.json", x=x)
        data = (tmp_path / "graph.json").read_bytes()
        function = Function(runtime.engine, data, runtime.build, runtime.empty)

        class Late:
            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
                with pytest.raises(acs.UsageError, match="replaying the same function already"):
                    function.replay({"x": np.ones(4, "f4")}, None)
                return np.full(4, 2, "f4")

        for value, want in ((Late(), 3), (np.ones(4, "f4"), 2)):
            found = function.replay({"x": value}, None)
            assert np.array_equal(found["x"], np.full(4, want))  # type: ignore[arg-type]
