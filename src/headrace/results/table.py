"""The rows of a user's SQL query. Covers: `self`, refusals in words that help, and rows that are read when needed.

Does not cover: the SQL that makes `self` (store.run_file.user_sql), or a view's meaning (results.stages).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw
import msgspec

from headrace.display import SHOWN_ROWS, html_table, text_table
from headrace.errors import InvalidInput, nearest
from headrace.expressions import ColumnKind
from headrace.results.columns import Catalog
from headrace.results.stages import chosen
from headrace.results.tabular import Tabular, Values
from headrace.results.views import View
from headrace.store.hardening import only_reading
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.user_sql import RowSpool, define_self, described
from headrace.survey.values import decode_value, kind_of

_HELD_ROWS = 1_000
_DOTTED = re.compile(r"""(?<!["'\w.])(answer|agent|scenario|model|iteration|interview)\.(\w+)""")
_UNKNOWN = re.compile(r'no such column: "?([^"]+?)"?(?: - should.*)?$')
_QUERY_ERRORS = (
    apsw.SQLError, apsw.AuthError, apsw.ReadOnlyError, apsw.MismatchError, apsw.TooBigError, apsw.BindingsError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """What `self` stands for."""

    reader: Reader
    view: View
    catalog: Catalog
    header: RunHeader


class Table(Tabular):
    """Made by `results.sql(...)`. The query is checked at once and runs when its rows are needed, each time anew."""

    def __init__(self, source: Source, query: str) -> None:
        self.path = source.reader.path
        self.query = query
        self._source = source
        self._names = _column_names(source, query)

    @property
    def columns(self) -> list[str]:
        return list(self._names)

    def __iter__(self) -> Iterator[Values]:
        return self._values()

    def __repr__(self) -> str:
        rows = self._first(SHOWN_ROWS + 1)
        return text_table(self._names, rows[:SHOWN_ROWS], more=len(rows) > SHOWN_ROWS)

    def _repr_html_(self) -> str:
        rows = self._first(SHOWN_ROWS + 1)
        caption = f"the first {SHOWN_ROWS} rows" if len(rows) > SHOWN_ROWS else f"{len(rows)} rows"
        return html_table(self._names, rows[:SHOWN_ROWS], caption)

    def _values(self) -> Iterator[Values]:
        rows, spool = self._run()
        try:
            yield from map(_decoded, rows if spool is None else spool)
        finally:
            if spool is not None:
                spool.close()

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        """Found by looking at every row: SQLite does not say what a query's columns hold."""
        kinds: list[set[ColumnKind]] = [set() for _ in self._names]
        for row in self._values():
            for seen, value in zip(kinds, row, strict=True):
                seen.add(kind_of(value))
        return [frozenset(seen) for seen in kinds]

    def _first(self, rows: int) -> list[Values]:
        with self._cursor() as cursor:
            return [_decoded(row) for row in islice(cursor, rows)]

    def _run(self) -> tuple[list[Values], RowSpool | None]:
        """All rows, in memory where they are few and else in a file: the run file is not held meanwhile."""
        with self._cursor() as cursor:
            rows = list(islice(cursor, _HELD_ROWS))
            if len(rows) < _HELD_ROWS:
                return rows, None
            return [], RowSpool(len(self._names), _chained(rows, cursor))

    @contextmanager
    def _cursor(self) -> Generator[Iterator[Values]]:
        source = self._source
        own = source.reader.twin()
        try:
            row_set = chosen(own, source.view, source.catalog, source.header)
            with own.snapshot() as connection, _explained(self.query, source.catalog):
                define_self(connection, self.path, row_set)
                with only_reading(connection):
                    yield iter(connection.execute(self.query))
        finally:
            own.close()


def _column_names(source: Source, query: str) -> list[str]:
    """The query's columns, or what is wrong with it. A connection of its own: it will never do more than this."""
    own = source.reader.twin()
    try:
        with own.snapshot() as connection, _explained(query, source.catalog):
            define_self(connection, own.path)
            with only_reading(connection):
                found = described(connection, query)
    finally:
        own.close()
    if len(found) != 1:
        raise InvalidInput(
            f"One query that gives rows is needed, not {len(found)}.", fix='Write it like "select mood from self".'
        )
    return found[0]


def _chained(rows: list[Values], rest: Iterator[Values]) -> Iterator[Values]:
    yield from rows
    yield from rest


@contextmanager
def _explained(query: str, catalog: Catalog) -> Generator[None]:
    """SQLite's words on a query, with what to write instead where that is known."""
    try:
        yield
    except apsw.AuthError:
        fix = "A query may only read: select ... from self."
        raise InvalidInput("This SQL would change something, or look outside the results.", fix=fix) from None
    except _QUERY_ERRORS as error:
        raise InvalidInput(f"SQLite says: {error}.", fix=_hint(str(error), query, catalog)) from None


def _hint(words: str, query: str, catalog: Catalog) -> str:
    dotted = _DOTTED.search(query)
    if dotted is not None and "no such column" in words:
        group, name = dotted.groups()
        if group == "answer":
            return f"Answers are under their question's name alone: write {name}."
        return f'Write it in double quotes: "{group}.{name}".'
    unknown = _UNKNOWN.search(words)
    if unknown is not None:
        return nearest(unknown[1], [name.removeprefix("answer.") for name in catalog.names])
    return ""


def _decoded(row: tuple[Any, ...]) -> Values:
    return tuple([_value(value) for value in row]) if bytes in map(type, row) else row


def _value(value: Any) -> Any:
    """An answer that SQLite cannot hold is stored as a BLOB of JSON; any other BLOB stays what it is."""
    if not isinstance(value, bytes):
        return value
    try:
        return decode_value(value)
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError):
        return value
