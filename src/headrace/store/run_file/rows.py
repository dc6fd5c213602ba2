"""A Row is what an interview leaves in the run file, already encoded. Covers: its shape, and compressing its detail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec
import zstandard

from headrace.survey.record import Detail, Failure, Usage, decode_detail

# SQLite stops at 2000 columns, in a table and in a view; the answers beyond this many share one JSON column.
ANSWER_COLUMNS = 1000
# Coding the letters that the dictionary lacks takes 4 us and saves nothing in a short detail, and half of a long one.
_SHORT_LEVEL, _LONG_LEVEL, _LONG_BYTES = -1, 3, 2_000
# Of a detail unpacked. Beyond the first it must have been large when it was packed, too: texts are, bombs are not.
_SMALL_BYTES, _MOST_TIMES_SMALLER, _MOST_DETAIL_BYTES = 64_000_000, 100, 512_000_000


class Status(IntEnum):
    """How an interview ended: with all its answers, or with at least one question that failed."""

    DONE = 0
    FAILED = 1


class Row(msgspec.Struct, array_like=True, gc=False):
    """One finished interview. `answers` are SQL values by question; `more` has those beyond ANSWER_COLUMNS, as JSON."""

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    status: Status
    answers: list[Any]  # of SqlValue: msgspec decodes no union of text and bytes
    more: str | None
    detail: bytes
    failures: list[Failure]
    usage: Usage

    def held_bytes(self) -> int:
        """About how much memory this row holds; only parts that can be large are counted."""
        answers = sum([len(value) for value in self.answers if type(value) is str or type(value) is bytes])
        return len(self.detail) + answers + len(self.more or "")


class DetailPacker:
    """Compresses details one by one against a dictionary made of the survey's own texts.

    The dictionary is there from the first row on, in every executor. zstd's own checksum catches bit flips that
    SQLite's integrity_check does not see.
    """

    def __init__(self, dictionary: bytes) -> None:
        self._compress_short = _compressor(dictionary, _SHORT_LEVEL)
        self._compress_long = _compressor(dictionary, _LONG_LEVEL)
        held = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        self._decompress = zstandard.ZstdDecompressor(dict_data=held, max_window_size=_MOST_DETAIL_BYTES).decompress
        self._one_at_a_time = threading.Lock()  # results of one file may be read from several threads

    def compress(self, encoded: bytes) -> bytes:
        return self._compress_short(encoded) if len(encoded) < _LONG_BYTES else self._compress_long(encoded)

    def unpack(self, packed: bytes) -> Detail:
        # A frame names its size, which the decompressor allocates: a hundred bytes can ask for gigabytes.
        most_bytes = max(_SMALL_BYTES, min(_MOST_TIMES_SMALLER * len(packed), _MOST_DETAIL_BYTES))
        if not 0 <= zstandard.frame_content_size(packed) <= most_bytes:
            raise zstandard.ZstdError(f"a detail of more than {most_bytes:,} bytes")
        with self._one_at_a_time:
            encoded = self._decompress(packed)
        return decode_detail(encoded)


def _compressor(dictionary: bytes, level: int) -> Callable[[bytes], bytes]:
    held = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    held.precompute_compress(level=level)  # pyright: ignore[reportUnknownMemberType]
    return zstandard.ZstdCompressor(level=level, dict_data=held, write_checksum=True).compress
