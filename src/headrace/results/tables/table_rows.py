"""A TableRows makes the rows of a table, again each time they are read. Covers: reading them in flat memory, so that no
read of a run file stays open while they are used.

Does not cover: the verbs that users call (table), or what makes the rows (the modules beside this one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path

from headrace.expressions import ColumnKind
from headrace.results.tabular import Values
from headrace.store.scratch.scratch_table import ScratchTable, next_rows, pack_row
from headrace.survey.values import kind_of


class TableRows(ABC):
    """Rows of Python values under these column names.

    `holds_read` says that the rows come out of an open read of a run file, which must be short; `is_counted` that all
    work is done before the first row comes, so that counting the rows costs little more.
    """

    holds_read = False
    is_counted = False

    def __init__(self, path: Path, columns: list[str]) -> None:
        self.path = path
        self.columns = columns

    @abstractmethod
    def reading(self) -> AbstractContextManager[Iterator[Values]]:
        """Make the rows; they are read inside the block."""

    def count(self) -> int:
        with self.reading() as rows:
            return sum(1 for _ in rows)

    def first(self, most: int) -> tuple[list[Values], int | None]:
        """The first rows, and how many there are in all; None where finding out would read all of them."""
        with self.reading() as rows:
            found = list(islice(rows, most))
            if self.is_counted:
                return found, len(found) + sum(1 for _ in rows)
            return found, len(found) if next(rows, None) is None else None

    def rows(self) -> Iterator[Values]:
        """The rows, read as they are needed. Few that hold a read are taken into memory first, many into a file."""
        with self.reading() as rows:
            if not self.holds_read:
                yield from rows
                return
            held, following = next_rows(rows), next(rows, None)
            spool = None
            if following is not None:
                spool = ScratchTable(len(self.columns))
                spool.add(map(pack_row, chain(held, (following,), rows)))
        if spool is None:
            yield from held
            return
        with spool:
            del held
            yield from spool.rows()

    def kinds(self) -> list[frozenset[ColumnKind]]:
        """The kinds of values in each column, found by reading every row."""
        kinds: list[set[ColumnKind]] = [set() for _ in self.columns]
        for row in self.rows():
            for seen, value in zip(kinds, row, strict=True):
                seen.add(kind_of(value))
        return [frozenset(seen) for seen in kinds]
