"""Quoting: names and texts from outside as parts of an SQL statement. Every such part goes through these functions."""

from __future__ import annotations

import apsw

_LONGEST_PATH = 1_000


def quote_name(name: str) -> str:
    """An SQL identifier of any characters but NUL, which SQL cannot write."""
    if "\0" in name:
        raise ValueError("a name with a NUL character")
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """An SQL text literal."""
    return apsw.format_sql_value(text)


def json_field(column: str, name: str) -> str:
    """The SQL of one field in a column of JSON objects; `has_path` must hold for its name."""
    path = f'$."{name}"'
    return f"json_extract({column}, {quote_text(path)})"


def has_path(name: str) -> bool:
    """Whether SQLite can find this field: its JSON paths cannot write quotes, backslashes and control characters."""
    return len(name) <= _LONGEST_PATH and not any(char in '"\\' or char < " " for char in name)
