"""Answers requests through a socket beside a file: makes it, answers, removes it.

It lives on the holder's loop and costs nothing without clients. A client gets a few seconds and a bounded request, and
at most a handful are served at a time: whatever they do, the holder does not notice. Where no socket can be made (no
such thing on this system or file system), there is none.
Does not cover: what requests mean (interviews.steering, agents.steering), or asking (request_client).
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from headrace.framing import BadFrame, receive_async
from headrace.store.holder_socket.socket_address import (
    SERVE_WITHIN_S,
    RefusalReply,
    encoded,
    is_same_user,
    short_name,
    socket_path,
)

_MOST_CLIENTS = 8
_BACKLOG = 64
_ACCEPT_AGAIN_AFTER_S = 1.0

Request = TypeVar("Request", bound=msgspec.Struct)


@asynccontextmanager
async def answering(
    path: Path,
    requests: msgspec.msgpack.Decoder[Request],
    answer: Callable[[Request], Awaitable[msgspec.Struct]],
    most_request_bytes: int,
    serve_within_s: float = SERVE_WITHIN_S,
) -> AsyncGenerator[None]:
    """While the block runs, requests to the holder of this file get an answer. The caller holds the file's lock: a
    socket found is a dead one.
    """
    listener = _listen_at(socket_path(path))
    if listener is None:
        yield
        return
    server = _RequestServer(listener, requests, answer, most_request_bytes, serve_within_s)
    served = asyncio.create_task(server.serve())
    try:
        yield
    finally:
        served.cancel()
        await asyncio.wait([served])
        listener.close()
        with suppress(OSError):  # gone, or not ours to remove any more
            socket_path(path).unlink()


def _listen_at(path: Path) -> socket.socket | None:
    if not hasattr(socket, "AF_UNIX"):
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind(listener, path)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        return None
    return listener


def _bind(listener: socket.socket, path: Path) -> None:
    # A mode can only be set after binding, and a umask is the whole process's: so it is bound in a private
    # directory, and gets its name, replacing a dead one, when its mode is right.
    with (
        tempfile.TemporaryDirectory(prefix=".headrace-", dir=path.parent) as private,
        short_name(Path(private)) as short,
    ):
        listener.bind(str(short / "s"))
        bound = Path(private) / "s"
        bound.chmod(0o600)
        bound.replace(path)


class _RequestServer(Generic[Request]):
    def __init__(
        self,
        listener: socket.socket,
        requests: msgspec.msgpack.Decoder[Request],
        answer: Callable[[Request], Awaitable[msgspec.Struct]],
        most_request_bytes: int,
        serve_within_s: float,
    ) -> None:
        self._listener = listener
        self._requests = requests
        self._answer = answer
        self._most_request_bytes = most_request_bytes
        self._serve_within_s = serve_within_s
        self._free_clients = asyncio.Semaphore(_MOST_CLIENTS)

    async def serve(self) -> None:
        """Serve clients until cancelled."""
        async with asyncio.TaskGroup() as clients:
            while True:
                await self._free_clients.acquire()
                clients.create_task(self._serve(await self._next_client()))

    async def _next_client(self) -> socket.socket:
        while True:
            try:
                return (await asyncio.get_running_loop().sock_accept(self._listener))[0]
            except OSError:  # no descriptor left, or a client that went before its turn
                await asyncio.sleep(_ACCEPT_AGAIN_AFTER_S)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):  # it is gone, or out of time
                async with asyncio.timeout(self._serve_within_s):
                    if is_same_user(connection):
                        reply = await self._reply_to(connection)
                        await asyncio.get_running_loop().sock_sendall(connection, encoded(reply))
        finally:
            self._free_clients.release()

    async def _reply_to(self, connection: socket.socket) -> msgspec.Struct:
        try:
            request = self._requests.decode(await receive_async(connection, self._most_request_bytes))
        except (BadFrame, msgspec.DecodeError) as error:
            return RefusalReply(str(error))
        if _has_left(connection):
            raise ConnectionResetError("the client has given up: its request must not be carried out later")
        return await self._answer(request)


def _has_left(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
