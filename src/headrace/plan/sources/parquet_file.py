"""Reads rows from a Parquet file, a batch at a time. Does not cover: what a row means (plan.rows).

The file's own metadata has its length and the names of its columns; only its digest, and whether numbers are NaN,
take a pass, when they are asked for. A page of each column is in memory, never a row group: files of one large row
group are common. Reading takes no thread, and reads nothing ahead.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.errors import ListError
from headrace.plan.census import FieldCensus
from headrace.plan.sources.arrow_columns import (
    ArrowColumns,
    batch_rows,
    check_width,
    has_tagged,
    import_arrow,
    longest_text,
)
from headrace.plan.sources.hashed_file import FileStamp, HashedFile, marked_digest, open_plain
from headrace.plan.sources.row_source import Renames

_MOST_DECODED_BYTES = 64_000_000
_MOST_DELTA_ROWS = 64  # of texts that are stored as what differs from the text before
_STREAM_BYTES = 1 << 16  # of a column that are read together; without it, a whole column of a row group is


class ParquetSource:
    """A Parquet file; its columns are the fields, in their types."""

    def __init__(self, path: Path, rename: Renames) -> None:
        self.path = path
        self._stamp = FileStamp.of(path)
        self._by_index: list[str] = []
        with self._opened() as file:
            check_width(file.metadata.num_columns, str(path))
            self.length: int = file.metadata.num_rows
            self._columns = ArrowColumns(file.schema_arrow, rename, str(path))
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            self._by_index = _repeated_texts(file)
            self._flat_texts = _flat_texts(file, groups)
            self._is_delta = any(map(_is_delta, groups))
            self._group_rows: list[int] = [group.num_rows for group in groups]
            self._batch_rows = batch_rows(max((g.total_byte_size / max(1, g.num_rows) for g in groups), default=0))

    @property
    def field_names(self) -> Collection[str]:
        return self._columns.names

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def census(self) -> FieldCensus:
        return self._census

    @cached_property
    def _digest(self) -> str:
        with HashedFile(self.path) as file:
            found = marked_digest(file.digest(), sorted(self._columns.renames.items()))
        self._stamp.check(self.path)
        return found

    @cached_property
    def _census(self) -> FieldCensus:
        """Takes a pass over the columns of floats: no metadata tells which of them hold NaN."""
        width = len(self._columns.names)
        nulls, tagged = [False] * width, [False] * width
        unknown = self._columns.unknown
        with self._opened() as file:
            header: list[str] = file.schema_arrow.names
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                for chunk in map(group.column, range(group.num_columns)):
                    if _may_have_nulls(chunk):
                        nulls[_place(chunk.path_in_schema, header)] = True
            for batch in self._batches(file, 0, [header[place] for place in unknown]) if unknown else ():
                for place, array in zip(unknown, batch.columns, strict=True):
                    tagged[place] = tagged[place] or has_tagged(array)
        return self._columns.census(nulls, tagged)

    def rows(self, first: int = 0) -> Iterator[bytes]:
        group, position = 0, 0
        while group < len(self._group_rows) and position + self._group_rows[group] <= first:
            position += self._group_rows[group]
            group += 1
        with self._opened() as file:
            for batch in self._bounded_batches(file, group):
                skipped = min(max(0, first - position), batch.num_rows)
                if skipped < batch.num_rows:
                    yield from self._columns.encoded(batch.slice(skipped), position + skipped)
                position += batch.num_rows

    def _batches(self, file: Any, first_group: int, columns: list[str] | None = None) -> Iterator[Any]:
        groups = range(first_group, len(self._group_rows))
        yield from file.iter_batches(self._batch_rows, row_groups=groups, columns=columns, use_threads=False)

    def _bounded_batches(self, file: Any, first_group: int) -> Iterator[Any]:
        """Batches of all columns, of fewer rows where a text is so long that a batch of it alone would be too large: a
        file holds a text once that stands in every row.
        """
        with self._opened(by_index=self._flat_texts) as texts:
            for group in range(first_group, len(self._group_rows)):
                rows = min(self._batch_rows, self._most_rows(texts, group))
                yield from file.iter_batches(rows, row_groups=[group], use_threads=False)

    def _most_rows(self, texts: Any, group: int) -> int:
        """How many rows of a row group are small enough whichever of its texts they hold, by the longest of each."""
        if not self._flat_texts:
            return _MOST_DELTA_ROWS if self._is_delta else self._batch_rows
        try:
            first = next(texts.iter_batches(1, row_groups=[group], columns=self._flat_texts, use_threads=False), None)
        except import_arrow().ArrowNotImplementedError:  # the library reads texts by index in some encodings only
            return _MOST_DELTA_ROWS
        longest = 0 if first is None else sum(map(longest_text, first.columns))
        bounded = _MOST_DECODED_BYTES // max(1, longest)
        return max(1, min(bounded, _MOST_DELTA_ROWS) if self._is_delta else bounded)

    @contextmanager
    def _opened(self, by_index: list[str] | None = None) -> Generator[Any]:
        """The file, read as it was when the list was made: an error tells, at the end, where it was not. The texts
        `by_index` are read as indices of those that are stored.
        """
        pa = import_arrow()
        import pyarrow.parquet

        with open_plain(self.path) as raw:
            self._stamp.check_open(raw, self.path)
            try:
                with _compact(pa):
                    file: Any = pyarrow.parquet.ParquetFile(
                        raw,
                        pre_buffer=False,
                        buffer_size=_STREAM_BYTES,
                        read_dictionary=self._by_index if by_index is None else by_index,
                    )
                with file:
                    yield file
            except (pa.ArrowException, OSError) as error:
                self._stamp.check_open(raw, self.path)
                what = str(error).splitlines()[0].rstrip(".")
                raise ListError(
                    f"{self.path} cannot be read as Parquet: {what}.", fix="Is it the right file?"
                ) from None
            self._stamp.check_open(raw, self.path)


@contextmanager
def _compact(pa: Any) -> Generator[None]:
    """Have a reader that is made inside use the system's own allocator. Arrow's default one keeps what pages took."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def _repeated_texts(file: Any) -> list[str]:
    """The texts inside lists and dicts of which a file may hold a few, and say that they are there many times.

    These are read as indices of the few: a row of a million texts is 4 MB then, and is refused before it is a gigabyte.
    Other columns are not, because it takes longer: a batch bounds how many values of them there are.
    """
    found: set[str] = set()
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        for place in range(group.num_columns):
            column = file.schema.column(place)
            if column.max_repetition_level and column.physical_type == "BYTE_ARRAY":
                chunk = group.column(place)
                if chunk.num_values * chunk.total_uncompressed_size > _MOST_DECODED_BYTES:
                    found.add(column.path)
    return sorted(found)


def _flat_texts(file: Any, groups: list[Any]) -> list[str]:
    """The texts outside of lists of which each is stored once, and referred to by its index."""
    columns: list[Any] = [file.schema.column(place) for place in range(file.metadata.num_columns)]
    return [
        column.path
        for place, column in enumerate(columns)
        if not column.max_repetition_level and column.physical_type == "BYTE_ARRAY"
        if any(group.column(place).has_dictionary_page for group in groups)
    ]


def _is_delta(group: Any) -> bool:
    return any("DELTA_BYTE_ARRAY" in group.column(place).encodings for place in range(group.num_columns))


def _place(path: str, header: list[str]) -> int:
    """The place of the column that a part of it, such as `address.city`, belongs to; a name may have dots itself."""
    while path not in header and "." in path:
        path = path.rpartition(".")[0]
    return header.index(path)


def _may_have_nulls(chunk: Any) -> bool:
    found = chunk.statistics
    return found is None or not found.has_null_count or found.null_count > 0
