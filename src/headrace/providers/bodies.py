"""Reading what a service sends, of whatever length: small in RAM, larger on disk, too large not at all.

Does not cover: what it means (providers.openai_chat, providers.anthropic_messages).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from tempfile import SpooledTemporaryFile

from aiohttp import ClientResponse

from headrace.providers.decoding import BadReply

_IN_RAM_BYTES = 1 << 20
_LONGEST_LINE = 1 << 20
_MOST_OF_AN_ERROR = 64 << 10


async def read_body(response: ClientResponse, most_bytes: int) -> bytes:
    """The whole body; BadReply above the cap. Of a refusal only the beginning, which says why."""
    length = response.content_length
    if length is not None and length <= _IN_RAM_BYTES and "Content-Encoding" not in response.headers:
        return await response.read()
    if response.status >= 300:
        return await _beginning(response, _MOST_OF_AN_ERROR)
    if length is not None and length > most_bytes:
        raise _too_large(most_bytes)
    return await _spooled(response, most_bytes, lambda _: False)


async def read_events(response: ClientResponse, most_bytes: int, take: Callable[[bytes], bool]) -> bytes:
    """A stream of server-sent events, each given to `take` until it says that was the last; returns what was read."""
    lines = EventLines(take)
    return await _spooled(response, most_bytes, lines.feed)


class EventLines:
    """Cuts a stream into the data of its events."""

    def __init__(self, take: Callable[[bytes], bool]) -> None:
        self._take = take
        self._rest = b""
        self._began = False

    def feed(self, piece: bytes) -> bool:
        """Whether the last event has come."""
        if not self._began:
            self._began, piece = True, piece.removeprefix(codecs.BOM_UTF8)
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            raise BadReply(f"a line of its stream is longer than {_LONGEST_LINE >> 20} MiB")
        return any(self._take(line[5:].strip()) for line in lines if line.startswith(b"data:"))


async def _spooled(response: ClientResponse, most_bytes: int, is_last: Callable[[bytes], bool]) -> bytes:
    """While a body comes, what exceeds a mebibyte waits on disk: many may be coming at once, and slowly."""
    size = 0
    with SpooledTemporaryFile(max_size=_IN_RAM_BYTES) as held:
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > most_bytes:
                raise _too_large(most_bytes)
            held.write(piece)
            if is_last(piece):
                break
        held.seek(0)
        return held.read()


async def _beginning(response: ClientResponse, most_bytes: int) -> bytes:
    found = bytearray()
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > most_bytes:
            break
    return bytes(found[:most_bytes])


def _too_large(most_bytes: int) -> BadReply:
    return BadReply(f"its reply is larger than {most_bytes:,} bytes; max_response_bytes sets how large it may be")
