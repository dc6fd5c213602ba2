"""An executor behind a wire, inside a worker: the controller's side.

Covers: one worker from the start of its task to its end: messages to it, messages from it, and acknowledgements of its
events. Its successor is another object, so an acknowledgement for a dead worker goes nowhere. Does not
cover: the worker's side (workers.hosting.executor_host), or merging the events of several workers (outbox).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.hosting.executor_wire import AckEvents, encode
from headrace.workers.wire import FunctionReference, TaskMessage

In = TypeVar("In")


class HostedExecutor(Generic[In]):
    """`worker` runs `entry`, which hosts the executor (workers.hosting.executor_host.host_executor)."""

    def __init__(self, worker: Worker, entry: FunctionReference, payload: bytes) -> None:
        self.worker = worker
        self._posted: list[Any] = []
        self._is_open = True
        worker.start(entry, payload)

    def post(self, message: Any) -> None:
        """Send soon, together with whatever else is posted in this turn of the loop."""
        if not self._is_open:
            return
        if not self._posted:
            asyncio.get_running_loop().call_soon(self._flush)
        self._posted.append(message)

    def send(self, messages: list[Any]) -> None:
        """Send now, after what was posted before."""
        self._flush()
        if self._is_open:
            self.worker.send(encode(messages))

    def acknowledge(self, upto: int) -> None:
        self.post(AckEvents(upto))

    async def listen(
        self, decode: Callable[[bytes], list[In]], hear: Callable[[In, int], None], may_read: asyncio.Event
    ) -> TaskEnd:
        """Hand each message to `hear`, with the size of the payload it came in, until the task has ended. While
        `may_read` is not set nothing is read, and the worker waits.
        """
        while isinstance(message := await self.worker.receive(), TaskMessage):
            messages, size_bytes = decode(message.payload), len(message.payload)
            del message  # or it would be held until the next one comes
            for each in messages:
                hear(each, size_bytes)
            del messages
            if not may_read.is_set():
                self.worker.channel.pause(True)
                await may_read.wait()
                self.worker.channel.pause(False)
        return message

    def close(self) -> None:
        """Send nothing from now on."""
        self._is_open = False
        self._posted.clear()

    def _flush(self) -> None:
        posted, self._posted = self._posted, []
        if posted and self._is_open:
            self.worker.send(encode(posted))
