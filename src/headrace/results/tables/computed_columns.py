"""Columns and expressions of rows, as what is counted and grouped needs them: of interviews, or of a table.

SQLite computes the columns of interviews in their run file where it does so exactly; else Python computes them, row by
row, into a temporary file. Does not cover: what is asked of them (relation, tallying, grouping).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import apsw

from headrace.expressions import ColumnKind, Expression, SqlTerm
from headrace.expressions.nodes import Name
from headrace.results.columns.binding import bind
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn, column_kinds
from headrace.results.reading import joining
from headrace.results.reading.conditions import SORTS_IN_SQL, sql_term
from headrace.results.reading.file_view import FileView
from headrace.results.tables.column_names import RowGetter
from headrace.results.tables.relation import Relation, SqlColumn
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import check_none_is_missing, from_interviews
from headrace.store.run_file.rows import ANSWER_COLUMNS
from headrace.store.run_file.run_schema import answer_column
from headrace.store.scratch.scratch_table import ScratchTable, pack_row

_BOOLS = frozenset({ColumnKind.BOOL, ColumnKind.NULL})
_BLOBS = frozenset({ColumnKind.JSON, ColumnKind.TAGGED})
Wanted: TypeAlias = Sequence[str | Expression]
Computing: TypeAlias = Callable[[Wanted], "ComputedColumns"]


class ComputedColumns(ABC):
    """Some columns of rows. `holds_read` says that a relation of them may be an open read of a run file."""

    holds_read = False

    def __init__(self, path: Path, width: int) -> None:
        self.path = path
        self.width = width

    @abstractmethod
    def rows(self, clock: QueryClock) -> Iterator[Values]:
        """The values of the columns in each row."""

    @contextmanager
    def relation(self, clock: QueryClock) -> Generator[Relation]:
        """The columns in SQL, while the block lasts."""
        with ScratchTable(self.width, clock) as table:
            table.add(map(pack_row, self.rows(clock)))
            yield Relation.of_table(table, self.width)


class RowColumns(ComputedColumns):
    """What functions of a table's rows give."""

    def __init__(self, source: TableRows, getters: Sequence[RowGetter]) -> None:
        super().__init__(source.path, len(getters))
        self._source, self._getters = source, getters

    def rows(self, clock: QueryClock) -> Iterator[Values]:
        getters = self._getters
        with self._source.reading(clock) as rows:
            for row in rows:
                yield tuple([get(row) for get in getters])


class InterviewColumns(ComputedColumns):
    """Columns of interviews, of one run file or of several."""

    holds_read = True

    def __init__(self, parts: tuple[FileView, ...], wanted: Wanted) -> None:
        super().__init__(parts[0].file.reader.path, len(wanted))
        self._parts = parts
        self._columns = [_columns(wanted, part.catalog()) for part in parts]

    def rows(self, clock: QueryClock) -> Iterator[Values]:
        streams = [part.values(columns, clock) for part, columns in zip(self._parts, self._columns, strict=True)]
        return joining.merged(self._parts, streams, clock)

    @contextmanager
    def relation(self, clock: QueryClock) -> Generator[Relation]:
        part, *others = self._parts
        columns = None if others else self._in_sql(part)
        if columns is None:
            with super().relation(clock) as relation:
                yield relation
            return
        opened = part.opened()
        own = opened.reader.twin(clock)  # temporary tables go when it is closed
        try:
            row_set = opened.as_row_set(own)
            with own.snapshot() as connection:
                check_none_is_missing(connection, own.path)
                used = " ".join(column.sql for column in columns)
                yield Relation(connection, columns, from_interviews(row_set, used), row_set.key)
        finally:
            own.close()

    def _in_sql(self, part: FileView) -> list[SqlColumn] | None:
        with part.file.reader.snapshot() as connection:
            found = [_sql_column(connection, column, part.file.header) for column in self._columns[0]]
        exact = [column for column in found if column is not None]
        return exact if len(exact) == len(found) else None


def _columns(wanted: Wanted, catalog: Catalog) -> list[ResultColumn]:
    return [_column(each, catalog) for each in wanted]


def _column(wanted: str | Expression, catalog: Catalog) -> ResultColumn:
    """The column of this name, or one that the expression computes."""
    if isinstance(wanted, str):
        return catalog.find(wanted)
    if isinstance(wanted.tree, Name) and catalog.has(wanted.tree.name):
        return catalog.find(wanted.tree.name)
    return ResultColumn(Group.ANSWER, wanted.source, computed=bind(wanted, catalog))


def _sql_column(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> SqlColumn | None:
    """The column in SQL; None where equal values are not equal in SQL."""
    is_computed = column.computed is not None
    if not is_computed and column.group is Group.ANSWER and column.position < ANSWER_COLUMNS:
        kinds = column_kinds(connection, column, header)
        as_bool = header.holds_bools[column.position]
        has_blobs = kinds is None or not kinds.isdisjoint(_BLOBS)
        return SqlColumn(answer_column(column.position), (), as_bool, has_blobs, kinds)
    term = sql_term(connection, column, header)
    return None if term is None else _scalar(term)


def _scalar(term: SqlTerm) -> SqlColumn | None:
    has_bools = ColumnKind.BOOL in term.kinds
    if not term.kinds <= (_BOOLS if has_bools else SORTS_IN_SQL):
        return None
    return SqlColumn(term.text, term.parameters, has_bools, False, term.kinds)
