"""Queues of the native core on a driver of the tests' own, which runs commands in any legal order,
starts nothing that was not flushed, and refuses and fails what it is told to."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from acs_cl import core
from acs_cl.devices.driver import functions
from acs_cl.records import Access, Launch

PROGRAM, NAME, EVENT_STATUS = 0x1194, 0x1190, 0x11D3
QUEUED, COMPLETE, FAILED, REFUSED = 3, 0, -9, -5
TIMED, UPLOADS = 99, 98
"""The queue that keeps times, where there is one. It is in order."""
VOID, INT, SIZE, STATUS = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_int32


class RefusalError(Exception):
    """What PyOpenCL would raise."""


class Object:
    """Anything that the driver knows by a number."""

    def __init__(self, number: int) -> None:
        self.int_ptr = number


class Svm:
    def __init__(self, address: int) -> None:
        self.svm_ptr = address


class Local:
    def __init__(self, size: int) -> None:
        self.size = size


class Kernel(Object):
    queued: Any = None


class Enqueued(NamedTuple):
    """A command that the driver has taken."""

    event: int
    waits: tuple[int, ...]
    arguments: dict[int, Any]


class Driver:
    """In-order queues, or one that is not. Everything is a number."""

    def __init__(self, out_of_order: bool) -> None:
        self.out_of_order = out_of_order
        self.newest = 1000
        self.queues: dict[int, list[Enqueued]] = {}
        self.taken = Counter[int]()
        self.flushed: dict[int, int] = {}
        self.status: dict[int, int] = {}
        self.references: dict[int, int] = {}
        self.kernels: dict[int, dict[int, Any]] = {}
        self.settings = self.flushes = 0
        self.refuses = ""
        self.broken: set[int] = set()
        self.bare: set[int] = set()
        self.started: list[Enqueued] = []
        self.event_type: Any = None

    def new(self) -> int:
        self.newest += 1
        return self.newest

    def take(self, queue: int, waits: tuple[int, ...], arguments: dict[int, Any]) -> int:
        event = self.new()
        self.status[event] = QUEUED
        self.references[event] = 0
        self.queues.setdefault(queue, []).append(Enqueued(event, waits, arguments))
        self.taken[queue] += 1
        self.flushed.setdefault(queue, 0)
        return event

    def run(self, rng: random.Random, fails: bool = False) -> bool:
        """Run one command that may run; whether there was any."""
        able = []
        for queue, commands in self.queues.items():
            here = commands[: self.flushed[queue]]
            for command in here if self.out_of_order and queue != TIMED else here[:1]:
                if all(self.status[event] <= 0 for event in command.waits):
                    able.append((queue, command))
        if not able:
            return False
        queue, command = rng.choice(able)
        if fails:
            self.broken.add(queue)
        self.status[command.event] = FAILED if queue in self.broken else COMPLETE
        self.started.append(command)
        self.queues[queue].remove(command)
        self.flushed[queue] -= 1
        return True

    # ---- the functions, in the order of `acs_cl.devices.driver.functions` ------------------------

    def set_argument(self, kernel: int, index: int, size: int, value: int | None) -> int:
        self.settings += 1
        if self.refuses == "argument":
            return REFUSED
        self.kernels[kernel][index] = ctypes.string_at(value, size) if value else size
        return 0

    def set_svm_argument(self, kernel: int, index: int, value: int | None) -> int:
        self.settings += 1
        self.kernels[kernel][index] = value
        return 0

    def enqueue(self, queue: int, kernel: int, _d: int, _o: Any, _g: Any, _l: Any, many: int,
                waits: Any, event: Any) -> int:  # fmt: skip
        if self.refuses == "enqueue":
            return REFUSED
        given = tuple(waits[at] for at in range(many))
        assert all(self.references[one] > 0 for one in given)
        taken = self.take(queue, given, dict(self.kernels[kernel]))
        if event:
            event[0] = taken
            self.references[taken] += 1
        else:
            self.bare.add(taken)
        return 0

    def event_info(self, event: int, _p: int, _s: int, value: int, _r: Any) -> int:
        assert self.references[event] > 0
        STATUS.from_address(value).value = self.status[event]
        return 0

    def release_event(self, event: int) -> int:
        self.references[event] -= 1
        assert self.references[event] >= 0
        return 0

    def flush(self, queue: int) -> int:
        self.flushes += 1
        self.flushed[queue] = len(self.queues.get(queue, ()))
        return 0

    def kernel_info(self, _k: int, what: int, size: int, value: int, _r: Any) -> int:
        if what == PROGRAM:
            ctypes.c_uint64.from_address(value).value = 7
        elif size < 4:
            return REFUSED
        else:
            ctypes.memmove(value, b"add\0", 4)
        return 0

    def create_kernel(self, program: int, name: bytes, failed: Any) -> int:
        assert (program, name) == (7, b"add")
        failed[0] = REFUSED if self.refuses == "kernel" else 0
        if failed[0]:
            return 0
        kernel = self.new()
        self.kernels[kernel] = {}
        return kernel

    def release_kernel(self, kernel: int) -> int:
        del self.kernels[kernel]
        return 0

    def marker(self, queue: int, _n: int, _w: Any, event: Any) -> int:
        if self.refuses == "marker":
            return REFUSED
        event[0] = self.take(queue, (), {})
        self.references[event[0]] += 1
        return 0

    def read_buffer(self, *_: Any) -> int:
        return REFUSED  # nothing here reads back, or writes

    copy_svm = write_buffer = queue_info = device_info = read_buffer
    copy_buffer = fill_buffer = fill_svm = set_event_callback = memory_info = read_buffer
    set_kernel_info = set_user_event_status = create_user_event = read_buffer
    program_info = build_info = image_info = read_buffer

    def finish(self, queue: int) -> int:
        self.flush(queue)
        while self.queues[queue]:
            assert self.run(random.Random(1))
        return 0

    def retain_event(self, event: int) -> int:
        self.references[event] += 1
        return 0

    def wait_for_events(self, *_: Any) -> int:
        return REFUSED  # nor waits in the driver

    def functions(self) -> list[Any]:
        """As C calls them."""
        some = ctypes.POINTER(VOID)
        info = VOID, INT, SIZE, VOID, VOID
        kinds = {
            "set_argument": (VOID, INT, SIZE, VOID), "set_svm_argument": (VOID, INT, VOID),
            "enqueue": (VOID, VOID, INT, VOID, VOID, VOID, INT, some, some), "event_info": info,
            "release_event": (VOID,), "flush": (VOID,), "kernel_info": info,
            "create_kernel": (VOID, ctypes.c_char_p, ctypes.POINTER(STATUS)),
            "release_kernel": (VOID,), "marker": (VOID, INT, VOID, some),
            "read_buffer": (VOID, VOID, INT, SIZE, SIZE, VOID, INT, some, some),
            "copy_svm": (VOID, INT, VOID, VOID, SIZE, INT, some, some),
            "retain_event": (VOID,), "wait_for_events": (INT, some),
            "write_buffer": (VOID, VOID, INT, SIZE, SIZE, VOID, INT, some, some),
            "queue_info": info, "device_info": info,
            "copy_buffer": (VOID, VOID, VOID, SIZE, SIZE, SIZE, INT, some, some),
            "fill_buffer": (VOID, VOID, VOID, SIZE, SIZE, SIZE, INT, some, some),
            "fill_svm": (VOID, VOID, VOID, SIZE, SIZE, INT, some, some),
            "set_event_callback": (VOID, INT, VOID, VOID),
            "memory_info": (VOID, INT, SIZE, VOID, VOID),
            "set_kernel_info": (VOID, INT, SIZE, VOID), "finish": (VOID,),
            "set_user_event_status": (VOID, STATUS), "create_user_event": (VOID, VOID),
            "program_info": info, "build_info": (VOID, *info), "image_info": info,
        }  # fmt: skip
        return [
            ctypes.CFUNCTYPE(VOID if name == "create_kernel" else STATUS, *kind)(
                getattr(self, name)
            )
            for name, kind in kinds.items()
        ]


class Command(NamedTuple):
    """As `KernelCommand`."""

    name: str
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    pointers: tuple[Any, ...]
    values: tuple[Any, ...]
    offset: tuple[int, ...] | None
    driver: Any

    def enqueue(self, queue: Object, wait_for: list[Any] | None) -> Any:
        """As PyOpenCL does it."""
        if self.driver.refuses:
            raise RefusalError
        waits = tuple(event.int_ptr for event in wait_for or ())
        pairs = [*zip(self.pointers[::2], self.pointers[1::2], strict=True)]
        arguments = {at: _meant(one) for at, one in pairs}
        arguments.update(zip(self.values[::2], self.values[1::2], strict=True))
        return self.driver.event_type(self.driver.take(queue.int_ptr, waits, arguments), True)


def _meant(argument: Any) -> Any:
    if isinstance(argument, Svm):
        return argument.svm_ptr
    return argument.size if isinstance(argument, Local) else argument.int_ptr.to_bytes(8, "little")


class Program:
    """Random launches on the core's queues, with what must be true of them at any time."""

    def __init__(
        self, rng: random.Random, out_of_order: bool, lanes: int, enough: int, times: bool = False
    ) -> None:
        self.rng = rng
        self.lanes = lanes
        self.driver = driver = Driver(out_of_order)
        made.append(self)

        class Event(Object):
            """As PyOpenCL's."""

            def __init__(self, number: int, retain: bool) -> None:
                assert retain
                super().__init__(number)
                driver.references[number] += 1

            def __del__(self) -> None:
                driver.references[self.int_ptr] -= 1

        driver.event_type = Event
        self.kept = driver.functions()
        core.native.open_driver([ctypes.cast(one, VOID).value for one in self.kept])
        names = [Object(lane + 1) for lane in range(lanes)]
        classes = Svm, Object, Local, type(None), Command, type(None)
        self.queues = core.native.Queues(names, out_of_order, False, classes, Event)
        self.queues.unasked_enough = enough
        if times:
            self.queues.upload_on(Object(UPLOADS))  # which has nothing here
            self.queues.time_on(Object(TIMED))
            with pytest.raises(RuntimeError, match="there is a queue that keeps times"):
                self.queues.time_on(Object(TIMED))
        self.times, self.timed = times, set[int]()
        self.table = core.native.Table()
        self.table.join(core.native.Hazards(), core.native.Lock(), 1 << 20, None, False, False)
        self.queues.join(self.table)
        self.kernels = [Kernel(number) for number in range(2)]
        self.memory = [Object(50), Object(51), Svm(52), Svm(53), Local(8), Local(16)]
        self.number = 0
        self.upstream: dict[int, tuple[int, ...]] = {}
        self.event_of: dict[int, int] = {}
        self.reported: dict[int, int] = {}

    def command(self) -> Command:
        rng = self.rng
        pointers = 0, rng.choice(self.memory[:4]), 1, rng.choice(self.memory[4:])
        values = 2, rng.choice((b"aaaa", b"bbbb", b"b" * 40))
        odd = rng.random() < 0.1  # which the core leaves to the command
        size = (True, 1.5) if odd else (8,)
        return Command(
            "add", rng.choice(self.kernels), size, None, pointers, values, None, self.driver
        )

    def give(self, launch: Launch, timed: bool = False) -> None:
        """Submit a launch, which is in the table."""
        self.table.insert(launch)
        self.queues.submit(launch, timed=timed)
        self.table.start(launch.number)

    def launch(self) -> None:
        rng, driver, command = self.rng, self.driver, self.command()
        self.number += 1
        recent = range(max(1, self.number - 9), self.number)
        alive = [number for number in recent if number in self.upstream]
        upstream = tuple(rng.sample(alive, min(len(alive), rng.choice((0, 0, 1, 3)))))
        before = driver.taken.copy()
        launch = Launch(self.number, command, Access((), ()), upstream)
        if rng.random() < 0.1:
            driver.refuses = rng.choice(("enqueue", "argument", "kernel", "marker"))
        timed = self.times and rng.random() < 0.1
        try:
            self.give(launch, timed)
        except RefusalError:
            assert driver.refuses
            self.table.never_ran(launch.number, ())
            return
        finally:
            driver.refuses = ""
        assert driver.taken.total() > before.total()
        assert driver.taken[TIMED] - before[TIMED] == timed  # and nothing else
        if timed:
            self.timed.add(self.number)
        self.upstream[self.number] = upstream
        pairs = [*zip(command.pointers[::2], command.pointers[1::2], strict=True)]
        expected = {at: _meant(one) for at, one in pairs} | {2: command.values[1]}
        taken = max((q[-1] for q in driver.queues.values() if q), key=lambda one: one.event)
        assert taken.arguments == expected
        self.event_of[self.number] = taken.event

    def step(self, fails: bool) -> None:
        choice = self.rng.random()
        if choice < 0.5:
            self.launch()
        elif choice < 0.8:
            self.driver.run(self.rng, fails and self.rng.random() < 0.02)
        elif choice < 0.85:
            self.queues.flush()
        elif choice < 0.93:
            self.see(self.queues.poll(self.rng.choice((1, 64))))
        elif choice < 0.96:
            self.see(self.queues.poll_up_to(self.rng.randint(0, self.number)))
        elif choice < 0.98 and self.number:
            number = self.rng.randint(1, self.number)
            event = self.queues.event(number)
            flying = number in self.upstream and number not in self.reported
            assert (event is not None) is flying or (event is None and self.driver.bare)
            if event is not None and self.driver.status[event.int_ptr] <= 0:
                assert self.driver.status[self.event_of[number]] <= 0
        else:
            assert (self.queues.oldest() is None) is (self.queues.in_flight == 0)

    def see(self, ended: list[core.native.End]) -> None:
        for end in ended:
            number, status = end.number, end.status
            assert number not in self.reported
            event = self.event_of[number]
            own = self.driver.status[event]
            # where another one's event stands for it, it fails with that
            assert status == own or (status < 0 and event in self.driver.bare)
            assert all(other in self.reported for other in self.upstream[number])
            if number in self.timed:
                assert end.lane == self.lanes + 1  # behind that for uploads
                assert end.event.int_ptr == event
            self.reported[number] = status
            self.table.end(number, status < 0)
        ended.clear()  # else they are told again
        assert self.queues.in_flight == len(self.upstream) - len(self.reported)

    def end(self) -> None:
        """Nothing is left for ever, and what waits has waited for what it should."""
        for _ in range(8):
            self.queues.flush()
            while self.driver.run(self.rng):
                pass
            self.see(self.queues.poll(1 << 20))
        assert self.queues.in_flight == 0
        assert not any(self.driver.queues.values())
        started = {command.event: at for at, command in enumerate(self.driver.started)}
        for number, upstream in self.upstream.items():
            for other in upstream:
                assert started[self.event_of[other]] < started[self.event_of[number]]
        self.let_go()
        assert not any(self.driver.references.values())
        assert not self.driver.kernels

    def let_go(self) -> None:
        """Of what is the driver's."""
        self.queues.forget()
        for kernel in self.kernels:
            kernel.queued = None


def test_queues_without_a_table_have_nothing_to_wait_for() -> None:
    classes = Svm, Object, Local, type(None), Command, type(None)
    queues = core.native.Queues([Object(1)], False, False, classes, Object)
    assert queues.wait(queues, 1) is False


class Awaited(Driver):
    """Has one event, which ends when it is told so, and counts the threads that wait in here."""

    def __init__(self) -> None:
        super().__init__(False)
        self.event = self.take(1, (), {})
        self.references[self.event] = 1
        self.ended, self.released = threading.Event(), threading.Event()
        self.threads: set[int] = set()

    def event_info(self, event: int, what: int, size: int, value: int, told: Any) -> int:
        if what != EVENT_STATUS:
            return REFUSED
        return super().event_info(event, what, size, value, told)

    def wait_for_events(self, *_: Any) -> int:
        self.threads.add(threading.get_ident())
        self.ended.wait()
        return 0

    def release_event(self, event: int) -> int:
        failed = super().release_event(event)
        self.released.set()
        return failed


def test_bounded_waits_for_one_event_leave_one_thread() -> None:
    awaited = Awaited()
    kept = awaited.functions()
    core.native.open_driver([ctypes.cast(one, VOID).value for one in kept])
    for _ in range(8):
        assert not core.native.wait_for_event(awaited.event, 0.01)
    assert len(awaited.threads) == 1
    awaited.ended.set()
    assert core.native.wait_for_event(awaited.event, 60)  # it is told by the thread that was left
    assert len(awaited.threads) == 1
    assert awaited.released.wait(60)
    awaited.status[awaited.event] = COMPLETE
    assert core.native.wait_for_event(awaited.event, 60)
    assert awaited.references == {awaited.event: 1}


made: list[Program] = []


@pytest.fixture(autouse=True)
def real_driver() -> Iterator[None]:
    """Others go on with the driver that there is, and what they left is let go of through it."""
    gc.collect()
    yield
    while made:
        made.pop().let_go()
    core.native.open_driver(functions())


@pytest.mark.parametrize("fails", [False, True], ids=["well", "failing"])
@pytest.mark.parametrize("enough", [0, 5, 64])
@pytest.mark.parametrize(("out_of_order", "lanes"), [(True, 1), (False, 1), (False, 2), (False, 5)])
def test_launches_wait_for_their_upstream_and_are_reported_once(
    out_of_order: bool, lanes: int, enough: int, fails: bool
) -> None:
    for seed in range(4):
        program = Program(random.Random(seed), out_of_order, lanes, enough, times=seed > 1)
        for _ in range(600):
            program.step(fails)
        if out_of_order or not enough:
            assert (program.queues.bare > 0) is not out_of_order
        program.end()


def test_a_driver_that_refuses_markers_is_one_whose_launches_failed() -> None:
    program = Program(random.Random(1), False, 2, 0)
    command = program.command()._replace(global_size=(8,))
    for number in (1, 2):
        program.give(Launch(number, command, Access((), ()), ()))
    assert program.queues.bare == 2
    program.driver.refuses = "marker"
    assert program.queues.event(2) is None
    assert [command.event for command in program.driver.started] == [program.driver.newest]
    for number in (2, 1):  # of the first one more may come, and bring an event
        ended = program.queues.poll()
        assert [(one.number, one.status, one.event, one.lane) for one in ended] == [
            (number, REFUSED, None, number - 1)
        ]
        ended.clear()
    assert program.queues.in_flight == 0


def test_a_lane_waits_for_another_one_once_and_flushes_it_where_it_has_to() -> None:
    program = Program(random.Random(1), False, 2, 64)
    driver, command = program.driver, program.command()._replace(global_size=(8,))
    events = [0]

    def give(*upstream: int) -> tuple[int, list[int], int]:
        before, number = driver.flushes, len(events)
        program.give(Launch(number, command, Access((), ()), upstream))
        lane = max(driver.queues, key=lambda one: driver.queues[one][-1].event)
        events.append(driver.queues[lane][-1].event)
        waits = [events.index(event) for event in driver.queues[lane][-1].waits]
        return lane, waits, driver.flushes - before

    assert give() == (1, [], 0)
    assert give() == (2, [], 0)
    assert give(1, 2) == (2, [1], 1)
    assert give(1, 3) == (2, [], 0)  # its lane follows 1 already
    assert give(1) == (1, [], 0)
    assert give(1, 5, 4) == (2, [5], 1)  # which is behind 1
    assert give() == (1, [], 0)
    assert give(2, 5) == (1, [2], 1)
    assert give(4, 3, 8) == (1, [4], 0)  # which was flushed with 2
    assert give(6, 9) == (1, [6], 0)


def test_arguments_that_stay_the_same_are_not_set_again() -> None:
    program = Program(random.Random(1), False, 1, 64)
    command = program.command()._replace(global_size=(8,))
    settings = []
    for number in range(1, 4):
        launch = Launch(number, command, Access((), ()), ())
        program.give(launch)
        settings.append(program.driver.settings)
    assert settings == [3, 3, 3]
    assert all(q.arguments == program.driver.queues[1][0].arguments
               for q in program.driver.queues[1])  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("keeps_apart", [False, True])
def test_machine_codes_of_a_kernel_are_never_in_flight_at_one_time(
    keeps_apart: bool, lanes: int, by_size: bool
) -> None:
    program = Program(random.Random(1), lanes == 1, lanes, 64)
    if keeps_apart:
        program.queues.keep_machine_code_apart(by_size=by_size)
    command = program.command()._replace(kernel=program.kernels[0])
    launches = [  # global size, local size, offset, and whether it may need other machine code
        ((8,), None, None, False), ((8,), None, None, False), ((4,), None, None, True),
        ((9,), None, None, True), ((4,), None, None, False), ((8,), (8,), None, True),
        ((16,), (8,), None, True), ((8,), (8,), None, False), ((8,), None, (0,), False),
        ((8,), None, (1,), True), ((8,), None, (2,), False), ((8,), None, None, True),
        ((2, 9), (1, 1), None, True), ((9, 2), (1, 1), None, False), ((2, 10), (1, 1), None, True),
    ]  # fmt: skip
    expected = 0
    for number, (size, local, offset, changes) in enumerate(launches, 1):
        given = command._replace(global_size=size, local_size=local, offset=offset)
        program.give(Launch(number, given, Access((), ()), ()))
        is_by_offset = number > 9 and local is None  # it differs from the last one by that
        matters = by_size or is_by_offset
        expected = 1 if changes and keeps_apart and matters else expected + 1
        assert sum(map(len, program.driver.queues.values())) == expected
    same = command._replace(kernel=program.kernels[1], global_size=(100,))  # of the same program
    program.give(Launch(number + 1, same, Access((), ()), ()))
    assert sum(map(len, program.driver.queues.values())) == (
        1 if keeps_apart and by_size else expected + 1
    )


def test_machine_code_that_the_driver_may_have_dropped_is_made_again() -> None:
    program = Program(random.Random(1), True, 1, 64)  # each launch has an event
    program.queues.keep_machine_code_apart()
    command = program.command()._replace(kernel=program.kernels[0], offset=None)
    behind = 50, 60, 55, 60, 61, 50  # they begin when nothing is in flight
    sizes = *range(1, 200), *behind
    for number, size in enumerate(sizes, 1):
        given = command._replace(global_size=(size,), local_size=(1,))
        program.give(Launch(number, given, Access((), ()), ()))
        in_flight = len(program.driver.queues[1])
        if number < 200:
            program.driver.finish(1)
            program.queues.poll().clear()
        else:
            assert in_flight == [1, 1, 2, 3, 1, 2][number - 200]


def test_a_launch_that_a_lane_has_does_not_end_before_the_lane_says_so() -> None:
    program = Program(random.Random(1), False, 1, 64)
    program.give(Launch(1, program.command()._replace(global_size=(8,)), Access((), ()), ()))
    with pytest.raises(RuntimeError, match="a lane has this launch"):
        program.table.end(1, False)
    assert program.table.state(1) == "executing"
    program.queues.flush()
    while program.driver.run(program.rng):
        pass
    assert [(one.number, one.status) for one in program.queues.poll()] == [(1, COMPLETE)]
    program.table.end(1, False)
    assert len(program.table) == 0
