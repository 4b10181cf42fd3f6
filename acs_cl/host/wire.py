"""Wire: NumPy arrays with a few words, over a connection of two processes.

Input: words that JSON can say, and arrays by name. Output: the same in the other process. A message
is a head of fixed size, the words with names, dtypes and shapes, then the bytes of the arrays.

Invariants: what arrives is data and nothing else: no code, no pickle. A message that is none raises
`Garbled`, before much memory is taken for it.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..records import DType, HostArray
from . import threads

Words: TypeAlias = dict[str, Any]
Arrays: TypeAlias = Mapping[str, HostArray]
Message: TypeAlias = tuple[Words, dict[str, HostArray]]
Context: TypeAlias = Any
"""An `ssl.SSLContext`; None: nothing is encrypted."""

_HEAD = struct.Struct("!4sI")
_MARK = b"acs1"
MOST_WORDS = 1 << 20
"""Largest size in bytes of what is not arrays."""

MOST_BYTES = 1 << 48
"""No array is larger."""

TOGETHER = 1 << 16
"""Arrays of up to so many bytes are sent in one piece with the words."""

HANDSHAKE_S = 10.0
"""How long the other end may take to begin an encrypted connection."""

IDLE_S, AGAIN_S, AGAIN = 10, 5, 4
"""When the system asks whether the other machine is still there, and how often."""


class Garbled(OSError):  # noqa: N818  (callers treat it like any failure of a connection)
    """The other end sent something else than a message."""


def may_send(arrays: Arrays) -> bool:
    """Tell whether the dtypes of arrays can be said in words."""
    return all(
        not one.dtype.hasobject and np.dtype(one.dtype.str) == one.dtype for one in arrays.values()
    )


def send(wire: socket.socket, words: Words, arrays: Arrays) -> None:
    """Send a message. `may_send` says whether it can be sent."""
    plain = {name: np.ascontiguousarray(one) for name, one in arrays.items()}
    about = [(name, one.dtype.str, one.shape) for name, one in arrays.items()]
    said = json.dumps([words, about]).encode()
    head = _HEAD.pack(_MARK, len(said)) + said
    if sum(one.nbytes for one in plain.values()) <= TOGETHER:
        wire.sendall(b"".join((head, *(one.tobytes() for one in plain.values()))))
        return
    wire.sendall(head)
    for one in plain.values():
        wire.sendall(one.reshape(-1).view(np.uint8).data)


def receive(wire: socket.socket) -> Message | None:
    """Wait for a message. None: the other end has closed the connection."""
    head = bytearray(_HEAD.size)
    first = wire.recv_into(head)
    if not first:
        return None
    _fill(wire, memoryview(head)[first:])
    mark, nbytes = _HEAD.unpack(head)
    if mark != _MARK or nbytes > MOST_WORDS:
        raise Garbled("this is no message")
    said = bytearray(nbytes)
    _fill(wire, memoryview(said))
    words, about = _understood(bytes(said))
    arrays = {}
    for name, dtype, shape in about:
        try:
            arrays[name] = np.empty(shape, dtype)
        except ValueError as error:  # too many axes
            raise Garbled("such arrays cannot be sent") from error
        _fill(wire, arrays[name].reshape(-1).view(np.uint8).data)
    return words, arrays


def _understood(said: bytes) -> tuple[Words, list[tuple[str, DType, tuple[int, ...]]]]:
    try:
        words, about = json.loads(said)
        found = [(str(name), np.dtype(str(dtype)), tuple(shape)) for name, dtype, shape in about]
    except (ValueError, TypeError, SyntaxError, RecursionError) as error:
        raise Garbled("this is no message") from error
    sizes = [size for _, _, shape in found for size in shape]
    is_sound = isinstance(words, dict) and all(
        type(size) is int and 0 <= size < MOST_BYTES for size in sizes
    )
    if not is_sound or any(
        dtype.hasobject or dtype.subdtype or not dtype.itemsize
        or math.prod(shape) * dtype.itemsize > MOST_BYTES
        for _, dtype, shape in found
    ):  # fmt: skip
        raise Garbled("such arrays cannot be sent")
    return words, found


def _fill(wire: socket.socket, room: memoryview) -> None:
    while room:
        found = wire.recv_into(room)
        if not found:
            raise Garbled("the message ends in the middle")
        room = room[found:]


def _settled(wire: socket.socket) -> socket.socket:
    """Set options of a connection: send small messages at once, and notice a lost machine."""
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", IDLE_S), ("TCP_KEEPINTVL", AGAIN_S), ("TCP_KEEPCNT", AGAIN),
    ):  # fmt: skip
        if (option := getattr(socket, name, None)) is not None:
            wire.setsockopt(socket.IPPROTO_TCP, option, value)
    return wire


def connect(host: str, port: int, context: Context, within_s: float) -> socket.socket:
    """Connect to a server."""
    wire = _settled(socket.create_connection((host, port), within_s))
    if context is not None:
        wire = context.wrap_socket(wire, server_hostname=host)
    wire.settimeout(None)
    return wire


class Server:
    """Answers messages, on as many connections as come, until it is closed."""

    def __init__(
        self, host: str, context: Context, answer: Callable[[Words, Arrays], Message]
    ) -> None:
        self._context, self._answer = context, answer
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port: int = self._listener.getsockname()[1]
        self._host, self._changed = host, threading.Condition()
        self._wires: set[socket.socket] = set()
        self._answers = 0
        """The number of answers under way."""
        self._is_closed = False
        threads.start(self._listen, "acs_cl server", self)

    is_late = False
    """An ending program waits for the answer that is under way."""

    def close(self) -> None:
        """End all connections, after the answers that are under way."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.wait_for(lambda: not self._answers)
            wires = list(self._wires)
        for wire in wires:
            with suppress(OSError):  # it has ended by itself
                wire.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):  # so that the listener wakes up
            socket.create_connection((self._host, self.port), HANDSHAKE_S).close()

    def _listen(self) -> None:
        with self._listener:
            while not self._is_closed:
                try:
                    wire, _ = self._listener.accept()
                except OSError:  # the other end has gone again
                    continue
                try:
                    threads.start(partial(self._serve, wire), "acs_cl connection", self)
                except RuntimeError:
                    wire.close()

    def _serve(self, wire: socket.socket) -> None:
        with suppress(OSError, MemoryError), self._secured(wire) as secure:
            with self._changed:
                self._wires.add(secure)
            try:
                while not self._is_closed and (message := receive(secure)) is not None:
                    if not self._begin():
                        return
                    try:
                        send(secure, *self._answer(*message))
                    finally:
                        self._end()
            finally:
                with self._changed:
                    self._wires.discard(secure)

    def _begin(self) -> bool:
        with self._changed:
            self._answers += not self._is_closed
            return not self._is_closed

    def _end(self) -> None:
        with self._changed:
            self._answers -= 1
            self._changed.notify_all()

    def _secured(self, wire: socket.socket) -> socket.socket:
        try:
            wire.settimeout(HANDSHAKE_S)
            secure = _settled(wire)
            if self._context is not None:
                secure = self._context.wrap_socket(wire, server_side=True)
            secure.settimeout(None)
        except BaseException:
            wire.close()
            raise
        return secure
