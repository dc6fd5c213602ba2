"""Dropping the damaged rows of a run file, so that a run can make them anew: `headrace compact RUN --drop-damaged`.

Works on a copy that a verification has looked through. Interviews whose row, detail or failures are not as they were
written go, with everything of theirs; so do details and failures without an interview, and damaged answers in flight.
What a resumed run needs is then put right: the counts, the checksum of the counters, the kinds of answers. What was
spent stays counted; where the counters themselves are damaged, it is added up from the details that are left.

Does not cover: finding damage (run_verification), the file as a whole (store.whole_files).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from headrace.errors import RunFileDamaged
from headrace.expressions import ColumnKind
from headrace.store.contents import raw_rows
from headrace.store.run_file.checksums import record_checksum
from headrace.store.run_file.column_kinds import KINDS_OF_TYPE, kinds_to_bits
from headrace.store.run_file.details import read_counters
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.rows import ANSWER_COLUMNS, Status
from headrace.store.run_file.run_schema import has_row_blocks
from headrace.store.run_file.stored_job.creation import write_counters
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.transactions import transaction
from headrace.store.verification import Verification
from headrace.survey.record import Usage

# What can be put right in a copy; anything else (pages, the plan, the lists) a run could not do without. Budgets are
# given again with the next run, whatever becomes of rows.
DROPPABLE = frozenset({"interviews", "details", "failures", "counters", "questions", "answers in flight", "row blocks"})
_OF_NO_ROW = frozenset({"budgets"})
_TYPES = {"null": type(None), "integer": int, "real": float, "text": str, "blob": bytes}
_OF_AN_INTERVIEW = ("interviews", "details", "failures", "pending")


def can_be_dropped(found: Verification) -> bool:
    """Whether a run can make good all the damage to rows, once the damaged ones are gone."""
    is_all = found.findings.keys() <= DROPPABLE | _OF_NO_ROW
    return is_all and not found.run_again.is_cut and not found.is_added_up


def has_damaged_rows(found: Verification) -> bool:
    return not found.findings.keys() <= _OF_NO_ROW


def check_can_be_dropped(found: Verification) -> None:
    if can_be_dropped(found):
        return
    rest = [kind for kind in found.findings if kind not in DROPPABLE | _OF_NO_ROW]
    why = "more than 100,000 stretches of its interviews are damaged"
    if found.is_added_up:
        why = "it keeps totals, out of which no interview can be taken"
    elif rest:
        why = f"there is damage in its {' and '.join(rest)}"
    raise RunFileDamaged(
        f"{found.path} cannot be put right by dropping rows: {why}.",
        path=found.path,
        fix="Restore a copy, or run the job again into a new file; headrace verify lists all that is damaged.",
    )


def drop_damaged(connection: apsw.Connection, path: Path, found: Verification) -> int:
    """Drop what a check has found damaged, from a copy of the file; returns how many interviews that were."""
    header, plan = RunHeader.load(connection, path), read_plan(connection, path)
    before: int = connection.execute("SELECT count(*) FROM interviews").get
    for first, last in found.run_again.ranges:
        _delete(connection, "ordinal BETWEEN ? AND ?", (first, last))
    _delete(connection, "ordinal < 0 OR ordinal >= ?", (plan.size,))
    with transaction(connection):
        for table in ("details", "failures"):
            connection.execute(f"DELETE FROM {table} WHERE ordinal NOT IN (SELECT ordinal FROM interviews)")
        _drop_pending(connection, header)
        _write_kinds(connection, len(header.question_names))
        write_counters(connection, _counted(connection, path, header))
        if has_row_blocks(connection):
            connection.execute("DELETE FROM row_blocks")  # the next run writes them anew
    return before - int(connection.execute("SELECT count(*) FROM interviews").get)


def _delete(connection: apsw.Connection, where: str, values: tuple[int, ...]) -> None:
    with transaction(connection):
        for table in _OF_AN_INTERVIEW:
            connection.execute(f"DELETE FROM {table} WHERE {where}", values)


def _drop_pending(connection: apsw.Connection, header: RunHeader) -> None:
    if not header.has_checksums:
        return
    held = list(raw_rows(connection, "SELECT ordinal, question, record, checksum FROM pending"))  # bounded by a window
    for ordinal, question, record, checksum in held:
        if checksum is not None and checksum != record_checksum(ordinal, question, record):
            connection.execute("DELETE FROM pending WHERE ordinal = ? AND question = ?", (ordinal, question))


def _write_kinds(connection: apsw.Connection, questions: int) -> None:
    """Add the kinds of values that answers have to those that the file names: filters trust these."""
    for position in range(min(questions, ANSWER_COLUMNS)):
        types = raw_rows(connection, f"SELECT DISTINCT typeof(a{position}) FROM interviews")
        kinds = frozenset[ColumnKind]().union(*(KINDS_OF_TYPE[_TYPES[name]] for (name,) in types))
        sql = "UPDATE questions SET kinds = kinds | ? WHERE position = ?"
        connection.execute(sql, (kinds_to_bits(kinds), position))


def _counted(connection: apsw.Connection, path: Path, header: RunHeader) -> dict[str, float]:
    try:
        spent = read_counters(connection, path)
    except RunFileDamaged:
        spent = msgspec.structs.asdict(_usage(connection, header))
    count = "SELECT count(*) FROM interviews"
    done, failed = (connection.execute(sql).get for sql in (count, f"{count} WHERE status = {int(Status.FAILED)}"))
    return {**{name: spent[name] for name in Usage.__struct_fields__}, "done": done, "failed": failed}


def _usage(connection: apsw.Connection, header: RunHeader) -> Usage:
    spent = Usage()
    for packed in _details(connection):
        for record in header.packer.unpack(packed).records:
            spent.add(record)
    return spent


def _details(connection: apsw.Connection) -> Iterator[Any]:
    return (detail for (detail,) in raw_rows(connection, "SELECT detail FROM details"))
