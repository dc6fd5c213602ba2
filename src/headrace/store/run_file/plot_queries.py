"""The SQL that counts interviews for a picture: by places on its axes, and the range of an axis.

Does not cover: which interviews (interview_queries), or what a place is (results.plots.axes).
"""

from __future__ import annotations

import sys

import apsw
import msgspec

from headrace.expressions import Sql
from headrace.store.run_file.interview_queries import TRUE, RowSet, from_interviews
from headrace.survey.values import SqlValue


def count_groups(
    connection: apsw.Connection,
    row_set: RowSet,
    columns: list[str],
    parameters: tuple[SqlValue, ...],
    condition: Sql = TRUE,
) -> apsw.Cursor:
    """The different combinations of columns, each with how many interviews that meet the condition have it;
    `parameters` are the columns'.
    """
    places = ", ".join(str(place) for place, _ in enumerate(columns, 1))
    named = ", ".join(columns)
    rows = f"{from_interviews(row_set, named + condition.text)} WHERE {condition.text}"
    sql = f"SELECT {named}, count(*) FROM {rows} GROUP BY {places}"
    return connection.execute(sql, (*parameters, *condition.parameters))


def extremes(connection: apsw.Connection, row_set: RowSet, column: str) -> tuple[float | None, float | None]:
    """The lowest and the highest finite number of a column that holds numbers alone."""
    sql = f"SELECT min({column}), max({column}) FROM {from_interviews(row_set, column)} WHERE {column} BETWEEN ? AND ?"
    found = connection.execute(sql, (-sys.float_info.max, sys.float_info.max)).fetchone()
    return msgspec.convert(found, tuple[int | float | None, int | float | None])


def failed_column(question: int) -> str:
    """The SQL of whether the question at this position has failed."""
    sql = "SELECT 1 FROM failures f WHERE f.ordinal = i.ordinal AND f.question"
    return f"(i.status <> 0 AND EXISTS({sql} = {int(question)}))"


HAS_FAILED_QUESTION = "(i.status <> 0)"
