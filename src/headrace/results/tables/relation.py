"""A Relation is columns of rows as SQLite sees them, to be counted, grouped and told apart there: columns of interviews
in their run file, or rows that Python has put into a temporary file.

Covers: the SELECT, equality and order of values. Equal values are equal in SQL; order is that of `sort_by`. Does not
cover: where the columns come from (computed_columns), or what is computed of them (tallying, grouping).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from headrace.expressions import ColumnKind
from headrace.results.columns.value_keys import stored_key, stored_sort_keys
from headrace.results.tabular import Values
from headrace.store.contents import UNREADABLE, short_message
from headrace.store.scratch.scratch_table import ScratchTable
from headrace.survey.values import SqlValue, from_sql


class SqlColumn(msgspec.Struct, frozen=True):
    """A column's SQL with the values for its `?`s. `has_blobs` where a value may be tagged JSON, `as_bool` where 0 and
    1 stand for bools. `kinds` is None where they are not known.
    """

    sql: str
    parameters: tuple[SqlValue, ...] = ()
    as_bool: bool = False
    has_blobs: bool = False
    kinds: frozenset[ColumnKind] | None = None


class Relation:
    """Columns x0, x1 and so on of the rows of `tables`, which have a `position`; equal values share a `key`."""

    def __init__(self, connection: apsw.Connection, columns: Sequence[SqlColumn], tables: str, position: str) -> None:
        self.columns = columns
        self._connection = connection
        self._tables, self._position = tables, position
        for name, function in (("key_of", _key_of), ("sort_of", _sort_of), ("tie_of", _tie_of)):
            connection.create_scalar_function(name, function, 1, deterministic=True)

    @classmethod
    def of_table(cls, table: ScratchTable, width: int) -> Relation:
        """The rows of a scratch table."""
        names = [f"c{number}" for number in range(width)]
        tests = ", ".join(f"max(typeof({name}) = 'blob')" for name in names)
        ((*blobs,),) = table.connection.execute(f"SELECT {tests} FROM rows").fetchall()
        columns = [SqlColumn(name, has_blobs=bool(held)) for name, held in zip(names, blobs, strict=True)]
        return cls(table.connection, columns, "rows", "position")

    def query(self, sql: str, places: Sequence[int], rest: tuple[SqlValue, ...] = ()) -> apsw.Cursor:
        """Run a query in which `{rows}` stands for the columns at these places; `rest` are values for its own `?`s."""
        parts = [(f"{self.columns[place].sql} AS x{place}", self.columns[place].parameters) for place in places]
        names = ", ".join([*(text for text, _ in parts), f"{self._position} AS position"])
        values = tuple(value for _, held in parts for value in held)
        # LIMIT keeps SQLite from merging the two queries: its sorter would then hold whole JSON rows, twice as slow.
        rows = f"(SELECT {names} FROM {self._tables} LIMIT -1)"
        blobs = [place for place in dict.fromkeys(places) if self.columns[place].has_blobs]
        if blobs:
            keys = [f"CASE WHEN typeof(x{place}) = 'blob' THEN key_of(x{place}) ELSE x{place} END" for place in blobs]
            named = ", ".join(f"{key} AS {self.key(place)}" for key, place in zip(keys, blobs, strict=True))
            rows = f"(SELECT *, {named} FROM {rows} LIMIT -1)"  # computed once a row, here too
        return self._connection.execute(sql.format(rows=rows), values + rest)

    def key(self, place: int) -> str:
        """The SQL name of what equal values of a column share (value_keys): groups are groups of it."""
        return f"k{place}" if self.columns[place].has_blobs else f"x{place}"

    def keys(self, places: Sequence[int]) -> str:
        return ", ".join(map(self.key, places))

    def order(self, places: Sequence[int]) -> str:
        """The SQL terms that sort by these columns."""
        return ", ".join(self._order(place) for place in places)

    def value(self, place: int, stored: SqlValue) -> Any:
        try:
            return from_sql(stored, as_bool=self.columns[place].as_bool)
        except UNREADABLE as error:
            raise _unreadable(error) from error

    def values(self, places: Sequence[int], stored: Sequence[SqlValue]) -> Values:
        return tuple([self.value(place, value) for place, value in zip(places, stored, strict=True)])

    def _order(self, place: int) -> str:
        name = self.key(place)
        if not self.columns[place].has_blobs:
            return name
        # Of equal numbers a bool is last, which is a blob.
        is_blob = f"typeof({name}) = 'blob'"
        first = f"CASE WHEN {is_blob} THEN sort_of({name}) ELSE {name} END"
        return f"{first}, CASE WHEN {is_blob} THEN tie_of({name}) END, {name}"


def _key_of(*stored: Any) -> SqlValue:
    try:
        return stored_key(stored[0])
    except UNREADABLE as error:
        raise _unreadable(error) from error


def _sort_of(*key: Any) -> SqlValue:
    return stored_sort_keys(key[0])[0]


def _tie_of(*key: Any) -> SqlValue:
    return stored_sort_keys(key[0])[1]


def _unreadable(error: BaseException) -> apsw.CorruptError:
    """SQLite's error for damage: the reader of the file says which file that is."""
    return apsw.CorruptError(f"an answer cannot be read ({short_message(error)})")
