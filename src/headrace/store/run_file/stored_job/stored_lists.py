"""The agents and scenarios of a run file, read by position, and the job that the file holds.

Does not cover: writing lists (creation), or the plan (stored_plan).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from headrace.plan.called_models import with_claimed_models
from headrace.plan.census import MOST_FIELDS, FieldCensus
from headrace.plan.identity import Identity
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.checksums import fields_checksum
from headrace.store.run_file.column_kinds import bits_to_kinds
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.stored_keep import Keeping, read_keeping
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.stored_job.creation import read_identity, read_meta, read_settings
from headrace.store.run_file.stored_job.kept_budgets import KeptBudgets, read_budgets
from headrace.store.run_file.stored_job.plan_check import has_checked_rows
from headrace.store.run_file.stored_job.stored_boxes import count_planned, read_plan
from headrace.store.run_file.stored_job.stored_plan import check_lists
from headrace.store.run_file.stored_job.stored_where import read_conditions
from headrace.store.transactions import transaction
from headrace.survey.model import Model
from headrace.survey.survey import Survey
from headrace.survey.values import check_fields

_PAGE = 1_000


class TableSource:
    """A source of rows for AgentList or ScenarioList that reads a run file's table in pages; no read stays open."""

    def __init__(self, path: Path, table: str, length: int, digest: str, census: FieldCensus) -> None:
        self.length = length
        self.digest = digest
        self.census = census
        self._path = path
        self._table = table

    @property
    def field_names(self) -> Collection[str]:
        return self.census.kinds.keys()

    def rows(self, first: int = 0) -> Iterator[bytes]:
        lists = StoredLists(self._path)
        try:
            for start in range(first, self.length, _PAGE):
                positions = range(start, min(start + _PAGE, self.length))
                with translated_errors(self._path):
                    page = lists.rows(self._table, positions)
                yield from page.values()
        finally:
            lists.close()


class StoredLists:
    """Reads the agents and scenarios of a run file, through a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.connection = open_run_file(path)
        # Asked once: each statement gives up Python's lock, which the journal's thread then has to hand back.
        self._checksum = "checksum" if has_checked_rows(self.connection) else "NULL"

    def rows(self, table: str, positions: Sequence[int]) -> dict[int, bytes]:
        """The agents or scenarios at these positions, as JSON by position; each is checked."""
        low, high = min(positions), max(positions)
        if high - low < 2 * len(positions):  # mostly neighbours: one range reads them all
            where, values = "BETWEEN ? AND ?", (low, high)
        else:
            where, values = f"IN ({', '.join('?' * len(positions))})", tuple(positions)
        sql = f"SELECT position, fields, {self._checksum} FROM {table} WHERE position {where} ORDER BY position"
        with decoding(self._path, f"its {table}"):
            found = _checked(typed_rows(self.connection, tuple[int, str, int | None], sql, values))
        missing = next((position for position in positions if position not in found), None)
        if missing is not None:
            raise damaged(self._path, f"its {table[:-1]} {missing} is missing")
        return found

    def close(self) -> None:
        self.connection.close()


def _checked(rows: list[tuple[int, str, int | None]]) -> dict[int, bytes]:
    """Check rows and return their fields by position. Written out for speed: every interview passes here."""
    found: dict[int, bytes] = {}
    for position, fields, checksum in rows:
        encoded = found[position] = fields.encode()
        if checksum is not None and checksum != fields_checksum(position, encoded):
            raise ValueError(f"the row at {position} is not as it was written")
    check_fields(list(found.values()))  # who conducts the interview could say no more than that it is not JSON
    return found


def read_job(path: Path, allowed: frozenset[str]) -> Job:
    """Read the job that a run file holds. Its models' functions are missing: a file cannot carry them."""
    connection = open_run_file(path)
    try:
        with translated_errors(path), transaction(connection):
            header, plan = RunHeader.load(connection, path), read_plan(connection, path)
            check_lists(connection, path, plan)
            with decoding(path, "its survey"):
                survey, identity = Survey.from_row(read_meta(connection, "survey")), read_identity(connection)
                if tuple(question.question_name for question in survey.questions) != header.question_names:
                    raise ValueError("its questions are not those of its table of questions")
                return Job.of(
                    with_claimed_models(survey, str(path), allowed),
                    _agents(connection, path, plan.shape.agent, identity.agents),
                    ScenarioList.of(_source(connection, path, "scenario", plan.shape.scenario, identity.scenarios)),
                    ModelList(Model.from_file(model.to_row(), str(path), allowed) for model in header.models),
                    read_conditions(connection, path),
                    path.expanduser().resolve(),
                )
    finally:
        connection.close()


class KeptPlan(NamedTuple):
    """The identity, size and budgets of the job in a run file, and what the file keeps."""

    identity: Identity
    iterations: int
    interviews: int
    budgets: KeptBudgets
    keeping: Keeping


def read_kept_plan(path: Path) -> KeptPlan | None:
    """Read them without reading the job; None where there is no file yet."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    connection = open_run_file(path)
    try:
        with translated_errors(path):
            plan, budgets = read_plan(connection, path), read_budgets(connection)
            interviews, keeping = count_planned(connection, path, plan), read_keeping(connection, path)
            with decoding(path, "its identity"):
                return KeptPlan(read_identity(connection), plan.shape.iteration, interviews, budgets, keeping)
    finally:
        connection.close()


def _agents(connection: apsw.Connection, path: Path, length: int, identity: str) -> AgentList:
    source = _source(connection, path, "agent", length, identity)
    return AgentList.of(source, read_settings(connection), source.digest)


def _source(connection: apsw.Connection, path: Path, owner: str, length: int, identity: str) -> TableSource:
    census = FieldCensus()
    sql = "SELECT name, kinds FROM fields WHERE owner = ? ORDER BY position LIMIT ?"
    for name, bits in typed_rows(connection, tuple[str, int], sql, (owner, MOST_FIELDS)):
        census.kinds[name] = set(bits_to_kinds(bits))
    return TableSource(path, f"{owner}s", length, identity.rpartition("#")[2], census)
