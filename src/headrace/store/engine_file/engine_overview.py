"""What an engine file holds, for whoever looks at it from outside: how many runs there are, and which failed last.

Covers: reading it, also while an engine writes it. Does not cover: an engine's own view of its runs (runs).
"""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from headrace.errors import RunFileError
from headrace.store.connections import connect
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.engine_values import Count, Id, cut_text
from headrace.store.formats import ENGINE_FILE, has_format

_FAILED = ", ".join(f"'{state.value}'" for state in sorted(FAILED_STATES, key=str))
_MOST_LETTERS = 4_000  # of a name or an error, which may hold a traceback


class FailedRun(msgspec.Struct, frozen=True):
    """A run that ended without a result and was not cancelled. `error` begins with the line that says why."""

    id: int
    name: str
    kind: str
    state: RunState
    error: str


class EngineOverview(msgspec.Struct, frozen=True):
    """`runs` are counted by state; `latest_failed` are the failed ones that were submitted last, oldest first.
    `peak_memory_bytes` is the most that an engine of this file took, None where no history says so.
    """

    runs: dict[RunState, int]
    latest_failed: list[FailedRun]
    peak_memory_bytes: int | None

    @property
    def failed(self) -> int:
        return sum(count for state, count in self.runs.items() if state in FAILED_STATES)


def is_engine_file(path: Path) -> bool:
    """Whether there is an engine's file, of any version."""
    if not path.is_file():
        return False
    try:
        connection = connect(path, flags=apsw.SQLITE_OPEN_READONLY)
    except (apsw.Error, RunFileError):
        return False
    try:
        return has_format(connection, ENGINE_FILE)
    except apsw.Error:
        return False
    finally:
        connection.close()


def read_overview(path: Path, most_failed: int) -> EngineOverview:
    with reading_engine(path) as reader:
        counted = reader.rows(tuple[RunState, Count], "SELECT state, count(*) FROM runs GROUP BY state")
        sql = (
            f"SELECT id, {cut_text('name', _MOST_LETTERS)}, {cut_text('kind', _MOST_LETTERS)}, state,"
            f" {cut_text('error', _MOST_LETTERS)} FROM runs WHERE state IN ({_FAILED}) ORDER BY id DESC LIMIT ?"
        )
        failed = [FailedRun(*row) for row in reader.rows(tuple[Id, str, str, RunState, str], sql, (most_failed,))]
        return EngineOverview(dict(counted), failed[::-1], reader.peak_memory_bytes())
