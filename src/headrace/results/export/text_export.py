"""Rows as CSV and as JSON lines, streamed. Does not cover: data frames and Parquet (frames)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias, cast

import msgspec

from headrace.display import visible
from headrace.results.export.replacing import replacing

Rows: TypeAlias = Iterator[tuple[Any, ...]]

# Spreadsheets read on behind a tab or a carriage return, and take the wide signs of East Asian keyboards too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
                   "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
_encode_fast = msgspec.json.Encoder().encode


def to_json(value: Any) -> bytes:
    """The value as JSON: integers of any size as numbers, other scripts as they are, NaN and infinities as null."""
    try:
        return _encode_fast(value)
    except OverflowError:  # an integer beyond 64 bits
        return json.dumps(_without_nan(value), ensure_ascii=False, separators=(",", ":")).encode()


def write_csv(path: Path, columns: list[str], rows: Rows, *, escape_formulas: bool) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        print_csv(file, columns, rows, escape_formulas=escape_formulas)
    return path


def print_csv(file: TextIO, columns: list[str], rows: Rows, *, escape_formulas: bool) -> None:
    """Write rows as CSV; `escape_formulas` puts an apostrophe before texts that a spreadsheet would run as formulas."""
    cell = _inert_cell if escape_formulas else _csv_cell
    writer = csv.writer(at_terminal(file), lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows([cell(value) for value in row] for row in rows)


def write_jsonl(path: Path, columns: list[str], rows: Rows) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        print_jsonl(file, columns, rows)
    return path


def print_jsonl(file: TextIO, columns: list[str], rows: Rows) -> None:
    write = at_terminal(file).write
    for row in rows:
        write(to_json(dict(zip(columns, row, strict=True))).decode() + "\n")


class TextSink(Protocol):
    def write(self, text: str, /) -> object: ...


class _VisibleWriter:
    """Writes to a terminal with control characters escaped: answers are data and must not steer it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str, /) -> None:
        self._file.write(visible(text))


def at_terminal(file: TextIO) -> TextSink:
    """What to write to: at a terminal, control characters are escaped."""
    return _VisibleWriter(file) if file.isatty() else file


def _csv_cell(value: Any) -> Any:
    return to_json(value).decode() if isinstance(value, (list, dict)) else value


def _inert_cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else _csv_cell(value)


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
