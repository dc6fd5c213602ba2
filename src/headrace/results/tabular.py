"""Tabular: columns and rows that can be exported. Covers: the `to_...` methods of results and of SQL tables.

Does not cover: how each format is written (text_export, export).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from headrace.expressions import ColumnKind
from headrace.results import export, text_export
from headrace.results.replacing import refuse_same_file

if TYPE_CHECKING:
    from headrace.results.export import DataFrame

Values: TypeAlias = tuple[Any, ...]


class Tabular(ABC):
    """Columns and rows of Python values. Rows are read as they are needed, never all at once."""

    path: Path

    @property
    @abstractmethod
    def columns(self) -> list[str]: ...

    @abstractmethod
    def _values(self) -> Iterator[Values]:
        """Read the rows, again each time."""

    @abstractmethod
    def _kinds(self) -> list[frozenset[ColumnKind]]:
        """The kinds of values in each column."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows in memory, each a dict by column."""
        columns = self.columns
        return [dict(zip(columns, values, strict=True)) for values in self._values()]

    def to_pandas(self) -> DataFrame:
        """All rows in memory, as a data frame. Whole numbers and booleans with gaps get pandas' nullable types."""
        return export.to_pandas(self.columns, self._values())

    def print_csv(self, file: TextIO, *, escape_formulas: bool = False) -> None:
        """Write what `to_csv` writes into an open file such as `sys.stdout`; at a terminal, control characters are
        escaped.
        """
        text_export.print_csv(file, self.columns, self._values(), escape_formulas=escape_formulas)

    def print_jsonl(self, file: TextIO) -> None:
        """Write what `to_jsonl` writes into an open file such as `sys.stdout`; at a terminal as `print_csv`."""
        text_export.print_jsonl(file, self.columns, self._values())

    def to_csv(self, path: str | Path, *, escape_formulas: bool = False) -> Path:
        """Write a header and a line for each row; None is empty, lists and dicts are JSON.

        `escape_formulas=True` is for a file that a spreadsheet will open: a text that begins with `=`, `+`, `-` or `@`
        gets an apostrophe before it, or the spreadsheet would run it as a formula.
        """
        return text_export.write_csv(self._target(path), self.columns, self._values(), escape_formulas=escape_formulas)

    def to_jsonl(self, path: str | Path) -> Path:
        """Write a JSON object for each row, by column. JSON has no NaN and no infinity: they become null."""
        return text_export.write_jsonl(self._target(path), self.columns, self._values())

    def to_parquet(self, path: str | Path) -> Path:
        """Write typed columns; a column of mixed types, or of lists, holds JSON texts."""
        return export.write_parquet(self._target(path), self.columns, self._kinds, self._values)

    def _target(self, path: str | Path) -> Path:
        return refuse_same_file(Path(path), self.path)
