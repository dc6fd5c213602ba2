"""Reads rows from a CSV file with a header, in blocks of columns. Does not cover: what a row means (plan.rows).

A first pass finds the length, the digest and the type of each column; rows are made of a second one. Both work on a
column of a block at a time: a test or a conversion of 512 cells is one call.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from headrace.display import counted
from headrace.errors import ListError, spelled
from headrace.expressions import ColumnKind
from headrace.plan.census import FieldCensus
from headrace.plan.sources.hashed_file import HashedFile, marked_digest
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.row_source import Renames
from headrace.plan.sources.text_files import LONGEST_CELL, NO_ROWS, found_encoding, text_lines
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.values import Fields, encode_plain_fields

_BLOCK_ROWS = 512
_BLOCK_CHARACTERS = 1 << 20
_MOST_CELLS = 100_000
_SAMPLE_LINES = 20
_SAMPLE_CHARACTERS = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")


class CsvSource:
    """A CSV file with a header. A column whose every cell is a plain number, or empty, holds numbers, and None where it
    is empty; `07` keeps it text. Blanks around a number do not count.

    Where no delimiter is given, it is the one of `, ; tab |` with which the first lines have the same number of cells.
    Where the header has a blank behind each delimiter, blanks at the beginning of cells are passed over.
    """

    def __init__(
        self, path: Path, rename: Renames, *, delimiter: str | None = None, encoding: str | None = None
    ) -> None:
        self.path = path
        self.length = 0
        self._encoding = found_encoding(path, encoding)
        given, sample = _checked(delimiter), self._first_lines()
        # Of several that fit alike, the first.
        self._delimiter = given or max(_DELIMITERS, key=lambda each: _widths(sample, each))
        self._is_spaced = _is_spaced(sample, self._delimiter)
        with HashedFile(path) as file, closing(self._blocks(file)) as blocks:
            header = next(blocks)[0]
            self._rename = rename(header) if callable(rename) else rename
            self._names = renamed_columns(header, self._rename, str(path), ", line 1")
            types = [_ColumnType(is_part=name in (NAME, INSTRUCTION)) for name in self._names]
            for block in blocks:
                self.length += len(block)
                for column, cells in zip(types, zip(*block, strict=True), strict=True):
                    column.see(cells)
            self.digest = marked_digest(file.digest(), self._marks())
        self._types = dict(zip(self._names, types, strict=True))
        self._take_types()

    @staticmethod
    def share_types(sources: Sequence[CsvSource]) -> None:
        """Give a column that several files have one type: texts where it is of texts in any of them."""
        shared: dict[str, _ColumnType] = {}
        for source in sources:
            for name, column in source._types.items():
                shared.setdefault(name, _ColumnType(is_part=column.is_part)).join(column)
        for source in sources:
            source._types = {name: shared[name] for name in source._types}
            source._take_types()

    def _take_types(self) -> None:
        self._converters = [column.converter for column in self._types.values()]
        self.census = FieldCensus()
        for name, column in self._types.items():
            for kind in column.kinds:
                self.census.see(name, kind)
        self.census.always = set(self._names)

    @property
    def field_names(self) -> Collection[str]:
        return self._names

    def rows(self, first: int = 0) -> Iterator[bytes]:
        return map(encode_plain_fields, self.fields(first))

    def fields(self, first: int = 0) -> Iterator[Fields]:
        """The rows from this position on, as dicts."""
        with HashedFile(self.path) as file, closing(self._blocks(file)) as blocks:
            next(blocks)
            position = 0
            for block in blocks:
                if position + len(block) > first:
                    yield from self._converted(block[max(0, first - position) :])
                position += len(block)
            file.check_unchanged(self.digest, self._marks())

    def _converted(self, block: list[list[str]]) -> Iterator[Fields]:
        cells = zip(*block, strict=True)
        columns = [
            column if make is None else make(column) for make, column in zip(self._converters, cells, strict=True)
        ]
        names = self._names
        return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))

    def _marks(self) -> object:
        return sorted(self._rename.items())

    def _blocks(self, file: HashedFile) -> Generator[list[list[str]], None, None]:
        """The header as a block of one row, then rows of its width, some hundred at a time."""
        csv.field_size_limit(LONGEST_CELL)  # the library stops at 128 KB, and a cell may hold a document
        with closing(_CountedLines(text_lines(file, self.path, self._encoding))) as lines:
            reader: _CsvReader = csv.reader(
                lines, strict=True, delimiter=self._delimiter, skipinitialspace=self._is_spaced
            )
            width, block, row_ends = 0, list[list[str]](), 0
            try:
                for row in reader:
                    row_ends = reader.line_num
                    if not row:
                        continue
                    if not width:
                        width = self._checked_width(row)
                        yield [[name.strip() for name in row]]
                        continue
                    if len(row) != width:
                        raise self._ragged(row_ends, len(row), width)
                    block.append(row)
                    if len(block) == _BLOCK_ROWS or lines.characters > _BLOCK_CHARACTERS:
                        yield block
                        block, lines.characters = [], 0
            except csv.Error as error:
                raise self._broken(error, row_ends + 1, reader.line_num) from None
            if not width:
                raise ListError(f"{self.path} is empty.", fix="Give it a header line and at least one row.")
            if block:
                yield block

    def _broken(self, error: csv.Error, first: int, last: int) -> ListError:
        """The row of these lines is no row: mostly because a quote is left open, and the next one lies far behind."""
        if "field limit" in str(error):
            what, fix = f"a cell is longer than {LONGEST_CELL // 1_000_000} MB", f"{_QUOTES} {NO_ROWS}"
        else:
            what, fix = str(error), _QUOTES
        where = f"line {first}" if last <= first else f"lines {first} to {last}"
        return ListError(f"{self.path}, {where}: {what}.", fix=fix)

    def _ragged(self, line: int, cells: int, width: int) -> ListError:
        return ListError(
            f"{self.path}, line {line}: {counted(cells, 'cell')} where the header has {width}.",
            fix=spelled(
                f"Give every row as many cells as the header; quote cells that contain {self._delimiter!r}, which"
                " separates cells here ({delimiter} names another).",
                delimiter=None,
            ),
        )

    def _checked_width(self, header: Sequence[str]) -> int:
        if len(header) > _MOST_CELLS:
            raise ListError(f"{self.path}, line 1 has more than {_MOST_CELLS:,} cells.", fix=NO_ROWS)
        return len(header)

    def _first_lines(self) -> list[str]:
        with HashedFile(self.path) as file, closing(text_lines(file, self.path, self._encoding)) as lines:
            sample: list[str] = []
            for line in islice(lines, _SAMPLE_LINES):
                sample.append(line[:_SAMPLE_CHARACTERS])
                if sum(map(len, sample)) >= _SAMPLE_CHARACTERS:
                    break
        return sample


_QUOTES = (
    "Look for a quote that is left open: a cell that begins with one ends with one, and has those inside it twice."
)


class _CsvReader(Protocol):
    """What `csv.reader` gives."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


class _CountedLines:
    """Lines on their way to the reader, and how many `characters` they have had since that was last set to 0."""

    def __init__(self, lines: Generator[str, None, None]) -> None:
        self._lines = lines
        self.characters = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.characters += len(line)
            yield line

    def close(self) -> None:
        self._lines.close()


class _ColumnType:
    """What the cells of a column are, as far as they were seen: integers, decimal numbers too, or texts. `is_part` says
    that they are an agent's name or instruction: an empty cell is none.
    """

    def __init__(self, *, is_part: bool) -> None:
        self.is_part = is_part
        self._is_text = self._has_decimals = self._has_gaps = self._has_numbers = False

    def see(self, cells: tuple[str, ...]) -> None:
        if self._is_text and (self._has_gaps or not self.is_part):
            return
        if "" in cells:
            self._has_gaps = True
            cells = tuple(filter(None, cells))
        if self._is_text or not cells:
            return
        joined = "\n".join(cells)
        if joined.count("\n") >= len(cells):  # a cell has lines
            self._is_text = True
        elif " " in joined:
            stripped = [cell.strip(" ") for cell in cells]
            self._has_gaps = self._has_gaps or "" in stripped
            joined = "\n".join(filter(None, stripped))
        if joined and not self._is_text:
            self._has_numbers = True
            if not _INTEGERS.fullmatch(joined):
                self._has_decimals = True
                self._is_text = not _NUMBERS.fullmatch(joined)

    def join(self, other: _ColumnType) -> None:
        self._is_text = self._is_text or other._is_text
        self._has_decimals = self._has_decimals or other._has_decimals
        self._has_gaps = self._has_gaps or other._has_gaps
        self._has_numbers = self._has_numbers or other._has_numbers

    @property
    def converter(self) -> Callable[[Iterable[str]], Iterable[Any]] | None:
        """Makes values of a block's cells; None where they are values."""
        if self._is_of_texts:
            return (lambda cells: [cell or None for cell in cells]) if self.is_part and self._has_gaps else None
        make = float if self._has_decimals else int
        if self._has_gaps:
            return lambda cells: [make(cell) if cell.strip(" ") else None for cell in cells]
        return lambda cells: map(make, cells)

    @property
    def kinds(self) -> list[ColumnKind]:
        number = ColumnKind.REAL if self._has_decimals else ColumnKind.INT
        kind = ColumnKind.TEXT if self._is_of_texts else number
        is_none = self._has_gaps and (self.is_part or not self._is_of_texts)
        return [kind, ColumnKind.NULL] if is_none else [kind]

    @property
    def _is_of_texts(self) -> bool:
        return self._is_text or not self._has_numbers


_INTEGER = r"(?:0|-?[1-9][0-9]{0,17})"
# As programs write them: 0.1 + 0.2 has 17 digits, a p-value may be 1e-05. None of these is too large for a float.
_EXPONENT = r"[eE](?:-[0-9]{1,3}|\+?[0-9]{1,2}|\+?(?:1[0-9]|2[0-8])[0-9])"
_NUMBER = rf"(?:-?(?:0|[1-9][0-9]{{0,14}})(?:\.[0-9]{{1,20}}(?:{_EXPONENT})?|{_EXPONENT})|{_INTEGER})"
_INTEGERS = re.compile(rf"{_INTEGER}(?:\n{_INTEGER})*+")
_NUMBERS = re.compile(rf"{_NUMBER}(?:\n{_NUMBER})*+")


def _checked(delimiter: str | None) -> str | None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ListError(f"{delimiter!r} cannot separate cells.", fix='Give one character, like ";" or "\\t".')
    return delimiter


def _is_spaced(lines: Sequence[str], delimiter: str) -> bool:
    """Whether the header has a blank behind each delimiter: `name, age`. A delimiter in quotes has none."""
    header = next((line for line in lines if line.strip()), "")
    return 0 < header.count(delimiter) == header.count(f"{delimiter} ")


def _widths(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    """How many cells all of these lines have with this delimiter, 0 where they differ or have one; and the first."""
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row] or [0]
    except csv.Error:
        return 0, 0
    return widths[0] if widths[0] > 1 and len(set(widths)) == 1 else 0, widths[0]
