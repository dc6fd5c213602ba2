"""A node's cache of files in prompts: each is fetched from the controller once, whichever of its workers ask for it.

    worker: NodeFileSource ── FileAsked ──► NodeFiles ── FileWanted ──► controller (cluster.sent_files)
                           ◄─ FileAnswer ──     │     ◄── FilePiece ───
                                                ▼
                                 a private temporary directory: a file for each digest, the latest ones

A worker asks through a socket in that directory and waits: in whatever thread it is, since it is answered by another
process. A copy makes no room for others until the worker has it open and ends the connection. What arrived has the
digest that was asked for, or is refused. The directory is removed with the node's processes, however they end
(workers.warden.standby); one that was left all the same is removed by the next of its kind.

Does not cover: the worker's side (cluster.node_file_source).
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from headrace.cluster.node_file_source import FileAnswer, FileAsked, bound_address
from headrace.cluster.tunnel_wire import BlockTaken, FileLeft, FilePiece, FileRefused, FileWanted, FromFiles, ToFiles
from headrace.framing import HEADER, framed
from headrace.memory.measure.os_limits import ON_LINUX
from headrace.memory.measure.shared_files import tmpfs_mounts
from headrace.survey.files.checked_file import new_digest
from headrace.survey.files.owned_folders import OwnedFolder

_FOLDER = "headrace-node-"
_MOST_BYTES = 2 << 30
_MOST_IN_MEMORY_BYTES = 64 << 20  # where the temporary directory is memory itself
_PART_OF_FREE = 4
_MOST_AT_ONCE = 4
_LONGEST_QUESTION_BYTES = 1 << 16
_numbers = count(1)  # of the process: what is late for one cache is for no other


class NodeFiles:
    """Made by `start`. `post` sends a message to the controller; what it answers is given to `take`."""

    def __init__(self, post: Callable[[FromFiles], None]) -> None:
        self._post = post
        self._owned = OwnedFolder(_FOLDER)
        self._most_bytes = _most_kept_bytes(self.folder)
        self._kept: OrderedDict[str, int] = OrderedDict()  # size by digest, the latest last
        self._kept_bytes = 0
        self._asking: Counter[str] = Counter()  # by digest: how many workers wait for it or are about to open it
        self._fetches: dict[str, asyncio.Task[str]] = {}
        self._arriving: dict[int, _ArrivingFile] = {}
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._answering: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls, post: Callable[[FromFiles], None]) -> NodeFiles:
        made = cls(post)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with bound_address(made.folder) as address:
            listening.bind(address)
        made._server = await asyncio.start_unix_server(made._connected, sock=listening)
        return made

    @property
    def folder(self) -> str:
        return self._owned.name

    def take(self, message: ToFiles) -> None:
        arriving = self._arriving.get(message.number)
        if arriving is None:
            return
        match message:
            case FilePiece():
                arriving.write(message.data)
                if arriving.has_failed:
                    self._post(FileLeft(message.number))
                elif message.ends_block:
                    self._post(BlockTaken(message.number))
            case FileRefused():
                arriving.refuse(message.reason)

    async def close(self) -> None:
        """Forget everything, and remove the directory."""
        if self._server is not None:
            self._server.close()
        tasks: list[asyncio.Task[Any]] = [*self._answering, *self._fetches.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._owned.cleanup()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            with suppress(OSError, EOFError, msgspec.DecodeError):  # a worker that was killed meanwhile
                asked = msgspec.msgpack.decode(await _body(reader), type=FileAsked)
                with self._stays(asked.digest):
                    writer.write(framed(msgspec.msgpack.encode(await self._answer(asked))))
                    await reader.read(1)  # the end: the worker has it open, or is no more
        finally:
            self._answering.discard(task)
            writer.close()

    @contextmanager
    def _stays(self, digest: str) -> Generator[None]:
        """Remove no copy of it meanwhile."""
        self._asking[digest] += 1
        try:
            yield
        finally:
            self._asking -= Counter({digest: 1})
            self._make_room()

    async def _answer(self, asked: FileAsked) -> FileAnswer:
        if asked.digest not in self._kept and (problem := await self._fetched(asked)):
            return FileAnswer("", problem)
        self._kept.move_to_end(asked.digest)
        return FileAnswer(str(self._place(asked.digest)))

    async def _fetched(self, asked: FileAsked) -> str:
        """Why the file cannot be had; empty where it is here now. Others may wait for it too."""
        fetch = self._fetches.get(asked.digest)
        if fetch is None:
            fetch = self._fetches[asked.digest] = asyncio.create_task(self._fetch(asked))
            fetch.add_done_callback(lambda _: self._fetches.pop(asked.digest, None))
        return await asyncio.shield(fetch)

    async def _fetch(self, asked: FileAsked) -> str:
        """Why the file cannot be had; empty where it is here now."""
        async with self._turns:
            number = next(_numbers)
            try:
                arriving = _ArrivingFile(Path(self.folder) / f"{number}.part", asked)
                if not (problem := await self._arrived(number, arriving, asked)):
                    self._keep(arriving, asked)
            except OSError as error:
                return _not_kept(error)
            return problem

    async def _arrived(self, number: int, arriving: _ArrivingFile, asked: FileAsked) -> str:
        """Why the file did not come; empty where it did."""
        self._arriving[number] = arriving
        try:
            self._post(FileWanted(number, asked.path, asked.digest, asked.size))
            return await arriving.ended
        except asyncio.CancelledError:
            self._post(FileLeft(number))
            raise
        finally:
            del self._arriving[number]
            arriving.close()

    def _keep(self, arrived: _ArrivingFile, asked: FileAsked) -> None:
        arrived.path.rename(self._place(asked.digest))
        self._kept[asked.digest] = asked.size
        self._kept_bytes += asked.size
        self._make_room()

    def _make_room(self) -> None:
        """Remove the oldest copies that nobody is about to open. Whoever reads one has it open, and reads on."""
        for digest in [digest for digest in self._kept if not self._asking[digest]]:
            if self._kept_bytes <= self._most_bytes or len(self._kept) == 1:
                return
            self._kept_bytes -= self._kept.pop(digest)
            self._place(digest).unlink(missing_ok=True)

    def _place(self, digest: str) -> Path:
        return Path(self.folder) / digest


class _ArrivingFile:
    """A file on its way. `ended` gets the reason why it did not come whole, empty where it did."""

    def __init__(self, path: Path, asked: FileAsked) -> None:
        self.path = path
        self._asked = asked
        self._digest = new_digest()
        self._left_bytes = asked.size
        self._file = path.open("xb", buffering=0)
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def has_failed(self) -> bool:
        return self.ended.done() and bool(self.ended.result())

    def write(self, data: bytes) -> None:
        if self.ended.done():
            return
        try:
            unwritten = memoryview(data)
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            self.refuse(_not_kept(error))
            return
        self._digest.update(data)
        self._left_bytes -= len(data)
        if self._left_bytes <= 0:
            is_right = self._left_bytes == 0 and self._digest.hexdigest() == self._asked.digest
            self.refuse("" if is_right else "it did not arrive as it was sent")

    def refuse(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    def close(self) -> None:
        self._file.close()
        if not self.ended.done() or self.ended.cancelled() or self.has_failed:
            self.path.unlink(missing_ok=True)


def _not_kept(error: OSError) -> str:
    return f"the node cannot keep a copy of it: {error.strerror or error}"


async def _body(reader: asyncio.StreamReader) -> bytes:
    (size,) = HEADER.unpack(await reader.readexactly(HEADER.size))
    if size > _LONGEST_QUESTION_BYTES:
        raise EOFError
    return await reader.readexactly(size)


def _most_kept_bytes(folder: str) -> int:
    is_in_memory = ON_LINUX and any(folder.startswith(place) for place in tmpfs_mounts())
    most_bytes = _MOST_IN_MEMORY_BYTES if is_in_memory else _MOST_BYTES
    return min(most_bytes, shutil.disk_usage(folder).free // _PART_OF_FREE)
