"""The bytes of a download, a batch at a time; an empty chunk says that time has gone by. Does not cover: Parquet
(parquet_writer), or sending (sending).
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum

import msgspec

from headrace.results.export.text_export import csv_lines, jsonl_lines
from headrace.results.reading.closed_between import batches_closed_between
from headrace.store.queries.query_clock import TIMEOUT_S
from headrace.web.shown_files import ShownFile
from headrace.web.table_query import TableQuery


class DownloadFormat(Enum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"

    @property
    def content_type(self) -> str:
        return {
            DownloadFormat.CSV: "text/csv; charset=utf-8",
            DownloadFormat.JSONL: "application/jsonl; charset=utf-8",
            DownloadFormat.PARQUET: "application/vnd.apache.parquet",
        }[self]


class DownloadAsked(msgspec.Struct, frozen=True):
    """`escape_formulas` as for the `to_csv` of results: for a file that a spreadsheet will open."""

    run: str
    format: DownloadFormat
    filter: str = ""
    columns: str = ""
    escape_formulas: bool = False

    @property
    def query(self) -> TableQuery:
        return TableQuery(self.filter, "", self.columns)


def text_chunks(file: ShownFile, asked: DownloadAsked) -> Generator[bytes]:
    """The chunks of a CSV or JSONL file. The file is opened with the first, and closed between them."""
    with asked.query.view(file) as view:
        view = view.within(TIMEOUT_S)  # of one batch, in a thread that no page needs
        catalog = view.catalog()
        columns = list(asked.query.every(catalog))
        names = [catalog.shown(column) for column in columns]
        batches = batches_closed_between(view, columns)
        view.file.reader.close()  # before the first chunk too
        if asked.format is DownloadFormat.CSV:
            lines = csv_lines(names, batches, escape_formulas=asked.escape_formulas)
            yield (next(lines) + next(lines, "")).encode(errors="replace")  # a head alone would hide a refusal
            yield from (text.encode(errors="replace") for text in lines)
        else:
            yield from jsonl_lines(names, batches)
