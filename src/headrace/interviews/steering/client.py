"""Sends a steering request to a run in another process.

Does not cover: the messages (interviews.steering.messages), the socket (store.holder_socket), or who answers
(interviews.steering.server).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from headrace.errors import NotRunning
from headrace.interviews.steering.messages import MOST_REPLY_BYTES, StateReply, StateRequest, SteeringRequest
from headrace.store.holder_socket.request_client import RequestClient
from headrace.store.holder_socket.socket_address import RefusalReply
from headrace.store.run_file.reader import open_run_file

_client: RequestClient[StateReply] = RequestClient(
    holder="run",
    replies=msgspec.msgpack.Decoder(StateReply | RefusalReply),
    most_reply_bytes=MOST_REPLY_BYTES,
    check=lambda path: open_run_file(path).close(),
    to_start="To go on with it: headrace resume {path}",
    to_stop="a run that has no socket can be stopped with Ctrl-C where it was started.",
)


def ask(run_path: Path, request: SteeringRequest) -> StateReply:
    """Have the process that runs this file do something; how the run stands then."""
    return _client.ask(run_path, request)


def state_of(run_path: Path, *, is_brief: bool = False) -> StateReply | None:
    """How a run stands that goes on now; None where none does. A brief look is for who looks again soon."""
    asked = _client.look if is_brief else _client.ask
    try:
        return asked(run_path, StateRequest())
    except NotRunning:
        return None
