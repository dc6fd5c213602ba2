"""Connections that are kept between calls, and never hand one call's bytes to another.

      connect ─► IDLE ─► PREPARED ─► ASKED ─► IDLE ...     one request at a time
                   bytes in IDLE or PREPARED are unasked for: no request of ours has left

HTTP/1.1 has no number that ties a response to its request. What holds instead:
- A response is over where its own framing says so. Whatever follows, in the same segment, while the connection lies
  idle, or unread in the kernel when the next request is about to leave, was not asked for: the connection is closed,
  and no connection of this model is used twice from then on. Calls in flight on a connection that had an earlier
  request fail and are made again: what they would get may be another's.
- A response without a request that arrives after the next request has left looks like its answer. So a server
  is watched first: until one connection has lain idle for a quarter of a second without a byte, each call has its own.
  After that a connection rests for some milliseconds before it is used again, as long as that at most doubles their
  number. A server that begins later than that to send responses late can still misplace some, until the first is seen.
- A connection that brings no progress is bounded: in 1xx responses, in bytes before the final response's headers, in
  bytes on the wire altogether, and in time from the request on.

Does not cover: how long connecting may take (aiohttp's time-outs, set in models.http_client.transport), or what is in a
body.
"""

from __future__ import annotations

import array
import asyncio
import select
from collections.abc import Callable
from enum import Enum
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

# Shorter than the 5 s after which uvicorn, and so vLLM, closes an idle connection: a POST that crosses with that fails.
_KEPT_ALIVE_S = 4.0
_NAMES_KEPT_S = 300
_WATCHED_S = 0.25
_REST_S = 0.005
_LONGEST_SWEEP_S = 1.0
_MOST_WATCHED = 8
_MOST_INFORMATIONAL = 16
_MOST_HEAD_BYTES = 64 << 10
_MORE_ON_THE_WIRE = 1 << 20
_END_OF_HEAD = b"\r\n\r\n"
_END_OF_CHUNKS = b"0\r\n\r\n"
_WITHOUT_BODY = frozenset({204, 304})


class Misbehaved(aiohttp.ClientError):
    """The server broke the rules of HTTP. `was_sent` is False where the request had not left yet."""

    def __init__(self, words: str, *, was_sent: bool) -> None:
        super().__init__(words)
        self.was_sent = was_sent


class _ConnectionStage(Enum):
    IDLE = 0
    PREPARED = 1  # a request is about to leave
    ASKED = 2
    OVER = 3  # closed from here; nothing that comes counts


_IDLE, _PREPARED, _ASKED, _OVER = _ConnectionStage  # looked up with every piece that comes


class Connections(aiohttp.TCPConnector):
    """The connections of one model. `on_unasked` is called once, when a server sends bytes without a request.

    As many connections as there are calls, which the limiter bounds.
    """

    def __init__(self, most_bytes: int, timeout_s: float, on_unasked: Callable[[], None]) -> None:
        super().__init__(limit=0, keepalive_timeout=_KEPT_ALIVE_S, ttl_dns_cache=_NAMES_KEPT_S)  # pyright: ignore[reportUnknownMemberType]
        self._factory = partial(Exchanges, self._loop, self)
        self._on_unasked = on_unasked
        self._timeout_s = timeout_s
        self._sweep_s = min(_LONGEST_SWEEP_S, timeout_s / 8)
        self._sweeping: asyncio.TimerHandle | None = None
        self._proven: set[ConnectionKey] = set()  # as many as the model has addresses
        self.most_wire_bytes = 2 * most_bytes + _MORE_ON_THE_WIRE
        self._open: set[Exchanges] = set()  # bounded by the calls in flight and those kept
        self.reuses = True

    def opened(self, exchanges: Exchanges) -> None:
        self._open.add(exchanges)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(self._sweep_s, self._sweep)

    def lost(self, exchanges: Exchanges) -> None:
        self._open.discard(exchanges)

    def _sweep(self) -> None:
        """End the calls whose time is up. One timer for all: one for each call is a twentieth of what it costs."""
        self._sweeping = None
        begun_before_s = self._loop.time() - self._timeout_s
        for exchanges in list(self._open):
            exchanges.end_if_late(begun_before_s)
        if self._open:
            self._sweeping = self._loop.call_later(self._sweep_s, self._sweep)

    def distrust(self) -> None:
        """Uses no connection twice from now on: the server sent bytes without a request."""
        if self.reuses:
            self.reuses = False
            self._on_unasked()
            for exchanges in list(self._open):
                exchanges.give_up()

    async def _get(self, key: ConnectionKey, traces: list[Any]) -> Connection | None:
        if not self.reuses or not (key in self._proven or self._proves(key)) or self._should_rest(key):
            return None
        return await super()._get(key, traces)

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        is_watched = key not in self._proven
        if not self.reuses or (is_watched and len(self._conns.get(key, ())) >= _MOST_WATCHED):
            should_close = True
        super()._release(key, protocol, should_close=should_close)

    def _should_rest(self, key: ConnectionKey) -> bool:
        """Whether even the longest idle connection has had its response a moment ago, and another may be opened."""
        kept = self._conns.get(key)
        is_fresh = bool(kept) and monotonic() - kept[0][1] < _REST_S
        return is_fresh and len(self._open) < 2 * len(self._acquired) + _MOST_WATCHED

    def _proves(self, key: ConnectionKey) -> bool:
        """Whether a connection to this address has been silent for long enough since its response."""
        now_s = monotonic()
        kept = self._conns.get(key, ())
        if any(now_s - since_s >= _WATCHED_S and protocol.is_connected() for protocol, since_s in kept):
            self._proven.add(key)
            return True
        return False


class Exchanges(ResponseHandler):
    """One connection: requests and their responses, each whole before the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: Connections) -> None:
        super().__init__(loop)
        self._connections = connections
        self._incoming: _Incoming | None = None
        self._stage = _IDLE
        self._requests = 0
        self._begun_s = 0.0
        self._silent_since_s: float | None = None  # None while nothing is awaited
        # Of the response that is being read.
        self._answer: tuple[RawResponseMessage, StreamReader] | None = None
        self._wire_bytes = 0
        self._head_bytes = 0
        # Of the connection: it is not used again after any of these.
        self._informational = 0
        self._has_second = False
        self._is_early = False  # bytes came before the first request was even prepared

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._incoming = _Incoming.of(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.lost(self)
        super().connection_lost(exc)
        if self._read_timeout_handle is not None:
            self._read_timeout_handle.cancel()
            self._read_timeout_handle = None

    def set_response_params(self, **options: Any) -> None:
        """A request is about to be written; a CONNECT, which aiohttp makes itself, was written just before."""
        if self._stage is not _ASKED:
            self._stage = _PREPARED
        self._requests += 1
        self._begun_s = self._loop.time()
        self._answer, self._wire_bytes = None, 0
        super().set_response_params(**options)

    def begin(self) -> bool:
        """The request's bytes leave now; False where they must not, and the call is made on another connection."""
        if self._is_early or self._stage is not _PREPARED:
            self._refuse("its server sent bytes before it was asked")
        elif self._requests > 1 and not self._connections.reuses:
            self._refuse("its connections are not used twice")
        elif self._incoming is not None and self._incoming.is_readable(is_used=self._requests > 1):
            if self._incoming.has_data():
                self._connections.distrust()
            self._refuse("its server sent bytes before it was asked")
        else:
            self._stage = _ASKED
            return True
        return False

    def start_timeout(self) -> None:
        """Called when a request was written, also for a CONNECT, which has no body and so does not call `begin`."""
        if self._stage is _PREPARED or not self._requests:
            self._stage = _ASKED
        self._reschedule_timeout()

    def give_up(self) -> None:
        """The server is not trusted any more: a response that may be another call's counts as none."""
        if self._stage is _IDLE and self._requests:
            self.abort()
        elif self._stage is _ASKED and self._requests > 1:
            self._fail(Misbehaved("its server sent responses without a request", was_sent=True))

    def end_if_late(self, begun_before_s: float) -> None:
        if self._begun_s < begun_before_s and self._stage in (_PREPARED, _ASKED):
            self._fail(aiohttp.ServerTimeoutError("no whole response in time"))

    def data_received(self, data: bytes) -> None:
        """`data` is empty where a body goes on that was held back here."""
        if self._stage is not _ASKED:
            if data and self._stage is not _OVER:
                self._was_unasked()
            return
        if not self._wire_bytes:
            self._head_bytes = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        self._wire_bytes += len(data)
        super().data_received(data)
        answer = self._answer
        if answer is not None and answer[1].is_eof():
            self._end_response(answer[0], data)
        else:
            self._check_progress()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """A response's headers have come."""
        code = data[0].code
        if 100 <= code < 200 and code != 101:
            self._informational += 1  # not passed on: aiohttp would read them without letting the loop turn
        elif self._answer is None:
            self._answer = data
            super().feed_data(data, size)
        else:
            self._has_second = True

    def _reschedule_timeout(self) -> None:
        """Bytes came, or are awaited from now on. One timer serves all of a connection's calls: aiohttp's own way, a
        new one whenever bytes come, is a twentieth of what a call costs."""
        self._silent_since_s = self._loop.time()
        if self._read_timeout_handle is None and self._read_timeout:
            self._read_timeout_handle = self._loop.call_later(self._read_timeout, self._check_silence)

    def _drop_timeout(self) -> None:
        self._silent_since_s = None

    def _check_silence(self) -> None:
        self._read_timeout_handle = None
        if self._silent_since_s is None or not self._read_timeout:
            return  # nothing is awaited; the next call begins anew
        left_s = self._silent_since_s + self._read_timeout - self._loop.time()
        if left_s > 0:
            self._read_timeout_handle = self._loop.call_later(left_s, self._check_silence)
        else:
            self._on_read_timeout()

    def _check_progress(self) -> None:
        if self._informational > _MOST_INFORMATIONAL:
            self._fail(Misbehaved("its server sent 1xx responses without end", was_sent=True))
        elif self._answer is None and self._wire_bytes > _MOST_HEAD_BYTES:
            self._fail(Misbehaved("its server sent headers without end", was_sent=True))
        elif self._wire_bytes > self._connections.most_wire_bytes:
            self._fail(Misbehaved("its server sent bytes without end", was_sent=True))

    def _end_response(self, final: RawResponseMessage, data: bytes) -> None:
        """The response is whole by its own framing; `data` holds its end, and must hold nothing else."""
        self._stage = _IDLE
        if self._has_second:
            self._was_unasked()
        elif self._informational or self._head_bytes < len(_END_OF_HEAD) or (final.chunked and not data):
            self.force_close()  # where it ended is not certain
        elif self._goes_on(final, data):
            self._was_unasked()

    def _goes_on(self, final: RawResponseMessage, data: bytes) -> bool:
        if final.chunked:
            return not data.endswith(_END_OF_CHUNKS)
        length = 0 if final.code in _WITHOUT_BODY else int(final.headers.get("Content-Length", 0))
        return self._wire_bytes != self._head_bytes + length

    def _was_unasked(self) -> None:
        if not self._requests:
            self._is_early = True  # `begin` tells the call that is to be the first
        elif self._stage is _PREPARED:
            self._refuse("its server sent bytes before it was asked")
        elif self._requests > 1:
            self._fail(Misbehaved("its server sent more than one response to a request", was_sent=True))
        else:
            self._stage = _OVER
            self.close()  # the one response that was asked for here is not in doubt
        self._connections.distrust()

    def _refuse(self, words: str) -> None:
        self._fail(Misbehaved(words, was_sent=False))

    def _fail(self, error: aiohttp.ClientError) -> None:
        self._stage = _OVER
        self._buffer.clear()
        answer, transport = self._answer, self.transport
        self.set_exception(error)
        if answer is not None:
            answer[1].set_exception(error)
        if transport is not None:
            transport.abort()


class CheckedRequest(aiohttp.ClientRequest):
    """Looks at its connection once more in the moment before its bytes leave."""

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        protocol = conn.protocol
        if not isinstance(protocol, Exchanges) or protocol.begin():
            await super().write_bytes(writer, conn, content_length)


class _Incoming:
    """What waits unread in the kernel for one connection."""

    __slots__ = ("_fileno", "_is_encrypted", "_poll")

    def __init__(self, fileno: int, *, is_encrypted: bool) -> None:
        self._fileno = fileno
        self._is_encrypted = is_encrypted
        self._poll = select.poll()
        self._poll.register(fileno, select.POLLIN)

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> _Incoming | None:
        connected = transport.get_extra_info("socket")
        if connected is None or connected.fileno() < 0 or not hasattr(select, "poll"):  # Windows has none
            return None
        return cls(connected.fileno(), is_encrypted=transport.get_extra_info("ssl_object") is not None)

    def is_readable(self, *, is_used: bool) -> bool:
        """Data, or the other side's end. With TLS a new connection may hold session tickets, which are no data."""
        return (is_used or not self._is_encrypted) and bool(self._poll.poll(0))

    def has_data(self) -> bool:
        """Whether there is data for sure: not with TLS, which has messages of its own."""
        if self._is_encrypted or not self._poll.poll(0):
            return False
        import fcntl
        import termios

        waiting = array.array("i", [0])
        fcntl.ioctl(self._fileno, termios.FIONREAD, waiting)
        return waiting[0] > 0
