"""Decoding the contents of a file, which may be damaged or made by somebody else.

Covers: the one place where a decoder's errors become RunFileDamaged, in words; values with the types that they must
have. Does not cover: SQLite's own errors (disk_errors).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec
import zstandard

from headrace.errors import RESTORE, InvalidInput, RunFileDamaged
from headrace.survey.values import SqlValue

_Rows = TypeVar("_Rows")
# What decoders raise. Our own InvalidInput is among them: a stored survey or model that could never have been made.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    InvalidInput,
    msgspec.MsgspecError,
    zstandard.ZstdError,
)
_MOST_SHOWN = 120


class decoding:  # noqa: N801 - used as a function; a generator would cost a microsecond
    """Turn any decoder's error in the block into RunFileDamaged. The block decodes `what` and does nothing else."""

    __slots__ = ("_path", "_what")

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UNREADABLE):
            raise damaged(self._path, f"{self._what} cannot be read ({short_message(error)})") from error


def check_in_order(page: Sequence[Sequence[Any]], after: int) -> None:
    """Refuse a page whose last key is not behind the page before it: in a damaged table, keys out of order would be
    read again and again.
    """
    if page and page[-1][0] <= after:
        raise apsw.CorruptError(f"its rows are out of order at {page[-1][0]}")


def damaged(path: Path, what: str) -> RunFileDamaged:
    """The error for a file whose contents cannot have been written by us."""
    return RunFileDamaged(f"{path} is damaged: {what}.", path=path, fix=RESTORE)


def short_message(error: BaseException) -> str:
    """The message of an error in one short line."""
    first = " ".join(str(error).split()) or type(error).__name__
    return first if len(first) <= _MOST_SHOWN else first[: _MOST_SHOWN - 3] + "..."


def typed_rows(
    connection: apsw.Connection, as_type: type[_Rows], sql: str, values: tuple[SqlValue, ...] = ()
) -> list[_Rows]:
    """All rows of a statement, each converted to this type; callers bound their number."""
    return msgspec.convert(connection.execute(sql, values).fetchall(), list[as_type])


def one_value(connection: apsw.Connection, as_type: Any, sql: str, values: tuple[SqlValue, ...] = ()) -> Any:
    """The first value of a statement's first row, converted to this type; None where there is no row."""
    return msgspec.convert(connection.execute(sql, values).get, as_type)


def raw_rows(connection: apsw.Connection, sql: str, values: tuple[SqlValue, ...] = ()) -> Iterator[Any]:
    """A statement's rows one by one, unconverted, for code that looks for damage."""
    return iter(connection.execute(sql, values))
