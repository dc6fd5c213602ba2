"""Which interviews of a run file are finished, and the answers of those that were in flight.

Covers: reading both when a run begins, each checked. Does not cover: the answers of finished interviews (details).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Plan
from headrace.store.contents import damaged, typed_rows
from headrace.store.run_file.checksums import record_checksum
from headrace.store.run_file.interview_queries import check_counted
from headrace.store.run_file.keeping.finished_bits import FinishedBits
from headrace.store.run_file.keeping.unkept_rows import finished_by_bits
from headrace.store.run_file.row_blocks import RowBlocks
from headrace.survey.record import OUTSIDE_CAUSES, AnswerRecord, decode_record


def read_finished(
    connection: apsw.Connection, path: Path, held: RowBlocks | FinishedBits, size: int, *, retry_failed: bool
) -> tuple[Bitmap, Bitmap]:
    """The ordinals of a plan of `size` that are finished, and those of them that this run does not conduct again."""
    if isinstance(held, FinishedBits):
        check_counted(connection, path, held.count())
        return finished_by_bits(held, retry_failed=retry_failed)
    done = held.stored.copy()
    causes = [cause.value for cause in OUTSIDE_CAUSES]
    where = "" if retry_failed else f" WHERE cause IN ({', '.join('?' * len(causes))})"
    for (ordinal,) in connection.execute(
        f"SELECT DISTINCT ordinal FROM failures{where}", () if retry_failed else causes
    ):
        if ordinal not in range(size):
            raise damaged(path, f"a failure is of interview {ordinal}, which is none of its plan")
        done.discard(ordinal)
    return held.stored, done


def count_failed(connection: apsw.Connection, among: Bitmap, stop: int) -> int:
    """How many of these interviews below `stop` are finished without all their answers."""
    ordinals = connection.execute("SELECT DISTINCT ordinal FROM failures WHERE ordinal < ?", (stop,))
    return sum(ordinal in among for (ordinal,) in ordinals)


def check_record(record: AnswerRecord, questions: int) -> None:
    """Refuse an answer that no run can have written: a run would go on with it."""
    value = record.value
    is_value = value is None or isinstance(value, (str, bytes, float)) or (type(value) is int and value < 2**63)
    if record.question >= questions or not is_value:
        raise ValueError(f"it has an answer to question {record.question} that is none of its survey")


def read_pending(connection: apsw.Connection, plan: Plan, questions: int) -> dict[int, list[AnswerRecord]]:
    """Read the answers of interviews that were in flight when the last run ended, by ordinal."""
    pending: dict[int, list[AnswerRecord]] = {}  # bounded by the window of the run that was cut short
    for ordinal, question, encoded, checksum in typed_rows(
        connection, tuple[int, int, bytes, int | None], "SELECT ordinal, question, record, checksum FROM pending"
    ):
        record = decode_record(encoded)
        check_record(record, questions)
        is_checked = checksum is None or checksum == record_checksum(ordinal, question, encoded)
        if not is_checked or record.question != question or ordinal not in range(len(plan)):
            raise ValueError(f"that of interview {ordinal} to question {question} is not as it was written")
        pending.setdefault(ordinal, []).append(record)
    return pending
