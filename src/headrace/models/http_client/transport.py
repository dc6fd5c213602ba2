"""The connections of one model: opened when first needed, kept while they are used, closed together.

Covers: sending a body, reading what comes within the time-outs and caps, and what a broken connection means.
Does not cover: what is said (models.http_client.http_provider).
"""

from __future__ import annotations

import asyncio
import errno
import io
import logging
import os
from collections.abc import Callable, Mapping

import aiohttp
import msgspec
from multidict import CIMultiDict

from headrace.errors import ModelUnusable, NetworkAway, ProviderError, ProviderTimeout, ProviderUnavailable
from headrace.models.http_client.addresses import Address
from headrace.models.http_client.bodies import read_body, read_events
from headrace.models.http_client.file_bodies import FileBody, Uploads
from headrace.models.http_client.http_options import HttpOptions
from headrace.models.http_client.kept_connections import CheckedRequest, Connections, Misbehaved
from headrace.models.provider import Reply

_MOST_UNSENT = 3
_LARGE_BODY = 1 << 20
_USER_AGENT = "headrace"
_log = logging.getLogger("headrace")
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

NETWORK_ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


class Answered(msgspec.Struct, gc=False):
    """A response. `streamed` is the decoded reply, where it came as a stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    was_streamed: bool = False
    streamed: Reply | None = None


class Transport:
    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None
        self._uploads = Uploads()

    @property
    def streams(self) -> bool:
        return self._options.stream

    def headers(self, of_dialect: dict[str, str]) -> CIMultiDict[str]:
        accepted = "text/event-stream" if self._options.stream else "application/json"
        common = {"Content-Type": "application/json", "Accept": accepted, "User-Agent": _USER_AGENT}
        headers = CIMultiDict(common)
        headers.update(self._options.extra_headers)
        headers.update(of_dialect)
        return headers

    async def post(
        self, address: Address, body: bytes | FileBody, headers: Mapping[str, str], take: Callable[[bytes], bool] | None
    ) -> Answered:
        """Send one request. A redirection is not followed: the key would go to another address."""
        if isinstance(body, FileBody):
            return await self._post_files(address, body, headers, take)
        session = self._session or self._open()
        # aiohttp warns of large bodies given as bytes: it would send them in one write.
        data = body if len(body) < _LARGE_BODY else io.BytesIO(body)
        for tries_left in range(_MOST_UNSENT - 1, -1, -1):
            try:
                async with session.post(
                    address.url, data=data, headers=headers, proxy=address.proxy, allow_redirects=False
                ) as response:
                    return await self._answered(response, take)
            except Misbehaved as error:
                if error.was_sent or not tries_left:
                    raise
        raise AssertionError

    async def _post_files(
        self, address: Address, body: FileBody, headers: Mapping[str, str], take: Callable[[bytes], bool] | None
    ) -> Answered:
        """Send a request whose body is read from disk. Few of them are on the way at once: the others wait for a turn,
        holding nothing, while the line is busy anyway.
        """
        session = self._session or self._open()
        for tries_left in range(_MOST_UNSENT - 1, -1, -1):
            async with self._uploads.turn() as turn:
                payload = body.payload(turn)
                try:
                    async with session.post(
                        address.url, data=payload, headers=headers, proxy=address.proxy, allow_redirects=False
                    ) as response:
                        return await self._answered(response, take)
                except Misbehaved as error:
                    if error.was_sent or not tries_left:
                        raise
                except aiohttp.ClientError:
                    if payload.problem is not None:
                        raise payload.problem from None
                    raise
        raise AssertionError

    async def _answered(self, response: aiohttp.ClientResponse, take: Callable[[bytes], bool] | None) -> Answered:
        most_bytes = self._options.max_response_bytes
        if take is not None and response.status == 200 and response.content_type == "text/event-stream":
            read = await read_events(response, most_bytes, take)
            return Answered(200, response.headers, read, was_streamed=True)
        return Answered(response.status, response.headers, await read_body(response, most_bytes))

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            self._uploads.close()
            await asyncio.sleep(0)  # the loop closes the sockets themselves in its next turn

    def _open(self) -> aiohttp.ClientSession:
        """Opens the session here and not in the constructor: it belongs to the loop that uses it."""
        options = self._options
        self._session = aiohttp.ClientSession(
            connector=Connections(options.max_response_bytes, options.timeout_s, self._say_unasked),
            request_class=CheckedRequest,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None,  # models.http_client.kept_connections ends a call that takes longer than timeout_s
                connect=options.timeout_s,
                sock_connect=options.connect_timeout_s,
                sock_read=options.read_timeout_s,
            ),
        )
        return self._session

    def _say_unasked(self) -> None:
        where = ", ".join(self._options.base_urls) or "An address of the model's address file"
        _log.warning("%s sent responses without a request: its connections are not used twice any more.", where)


def network_problem(error: Exception, model: str, address: str) -> ProviderError:
    """The ProviderError for a connection that failed before the whole reply had come."""
    where = f"{model} at {address}"
    match error:
        case aiohttp.ClientSSLError():
            message = f"{where}: its certificate or encryption is not accepted."
            return ModelUnusable(message, fix="Check base_url, and that this machine trusts the service's certificate.")
        case aiohttp.ConnectionTimeoutError():
            return NetworkAway(f"{where} cannot be reached: no connection in time")
        case asyncio.TimeoutError():
            return ProviderTimeout(f"{where} gave no whole reply in time")
        case aiohttp.ClientConnectorError() if error.os_error.errno in _NO_DESCRIPTORS:
            return ProviderUnavailable(f"{where}: too many files are open here; lower concurrency or raise `ulimit -n`")
        case aiohttp.ClientConnectorError():
            return NetworkAway(f"{where} cannot be reached: {_reason(error.os_error)}")
        case OSError() if error.errno in _NO_ROOM:
            return ProviderUnavailable(f"{where}: no room on this machine's disk for its reply")
        case Misbehaved():
            return ProviderUnavailable(f"{where}: {error}")
        case _:
            # Only the kind: the words of some of these errors quote headers.
            return ProviderUnavailable(f"{where}: the connection broke ({type(error).__name__})")


def _reason(error: OSError) -> str:
    """The system's words: asyncio's own repeat the address. A name that is not found has a number below 0."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or type(error).__name__
