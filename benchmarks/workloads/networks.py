"""Describe networks as text: SqueezeNet, and the networks of Opara's evaluation.

Input: sizes and seeds. Output: models and workloads. Shapes are the published ones: GoogLeNet
(Szegedy and others, 2015, table 1), Inception-v3 (2016), SqueezeNet 1.1, DeepFM (Guo and others,
2017: 26 fields and 13 numbers of Criteo, rows of 10, three layers of 400), BERT base (Devlin and
others, 2019) and T5 small (Raffel and others, 2020). Normalisation of images is folded into
weights. Tables have fewer rows than there are words, because a launch reads one row for each of its
tokens. GoogLeNet's images have a side of 256.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads.blocks import classified
from acs_cl.benchmarks.workloads.described import Described
from acs_cl.benchmarks.workloads.inference import Inference, Model, reference
from acs_cl.benchmarks.workloads.layers import SIGMOID, Net
from acs_cl.benchmarks.workloads.layers_by_hand import ByHand
from acs_cl.benchmarks.workloads.values import Value
from acs_cl.benchmarks.workloads.workload import Workload

# ---- images --------------------------------------------------------------------------------------


class ImagesSize(NamedTuple):
    """The published channels are divided by `divisor`; lines of the text; images at a time."""

    divisor: int
    side: int
    lines: int
    batch: int = 1


FIRE = "x = x {0}:1 [{1}:1 | {1}:3]\n"
SQUEEZENET = (
    "x = x 64:3 max3/2\n" + FIRE.format(16, 64) * 2 + "x = x max3/2\n" + FIRE.format(32, 128) * 2
    + "x = x max3/2\n" + FIRE.format(48, 192) * 2 + FIRE.format(64, 256) * 2
)  # fmt: skip

GOOGLENET = """
x = x 64:7/2 max3/2 64:1 192:3 max3/2
x = x [64:1 | 96:1 128:3 | 16:1 32:5 | max3 32:1]
x = x [128:1 | 128:1 192:3 | 32:1 96:5 | max3 64:1]
x = x max3/2
x = x [192:1 | 96:1 208:3 | 16:1 48:5 | max3 64:1]
x = x [160:1 | 112:1 224:3 | 24:1 64:5 | max3 64:1]
x = x [128:1 | 128:1 256:3 | 24:1 64:5 | max3 64:1]
x = x [112:1 | 144:1 288:3 | 32:1 64:5 | max3 64:1]
x = x [256:1 | 160:1 320:3 | 32:1 128:5 | max3 128:1]
x = x max3/2
x = x [256:1 | 160:1 320:3 | 32:1 128:5 | max3 128:1]
x = x [384:1 | 192:1 384:3 | 48:1 128:5 | max3 128:1]
"""

_A = "x = x [64:1 | 48:1 64:5 | 64:1 96:3 96:3 | avg3 {}:1]\n"
_B = (
    "x = x [192:1 | {0}:1 {0}:1x7 192:7x1 | {0}:1 {0}:7x1 {0}:1x7 {0}:7x1 192:1x7 "
    "| avg3 192:1]\n"
)  # fmt: skip
_C = (
    "x = x [320:1 | 384:1 [384:1x3 | 384:3x1] | 448:1 384:3 [384:1x3 | 384:3x1] "
    "| avg3 192:1]\n"
)  # fmt: skip
INCEPTION = (
    "x = x 32:3/2v 32:3v 64:3 max3/2v 80:1v 192:3v max3/2v\n"
    + _A.format(32) + _A.format(64) * 2
    + "x = x [384:3/2v | 64:1 96:3 96:3/2v | max3/2v]\n"
    + _B.format(128) + _B.format(160) * 2 + _B.format(192)
    + "x = x [192:1 320:3/2v | 192:1 192:1x7 192:7x1 192:3/2v | max3/2v]\n"
    + _C * 2
)  # fmt: skip


def images(text: str) -> Callable[[ImagesSize, int], Model]:
    """Make a network for images from its text."""

    def made(size: ImagesSize, seed: int) -> Model:
        net = Net(seed, size.batch)
        image = net.image(3, size.side, size.side)
        lines = "\n".join(text.strip().splitlines()[: size.lines])
        x = Described(net, {"x": image}, size.divisor).lines(lines)
        return classified(net, image, x, seed)

    return made


# ---- sequences -----------------------------------------------------------------------------------


class TokensSize(NamedTuple):
    """Layers (of T5: in both of its halves), channels, heads, those within a layer, rows of the
    table, tokens, and sequences at a time. A head has 64 channels, if there are so many."""

    layers: int
    width: int
    heads: int
    inner: int
    words: int
    tokens: int
    batch: int = 1


BERT = """
q = x {width}
k = x {width}
v = x {width}
x = q attend{heads}:k:v {width} +x norm
x = x {inner}gelu {width} +x norm
"""

ENCODER = """
n = x rms
q = n {width}
k = n {width}
v = n {width}
x = q attend{heads}:k:v:bias {width} +x
x = x rms {inner}relu {width} +x
"""

DECODER = """
n = y rms
q = n {width}
k = n {width}
v = n {width}
y = q attend{heads}:k:v:causal {width} +y
q = y rms {width}
k = x {width}
v = x {width}
y = q attend{heads}:k:v {width} +y
y = y rms {inner}relu {width} +y
"""


def bert(size: TokensSize, seed: int) -> Model:
    """Make a network of words and places, and layers of attention and products."""
    net = Net(seed, size.batch)
    numbers = net.image(1, 1, size.tokens)
    words = net.lookup(numbers, _table(net, size))
    places = net.constant(np.tile(net.random.normal(size=(size.width, 1, size.tokens)),
                                  (1, size.batch, 1)))  # fmt: skip
    x = net.normalise(net.combine([words, places]), centred=True)
    x = Described(net, {"x": x}).lines(BERT.format(**size._asdict()) * size.layers)
    return _of_tokens(net, numbers, x, size, seed)


def t5(size: TokensSize, seed: int) -> Model:
    """Make both halves, which read words of one table. The second one reads the output of the
    first."""
    net = Net(seed, size.batch)
    numbers, table = net.image(1, 1, size.tokens), _table(net, size)
    shape = (size.heads, size.tokens, size.tokens)  # [keys][queries]
    causal = net.random.normal(size=shape) - 1e4 * np.tri(size.tokens, k=-1)
    bias = {
        "bias": net.constant(net.random.normal(size=shape)),
        "causal": net.constant(causal),
    }
    told = {"x": net.lookup(numbers, table), "y": net.lookup(numbers, table)}
    network, sizes = Described(net, told | bias), size._asdict()
    network.lines(ENCODER.format(**sizes) * size.layers + "x = x rms")
    y = network.lines(DECODER.format(**sizes) * size.layers + "y = y rms")
    return _of_tokens(net, numbers, y, size, seed)


def _table(net: Net, size: TokensSize) -> Value:
    return net.constant(net.random.normal(size=(size.words, size.width)))


def _of_tokens(net: Net, numbers: Value, x: Value, size: TokensSize, seed: int) -> Model:
    tokens = np.random.default_rng(seed + 1).integers(size.words, size=(1, *numbers.shape))
    return Model(net, numbers, {"tokens": x}, tokens)


# ---- DeepFM --------------------------------------------------------------------------------------


class FieldsSize(NamedTuple):
    """Fields with a table each, numbers, rows of a table, their width, what is in a layer."""

    fields: int
    numbers: int
    rows: int
    width: int
    inner: int
    batch: int = 1


def deepfm(size: FieldsSize, seed: int) -> Model:
    """Make a network in which rows of all tables go two ways: pairwise interactions, and three
    layers."""
    net, fields, width = Net(seed, size.batch), size.fields, size.width
    given = net.image(fields + size.numbers, 1, 1)
    rows = net.image(fields * width + size.numbers, 1, 1)
    alone = net.image(fields + size.numbers, 1, 1)
    for field in range(fields):
        for out, many in ((rows, width), (alone, 1)):
            table = net.constant(net.random.normal(0, 0.3, (size.rows, many)))
            part = net.part(out, field * many, many)
            net.lookup(net.part(given, field, 1), table, part)
    numbers = net.part(given, fields, size.numbers)
    net.keep(numbers, net.part(rows, fields * width, size.numbers))
    net.keep(numbers, net.part(alone, fields, size.numbers))
    text = f"x = x {' '.join([f'{size.inner}relu'] * 3)}"
    deep = net.dense(Described(net, {"x": rows}).lines(text), 1)
    first = net.dense(alone, 1, weights=net.constant(np.ones(alone.shape[0])))
    both = net.interact(net.part(rows, 0, fields * width), fields)
    found = net.combine([first, both, deep], after=SIGMOID)
    random = np.random.default_rng(seed + 1)
    image = random.integers(size.rows, size=(1, *given.shape)).astype(float)
    image[:, fields:] = random.random((1, size.numbers, *given.shape[1:]))
    return Model(net, given, {"click": found}, image)


# ---- workloads -----------------------------------------------------------------------------------

MODELS: dict[str, Callable[[Any, int], Model]] = {
    "squeezenet": images(SQUEEZENET),
    "googlenet": images(GOOGLENET),
    "inception": images(INCEPTION),
    "deepfm": deepfm,
    "bert": bert,
    "t5": t5,
}
"""By name of the workload: (size, seed) -> model."""


def workload(
    name: str, family: str, about: str, model: Callable[[Any, int], Model], **presets: Any
) -> Workload:
    """Make the workload of a model."""
    return Workload(
        name=name,
        family=family,
        about=about,
        presets=presets,
        make=lambda platform, size, seed: Inference(platform, model(size, seed)),
        reference=lambda size, seed: reference(model(size, seed)),
        expert=lambda queues, size, seed: ByHand(queues, model(size, seed)),
        rtol=1e-3,
        atol=1e-3,
    )


_ABOUT: dict[str, tuple[str, Any, Any, Any]] = {
    "googlenet": (
        "GoogLeNet: nine modules of four branches",
        ImagesSize(4, 64, 3), ImagesSize(2, 128, 9), ImagesSize(1, 256, 12),
    ),
    "inception": (
        "Inception-v3: eleven modules of up to six branches",
        ImagesSize(16, 75, 12), ImagesSize(2, 139, 12), ImagesSize(1, 299, 12),
    ),
    "deepfm": (
        "DeepFM: 26 tables, three layers, and what each two rows have in common",
        FieldsSize(5, 3, 20, 6, 8), FieldsSize(26, 13, 1000, 10, 400),
        FieldsSize(26, 13, 10_000, 10, 400),
    ),
    "bert": (
        "BERT base: twelve layers of attention",
        TokensSize(1, 16, 2, 32, 30, 8), TokensSize(2, 128, 2, 512, 1000, 32),
        TokensSize(12, 768, 12, 3072, 1000, 128),
    ),
    "t5": (
        "T5 small: six layers that read, six that write",
        TokensSize(1, 16, 2, 32, 30, 8), TokensSize(2, 128, 2, 512, 1000, 32),
        TokensSize(6, 512, 8, 2048, 1000, 128),
    ),
}  # fmt: skip

WORKLOADS = [
    workload(name, "opara", about, MODELS[name], tiny=tiny, small=small, paper=paper)
    for name, (about, tiny, small, paper) in _ABOUT.items()
]
