"""Writing finished interviews whose rows are not kept: their bits, and what a retry needs of those that failed.

A failed interview keeps its causes and the answers that it has while no more than MOST_FAILURES causes are kept: the
table stays small whatever happens to a service. Beyond that, an interview that failed is known by its bit alone, by
cause: a retry asks all its questions again. Does not cover: totals (stored_totals), or reading bits (finished_bits).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw

from headrace.plan.bitmap import Bitmap
from headrace.store.contents import UNREADABLE, damaged, one_value
from headrace.store.run_file.keeping.finished_bits import ANSWERED, FinishedBits
from headrace.store.run_file.rows import DetailPacker, RowBatch, Status
from headrace.survey.record import OUTSIDE_CAUSES, Cause, Detail, encode_detail, without_texts

MOST_FAILURES = 10_000
_OUTSIDE = frozenset(cause.value for cause in OUTSIDE_CAUSES)


class UnkeptRows:
    """The bits of a run's file, and the failures kept beside them."""

    def __init__(self, connection: apsw.Connection, bits: FinishedBits, packer: DetailPacker) -> None:
        self._connection = connection
        self._bits = bits
        self._packer = packer

    def write(self, batches: Sequence[RowBatch], replaced: Iterable[int]) -> None:
        """Note how these interviews ended, inside the caller's transaction, which has deleted the failures of those
        that are `replaced`.
        """
        for ordinal in replaced:
            self._bits.discard(ordinal)
            self._connection.execute("DELETE FROM details WHERE ordinal = ?", (ordinal,))
        for batch in batches:
            ended = zip(batch.ordinals, batch.statuses, strict=True)
            self._bits.add([ordinal for ordinal, status in ended if status == Status.DONE], ANSWERED)
            if batch.failures:
                self._write_failed(batch)
        self._bits.write(self._connection)

    def _write_failed(self, batch: RowBatch) -> None:
        kept: int = self._connection.execute("SELECT count(*) FROM failures").get
        details = dict(zip(batch.ordinals, batch.details, strict=True))
        by_ordinal: dict[int, list[tuple[int, int, str, str]]] = {}
        for failure in batch.failures:
            by_ordinal.setdefault(failure[0], []).append(failure)
        for ordinal, failures in by_ordinal.items():
            self._bits.add([ordinal], _cause_of(failures))
            if kept + len(failures) <= MOST_FAILURES:
                kept += len(failures)
                self._connection.executemany("INSERT INTO failures VALUES(?, ?, ?, ?)", failures)
                packed = self._without_texts(details[ordinal])
                self._connection.execute("INSERT OR REPLACE INTO details VALUES(?, ?)", (ordinal, packed))

    def _without_texts(self, packed: bytes) -> bytes:
        """A listener may want whole details: the file does not keep them."""
        detail = self._packer.unpack(packed)
        records = [without_texts(record) for record in detail.records]
        return self._packer.compress(encode_detail(Detail("", detail.started_at, records)))


def _cause_of(failures: list[tuple[int, int, str, str]]) -> str:
    """The cause by which an interview is known: one that running again retries, where it has one."""
    causes = [cause for _, _, cause, _ in failures]
    return next((cause for cause in causes if cause in _OUTSIDE), causes[0])


def finished_by_bits(bits: FinishedBits, *, retry_failed: bool) -> tuple[Bitmap, Bitmap]:
    """The ordinals that have ended, and those of them that a run does not conduct again."""
    settled = () if retry_failed else (cause.value for cause in Cause if cause not in OUTSIDE_CAUSES)
    return bits.bitmap(), bits.bitmap((ANSWERED, *settled))


def failed_by_bits(bits: FinishedBits, causes: Iterable[Cause] = Cause) -> Bitmap:
    return bits.bitmap(cause.value for cause in causes)


def kept_detail(connection: apsw.Connection, packer: DetailPacker, ordinal: int, path: Path) -> Detail | None:
    """The detail of a failed interview; None where it is not among those kept. It has zstd's own checksum."""
    try:
        packed = one_value(connection, bytes | None, "SELECT detail FROM details WHERE ordinal = ?", (ordinal,))
        return None if packed is None else packer.unpack(packed)
    except UNREADABLE:
        raise damaged(path, f"the detail of interview {ordinal} cannot be read") from None
