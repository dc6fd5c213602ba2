"""The warden's end of the controller's socket: orders with their descriptors in, reports out. It never blocks.

Covers: received descriptors, and reports that wait to leave. Does not cover: what an order means (warden.warden).
"""

from __future__ import annotations

import array
import os
import socket
from collections import deque
from collections.abc import Iterator

import msgspec

from headrace.framing import Frames
from headrace.workers.wire import ToWarden, decoder_of, frame

_READ_BYTES = 1 << 16
_MOST_DESCRIPTORS = 64


class Control:
    """`is_open` until the controller has gone. `is_behind` while a report has not left yet."""

    def __init__(self, connection: socket.socket) -> None:
        connection.set_inheritable(False)  # no program that the warden starts may speak in its name
        self._connection = connection
        self._frames = Frames(decoder_of(ToWarden))
        self._unsent = bytearray()  # bounded: readings are left out while anything waits
        self.descriptors: deque[int] = deque()  # received, and not yet claimed by the order they came with
        self.is_open = True

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def is_behind(self) -> bool:
        return bool(self._unsent)

    def orders(self, flags: int = 0) -> Iterator[ToWarden]:
        """Yield the orders that have arrived; none, and `is_open` is False, when the controller has gone."""
        room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, extra, _, _ = self._connection.recvmsg(_READ_BYTES, room, flags)
        except BlockingIOError:
            return
        except OSError:
            data, extra = b"", []
        for level, kind, packed in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(packed[: len(packed) - len(packed) % received.itemsize])
                for descriptor in received:
                    os.set_inheritable(descriptor, False)
                self.descriptors.extend(received)
        self.is_open = bool(data)
        yield from self._frames.feed(data)

    def claim(self, count: int) -> list[int]:
        """Return the next descriptors, as many as the order says it came with."""
        return [self.descriptors.popleft() for _ in range(count)]

    def send(self, report: msgspec.Struct) -> None:
        """Send a report, or keep what does not leave at once for the next `flush`."""
        self._unsent += frame(report)
        self.flush()

    def flush(self) -> None:
        try:
            sent = self._connection.send(self._unsent, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            self.is_open = False
            return
        del self._unsent[:sent]

    def close(self) -> None:
        self._connection.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()
