"""The table `runs` of an engine file: reading agent runs, and the statements that change them.

Does not cover: their steps, checkpoints and messages (steps), or when statements are committed
(agents.engine.engine_writer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sized

import msgspec

from headrace.priority import Priority
from headrace.store.contents import damaged
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.engine_values import BlobWrites, Count, Id, ValueReader, Write
from headrace.survey.values import SqlValue

_COLUMNS = (
    "parent, id, name, kind, arguments, priority, state,"
    " epoch, preemptions, deaths, failures, executed_s, resume_at, error,"
    " preempted"
)
_Types = tuple[Id | None, Id, str, str, bytes, Priority, RunState, Count, Count, Count, Count, float, float, str, Count]
_FAILED = ", ".join(f"'{state.value}'" for state in sorted(FAILED_STATES, key=str))
# A run and its descendants.
_BELOW = "WITH RECURSIVE below(id) AS (SELECT ? UNION SELECT runs.id FROM runs JOIN below ON runs.parent = below.id)"


class RunRow(msgspec.Struct, frozen=True):
    """One agent run as it is on disk, without its result. `preempted` counts how often it was; `preemptions` those that
    protect it from more (agents.scheduler.preemption).
    """

    parent: int | None
    id: int
    name: str
    kind: str
    arguments: bytes
    priority: Priority
    state: RunState
    epoch: int
    preemptions: int
    deaths: int
    failures: int
    executed_s: float
    resume_at: float
    error: str
    preempted: int


class StoredRuns:
    """Reads agent runs."""

    def __init__(self, reader: ValueReader) -> None:
        self._reader = reader

    def get(self, id: int) -> RunRow | None:
        return next(self._rows("WHERE id = ?", (id,)), None)

    def by_key(self, key: bytes) -> RunRow | None:
        return next(self._rows("WHERE key = ?", (key,)), None)

    def keys(self) -> Iterator[bytes]:
        return (key for (key,) in self._reader.rows(tuple[bytes], "SELECT key FROM runs WHERE key IS NOT NULL"))

    def backlog(self, priority: int, kinds: list[str], blocked: list[str], most: int) -> list[RunRow]:
        """The first `most` runs of these kinds that wait for a slot, oldest first; of those that are `blocked`, only
        runs that have started before. A child is left out until its parent has ended: before that the parent asks for
        it (`waiting_children`).
        """
        where = (
            "WHERE state = 'waiting' AND ended_at IS NULL AND priority = ? AND parent IS NULL"
            f" AND kind IN ({_marks(kinds)}) AND (epoch > 0 OR kind NOT IN ({_marks(blocked)})) ORDER BY id LIMIT ?"
        )
        return list(self._rows(where, (priority, *kinds, *blocked, most)))

    def waiting_children(self, parents: list[int]) -> list[RunRow]:
        """The children of these runs that wait for a slot; bounded by how many a run may ask for at once."""
        where = f"WHERE state = 'waiting' AND ended_at IS NULL AND parent IN ({_marks(parents)})"
        return list(self._rows(where, tuple(parents)))

    def unfinished_children(self, parent: int) -> list[int]:
        """The ids of a run's children in any unfinished state; bounded by how many a run may ask for at once."""
        sql = "SELECT id FROM runs WHERE parent = ? AND ended_at IS NULL"
        return [child for (child,) in self._reader.rows(tuple[int], sql, (parent,))]

    def unfinished(self, most: int) -> list[RunRow]:
        return list(self._rows("WHERE ended_at IS NULL ORDER BY id LIMIT ?", (most,)))

    def failed(self, most: int) -> list[RunRow]:
        """The latest runs that ended without a result and were not cancelled, oldest first."""
        where = f"WHERE state IN ({_FAILED}) ORDER BY id DESC LIMIT ?"
        return list(self._rows(where, (most,)))[::-1]

    def counts(self) -> dict[tuple[str, str], int]:
        """Unfinished runs by kind and state; as many entries as there are kinds and states."""
        sql = "SELECT kind, state, count(*) FROM runs WHERE ended_at IS NULL GROUP BY kind, state"
        found = self._reader.rows(tuple[str, RunState, int], sql)
        return {(kind, state.value): count for kind, state, count in found}

    def next_wake_s(self) -> float | None:
        """When the next sleeping run has to be woken."""
        sql = "SELECT min(resume_at) FROM runs WHERE state = 'sleeping' AND ended_at IS NULL"
        return self._reader.one(float, sql)

    def result(self, id: int) -> bytes | None:
        return self._reader.value("SELECT result, result_blob FROM runs WHERE id = ?", (id,))

    def _rows(self, where: str, bindings: tuple[SqlValue, ...]) -> Iterator[RunRow]:
        for row in self._reader.rows(_Types, f"SELECT {_COLUMNS} FROM runs {where}", bindings):
            run = RunRow(*row)
            if run.parent is not None and run.parent >= run.id:  # runs that are each other's parents wait for ever
                raise damaged(self._reader.path, f"the parent of its run {run.id} is no earlier run, but {run.parent}")
            yield run


class RunWrites:
    """Makes the statements that change agent runs."""

    def __init__(self, blobs: BlobWrites) -> None:
        self._blobs = blobs

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

    def withdrawn(self, id: int) -> list[Write]:
        """Delete a run that the scheduler refused after it was written."""
        return [("DELETE FROM runs WHERE id = ?", (id,))]

    def orphaned(self, id: int) -> list[Write]:
        """Detach the unfinished children of a run that has ended: they go on by themselves."""
        return [("UPDATE runs SET parent = NULL WHERE parent = ? AND ended_at IS NULL", (id,))]

    def started(self, id: int, epoch: int, preemptions: int = 0, deaths: int = 0) -> list[Write]:
        sql = "UPDATE runs SET state = 'running', epoch = ?, preemptions = ?, deaths = ? WHERE id = ?"
        return [(sql, (epoch, preemptions, deaths, id))]

    def parked(
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
        """Note why an unfinished run has left its slot."""
        sql = (
            "UPDATE runs SET state = ?, resume_at = ?, preemptions = ?, deaths = ?, executed_s = ?, error = ?"
            " WHERE id = ?"
        )
        return [(sql, (state.value, resume_at, preemptions, deaths, executed_s, error, id))]

    def preempted(self, id: int) -> list[Write]:
        return [("UPDATE runs SET preempted = preempted + 1 WHERE id = ?", (id,))]

    def failed_attempt(self, id: int, failures: int) -> list[Write]:
        return [("UPDATE runs SET failures = ? WHERE id = ?", (failures, id))]

    def woken(self, now_s: float) -> list[Write]:
        """Move the sleeping runs whose time has come to those that wait for a slot."""
        sql = "UPDATE runs SET state = 'waiting' WHERE state = 'sleeping' AND ended_at IS NULL AND resume_at <= ?"
        return [(sql, (now_s,))]

    def decided(self, id: int) -> list[Write]:
        """Move an undecided run to those that wait for a slot: its caller has decided about its side effect."""
        return [("UPDATE runs SET state = 'waiting', error = '' WHERE id = ? AND ended_at IS NULL", (id,))]

    def retried(self, id: int) -> list[Write]:
        """Have a failed run and its failed descendants wait again, with their steps and without their failures."""
        sql = (
            f"{_BELOW} UPDATE runs SET state = 'waiting', error = '', ended_at = NULL, failures = 0, deaths = 0,"
            f" preemptions = 0, executed_s = 0 WHERE id IN below AND state IN ({_FAILED})"
        )
        return [(sql, (id,))]

    def raised(self, id: int, priority: int) -> list[Write]:
        """Raise the priority of an unfinished run and its unfinished descendants; never lower it."""
        sql = f"{_BELOW} UPDATE runs SET priority = max(priority, ?) WHERE id IN below AND ended_at IS NULL"
        return [(sql, (id, priority))]

    def ended(self, id: int, state: RunState, result: bytes | None, error: str, at: float) -> list[Write]:
        kept, blob, writes = self._blobs.split(id, result)
        sql = "UPDATE runs SET state = ?, result = ?, result_blob = ?, error = ?, ended_at = ? WHERE id = ?"
        return [*writes, (sql, (state.value, kept, blob, error, at, id))]


def _marks(values: Sized) -> str:
    """As many question marks as there are values, for `IN (...)`."""
    return ", ".join("?" * len(values))
