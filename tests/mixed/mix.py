"""One mixed program, on runtimes and beside NumPy, step by step.

In: steps, each a name and two seeds (`Step`). Out: an `AssertionError` where a byte differs, or an
error comes that should not. What a step does depends on its seeds and on the steps before it, never
on what the device answers; so a program that fails can be cut down by leaving steps out.
"""

# Long because: each kind of step is short, and all of them share one state.

from __future__ import annotations

import gc
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array
from fuzz.threads import in_threads

import acs_cl as acs
from mixed.drawing import CHANGEABLE, Drawing, fits
from mixed.host import (
    BYTES,
    LAYOUT,
    Copy,
    Fill,
    Host,
    Launch,
    Loop,
    Many,
    Memory,
    Numpy,
    Set,
    Task,
    View,
    values,
    views_of,
)
from mixed.kernels import KERNELS
from mixed.places import Place, options

ARRAYS, FOREIGN = 6, 3
BASES = ARRAYS + FOREIGN
GRAPHS = 4
SHOWN: list[Callable[[object], object]] = []
"""Gets what is done, as text."""


class Step(NamedTuple):
    """What to do, and the seeds for it."""

    what: str
    seed: int
    spice: int = 0


class Graph:
    """A recorded graph, with the memory that it uses by now."""

    def __init__(self, place: int, graph: Any, commands: list[Any], handles: list[Any],
                 memories: list[Memory], arrays: list[Any]) -> None:  # fmt: skip
        self.place, self.graph, self.commands, self.handles = place, graph, commands, handles
        self.memories, self.arrays = memories, arrays

    @property
    def bases(self) -> list[int]:
        """Those that it uses."""
        return sorted({view.base for command in self.commands for view in views_of(command)})


def has_loop(commands: Sequence[Any]) -> bool:
    """Whether a loop is among them."""
    return any(isinstance(one, Loop) for one in commands)


class Mix:
    """A program of one thread. `places` may be shared with others; `alone`: they are not."""

    def __init__(self, device: Any, places: list[Place], seed: int, alone: bool) -> None:
        self.device, self.places, self.alone = device, places, alone
        self.chance = random.Random(f"places {seed}")
        self.numpy = Numpy()
        self.homes = [base % len(places) for base in range(BASES)]
        self.memories = [Memory(seed + base) for base in range(BASES)]
        self.arrays: list[Any] = [None] * BASES
        self.buffers: list[Any] = [None] * BASES
        for base in range(BASES):
            self._make(base)
        self.graphs: list[Graph] = []
        self.handles: list[Any] = []
        self.promised: list[tuple[Any, Any, Any]] = []
        self.gates: list[tuple[Any, bool]] = []
        self.views: dict[tuple[int, View], Any] = {}
        self.kernels: dict[str, Any] = {}
        self.kept: list[Any] = []
        self.counts: Counter[str] = Counter()

    # ---- memory --------------------------------------------------------------------------------

    def _make(self, base: int) -> None:
        """Make a base anew, with the values of its memory."""
        place, held = self.places[self.homes[base]], self.memories[base].bytes
        if base < ARRAYS:
            self.arrays[base] = place.runtime.array(held)
            return
        flags = cl.mem_flags
        self.buffers[base] = cl.Buffer(
            place.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=held.copy()
        )
        self.arrays[base] = cl.array.Array(
            place.context, (BYTES,), np.uint8, data=self.buffers[base]
        )

    def _of(self, view: View, arrays: Sequence[Any] | None = None) -> Any:
        if arrays is not None:
            return view.of(arrays[view.base])
        key = id(self.arrays[view.base]), view
        found = self.views.get(key)
        if found is None:
            if len(self.views) > 300:
                self.views.clear()
            found = self.views[key] = view.of(self.arrays[view.base])
        return found

    def _drop_views(self, base: int) -> None:
        for key in [key for key in self.views if key[1].base == base]:
            del self.views[key]

    def bases(self, place: int, kind: str = "all") -> list[int]:
        """Those at home in a runtime: arrays, foreign ones, or all."""
        first, end = {"all": (0, BASES), "arrays": (0, ARRAYS), "foreign": (ARRAYS, BASES)}[kind]
        return [base for base in range(first, end) if self.homes[base] == place]

    def drawing(self, chance: random.Random, step: Step, place: int, **more: Any) -> Drawing | None:
        """Draws commands for a runtime; None: it has no arrays."""
        bases = self.bases(place, more.pop("kind", "all"))
        if not any(base < ARRAYS for base in bases):
            return None
        return Drawing(chance, step.spice, bases, [base for base in bases if base >= ARRAYS])

    def heal(self, bases: Sequence[int], memories: Sequence[Memory], arrays: Sequence[Any]) -> None:
        """Overwrite what is lost."""
        for base in bases:
            if not memories[base].is_clean:
                fresh = Memory(base)
                arrays[base].set(fresh.bytes)
                memories[base].__dict__.update(fresh.__dict__)

    # ---- commands on a runtime -----------------------------------------------------------------

    def make(self, place: Place, command: Any, arrays: Sequence[Any] | None = None) -> Any:
        """Make a command on the device; what it returns."""
        if isinstance(command, Launch):
            return self._launch(place, command, arrays)
        if isinstance(command, Many):
            one = command.launch
            size, local, args, said = self._call(place, one, arrays)
            args[-1] = np.array(command.last, "u4") if one.n % 2 else list(command.last)
            return place.kernel(one.name).launch_many(size, local, *args, **said)
        if isinstance(command, Copy):
            return self._of(command.target, arrays).copy_from(self._of(command.source, arrays))
        if isinstance(command, Fill):
            return self._of(command.view, arrays).fill(command.value)
        if isinstance(command, Set):
            target = self._of(command.view, arrays)
            source = values(command.seed, target.shape, command.view.dtype).copy()
            handle = target.set(source)
            source[...] = 0  # it was copied
            return handle
        if isinstance(command, Task):
            reads = [self._of(view, arrays) for view in command.reads]
            writes = [self._of(view, arrays) for view in command.writes]
            return place.runtime.call(command.function(), reads=reads, writes=writes)
        with acs.loop(self._of(command.flag, arrays), at_most=command.at_most):
            for one in command.body:
                self.make(place, one, arrays)
        return None

    def _call(self, place: Place, one: Launch, arrays: Any) -> tuple[Any, Any, list[Any], Any]:
        kernel = KERNELS[one.name]
        views = [self._of(view, arrays) for view in one.views]
        said: dict[str, Any] = {}
        args: list[Any] = [*views, *one.numbers]
        if kernel.whole:
            base = one.views[0].base
            args[0] = self._of(View(base, "u4", 0, "flat", (BYTES // 4,)), arrays)
            if one.declared:
                said["writes"] = views
                if one.name == "within":
                    said["reads"] = views
        size: Any = (one.n, one.m) if kernel.axes == 2 else (one.n,)
        if one.count is not None:
            size = (acs.size(self._of(one.count, arrays), upto=one.n),)
        if one.when is not None:
            said["when"] = self._of(one.when, arrays)
        if one.offset:
            said["offset"] = (one.offset,)
        if one.bands:
            said["bands"] = one.bands
        local = None if not one.local else (one.local, 1) if kernel.axes == 2 else (one.local,)
        return size, local, args, said

    def _launch(self, place: Place, one: Launch, arrays: Any) -> Any:
        size, local, args, said = self._call(place, one, arrays)
        if one.waits:
            event = cl.UserEvent(place.context)
            self.gates.append((event, one.waits == "lost"))
            said["wait_for"] = [event]
        return place.kernel(one.name)(size, local, *args, **said)

    @staticmethod
    def show(what: object) -> None:
        """Tell what is done, if that is asked for."""
        for one in SHOWN:
            one(what)

    def run(self, command: Any, place: int) -> None:
        """A command beside NumPy."""
        if not self.places[place].is_exact:
            command = _without_counts(command)
        self.show(command)
        self.numpy.cuts = self.places[place].cuts or getattr(command, "bands", 0) > 0
        self.numpy.run(command, self.memories)
        self.handles.append(self.make(self.places[place], command))

    # ---- waiting -------------------------------------------------------------------------------

    def open_gates(self, count: int = 99) -> None:
        """Set events that launches wait for."""
        while self.gates and count:
            event, fails = self.gates.pop(0)
            event.set_status(-5 if fails else cl.command_execution_status.COMPLETE)
            count -= 1

    def compare(self, got: Callable[[], Any], wanted: tuple[Host, bool, Host], what: str) -> None:
        """A read beside what NumPy has."""
        right, bad, vague = wanted
        try:
            found = got()
        except acs.PoisonedError:
            assert bad or vague.any(), f"{what}: nothing of it should be poisoned"
            return
        assert not bad, f"{what}: it is poisoned, and reading it raised nothing"
        one, other = (np.ascontiguousarray(part) for part in (found, right))
        if one.dtype.kind == "f":
            one, other = (part.view(f"u{part.dtype.itemsize}") for part in (one, other))
        wrong = (one != other) & ~vague
        if wrong.any():
            at = tuple(int(number) for number in np.argwhere(wrong)[0])
            raise AssertionError(
                f"{what}: element {at} is {one[at]}, expected {other[at]}; {int(wrong.sum())} wrong"
            )

    def check(self, base: int) -> None:
        """All bytes of a base."""
        memory, array = self.memories[base], self.arrays[base]
        what = f"base {base}"
        wanted = memory.bytes.copy(), bool(memory.bad.any()), memory.vague != 0
        if base < ARRAYS:
            self.compare(array.get, wanted, what)
            return
        queue = self.places[self.homes[base]].queue(0)
        self.compare(lambda: array.with_queue(queue).get(), wanted, what)

    def settle(self) -> None:
        """Wait for what was promised."""
        self.open_gates()
        while self.promised:
            handle, wanted, keeps = self.promised.pop()
            self.compare(partial(_kept, handle, keeps), wanted, "a promised read")

    def check_all(self) -> None:
        """Every byte of every base."""
        self.settle()
        for base in range(BASES):
            self.check(base)

    # ---- steps ---------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Do a step."""
        chance = random.Random(f"{step.what} {step.seed}")
        place = chance.randrange(len(self.places))
        self.show(f"-- {step.what} on {place}")
        getattr(self, f"do_{step.what}")(chance, step, place)
        self.counts[step.what] += 1
        del self.handles[:-40]

    def do_launch(self, chance: random.Random, step: Step, place: int) -> None:
        """A kernel."""
        drawing = self.drawing(chance, step, place)
        launch = drawing.launch() if drawing else None
        if launch is not None:
            self.run(self.clean_foreign(launch), place)

    def clean_foreign(self, launch: Launch) -> Launch:
        """Foreign memory is not to be poisoned: its queues would raise other errors."""
        if all(view.base < ARRAYS for view in views_of(launch)):
            return launch
        self.heal(range(ARRAYS), self.memories, self.arrays)
        return launch._replace(count=None)

    def do_gated(self, chance: random.Random, step: Step, place: int) -> None:
        """A kernel that waits for an event, which may fail."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        launch = drawing.launch() if drawing else None
        if launch is None or not self.places[place].takes_gates or len(self.gates) > 4:
            return
        if not self.alone and "window" in self.places[place].options:
            return  # the others would wait for this thread
        lost = chance.random() < 0.15 and self.places[place].is_exact
        self.run(launch._replace(waits="lost" if lost else "gate"), place)

    def do_open(self, chance: random.Random, step: Step, place: int) -> None:
        """Events are set, one or all."""
        self.open_gates(chance.choice([1, 99]))

    def do_many(self, chance: random.Random, step: Step, place: int) -> None:
        """Launches of one call."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        many = drawing.many() if drawing else None
        if many is not None:
            self.run(many, place)

    def do_transfer(self, chance: random.Random, step: Step, place: int) -> None:
        """A copy, a fill, values of the host."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        if drawing:
            command = chance.choice([drawing.copy, drawing.fill, drawing.set])()
            if command is not None:
                self.run(command, place)

    def do_task(self, chance: random.Random, step: Step, place: int) -> None:
        """A host task."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        command = drawing.task(False) if drawing else None
        if command is not None:
            self.run(command, place)

    def do_fails(self, chance: random.Random, step: Step, place: int) -> None:
        """A host task that raises."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        command = drawing.task(True) if drawing else None
        if command is not None and self.places[place].is_exact:
            self.run(command, place)

    def do_heal(self, chance: random.Random, step: Step, place: int) -> None:
        """Whatever was lost is written again."""
        self.heal(range(ARRAYS), self.memories, self.arrays)

    def do_get(self, chance: random.Random, step: Step, place: int) -> None:
        """A read of a part, at once or later, into memory of the program or not."""
        drawing = self.drawing(chance, step, place, kind="arrays")
        if not drawing:
            return
        view = drawing.any_view(chance.choice(["u1", "u2", "u4", "u8"]), chance.choice([1, 4, 32]))
        wanted = self.memories[view.base].copied(view)
        out = np.zeros(wanted[0].shape, view.dtype) if chance.random() < 0.3 else None
        if chance.random() < 0.5:
            self.open_gates()
            self.compare(lambda: self._of(view).get(out), wanted, f"get of {view}")
            return
        try:
            self.promised.append((self._of(view).get(out, wait=False), wanted, out))
        except acs.PoisonedError:  # that is known already
            assert wanted[1] or wanted[2].any(), "nothing of it should be poisoned"

    def do_settle(self, chance: random.Random, step: Step, place: int) -> None:
        """Wait for what was promised."""
        self.settle()

    def do_check(self, chance: random.Random, step: Step, place: int) -> None:
        """All bytes of one base, or of all."""
        self.open_gates()
        if chance.random() < 0.3:
            self.check_all()
        else:
            self.check(chance.randrange(BASES))

    def do_wait(self, chance: random.Random, step: Step, place: int) -> None:
        """Ask a handle."""
        handle = self.handles[-1 - chance.randrange(len(self.handles))] if self.handles else None
        if handle is None:
            return
        what = chance.randrange(4)
        if what == 0:
            assert handle.done in (True, False)
        elif what == 1:
            assert isinstance(handle.event, cl.Event)
        elif what == 2:
            assert str(handle.explain() if hasattr(handle, "explain") else handle)
        else:
            self.open_gates()
            try:
                handle.wait()
            except acs.PoisonedError:
                assert self.numpy.failed, "nothing has failed"
            assert handle.done

    def do_finish(self, chance: random.Random, step: Step, place: int) -> None:
        """Wait for everything, or send it."""
        runtime = self.places[place].runtime
        what = chance.randrange(5)
        if what == 0:
            runtime.flush()
        elif what == 1:
            assert runtime.stats()["launches"] >= 0
        else:
            self.open_gates()
            self.finish(place)

    def finish(self, place: int) -> None:
        """Wait for a runtime. Failures are told once."""
        try:
            self.places[place].runtime.finish()
        except acs.PoisonedError:
            assert self.numpy.failed, "nothing has failed"

    def do_renew(self, chance: random.Random, step: Step, place: int) -> None:
        """A base is dropped or freed, and made anew."""
        base = chance.randrange(BASES)
        if base >= ARRAYS:
            self.finish_home(base)
        elif chance.random() < 0.5 and not any(
            self.arrays[base] is graph.arrays[base] for graph in self.graphs
        ):
            self.arrays[base].free()
        self._drop_views(base)
        self.arrays[base] = self.buffers[base] = None
        self.memories[base] = Memory(step.spice or step.seed % 1000)
        self._make(base)

    def finish_home(self, base: int) -> None:
        """Wait for the runtime of a base."""
        self.open_gates()
        self.finish(self.homes[base])

    def do_hop(self, chance: random.Random, step: Step, place: int) -> None:
        """A base goes to another runtime: by the host, or behind events of the other one."""
        base = chance.randrange(BASES)
        old = self.homes[base]
        if old == place:
            return
        if base < ARRAYS:
            self.open_gates()
            if not self.memories[base].is_clean:
                self.heal([base], self.memories, self.arrays)
            self.check(base)
            self.homes[base], self.memories[base] = place, self.memories[base].twin()
            self._drop_views(base)
            self._make(base)
            return
        if chance.random() < 0.5:
            self.finish_home(base)
            self.homes[base] = place
            return
        # A launch here on all of it waits for one there on all of it.
        whole = View(base, "u4", 0, "flat", (BYTES // 4,))
        launch = Launch("stir", BYTES // 4, 1, 0, (whole,), (chance.randrange(99),))
        self.run(launch, old)
        event = self.handles[-1].event
        self.homes[base] = place
        self.numpy.run(launch, self.memories)
        size, local, args, said = self._call(self.places[place], launch, None)
        here = self.places[place].kernel("stir")
        self.open_gates()
        self.handles.append(here(size, local, *args, wait_for=[event], **said))

    def do_collect(self, chance: random.Random, step: Step, place: int) -> None:
        """Things are dropped, and collected."""
        what = chance.randrange(4)
        if what == 0:
            self.handles.clear()
        elif what == 1:
            self.views.clear()
        elif what == 2 and self.graphs:
            graph = self.graphs.pop(chance.randrange(len(self.graphs)))
            if chance.random() < 0.5:
                graph.graph.close()
        if chance.random() < 0.3:
            gc.collect()

    # ---- wrong calls ---------------------------------------------------------------------------

    def do_wrong(self, chance: random.Random, step: Step, place: int) -> None:
        """A call that is refused, and changes nothing."""
        drawing, here = self.drawing(chance, step, place, kind="arrays"), self.places[place]
        if not drawing:
            return
        x, y = (self._of(drawing.flat_view("u4", 16)) for _ in range(2))
        blend, array = here.kernel("blend"), self.arrays[self.bases(place, "arrays")[0]]
        other = [base for base in range(ARRAYS) if self.homes[base] != place]
        tries: list[Callable[[], Any]] = [
            lambda: blend((16,), None, x, "no array", 1),
            lambda: blend((16,), None, x, y),
            lambda: blend((16,), None, x, y, 2**40),
            lambda: blend((16,), None, x, y, "a"),
            lambda: blend((16,), (3,), x, y, 1),
            lambda: blend((0,), None, x, y, 1),
            lambda: blend.launch_many((16,), None, [x, x], [y], [1, 2]),
            lambda: blend.launch_many((16,), None, x, y, [2**40, 1]),
            lambda: x.set(np.zeros(15, "u4")),
            lambda: x.fill(2**40),
            lambda: x.copy_from(y[:3]),
            lambda: blend((16,), None, x, y, 1, when=array[:8]),
            lambda: here.kernel("ruled")((4,), None, x, y, 5),
            lambda: here.runtime.call(5, writes=[x]),
            lambda: here.runtime.call(lambda a, b, c: None, writes=[x]),
        ]
        if here.is_exact:  # checks look at the device instead
            tries.append(lambda: here.kernel("put")((BYTES,), None, array.view("u4"), 1))
        if other:
            far = self.arrays[chance.choice(other)].view("u4")
            tries.append(lambda: blend((16,), None, far[:16], y, 1))
        if self.graphs:
            graph = self.graphs[-1].graph
            if self.graphs[-1].handles:
                tries.append(lambda: graph.update(self.graphs[-1].handles[0], nobody=1))
            tries.append(lambda: graph.swap(array, array[:4]))
        what = chance.randrange(len(tries))
        try:
            tries[what]()
        except acs.UsageError:
            return
        raise AssertionError(f"wrong call {what} was taken")

    # ---- graphs --------------------------------------------------------------------------------

    def do_record(self, chance: random.Random, step: Step, place: int) -> None:
        """A graph is recorded."""
        drawing, here = self.drawing(chance, step, place, kind="arrays"), self.places[place]
        commands = drawing.recorded() if drawing else []
        if not commands:
            return
        if chance.random() < 0.3:
            decides = drawing.launch("decide") if drawing else None
            if decides is not None and decides.when is None:
                commands.append(decides)
        if not here.is_exact:
            commands = [_without_counts(command) for command in commands]
        handles = []
        with here.runtime.record() as graph:
            for command in commands:
                handles.append(self.make(here, command))
        self.show(commands)
        made = Graph(place, graph, commands, handles, [*self.memories], [*self.arrays])
        self.graphs.append(made)
        if len(self.graphs) > GRAPHS:
            del self.graphs[0]

    def _graph(self, chance: random.Random) -> Graph | None:
        return chance.choice(self.graphs) if self.graphs else None

    def do_replay(self, chance: random.Random, step: Step, place: int) -> None:
        """A graph is replayed, or repeated as long as its flag says so."""
        graph = self._graph(chance)
        if graph is None:
            return
        last = graph.commands[-1]
        repeats = isinstance(last, Launch) and last.name == "decide" and chance.random() < 0.6
        if repeats or has_loop(graph.commands):
            self.open_gates()
            self.heal(graph.bases, graph.memories, graph.arrays)
        self.numpy.cuts = self.places[graph.place].options["backend"] in ("device", "auto")
        self.numpy.cuts |= self.places[graph.place].cuts
        if not repeats:
            for command in graph.commands:
                self.numpy.run(command, graph.memories)
            self.handles.append(graph.graph.replay())
            return
        flag, most = last.views[2], chance.choice([1, 3, 9])
        flag = flag._replace(numbers=(1,))
        rounds = self.numpy.run(Loop(flag, most, tuple(graph.commands)), graph.memories)
        handle = graph.graph.replay(while_=self._of(flag, graph.arrays), at_most=most)
        self.handles.append(handle)
        if chance.random() < 0.5:
            try:
                handle.wait()
            except acs.PoisonedError:
                assert self.numpy.failed, "nothing has failed"
            else:
                assert handle.rounds == rounds, f"{handle.rounds} rounds, expected {rounds}"

    def do_together(self, chance: random.Random, step: Step, place: int) -> None:
        """Several threads replay one graph: each time as a whole."""
        graph = self._graph(chance)
        if graph is None or has_loop(graph.commands):
            return
        self.numpy.cuts = True
        threads, times = chance.choice([2, 3]), chance.choice([1, 3])
        for _ in range(threads * times):
            for command in graph.commands:
                self.numpy.run(command, graph.memories)

        def replays(_: int) -> None:
            for _ in range(times):
                graph.graph.replay()

        in_threads(replays, threads)

    def do_update(self, chance: random.Random, step: Step, place: int) -> None:
        """A launch of a graph gets another number."""
        graph = self._graph(chance)
        if graph is None or not graph.handles:
            return
        at = chance.randrange(len(graph.commands))
        launch = graph.commands[at]
        if not isinstance(launch, Launch):
            return
        kernel = KERNELS[launch.name]
        drawn = kernel.numbers(random.Random(step.spice or step.seed), launch.n, launch.m)
        numbers, said = list(launch.numbers), {}
        for number, name in enumerate(kernel.names):
            if name in CHANGEABLE:
                numbers[number] = said[name] = drawn[number]
        changed = launch._replace(numbers=tuple(numbers))
        if said and fits(changed) and graph.handles[at] is not None:
            graph.graph.update(graph.handles[at], **said)
            graph.commands[at] = changed

    def do_swap(self, chance: random.Random, step: Step, place: int) -> None:
        """A graph gets another array."""
        graph = self._graph(chance)
        if graph is None:
            return
        base = chance.choice(graph.bases)
        if chance.random() < 0.5 and self.homes[base] == graph.place:
            memory, array = self.memories[base], self.arrays[base]
        else:
            memory = Memory(step.seed % 1000)
            array = self.places[graph.place].runtime.array(memory.bytes)
        graph.graph.swap(graph.arrays[base], array)
        graph.memories[base], graph.arrays[base] = memory, array

    def do_look(self, chance: random.Random, step: Step, place: int) -> None:
        """What a graph has written to memory of its own."""
        graph = self._graph(chance)
        if graph is None:
            return
        self.open_gates()
        base = chance.choice(graph.bases)
        memory = graph.memories[base]
        wanted = memory.bytes.copy(), bool(memory.bad.any()), memory.vague != 0
        self.compare(graph.arrays[base].get, wanted, f"base {base} of a graph")

    def do_arrange(self, chance: random.Random, step: Step, place: int) -> None:
        """The launches of a graph go in another order, or are proven."""
        graph = self._graph(chance)
        if graph is None:
            return
        if chance.random() < 0.5:
            graph.graph.arrange(chance.choice(["first_in", "critical_path", "narrow_first"]))
        elif self.places[graph.place].options["backend"] == "device":
            self.open_gates()
            graph.graph.verify()

    def do_save(self, chance: random.Random, step: Step, place: int) -> None:
        """A graph is saved, and loaded by this runtime or by another one."""
        graph = self._graph(chance)
        if graph is None or "Task" in str(graph.commands):
            return
        self.open_gates()
        bases = graph.bases
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "step.acs")
            graph.graph.save(path, **{f"b{base}": graph.arrays[base] for base in bases})
            mine = chance.random() < 0.5
            to = graph.place if mine else place
            given = {f"b{base}": graph.arrays[base] for base in bases} if mine else {}
            loaded = self.places[to].runtime.load(path, **given)
        memories, arrays = [*graph.memories], [*graph.arrays]
        if not mine:
            for base in bases:
                memories[base], arrays[base] = Memory(0), loaded.arrays[f"b{base}"]
                memories[base].bytes[...] = 0
        handles: list[Any] = []
        if all(isinstance(one, Launch) for one in graph.commands):
            handles = list(loaded.handles)
            if len(handles) != len(graph.commands):
                handles = []
        self.graphs.append(Graph(to, loaded, [*graph.commands], handles, memories, arrays))
        if len(self.graphs) > GRAPHS:
            del self.graphs[0]

    # ---- queues --------------------------------------------------------------------------------

    def do_queue(self, chance: random.Random, step: Step, place: int) -> None:
        """A plain command of PyOpenCL."""
        bases = self.bases(place, "foreign")
        if not bases:
            return
        queue = self.places[place].queue(chance.choice([0, 0, 1]))
        base, other = chance.choice(bases), chance.choice(bases)
        spiced = random.Random(step.spice) if step.spice else chance
        first = chance.choice([0, 0, 16, 400])
        size = chance.choice([16, 64, 256])
        memory, buffer = self.memories[base], self.buffers[base]
        what = chance.choice(["write", "read", "copy", "fill", "kernel", "kernel", "kernel",
                              "array", "map", "finish", "marker"])  # fmt: skip
        self.show(f"{what} of base {base}, {other}")
        if what == "write" and chance.random() < 0.2:
            self._behind_event(queue, base, spiced)
        elif what == "write":
            host = values(spiced.randrange(9999), (size,), "u1").copy()
            wait = chance.random() < 0.5
            if wait:
                self.open_gates()
            cl.enqueue_copy(queue, buffer, host, dst_offset=first, is_blocking=wait)
            self.kept.append(host)
            memory.bytes[first : first + size] = host
        elif what == "read":
            out, right = np.zeros(size, "u1"), memory.bytes[first : first + size].copy()
            wait = chance.random() < 0.5
            if wait:
                self.open_gates()
            event = cl.enqueue_copy(queue, out, buffer, src_offset=first, is_blocking=wait)
            wanted = right, False, np.zeros(size, bool)
            if wait:
                self.compare(lambda: out, wanted, "a blocking read of a queue")
            else:
                self.promised.append((event, wanted, out))
        elif what == "copy" and base != other:
            target = chance.choice([0, 64, 512])
            cl.enqueue_copy(
                queue, self.buffers[other], buffer, src_offset=first, dst_offset=target,
                byte_count=size,
            )  # fmt: skip
            part = memory.bytes[first : first + size]
            self.memories[other].bytes[target : target + size] = part
        elif what == "fill":
            value = np.uint32(spiced.randrange(1 << 20))
            cl.enqueue_fill_buffer(queue, buffer, value, first, size)
            memory.bytes[first : first + size].view("u4")[...] = value
        elif what == "kernel":
            self._native(queue, base, other, chance, spiced)
        elif what == "array":
            self._with_array(queue, base, chance, spiced)
        elif what == "map":
            self.open_gates()
            flags = cl.map_flags
            mapped, _ = cl.enqueue_map_buffer(
                queue, buffer, flags.READ | flags.WRITE, first, (size,), np.uint8
            )
            found = np.array(mapped)
            wanted = memory.bytes[first : first + size].copy(), False, np.zeros(size, bool)
            self.compare(lambda: found, wanted, "a map of a queue")
            mapped[...] += 3
            mapped.base.release(queue)
            memory.bytes[first : first + size] += np.uint8(3)
        elif what == "finish":
            self.open_gates()
            queue.finish()
        elif what == "marker":
            cl.enqueue_marker(queue)

    def _behind_event(self, queue: Any, base: int, spiced: random.Random) -> None:
        """A fill behind an event: of the last launch, or one that the program sets later."""
        place = self.places[self.homes[base]]
        if self.handles and spiced.random() < 0.6:
            event = self.handles[-1].event
            if self.numpy.failed:
                return  # it may be of what has failed
        elif self.alone and place.takes_gates:
            event = cl.UserEvent(place.context)
            self.gates.append((event, False))
        else:
            return
        value = np.uint32(spiced.randrange(1 << 20))
        cl.enqueue_fill_buffer(queue, self.buffers[base], value, 64, 256, wait_for=[event])
        self.memories[base].bytes[64:320].view("u4")[...] = value

    def _native(self, queue: Any, base: int, other: int, chance: random.Random,
                spiced: random.Random) -> None:  # fmt: skip
        """A kernel of PyOpenCL's, which gets whole buffers."""
        name = chance.choice(["stir", "blend", "put"])
        if name not in self.kernels:
            program = self.places[self.homes[base]].program
            self.kernels[name] = cl.Kernel(program.native, name)
        n, a = chance.choice([16, 64]), spiced.randrange(1000)
        kernel, buffer = self.kernels[name], self.buffers[base]
        own = self.bases(self.homes[base], "arrays")
        # Memory of the runtime by its address: a launch on any memory, which stops at any poison.
        if own and chance.random() < 0.3 and not self.numpy.failed:
            base = chance.choice(own)
            buffer = self.arrays[base].data
        self.show(f"{name} on base {base}")
        memory = self.memories[base].bytes.view("u4")
        if name == "blend":
            if base == other:
                return
            kernel.set_args(self.buffers[other], buffer, np.uint32(a))
            views = [self.memories[other].bytes.view("u4"), memory]
        else:
            kernel.set_args(buffer, np.uint32(a))
            views = [memory]
        cl.enqueue_nd_range_kernel(queue, kernel, (n,), None)
        KERNELS[name].run(views, 0, n, 1, (a,))

    def _with_array(self, queue: Any, base: int, chance: random.Random,
                    spiced: random.Random) -> None:  # fmt: skip
        """Arithmetic of `pyopencl.array`, which is written back to a part of the base."""
        n, a = chance.choice([16, 40]), spiced.randrange(1000)
        first = chance.choice([0, 16])
        whole = self.arrays[base].with_queue(queue).view(np.uint32)
        part = whole[first : first + n]
        result = part * np.uint32(3) + np.uint32(a)
        if chance.random() < 0.3:
            del part, whole
        self.arrays[base].with_queue(queue).view(np.uint32)[first : first + n] = result
        memory = self.memories[base].bytes.view("u4")[first : first + n]
        memory[...] = memory * np.uint32(3) + np.uint32(a)

    # ---- the end of a runtime ------------------------------------------------------------------

    def do_close(self, chance: random.Random, step: Step, place: int) -> None:
        """A runtime is closed in the middle, or dropped; another one takes its place."""
        if not self.alone:
            return
        here = self.places[place]
        kept = []
        for base in self.bases(place, "arrays"):
            if chance.random() < 0.5:
                memory = self.memories[base]
                wanted = memory.bytes.copy(), bool(memory.bad.any()), memory.vague != 0
                try:
                    kept.append((self.arrays[base].get(wait=False), wanted))
                except acs.PoisonedError:
                    assert wanted[1] or wanted[2].any(), "nothing of it should be poisoned"
        self.open_gates()
        old = [graph for graph in self.graphs if graph.place == place]
        self.graphs = [graph for graph in self.graphs if graph.place != place]
        how = chance.randrange(3)
        here.is_open = False
        if how == 0:  # nobody closes it
            for base in self.bases(place):
                self._drop_views(base)
                self.arrays[base] = None
            self.settle()
            old.clear()
            self.handles.clear()
            self.kernels.clear()
            self.places[place] = here = None  # type: ignore[assignment]
            gc.collect()
        else:
            try:
                here.runtime.close()
            except acs.PoisonedError:
                assert self.numpy.failed, "nothing has failed"
            if old:
                try:
                    old[0].graph.replay()
                except acs.UsageError:
                    pass
                else:
                    raise AssertionError("a graph of a closed runtime was replayed")
        for handle, wanted in kept:
            self.compare(handle.wait, wanted, "a read that a closed runtime has promised")
        self.kernels.clear()
        self.places[place] = Place(self.device, options(self.chance))
        for base in self.bases(place):
            self._drop_views(base)
            if base < ARRAYS:
                self.memories[base] = Memory(step.seed % 1000 + base)
                self._make(base)
            else:
                buffer = self.buffers[base]
                self.arrays[base] = cl.array.Array(
                    self.places[place].context, (BYTES,), np.uint8, data=buffer
                )

    def end(self) -> None:
        """Compare everything."""
        self.check_all()
        for graph in self.graphs:
            for base in graph.bases:
                memory = graph.memories[base]
                wanted = memory.bytes.copy(), bool(memory.bad.any()), memory.vague != 0
                self.compare(graph.arrays[base].get, wanted, f"base {base} of a graph")


def _without_counts(command: Any) -> Any:
    """Return a command whose sizes are right: a wrong one loses bytes that nobody can tell where
    poison does not spread by what a launch touches."""
    if isinstance(command, Launch):
        return command._replace(count=None)
    if isinstance(command, Loop):
        return command._replace(body=tuple(map(_without_counts, command.body)))
    return command


def _kept(handle: Any, out: Host | None) -> Any:
    """What a read was promised to give, or has put into memory of the program."""
    result = handle.wait()
    return result if out is None else out


assert LAYOUT.size == BYTES
