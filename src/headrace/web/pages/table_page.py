"""The table of a run's interviews: a box for the filter, columns that sort, pages, and what can be downloaded."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from headrace.errors import HeadraceError
from headrace.results.columns.result_column import without_group
from headrace.web.api.run_columns import RUN_COLUMNS
from headrace.web.api.run_rows import RUN_ROWS, RowsAsked, RowsPage, TableRow
from headrace.web.api.run_summary import RUN_SUMMARY, OneRun
from headrace.web.html_pages import rendered
from headrace.web.operations import ErrorBody, error_reply
from headrace.web.pages.html_page import HtmlPage
from headrace.web.shown_files import ShownFiles

_NO_ROWS = RowsPage(
    columns=[], rows=[], next=None, previous=None, searched_to=None, go_on=None, matching=None, truncated=False
)
_LAST_FIRST = "-interview.ordinal"
_DOWNLOADS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("CSV", "csv", {}),
    ("CSV for spreadsheets (formulas are text)", "csv", {"escape_formulas": "true"}),
    ("JSON lines", "jsonl", {}),
    ("Parquet", "parquet", {}),
)


class _Heading(msgspec.Struct, frozen=True):
    """A column's head: `order` is ascending, descending or none; the link sorts by it, or the other way round."""

    name: str
    group: str
    link: str
    order: str


def _table_page(files: ShownFiles, given: dict[str, str]) -> str:
    run = RUN_SUMMARY.call(files, OneRun(given["run"]))
    asked, page, trouble = _answered(files, given)
    query, here = asked.query, f"/runs/{run.id}/table"

    def turned(cursor: str | None) -> str:
        return "" if cursor is None else here + query.in_address(cursor=cursor, **_size(asked))

    return rendered(
        "table.html",
        tab="/table",
        run=run,
        query=query,
        limit=asked.limit,
        trouble=trouble,
        page=page,
        number=_number_heading(asked, here),
        headings=[_heading(name, asked, here) for name in page.columns],
        rows=[_shown_row(row, page.columns, run.id, asked) for row in page.rows],
        next=turned(page.next),
        previous=turned(page.previous),
        first=here + query.in_address(**_size(asked)) if asked.cursor else "",
        go_on=turned(page.go_on),
        everything=here,
        columns=RUN_COLUMNS.call(files, OneRun(run.id)),
        downloads=[
            (label, f"/runs/{run.id}/download.{kind}{replace(query, sort='').in_address(**more)}")
            for label, kind, more in _DOWNLOADS
        ],
    )


def _answered(files: ShownFiles, given: dict[str, str]) -> tuple[RowsAsked, RowsPage, ErrorBody | None]:
    """The rows; where they cannot be read, none of them and the error, which stands below what was typed."""
    asked = RowsAsked(given["run"])
    try:
        asked = RUN_ROWS.parsed({**given, "text": "true"})
        return asked, RUN_ROWS.call(files, asked), None
    except HeadraceError as error:
        return asked, _NO_ROWS, error_reply(error).error


def _heading(name: str, asked: RowsAsked, here: str) -> _Heading:
    order = {name: "ascending", f"-{name}": "descending"}.get(asked.sort, "none")
    sort = f"-{name}" if order == "ascending" else name
    link = here + replace(asked.query, sort=sort).in_address(**_size(asked))
    bare = without_group(name)
    return _Heading(bare, name.removesuffix(bare).rstrip("."), link, order)


def _number_heading(asked: RowsAsked, here: str) -> _Heading:
    """The head of the interviews' numbers: the order of the plan, or from its end."""
    is_down = asked.sort == _LAST_FIRST
    link = here + replace(asked.query, sort="" if is_down else _LAST_FIRST).in_address(**_size(asked))
    order = "descending" if is_down else "none" if asked.sort else "ascending"
    return _Heading("#", "", link, order)


def _shown_row(row: TableRow, columns: list[str], run: str, asked: RowsAsked) -> dict[str, Any]:
    link = f"/runs/{run}/interviews/{row.ordinal}{replace(asked.query, columns='').in_address()}"
    return {"ordinal": row.ordinal, "status": row.status, "link": link, "cells": shown_cells(row, columns)}


def shown_cells(row: TableRow, columns: list[str]) -> list[dict[str, Any]]:
    """The cells of a row as texts; where an answer is missing, why."""
    return [_cell(value, row.missing.get(name, "")) for value, name in zip(row.cells, columns, strict=True)]


def _cell(value: Any, missing: str) -> dict[str, Any]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"text": text, "is_number": is_number, "missing": missing}


def _size(asked: RowsAsked) -> dict[str, int]:
    """What an address has to say of the page's length."""
    return {} if asked.limit == RowsAsked("").limit else {"limit": asked.limit}


TABLE_PAGES = (HtmlPage("/runs/{run}/table", _table_page),)
