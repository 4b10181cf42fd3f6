"""Nengo-OCL: 200 steps of a chain of ensembles, of circular convolution with basal ganglia and
thalamus, and of a learning rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nengo
import nengo_ocl
import numpy as np
from nengo import spa

STEPS = 200
DIMENSIONS = 16


def programs() -> dict[str, Callable[[], list[Any]]]:
    """Each model as a run of its steps, which gives what its probes saw."""
    return {make.__name__: _run(make()) for make in (chain, convolution, learning)}


def chain() -> tuple[Any, list[Any]]:
    """20 ensembles, one behind the other."""
    with nengo.Network(seed=1) as model:
        last: Any = nengo.Node(np.sin)
        for _ in range(20):
            one = nengo.Ensemble(100, 1)
            nengo.Connection(last, one)
            last = one
        probes = [nengo.Probe(last, synapse=0.01)]
    return model, probes


def convolution() -> tuple[Any, list[Any]]:
    """Two vectors bound, and a choice of actions beside that."""
    with spa.SPA(seed=2) as model:
        for name in ("a", "b", "c", "vision"):
            setattr(model, name, spa.State(dimensions=DIMENSIONS))
        model.bound = spa.Cortical(spa.Actions("c = a * b"))
        actions = ("dot(c, A) --> vision=B", "dot(c, B) --> vision=A", "0.5 --> ")
        basal_ganglia = spa.BasalGanglia(spa.Actions(*actions))
        model.basal_ganglia = basal_ganglia
        model.thalamus = spa.Thalamus(basal_ganglia)
        model.input = spa.Input(a="A", b="B")
        outputs = (model.c.output, model.thalamus.actions.output)
        probes = [nengo.Probe(output, synapse=0.03) for output in outputs]
    return model, probes


def learning() -> tuple[Any, list[Any]]:
    """An ensemble learns what another one holds, by its error."""
    with nengo.Network(seed=3) as model:
        source = nengo.Node(lambda t: (np.sin(5 * t), np.cos(5 * t)))
        before, after, error = (nengo.Ensemble(200, 2) for _ in range(3))
        nengo.Connection(source, before)
        learned = nengo.Connection(
            before, after, function=lambda x: (0, 0), learning_rule_type=nengo.PES()
        )
        nengo.Connection(after, error)
        nengo.Connection(source, error, transform=-1)
        nengo.Connection(error, learned.learning_rule)
        probes = [nengo.Probe(after, synapse=0.01)]
    return model, probes


def _run(made: tuple[Any, list[Any]]) -> Callable[[], list[Any]]:
    model, probes = made
    simulator = nengo_ocl.Simulator(model, progress_bar=False)

    def run() -> list[Any]:
        simulator.reset()
        simulator.run_steps(STEPS, progress_bar=False)
        return [simulator.data[probe] for probe in probes]

    return run
