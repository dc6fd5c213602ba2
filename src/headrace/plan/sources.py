"""Reads the rows of a list from a CSV file or a JSONL file, as a stream of any length.

Covers: length, digest and fields, found in one pass; rows, again and again, in constant memory.
Does not cover: what a row means (plan.lists), rows out of an iterable (plan.rows.spool), or rows that stand in a run
file already (store.run_file.stored_job.stored_lists).
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, cast

import msgspec

from headrace.display import counted
from headrace.errors import ListError, nearest
from headrace.expressions import ColumnKind
from headrace.plan.census import FieldCensus
from headrace.survey.values import Fields, Remark, UnusableValue, encode_fields

_BLOCK_BYTES = 1 << 16
LONGEST_LINE = 64_000_000  # more than any model reads; a file without line ends must not be read whole
_MOST_CELLS = 100_000
_LONG_LINE = 1_000_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


# Other names for columns; a function makes them out of the names in the header, or in the first line.
Renames: TypeAlias = dict[str, str] | Callable[[Collection[str]], dict[str, str]]


class RowSource(Protocol):
    """Rows of fields as JSON, in a fixed order, as often as they are asked for."""

    length: int
    census: FieldCensus

    @property
    def digest(self) -> str: ...

    def rows(self, first: int = 0) -> Iterator[bytes]:
        """The rows from this position on."""
        ...


class CsvSource:
    """A CSV file with a header. A column whose every cell is a plain number holds numbers; `07` keeps it text.

    Cells are separated by commas, or by semicolons or tabs where the header has those and no comma.
    """

    def __init__(self, path: Path, rename: Renames) -> None:
        self.path = path
        self.length = 0
        with _Hashed(path) as file:
            cells = self._cells(file)
            header = self._header(next(cells, None))
            self._rename = rename(header) if callable(rename) else rename
            self._names = self._renamed(header)
            numbers_seen: list[set[Callable[[str], Any]]] = [set() for _ in self._names]
            for row in cells:
                self.length += 1
                for seen, cell in zip(numbers_seen, row, strict=True):
                    if len(seen) < 3:
                        seen.add(_cell_type(cell))
            self.digest = _with_names(file.digest(), self._rename)
        self._types = [_column_type(seen) for seen in numbers_seen]
        self.census = FieldCensus()
        for name, make in zip(self._names, self._types, strict=True):
            self.census.see(name, _KIND_MADE[make])
        self.census.always = set(self._names)

    def rows(self, first: int = 0) -> Iterator[bytes]:
        with _Hashed(self.path) as file:
            cells = self._cells(file)
            next(cells, None)
            for row in islice(cells, first, None):
                values = (make(cell) for make, cell in zip(self._types, row, strict=True))
                yield encode_fields(dict(zip(self._names, values, strict=True)))[0]
            file.check_unchanged(self.digest, self._rename)

    def _cells(self, file: _Hashed) -> Iterator[list[str]]:
        csv.field_size_limit(LONGEST_LINE)  # the library stops at 128 KB, and a cell may hold a document
        lines = self._lines(file)
        try:
            first = next(lines, "")
            separator = _separator(first)
            reader = csv.reader(chain([first], lines), strict=True, delimiter=separator)
            yield from self._of_one_width(reader, separator)
        except UnicodeDecodeError:
            raise _not_utf8(self.path) from None

    def _of_one_width(self, reader: _CsvReader, separator: str) -> Iterator[list[str]]:
        width = 0
        try:
            for row in reader:
                if not row:
                    continue
                width = width or len(row)
                if len(row) != width:
                    raise ListError(
                        f"{self.path}, line {reader.line_num}: {_cells_text(len(row))} where the header has {width}.",
                        fix=f"Give every row as many cells as the header; quote cells that contain {separator!r},"
                        " which separates cells here.",
                    )
                yield row
        except csv.Error as error:
            raise ListError(f"{self.path}, line {reader.line_num}: {error}.", fix="Save it as UTF-8 CSV.") from None

    def _lines(self, file: _Hashed) -> Iterator[str]:
        """The file's lines; each is bounded before it is held in memory."""
        for number, line in enumerate(iter(partial(file.text.readline, LONGEST_LINE + 1), ""), 1):
            if len(line) > _LONG_LINE:
                _check_line(self.path, number, len(line))
                if max(map(line.count, _SEPARATORS)) > _MOST_CELLS:
                    raise ListError(f"{self.path}, line {number} has more than {_MOST_CELLS:,} cells.", fix=_NO_ROWS)
            yield line

    def _header(self, row: list[str] | None) -> list[str]:
        if row is None:
            raise ListError(f"{self.path} is empty.", fix="Give it a header line and at least one row.")
        return [name.strip() for name in row]

    def _renamed(self, header: list[str]) -> list[str]:
        for name in self._rename:
            if name not in header:
                raise ListError(f"{self.path} has no column {name!r}.", fix=nearest(name, header))
        names = [self._rename.get(name, name) for name in header]
        counted = Counter(names)
        for name in names:
            if not name or counted[name] > 1:
                what = f"has the column {name!r} twice" if name else "has a column without a name"
                raise ListError(f"{self.path}, line 1: the header {what}.", fix="Give each column a name of its own.")
        return names


class JsonlSource:
    """A file with one JSON object a line."""

    def __init__(self, path: Path, rename: Renames) -> None:
        self.path = path
        self._renames = rename
        self._rename: dict[str, str] | None = None  # not known before the first line is read
        self.length = 0
        self.census = FieldCensus()
        with _Hashed(path) as file:
            for fields in self._objects(file):
                self.census.add_encoded(fields, *self._encoded(fields))
                self.length += 1
            self.digest = _with_names(file.digest(), self._rename or {})

    def rows(self, first: int = 0) -> Iterator[bytes]:
        with _Hashed(self.path) as file:
            for fields in islice(self._objects(file), first, None):
                yield self._encoded(fields)[0]
            file.check_unchanged(self.digest, self._rename or {})

    def _encoded(self, fields: Fields) -> tuple[bytes, Remark]:
        try:
            return encode_fields(fields)
        except UnusableValue as error:
            raise ListError(f"{self.path}, row {self.length}: {error.message}", fix=error.fix) from None

    def _objects(self, file: _Hashed) -> Iterator[Fields]:
        for number, line in enumerate(iter(partial(file.binary.readline, LONGEST_LINE + 1), b""), 1):
            _check_line(self.path, number, len(line))
            if not line.strip():
                continue
            where = f"{self.path}, line {number}"
            try:
                fields = msgspec.json.decode(line.removeprefix(_BYTE_ORDER_MARK))
            except RecursionError:
                raise ListError(f"{where}: it is nested too deeply.", fix="Flatten it.") from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ListError(f"{where}: {error}.", fix="Write one JSON object a line.") from None
            if not isinstance(fields, dict):
                raise ListError(f"{where}: not a JSON object.", fix="Write one JSON object a line.")
            held = cast(Fields, fields)
            if self._rename is None:
                self._rename = self._renames(held) if callable(self._renames) else self._renames
            yield {self._rename.get(name, name): value for name, value in held.items()}


class _Hashed(io.RawIOBase):
    """A file whose every byte read is digested, so that one pass finds rows, length and digest alike."""

    _raw: io.FileIO | None = None  # none where opening failed; what was begun is closed all the same

    def __init__(self, path: Path) -> None:
        super().__init__()
        if path.exists() and not path.is_file():  # a pipe would be waited for, and cannot be read again
            raise ListError(f"{path} is not a file.", fix="Rows are read more than once: save them to a file.")
        try:
            self._raw = path.open("rb", buffering=0)
        except OSError as error:
            raise ListError(f"{path} cannot be read: {error.strerror}.", fix="Check the path and its rights.") from None
        self._path = path
        self._hash = hashlib.blake2b(digest_size=16)
        self.binary = io.BufferedReader(self, _BLOCK_BYTES)
        self.text = io.TextIOWrapper(self.binary, encoding="utf-8-sig", newline="")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        assert self._raw is not None
        read = self._raw.readinto(buffer) or 0
        self._hash.update(memoryview(buffer)[:read])
        return read

    def digest(self) -> str:
        while self.binary.read(_BLOCK_BYTES):
            pass
        return self._hash.hexdigest()

    def check_unchanged(self, digest: str, rename: dict[str, str]) -> None:
        if _with_names(self.digest(), rename) != digest:
            raise ListError(f"{self._path} changed while the job was set up.", fix="Make the list again.")

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.text.detach()
        self.close()


_SEPARATORS = (",", ";", "\t")
_QUOTED = re.compile(r'"[^"]*"')
_NO_ROWS = "Is it the right file? Rows end with a line end."


class _CsvReader(Protocol):
    """What `csv.reader` gives."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


def _separator(header: str) -> str:
    """The separator of cells: spreadsheets write semicolons where the comma is a decimal point."""
    bare = _QUOTED.sub("", header)
    return next((sign for sign in _SEPARATORS if sign in bare), ",")


def _cells_text(count: int) -> str:
    return counted(count, "cell")


def _check_line(path: Path, number: int, length: int) -> None:
    if length > LONGEST_LINE:
        raise ListError(f"{path}, line {number} is longer than {LONGEST_LINE // 1_000_000} MB.", fix=_NO_ROWS)


def _not_utf8(path: Path) -> ListError:
    """The error that names the first line that is not UTF-8. A decoder reads blocks, and does not know it."""
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return ListError(f"{path} is UTF-16.", fix="Save it as UTF-8 CSV.")
        file.seek(0)
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                shown = line[max(0, error.start - 10) : error.end + 5].decode("latin-1").strip()
                fix = (
                    f"Save it as UTF-8 CSV. If {shown!r} looks right, it is Latin-1: iconv -f latin1 -t utf-8 does it."
                )
                return ListError(f"{path}, line {number} is not UTF-8.", fix=fix)
    return ListError(f"{path} is not UTF-8.", fix="Save it as UTF-8 CSV.")


def _with_names(digest: str, rename: dict[str, str]) -> str:
    """A file's digest, together with the new names of its columns."""
    return (
        hashlib.blake2b(f"{digest} {sorted(rename.items())}".encode(), digest_size=16).hexdigest() if rename else digest
    )


_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,14})\.\d{1,15}")


_KIND_MADE: dict[Callable[[str], Any], ColumnKind] = {int: ColumnKind.INT, float: ColumnKind.REAL, str: ColumnKind.TEXT}


def _cell_type(cell: str) -> Callable[[str], Any]:
    if _INTEGER.fullmatch(cell) and cell != "-0":
        return int
    return float if _DECIMAL.fullmatch(cell) else str


def _column_type(seen: set[Callable[[str], Any]]) -> Callable[[str], Any]:
    if seen == {int}:
        return int
    return float if seen and seen <= {int, float} else str
