"""Agent runs, their steps and the engine's events, page by page, for whoever looks at an engine file from outside.

Every list is bounded and every text is cut here, in SQL: a name, an error or a result may be large. Does not cover: an
engine's own reads (runs, steps, notes).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from headrace.priority import Priority
from headrace.store.engine_file.engine_reader import EngineReader
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.engine_values import Count, Id, cut_text
from headrace.survey.values import SqlValue

MOST_LETTERS = 300  # of a name or of an error in a list
_MOST_ERROR_LETTERS = 8_000  # of one run's error, which may hold a traceback
_MOST_STEP_LETTERS = 200
_HIGHEST = 1 << 62
_FAILED_OTHERWISE = tuple(sorted(state.value for state in FAILED_STATES - {RunState.FAILED}))  # than by an exception
_Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
_RunTypes: TypeAlias = tuple[
    Id, Id | None, str, str, Priority, RunState, Count, Count, Count, Count, str, _Moment, _Moment | None
]


class AgentRunRow(msgspec.Struct, frozen=True):
    """One agent run. `attempts` counts starts, `deaths` the lost workers that count against it, `failures` the failed
    attempts; `error` is why it failed, or the step that is undecided.
    """

    id: int
    parent: int | None
    name: str
    kind: str
    priority: Priority
    state: RunState
    attempts: int
    preempted: int
    deaths: int
    failures: int
    error: str
    submitted_at: float
    ended_at: float | None


class StepRow(msgspec.Struct, frozen=True):
    """One step. `started_at` is known of side effects only; `finished_at` is None where one has started and not
    finished.
    """

    name: str
    has_side_effect: bool
    started_at: float | None
    finished_at: float | None
    result_bytes: int


class EventLine(msgspec.Struct, frozen=True):
    """One event of an engine; `reading` is the memory reading behind it, as JSON."""

    id: int
    at: float
    run: int | None
    what: str
    reason: str
    reading: str | None


class Checkpointed(msgspec.Struct, frozen=True):
    number: int
    made_at: float | None


def agent_runs(reader: EngineReader, states: tuple[RunState, ...], ids: range, most: int) -> list[AgentRunRow]:
    """At most `most` of the runs with these ids that are in any of these states, the latest first."""
    where = f"WHERE id >= ? AND id < ? AND state IN ({', '.join('?' * len(states))}) ORDER BY id DESC LIMIT ?"
    return _run_rows(reader, where, (ids.start, ids.stop, *(state.value for state in states), most))


def ids_before(reader: EngineReader, before: int | None, most: int) -> range:
    """Where the ids of at most `most` runs are that come before one, the latest of them; empty where there are none."""
    latest = "SELECT id FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?"
    sql = f"SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM ({latest})"
    ((first, last),) = reader.rows(tuple[int, int], sql, (_HIGHEST if before is None else before, most))
    return range(first, last + 1)


def agent_run(reader: EngineReader, run: int) -> AgentRunRow | None:
    return next(iter(_run_rows(reader, "WHERE id = ?", (run,), _MOST_ERROR_LETTERS)), None)


def children_of(reader: EngineReader, run: int, most: int) -> list[AgentRunRow]:
    """The latest children of a run that were not detached from it. A child is younger than its parent."""
    return _run_rows(reader, "WHERE id > ? AND parent = ? ORDER BY id DESC LIMIT ?", (run, run, most))


def _run_rows(
    reader: EngineReader, where: str, values: tuple[SqlValue, ...], error_letters: int = MOST_LETTERS
) -> list[AgentRunRow]:
    # A file that no newer engine has opened yet does not count preemptions.
    preempted = "preempted" if reader.counts_preemptions() else "0"
    sql = (
        f"SELECT id, parent, {cut_text('name', MOST_LETTERS)}, {cut_text('kind', MOST_LETTERS)}, priority, state,"
        f" epoch, {preempted}, deaths, failures, {cut_text('error', error_letters)}, submitted_at, ended_at"
        f" FROM runs {where}"
    )
    return [AgentRunRow(*row) for row in reader.rows(_RunTypes, sql, values)]


def latest_steps(reader: EngineReader, run: int, most: int) -> list[StepRow]:
    """The latest steps of a run, oldest first."""
    sql = (
        f"SELECT {cut_text('name', _MOST_STEP_LETTERS)}, has_side_effect, started_at, finished_at,"
        " coalesce(length(result), (SELECT length(data) FROM blobs WHERE blobs.id = steps.blob), 0)"
        " FROM steps WHERE run = ? ORDER BY coalesce(finished_at, started_at) DESC LIMIT ?"
    )
    types = tuple[str, Count, _Moment | None, _Moment | None, Count]
    found = reader.rows(types, sql, (run, most))
    return [
        StepRow(name, bool(effect), started_at, finished_at, size)
        for name, effect, started_at, finished_at, size in found
    ][::-1]


def events_before(
    reader: EngineReader,
    *,
    run: int | None = None,
    what: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    before: int | None = None,
    most: int,
) -> list[EventLine]:
    """The latest events below an id, the latest first: of one run, or of these kinds, where that is asked for, and
    without those whose reason begins or ends with one of some texts.
    """
    conditions, values = ["id < ?"], [_HIGHEST if before is None else before]
    bindings: list[SqlValue] = [*values]
    for words in without:
        conditions.append("substr(reason, 1, ?) != ? AND substr(reason, ?) != ?")
        bindings.extend((len(words), words, -len(words), words))
    if run is not None:
        conditions.append("run = ?")
        bindings.append(run)
    if what:
        conditions.append(f"what IN ({', '.join('?' * len(what))})")
        bindings.extend(what)
    sql = (
        f"SELECT id, at, run, {cut_text('what', MOST_LETTERS)}, {cut_text('reason', MOST_LETTERS * 4)},"
        f" {cut_text('reading', MOST_LETTERS)} FROM events WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
    )
    types = tuple[Id, _Moment, Count | None, str, str, str | None]
    return [EventLine(*row) for row in reader.rows(types, sql, (*bindings, most))]


def checkpoint_of(reader: EngineReader, run: int) -> Checkpointed | None:
    sql = "SELECT number, made_at FROM checkpoints WHERE run = ?"
    return next((Checkpointed(*row) for row in reader.rows(tuple[Count, _Moment | None], sql, (run,))), None)


def waiting_messages(reader: EngineReader, run: int) -> int:
    """How many messages a run has not received."""
    return reader.one(Count, "SELECT count(*) FROM messages WHERE run = ?", (run,)) or 0


def kept_texts(reader: EngineReader, run: int, most_bytes: int) -> dict[str, str]:
    """The arguments, the result and the last checkpoint's state of a run, as JSON, each cut; none that there is not."""
    queries = {
        "arguments": "SELECT substr(arguments, 1, ?) FROM runs WHERE id = ?",
        "result": "SELECT substr(coalesce(result, (SELECT data FROM blobs WHERE blobs.id = result_blob)), 1, ?)"
        " FROM runs WHERE id = ?",
        "checkpoint": "SELECT substr(coalesce(state, (SELECT data FROM blobs WHERE blobs.id = blob)), 1, ?)"
        " FROM checkpoints WHERE run = ?",
    }
    found = {name: reader.one(bytes, sql, (most_bytes, run)) for name, sql in queries.items()}
    return {name: kept.decode("utf-8", "replace") for name, kept in found.items() if kept is not None}


def deaths_and_failures(reader: EngineReader, runs: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """How often workers of these runs died, and how many of their attempts failed, by the events that the file keeps:
    the columns of a run are set to zero when it is tried again by hand, and count no last time.
    """
    if not runs:
        return {}
    others = " AND ".join(["substr(reason, 1, ?) != ?"] * len(_FAILED_OTHERWISE))
    sql = (
        "SELECT run, sum(what IN ('out of memory', 'lost')),"
        f" sum(what = 'retried' OR (what = 'failed' AND {others})) FROM events"
        f" WHERE run IN ({', '.join('?' * len(runs))}) GROUP BY run"
    )
    words = [each for state in _FAILED_OTHERWISE for each in (len(state), state)]
    found = reader.rows(tuple[Id, Count, Count], sql, (*words, *runs))
    return {run: (deaths, failures) for run, deaths, failures in found}


def counts_by_state(reader: EngineReader) -> dict[RunState, int]:
    return dict(reader.rows(tuple[RunState, Count], "SELECT state, count(*) FROM runs GROUP BY state"))
