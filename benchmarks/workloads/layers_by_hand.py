"""Run the layers of a network by hand: queues and events, in bare PyOpenCL.

Input: a `Model`, and `expert.Queues`. Output: a run that launches each layer behind the layers that
it needs. These follow from the wiring of the network, which is known beforehand. A chain stays on
its queue.

Invariant: a gate's flags are read back before the first layer that needs them, and closed layers
are not launched.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acs_cl.benchmarks.workloads.expert import Queues, Token
from acs_cl.benchmarks.workloads.inference import Model, OnPlatform, is_open
from acs_cl.benchmarks.workloads.values import Gate, Layer, Value
from acs_cl.benchmarks.workloads.workload import Results


class ByHand(OnPlatform):
    """What an expert writes: each layer behind those that it needs, found beforehand from how the
    network is wired; a chain stays on its queue; flags are read back when they are needed."""

    def __init__(self, queues: Queues, model: Model) -> None:
        super().__init__(queues, model)
        self.queues = queues
        layers = [call.layer for call in self.body]
        self.behind = wiring(layers)
        self.lanes = _lanes(self.behind)
        self.makers = {name: _writers(layers, value) for name, value in model.kept.items()}
        groups = {group for layer in layers if layer.gate for group in layer.gate.reads}
        self.deciders = {group: _writers(layers, group) for group in groups}
        self.host = {group: np.empty(group.length, np.uint32) for group in groups}
        self.last: list[Token] = []
        """What nobody has waited for when an image is through: the next one comes after it."""
        queues.finish()  # memory is filled

    def step(self) -> None:
        """Run one image after the other."""
        go = self.queues.go
        for start, ends in zip(self.starts, self.ends, strict=True):
            first = go(start.ready, self.last)
            tokens: dict[int, Token] = {}
            known: set[Value] = set()
            waited: set[int] = set()
            for number, (launch, _, layer, _) in enumerate(self.body):
                if layer.gate is not None and not self._is_open(layer.gate, known, tokens):
                    continue
                after = []
                for one in self.behind[number]:
                    if one in tokens:
                        after.append(tokens[one])
                        waited.add(one)
                tokens[number] = go(launch, after or [first], self.lanes[number])
            self.last = [
                go(
                    end.ready,
                    [tokens[one] for one in makers if one in tokens] or [first],
                )
                for end, makers in zip(ends, self.makers.values(), strict=True)
            ]  # fmt: skip
            self.last += [token for one, token in tokens.items() if one not in waited]

    def results(self) -> Results:
        """Return what was kept, after everything has ended."""
        self.queues.finish()
        return super().results()

    def _is_open(self, gate: Gate, known: set[Value], tokens: dict[int, Token]) -> bool:
        for group in gate.reads:
            if group not in known:
                after = [tokens[one] for one in self.deciders[group] if one in tokens]
                self.queues.wait(self.queues.read(self._array(group), self.host[group], after))
                known.add(group)
        return is_open(gate, self.host)


def wiring(layers: Sequence[Layer]) -> list[list[int]]:
    """Return for each layer the earlier layers that it comes after, if they run."""
    written: dict[int, list[tuple[int, Value]]] = {}
    read: dict[int, list[tuple[int, Value]]] = {}
    behind = []
    for number, layer in enumerate(layers):
        found = set()
        for value in layer.reads:
            found |= {one for one, other in written.get(value.buffer, ()) if other.meets(value)}
        for value in layer.writes:
            touched = (*written.get(value.buffer, ()), *read.get(value.buffer, ()))
            found |= {one for one, other in touched if other.meets(value)}
        behind.append(sorted(found))
        for value in layer.reads:
            read.setdefault(value.buffer, []).append((number, value))
        for value in layer.writes:
            written.setdefault(value.buffer, []).append((number, value))
    return behind


def _writers(layers: Sequence[Layer], value: Value) -> list[int]:
    return [
        number
        for number, layer in enumerate(layers)
        if any(value.meets(written) for written in layer.writes)
    ]


def _lanes(behind: Sequence[Sequence[int]]) -> list[int]:
    """Return a queue for each layer: that of an upstream layer if no other layer took it, else the
    next one."""
    lanes: list[int] = []
    ended: dict[int, int] = {}  # {layer: its lane} where nobody went on
    fresh = 0
    for number, earlier in enumerate(behind):
        on = next((ended.pop(one) for one in reversed(earlier) if one in ended), None)
        if on is None:
            on, fresh = fresh, fresh + 1
        lanes.append(on)
        ended[number] = on
    return lanes
