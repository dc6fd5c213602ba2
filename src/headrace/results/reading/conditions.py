"""Filters on interviews: SQL evaluates those that it evaluates exactly, Python evaluates the others row by row.

The kinds of values in a column are read anew with every page: a run that goes on may add one, and SQL that was exact is
then exact no more. Does not cover: the language (expressions), or reading pages (stages).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import apsw

from headrace.expressions import Column, ColumnKind, Sql, SqlTerm, compile_closure, compile_sql, compile_value, truth
from headrace.results.columns.question_parts import FAILED_PART
from headrace.results.columns.records import STATUS_TEXTS, Record, getter
from headrace.results.columns.result_column import (
    FAILED,
    ORDINAL,
    Bound,
    Group,
    ResultColumn,
    column_kinds,
    model_value,
)
from headrace.store.quoting import has_path, json_field
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    FAILED_COLUMN,
    ITERATION_COLUMN,
    ORDINAL_COLUMN,
    TRUE,
    Projection,
    list_column,
    model_column,
    named_agent_column,
    status_column,
)
from headrace.store.run_file.plot_queries import failed_column
from headrace.store.run_file.rows import ANSWER_COLUMNS
from headrace.store.run_file.run_schema import answer_column
from headrace.survey.agent import NAME

Predicate = Callable[[Record], bool]


def sql_column(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> Column | None:
    """The column in SQL, with the kinds it holds at this moment; None where SQL cannot compute its value."""
    kinds = column_kinds(connection, column, header)
    sql = _sql(column, header)
    return None if kinds is None or sql is None else Column(sql, kinds)


def sql_term(connection: apsw.Connection, column: ResultColumn, header: RunHeader) -> SqlTerm | None:
    """The same, also of a column that an expression computes: with the values for its `?`s."""
    if column.computed is not None:
        computed = column.computed
        return compile_value(computed.expression, lambda n: sql_column(connection, computed.column(n), header))
    found = sql_column(connection, column, header)
    return None if found is None else SqlTerm(found.sql, (), found.kinds)


class Conditions:
    """The filters of a view, all of which must hold."""

    def __init__(self, filters: tuple[Bound, ...], header: RunHeader) -> None:
        self._filters = filters
        self._header = header
        self.columns = list(dict.fromkeys(column for each in filters for column in each.columns))

    def split(self, connection: apsw.Connection) -> tuple[Sql, list[Bound]]:
        """Split the filters into one SQL condition, exact at this moment, and those that Python evaluates."""
        compiled = [(each, compile_sql(each.expression, self._resolver(connection, each))) for each in self._filters]
        exact = [sql for _, sql in compiled if sql is not None]
        return _all_of(exact), [each for each, sql in compiled if sql is None]

    def predicates(self, projection: Projection) -> dict[Bound, Predicate]:
        """Each filter as a function of a record that was read with `projection`."""
        return {each: self._predicate(each, projection) for each in self._filters}

    def _predicate(self, condition: Bound, projection: Projection) -> Predicate:
        header = self._header
        return truth(compile_closure(condition.expression, lambda n: getter(condition.column(n), projection, header)))

    def _resolver(self, connection: apsw.Connection, condition: Bound) -> Callable[[str], Column | None]:
        return lambda name: sql_column(connection, condition.column(name), self._header)


def _all_of(conditions: list[Sql]) -> Sql:
    if not conditions:
        return TRUE
    text = " AND ".join(condition.text for condition in conditions)
    return Sql(f"({text})", tuple(value for condition in conditions for value in condition.parameters))


def _sql(column: ResultColumn, header: RunHeader) -> str | None:
    match column.group:
        case Group.AGENT if column.name == NAME:
            return named_agent_column(json_field("a.fields", NAME))
        case Group.ANSWER:
            return answer_column(column.position) if column.position < ANSWER_COLUMNS else None
        case Group.AGENT:
            return json_field("a.fields", column.name) if has_path(column.name) else None
        case Group.SCENARIO:
            return json_field("s.fields", column.name) if has_path(column.name) else None
        case Group.MODEL:
            return _model_sql(column.name, header)
        case Group.ITERATION:
            return ITERATION_COLUMN
        case Group.INDEX:
            return list_column(column.prefix)
        case Group.ABSENT:
            return "NULL"
        case Group.PART if column.part == FAILED_PART:
            return failed_column(column.position)
        case Group.PART | Group.SHUFFLED:
            return None
        case Group.INTERVIEW if column.name == ORDINAL.name:
            return ORDINAL_COLUMN
        case Group.INTERVIEW if column.name == FAILED.name:
            return FAILED_COLUMN
        case Group.INTERVIEW:
            return status_column(STATUS_TEXTS)


def _model_sql(name: str, header: RunHeader) -> str | None:
    values = [model_value(model, name) for model in header.models]
    if not all(_is_scalar(value) for value in values):
        return None
    return model_column([int(value) if isinstance(value, bool) else value for value in values])


def _is_scalar(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str) or (isinstance(value, int) and -(2**63) <= value < 2**63)


SORTS_IN_SQL = frozenset({ColumnKind.NULL, ColumnKind.BOOL, ColumnKind.INT, ColumnKind.REAL, ColumnKind.TEXT})
