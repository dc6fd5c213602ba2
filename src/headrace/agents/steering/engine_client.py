"""Asks an engine in another process.

Does not cover: the messages (engine_messages), the socket (store.holder_socket), or who answers (engine_server).
"""

from __future__ import annotations

from pathlib import Path
from typing import Never

import msgspec

from headrace.agents.steering.engine_messages import (
    MOST_REPLY_BYTES,
    AgentRunReply,
    EmittedEvent,
    EmittedReply,
    EmittedRequest,
    EngineAnswer,
    EngineReply,
    EngineStateRequest,
    RunRequest,
    path_of,
)
from headrace.errors import NotRunning, NotSteerable
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.store.holder_socket.request_client import RequestClient
from headrace.store.holder_socket.socket_address import RefusalReply


def _check(path: Path) -> None:
    with reading_engine(path):
        pass


_client: RequestClient[EngineAnswer] = RequestClient(
    holder="engine",
    replies=msgspec.msgpack.Decoder(EngineAnswer | RefusalReply, dec_hook=path_of),
    most_reply_bytes=MOST_REPLY_BYTES,
    check=_check,
    to_start="Open the engine again with your program: what is unfinished goes on.",
    to_stop="an engine without a socket is steered by the program that holds it.",
)


def engine_state(path: Path) -> EngineReply | None:
    """How an engine stands that has this file open now, for who looks again soon; None where none has."""
    try:
        reply = _client.look(path, EngineStateRequest())
    except NotRunning:
        return None
    return reply if isinstance(reply, EngineReply) else _strange(path)


def steer_run(path: Path, request: RunRequest) -> AgentRunReply:
    """Have the engine do something about a run; how the run stands then."""
    reply = _client.ask(path, request)
    return reply if isinstance(reply, AgentRunReply) else _strange(path)


def emitted_by(path: Path, run: int) -> tuple[EmittedEvent, ...]:
    """The latest events that a run emitted, oldest first; none where no engine has the file open."""
    try:
        reply = _client.look(path, EmittedRequest(run))
    except NotRunning:
        return ()
    return reply.events if isinstance(reply, EmittedReply) else _strange(path)


def _strange(path: Path) -> Never:
    raise NotSteerable(f"The engine of {path} answers something else than it was asked.", path=path)
