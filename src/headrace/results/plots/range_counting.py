"""Counts a column in a range of ordinals, split by another: by SQLite where it groups exactly as Python would, and
otherwise row by row.

Does not cover: how a column is counted (counted_columns), or keeping the counts (kept_column).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import apsw

from headrace.expressions import Column, ColumnKind, Sql
from headrace.results.columns.result_column import FAILED as INTERVIEW_FAILED
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.plots.axes import NONE, OTHER, CategoryAxis, Key, is_finite, items_of, key_of
from headrace.results.plots.counted_columns import INFINITE, ColumnSplit, CountedAs, CountedColumn
from headrace.results.plots.counting import ORDINAL_COLUMN, failed_among, has_failed_in_sql, is_exact
from headrace.results.plots.plotted_column import is_of_question
from headrace.results.reading.conditions import Conditions, sql_column
from headrace.results.reading.file_view import FileView
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import rows_between
from headrace.store.run_file.plot_queries import HAS_FAILED_QUESTION, count_groups
from headrace.survey.values import from_sql

Bar: TypeAlias = str | int | Key
BarKey: TypeAlias = tuple[Bar, int]  # with the place of its group
RangeCounts: TypeAlias = Counter[BarKey]

# Bars that are no value. UNASKED is none in an interview of which another question failed; ROWS counts each interview
# once.
MISSING, FAILED, UNASKED, OTHERS, ROWS = "none", "failed", "not asked", "other", "rows"
UNSPLIT = 0
_LONGEST_KEY = 2_000
_WHOLE, _TEXTS = (
    frozenset({ColumnKind.NULL, ColumnKind.INT, ColumnKind.REAL}),
    frozenset({ColumnKind.NULL, ColumnKind.TEXT}),
)


def count_range(
    part: FileView, counted: CountedColumn, split: ColumnSplit | None, first: int, stop: int
) -> RangeCounts:
    """Count the interviews of the view with ordinals from `first` up to `stop`."""
    counts = RangeCounts()
    view = part.opened()
    with view.reader.snapshot(view.clock()) as connection:
        condition, rest = Conditions(view.view.filters, view.header).split(connection)
        grouped = None if rest else _in_sql(connection, counted, split, view.header)
        if grouped is not None:
            columns = [*(each.text for each in grouped), has_failed_in_sql(counted.column), HAS_FAILED_QUESTION]
            values = tuple(value for each in grouped for value in each.parameters)
            found = count_groups(connection, rows_between(first, stop), columns, values, condition)
            for value, group, has_failed, has_other_failed, count in found:
                place = UNSPLIT if split is None else _group_place(split, group)
                missing = _missing(counted, has_failed=bool(has_failed), is_in_failed=bool(has_other_failed))
                _add(counts, _bars_of_sql(counted, value, view.header), place, count, missing)
            return counts
    for value, place, missing in _rows(part, counted, split, first, stop):
        _add(counts, _bars(counted, value), place, 1, missing)
    return counts


def _missing(counted: CountedColumn, *, has_failed: bool, is_in_failed: bool) -> Bar:
    """The bar of a missing value, by whether its question failed, and whether one of its interview did."""
    if has_failed:
        return FAILED
    return UNASKED if is_in_failed and is_of_question(counted.column) else MISSING


def _add(counts: RangeCounts, bars: list[Bar], group: int, count: int, missing: Bar) -> None:
    for bar in bars:
        counts[missing if bar == MISSING else bar, group] += count
    counts[ROWS, group] += count


def _bars_of_sql(counted: CountedColumn, grouped: Any, header: RunHeader) -> list[Bar]:
    if counted.is_by_number:
        return [MISSING if grouped is None else INFINITE if grouped == INFINITE else int(grouped)]
    column = counted.column
    as_bool = (
        header.holds_bools[column.position]
        if column.group is Group.ANSWER
        else ColumnKind.BOOL in (counted.kinds or ())
    )
    return _bars(counted, from_sql(grouped, as_bool=as_bool))


def _bars(counted: CountedColumn, value: Any) -> list[Bar]:
    """The bars that a value counts for; several of a list."""
    if value is None:
        return [MISSING]
    if counted.is_by_number:
        number = counted.number_of(value)
        if number is None:
            return [OTHERS]
        return [counted.interval_of(number) if is_finite(number) else INFINITE]
    items = items_of(value) if counted.counted_as is CountedAs.ITEMS else (value,)
    return [_key(item) for item in items]


def _key(item: Any) -> Bar:
    if item is None:
        return MISSING
    key = key_of(item)
    return OTHERS if isinstance(key[1], str) and len(key[1]) > _LONGEST_KEY else key


# --- in SQL


def _in_sql(
    connection: apsw.Connection, counted: CountedColumn, split: ColumnSplit | None, header: RunHeader
) -> tuple[Sql, Sql] | None:
    """What SQLite groups by; None where equal values are not equal there."""
    column = sql_column(connection, counted.column, header)
    if column is None or not _is_counted_exactly(counted, column):
        return None
    if split is None:
        return counted.in_sql(column.sql), Sql("0", ())
    other = sql_column(connection, split.column, header)
    if other is None or not is_exact(other, split.axis):
        return None
    group = _split_sql(split, other.sql)
    return None if group is None else (counted.in_sql(column.sql), group)


def _is_counted_exactly(counted: CountedColumn, column: Column) -> bool:
    match counted.counted_as:
        case CountedAs.NUMBERS:
            return column.kinds <= _WHOLE
        case CountedAs.LENGTHS:
            return column.kinds <= _TEXTS
        case CountedAs.VALUES | CountedAs.ITEMS:
            # An answer is stored in one way, which tells lists and texts apart; a field of a list is JSON.
            is_answer = counted.column.group is Group.ANSWER
            return is_answer or is_exact(column, CategoryAxis(values=()))


def _split_sql(split: ColumnSplit, sql: str) -> Sql | None:
    """The place of a row's group: nothing that grows with how many different values there are. None where SQLite's
    whole numbers end before the groups do.
    """
    axis = split.axis
    if not isinstance(axis, CategoryAxis):
        return axis.in_sql(sql)
    rest = f"CASE WHEN {sql} IS NULL THEN {NONE} ELSE {OTHER} END"
    if not axis.values:
        return Sql(rest, ())
    whens = " ".join(f"WHEN ? THEN {place}" for place in range(len(axis.values)))
    values = tuple(int(value) if isinstance(value, bool) else value for value in axis.values)
    return Sql(f"CASE {sql} {whens} ELSE {rest} END", values)


def _group_place(split: ColumnSplit, grouped: Any) -> int:
    return int(grouped) if isinstance(split.axis, CategoryAxis) else split.axis.place_of(grouped)


# --- row by row


def _rows(
    part: FileView, counted: CountedColumn, split: ColumnSplit | None, first: int, stop: int
) -> Iterator[tuple[Any, int, Bar]]:
    """Each row's value, the place of its group, and its bar where the value is missing."""
    others: list[ResultColumn] = [] if split is None else [split.column]
    for values, *groups, in_failed, ordinals in part.opened().filtered_between(
        [counted.column, *others, INTERVIEW_FAILED, ORDINAL_COLUMN], first, stop
    ):
        failed = failed_among(part, counted.column, values, ordinals)
        places = [UNSPLIT] * len(ordinals) if split is None else [split.axis.places(value)[0] for value in groups[0]]
        for value, place, is_in_failed, ordinal in zip(values, places, in_failed, ordinals, strict=True):
            yield value, place, _missing(counted, has_failed=ordinal in failed, is_in_failed=is_in_failed)
