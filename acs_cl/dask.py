"""Recorded graphs on other machines, by Dask.

Input: a recorded graph, and a Dask cluster whose workers have the plugin `Worker`. Output: tasks
that replay the graph on a worker's device. The graph travels as the file that `Graph.save` writes,
once for each worker. Inputs and results of a task are NumPy arrays, or arrays that stay on the
device of the worker.

Invariant: a replay here is a function of its inputs. A named array that is not given begins with
zeros, and other memory with the contents in the file. So Dask may run it anywhere, and again when
a worker was lost.

>>> import acs_cl as acs
>>> import acs_cl.dask
>>> from dask.distributed import Client
>>> with acs.Runtime() as rt:
...     prog = rt.build("kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }")
...     x = rt.zeros(3)
...     with rt.record() as graph:
...         handle = prog.twice((3,), None, x)
...     step = acs.dask.Step(graph, x=x)
>>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as c:
...     c.register_plugin(acs.dask.Worker())
...     once = c.submit(acs.dask.replay, step, {"x": [1, 2, 3]}, keep=True)
...     again = c.submit(acs.dask.replay, step, once)
...     print(again.result()["x"])
{...}
[ 4.  8. 12.]
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import UsageError, describe
from .graph.calls import have_all
from .graph.files import read
from .graph.graph import Graph
from .graph.loading import Made
from .memory.array import Array
from .records import EVERYTHING, DType, HostArray, Span
from .runtime import Runtime

try:
    import distributed
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token
except ImportError as error:
    raise ImportError("acs_cl.dask needs Dask: pip install 'acs_cl[dask]'") from error

GRAPHS = 32
"""Graphs that a worker keeps."""


class Step:
    """Holds a recorded graph as the bytes of its file, to be sent. Named arrays are the inputs and
    results of a replay."""

    def __init__(self, graph: Graph, /, **arrays: Array) -> None:
        if not isinstance(graph, Graph):
            raise UsageError(f"Step takes a recorded graph, got {describe(graph)}")
        with io.BytesIO() as file:
            graph.save(file, **arrays)
            _refuse_variables(graph)
            self._hold(file.getvalue())

    def _hold(self, data: bytes) -> None:
        self.data = data
        self.digest = hashlib.sha256(data).hexdigest()

    @classmethod
    def of(cls, data: bytes) -> Step:
        """Make a step from the bytes of a file that `Graph.save` wrote."""
        step = cls.__new__(cls)
        step._hold(bytes(data))
        return step

    def __reduce__(self) -> tuple[object, ...]:
        return Step.of, (self.data,)

    def __repr__(self) -> str:
        return f"<acs_cl.dask.Step of {len(self.data):,} bytes>"


class Kept:
    """An array on the device of a worker. When it is sent it becomes a NumPy array."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> HostArray:
        values: HostArray = self.array.get()
        return values if dtype is None else values.astype(dtype)

    def __reduce__(self) -> tuple[object, ...]:
        return np.asarray, (self.array.get(),)

    def __repr__(self) -> str:
        return f"<acs_cl.dask.Kept {self.array.shape} {self.array.dtype}>"


class Worker(distributed.WorkerPlugin):
    """Gives each worker of a cluster a runtime: `client.register_plugin(acs.dask.Worker())`.

    The workers take `devices` in turn: indices or parts of names, as for `Runtime(device=…)`. The
    turn of a worker is the number that its name is or ends with. Other options are those of
    `Runtime`.
    """

    name = "acs_cl"
    site: _Site

    def __init__(self, devices: Sequence[int | str | None] = (None,), **options: Any) -> None:
        if not devices:
            raise UsageError("Worker takes at least one device")
        self._devices = tuple(devices)
        self._options = options

    def setup(self, worker: distributed.Worker) -> None:
        """Make the runtime of a worker."""
        device = self._devices[0]
        if len(self._devices) > 1:
            device = self._devices[_turn(worker.name) % len(self._devices)]
        self.site = _Site(Runtime(device, **self._options))

    def teardown(self, worker: distributed.Worker) -> None:
        """Close it."""
        self.site.runtime.close()


def _turn(name: object) -> int:
    """Return the number of a worker. An address has none: what it ends with says nothing."""
    found = re.fullmatch(r"(?:[^:]*[^:\d])?(\d+)", str(name))
    if found is None:
        raise UsageError(
            f"Worker(devices=...) cannot tell whose turn worker {name!r} is: its name ends with no "
            "number; start workers with names, as in: dask worker --name gpu --nworkers 2"
        )
    return int(found[1])


def runtime_of(worker: distributed.Worker) -> Runtime:
    """Return the runtime of a worker, for tasks of your own: `runtime_of(get_worker())`."""
    return _site(worker).runtime


def replay(
    step: Step,
    inputs: Mapping[str, object] | None = None,
    outputs: Sequence[str] | None = None,
    keep: bool = False,
) -> dict[str, object]:
    """Replay a graph on the worker that runs this task.

    `inputs`: values of named arrays. Arrays without a value begin with zeros. `outputs`: names of
    the arrays to return, by default all that the graph writes. With `keep` they stay on the device,
    for other tasks of the same worker.
    """
    return _site(_worker()).loaded(step).replay(dict(inputs or {}), outputs, keep)


class _Site:
    """Holds the runtime of a worker, and the graphs that were sent to it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._lock = threading.Lock()
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()

    def loaded(self, step: Step) -> _Loaded:
        """Return the graph of a step. It is made at the first call."""
        with self._lock:
            found = self._loaded.get(step.digest)
            if found is None:
                found = self._loaded[step.digest] = _Loaded(self.runtime, step)
                while len(self._loaded) > GRAPHS:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(step.digest)
            return found


class _Loaded:
    """Holds a graph that was sent to a worker."""

    def __init__(self, runtime: Runtime, step: Step) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        made = Made(read(io.BytesIO(step.data)), runtime.build, runtime.empty)
        self._graph = made.record(Graph(runtime.engine))
        self._arrays = made.arrays
        _refuse_variables(self._graph)
        touched = [one.access for one in self._graph.handles]
        reads = [span for one in touched for span in one.reads]
        reads += [span for flag in made.flags() for span in flag.spans]
        bases = {span.base for span in reads}
        written = {span.base for one in touched for span in one.writes}

        def is_in(some: set[int], array: Array) -> bool:
            return array.base is not None and bool(some & {array.base.number, EVERYTHING})

        named = self._arrays.values()
        self._written = [name for name, one in self._arrays.items() if is_in(written, one)]
        self._kept = [
            (piece, self._copy(piece))
            for piece in made.memory
            if is_in(bases, piece) and is_in(written, piece) and not _are_all(named, piece, reads)
        ]
        """Memory that a replay changes, if not all that it reads there has a name, and its first
        contents."""

    def _copy(self, array: Array) -> Array:
        copy = self._runtime.empty(array.shape, array.dtype)
        copy.copy_from(array)
        return copy

    def replay(
        self, inputs: dict[str, object], outputs: Sequence[str] | None, keep: bool
    ) -> dict[str, object]:
        """Replay as `replay` above says. Only the arrays that are read back are waited for."""
        wanted = self._written if outputs is None else list(outputs)
        for name in (*inputs, *wanted):
            if name not in self._arrays:
                raise UsageError(
                    f"replay: the graph has no array {name!r}; it has "
                    f"{', '.join(self._arrays) or 'none'}"
                )
        with self._lock:
            for piece, first in self._kept:
                piece.copy_from(first)
            for name, array in self._arrays.items():
                if name not in inputs:
                    array.fill(0)
            for name, value in inputs.items():
                self._put(self._arrays[name], value)
            self._graph.replay()
            if keep:
                return {name: Kept(self._copy(self._arrays[name])) for name in wanted}
            handles = {name: self._arrays[name].get(wait=False) for name in wanted}
        return {name: handle.wait() for name, handle in handles.items()}

    def _put(self, array: Array, value: object) -> None:
        if isinstance(value, Kept) and value.array.runtime is self._runtime:
            array.copy_from(value.array)
        else:  # workers that share a process send nothing, and have runtimes of their own
            array.set(np.asarray(value))


def _are_all(named: Iterable[Array], piece: Array, reads: Iterable[Span]) -> bool:
    """Tell whether all bytes of a piece of memory that are read have names."""
    return piece.base is not None and have_all(named, piece.base, reads)


def _refuse_variables(graph: Graph) -> None:
    """Refuse a graph whose replays would depend on earlier ones, by what no array holds."""
    for one in graph.handles:
        if any(span.base < EVERYTHING for span in one.access.writes):
            raise UsageError(
                f"Step: launch {one.number} ({one.name}) uses variables of its program, which keep "
                "their values from one replay to the next; use arrays for them"
            )


def _worker() -> distributed.Worker:
    try:
        return distributed.get_worker()
    except ValueError:
        raise UsageError("replay runs in a task: client.submit(acs_cl.dask.replay, …)") from None


def _site(worker: distributed.Worker) -> _Site:
    plugin = worker.plugins.get(Worker.name)
    if not isinstance(plugin, Worker):
        raise UsageError(
            "this worker has no runtime: client.register_plugin(acs_cl.dask.Worker()) gives it one"
        )
    return plugin.site


@sizeof.register(Kept)  # type: ignore[untyped-decorator]
def _size_of_kept(kept: Kept) -> int:
    return kept.array.nbytes


@sizeof.register(Step)  # type: ignore[untyped-decorator]
def _size_of_step(step: Step) -> int:
    return len(step.data)


@normalize_token.register(Step)  # type: ignore[untyped-decorator]
def _token_of_step(step: Step) -> str:
    return step.digest
