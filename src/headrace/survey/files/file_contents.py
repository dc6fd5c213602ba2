"""Where a file's content is read from: a copy that a run file embeds, else the path. Covers: choosing, and both ways.

Run files that embed files are known here while a run uses them (store.run_file.stored_job.embedded_files). Does not
cover: checking what is read (survey.files.checked_file).
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headrace.errors import FileUnusable

if TYPE_CHECKING:
    from headrace.survey.files.file_store import FileStore

BLOCK_BYTES = 3 << 17  # base64 turns three bytes into four letters, so a block is a multiple of three


class Content(Protocol):
    """The bytes of one file, from its beginning on. It may raise OSError."""

    def size(self) -> int: ...

    def read(self, most_bytes: int) -> bytes:
        """The next bytes, none behind the last; at most BLOCK_BYTES are asked for."""
        ...

    def close(self) -> None: ...


class ContentSource(Protocol):
    """A place that holds files by digest."""

    def open(self, digest: str) -> Content | None: ...


_sources: list[ContentSource] = []  # one for each run that goes on


def add_source(source: ContentSource) -> None:
    _sources.append(source)


def remove_source(source: ContentSource) -> None:
    _sources.remove(source)


def open_content(file: FileStore) -> Content:
    """The embedded copy where there is one, else what lies at the path; OSError where neither can be read."""
    return _embedded(file) or PathContent(file.path)


@contextmanager
def path_with_content(file: FileStore) -> Generator[str]:
    """A path that another program can read: a temporary copy of what is embedded, else the file's own."""
    content = _embedded(file)
    if content is None:
        _check_is_file(file)
        yield file.path
        return
    with tempfile.NamedTemporaryFile(prefix="headrace-file-") as copy:
        try:
            while block := content.read(BLOCK_BYTES):
                copy.write(block)
        finally:
            content.close()
        copy.flush()
        yield copy.name


def _check_is_file(file: FileStore) -> None:
    """Here, without waiting: another program would wait at a FIFO for somebody who writes into it."""
    try:
        PathContent(file.path).close()
    except OSError as error:
        raise FileUnusable(file.path, error.strerror or str(error)) from None


def _embedded(file: FileStore) -> Content | None:
    for source in _sources:  # at once: runs on other threads begin and end
        if (content := source.open(file.digest)) is not None:
            return content
    return None


class PathContent:
    """What lies at a path; OSError where that is no file."""

    def __init__(self, path: str) -> None:
        # Without waiting: a FIFO would be waited for until somebody writes into it.
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise OSError(0, "it is a directory" if Path(path).is_dir() else "it is no file but something else")

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def rewind(self) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def read(self, most_bytes: int) -> bytes:
        return os.read(self._descriptor, most_bytes)

    def close(self) -> None:
        os.close(self._descriptor)
