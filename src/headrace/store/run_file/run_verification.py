"""Looking through a whole run file for rows that have changed since they were written.

It reads every row once, in pages: 30 us for an interview. It does not stop at the first fault: each is a finding, and
its kind says what is lost. Does not cover: the findings (store.verification), engine files
(engine_file.engine_verification), or checking a page as it is read (row_check).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import apsw

from headrace.expressions import ColumnKind
from headrace.limits import Keep
from headrace.plan.product import Plan
from headrace.store.contents import UNREADABLE, check_in_order, raw_rows, short_message
from headrace.store.history.stored_history import check_history
from headrace.store.run_file.checksums import fields_checksum, has_detail, record_checksum
from headrace.store.run_file.column_kinds import KINDS_OF_TYPE, bits_to_kinds
from headrace.store.run_file.details import check_runs, read_counters
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    AGENT_AT,
    ANSWERS,
    CHECKSUM,
    EVERYTHING,
    ITERATION,
    KEY,
    MODEL,
    MORE,
    ORDINAL,
    SCENARIO_AT,
    STATUS,
    TRUE,
    Fetched,
    check_none_is_missing,
    everything_of,
    fetch,
    with_checks,
)
from headrace.store.run_file.keeping.stored_totals import TotalsCheck, read_totals
from headrace.store.run_file.keeping.unkept_verification import check_unkept
from headrace.store.run_file.row_blocks import check_row_blocks
from headrace.store.run_file.row_check import row_trouble
from headrace.store.run_file.rows import Status
from headrace.store.run_file.stored_job.creation import read_identity, read_meta, read_settings
from headrace.store.run_file.stored_job.embedded_files import damaged_files
from headrace.store.run_file.stored_job.kept_budgets import read_budgets
from headrace.store.run_file.stored_job.plan_check import has_checked_rows, unchecked_parts
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.run_file.stored_job.stored_plan import check_lists
from headrace.store.transactions import transaction
from headrace.store.verification import Verification
from headrace.survey.record import Detail, decode_record
from headrace.survey.survey import Survey
from headrace.survey.values import decode_fields

_PAGE = 1_000


def verify_run_file(connection: apsw.Connection, path: Path, check_totals: TotalsCheck | None = None) -> Verification:
    """Look through all tables. Without `check_totals`, states of totals are compared with their checksums alone."""
    found = Verification(path)
    found.check_pages(connection)
    loaded: list[tuple[RunHeader, Plan]] = []
    found.attempt("plan", lambda: loaded.append(_load_plan(connection, path)))
    found.attempt("counters", lambda: read_counters(connection, path))
    found.attempt("budgets", lambda: read_budgets(connection).check(path))
    if loaded:
        ((header, plan),) = loaded
        found.is_added_up = header.keeping.keep is Keep.NOTHING or header.keeping.totals is not None
        found.attempt("plan", lambda: _check_plan(connection, found, plan))
        for table in ("agents", "scenarios"):
            found.attempt(table, lambda table=table: _check_list(connection, found, table))
        if header.keeping.keep is Keep.NOTHING:
            found.attempt("finished", lambda: check_unkept(connection, found, header, plan))
        else:
            found.attempt("interviews", lambda: _check_interviews(connection, found, header, plan))
            found.attempt("interviews", lambda: check_none_is_missing(connection, path))
            found.attempt("row blocks", lambda: check_row_blocks(connection, found, plan.size))
        if (text := header.keeping.totals) is not None:
            found.attempt("totals", lambda: _check_totals(connection, found, text, check_totals))
        found.attempt("answers in flight", lambda: _check_pending(connection, found))
    found.attempt("embedded files", lambda: _check_embedded(connection, found))
    found.attempt("runs", lambda: check_runs(connection, found))
    found.attempt("memory history", lambda: check_history(connection, found))
    return found


def _load_plan(connection: apsw.Connection, path: Path) -> tuple[RunHeader, Plan]:
    with transaction(connection):  # of one moment, also while a run begins
        return RunHeader.load(connection, path), read_plan(connection, path)


def _check_plan(connection: apsw.Connection, found: Verification, plan: Plan) -> None:
    unchecked = unchecked_parts(connection)
    found.rows += unchecked
    found.unchecked += unchecked
    check_lists(connection, found.path, plan)
    Survey.from_row(read_meta(connection, "survey"))
    read_identity(connection)
    read_settings(connection)


def _check_totals(connection: apsw.Connection, found: Verification, text: str, check: TotalsCheck | None) -> None:
    states = read_totals(connection, found.path)
    found.rows += len(states)
    if check is not None:
        check(text, states)


def _check_list(connection: apsw.Connection, found: Verification, table: str) -> None:
    checksum = "checksum" if has_checked_rows(connection) else "NULL"
    sql = f"SELECT position, fields, {checksum} FROM {table} WHERE position > ? ORDER BY position LIMIT {_PAGE}"
    for position, fields, held in _paged(connection, sql):
        found.rows += 1
        found.unchecked += held is None
        try:
            decode_fields(fields)
            is_right = held is None or held == fields_checksum(position, fields.encode())
        except UNREADABLE:
            is_right = False
        if not is_right:
            found.note(table, "is not as it was written", position)


def _paged(connection: apsw.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    after = -(2**63)
    while page := list(raw_rows(connection, sql, (after,))):
        yield from page
        check_in_order(page, after)
        after = page[-1][0]


def _check_interviews(connection: apsw.Connection, found: Verification, header: RunHeader, plan: Plan) -> None:
    questions = len(header.question_names)
    projection = everything_of(questions)
    projection = with_checks(projection, questions) if header.has_checksums else projection
    look = _Interviews(connection, found, header, plan)
    after: int | None = -(2**63)
    while after is not None:
        page, is_cut = fetch(connection, EVERYTHING, projection, TRUE, after, projection.page_rows)
        for row in page:
            found.rows += 1
            found.unchecked += row[CHECKSUM] is None
            trouble = row_trouble(row, projection, header) or look.trouble(row)
            if trouble is not None:
                found.note("interviews", trouble, row[ORDINAL])
            is_whole = look.check_detail(row)
            if (trouble is not None or not is_whole) and 0 <= row[ORDINAL] < plan.size:
                found.run_again.add(row[ORDINAL])
        after = page[-1][KEY] if is_cut else None
    look.check_counts()


class _Interviews:
    """Compares all interviews with the plan, the details, the failures and the counters."""

    def __init__(self, connection: apsw.Connection, found: Verification, header: RunHeader, plan: Plan) -> None:
        self._connection = connection
        self._found = found
        self._header = header
        self._plan = plan
        self._failed = 0
        self._types: list[set[type[Any]]] = [set() for _ in range(min(len(header.question_names), 1000))]

    def trouble(self, row: Fetched) -> str | None:
        self._failed += row[STATUS] == Status.FAILED
        for seen, value in zip(self._types, row[ANSWERS:MORE], strict=False):
            seen.add(type(cast(object, value)))
        if not 0 <= row[ORDINAL] < self._plan.size:
            return "it is none of the plan"
        if self._plan.coordinates(row[ORDINAL]) != (row[ITERATION], row[AGENT_AT], row[SCENARIO_AT], row[MODEL]):
            return "its positions are not those of the plan"
        try:
            self._header.answers(list(row[ANSWERS:MORE]), row[MORE])
        except UNREADABLE as error:
            return f"its answers cannot be read ({short_message(error)})"
        return None

    def check_detail(self, row: Fetched) -> bool:
        """Whether the detail and the failures of an interview are as they were written."""
        ordinal = row[ORDINAL]
        try:
            sql = "SELECT detail FROM details WHERE ordinal = ?"
            packed: bytes | None = self._connection.execute(sql, (ordinal,)).get
            if packed is None or (row[CHECKSUM] is not None and not has_detail(row[CHECKSUM], packed)):
                raise ValueError("is missing, or not as it was written")
            return self._check_failures(ordinal, self._header.packer.unpack(packed))
        except UNREADABLE as error:
            self._found.note("details", short_message(error), ordinal)
            return False

    def _check_failures(self, ordinal: int, detail: Detail) -> bool:
        """Compare the failures in a detail with the table `failures`, which exists for finding them."""
        asked = range(len(self._header.question_names))
        if any(record.question not in asked for record in detail.records):
            raise ValueError("is of a question that is not there")
        kept = [record.failure for record in detail.records if record.failure is not None]
        sql = "SELECT question, cause, message FROM failures WHERE ordinal = ? ORDER BY question"
        listed = list(raw_rows(self._connection, sql, (ordinal,)))
        is_right = listed == sorted((failure.question, failure.cause.value, failure.message) for failure in kept)
        if not is_right:
            self._found.note("failures", "are not those of the detail", ordinal)
        return is_right

    def check_counts(self) -> None:
        counted = self._connection.execute("SELECT value FROM counters WHERE name = 'failed'").get
        if counted != self._failed:
            self._found.note("counters", f"{counted} failed interviews are counted, {self._failed} are there")
        for table in ("details", "failures"):
            sql = f"SELECT count(*) FROM {table} WHERE ordinal NOT IN (SELECT ordinal FROM interviews)"
            if lost := self._connection.execute(sql).get:
                self._found.note(table, f"{lost} are of interviews that are not there")
        self._check_kinds()

    def _check_kinds(self) -> None:
        """Compare the kinds that the file names with those it holds: filters trust them, and would leave rows out."""
        said: dict[int, int] = dict(raw_rows(self._connection, "SELECT position, kinds FROM questions"))
        for position, types in enumerate(self._types):
            seen = frozenset[ColumnKind]().union(*(KINDS_OF_TYPE[each] for each in types))
            if not seen <= bits_to_kinds(said.get(position, 0)):
                self._found.note("questions", "what it says of its answers' kinds is not what they are", position)


def _check_pending(connection: apsw.Connection, found: Verification) -> None:
    checksum = "checksum" if has_checked_rows(connection) else "NULL"
    for ordinal, question, record, held in raw_rows(
        connection, f"SELECT ordinal, question, record, {checksum} FROM pending"
    ):
        found.rows += 1
        found.unchecked += held is None
        try:
            decode_record(record)
            is_right = held is None or held == record_checksum(ordinal, question, record)
        except UNREADABLE:
            is_right = False
        if not is_right:
            found.note("answers in flight", "is not as it was written", ordinal)


def _check_embedded(connection: apsw.Connection, found: Verification) -> None:
    for digest in damaged_files(connection):
        found.note(
            "embedded files", f"{digest[:12]} is not as it was written; runs read it from its path, or not at all"
        )
