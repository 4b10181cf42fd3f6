"""Run work that creates work in CUDA C++ on the same card: kernels that launch kernels.

Input: numbers of parents; programs of `workloads.spawning`. Output: the cost of a child, and
microseconds of a program by way: `flat`, and children of 64 items at least and of 1. The kernels
come from the same source. Each function of items becomes a kernel, and `ACS_SPAWN` a launch of it.
Without a CUDA compiler there is nothing, and a line that says so.

Invariant: a way with other results has no times. It has the number of wrong words instead.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.peers import cuda_graphs
from acs_cl.benchmarks.workloads.spawning import UNEVEN
from acs_cl.opencl_c.kernel_files import kernel_source

SOURCE = Path(__file__).resolve().parent / "spawn.cu"
FLAGS = ("-rdc=true", "-lcudadevrt")
FEW, MANY = 1 << 11, 1 << 19
"""Launches that may be pending: what CUDA has by itself, and room for any program here. With more
room each launch takes longer."""
RUNS = (FEW, (0, 64)), (MANY, (64, 1))
"""Room, and items of a child at least; 0: the flat program."""
_FUNCTION = re.compile(r"^(?:inline )?(?=(?:void|bool|int|uint) \w+\()", re.MULTILINE)
_KERNEL = re.compile(r"^kernel void (\w+)\(", re.MULTILINE)


class Peer:
    """The program in CUDA, compiled once. Use it in `with`."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        text = kernel_source("spawning.cl").replace("#include <acs_spawn.h>", "")
        self._names = _KERNEL.findall(text)
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        with self._stack:
            (self._folder / "kernels.h").write_text(in_cuda(text))
            entries = "".join(f"ENTRY({name})\n" for name in self._names)
            (self._folder / "entries.h").write_text(entries)
            files = {"KERNELS": "kernels.h", "ENTRIES_FILE": "entries.h"}
            flags = [f'-D{name}="{self._folder / file}"' for name, file in files.items()]
            program = cuda_graphs.Program(SOURCE, (*FLAGS, *flags))
            self._program = self._stack.enter_context(program)
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def children(
        self, parents: Sequence[int], launches: int, runs: int
    ) -> dict[str, dict[str, list[float]]]:
        """Return microseconds of a launch, by the number of work-items: samples with `spawning`,
        where each work-item spawns a child, and with `nothing`."""
        found = {}
        for line in self._program.run(FEW, "children", runs, launches, *parents).splitlines():
            row = json.loads(line)
            if row["wrong"]:
                raise cuda_graphs.PeerError(f"CUDA left {row['wrong']} words wrong")
            found[str(row["parents"])] = row["us"]
        return found

    def uneven(self, name: str, size: int, runs: int) -> dict[str, list[float] | int]:
        """Return samples of microseconds of a program, by way, with the room that suits it. If a
        way failed: how many words it left wrong."""
        path = self._folder / "program"
        path.write_bytes(recorded(name, size, self._names))
        found: dict[str, list[float] | int] = {}
        for room, leasts in RUNS:
            for line in self._program.run(room, "program", runs, path, *leasts).splitlines():
                row = json.loads(line)
                before = found.get(row["way"])
                if not isinstance(before, list) or (
                    not row["wrong"] and min(row["us"]) < min(before)
                ):
                    found[row["way"]] = row["wrong"] or row["us"]
        return found


def in_cuda(text: str) -> str:
    """Turn kernels of OpenCL C and their functions into CUDA, except for built-in functions."""
    text = _KERNEL.sub(r'extern "C" __global__ void \1(', _FUNCTION.sub("__device__ ", text))
    return re.sub(r"\bglobal\b ?", "", text)


def opened() -> Peer | None:
    """Open the peer. None, and a line with the reason: there is none."""
    if cuda_graphs.compiler() is None:
        print(f"nothing of CUDA is measured: {cuda_graphs.NO_COMPILER}", file=sys.stderr)
        return None
    try:
        return Peer()
    except cuda_graphs.PeerError as error:
        print(f"nothing of CUDA is measured: {error}", file=sys.stderr)
        return None


class _Array(NamedTuple):
    """An array of a program that is written down."""

    number: int
    contents: dict[int, Any]

    def set(self, values: Any) -> None:
        self.contents[self.number] = values


class _Written:
    """A runtime and a program that write down what they are asked for."""

    def __init__(self) -> None:
        self.contents: dict[int, Any] = {}
        self.launches: list[tuple[str, int, tuple[Any, ...]]] = []

    def array(self, values: Any) -> _Array:
        array = _Array(len(self.contents), self.contents)
        array.set(np.asarray(values))
        return array

    def zeros(self, shape: Any, dtype: Any) -> _Array:
        return self.array(np.zeros(shape, dtype))

    def __getattr__(self, name: str) -> Callable[..., None]:
        def launch(size: tuple[int], local: None, *arguments: Any) -> None:
            self.launches.append((name, *size, arguments))

        return launch


def recorded(name: str, size: int, kernels: Sequence[str]) -> bytes:
    """Write a program as words: its arrays, its launches, and NumPy's results."""
    written: Any = _Written()
    make, _, _ = UNEVEN[name]
    program = make(written, written, size)
    program.launch()
    words = [_words([len(written.contents)])]
    for values in written.contents.values():
        words += _counted(values)
    words.append(_words([len(written.launches)]))
    for kernel, items, arguments in written.launches:
        words.append(_words([kernels.index(kernel), items, len(arguments)]))
        for one in arguments:
            place = (1, one.number) if isinstance(one, _Array) else (0, one)
            words.append(_words(place))
    words.append(_words([len(program.results)]))
    results: Any = program.results
    for array, wanted in results:
        words += [_words([array.number]), *_counted(wanted)]
    return b"".join(words)


def _counted(values: Any) -> list[bytes]:
    data = np.ascontiguousarray(values).tobytes()
    data += bytes(-len(data) % 4)
    return [_words([len(data) // 4]), data]


def _words(values: Sequence[int]) -> bytes:
    return np.array(values, np.int64).astype("<u4").tobytes()
