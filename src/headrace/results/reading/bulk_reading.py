"""Interviews read and checked a page at a time, as long as all rows are as expected.

Where a page is given up, the caller reads some pages row by row and then tries again here. Does not cover: reading row
by row (stages), or what is expected of a row (store.run_file.bulk.column_pages).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import apsw

from headrace.expressions import Sql
from headrace.store.contents import UNREADABLE, check_in_order
from headrace.store.run_file.bulk.column_pages import ColumnPage, ColumnPages, GiveUp
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import Projection, RowSet

_MOST_BYTES = 4_000_000
_MOST_ROW_BY_ROW = 64  # pages: what a file without checksums loses by the attempts is then a hundredth

Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True)
class ReadPages(Generic[Taken]):
    """What was taken of some pages, bounded in rows and bytes. `is_cut` says whether more may follow."""

    taken: list[Taken]
    rows: int
    last_key: int
    is_cut: bool


class BulkReading(Generic[Taken]):
    """Reads pages and takes out of them what `take` gives, at most `most_rows` in one transaction. It counts how often
    it gave up, so that it is not tried in vain again and again.
    """

    def __init__(self, pages: ColumnPages, take: Callable[[ColumnPage], Taken], most_rows: int) -> None:
        self._pages = pages
        self._take = take
        self._most_rows = most_rows
        self._row_by_row = 0  # pages that are to be read so before the next attempt
        self._next_row_by_row = 1

    def is_due(self) -> bool:
        """Whether the next rows are to be read here; asked once before each reading."""
        self._row_by_row -= 1
        return self._row_by_row < 0

    def read(
        self, connection: apsw.Connection, row_set: RowSet, condition: Sql, after: int, left: float
    ) -> ReadPages[Taken] | None:
        """The next rows behind the key `after`, at most `left`, in the caller's transaction; None where the first page
        was given up.
        """
        limit = int(min(self._most_rows, left))
        taken: list[Taken] = []
        rows, held_bytes, last_key, is_given_up = 0, 0, after, False
        pages = self._pages.read(connection, row_set, condition, after, limit)
        try:
            for page in pages:
                taken.append(self._take(page))
                rows, held_bytes, last_key = rows + len(page), held_bytes + page.held_bytes, page.last_key
                if held_bytes > _MOST_BYTES:
                    break
        except (GiveUp, *UNREADABLE):
            is_given_up = True  # whoever reads these rows one by one raises what is wrong with them
        finally:
            pages.close()
        if is_given_up and not taken:
            self.put_off()
            return None
        check_in_order([(last_key,)] if taken else (), after)
        self._next_row_by_row = self._next_row_by_row if is_given_up else 1
        return ReadPages(taken, rows, last_key, is_given_up or held_bytes > _MOST_BYTES or rows == limit)

    def put_off(self) -> None:
        """Have the next pages read row by row: twice as many as the last time."""
        self._row_by_row = self._next_row_by_row
        self._next_row_by_row = min(2 * self._next_row_by_row, _MOST_ROW_BY_ROW)


def bulk_reading(
    projection: Projection, header: RunHeader, take: Callable[[ColumnPage], Taken] | None, most_rows: int
) -> BulkReading[Taken] | None:
    """None where there is nothing to take, or the projection has to be read row by row."""
    if take is None or not ColumnPages.can_read(projection, header):
        return None
    return BulkReading(ColumnPages(projection, header), take, most_rows)
