"""The controller's end of a socket to the warden or to a worker, on the running event loop.

Covers: messages in and out without blocking, with descriptors where needed. Reading stops while too much waits to be
taken: the other side then waits too. Does not cover: what messages mean (workers.wire).
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from headrace.framing import BadFrame, Frames
from headrace.workers.wire import decoder_of, frame

_READ_BYTES = 1 << 16  # malloc maps and unmaps twice as much anew for every read


class Channel:
    """`on_message` gets each message, `on_end` the reason, once, when no more can come."""

    def __init__(
        self, connection: socket.socket, expected: Any, on_message: Callable[[Any], None], on_end: Callable[[str], None]
    ) -> None:
        connection.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._frames = Frames(decoder_of(expected))
        self._on_message = on_message
        self._on_end = on_end
        self._waiting: deque[tuple[memoryview, Sequence[int]]] = deque()  # senders wait in `drain`
        self._drained: asyncio.Event = asyncio.Event()
        self._drained.set()
        self._reads = True
        self._is_heard = True
        self.is_open = True
        self._loop.add_reader(connection, self.read)

    def send(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Descriptors are duplicated while they wait; the caller may close them at once."""
        if not self.is_open or not self._is_heard:
            return
        data = frame(message)
        is_next = not self._waiting
        sent = self._sent_at_once(data) if is_next and not descriptors else 0
        if sent == len(data):
            return
        self._waiting.append((memoryview(data)[sent:], [os.dup(number) for number in descriptors]))
        if is_next:
            self._flush()

    async def drain(self) -> None:
        """Wait until everything sent has left."""
        await self._drained.wait()

    def read(self) -> None:
        """What has arrived. Called by the loop, and once more after a death to have what came before it."""
        if not self.is_open:
            return
        try:
            data = self._connection.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(str(error))
            return
        if not data:
            self._end("it closed its channel")
            return
        try:
            for message in self._frames.feed(data):
                self._on_message(message)
        except BadFrame as error:
            self._end(str(error))

    def read_all(self) -> None:
        """Everything that a process wrote before it ended."""
        while self.is_open:
            try:
                self._connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return
            except OSError:
                pass
            self.read()

    def pause(self, is_paused: bool) -> None:
        if self.is_open and is_paused is self._reads:
            self._reads = not is_paused
            if is_paused:
                self._loop.remove_reader(self._connection)
            else:
                self._loop.add_reader(self._connection, self.read)

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._stop_sending()
        self._loop.remove_reader(self._connection)
        self._connection.close()

    def _sent_at_once(self, data: bytearray) -> int:
        """How much of it. Nearly every message leaves whole, and has nothing to wait for."""
        try:
            return self._connection.send(data)
        except OSError:
            return 0  # whatever it is, `_flush` meets it too

    def _flush(self) -> None:
        while self._waiting:
            data, descriptors = self._waiting[0]
            try:
                sent = self._connection.sendmsg([data], _ancillary(descriptors))
            except (BlockingIOError, InterruptedError):
                self._drained.clear()
                self._loop.add_writer(self._connection, self._flush)
                return
            except OSError:
                self._stop_sending()
                return
            _close(descriptors)
            self._waiting[0] = data[sent:], ()
            if sent == len(data):
                self._waiting.popleft()
        if not self._drained.is_set():
            self._loop.remove_writer(self._connection)
            self._drained.set()

    def _stop_sending(self) -> None:
        """Drop what is sent from now on, since the other side has ended. What it wrote before can still be read."""
        self._is_heard = False
        self._loop.remove_writer(self._connection)
        for _, descriptors in self._waiting:
            _close(descriptors)
        self._waiting.clear()
        self._drained.set()

    def _end(self, reason: str) -> None:
        self.close()
        self._on_end(reason)


def _ancillary(descriptors: Sequence[int]) -> list[tuple[int, int, array.array[int]]]:
    if not descriptors:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
