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

# Long because: what the two ends of a cluster say to each other is read side by side.

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import re
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np

from .errors import UsageError, describe
from .graph.function import Function, refuse_variables
from .graph.graph import Graph
from .host import wire
from .memory.array import Array
from .records import DType, HostArray
from .runtime import Runtime

try:
    import distributed
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token
    from distributed.comm.addressing import get_address_host
    from distributed.protocol.serialize import to_serialize
except ImportError as error:
    raise ImportError("acs_cl.dask needs Dask: pip install 'acs_cl[dask]'") from error

GRAPHS = 32
"""Graphs that a worker keeps."""

REPLAY, WIRE = "acs_cl_replay", "acs_cl_wire"
"""What a worker is asked for a replay without a task, and for the port where it answers sooner."""

CONNECT_S = 3.0
"""How long a connection to that port may take."""

ASK_AGAIN_S = 0.5
"""How long to wait for a worker before the scheduler is asked, again and again, if it is lost."""


class NoRuntime(UsageError):  # noqa: N818  (callers know it as a `UsageError`)
    """A worker has no runtime."""

    def __init__(self) -> None:
        super().__init__(
            "this worker has no runtime: client.register_plugin(acs_cl.dask.Worker()) gives it one"
        )


class Step:
    """Holds a recorded graph as the bytes of its file, to be sent. Named arrays are the inputs and
    results of a replay."""

    def __init__(self, graph: Graph, /, **arrays: Array) -> None:
        if not isinstance(graph, Graph):
            raise UsageError(f"Step takes a recorded graph, got {describe(graph)}")
        with io.BytesIO() as file:
            graph.save(file, **arrays)
            refuse_variables(graph)
            self._hold(file.getvalue())

    def _hold(self, data: bytes) -> None:
        self.data = data
        self.digest = hashlib.sha256(data).hexdigest()

    @classmethod
    def of(cls, data: bytes) -> Step:
        """Make a step from the bytes of a file that `Graph.save` wrote."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise UsageError(f"Step.of takes the bytes of a file, got {describe(data)}")
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
    site: _Site | None = None
    """None: it could not be made, or is closed."""

    def __init__(self, devices: Sequence[int | str | None] = (None,), **options: Any) -> None:
        if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
            raise UsageError(f"Worker takes a list of at least one device, got {describe(devices)}")
        self._devices = tuple(devices)
        self._options = options

    def setup(self, worker: distributed.Worker) -> None:
        """Make the runtime of a worker."""
        device = self._devices[0]
        if len(self._devices) > 1:
            device = self._devices[_turn(worker.name) % len(self._devices)]
        self.site = _Site(worker, Runtime(device, **self._options))
        worker.handlers[REPLAY] = self.site.answer
        worker.handlers[WIRE] = self.site.listen

    def teardown(self, worker: distributed.Worker) -> None:
        """Close it."""
        for name in (REPLAY, WIRE):
            worker.handlers.pop(name, None)
        site, self.site = self.site, None
        if site is not None:
            site.close()


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
    outputs: str | Sequence[str] | None = None,
    keep: bool = False,
) -> dict[str, object]:
    """Replay a graph on the worker that runs this task.

    `inputs`: values of named arrays. Arrays without a value begin with zeros. `outputs`: names of
    the arrays to return, by default all that the graph writes. With `keep` they stay on the device,
    for other tasks of the same worker.
    """
    there = {
        name: value.array if isinstance(value, Kept) else value
        for name, value in _named(inputs).items()
    }
    _check_step("replay", step)
    loaded = _site(_worker()).loaded(step.digest, step.data)
    assert loaded is not None
    results = loaded.replay(there, _names(outputs), keep)
    return {name: Kept(one) if isinstance(one, Array) else one for name, one in results.items()}


def _named(inputs: object) -> Mapping[str, object]:
    """Return the inputs of a replay, and refuse values without names."""
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise UsageError(
            f"replay takes inputs by name, such as {{'x': values}}, got {describe(inputs)}"
        )
    return inputs


def _names(outputs: str | Sequence[str] | None) -> list[str] | None:
    """Return the names of the results that were asked for. A text is one name."""
    if outputs is None:
        return None
    if not isinstance(outputs, Iterable):
        raise UsageError(f"replay takes outputs by name, such as ['x'], got {describe(outputs)}")
    return [outputs] if isinstance(outputs, str) else list(outputs)


def _check_step(what: str, step: object) -> None:
    if not isinstance(step, Step):
        raise UsageError(
            f"{what} takes a Step, got {describe(step)}; Step(graph, x=x, …) makes one"
        )


class Direct:
    """Replays a step on a worker without a task of Dask, which takes milliseconds for each.

    It is for a program that waits for each result before it asks for the next one. `worker`: the
    address of a worker. Without it: any; if that one is lost, another one does the replay again.

    The first replay goes by Dask's messages. Others go by a connection of their own to a port of
    the worker, encrypted if the cluster's connections are. What is unusual, an error above all,
    goes by Dask's messages once more: a replay may be repeated.

    >>> there = acs.dask.Direct(client, step)  # doctest: +SKIP
    >>> there.replay({"x": [1, 2, 3]})["x"]  # doctest: +SKIP
    array([2., 4., 6.], dtype=float32)
    """

    def __init__(self, client: distributed.Client, step: Step, worker: str = "") -> None:
        _check_step("Direct", step)
        if not isinstance(client, distributed.Client):
            raise UsageError(f"Direct takes a client of Dask, got {describe(client)}")
        self._client, self._step = client, step
        self.worker = worker
        """The address of the worker that replays."""
        self._may_change = not worker
        self._idle: list[socket.socket] = []
        """Connections that no thread uses. One that a signal keeps from coming back is gone."""
        self._ports: dict[str, int] = {}
        """The port of each worker that was asked; 0: it has none, or nobody can reach it."""

    def replay(
        self,
        inputs: Mapping[str, object] | None = None,
        outputs: str | Sequence[str] | None = None,
    ) -> Any:
        """Replay, and return arrays as `acs.dask.replay` does. An asynchronous client gets an
        awaitable."""
        values = {name: np.asarray(value) for name, value in _named(inputs).items()}
        wanted = _names(outputs)
        if not self._client.asynchronous:
            results = self._by_wire(values, wanted)
            if results is not None:
                return results
        if self._client.status in ("closing", "closed"):
            raise UsageError("Direct: its client is closed; make one with a client that is open")
        return self._client.sync(self._replay, values, wanted)

    @property
    def is_connected(self) -> bool:
        """Tell whether replays go by a connection of their own."""
        return bool(self._idle)

    def close(self) -> None:
        """End the connections to the worker. Another replay makes a new one."""
        while self._idle:
            self._idle.pop().close()

    def _by_wire(
        self, inputs: dict[str, HostArray], wanted: list[str] | None
    ) -> dict[str, HostArray] | None:
        """Replay by the worker's own port. None: that is not possible now."""
        if not wire.may_send(inputs) or not all(isinstance(name, str) for name in wanted or ()):
            return None
        there = self._connected()
        if there is None:
            return None
        try:
            wire.send(there, {"digest": self._step.digest, "outputs": wanted}, inputs)
            answer = wire.receive(there)
        except OSError:
            answer = None
        except BaseException:  # a signal, above all: the answer would be taken for the next one
            there.close()
            raise
        if answer is None:  # the worker may be lost, or another one by now
            there.close()
            self.close()
            self._ports.pop(self.worker, None)
            return None
        self._idle.append(there)
        words, results = answer
        return results if words.get("is_well") else None

    def _connected(self) -> socket.socket | None:
        """Return a connection of this thread's own. None: there is none."""
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        port = self._ports.get(self.worker)
        if not port:
            return None
        host = get_address_host(self.worker)
        secure = self._client.security.get_connection_args("client")["ssl_context"]
        is_open = self.worker.startswith("tcp://")
        try:
            return wire.connect(host, port, None if is_open else secure, CONNECT_S)
        except OSError:  # a firewall lets nobody in there, for instance
            self._ports[self.worker] = 0
            return None

    async def _replay(
        self, inputs: dict[str, HostArray], outputs: Sequence[str] | None
    ) -> dict[str, object]:
        worker = self.worker
        problem: Exception = UsageError("Direct: the cluster has no workers")
        if worker:
            try:
                return await self._ask_while_there(worker, inputs, outputs)
            except (OSError, NoRuntime) as error:
                if not self._may_change:
                    raise
                problem = error
        scheduler = self._client.scheduler
        assert scheduler is not None, "a client that is open"
        for other in await scheduler.ncores(workers=None):
            if other != worker:
                try:
                    results = await self._ask_while_there(other, inputs, outputs)
                except (OSError, NoRuntime) as error:
                    problem = error
                else:
                    self.close()
                    self.worker = other
                    return results
        raise problem

    async def _ask_while_there(
        self, worker: str, inputs: dict[str, HostArray], outputs: Sequence[str] | None
    ) -> dict[str, object]:
        """Have a worker replay, as long as the scheduler knows it. Dask itself tries for half a
        minute to reach one that is lost."""
        scheduler = self._client.scheduler
        assert scheduler is not None, "a client that is open"
        asked = asyncio.ensure_future(self._ask(worker, inputs, outputs))
        try:
            while not (await asyncio.wait({asked}, timeout=ASK_AGAIN_S))[0]:
                if worker not in await scheduler.ncores(workers=None):
                    raise OSError(f"{worker} has left the cluster")
            return asked.result()
        finally:
            asked.cancel()

    async def _ask(
        self, worker: str, inputs: dict[str, HostArray], outputs: Sequence[str] | None
    ) -> dict[str, object]:
        """Have a worker replay. It gets the graph only if it does not have it yet."""
        there = self._client.rpc(worker)
        ask = getattr(there, REPLAY)
        digest, sent = self._step.digest, to_serialize(inputs)
        answer = await ask(digest=digest, data=None, inputs=sent, outputs=outputs)
        if answer is not None and not answer:
            answer = await ask(digest=digest, data=self._step.data, inputs=sent, outputs=outputs)
        if not answer:
            raise NoRuntime
        if worker not in self._ports:
            self._ports[worker] = 0
            with contextlib.suppress(OSError):  # lost by now, or of a version that has no port
                self._ports[worker] = await getattr(there, WIRE)()
        return dict(answer["results"])


class _Site:
    """Holds the runtime of a worker, and the graphs that were sent to it."""

    def __init__(self, worker: distributed.Worker, runtime: Runtime) -> None:
        self._worker, self.runtime = worker, runtime
        self._lock = threading.RLock()  # the collector may call code of the program
        self._loaded: OrderedDict[str, Function] = OrderedDict()
        self._direct = ThreadPoolExecutor(1, "acs_cl-direct")
        """Replays without a task, while the worker goes on listening."""
        self._server: wire.Server | None = None

    def loaded(self, digest: str, data: bytes | None) -> Function | None:
        """Return the graph of a step, which is made from `data` at the first call. None: it is not
        here, and there is no `data`."""
        with self._lock:
            found = self._loaded.get(digest)
            if found is None:
                if data is None:
                    return None
                runtime = self.runtime
                found = Function(runtime.engine, data, runtime.build, runtime.empty)
                self._loaded[digest] = found
                while len(self._loaded) > GRAPHS:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(digest)
            return found

    async def answer(
        self,
        digest: str,
        data: bytes | None,
        inputs: Mapping[str, object],
        outputs: Sequence[str] | None,
    ) -> dict[str, object]:
        """Replay for a `Direct`. An empty answer: the graph has to be sent first."""

        def replayed() -> dict[str, object] | None:
            found = self.loaded(digest, data)
            return None if found is None else found.replay(inputs, outputs)

        results = await asyncio.get_running_loop().run_in_executor(self._direct, replayed)
        return {} if results is None else {"results": to_serialize(results)}

    def listen(self) -> int:
        """Listen for replays where the worker listens, and return the port. 0: nobody can."""
        worker = self._worker
        kind = worker.address.partition("://")[0]
        if self._server is None and kind in ("tcp", "tls"):
            context = worker.security.get_listen_args("worker")["ssl_context"]
            host = get_address_host(worker.address)
            with contextlib.suppress(OSError):  # it is the address of another machine
                made = wire.Server(host, context if kind == "tls" else None, self._answered)
                self._server = made
        return 0 if self._server is None else self._server.port

    def _answered(self, words: wire.Words, inputs: wire.Arrays) -> wire.Message:
        """Replay for a connection. What went wrong is said to those who ask by Dask's messages."""
        results: dict[str, HostArray] = {}
        with contextlib.suppress(Exception):  # it comes again there, and is told then
            found = self.loaded(words["digest"], None)
            if found is not None:
                results = cast("dict[str, HostArray]", found.replay(inputs, words["outputs"]))
                if wire.may_send(results):
                    return {"is_well": True}, results
        return {"is_well": False}, {}

    def close(self) -> None:
        """Close the runtime, after the replay that is under way."""
        if self._server is not None:
            self._server.close()
        self._direct.shutdown()
        self.runtime.close()


def _worker() -> distributed.Worker:
    try:
        return distributed.get_worker()
    except ValueError:
        raise UsageError("replay runs in a task: client.submit(acs_cl.dask.replay, …)") from None


def _site(worker: distributed.Worker) -> _Site:
    plugin = worker.plugins.get(Worker.name)
    if not isinstance(plugin, Worker) or plugin.site is None:
        raise NoRuntime
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
