"""Checksums of rows show that a row has changed since it was written, on disk or on its way here.

Covers: computing them, a microsecond for an interview of three questions. They find damage; they prove nothing about
where a file comes from. Does not cover: refusing changed rows (row_check).

    interviews.checksum           upper half: ordinal, positions, status and answers; lower half: the detail
    agents, scenarios .checksum   position and fields
    pending.checksum              ordinal, question and record
    memory_history.checksum       the other columns (store.history)
    counters, name `check`        the other counters
    meta, key `check`             the plan: survey, identity, boxes, questions, models, fields, what is left out or kept
    meta, key `check.<part>`      a part that plans came to have later, or that changes between runs: agents' settings,
                                  budgets; a file without the row was written before it, and that part is unchecked.
                                  Of budgets, upper half: how many runs the file had noted when the sum was written
    finished, totals .checksum    the row itself (keeping)

`failures` and the kinds in `questions` have none: they repeat what rows hold, and are compared with it. `embedded` has
digests. `runs`, a diary of when and how runs ended, is checked for its types alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any
from zlib import crc32

import apsw
import msgspec

from headrace.encoding import LARGE_BYTES

CHECK = "check"
_HALF = 32
_LOW = (1 << _HALF) - 1
_PIECE_LETTERS = 64_000
_SIGNED = 1 << 63  # SQLite's integers have a sign
_encode = msgspec.msgpack.Encoder().encode
# What is written with the plan and stays as it is, but for models' settings (kept_models), whose change writes the
# checksum anew; runs and options of a run are not among them.
_OF_THE_PLAN = (
    (
        "SELECT key, value FROM meta WHERE key IN ('survey', 'dictionary', 'created_at', 'keep', 'totals')"
        " OR key GLOB 'identity.*' OR key GLOB 'repaired.*' OR key GLOB 'where*' ORDER BY key"
    ),
    "SELECT number, low, high FROM boxes ORDER BY number",
    "SELECT position, name, kind, holds_bools FROM questions ORDER BY position",
    "SELECT position, name, service, model FROM models ORDER BY position",
    "SELECT owner, name, kinds, position FROM fields ORDER BY owner, name",
)


class CheckedPart(StrEnum):
    """A part of a file that has a checksum of its own in `meta`, beside that of the plan; the value is its key."""

    AGENT_SETTINGS = "check.agent_settings"
    BUDGETS = "check.budgets"


_OF_THE_PART = {
    CheckedPart.AGENT_SETTINGS: "SELECT key, value FROM meta WHERE key = 'agent_settings'",
    CheckedPart.BUDGETS: "SELECT key, value FROM meta WHERE key GLOB 'budget.*' ORDER BY key",
}


def interview_checksum(values: Sequence[Any], detail: bytes | bytearray, *, is_large: bool = False) -> int:
    """The checksum of an interview; `values` are its columns up to `more`, and `is_large` where texts may be large."""
    of_values = _in_pieces(values) if is_large else crc32(_encode(values))
    return (of_values << _HALF | crc32(detail)) - _SIGNED


def has_values(checksum: int, values: Sequence[Any]) -> bool:
    """Whether an interview's checksum is that of these columns."""
    return (checksum + _SIGNED) >> _HALF == crc32(_encode(values))


def has_detail(checksum: int, detail: bytes) -> bool:
    """Whether an interview's checksum is that of this detail."""
    return (checksum + _SIGNED) & _LOW == crc32(detail)


def _in_pieces(values: Sequence[Any]) -> int:
    """`crc32(_encode(values))`, of a large text in pieces: without another copy of it."""
    check = crc32(_encode([None] * len(values))[: -len(values)])  # how a list of so many begins
    for value in values:
        if type(value) is not str or len(value) < LARGE_BYTES or not value.isascii():
            check = crc32(_encode(value), check)
            continue
        check = crc32(b"\xdb" + len(value).to_bytes(4), check)  # how a text of more than 65,535 bytes begins
        for first in range(0, len(value), _PIECE_LETTERS):
            check = crc32(value[first : first + _PIECE_LETTERS].encode(), check)
    return check


def fields_checksum(position: int, fields: bytes) -> int:
    """The checksum of an agent or a scenario."""
    return crc32(fields, position & _LOW)


def record_checksum(ordinal: int, question: int, record: bytes) -> int:
    """The checksum of an answer in the table `pending`."""
    return crc32(record, (ordinal << 16 ^ question) & _LOW)


def counters_checksum(counters: Mapping[str, Any]) -> int:
    return crc32(_encode(sorted((name, value) for name, value in counters.items() if name != CHECK)))


def plan_checksum(connection: apsw.Connection) -> int:
    return _rows_checksum(connection, _OF_THE_PLAN)


def part_checksum(connection: apsw.Connection, part: CheckedPart) -> int:
    """The checksum of a part as the file holds it now."""
    if part is CheckedPart.BUDGETS:
        return budgets_checksum(connection, count_runs(connection))
    return _rows_checksum(connection, (_OF_THE_PART[part],))


def budgets_checksum(connection: apsw.Connection, runs: int) -> int:
    """The checksum of the budgets in a file that has noted so many runs. An older Headrace that runs the file notes its
    run, may write other budgets, and leaves the sum as it is: such a sum is of fewer runs, and says nothing.
    """
    return runs << _HALF | _rows_checksum(connection, (_OF_THE_PART[CheckedPart.BUDGETS],), runs & _LOW)


def runs_at(budgets_checksum: int) -> int:
    """How many runs the file had noted when this checksum of its budgets was written."""
    return budgets_checksum >> _HALF


def count_runs(connection: apsw.Connection) -> int:
    return connection.execute("SELECT count(*) FROM runs").get


def has_part(connection: apsw.Connection, part: CheckedPart) -> bool:
    """Whether a file holds anything of this part."""
    return connection.execute(_OF_THE_PART[part]).fetchone() is not None


def _rows_checksum(connection: apsw.Connection, statements: Iterable[str], check: int = 0) -> int:
    for sql in statements:
        for row in connection.execute(sql):
            check = crc32(_encode(row), check)
    return check
