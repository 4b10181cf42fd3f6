"""The pipeline of the demo, an adaptive image filter, on a runtime and also in NumPy.

Input: a picture of whole grey levels. Output: the filtered picture, and the treatment of each tile.

Every tile is measured on the device, and the host decides by the measure which kernels run on the
tile. A calm tile gets one blur, a noisy one up to three passes of an average that keeps edges. A
tile with edges is sharpened in the end. A seam between neighbours with different treatments is
blended. So the graph of launches depends on the picture. Tiles are views of shared arrays, and the
program does not say which launches are independent.

Invariant: measures are sums of whole numbers, so every device decides as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import pi, sqrt

import numpy as np

from acs_cl import Array, Handle, Runtime
from acs_cl.opencl_c.kernel_files import kernel_source
from acs_cl.records import HostArray

TILE = 96
GROUP = 64
"""Work-items in a group. One group does one tile, so such a kernel fills one compute unit."""
REACH = 8
"""Pixels on either side of a seam that blending may change."""
ROUNDS = 40

MARGIN = {"smooth": 4, "denoise": 3, "sharpen": 2}
"""Pixels around its tile that a kernel reads."""
SETTING = {"smooth": (), "denoise": (24.0,), "sharpen": (0.6,)}
BORDER = 3 * MARGIN["denoise"] + MARGIN["sharpen"]
WIDE = TILE + 2 * BORDER

NOISY = (3.0, 8.0, 14.0)
"""Standard deviations, in grey levels, from which a tile gets one more pass."""
CRISP = 2.0
"""Gradient, in grey levels beyond the noise's own, from which a tile is sharpened."""

Pixels = HostArray
Treatment = tuple[str, ...]
Treatments = dict[tuple[int, int], Treatment]


# ---- pictures ------------------------------------------------------------------------------------


def sky(side: int) -> Pixels:
    """Draw a gradient with a few discs. Noise grows from left to right."""
    y, x = np.mgrid[0:side, 0:side] / side
    picture = 90 + 80 * y
    discs = ((0.3, 0.32, 0.13, 215), (0.68, 0.6, 0.2, 60), (0.2, 0.8, 0.07, 240))
    for at_y, at_x, radius, level in discs:
        picture[(y - at_y) ** 2 + (x - at_x) ** 2 < radius**2] = level
    return _with_noise(picture, 22 * np.clip(x - 0.45, 0, 1) ** 1.2 * 2, 1)


def city(side: int) -> Pixels:
    """Draw towers with lit windows before a dark sky. Noise grows downwards."""
    random = np.random.default_rng(2)
    y, x = np.mgrid[0:side, 0:side]
    picture = 40.0 + 30 * y / side
    width = side // 9
    for left in range(0, side, width):
        top = int(side * random.uniform(0.2, 0.75))
        tower = (x >= left) & (x < left + width - 6) & (y >= top)
        picture[tower] = random.uniform(70, 130)
        picture[tower & ((y - top) % 24 > 12) & ((x - left) % 16 > 8)] = 230
    return _with_noise(picture, 16 * np.clip(y / side - 0.3, 0, 1), 3)


def _with_noise(picture: Pixels, deviation: Pixels, seed: int) -> Pixels:
    noise = np.random.default_rng(seed).standard_normal(picture.shape) * deviation
    return np.clip(np.rint(picture + noise), 0, 255)


SCENES: dict[str, Callable[[int], Pixels]] = {"sky": sky, "city": city}


# ---- decisions, the same for both ----------------------------------------------------------------


def decide(rough: int, steep: int) -> Treatment:
    """Return the kernels for a tile, from its two sums."""
    pixels = TILE * TILE
    deviation = sqrt(pi / 2) / (6 * pixels) * rough  # Immerkaer's estimate
    passes = sum(deviation > limit for limit in NOISY)
    gradient = steep / (2 * pixels) - 1.13 * deviation  # the mean of |a - b| for noise alone
    if gradient > CRISP:
        return ("denoise",) * max(1, passes) + ("sharpen",)
    return ("denoise",) * passes or ("smooth",)


def tiles(count: int) -> Iterator[tuple[int, int]]:
    """Return rows and columns of tiles, in reading order."""
    return ((row, column) for row in range(count) for column in range(count))


def seams(count: int, done: Treatments) -> Iterator[tuple[slice, slice, int]]:
    """Return the places where neighbours differ: rows and columns of the strip, axis across the
    seam."""
    for row, column in tiles(count):
        along_y = slice(row * TILE, (row + 1) * TILE)
        along_x = slice(column * TILE, (column + 1) * TILE)
        if column and done[row, column - 1] != done[row, column]:
            yield along_y, slice(column * TILE - REACH, column * TILE + REACH), 1
        if row and done[row - 1, column] != done[row, column]:
            yield slice(row * TILE - REACH, row * TILE + REACH), along_x, 0


# ---- on a device ---------------------------------------------------------------------------------


class Filter:
    """The filter on one runtime, for square pictures of one size. It reuses its arrays."""

    def __init__(self, runtime: Runtime, side: int) -> None:
        count = self.count = side // TILE
        self.kernels = runtime.build(
            kernel_source("demo.cl"), macros={"GROUP": GROUP, "REACH": REACH}
        )
        self.picture = runtime.empty((side + 2 * BORDER, side + 2 * BORDER))
        self.measures = runtime.empty((count, 2, side), np.int32)
        self.scratch = runtime.empty((2, count, count, WIDE, WIDE))
        self.result = runtime.empty((side, side))
        self.launched: list[str] = []
        """Kernels and their places, in program order: the nodes of the graph."""
        self._views: dict[tuple[int, ...], Array] = {}

    def run(self, picture: Pixels) -> tuple[Pixels, Treatments]:
        """Filter a picture. The host waits for the measures of a row of tiles, and for the
        result."""
        self.launched.clear()
        self.picture.set(np.pad(picture, BORDER, mode="edge").astype(np.float32))
        coming = [self._measure(row) for row in range(self.count)]
        done: Treatments = {}
        for row in range(self.count):
            sums = coming[row].wait().reshape(2, self.count, TILE).sum(axis=-1)
            for column in range(self.count):
                rough, steep = sums[:, column].tolist()
                done[row, column] = decide(rough, steep)
                self._treat(row, column, done[row, column])
        for rows, columns, axis in seams(self.count, done):
            strip = self.result[rows, columns]
            across, along = (1, _pitch(strip)) if axis else (_pitch(strip), 1)
            self._launch("blend", rows.start, columns.start, strip, across, along, TILE, ROUNDS)
        return self.result.get(), done

    def _measure(self, row: int) -> Handle:
        """Measure a row of tiles, for reading back."""
        y, width = row * TILE + BORDER, self.count * TILE
        band = self.picture[y - 1 : y + TILE + 1, BORDER - 1 : BORDER + width + 1]
        self._launch("measure", row, 0, band, _pitch(band), self.measures[row], width, TILE)
        coming: Handle = self.measures[row].get(wait=False)
        return coming

    def _treat(self, row: int, column: int, treatment: Treatment) -> None:
        """Launch the kernels from the picture to the result; intermediate results go to scratch."""
        margin = sum(MARGIN[name] for name in treatment)
        source = self._around(row, column, margin)
        for step, name in enumerate(treatment):
            margin -= MARGIN[name]
            size = TILE + 2 * margin
            if margin:
                target = self._square(self.scratch, (step % 2, row, column), 0, 0, size)
            else:
                target = self._square(self.result, (), row * TILE, column * TILE, TILE)
            self._launch(
                name, row, column, source, _pitch(source), target, _pitch(target), size,
                *SETTING[name],
            )  # fmt: skip
            source = target

    def _around(self, row: int, column: int, margin: int) -> Array:
        """Return a tile of the picture, with a margin."""
        y, x = row * TILE + BORDER - margin, column * TILE + BORDER - margin
        return self._square(self.picture, (), y, x, TILE + 2 * margin)

    def _square(self, array: Array, place: tuple[int, ...], y: int, x: int, size: int) -> Array:
        """Return pixels of an array: a view, made once and kept."""
        key = (id(array), *place, y, x, size)
        if key not in self._views:
            index = (*place, slice(y, y + size), slice(x, x + size))
            self._views[key] = array[index]
        return self._views[key]

    def _launch(self, name: str, row: int, column: int, *args: object) -> None:
        self.launched.append(f"{name} {row},{column}")
        getattr(self.kernels, name)((GROUP,), (GROUP,), *args)


def _pitch(view: Array) -> int:
    return view.strides[0] // view.dtype.itemsize


# ---- in NumPy ------------------------------------------------------------------------------------


def reference(picture: Pixels) -> tuple[Pixels, Treatments]:
    """Do the work of `Filter.run` in NumPy and double precision."""
    count = len(picture) // TILE
    padded = np.pad(picture, BORDER, mode="edge")
    result = np.empty(picture.shape)
    done: Treatments = {}
    for row, column in tiles(count):
        y, x = row * TILE + BORDER, column * TILE + BORDER

        def around(margin: int, y: int = y, x: int = x) -> Pixels:
            return padded[y - margin : y + TILE + margin, x - margin : x + TILE + margin]

        done[row, column] = decide(*_measure(around(1)))
        pixels = around(sum(MARGIN[name] for name in done[row, column]))
        for name in done[row, column]:
            pixels = _STEPS[name](pixels)
        result[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE] = pixels
    for rows, columns, axis in seams(count, done):
        strip = result[rows, columns]
        _blend(strip if axis else strip.T)
    return result, done


def _neighbours(pixels: Pixels, margin: int) -> Iterator[Pixels]:
    size = len(pixels) - 2 * margin
    for y in range(2 * margin + 1):
        for x in range(2 * margin + 1):
            yield pixels[y : y + size, x : x + size]


def _measure(pixels: Pixels) -> tuple[int, int]:
    mask = np.outer((1, -2, 1), (1, -2, 1)).ravel()
    near = list(_neighbours(pixels, 1))
    rough = np.abs(sum(weight * one for weight, one in zip(mask, near, strict=True))).sum()
    steep = (np.abs(near[5] - near[3]) + np.abs(near[7] - near[1])).sum()
    return int(rough), int(steep)


def _average(pixels: Pixels, weights: tuple[int, ...]) -> Pixels:
    both = np.outer(weights, weights).ravel() / sum(weights) ** 2
    near = _neighbours(pixels, len(weights) // 2)
    return np.asarray(sum(weight * one for weight, one in zip(both, near, strict=True)))


def _smooth(pixels: Pixels) -> Pixels:
    return _average(pixels, (1, 8, 28, 56, 70, 56, 28, 8, 1))


def _denoise(pixels: Pixels) -> Pixels:
    (tolerance,) = SETTING["denoise"]
    centre = pixels[3:-3, 3:-3]
    total, weights = np.zeros_like(centre), np.zeros_like(centre)
    for near in _neighbours(pixels, 3):
        weight = 1 / (1 + ((near - centre) / tolerance) ** 2)
        total += weight * near
        weights += weight
    return np.asarray(total / weights)


def _sharpen(pixels: Pixels) -> Pixels:
    (amount,) = SETTING["sharpen"]
    centre = pixels[2:-2, 2:-2]
    return np.clip(centre + amount * (centre - _average(pixels, (1, 4, 6, 4, 1))), 0, 255)


def _blend(strip: Pixels) -> None:
    """Blend in place; lines are rows."""
    for _ in range(ROUNDS):
        before = strip[:, 0].copy()
        for i in range(1, 2 * REACH - 1):
            here = strip[:, i].copy()
            rate = 0.5 / REACH * (i + 1 if i < REACH else 2 * REACH - i)
            strip[:, i] = here + rate * (0.5 * (before + strip[:, i + 1]) - here)
            before = here


_STEPS: dict[str, Callable[[Pixels], Pixels]] = {
    "smooth": _smooth, "denoise": _denoise, "sharpen": _sharpen,
}  # fmt: skip
