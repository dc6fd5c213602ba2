"""A run file that is merged: its header, plan and lists, and its rows in pages, all of one moment, each row checked.

Does not cover: what becomes of the rows (merging).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw
import msgspec

from headrace.errors import RunFileError
from headrace.limits import Keep
from headrace.plan.identity import Identity
from headrace.plan.product import Plan
from headrace.store.contents import UNREADABLE, check_in_order, damaged, decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.checksums import fields_checksum, has_detail, has_values, record_checksum
from headrace.store.run_file.details import read_counters
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import check_none_is_missing
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.row_check import damaged_row
from headrace.store.run_file.rows import ANSWER_COLUMNS, HEAD
from headrace.store.run_file.stored_job.creation import read_identity
from headrace.store.run_file.stored_job.plan_check import has_checked_rows
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.run_file.stored_job.stored_plan import check_lists
from headrace.store.transactions import transaction

_PAGE = 500
FailureOf: TypeAlias = tuple[int, str, str]  # question, cause, message


class MergedRow(NamedTuple):
    """An interview: the columns of its table but for the checksum, its detail, and the failures of its questions."""

    values: tuple[Any, ...]
    detail: bytes
    failures: list[FailureOf]

    @property
    def ordinal(self) -> int:
        return self.values[0]

    @property
    def failed(self) -> int:
        return self.values[HEAD.index("status")]


class MergeSource(msgspec.Struct, frozen=True, kw_only=True):
    """Made by `opened_source`; it reads inside one transaction."""

    path: Path
    connection: apsw.Connection
    header: RunHeader
    plan: Plan
    identity: Identity
    counters: dict[str, Any]
    _checksum: str  # the column, or NULL in a file of an older version

    def meta(self, key: str) -> Any:
        return self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get

    def list_rows(self, table: str) -> Iterator[tuple[int, str]]:
        """The rows of agents or scenarios that the plan knows, each with its place."""
        length = self.plan.shape.agent if table == "agents" else self.plan.shape.scenario
        sql = f"SELECT position, fields, {self._checksum} FROM {table} WHERE position >= 0 AND position < ?"
        for position, fields, checksum in raw_rows(self.connection, f"{sql} ORDER BY position", (length,)):
            if not isinstance(fields, str) or checksum not in (None, fields_checksum(position, fields.encode())):
                raise damaged(self.path, f"its {table[:-1]} {position} is not as it was written")
            yield position, fields

    def interviews(self) -> Iterator[MergedRow]:
        """All interviews, by ordinal; a damaged one is refused."""
        after = -1
        while page := self._page(after):
            failures = self._failures(page[0][0], page[-1][0])
            for *values, checksum, detail in page:
                yield self._checked(tuple(values), checksum, detail, failures.get(values[0], []))
            check_in_order(page, after)
            after = page[-1][0]

    def pending(self) -> list[tuple[int, int, bytes]]:
        """The answers of interviews in flight; as many as a window has."""
        sql = f"SELECT ordinal, question, record, {self._checksum} FROM pending"
        found: list[tuple[int, int, bytes]] = []
        for ordinal, question, record, checksum in raw_rows(self.connection, sql):
            if checksum not in (None, record_checksum(ordinal, question, record)):
                raise damaged(self.path, f"an answer in flight of interview {ordinal} is not as it was written")
            found.append((ordinal, question, record))
        return found

    def _page(self, after: int) -> list[tuple[Any, ...]]:
        answers = "".join(f", i.a{at}" for at in range(min(len(self.header.question_names), ANSWER_COLUMNS)))
        columns = f"{', '.join(f'i.{name}' for name in HEAD)}{answers}, i.more"
        checksum = "i.checksum" if self._checksum != "NULL" else "NULL"
        sql = (
            f"SELECT {columns}, {checksum}, d.detail FROM interviews i LEFT JOIN details d ON d.ordinal = i.ordinal"
            f" WHERE i.ordinal > ? ORDER BY i.ordinal LIMIT {_PAGE}"
        )
        return list(raw_rows(self.connection, sql, (after,)))

    def _failures(self, first: int, last: int) -> dict[int, list[FailureOf]]:
        found: dict[int, list[FailureOf]] = {}
        sql = "SELECT ordinal, question, cause, message FROM failures WHERE ordinal BETWEEN ? AND ?"
        for ordinal, *failure in raw_rows(self.connection, sql, (first, last)):
            found.setdefault(ordinal, []).append(tuple(failure))
        return found

    def _checked(
        self, values: tuple[Any, ...], checksum: int | None, detail: bytes | None, failures: list[FailureOf]
    ) -> MergedRow:
        ordinal = values[0]
        if not isinstance(detail, bytes) or (checksum is not None and not _is_as_written(checksum, values, detail)):
            raise damaged_row(self.header, ordinal, "its checksum is not that of its answers and its detail")
        if not 0 <= ordinal < self.plan.size or self.plan.coordinates(ordinal) != values[1 : HEAD.index("status")]:
            raise damaged_row(self.header, ordinal, "its positions are not those of the plan")
        return MergedRow(values, detail, failures)


def _is_as_written(checksum: int, values: tuple[Any, ...], detail: bytes) -> bool:
    try:
        return has_values(checksum, values) and has_detail(checksum, detail)
    except UNREADABLE:
        return False


@contextmanager
def opened_source(path: Path) -> Generator[MergeSource]:
    """Open a run file to be merged; all of it is read as it is at this moment, also while it is written."""
    connection = open_run_file(path)
    try:
        with translated_errors(path), transaction(connection):
            header, plan = RunHeader.load(connection, path), read_plan(connection, path)
            _refuse_totals(header)
            check_lists(connection, path, plan)
            check_none_is_missing(connection, path)
            with decoding(path, "its identity"):
                identity = read_identity(connection)
            yield MergeSource(
                path=path,
                connection=connection,
                header=header,
                plan=plan,
                identity=identity,
                counters=read_counters(connection, path),
                _checksum="checksum" if has_checked_rows(connection) else "NULL",
            )
    finally:
        connection.close()


def _refuse_totals(header: RunHeader) -> None:
    """Refuse a file that keeps no rows, or totals of them: interviews of two files cannot be told apart in these."""
    if header.keeping.keep is Keep.NOTHING or header.keeping.totals is not None:
        raise RunFileError(
            f"{header.path} keeps totals of its interviews, and cannot be merged.",
            path=header.path,
            fix="Add up the totals of both files.",
        )
