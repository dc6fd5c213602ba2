"""Rows as a plain table in an SQLite file of its own, for any tool that reads SQLite.

Values keep their types: whole numbers, numbers, texts; booleans are 0 and 1 in a column declared BOOLEAN; lists and
dicts are JSON texts. A column of one type is declared with it. What SQLite has no type for, a whole number beyond 64
bits and NaN, is a text. Does not cover: asking the run file itself (results.tables.sql_table).
"""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from headrace.errors import InvalidInput, OptionError, RunFileError
from headrace.expressions import ColumnKind
from headrace.plain_files.replacing import replacing
from headrace.results.export.json_values import to_json
from headrace.store.connections import connect
from headrace.store.quoting import quote_name
from headrace.store.transactions import transaction

Rows: TypeAlias = Iterator[tuple[Any, ...]]
Kinds: TypeAlias = list[frozenset[ColumnKind]]

_BATCH = 1_000
_MOST_COLUMNS = 2_000
_WIDENED_AT_MOST = 10
_INTEGERS = range(-(2**63), 2**63)
_DECLARED = {
    frozenset({ColumnKind.INT}): "INTEGER",
    frozenset({ColumnKind.REAL}): "REAL",
    frozenset({ColumnKind.TEXT}): "TEXT",
    frozenset({ColumnKind.BOOL}): "BOOLEAN",
}
_ANY_KIND = frozenset(ColumnKind)
_NONE = type(None)
_HELD_BY = {"INTEGER": {int, _NONE}, "REAL": {float, _NONE}, "TEXT": {str, _NONE}, "BOOLEAN": {bool, _NONE}}


def write_sqlite(
    path: Path, table: str, columns: list[str], kinds: Callable[[], Kinds], rows: Callable[[], Rows]
) -> Path:
    """Write a new file with one table. It starts over where a run that goes on has put a new kind of value into a
    column: a declared type would change such values.
    """
    if len(columns) > _MOST_COLUMNS:
        raise InvalidInput(
            f"An SQLite table has at most {_MOST_COLUMNS:,} columns, and these are {len(columns):,}.",
            fix='Select fewer: select("answer.*").',
        )
    if not table or "\0" in table or table.lower().startswith("sqlite_"):
        raise InvalidInput(f"{table!r} cannot be the name of a table.", fix='Use one like "results".')
    _refuse_other_contents(path, table)
    for _ in range(_WIDENED_AT_MOST):
        with suppress(_WidenedColumn), replacing(path) as unfinished:
            _fill(unfinished, table, columns, kinds(), rows())
            return path
    # A file from elsewhere may hold other kinds than it says: any value fits a column without a declared type.
    with replacing(path) as unfinished:
        _fill(unfinished, table, columns, [_ANY_KIND] * len(columns), rows())
    return path


class _WidenedColumn(Exception):
    """A column holds values of another type than it was declared with."""


def _fill(path: Path, table: str, columns: list[str], kinds: Kinds, rows: Rows) -> None:
    connection = connect(path)
    try:
        # Nothing to roll back and nothing to sync: until it has its name there is nothing to lose.
        connection.execute("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; PRAGMA cache_size=-4000").fetchall()
        declared = [_DECLARED.get(held - {ColumnKind.NULL}, "") for held in kinds]
        names = map(quote_name, _distinct([name.replace("\0", "\ufffd") for name in columns]))  # SQL cannot write NUL
        defined = ", ".join(f"{name} {kind}".rstrip() for name, kind in zip(names, declared, strict=True))
        connection.execute(f"CREATE TABLE {quote_name(table)}({defined})")
        insert = f"INSERT INTO {quote_name(table)} VALUES({', '.join('?' * len(columns))})"
        while batch := list(islice(rows, _BATCH)):
            _check_types(batch, declared)
            with transaction(connection):
                connection.executemany(insert, (tuple(map(_sql_value, row)) for row in batch))
    except (apsw.FullError, apsw.IOError) as error:
        raise OSError(errno.EIO, str(error)) from error
    finally:
        connection.close()


def _check_types(batch: list[tuple[Any, ...]], declared: list[str]) -> None:
    for name, values in zip(declared, zip(*batch, strict=True), strict=True):
        if name and not set(map(type, values)) <= _HELD_BY[name]:
            raise _WidenedColumn


def _sql_value(value: Any) -> int | float | str | None:
    match value:
        case None | str() | bool():
            return value
        case int():
            return value if value in _INTEGERS else str(value)
        case float():
            return "NaN" if math.isnan(value) else value
        case _:
            return to_json(value).decode()


def _distinct(columns: list[str]) -> list[str]:
    """The names, those that differ only in capitals told apart by a number: SQLite takes them for one."""
    taken: set[str] = set()
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name.lower() in taken:
            number += 1
            name = f"{column}_{number}"
        taken.add(name.lower())
        names.append(name)
    return names


def _refuse_other_contents(path: Path, table: str) -> None:
    """Refuse to replace a file that is not an earlier export of this table: it may be somebody's database."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    try:
        connection = connect(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            held = connection.execute("SELECT name FROM sqlite_schema LIMIT 2").fetchall()
        finally:
            connection.close()
    except RunFileError as error:  # what lies beside it
        raise OptionError(error.message, fix="Export to another path.") from None
    except apsw.Error:
        held = []
    if held != [(table,)]:
        what = "is no SQLite database" if not held else f"holds more than a table {table!r}"
        raise OptionError(f"{path} is there and {what}.", fix="Export to another path, or remove it first.")
