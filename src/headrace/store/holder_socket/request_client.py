"""Sends a request to the process that holds a file, and explains why it cannot.

Does not cover: what messages mean (interviews.steering, agents.steering), or who answers (request_server).
"""

from __future__ import annotations

import socket
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from headrace.errors import NotRunning, NotSteerable, RunFileError
from headrace.framing import BadFrame, receive
from headrace.store.holder_socket.silent_holders import SilentHolders
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
    silent: SilentHolders = field(default_factory=SilentHolders)

    def ask(self, given_path: Path, request: msgspec.Struct) -> Reply:
        """Have the process that holds this file do something; what it answers."""
        return self._answer(_resolved(given_path), request, ANSWER_WITHIN_S)

    def look(self, given_path: Path, request: msgspec.Struct) -> Reply:
        """The same for those who look again and again: they wait for a moment only, and once for all of them."""
        path = _resolved(given_path)
        with self.silent.turn(path):
            if self.silent.has(path):
                raise self._unanswered(path)
            return self._answer(path, request, self.silent.patience_s, self.silent)

    def _answer(
        self, path: Path, request: msgspec.Struct, within_s: float, silent: SilentHolders | None = None
    ) -> Reply:
        try:
            with _connected(path, within_s, silent) as connection:
                reply = self._exchange(connection, request, path)
        except (TimeoutError, BlockingIOError):
            raise self._unanswered(path, f" within {within_s:g} s" if silent is None else "") from None
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

    def _unanswered(self, path: Path, patience: str = "") -> NotSteerable:
        holder = writer_of(path) or "unknown"
        return NotSteerable(
            f"The {self.holder} of {path} (process {holder}) does not answer{patience}.",
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


def _resolved(path: Path) -> Path:
    return path.expanduser().resolve()  # as the holder itself does


@contextmanager
def _connected(path: Path, within_s: float, silent: SilentHolders | None) -> Generator[socket.socket]:
    """A connection; `silent` takes it over where it is not answered in time."""
    if not hasattr(socket, "AF_UNIX"):
        raise FileNotFoundError
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(within_s)
        if not stat.S_ISSOCK(socket_path(path).lstat().st_mode):
            raise FileNotFoundError  # a link would have us ask another program
        try:
            with short_name(socket_path(path)) as name:
                connection.connect(str(name))
            if not is_same_user(connection):
                raise PermissionError
            yield connection
        except (TimeoutError, BlockingIOError):
            if silent is not None:
                silent.add(path, connection.detach())
            raise
