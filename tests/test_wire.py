"""Messages with NumPy arrays between two ends of a connection."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from acs_cl.host import wire

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    one.settimeout(60)
    other.settimeout(60)
    with one, other:
        yield one, other


def sent(pair: Pair, words: wire.Words, arrays: wire.Arrays) -> wire.Message | None:
    """What arrives of a message at the other end."""
    thread = threading.Thread(target=wire.send, args=(pair[0], words, arrays))
    thread.start()
    found = wire.receive(pair[1])
    thread.join()
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "?", "c16", "f2", "S5", ">i4", "M8[ns]"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (5, 4), (1, 200_000)])
def test_arrays_arrive_as_they_are(pair: Pair, dtype: str, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    found = sent(pair, {"a": [1, "\u00fc", None]}, {"x": data, "": data})
    assert found is not None
    words, arrays = found
    assert words == {"a": [1, "\u00fc", None]}
    assert list(arrays) == ["x", ""]
    for one in arrays.values():
        assert one.dtype == data.dtype
        assert one.shape == data.shape
        assert one.tobytes() == data.tobytes()
        assert one.flags.writeable


def test_views_arrive_as_their_values(pair: Pair) -> None:
    whole = np.arange(60).reshape(6, 10)
    for view in (whole.T, whole[::-2, 3:], whole[:, :1]):
        found = sent(pair, {}, {"x": view})
        assert found is not None
        assert np.array_equal(found[1]["x"], view)


def test_dtypes_that_words_do_not_say_are_not_sent() -> None:
    wrong: list[Any] = [np.array([object()]), np.zeros(2, [("x", "f4"), ("y", "i4")])]
    assert not any(wire.may_send({"a": one}) for one in wrong)
    assert wire.may_send({"a": np.zeros(2), "b": np.zeros((), "S3")})


def test_a_closed_connection_has_no_more_messages(pair: Pair) -> None:
    wire.send(pair[0], {"last": 1}, {})
    pair[0].close()
    assert wire.receive(pair[1]) == ({"last": 1}, {})
    assert wire.receive(pair[1]) is None


def message(about: Any, words: Any = None) -> bytes:
    said = json.dumps([{} if words is None else words, about]).encode()
    return struct.pack("!4sI", b"acs1", len(said)) + said


@pytest.mark.parametrize(
    "data",
    [
        b"a", b"acs1", b"acs0" + bytes(4), b"acs1" + b"\xff" * 4, b"acs1" + bytes(3) + b"\x05{{{{{",
        message([]) [:-1], message([["x", "f4", [2]]]) + b"1234567", message([["x", "O", [1]]]),
        message([["x", "f4", [-1]]]), message([["x", "f4", [True]]]), message([["x", "f4", [1.5]]]),
        message([["x", "f4", 3]]), message([["x", "V0", [3]]]), message([["x", "nothing", [3]]]),
        message([["x", "f4"]]), message({"x": 1}), message([], 3), message([["x", None, None]]),
        b"acs1" + struct.pack("!I", 50_000) + b"[" * 50_000,
        message([["x", "(2,)f4", [1]]]) + bytes(9), message([["x", "(2,", [1]]]),
        message([["x", "f4", [1] * 99]]) + bytes(4),
        message([["x", "f4", [2**40]]]) + bytes(100), message([["x", "f4", [2**70]]]),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(pair: Pair, data: bytes) -> None:
    pair[0].sendall(data)
    pair[0].shutdown(socket.SHUT_WR)
    with pytest.raises((wire.Garbled, MemoryError)):
        wire.receive(pair[1])


def test_random_changes_of_a_message_are_refused_or_give_a_message() -> None:
    lots = random.Random(1)
    good = message([["x", "f4", [2, 2]], ["name", "i8", [1]]], {"a": 1}) + bytes(24)
    refused = 0
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(lots.randrange(1, 4)):
            data[lots.randrange(len(data))] = lots.randrange(256)
        one, other = socket.socketpair()
        with one, other:
            other.settimeout(60)
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
            try:
                found = wire.receive(other)
            except (wire.Garbled, MemoryError):
                refused += 1
            else:
                assert found is not None
                assert isinstance(found[0], dict)
    assert 500 < refused < 2000


def test_a_server_answers_until_it_is_closed() -> None:
    def answer(words: wire.Words, arrays: wire.Arrays) -> wire.Message:
        return words, {name: one * 2 for name, one in arrays.items()}

    server = wire.Server("127.0.0.1", None, answer)
    wires = [wire.connect("127.0.0.1", server.port, None, 30) for _ in range(3)]
    for turn in range(3):
        for one in wires:
            wire.send(one, {"turn": turn}, {"x": np.arange(turn)})
        for one in wires:
            found = wire.receive(one)
            assert found is not None
            assert found[0] == {"turn": turn}
            assert np.array_equal(found[1]["x"], np.arange(turn) * 2)
    server.close()
    for one in wires:
        with one:
            one.settimeout(60)
            assert wire.receive(one) is None
    until = time.monotonic() + 60
    while _answers(server.port):  # the listener may need a moment
        assert time.monotonic() < until


def test_a_server_is_closed_after_the_answer_that_is_under_way() -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def answer(words: wire.Words, arrays: wire.Arrays) -> wire.Message:
        asked.set()
        assert may_go_on.wait(60)
        return {"done": True}, {}

    server = wire.Server("127.0.0.1", None, answer)
    with wire.connect("127.0.0.1", server.port, None, 30) as one:
        wire.send(one, {}, {})
        assert asked.wait(60)
        closing = threading.Thread(target=server.close)
        closing.start()
        closing.join(0.2)
        assert closing.is_alive()
        may_go_on.set()
        assert wire.receive(one) == ({"done": True}, {})
        closing.join(60)
        assert not closing.is_alive()
        with suppress(ConnectionError):
            wire.send(one, {}, {})
            assert wire.receive(one) is None
    server.close()


def test_a_connection_that_says_nothing_keeps_no_server_open() -> None:
    server = wire.Server("127.0.0.1", None, lambda words, arrays: ({}, {}))
    with wire.connect("127.0.0.1", server.port, None, 30) as one:
        server.close()
        one.settimeout(60)
        with suppress(ConnectionError):
            assert wire.receive(one) is None


def _answers(port: int) -> bool:
    try:
        wire.connect("127.0.0.1", port, None, 30).close()
    except OSError:
        return False
    return True
