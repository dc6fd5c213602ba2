"""One client that follows a stream: server-sent events over HTTP, until it goes, stops reading, or the server ends.

Does not cover: reading what is watched (web.live.watches).
"""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp import ClientConnectionResetError, web

from headrace.web.live.streams import EventStream
from headrace.web.live.watches import LiveChange, LiveWatch, Watches
from headrace.web.operations import error_reply
from headrace.web.shown_files import ShownFiles

_RETRY = b"retry: 2000\n\n"
_STILL_HERE = b": \n\n"
_STILL_HERE_EVERY_S = 15.0
_TAKEN_WITHIN_S = 30.0
_HEADERS = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}


async def follow(request: web.Request, stream: EventStream, files: ShownFiles, watches: Watches) -> web.StreamResponse:
    """Answer with the stream's events."""
    parameters = stream.parsed({**request.query, **request.match_info})
    async with watches.watching((stream.name, parameters), stream.source(files, parameters)) as watch:
        await watch.ready()
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        try:
            await _send(response, _RETRY)
            await _tell_changes(response, stream, watch, request.headers.get("Last-Event-ID", ""))
        except (ClientConnectionResetError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()  # it does not read: what waits for it would be kept for as long as it likes
        return response


async def _tell_changes(response: web.StreamResponse, stream: EventStream, watch: LiveWatch, cursor: str) -> None:
    while not watch.is_over:
        change = watch.since(cursor)
        if change is not None:
            await _send(response, _event(stream, watch, change))
            cursor = change.cursor
            continue
        try:
            async with asyncio.timeout(_STILL_HERE_EVERY_S):
                await watch.changed()
        except TimeoutError:
            await _send(response, _STILL_HERE)


def _event(stream: EventStream, watch: LiveWatch, change: LiveChange) -> bytes:
    error = watch.error
    name = stream.name if error is None else "trouble"
    said = stream.message(change) if error is None else error_reply(error)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (change.cursor.encode(), name.encode(), msgspec.json.encode(said))


async def _send(response: web.StreamResponse, event: bytes) -> None:
    async with asyncio.timeout(_TAKEN_WITHIN_S):
        await response.write(event)
