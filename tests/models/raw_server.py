"""A server that writes any bytes at any moment, for what no HTTP server would do.

    async def handle(call: RawCall) -> None:        # called for each request, in its connection's order
        call.write(ok(call.prompt))

    with RawServer(handle) as server: ...

Requests of one connection are read while earlier ones are still being handled, as a pipelining proxy does.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from tests.models.behaviours import http
from tests.models.server import stop_accepting


@dataclass(slots=True)
class RawCall:
    """`number` counts the requests of its connection, from 1."""

    number: int
    headers: dict[str, str]
    body: dict[str, Any]
    writer: asyncio.StreamWriter

    @property
    def prompt(self) -> str:
        return self.body["messages"][-1]["content"]

    def write(self, data: bytes) -> None:
        if self.writer.is_closing():
            raise ConnectionError
        self.writer.write(data)

    async def flood(self, data: bytes) -> None:
        """Write for ever, as fast as the other side reads."""
        while True:
            self.write(data)
            await self.writer.drain()


Handler = Callable[[RawCall], Coroutine[Any, Any, None]]


def chat(text: str) -> bytes:
    return msgspec.json.encode({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def ok(text: str, *headers: str) -> bytes:
    return http(200, chat(text), *headers)


class RawServer:
    """Runs in a thread of its own until the `with` block ends."""

    def __init__(self, handle: Handler, *, greeting: bytes = b"") -> None:
        self._handle = handle
        self._greeting = greeting
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="raw-server")
        self._started = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = self.connections = self.calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()

    async def _serve(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        self._started.set()
        await stopped.wait()
        await stop_accepting(server, self._tasks)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._spawn(self._requests(reader, writer))

    def _spawn(self, made: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(made)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        try:
            writer.write(self._greeting)
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
                body = msgspec.json.decode(await reader.readexactly(int(headers.get("content-length", 0))))
                number += 1
                self.calls += 1
                self._spawn(self._answer(RawCall(number, headers, body, writer)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, call: RawCall) -> None:
        with suppress(ConnectionError):
            await self._handle(call)
