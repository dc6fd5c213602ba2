"""Results of a run file, lazily: nothing is loaded until it is looked at, and then a page at a time.

Covers: the methods that users call. Does not cover: reading pages (stages), formats (tabular), SQL (table).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, overload

from headrace.display import counted
from headrace.errors import HeadraceError, InvalidInput
from headrace.expressions import ColumnKind, parse
from headrace.results.binding import bind
from headrace.results.catalog import Catalog, ColumnChanges, read_catalog
from headrace.results.columns import Bound, Group, ResultColumn, column_kinds
from headrace.results.overview import glance_at, overview_columns
from headrace.results.printing import Glance
from headrace.results.result import FailedQuestion, Result
from headrace.results.stages import OpenView
from headrace.results.stats import Stats, read_stats
from headrace.results.table import Table
from headrace.results.tabular import Tabular, Values
from headrace.results.views import SortKey, View
from headrace.stand_ins import HostedVerbs
from headrace.store.contents import decoding
from headrace.store.run_file.details import failures_after, failures_of
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import ORDINAL, Projection, everything_of
from headrace.store.run_file.reader import Reader, check_is_set_up
from headrace.survey.values import kind_of

_FAILED_ONLY = Bound(parse("interview.status == 'failed'"), (ResultColumn(Group.INTERVIEW, "status"),))
_FAILURES_PAGE = 256
_UNCHANGED = ColumnChanges()


class Results(HostedVerbs, Tabular):
    """A view of the interviews in a run file, also while the run goes on. Made by `Results.open(path)`.

    `select`, `filter`, `sort_by`, `head` and slices give new views and load nothing. `select` chooses the columns of
    tables and exports; iterating gives whole interviews.
    """

    def __init__(
        self,
        file: _File,
        view: View,
        selected: tuple[ResultColumn, ...] | None = None,
        changes: ColumnChanges = _UNCHANGED,
    ) -> None:
        self.path = file.reader.path
        self._file = file
        self._view = view
        self._selected = selected
        self._changes = changes

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the results in a run file. The file is checked now, and read when its results are looked at."""
        file = _File(Path(path).expanduser().absolute())  # a later chdir changes nothing
        with file.reader.snapshot() as connection:
            check_is_set_up(connection, file.reader.path)
        file.reader.close()  # results that nobody looks at must not keep a later run from sealing the file
        return cls(file, View())

    # --- views

    def select(self, *columns: str) -> Results:
        """A view with these columns: `"agent.age"`, `"answer.*"`, or a bare name that is the only one of its kind."""
        return self._with(selected=self._catalog().expand(columns or ("*",)))

    def filter(self, expression: str) -> Results:
        """A view of the interviews for which this holds: `"answer.rating > 5 and agent.age < 30"`."""
        return self._with(view=self._view.filtered(bind(parse(expression), self._catalog())))

    def sort_by(self, *columns: str, reverse: bool = False) -> Results:
        """A view in the order of these columns: None first, numbers, texts, then lists; equal ones as they were."""
        catalog = self._catalog()
        keys = tuple(SortKey(catalog.find(column), reverse) for column in columns)
        return self._with(view=self._view.ordered(keys))

    def head(self, count: int = 5) -> Results:
        """A view of the first few."""
        return self[: max(0, count)]

    # --- a sequence

    def __len__(self) -> int:
        return self._opened(self._view).count()

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            return self._with(view=self._view.windowed(*self._bounds(index)))
        index = operator.index(index)
        place = index if index >= 0 else len(self) + index
        found = next(self._results(self._view.windowed(place, place + 1)), None) if place >= 0 else None
        if found is None:
            raise IndexError(f"there is no result {index} among {len(self):,}")
        return found

    def __iter__(self) -> Iterator[Result]:
        return self._results(self._view)

    # --- what they are

    @property
    def columns(self) -> list[str]:
        catalog = self._catalog()
        return [catalog.shown(column) for column in self._columns_of(catalog)]

    def failed(self) -> Iterator[FailedQuestion]:
        """The questions without an answer among these interviews, and why; read as they are consumed."""
        if self._view.is_everything:
            return self._all_failures()
        return self._failures_in(self._view.filtered(_FAILED_ONLY))

    def stats(self) -> Stats:
        """What the whole file took to make, whichever of its interviews this view shows."""
        return read_stats(self._file.reader)

    def sql(self, query: str) -> Table:
        """Ask SQLite about these interviews, under the name `self`: answers by question, `"agent.age"` in quotes."""
        return Table(self._opened(self._view), self._catalog(), query)

    def close(self) -> None:
        """Close the file. Using the results again opens it again."""
        self._file.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """One line; of chosen columns, the table."""
        try:
            if self._selected is not None:
                return str(self)
            stats = self.stats()
        except HeadraceError as error:
            return f"Results({str(self.path)!r}: {error.message})"
        of = "" if self._view.is_everything else "a view of the "
        return f"Results({str(self.path)!r}: {of}{counted(stats.interviews, 'interview')}, {stats.failed:,} failed)"

    def _glance(self, most_rows: int) -> Glance:
        catalog, file = self._catalog(), self._file
        columns = self._selected
        if columns is None:
            columns = overview_columns(file.reader, file.header, catalog)
        names = [catalog.shown(column) for column in columns]
        return glance_at(self._opened(self._view), columns, names, most_rows, is_overview=self._selected is None)

    # --- reading

    def _with(
        self,
        *,
        view: View | None = None,
        selected: tuple[ResultColumn, ...] | None = None,
        changes: ColumnChanges | None = None,
    ) -> Results:
        """The same results but for what is given."""
        return Results(self._file, view or self._view, selected or self._selected, changes or self._changes)

    def _catalog(self) -> Catalog:
        return read_catalog(self._file.reader, self._file.header).changed(self._changes)

    def _columns_of(self, catalog: Catalog) -> tuple[ResultColumn, ...]:
        return catalog.first if self._selected is None else self._selected

    def _opened(self, view: View) -> OpenView:
        return OpenView(self._file.reader, self._file.header, view)

    def _results(self, view: View) -> Iterator[Result]:
        file = self._file
        for page in self._opened(view).pages(everything_of(len(file.header.question_names))):
            for row in page:
                yield Result.from_fetched(row, file.header, file.reader)

    def _values(self) -> Iterator[Values]:
        return self._opened(self._view).values(self._selected_columns())

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        columns = self._selected_columns()
        with self._file.reader.snapshot() as connection:
            kinds = [column_kinds(connection, column, self._file.header) for column in columns]
        untold = [column for column, held in zip(columns, kinds, strict=True) if held is None]
        found = self._seen_kinds(untold)
        return [found[column] if held is None else held for column, held in zip(columns, kinds, strict=True)]

    def _seen_kinds(self, columns: list[ResultColumn]) -> dict[ResultColumn, frozenset[ColumnKind]]:
        """The kinds of values in columns whose kinds the file does not keep, found by reading every row."""
        seen: dict[ResultColumn, set[ColumnKind]] = {column: set() for column in columns}
        if columns:
            for values in self._opened(self._view).values(columns):
                for column, value in zip(columns, values, strict=True):
                    seen[column].add(kind_of(value))
        return {column: frozenset(kinds) for column, kinds in seen.items()}

    def _selected_columns(self) -> list[ResultColumn]:
        return list(self._columns_of(self._catalog()))

    def _bounds(self, index: slice) -> tuple[int, int | None]:
        if index.step not in (None, 1):
            raise InvalidInput(f"Results cannot be sliced in steps of {index.step}.", fix="Use list(results)[...].")
        start = 0 if index.start is None else operator.index(index.start)
        stop = None if index.stop is None else operator.index(index.stop)
        if start < 0 or (stop is not None and stop < 0):
            start, stop, _ = index.indices(len(self))
        return start, stop if stop is None else max(start, stop)

    def _all_failures(self) -> Iterator[FailedQuestion]:
        names, last = self._file.header.question_names, (-1, -1)
        while True:
            with self._file.reader.snapshot() as connection, decoding(self.path, "its failures"):
                page = failures_after(connection, *last, _FAILURES_PAGE)
                failed = [FailedQuestion(ordinal, names[q], cause, message) for ordinal, q, cause, message in page]
            yield from failed
            if len(page) < _FAILURES_PAGE:
                return
            last = page[-1][0], page[-1][1]

    def _failures_in(self, view: View) -> Iterator[FailedQuestion]:
        file = self._file
        names = file.header.question_names
        for page in self._opened(view).pages(Projection()):
            ordinals = [row[ORDINAL] for row in page]
            place = {ordinal: number for number, ordinal in enumerate(ordinals)}
            with file.reader.snapshot() as connection, decoding(self.path, "its failures"):
                found = failures_of(connection, ordinals)
                failed = [FailedQuestion(ordinal, names[q], cause, message) for ordinal, q, cause, message in found]
            failed.sort(key=lambda failure: place[failure.ordinal])
            yield from failed


class _File:
    """The connection and the header that all views of one file share."""

    def __init__(self, path: Path) -> None:
        self.reader = Reader(path)

    @cached_property
    def header(self) -> RunHeader:
        with self.reader.snapshot() as connection:
            return RunHeader.load(connection, self.reader.path)
