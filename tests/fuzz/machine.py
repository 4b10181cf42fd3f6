"""A random program on a runtime.

In: calls of `steps.run`. Out: `results`, which line up with those of NumPy's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from fuzz.kernels import GROUP, IN_GROUPS, UPDATED
from fuzz.oracle import POISONED, Abilities
from fuzz.steps import (
    IMAGE,
    IMAGES,
    Copy,
    Fill,
    Launch,
    Recorded,
    changeable,
    host_function,
    slots_of,
    updated,
)
from fuzz.views import LAYOUT, SHAPES, View, flat_view, values


class _Graph(NamedTuple):
    graph: acs.Graph
    calls: list[Recorded]
    handles: list[acs.Handle]
    arrays: list[acs.Array]


class AcsMachine:
    """Launches on a runtime. `more`: programs with what not every driver has."""

    def __init__(
        self, runtime: acs.Runtime, program: acs.Program, failing: bool = False,
        abilities: Abilities | None = None, more: Mapping[str, acs.Program] | None = None,
    ) -> None:  # fmt: skip
        self.runtime = runtime
        self.program = program
        self.failing = failing
        self.abilities = abilities or Abilities()
        self.more = more or {}
        self.arrays = [
            runtime.array(values(slot, a.shape, a.dtype)) for slot, a in enumerate(LAYOUT)
        ]
        self.images: list[Any] = []
        self.graphs: list[_Graph] = []
        self.results: list[Any] = []
        self.handles: list[acs.Handle] = []
        self.promised: list[tuple[int, acs.Handle]] = []
        self.events: list[Any] = []
        if self.abilities.variables:
            first = self._of(flat_view(0, 0, 32))
            self.handles.append(self.more["variables"].forget((32,), (1,), first))

    def _of(self, view: View) -> acs.Array:
        found: acs.Array = view.of(self.arrays[view.slot])
        return found

    def let_go(self) -> None:
        """Foreign events have to come before anything blocks."""
        while self.events:
            self.events.pop().set_status(cl.command_execution_status.COMPLETE)

    def _promise(self, handle: acs.Handle) -> None:
        self.promised.append((len(self.results), handle))
        self.results.append(None)

    # ---- launches ----

    def kernel(self, launch: Launch, gated: bool) -> None:
        wait_for = None
        if gated and self.abilities.gates:
            self.events.append(cl.UserEvent(self.runtime.context))
            wait_for = self.events[-1:]
        self.handles.append(self._launch(launch, wait_for))

    def _launch(self, launch: Launch, wait_for: Any = None) -> acs.Handle:
        views = [self._of(view) for view in launch.views]
        arguments: list[Any] = [*views, *launch.numbers]
        said: dict[str, Any] = {"wait_for": wait_for}
        if launch.whole:
            slot = launch.views[0].slot
            whole = View(slot, "flat", (0, LAYOUT[slot].nbytes // 4))
            arguments = [self._of(whole), launch.views[0].numbers[0], *launch.numbers]
            if launch.declared:
                said |= {"reads": views, "writes": views}
        if launch.name in IN_GROUPS:
            arguments.insert(len(views), cl.LocalMemory(4 * GROUP))
        if launch.when is not None:
            said["when"] = self._of(launch.when)
        if launch.offset:
            said["offset"] = (launch.offset,)
        size: Any = launch.global_size
        if launch.count is not None:
            size = (acs.size(self._of(launch.count), upto=size[0]),)
        kernel = getattr(self.program, launch.name)
        handle: acs.Handle = kernel(size, launch.local_size, *arguments, **said)
        return handle

    def many(self, launch: Launch, numbers: list[int]) -> None:
        kernel = getattr(self.program, launch.name)
        view = self._of(launch.views[0])
        self.handles.append(
            kernel.launch_many(launch.global_size, launch.local_size, view, numbers)
        )

    def copy(self, target: View, source: View) -> None:
        self.handles.append(self._of(target).copy_from(self._of(source)))

    def new(self, slot: int, seed: int, how: int) -> None:
        shape, dtype = LAYOUT[slot].shape, LAYOUT[slot].dtype
        old = self.arrays[slot]
        if seed % 3 == 0 and not any(old is graph.arrays[slot] for graph in self.graphs):
            old.free()
        del old
        self.arrays[slot] = None  # its memory can be given out again at once
        if how == 1:
            self.arrays[slot] = self.runtime.zeros(shape, dtype)
        elif how == 2:
            self.arrays[slot] = self.runtime.empty(shape, dtype)
            self.arrays[slot].fill(seed % 101)
        else:
            source = values(seed, shape, dtype)
            self.arrays[slot] = self.runtime.array(source)
            source[...] = 0  # it was copied

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        function = host_function(1, both, fails and self.failing)
        reads, writes = [self._of(source)], [self._of(target)]
        handle = self.runtime.call(function, reads=reads, writes=writes)
        self.handles.append(handle)
        self._promise(handle)

    def fill(self, view: View, value: int) -> None:
        self.handles.append(self._of(view).fill(value % 101))

    def set(self, view: View, seed: int) -> None:
        target = self._of(view)
        source = values(seed, target.shape, target.dtype)
        self.handles.append(target.set(source))
        source[...] = 0  # it was copied

    def get(self, view: View, wait: bool) -> None:
        if wait:
            self.let_go()
        self._read(self._of(view), wait)

    def _read(self, array: Any, wait: bool = False) -> None:
        """Read an array; what it depends on may have failed before that was asked."""
        try:
            result = array.get(wait=wait)
        except acs.PoisonedError:
            assert self.failing
            self.results.append(POISONED)
            return
        if wait:
            self.results.append(result)
        else:
            self._promise(result)

    # ---- graphs ----

    def graph(self, calls: list[Recorded]) -> None:
        handles: list[acs.Handle] = []
        with self.runtime.record() as graph:
            for call in calls:
                if isinstance(call, Launch):
                    handles.append(self._launch(call))
                elif isinstance(call, Copy):
                    handles.append(self._of(call.target).copy_from(self._of(call.source)))
                else:
                    assert isinstance(call, Fill)
                    handles.append(self._of(call.view).fill(call.value % 101))
        self.graphs.append(_Graph(graph, calls, handles, [*self.arrays]))

    def replay(self, which: int) -> None:
        if self.graphs:
            self.handles.append(self.graphs[which % len(self.graphs)].graph.replay())

    def update(self, which: int, call: int, value: int) -> None:
        if not self.graphs:
            return
        graph, calls, handles, _ = self.graphs[which % len(self.graphs)]
        places = changeable(calls)
        if places:
            place = places[call % len(places)]
            launch = calls[place]
            assert isinstance(launch, Launch)
            launch = calls[place] = updated(launch, value)
            graph.update(handles[place], **{UPDATED[launch.name]: launch.numbers[-1]})

    def swap(self, which: int, slot: int, seed: int) -> None:
        graph = self.graphs[which % len(self.graphs)] if self.graphs else None
        used = slots_of(graph.calls) if graph is not None else []
        if graph is not None and used:
            slot = used[slot % len(used)]
            self._read(graph.arrays[slot])
            new = self.runtime.array(values(seed, LAYOUT[slot].shape, LAYOUT[slot].dtype))
            graph.graph.swap(graph.arrays[slot], new)
            graph.arrays[slot] = new

    # ---- what not every driver has ----

    def _image(self, image: int) -> Any:
        if not self.images:
            form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
            flags, shape = cl.mem_flags.READ_WRITE, IMAGE[::-1]
            context = self.runtime.context
            self.images = [cl.create_image(context, flags, form, shape) for _ in range(IMAGES)]
            for index in range(IMAGES):
                self.draw(index, 0)
        return self.images[image]

    def draw(self, image: int, a: int) -> None:
        if self.abilities.images:
            kernel = self.more["images"].draw
            self.handles.append(kernel(IMAGE[::-1], (1, 1), self._image(image), a))

    def look(self, image: int, row: int, view: View) -> None:
        if self.abilities.images:
            kernel, size = self.more["images"].look, (IMAGE[1],)
            self.handles.append(kernel(size, (1,), self._image(image), self._of(view), row))

    def mixed(self, view: View, a: int) -> None:
        if self.abilities.includes:
            kernel, size = self.more["includes"].mixed, (view.numbers[1],)
            self.handles.append(kernel(size, (1,), self._of(view), a))

    def keep(self, view: View, a: int) -> None:
        if self.abilities.variables:
            kernel = self.more["variables"].keep
            self.handles.append(kernel((32,), (1,), self._of(view), a))

    def other(self, name: str, n: int) -> None:
        if name == "flush":
            self.runtime.flush()
        elif name == "open":
            self.let_go()
        elif name == "finish":
            self.let_go()
            try:
                self.runtime.finish()
            except acs.PoisonedError:
                assert self.failing
        elif self.handles:
            handle = self.handles[-1 - n % len(self.handles)]
            if name == "done":
                assert handle.done in (True, False)
            elif name == "wait":
                self.let_go()
                self._wait(handle)
            else:
                assert name == "event"
                assert isinstance(handle.event, cl.Event)

    def _wait(self, handle: acs.Handle) -> Any:
        try:
            return handle.wait()
        except acs.PoisonedError:
            assert self.failing
            return POISONED

    def end(self) -> None:
        self.let_go()
        for graph in self.graphs:
            for slot in slots_of(graph.calls):
                self._read(graph.arrays[slot])
        blocking = len(self.handles) % 2 == 0
        for slot in range(len(SHAPES)):
            self.get(View(slot, "whole"), blocking)
        for index, handle in reversed(self.promised):
            self.results[index] = self._wait(handle)
