"""Reads the body of a response: a small one in RAM, a larger one on disk, one above the cap not at all. Cuts a stream
into its events.

Does not cover: what it means (models.protocols.openai_chat, models.protocols.anthropic_messages).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO

from aiohttp import ClientResponse

from headrace.memory.measure.os_limits import expect_blocks_of
from headrace.models.http_client.decoding import BadReply
from headrace.models.http_client.reply_room import WITHIN_BUDGETS, ReplyRoom

# More than this of a body that comes is on disk: it may come slowly, and many with it.
IN_RAM_BYTES = 256 << 10
_LONGEST_LINE = 1 << 20
_BEGIN_EVENTS = (b"data", b"event:", b"id:", b"retry:", b":")
_MOST_OF_AN_ERROR = 64 << 10
_room = ReplyRoom()


async def read_body(response: ClientResponse, most_bytes: int) -> bytes:
    """Reads the whole body; BadReply above the cap. Of a refusal it reads only the beginning, which says why."""
    length = response.content_length
    expect_blocks_of(length or 0)
    if length is not None and length <= IN_RAM_BYTES and "Content-Encoding" not in response.headers:
        return await response.read()
    if response.status >= 300:
        return await _beginning(response, _MOST_OF_AN_ERROR)
    if length is not None and length > most_bytes:
        raise _too_large(most_bytes)
    return await _spooled(response, most_bytes, lambda _: False)


async def read_events(response: ClientResponse, most_bytes: int, take: Callable[[bytes], bool]) -> bytes:
    """Reads server-sent events and gives each to `take`, until that returns True; returns the bytes that it read."""
    lines = EventLines(take)
    read = await _spooled(response, most_bytes, lines.feed)
    lines.end()
    return read


def is_event_stream(body: bytes) -> bool:
    return body[:16].removeprefix(codecs.BOM_UTF8).lstrip().startswith(_BEGIN_EVENTS)


class EventLines:
    """Cuts a stream into the data of its events. Lines end in CR, LF or both; an event may have several.

    An event's first line is tried at once: some servers put no empty line behind an event, and some leave the
    connection open behind the last. Where it makes no sense by itself, the event goes on until an empty line.
    """

    def __init__(self, take: Callable[[bytes], bool]) -> None:
        self._take = take
        self._parts: list[bytes] = []  # of a line that goes on
        self._size = 0  # of that line and of the event before it
        self._event: list[bytes] = []
        self._began = self._had_return = False

    def feed(self, piece: bytes) -> bool:
        """Takes the next bytes; True where the last event has come."""
        if self._had_return:
            piece = piece.removeprefix(b"\n")
        self._had_return = piece.endswith(b"\r") or (self._had_return and not piece)
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = piece.split(b"\n")
        self._grow(len(first))
        self._parts.append(first)
        if not others:
            return False
        lines = [b"".join(self._parts), *others[:-1]]
        self._parts = [others[-1]]
        is_last = any(map(self._take_line, lines))
        self._grow(len(others[-1]))
        return is_last

    def end(self) -> None:
        """Ends the stream: an event without an empty line behind it counts too."""
        if self._parts:
            self._take_line(b"".join(self._parts))
        self._take_event()

    def _grow(self, more_bytes: int) -> None:
        self._size += more_bytes
        if self._size > _LONGEST_LINE:
            raise BadReply(f"an event of its stream is longer than {_LONGEST_LINE >> 20} MiB")

    def _take_line(self, line: bytes) -> bool:
        self._size = sum(map(len, self._event))
        if not self._began:
            self._began, line = True, line.removeprefix(codecs.BOM_UTF8)
        if not line:
            return self._take_event()
        name, _, value = line.partition(b":")
        if name != b"data":
            return False
        if self._event:
            self._event.append(value.strip())
            self._grow(len(value))
            return False
        try:
            return self._take(value.strip())
        except BadReply:
            self._event.append(value.strip())
            return False

    def _take_event(self) -> bool:
        event, self._event, self._size = self._event, [], 0
        return bool(event) and self._take(b"\n".join(event))


async def _spooled(response: ClientResponse, most_bytes: int, is_last: Callable[[bytes], bool]) -> bytes:
    """Holds a body while it comes; a large one on disk, and there until memory has room for it."""
    # One that says that it is large goes there at once: begun in RAM, it would be copied.
    is_large = (response.content_length or 0) > IN_RAM_BYTES
    with TemporaryFile() if is_large else SpooledTemporaryFile(max_size=IN_RAM_BYTES) as held:
        size = await _receive(response, most_bytes, is_last, held)
        if size > IN_RAM_BYTES:
            await _room.wait_for(size)
            await WITHIN_BUDGETS.wait_for(size)
        held.seek(0)
        return held.read()


async def _receive(response: ClientResponse, most_bytes: int, is_last: Callable[[bytes], bool], into: IO[bytes]) -> int:
    """Writes a body into a file and returns its size. Its last piece goes with this call: it may be large."""
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most_bytes:
            raise _too_large(most_bytes)
        expect_blocks_of(size)
        into.write(piece)
        if is_last(piece):
            break
    return size


async def _beginning(response: ClientResponse, most_bytes: int) -> bytes:
    found = bytearray()
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > most_bytes:
            break
    return bytes(found)  # not cut here: redaction could not recognise half a key


def _too_large(most_bytes: int) -> BadReply:
    return BadReply(f"its reply is larger than {most_bytes:,} bytes; max_response_bytes sets how large it may be")
