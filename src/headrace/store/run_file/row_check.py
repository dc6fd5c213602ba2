"""Whether rows are as they were written. Covers: each page of interviews as it is read, and a sample of a file before a
run adds to it.

A damaged row stops the reading with its ordinal: a row is shown right or not at all. Does not cover: computing
checksums (checksums), or looking through a whole file (run_verification).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import apsw

from headrace.display import counted, visible
from headrace.errors import RunFileDamaged, Spelled
from headrace.store.contents import UNREADABLE, one_value, short_message
from headrace.store.run_file.checksums import fields_checksum, has_detail, has_values
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    AGENT,
    AGENT_AT,
    AGENT_CHECKSUM,
    ANSWERS,
    CHECKSUM,
    DETAIL,
    MODEL,
    ORDINAL,
    SCENARIO,
    SCENARIO_AT,
    SCENARIO_CHECKSUM,
    STATUS,
    Fetched,
    Projection,
)
from headrace.store.run_file.rows import Status

_STATUSES = frozenset(map(int, Status))
_WHOLE = {int}
_PLACES, _ROWS_EACH = 100, 10  # how many are looked at: 3 ms, however long the file is


def check_rows(page: list[Fetched], projection: Projection, header: RunHeader) -> None:
    """Raise RunFileDamaged at the first row of a page that is not as it was written."""
    for row in page:
        trouble = row_trouble(row, projection, header)
        if trouble is not None:
            raise damaged_row(header, row[ORDINAL], trouble)


def row_trouble(row: Fetched, projection: Projection, header: RunHeader) -> str | None:
    """What is wrong with a row, in words; None where it is as it was written."""
    try:
        return _trouble(row, projection, range(len(header.models)))
    except UNREADABLE:
        return "what it holds has other types than it was written with"


def damaged_row(header: RunHeader, ordinal: int, trouble: str) -> RunFileDamaged:
    """The error for one damaged interview."""
    lists = f"headrace verify {header.path} lists all that is. Restore a copy, or read the others with"
    return RunFileDamaged(
        f"Interview {ordinal} in {header.path} is damaged: {trouble}.",
        path=header.path,
        fix=Spelled(
            f"{lists} results.filter('interview.ordinal != {ordinal}').",
            command=f"{lists} --where 'interview.ordinal != {ordinal}'.",
        ),
    )


def warn_of_damage(connection: apsw.Connection, path: Path) -> None:
    """Warn before a run pays for more interviews that rows of the file cannot be read.

    A short file is checked whole, a long one in places spread evenly. It is not refused: each row stands for itself.
    """
    bad: list[int] = []  # at most as many as are looked at
    looked_at, after = 0, -1
    last: int = one_value(connection, int | None, "SELECT max(ordinal) FROM interviews") or 0
    for place in range(_PLACES):
        sql = "SELECT * FROM interviews WHERE ordinal >= ? AND ordinal > ? ORDER BY ordinal LIMIT ?"
        for ordinal, *values, checksum in connection.execute(sql, (last * place // _PLACES, after, _ROWS_EACH)):
            looked_at, after = looked_at + 1, ordinal
            if checksum is not None and not _is_as_written(checksum, (ordinal, *values)):
                bad.append(ordinal)
    if bad:
        logging.getLogger("headrace").warning(
            "%s is damaged: %s of the %s that were looked at cannot be read, the first is %s. The run goes on with the"
            " others; headrace verify lists all that are damaged.",
            visible(str(path)),
            f"{len(bad):,}",
            counted(looked_at, "finished interview"),
            bad[0],
        )


def _is_as_written(checksum: int, values: tuple[Any, ...]) -> bool:
    try:
        return has_values(checksum, values)
    except UNREADABLE:
        return False


class decoding_row:  # noqa: N801 - used as a function, like contents.decoding; a generator would cost a microsecond
    """Turn any error in the block, which decodes a row's values, into RunFileDamaged."""

    __slots__ = ("_header", "_row")

    def __init__(self, header: RunHeader, row: Fetched) -> None:
        self._header = header
        self._row = row

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UNREADABLE):
            raise damaged_row(
                self._header, self._row[ORDINAL], f"it cannot be read ({short_message(error)})"
            ) from error


def _trouble(row: Fetched, projection: Projection, models: range) -> str | None:
    checksum = row[CHECKSUM]
    if checksum is not None and not has_values(checksum, row[ORDINAL : STATUS + 1] + row[ANSWERS:]):
        return "its checksum is not that of its answers"
    are_whole = {*map(type, row[ORDINAL : STATUS + 1])} == _WHOLE  # 1.0 is in a range, and no index
    if not are_whole or row[MODEL] not in models or row[STATUS] not in _STATUSES:
        return "its iteration, model or status is none that there is"
    if projection.agent and not _has_fields(row[AGENT_AT], row[AGENT], row[AGENT_CHECKSUM]):
        return f"its agent {row[AGENT_AT]} is missing, or not as it was written"
    if projection.scenario and not _has_fields(row[SCENARIO_AT], row[SCENARIO], row[SCENARIO_CHECKSUM]):
        return f"its scenario {row[SCENARIO_AT]} is missing, or not as it was written"
    if projection.detail and not (row[DETAIL] and (checksum is None or has_detail(checksum, row[DETAIL]))):
        return "its prompts and responses are missing, or not as they were written"
    return None


def _has_fields(position: int, fields: object, checksum: int | None) -> bool:
    if not isinstance(fields, str):
        return False
    return checksum is None or checksum == fields_checksum(position, fields.encode())
