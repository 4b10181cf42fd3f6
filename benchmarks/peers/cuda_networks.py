"""Run a network as CUDA Graphs of the same kernels, on the same card.

Input: a `Model`. Output: its results, and samplers of a replay: of one chain, as PyTorch captures
on one stream, and with branches, as it captures on several. The kernels are those of
`kernels_cl/networks.cl` in the same groups, changed only where CUDA has another spelling.

Invariant: a side with results other than the reference's is not timed. The caller checks that.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from acs_cl.benchmarks.peers.cuda_graphs import PeerError, Program
from acs_cl.benchmarks.workloads.inference import Model
from acs_cl.benchmarks.workloads.layers import GROUP, MOST_GROUPS, place
from acs_cl.benchmarks.workloads.layers_by_hand import wiring
from acs_cl.benchmarks.workloads.values import F4, Layer, Value
from acs_cl.benchmarks.workloads.workload import Results
from acs_cl.opencl_c.kernel_files import kernel_source

SOURCE = Path(__file__).resolve().parent / "networks.cu"
CHAIN, BRANCHES = "CUDA Graph, same kernels", "CUDA Graph, same kernels in branches"

_BEFORE = """
#define get_global_id(d) int(blockIdx.x * blockDim.x + threadIdx.x)
#define get_global_size(d) int(gridDim.x * blockDim.x)
static __device__ float4 f4(float a, float b, float c, float d) { return make_float4(a, b, c, d); }
static __device__ float4 f4(float a) { return f4(a, a, a, a); }
static __device__ float4 operator*(float a, float4 b)
{ return f4(a * b.x, a * b.y, a * b.z, a * b.w); }
static __device__ float4 operator*(float4 b, float a) { return a * b; }
static __device__ float4 operator+(float4 a, float4 b)
{ return f4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
static __device__ float4 &operator+=(float4 &a, float4 b) { return a = a + b; }
static __device__ float4 fmax(float4 a, float4 b)
{ return f4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w)); }
"""
"""What CUDA C++ lacks of OpenCL C."""
_SPELLED = (
    (r"\(float4\)\(", "f4("), (r"\bglobal ", ""),
    (r"^(float|void) ", r"static __device__ \1 "), (r"^kernel ", 'extern "C" __global__ '),
)  # fmt: skip


@lru_cache(1)
def translated() -> tuple[list[str], str]:
    """Write the kernels without decisions in CUDA C++, and a table of them. Return that and their
    names."""
    text = kernel_source("networks.cl").partition("/* ---- InstaNAS")[0]
    for pattern, said in _SPELLED:
        text = re.sub(pattern, said, text, flags=re.MULTILINE)
    names = re.findall(r"__global__ void (\w+)", text)
    table = ", ".join(f"(const void *){name}" for name in names)
    return names, (
        f"{_BEFORE}{text}\nstatic const int GROUP = {GROUP};\n"
        f"static const void *const KERNELS[] = {{{table}}};\n"
    )


@lru_cache(1)
def program() -> Program:
    """Compile the program, once."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "networks.inc").write_text(translated()[1], encoding="utf-8")
        return Program(SOURCE, ["-I", folder])


def as_words(model: Model) -> np.ndarray[Any, Any]:
    """Write the buffers and launches of a model as words for the program."""
    names, _ = translated()
    net = model.net
    ((_, kept),) = model.kept.items()
    given, out = len(net.sizes), len(net.sizes) + 1  # where the image comes from and the result is
    contents = {**net.constants, given: np.asarray(model.images[0], F4).ravel()}
    sizes = [*(size for size, _ in net.sizes), model.image.length, kept.length]
    start = _copy(Value(given, 0, model.image.shape), model.image)
    layers = [start, *net.layers, _copy(kept, Value(out, 0, kept.shape))]
    parts: list[Any] = [[len(sizes)]]
    for number, size in enumerate(sizes):
        parts.append([size, int(number in contents)])
        if number in contents:
            parts.append(np.asarray(contents[number], F4).view(np.uint32))
    parts.append([len(layers)])
    for layer, upstream in zip(layers, wiring(layers), strict=True):
        most = MOST_GROUPS * net.images
        parts.append([names.index(layer.kernel), min(most, -(-layer.items // GROUP))])
        parts.append([len(layer.args), *_arguments(layer), len(upstream), *upstream])
    parts.append([out, kept.length])
    return np.concatenate([np.asarray(part, np.int64).astype(np.uint32) for part in parts])


def _copy(source: Value, target: Value) -> Layer:
    args = (source, target, source.length, 0, 0)
    return Layer("keep", source.length, args, (1,), None, False)


def _arguments(layer: Layer) -> Iterator[int]:
    for arg in layer.args:
        if isinstance(arg, Value):
            yield from (1, arg.buffer, 0 if place(arg) else arg.first)
        else:
            kind = np.float32 if isinstance(arg, float) else np.int32
            yield from (0, int(kind(arg).view(np.uint32)))


class SameKernels:
    """The program with a model, which waits for what to replay; a `with` ends it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __enter__(self) -> SameKernels:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "model")
        path.write_bytes(as_words(self._model).tobytes())
        self._child = subprocess.Popen(
            [program().path, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        ((name, kept),) = self._model.kept.items()
        self.results: dict[str, Results] = {}
        for way in (CHAIN, BRANCHES):
            found = np.array(self._line().split(), np.uint32).view(np.float32)
            self.results[way] = {name: found.reshape(1, *kept.shape)}
        return self

    def __exit__(self, *error: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()
        self._folder.cleanup()

    def samplers(self) -> dict[str, Callable[[], float]]:
        """Return functions that return milliseconds of one replay each, by the program's own
        clock."""

        def sampler(number: int) -> Callable[[], float]:
            def sample() -> float:
                assert self._child.stdin is not None
                self._child.stdin.write(f"{number}\n")
                self._child.stdin.flush()
                return float(self._line()) * 1e-3

            return sample

        return {way: sampler(number) for number, way in enumerate((CHAIN, BRANCHES))}

    def _line(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise PeerError(f"the program of CUDA ended: {self._child.wait()}")
        return line
