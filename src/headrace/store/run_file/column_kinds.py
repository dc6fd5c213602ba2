"""Column kinds: which fields the lists of a run file have, and which kinds of values each column holds."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from headrace.expressions import ColumnKind
from headrace.plan.census import MOST_FIELDS
from headrace.store.contents import one_value, typed_rows
from headrace.store.run_file.rows import ANSWER_COLUMNS
from headrace.survey.values import decode_fields

_ROWS_LOOKED_AT = 50
_KIND_BITS = {kind: 1 << position for position, kind in enumerate(ColumnKind)}
# The kinds that a value may have which SQLite stores as this type.
KINDS_OF_TYPE: dict[type, frozenset[ColumnKind]] = {
    type(None): frozenset({ColumnKind.NULL}),
    int: frozenset({ColumnKind.INT}),
    float: frozenset({ColumnKind.REAL}),
    str: frozenset({ColumnKind.TEXT}),
    bytes: frozenset({ColumnKind.JSON, ColumnKind.TAGGED}),
}


def kinds_to_bits(kinds: Iterable[ColumnKind]) -> int:
    return sum(_KIND_BITS[kind] for kind in set(kinds))


def bits_to_kinds(bits: int) -> frozenset[ColumnKind]:
    return frozenset(kind for kind, bit in _KIND_BITS.items() if bits & bit)


def field_names(connection: apsw.Connection, owner: str) -> list[str]:
    """The fields of agents or scenarios, in the order they were first seen."""
    sql = "SELECT name FROM fields WHERE owner = ? ORDER BY position LIMIT ?"
    return [name for (name,) in typed_rows(connection, tuple[str], sql, (owner, MOST_FIELDS))]


def varying_fields(connection: apsw.Connection, owner: str) -> set[str]:
    """The fields in which the first and the last rows of a list are not all alike: a look that costs the same for any
    length.
    """
    table = f"{owner}s"
    ends = (
        f"SELECT fields FROM {table} WHERE position < {_ROWS_LOOKED_AT}"
        f" UNION ALL SELECT fields FROM (SELECT position, fields FROM {table} ORDER BY position DESC"
        f" LIMIT {_ROWS_LOOKED_AT}) WHERE position >= {_ROWS_LOOKED_AT}"
    )
    rows = [decode_fields(fields) for (fields,) in typed_rows(connection, tuple[str], ends)]
    names = {name for row in rows for name in row}
    return {name for name in names if any(row.get(name) != rows[0].get(name) for row in rows)}


def field_kinds(connection: apsw.Connection, owner: str, name: str) -> frozenset[ColumnKind]:
    """The kinds of values in a field of agents or scenarios; NULL is among them, since a row may lack the field."""
    sql = "SELECT kinds FROM fields WHERE owner = ? AND name = ?"
    return bits_to_kinds(one_value(connection, int | None, sql, (owner, name)) or 0) | {ColumnKind.NULL}


def answer_kinds(connection: apsw.Connection, position: int) -> frozenset[ColumnKind] | None:
    """The kinds of values that a question's answers have had so far; None where the file does not keep that."""
    if position >= ANSWER_COLUMNS:
        return None
    sql = "SELECT kinds, holds_bools FROM questions WHERE position = ?"
    ((bits, holds_bools),) = typed_rows(connection, tuple[int, int], sql, (position,))
    kinds = bits_to_kinds(bits)
    return (kinds - {ColumnKind.INT}) | {ColumnKind.BOOL} if holds_bools and ColumnKind.INT in kinds else kinds
