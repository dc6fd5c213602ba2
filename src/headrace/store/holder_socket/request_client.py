"""Sends a request to the process that holds a file, and explains why it cannot.

Does not cover: what messages mean (interviews.steering, agents.steering), or who answers (request_server).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from headrace.errors import NotRunning, NotSteerable, RunFileError
from headrace.framing import BadFrame, receive
from headrace.store.holder_socket.socket_address import (
    ANSWER_WITHIN_S,
    RefusalReply,
    encoded,
    is_same_user,
    short_name,
    socket_path,
)
from headrace.store.lock import writer_of

Reply = TypeVar("Reply", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClient(Generic[Reply]):
    """Asks the holders of one kind of file. `holder` is what such a process is called ("run", "engine"), `check` raises
    where there is no such file, `to_start` says how to have it held again, with the path for `{path}`.
    """

    holder: str
    replies: msgspec.msgpack.Decoder[Reply | RefusalReply]
    most_reply_bytes: int
    check: Callable[[Path], object]
    to_start: str
    to_stop: str

    def ask(self, given_path: Path, request: msgspec.Struct) -> Reply:
        """Have the process that holds this file do something; what it answers."""
        path = given_path.expanduser().resolve()  # as the holder itself does
        try:
            with _connected(path) as connection:
                reply = self._exchange(connection, request, path)
        except (TimeoutError, BlockingIOError):
            raise self._unanswered(path) from None
        except OSError as error:
            raise self._unreachable(path, error) from None
        if isinstance(reply, RefusalReply):
            reason = reply.reason.rstrip(".")
            raise NotSteerable(f"The {self.holder} of {path} did not take the request: {reason}.", path=path)
        return reply

    def _exchange(self, connection: socket.socket, request: msgspec.Struct, path: Path) -> Reply | RefusalReply:
        connection.sendall(encoded(request))
        try:
            return self.replies.decode(receive(connection, self.most_reply_bytes))
        except ConnectionError:  # it was there, and has given up or ended
            raise NotSteerable(
                f"The {self.holder} of {path} took the request and did not say in time what came of it.",
                path=path,
                fix="It may be very busy, or ending: look how it stands before you ask again.",
            ) from None
        except (BadFrame, msgspec.DecodeError) as error:
            raise NotSteerable(
                f"The {self.holder} of {path} answers in a way that is not known here ({error}).",
                path=path,
                fix="Use the version of Headrace that started it.",
            ) from None

    def _unanswered(self, path: Path) -> NotSteerable:
        holder = writer_of(path) or "unknown"
        return NotSteerable(
            f"The {self.holder} of {path} (process {holder}) does not answer within {ANSWER_WITHIN_S:g} s.",
            path=path,
            fix="It may be stopped or very busy: try again, or look at that process.",
        )

    def _unreachable(self, path: Path, error: OSError) -> RunFileError:
        self.check(path)  # says so where there is no such file at all
        holder = writer_of(path)
        if holder is None:
            return NotRunning(f"Nothing is running {path} now.", path=path, fix=self.to_start.format(path=path))
        if isinstance(error, PermissionError):
            return NotSteerable(
                f"{path} is being run by another user (process {holder}).",
                path=path,
                fix="Only its owner may steer it.",
            )
        return NotSteerable(
            f"{path} is being run by process {holder}, which cannot be asked: it is just starting or ending,"
            " or no socket could be made beside the file.",
            path=path,
            fix=f"Try again; {self.to_stop}",
        )


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
