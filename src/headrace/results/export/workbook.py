"""Rows as an Excel workbook of one sheet, written row by row: memory stays flat, and only xlsxwriter is needed.

Texts stay texts, also those that look like formulas, links or numbers. What a sheet cannot hold: more than 1,048,576
rows or 16,384 columns are refused; a text beyond 32,767 letters is cut, says so at its end, and is warned of; a whole
number beyond 15 digits, NaN and infinities are texts, because Excel would change them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from headrace.display import counted
from headrace.errors import HeadraceWarning, InvalidInput, MissingExtra
from headrace.plain_files.replacing import replacing
from headrace.results.export.json_values import to_json

Rows: TypeAlias = Iterator[tuple[Any, ...]]

_MOST_ROWS, _MOST_COLUMNS, _LONGEST = 1_048_576, 16_384, 32_767
_LARGEST = 10**15  # Excel's numbers have 15 digits
_LONGEST_NAME, _NOT_IN_NAMES = 31, frozenset("[]:*?/\\")


def write_excel(path: Path, columns: list[str], rows: Rows, sheet_name: str, count: int | None = None) -> Path:
    """Write a header and the rows into the only sheet of a new workbook. `count` is how many rows there are, where that
    is known: too many are refused at once, and not after minutes.
    """
    try:
        from xlsxwriter import Workbook  # pyright: ignore[reportMissingTypeStubs]
        from xlsxwriter.exceptions import FileCreateError  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise MissingExtra("xlsxwriter") from None
    _check_name(sheet_name)
    if len(columns) > _MOST_COLUMNS:
        raise InvalidInput(
            f"A sheet has at most {_MOST_COLUMNS:,} columns, and these are {len(columns):,}.", fix="Select fewer."
        )
    if count is not None and count >= _MOST_ROWS:
        raise _too_many_rows()
    # A directory of its own for xlsxwriter's temporary files, which it leaves behind where the disk is full.
    with replacing(path) as unfinished, TemporaryDirectory() as temporary:
        # Row by row into a temporary file: each row is final once the next one begins.
        book: Any = Workbook(str(unfinished), {"constant_memory": True, "tmpdir": temporary})
        sheet = _Sheet(book.add_worksheet(sheet_name))
        try:
            try:
                sheet.write(iter([tuple(columns)]))
                sheet.write(rows)
            finally:
                book.close()
        except FileCreateError as error:
            raise OSError(f"no room for it, or for temporary files in {temporary} ({error})") from error
    if sheet.cut:
        warnings.warn(
            f"{counted(sheet.cut, 'text')} in {path} had more than the {_LONGEST:,} letters of a cell; each is cut and"
            " says so at its end. to_parquet and to_csv keep them whole.",
            HeadraceWarning,
            stacklevel=3,
        )
    return path


class _Sheet:
    """The sheet being written: the next row, and how many texts were cut."""

    def __init__(self, sheet: Any) -> None:
        self._sheet = sheet
        self._row = 0
        self.cut = 0

    def write(self, rows: Rows) -> None:
        for row in rows:
            if self._row >= _MOST_ROWS:
                raise _too_many_rows()
            for column, value in enumerate(row):
                self._write_cell(column, value)
            self._row += 1

    def _write_cell(self, column: int, value: Any) -> None:
        match value:
            case None:
                return
            case bool():
                self._sheet.write_boolean(self._row, column, value)
            case int() if -_LARGEST < value < _LARGEST:
                self._sheet.write_number(self._row, column, value)
            case float() if math.isfinite(value):
                self._sheet.write_number(self._row, column, value)
            case str() if value:
                self._sheet.write_string(self._row, column, self._fitted(value))
            case list() | dict() | bytes():
                self._sheet.write_string(self._row, column, self._fitted(to_json(value).decode()))
            case int() | float():
                self._sheet.write_string(self._row, column, self._fitted(str(value)))
            case _:
                return  # an empty text is an empty cell: Excel has no other

    def _fitted(self, text: str) -> str:
        """The text, or as much of it as a cell holds. Excel counts UTF-16 units: an emoji has two."""
        if len(text) <= _LONGEST // 2:
            return text
        units = text.encode("utf-16-le")
        if len(units) <= 2 * _LONGEST:
            return text
        self.cut += 1
        note = f"... (cut: it has {len(text):,} letters)"
        return units[: 2 * (_LONGEST - len(note))].decode("utf-16-le", "ignore") + note


def _too_many_rows() -> InvalidInput:
    return InvalidInput(
        f"A sheet has at most {_MOST_ROWS:,} rows, its header included, and these are more.",
        fix=f"Write Parquet or CSV, or several workbooks: results[:{_MOST_ROWS - 1}] and so on.",
    )


def _check_name(name: str) -> None:
    is_good = 0 < len(name) <= _LONGEST_NAME and not _NOT_IN_NAMES & set(name) and not name.startswith("'")
    if not is_good or name.endswith("'"):
        raise InvalidInput(
            f"{name!r} cannot be the name of a sheet.",
            fix=f"Use up to {_LONGEST_NAME} letters, without [ ] : * ? / \\ and no ' at its ends.",
        )
