"""A file whose every byte read is digested, so that one pass finds rows, length and digest alike.

A file that is read a second time must still be what it was: `check_unchanged` compares digests; a `FileStamp` compares
size and time, for formats that are not read from their first byte to their last. Does not cover: what bytes mean.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from headrace.errors import ListError
from headrace.plan.sources.given_paths import is_plain_file, is_there, unreadable
from headrace.plan.sources.packed_files import unpacked

_BLOCK_BYTES = 1 << 16


class HashedFile(io.RawIOBase):
    """`binary` reads bytes; those that a `.gz` or `.zst` file holds, unpacked. The digest is of the bytes on disk."""

    _raw: _File | None = None  # none where opening failed; what was begun is closed all the same

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._raw = _opened(path)
        self._path = path
        self._hash = hashlib.blake2b(digest_size=16)
        self._stored: io.BufferedReader[Any] = io.BufferedReader(self, _BLOCK_BYTES)
        self.binary = unpacked(self._stored, path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._raw is not None
        read = self._raw.readinto(buffer)
        self._hash.update(memoryview(buffer)[:read])
        return read

    def digest(self) -> str:
        """Of all bytes; what was not read yet is read for it."""
        while self._stored.read(_BLOCK_BYTES):
            pass
        return self._hash.hexdigest()

    def check_unchanged(self, digest: str, marks: object = None) -> None:
        if marked_digest(self.digest(), marks) != digest:
            raise _changed(self._path)

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FileStamp(NamedTuple):
    """Which file a path named, how large it was, and when it was last written."""

    device: int
    inode: int
    size: int
    written_ns: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        with open_plain(path) as file:
            return cls._of_open(file)

    @classmethod
    def _of_open(cls, file: BinaryIO) -> FileStamp:
        found = os.fstat(file.fileno())
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def check(self, path: Path) -> None:
        if FileStamp.of(path) != self:
            raise _changed(path)

    def check_open(self, file: BinaryIO, path: Path) -> None:
        if self._of_open(file) != self:
            raise _changed(path)


def open_plain(path: Path) -> BinaryIO:
    """The file, for a reader that goes to and fro in it."""
    return io.BufferedReader(_opened(path), _BLOCK_BYTES)


def _opened(path: Path) -> _File:
    if is_there(path) and not is_plain_file(path):  # a pipe would be waited for, and cannot be read again
        raise ListError(f"{path} is not a file.", fix="Rows are read more than once: save them to a file.")
    try:
        return _File(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


class _File(io.FileIO):
    """A file whose errors while it is read are in words: those of a disk, of a share that went away."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path = path

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer) or 0
        except OSError as error:
            raise unreadable(self._path, error) from None

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise unreadable(self._path, error) from None


def _changed(path: Path) -> ListError:
    return ListError(f"{path} changed while the job was set up.", fix="Make the list again.")


def marked_digest(digest: str, marks: object) -> str:
    """A file's digest together with how it is read, such as the new names of its columns; without, where that is
    nothing.
    """
    return hashlib.blake2b(f"{digest} {marks}".encode(), digest_size=16).hexdigest() if marks else digest
