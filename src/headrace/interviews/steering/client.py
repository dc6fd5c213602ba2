"""Sends a steering request to a run in another process, and explains why it cannot.

Does not cover: the messages (interviews.steering.messages), or who answers (interviews.steering.server).
"""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headrace.errors import NotRunning, NotSteerable, RunFileError
from headrace.framing import BadFrame, receive
from headrace.interviews.steering.messages import (
    ANSWER_WITHIN_S,
    MOST_REPLY_BYTES,
    RefusalReply,
    StateReply,
    StateRequest,
    SteeringReply,
    SteeringRequest,
    encoded,
    is_same_user,
    short_name,
    socket_path,
)
from headrace.store.lock import writer_of
from headrace.store.run_file.reader import open_run_file

_replies: msgspec.msgpack.Decoder[SteeringReply] = msgspec.msgpack.Decoder(SteeringReply)


def ask(run_path: Path, request: SteeringRequest) -> StateReply:
    """Have the process that runs this file do something; how the run stands then."""
    path = run_path.expanduser().resolve()  # as the run itself does
    try:
        with _connected(path) as connection:
            reply = _exchange(connection, request, path)
    except (TimeoutError, BlockingIOError):
        raise _unanswered(path) from None
    except OSError as error:
        raise _unreachable(path, error) from None
    match reply:
        case StateReply():
            return reply
        case RefusalReply(reason):
            raise NotSteerable(f"The run of {path} did not take the request: {reason}.", path=path)


def state_of(run_path: Path) -> StateReply | None:
    """How a run stands that goes on now; None where none does."""
    try:
        return ask(run_path, StateRequest())
    except NotRunning:
        return None


@contextmanager
def _connected(path: Path) -> Generator[socket.socket]:
    if not hasattr(socket, "AF_UNIX"):
        raise FileNotFoundError
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_WITHIN_S)
        with short_name(socket_path(path)) as name:
            connection.connect(str(name))
        if not is_same_user(connection):
            raise PermissionError
        yield connection


def _exchange(connection: socket.socket, request: SteeringRequest, path: Path) -> SteeringReply:
    connection.sendall(encoded(request))
    try:
        return _replies.decode(receive(connection, MOST_REPLY_BYTES))
    except (BadFrame, msgspec.DecodeError) as error:
        raise NotSteerable(
            f"The run of {path} answers in a way that is not known here ({error}).",
            path=path,
            fix="Use the version of Headrace that started it.",
        ) from None


def _unanswered(path: Path) -> NotSteerable:
    return NotSteerable(
        f"The run of {path} (process {writer_of(path) or 'unknown'}) does not answer within {ANSWER_WITHIN_S:g} s.",
        path=path,
        fix="It may be stopped or very busy: try again, or look at that process.",
    )


def _unreachable(path: Path, error: OSError) -> RunFileError:
    open_run_file(path).close()  # says so where there is no run file at all
    holder = writer_of(path)
    if holder is None:
        return NotRunning(f"Nothing is running {path} now.", path=path, fix=f"To go on with it: headrace resume {path}")
    if isinstance(error, PermissionError):
        return NotSteerable(
            f"{path} is being run by another user (process {holder}).", path=path, fix="Only its owner may steer it."
        )
    return NotSteerable(
        f"{path} is being run by process {holder}, which cannot be asked: it is just starting or ending,"
        " or no socket could be made beside the file.",
        path=path,
        fix="Try again; a run that has no socket can be stopped with Ctrl-C where it was started.",
    )
