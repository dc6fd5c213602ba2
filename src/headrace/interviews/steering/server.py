"""Answers steering requests of a run through a socket beside its run file: makes it, answers, removes it.

It lives on the engine's loop and costs nothing without clients. A client gets a few seconds and a few hundred
bytes, and at most a handful are served at a time: whatever they do, the run does not notice. Where no socket can be
made (no such thing on this system or file system), the run goes on without one.
Does not cover: the messages (interviews.steering.messages), or asking (interviews.steering.client).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import structs

from headrace.errors import NotSteerable
from headrace.framing import BadFrame, receive_async
from headrace.interviews.run import SurveyRun
from headrace.interviews.steering.messages import (
    MOST_REQUEST_BYTES,
    SERVE_WITHIN_S,
    PauseRequest,
    RefusalReply,
    ResumeRequest,
    RetryRequest,
    StateReply,
    StateRequest,
    SteeringReply,
    SteeringRequest,
    StopRequest,
    TuneRequest,
    encoded,
    is_same_user,
    short_name,
    socket_path,
)
from headrace.models.model_endpoints import ModelEndpoint

_MOST_CLIENTS = 8
# So many letters of up to four bytes leave room in a reply.
_MOST_ENDPOINTS, _MOST_LETTERS = 24, 200
_BACKLOG = 64
_ACCEPT_AGAIN_AFTER_S = 1.0

_log = logging.getLogger("headrace")
_requests: msgspec.msgpack.Decoder[SteeringRequest] = msgspec.msgpack.Decoder(SteeringRequest)


@asynccontextmanager
async def steerable(
    run_path: Path, run: SurveyRun, endpoints: Callable[[], list[ModelEndpoint]]
) -> AsyncGenerator[None]:
    """While the block runs, the run can be steered. `endpoints` gives those of its models. The caller holds the file's
    lock: a socket found is a dead one.
    """
    path = socket_path(run_path)
    listener = _listen_at(path)
    if listener is None:
        yield
        return
    answering = asyncio.create_task(_SteeringServer(listener, run, run_path.name, endpoints).answer())
    try:
        yield
    finally:
        answering.cancel()
        await asyncio.wait([answering])
        listener.close()
        with suppress(OSError):  # gone, or not ours to remove any more
            path.unlink()


def _listen_at(path: Path) -> socket.socket | None:
    if not hasattr(socket, "AF_UNIX"):
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind(listener, path)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        return None
    return listener


def _bind(listener: socket.socket, path: Path) -> None:
    # A mode can only be set after binding, and a umask is the whole process's: so it is bound in a private
    # directory, and gets its name, replacing a dead one, when its mode is right.
    with (
        tempfile.TemporaryDirectory(prefix=".headrace-", dir=path.parent) as private,
        short_name(Path(private)) as short,
    ):
        listener.bind(str(short / "s"))
        bound = Path(private) / "s"
        bound.chmod(0o600)
        bound.replace(path)


class _SteeringServer:
    def __init__(
        self, listener: socket.socket, run: SurveyRun, name: str, endpoints: Callable[[], list[ModelEndpoint]]
    ) -> None:
        self._listener = listener
        self._run = run
        self._name = name
        self._endpoints = endpoints
        self._free_clients = asyncio.Semaphore(_MOST_CLIENTS)

    async def answer(self) -> None:
        """Serve clients until cancelled."""
        async with asyncio.TaskGroup() as clients:
            while True:
                await self._free_clients.acquire()
                clients.create_task(self._serve(await self._next_client()))

    async def _next_client(self) -> socket.socket:
        while True:
            try:
                return (await asyncio.get_running_loop().sock_accept(self._listener))[0]
            except OSError:  # no descriptor left, or a client that went before its turn
                await asyncio.sleep(_ACCEPT_AGAIN_AFTER_S)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):  # it is gone, or out of time
                async with asyncio.timeout(SERVE_WITHIN_S):
                    if is_same_user(connection):
                        reply = await self._reply_to(connection)
                        await asyncio.get_running_loop().sock_sendall(connection, encoded(reply))
        finally:
            self._free_clients.release()

    async def _reply_to(self, connection: socket.socket) -> SteeringReply:
        try:
            request = _requests.decode(await receive_async(connection, MOST_REQUEST_BYTES))
        except (BadFrame, msgspec.DecodeError) as error:
            return RefusalReply(str(error))
        if _has_left(connection):
            raise ConnectionResetError("the client has given up: its request must not be carried out later")
        if not isinstance(request, StateRequest):
            _log.info("%s: told from another process: %s", self._name, request)
        try:
            retried = self._carry_out(request)
        except NotSteerable as error:
            return RefusalReply(error.message)
        return state_reply(self._run, self._endpoints(), retried)

    def _carry_out(self, request: SteeringRequest) -> int:
        """Do what is asked; how many failed interviews are asked again."""
        match request:
            case StateRequest():
                pass
            case PauseRequest():
                self._run.pause()
            case ResumeRequest():
                self._run.resume()
            case TuneRequest(concurrency):
                self._run.keep_concurrency(concurrency)
            case StopRequest():
                self._run.stop()
            case RetryRequest():
                return self._run.retry_failed()
            case _:
                assert_never(request)
        return 0


def state_reply(run: SurveyRun, endpoints: list[ModelEndpoint], retried: int = 0) -> StateReply:
    """How a run of this process stands, in a reply that is not too long."""
    # Those that keep a run waiting first: where there are too many, the others are left out.
    shown = sorted(endpoints, key=lambda each: each.state == "open")[:_MOST_ENDPOINTS]
    progress = run.progress()
    return StateReply(
        pid=os.getpid(),
        concurrency=run.concurrency,
        is_stopping=run.was_stopped,
        progress=replace(progress, notice=progress.notice[:_MOST_LETTERS]),
        retried=retried,
        endpoints=tuple(structs.replace(each, **_cut_texts(each)) for each in shown),
        left_out=len(endpoints) - len(shown),
    )


def _cut_texts(endpoint: ModelEndpoint) -> dict[str, str]:
    return {name: getattr(endpoint, name)[:_MOST_LETTERS] for name in ("model", "service", "reason")}


def _has_left(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
