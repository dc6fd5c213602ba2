"""The process that holds a local model: started by the first call, restarted when it dies, shared, and ended.

A model has a process of its own because llama.cpp aborts where Python would raise, and because ending a process is the
only sure way to have its memory back. No port is opened: a socket pair joins the two.

Why it is neither a worker nor a command (workers.pool, workers.command), which are child processes too:
- Both belong to a warden. A run without workers has none, and on Windows there is none; inside a worker that asks a
  local model, a second warden would have to watch what the first one already counts as part of the worker's tree.
- Both are held to a limit that is lent, and killed above it. A model needs the same memory from its first call to its
  last: it counts in the budget (memory.gauge reads the whole tree, the mapped model file included), but killing it
  would cost every call in flight, and the next call would load it again.
- A worker is a fork of a process that has loaded Python and our modules; llama.cpp starts threads that do not survive a
  fork. A command runs once, with files as its streams; a model answers thousands of calls, many at a time.
What can be shared is: frames on the socket (headrace.framing).

Does not cover: what a call says (models.protocols.local), or the program that runs there
(models.protocols.local_child).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from headrace.errors import HeadraceError, ModelUnusable, ProviderUnavailable
from headrace.framing import BadFrame, Frames, framed
from headrace.models.protocols.local_child import NUMBER

_ROOT = str(Path(__file__).parents[3])
PROGRAM = """import sys; sys.path.append(sys.argv.pop(1))
from headrace.models.protocols.local_child import main; main()"""
_READ_BYTES = 1 << 16
_MOST_CRASHES = 3
_END_WITHIN_S = 2.0
_SAY_WHY_WITHIN_S = 20.0
_KEPT_BYTES = 4_000
_KEPT_LINES = 5
_RETRY_AFTER_S = 0.1
_ENVIRONMENT = {
    # Threads that wait for each other sleep. Where they spin, a busy machine makes answers several times slower.
    "OMP_WAIT_POLICY": "PASSIVE",
    # llama.cpp would look for a debugger when it aborts.
    "GGML_NO_BACKTRACE": "1",
}


class Settings(msgspec.Struct, frozen=True):
    """The settings that a process is started with; providers with equal settings share one process."""

    path: str
    context: int
    parallel: int
    threads: int


class _ProcessEnded(HeadraceError):
    """The process ended before it replied."""


class _CannotLoad(HeadraceError):
    """The process reports that llama.cpp cannot load this model."""


class _Child:
    """One process from its start to its end: calls in flight, its log, its exit."""

    def __init__(self, settings: Settings, connection: socket.socket) -> None:
        # Of mode 0700; the program removes it when it has loaded the model.
        self._directory = tempfile.mkdtemp(prefix="headrace-model-")
        written = msgspec.json.encode(settings).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, _ROOT, written, self._directory],
            stdin=connection.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**_ENVIRONMENT, **os.environ},
            start_new_session=True,  # Ctrl-C is for the parent, which lets calls in flight end
        )
        self._replies: dict[int, asyncio.Future[bytes]] = {}  # bounded by the calls in flight
        self._number = 0
        self._log = b""
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.is_alive = True
        self.answered = False

    @classmethod
    async def start(cls, settings: Settings) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                child = cls(settings, theirs)
            except BaseException:
                ours.close()
                raise
        loaded = child._expect(0)
        try:
            await child._connect(ours)
            loaded_reply = msgspec.json.decode(await loaded)
        except _ProcessEnded:
            await child.close()
            return child
        except BaseException:
            await child.close()
            raise
        if "error" in loaded_reply:
            await child.close(_SAY_WHY_WITHIN_S)  # it ends by itself; killed, it would not have written the cause
            raise _CannotLoad(child.log_tail() or loaded_reply["error"]["message"])
        return child

    async def call(self, body: bytes) -> bytes:
        self._number += 1
        number = self._number
        reply = self._expect(number)
        try:
            if self._writer is not None and self.is_alive:
                self._writer.write(framed(NUMBER.pack(number) + body))
            else:
                raise _ProcessEnded("it has ended")
            return await reply
        finally:
            self._replies.pop(number, None)

    async def close(self, within_s: float = _END_WITHIN_S) -> None:
        """Close the socket, which ends the process; kill it where that takes too long."""
        self.is_alive = False
        if self._writer is not None:
            self._writer.close()
        try:
            await asyncio.to_thread(self._process.wait, within_s)
        except subprocess.TimeoutExpired:
            pass
        finally:  # also where the caller is cancelled meanwhile: nobody closes it again
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self._directory, ignore_errors=True)
            for task in self._tasks:
                with suppress(asyncio.CancelledError):
                    await task
            assert self._process.stdout is not None
            self._process.stdout.close()

    def log_tail(self) -> str:
        """Return the last lines that it wrote to stderr, without llama.cpp's clock."""
        lines = self._log.decode(errors="replace").splitlines()[-_KEPT_LINES:]
        return "; ".join(line.partition(" E ")[2] or line for line in lines)

    def _expect(self, number: int) -> asyncio.Future[bytes]:
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        return reply

    async def _connect(self, connection: socket.socket) -> None:
        reader, self._writer = await asyncio.open_connection(sock=connection)
        log = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(log), self._process.stdout
        )
        self._tasks = [asyncio.create_task(self._listen(reader)), asyncio.create_task(self._keep_log(log))]

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Pass replies on until the process closes its end or sends no valid frame."""
        frames = Frames(bytes)
        with suppress(ConnectionError, BadFrame):
            while data := await reader.read(_READ_BYTES):
                for body in frames.feed(data):
                    self._answer(body)
        self.is_alive = False
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(_ProcessEnded("it has ended"))

    def _answer(self, body: bytes) -> None:
        (number,) = NUMBER.unpack_from(body)
        self.answered = self.answered or number > 0
        reply = self._replies.get(number)
        if reply is not None and not reply.done():  # the caller may have been cancelled
            reply.set_result(body[NUMBER.size :])

    async def _keep_log(self, log: asyncio.StreamReader) -> None:
        while part := await log.read(_KEPT_BYTES):
            self._log = (self._log + part)[-_KEPT_BYTES:]


class ModelProcess:
    """A model that answers calls; starts a new process when one has died, and gives up after three in a row."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._crashes = 0
        self._fault = ""  # why no call will succeed any more
        self.users = 0

    async def call(self, body: bytes) -> bytes:
        async with self._starting:
            child = await self._running()
        try:
            return await child.call(body)
        except _ProcessEnded:
            raise ProviderUnavailable("the local model's process ended", retry_after_s=_RETRY_AFTER_S) from None

    async def close(self) -> None:
        if self._child is not None:
            await self._child.close()

    async def _running(self) -> _Child:
        while self._child is None or not self._child.is_alive:
            if self._child is not None:
                await self._note_crash(self._child)
            if not self._fault:
                try:
                    self._child = await _Child.start(self._settings)
                except _CannotLoad as error:
                    self._fault = error.message
            if self._fault:
                raise self._unusable()
        return self._child

    async def _note_crash(self, child: _Child) -> None:
        self._child = None
        await child.close()
        self._crashes = 1 if child.answered else self._crashes + 1
        if self._crashes >= _MOST_CRASHES:
            words = child.log_tail() or "it said nothing; perhaps there was not enough memory"
            self._fault = f"its process ended {_MOST_CRASHES} times in a row: {words}"

    def _unusable(self) -> ModelUnusable:
        """Make a new error for each call: one that is raised again and again keeps a traceback of every time."""
        return ModelUnusable(
            f"The local model {Path(self._settings.path).name} cannot be used: {self._fault}.",
            fix="Give path= a whole GGUF file, and a smaller context= or parallel= where memory is short.",
        )


# By event loop: futures and streams belong to one.
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Settings, ModelProcess]] = WeakKeyDictionary()


def borrow(settings: Settings) -> ModelProcess:
    """Return the process for these settings, shared by all providers on this event loop; call `give_back` once."""
    process = _shared.setdefault(asyncio.get_running_loop(), {}).setdefault(settings, ModelProcess(settings))
    process.users += 1
    return process


async def give_back(settings: Settings) -> None:
    """End the use of a borrowed process; the last one to do so ends the process."""
    processes = _shared[asyncio.get_running_loop()]
    process = processes[settings]
    process.users -= 1
    if process.users == 0:
        del processes[settings]
        await process.close()
