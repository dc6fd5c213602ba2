"""Rows as a Parquet file, whole or not at all. Does not cover: column types (arrow_batches)."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from headrace.plain_files.replacing import replacing
from headrace.results.export.arrow_batches import (
    arrow_schema,
    column_shapes,
    import_arrow,
    record_batches,
    with_shapes,
)
from headrace.results.export.column_shapes import Shape
from headrace.results.export.column_source import ColumnSource

_GROUP_ROWS, _GROUP_BYTES = 65_536, 32_000_000


def write_parquet(path: Path, source: ColumnSource) -> Path:
    """Write the file. It starts over where a run that goes on has put a new kind of value into a column."""
    import_arrow()

    def write(shapes: list[Shape]) -> None:
        with replacing(path) as unfinished:
            write_row_groups(unfinished, source, shapes)

    with_shapes(column_shapes(source), write)
    return path


def write_row_groups(file: Path | BinaryIO, source: ColumnSource, shapes: list[Shape]) -> None:
    """Write the rows into a file that is there and empty, or to what is written once and never read, such as a pipe.
    Batches are gathered: small row groups are slow to read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, arrow_schema(source.columns, shapes)) as writer:
        group: list[pa.RecordBatch] = []
        for batch in record_batches(source.columns, shapes, source.batches()):
            group.append(batch)
            is_full = sum(held.num_rows for held in group) >= _GROUP_ROWS
            if is_full or sum(held.nbytes for held in group) >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))
