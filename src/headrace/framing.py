"""Messages on a stream socket: each one is four bytes of length, most significant first, and then its body.

One format for every socket of this project: controller, warden and workers (workers.wire), the holder of a file and
who steers it (store.holder_socket), and the process of a local model (models.protocols.local_process).

    writing    framed(body)             bytes to send
               with_header(buffer)      the same for a body that was encoded behind room for the header: no copy
    reading    Frames(decode).feed(..)  bytes as they arrive, messages out; for a socket that is never waited for
               receive(connection)      one body; waits for it
               receive_async(...)       one body; other coroutines go on

Needs only the standard library: processes that import little use it too. Does not cover: what a body means.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

HEADER = struct.Struct("!I")
LARGEST_MESSAGE_BYTES = 64 << 20

Message = TypeVar("Message")


class BadFrame(Exception):
    """The other side does not speak this protocol, or sends more than it may."""


def framed(body: bytes) -> bytes:
    """The bytes to send for one message."""
    return HEADER.pack(_checked(len(body), LARGEST_MESSAGE_BYTES)) + body


def with_header(buffer: bytearray) -> bytearray:
    """Fill in the header of a body that begins at `HEADER.size` of `buffer`."""
    HEADER.pack_into(buffer, 0, _checked(len(buffer) - HEADER.size, LARGEST_MESSAGE_BYTES))
    return buffer


class Frames(Generic[Message]):
    """Turns bytes into messages, in whatever parts they arrive; holds at most one unfinished message.

    `decode` makes a message of a body, and raises BadFrame where it cannot.
    """

    def __init__(self, decode: Callable[[bytes], Message]) -> None:
        self._decode = decode
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterable[Message]:
        """Return each message that `data` completes."""
        if not self._held and len(data) >= HEADER.size and len(data) == HEADER.size + HEADER.unpack_from(data)[0]:
            return (self._decode(data[HEADER.size :]),)  # what most reads bring: one message, whole
        return self._completed_by(data)

    def _completed_by(self, data: bytes) -> Iterator[Message]:
        self._held += data
        start = 0
        try:
            while len(self._held) - start >= HEADER.size:
                end = start + HEADER.size + _checked(HEADER.unpack_from(self._held, start)[0], LARGEST_MESSAGE_BYTES)
                if len(self._held) < end:
                    break
                message = self._decode(bytes(memoryview(self._held)[start + HEADER.size : end]))
                start = end
                yield message
        finally:
            del self._held[:start]


def receive(connection: socket.socket, most_bytes: int = LARGEST_MESSAGE_BYTES) -> bytes:
    """Wait for the next message and return its body; a ConnectionError says that the other side has left."""
    (size,) = HEADER.unpack(_exactly(connection, HEADER.size))
    return _exactly(connection, _checked(size, most_bytes))


async def receive_async(connection: socket.socket, most_bytes: int = LARGEST_MESSAGE_BYTES) -> bytes:
    """Do the same with a non-blocking socket, while other coroutines go on."""
    (size,) = HEADER.unpack(await _exactly_async(connection, HEADER.size))
    return await _exactly_async(connection, _checked(size, most_bytes))


def _checked(size: int, most_bytes: int) -> int:
    if size > most_bytes:
        raise BadFrame(f"a message of {size:,} bytes; the most is {most_bytes:,}")
    return size


def _exactly(connection: socket.socket, count: int) -> bytes:
    taken = bytearray()
    while len(taken) < count:
        part = connection.recv(count - len(taken))
        if not part:
            raise _left()
        taken += part
    return bytes(taken)


async def _exactly_async(connection: socket.socket, count: int) -> bytes:
    import asyncio  # here: the process of a local model has no loop, and would pay for one

    taken = bytearray()
    while len(taken) < count:
        part = await asyncio.get_running_loop().sock_recv(connection, count - len(taken))
        if not part:
            raise _left()
        taken += part
    return bytes(taken)


def _left() -> ConnectionResetError:
    return ConnectionResetError("the other side closed the connection")
