"""What a user's own SQL may hold and call. Covers: the lengths and depths of its texts and values, the memory of SQLite
while it runs, and functions of SQLite's own that could compute for hours in one step, which nothing can interrupt.

Does not cover: what it may read (store.hardening), how long it may take (query_clock).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from types import TracebackType
from typing import TypeAlias

import apsw

from headrace.errors import QueryTooLarge
from headrace.store.connections import bound_heap, lift_heap_bound
from headrace.survey.values import SqlValue

MOST_VALUE_BYTES = 16_000_000
MOST_QUERY_LETTERS = 1_000_000
MOST_MEMORY_BYTES = 128_000_000
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: MOST_VALUE_BYTES,
    apsw.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 127,
    # LIKE takes the pattern's length times the text's: with these, 4 s at most.
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 250,
}

_MOST_LETTERS = 1_000  # that `trim` takes away

_Function: TypeAlias = Callable[..., SqlValue]


def limit_user_sql(connection: apsw.Connection) -> None:
    """Bound what statements on this connection may hold and compute from now on."""
    for limit, most in _LIMITS.items():
        connection.limit(limit, most)
    for (name, arguments), function in _FUNCTIONS.items():
        connection.create_scalar_function(name, function, arguments, deterministic=True)


class MemoryBound:
    """Holds SQLite to a bounded heap inside its blocks; a statement that needs more fails with apsw.NoMemError."""

    _lock = threading.Lock()
    _running = 0  # in this process: SQLite's limit is for all connections together

    def __init__(self) -> None:
        self._most = apsw.memory_used() + MOST_MEMORY_BYTES

    def __enter__(self) -> None:
        with MemoryBound._lock:
            MemoryBound._running += 1
            bound_heap(self._most)  # beside a writer, `check` has to do

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with MemoryBound._lock:
            MemoryBound._running -= 1
            if not MemoryBound._running:
                lift_heap_bound()

    def check(self) -> None:
        """Raise QueryTooLarge where SQLite has taken more than a query may."""
        if apsw.memory_used() > self._most:
            raise QueryTooLarge(MOST_MEMORY_BYTES)


# --- functions. SQLite's own compare at every place: two texts of 16 MB would take hours. Python's search takes no
# more than their length.


def _instr(text: SqlValue, part: SqlValue) -> SqlValue:
    if text is None or part is None:
        return None
    if isinstance(text, bytes) and isinstance(part, bytes):
        return text.find(part) + 1
    return _text(text).find(_text(part)) + 1


def _replace(text: SqlValue, old: SqlValue, new: SqlValue) -> SqlValue:
    if text is None or old is None or new is None:
        return None
    before, part, after = _text(text), _text(old), _text(new)
    if not part or part[0] == "\0":
        return before
    if len(before) + before.count(part) * (len(after) - len(part)) > MOST_VALUE_BYTES:
        raise apsw.TooBigError("string or blob too big")
    return before.replace(part, after)


def _trim(text: SqlValue, letters: SqlValue) -> SqlValue:
    return None if text is None or letters is None else _text(text).strip(_each_once(letters))


def _ltrim(text: SqlValue, letters: SqlValue) -> SqlValue:
    return None if text is None or letters is None else _text(text).lstrip(_each_once(letters))


def _rtrim(text: SqlValue, letters: SqlValue) -> SqlValue:
    return None if text is None or letters is None else _text(text).rstrip(_each_once(letters))


def _each_once(letters: SqlValue) -> str:
    found = set(_text(letters).partition("\0")[0])  # SQLite stops reading there
    if len(found) > _MOST_LETTERS:
        raise apsw.TooBigError("trim has too many letters to take away")
    return "".join(found)


def _text(value: SqlValue) -> str:
    """A value as SQLite makes a text of it."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case float():
            with closing(apsw.Connection("")) as connection:
                return connection.execute("SELECT CAST(? AS TEXT)", (value,)).get
        case _:
            return str(value)


_FUNCTIONS: dict[tuple[str, int], _Function] = {
    ("instr", 2): _instr,
    ("replace", 3): _replace,
    ("trim", 2): _trim,
    ("ltrim", 2): _ltrim,
    ("rtrim", 2): _rtrim,
}
