"""Saving: the calls of a graph, written to a file.

Input: the calls of a graph, and names for its arrays. Output: a file as `files` describes it.
Invariant: a call that a file cannot hold is a `UsageError` that names it, and leaves no file.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyopencl as cl

from .. import transfers
from ..access.cuts import asked
from ..conditions import size
from ..devices.build import asked_options
from ..errors import UsageError, describe
from ..host.output import path_of
from ..kernel import Kernel
from ..launch import spawning
from ..memory.array import Array
from ..memory.blocks import Base
from ..records import EVERYTHING, Access, HostArray, Span
from .calls import Call, have_all
from .files import VERSION
from .loops import Loop

if TYPE_CHECKING:
    from ..launch.engine import Engine

Json = object
"""Values of JSON: numbers, texts, lists, dictionaries, None."""

KINDS: Mapping[object, str] = {
    transfers.write: "set",
    transfers.fill: "fill",
    transfers.copy: "copy",
}
"""Names of transfers in a file."""


def save(
    engine: Engine,
    path: str | Path | IO[bytes],
    calls: Sequence[Call],
    loops: Sequence[Loop],
    access: Access,
    names: Mapping[str, Array],
) -> None:
    """Write the calls of a graph, and its loops. `access`: all that its launches touch."""

    def write(to: Path | IO[bytes]) -> None:
        with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
            with archive.open("data", "w", force_zip64=True) as data:
                text = json.dumps(_Writer(engine, data, access).file(calls, loops, names))
            archive.writestr("graph.json", text)

    if not isinstance(path, (str, Path)):
        if not hasattr(path, "write"):
            raise UsageError(f"save takes a path or an open file, got {describe(path)}")
        write(path)
        return
    path = path_of(path, "graph")
    if not path.name:
        raise UsageError(f"save: cannot write {str(path)!r}: it is a folder")
    scratch = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        write(scratch)
        os.replace(scratch, path)
    except FileNotFoundError:
        raise UsageError(f"save: there is no folder {str(path.parent)!r}") from None
    except OSError as error:
        raise UsageError(f"save: cannot write {str(path)!r}: {error.strerror}") from error
    finally:
        scratch.unlink(missing_ok=True)


class _Writer:
    """Turns calls into JSON. Long values go to `data`."""

    def __init__(self, engine: Engine, data: IO[bytes], access: Access) -> None:
        self._engine = engine
        self._data = data
        self._at = 0
        self._read: dict[int, list[Span]] = {}
        self._note_reads(access.reads)
        self._programs: dict[Span, dict[str, Json]] = {}
        self._declared: list[dict[str, Json]] = []
        """The declarations for the kernels of each program, by name."""
        self._memory: dict[int, int] = {}
        self._bases: list[Array] = []
        self._where = ""

    def file(
        self, calls: Sequence[Call], loops: Sequence[Loop], names: Mapping[str, Array]
    ) -> Json:
        said = []
        for number, call in enumerate(calls, 1):
            self._where = f"save: call {number} of the graph"
            said.append(self._call(call))
        repeated = [self._loop(loop) for loop in loops]
        used = set(self._memory)
        for name, array in names.items():
            if not isinstance(array, Array) or array.engine is not self._engine:
                raise UsageError(
                    f"save: got {name}={describe(array)}, expected an array of the graph's runtime"
                )
            if array.nbytes and _base(array).number not in used:
                raise UsageError(f"save: the graph does not use {name}={array!r}")
        arrays = {name: self._view(array) for name, array in names.items()}
        named = [array for array in names.values() if array.nbytes]
        return {
            "acs_cl_graph": VERSION,
            "programs": list(self._programs.values()),
            "memory": [self._contents(whole, named) for whole in self._bases],
            "arrays": arrays,
            "calls": said,
            "loops": repeated,
        }

    def _loop(self, loop: Loop) -> Json:
        self._note_reads(loop.flag.spans)
        return {
            "while": self._view(loop.flag),
            "at_most": loop.at_most,
            "calls": [loop.calls.start, loop.calls.stop],
            "loops": [self._loop(inner) for inner in loop.inner],
        }

    def _note_reads(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self._read.setdefault(span.base, []).append(span)

    def _contents(self, whole: Array, named: Sequence[Array]) -> Json:
        """Return a piece of memory, with its contents if the graph reads more of it than has a
        name. What has one begins with zeros."""
        base = _base(whole)
        read = [*self._read.get(base.number, ()), *self._read.get(EVERYTHING, ())]
        named = [array for array in named if array.base is base]
        if not read or (named and have_all(named, base, read)):
            return {"nbytes": whole.nbytes, "contents": None}
        values = whole.get()
        for array in named:
            _bytes_of(values, array)[...] = 0
        return {"nbytes": whole.nbytes, "contents": self._keep(values.tobytes())}

    def _keep(self, value: bytes) -> Json:
        at, self._at = self._at, self._at + len(value)
        self._data.write(value)
        return [at, len(value)]

    def _call(self, call: Call) -> Json:
        function, args, keywords = call.function, call.args, call.keywords
        if isinstance(function, Kernel):
            said = {name: _WAYS.get(name, self._value)(value) for name, value in keywords.items()}
            return {
                "kernel": [self._program(function), function.name],
                "args": [self._value(value) for value in args],
                "keywords": said,
            }
        if isinstance(function, partial):
            args = (*args, function.keywords["source"])
            function = function.func
        kind = KINDS.get(function)
        if kind is None:
            raise UsageError(
                f"{self._where} is a host task; a file holds no Python. Record what comes before "
                "and behind it as two graphs"
            )
        return {kind: self._value(args[1]), "from": self._value(args[2])}

    def _program(self, kernel: Kernel) -> int:
        """Return the number of a kernel's program, and note the kernel's declarations."""
        if not kernel.source or kernel.name.startswith("_"):
            raise UsageError(
                f"{self._where}: kernel {kernel.name!r} is not of a program that Runtime.build made"
            )
        key = kernel.globals_span()  # kernels of one program share its variables
        if key not in self._programs:
            self._declared.append({})
            self._programs[key] = {
                "source": kernel.source,
                "options": list(asked_options(self._engine.context, kernel.options)),
                "kernels": self._declared[-1],
            }
        number = list(self._programs).index(key)
        declared = None
        if kernel.declarations is not None:
            declared = kernel.declarations.told
            if declared is None:
                raise UsageError(
                    f"{self._where}: a function declares what kernel {kernel.name!r} touches; a "
                    "file holds no Python. Declare it by parameter"
                )
        self._declared[number][kernel.name] = {
            "access": declared,
            "infer_ranges": kernel.infer_ranges,
        }
        return number

    def _view(self, array: Array) -> Json:
        dtype = np.lib.format.dtype_to_descr(array.dtype)
        place = [array.offset, list(array.shape), list(array.strides), dtype]
        if not array.nbytes:
            return {"view": [None, *place]}
        base = _base(array)
        if base.number not in self._memory:
            self._memory[base.number] = len(self._bases)
            self._bases.append(array.view_at(0, (base.nbytes,), (1,), np.dtype(np.uint8)))
        return {"view": [self._memory[base.number], *place]}

    def _value(self, value: object) -> Json:
        """Convert an argument."""
        if value is None or type(value) in (bool, int, float):
            return value
        if isinstance(value, Array):
            return self._view(value)
        if isinstance(value, (tuple, list)):
            return [self._value(one) for one in value]
        if isinstance(value, bytes):
            return {"bytes": self._keep(value)}
        if isinstance(value, size):
            return {"size": self._value(value.count), "upto": value.upto}
        if isinstance(value, cl.LocalMemory):
            return {"local": value.size}
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            dtype = np.lib.format.dtype_to_descr(value.dtype)
            return {"values": [dtype, list(value.shape), self._keep(value.tobytes())]}
        raise UsageError(
            f"{self._where} has {describe(value)}, which a file cannot hold; arrays of the "
            "runtime, numbers, NumPy values and local memory can be saved"
        )


def _base(array: Array) -> Base:
    base = array.live().base
    assert base is not None  # an array of no bytes has no base, and does not come here
    return base


def _bytes_of(whole: HostArray, array: Array) -> HostArray:
    """Return the bytes of a view among those of its whole memory."""
    place = (*array.shape, array.dtype.itemsize), np.uint8, whole.data, array.offset
    return np.ndarray(*place, (*array.strides, 1))


def _bands(value: object) -> Json:
    """Convert `bands=`: a number, a word, or a cut as it prints."""
    found = asked(value)
    return found if isinstance(found, int) and found > 0 else str(value)


def _spawn(value: object) -> Json:
    """Convert `spawn=` to its fields."""
    return list(spawning.asked(value))


_WAYS: Mapping[str, Callable[[object], Json]] = {"bands": _bands, "spawn": _spawn}
