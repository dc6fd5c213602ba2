"""Taking in what a file holds: a file may be damaged, or made by somebody else.

Covers: the one place where whatever a decoder makes of such contents becomes RunFileDamaged, in words; values with the
types that they must have. Does not cover: what SQLite says of the disk and the file (store.disk_errors).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def decoding(path: Path, what: str) -> Generator[None]:
    """Around the code that decodes `what`, and around nothing else: any error in it is the file's."""
    try:
        yield
    except UNREADABLE as error:
        raise damaged(path, f"{what} cannot be read ({short_message(error)})") from error


def check_is_behind(page: Sequence[Sequence[Any]], after: int) -> None:
    """Refuse a page whose last key is not behind the page before: in a damaged table, keys that are out of order
    would be read again and again.
    """
    if page and page[-1][0] <= after:
        raise apsw.CorruptError(f"its rows are out of order at {page[-1][0]}")


def damaged(path: Path, what: str) -> RunFileDamaged:
    return RunFileDamaged(f"{path} is damaged: {what}.", path=path, fix=RESTORE)


def short_message(error: BaseException) -> str:
    """An error of a decoder in one short line."""
    first = " ".join(str(error).split()) or type(error).__name__
    return first if len(first) <= _MOST_SHOWN else first[: _MOST_SHOWN - 3] + "..."


def typed_rows(
    connection: apsw.Connection, as_type: type[_Rows], sql: str, values: tuple[SqlValue, ...] = ()
) -> list[_Rows]:
    """A statement's rows, all of them, each a tuple of these types; callers bound their number."""
    return msgspec.convert(connection.execute(sql, values).fetchall(), list[as_type])


def one_value(connection: apsw.Connection, as_type: Any, sql: str, values: tuple[SqlValue, ...] = ()) -> Any:
    """The first value of the first row, None where there is no row; of this type."""
    return msgspec.convert(connection.execute(sql, values).get, as_type)


def raw_rows(connection: apsw.Connection, sql: str, values: tuple[SqlValue, ...] = ()) -> Iterator[Any]:
    """A statement's rows one by one, as they are: whoever looks for damage wants to see it."""
    return iter(connection.execute(sql, values))
