"""Where a file's content is read from: a source that holds it, else the path. Covers: choosing, and the path.

Sources are known here while a run uses them: a run file that embeds files (store.run_file.stored_job.embedded_files),
pictures that were made smaller (survey.files.smaller_pictures), and on a node of a cluster the controller's host, which
holds every other file (cluster.node_file_source). Does not cover: checking what is read (survey.files.checked_file).
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from headrace.errors import FileUnusable

BLOCK_BYTES = 3 << 17  # base64 turns three bytes into four letters, so a block is a multiple of three


class FileReference(Protocol):
    """What tells which bytes are meant: a `FileStore`, or as much of it as travels."""

    @property
    def path(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def size(self) -> int: ...


class Content(Protocol):
    """The bytes of one file, from its beginning on. It may raise OSError. `path` is where another program can read them
    until it is closed, None where none can.
    """

    @property
    def path(self) -> str | None: ...

    def size(self) -> int: ...

    def read(self, most_bytes: int) -> bytes:
        """The next bytes, none behind the last; at most BLOCK_BYTES are asked for."""
        ...

    def close(self) -> None: ...


class ContentSource(Protocol):
    """A place that holds files. `open` is None where it lacks this one. One that `is_elsewhere` holds files of another
    host: opening them may take long, and it is asked last.
    """

    is_elsewhere: bool

    def open(self, file: FileReference) -> Content | None: ...


_sources: list[ContentSource] = []
_changing = threading.Lock()


def add_source(source: ContentSource) -> None:
    with _changing:
        _sources[:] = sorted([*_sources, source], key=lambda each: each.is_elsewhere)


def remove_source(source: ContentSource) -> None:
    with _changing:
        _sources.remove(source)


def open_content(file: FileReference) -> Content:
    """A source's copy where one has it, else what lies at the path; OSError where it cannot be read."""
    return _held(file) or PathContent(file.path)


def is_elsewhere() -> bool:
    """Whether files come from another host: `bring` may take long then, and else does nothing."""
    return any(source.is_elsewhere for source in _sources)


def bring(file: FileReference) -> None:
    """Have a file's content on this host before it is needed; FileUnusable where that fails."""
    if is_elsewhere():
        with _unusable_where_unread(file):
            open_content(file).close()


@contextmanager
def path_with_content(file: FileReference) -> Generator[str]:
    """A path that another program can read: the file's own, or that of a copy."""
    with _unusable_where_unread(file):
        # Opened here, without waiting: another program would wait at a FIFO for somebody who writes into it.
        content = open_content(file)
    try:
        if content.path is not None:
            yield content.path
            return
        with tempfile.NamedTemporaryFile(prefix="headrace-file-") as copy:
            while block := content.read(BLOCK_BYTES):
                copy.write(block)
            copy.flush()
            yield copy.name
    finally:
        content.close()


@contextmanager
def _unusable_where_unread(file: FileReference) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise FileUnusable(file.path, error.strerror or str(error)) from None


def _held(file: FileReference) -> Content | None:
    for source in tuple(_sources):  # runs on other threads begin and end
        if (content := source.open(file)) is not None:
            return content
    return None


class PathContent:
    """What lies at a path; OSError where that is no file."""

    def __init__(self, path: str) -> None:
        # Without waiting: a FIFO would be waited for until somebody writes into it.
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags)
        self.path = path
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise OSError(0, "it is a directory" if Path(path).is_dir() else "it is no file but something else")

    def fileno(self) -> int:
        return self._descriptor

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def read(self, most_bytes: int) -> bytes:
        return os.read(self._descriptor, most_bytes)

    def close(self) -> None:
        os.close(self._descriptor)
