"""Details of interviews that are looked at one after the other, read several at a time.

A detail is ten times as large as the answers, so it is read when it is first asked for. Whoever asks for one detail
after the other gets those that follow with it: one at first, then two, and so on up to 64. Does not cover: what a
detail holds (survey.record), or reading a single one (details).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from zlib import crc32

from headrace.store.contents import UNREADABLE
from headrace.store.run_file.bulk.column_pages import GiveUp, short_values
from headrace.store.run_file.details import stored_detail
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.survey.record import Detail

_MOST_AHEAD, _LONGEST_BYTES = 64, 100_000


class DetailsAhead:
    """Reads details for one iteration over results, from the file as it is when they are asked for.

    Results may be handed to other threads: at worst a detail is then read twice.
    """

    def __init__(self, reader: Reader, header: RunHeader) -> None:
        self._reader = reader
        self._header = header
        self._held: dict[int, bytes] = {}  # at most 64, those of the latest reading, each until it is taken
        self._ahead = 0

    def detail(self, ordinals: tuple[int, ...], place: int) -> Detail:
        """The detail of the interview at `place` among these, which are likely to be asked for in this order."""
        ordinal = ordinals[place]
        packed = self._held.pop(ordinal, None)
        if packed is None and self._header.has_checksums:
            # Nothing is left of what was read ahead: it was worth it.
            self._ahead = 1 if self._held else min(2 * self._ahead or 1, _MOST_AHEAD)
            self._held = self._read(ordinals[place : place + self._ahead]) if self._ahead > 1 else {}
            packed = self._held.pop(ordinal, None)
        if packed is not None:
            with suppress(*UNREADABLE):
                return self._header.packer.unpack(packed)
        with self._reader.snapshot() as connection:  # by itself: long, without a checksum, or damaged
            return stored_detail(connection, self._header.packer, ordinal, self._reader.path)

    def _read(self, ordinals: tuple[int, ...]) -> dict[int, bytes]:
        """The details of these interviews that have the checksum they should have."""
        sql = (
            "SELECT d.ordinal, d.detail, i.checksum & 4294967295 FROM interviews i JOIN details d"
            f" ON d.ordinal = i.ordinal WHERE i.ordinal IN ({', '.join('?' * len(ordinals))})"
        )
        try:
            with self._reader.snapshot() as connection, short_values(connection, _LONGEST_BYTES):
                found: list[Any] = connection.execute(sql, ordinals).fetchall()
            return {ordinal: detail for ordinal, detail, checksum in found if crc32(detail) == checksum}
        except (GiveUp, TypeError):
            return {}
