"""Rows as CSV and as JSON lines, streamed. Does not cover: data frames (pandas_frames) and Parquet (parquet_files)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec

from headrace.display import visible
from headrace.plain_files.replacing import replacing
from headrace.results.export.column_source import Batch
from headrace.results.export.json_values import to_json
from headrace.survey.files.file_store import path_of

# Spreadsheets read on behind a tab or a carriage return, and take the wide signs of East Asian keyboards too.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
                   "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
_LINES_AT_ONCE = 1_000
_ONLY_TEXTS, _PLAIN = {str}, {int, float, bool, type(None)}
_QUOTE, _SEPARATORS = '"', (",", '"', "\n", "\r")
_separates = re.compile('[,"\n\r]').search
_encoder = msgspec.json.Encoder(enc_hook=path_of)


def write_csv(path: Path, columns: list[str], batches: Iterator[Batch], *, escape_formulas: bool) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        print_csv(file, columns, batches, escape_formulas=escape_formulas)
    return path


def print_csv(file: TextIO, columns: list[str], batches: Iterator[Batch], *, escape_formulas: bool) -> None:
    """Write rows as CSV; `escape_formulas` puts an apostrophe before texts that a spreadsheet would run as formulas."""
    write = at_terminal(file).write
    for lines in csv_lines(columns, batches, escape_formulas=escape_formulas):
        write(lines)


def csv_lines(columns: list[str], batches: Iterator[Batch], *, escape_formulas: bool) -> Iterator[str]:
    """A CSV file as texts: its header, then each batch; an empty batch is an empty text."""
    cells = _inert_cells if escape_formulas else _csv_cells
    for batch in chain([[[name] for name in columns]], batches):
        # A line that is empty would be none: a single cell is then quoted.
        lines = map(",".join, zip(*map(cells, batch), strict=True))
        lines = (line or '""' for line in lines) if len(columns) == 1 else lines
        yield "\n".join(lines) + "\n" if batch else ""


def write_jsonl(path: Path, columns: list[str], batches: Iterator[Batch]) -> Path:
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        _write_lines(file.write, columns, batches)
    return path


def print_jsonl(file: TextIO, columns: list[str], batches: Iterator[Batch]) -> None:
    write = at_terminal(file).write
    _write_lines(lambda lines: write(lines.decode()), columns, batches)


def _write_lines(write: Callable[[bytes], object], columns: list[str], batches: Iterator[Batch]) -> None:
    for lines in jsonl_lines(columns, batches):
        write(lines)


def jsonl_lines(columns: list[str], batches: Iterator[Batch]) -> Iterator[bytes]:
    """A file of JSON lines as bytes, some lines at a time; an empty batch is none."""
    for batch in batches:
        rows = zip(*batch, strict=True)
        while some := [dict(zip(columns, row, strict=True)) for row in islice(rows, _LINES_AT_ONCE)]:
            yield _json_lines(some)
        if not batch:
            yield b""


def _json_lines(rows: list[dict[str, Any]]) -> bytes:
    try:
        return _encoder.encode_lines(rows)
    except OverflowError:
        return b"".join(to_json(row) + b"\n" for row in rows)


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


def _csv_cells(values: Sequence[Any]) -> Sequence[str]:
    """A column's cells as they stand in the file."""
    types = set(map(type, values))
    if types == _ONLY_TEXTS:
        return _quoted(values)
    if types <= _PLAIN:
        return ["" if value is None else str(value) for value in values]
    return _quoted(list(map(_csv_text, values)))


def _inert_cells(values: Sequence[Any]) -> Sequence[str]:
    return _csv_cells(list(map(_inert, values)) if str in set(map(type, values)) else values)


def _csv_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else to_json(value).decode() if isinstance(value, (list, dict)) else str(value)


def _quoted(texts: Sequence[str]) -> Sequence[str]:
    """The texts, in quotes where they hold what separates cells or lines."""
    together = "".join(texts)
    if not any(separator in together for separator in _SEPARATORS):
        return texts
    return [f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _separates(text) else text for text in texts]


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
