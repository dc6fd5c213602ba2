"""Reads rows from an SQLite file of the user's: a table, or a query. Covers: opening it as any file from elsewhere:
read-only, and so that nothing of it is executed: no view, trigger, extension, virtual table or computed column.

Does not cover: files of ours (store.connections opens those in the same way), or what the rows become (plan.rows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw

from headrace.errors import ListError, RunFileError, nearest, spelled
from headrace.plan.sources.given_paths import is_plain_file
from headrace.plan.sources.header_names import renamed_columns
from headrace.store.connections import connect
from headrace.store.hardening import Authorizer, only_allowed, query_may
from headrace.store.quoting import quote_name
from headrace.survey.values import Fields

_LONGEST_VALUE_BYTES = 64_000_000  # as a line of JSONL
_COMPUTED = 2  # what `table_xinfo` says of a generated column that is not stored
_TABLES = "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"


def foreign_rows(path: Path, table: str | None, query: str | None) -> Iterator[Fields]:
    """The rows of a table, the only one where none is named, or of a query; all of one moment of the file."""
    if (table is not None and query is not None) or (query is not None and not query.strip()):
        what = "Both a table and a query are given." if table is not None else "The query is empty."
        raise ListError(what, fix="Give one of them: a table's name, or a query.")
    if not is_plain_file(path):
        raise ListError(f"{path} is no file.", fix="Check the path.")
    try:
        with closing(connect(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
            statement = query if query is not None else f"SELECT * FROM {quote_name(_table(connection, table, path))}"
            with only_allowed(connection, _query_without(_computed_columns(connection), path)):
                yield from _fields(connection, statement, path)
    except RunFileError as error:  # what lies beside it
        raise ListError(error.message, fix=error.fix) from None
    except apsw.NotADBError:
        raise ListError(f"{path} is no SQLite file.", fix="Is it the right file?") from None
    except UnicodeDecodeError:
        raise ListError(
            f"{path} holds a text that is not UTF-8.", fix="Read it as bytes in a query of hex()."
        ) from None
    except (apsw.Error, ValueError) as error:  # a NUL in the statement
        what = str(error).removeprefix("SQLError: ").rstrip(".")
        fix = "A query may read tables, and nothing else." if query is not None else "Is it the right file?"
        raise ListError(f"{path}: {what}.", fix=fix) from None


def _fields(connection: apsw.Connection, statement: str, path: Path) -> Iterator[Fields]:
    names: list[str] | None = None
    rows = connection.cursor()
    rows.exec_trace = _first_alone(path)
    for row in rows.execute(statement):
        if names is None:
            names = renamed_columns([str(column[0]) for column in rows.get_description()], {}, str(path))
        for name, value in zip(names, row, strict=True):
            if isinstance(value, bytes):
                fix = "Leave it out: query='SELECT ... FROM ...'."
                raise ListError(f"{path}: the column {name!r} holds bytes.", fix=fix)
        yield dict(zip(names, row, strict=True))


def _first_alone(path: Path) -> Callable[..., bool]:
    """Refuses a second statement, whose rows would go under the names of the first one's columns."""
    begun: list[str] = []

    def begin(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        if begun:
            raise ListError(f"{path}: the query has a second statement, {statement.strip()!r}.", fix="Give one.")
        begun.append(statement)
        return True

    return begin


def _computed_columns(connection: apsw.Connection) -> set[tuple[str, str]]:
    """The columns, each with its table, whose values are made by an expression of the file's when they are read."""
    found: set[tuple[str, str]] = set()
    with only_allowed(connection, _may_list_columns):
        for table, _, sql in connection.execute(_TABLES).fetchall():
            if "as" in str(sql).lower() and not _is_virtual(str(sql)):
                columns = connection.execute(f"PRAGMA table_xinfo({quote_name(str(table))})")
                found |= {(str(table).lower(), str(row[1]).lower()) for row in columns if row[6] == _COMPUTED}
    return found


def _may_list_columns(action: int, *given: str | None) -> int:
    is_listing = action in (apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION)
    is_listing = is_listing or (action == apsw.SQLITE_PRAGMA and given[0] == "table_xinfo")
    return apsw.SQLITE_OK if is_listing else apsw.SQLITE_DENY


def _query_without(computed: set[tuple[str, str]], path: Path) -> Authorizer:
    """What a query may do, but for reading these columns."""

    def may(action: int, one: str | None, two: str | None, three: str | None, four: str | None) -> int:
        if action == apsw.SQLITE_READ and (str(one).lower(), str(two).lower()) in computed:
            fix = "Nothing that a file holds is executed: write a query without it, {query}."
            what = f"The column {two!r} of {one!r} in {path} is computed by an expression."
            raise ListError(what, fix=spelled(fix, query="SELECT ... FROM ..."))
        return query_may(action, one, two, three, four)

    return may


def _table(connection: apsw.Connection, given: str | None, path: Path) -> str:
    """The table that is named, or the only one."""
    found = {str(name): (str(kind), str(sql)) for name, kind, sql in connection.execute(_TABLES)}
    tables = [name for name, (kind, sql) in found.items() if kind == "table" and not _is_virtual(sql)]
    if given is None:
        if len(tables) != 1:
            listed = ", ".join(sorted(tables)[:20])
            named = spelled(f"Name one, {{table}}: {listed}.", table=None) if tables else "Is it the right file?"
            raise ListError(f"{path} has {len(tables)} tables.", fix=named)
        return tables[0]
    if given in tables:
        return given
    if given in found:
        fix = "Nothing that a file holds is executed: write what it selects as query=."
        raise ListError(f"{given!r} in {path} is a view or a virtual table.", fix=fix)
    raise ListError(f"{path} has no table {given!r}.", fix=nearest(given, tables))


def _is_virtual(sql: str) -> bool:
    return sql.lstrip()[:15].upper().startswith("CREATE VIRTUAL")
