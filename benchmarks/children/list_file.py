"""Writes a file of rows: `list_file PATH ROWS COLUMNS`. Integers, floats and short texts in turn."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

_TOGETHER = 100_000
_WORDS = ("tram", "fjord", "harbour", "market", "library", "bridge", "station")


def value(row: int, column: int) -> int | float | str:
    match column % 3:
        case 0:
            return row * 7 + column
        case 1:
            return row / 4
        case _:
            return f"{_WORDS[row % len(_WORDS)]} number {row}"


def batches(rows: int, columns: int) -> Iterator[list[list[int | float | str]]]:
    """The rows as columns, some at a time."""
    for first in range(0, rows, _TOGETHER):
        places = range(first, min(rows, first + _TOGETHER))
        yield [[value(row, column) for row in places] for column in range(columns)]


def main(path: Path, rows: int, columns: int) -> None:
    names = [f"c{column}" for column in range(columns)]
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for batch in batches(rows, columns):
                writer.writerows(zip(*batch, strict=True))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = (pa.table(dict(zip(names, batch, strict=True))) for batch in batches(rows, columns))
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
