"""Holds the rows of a list: up to 4 MB in RAM, more in a temporary file. Covers: adding rows, reading from any place.

A tape is the file that only grows; a spool is its first rows, with their length and digest. Adding a row to a spool
makes a new spool on the same tape, so that a list of a million appended rows is written once, and the
shorter spool still holds the same rows. The tape marks where its rows begin: each of the first 262,144, in 2 MB; once
there are more, every second one, and so on.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import weakref
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from headrace.errors import ListError, StorageFull
from headrace.plan.census import FieldCensus
from headrace.survey.values import Fields, UnusableValue, encode_fields, without_paths

SPOOL_IN_RAM_BYTES = 4_000_000
_BLOCK_BYTES = 1 << 16
_MOST_MARKS = 1 << 18


class Spool:
    """The rows of an iterable, which is consumed once, when the spool is made."""

    def __init__(self, rows: Iterable[Fields], what: str) -> None:
        self._begin(_Tape(), 0, hashlib.blake2b(digest_size=16), FieldCensus())
        self._consume(rows, what)

    def extended(self, rows: Iterable[Fields], what: str) -> Spool:
        """A spool with these rows behind its own."""
        made = Spool.__new__(Spool)
        if self._tape.length == self.length:
            made._begin(self._tape, self.length, self._hash.copy(), self.census.copy())
        else:  # another list has gone on from here
            made._begin(_Tape(), 0, hashlib.blake2b(digest_size=16), self.census.copy())
            made._copy(self.rows())
        made._consume(rows, what)
        return made

    @classmethod
    def of_encoded(cls, rows: Iterable[bytes], census: FieldCensus | None = None) -> Spool:
        """A copy of rows that are encoded, and counted where that is of use."""
        made = Spool.__new__(Spool)
        made._begin(_Tape(), 0, hashlib.blake2b(digest_size=16), census or FieldCensus())
        made._copy(rows)
        return made

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    @property
    def field_names(self) -> Collection[str]:
        return self.census.kinds.keys()

    def rows(self, first: int = 0) -> Iterator[bytes]:
        """The rows from this position on."""
        skipped, offset, _ = self._tape.span(first)
        begun: list[bytes] = []  # a row in parts: joined once, since one may be many blocks long
        while block := self._tape.block(offset, min(_BLOCK_BYTES, self._end - offset)):
            offset += len(block)
            rest, *lines = block.split(b"\n")
            begun.append(rest)
            if lines:
                lines.insert(0, b"".join(begun))
                begun = [lines.pop()]
                yield from lines[first - skipped :] if skipped < first else lines
                skipped = min(first, skipped + len(lines))

    def row(self, position: int) -> bytes:
        """One row; found by the nearest mark before it."""
        skipped, offset, end = self._tape.span(position)
        read = b""
        while True:
            block = self._tape.block(offset + len(read), len(read) or min(_BLOCK_BYTES, end - offset))
            read += block
            parts = read.split(b"\n", position - skipped + 1)
            if len(parts) > position - skipped + 1 or not block:
                return parts[position - skipped]

    def _begin(self, tape: _Tape, length: int, digest: hashlib.blake2b, census: FieldCensus) -> None:
        self._tape, self.length, self._hash, self.census = tape, length, digest, census
        self._end = tape.end

    def _consume(self, rows: Iterable[Fields], what: str) -> None:
        see, gathered, gathered_bytes = self.census.add_encoded, list[bytes](), 0
        for fields in rows:
            try:
                row, remark = encode_fields(fields)
                see(fields, row, remark)
            except UnusableValue as error:
                place = self.length + len(gathered)
                raise ListError(f"{what} {place}: {error.message}", fix=error.fix) from None
            gathered.append(row)
            gathered_bytes += len(row)
            if gathered_bytes > _BLOCK_BYTES:
                self._add(gathered)
                gathered, gathered_bytes = [], 0
        self._add(gathered)
        self._tape.flush()

    def _copy(self, rows: Iterable[bytes]) -> None:
        gathered, gathered_bytes = list[bytes](), 0
        for row in rows:
            gathered.append(row)
            gathered_bytes += len(row)
            if gathered_bytes > _BLOCK_BYTES:
                self._add(gathered)
                gathered, gathered_bytes = [], 0
        self._add(gathered)
        self._tape.flush()

    def _add(self, rows: list[bytes]) -> None:
        written = b"".join([row + b"\n" for row in rows])
        self._tape.write(rows, written)
        self._hash.update(without_paths(written))
        self.length += len(rows)
        self._end = self._tape.end


class _Tape:
    """A temporary file of rows, each ended by a line break. Rows are only ever added."""

    def __init__(self) -> None:
        # Not a context manager: the file lives as long as the tape, and the finalizer closes it.
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_IN_RAM_BYTES)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._is_at_end = True
        self.length = self.end = 0
        self._marks = array("q")  # where each row whose position is a multiple of _apart begins
        self._apart = 1

    def write(self, rows: list[bytes], written: bytes) -> None:
        """Add rows; `written` is the same with its line breaks."""
        with self._lock:
            try:
                if not self._is_at_end:
                    self._file.seek(self.end)
                    self._is_at_end = True
                self._file.write(written)
            except OSError as error:
                raise self._full(error) from None
            for row in rows:
                if self.length % self._apart == 0:
                    self._add_mark()
                self.length += 1
                self.end += len(row) + 1

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise self._full(error) from None

    def span(self, position: int) -> tuple[int, int, int]:
        """The last marked row up to this position, where it begins, and where the next marked one does."""
        with self._lock:
            last = len(self._marks) - 1
            if last < 0:
                return 0, 0, 0
            number = min(position // self._apart, last)
            end = self._marks[number + 1] if number < last else self.end
            return number * self._apart, self._marks[number], end

    def block(self, offset: int, most: int) -> bytes:
        # Two readers may be at different places of the one file.
        with self._lock:
            self._is_at_end = False
            self._file.seek(offset)
            return self._file.read(most)

    def _add_mark(self) -> None:
        self._marks.append(self.end)
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[::2]
            self._apart *= 2

    def _full(self, error: OSError) -> StorageFull:
        with suppress(OSError):  # closing writes what is left, which there is still no room for
            self._file.close()
        return StorageFull(Path(tempfile.gettempdir()), error.strerror or str(error))
