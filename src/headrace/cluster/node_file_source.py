"""The worker's side of files in prompts on a node: where files are read from that lie on the controller's host.

Asks the node's cache (cluster.node_files) through the socket in its directory, and reads the copy there. May be used
from any thread, and waits. Does not cover: how a file gets to the node.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec

from headrace.framing import framed, receive
from headrace.memory.measure.os_limits import ON_LINUX
from headrace.survey.files.file_contents import FileReference, PathContent
from headrace.workers.warden.standby import FOLDER_VARIABLE

_SOCKET = "socket"
# A socket's address has room for 108 bytes on Linux and 104 on macOS, the closing zero among them.
_MOST_ADDRESS_BYTES = 103


class FileAsked(msgspec.Struct, array_like=True):
    path: str
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]  # names its copy
    size: int


class FileAnswer(msgspec.Struct, array_like=True):
    """Where the copy is, for as long as the worker keeps the connection; or why there is none."""

    path: str
    problem: str = ""


class NodeFileSource:
    """Holds every file: what the controller lacks cannot be read."""

    is_elsewhere = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @classmethod
    def find(cls) -> NodeFileSource | None:
        """None where this process is on the controller's host."""
        folder = os.environ.get(FOLDER_VARIABLE)
        return None if folder is None else cls(folder)

    def open(self, file: FileReference) -> NodeFileContent:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            return NodeFileContent(self._copy_of(file, connection), connection)
        except BaseException:
            connection.close()
            raise

    def _copy_of(self, file: FileReference, connection: socket.socket) -> str:
        with bound_address(self._folder) as address:
            connection.connect(address)
        connection.sendall(framed(msgspec.msgpack.encode(FileAsked(file.path, file.digest, file.size))))
        answer = msgspec.msgpack.decode(receive(connection), type=FileAnswer)
        if answer.problem:
            raise OSError(0, answer.problem)
        return answer.path


class NodeFileContent:
    """A copy, open: it stays readable when the cache has removed it. Its digest was checked when it came, and is once
    more when it is read: it is no `PathContent`, which is read twice.
    """

    def __init__(self, path: str, connection: socket.socket) -> None:
        """The cache keeps the copy for as long as the connection lasts."""
        self._content = PathContent(path)
        self._path, self._connection = path, connection
        if ON_LINUX:  # elsewhere `path` leads to the copy itself
            connection.close()

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._content.fileno()}" if ON_LINUX else self._path

    def size(self) -> int:
        return self._content.size()

    def read(self, most_bytes: int) -> bytes:
        return self._content.read(most_bytes)

    def close(self) -> None:
        self._content.close()
        self._connection.close()


@contextmanager
def bound_address(folder: str) -> Generator[str]:
    """The address of the socket in a folder, by a name that is short enough for one."""
    path = str(Path(folder) / _SOCKET)
    if len(os.fsencode(path)) <= _MOST_ADDRESS_BYTES or not ON_LINUX:
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{_SOCKET}"
    finally:
        os.close(descriptor)
