"""What became of interviews: details, failures, counters, runs. Does not cover: their answers (store.interviews)."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec
import zstandard

from headrace.errors import RunFileDamaged
from headrace.store.reader import rows
from headrace.store.rows import DetailPacker
from headrace.survey.record import Detail

FailureRow: TypeAlias = tuple[int, int, str, str]


def stored_detail(connection: apsw.Connection, packer: DetailPacker, ordinal: int, path: Path) -> Detail:
    """The detail of an interview; refused where its checksum says that it is not what was written."""
    packed = connection.execute("SELECT detail FROM details WHERE ordinal = ?", (ordinal,)).get
    if packed is not None:
        with suppress(zstandard.ZstdError, msgspec.DecodeError):
            return packer.unpack(packed)
    raise RunFileDamaged(
        f"The detail of interview {ordinal} in {path} is damaged.", path=path, fix="Restore a copy of the file."
    )


def failures_after(connection: apsw.Connection, ordinal: int, question: int, limit: int) -> list[FailureRow]:
    """The next failures behind this one, in order."""
    return rows(
        connection,
        "SELECT ordinal, question, cause, message FROM failures WHERE (ordinal, question) > (?, ?)"
        " ORDER BY ordinal, question LIMIT ?",
        (ordinal, question, limit),
    )


def failures_of(connection: apsw.Connection, ordinals: list[int]) -> list[FailureRow]:
    """The failures of these interviews, in order; the caller bounds the list."""
    return rows(
        connection,
        "SELECT ordinal, question, cause, message FROM failures"
        " WHERE ordinal IN (SELECT value FROM json_each(?)) ORDER BY ordinal, question",
        (json.dumps(ordinals),),
    )


def read_counters(connection: apsw.Connection) -> dict[str, Any]:
    return dict(rows(connection, "SELECT name, value FROM counters"))


def read_endpoints(connection: apsw.Connection) -> str:
    """How the endpoints of the latest run did, as JSON."""
    return connection.execute("SELECT endpoints FROM runs ORDER BY number DESC LIMIT 1").get or "[]"


def read_runs(connection: apsw.Connection) -> tuple[int, float, int | None]:
    """Of all runs of this file: what the latest reused, seconds spent, and the highest memory in bytes."""
    reused = connection.execute("SELECT reused FROM runs ORDER BY number DESC LIMIT 1").get
    sums = "SELECT coalesce(sum(ended_at - started_at), 0.0), max(peak_memory_bytes) FROM runs"
    seconds, peak_bytes = rows(connection, sums)[0]
    return reused or 0, seconds, peak_bytes
