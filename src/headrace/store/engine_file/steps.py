"""Steps, checkpoints and messages of agent runs in an engine file: reading them, and the statements that write them.

A replaced attempt cannot write any more: its epoch is compared in the statement itself. Does not cover: the run itself
(runs), or when statements are committed (agents.engine.engine_writer).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import msgspec

from headrace.store.engine_file.engine_schema import Effect, RunState
from headrace.store.engine_file.engine_values import IF_CURRENT, BlobWrites, ValueReader, Write

_Checkpoints: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]  # marks of steps have 4 bytes for it


class StoredStep(msgspec.Struct, frozen=True):
    """One step of a run. `result` is None where the step has not finished, or where its result is a blob. A side effect
    that has neither started nor finished is to be done once more.
    """

    name: str
    result: bytes | None
    is_started: bool
    is_finished: bool
    has_side_effect: bool
    mark: bytes


class StoredSteps:
    """Reads the steps, checkpoints and messages of runs."""

    def __init__(self, reader: ValueReader) -> None:
        self._reader = reader

    def of_run(self, id: int, most_bytes: int) -> Iterator[StoredStep]:
        """A run's steps; results above `most_bytes` are left out, for `result` to read."""
        sql = (
            "SELECT name, CASE WHEN length(result) <= ? THEN result END, started_at IS NOT NULL,"
            " finished_at IS NOT NULL, has_side_effect, mark FROM steps WHERE run = ?"
        )
        types = tuple[str, bytes | None, int, int, int, bytes | None]
        for name, result, is_started, is_finished, effect, mark in self._reader.rows(types, sql, (most_bytes, id)):
            yield StoredStep(name, result, bool(is_started), bool(is_finished), bool(effect), mark or b"")

    def result(self, id: int, name: str) -> bytes | None:
        sql = "SELECT result, blob FROM steps WHERE run = ? AND name = ? AND finished_at IS NOT NULL"
        return self._reader.value(sql, (id, name))

    def is_program(self, id: int, name: str) -> bool:
        """Whether this step, whose start is journaled, runs a program (`ctx.command`)."""
        effect = self._reader.one(int, "SELECT has_side_effect FROM steps WHERE run = ? AND name = ?", (id, name))
        return effect == Effect.OF_A_PROGRAM

    def checkpoint(self, id: int) -> tuple[int, bytes | None]:
        """How many checkpoints a run has made, and the last one's state."""
        number = self._reader.one(_Checkpoints, "SELECT number FROM checkpoints WHERE run = ?", (id,)) or 0
        state = "SELECT state, blob FROM checkpoints WHERE run = ?"
        return number, self._reader.value(state, (id,)) if number else None

    def first_message(self, id: int, taken: set[int]) -> tuple[int, bytes] | None:
        """A run's oldest message that is not in `taken`: the received ones whose removal is not on disk yet."""
        sql = "SELECT id, payload FROM messages WHERE run = ? ORDER BY id"
        return next((row for row in self._reader.rows(tuple[int, bytes], sql, (id,)) if row[0] not in taken), None)


class StepWrites:
    """Makes the statements that write the steps, checkpoints and messages of runs."""

    def __init__(self, blobs: BlobWrites) -> None:
        self._blobs = blobs

    def starting(self, id: int, epoch: int, name: str, effect: Effect, at: float, mark: bytes = b"") -> list[Write]:
        """Note that a side effect is about to start: after a crash it is not known whether it happened."""
        sql = (
            "INSERT INTO steps(run, name, has_side_effect, started_at, mark) SELECT ?1, ?3, ?4, ?5, ?6"
            f" WHERE {IF_CURRENT} ON CONFLICT(run, name) DO UPDATE SET started_at = excluded.started_at,"
            " mark = excluded.mark WHERE finished_at IS NULL AND started_at IS NULL"
        )
        return [(sql, (id, epoch, name, int(effect), at, mark or None))]

    def done(self, id: int, epoch: int, name: str, result: bytes, at: float, mark: bytes = b"") -> list[Write]:
        """Write a step's result; one that has a result keeps it."""
        kept, blob, writes = self._blobs.split(id, result, epoch)
        sql = (
            "INSERT INTO steps(run, name, result, blob, has_side_effect, finished_at, mark)"
            f" SELECT ?1, ?3, ?4, ?5, 0, ?6, ?7 WHERE {IF_CURRENT} ON CONFLICT(run, name) DO UPDATE SET"
            " result = excluded.result, blob = excluded.blob, finished_at = excluded.finished_at"
            " WHERE finished_at IS NULL"
        )
        return [*writes, (sql, (id, epoch, name, kept, blob, at, mark or None))]

    def not_started(self, id: int, name: str) -> list[Write]:
        """Note the caller's decision that a side effect did not happen. The row stays: the step's name is known."""
        sql = "UPDATE steps SET started_at = NULL WHERE run = ? AND name = ? AND finished_at IS NULL"
        return [(sql, (id, name))]

    def checkpoint(self, id: int, epoch: int, number: int, state: bytes, at: float) -> list[Write]:
        kept, blob, writes = self._blobs.split(id, state, epoch)
        old = (
            f"DELETE FROM blobs WHERE id = (SELECT blob FROM checkpoints WHERE run = ?1) AND {IF_CURRENT}",
            (id, epoch),
        )
        sql = (
            f"INSERT INTO checkpoints SELECT ?1, ?3, ?4, ?5, ?6 WHERE {IF_CURRENT} ON CONFLICT(run) DO UPDATE SET"
            " number = excluded.number, state = excluded.state, blob = excluded.blob, made_at = excluded.made_at"
        )
        return [old, *writes, (sql, (id, epoch, number, kept, blob, at))]

    def sent(self, message: int, id: int, payload: bytes, at: float) -> list[Write]:
        """Write a message to a run; a run that is parked for one waits for a slot."""
        return [
            ("INSERT INTO messages VALUES(?, ?, ?, ?)", (message, id, payload, at)),
            (
                "UPDATE runs SET state = 'waiting' WHERE id = ? AND state = ? AND ended_at IS NULL",
                (id, RunState.RECEIVING.value),
            ),
        ]

    def received(self, message: int) -> list[Write]:
        return [("DELETE FROM messages WHERE id = ?", (message,))]
