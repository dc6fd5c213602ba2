"""Chooses what one wants to see of results first: answers, then the fields in which rows differ.

Does not cover: drawing them (printing).
"""

from __future__ import annotations

from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.printing import Glance
from headrace.results.stages import OpenView
from headrace.store.contents import decoding
from headrace.store.run_file.column_kinds import varying_fields
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_plan import read_plan

_MOST_COLUMNS = 30


def overview_columns(reader: Reader, header: RunHeader, catalog: Catalog) -> tuple[ResultColumn, ...]:
    """The answers and the fields that vary; never ordinals or what all interviews share."""
    if catalog.plainly:
        return catalog.first  # rows as they came, with what was asked for
    with reader.snapshot() as connection:
        with decoding(header.path, "the first and last rows of its lists"):
            varying = {Group.AGENT: varying_fields(connection, "agent")}
            varying[Group.SCENARIO] = varying_fields(connection, "scenario")
        iterations = read_plan(connection, header.path).shape.iteration
    has_names = len({model.name for model in header.models}) > 1

    def is_shown(column: ResultColumn) -> bool:
        match column.group:
            case Group.AGENT | Group.SCENARIO:
                return column.name in varying[column.group]
            case Group.MODEL:
                return column.name != "model" or has_names  # of parameters, only those that differ are there
            case Group.ITERATION:
                return iterations > 1
            case Group.INTERVIEW:
                return False
            case _:
                return True

    return tuple(filter(is_shown, catalog.first))


def glance_at(
    opened: OpenView, columns: tuple[ResultColumn, ...], names: list[str], most_rows: int, *, is_overview: bool
) -> Glance:
    """Read the first rows of a view. The rest is counted where SQLite can do it."""
    notes: tuple[str, ...] = ()
    if is_overview and len(columns) > _MOST_COLUMNS:
        notes = (f"{_MOST_COLUMNS} of {len(columns):,} columns",)
        columns, names = columns[:_MOST_COLUMNS], names[:_MOST_COLUMNS]
    view = opened.view.windowed(0, most_rows + 1)
    found = list(opened.of(view).values(list(columns)))  # no more than are shown
    rows, total = found[:most_rows], len(found)
    if len(found) > most_rows:
        total = opened.count() if opened.is_counted_in_sql() else None
    return Glance(columns=names, rows=rows, total=total, notes=notes, is_overview=is_overview)
