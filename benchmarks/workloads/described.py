"""Networks as text: what each value is made from, and the steps between.

In: a `Net`, values by name, and lines such as `y = x 64:3/2 [32:1 | max3 32:1] +x`. Out: the values
that the lines name. A line begins with a value; each step takes what the one before has made.

| step | what it adds |
|---|---|
| `64:3/2`, `64:1x7`, `64:3v` | a convolution to 64 channels, ReLU; `v`: no margin |
| `max3/2v`, `avg3` | pooling |
| `[a \\| b]` | branches, side by side in one value |
| `768`, `768relu`, `768gelu` | a product of each token, and what follows |
| `+y` | a sum with that value |
| `norm`, `rms` | tokens of one size, and of mean zero or not |
| `attend12:k:v`, `attend8:k:v:bias` | attention of 12 heads |
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from acs_cl import UsageError
from acs_cl.benchmarks.workloads.blocks import linear
from acs_cl.benchmarks.workloads.layers import AVERAGE, GELU, LINEAR, MAXIMUM, RELU, Net, four
from acs_cl.benchmarks.workloads.values import Value

Steps = list["str | list[Steps]"]
"""Words, and for brackets the branches in them."""

WINDOW = re.compile(r"(?:(\d+):|(max|avg))(\d+)(?:x(\d+))?(?:/(\d+))?(v?)")
PRODUCT = re.compile(r"(\d+)(relu|gelu|)")
AFTER = {"": LINEAR, "relu": RELU, "gelu": GELU}


class Described:
    """Puts a network together from text. Channels of convolutions are divided by `divisor`."""

    def __init__(self, net: Net, values: Mapping[str, Value], divisor: int = 1) -> None:
        self.net, self.values, self.divisor = net, dict(values), divisor

    def lines(self, text: str) -> Value:
        """Add all lines; return the output of the last one."""
        found = None
        for line in filter(str.strip, text.splitlines()):
            name, _, steps = line.partition("=")
            source, *words = re.findall(r"[\[\]|]|[^\s\[\]|]+", steps)
            found = self._chain(self._named(source), _nested(words), None)
            self.values[name.strip()] = found
        if found is None:
            raise UsageError("a network without a line")
        return found

    def _named(self, name: str) -> Value:
        if name not in self.values:
            raise UsageError(f"no value {name!r}; there are {', '.join(self.values)}")
        return self.values[name]

    def _chain(self, x: Value, steps: Steps, out: Value | None) -> Value:
        """Add steps one after the other. The last one writes `out`."""
        for number, step in enumerate(steps):
            into = out if number == len(steps) - 1 else None
            x = self._step(x, step, into) if isinstance(step, str) else self._beside(x, step, into)
        return x

    def _beside(self, x: Value, branches: list[Steps], out: Value | None) -> Value:
        """Add branches. Each writes its part."""
        widths = [self._width(x.shape[0], steps) for steps in branches]
        first = 0
        for width, steps in zip(widths, branches, strict=True):
            if out is None:
                out = self.net.value(sum(widths), *self._sides(x, steps))
            self._chain(x, steps, self.net.part(out, first, width))
            first += width
        assert out is not None
        return out

    def _width(self, channels: int, steps: Steps) -> int:
        """Return the channels behind these steps."""
        for step in steps:
            if not isinstance(step, str):
                channels = sum(self._width(channels, one) for one in step)
            elif (found := WINDOW.fullmatch(step)) and found[1]:
                channels = four(int(found[1]) / self.divisor)
        return channels

    def _sides(self, x: Value, steps: Steps) -> tuple[int, int]:
        """Return the rows and columns behind these steps."""
        for step in steps:
            if not isinstance(step, str):
                return self._sides(x, step[0])
            high, wide, stride, pad = _window(step)
            x = Value(0, 0, (1, *self.net.shape(x, (high, wide), stride, pad)))
        return x.shape[1], x.shape[2]

    def _step(self, x: Value, step: str, out: Value | None) -> Value:
        net = self.net
        if found := WINDOW.fullmatch(step):
            high, wide, stride, pad = _window(step)
            if found[1]:
                channels = four(int(found[1]) / self.divisor)
                return net.convolve(x, channels, wide, stride, high=high, pad=pad, out=out)
            how = MAXIMUM if found[2] == "max" else AVERAGE
            return net.pool(x, wide, stride, how, pad=pad, out=out)
        if found := PRODUCT.fullmatch(step):
            return linear(net, x, int(found[1]), before=False, after=AFTER[found[2]])
        if step.startswith("+"):
            return net.combine([x, self._named(step[1:])])
        if step in ("norm", "rms"):
            return net.normalise(x, step == "norm")
        if found := re.fullmatch(r"attend(\d+):(\w+):(\w+)(?::(\w+))?", step):
            bias = self._named(found[4]) if found[4] else None
            return net.attend(x, self._named(found[2]), self._named(found[3]), int(found[1]), bias)
        raise UsageError(f"a step {step!r}, expected one of those that the module describes")


def _window(step: str) -> tuple[int, int, int, int | None]:
    """Read rows, columns, stride and margin."""
    found = WINDOW.fullmatch(step)
    if found is None:
        raise UsageError(f"{step!r} in a branch, expected a convolution or pooling")
    size = int(found[3])
    return size, int(found[4] or size), int(found[5] or 1), 0 if found[6] else None


def _nested(words: list[str]) -> Steps:
    """Read words with brackets as lists."""
    open_: list[Steps] = [[]]
    for word in words:
        if word == "[":
            branches: list[Steps] = [[]]
            open_[-1].append(branches)
            open_ += [branches, branches[0]]  # type: ignore[list-item]
        elif word == "|":
            open_.pop()
            open_[-1].append([])
            open_.append(open_[-1][-1])  # type: ignore[arg-type]
        elif word == "]":
            del open_[-2:]
        else:
            open_[-1].append(word)
        if not open_:
            break
    if len(open_) != 1:
        raise UsageError(f"brackets in {' '.join(words)} do not match")
    return open_[0]
