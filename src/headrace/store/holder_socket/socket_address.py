"""Where the socket of a file's holder is, who is at its other end, and how a message travels through it.

Does not cover: answering (request_server), asking (request_client), or what messages mean (interviews.steering,
agents.steering).
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headrace.framing import framed

# A client waits longer than it takes to close the connections of silent clients before it.
ANSWER_WITHIN_S = 5.0
SERVE_WITHIN_S = 2.0
# A socket's address has room for 108 bytes on Linux and 104 on macOS, the closing zero among them.
_MOST_ADDRESS_BYTES = 103
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class RefusalReply(msgspec.Struct, frozen=True, tag="refused"):
    """The request made no sense, or could not be carried out."""

    reason: str


def encoded(message: msgspec.Struct) -> bytes:
    """Return the frame that carries a message."""
    return framed(msgspec.msgpack.encode(message, enc_hook=_path_text))


def socket_path(path: Path) -> Path:
    return path.with_name(path.name + ".sock")


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


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"no message holds a {type(value).__name__}")
