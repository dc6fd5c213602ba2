"""Writes the merged run file: it begins as a copy of the first file, then the rows of each other file are added.

Covers: which of two rows stays, counters, budgets. Does not cover: reading a file (merge_source), what may be merged
and the plan of the new file (merged_plan).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from msgspec import structs

from headrace.errors import OptionError, RunFileError
from headrace.limits import Budgets
from headrace.plan.product import Coordinates
from headrace.store.contents import decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.making import new_database
from headrace.store.private import make_directory
from headrace.store.run_file.checksums import fields_checksum, interview_checksum, record_checksum
from headrace.store.run_file.keeping.stored_keep import write_keeping
from headrace.store.run_file.merging.merge_source import MergedRow, MergeSource, opened_source
from headrace.store.run_file.merging.merged_plan import LISTS, MergedPlan, PlanMapping
from headrace.store.run_file.row_check import damaged_row
from headrace.store.run_file.rows import HEAD, Status
from headrace.store.run_file.run_schema import create_tables, create_view
from headrace.store.run_file.stored_job.creation import (
    write_box_rows,
    write_counters,
    write_identity,
    write_plan_check,
)
from headrace.store.run_file.stored_job.embedded_files import add_embedded
from headrace.store.run_file.stored_job.kept_budgets import read_budgets, write_budgets
from headrace.store.transactions import transaction
from headrace.survey.record import Usage, decode_record, encode_detail

_BATCH = 500
_OF_THE_PLAN = "key IN ('survey', 'dictionary', 'agent_settings') OR key GLOB 'repaired.*' OR key GLOB 'where*'"


class Merged(NamedTuple):
    """`planned` interviews are in the new file's plan, `interviews` of them have a row. `in_several` were in more than
    one file; of these, `replaced` had failed in the earlier one.
    """

    interviews: int
    planned: int
    in_several: int
    replaced: int


def merge_run_files(paths: Sequence[Path], target: Path) -> Merged:
    """Make one run file of several of one survey; all of it, or nothing. The files stay as they are."""
    _check_paths(paths, target)
    with ExitStack() as stack:
        first, *others = [stack.enter_context(opened_source(path)) for path in paths]
        with translated_errors(target):
            make_directory(target.parent)
            with new_database(target) as connection:
                made = _NewFile(connection, first)
                for source in others:
                    made.add(source)
                return made.finish(chain([first], others))


def _check_paths(paths: Sequence[Path], target: Path) -> None:
    if len(paths) < 2:
        raise OptionError("One file is nothing to merge.", fix="Name two run files or more.")
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    for number, path in enumerate(paths):
        if any(path.exists() and other.exists() and path.samefile(other) for other in paths[:number]):
            raise OptionError(f"{path} is named twice.", fix="Name each file once.")


class _NewFile:
    """The merged file while it is made."""

    def __init__(self, connection: apsw.Connection, first: MergeSource) -> None:
        self._connection = connection
        self._grown = MergedPlan(connection, first)
        self._first = first
        self._spent = Usage(*(first.counters[name] for name in Usage.__struct_fields__))
        self._in_several = self._replaced = 0
        self._begin(first)

    def add(self, source: MergeSource) -> None:
        """Add the rows of another file, and what its lists have beyond those of this one."""
        self._grown.check_is_same_survey(source)
        mapping = self._grown.add(source)
        self._add_kinds(source)
        add_embedded(self._connection, source.connection)
        shares_runs = self._add_runs(source)
        taken = self._add_interviews(source, mapping)
        self._add_pending(source, mapping)
        counted = Usage(*(source.counters[name] for name in Usage.__struct_fields__))
        self._spent.include(taken if shares_runs else counted)

    def finish(self, sources: Iterator[MergeSource]) -> Merged:
        """Write the plan, the counters and the budgets."""
        connection = self._connection
        budgets = _added_budgets([_budgets_of(source) for source in sources])
        count = "SELECT count(*) FROM interviews"
        done: int = connection.execute(count).get
        failed: int = connection.execute(f"{count} WHERE status = {int(Status.FAILED)}").get
        with transaction(connection):
            write_identity(connection, self._grown.identity)
            write_box_rows(connection, self._grown.plan)
            write_counters(connection, {**structs.asdict(self._spent), "done": done, "failed": failed})
            write_budgets(connection, budgets)
            create_view(connection)
            write_plan_check(connection)
        left_out: int = connection.execute("SELECT value FROM meta WHERE key = 'where.count'").get or 0
        return Merged(done, self._grown.plan.size - left_out, self._in_several, self._replaced)

    # --- the first file

    def _begin(self, first: MergeSource) -> None:
        connection = self._connection
        with transaction(connection):
            keeping = first.header.keeping
            create_tables(connection, len(first.header.question_names), with_totals=not keeping.is_usual)
            write_keeping(connection, keeping)
            for table in ("questions", "models", "fields", "runs"):
                self._copy(table, raw_rows(first.connection, f"SELECT * FROM {table}"))
            self._copy("meta", raw_rows(first.connection, f"SELECT key, value FROM meta WHERE {_OF_THE_PLAN}"))
            self._copy("meta", iter([("created_at", time.time())]))
        for table in LISTS:
            rows = ((at, fields, fields_checksum(at, fields.encode())) for at, fields in first.list_rows(table))
            self._copy(table, rows)
        add_embedded(connection, first.connection)
        for batch in _batches(first.interviews()):
            with transaction(connection):
                for row in batch:
                    self._write(row)
        self._copy("pending", ((*kept, record_checksum(*kept)) for kept in first.pending()))

    def _copy(self, table: str, rows: Iterator[tuple[Any, ...]]) -> None:
        for batch in _batches(rows):
            with transaction(self._connection):
                for row in batch:
                    places = ", ".join("?" * len(row))
                    self._connection.execute(f"INSERT INTO {table} VALUES({places})", row)

    # --- another file

    def _add_kinds(self, source: MergeSource) -> None:
        for position, kinds in raw_rows(source.connection, "SELECT position, kinds FROM questions"):
            sql = "UPDATE questions SET kinds = kinds | ? WHERE position = ?"
            self._connection.execute(sql, (kinds, position))

    def _add_runs(self, source: MergeSource) -> bool:
        """Add the file's runs; returns whether some were there already, as in a copy of a file that went on."""
        shared = False
        sql = "SELECT started_at, ended_at, reused, peak_memory_bytes, outcome, endpoints FROM runs ORDER BY number"
        for row in raw_rows(source.connection, sql):
            if self._connection.execute("SELECT count(*) FROM runs WHERE started_at = ?", row[:1]).get:
                shared = True
                continue
            self._connection.execute(
                "INSERT INTO runs(started_at, ended_at, reused, peak_memory_bytes, outcome, endpoints)"
                " VALUES(?, ?, ?, ?, ?, ?)",
                row,
            )
        return shared

    def _add_interviews(self, source: MergeSource, mapping: PlanMapping) -> Usage:
        """Add the rows; returns what those that were taken took."""
        taken = Usage()
        for batch in _batches(source.interviews()):
            with transaction(self._connection):
                for row in batch:
                    at = mapping.coordinates(row.ordinal)
                    ordinal = self._grown.plan.ordinal(at)
                    if self._is_taken(ordinal, row):
                        self._write(self._moved(row, ordinal, at, source, taken))
        return taken

    def _is_taken(self, ordinal: int, row: MergedRow) -> bool:
        status: int | None = self._connection.execute("SELECT status FROM interviews WHERE ordinal = ?", (ordinal,)).get
        if status is None:
            return True
        self._in_several += 1
        is_better = status == Status.FAILED and row.failed == Status.DONE
        if is_better:
            self._replaced += 1
            for table in ("interviews", "details", "failures", "pending"):
                self._connection.execute(f"DELETE FROM {table} WHERE ordinal = ?", (ordinal,))
        return is_better

    def _moved(self, row: MergedRow, ordinal: int, at: Coordinates, source: MergeSource, taken: Usage) -> MergedRow:
        """The row under its new ordinal, its detail compressed against the dictionary of the new file."""
        try:
            with decoding(source.path, "a detail"):
                detail = source.header.packer.unpack(row.detail)
        except RunFileError as error:
            raise damaged_row(source.header, row.ordinal, "its detail cannot be read") from error
        for record in detail.records:
            taken.add(record)
        values = (ordinal, *at, *row.values[HEAD.index("status") :])
        return MergedRow(values, self._first.header.packer.compress(encode_detail(detail)), row.failures)

    def _write(self, row: MergedRow) -> None:
        values = (*row.values, interview_checksum(row.values, row.detail))
        places = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT INTO interviews VALUES({places})", values)
        self._connection.execute("INSERT INTO details VALUES(?, ?)", (row.ordinal, row.detail))
        if row.failures:
            self._connection.executemany(
                "INSERT INTO failures VALUES(?, ?, ?, ?)", [(row.ordinal, *failure) for failure in row.failures]
            )

    def _add_pending(self, source: MergeSource, mapping: PlanMapping) -> None:
        """Add the answers of interviews in flight that have no answers here; what the others took stays counted."""
        taken: set[int] = set()  # bounded by a window
        with transaction(self._connection):
            for old, question, record in source.pending():
                ordinal = self._grown.plan.ordinal(mapping.coordinates(old))
                if ordinal in taken or not self._has_answers(ordinal):
                    taken.add(ordinal)
                    kept = (ordinal, question, record)
                    self._connection.execute("INSERT INTO pending VALUES(?, ?, ?, ?)", (*kept, record_checksum(*kept)))
                else:
                    with decoding(source.path, "an answer in flight"):
                        self._spent.add(decode_record(record))

    def _has_answers(self, ordinal: int) -> bool:
        held = (f"EXISTS(SELECT 1 FROM {table} WHERE ordinal = ?1)" for table in ("interviews", "pending"))
        return bool(self._connection.execute(f"SELECT {' OR '.join(held)}", (ordinal,)).get)


def _budgets_of(source: MergeSource) -> Budgets:
    kept = read_budgets(source.connection)
    kept.check(source.path)
    return kept.budgets


def _added_budgets(budgets: list[Budgets]) -> Budgets:
    """Money and tokens added up, as far as the files have limits; the rest as in the first file."""
    costs = [each.max_cost for each in budgets if each.max_cost is not None]
    tokens = [each.max_tokens_total for each in budgets if each.max_tokens_total is not None]
    return structs.replace(
        budgets[0], max_cost=sum(costs) if costs else None, max_tokens_total=sum(tokens) if tokens else None
    )


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch
