"""A worker as the controller sees it. Covers: giving it a task, what it sends, and how it ended.

Does not cover: making and reusing workers (workers.pool). Whatever a worker wrote before its death is delivered
before the death is.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from typing import TypeAlias

from headrace.workers.limited_process import LimitedProcess, ToWardenNow
from headrace.workers.local_warden import Connect
from headrace.workers.wire import (
    Death,
    DeathKind,
    FromWorker,
    FunctionReference,
    TaskDone,
    TaskFailed,
    TaskMessage,
    TaskOutOfMemory,
    WorkerTask,
)

TaskEnd: TypeAlias = TaskDone | TaskFailed | TaskOutOfMemory | Death

_MOST_WAITING = 64
_DEATH_FOLLOWS_S = 0.5  # on a busy host; the cause of a death that comes later is not told


class Worker(LimitedProcess):
    """`is_spoiled` means that it must not be given another task."""

    def __init__(self, id: int, limit_bytes: int, connect: Connect, order: ToWardenNow) -> None:
        super().__init__(id, limit_bytes, order)
        self.tasks = 0
        self.is_spoiled = False
        self._messages: deque[FromWorker] = deque()  # bounded: the channel pauses
        self._changed = asyncio.Event()
        self.channel = connect(FromWorker, self._arrived, self._closed)

    def start(self, entry: FunctionReference, payload: bytes = b"") -> None:
        """Give it its next task."""
        self.tasks += 1
        self.channel.send(WorkerTask(self.tasks, entry, payload))

    def send(self, payload: bytes) -> None:
        """Send a message to its task."""
        self.channel.send(TaskMessage(self.tasks, payload))

    async def receive(self) -> FromWorker | Death:
        """The next message of its task, or how the worker ended when there is none left."""
        while True:
            while not self._messages:
                if self.ended.done():
                    return self.ended.result()
                self._changed.clear()
                await self._changed.wait()
            self.channel.pause(False)
            message = self._messages.popleft()
            if message.epoch == self.tasks:
                return message

    def kill(self, number: int = signal.SIGKILL, reason: str = "", kind: DeathKind = DeathKind.HUNG) -> None:
        self.is_spoiled = True
        super().kill(number, reason, kind)

    def has_ended(self, death: Death) -> None:
        if self.ended.done():
            return
        self.channel.read_all()
        self.channel.close()
        super().has_ended(death)
        self._changed.set()

    def _arrived(self, message: FromWorker) -> None:
        self._messages.append(message)
        self._changed.set()
        if isinstance(message, TaskOutOfMemory):
            self.is_spoiled = True
        if len(self._messages) >= _MOST_WAITING:
            self.channel.pause(True)

    def _closed(self, reason: str) -> None:
        """Wait for the death that follows; kill a worker that lives on without its channel, or that sent nonsense."""
        self.is_spoiled = True
        asyncio.get_running_loop().call_later(_DEATH_FOLLOWS_S, self._end_unreachable, reason)

    def _end_unreachable(self, reason: str) -> None:
        if not self.ended.done():
            self.kill(reason=reason, kind=DeathKind.LOST)
