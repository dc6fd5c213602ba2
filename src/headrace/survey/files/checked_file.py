"""Reads a file that was digested before, in blocks, and refuses it where it is not the same any more.

A file at a path is read twice: no block is given out before the digest of all of them proved right. A run file that
somebody mailed may name any path and any size, and nothing of what lies there may leave; to name its digest, one has to
have the file. A file that changes between the two readings is found at the last block, which is then not given out.
Does not cover: what is done with the blocks (models.http_client.file_bodies).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import closing

from headrace.errors import FileUnusable, ListError
from headrace.survey.files.file_contents import BLOCK_BYTES, Content, FileReference, PathContent, open_content
from headrace.units import format_bytes

MOST_FILE_BYTES = 512_000_000
_DIGEST_BYTES = 16
_CHANGED = "its content changed since it was referred to"
_FIX = "Check the path and its rights."


def new_digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES)


def digested(path: str) -> tuple[str, int, bytes]:
    """A file's digest, its size, and its first block; ListError where it cannot be sent by anybody."""
    try:
        digest, size, head = new_digest(), 0, b""
        with closing(PathContent(path)) as content:
            _refuse_huge(path, content.size())
            while block := content.read(BLOCK_BYTES):
                head = head or block
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise ListError(f"{path} cannot be read: {error.strerror or error}.", fix=_FIX) from None
    if size == 0:
        raise ListError(f"{path} is empty.", fix="Leave it out, or put something into it.")
    return digest.hexdigest(), size, head


def _refuse_huge(path: str, size: int) -> None:
    if size > MOST_FILE_BYTES:
        most = format_bytes(MOST_FILE_BYTES)
        raise ListError(
            f"{path} has {format_bytes(size)}; no service takes files above {most} in a prompt.",
            fix="Send a part of it, or its text as a field.",
        )


class CheckedFile:
    """One reading of a file, from its beginning. `next_block` may wait for the disk; `close` does not, and may be
    called from another thread at any time.
    """

    def __init__(self, file: FileReference) -> None:
        self._file = file
        self._content: Content | None = None
        self._reading = threading.Lock()
        self._is_closed = False
        self._digest = new_digest()
        self._left_bytes = file.size

    def next_block(self) -> bytes:
        """The next block, at most BLOCK_BYTES; empty behind the last. FileUnusable where the file has changed."""
        if not self._left_bytes:
            return b""
        try:
            with self._reading:
                block = self._read()
        except OSError as error:
            raise FileUnusable(self._file.path, error.strerror or str(error)) from None
        finally:
            if self._is_closed:
                self.close()
        self._digest.update(block)
        self._left_bytes -= len(block)
        if not self._left_bytes and self._digest.hexdigest() != self._file.digest:
            raise FileUnusable(self._file.path, _CHANGED)
        return block

    def close(self) -> None:
        self._is_closed = True
        # Not while a block is being read: the descriptor's number might become another file's. The reader closes it.
        if self._reading.acquire(blocking=False):
            try:
                if self._content is not None:
                    self._content.close()
                    self._content = None
            finally:
                self._reading.release()

    def _check_all(self, content: PathContent) -> None:
        digest, left_bytes = new_digest(), self._file.size
        while left_bytes > 0 and (block := content.read(BLOCK_BYTES)) and not self._is_closed:
            digest.update(block)
            left_bytes -= len(block)
        if digest.hexdigest() != self._file.digest:
            raise FileUnusable(self._file.path, _CHANGED)
        content.rewind()

    def _read(self) -> bytes:
        if self._is_closed:
            raise OSError(0, "its reading was ended")
        if self._content is None:
            self._content = open_content(self._file)
            size = self._content.size()
            if size != self._file.size:
                raise FileUnusable(self._file.path, f"it has {size:,} bytes now, and had {self._file.size:,}")
            if isinstance(self._content, PathContent) and size > BLOCK_BYTES:
                self._check_all(self._content)
        wanted = min(BLOCK_BYTES, self._left_bytes)
        block = self._content.read(wanted)
        while block and len(block) < wanted:  # a network file system may give less
            more = self._content.read(wanted - len(block))
            if not more:
                break
            block += more
        if len(block) < wanted:
            raise FileUnusable(self._file.path, "it became shorter while it was read")
        return block


def blocks_of(file: FileReference) -> Iterator[bytes]:
    """All blocks of a file."""
    checked = CheckedFile(file)
    try:
        while block := checked.next_block():
            yield block
    finally:
        checked.close()
