"""Lists that already stand in a run file, read by position. Covers: making a job's lists from the file alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from headrace.limits import Budgets
from headrace.plan.census import FieldCensus
from headrace.plan.identity import Identity
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.store.connections import open_reader
from headrace.store.creation import bits_to_kinds, read_identity, read_meta
from headrace.store.disk_errors import translated_errors
from headrace.store.kept_budgets import read_budgets
from headrace.store.runfile import read_plan
from headrace.survey.models import Model
from headrace.survey.survey import Survey

_PAGE = 1_000


class TableSource:
    """A source over the rows of a run file's table, in pages: no read stays open between them."""

    def __init__(self, path: Path, table: str, length: int, digest: str, census: FieldCensus) -> None:
        self.length = length
        self.digest = digest
        self.census = census
        self._path = path
        self._table = table

    def rows(self) -> Iterator[bytes]:
        connection = open_reader(self._path)
        try:
            for first in range(0, self.length, _PAGE):
                end = min(first + _PAGE, self.length)
                page = list(
                    connection.execute(
                        f"SELECT fields FROM {self._table} WHERE position >= ? AND position < ? ORDER BY position",
                        (first, end),
                    )
                )
                yield from (fields.encode() for (fields,) in page)
        finally:
            connection.close()


def read_job(path: Path, allowed: frozenset[str]) -> Job:
    """The job that a run file holds. Functions of its models stay missing: a file cannot carry them."""
    connection = open_reader(path)
    try:
        with translated_errors(path):
            shape, identity = read_plan(connection).shape, read_identity(connection)
            models = connection.execute("SELECT model FROM models ORDER BY position")
            return Job.of(
                Survey.from_row(read_meta(connection, "survey")),
                AgentList.of(_source(connection, path, "agent", shape.agent, identity.agents)),
                ScenarioList.of(_source(connection, path, "scenario", shape.scenario, identity.scenarios)),
                ModelList(Model.from_file(row, str(path), allowed) for (row,) in models),
                path.expanduser().resolve(),
            )
    finally:
        connection.close()


class KeptPlan(NamedTuple):
    """What a run file says of its job before anything of it is read."""

    identity: Identity
    interviews: int
    budgets: Budgets


def read_kept_plan(path: Path) -> KeptPlan | None:
    """None where there is no file yet."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    connection = open_reader(path)
    try:
        with translated_errors(path):
            interviews, budgets = len(read_plan(connection)), read_budgets(connection, path)
            return KeptPlan(read_identity(connection), interviews, budgets)
    finally:
        connection.close()


def planned_interviews(path: Path) -> int:
    """How many interviews the plan in a run file has."""
    connection = open_reader(path)
    try:
        with translated_errors(path):
            return len(read_plan(connection))
    finally:
        connection.close()


def latest_start(path: Path) -> float | None:
    """When the latest run of a file began; None before the first."""
    connection = open_reader(path)
    try:
        with translated_errors(path):
            return connection.execute("SELECT started_at FROM runs ORDER BY number DESC LIMIT 1").get
    finally:
        connection.close()


def _source(connection: apsw.Connection, path: Path, owner: str, length: int, identity: str) -> TableSource:
    census = FieldCensus()
    for name, bits in connection.execute("SELECT name, kinds FROM fields WHERE owner = ? ORDER BY position", (owner,)):
        census.kinds[name] = set(bits_to_kinds(bits))
    return TableSource(path, f"{owner}s", length, identity.rpartition("#")[2], census)
