"""What a random program does, by NumPy: in program order, at once.

In: calls of `steps.run`. Out: `results`, what the gets gave, `POISONED` where they would raise.
Beside each array a mask of its shape and type has all bits of a poisoned element set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fuzz.kernels import run_in_numpy, wide
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
from fuzz.views import LAYOUT, SHAPES, Host, View, values

POISONED = "poisoned"


class Abilities(NamedTuple):
    """What a driver, or the way in which a program runs, has besides the rest."""

    images: bool = False
    variables: bool = False
    """Variables of the program, which threads would share."""
    includes: bool = False
    gates: bool = True
    """Launches may wait for events that the program sets later, for which a backlog has to have
    room."""


class _Graph(NamedTuple):
    calls: list[Recorded]
    arrays: list[Host]
    masks: list[Host]


def reached(launch: Launch, view: Host) -> Host:
    """The part of a view that a launch reaches, as inference has to find it."""
    if launch.name == "slow" or (launch.name == "evens" and len(view) == 2):
        return view[:1]
    if launch.name == "every":
        return view[:: launch.numbers[0]]
    if launch.name == "part":
        return view[: launch.numbers[1]]
    return view[launch.offset :] if launch.offset else view


def _poison(mask: Host) -> None:
    mask[...] = 1 if mask.dtype.kind == "f" else np.iinfo(mask.dtype).max


class NumpyMachine:
    """Program order, at once."""

    def __init__(self, failing: bool = False, abilities: Abilities | None = None) -> None:
        self.failing = failing
        self.abilities = abilities or Abilities()
        self.arrays = [values(slot, a.shape, a.dtype) for slot, a in enumerate(LAYOUT)]
        self.masks = [np.zeros_like(array) for array in self.arrays]
        self.images = [np.zeros(IMAGE, np.uint32) for _ in range(IMAGES)]
        self.kept = np.zeros(32, np.uint32)
        self.graphs: list[_Graph] = []
        self.results: list[Any] = []

    def _of(self, view: View) -> Host:
        found: Host = view.of(self.arrays[view.slot])
        return found

    def _mask(self, view: View) -> Host:
        found: Host = view.of(self.masks[view.slot])
        return found

    def _spread(self, reads: Sequence[Host], writes: Sequence[Host], sure: bool) -> bool:
        """Poison of a launch, by the masks of what it touches; whether it runs."""
        if any(mask.any() for mask in reads):
            for mask in writes:
                _poison(mask)
            return False
        if sure:
            for mask in writes:
                mask[...] = 0
        return True

    def kernel(self, launch: Launch, gated: bool) -> None:
        masks = [reached(launch, self._mask(view)) for view in launch.views]
        reads = [mask for mask, mode in zip(masks, launch.modes, strict=True) if "r" in mode]
        writes = [mask for mask, mode in zip(masks, launch.modes, strict=True) if "w" in mode]
        reads += [self._mask(cell) for cell in (launch.when, launch.count) if cell is not None]
        if not self._spread(reads, writes, sure=False):
            return
        if launch.when is not None and not self._of(launch.when)[0]:
            return
        views = [self._of(view) for view in launch.views]
        if launch.count is not None:
            views = [view[: int(self._of(launch.count)[0])] for view in views]
        elif launch.offset:
            views = [view[launch.offset :] for view in views]
        run_in_numpy(launch.name, views, launch.numbers)

    def many(self, launch: Launch, numbers: list[int]) -> None:
        for number in numbers:
            self.kernel(launch._replace(numbers=(number,)), False)

    def copy(self, target: View, source: View) -> None:
        if target != source and self._spread([self._mask(source)], [self._mask(target)], sure=True):
            self._of(target)[...] = self._of(source).copy()

    def new(self, slot: int, seed: int, how: int) -> None:
        made = values(seed, LAYOUT[slot].shape, LAYOUT[slot].dtype)
        if how == 1:
            made = np.zeros_like(made)
        elif how == 2:
            made = np.full_like(made, seed % 101)
        self.arrays[slot] = made
        self.masks[slot] = np.zeros_like(made)

    def host(self, source: View, target: View, both: bool, fails: bool) -> None:
        mask = self._mask(target)
        runs = self._spread([self._mask(source)], [mask], sure=not both)
        if runs and fails and self.failing:
            _poison(mask)
            runs = False
        if not runs:
            self.results.append(POISONED)
            return
        target_array = self._of(target).copy()
        arrays = [target_array] if both else [self._of(source).copy(), target_array]
        self.results.append(host_function(1, both, False)(*arrays))
        self._of(target)[...] = target_array

    def fill(self, view: View, value: int) -> None:
        self._mask(view)[...] = 0
        self._of(view)[...] = value % 101

    def set(self, view: View, seed: int) -> None:
        self._mask(view)[...] = 0
        target = self._of(view)
        target[...] = values(seed, target.shape, target.dtype)

    def get(self, view: View, wait: bool) -> None:
        self.results.append(POISONED if self._mask(view).any() else self._of(view).copy())

    # ---- graphs ----

    def graph(self, calls: list[Recorded]) -> None:
        self.graphs.append(_Graph(calls, [*self.arrays], [*self.masks]))

    def replay(self, which: int) -> None:
        if not self.graphs:
            return
        graph = self.graphs[which % len(self.graphs)]
        before = self.arrays, self.masks
        self.arrays, self.masks = graph.arrays, graph.masks
        for call in graph.calls:
            if isinstance(call, Launch):
                self.kernel(call, False)
            elif isinstance(call, Copy):
                self.copy(call.target, call.source)
            else:
                assert isinstance(call, Fill)
                self.fill(call.view, call.value)
        self.arrays, self.masks = before

    def update(self, which: int, call: int, value: int) -> None:
        calls = self.graphs[which % len(self.graphs)].calls if self.graphs else []
        places = changeable(calls)
        if places:
            place = places[call % len(places)]
            launch = calls[place]
            assert isinstance(launch, Launch)
            calls[place] = updated(launch, value)

    def swap(self, which: int, slot: int, seed: int) -> None:
        graph = self.graphs[which % len(self.graphs)] if self.graphs else None
        used = slots_of(graph.calls) if graph is not None else []
        if graph is not None and used:
            slot = used[slot % len(used)]
            self._result_of(graph, slot)
            graph.arrays[slot] = values(seed, LAYOUT[slot].shape, LAYOUT[slot].dtype)
            graph.masks[slot] = np.zeros_like(graph.arrays[slot])

    def _result_of(self, graph: _Graph, slot: int) -> None:
        poisoned = graph.masks[slot].any()
        self.results.append(POISONED if poisoned else graph.arrays[slot].copy())

    # ---- what not every driver has ----

    def draw(self, image: int, a: int) -> None:
        rows, columns = np.indices(IMAGE, np.uint32)
        self.images[image] = wide(a) * (columns + np.uint32(10) * rows + np.uint32(1))

    def look(self, image: int, row: int, view: View) -> None:
        if self.abilities.images:
            self._of(view)[...] += self.images[image][row]

    def mixed(self, view: View, a: int) -> None:
        if self.abilities.includes:
            x = self._of(view)
            x[...] = (x >> np.uint32(3)) + wide(a) * np.arange(1, len(x) + 1, dtype=np.uint32)

    def keep(self, view: View, a: int) -> None:
        if self.abilities.variables:
            y = self._of(view)
            self.kept = self.kept * np.uint32(3) + wide(a) + y
            y ^= self.kept

    def other(self, name: str, n: int) -> None:
        """Waiting, flushing, asking: nothing for a machine that is never behind."""

    def end(self) -> None:
        for graph in self.graphs:
            for slot in slots_of(graph.calls):
                self._result_of(graph, slot)
        for slot in range(len(SHAPES)):
            self.get(View(slot, "whole"), True)
