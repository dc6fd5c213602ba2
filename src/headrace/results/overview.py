"""Chooses what one wants to see of results first: answers, then the fields in which rows differ.

Does not cover: drawing them (printing).
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from headrace.display import counted
from headrace.limits import Keep
from headrace.plan.portion import RunScope
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.records import STATUS_TEXTS
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.failed_questions import FailedQuestion, failure_note, failures_among, marked
from headrace.results.printing import Glance
from headrace.results.reading import chosen_columns, view_windows
from headrace.results.reading.file_view import FileView, count_failed_of_run
from headrace.results.stats import read_stats
from headrace.store.contents import decoding
from headrace.store.run_file.column_kinds import varying_fields
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.rows import Status
from headrace.store.run_file.stored_job.stored_boxes import read_plan

_MOST_COLUMNS = 30
_LIVE = "a live view of the whole file"
_KEPT = {Keep.EVERYTHING: "", Keep.ANSWERS: "; answers only", Keep.NOTHING: "; no rows are kept"}
_OUTCOME = (ResultColumn(Group.INTERVIEW, "ordinal"), ResultColumn(Group.INTERVIEW, "status"))
_FAILED = STATUS_TEXTS[Status.FAILED]


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


def described(part: FileView) -> str:
    """The file, and which of its interviews these are: `'a.run': the 5 interviews of a run, 1 failed`. Those that pass
    a filter are not counted: reading them all is too much for one line.
    """
    file, scope, keep = part.file, part.view.root.scope, part.file.header.keeping.keep
    total = read_stats(file.reader).interviews if scope is None else scope.total
    interviews, whole = counted(total, "interview"), _LIVE if scope is None else _run_of(scope)
    size = part.view.size_within(total)
    if part.view.is_whole:
        what = f"{whole}, {interviews}" if scope is None else f"the {interviews} of {whole}"
        what += f", {count_failed_of_run(file, scope):,} failed"
    elif size is None:
        what = f"part of the {interviews} of {whole}{'' if keep is Keep.NOTHING else '; len() counts it'}"
    else:
        what = f"{size:,} of the {interviews} of {whole}"
    return f"{str(file.reader.path)!r}: {what}{_KEPT[keep]}"


def _run_of(scope: RunScope) -> str:
    given = {"limit": scope.limit, "sample": scope.sample}
    options = ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
    return f"a run{' with ' * bool(options)}{options}"


def glance_of(parts: tuple[FileView, ...], most_rows: int) -> Glance:
    """The first rows of one view, or of several read as one, with the columns that were chosen or that one wants."""
    first, *others = parts
    catalog, columns = first.catalog(), first.selected
    if columns is None:
        columns = overview_columns(first.file.reader, first.file.header, catalog)
    names = [catalog.shown(column) for column in columns]
    if not others:
        return _glance_at(first, columns, names, most_rows)
    shown = view_windows.sliced(tuple(part.selecting(names) for part in parts), slice(most_rows))
    rows, total = list(chosen_columns.rows_of(shown)), view_windows.count_of(parts)
    failed = sum(part.failed_count() for part in parts)
    failures = (failure for part in parts for failure in part.failed())
    notes = failure_note(failed, total, next(failures, None) if failed else None)
    return Glance(columns=names, rows=rows, total=total, notes=notes, is_overview=first.selected is None)


def _glance_at(part: FileView, columns: tuple[ResultColumn, ...], names: list[str], most_rows: int) -> Glance:
    """Read the first rows of a view. The rest is counted where SQLite can do it."""
    opened, is_overview = part.opened(), part.selected is None
    notes: tuple[str, ...] = ()
    if is_overview and len(columns) > _MOST_COLUMNS:
        notes = (f"{_MOST_COLUMNS} of {len(columns):,} columns",)
        columns, names = columns[:_MOST_COLUMNS], names[:_MOST_COLUMNS]
    view = opened.view.windowed(0, most_rows + 1)
    found = list(opened.of(view).values([*columns, *_OUTCOME]))  # no more than are shown
    rows, total = found[:most_rows], len(found)
    if len(found) > most_rows:
        total = opened.count() if opened.is_counted_in_sql() else None
    failures = list(failures_among(opened, [ordinal for *_, ordinal, status in rows if status == _FAILED]))
    notes += _failure_note(part, rows, total, failures)
    failed = {(failure.ordinal, failure.question) for failure in failures}
    shown = marked([row[:-2] for row in rows], columns, [row[-2] for row in rows], failed)
    return Glance(columns=names, rows=shown, total=total, notes=notes, is_overview=is_overview)


def _failure_note(
    part: FileView, rows: list[tuple[Any, ...]], total: int | None, shown: list[FailedQuestion]
) -> tuple[str, ...]:
    """How many interviews of the view failed; of those shown, where Python would have to read all to know."""
    if total is None or total <= len(rows):
        failed = sum(row[-1] == _FAILED for row in rows)
        return failure_note(failed, len(rows), next(iter(shown), None), shown=total is None)
    failed = part.failed_count()
    first = (shown or islice(part.failed(), 1)) if failed else ()
    return failure_note(failed, total, next(iter(first), None))
