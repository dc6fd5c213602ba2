"""Whether a file's tables are the ones that we would have made: its schema is compared with our own statements.

Tables are compared as texts. Anything else that SQLite allows in one (generated columns, CHECK, DEFAULT, collations, a
virtual table, a view of the same name) is code from the file, and makes it another text. Tables and views of other
names, and plain indexes, are the user's own and are left alone. Does not cover: values in the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import apsw

from headrace.errors import RunFileDamaged

IsOurs: TypeAlias = Callable[[str], bool]

_MOST_ENTRIES = 10_000
_NAME = r"""(?:\w+|"[^"]+"|`[^`]+`|\[[^\]]+\])"""
# Neither expressions nor a WHERE: they would be evaluated with every row that we write. Nor UNIQUE: it refuses rows.
_PLAIN_INDEX = re.compile(
    rf"CREATE INDEX {_NAME} ON {_NAME} ?\( ?{_NAME}(?: ASC| DESC)?(?: ?, ?{_NAME}(?: ASC| DESC)?)* ?\)", re.IGNORECASE
)


def one_line(sql: str) -> str:
    """A statement without line breaks and indents, which mean nothing in ours."""
    return " ".join(sql.split())


def accepted_tables(*statements: str) -> dict[str, frozenset[str]]:
    """The accepted texts of each table and index, by name; one script for each version of the format."""
    accepted: dict[str, set[str]] = {}
    for sql in (one_line(part) for script in statements for part in script.split(";")):
        if sql:
            accepted.setdefault(_named(sql), set()).add(sql)
    return {name: frozenset(texts) for name, texts in accepted.items()}


def check_schema(
    connection: apsw.Connection,
    path: Path,
    accepted: Mapping[str, frozenset[str]],
    others: Mapping[str, IsOurs],
    newer: Collection[str] = (),
) -> None:
    """Refuse a file that lacks one of our tables, has another in its place, or has code on one of them.

    `others` test the tables whose text depends on the file; a file from before there were `newer` ones may lack them.
    """
    tests: dict[str, IsOurs] = {name: texts.__contains__ for name, texts in accepted.items()} | dict(others)
    tables = {name for name in tests if not any(map(_is_index, accepted.get(name, ())))}
    found = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT ?", (_MOST_ENTRIES + 1,)
    ).fetchall()
    if len(found) > _MOST_ENTRIES:
        raise _refused(path, f"it has more than {_MOST_ENTRIES:,} tables, indexes and views")
    lacking: set[object] = {name for name in tests if name not in newer}
    for kind, name, table, sql in found:
        is_ours = isinstance(name, str) and isinstance(sql, str) and name in tests and tests[name](one_line(sql))
        if is_ours and kind in ("table", "index"):
            lacking.discard(name)
        elif (trouble := _trouble(kind, name, table, sql, tests, tables)) is not None:
            raise _refused(path, trouble)
    if lacking:
        raise _refused(path, f"it has no {' and no '.join(sorted(map(str, lacking)))}")


def _trouble(
    kind: object, name: object, table: object, sql: object, ours: Iterable[str], tables: set[str]
) -> str | None:
    """What is wrong with an entry that is not ours; None where it is the user's own."""
    if not isinstance(name, str) or not isinstance(table, str):
        return "its list of tables is damaged"
    if name in ours:
        return f"its {kind} {name} is not the one that Headrace makes"
    if table.lower() not in tables:
        return None
    if kind == "index" and (sql is None or (isinstance(sql, str) and _PLAIN_INDEX.fullmatch(one_line(sql)))):
        return None  # SQLite's own, or a plain one
    return f"the {kind} {name!r} on its table {table} is code that Headrace has not made"


def _refused(path: Path, what: str) -> RunFileDamaged:
    return RunFileDamaged(
        f"{path} is not as Headrace makes such a file: {what}.",
        path=path,
        fix="Nothing of it was used. Ask where it comes from for another copy, or restore one of your own.",
    )


def _named(sql: str) -> str:
    return sql.partition("(")[0].split()[-1] if not _is_index(sql) else sql.partition(" ON ")[0].split()[-1]


def _is_index(sql: str) -> bool:
    return " INDEX " in sql.partition("(")[0]
