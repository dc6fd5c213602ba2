"""Rows as Markdown and HTML tables, whole and streamed: each value stays data, whatever markup it looks like.

Does not cover: tables that people look at, with few rows and long texts cut (results.printing).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from headrace.errors import InvalidInput
from headrace.plain_files.replacing import replacing
from headrace.results.export.json_values import to_json
from headrace.results.export.text_export import at_terminal

Rows: TypeAlias = Iterator[tuple[Any, ...]]
Lines: TypeAlias = Callable[[list[str], Rows], Iterator[str]]

_MOST_ROWS_AS_TEXT = 100_000
# An image in a table would be fetched, and a link followed, by whoever renders it: brackets are escaped too.
_MARKDOWN = str.maketrans({"\\": "\\\\", "|": "\\|", "<": "&lt;", "`": "\\`", "*": "\\*", "$": "\\$", "[": "\\["})
_PAGE_HEAD = '<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8"><title>Results</title></head>\n<body>\n'
_PAGE_END = "</body>\n</html>\n"
_LINE_BREAK = "\n"


def markdown_line(texts: Iterable[str]) -> str:
    """One row of a Markdown table; line breaks stay inside their cell."""
    return f"| {' | '.join(_markdown_cell(text) for text in texts)} |"


def markdown_lines(columns: list[str], rows: Rows) -> Iterator[str]:
    yield markdown_line(columns) + "\n"
    yield f"|{' --- |' * len(columns)}\n"
    for row in rows:
        yield markdown_line(map(_text, row)) + "\n"


def html_lines(columns: list[str], rows: Rows) -> Iterator[str]:
    yield f"<table>\n<thead><tr>{_html_cells('th', columns)}</tr></thead>\n<tbody>\n"
    for row in rows:
        yield f"<tr>{_html_cells('td', map(_text, row))}</tr>\n"
    yield "</tbody>\n</table>\n"


def html_page(columns: list[str], rows: Rows) -> Iterator[str]:
    """A table as a page of its own: a browser has to be told that it is UTF-8."""
    yield _PAGE_HEAD
    yield from html_lines(columns, rows)
    yield _PAGE_END


def write_lines(path: Path, lines: Iterator[str]) -> Path:
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    return path


def print_markdown(file: TextIO, columns: list[str], rows: Rows) -> None:
    """Write a Markdown table into an open file as its rows are read."""
    write = at_terminal(file).write
    for line in markdown_lines(columns, rows):
        write(line)


def as_text(lines: Lines, columns: list[str], rows: Rows, method: str) -> str:
    """A table as one text; refused where it would be too long for one."""
    few = list(islice(rows, _MOST_ROWS_AS_TEXT + 1))
    if len(few) > _MOST_ROWS_AS_TEXT:
        raise InvalidInput(
            f"These are more than {_MOST_ROWS_AS_TEXT:,} rows, too many for one text.",
            fix=f"Give a path, {method}(path), or take fewer: head(1000).{method}().",
        )
    return "".join(lines(columns, iter(few)))


def _markdown_cell(text: str) -> str:
    escaped = text.translate(_MARKDOWN)
    return "<br>".join(escaped.splitlines()) if "\n" in text or "\r" in text else escaped


def _html_cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{html.escape(text).replace(_LINE_BREAK, '<br>')}</{tag}>" for text in texts)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return to_json(value).decode() if isinstance(value, (list, dict, bytes)) else str(value)
