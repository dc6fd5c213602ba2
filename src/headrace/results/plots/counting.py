"""How many interviews of a view stand at each combination of places. SQLite counts where it groups exactly as Python
would, in one pass and flat memory; otherwise rows are read and placed one by one.

Does not cover: places (axes), or what a chart makes of the counts (distributions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, TypeAlias

import apsw

from headrace.expressions import Column, ColumnKind, Sql
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.plots.axes import CategoryAxis, LengthAxis, PlotAxis
from headrace.results.plots.plotted_column import PlottedColumn, is_of_question
from headrace.results.reading.conditions import SORTS_IN_SQL, sql_column
from headrace.results.reading.file_view import FileView
from headrace.results.reading.stages import OpenView
from headrace.store.run_file.details import failures_of
from headrace.store.run_file.interview_queries import check_none_is_missing
from headrace.store.run_file.plot_queries import count_groups, failed_column

Places: TypeAlias = tuple[int, ...]
Placed: TypeAlias = list[tuple[PlottedColumn, PlotAxis]]

ORDINAL_COLUMN = ResultColumn(Group.INTERVIEW, "ordinal")
_NUMBERS = frozenset({ColumnKind.NULL, ColumnKind.INT, ColumnKind.REAL})
_TEXTS = frozenset({ColumnKind.NULL, ColumnKind.TEXT})
_BOOLS = frozenset({ColumnKind.NULL, ColumnKind.BOOL})


class PlaceCounts:
    """Counts by places; a row whose value is a list counts at several. `failed` are the rows whose question failed.
    `rows` are counted once each, by the places on all axes but the first.
    """

    def __init__(self) -> None:
        self.done = Counter[Places]()
        self.failed = Counter[Places]()
        self.rows = Counter[Places]()

    def add(self, places: Sequence[Sequence[int]], count: int, *, has_failed: bool) -> None:
        counted = self.failed if has_failed else self.done
        for place in product(*places):
            counted[place] += count
        for place in product(*places[1:]):
            self.rows[place] += count


def count_places(placed: Placed, parts: tuple[FileView, ...]) -> PlaceCounts:
    """Count the interviews of the views."""
    counts = PlaceCounts()
    first, *others = parts
    if others or not _count_in_sql(placed, first.opened(), counts):
        for number, part in enumerate(parts):
            _count_rows(placed, number, part, counts)
    return counts


def _count_rows(placed: Placed, number: int, part: FileView, counts: PlaceCounts) -> None:
    columns = [*(column.columns[number] for column, _ in placed), ORDINAL_COLUMN]
    for batch in part.opened().batches(columns):
        failed = failed_among(part, columns[0], batch[0], batch[-1])
        for *values, ordinal in zip(*batch, strict=True):
            places = [axis.places(value) for (_, axis), value in zip(placed, values, strict=True)]
            counts.add(places, 1, has_failed=ordinal in failed)


def failed_among(part: FileView, column: ResultColumn, values: Sequence[Any], ordinals: Sequence[int]) -> set[int]:
    """The interviews of a batch of rows whose question failed."""
    missing = [ordinal for value, ordinal in zip(values, ordinals, strict=True) if value is None]
    if not missing or not is_of_question(column):
        return set()
    with part.file.reader.snapshot() as connection:
        return {ordinal for ordinal, question, *_ in failures_of(connection, missing) if question == column.position}


def _count_in_sql(placed: Placed, view: OpenView, counts: PlaceCounts) -> bool:
    """Whether SQLite has counted."""
    own = view.reader.twin(view.clock())  # temporary tables go when it is closed
    try:
        row_set = view.as_row_set(own)
        with own.snapshot() as connection:
            grouped = [_in_sql(connection, column, axis, view) for column, axis in placed]
            exact = [each for each in grouped if each is not None]
            if len(exact) < len(grouped):
                return False
            check_none_is_missing(connection, own.path)
            parameters = tuple(value for each in exact for value in each.parameters)
            columns = [*(each.text for each in exact), has_failed_in_sql(placed[0][0].columns[0])]
            for *values, has_failed, count in count_groups(connection, row_set, columns, parameters):
                places = [(axis.place_of(value),) for (_, axis), value in zip(placed, values, strict=True)]
                counts.add(places, count, has_failed=bool(has_failed))
            return True
    finally:
        own.close()


def has_failed_in_sql(column: ResultColumn) -> str:
    """The SQL of whether a row's question failed. It is a column without values otherwise."""
    return failed_column(column.position) if is_of_question(column) else "0"


def _in_sql(connection: apsw.Connection, column: PlottedColumn, axis: PlotAxis, view: OpenView) -> Sql | None:
    """What SQLite groups by; None where equal values are not equal there, or the place is Python's to find."""
    found = sql_column(connection, column.columns[0], view.header)
    return axis.in_sql(found.sql) if found is not None and is_exact(found, axis) else None


def is_exact(column: Column, axis: PlotAxis) -> bool:
    if isinstance(axis, CategoryAxis):
        return column.kinds <= SORTS_IN_SQL and (ColumnKind.BOOL not in column.kinds or column.kinds <= _BOOLS)
    return column.kinds <= (_TEXTS if isinstance(axis, LengthAxis) else _NUMBERS)
