"""Make solvers that run until they have converged, which is the purpose of loops on the device.

Input: a runtime, a size and a seed. Output: a `Solver` with one recorded step, the word that
decides whether there is another one, and a reference by NumPy.

Invariant: a step computes the same bits with any driver. So the loop on the device, a replay with
the known count and a loop of the host have the same rounds and the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import acs_cl as acs
from acs_cl.opencl_c.kernel_files import kernel_source

GROUP = 64
DAMP = 0.85
MEANS = 8

Reals = npt.NDArray[np.float64]
Step = Callable[[], object]


class Links(NamedTuple):
    """A sparse square matrix by rows."""

    row: npt.NDArray[np.uint32]
    column: npt.NDArray[np.uint32]
    value: npt.NDArray[np.float32]

    def times(self, x: Reals) -> Reals:
        """Multiply it with a vector, in double precision."""
        each = self.value.astype(np.float64) * x[self.column]
        return np.add.reduceat(each, self.row[:-1].astype(np.int64))


class Solver(NamedTuple):
    """One step, recorded, and what belongs to it."""

    graph: acs.Graph
    step: Step
    """Make the launches of one step."""
    go: acs.Array
    reset: Callable[[], None]
    """Bring the arrays to their first values."""
    result: acs.Array
    error: Callable[[Reals], float]
    """How far a result is from NumPy's, beside the size of that."""
    tolerance: float


def laplacian(side: int) -> Links:
    """Return a Laplacian of five points in a square, with a little more on the diagonal."""
    at = np.arange(side * side).reshape(side, side)
    rows, columns, values = [at.ravel()], [at.ravel()], [np.full(side * side, 4.05)]
    for a, b in ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1])):
        for one, other in ((a, b), (b, a)):
            rows.append(one.ravel())
            columns.append(other.ravel())
            values.append(np.full(one.size, -1.0))
    return _by_rows(rows, columns, values, side * side)


def web(pages: int, seed: int) -> Links:
    """Draw a web of pages in which each links to some others. Columns sum to one."""
    random = np.random.default_rng(seed)
    source = np.concatenate([np.arange(pages), random.integers(0, pages, 5 * pages)])
    target = np.concatenate([(np.arange(pages) + 1) % pages, random.zipf(1.6, 5 * pages) % pages])
    out = np.bincount(source, minlength=pages)
    return _by_rows([target], [source], [1.0 / out[source]], pages)


def _by_rows(rows: Any, columns: Any, values: Any, n: int) -> Links:
    row, column, value = (np.concatenate(each) for each in (rows, columns, values))
    order = np.lexsort((column, row))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    return Links(
        starts.astype(np.uint32), column[order].astype(np.uint32), value[order].astype(np.float32)
    )


def program(rt: acs.Runtime) -> acs.Program:
    """Build the kernels."""
    return rt.build(kernel_source("solvers.cl"), macros={"GROUP": GROUP})


def _matrix(rt: acs.Runtime, links: Links) -> list[acs.Array]:
    return [rt.array(part) for part in links]


def _far(expected: Reals) -> Callable[[Reals], float]:
    return lambda found: float(np.abs(found - expected).max() / np.abs(expected).max())


def conjugate_gradients(rt: acs.Runtime, side: int, seed: int) -> Solver:
    """Solve a Laplacian of side * side unknowns."""
    links, n = laplacian(side), side * side
    b = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
    prog, groups = program(rt), n // GROUP
    matrix, x, r, p, q = _matrix(rt, links), *(rt.zeros(n) for _ in range(4))
    partial, state, go = rt.zeros(groups), rt.zeros(3), rt.zeros(1, "u4")
    first = rt.array(b)
    small = 1e-10 * float(b @ b)

    def step() -> None:
        prog.multiply((n,), (GROUP,), *matrix, p, q, partial)
        prog.step_length((1,), None, partial, state, groups)
        prog.advance((n,), (GROUP,), state, p, q, x, r, partial)
        prog.direction((1,), None, partial, state, go, groups, small)
        prog.turn((n,), None, state, r, p)

    with rt.record() as graph:
        step()

    def reset() -> None:
        x.fill(0)
        r.copy_from(first)
        p.copy_from(first)
        state.set(np.array([b @ b, 0, 0], np.float32))
        go.fill(1)

    expected = _solved(links, b.astype(np.float64))
    return Solver(graph, step, go, reset, x, _far(expected), 1e-4)


def _solved(links: Links, b: Reals) -> Reals:
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), float(r @ r)
    while rr > 1e-24 * float(b @ b):
        q = links.times(p)
        alpha = rr / float(p @ q)
        x, r = x + alpha * p, r - alpha * q
        p, rr = r + float(r @ r) / rr * p, float(r @ r)
    return x


def _spread(
    rt: acs.Runtime,
    links: Links,
    start: float,
    jump: float,
    damp: float,
    normed: bool,
    small: float,
) -> Solver:
    n = len(links.row) - 1
    prog, groups = program(rt), n // GROUP
    matrix, x, y = _matrix(rt, links), rt.zeros(n), rt.zeros(n)
    partial, state, go = rt.zeros(groups), rt.zeros(2), rt.zeros(1, "u4")

    def step() -> None:
        prog.spread((n,), (GROUP,), *matrix, x, y, partial, jump, damp)
        prog.length_of((1,), None, partial, state, groups)
        prog.settle((n,), (GROUP,), state, y, x, partial, int(normed))
        prog.judge((1,), None, partial, state, go, groups, small)

    with rt.record() as graph:
        step()

    def reset() -> None:
        x.fill(start)
        go.fill(1)

    expected, change = np.full(n, start), np.inf
    while change > small / 100:
        after = jump + damp * links.times(expected)
        after = after / np.linalg.norm(after) if normed else after
        change = float(np.abs(after - expected).sum())
        expected = after
    return Solver(graph, step, go, reset, x, _far(expected), 1e-2)


def power_iteration(rt: acs.Runtime, pages: int, seed: int) -> Solver:
    """Find the dominant eigenvector of a web of pages."""
    return _spread(rt, web(pages, seed), pages**-0.5, 0.0, 1.0, True, 1e-4)


def page_rank(rt: acs.Runtime, pages: int, seed: int) -> Solver:
    """Rank a web of pages."""
    return _spread(rt, web(pages, seed), 1 / pages, (1 - DAMP) / pages, DAMP, False, 1e-5)


def k_means(rt: acs.Runtime, points: int, seed: int) -> Solver:
    """Find the means of points in the plane."""
    random = np.random.default_rng(seed)
    true = random.uniform(-10, 10, (MEANS, 2))
    each = true[random.integers(0, MEANS, points)] + random.standard_normal((points, 2))
    data = each.astype(np.float32)
    prog = program(rt)
    point, mean = rt.array(data.reshape(-1)), rt.zeros(2 * MEANS)
    owner, moved, changed = rt.zeros(points, "u4"), rt.zeros(points, "u4"), rt.zeros(MEANS, "u4")
    go = rt.zeros(1, "u4")

    def step() -> None:
        prog.assign((points,), None, point, mean, owner, moved, MEANS)
        prog.centre((MEANS * GROUP,), (GROUP,), point, owner, moved, mean, changed, points)
        prog.any_changed((1,), None, changed, go, MEANS)

    with rt.record() as graph:
        step()

    def reset() -> None:
        mean.copy_from(point[: 2 * MEANS])
        owner.fill(MEANS)
        go.fill(1)

    means, owners = data[:MEANS].astype(np.float64), np.full(points, MEANS)
    while True:
        far = ((data[:, None, :] - means[None].astype(np.float32)) ** 2).sum(2)
        best = far.argmin(1)
        if (best == owners).all():
            break
        owners = best
        means = np.array([
            data[owners == k].astype(np.float64).mean(0) if (owners == k).any() else means[k]
            for k in range(MEANS)
        ])  # fmt: skip
    return Solver(graph, step, go, reset, mean, _far(means.reshape(-1)), 1e-3)


Make = Callable[[acs.Runtime, int, int], Solver]

SOLVERS: dict[str, tuple[Make, int, int]] = {
    "conjugate gradients": (conjugate_gradients, 8, 64),
    "power iteration": (power_iteration, 256, 4096),
    "PageRank": (page_rank, 256, 4096),
    "k-means": (k_means, 256, 4096),
}
"""What makes each, its size for tests and the one that is measured."""
