"""Files of graphs: their contents, and how they are read.

Input: a path. Output: a `File`, which is records only.

A file holds what the program said: sources, sizes, arguments. It does not hold what was inferred.
Loading infers again which bytes a launch touches, because that depends on the compiler of the
device, and because a file could lie about it.

A file is a zip of `graph.json` and `data`, both uncompressed. Values and contents of memory are in
`data`; the JSON says where. Invariants: a file that is not whole or not right is a `UsageError`
before anything is allocated, built or launched. Nothing in a file is ever executed, except its
kernels by the driver.
"""

# Long because: each field of a file is read and checked in one place.

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyopencl as cl

from ..access.policies import policy
from ..errors import UsageError, describe
from ..launch import spawning
from ..records import DType, NamedTuple

VERSION = 1

DEEPEST = 8
"""Lists and sizes of an argument may be in one another so many times. A kernel takes far fewer."""

Json = object
"""Values of JSON: numbers, texts, lists, dictionaries, None."""

Of = TypeVar("Of")


class View(NamedTuple):
    """An array of a file: a part of one of its pieces of memory. None: it has no bytes."""

    memory: int | None
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType


class Size(NamedTuple):
    """An `acs.size` of a file."""

    cell: object
    upto: int


class KernelSaid(NamedTuple):
    """A kernel that is launched, and its declared access."""

    program: int
    name: str
    access: Mapping[str, str] | None
    infer_ranges: bool | None


class Said(NamedTuple):
    """A call of a file: of a kernel, or a transfer 'set', 'fill' or 'copy'."""

    what: KernelSaid | str
    args: tuple[object, ...]
    keywords: Mapping[str, object]


class Repeated(NamedTuple):
    """A loop of a file."""

    flag: View
    at_most: int
    calls: range
    inner: Sequence[Repeated]


class File(NamedTuple):
    """The contents of a file."""

    programs: Sequence[tuple[str, Sequence[str]]]
    memory: Sequence[tuple[int, bytes | None]]
    arrays: Mapping[str, View]
    calls: Sequence[Said]
    loops: Sequence[Repeated]


KEYWORDS = "reads", "writes", "offset", "when", "bands", "spawn"
"""Keywords of a recorded kernel."""


def read(path: str | Path | IO[bytes]) -> File:
    """Read a file, and check it from its first byte to the last."""
    if not isinstance(path, (str, Path)) and not hasattr(path, "seek"):
        raise UsageError(f"load takes a path or an open file, got {describe(path)}")
    with _refusing(path):
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                if one.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"{one.filename!r} is packed")
            text, data = archive.read("graph.json"), archive.read("data")
        return _Reader(data).file(json.loads(text))


@contextmanager
def _refusing(path: str | Path | IO[bytes]) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError,
            OverflowError, SyntaxError, EOFError, zipfile.BadZipFile) as error:  # fmt: skip
        given = repr(str(path)) if isinstance(path, (str, Path)) else "the file"
        raise UsageError(f"{given} is no graph of acs_cl: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read the graph {str(path)!r}: {error.strerror}") from error


class _Reader:
    """Turns JSON into records. Anything that `_Writer` would not make is an error."""

    def __init__(self, data: bytes) -> None:
        self._bits = data
        self._sizes: list[int] = []
        self._kernels: list[Mapping[str, Json]] = []

    def file(self, said: Json) -> File:
        version, programs, memory, arrays, calls, loops = _fields(
            said, "acs_cl_graph", "programs", "memory", "arrays", "calls", "loops"
        )
        if version != VERSION:
            raise ValueError(f"version {version!r}, and this is acs_cl for version {VERSION}")
        pieces = [self._piece(*_fields(one, "nbytes", "contents")) for one in _list(memory)]
        self._sizes = [nbytes for nbytes, _ in pieces]
        sources = []
        for one in _list(programs):
            source, options, kernels = _fields(one, "source", "options", "kernels")
            self._kernels.append(_of(dict, kernels))
            sources.append((_of(str, source), [_of(str, word) for word in _list(options)]))
        names = {name: self._view(_only(one, "view")) for name, one in _of(dict, arrays).items()}
        made = [self._call(one) for one in map(_dict, _list(calls))]
        return File(sources, pieces, names, made, self._loops(loops, range(len(made))))

    def _loops(self, said: Json, inside: range) -> list[Repeated]:
        """Read the loops of some calls. They are in program order and do not overlap."""
        found, at = [], inside.start
        for one in _list(said):
            flag, at_most, calls, inner = _fields(one, "while", "at_most", "calls", "loops")
            start, stop = map(_index, _list(calls, 2))
            if not at <= start <= stop <= inside.stop:
                raise ValueError(f"a loop of calls {start} to {stop} in {at} to {inside.stop}")
            body, at = range(start, stop), stop
            view = self._view(_only(flag, "view"))
            found.append(Repeated(view, _whole(at_most), body, self._loops(inner, body)))
        return found

    def _piece(self, nbytes: Json, contents: Json) -> tuple[int, bytes | None]:
        kept = None if contents is None else self._data(contents)
        if _whole(nbytes) < 1 or (kept is not None and len(kept) != nbytes):
            raise ValueError(f"a piece of memory of {nbytes!r} bytes")
        return _whole(nbytes), kept

    def _data(self, place: Json) -> bytes:
        at, nbytes = map(_whole, _list(place))
        if min(at, nbytes) < 0 or at + nbytes > len(self._bits):
            raise ValueError(f"bytes {at} to {at + nbytes} of {len(self._bits)}")
        return self._bits[at : at + nbytes]

    def _view(self, said: Json) -> View:
        memory, offset, shape, strides, descr = _list(said, 5)
        dtype = _dtype(descr)
        piece = None if memory is None else _index(memory)
        view = View(piece, _whole(offset), _wholes(shape), _wholes(strides), dtype)
        if len(view.shape) != len(view.strides) or min((0, *view.shape)) < 0:
            raise ValueError(f"an array of shape {shape} with strides {strides}")
        if 0 in (*view.shape, dtype.itemsize):
            return view._replace(memory=None)
        moves = [(n - 1) * by for n, by in zip(view.shape, view.strides, strict=True)]
        first = view.offset + sum(min(by, 0) for by in moves)
        last = view.offset + sum(max(by, 0) for by in moves) + dtype.itemsize
        size = self._sizes[_index(memory)]
        if first < 0 or last > size or prod(view.shape) * dtype.itemsize > size:
            raise ValueError(f"an array of bytes {first} to {last} of memory {memory}")
        return view

    def _call(self, said: dict[str, Json]) -> Said:
        if "kernel" in said:
            kernel, args, keywords = _fields(said, "kernel", "args", "keywords")
            what = self._kernel(*_list(kernel, 2))
            values = tuple(map(self._value, _list(args)))
            if not set(_dict(keywords)) <= set(KEYWORDS):
                raise ValueError(f"a call of kernel {what.name!r} with {sorted(_dict(keywords))}")
            if len(values) < 2:
                raise ValueError(f"a call of kernel {what.name!r} without sizes")
            said = _dict(keywords)
            named = {key: _WAYS.get(key, self._value)(one) for key, one in said.items()}
            return Said(what, values, named)
        (kind,) = set(said) - {"from"}
        target, source = _fields(said, kind, "from")
        if kind not in ("set", "fill", "copy"):
            raise ValueError(f"a call of {kind!r}")
        pair = self._view(_only(target, "view")), self._value(source)
        if (kind == "copy") != isinstance(pair[1], View):
            raise ValueError(f"a {kind} from {source!r}")
        return Said(kind, pair, {})

    def _kernel(self, program: Json, name: Json) -> KernelSaid:
        kernels = self._kernels[_index(program)]
        access, ranges = _fields(kernels[_of(str, name)], "access", "infer_ranges")
        modes = None
        if access is not None:
            modes = {_of(str, key): _of(str, mode) for key, mode in _dict(access).items()}
        infers = None if ranges is None else _of(bool, ranges)
        return KernelSaid(_index(program), _of(str, name), modes, infers)

    def _value(self, said: Json, depth: int = 0) -> object:
        if depth > DEEPEST:
            raise ValueError(f"an argument of more than {DEEPEST} values in one another")
        inner = partial(self._value, depth=depth + 1)
        if said is None or isinstance(said, (bool, int, float)):
            return said
        if isinstance(said, list):
            return tuple(map(inner, said))
        fields = _dict(said)
        if set(fields) == {"size", "upto"}:
            return Size(inner(fields["size"]), _whole(fields["upto"]))
        ((kind, one),) = fields.items()
        if kind == "view":
            return self._view(one)
        if kind == "bytes":
            return self._data(one)
        if kind == "local":
            if not 0 <= (nbytes := _whole(one)) < 1 << 62:
                raise ValueError(f"local memory of {nbytes} bytes")
            return cl.LocalMemory(nbytes)
        if kind != "values":
            raise ValueError(f"an argument that is {kind!r}")
        descr, shape, place = _list(one, 3)
        values = np.frombuffer(self._data(place), _dtype(descr)).reshape(_wholes(shape))
        return values if values.ndim else values[()]


_WAYS: Mapping[str, Callable[[Json], object]] = {
    "bands": lambda said: policy(said) if isinstance(said, str) else _whole(said),
    "spawn": spawning.read,
}


def _fields(said: Json, *names: str) -> list[Json]:
    fields = _dict(said)
    if set(fields) != set(names):
        raise ValueError(f"got {sorted(fields)}, expected {sorted(names)}")
    return [fields[name] for name in names]


def _dict(value: Json) -> dict[str, Json]:
    return _of(dict, value)


def _only(said: Json, name: str) -> Json:
    return _fields(said, name)[0]


def _of(kind: type[Of], value: Json) -> Of:
    if type(value) is not kind:
        raise ValueError(f"got {value!r}, expected {kind.__name__}")
    return value


def _list(value: Json, length: int | None = None) -> list[Json]:
    found = _of(list, value)
    if length not in (None, len(found)):
        raise ValueError(f"got {value!r}, expected {length} values")
    return found


def _whole(value: Json) -> int:
    return _of(int, value)


def _index(value: Json) -> int:
    if _whole(value) < 0:
        raise ValueError(f"got {value}, expected a number from 0 on")
    return _whole(value)


def _wholes(values: Json) -> tuple[int, ...]:
    return tuple(map(_whole, _list(values)))


def _dtype(descr: Json) -> DType:
    """Read a dtype as NumPy's own files name it, with tuples for fields, which JSON lacks."""
    dtype = np.lib.format.descr_to_dtype(_tuples(descr))
    if dtype.hasobject:
        raise ValueError(f"values of dtype {dtype}")
    return dtype


def _tuples(descr: Json) -> Any:
    if isinstance(descr, str):
        return descr
    fields = []
    for name, kind, *shape in map(_list, _list(descr)):
        title = tuple(name) if isinstance(name, list) else name
        fields.append((title, _tuples(kind), *map(_wholes, shape)))
    return fields
