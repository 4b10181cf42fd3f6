"""Two programs on tiles of a matrix: a wavefront, and a Cholesky factorisation.

Input: a runtime and how many tiles a row has. Output: their launches in program order, one group
each, and what is in the matrix afterwards. The wavefront has a matrix in one piece. Each launch of
it gets a tile, the row above, the column to its left and the corner between, as a program with
halos does. Of the factorisation each tile is an array.

Invariant: `expected` is what NumPy makes of the same matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import acs_cl as acs
from acs_cl.opencl_c.kernel_files import kernel_source

WAVE, EDGE, GROUP = 64, 32, 256
"""Of `tiles.cl`: cells of a wavefront's tile in a row, of a factor's, and its work-items."""

Matrix = np.ndarray[Any, Any]


class Wavefront:
    """`tiles` x `tiles` tiles; each is filled `passes` times, with the same values each time."""

    name = "wavefront"

    def __init__(self, runtime: acs.Runtime, tiles: int, passes: int) -> None:
        self.tiles = tiles
        program = runtime.build(kernel_source("tiles.cl"))
        runtime.prebuild((program.wave, (WAVE,)))
        self.kernel = program.wave
        self.matrix = runtime.zeros((tiles * WAVE + 1,) * 2, "i4")
        self.calls = list(self._calls(passes))

    def _calls(self, passes: int) -> Iterator[tuple[Any, ...]]:
        matrix, pitch = self.matrix, self.matrix.shape[1]
        for i in range(self.tiles):
            for j in range(self.tiles):
                row, column = i * WAVE, j * WAVE
                rows = slice(row + 1, row + 1 + WAVE)
                columns = slice(column + 1, column + 1 + WAVE)
                yield (
                    matrix[rows, columns], matrix[row, columns], matrix[rows, column],
                    matrix[row, column : column + 1], pitch, passes, i * self.tiles + j,
                )  # fmt: skip

    def launch(self) -> None:
        """Launch all tiles."""
        for call in self.calls:
            self.kernel((WAVE,), (WAVE,), *call)

    def reset(self) -> None:
        """Restore the matrix."""
        self.matrix.fill(0)

    def result(self) -> Matrix:
        """Return the matrix."""
        values: Matrix = self.matrix.get()
        return values

    def expected(self) -> Matrix:
        """Compute it by NumPy, one antidiagonal at a time."""
        side = self.tiles * WAVE
        matrix = np.zeros((side + 1, side + 1), np.int32)
        for diagonal in range(2 * side - 1):
            row = np.arange(max(0, diagonal - side + 1), min(diagonal, side - 1) + 1)
            column = diagonal - row
            seed = (row // WAVE) * self.tiles + column // WAVE
            mixed = (seed + row % WAVE * 31 + column % WAVE) * 2654435761 & 0xFFFFFFFF
            near = np.maximum(matrix[row, column + 1], matrix[row + 1, column]) - 1
            matrix[row + 1, column + 1] = np.maximum(near, matrix[row, column] + (mixed >> 29))
        return matrix


class Cholesky:
    """`tiles` x `tiles` tiles, of which those on and below the diagonal are used."""

    name = "cholesky"

    def __init__(self, runtime: acs.Runtime, tiles: int, passes: int) -> None:
        self.tiles = tiles
        self.program = program = runtime.build(kernel_source("tiles.cl"))
        runtime.prebuild(
            *((one, (GROUP,)) for one in (program.factor, program.solve, program.update))
        )
        side = np.arange(tiles * EDGE)
        self.whole = (np.outer(side, side) % 7).astype("f4") / np.float32(7)
        self.whole[side, side] = 2 * len(side)
        self.arrays = [[runtime.array(tile) for tile in row] for row in self._cut(self.whole)]
        self.calls = list(self._calls())

    def _cut(self, whole: Matrix) -> list[list[Matrix]]:
        return [
            [np.ascontiguousarray(tile) for tile in np.split(row, self.tiles, 1)]
            for row in np.split(whole, self.tiles)
        ]

    def _calls(self) -> Iterator[tuple[Any, ...]]:
        at, program = self.arrays, self.program
        for k in range(self.tiles):
            below = range(k + 1, self.tiles)
            yield program.factor, at[k][k]
            for i in below:
                yield program.solve, at[k][k], at[i][k]
            for i in below:
                for j in range(k + 1, i + 1):
                    yield program.update, at[i][k], at[j][k], at[i][j]

    def launch(self) -> None:
        """Launch all tiles."""
        for kernel, *arguments in self.calls:
            kernel((GROUP,), (GROUP,), *arguments)

    def reset(self) -> None:
        """Restore the matrix."""
        for row, values in zip(self.arrays, self._cut(self.whole), strict=True):
            for tile, value in zip(row, values, strict=True):
                tile.set(value)

    def result(self) -> Matrix:
        """Return the matrix, with its factor in and below the diagonal."""
        return np.block([[tile.get() for tile in row] for row in self.arrays])

    def expected(self) -> Matrix:
        """Compute it by NumPy."""
        factor = np.tril(np.linalg.cholesky(self.whole.astype("f8")))
        blocks = np.kron(np.tri(self.tiles, k=-1).T, np.ones((EDGE, EDGE)))
        return factor + self.whole * blocks


PROGRAMS = (Wavefront, Cholesky)
