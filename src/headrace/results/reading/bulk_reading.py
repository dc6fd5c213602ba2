"""Batches of columns, read and checked a page at a time, as long as all rows are as expected.

Where a page is given up, the caller reads some pages row by row and then tries again here. Does not cover: reading row
by row (stages), or what is expected of a row (store.run_file.column_pages).
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import apsw

from headrace.expressions import Sql
from headrace.results.columns.page_values import PageColumn, PageValues
from headrace.results.columns.result_column import ResultColumn
from headrace.results.tabular import Columns
from headrace.store.contents import UNREADABLE, check_in_order
from headrace.store.run_file.column_pages import ColumnPages, GiveUp
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import Projection, RowSet

_MOST_ROWS, _MOST_BYTES = 8_192, 4_000_000
_MOST_ROW_BY_ROW = 64  # pages: what a file without checksums loses by the attempts is then a hundredth


class ReadBatch(NamedTuple):
    columns: Columns
    rows: int
    last_key: int
    is_cut: bool  # whether more may follow


class BulkReading:
    """Reads columns in batches. It counts how often it gave up, so that it is not tried in vain again and again."""

    def __init__(self, values: PageValues, pages: ColumnPages) -> None:
        self._values = values
        self._pages = pages
        self._row_by_row = 0  # pages that are to be read so before the next attempt
        self._next_row_by_row = 1

    @classmethod
    def of(cls, columns: list[ResultColumn], projection: Projection, header: RunHeader) -> BulkReading | None:
        """None where these columns have to be read row by row."""
        if not PageValues.can_take(columns) or not ColumnPages.can_read(projection, header):
            return None
        return cls(PageValues(columns, projection.answers, header), ColumnPages(projection, header))

    def is_due(self) -> bool:
        """Whether the next rows are to be read here; asked once before each batch or page."""
        self._row_by_row -= 1
        return self._row_by_row < 0

    def read(
        self, connection: apsw.Connection, row_set: RowSet, condition: Sql, after: int, left: float
    ) -> ReadBatch | None:
        """The next rows behind the key `after`, at most `left`, in the caller's transaction; None where the first page
        was given up.
        """
        limit = int(min(_MOST_ROWS, left))
        taken: list[list[PageColumn]] = []
        rows, held_bytes, last_key, is_given_up = 0, 0, after, False
        pages = self._pages.read(connection, row_set, condition, after, limit)
        try:
            for page in pages:
                taken.append(self._values.take(page))
                rows, held_bytes, last_key = rows + len(page), held_bytes + page.held_bytes, page.last_key
                if held_bytes > _MOST_BYTES:
                    break
        except (GiveUp, *UNREADABLE):
            is_given_up = True  # whoever reads these rows one by one raises what is wrong with them
        finally:
            pages.close()
        if is_given_up and not taken:
            self._put_off()
            return None
        check_in_order([(last_key,)] if taken else (), after)
        self._next_row_by_row = 1 if not is_given_up else self._next_row_by_row
        columns = [tuple(chain.from_iterable(pieces)) for pieces in zip(*taken, strict=True)]
        return ReadBatch(columns, rows, last_key, is_given_up or held_bytes > _MOST_BYTES or rows == limit)

    def _put_off(self) -> None:
        self._row_by_row = self._next_row_by_row
        self._next_row_by_row = min(2 * self._next_row_by_row, _MOST_ROW_BY_ROW)
