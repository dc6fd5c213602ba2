"""Rows as a Parquet file: a row group a batch, whole or not at all. Does not cover: column types (arrow_batches)."""

from __future__ import annotations

from pathlib import Path

from headrace.results.export.arrow_batches import arrow_schema, import_arrow, record_batches, with_shapes
from headrace.results.export.column_shapes import Shape
from headrace.results.export.column_source import ColumnSource
from headrace.results.export.replacing import replacing


def write_parquet(path: Path, source: ColumnSource) -> Path:
    """Write the file. It starts over where a run that goes on has put a new kind of value into a column."""
    import_arrow()

    def write(shapes: list[Shape]) -> None:
        with replacing(path) as unfinished:
            write_row_groups(unfinished, source, shapes)

    with_shapes(source, write)
    return path


def write_row_groups(path: Path, source: ColumnSource, shapes: list[Shape]) -> int:
    """Write the rows into a file that is there and empty; returns how many there are."""
    import pyarrow.parquet as pq

    rows = 0
    with pq.ParquetWriter(path, arrow_schema(source.columns, shapes)) as writer:
        for batch in record_batches(source.columns, shapes, source.batches()):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
