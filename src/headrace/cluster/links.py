"""The two ends of a worker's channel that crosses hosts: a socket at the node, messages at the controller.

    worker ══ socket ══ SocketLink ── LinkData ──► RemoteChannel ── messages ──► whoever owns the worker
                                   ◄── LinkData ──

Each end sends as far as the other has given it credit, and gives credit back for what it has handed on: a worker that
writes more than its controller reads waits in its own socket, as it would on one host. Does not cover: how messages
travel (cluster.remote_warden, cluster.node_host).
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.cluster.tunnel_wire import CREDIT_BYTES, PIECE_BYTES, LinkClosed, LinkData, LinkTaken, StreamData
from headrace.framing import BadFrame, Frames
from headrace.workers.local_warden import OnEnd, OnMessage
from headrace.workers.wire import decoder_of, frame

_TELL_TAKEN_BYTES = CREDIT_BYTES // 4

Post = Callable[[LinkData | LinkTaken | LinkClosed | StreamData], None]


class TakenCount:
    """Counts what was handed on, and tells the other end now and then."""

    def __init__(self, link: int, post: Post) -> None:
        self._link = link
        self._post = post
        self._untold_bytes = 0

    def count(self, size_bytes: int) -> None:
        self._untold_bytes += size_bytes
        if self._untold_bytes >= _TELL_TAKEN_BYTES:
            self._post(LinkTaken(self._link, self._untold_bytes))
            self._untold_bytes = 0


class SocketLink:
    """The node's end: bytes from the worker's socket, and bytes for it."""

    def __init__(self, link: int, connection: socket.socket, post: Post) -> None:
        connection.setblocking(False)
        self._link = link
        self._connection = connection
        self._post = post
        self._taken = TakenCount(link, post)
        self._loop = asyncio.get_running_loop()
        self._credit_bytes = CREDIT_BYTES
        self._unsent: deque[memoryview] = deque()  # bounded by the credit that the controller has
        self._is_open = self._reads = True
        self._loop.add_reader(connection, self._read)

    def write(self, data: bytes) -> None:
        if not self._is_open:
            return
        self._unsent.append(memoryview(data))
        if len(self._unsent) == 1:
            self._push()

    def credit(self, size_bytes: int) -> None:
        self._credit_bytes += size_bytes
        if self._is_open and not self._reads and self._credit_bytes > 0:
            self._reads = True
            self._loop.add_reader(self._connection, self._read)

    def drain(self) -> None:
        """Send what a worker wrote before its end, whatever the credit, and close."""
        while self._is_open and self._read_some():
            pass
        self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._connection)
            self._loop.remove_writer(self._connection)
            self._unsent.clear()
            self._connection.close()

    def _read(self) -> None:
        self._read_some()
        if self._is_open and self._credit_bytes <= 0:
            self._reads = False
            self._loop.remove_reader(self._connection)

    def _read_some(self) -> bool:
        """Whether there was something to read."""
        try:
            data = self._connection.recv(PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._post(LinkClosed(self._link))
            self.close()
            return False
        self._credit_bytes -= len(data)
        self._post(LinkData(self._link, data))
        return True

    def _push(self) -> None:
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = self._connection.send(data)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._connection, self._push)
                return
            except OSError:
                self._unsent.clear()  # what the worker wrote before can still be read
                break
            self._taken.count(sent)
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = data[sent:]
        self._loop.remove_writer(self._connection)


class RemoteChannel:
    """The controller's end, for a worker's owner what `workers.channel.Channel` is on one host."""

    def __init__(
        self,
        link: int,
        post: Post,
        on_close: Callable[[int], None],
        expected: Any,
        on_message: OnMessage,
        on_end: OnEnd,
    ) -> None:
        self._link = link
        self._post = post
        self._on_close = on_close
        self._taken = TakenCount(link, post)
        self._frames = Frames(decoder_of(expected))
        self._on_message = on_message
        self._on_end = on_end
        self._arrived: deque[bytes] = deque()  # while it is paused; bounded by the credit that the node has
        self._has_ended = self._is_paused = self._is_reading = False
        self._unsent: deque[memoryview] = deque()
        self._credit_bytes = CREDIT_BYTES
        self.is_open = True

    def send(self, message: msgspec.Struct) -> None:
        if self.is_open and not self._has_ended:
            self._unsent.append(memoryview(frame(message)))
            self._push()

    def credit(self, size_bytes: int) -> None:
        self._credit_bytes += size_bytes
        self._push()

    def arrived(self, data: bytes) -> None:
        if self.is_open:
            self._arrived.append(data)
            self._read()

    def ended(self) -> None:
        """The worker has closed its end, after what has arrived."""
        self._has_ended = True
        self._read()

    def read_all(self) -> None:
        self._is_paused = False
        self._read()

    def pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._read()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._arrived.clear()
            self._unsent.clear()
            self._on_close(self._link)

    def _read(self) -> None:
        if self._is_reading:
            return  # a message that is being taken has let the next ones in: they follow it
        self._is_reading = True
        try:
            while self._arrived and self.is_open and not self._is_paused:
                data = self._arrived.popleft()
                self._taken.count(len(data))
                for message in self._frames.feed(data):
                    self._on_message(message)
        except BadFrame as error:
            self._end(str(error))
        finally:
            self._is_reading = False
        if self._has_ended and not self._arrived and self.is_open:
            self._end("it closed its channel")

    def _push(self) -> None:
        while self._unsent and self._credit_bytes > 0:
            data = self._unsent[0]
            piece = data[: min(PIECE_BYTES, self._credit_bytes)]
            self._credit_bytes -= len(piece)
            self._post(LinkData(self._link, bytes(piece)))
            if len(piece) == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = data[len(piece) :]

    def _end(self, reason: str) -> None:
        self.close()
        self._on_end(reason)
