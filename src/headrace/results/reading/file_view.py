"""A FileView is a view of one run file with the columns that a user has chosen, added and renamed. It is a value: each
verb gives another.

Covers: what verbs mean for one file, and reading its rows. Does not cover: several files as one (joining), or the
methods that users call (results).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from headrace.errors import InvalidInput, Spelled
from headrace.expressions import ColumnKind, parse
from headrace.limits import Keep
from headrace.plan.portion import RunScope
from headrace.results.columns.binding import bind
from headrace.results.columns.catalog import Catalog, ColumnChanges, read_catalog
from headrace.results.columns.result_column import FAILED, Bound, ResultColumn, column_kinds
from headrace.results.failed_questions import FailedQuestion, all_failures, count_failed, failures_in
from headrace.results.reading.scopes import count_bits_of_run
from headrace.results.reading.stages import OpenView
from headrace.results.reading.views import SortKey, View
from headrace.results.result import Result, results_of
from headrace.results.stats import read_stats
from headrace.results.tabular import Values
from headrace.results.verb_arguments import directions
from headrace.store.queries.query_clock import TIMEOUT_S, QueryClock, checked_timeout
from headrace.store.run_file.bulk.column_pages import ColumnPage
from headrace.store.run_file.bulk.details_ahead import DetailsAhead
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import ORDINAL, Projection, everything_of
from headrace.store.run_file.reader import Reader, check_is_set_up
from headrace.store.run_file.stored_job.creation import read_settings
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.survey.people.agent_settings import SettingsTable
from headrace.survey.values import kind_of

_EVERYTHING, _UNCHANGED = View(), ColumnChanges()
_FAILED_ONLY = Bound(parse(FAILED.full_name), (FAILED,))


class SharedFile:
    """The connection and the header that all views of one file share."""

    def __init__(self, path: Path) -> None:
        self.reader = Reader(path)

    @classmethod
    def checked(cls, path: str | Path) -> SharedFile:
        """The file at a path, which must be a run file that is set up."""
        file = cls(Path(path).expanduser().absolute())  # a later chdir changes nothing
        with file.reader.snapshot() as connection:
            check_is_set_up(connection, file.reader.path)
        file.reader.close()  # results that nobody looks at must not keep a later run from sealing the file
        return file

    @cached_property
    def header(self) -> RunHeader:
        with self.reader.snapshot() as connection:
            return RunHeader.load(connection, self.reader.path)

    @cached_property
    def agent_settings(self) -> SettingsTable:
        """The codebooks and templates of the file's agents."""
        with self.reader.snapshot() as connection:
            return read_settings(connection)

    def kept_kinds(self, columns: Iterable[ResultColumn]) -> list[frozenset[ColumnKind] | None]:
        """The kinds of values in each column, None where the file does not keep them."""
        with self.reader.snapshot() as connection:
            return [column_kinds(connection, column, self.header) for column in columns]


class FileView(msgspec.Struct, frozen=True, kw_only=True):
    """`selected` is None where the user has chosen no columns; `timeout_s` is how long its next rows may take."""

    file: SharedFile
    view: View = _EVERYTHING
    selected: tuple[ResultColumn, ...] | None = None
    changes: ColumnChanges = _UNCHANGED
    timeout_s: float = TIMEOUT_S

    def catalog(self) -> Catalog:
        """The columns as they are at this moment."""
        return read_catalog(self.file.reader, self.file.header).changed(self.changes)

    def columns(self, catalog: Catalog) -> tuple[ResultColumn, ...]:
        return catalog.first if self.selected is None else self.selected

    # --- verbs

    def selecting(self, columns: Iterable[str]) -> FileView:
        return replace(self, selected=self.catalog().expand(columns))

    def filtering(self, expression: str) -> FileView:
        return replace(self, view=self.view.filtered(bind(parse(expression), self.catalog())))

    def ordering(self, columns: Sequence[str], reverse: bool | Sequence[bool]) -> FileView:
        """Sorted by these columns; `reverse` is for all of them, or one for each."""
        catalog = self.catalog()
        return self.sorted_by(map(SortKey, map(catalog.find, columns), directions(columns, reverse)))

    def sorted_by(self, keys: Iterable[SortKey]) -> FileView:
        return replace(self, view=self.view.ordered(tuple(keys)))

    def within(self, timeout_s: float | None) -> FileView:
        """The same view with another time limit; None leaves the one it has."""
        return self if timeout_s is None else replace(self, timeout_s=checked_timeout(timeout_s))

    # --- reading

    def opened(self) -> OpenView:
        header = self.file.header
        if header.keeping.keep is Keep.NOTHING:
            raise no_rows(header)
        return OpenView(self.file.reader, header, self.view, self.timeout_s)

    def results(self) -> Iterator[Result]:
        file = self.file
        details = DetailsAhead(file.reader, file.header)
        for page in self.opened().whole():
            if isinstance(page, ColumnPage):
                yield from results_of(page, file.header, details)
            else:
                ordinals = tuple(row[ORDINAL] for row in page)
                for place, row in enumerate(page):
                    yield Result.from_fetched(row, file.header, partial(details.detail, ordinals, place))

    def at(self, ordinal: int) -> Result:
        """The interview with this number in the plan; IndexError where the view has none."""
        file = self.file
        row = self.opened().at(ordinal, everything_of(len(file.header.question_names)))
        if row is None:
            raise IndexError(self._why_not_at(ordinal))
        detail = partial(DetailsAhead(file.reader, file.header).detail, (ordinal,), 0)
        return Result.from_fetched(row, file.header, detail)

    def _why_not_at(self, ordinal: int) -> str:
        """Why the view has no interview with this number."""
        with self.file.reader.snapshot() as connection:
            size = read_plan(connection, self.file.reader.path).size
        if not 0 <= ordinal < size:
            return f"there is no interview {ordinal:,} in a plan of {size:,}: they are numbered from 0"
        if self.opened().of(_EVERYTHING).at(ordinal, Projection()) is None:
            return f"interview {ordinal:,} has no row: it was not asked yet, or `where` leaves it out"
        return f"interview {ordinal:,} is in the file, but not among these results"

    def values(self, columns: Iterable[ResultColumn], clock: QueryClock | None = None) -> Iterator[Values]:
        return self.opened().values(list(columns), clock)

    def failed(self) -> Iterator[FailedQuestion]:
        if self.view.is_whole:
            return all_failures(self.file.reader, self.file.header, self.view.scope)
        return failures_in(self._only_failed())

    def failed_count(self) -> int:
        """How many interviews of the view failed."""
        if self.view.is_whole:
            return count_failed_of_run(self.file, self.view.scope)
        return self._only_failed().count()

    def kinds(self, columns: list[ResultColumn]) -> list[frozenset[ColumnKind]]:
        """The kinds of values in each column; those that the file does not keep are found by reading every row."""
        kept = self.file.kept_kinds(columns)
        unknown = [column for column, held in zip(columns, kept, strict=True) if held is None]
        seen: dict[ResultColumn, set[ColumnKind]] = {column: set() for column in unknown}
        for values in self.values(unknown) if unknown else ():
            for column, value in zip(unknown, values, strict=True):
                seen[column].add(kind_of(value))
        return [frozenset(seen[column]) if held is None else held for column, held in zip(columns, kept, strict=True)]

    def _only_failed(self) -> OpenView:
        return replace(self, view=self.view.filtered(_FAILED_ONLY)).opened()


def count_failed_of_run(file: SharedFile, scope: RunScope | None) -> int:
    """How many interviews of a whole run or file failed; known also where no rows are kept."""
    if scope is None or file.header.keeping.keep is not Keep.NOTHING:
        return count_failed(file.reader, scope)
    return count_bits_of_run(file.reader, scope, only_failed=True)


def count_interviews(part: FileView) -> int:
    """How many interviews a view has; known of a whole file and of a run also where no rows are kept."""
    if part.view.is_whole and part.file.header.keeping.keep is Keep.NOTHING:
        scope, reader = part.view.scope, part.file.reader
        return read_stats(reader).interviews if scope is None else count_bits_of_run(reader, scope, only_failed=False)
    return part.opened().count()


def no_rows(header: RunHeader) -> InvalidInput:
    """The error where rows are asked of a file that keeps none."""
    has = "results.aggregate() has its totals, " if header.keeping.totals is not None else ""
    shows = "headrace results RUN --totals shows its totals, " if header.keeping.totals is not None else ""
    return InvalidInput(
        Spelled(
            f'{header.path} keeps no results (keep="nothing").',
            command=f"{header.path} keeps no results (--keep nothing).",
        ),
        fix=Spelled(
            f"{has}results.stats() what they took, and results.failed() the causes of failures. To keep the answers,"
            ' run the job into another file with keep="answers".',
            command=f"{shows}headrace status RUN what they took, and headrace results RUN --failed the causes of"
            " failures. To keep the answers, run the job into another file with --keep answers.",
        ),
    )
