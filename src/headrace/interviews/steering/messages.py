"""The requests and replies that steer a run from another process, and the socket they travel through.

    <run file>.sock     a Unix socket beside the run file, mode 0600, there while the run goes on
    a message           a frame (headrace.framing) with a msgpack body
    an exchange         one request, one reply; then the connection is closed

Does not cover: answering (interviews.steering.server), or asking (interviews.steering.client).
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from headrace.framing import framed
from headrace.models.model_endpoints import ModelEndpoint
from headrace.progress.pace import Progress

# A client waits longer than it takes to close the connections of silent clients before it.
ANSWER_WITHIN_S = 5.0
SERVE_WITHIN_S = 2.0
MOST_REQUEST_BYTES = 1_000
MOST_REPLY_BYTES = 64_000
# A socket's address has room for 108 bytes on Linux and 104 on macOS, the closing zero among them.
_MOST_ADDRESS_BYTES = 103
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class StateRequest(msgspec.Struct, frozen=True, tag="state"):
    """Changes nothing."""


class PauseRequest(msgspec.Struct, frozen=True, tag="pause"):
    """Admit nothing more, let interviews in flight end, and wait."""


class ResumeRequest(msgspec.Struct, frozen=True, tag="resume"):
    """Admit again."""


class TuneRequest(msgspec.Struct, frozen=True, tag="tune"):
    """Let so many interviews be in flight."""

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=10**9)]


class StopRequest(msgspec.Struct, frozen=True, tag="stop"):
    """Stop as Ctrl-C does: once, interviews in flight end; twice, stop now."""


class RetryRequest(msgspec.Struct, frozen=True, tag="retry"):
    """Ask those that have failed again, whatever the cause."""


SteeringRequest: TypeAlias = StateRequest | PauseRequest | ResumeRequest | TuneRequest | StopRequest | RetryRequest


class StateReply(msgspec.Struct, frozen=True, tag="run"):
    """How the run stands after a request: its process, and the endpoints of its models, of which `left_out` did not
    fit. `retried` is how many failed interviews it asks again because of the request.
    """

    pid: int
    concurrency: int
    is_stopping: bool
    progress: Progress
    retried: int = 0
    endpoints: tuple[ModelEndpoint, ...] = ()
    left_out: int = 0


class RefusalReply(msgspec.Struct, frozen=True, tag="refused"):
    """The request made no sense, or came too late."""

    reason: str


SteeringReply: TypeAlias = StateReply | RefusalReply


def encoded(message: SteeringRequest | SteeringReply) -> bytes:
    """Return the frame that carries a message."""
    return framed(msgspec.msgpack.encode(message))


def socket_path(run_path: Path) -> Path:
    return run_path.with_name(run_path.name + ".sock")


@contextmanager
def short_name(path: Path) -> Generator[Path]:
    """A path to the same file that a socket's address has room for, with two bytes to spare."""
    if len(os.fsencode(path)) + 2 <= _MOST_ADDRESS_BYTES:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
        link = Path(directory) / "s"
        link.symlink_to(path)
        yield link


def is_same_user(connection: socket.socket) -> bool:
    """Whether our own user is at the other end. Where the system does not say, the socket's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(credentials)[1] == os.geteuid()
