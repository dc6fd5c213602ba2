"""Rows: what interviews leave in the run file, already encoded by the executor that conducted them.

    Row, one interview ──► RowBatch, rows of a chunk, flat, as the journal's INSERT takes them ──► run_journal
                                └─ iterating over it gives BatchRow: for listeners

Covers: the shapes, and compressing details. Does not cover: writing them (run_journal).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import zstandard

from headrace.store.run_file.checksums import interview_checksum
from headrace.survey.record import Detail, Failure, Usage, decode_detail

# SQLite stops at 2000 columns, in a table and in a view; the answers beyond this many share one JSON column.
ANSWER_COLUMNS = 1000
# Coding the letters that the dictionary lacks takes 4 us and saves nothing in a short detail, and half of a long one.
_SHORT_LEVEL, _LONG_LEVEL, _LONG_BYTES = -1, 3, 2_000
# Of a detail unpacked. Beyond the first it must have been large when it was packed, too: texts are, bombs are not.
_SMALL_BYTES, _MOST_TIMES_SMALLER, _MOST_DETAIL_BYTES = 64_000_000, 100, 512_000_000
# Of a row's values, before its answers, what is beyond their columns, and the checksum.
HEAD = ("ordinal", "iteration", "agent", "scenario", "model", "status")
_STATUS = HEAD.index("status")
_SIZES_LOOKED_AT = 8


class Status(IntEnum):
    """How an interview ended: with all its answers, or with at least one question that failed."""

    DONE = 0
    FAILED = 1


class Row(msgspec.Struct, array_like=True, gc=False):
    """One finished interview. `answers` are SQL values by question; `more` has those beyond ANSWER_COLUMNS, as JSON.

    `detail` is compressed when a batch is made of the row; a large one already when the row is (`is_packed`).
    """

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    status: Status
    answers: list[Any]  # of SqlValue: msgspec decodes no union of text and bytes
    more: str | None
    detail: bytes | bytearray
    failures: list[Failure]
    usage: Usage
    is_packed: bool = False

    def held_bytes(self) -> int:
        """About how much memory this row holds; only parts that can be large are counted."""
        answers = sum([len(value) for value in self.answers if type(value) is str or type(value) is bytes])
        return len(self.detail) + answers + len(self.more or "")


class BatchRow(NamedTuple):
    """One row read out of a batch; Row explains the fields."""

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    status: Status
    answers: list[Any]
    more: str | None
    detail: bytes


class RowBatch(msgspec.Struct, array_like=True):
    """Finished rows of one chunk.

    `values` are those of all rows one after the other, as the table `interviews` has them; `details` has one entry a
    row. `failures` are (ordinal, question, cause, message), `usage` is the sum over all rows, `largest_bytes` estimates
    the memory that the largest row holds.
    """

    values: list[Any]  # of SqlValue: msgspec decodes no union of text and bytes
    details: list[bytes]
    failures: list[tuple[int, int, str, str]]
    usage: Usage
    largest_bytes: int

    def __len__(self) -> int:
        return len(self.details)

    @property
    def width(self) -> int:
        return len(self.values) // len(self.details)

    @property
    def ordinals(self) -> list[int]:
        return self.values[:: self.width]

    @property
    def statuses(self) -> list[int]:
        return self.values[_STATUS :: self.width]

    @property
    def failed(self) -> int:
        return sum(self.statuses)

    def __iter__(self) -> Iterator[BatchRow]:
        width, values = self.width, self.values
        for place, detail in enumerate(self.details):
            ordinal, iteration, agent, scenario, model, status, *answers, more, _ = values[
                place * width : (place + 1) * width
            ]
            yield BatchRow(ordinal, iteration, agent, scenario, model, Status(status), answers, more, detail)


def row_batch(rows: list[Row]) -> RowBatch:
    """Make a batch of at least one row."""
    return RowBatch(
        list(chain.from_iterable([_values(row) for row in rows])),
        [bytes(row.detail) for row in rows],
        [(row.ordinal, f.question, f.cause.value, f.message) for row in rows for f in row.failures],
        _total([row.usage for row in rows]),
        max([row.held_bytes() for row in rows[:_SIZES_LOOKED_AT]]),
    )


def _values(row: Row) -> tuple[Any, ...]:
    head = (row.ordinal, row.iteration, row.agent, row.scenario, row.model, int(row.status))
    values = (*head, *row.answers, row.more)
    return (*values, interview_checksum(values, row.detail, is_large=row.is_packed))


def _total(usages: list[Usage]) -> Usage:
    return Usage(*map(sum, zip(*map(msgspec.structs.astuple, usages), strict=True)))


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

    def compress(self, encoded: bytes | bytearray) -> bytes:
        return self._compress_short(encoded) if len(encoded) < _LONG_BYTES else self._compress_long(encoded)

    def unpack(self, packed: bytes) -> Detail:
        # A frame names its size, which the decompressor allocates: a hundred bytes can ask for gigabytes.
        most_bytes = max(_SMALL_BYTES, min(_MOST_TIMES_SMALLER * len(packed), _MOST_DETAIL_BYTES))
        if not 0 <= zstandard.frame_content_size(packed) <= most_bytes:
            raise zstandard.ZstdError(f"a detail of more than {most_bytes:,} bytes")
        with self._one_at_a_time:
            encoded = self._decompress(packed)
        return decode_detail(encoded)


def _compressor(dictionary: bytes, level: int) -> Callable[[bytes | bytearray], bytes]:
    held = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    held.precompute_compress(level=level)  # pyright: ignore[reportUnknownMemberType]
    return zstandard.ZstdCompressor(level=level, dict_data=held, write_checksum=True).compress
