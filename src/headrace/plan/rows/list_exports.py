"""Writes lists into files and data frames: the `to_...` methods, as results have them.

Does not cover: how each format is written (results.tabular).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from headrace.plan.rows.row_table import RowTable
    from headrace.results.export.pandas_frames import DataFrame


class ListExports:
    """A list as files: each writes all items, a row for each, in the memory of a batch, and returns the path."""

    def _table(self) -> RowTable:
        raise NotImplementedError

    def to_pandas(self, lists_as_strings: bool = False) -> DataFrame:
        """All items in memory, as a data frame with a column for each field; agents' names are in `agent_name`."""
        return self._table().to_pandas(lists_as_strings=lists_as_strings)

    def to_polars(self) -> pl.DataFrame:
        """All items in memory, as a polars frame."""
        return self._table().to_polars()

    def to_arrow(self) -> pa.Table:
        """All items in memory, as an Arrow table, which `from_arrow` reads."""
        return self._table().to_arrow()

    def to_csv(self, path: str | Path, *, escape_formulas: bool = False) -> Path:
        """Write a header and a line for each item, which `from_csv` reads; parameters as those of `Results.to_csv`."""
        return self._table().to_csv(path, escape_formulas=escape_formulas)

    def to_jsonl(self, path: str | Path) -> Path:
        """Write a JSON object for each item, which `from_jsonl` reads."""
        return self._table().to_jsonl(path)

    def to_parquet(self, path: str | Path) -> Path:
        """Write typed columns, which `from_parquet` reads."""
        return self._table().to_parquet(path)

    def to_excel(self, path: str | Path, sheet_name: str = "rows") -> Path:
        """Write a workbook with one sheet, which `from_excel` reads."""
        return self._table().to_excel(path, sheet_name)

    def to_sqlite(self, path: str | Path, table: str = "rows") -> Path:
        """Write a plain table into an SQLite file of its own, which `from_sqlite` reads."""
        return self._table().to_sqlite(path, table)

    def to_markdown(self, buf: str | Path | None = None) -> str | Path:
        """Write a Markdown table to a path; without one, return it as a text."""
        return self._table().to_markdown(buf)

    def to_html(self, buf: str | Path | None = None) -> str | Path:
        """Write a page with an HTML table to a path; without one, return the table as a text. Values are escaped."""
        return self._table().to_html(buf)
