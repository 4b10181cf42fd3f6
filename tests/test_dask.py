"""Graphs replayed on the workers of a Dask cluster: processes of this machine, and threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import acs_cl as acs

pytest.importorskip("distributed")

from dask.distributed import Client, LocalCluster, Security, wait

import acs_cl.dask
from acs_cl.errors import BuildError
from acs_cl.host import wire

SOURCE = """
kernel void scale(global const float *x, global const float *weights, global float *y)
{ int i = get_global_id(0); y[i] = x[i] * weights[i] + 1; }
kernel void count(global float *seen, global float *total)
{ seen[0] += 1; total[0] = seen[0]; }
kernel void roam(global float *seen, global float *total)
{ global float *z = (global float *)((uintptr_t)seen ^ 0); z[0] += 1; total[0] = z[0]; }
kernel void halve(global float *x, global int *go) { x[0] /= 2; go[0] = x[0] > 10; }
kernel void next(global int *outer, global int *inner)
{ outer[0] -= 1; inner[0] = outer[0] > 0; }
"""
VARIABLE = """
global int seen = 0;
kernel void count(global float *total) { total[0] = ++seen; }
"""
WEIGHTS = np.arange(64, dtype="f4")


def make_step() -> acs.dask.Step:
    """A graph with a named input, output and total, weights, and memory that each replay changes.

    What it holds when it is sent is 5, so `total` is 6 after a replay, however many came before.
    """
    with acs.Runtime(backend="serial") as rt:
        prog = rt.build(SOURCE)
        x, y, total = rt.zeros(64), rt.zeros(64), rt.zeros(1)
        weights, seen = rt.array(WEIGHTS), rt.array([5], "f4")
        with rt.record() as graph:
            prog.scale((64,), None, x, weights, y)
            prog.count((1,), None, seen, total)
        return acs.dask.Step(graph, x=x, y=y, total=total)


def expected(values: Any, times: int = 1) -> Any:
    values = np.asarray(values, "f4")
    for _ in range(times):
        values = values * WEIGHTS + 1
    return values


@contextmanager
def workers(threads: int, processes: bool) -> Iterator[Client]:
    """Two workers of this machine."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=threads, processes=processes, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers, each a process with a runtime."""
    with workers(2, processes=True) as client:
        client.register_plugin(acs.dask.Worker(backend="out_of_order"))
        yield client


def test_workers_replay_what_was_recorded_elsewhere(client: Client) -> None:
    step = make_step()
    rng = np.random.default_rng(1)
    inputs = [rng.integers(0, 99, 64).astype("f4") for _ in range(12)]
    futures = [client.submit(acs.dask.replay, step, {"x": x}) for x in inputs]
    for x, future in zip(inputs, futures, strict=True):
        found = future.result(timeout=60)
        assert set(found) == {"y", "total"}
        assert np.array_equal(found["y"], expected(x))
        assert found["total"] == [6], "each replay begins with what the file says"


def test_kept_arrays_stay_on_their_worker_and_can_be_sent(client: Client) -> None:
    step = make_step()
    first = client.submit(acs.dask.replay, step, {"x": np.ones(64, "f4")}, ["y"], keep=True)
    wait(first, timeout=60)
    names = client.who_has(first)[first.key]
    kind = client.submit(lambda kept: type(kept["y"]).__name__, first, workers=list(names))
    assert kind.result(timeout=60) == "Kept"
    again = client.submit(_renamed, step, first, workers=list(names))
    assert np.array_equal(again.result(timeout=60)["y"], expected(np.ones(64), 2))
    (other,) = set(client.scheduler_info()["workers"]) - set(names)
    moved = client.submit(_renamed, step, first, workers=[other])
    assert np.array_equal(moved.result(timeout=60)["y"], expected(np.ones(64), 2))
    assert np.array_equal(first.result(timeout=60)["y"], expected(np.ones(64)))


def _renamed(step: acs.dask.Step, before: dict[str, Any]) -> Any:
    return acs.dask.replay(step, {"x": before["y"]}, ["y"])


def test_arrays_that_are_not_given_begin_with_zeros(client: Client) -> None:
    step = make_step()
    for given in ({"x": np.full(64, 3, "f4")}, {}):
        found = client.submit(acs.dask.replay, step, given, ["y"], pure=False).result(timeout=60)
        assert np.array_equal(found["y"], expected(given.get("x", np.zeros(64))))


@pytest.mark.parametrize("dtype", ["S4", "V3", "M8[s]", "?", "c16", "i4,f4"])
def test_zeros_are_those_of_any_dtype(client: Client, dtype: str) -> None:
    with acs.Runtime(backend="serial") as rt:
        x, y = rt.zeros(3, dtype), rt.zeros(3, dtype)
        with rt.record() as graph:
            y.copy_from(x)
        step = acs.dask.Step(graph, x=x, y=y)
    values = np.arange(1, 3 * y.dtype.itemsize + 1, dtype="u1") % 2
    for given in ({"x": values.view(y.dtype)}, {}):
        found = client.submit(acs.dask.replay, step, given, pure=False).result(timeout=60)["y"]
        assert found.dtype == y.dtype
        assert found.tobytes() == (values.tobytes() if given else bytes(values.nbytes))


@pytest.mark.parametrize("whole_first", [True, False])
def test_names_may_share_memory(client: Client, whole_first: bool) -> None:
    """What is not given begins with zeros, except where it is part of what is given."""
    with acs.Runtime(backend="serial") as rt:
        x, y = rt.zeros(4), rt.zeros(4)
        with rt.record() as graph:
            y.copy_from(x)
        names = {"all": x, "part": x[:2], "y": y}
        ordered = names if whole_first else dict(reversed(names.items()))
        step = acs.dask.Step(graph, **ordered)
    for given, expected in (
        ({"part": [1, 2]}, [1, 2, 0, 0]),
        ({"all": [1, 2, 3, 4]}, [1, 2, 3, 4]),
    ):
        found = client.submit(acs.dask.replay, step, given, pure=False).result(timeout=60)
        assert found["y"].tolist() == expected


def _flags(rt: acs.Runtime, prog: Any) -> tuple[acs.Graph, dict[str, acs.Array]]:
    x, go = rt.zeros(1), rt.array([1], "i4")
    with rt.record() as graph, acs.loop(go, at_most=100):
        prog.halve((1,), None, x, go)
    return graph, {"x": x}


def _inner_flags(rt: acs.Runtime, prog: Any) -> tuple[acs.Graph, dict[str, acs.Array]]:
    x, outer, inner = rt.zeros(1), rt.array([2], "i4"), rt.array([1], "i4")
    with rt.record() as graph, acs.loop(outer, at_most=100):
        with acs.loop(inner, at_most=100):
            prog.halve((1,), None, x, inner)
        prog.next((1,), None, outer, inner)
    return graph, {"x": x}


def _any_memory(rt: acs.Runtime, prog: Any) -> tuple[acs.Graph, dict[str, acs.Array]]:
    assert prog.roam.signature.anywhere
    seen, x = rt.array([5], "f4"), rt.zeros(1)
    with rt.record() as graph:
        prog.roam((1,), None, seen, x)
    return graph, {"x": x}


def _view(rt: acs.Runtime, prog: Any) -> tuple[acs.Graph, dict[str, acs.Array]]:
    both = rt.array([9, 5], "f4")
    with rt.record() as graph:
        prog.count((1,), None, both[1:], both[:1])
    return graph, {"x": both[:1]}


@pytest.mark.parametrize(
    ("make", "expected"), [(_flags, 7.8125), (_inner_flags, 3.90625), (_any_memory, 6), (_view, 6)]
)
def test_a_replay_does_not_depend_on_earlier_ones(
    client: Client, make: Any, expected: float
) -> None:
    with acs.Runtime(backend="serial") as rt:
        graph, arrays = make(rt, rt.build(SOURCE))
        step = acs.dask.Step(graph, **arrays)
    (worker, *_) = client.scheduler_info()["workers"]
    for _ in range(3):
        found = client.submit(
            acs.dask.replay, step, {"x": [1000]}, pure=False, workers=[worker]
        ).result(timeout=60)
        assert found["x"].tolist() == [expected]


def test_variables_of_programs_are_refused(device: Any) -> None:
    with acs.Runtime(device) as rt:
        try:
            prog = rt.build(VARIABLE, ["-cl-std=CL2.0"])
        except BuildError:
            pytest.skip("no variables of programs")
        total = rt.zeros(1)
        with rt.record() as graph:
            prog.count((1,), None, total)
        with pytest.raises(acs.UsageError, match=r"launch 1 \(count\) uses variables of its prog"):
            acs.dask.Step(graph, total=total)


def test_a_worker_that_is_killed_is_made_up_for() -> None:
    """Some results are lost with it: they are computed again, on the worker that is left or on the
    one that takes its place, and are the same."""
    with workers(1, processes=True) as client:
        client.register_plugin(acs.dask.Worker(backend="serial"))
        step = make_step()
        inputs = [np.full(64, number, "f4") for number in range(16)]
        kept = [client.submit(_kept, step, x) for x in inputs]
        wait(kept[:6], timeout=60)
        victim = client.submit(
            os.getpid, workers=[next(iter(client.who_has(kept[0])[kept[0].key]))]
        )
        os.kill(victim.result(timeout=60), signal.SIGKILL)
        results = [client.submit(_renamed, step, one) for one in kept]
        for x, result in zip(inputs, results, strict=True):
            assert np.array_equal(result.result(timeout=120)["y"], expected(x, 2))


def _kept(step: acs.dask.Step, x: Any) -> Any:
    time.sleep(0.05)
    return acs.dask.replay(step, {"x": x}, ["y"], keep=True)


# ---- without a task ------------------------------------------------------------------------------


def in_haste(client: Client) -> Client:
    """Another client of a cluster, which gives up soon where nobody is."""
    return Client(client.scheduler.address, timeout=5, set_as_default=False)


def test_a_worker_replays_without_a_task(client: Client) -> None:
    there = acs.dask.Direct(client, make_step())
    rng = np.random.default_rng(2)
    for _ in range(5):
        x = rng.integers(0, 99, 64).astype("f4")
        found = there.replay({"x": x})
        assert set(found) == {"y", "total"}
        assert np.array_equal(found["y"], expected(x))
        assert found["total"] == [6], "each replay begins with what the file says"
    assert np.array_equal(there.replay({"x": [1] * 64}, ["y"])["y"], expected(np.ones(64)))
    assert np.array_equal(there.replay(outputs=["y"])["y"], expected(np.zeros(64)))
    for worker in client.scheduler_info()["workers"]:
        on_it = acs.dask.Direct(client, make_step(), worker)
        assert np.array_equal(on_it.replay({"x": x})["y"], expected(x))


def test_what_is_wrong_with_a_replay_without_a_task_is_said_here(client: Client) -> None:
    there = acs.dask.Direct(client, make_step())
    with pytest.raises(acs.UsageError, match="no array 'z'; it has x, y, total"):
        there.replay({"z": 1})
    with pytest.raises(acs.UsageError, match="do not fit"):
        there.replay({"x": np.zeros(3, "f4")})
    assert np.array_equal(there.replay({"x": np.ones(64)})["y"], expected(np.ones(64)))
    with in_haste(client) as other, pytest.raises(OSError, match=r"127\.0\.0\.1:9"):
        acs.dask.Direct(other, make_step(), "tcp://127.0.0.1:9").replay()
    with Client(processes=False, n_workers=1, dashboard_address=None, set_as_default=False) as bare:
        with pytest.raises(acs.UsageError, match="register_plugin"):
            acs.dask.Direct(bare, make_step()).replay()
        bare.cluster.scale(0)
        until = time.monotonic() + 60
        while bare.scheduler_info()["workers"] and time.monotonic() < until:
            time.sleep(0.05)
        with pytest.raises(acs.UsageError, match="has no workers"):
            acs.dask.Direct(bare, make_step()).replay()


@pytest.mark.parametrize("is_connected", [False, True])
def test_another_worker_does_a_replay_again_whose_worker_is_lost(is_connected: bool) -> None:
    with workers(1, processes=True) as client:
        client.register_plugin(acs.dask.Worker(backend="serial"))
        there = acs.dask.Direct(client, make_step())
        first = there.replay({"x": np.ones(64)})
        if is_connected:
            there.replay()
        assert there.is_connected == is_connected
        pids = client.run(os.getpid)
        os.kill(pids[there.worker], signal.SIGKILL)
        lost, began = there.worker, time.perf_counter()
        found = there.replay({"x": np.ones(64)})
        assert there.worker != lost
        assert time.perf_counter() - began < 25, "Dask itself tries for 30 s to reach it"
        assert np.array_equal(found["y"], first["y"])
        with in_haste(client) as other, pytest.raises(OSError, match=lost):
            acs.dask.Direct(other, make_step(), lost).replay()


def test_the_second_replay_goes_by_a_connection_of_its_own(client: Client) -> None:
    there = acs.dask.Direct(client, make_step())
    for turn in range(4):
        x = np.full(64, turn, "f4")
        found = there.replay({"x": x})
        assert there.is_connected == (turn > 0)
        assert np.array_equal(found["y"], expected(x))
        assert found["total"] == [6]
        found["y"][:] = 0  # it is the caller's
    with pytest.raises(acs.UsageError, match="no array 'z'"):
        there.replay({"z": 1})
    with pytest.raises(acs.UsageError, match="do not fit"):
        there.replay({"x": np.zeros((2, 2, 2), "f4")})
    with pytest.raises(acs.UsageError, match="no array 3"):
        there.replay(outputs=[3])  # type: ignore[list-item]
    assert there.is_connected, "errors do not end it"
    odd = np.zeros(64, [("a", "f4")])
    with pytest.raises((acs.UsageError, TypeError, ValueError)):
        there.replay({"x": odd})
    assert np.array_equal(there.replay({"x": x[::-1]})["y"], expected(x))
    there.close()
    assert not there.is_connected
    assert np.array_equal(there.replay({"x": x})["y"], expected(x))
    assert np.array_equal(there.replay({"x": x})["y"], expected(x))
    assert there.is_connected


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer of signals")
def test_a_replay_that_a_signal_ends_leaves_nothing_for_the_next_one(client: Client) -> None:
    there, lots, ended = acs.dask.Direct(client, make_step()), random.Random(3), 0
    for _ in range(2):
        there.replay()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for turn in range(100):
            x = np.full(64, turn, "f4")
            try:
                signal.setitimer(signal.ITIMER_REAL, lots.uniform(1e-5, 2e-3))
                found = there.replay({"x": x})
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                ended += 1
            else:
                assert np.array_equal(found["y"], expected(x))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended
    for turn in range(3):
        found = there.replay({"x": np.full(64, turn, "f4")})
        assert np.array_equal(found["y"], expected(np.full(64, turn)))
    assert there.is_connected
    there.close()


def test_threads_may_share_a_replay_without_a_task(client: Client) -> None:
    there = acs.dask.Direct(client, make_step())

    def replayed(number: int) -> bool:
        x = np.full(64, number, "f4")
        return np.array_equal(there.replay({"x": x})["y"], expected(x))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(replayed, range(40)))


def test_what_is_no_message_ends_its_connection_alone(client: Client) -> None:
    there = acs.dask.Direct(client, make_step())
    x = np.ones(64, "f4")
    for _ in range(2):
        there.replay({"x": x})
    asked = client.run(_port, workers=[there.worker])
    lots = random.Random(4)
    for data in (
        b"",
        b"acs1",
        b"GET / HTTP/1.1\r\n\r\n" * 9,
        b"acs1\xff\xff\xff\xff",
        lots.randbytes(999),
    ):
        with socket.create_connection(("127.0.0.1", asked[there.worker]), 30) as one:
            one.settimeout(60)
            with contextlib.suppress(OSError):  # it may close before all was sent, or right after
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                assert one.recv(1) == b""
    assert np.array_equal(there.replay({"x": x})["y"], expected(x))
    assert there.is_connected


def _port(dask_worker: Any) -> int:
    port: int = dask_worker.plugins["acs_cl"].site.listen()
    return port


@pytest.fixture
def security(tmp_path: Path) -> Security:
    """Keys that the two ends of a cluster know each other by."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make keys with")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem",
         "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    both = {
        f"tls_{role}_{kind}": file
        for role in ("client", "worker", "scheduler")
        for kind, file in (("key", key), ("cert", cert))
    }
    return Security(tls_ca_file=cert, require_encryption=True, **both)


def test_where_the_cluster_encrypts_so_does_a_replay_without_a_task(security: Security) -> None:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, security=security, dashboard_address=None,
            protocol="tls",
        ) as cluster,
        Client(cluster, security=security) as client,
    ):  # fmt: skip
        client.register_plugin(acs.dask.Worker(backend="serial"))
        there = acs.dask.Direct(client, make_step())
        for turn in range(3):
            x = np.full(64, turn, "f4")
            assert np.array_equal(there.replay({"x": x})["y"], expected(x))
        assert there.is_connected
        port = client.run(_port)[there.worker]
        with socket.create_connection(("127.0.0.1", port), 30) as one:
            wire.send(one, {"digest": "", "outputs": None}, {})
            with contextlib.suppress(OSError):  # what comes is no message, but an alert of TLS
                assert wire.receive(one) is None
        assert np.array_equal(there.replay({"x": x})["y"], expected(x))


def test_an_asynchronous_client_awaits_a_replay(client: Client) -> None:
    async def both(address: str) -> list[Any]:
        async with Client(address, asynchronous=True, set_as_default=False) as other:
            there = acs.dask.Direct(other, make_step())
            return [await there.replay({"x": np.full(64, at)}, ["y"]) for at in range(2)]

    found = asyncio.run(both(client.scheduler.address))
    for at, one in enumerate(found):
        assert np.array_equal(one["y"], expected(np.full(64, at)))


def test_workers_in_one_process_have_runtimes_of_their_own() -> None:
    with workers(1, processes=False) as client:
        client.register_plugin(acs.dask.Worker())
        step, (one, other) = make_step(), client.scheduler_info()["workers"]
        first = client.submit(_kept, step, np.ones(64, "f4"), workers=[one])
        moved = client.submit(_renamed, step, first, workers=[other])
        assert np.array_equal(moved.result(timeout=60)["y"], expected(np.ones(64), 2))
        there = acs.dask.Direct(client, step, other)
        assert np.array_equal(there.replay({"x": np.ones(64)})["y"], expected(np.ones(64)))
        runtimes = client.run(_runtime)
        assert len(set(runtimes.values())) == 2


def _runtime(dask_worker: Any) -> int:
    return id(acs.dask.runtime_of(dask_worker))


def _window(dask_worker: Any) -> int | None:
    return acs.dask.runtime_of(dask_worker).options.window


def test_workers_take_devices_in_turns_with_options(device: Any) -> None:
    with workers(1, processes=False) as client:
        client.register_plugin(
            acs.dask.Worker(devices=[0, device.name], backend="serial", window=7)
        )
        windows = client.run(_window)
        assert set(windows.values()) == {7}
    for wrong in ([], 0, device.name):  # a name is no list of its letters
        with pytest.raises(acs.UsageError, match="a list of at least one device, got"):
            acs.dask.Worker(devices=wrong)  # type: ignore[arg-type]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices of the runtimes that workers open, none of which is really opened."""
    found: list[str] = []
    monkeypatch.setattr("acs_cl.dask.Runtime", found.append)
    return found


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ((0, 1, 2), "ABA"),
        (("0", "1"), "AB"),
        (("gpu-0", "gpu-1", "gpu-2"), "ABA"),
        (("node3-gpu1", "node3-gpu2"), "BA"),
    ],
)
def test_the_number_in_the_name_of_a_worker_is_its_turn(
    names: tuple[Any, ...], taken: str, opened: list[str]
) -> None:
    """As Dask names workers: a cluster of this machine, and `dask worker --name gpu`."""
    for name in names:
        acs.dask.Worker(devices=["A", "B"]).setup(SimpleNamespace(name=name, handlers={}))
    assert "".join(opened) == taken


@pytest.mark.parametrize("name", ["tcp://10.0.0.1:33001", "gpu", "inproc://10.0.0.1/4711/4"])
def test_a_worker_without_a_number_is_refused_where_there_are_several_devices(
    name: str, opened: list[str]
) -> None:
    worker = SimpleNamespace(name=name, handlers={})
    with pytest.raises(acs.UsageError, match="--name gpu --nworkers 2"):
        acs.dask.Worker(devices=["A", "B"]).setup(worker)
    acs.dask.Worker(devices=["B"]).setup(worker)
    assert opened == ["B"]


def test_a_step_travels_as_its_file(tmp_path: Path) -> None:
    step = make_step()
    there = pickle.loads(pickle.dumps(step))
    assert there.data == step.data
    (tmp_path / "step.acs").write_bytes(step.data)
    with acs.Runtime() as rt:
        assert set(rt.load(tmp_path / "step.acs").arrays) == {"x", "y", "total"}
    assert acs.dask.Step.of(step.data).digest == step.digest


def test_wrong_calls_are_refused_where_they_are_made(client: Client) -> None:
    step = make_step()
    with pytest.raises(acs.UsageError, match="no array 'z'; it has x, y, total"):
        client.submit(acs.dask.replay, step, {"z": 1}).result(timeout=60)
    with pytest.raises(acs.UsageError, match=r"replay: x: values .* do not fit"):
        client.submit(acs.dask.replay, step, {"x": np.zeros(3, "f4")}).result(timeout=60)
    with pytest.raises(acs.UsageError, match="runs in a task"):
        acs.dask.replay(step, {})
    with pytest.raises(acs.UsageError, match="takes a recorded graph"):
        acs.dask.Step(3)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match=r"Direct takes a Step, got int 3; Step\(graph"):
        acs.dask.Direct(client, 3)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match="Direct takes a client of Dask, got int 3"):
        acs.dask.Direct(3, step)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match="replay takes a Step, got int 3"):
        client.submit(acs.dask.replay, 3).result(timeout=60)
    with pytest.raises(acs.UsageError, match="takes the bytes of a file, got int 3"):
        acs.dask.Step.of(3)  # type: ignore[arg-type]
    with pytest.raises(acs.UsageError, match=r"takes outputs by name, such as .*, got int 3"):
        acs.dask.Direct(client, step).replay(outputs=3)  # type: ignore[arg-type]
    there, values = acs.dask.Direct(client, step), np.zeros(3, "f4")
    for _ in range(2):  # by Dask's messages, and by a connection of its own
        with pytest.raises(acs.UsageError, match=r"takes inputs by name, such as .*, got numpy"):
            there.replay(values)  # type: ignore[arg-type]
        assert set(there.replay(outputs="total")) == {"total"}
    assert set(client.submit(acs.dask.replay, step, None, "total").result(timeout=60)) == {"total"}
    there.close()
    with (
        Client(processes=False, n_workers=1, dashboard_address=None, set_as_default=False) as bare,
        pytest.raises(acs.UsageError, match="register_plugin"),
    ):
        bare.submit(acs.dask.replay, step, {}).result(timeout=60)


def test_what_is_no_step_is_said_without_an_address(client: Client) -> None:
    with pytest.raises(acs.UsageError, match=r"^the file is no graph of acs_cl: "):
        client.submit(acs.dask.replay, acs.dask.Step.of(b"nothing")).result(timeout=60)


def test_a_closed_client_is_named_by_its_replay_without_a_task() -> None:
    with workers(1, processes=False) as own:
        own.register_plugin(acs.dask.Worker(backend="serial"))
        there = acs.dask.Direct(own, make_step())
    with pytest.raises(acs.UsageError, match="its client is closed"):
        there.replay(outputs="total")


def test_a_worker_whose_runtime_cannot_be_made_says_that_it_has_none() -> None:
    step = make_step()
    with workers(1, processes=False) as own:
        with pytest.raises(acs.UsageError, match="unknown backend 'none'"):
            own.register_plugin(acs.dask.Worker(backend="none"))
        with pytest.raises(acs.UsageError, match="register_plugin"):
            own.submit(acs.dask.replay, step).result(timeout=60)
        own.unregister_worker_plugin("acs_cl")
        own.register_plugin(acs.dask.Worker(backend="serial"))
        assert own.submit(acs.dask.replay, step, pure=False).result(timeout=60)["total"] == [6]
