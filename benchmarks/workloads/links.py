"""HITS: hubs and authorities of a graph of links, by iteration.

Input: sizes and seeds. Output: the workload `hits`. Two branches, one for hubs and one for
authorities, whose launches read what the other branch writes in the next: write-after-read edges
cross.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.expert import Token
from acs_cl.benchmarks.workloads.pipelines import GROUP, Pipeline, across
from acs_cl.benchmarks.workloads.workload import Results, Workload

DEGREE = 3
ITERATIONS = 5


class HitsSize(NamedTuple):
    """Nodes, and groups that add up their squares."""

    nodes: int
    groups: int


class Side:
    """One of the two branches: what it is linked by, its values, and what they are made with."""

    def __init__(self, platform: Any, size: HitsSize, start: Any, column: Any) -> None:
        self.start, self.column = platform.array(start), platform.array(column)
        self.values, self.raw = platform.empty(size.nodes), platform.empty(size.nodes)
        self.partial, self.squares = platform.empty(size.groups), platform.empty(1)


class Hits(Pipeline):
    """Five iterations from values of one."""

    def __init__(self, platform: Any, size: HitsSize, seed: int) -> None:
        super().__init__(platform, size)
        rows, columns = both_ways(size, seed)
        self.hubs = Side(platform, size, *rows)
        self.authorities = Side(platform, size, *columns)
        self.reset()

    def reset(self) -> None:
        """Set all values to one."""
        self.hubs.values.fill(1)
        self.authorities.values.fill(1)

    def step(self) -> None:
        """Make forty launches."""
        nodes, groups = self.size
        program, flat, one = self.program, across(self.size.nodes), (GROUP,)
        hubs, authorities = self.hubs, self.authorities
        both = ((authorities, hubs), (hubs, authorities))
        for _ in range(ITERATIONS):
            for a, b in both:
                program.gather(flat, one, a.start, a.column, b.values, a.raw, nodes)
            for a, _ in both:
                program.partial_dots((groups * GROUP,), one, a.raw, a.raw, a.partial, nodes)
                program.sum_of(one, one, a.partial, a.squares, groups)
            for a, _ in both:
                program.divide_by_root(flat, one, a.raw, a.squares, a.values, nodes)

    def outputs(self) -> list[Any]:
        """Return both vectors."""
        return [self.hubs.values, self.authorities.values]

    def results(self) -> Results:
        """Return both vectors, of length one."""
        return {"hubs": self.hubs.values.get(), "authorities": self.authorities.values.get()}


class HitsByHand(Hits):
    """The same with events: a queue for hubs, one for authorities."""

    def step(self) -> None:
        """Launch a sum behind the other side's values. Values are kept until the other side's sum
        has read them."""
        nodes, groups = self.size
        launch, program = self.platform.launch, self.program
        flat, one = across(nodes), (GROUP,)
        sides = (self.authorities, self.hubs)
        values: list[Token] = []
        for _ in range(ITERATIONS):
            raw = [
                launch(
                    program.gather, flat, one,
                    a.start, a.column, sides[1 - on].values, a.raw, nodes, after=values, on=on,
                )
                for on, a in enumerate(sides)
            ]  # fmt: skip
            lengths = []
            for on, a in enumerate(sides):
                parts = launch(
                    program.partial_dots, (groups * GROUP,), one,
                    a.raw, a.raw, a.partial, nodes, after=[raw[on]], on=on,
                )  # fmt: skip
                lengths.append(
                    launch(
                        program.sum_of, one, one, a.partial, a.squares, groups,
                        after=[parts], on=on,
                    )
                )  # fmt: skip
            values = [
                launch(
                    program.divide_by_root, flat, one,
                    a.raw, a.squares, a.values, nodes, after=[lengths[on], raw[1 - on]], on=on,
                )
                for on, a in enumerate(sides)
            ]  # fmt: skip


# ---- reference -----------------------------------------------------------------------------------


def linked(size: HitsSize, seed: int) -> Any:
    """Return for each node the nodes that it links to."""
    random = np.random.default_rng(seed)
    return random.integers(0, size.nodes, (size.nodes, DEGREE), dtype=np.int32)


def rows_of(links: Any) -> tuple[Any, Any]:
    """Return the links of all nodes, and where each node's links begin."""
    return np.arange(0, links.size + 1, DEGREE, dtype=np.int32), links.reshape(-1)


def columns_of(links: Any) -> tuple[Any, Any]:
    """Return the same for the nodes that link to a node."""
    flat = links.reshape(-1)
    counts = np.bincount(flat, minlength=len(links))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return start, (np.argsort(flat, kind="stable") // DEGREE).astype(np.int32)


@lru_cache(1)
def both_ways(size: HitsSize, seed: int) -> Any:
    """Return both directions, made once for all platforms."""
    links = linked(size, seed)
    return rows_of(links), columns_of(links)


def reference(size: HitsSize, seed: int) -> Results:
    """Compute it in double precision, without turning the links round."""
    links = linked(size, seed)
    hubs, authorities = np.ones(size.nodes), np.ones(size.nodes)
    for _ in range(ITERATIONS):
        given = np.repeat(hubs, DEGREE)
        new_authorities = np.bincount(links.reshape(-1), weights=given, minlength=size.nodes)
        new_hubs = authorities[links].sum(axis=1)
        authorities = new_authorities / np.linalg.norm(new_authorities)
        hubs = new_hubs / np.linalg.norm(new_hubs)
    return {"hubs": hubs, "authorities": authorities}


WORKLOADS = [
    Workload(
        name="hits",
        family="pipelines",
        about="hubs and authorities of a random graph of links",
        presets={
            "tiny": HitsSize(1000, 4),
            "small": HitsSize(1 << 19, 64),
            "paper": HitsSize(1 << 22, 1024),
        },
        make=Hits,
        reference=reference,
        expert=HitsByHand,
        atol=1e-9,
    ),
]
