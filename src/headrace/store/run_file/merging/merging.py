"""Writes the merged run file: it begins as a copy of the first file, then the rows of each other file are added.

Covers: what may be merged, which of two rows stays, counters, budgets, identity. Does not cover: reading a file
(merge_source), lists (list_joining).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from msgspec import structs

from headrace.errors import OptionError, RunFileError
from headrace.limits import Budgets
from headrace.plan import differences
from headrace.plan.identity import described
from headrace.plan.product import Coordinates, Plan
from headrace.store.contents import decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.making import new_database
from headrace.store.private import make_directory
from headrace.store.run_file.checksums import fields_checksum, interview_checksum, record_checksum
from headrace.store.run_file.keeping.stored_keep import write_keeping
from headrace.store.run_file.merging.list_joining import (
    Places,
    are_same_rows,
    join_models,
    join_rows,
    models_digest,
    rows_digest,
    same,
)
from headrace.store.run_file.merging.merge_source import MergedRow, MergeSource, opened_source
from headrace.store.run_file.row_check import damaged_row
from headrace.store.run_file.rows import HEAD, Status
from headrace.store.run_file.run_schema import create_tables, create_view
from headrace.store.run_file.stored_job.creation import (
    SETTINGS,
    write_box_rows,
    write_counters,
    write_identity,
    write_plan_check,
)
from headrace.store.run_file.stored_job.kept_budgets import read_budgets, write_budgets
from headrace.store.transactions import transaction
from headrace.survey.record import Usage, decode_record, encode_detail
from headrace.survey.survey import Survey

_BATCH = 500
_LISTS = ("agents", "scenarios")
_OF_THE_PLAN = "key IN ('survey', 'dictionary', 'agent_settings') OR key GLOB 'repaired.*' OR key GLOB 'where*'"
_SEPARATELY = "Read the files side by side instead: headrace results a.run b.run, or Results.open(a) + Results.open(b)."


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


@dataclass(slots=True)
class _Mapping:
    """Where an interview of an added file stands in the new plan."""

    plan: Plan
    agents: Places
    scenarios: Places
    models: Places

    def coordinates(self, ordinal: int) -> Coordinates:
        at = self.plan.coordinates(ordinal)
        places = self.agents(at.agent), self.scenarios(at.scenario), self.models(at.model)
        return Coordinates(at.iteration, *places)


class _NewFile:
    """The merged file while it is made."""

    def __init__(self, connection: apsw.Connection, first: MergeSource) -> None:
        self._connection = connection
        self._plan = first.plan
        self._identity = first.identity
        self._first = first
        self._spent = Usage(*(first.counters[name] for name in Usage.__struct_fields__))
        self._in_several = self._replaced = 0
        self._begin(first)

    def add(self, source: MergeSource) -> None:
        """Add the rows of another file, and what its lists have beyond those of this one."""
        self._check_is_same_survey(source)
        mapping = self._joined(source)
        self._add_kinds(source)
        shares_runs = self._add_runs(source)
        taken = self._add_interviews(source, mapping)
        self._add_pending(source, mapping)
        counted = Usage(*(source.counters[name] for name in Usage.__struct_fields__))
        self._spent.include(taken if shares_runs else counted)

    def finish(self, sources: Iterator[MergeSource]) -> Merged:
        """Write the plan, the counters and the budgets."""
        connection = self._connection
        budgets = _added_budgets([read_budgets(source.connection, source.path) for source in sources])
        count = "SELECT count(*) FROM interviews"
        done: int = connection.execute(count).get
        failed: int = connection.execute(f"{count} WHERE status = {int(Status.FAILED)}").get
        with transaction(connection):
            write_identity(connection, self._identity)
            write_box_rows(connection, self._plan)
            write_counters(connection, {**structs.asdict(self._spent), "done": done, "failed": failed})
            write_budgets(connection, budgets)
            create_view(connection)
            write_plan_check(connection)
        left_out: int = connection.execute("SELECT value FROM meta WHERE key = 'where.count'").get or 0
        return Merged(done, self._plan.size - left_out, self._in_several, self._replaced)

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
        for table in _LISTS:
            rows = ((at, fields, fields_checksum(at, fields.encode())) for at, fields in first.list_rows(table))
            self._copy(table, rows)
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

    def _check_is_same_survey(self, source: MergeSource) -> None:
        ours, theirs = self._identity, source.identity
        if ours.survey != theirs.survey:
            with decoding(source.path, "its survey"):
                pair = (Survey.from_row(each.header.survey_row) for each in (source, self._first))
                said = "; ".join(islice(differences.of_surveys(*pair), 3))
            self._refuse(source, f"they ask different surveys: {said}" if said else "they ask different surveys")
        if self._first.header.keeping != source.header.keeping:
            self._refuse(source, "one keeps prompts and raw responses, and the other does not")
        if ours.where != theirs.where:
            self._refuse(source, "they leave out different combinations (--where)")

    def _joined(self, source: MergeSource) -> _Mapping:
        """Join the lists; refused where more than one of them differs, because that would make new combinations."""
        shape, theirs = self._plan.shape, source.plan.shape
        models = [row for (row,) in raw_rows(self._connection, "SELECT model FROM models ORDER BY position")]
        their_models = [row for (row,) in raw_rows(source.connection, "SELECT model FROM models ORDER BY position")]
        places_of_models, added = join_models(models, their_models, source.path)
        lengths = {"agents": shape.agent, "scenarios": shape.scenario}
        differ = [table for table in _LISTS if not self._has_list(source, table, lengths[table])]
        if added or len(their_models) != len(models):
            differ.append("models")
        self._check_differences(source, differ, has_other_n=shape.iteration != theirs.iteration)
        places: dict[str, Places] = dict.fromkeys(_LISTS, same)
        for table in set(differ) & set(_LISTS):
            places[table], lengths[table] = join_rows(self._connection, source, table, lengths[table])
            self._add_fields(source, table)
        for number, row in enumerate(added, len(models)):
            copied = next(iter(raw_rows(source.connection, "SELECT name, service FROM models WHERE model = ?", (row,))))
            self._connection.execute("INSERT INTO models VALUES(?, ?, ?, ?)", (number, *copied, row))
        iterations = max(shape.iteration, theirs.iteration)
        models = [*models, *added]
        grown = Coordinates(iterations, lengths["agents"], lengths["scenarios"], len(models))
        if grown[1:] != shape[1:]:
            self._identify(source, differ[0], grown, models)
        self._plan = self._plan.grown(grown)
        return _Mapping(source.plan, places["agents"], places["scenarios"], places_of_models)

    def _has_list(self, source: MergeSource, table: str, length: int) -> bool:
        is_same_text = getattr(self._identity, table) == getattr(source.identity, table)
        if is_same_text:
            return True
        if table == "agents" and source.meta(SETTINGS) != self._first.meta(SETTINGS):
            self._refuse(source, "their agents have different codebooks or templates")
        return are_same_rows(self._connection, source, table, length)

    def _check_differences(self, source: MergeSource, differ: list[str], *, has_other_n: bool) -> None:
        if len(differ) > 1:
            what = " and ".join(differ)
            self._refuse(
                source, f"both their {what} differ, and the merged plan would have combinations that neither has asked"
            )
        if differ and has_other_n:
            self._refuse(source, f"their {differ[0]} differ, and how often each is asked (n) differs too")
        if self._identity.where and (differ or self._plan.boxes != source.plan.boxes):
            self._refuse(source, "they leave combinations out (--where), and are not of the same job")

    def _identify(self, source: MergeSource, table: str, shape: Coordinates, models: list[str]) -> None:
        """Name the list that has grown by its content: as the other file does where it is that file's whole list."""
        length: int = getattr(shape, table[:-1])
        if table == "models":
            found = described(length, "model", models_digest(models))
        elif are_same_rows(self._connection, source, table, length):
            found = getattr(source.identity, table)
        else:
            settings = self._first.meta(SETTINGS) if table == "agents" else None
            found = described(length, table[:-1], rows_digest(self._connection, table, settings))
        self._identity = replace(self._identity, **{table: found})

    def _add_fields(self, source: MergeSource, table: str) -> None:
        owner = table[:-1]
        last = "SELECT coalesce(max(position), -1) + 1 FROM fields WHERE owner = ?"
        first: int = self._connection.execute(last, (owner,)).get
        sql = "SELECT name, kinds FROM fields WHERE owner = ? ORDER BY position"
        for at, (name, kinds) in enumerate(raw_rows(source.connection, sql, (owner,)), first):
            self._connection.execute(
                "INSERT INTO fields VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET kinds = kinds | excluded.kinds",
                (owner, name, kinds, at),
            )

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

    def _add_interviews(self, source: MergeSource, mapping: _Mapping) -> Usage:
        """Add the rows; returns what those that were taken took."""
        taken = Usage()
        for batch in _batches(source.interviews()):
            with transaction(self._connection):
                for row in batch:
                    at = mapping.coordinates(row.ordinal)
                    ordinal = self._plan.ordinal(at)
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

    def _add_pending(self, source: MergeSource, mapping: _Mapping) -> None:
        """Add the answers of interviews in flight that have no answers here; what the others took stays counted."""
        taken: set[int] = set()  # bounded by a window
        with transaction(self._connection):
            for old, question, record in source.pending():
                ordinal = self._plan.ordinal(mapping.coordinates(old))
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

    def _refuse(self, source: MergeSource, what: str) -> None:
        raise RunFileError(
            f"{self._first.path} and {source.path} cannot be merged: {what}.", path=source.path, fix=_SEPARATELY
        )


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
