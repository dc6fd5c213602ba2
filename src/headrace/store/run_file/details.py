"""Details, failures, counters and runs of a run file, read and checked. Does not cover: answers (interview_queries)."""

from __future__ import annotations

import json
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec

from headrace.errors import RESTORE, RunFileDamaged
from headrace.store.contents import UNREADABLE, damaged, decoding, one_value, raw_rows, short_message, typed_rows
from headrace.store.history.stored_history import highest_memory_bytes
from headrace.store.run_file.checksums import CHECK, counters_checksum, has_detail
from headrace.store.run_file.rows import DetailPacker
from headrace.store.run_file.stored_job.plan_check import has_checked_rows
from headrace.store.verification import Verification
from headrace.survey.record import Cause, Detail, Usage

_COUNTED = frozenset({"done", "failed", *Usage.__struct_fields__})
# Less than nothing would lift a budget, and SQLite holds 64 bits. What is added to and taken from a cost leaves a rest.
_LEAST, _MOST = -1e-6, 2**60
FailureRow: TypeAlias = tuple[int, int, str, str]
_RunRow: TypeAlias = tuple[int, float, float | None, int, int | None, str | None, str | None]


def stored_detail(connection: apsw.Connection, packer: DetailPacker, ordinal: int, path: Path) -> Detail:
    """Read the detail of an interview; refused where it does not have its checksum."""
    checksum = "i.checksum" if has_checked_rows(connection) else "NULL"
    sql = f"SELECT d.detail, {checksum} FROM details d JOIN interviews i ON i.ordinal = d.ordinal WHERE d.ordinal = ?"
    found = next(iter(connection.execute(sql, (ordinal,))), None)
    with suppress(*UNREADABLE):
        if found is not None and (found[1] is None or has_detail(found[1], found[0])):
            return packer.unpack(found[0])
    raise RunFileDamaged(f"The detail of interview {ordinal} in {path} is damaged.", path=path, fix=RESTORE)


def failures_after(
    connection: apsw.Connection, ordinal: int, question: int, limit: int, condition: str
) -> list[FailureRow]:
    """The next failures behind this one, in order; `condition` is SQL on their `ordinal`."""
    return typed_rows(
        connection,
        FailureRow,
        f"SELECT ordinal, question, cause, message FROM failures WHERE (ordinal, question) > (?, ?) AND {condition}"
        " ORDER BY ordinal, question LIMIT ?",
        (ordinal, question, limit),
    )


def count_failed_interviews(connection: apsw.Connection, condition: str) -> int:
    """How many interviews have failed; `condition` is SQL on their `ordinal`."""
    return one_value(connection, int, f"SELECT count(DISTINCT ordinal) FROM failures WHERE {condition}")


def count_failed_for(connection: apsw.Connection, cause: Cause) -> int:
    """How many interviews have a question that failed for this cause."""
    return one_value(connection, int, "SELECT count(DISTINCT ordinal) FROM failures WHERE cause = ?", (cause.value,))


def failures_of(connection: apsw.Connection, ordinals: list[int]) -> list[FailureRow]:
    """The failures of these interviews, in order; the caller bounds the list."""
    return typed_rows(
        connection,
        FailureRow,
        "SELECT ordinal, question, cause, message FROM failures"
        " WHERE ordinal IN (SELECT value FROM json_each(?)) ORDER BY ordinal, question",
        (json.dumps(ordinals),),
    )


def read_counters(connection: apsw.Connection, path: Path) -> dict[str, Any]:
    """Read the counters by name; refused where they do not have their checksum."""
    with decoding(path, "what it has counted"):
        found = typed_rows(connection, tuple[str, int | float], "SELECT name, value FROM counters LIMIT 100")
        counters: dict[str, Any] = dict(found)
        is_changed = CHECK in counters and counters[CHECK] != counters_checksum(counters)
    is_whole = counters.keys() >= _COUNTED and all(_LEAST <= counters[name] <= _MOST for name in _COUNTED)
    if is_changed or not is_whole:
        raise damaged(path, "what it has counted is not as it was written")
    return counters


class EndpointStats(msgspec.Struct, frozen=True):
    """A model's endpoint in the latest run: its calls and tokens, those answered as busy, failures, and its circuit at
    the end.

    `circuit` is "closed" where all is well; `closed_reason` says why no more was asked of a model, and `key_advice`
    what to do where that was because of its key.
    """

    model: str
    calls: int
    tokens: int
    busy: int
    failures: int
    circuit: str
    closed_reason: str | None
    key_advice: str = ""


def read_endpoints(connection: apsw.Connection) -> tuple[EndpointStats, ...]:
    """The endpoint statistics of the latest run."""
    return _endpoints(one_value(connection, str | None, "SELECT endpoints FROM runs ORDER BY number DESC LIMIT 1"))


def _endpoints(text: str | None) -> tuple[EndpointStats, ...]:
    return msgspec.json.decode(text or "[]", type=tuple[EndpointStats, ...])


def check_runs(connection: apsw.Connection, found: Verification) -> None:
    """Note the runs that cannot be read. What a run notes of itself has no checksum: no answer depends on it."""
    sql = "SELECT number, started_at, ended_at, reused, peak_memory_bytes, outcome, endpoints FROM runs"
    for row in raw_rows(connection, sql):
        try:
            _endpoints(msgspec.convert(row, _RunRow)[-1])
        except UNREADABLE as error:
            found.note("runs", f"cannot be read ({short_message(error)})", row[0])


def read_runs(connection: apsw.Connection) -> tuple[int, float, int | None]:
    """How many interviews the latest run reused, the seconds of all runs, and their highest memory in bytes: that of a
    run that goes on, or was killed, as far as it is in the memory history.
    """
    reused = one_value(connection, int | None, "SELECT reused FROM runs ORDER BY number DESC LIMIT 1")
    sums = "SELECT coalesce(sum(ended_at - started_at), 0.0), max(peak_memory_bytes) FROM runs"
    ((seconds, peak_bytes),) = typed_rows(connection, tuple[float, int | None], sums)
    peaks = (peak_bytes, highest_memory_bytes(connection))
    peak_bytes = max((peak for peak in peaks if peak is not None), default=None)
    return reused or 0, seconds, peak_bytes


class RunOutcome(StrEnum):
    """How a run has ended. Older versions noted every run that ended before its plan, without an error, as stopped."""

    COMPLETE = "complete"
    STOPPED = "stopped"
    SPENT = "spent"  # its budget of money or tokens
    FAILED = "failed"
    UNKNOWN = "unknown"  # nothing is noted: it goes on, or was killed


def latest_outcome(connection: apsw.Connection, path: Path) -> RunOutcome | None:
    """How the latest run of a file has ended; None before the first run."""
    with decoding(path, "what it says of its runs"):
        found = typed_rows(connection, tuple[str | None], "SELECT outcome FROM runs ORDER BY number DESC LIMIT 1")
    if not found:
        return None
    known = {each.value: each for each in RunOutcome}
    return known.get(found[0][0] or "", RunOutcome.UNKNOWN)


def latest_note(connection: apsw.Connection, path: Path) -> float | None:
    """Until when the latest run of a file is known to have gone on; None before the first run."""
    sql = "SELECT coalesce(ended_at, started_at) FROM runs ORDER BY number DESC LIMIT 1"
    with decoding(path, "what it says of its runs"):
        return one_value(connection, float | None, sql)
