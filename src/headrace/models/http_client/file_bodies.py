"""Bodies with files in them, read from disk in blocks while they are sent.

    [text, file, text, ...] ──► FileBody: the size is known ──► payload ──► block by block, as base64, to the service

A request in flight costs a block, not its pictures: a body waits for its turn, and few are being sent at once. A retry
reads the files again. Of a file that changed nothing is sent; one that changes meanwhile is never sent whole.
Does not cover: what the content parts look like (models.protocols), or reading and checking files
(survey.files.checked_file).
"""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from aiohttp.payload import Payload

from headrace.errors import FileUnusable
from headrace.models.provider import Request
from headrace.survey.files.checked_file import CheckedFile
from headrace.survey.files.file_store import FileStore

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

# Each holds a block of 384 KiB and what the connection has not taken yet. More would not send faster on one line.
_MOST_UPLOADS = 32
_READERS = 4
_SLICE_BYTES = 3 << 14  # as base64, what a connection takes before it has to wait

TextPart: TypeAlias = Callable[[str], bytes]
FilePart: TypeAlias = Callable[[FileStore], tuple[bytes, bytes]]


def content(request: Request, in_words: str, text_part: TextPart, file_part: FilePart) -> list[bytes | FileStore]:
    """A prompt's content as JSON: a list of parts, in the protocol's own form. `file_part` tells what stands before and
    behind a file's base64.
    """
    made: list[bytes | FileStore] = []  # as many as a text names files
    for part in request.parts(in_words):
        if isinstance(part, FileStore):
            before, behind = file_part(part)
            made += [b"," + before, part, behind]
        elif part.strip():  # services refuse parts without text
            made.append(b"," + text_part(part))
    first = made[0]
    assert isinstance(first, bytes)
    return [b"[" + first[1:], *made[1:], b"]"]


class FileBody:
    """A body of bytes and files, in their order."""

    def __init__(self, parts: Sequence[bytes | FileStore]) -> None:
        self._parts = parts
        self.size = sum(map(_sent_bytes, parts))

    def payload(self, turn: UploadTurn) -> FilePayload:
        """What is sent, once."""
        return FilePayload(self._parts, self.size, turn)


class FilePayload(Payload):
    """A body on its way. `problem` says why it could not be sent whole, where that lay in a file."""

    _autoclose = True  # what it opens it closes when it was written, whole or not

    def __init__(self, parts: Sequence[bytes | FileStore], size: int, turn: UploadTurn) -> None:
        super().__init__(parts, content_type="application/json")
        self._size = size
        self._parts = parts
        self._turn = turn
        self.problem: FileUnusable | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("a body with files is sent in blocks")

    async def write(self, writer: AbstractStreamWriter) -> None:
        connection: asyncio.Transport | None = getattr(writer, "transport", None)  # a writer forgets it when it fails
        try:
            for part in self._parts:
                if isinstance(part, FileStore):
                    await self._write_file(part, writer)
                else:
                    await writer.write(part)
        except BaseException as error:
            if isinstance(error, FileUnusable):
                self.problem = error
            if connection is not None:
                # Closing it in order would send what is buffered first, to a service that may not read it.
                connection.abort()
            raise
        finally:
            self._turn.end()

    async def _write_file(self, file: FileStore, writer: AbstractStreamWriter) -> None:
        reading = CheckedFile(file)
        try:
            while block := await self._turn.in_thread(reading.next_block):
                view = memoryview(block)
                for at in range(0, len(view), _SLICE_BYTES):
                    await writer.write(b2a_base64(view[at : at + _SLICE_BYTES], newline=False))
        finally:
            reading.close()


class Uploads:
    """Turns for bodies with files, of one model."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_MOST_UPLOADS)
        self._threads: ThreadPoolExecutor | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[UploadTurn]:
        """Waits for a turn. It ends when the body was written, or with this block."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="headrace-files")
        await self._turns.acquire()
        turn = UploadTurn(self._turns, self._threads)
        try:
            yield turn
        finally:
            turn.end()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


class UploadTurn:
    """A turn that is being used."""

    def __init__(self, turns: asyncio.Semaphore, threads: ThreadPoolExecutor) -> None:
        self._turns = turns
        self._threads = threads
        self._is_over = False

    async def in_thread(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns; the disk may be slow, and the loop has others to serve."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._turns.release()


def _sent_bytes(part: bytes | FileStore) -> int:
    return (part.size + 2) // 3 * 4 if isinstance(part, FileStore) else len(part)
