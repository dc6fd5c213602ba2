"""Tabular: columns and rows that can be exported. Covers: the `to_...` methods of results and of SQL tables.

Does not cover: how each format is written (results.export).
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex, TextIO, TypeAlias, cast

from headrace.display import SHOWN_ROWS
from headrace.errors import InvalidInput
from headrace.expressions import ColumnKind
from headrace.missing_names import ExplainedABC, ExplainedNames
from headrace.plan.lists import AgentList, ScenarioList
from headrace.results import printing
from headrace.results.export import (
    arrow_batches,
    listing,
    markup,
    pandas_frames,
    parquet_files,
    sqlite_export,
    text_export,
    workbook,
)
from headrace.results.export.column_source import Batch, ColumnSource
from headrace.results.export.export_progress import watched
from headrace.results.export.export_targets import checked_target
from headrace.results.printing import Glance
from headrace.store.queries.query_clock import QueryClock

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from headrace.results.export.pandas_frames import DataFrame

Values: TypeAlias = tuple[Any, ...]
Columns: TypeAlias = list[tuple[Any, ...]]  # of one batch: a sequence of values for each column

_MOST_ROWS, _MOST_VALUES, _MOST_LETTERS = 20_000, 1_000_000, 8_000_000
_ROWS_AT_ONCE = 100  # whose length is guessed from one of them


class Tabular(ExplainedNames, metaclass=ExplainedABC):
    """Columns and rows of Python values. Rows are read as they are needed, never all at once."""

    path: Path

    @property
    @abstractmethod
    def columns(self) -> list[str]: ...

    @abstractmethod
    def _values(self) -> Iterator[Values]:
        """Read the rows, again each time."""

    def _timed_values(self, clock: QueryClock) -> Iterator[Values]:
        """The rows as a part of a larger read, which the clock ends; what reads no file does not ask it."""
        return self._values()

    def _batches(self) -> Iterator[Columns]:
        """The rows as columns, some thousand rows at a time: the values of each column in a batch."""
        return columns_of(self._values(), len(self.columns))

    def _row_count(self) -> int | None:
        """How many rows there are, for a progress line; None where counting would take as long as reading them."""
        return None

    def _batches_at(self, places: list[int]) -> Iterator[Columns]:
        """The columns at these places alone."""
        return ([batch[place] for place in places] for batch in self._batches())

    def _kept_kinds(self) -> list[frozenset[ColumnKind] | None]:
        """The kinds of values in each column, as far as they are known without reading rows."""
        return [None] * len(self.columns)

    @abstractmethod
    def _kinds(self) -> list[frozenset[ColumnKind]]:
        """The kinds of values in each column."""

    @abstractmethod
    def _glance(self, most_rows: int) -> Glance:
        """The first rows with the columns that one wants to see, and how many there are."""

    def __copy__(self) -> Self:
        return self  # no verb changes it

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InvalidInput(
            f"{type(self).__name__} is read from a file, and cannot be pickled.",
            fix=f"Pass on the path and open it there, Results.open({str(self.path)!r}), or pass on values: to_dicts().",
        )

    def __str__(self) -> str:
        """The table that `print(results)` shows: as wide as the terminal, with a bounded number of rows."""
        return printing.as_text(printing.rounded(self._glance(printing.TABLE_ROWS)))

    def _repr_html_(self) -> str:
        return printing.in_format(printing.rounded(self._glance(SHOWN_ROWS)), "html")

    def print(
        self,
        format: str | None = None,
        pretty_labels: Mapping[str, str] | None = None,
        max_rows: int | None = None,
    ) -> None:
        """Print the first rows as a table that fits the terminal.

        `format` is `"rich"` (the default), `"markdown"`, `"html"` or `"latex"`; `pretty_labels` are headings by column;
        `max_rows` is how many rows are shown, by default 20, or 500 in the other formats.
        """
        glance = printing.rounded(self._glance(printing.rows_for(format, max_rows)))
        glance = printing.labelled(glance, pretty_labels or {})
        printing.print_glance(glance, format)

    def to_dicts(self, remove_prefix: bool = True) -> list[dict[str, Any]]:
        """All rows in memory, each a dict by column: `mood` for `answer.mood` where no other column has that name."""
        columns = self._named(remove_prefix=remove_prefix)
        return [dict(zip(columns, row, strict=True)) for row in self._batched_rows()]

    def to_list(self, flatten: bool = False, remove_none: bool = False, unzipped: bool = False) -> list[Any]:
        """All values of one column in memory, or a tuple for each row where there are several.

        `flatten=True` puts the items of lists in their place, `remove_none=True` leaves None out, `unzipped=True` gives
        a list for each column.
        """
        return listing.to_list(self.columns, self._batched_rows(), listing.ListForm(flatten, remove_none, unzipped))

    def first(self) -> Any:
        """The first value of the first column."""
        for row in self._values():
            return row[0]
        raise IndexError("there are no rows")

    def to_dict(self) -> dict[str, list[dict[str, list[Any]]]]:
        """All values in memory, column by column: `{"data": [{"answer.mood": [...]}, ...]}`."""
        columns = listing.to_list(self.columns, self._batched_rows(), listing.ListForm(False, False, True))
        return {"data": [{name: values} for name, values in zip(self.columns, columns, strict=True)]}

    def to_scenario_list(self, remove_prefix: bool = True) -> ScenarioList:
        """The rows as scenarios of the next survey; they are read into the list's spool, not into memory."""
        return listing.to_scenario_list(self._dicts(remove_prefix=remove_prefix))

    def to_agent_list(self, remove_prefix: bool = True) -> AgentList:
        """The rows as agents of the next survey: columns become traits, `agent_name` or `name` their name."""
        return listing.to_agent_list(self._dicts(remove_prefix=remove_prefix))

    def to_pandas(self, remove_prefix: bool = False, lists_as_strings: bool = False) -> DataFrame:
        """All rows in memory, as a data frame. Whole numbers and booleans with gaps get pandas' nullable types.

        `lists_as_strings=True` makes texts of lists and dicts, as Python writes them.
        """
        source = self._column_source(remove_prefix=remove_prefix)
        return pandas_frames.to_pandas(source.columns, source.batches(), lists_as_strings=lists_as_strings)

    def to_polars(self, remove_prefix: bool = False) -> pl.DataFrame:
        """All rows in memory, as a polars frame; the types are those of `to_parquet`."""
        return arrow_batches.to_polars(self._column_source(remove_prefix=remove_prefix))

    def to_arrow(self, remove_prefix: bool = False) -> pa.Table:
        """All rows in memory, as an Arrow table; the types are those of `to_parquet`."""
        return arrow_batches.to_arrow(self._column_source(remove_prefix=remove_prefix))

    def print_csv(self, file: TextIO, *, escape_formulas: bool = False) -> None:
        """Write what `to_csv` writes into an open file such as `sys.stdout`; at a terminal, control characters are
        escaped.
        """
        text_export.print_csv(file, self.columns, self._batches(), escape_formulas=escape_formulas)

    def print_jsonl(self, file: TextIO) -> None:
        """Write what `to_jsonl` writes into an open file such as `sys.stdout`; at a terminal as `print_csv`."""
        text_export.print_jsonl(file, self.columns, self._batches())

    def to_csv(self, path: str | Path, *, escape_formulas: bool = False) -> Path:
        """Write a header and a line for each row; None is empty, lists and dicts are JSON.

        `escape_formulas=True` is for a file that a spreadsheet will open: a text that begins with `=`, `+`, `-` or `@`
        gets an apostrophe before it, or the spreadsheet would run it as a formula.
        """
        target, batches = self._target(path), self._watched_batches()
        return text_export.write_csv(target, self.columns, batches, escape_formulas=escape_formulas)

    def to_jsonl(self, path: str | Path) -> Path:
        """Write a JSON object for each row, by column. JSON has no NaN and no infinity: they become null."""
        return text_export.write_jsonl(self._target(path), self.columns, self._watched_batches())

    def to_parquet(self, path: str | Path) -> Path:
        """Write typed columns: whole numbers, numbers, booleans, texts; lists and dicts where all of a column
        have one shape. Any other column, and integers beyond 64 bits, are JSON texts.
        """
        return parquet_files.write_parquet(self._target(path), self._column_source(remove_prefix=False))

    def to_excel(self, path: str | Path, sheet_name: str = "results") -> Path:
        """Write a workbook with one sheet: a header, then the rows. Texts stay texts, whatever they look like.

        A sheet has at most 1,048,576 rows; a text beyond 32,767 letters is cut, with a warning.
        """
        return workbook.write_excel(
            self._target(path), self.columns, self._batched_rows(), sheet_name, self._row_count()
        )

    def to_sqlite(self, path: str | Path, table: str = "results", remove_prefix: bool = False) -> Path:
        """Write a plain table into an SQLite file of its own. Types are kept; lists and dicts are JSON texts."""
        names = self._named(remove_prefix=remove_prefix)
        return sqlite_export.write_sqlite(self._target(path), table, names, self._kinds, self._batched_rows)

    def to_markdown(self, buf: str | Path | None = None) -> str | Path:
        """Write a Markdown table to a path; without one, return it as a text."""
        if buf is None:
            return markup.as_text(markup.markdown_lines, self.columns, self._values(), "to_markdown")
        return markup.write_lines(self._target(buf), markup.markdown_lines(self.columns, self._batched_rows()))

    def to_html(self, buf: str | Path | None = None) -> str | Path:
        """Write a page with an HTML table to a path; without one, return the table as a text. Values are escaped."""
        if buf is None:
            return markup.as_text(markup.html_lines, self.columns, self._values(), "to_html")
        return markup.write_lines(self._target(buf), markup.html_page(self.columns, self._batched_rows()))

    def print_markdown(self, file: TextIO) -> None:
        """Write what `to_markdown` writes into an open file such as `sys.stdout`; at a terminal as `print_csv`."""
        markup.print_markdown(file, self.columns, self._values())

    def _dicts(self, *, remove_prefix: bool) -> Iterator[dict[str, Any]]:
        """The rows as dicts, read as they are needed."""
        columns = self._named(remove_prefix=remove_prefix)
        return (dict(zip(columns, values, strict=True)) for values in self._values())

    def _batched_rows(self) -> Iterator[Values]:
        """The rows, read in batches."""
        source = self._column_source(remove_prefix=False)
        return source.rows() if source.columns else self._values()

    def _column_source(self, *, remove_prefix: bool) -> ColumnSource:
        columns = self._named(remove_prefix=remove_prefix)
        return ColumnSource(columns, self._kept_kinds, self._watched_batches, self._watched_batches_at)

    def _watched_batches(self) -> Iterator[Batch]:
        return watched(self._batches(), self._row_count)

    def _watched_batches_at(self, places: list[int]) -> Iterator[Batch]:
        return watched(self._batches_at(places), self._row_count)

    def _named(self, *, remove_prefix: bool) -> list[str]:
        return listing.bare_names(self.columns) if remove_prefix else self.columns

    def _target(self, path: str | Path) -> Path:
        return checked_target(Path(path).expanduser(), self.path)


def row_number(index: object, shown: str) -> int:
    """The number of a row; a column's name is answered with the way to read that column."""
    if isinstance(index, (str, list, tuple)):
        named = index if isinstance(index, str) else "answer.mood"
        what = f"{shown}[...] is a row by its number, or a slice of rows."
        raise InvalidInput(what, fix=f'A column: {shown}.select("{named}"), its values: .to_list() behind it.')
    return operator.index(cast("SupportsIndex", index))


def columns_of(rows: Iterator[Values], width: int) -> Iterator[Columns]:
    """Rows turned into batches of columns; wide rows and long texts come in smaller batches."""
    most_rows = max(100, min(_MOST_ROWS, _MOST_VALUES // max(1, width)))
    batch: list[Values] = []
    letters = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        batch += some
        letters += len(some) * _letters_of(some[0])
        if len(batch) >= most_rows or letters >= _MOST_LETTERS:
            yield list(zip(*batch, strict=True))
            batch, letters = [], 0
    if batch:
        yield list(zip(*batch, strict=True))


def _letters_of(row: Values) -> int:
    return sum([len(value) for value in row if isinstance(value, str)])
