"""How often each value, or each combination of values, occurs among interviews: `results.tally("mood")`.

SQLite counts, in a table of its own on disk where values have to be computed in Python first, so that a million
different values take no memory here. Does not cover: the user's own SQL (table).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, cast

import apsw

from headrace.errors import InvalidInput
from headrace.expressions import ColumnKind
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.reading.conditions import SORTS_IN_SQL, sql_column
from headrace.results.reading.stages import OpenView
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import KeyTable, check_none_is_missing, tally
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.rows import ANSWER_COLUMNS
from headrace.store.run_file.run_schema import answer_column
from headrace.survey.values import from_sql, to_sql

_BATCH = 1_000
_BOOLS = frozenset({ColumnKind.BOOL, ColumnKind.NULL})


class Tallied(TableRows):
    """A row for each combination of values, with its `count`, the most frequent first."""

    holds_read = is_counted = True

    def __init__(
        self, views: list[OpenView], columns: list[list[ResultColumn]], names: list[str], top_n: int | None
    ) -> None:
        """`columns` are those of each view, under these names."""
        if not names:
            raise InvalidInput("There is nothing to tally.", fix='Name a column: tally("answer.mood").')
        super().__init__(views[0].reader.path, [*names, "tally_count" if "count" in names else "count"])
        self._views = views
        self._counted = columns
        self._most = -1 if top_n is None else max(0, top_n)

    @contextmanager
    def reading(self) -> Generator[Iterator[Values]]:
        own = self._views[0].reader.twin(self._views[0].clock())  # temporary tables go when it is closed
        try:
            grouped = self._in_sql(own)
            with self._counted_from_python(own) if grouped is None else self._counted_in_sql(own, grouped) as rows:
                yield rows
        finally:
            own.close()

    def _in_sql(self, own: Reader) -> list[tuple[str, bool]] | None:
        """The columns in SQL, and whether they hold bools; None where Python has to compute one, or count several
        files.
        """
        if len(self._views) > 1:
            return None
        with own.snapshot() as connection:
            found = [_in_sql(connection, column, self._views[0].header) for column in self._counted[0]]
        exact = [each for each in found if each is not None]
        return exact if len(exact) == len(found) else None

    @contextmanager
    def _counted_in_sql(self, own: Reader, grouped: list[tuple[str, bool]]) -> Generator[Iterator[Values]]:
        row_set, bools = self._views[0].as_row_set(own), [as_bool for _, as_bool in grouped]
        with own.snapshot() as connection:
            check_none_is_missing(connection, own.path)
            rows = tally(connection, row_set, [sql for sql, _ in grouped], self._most)
            yield (_row(row, bools) for row in rows)

    @contextmanager
    def _counted_from_python(self, own: Reader) -> Generator[Iterator[Values]]:
        width = len(self.columns) - 1
        with own.snapshot() as connection:
            table = KeyTable(connection, width)
        views = zip(self._views, self._counted, strict=True)
        rows = chain.from_iterable(view.values(columns) for view, columns in views)
        while batch := list(islice(rows, _BATCH)):
            with own.snapshot() as connection:
                table.add(connection, [(0, *(to_sql(value, as_bool=False) for value in row)) for row in batch])
        with own.snapshot() as connection:
            yield (_row(row, [False] * width) for row in table.tally(connection, self._most))


def _row(row: tuple[Any, ...], bools: list[bool]) -> Values:
    values = (from_sql(value, as_bool=held) for value, held in zip(row[:-1], bools, strict=True))
    return (*values, row[-1])


def _in_sql(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> tuple[str, bool] | None:
    """The column's SQL and whether it holds bools; None where equal values are not equal in SQL."""
    if column.computed is not None:
        return None
    if column.group is Group.ANSWER and column.position < ANSWER_COLUMNS:
        return answer_column(column.position), header.holds_bools[column.position]
    found = sql_column(connection, column, header)
    if found is None or not found.kinds <= SORTS_IN_SQL:
        return None
    is_bool = ColumnKind.BOOL in found.kinds
    return None if is_bool and not found.kinds <= _BOOLS else (found.sql, is_bool)


def counts_by_value(rows: Iterator[Values]) -> dict[Any, int]:
    """Counts by value, or by tuples of values; lists and dicts, which cannot be keys, as texts."""
    found: dict[Any, int] = {}
    for *values, count in rows:
        held = tuple(map(_hashable, values))
        found[held[0] if len(held) == 1 else held] = count
    return found


def _hashable(value: Any) -> Any:
    return str(cast("Any", value)) if isinstance(value, (list, dict)) else value
