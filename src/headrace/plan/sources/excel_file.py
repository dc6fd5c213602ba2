"""Reads the rows of a sheet in an Excel workbook. Does not cover: what a row means (plan.rows).

The first row that is not empty is the header; empty rows are passed over. Excel stores every number as a float: one
without a fraction is an integer. Dates and times become text (plan.sources.row_values). Of merged cells the first has
the value, and the others are None. Formulas are what they came to when the workbook was saved.

The library reads a sheet whole, in about twice the memory that its XML takes: larger workbooks are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import ListError, MissingExtra
from headrace.plan.sources.hashed_file import open_plain
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.row_values import plain_value
from headrace.survey.values import Fields

if TYPE_CHECKING:
    from zipfile import ZipFile

LARGEST_BYTES = 256_000_000  # of what the workbook holds, unpacked: about a million rows of five columns
_BLOCK_BYTES = 1 << 20


def excel_rows(path: Path, sheet: str | None) -> Iterator[Fields]:
    """The rows of a sheet, the first where none is named."""
    calamine = _library()
    _check_size(path)
    with open_plain(path) as file:
        try:
            book: Any = calamine.CalamineWorkbook.from_filelike(file)
            rows = iter(_sheet(book, sheet, path).iter_rows())
        except (calamine.CalamineError, OSError) as error:
            fix = "Is it the right file? A workbook with a password cannot be read."
            raise ListError(f"{path} cannot be read as a workbook: {error}.", fix=fix) from None
        yield from _sheet_fields(rows, path)


def _library() -> Any:
    try:
        import python_calamine
    except ImportError:
        raise MissingExtra("python-calamine") from None
    return python_calamine


def _check_size(path: Path) -> None:
    """Refuse what would not fit into memory, by what it really unpacks to: what a file says of itself may be false."""
    import zipfile  # which few need

    with open_plain(path) as file:
        unpacked = path.stat().st_size
        if zipfile.is_zipfile(file):
            try:
                unpacked = _unpacked_bytes(zipfile.ZipFile(file))
            except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
                fix = "Is it the right file? A workbook with a password cannot be read."
                raise ListError(f"{path} cannot be read as a workbook: {error}.", fix=fix) from None
    if unpacked > LARGEST_BYTES:
        raise ListError(
            f"{path} holds more than {LARGEST_BYTES // 1_000_000} MB.",
            fix="Save the sheet as CSV or Parquet, which are read row by row.",
        )


def _unpacked_bytes(archive: ZipFile) -> int:
    total = 0
    for part in archive.infolist():
        if total + part.file_size > LARGEST_BYTES:
            return total + part.file_size
        with archive.open(part) as content:  # which ends with an error where it is longer than it says
            while block := content.read(_BLOCK_BYTES):
                total += len(block)
    return total


def _sheet(book: Any, name: str | None, path: Path) -> Any:
    names: list[str] = book.sheet_names
    if name is not None and name not in names:
        there = ", ".join(map(repr, names))
        raise ListError(f"{path} has no sheet {name!r}.", fix=f"The sheets there are: {there}.")
    return book.get_sheet_by_index(0) if name is None else book.get_sheet_by_name(name)


def _sheet_fields(rows: Iterator[list[Any]], path: Path) -> Iterator[Fields]:
    filled = (row for row in rows if any(cell != "" for cell in row))
    header = next(filled, None)
    if header is None:
        raise ListError(f"The sheet of {path} is empty.", fix="Give it a row with names, or name another sheet.")
    names = [str(_cell(cell)).strip() if cell != "" else "" for cell in header]
    while names and not names[-1]:
        names.pop()
    fields = renamed_columns(names, {}, str(path))
    for row in filled:
        if any(cell != "" for cell in row[len(fields) :]):
            raise ListError(f"{path} has cells beside its last column with a name.", fix="Name that column too.")
        cells = [_cell(cell) for cell in row[: len(fields)]]
        yield dict(zip(fields, cells + [None] * (len(fields) - len(cells)), strict=True))


def _cell(value: Any) -> Any:
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return None if value == "" else plain_value(value)
