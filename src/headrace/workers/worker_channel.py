"""The worker's end of its channel: whole messages in and out, for sync and async callers.

The descriptor is non-blocking from the start, since an event loop that watches it makes it so anyway: uvloop does, and
a `recv` or `sendall` written for a blocking socket then fails with EAGAIN. A sync caller waits in `poll`, an async one
lets its loop wait, and both continue a message that left or arrived in part. What an async caller writes is queued: the
loop goes on serving model connections while the controller is slow to read. The controller never waits for a worker to
read before it reads itself (workers.channel queues too), so two large messages that cross cannot block each other.

Does not cover: what messages mean (workers.worker).
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import deque
from contextlib import suppress

from headrace.framing import Frames
from headrace.memory.measure.process import own_resident_bytes
from headrace.workers.wire import FromWorker, ToWorker, decoder_of, frame

_READ_BYTES = 1 << 16  # malloc maps and unmaps twice as much anew for every read
_decoded = decoder_of(ToWorker)  # made before any fork: it takes as long as one


class WorkerChannel:
    """`is_open` until the controller has closed its end. `is_behind` while something written has not left yet."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.is_open = True
        self.base_bytes = own_resident_bytes()
        self._frames = Frames(_decoded)
        self._arrived: deque[ToWorker] = deque()  # bounded by one read
        self._unsent: deque[memoryview] = deque()  # bounded by the callers: `send` waits, `post` is for small messages
        self._written_bytes = self._sent_bytes = 0  # of what was queued
        self._senders: deque[tuple[int, asyncio.Future[None]]] = deque()  # each with the byte it waits for
        self._poll = select.poll()
        self._polled = 0  # for what
        self._loop: asyncio.AbstractEventLoop | None = None  # the one that waits until more can be sent

    @property
    def is_behind(self) -> bool:
        return bool(self._unsent)

    # In.

    def read(self) -> ToWorker | None:
        """The next message; waits for it. None when the controller has closed its end."""
        while not self._arrived and self.is_open:
            self._wait_for(select.POLLIN)
            self._take_in()
        return self._arrived.popleft() if self._arrived else None

    async def read_async(self) -> ToWorker | None:
        """The same, while other coroutines go on."""
        while not self._arrived and self.is_open:
            await self._readable()
            self._take_in()
        return self._arrived.popleft() if self._arrived else None

    def _take_in(self) -> None:
        try:
            data = self.connection.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return  # woken for nothing
        except ConnectionError:
            data = b""
        self.is_open = bool(data)
        self._arrived.extend(self._frames.feed(data))

    # Out.

    def write(self, message: FromWorker) -> None:
        """Return when this message and all before it have left; raise ConnectionError where the controller is gone."""
        if self._is_sent_at_once(message):
            return
        while not self._pushed():
            self._wait_for(select.POLLOUT)
        self._unwatch()
        self._tell_senders()

    def post(self, message: FromWorker) -> None:
        """Returns at once; what does not leave now leaves as the running loop finds the controller reading."""
        if not self._is_sent_at_once(message) and self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_writer(self.connection, self._push_on)

    async def send(self, message: FromWorker) -> None:
        """Returns when this message has left; other coroutines go on meanwhile."""
        self.post(message)
        await self.caught_up()

    async def caught_up(self) -> None:
        """Returns when everything written so far has left."""
        if self._unsent:
            sender = asyncio.get_running_loop().create_future()
            self._senders.append((self._written_bytes, sender))
            await sender

    def _is_sent_at_once(self, message: FromWorker) -> bool:
        """Nearly every message leaves whole; what does not is queued."""
        data, sent = frame(message), 0
        if not self._unsent:
            with suppress(BlockingIOError, InterruptedError):
                sent = self.connection.send(data)
            if sent == len(data):
                return True
        self._unsent.append(memoryview(data)[sent:])
        self._written_bytes += len(data) - sent
        return False

    def _pushed(self) -> bool:
        """Send what leaves now; whether that was all."""
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = self.connection.send(data)
            except (BlockingIOError, InterruptedError):
                return False
            self._sent_bytes += sent
            if sent == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = data[sent:]
        return True

    def _push_on(self) -> None:
        """Called by the loop. When the controller is gone, the next read says so."""
        try:
            is_all = self._pushed()
        except ConnectionError:
            self._unsent.clear()
            self._sent_bytes, is_all = self._written_bytes, True
        if is_all:
            self._unwatch()
        self._tell_senders()

    def _unwatch(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_writer(self.connection)

    def _tell_senders(self) -> None:
        while self._senders and self._senders[0][0] <= self._sent_bytes:
            sender = self._senders.popleft()[1]
            if not sender.done():
                sender.set_result(None)

    # Waiting.

    def _wait_for(self, what: int) -> None:
        if what != self._polled:
            self._poll.register(self.connection, what)
            self._polled = what
        self._poll.poll()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self.connection, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self.connection)
