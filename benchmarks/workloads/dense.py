"""Chains of dense launches that fill a device: what bands are for.

Input: sizes and seeds. Output: workloads of products (layers of GPT-3 and LLaMA), of convolutions
(those of ResNet and VGG), of sweeps over a grid, and the two kernels of cuSync's own test. Each is
a row of `Launch`es, of which an expert says what they come after. Numbers of layers are those of
one of eight devices; `tiny` is for tests.
"""

# Long because: the launches of a workload and what NumPy makes of it are read side by side.

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.expert import Token
from acs_cl.benchmarks.workloads.workload import Results, Workload
from acs_cl.devices import kind
from acs_cl.opencl_c.kernel_files import kernel_source

EDGE = 128
"""Of what a group makes of a product."""
GROUP = 256
PLAIN, GELU, RELU = range(3)
DISTINCT = 1 << 20


class Launch(NamedTuple):
    """A launch, and which of those before it waits for by an expert's word."""

    kernel: str
    size: tuple[int, ...]
    local: tuple[int, ...]
    args: tuple[Any, ...]
    after: tuple[int, ...]


class Dense:
    """A row of launches over arrays with random numbers."""

    taps = 1

    def __init__(self, platform: Any, size: Any, seed: int) -> None:
        self.platform, self.size = platform, size
        self.on_cpu = kind(platform.device) == "CPU"
        macros = {"TAPS": self.taps, **({"ON_CPU": 1} if self.on_cpu else {})}
        self.program = platform.build(kernel_source("dense.cl"), ["-cl-mad-enable"], macros)
        self.random = np.random.default_rng(seed)
        self.arrays: dict[str, Any] = {}
        self.launches: list[Launch] = []
        self.prepare()

    def prepare(self) -> None:
        """Make arrays and launches."""
        raise NotImplementedError

    def reset(self) -> None:
        """Do nothing: what is read first is never written."""

    def step(self, **how: Any) -> Any:
        """Make all launches, each with the keywords `how`. Return the handle of the last one."""
        found = None
        for one in self.launches:
            found = getattr(self.program, one.kernel)(one.size, one.local, *one.args, **how)
        return found

    def results(self) -> Results:
        """Return the output of the last launch."""
        return {"out": self.arrays["out"].get()}

    def given(self, *shape: int) -> Any:
        """Make an array of random numbers, of a size that keeps what is computed from it near
        one."""
        return self.platform.array(normal(self.random, *shape))

    def add(self, kernel: str, size: tuple[int, ...], *args: Any, after: tuple[int, ...]) -> int:
        """Add a launch over items; return its number."""
        local = (GROUP,) if size[0] % GROUP == 0 else (1,)
        self.launches.append(Launch(kernel, size, local, args, after))
        return len(self.launches) - 1

    def product(
        self, a: Any, b: Any, c: Any, after: tuple[int, ...] = (), act: int = PLAIN,
        rows: int = 0, pitch: int = 0, high: int = 0,
    ) -> int:  # fmt: skip
        """Add c = act(a * b), of all rows or some; return its number."""
        rows, columns = rows or c.shape[0], c.shape[1]
        local = (1, 1) if self.on_cpu else (GROUP, 1)
        size = (columns // EDGE * local[0], rows // EDGE)
        wide = a.shape[1]
        args = (a, b, c, wide, wide, columns, columns, act, pitch, high)
        self.launches.append(Launch("product", size, local, args, after))
        return len(self.launches) - 1


def by_hand(made: type[Dense]) -> type[Dense]:
    """Make the same with queues and events."""

    class ByHand(made):  # type: ignore[misc, valid-type]
        def step(self, **how: Any) -> Any:
            """Launch each behind the launches that it names. Two of a level go to two queues."""
            tokens: list[Token] = []
            for one in self.launches:
                lane = sum(other.after == one.after for other in self.launches[: len(tokens)]) % 2
                tokens.append(
                    self.platform.launch(
                        getattr(self.program, one.kernel), one.size, one.local, *one.args,
                        after=[tokens[number] for number in one.after], on=lane,
                    )
                )  # fmt: skip
            return tokens[-1]

    return ByHand


def normal(random: Any, *shape: int) -> Any:
    """Return normal random numbers. Those of a matrix keep the size of a product with it. A large
    array repeats them."""
    scale = np.float32(shape[-2] ** -0.5 if len(shape) > 1 else 1)
    some = random.standard_normal(min(prod(shape), DISTINCT), dtype=np.float32) * scale
    return np.resize(some, shape)


# ---- layers of language models -------------------------------------------------------------------


class Layer(NamedTuple):
    """Rows of a layer, its width, and that of what lies between."""

    rows: int
    width: int
    inner: int


class Mlp(Dense):
    """Two products with an activation between, as in GPT-3."""

    def prepare(self) -> None:
        rows, width, inner = self.size
        x, up, down = self.given(rows, width), self.given(width, inner), self.given(inner, width)
        between, out = (self.platform.empty((rows, n)) for n in (inner, width))
        self.arrays = {"x": x, "up": up, "down": down, "out": out}
        first = self.product(x, up, between, act=GELU)
        self.product(between, down, out, (first,))


def gelu(x: Any) -> Any:
    """Compute it as the kernel does."""
    return x / (1 + np.exp(-1.702 * x))


def mlp(size: Layer, seed: int) -> Results:
    """Compute it by NumPy."""
    rows, width, inner = size
    random = np.random.default_rng(seed)
    x, up, down = (normal(random, *s) for s in ((rows, width), (width, inner), (inner, width)))
    return {"out": gelu(x @ up) @ down}


class GatedMlp(Dense):
    """Three products, of which two are multiplied, as in LLaMA."""

    def prepare(self) -> None:
        rows, width, inner = self.size
        x, up, beside = self.given(rows, width), self.given(width, inner), self.given(width, inner)
        down = self.given(inner, width)
        one, other = (self.platform.empty((rows, inner)) for _ in range(2))
        self.arrays = {"out": self.platform.empty((rows, width))}
        both = self.product(x, up, one), self.product(x, beside, other)
        gated = self.add("gate", (rows * inner,), one, other, after=both)
        self.product(one, down, self.arrays["out"], (gated,))


def gated_mlp(size: Layer, seed: int) -> Results:
    """Compute it by NumPy."""
    rows, width, inner = size
    random = np.random.default_rng(seed)
    x, up, beside = (normal(random, *s) for s in ((rows, width), (width, inner), (width, inner)))
    one = x @ up
    return {"out": (one / (1 + np.exp(-one)) * (x @ beside)) @ normal(random, inner, width)}


class Attention(Dense):
    """One head of width `inner`, and what goes out. Keys are made in columns, of `x` in columns."""

    def prepare(self) -> None:
        rows, width, inner = self.size
        random = self.random
        x = normal(random, rows, width) * np.float32(rows**0.5)
        keys, values, queries = (normal(random, width, inner) for _ in range(3))
        away = normal(random, inner, width)
        across, given = self.platform.array(np.ascontiguousarray(x.T)), self.platform.array(x)
        query, key, value = (
            self.platform.empty(shape) for shape in ((rows, inner), (inner, rows), (rows, inner))
        )
        scores, found = self.platform.empty((rows, rows)), self.platform.empty((rows, inner))
        self.arrays = {"out": self.platform.empty((rows, width))}
        made = (
            self.product(given, self.platform.array(queries), query),
            self.product(self.platform.array(np.ascontiguousarray(keys.T)), across, key),
            self.product(given, self.platform.array(values), value),
        )
        last = self.product(query, key, scores, made[:2])
        last = self.add("softmax", (rows,), scores, rows, inner**-0.5, after=(last,))
        last = self.product(scores, value, found, (last, made[2]))
        self.product(found, self.platform.array(away), self.arrays["out"], (last,))


def attention(size: Layer, seed: int) -> Results:
    """Compute it by NumPy."""
    rows, width, inner = size
    random = np.random.default_rng(seed)
    x = normal(random, rows, width) * np.float32(rows**0.5)
    keys, values, queries = (normal(random, width, inner) for _ in range(3))
    scores = (x @ queries) @ (x @ keys).T * inner**-0.5
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    return {"out": scores @ (x @ values) @ normal(random, inner, width)}


# ---- convolutions --------------------------------------------------------------------------------


class Images(NamedTuple):
    """Images, pixels of a side, channels, and convolutions in a row."""

    batch: int
    side: int
    channels: int
    layers: int


class Convolutions(Dense):
    """Convolutions of 3 x 3 in a row, each of which keeps sizes and channels."""

    taps = 9

    def prepare(self) -> None:
        batch, side, channels, layers = self.size
        pitch = side + 2
        pixels = batch * pitch * pitch
        rows = -(-pixels // EDGE) * EDGE
        x = images(self.size, self.random)
        arrays = [self.platform.zeros((rows + 2 * pitch + 3, channels)) for _ in range(layers)]
        first = np.zeros(arrays[0].shape, np.float32)
        first[:pixels] = x.reshape(pixels, channels)
        arrays.insert(0, self.platform.array(first))
        self.arrays = {"out": arrays[-1]}
        for layer in range(layers):
            self.product(
                arrays[layer], self.platform.array(taps(self.size, self.random)), arrays[layer + 1],
                (layer - 1,) if layer else (), RELU, rows, pitch, pitch,
            )  # fmt: skip

    def results(self) -> Results:
        """Return the last layer's images, with their borders."""
        batch, side, channels, _ = self.size
        pixels = batch * (side + 2) ** 2
        return {"out": self.arrays["out"].get()[:pixels].reshape(batch, side + 2, -1, channels)}


def images(size: Images, random: Any) -> Any:
    """Make random images with a border of zeros."""
    inside = random.standard_normal((size.batch, size.side, size.side, size.channels), "f4")
    return np.pad(inside, ((0, 0), (1, 1), (1, 1), (0, 0)))


def taps(size: Images, random: Any) -> Any:
    """Make a matrix for each of nine taps."""
    scale = np.float32((2 / 9 / size.channels) ** 0.5)
    return random.standard_normal((9 * size.channels, size.channels), np.float32) * scale


def convolutions(size: Images, seed: int) -> Results:
    """Compute it by NumPy, tap by tap."""
    random = np.random.default_rng(seed)
    x, side = images(size, random), size.side
    for _ in range(size.layers):
        matrices = taps(size, random).reshape(3, 3, size.channels, -1)
        made = sum(
            x[:, i : i + side, j : j + side] @ matrices[i, j] for i in range(3) for j in range(3)
        )
        x[:, 1:-1, 1:-1] = np.maximum(made, 0)
    return {"out": x}


# ---- sweeps --------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """Columns and rows of a grid, and how often it is gone over."""

    wide: int
    high: int
    times: int


class Sweeps(Dense):
    """Jacobi's method: every inner point becomes the mean of its neighbours."""

    own, other = 0.0, 0.25

    def prepare(self) -> None:
        wide, high, times = self.size
        grids = self.given(high * wide), self.platform.empty(high * wide)
        for time in range(times):
            x, y = grids[time % 2], grids[1 - time % 2]
            after = (time - 1,) if time else ()
            args = x, y, wide, high, self.own, self.other
            self.add("sweep", (wide * high,), *args, after=after)
        self.arrays = {"x": grids[0], "out": grids[times % 2]}
        self.start = grids[0].get()

    def reset(self) -> None:
        """Restore the first grid."""
        self.arrays["x"].set(self.start)


class Heat(Sweeps):
    """An explicit step of the heat equation."""

    own, other = 0.6, 0.1


def sweeps(size: Grid, seed: int, own: float = 0.0, other: float = 0.25) -> Results:
    """Compute it by NumPy."""
    grid = normal(np.random.default_rng(seed), size.high * size.wide).reshape(size.high, -1)
    for _ in range(size.times):
        before = grid.copy()
        beside = before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:]
        grid[1:-1, 1:-1] = own * before[1:-1, 1:-1] + other * beside
    return {"out": grid.ravel()}


def heat(size: Grid, seed: int) -> Results:
    """Compute it by NumPy."""
    return sweeps(size, seed, Heat.own, Heat.other)


class Blurs(Dense):
    """A chain of filters of an image, by rows and columns in turn."""

    def prepare(self) -> None:
        wide, high, times = self.size
        n = wide * high
        arrays = [self.given(n), *(self.platform.empty(n) for _ in range(times))]
        self.arrays = {"out": arrays[-1]}
        for time in range(times):
            args = *arrays[time : time + 2], n, wide if time % 2 else 1
            self.add("blur", (n,), *args, after=(time - 1,) if time else ())


def blurs(size: Grid, seed: int) -> Results:
    """Compute it by NumPy."""
    x = normal(np.random.default_rng(seed), size.high * size.wide)
    for time in range(size.times):
        step = size.wide if time % 2 else 1
        made = x.copy()
        made[step:-step] = (x[: -2 * step] + x[step:-step] + x[2 * step :]) / 3
        x = made
    return {"out": x}


class Work(NamedTuple):
    """Groups of each of two launches, and how long a work-item computes."""

    groups: int
    turns: int


class Two(Dense):
    """Two kernels, the second of which needs of the first what lies at the same place."""

    def prepare(self) -> None:
        n = self.size.groups * GROUP
        x = self.platform.array(self.random.random(n, np.float32))
        between, out = self.platform.empty(n), self.platform.empty(n)
        first = self.add("busy", (n,), x, between, self.size.turns, after=())
        self.add("busy", (n,), between, out, self.size.turns, after=(first,))
        self.arrays = {"out": out}


def two(size: Work, seed: int) -> Results:
    """Compute it by NumPy."""
    x = np.random.default_rng(seed).random(size.groups * GROUP, np.float32)
    for _ in range(2 * size.turns):
        x = (x.astype(np.float64) ** 2 - np.float64(np.float32(0.7))).astype(np.float32)
    return {"out": x}


def _workload(
    name: str, about: str, make: type[Dense], reference: Callable[[Any, int], Results],
    tiny: Any, small: Any, paper: Any,
) -> Workload:  # fmt: skip
    presets = {"tiny": tiny, "small": small, "paper": paper}
    return Workload(
        name, "dense", about, presets, make, reference, by_hand(make), rtol=1e-3, atol=1e-3
    )


WORKLOADS = [
    _workload(
        "mlp", "two products with an activation between, of GPT-3's size", Mlp, mlp,
        Layer(256, 128, 256), Layer(512, 1024, 512), Layer(1024, 12288, 6144),
    ),
    _workload(
        "attention", "a head of attention", Attention, attention,
        Layer(256, 256, 128), Layer(512, 1024, 128), Layer(1024, 12288, 1536),
    ),
    _workload(
        "gated-mlp", "three products and a gate, of LLaMA's size", GatedMlp, gated_mlp,
        Layer(256, 128, 256), Layer(512, 1024, 512), Layer(1024, 8192, 2816),
    ),
    _workload(
        "resnet-chain", "convolutions as in a stage of ResNet-38", Convolutions, convolutions,
        Images(2, 10, 128, 2), Images(1, 28, 128, 4), Images(32, 28, 128, 8),
    ),
    _workload(
        "vgg-chain", "convolutions as in a stage of VGG-19", Convolutions, convolutions,
        Images(1, 14, 128, 2), Images(1, 28, 256, 2), Images(16, 56, 256, 4),
    ),
    _workload(
        "jacobi", "sweeps of Jacobi's method over a grid", Sweeps, sweeps,
        Grid(64, 32, 3), Grid(2048, 1024, 8), Grid(16384, 4096, 16),
    ),
    _workload(
        "heat", "explicit steps of the heat equation", Heat, heat,
        Grid(64, 32, 4), Grid(2048, 1024, 8), Grid(16384, 4096, 16),
    ),
    _workload(
        "blurs", "filters of an image, one behind the other", Blurs, blurs,
        Grid(64, 32, 4), Grid(2048, 1024, 8), Grid(16384, 4096, 8),
    ),
    _workload(
        "two", "two kernels that compute, as cuSync tests what it costs", Two, two,
        Work(3, 50), Work(12, 10_000), Work(1584, 10_000),
    ),
]  # fmt: skip
"""They are no part of the catalogue: `run bands` takes them."""
