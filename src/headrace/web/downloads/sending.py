"""Sends a download: one chunk after the other, each when the socket has taken the one before.

A client that is gone, or takes nothing for half a minute, ends the work. What fails behind the first chunk cuts the
connection, so that no file passes for a whole one. Does not cover: what a chunk holds (export_chunks, parquet_writer).
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from aiohttp import web

from headrace.errors import HeadraceError
from headrace.web.downloads.export_chunks import DownloadAsked, DownloadFormat, text_chunks
from headrace.web.downloads.parquet_writer import COMMAND, ParquetAsked, check_can_write
from headrace.web.operations import ErrorBody, unreadable
from headrace.web.reads import TooBusy
from headrace.web.shown_files import ShownFile, ShownFiles

PATH = "/runs/{run}/download.{format:csv|jsonl|parquet}"
_MOST_AT_ONCE, _THREADS = 4, 2
_TAKEN_WITHIN_S = 30.0
_ENDED_WITHIN_S = 2.0
Taken = TypeVar("Taken")
_PIPE_BYTES, _MOST_SAID_BYTES = 256_000, 100_000


def is_download(path: str) -> bool:
    """Whether what is answered may be saved under a name of the client's."""
    return re.fullmatch(r"/runs/[^/]*/download\.\w+", path) is not None


class Downloads:
    """Sends at most four downloads at once, read by two threads; another one is refused."""

    def __init__(self, files: ShownFiles) -> None:
        self._files = files
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-download")
        self._going_on = set[asyncio.Task[Any]]()

    async def close(self) -> None:
        """Wait for the downloads that the server has cancelled: each has a process or a thread to end."""
        if self._going_on:
            await asyncio.wait(self._going_on, timeout=_ENDED_WITHIN_S)
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = _parsed(request)
        if len(self._going_on) >= _MOST_AT_ONCE:
            raise TooBusy
        task = asyncio.current_task()
        assert task is not None
        self._going_on.add(task)
        try:
            file = await self._in_thread(partial(self._files.one, asked.run))
            async with aclosing(self._chunks(file, asked)) as chunks:
                return await self._send(request, chunks, _headers(file, asked.format))
        finally:
            self._going_on.discard(task)

    async def _send(
        self, request: web.Request, chunks: AsyncGenerator[bytes], headers: dict[str, str]
    ) -> web.StreamResponse:
        first = await anext(chunks, b"")  # an error before it is one of the request
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        connection = request.transport  # the request forgets it when the server ends
        try:
            await _write(response, first)
            async for chunk in chunks:
                if connection is None or connection.is_closing():
                    return response
                await _write(response, chunk)
        except (HeadraceError, ConnectionError, TimeoutError):
            _cut(connection)
        except asyncio.CancelledError:  # the server ends, and does not wait for a client that takes nothing
            _cut(connection)
            raise
        return response

    def _chunks(self, file: ShownFile, asked: DownloadAsked) -> AsyncGenerator[bytes]:
        return self._parquet(file, asked) if asked.format is DownloadFormat.PARQUET else self._texts(file, asked)

    async def _texts(self, file: ShownFile, asked: DownloadAsked) -> AsyncGenerator[bytes]:
        chunks: Generator[bytes] = text_chunks(file, asked)
        step: asyncio.Future[bytes | None] | None = None
        try:
            while True:
                step = asyncio.get_running_loop().run_in_executor(self._threads, next, chunks, None)
                chunk = await asyncio.shield(step)
                if chunk is None:
                    return
                yield chunk
        finally:
            if step is None or step.done():
                chunks.close()
            else:  # the server ends while a batch is read
                step.add_done_callback(lambda _: chunks.close())

    async def _parquet(self, file: ShownFile, asked: DownloadAsked) -> AsyncGenerator[bytes]:
        check_can_write()
        columns = await self._in_thread(partial(_column_names, file, asked))
        told = msgspec.json.encode(ParquetAsked(str(file.path), asked.filter, columns))
        process = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, limit=_PIPE_BYTES
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(told)
            process.stdin.close()
            while chunk := await process.stdout.read(_PIPE_BYTES):
                yield chunk
            await _check_ended_well(process)
        finally:
            if process.returncode is None:
                process.kill()
            # Read to the end, a megabyte at most: asyncio does not look at a full pipe, and `wait` waits for its end.
            await process.communicate()

    async def _in_thread(self, function: partial[Taken]) -> Taken:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _parsed(request: web.Request) -> DownloadAsked:
    try:
        return msgspec.convert({**request.query, **request.match_info}, DownloadAsked, strict=False)
    except msgspec.ValidationError as error:
        raise unreadable("The request for a download", DownloadAsked, error) from None


def _column_names(file: ShownFile, asked: DownloadAsked) -> list[str]:
    """The columns by their full names; what cannot be asked for is refused here."""
    with asked.query.view(file) as view:
        view.opened()
        return [column.full_name for column in asked.query.every(view.catalog())]


async def _check_ended_well(process: asyncio.subprocess.Process) -> None:
    """Raise what the process says, where it failed."""
    assert process.stderr is not None
    said = await process.stderr.read(_MOST_SAID_BYTES)
    if await process.wait() == 0:
        return
    try:
        error = msgspec.json.decode(said, type=ErrorBody)
    except msgspec.MsgspecError:
        error = ErrorBody("The process that writes Parquet has ended.", "Try again, or download CSV or JSON lines.")
    raise HeadraceError(error.message, fix=error.fix)


def _headers(file: ShownFile, format: DownloadFormat) -> dict[str, str]:
    name = f"{file.path.stem}.{format.value}"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)
    return {
        "Content-Type": format.content_type,
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, errors='replace')}",
    }


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    if chunk:
        async with asyncio.timeout(_TAKEN_WITHIN_S):
            await response.write(chunk)


def _cut(connection: asyncio.Transport | None) -> None:
    if connection is not None:
        connection.abort()
