"""As much of PyTorch as the peer uses, in NumPy, with streams that know what they have waited for.

In: nothing. Out: `Torch`, which can stand in for the module. A stream has `seen` a piece of work if
that was launched on it, or if it waited for an event behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from acs_cl.benchmarks.workloads.layer_twins import windows


class Tensor(np.ndarray):
    """The methods that NumPy's arrays have not."""

    def permute(self, *axes: int) -> Any:
        return self.transpose(*axes)

    def contiguous(self) -> Any:
        return self

    def t(self) -> Any:
        return self.T

    def add(self, other: Any, alpha: float = 1) -> Any:
        return self + alpha * other

    def cpu(self) -> Any:
        return self

    def numpy(self) -> Any:
        return np.asarray(self)


class Stream:
    """Work it has seen."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def record_event(self) -> frozenset[int]:
        return frozenset(self.seen)

    def wait_event(self, event: frozenset[int]) -> None:
        self.seen |= event

    def wait_stream(self, other: Stream) -> None:
        self.seen |= other.seen


class Cuda:
    """Streams, and graphs that are captured from them."""

    def __init__(self) -> None:
        self.current = Stream()
        self.Stream = Stream
        self.CUDAGraph = lambda: SimpleNamespace(replay=lambda: None)

    def is_available(self) -> bool:
        return True

    def current_stream(self) -> Stream:
        return self.current

    def synchronize(self) -> None:
        """Nothing is late here."""

    def get_device_name(self, device: str) -> str:
        return "none"

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def graph(self, graph: Any) -> Any:
        return self.stream(Stream())


class Torch:
    """The module."""

    __version__ = "0"

    def __init__(self) -> None:
        self.cuda = Cuda()
        self.version = SimpleNamespace(cuda="0")
        cudnn = SimpleNamespace(allow_tf32=True, benchmark=False, version=lambda: 0)
        self.backends = SimpleNamespace(cudnn=cudnn)
        self.nn = SimpleNamespace(functional=_Functional())

    def set_float32_matmul_precision(self, name: str) -> None:
        assert name == "highest"

    def inference_mode(self) -> Any:
        return nullcontext()

    def as_tensor(self, values: Any, device: str) -> Any:
        return np.array(values).view(Tensor)

    def cat(self, parts: Any, dim: int) -> Any:
        return np.concatenate(parts, axis=dim).view(Tensor)


class _Functional:
    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0)

    def linear(self, x: Any, weights: Any, bias: Any) -> Any:
        return x @ weights.T + bias

    def conv2d(
        self, x: Any, weights: Any, bias: Any, stride: int, pad: int, dilation: int, groups: int
    ) -> Any:
        assert dilation == 1
        seen = self._windows(x, weights.shape[-1], stride, pad, 0)
        seen = seen.reshape(groups, -1, *seen.shape[1:])
        own = weights.reshape(groups, -1, *weights.shape[1:])
        out = np.einsum("gcyxij,gocij->goyx", seen, own)
        return (out.reshape(1, -1, *out.shape[2:]) + bias[:, None, None]).view(Tensor)

    def max_pool2d(self, x: Any, size: int, stride: int, pad: int) -> Any:
        return self._windows(x, size, stride, pad, -np.inf).max((3, 4))[None].view(Tensor)

    def avg_pool2d(self, x: Any, size: int, stride: int, pad: int, count_include_pad: bool) -> Any:
        assert not count_include_pad
        inside = self._windows(np.ones_like(x), size, stride, pad, 0).sum((3, 4))
        return (self._windows(x, size, stride, pad, 0).sum((3, 4)) / inside)[None].view(Tensor)

    def _windows(self, x: Any, size: int, stride: int, pad: int, fill: float) -> Any:
        one, _, height, width = x.shape
        assert one == 1
        rows, columns = ((side + 2 * pad - size) // stride + 1 for side in (height, width))
        return windows(np.asarray(x[0]), rows, columns, (size, size), stride, (pad, pad), fill)
