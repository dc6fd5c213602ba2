"""Which interviews of a run, in which order, with which columns: what the table, one interview's neighbours and the
downloads are asked for, in the words of the `filter`, `sort_by` and `select` of results.

Does not cover: reading (web.api.run_rows).
"""

from __future__ import annotations

import csv
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec

from headrace.errors import InvalidInput
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import ResultColumn
from headrace.results.reading.file_view import FileView, SharedFile
from headrace.web.operations import READ_TIMEOUT_S
from headrace.web.shown_files import ShownFile

_DOWN = "-"
MOST_COLUMNS = 200
_MOST_FIRST = 40


class TableQuery(msgspec.Struct, frozen=True):
    """`filter` is an expression; `sort` a column, from the largest where a minus stands before it; `columns` are names
    and patterns with commas between, the results' own first ones where it is empty.
    """

    filter: str = ""
    sort: str = ""
    columns: str = ""

    @contextmanager
    def view(self, file: ShownFile) -> Generator[FileView]:
        """The interviews that are asked for; the file is closed behind the block."""
        shared = SharedFile.checked(file.path)
        try:
            view = FileView(file=shared, timeout_s=READ_TIMEOUT_S)
            view = view.filtering(self.filter) if self.filter.strip() else view
            name = self.sort.removeprefix(_DOWN).strip()
            yield view.ordering([name], self.is_down) if name else view
        finally:
            shared.reader.close()

    @property
    def is_down(self) -> bool:
        return self.sort.startswith(_DOWN)

    def chosen(self, catalog: Catalog) -> tuple[list[ResultColumn], bool]:
        """The columns that a page shows, and whether there are more."""
        columns = self.every(catalog)
        most = MOST_COLUMNS if _names_in(self.columns) else _MOST_FIRST
        return list(columns[:most]), len(columns) > most

    def every(self, catalog: Catalog) -> tuple[ResultColumn, ...]:
        """All chosen columns, however many: for downloads."""
        named = _names_in(self.columns)
        return catalog.expand(named) if named else catalog.first

    def in_address(self, **more: str | int) -> str:
        """The query of an address that asks for the same, beginning with its question mark."""
        given = {**msgspec.to_builtins(self), **more}
        text = urlencode({name: value for name, value in given.items() if value != ""}, errors="replace")
        return f"?{text}" if text else ""


def _names_in(columns: str) -> list[str]:
    """The names in a list with commas between; a name that holds a comma stands in quotes."""
    try:
        lines = list(csv.reader([columns], skipinitialspace=True, strict=True))
    except csv.Error:
        raise InvalidInput(
            f"The list of columns cannot be read: {columns[:200]!r}.",
            fix='Write names with commas between: answer.mood, "scenario.Price, EUR".',
        ) from None
    return [name for line in lines for part in line if (name := part.strip())]
