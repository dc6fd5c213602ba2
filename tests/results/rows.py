"""Rows of a table that are written by hand."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.results.tables.table_rows import TableRows
from headrace.store.queries.query_clock import QueryClock


class ListedRows(TableRows):
    """The rows of a list; it counts how often they are read, and knows whether they are being read."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        super().__init__(Path("no.run"), columns)
        self._rows = rows
        self.reads = 0
        self.is_open = False

    @contextmanager
    def reading(self, _clock: QueryClock, /) -> Generator[Iterator[tuple[Any, ...]]]:
        self.reads += 1
        self.is_open = True
        try:
            yield iter(self._rows)
        finally:
            self.is_open = False
