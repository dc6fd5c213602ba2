"""A TableRows makes the rows of a table, again each time they are read. Covers: reading them in flat memory, so that no
read of a run file stays open while they are used.

Does not cover: the verbs that users call (table), or what makes the rows (the modules beside this one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from typing import cast

from headrace.expressions import ColumnKind
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import ScratchTable, next_rows, pack_row
from headrace.survey.values import kind_of


class TableRows(ABC):
    """Rows of Python values under these column names. One clock ends a read with all that it is made of.
    It is restarted where rows leave the table, so that it counts the work until the next rows are there.

    `holds_read` says that the rows come out of an open read of a run file, which must be short; `is_counted` that all
    work is done before the first row comes, so that counting the rows costs little more.
    """

    holds_read = False
    is_counted = False

    def __init__(self, path: Path, columns: list[str]) -> None:
        self.path = path
        self.columns = columns

    @abstractmethod
    def reading(self, clock: QueryClock, /) -> AbstractContextManager[Iterator[Values]]:
        """Make the rows; they are read inside the block, and the clock is not restarted there."""

    def count(self, clock: QueryClock) -> int:
        with self.reading(clock) as rows:
            return sum(1 for _ in rows)

    def first(self, most: int, clock: QueryClock) -> tuple[list[Values], int | None]:
        """The first rows, and how many there are in all; None where finding out would read all of them."""
        with self.reading(clock) as rows:
            found = list(islice(rows, most))
            if self.is_counted:
                return found, len(found) + sum(1 for _ in rows)
            return found, len(found) if next(rows, None) is None else None

    def rows(self, clock: QueryClock) -> Iterator[Values]:
        """The rows, read as they are needed; those that hold a read are kept first."""
        if self.holds_read:
            yield from self.kept(clock)[1]
            return
        with self.reading(clock) as rows:
            yield from _handed_over(rows, clock)

    def kept(self, clock: QueryClock) -> tuple[int, Iterator[Values]]:
        """How many rows there are, and the rows: few are taken into memory, many into a temporary file."""
        with self.reading(clock) as rows:
            held, following = next_rows(rows), next(rows, None)
            if following is None:
                return len(held), iter(held)
            spool = ScratchTable(len(self.columns), clock)
            spool.add(map(pack_row, chain(held, (following,), rows)))
        return spool.count, _rows_of(spool, clock)

    def kinds(self, clock: QueryClock) -> list[frozenset[ColumnKind]]:
        """The kinds of values in each column, found by reading every row."""
        kinds: list[set[ColumnKind]] = [set() for _ in self.columns]
        for row in self.rows(clock):
            for seen, value in zip(kinds, row, strict=True):
                seen.add(kind_of(value))
        return [frozenset(seen) for seen in kinds]


class TableIterator(Iterator[Values]):
    """The rows of a table, which it makes at the first one. `list(table)` asks for the length before that: the rows are
    then made once for both.
    """

    def __init__(self, source: TableRows, timeout_s: float) -> None:
        self._source, self._timeout_s = source, timeout_s
        self._rows: Iterator[Values] | None = None

    def __next__(self) -> Values:
        if self._rows is None:
            self._rows = self._source.rows(QueryClock(self._timeout_s))
        return next(self._rows)

    def close(self) -> None:
        """Give no more rows, and drop those that were kept."""
        kept, self._rows = self._rows, iter(())
        if isinstance(kept, Generator):
            cast("Generator[Values]", kept).close()

    def count(self) -> int:
        """How many rows the iterator will give, or the table has where the iterator is in use already."""
        if self._rows is not None:
            return self._source.count(QueryClock(self._timeout_s))
        count, self._rows = self._source.kept(QueryClock(self._timeout_s))
        return count


def _rows_of(spool: ScratchTable, clock: QueryClock) -> Iterator[Values]:
    with spool:
        clock.restart()  # the rows were counted
        yield from _handed_over(spool.rows(), clock)


def _handed_over(rows: Iterator[Values], clock: QueryClock) -> Iterator[Values]:
    """The rows; the time in which the caller uses one does not count."""
    for row in rows:
        yield row
        clock.restart()
