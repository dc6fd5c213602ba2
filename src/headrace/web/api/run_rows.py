"""The table of a run's interviews: a page of rows behind a cursor, within the time of one request.

A filter that finds few interviews in a long run ends with what it has found, says how far it has looked, and gives a
cursor to go on: it is never an error. Does not cover: finding them (results.reading.keyset_search), or all columns
that there are (web.api.run_columns).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import msgspec

from headrace.errors import QueryTimeout, RunFileDamaged
from headrace.results.columns.result_column import STATUS, Group, ResultColumn
from headrace.results.reading.file_view import FileView
from headrace.results.reading.keyset_search import MOST_FOUND, KeysetPlace, find_interviews
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.details import read_counters, stored_detail
from headrace.survey.record import AnswerState
from headrace.web.api.conversation import NOT_REACHED, STATE_TEXTS
from headrace.web.cells import CutValue, ShownTexts
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.page_cursors import cursor_of, place_at
from headrace.web.shown_files import ShownFiles
from headrace.web.table_query import TableQuery

_COUNT_S = 0.05
_SEARCH_S = 0.7 * READ_TIMEOUT_S  # the rest is for reading what was found


class RowsAsked(msgspec.Struct, frozen=True):
    """`filter`, `sort` and `columns` as the `filter`, `sort_by` (with a minus: from the largest) and `select`
    (commas between) of results. Texts of answers come with `text=true`; cells are cut to so many `letters`.
    """

    run: str
    filter: str = ""
    sort: str = ""
    columns: str = ""
    cursor: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_FOUND)] = 50
    letters: Annotated[int, msgspec.Meta(ge=10, le=2_000)] = 200
    text: bool = False

    @property
    def query(self) -> TableQuery:
        return TableQuery(self.filter, self.sort, self.columns)

    @property
    def in_words(self) -> tuple[str, ...]:
        """The file, filter and order that a cursor of this table belongs to: with others it is refused."""
        return ("rows", self.run, self.filter, self.sort)


class TableRow(msgspec.Struct, frozen=True):
    """One interview. `missing` says of answers that are null why, by column: failed, skipped, not asked (it needs the
    answer of a question that failed), or not reached. `truncated` where a cell was cut, `withheld` where one is null as
    texts were not asked for.
    """

    ordinal: int
    status: str
    cells: list[Any]
    missing: dict[str, str]
    truncated: bool
    withheld: bool


class RowsPage(msgspec.Struct, frozen=True):
    """`next` and `previous` are cursors, null at the ends. `searched_to` is the ordinal up to which a search came that
    ran out of time, and `go_on` the cursor that goes on with it. Sorted rows are then the first of those that were read
    so far. `matching` interviews pass the filter, null where counting them takes too long. `truncated` where there are
    more columns.
    """

    columns: list[str]
    rows: list[TableRow]
    next: str | None
    previous: str | None
    searched_to: int | None
    go_on: str | None
    matching: int | None
    truncated: bool


def _table_rows(files: ShownFiles, asked: RowsAsked) -> RowsPage:
    place = place_at(asked.cursor, asked.in_words, KeysetPlace) if asked.cursor else KeysetPlace()
    file = files.one(asked.run)
    kept = files.orders.of(file.path, (asked.filter, asked.sort))
    with asked.query.view(file) as view:
        catalog = view.catalog()
        columns, is_cut = asked.query.chosen(catalog)
        found = find_interviews(view.opened(), place, asked.limit, QueryClock(_SEARCH_S), kept=kept)
        return RowsPage(
            columns=[catalog.shown(column) for column in columns],
            rows=_rows(view, found.ordinals, columns, asked),
            next=_cursor(found.behind, asked),
            previous=_cursor(found.before, asked),
            searched_to=found.read_to,
            go_on=None if found.read_to is None else _cursor(found.before if place.is_back else found.behind, asked),
            matching=_matching(view, asked),
            truncated=is_cut,
        )


def _matching(view: FileView, asked: RowsAsked) -> int | None:
    try:
        if asked.filter.strip():
            return view.within(_COUNT_S).opened().count()
        with view.file.reader.snapshot(QueryClock(_COUNT_S)) as connection:
            return int(read_counters(connection, view.file.reader.path)["done"])
    except QueryTimeout:
        return None


def _rows(view: FileView, ordinals: list[int], columns: list[ResultColumn], asked: RowsAsked) -> list[TableRow]:
    texts = ShownTexts(view.file.header, with_text=asked.text)
    found = dict(view.opened().at_each(ordinals, [STATUS, *columns], QueryClock(READ_TIMEOUT_S)))  # at most a page
    missing = _missing(view, {ordinal: values for ordinal, (_, *values) in found.items()}, columns)
    rows: dict[int, TableRow] = {}
    for ordinal, (status, *values) in found.items():
        cells = [texts.cut(value, column, asked.letters) for value, column in zip(values, columns, strict=True)]
        rows[ordinal] = _row(ordinal, status, cells, missing.get(ordinal, {}))
    return [rows[ordinal] for ordinal in ordinals if ordinal in rows]


def _missing(view: FileView, rows: dict[int, list[Any]], columns: list[ResultColumn]) -> dict[int, dict[str, str]]:
    """Why answers of these rows are null, as their details say; nothing of a detail that is damaged, which the page of
    the interview tells.
    """
    catalog, header = view.catalog(), view.file.header
    answers = [
        (place, catalog.shown(each), each.position) for place, each in enumerate(columns) if each.group is Group.ANSWER
    ]
    found: dict[int, dict[str, str]] = {}
    with view.file.reader.snapshot(QueryClock(READ_TIMEOUT_S)) as connection:
        for ordinal, values in rows.items():
            gone = [(name, position) for place, name, position in answers if values[place] is None]
            if not gone:
                continue
            with suppress(RunFileDamaged):
                detail = stored_detail(connection, header.packer, ordinal, header.path)
                states = {record.question: STATE_TEXTS[record.state] for record in detail.records}
                why = {name: states.get(position, NOT_REACHED) for name, position in gone}
                found[ordinal] = {
                    name: state for name, state in why.items() if state != STATE_TEXTS[AnswerState.ANSWERED]
                }
    return found


def _row(ordinal: int, status: str, cells: list[CutValue], missing: dict[str, str]) -> TableRow:
    return TableRow(
        ordinal=ordinal,
        status=status,
        cells=[cell.value for cell in cells],
        missing=missing,
        truncated=any(cell.truncated for cell in cells),
        withheld=any(cell.is_withheld for cell in cells),
    )


def _cursor(place: KeysetPlace | None, asked: RowsAsked) -> str | None:
    return None if place is None else cursor_of(place, asked.in_words)


RUN_ROWS = PageOperation(
    name="rows",
    summary="Interviews of a run as rows: filtered, sorted, a page at a time.",
    path="/runs/{run}/rows",
    parameters=RowsAsked,
    reply=RowsPage,
    call=_table_rows,
)
