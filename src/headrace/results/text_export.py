"""Rows as CSV and as JSON lines, streamed. Does not cover: data frames and Parquet (results.export)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import msgspec

from headrace.results.replacing import replacing

_encode_fast = msgspec.json.Encoder().encode


def to_json(value: Any) -> bytes:
    """The value as JSON: integers of any size as numbers, other scripts as they are, NaN and infinities as null."""
    try:
        return _encode_fast(value)
    except OverflowError:  # an integer beyond 64 bits
        return json.dumps(_without_nan(value), ensure_ascii=False, separators=(",", ":")).encode()


def write_csv(path: Path, columns: list[str], rows: Iterator[tuple[Any, ...]]) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        print_csv(file, columns, rows)
    return path


def print_csv(file: TextIO, columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(value) for value in row] for row in rows)


def write_jsonl(path: Path, columns: list[str], rows: Iterator[tuple[Any, ...]]) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        print_jsonl(file, columns, rows)
    return path


def print_jsonl(file: TextIO, columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    file.writelines(to_json(dict(zip(columns, row, strict=True))).decode() + "\n" for row in rows)


def _csv_cell(value: Any) -> Any:
    return to_json(value).decode() if isinstance(value, (list, dict)) else value


def _without_nan(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_without_nan(item) for item in cast("list[Any]", value)]
        case dict():
            return {key: _without_nan(item) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value
