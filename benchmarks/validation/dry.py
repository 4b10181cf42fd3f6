"""Trace programs without a device: the launches of a workload, as a trace for the emulator.

Input: the calls of `workload.Platform`. Output: a `Trace` by spans, with the costs of each launch
(`kernel_work`). `traced` runs a workload's step so.

A program that reads back decides by the values, so something has to compute them. `twins` are
kernels in NumPy, which run as they are launched. `answers` are the values of reads, one after
another, from a reference that has run before. Without both, memory keeps the contents that it was
filled with. Kernels without known costs take a given time for each group.

Invariants: launches, groups, spans and waits are those of the same program on a `Runtime`. As
there, the accesses of kernels are inferred from their source. A launch that decides on the device
(`when=`) is refused, because the program does not know whether it runs.
"""

# Long because: arrays, kernels, programs and their platform stand in for one library.

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from acs_cl import UsageError
from acs_cl.access.binder import Reached, binder
from acs_cl.access.cuts import in_runs
from acs_cl.access.inference import from_source
from acs_cl.access.signature import Signature
from acs_cl.benchmarks.peers.published import FAMILIES
from acs_cl.benchmarks.validation.kernel_work import work
from acs_cl.benchmarks.workloads.layer_twins import TWINS
from acs_cl.benchmarks.workloads.rigid_layout import LINE, lay_out
from acs_cl.benchmarks.workloads.rigid_models import MODELS
from acs_cl.benchmarks.workloads.rigid_program import RigidSize
from acs_cl.benchmarks.workloads.rigid_reference import World
from acs_cl.benchmarks.workloads.rigid_start import start
from acs_cl.benchmarks.workloads.workload import Workload
from acs_cl.core import native
from acs_cl.emu.reference.hazards import Hazards
from acs_cl.emu.trace import Entry, Trace
from acs_cl.ranges import Rectangle
from acs_cl.records import Span

Twins = Mapping[str, Callable[..., None]]

ALL = Reached(None, None)

TRANSFER_NS = 1_000
BYTES_PER_NS = 12
"""Of a transfer, as the backend `emulated` has them: PCIe 3.0 with 16 lanes."""


class DryArray:
    """Memory, or a part of it. Values are in double precision, spans as if they were not."""

    def __init__(
        self, platform: Dry, base: int, root: Any, values: Any, dtype: np.dtype[Any]
    ) -> None:
        self._platform, self._base, self._root = platform, base, root
        self.values = values
        self.dtype = dtype
        self.shape: tuple[int, ...] = values.shape
        self.nbytes = prod(self.shape) * dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> DryArray:
        """Return a view, as NumPy does. A single element is an array without dimensions."""
        return self._like(self.values[index if isinstance(index, tuple) else (index,)])

    def reshape(self, *shape: int) -> DryArray:
        """Return the same elements in another shape."""
        return self._like(self.values.reshape(*shape))

    def get(self) -> Any:
        """Read back: the program waits for it."""
        self._platform.transfer("read", reads=self.spans(), nbytes=self.nbytes, blocks=True)
        answers = self._platform.answers
        values = self.values if answers is None else next(answers)
        return np.array(values, self.dtype).reshape(self.shape)

    def set(self, values: Any) -> None:
        """Overwrite all elements with host values."""
        self.values[...] = values
        self._platform.transfer("write", writes=self.spans(), nbytes=self.nbytes)

    def fill(self, value: Any) -> None:
        """Overwrite every element with one value."""
        self.values[...] = value
        self._platform.transfer("fill", writes=self.spans(), nbytes=self.nbytes)

    def copy_from(self, source: DryArray) -> None:
        """Overwrite all elements with those of another array."""
        self.values[...] = source.values
        self._platform.transfer("copy", source.spans(), self.spans(), self.nbytes)

    def spans(self) -> tuple[Span, ...]:
        """Return its bytes."""
        ours, real = self.values.itemsize, self.dtype.itemsize
        offset = (_address(self.values) - _address(self._root)) // ours * real
        strides = [stride // ours * real for stride in self.values.strides]
        return native.spans_of_view(self._base, offset, self.shape, strides, real)

    def _like(self, values: Any) -> DryArray:
        return DryArray(self._platform, self._base, self._root, values, self.dtype)


def _address(values: Any) -> int:
    return int(values.__array_interface__["data"][0])


class Part(NamedTuple):
    """A launch, or a band of it."""

    groups: int
    reads: list[Span]
    writes: list[Span]


class DryKernel:
    """A kernel; calling it writes it down."""

    def __init__(self, platform: Dry, found: Signature) -> None:
        self._platform, self._name = platform, found.kernel
        self._binder = binder(found, bool(platform.bands))
        self._modes = [one.mode for one in found.parameters]
        local = any(one.space == "local" for one in found.parameters)
        self._whole = local or found.has_local_variables

    def __call__(
        self,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        *args: Any,
        when: Any = None,
    ) -> None:
        """Note one launch."""
        if when is not None:
            raise UsageError(f"kernel {self._name}: nobody decides on a device that is not there")
        if local_size is None:
            raise UsageError(f"kernel {self._name}: a trace needs the size of its groups")
        if len(args) != len(self._modes):
            raise UsageError(
                f"kernel {self._name}: got {len(args)} arguments, expected {len(self._modes)}"
            )
        parts: list[Part] = []
        counts = [-(-n // each) for n, each in zip(global_size, local_size, strict=True)]
        for band in in_runs(counts, max(1, self._platform.bands)).parts:
            (box,) = band.boxes
            reached = dict.fromkeys(range(len(args)), ALL)
            if self._binder.has_ranges:
                numbers = [
                    _number(args[at], offset, code) for at, offset, code in self._binder.numbers
                ]
                reached = self._binder.reached(global_size, local_size, None, numbers, box)
            parts.append(Part(band.run, *self._access(args, reached)))
        views = self._access(args, dict.fromkeys(range(len(args)), ALL))
        nbytes = sum(span.nbytes for side in views for span in side)
        self._platform.kernel(self._name, parts, prod(local_size), args, nbytes, self._whole)

    def _access(
        self, args: Sequence[Any], reached: Mapping[int, Reached]
    ) -> tuple[list[Span], list[Span]]:
        """Return the bytes that are read and written. Of each view only the reached part counts."""
        reads: list[Span] = []
        writes: list[Span] = []
        for index, (arg, mode) in enumerate(zip(args, self._modes, strict=True)):
            if isinstance(arg, DryArray) and index in reached:
                spans = arg.spans()
                reads += _cut(spans, reached[index].reads) if "r" in mode else ()
                writes += _cut(spans, reached[index].writes) if "w" in mode else ()
        return reads, writes


def _number(value: object, offset: int, code: str) -> int:
    """Return a number of an argument, or of one that is a structure or a vector."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    data = value if isinstance(value, bytes) else np.asarray(value).tobytes()
    return int(struct.unpack_from(f"={code}", data, offset)[0])


def _cut(spans: Sequence[Span], reached: Sequence[Rectangle] | None) -> list[Span]:
    """Return the reached bytes of a view. If it has several spans and any byte is reached, all of
    them."""
    part = reached if len(spans) == 1 or not reached else None
    return [one for span in spans for one in native.cut(span, part)]


class DryProgram:
    """Kernels by name."""

    def __init__(self, platform: Dry, source: str, options: Sequence[str]) -> None:
        self._platform, self._source, self._options = platform, source, options

    def __getattr__(self, name: str) -> DryKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        found = from_source(self._source, name, self._options, None)
        if found.anywhere or found.program_globals:
            raise UsageError(f"kernel {name} may touch memory that no argument names")
        kernel = DryKernel(self._platform, found)
        setattr(self, name, kernel)
        return kernel


class Dry:
    """A platform that writes down what it is asked to do."""

    def __init__(
        self,
        twins: Twins | None = None,
        answers: Iterator[Any] | None = None,
        group_ns: int = 0,
        bands: int = 0,
    ) -> None:
        self.entries: list[Entry] = []
        self.answers = answers
        self.bands = bands
        """Each launch is cut into so many, with the bytes that each reaches; 0: launches are whole,
        and have all of their views."""
        self._hazards = Hazards()
        self._group_ns = group_ns
        """Of each kernel; 0: as it is counted."""
        self._twins = twins
        self._bases = 0
        self._waits: tuple[int, ...] = ()

    def build(
        self, source: str, options: Sequence[str] = (), macros: Mapping[str, Any] | None = None
    ) -> DryProgram:
        """Make a program of its source, which is parsed and never compiled."""
        words = [*options, *(f"-D{name}={value}" for name, value in (macros or {}).items())]
        return DryProgram(self, source, words)

    def empty(self, shape: Any, dtype: Any = np.float32) -> DryArray:
        """Make an array of zeros: nothing is undefined here."""
        kind = np.dtype(dtype)
        values = np.zeros(shape, np.float64 if kind.kind == "f" else kind)
        self._bases += 1
        return DryArray(self, self._bases, values, values, kind)

    def zeros(self, shape: Any, dtype: Any = np.float32) -> DryArray:
        """Make an array of zeros."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array

    def array(self, values: Any, dtype: Any = None) -> DryArray:
        """Make an array with these values."""
        host = np.asarray(values, dtype=dtype)
        array = self.empty(host.shape, np.float32 if host.dtype == np.float64 else host.dtype)
        array.set(host)
        return array

    def finish(self) -> None:
        """Do nothing: everything has ended."""

    def clear(self) -> None:
        """Forget what was launched so far: it has ended."""
        self.entries.clear()
        self._hazards = Hazards()

    def trace(self, name: str) -> Trace:
        """Return everything that was launched since the last `clear`."""
        edges = "upstream" if self.bands else "spans"
        return Trace(name, list(self.entries), "model", edges)

    def kernel(
        self,
        name: str,
        parts: Sequence[Part],
        items: int,
        args: Sequence[Any],
        nbytes: int,
        whole: bool,
    ) -> None:
        """Note a launch, and run it if there are twins. `nbytes`: of all of its views. `whole`: its
        groups share memory."""
        groups = sum(part.groups for part in parts)
        if self._group_ns:
            costs = {"group_ns": self._group_ns}
        else:
            done = work(name, groups * items, args)
            costs = {"steps": done.steps, "rounds": done.rounds}
            costs |= {"flops": -(-done.flops // groups), "bytes": -(-nbytes // groups)}
        costs |= {"items": items, "whole_groups": int(whole)}
        self._add(name, "kernel", parts, **costs)
        if self._twins is not None:
            self._twins[name](*(arg.values if isinstance(arg, DryArray) else arg for arg in args))

    def transfer(
        self,
        kind: str,
        reads: Sequence[Span] = (),
        writes: Sequence[Span] = (),
        nbytes: int = 0,
        blocks: bool = False,
    ) -> None:
        """Note a read, write, fill or copy. The next launch waits for one that blocks."""
        ns = TRANSFER_NS + nbytes // BYTES_PER_NS
        self._add(kind, kind, [Part(0, list(reads), list(writes))], total_ns=ns)
        if blocks:
            self._waits = (len(self.entries),)

    def _add(self, name: str, kind: str, parts: Sequence[Part], **costs: int) -> None:
        first, waits, self._waits = len(self.entries) + 1, self._waits, ()
        made = [
            Entry(number, name, kind, waits=waits, groups=part.groups, **costs)  # type: ignore[arg-type]
            for number, part in enumerate(parts, first)
        ]
        if self.bands:  # which are not ordered among each other, as their bytes would have it
            upstream = self._hazards.enter_many(first, [part[1:] for part in parts])
            self.entries += [
                one._replace(
                    upstream=tuple(sorted(after)), segments=len(part.reads) + len(part.writes)
                )
                for one, part, after in zip(made, parts, upstream, strict=True)
            ]
        else:
            ((_, reads, writes),) = parts
            self.entries.append(made[0]._replace(reads=tuple(reads), writes=tuple(writes)))


def traced(
    workload: Workload,
    preset: str,
    seed: int = 0,
    group_ns: int = 0,
    bands: int = 0,
    counted: bool = True,
) -> Trace:
    """Return the trace of a workload's step. If decisions depend on the input, the host makes them.
    `group_ns`: time of each group of a kernel, if the kernels of the workload are not counted, or
    `counted` is false. `bands`: into how many each launch is cut, with the bytes that each reaches;
    0: launches are whole, with all of their views."""
    if preset not in workload.presets:
        known = ", ".join(workload.presets)
        raise UsageError(f"{workload.name} has no preset {preset!r}; there are {known}")
    if workload.family in FAMILIES:
        group_ns *= not counted
    elif not group_ns:
        raise UsageError(
            f"nobody has counted what the kernels of {workload.name} do: say how long a group takes"
        )
    size = workload.presets[preset]
    make = workload.host_decided or workload.make
    if isinstance(size, RigidSize):
        platform = Dry(answers=_flags(size, seed), group_ns=group_ns, bands=bands)
    else:
        twins = TWINS if workload.host_decided else None
        platform = Dry(twins=twins, group_ns=group_ns, bands=bands)
    run = make(platform, size, seed)
    run.reset()
    platform.clear()
    run.step()
    return platform.trace(f"{workload.name}, {preset}")


class _Watched(World):
    """Rigid bodies in NumPy that keep what was decided: who fell, and what is near."""

    fell = False

    def begin_again(self, fallen: Any) -> None:
        self.fell = bool(fallen.any())
        super().begin_again(fallen)


def _flags(size: RigidSize, seed: int) -> Iterator[Any]:
    """Yield what a program with rigid bodies reads: its flags, before and after the broad phase."""
    layout = lay_out(MODELS[size.model])
    world = _Watched(layout, start(layout, size.environments, seed))
    for _ in range(size.frames):
        before = world.live.copy()
        world.frame(size.substeps)
        flags = np.zeros((len(layout.pushes) + 1, LINE), np.uint32)
        flags[0, 0] = world.fell
        yield flags
        for place, push in enumerate(layout.pushes, 1):
            flags[push.flag, 0] = world.live[place] > before[place]
        yield flags
