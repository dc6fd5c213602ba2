"""The journal of agent runs: what has to be written, as plain values, and writing a batch of it in one transaction.

An attempt that was replaced cannot write any more: its epoch is compared in the statement itself.
Does not cover: when a batch is written (agents.engine.engine_writer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import apsw
import msgspec

from headrace.steady_clock import ClockNote
from headrace.store.engine_file.engine_schema import FAILED_STATES, MOST_EVENTS_KEPT, MOST_ROW_BYTES, Effect, RunState
from headrace.survey.record import Usage
from headrace.survey.values import SqlValue

Write: TypeAlias = tuple[str, tuple[SqlValue, ...]]

_IF_CURRENT = "(SELECT epoch FROM runs WHERE id = ?1) = ?2"
_TRIM_EVENTS_EVERY = 1000


class Writes:
    """Makes the statements; numbers blobs by itself, being the only writer."""

    def __init__(self, last_blob: int) -> None:
        self._blob = last_blob
        self._events = 0

    def submitted(
        self,
        id: int,
        key: bytes | None,
        name: str,
        kind: str,
        arguments: bytes,
        priority: int,
        at: float,
        parent: int | None = None,
    ) -> list[Write]:
        sql = (
            "INSERT INTO runs(id, key, name, kind, arguments, priority, state, submitted_at, parent)"
            " VALUES(?, ?, ?, ?, ?, ?, 'waiting', ?, ?)"
        )
        return [(sql, (id, key, name, kind, arguments, priority, at, parent))]

    def orphaned(self, id: int) -> list[Write]:
        """Its unfinished children go on by themselves."""
        return [("UPDATE runs SET parent = NULL WHERE parent = ? AND ended_at IS NULL", (id,))]

    def warden(self, pid: int | None) -> list[Write]:
        """Whose end is the end of all workers of this engine."""
        return [("INSERT OR REPLACE INTO meta VALUES('warden', ?)", (pid,))]

    def clock(self, note: ClockNote) -> list[Write]:
        return [("INSERT OR REPLACE INTO meta VALUES('clock', ?)", (msgspec.json.encode(note).decode(),))]

    def withdrawn(self, id: int) -> list[Write]:
        """It was refused after all."""
        return [("DELETE FROM runs WHERE id = ?", (id,))]

    def started(self, id: int, epoch: int, preemptions: int = 0, deaths: int = 0) -> list[Write]:
        sql = "UPDATE runs SET state = 'running', epoch = ?, preemptions = ?, deaths = ? WHERE id = ?"
        return [(sql, (epoch, preemptions, deaths, id))]

    def waits(
        self,
        id: int,
        state: RunState,
        *,
        resume_at: float,
        preemptions: int,
        deaths: int,
        executed_s: float = 0.0,
        error: str = "",
    ) -> list[Write]:
        sql = (
            "UPDATE runs SET state = ?, resume_at = ?, preemptions = ?, deaths = ?, executed_s = ?, error = ?"
            " WHERE id = ?"
        )
        return [(sql, (state.value, resume_at, preemptions, deaths, executed_s, error, id))]

    def fails_again(self, id: int, failures: int) -> list[Write]:
        return [("UPDATE runs SET failures = ? WHERE id = ?", (failures, id))]

    def wakes(self, now_s: float) -> list[Write]:
        sql = "UPDATE runs SET state = 'waiting' WHERE state = 'sleeping' AND ended_at IS NULL AND resume_at <= ?"
        return [(sql, (now_s,))]

    def comes_back(self, id: int) -> list[Write]:
        return [("UPDATE runs SET state = 'waiting', error = '' WHERE id = ? AND ended_at IS NULL", (id,))]

    def tried_again(self, id: int) -> list[Write]:
        """It and what failed below it wait again, with their steps, as if nothing had gone wrong yet."""
        failed = ", ".join(f"'{state.value}'" for state in sorted(FAILED_STATES, key=str))
        sql = (
            "WITH RECURSIVE below(id) AS (SELECT ? UNION SELECT runs.id FROM runs JOIN below ON runs.parent = below.id)"
            " UPDATE runs SET state = 'waiting', error = '', ended_at = NULL, failures = 0, deaths = 0,"
            f" preemptions = 0, executed_s = 0 WHERE id IN below AND state IN ({failed})"
        )
        return [(sql, (id,))]

    def ended(self, id: int, state: RunState, result: bytes | None, error: str, at: float) -> list[Write]:
        kept, blob, writes = self._apart(id, result)
        sql = "UPDATE runs SET state = ?, result = ?, result_blob = ?, error = ?, ended_at = ? WHERE id = ?"
        return [*writes, (sql, (state.value, kept, blob, error, at, id))]

    def step_starting(
        self, id: int, epoch: int, name: str, effect: Effect, at: float, mark: bytes = b""
    ) -> list[Write]:
        sql = (
            "INSERT INTO steps(run, name, has_side_effect, started_at, mark) SELECT ?1, ?3, ?4, ?5, ?6"
            f" WHERE {_IF_CURRENT} ON CONFLICT(run, name) DO UPDATE SET started_at = excluded.started_at,"
            " mark = excluded.mark WHERE finished_at IS NULL AND started_at IS NULL"
        )
        return [(sql, (id, epoch, name, int(effect), at, mark or None))]

    def step_done(self, id: int, epoch: int, name: str, result: bytes, at: float, mark: bytes = b"") -> list[Write]:
        kept, blob, writes = self._apart(id, result, epoch)
        sql = (
            "INSERT INTO steps(run, name, result, blob, has_side_effect, finished_at, mark)"
            f" SELECT ?1, ?3, ?4, ?5, 0, ?6, ?7 WHERE {_IF_CURRENT} ON CONFLICT(run, name) DO UPDATE SET"
            " result = excluded.result, blob = excluded.blob, finished_at = excluded.finished_at"
            " WHERE finished_at IS NULL"
        )
        return [*writes, (sql, (id, epoch, name, kept, blob, at, mark or None))]

    def step_forgotten(self, id: int, name: str) -> list[Write]:
        """The owner says that the side effect did not happen. Its row stays: it says that the name is no new one."""
        sql = "UPDATE steps SET started_at = NULL WHERE run = ? AND name = ? AND finished_at IS NULL"
        return [(sql, (id, name))]

    def checkpoint(self, id: int, epoch: int, number: int, state: bytes, at: float) -> list[Write]:
        kept, blob, writes = self._apart(id, state, epoch)
        old = (
            f"DELETE FROM blobs WHERE id = (SELECT blob FROM checkpoints WHERE run = ?1) AND {_IF_CURRENT}",
            (id, epoch),
        )
        sql = (
            f"INSERT INTO checkpoints SELECT ?1, ?3, ?4, ?5, ?6 WHERE {_IF_CURRENT} ON CONFLICT(run) DO UPDATE SET"
            " number = excluded.number, state = excluded.state, blob = excluded.blob, made_at = excluded.made_at"
        )
        return [old, *writes, (sql, (id, epoch, number, kept, blob, at))]

    def sent(self, message: int, id: int, payload: bytes, at: float) -> list[Write]:
        return [
            ("INSERT INTO messages VALUES(?, ?, ?, ?)", (message, id, payload, at)),
            (
                "UPDATE runs SET state = 'waiting' WHERE id = ? AND state = ? AND ended_at IS NULL",
                (id, RunState.RECEIVING.value),
            ),
        ]

    def received(self, message: int) -> list[Write]:
        return [("DELETE FROM messages WHERE id = ?", (message,))]

    def used(self, usage: Usage) -> list[Write]:
        sql = "INSERT INTO usage VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = value + excluded.value"
        return [(sql, (name, value)) for name in Usage.__struct_fields__ if (value := getattr(usage, name))]

    def event(self, at: float, run: int | None, what: str, reason: str, reading: str | None) -> list[Write]:
        self._events += 1
        writes: list[Write] = [("INSERT INTO events VALUES(NULL, ?, ?, ?, ?, ?)", (at, run, what, reason, reading))]
        if self._events % _TRIM_EVENTS_EVERY == 0:
            writes.append(("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?", (MOST_EVENTS_KEPT,)))
        return writes

    def _apart(
        self, id: int, data: bytes | None, epoch: int | None = None
    ) -> tuple[bytes | None, int | None, list[Write]]:
        """What stays in the row, and what goes beside it; with an epoch, only while that is the current one."""
        if data is None or len(data) <= MOST_ROW_BYTES:
            return data, None, []
        self._blob += 1
        sql = f"INSERT INTO blobs SELECT ?3, ?1, ?4 WHERE ?2 IS NULL OR {_IF_CURRENT}"
        return None, self._blob, [(sql, (id, epoch, self._blob, data))]


def commit(connection: apsw.Connection, writes: Iterable[Write], check: Callable[[], None] = lambda: None) -> None:
    """All of them or none, on disk when it returns. `check` is called last, inside the transaction, and may raise."""
    execute = connection.execute
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, bindings in writes:
            execute(sql, bindings)
        check()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
