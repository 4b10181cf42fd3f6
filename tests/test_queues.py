"""Host backends: which lane a launch takes and for how many events it waits, against a model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl import core, testing
from acs_cl.backends.queues import HOST
from acs_cl.configuration import create
from acs_cl.devices.driver import STATUS, OwnKernel, Place
from acs_cl.emu.reference.lanes import DEFAULT, Lanes, Queue
from acs_cl.launch.commands import KernelCommand, TransferCommand
from acs_cl.records import LANE_AFTER, LANE_NEW, Access, Launch, Placing

ADD = """
kernel void add(global const int *x, global int *y, int a, local int *unused, char b)
{ y[get_global_id(0)] = x[get_global_id(0)] * a + b; }
"""
NOTHING = Access((), ())
CROWD = 1500  # more than the core takes before it lets others have the interpreter


@contextmanager
def held(queues: list[cl.CommandQueue]) -> Iterator[None]:
    """What is enqueued meanwhile starts afterwards."""
    gate = cl.UserEvent(queues[0].context)
    for queue in queues:
        cl.enqueue_barrier(queue, wait_for=[gate])
        queue.flush()
    try:
        yield
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)


class Modelled:
    """A backend and a model of it, which are given the same launches."""

    def __init__(
        self, name: str, context: cl.Context, lanes: int, placing: Placing = DEFAULT
    ) -> None:
        self.backend = create(name, context, context.devices[0], lanes, placing, False)
        self.table = core.native.Table()
        self.table.join(core.native.Hazards(), core.native.Lock(), 1 << 20, None, False, False)
        self.backend.join(self.table)
        self.now_s = 0.0
        self.pass_time(0)
        self.model: Queue | Lanes = Queue(name == "serial")
        if name == "lanes":
            self.model = Lanes(lanes, self.has_ended, placing, lambda: self.now_s)
        program = cl.Program(context, ADD).build()
        self.kernels = [OwnKernel(program, "add") for _ in range(3)]
        self.buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 256) for _ in range(4)]

    def pass_time(self, seconds: float) -> None:
        """Set the clock of both forward."""
        self.now_s += seconds
        self.backend.core_queues.clock_s = self.now_s

    def has_ended(self, number: int) -> bool:
        event = self.backend.event(number)
        return event is None or bool(event.get_info(STATUS) <= 0)

    def command(self, rng: random.Random) -> Any:
        if rng.random() < 0.2:  # which the core leaves to Python
            return TransferCommand(
                "fill", Place(rng.choice(self.buffers), 0, 256), np.zeros(1, np.uint8)
            )
        return self.kernel_command(rng)

    def kernel_command(self, rng: random.Random) -> KernelCommand:
        x, y = rng.sample(self.buffers, 2)
        pointers = 0, x, 1, y, 3, cl.LocalMemory(rng.choice((4, 8)))
        values = 2, np.int32(rng.randrange(2)).tobytes(), 4, bytes([rng.randrange(2)])
        return KernelCommand("add", rng.choice(self.kernels), (4,), None, pointers, values, None)

    def give(self, launch: Launch) -> None:
        """Submit a launch, which is in the table."""
        self.table.insert(launch)
        self.backend.submit(launch)
        self.table.start(launch.number)

    def submit(self, launch: Launch) -> int:
        """Submit to both; the lane that they agree on."""
        backend = self.backend
        before = backend.lane_counts()
        command = launch.command
        is_kernel = isinstance(command, KernelCommand)
        what = (id(command.kernel), command.global_size) if is_kernel else None
        of_lanes = (what,) if isinstance(self.model, Lanes) else ()
        expected = self.model.submit(launch.number, launch.upstream, *of_lanes)
        self.give(launch)
        counts = backend.lane_counts()
        assert counts.used - before.used == {expected.lane: 1}, launch
        if not backend.in_order:
            assert counts.waits - before.waits == expected.waits, launch
        assert backend.in_flight == len(self.model.in_flight)
        assert isinstance(backend.event(launch.number), cl.Event)
        return expected.lane

    def take(self, ended: list[core.native.End]) -> list[int]:
        """The numbers of launches that were reported, each once, on its lane and without error."""
        for one in ended:
            assert (one.status, one.lane) == (0, self.model.in_flight[one.number])
            self.model.retire(one.number)
            self.table.end(one.number, False)
        assert self.backend.in_flight == len(self.model.in_flight)
        numbers = [one.number for one in ended]
        ended.clear()  # else they are told again
        return numbers

    def waited(self, up_to: int = 1 << 30) -> list[int]:
        """Does the same for a host that has waited."""
        ended = self.take(self.backend.poll_up_to(up_to))
        if isinstance(self.model, Lanes):
            self.model.waited()
        return ended

    def close(self) -> None:
        self.backend.wait_all()
        self.backend.close()


POLICIES = [Placing(after, new) for after in LANE_AFTER for new in LANE_NEW]


# Known answers: the examples of the papers, on enough lanes. Launches count from 1.
FORK = [(), (1,), (1,), (1,), (2, 3), (4, 5)]
GRCUDA = [(), (1,), (1,)]  # K1(X, Y), then K2(X) and K3(Y)
ANSWERS = {
    # Opara: the first that nobody went on from, else a new stream
    (Placing("disjoint", "always"), "fork"): [1, 1, 2, 3, 1, 3],
    (Placing("disjoint", "always"), "grcuda"): [1, 1, 2],
    # GrCUDA: all children on the stream of their parent, or one of them
    (Placing("same", "always"), "fork"): [1, 1, 1, 1, 1, 1],
    (Placing("same", "always"), "grcuda"): [1, 1, 1],
    (Placing("disjoint", "reuse"), "grcuda"): [0, 0, 1],
    (Placing("same", "reuse"), "two chains"): [0, 1, 0, 1],
    (Placing("same", "always"), "two chains"): [1, 2, 1, 2],
}
GRAPHS = {"fork": FORK, "grcuda": GRCUDA, "two chains": [(), (), (1,), (2,)]}


@pytest.mark.parametrize(("placing", "graph"), ANSWERS)
def test_lanes_of_the_papers_examples(placing: Placing, graph: str, context: cl.Context) -> None:
    both = Modelled("lanes", context, 8, placing)
    rng = random.Random(0)
    with held(both.backend.queues):
        found = [
            both.submit(Launch(number, both.kernel_command(rng), NOTHING, upstream))
            for number, upstream in enumerate(GRAPHS[graph], 1)
        ]
    assert found == ANSWERS[placing, graph]
    both.close()


def test_a_runtime_places_launches_as_it_was_asked_to(device: cl.Device) -> None:
    used = {}
    for after in LANE_AFTER:
        with acs.Runtime(
            device, backend="lanes", lanes=4, lane_after=after, lane_new="always"
        ) as rt:
            prog = rt.build("kernel void copy(global int *x, global int *y) { *y += *x; }")
            arrays = [rt.zeros(1, "i4") for _ in range(6)]
            rt.finish()
            with held(rt.engine.backend.queues):
                before = rt.engine.backend.lane_counts().used
                prog.copy((1,), None, arrays[0], arrays[1])
                for target in arrays[2:]:
                    prog.copy((1,), None, arrays[1], target)
            rt.finish()
            used[after] = sorted((rt.engine.backend.lane_counts().used - before).values())
    assert used["same"] == [5], "all on the lane of what they follow"
    assert used["disjoint"] == [1, 1, 1, 2], "one on that lane, the others elsewhere"
    for wrong in ({"lane_after": "parent"}, {"lane_new": "fresh"}):
        with pytest.raises(acs.UsageError, match="unknown lane_"):
            acs.Runtime(device, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HOST)
@pytest.mark.parametrize("seed", range(6))
def test_lanes_and_waits_are_those_of_the_model(name: str, seed: int, context: cl.Context) -> None:
    compare_with_the_model(name, random.Random(seed), context, DEFAULT)


@pytest.mark.parametrize("placing", POLICIES, ids=lambda one: "-".join(one[:2]))
@pytest.mark.parametrize("seed", range(3))
def test_lanes_of_other_policies_are_those_of_the_model(
    placing: Placing, seed: int, context: cl.Context
) -> None:
    compare_with_the_model("lanes", random.Random(seed), context, placing)


def compare_with_the_model(
    name: str, rng: random.Random, context: cl.Context, placing: Placing
) -> None:
    both = Modelled(name, context, rng.choice((1, 2, 4)), placing)
    backend = both.backend
    number = 0
    for _ in range(4):
        launches: list[Launch] = []
        with held(backend.queues):
            for _ in range(rng.choice((1, 20, 90))):
                number += rng.choice((1, 1, 3))
                recent = range(max(1, number - 8), number)
                upstream = rng.sample(recent, rng.randint(0, min(3, len(recent))))
                launches.append(Launch(number, both.command(rng), NOTHING, tuple(upstream)))
                both.submit(launches[-1])
            assert not backend.poll()
            assert all(backend.event(launch.number) is not None for launch in launches)
        backend.wait_all()
        seen: set[int] = set()
        while backend.in_flight:
            most, up_to = rng.choice((1, 7, 64)), rng.randint(launches[0].number, number)
            has_waited = rng.random() < 0.3
            seen |= set(both.waited(up_to) if has_waited else both.take(backend.poll(most)))
            above = {one for launch in launches if launch.number in seen for one in launch.upstream}
            assert not above & both.model.in_flight.keys()  # upstream is reported first
        assert seen == {launch.number for launch in launches}
        assert backend.oldest() is None
        assert backend.event(number) is None
    both.close()


def test_where_the_device_waits_for_the_host_one_lane_is_enough(context: cl.Context) -> None:
    """And all are used again where it does not."""
    both = Modelled("lanes", context, 4)
    rng = random.Random(5)
    queues = both.backend.queues
    numbers = iter(range(1, 10_000))

    def used_by(many: int, upstream: int = 0) -> list[int]:
        """How many of so many launches each lane gets."""
        lanes: Counter[int] = Counter()
        for number in islice(numbers, many):
            above = tuple(range(max(1, number - upstream), number))
            lanes[both.submit(Launch(number, both.kernel_command(rng), NOTHING, above))] += 1
            if not holds:
                for queue in queues:
                    queue.finish()
        return sorted(lanes.values())

    holds = False
    assert len(used_by(32)) == 4  # so long it takes to know
    for upstream in (0, 2):
        assert used_by(100, upstream) == [100]
    for steady, patience in ((300, 8), (20, 8), (20, 16)):
        both.take(both.backend.poll())  # else lanes seem to have much in flight
        with held(queues):
            holds = True
            assert len(used_by(40)) == 4
        holds = False
        for queue in queues:
            queue.finish()
        used_by(8 * patience - 16)
        assert len(used_by(8)) > 1  # one lane was wrong, so that it takes longer
        used_by(24)
        assert len(used_by(steady)) == 1  # after long enough all is as before
    both.close()


class Stretches(Modelled):
    """Lanes that get stretches of launches: the device ends one before the next begins."""

    def __init__(self, context: cl.Context, lanes: int, rng: random.Random) -> None:
        super().__init__("lanes", context, lanes)
        self.rng = rng
        self.numbers = iter(range(1, 1_000_000))

    def step(self, many: int) -> list[Any]:
        """As many kernels."""
        return [self.kernel_command(self.rng) for _ in range(many)]

    def run(self, commands: Sequence[Any], takes_s: Callable[[int], float]) -> int:
        """Launch what is independent; the time it takes depends on how many lanes are used. Return
        that number."""
        with held(self.backend.queues):
            lanes = {
                self.submit(Launch(next(self.numbers), command, NOTHING, ()))
                for command in commands
            }
        self.backend.wait_all()
        self.pass_time(takes_s(len(lanes)))
        if self.rng.random() < 0.5:
            self.take(self.backend.poll())  # only a wait ends a stretch
            self.pass_time(1e-6)
        self.waited()
        self.pass_time(self.rng.random())  # which is the program's own
        return len(lanes)


def of_one_lane(lanes: int) -> float:
    """A device whose lanes cost more than they gain."""
    return 2.0 if lanes == 1 else 3.0


def of_lanes(lanes: int) -> float:
    return 3.0 if lanes == 1 else 2.0


def test_stretches_that_repeat_go_the_quicker_way(context: cl.Context) -> None:
    """Lanes are found to cost, then to pay, while the host never waits for the device."""
    stretches = Stretches(context, 4, random.Random(3))
    step = stretches.step(6)
    assert [stretches.run(step, of_one_lane) for _ in range(6)] == [4, 4, 4, 1, 1, 4]
    for many in (32, 64, 128):
        before = stretches.backend.lane_counts().on_one_lane
        assert {stretches.run(step, of_one_lane) for _ in range(many)} == {1}
        assert stretches.backend.lane_counts().on_one_lane == before + many * len(step)
        assert stretches.run(step, of_one_lane) == 4  # is that quicker now?
    assert {stretches.run(step, of_lanes) for _ in range(256)} == {1}
    again = [stretches.run(step, of_lanes) for _ in range(5)]
    assert again == [4, 4, 1, 1, 4]
    assert {stretches.run(step, of_lanes) for _ in range(32)} == {4}
    assert stretches.run(step, of_lanes) == 1
    stretches.close()


def test_ways_that_take_as_long_are_timed_more_often(context: cl.Context) -> None:
    stretches = Stretches(context, 2, random.Random(4))
    step = stretches.step(4)
    for _ in range(2):
        stretches.run(step, lambda _: 2.0)

    def nearly(lanes: int) -> float:
        return 1.9 if lanes == 1 else 2.0

    assert [stretches.run(step, nearly) for _ in range(8)] == [2, 1, 1, 2, 2, 1, 1, 2]
    assert {stretches.run(step, nearly) for _ in range(32)} == {1}
    assert [stretches.run(step, nearly) for _ in range(9)] == [2, 2, 1, 1, 2, 2, 1, 1, 2]
    assert {stretches.run(step, nearly) for _ in range(64)} == {1}
    stretches.close()


def test_a_step_between_others_is_forgiven(context: cl.Context) -> None:
    """Such as one that prints how far a program is."""
    stretches = Stretches(context, 3, random.Random(6))
    step = stretches.step(5)
    for _ in range(6):
        stretches.run(step, of_one_lane)
    for _ in range(4):
        assert {stretches.run(step, of_one_lane) for _ in range(8)} == {1}
        stretches.run(step[:2], of_one_lane)
        stretches.run(step, of_one_lane)  # behind the other one
    stretches.close()


@pytest.mark.parametrize("waits_for", ["all", "the last"])
def test_a_wait_ends_a_stretch_although_the_program_saw_its_launches_end(waits_for: str) -> None:
    """Too few are launched to learn anything by looks, so one lane is only tried by stretches."""
    with acs.Runtime(backend="lanes", lanes=2) as rt:
        program = rt.build("kernel void add(global int *x) { x[get_global_id(0)] += 1; }")
        arrays = [rt.zeros(64, np.int32) for _ in range(3)]
        rt.finish()
        for _ in range(8):
            handles = [program.add((64,), None, array) for array in arrays]
            while not all(handle.done for handle in handles):
                pass
            rt.finish() if waits_for == "all" else handles[-1].wait()
        assert rt.stats()["on_one_lane"] in (6, 9, 12)


@pytest.mark.parametrize("seed", range(4))
def test_stretches_in_any_order_go_the_way_of_the_model(seed: int, context: cl.Context) -> None:
    rng = random.Random(seed)
    stretches = Stretches(context, rng.choice((2, 4)), rng)
    kinds = [stretches.step(rng.randint(1, 6)) for _ in range(12)]
    quick = {id(kind): rng.choice((of_lanes, of_one_lane)) for kind in kinds}
    row = kinds[:1]
    for _ in range(500):
        if rng.random() < 0.02:
            row = rng.sample(kinds, rng.choice((1, 1, 2, 5)))
        for kind in row:
            stretches.run(kind, quick[id(kind)])
            if rng.random() < 0.01:
                stretches.run(rng.choice(kinds), of_lanes)
        if rng.random() < 0.005:
            quick = {id(kind): rng.choice((of_lanes, of_one_lane)) for kind in kinds}
    stretches.close()


def test_the_core_lets_go_of_events_that_never_were_seen_to_end(context: cl.Context) -> None:
    both = Modelled("lanes", context, 2)
    backend = both.backend
    both.give(Launch(1, both.kernel_command(random.Random(1)), NOTHING, ()))
    event = backend.event(1)
    backend.wait_all()
    references = event.reference_count
    backend.close()
    assert event.reference_count == references - 1
    assert backend.event(1) is None
    assert not backend.in_flight


@pytest.mark.parametrize("name", HOST)
def test_only_where_nobody_asks_and_the_device_keeps_up_launches_have_no_event(
    name: str, context: cl.Context
) -> None:
    both = Modelled(name, context, 2)
    backend: Any = both.backend
    command = both.kernel_command(random.Random(1))
    number = 0

    def launch(count: int) -> int:
        nonlocal number
        before = backend.core_queues.bare
        for number in range(number + 1, number + 1 + count):  # noqa: B020  goes on counting
            both.give(Launch(number, command, NOTHING, ()))
        return int(backend.core_queues.bare - before)

    assert launch(64) == 0  # somebody may ask yet
    backend.wait_all()
    backend.poll().clear()
    # Every sixteenth of a lane has an event, and two lanes share these launches.
    few = {"out_of_order": (0,), "lanes": (15, 16)}.get(name, (15,))
    assert launch(16) in few
    event = backend.event(number - 15)
    assert launch(64) == 0  # somebody asked
    event.wait()
    backend.wait_all()
    for _ in range(2):
        backend.poll_up_to(number).clear()
    assert backend.in_flight == 0
    with held(backend.queues):
        launch(160)
        backend.poll().clear()
        many = launch(32)  # the device does not keep up: every fourth of a lane has an event
        assert many in {"out_of_order": (0,), "lanes": (23, 24, 25)}.get(name, (24,))
    backend.close()


@pytest.mark.parametrize("name", ["serial", "lanes"])
def test_who_waits_for_the_last_launch_does_not_give_events_to_all_that_come(
    name: str, context: cl.Context
) -> None:
    """A step of a program ends with a wait for its last launch. Asking for one before that says
    that any may be asked for."""
    both = Modelled(name, context, 2)
    backend: Any = both.backend
    command = both.kernel_command(random.Random(1))
    numbers = iter(range(1, 1000))

    def with_events(count: int) -> int:
        before = backend.core_queues.bare
        for _ in range(count):
            both.give(Launch(next(numbers), command, NOTHING, ()))
        return count - int(backend.core_queues.bare - before)

    with_events(64)
    assert with_events(32) <= 4
    last = next(numbers) - 1
    numbers = iter(range(last + 1, 1000))
    backend.event(last).wait()
    assert with_events(4) == 4  # each of which may be waited for
    assert with_events(32) <= 4
    backend.event(last + 4)
    assert with_events(32) == 32
    backend.close()


@pytest.mark.parametrize("limits", [{"window": 8}, {"backlog": 8}], ids=["window", "backlog"])
@pytest.mark.parametrize("name", ["serial", "lanes"])
def test_launches_without_events_never_fill_the_window(
    name: str, limits: dict[str, int], device: cl.Device
) -> None:
    """A lane has an event for each four launches at least, or for each two where there are two
    lanes. A wait for room may get a marker's event, behind which a lane begins anew."""
    with acs.Runtime(device, backend=name, lanes=2, **limits) as rt:
        inside.expect_no_events(rt)
        add = rt.build(ADD).add
        x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
        before = inside.launched_without_events(rt)
        for _ in range(64):
            add((4,), None, x, y, 1, cl.LocalMemory(8), 1)
        rt.finish()
        without = inside.launched_without_events(rt) - before
        waits = 64 // 8
        assert without <= 64 - 64 // (4 if name == "serial" else 2) + waits


@pytest.mark.parametrize("name", HOST)
def test_polling_alone_sees_launches_without_events_end(name: str, context: cl.Context) -> None:
    both = Modelled(name, context, 2)
    backend: Any = both.backend
    backend.core_queues.unasked_enough = 0
    command = both.kernel_command(random.Random(1))
    seen: list[int] = []
    for number in range(1, 8):
        both.give(Launch(number, command, NOTHING, ()))
    for _ in range(10_000):  # the device takes its time
        ended = backend.poll()
        seen += [end.number for end in ended]
        ended.clear()
        if not backend.in_flight:
            break
        backend.wait_all()
    assert sorted(seen) == list(range(1, 8))
    backend.close()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("issue", ["eager", "ready_first"])
@pytest.mark.parametrize("name", HOST)
def test_launches_without_events_are_waited_for_as_others(
    name: str, issue: str, seed: int, device: cl.Device
) -> None:
    rng = random.Random(seed)
    with acs.Runtime(device, backend=name, issue=issue, lanes=rng.choice((2, 3, 8))) as rt:
        inside.expect_no_events(rt)
        add = rt.build(ADD).add
        arrays = [rt.array(np.full(4, place), "i4") for place in range(12)]
        values = [array.get() for array in arrays]
        handles: list[acs.Handle] = []
        for _ in range(400):
            x, y = rng.sample(range(12), 2)
            a, b = rng.randint(0, 2), rng.randint(-3, 3)
            handles.append(add((4,), None, arrays[x], arrays[y], a, cl.LocalMemory(8), b))
            values[y] = values[x] * np.int32(a) + np.int32(b)
            asked = rng.random()
            if asked < 0.01:
                np.testing.assert_array_equal(arrays[y].get(), values[y])
            elif asked < 0.02:
                rng.choice(handles).wait()
            elif asked < 0.03:
                rng.choice(handles).event.wait()
            elif asked < 0.04:
                handle = rng.choice(handles)
                while not handle.done:
                    pass
            elif asked < 0.1:
                rt.flush()
        rt.finish()
        assert testing.in_flight(rt) == 0
        assert (inside.launched_without_events(rt) > 0) is (name != "out_of_order")
        for array, expected in zip(arrays, values, strict=True):
            np.testing.assert_array_equal(array.get(), expected)


def test_arguments_that_stay_the_same_are_what_they_were(make: Callable[..., acs.Runtime]) -> None:
    rt = make()
    rng = random.Random(5)
    add = rt.build(ADD).add
    arrays = [rt.array(np.arange(8) + 100 * place, "i4") for place in range(3)]
    values = [array.get() for array in arrays]
    for _ in range(100):
        (x, y), (a, b) = rng.sample(range(3), 2), (rng.randint(-2, 2), rng.randint(-3, 3))
        low = rng.choice((0, 4))
        view = slice(low, low + 4)
        add((4,), None, arrays[x][view], arrays[y][view], a, cl.LocalMemory(8), b)
        with np.errstate(over="ignore"):
            values[y][view] = values[x][view] * np.int32(a) + np.int32(b)
    for array, expected in zip(arrays, values, strict=True):
        np.testing.assert_array_equal(array.get(), expected)


def test_what_the_program_does_to_our_kernel_concerns_nobody(
    make: Callable[..., acs.Runtime],
) -> None:
    rt = make(memory="buffers")
    add = rt.build(ADD).add
    x, y = rt.array(range(4), "i4"), rt.zeros(4, "i4")
    other = cl.Buffer(rt.context, cl.mem_flags.READ_WRITE, 16)
    for _ in range(2):
        add((4,), None, x, y, 2, cl.LocalMemory(8), 1)
        rt.finish()
        add.native.set_args(other, other, np.int32(7), cl.LocalMemory(4), np.int8(9))
    assert y.get().tolist() == [1, 3, 5, 7]


def test_memory_of_an_argument_lives_until_there_is_another(
    make: Callable[..., acs.Runtime],
) -> None:
    rt = make()
    add = rt.build(ADD).add
    y = rt.zeros(4, "i4")
    for turn in range(20):
        foreign = cl.Buffer(
            rt.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR,
            hostbuf=np.full(4, turn, np.int32),
        )  # fmt: skip
        add((4,), None, foreign, y, 2, cl.LocalMemory(8), 1)
        del foreign
        assert y.get().tolist() == [2 * turn + 1] * 4


def test_a_crowded_queue_takes_more(make: Callable[..., acs.Runtime]) -> None:
    rt = make()
    add = rt.build(ADD).add
    x, y = rt.zeros(4, "i4"), rt.zeros(4, "i4")
    with held(inside.driver_queues(rt)):
        for turn in range(CROWD):
            add((4,), None, x, y, 1, cl.LocalMemory(8), turn % 100)
    assert y.get().tolist() == [(CROWD - 1) % 100] * 4


@pytest.mark.parametrize("backend", ["lanes", "out_of_order"])
def test_an_end_is_told_once_though_another_one_cannot_be(backend: str, device: cl.Device) -> None:
    """All were told again with the next poll, and their events released a second time, which ended
    the process."""
    with (
        inside.scarce_events() as are_scarce,
        acs.Runtime(device, backend=backend, trace=True) as rt,
    ):
        inc = rt.build("kernel void inc(global int *x) { x[get_global_id(0)] += 1; }").inc
        arrays = [rt.zeros(8, "i4") for _ in range(4)]
        handles = [inc((8,), None, x) for x in arrays * 4]
        for queue in inside.driver_queues(rt):
            queue.finish()
        are_scarce.append(True)
        for _ in range(4):
            with pytest.raises(MemoryError, match="no room for an event"):
                rt.finish()
        are_scarce.clear()
        rt.finish()
        for handle in handles:
            handle.wait()
        assert [x.get().tolist() for x in arrays] == [[4] * 8] * 4
        assert testing.is_at_rest(rt)
