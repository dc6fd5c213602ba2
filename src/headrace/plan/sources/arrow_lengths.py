"""How large the batches of an Arrow file become once they are unpacked, read out of it before Arrow unpacks any.

Each packed buffer (lz4, zstd) begins with its unpacked length, and Arrow allocates that much. A file of some KB may so
ask for any memory. Covers: both forms of a file, and the part of its metadata (flatbuffers) that says where buffers
lie. Does not cover: the rows (plan.sources.arrow_columns).

    file      ARROW1, messages, a footer that says where they lie, the footer's length, ARROW1
    stream    messages
    message   0xFFFFFFFF, the length of its metadata, the metadata, its body
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from headrace.errors import ListError

MOST_UNPACKED_BYTES = 512_000_000  # of one batch, and of all dictionaries, which stay in memory
_MOST_METADATA_BYTES = 64_000_000
_GOES_ON = b"\xff\xff\xff\xff"
_FOOTER_END = 10
# The places of fields in their tables, as Arrow's schemas number them.
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_MESSAGE_KIND, _MESSAGE_HEADER, _MESSAGE_BODY_BYTES = 1, 2, 3
_DICTIONARY_DATA, _BATCH_BUFFERS, _BATCH_COMPRESSION = 1, 2, 3
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_BLOCK_BYTES, _BUFFER_BYTES = 24, 16


def check_unpacked(file: BinaryIO, path: Path, *, is_stream: bool) -> None:
    """Refuse a file of which a batch, or all dictionaries together, unpack to more than memory should hold."""
    descriptor, dictionaries = file.fileno(), 0
    size = os.fstat(descriptor).st_size
    places = _in_stream(descriptor, size) if is_stream else _in_file(descriptor, size)
    try:
        for kind, unpacked in _messages(descriptor, size, places):
            if kind == _DICTIONARY:
                dictionaries += unpacked
            if max(unpacked, dictionaries) > MOST_UNPACKED_BYTES:
                raise ListError(
                    f"{path}: a batch of its rows takes {max(unpacked, dictionaries):,} bytes once it is unpacked, of"
                    f" {MOST_UNPACKED_BYTES:,} at most.",
                    fix="Write it with fewer rows in a batch (chunksize=10_000 of write_feather), or as Parquet.",
                )
    except (struct.error, IndexError, OverflowError, OSError):
        raise ListError(
            f"{path} cannot be read as Arrow: its metadata is damaged.", fix="Is it the right file?"
        ) from None


def _messages(file: int, size: int, places: Iterator[int]) -> Iterator[tuple[int, int]]:
    """The kind of each message, and how many bytes its packed buffers have once they are unpacked."""
    for place in places:
        metadata, body = _metadata(file, place, size)
        message = _FlatTable.root(metadata)
        kind, header = message.byte(_MESSAGE_KIND), message.table(_MESSAGE_HEADER)
        batch = header.table(_DICTIONARY_DATA) if header and kind == _DICTIONARY else header
        if batch is None or kind not in (_DICTIONARY, _BATCH) or batch.table(_BATCH_COMPRESSION) is None:
            yield kind, 0
        else:
            yield kind, sum(_unpacked_bytes(file, body, *each) for each in batch.pairs(_BATCH_BUFFERS))


def _unpacked_bytes(file: int, body: int, offset: int, length: int) -> int:
    if length < 8:
        return 0
    (unpacked,) = struct.unpack("<q", os.pread(file, 8, body + offset))
    return max(unpacked, 0)  # -1 where it is stored as it is


def _in_file(file: int, size: int) -> Iterator[int]:
    """Where the messages begin, as the footer has it."""
    (length,) = struct.unpack("<i", os.pread(file, 4, size - _FOOTER_END))
    footer = _FlatTable.root(_read(file, size - _FOOTER_END - length, length, size))
    for field in (_FOOTER_DICTIONARIES, _FOOTER_BATCHES):
        yield from (offset for offset, _, _ in footer.triples(field))


def _in_stream(file: int, size: int) -> Iterator[int]:
    place = 0
    while place + 4 <= size:
        metadata, body = _metadata(file, place, size)
        if not metadata:
            return
        yield place
        place = body + _FlatTable.root(metadata).long(_MESSAGE_BODY_BYTES)


def _metadata(file: int, place: int, size: int) -> tuple[bytes, int]:
    """The metadata of a message, empty at the end of a stream, and where its body begins."""
    begin = os.pread(file, 8, place)
    skipped = 8 if begin.startswith(_GOES_ON) else 4  # files from before Arrow 0.15 have the length alone
    (length,) = struct.unpack_from("<i", begin, skipped - 4)
    return _read(file, place + skipped, length, size), place + skipped + length


def _read(file: int, place: int, length: int, size: int) -> bytes:
    if not 0 <= place <= size or not 0 <= length <= min(size - place, _MOST_METADATA_BYTES):
        raise IndexError
    return os.pread(file, length, place)


class _FlatTable:
    """A table of flatbuffers: what lies at a place in bytes, its fields by their numbers."""

    def __init__(self, held: bytes, place: int) -> None:
        self._held, self._place = held, place
        self._fields = place - self._number("<i", place)
        self._fields_bytes = self._number("<H", self._fields)

    @classmethod
    def root(cls, held: bytes) -> _FlatTable:
        return cls(held, struct.unpack_from("<I", held, 0)[0])

    def byte(self, field: int) -> int:
        at = self._at(field)
        return self._number("<B", at) if at else 0

    def long(self, field: int) -> int:
        at = self._at(field)
        return max(0, self._number("<q", at)) if at else 0

    def table(self, field: int) -> _FlatTable | None:
        at = self._at(field)
        return _FlatTable(self._held, at + self._number("<I", at)) if at else None

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Offset and length of each buffer."""
        return (struct.unpack_from("<qq", self._held, at) for at in self._structs(field, _BUFFER_BYTES))

    def triples(self, field: int) -> Iterator[tuple[int, int, int]]:
        """Offset, and the lengths of metadata and body, of each message in a file."""
        return (struct.unpack_from("<qi4xq", self._held, at) for at in self._structs(field, _BLOCK_BYTES))

    def _structs(self, field: int, each_bytes: int) -> range:
        at = self._at(field)
        if not at:
            return range(0)
        first = at + self._number("<I", at)
        count = self._number("<I", first)
        return range(first + 4, first + 4 + count * each_bytes, each_bytes)

    def _at(self, field: int) -> int:
        """Where a field lies; 0 where it is not there."""
        entry = 4 + 2 * field
        if entry + 2 > self._fields_bytes:
            return 0
        offset = self._number("<H", self._fields + entry)
        return self._place + offset if offset else 0

    def _number(self, form: str, place: int) -> int:
        if place < 0:  # Python would count from the end
            raise IndexError
        return struct.unpack_from(form, self._held, place)[0]
