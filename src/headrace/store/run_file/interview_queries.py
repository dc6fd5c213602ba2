"""The table `interviews`, read in pages. Covers: the SQL that reads, counts, filters and orders interviews.

A page begins behind the last key of the page before (keyset pagination), so that no read stays open between pages. Does
not cover: connections (reader), the meaning of filters and rows (results).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec
from msgspec.structs import replace

from headrace.expressions import Sql
from headrace.store.contents import check_in_order, damaged, decoding, one_value
from headrace.store.hardening import scratch
from headrace.store.run_file.bulk.block_counts import EVERY_ROW, BlockCounts
from headrace.store.run_file.rows import ANSWER_COLUMNS, Status
from headrace.survey.values import SqlValue

# One interview as read: its key, the table's first columns (rows.HEAD), the rows of its lists with their
# checksums, its own checksum, its detail, then the projection answers and those beyond the columns.
Fetched: TypeAlias = tuple[Any, ...]
(
    KEY, ORDINAL, ITERATION, AGENT_AT, SCENARIO_AT, MODEL, STATUS,
    AGENT, AGENT_CHECKSUM, SCENARIO, SCENARIO_CHECKSUM, CHECKSUM, DETAIL, ANSWERS,
) = range(14)  # fmt: skip
MORE = -1

_JOINS = {
    "a.": " LEFT JOIN agents a ON a.position = i.agent",
    "s.": " LEFT JOIN scenarios s ON s.position = i.scenario",
    "d.": " LEFT JOIN details d ON d.ordinal = i.ordinal",
}
# SQLite leaves out a LEFT JOIN whose columns nobody uses, so it costs nothing to write all three.
_LISTS = "".join(_JOINS.values())
_MOST_ROWS, _MOST_VALUES, _MOST_BYTES = 256, 65_536, 4_000_000
_MOST_READ_UNASKED = 64  # answers: one more column is read in a fraction of what a row takes
_numbers = itertools.count()


class RowSet(msgspec.Struct, frozen=True):
    """Interviews in an order: all by ordinal, those that one run was asked for, or those of a temporary table of
    ordinals by position.

    Those of a run have ordinals below `below`, and are `total` once all of them are in the file; `is_drawn` is true
    where the file may have others below.
    """

    tables: str = EVERY_ROW
    key: str = "i.ordinal"
    below: int | None = None
    total: int = 0
    is_drawn: bool = False

    @property
    def is_everything(self) -> bool:
        return self.tables == EVERY_ROW

    @property
    def is_by_position(self) -> bool:
        return self.key != "i.ordinal"

    @property
    def counted_rows(self) -> str:
        """The rows among which its own are found by their place: those of the file, but for a sample."""
        return self.tables if self.is_drawn else EVERY_ROW


EVERYTHING = RowSet()
TRUE = Sql("1", ())


def rows_where(condition: str, below: int, total: int, *, is_drawn: bool) -> RowSet:
    """Some interviews by ordinal: `condition` is SQL on their `ordinal`, the rest as RowSet says."""
    # SQLite flattens the subquery, so the bounds of ordinals are those of a search by key.
    rows = f"(SELECT * FROM main.interviews WHERE {condition}) i"
    return RowSet(rows, below=below, total=total, is_drawn=is_drawn)


def rows_between(first: int, stop: int) -> RowSet:
    """The interviews with ordinals from `first` up to `stop`."""
    rows = f"(SELECT * FROM main.interviews WHERE ordinal >= {first} AND ordinal < {stop}) i"
    return RowSet(rows, is_drawn=True)


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of each interview a query reads; the others come as NULL.

    `with_checksums` adds the checksums of its agent and scenario, and its own where `is_whole`: that one covers all its
    answers.
    """

    answers: tuple[int, ...] = ()
    agent: bool = False
    scenario: bool = False
    more: bool = False
    detail: bool = False
    with_checksums: bool = False
    is_whole: bool = False

    @property
    def page_rows(self) -> int:
        """How many rows a page has: fewer where rows are wide."""
        return max(16, min(_MOST_ROWS, _MOST_VALUES // (len(self.answers) + ANSWERS)))

    @property
    def columns(self) -> str:
        parts = (
            ("a.fields", self.agent),
            ("a.checksum", self.agent and self.with_checksums),
            ("s.fields", self.scenario),
            ("s.checksum", self.scenario and self.with_checksums),
            ("i.checksum", self.is_whole and self.with_checksums),
            ("d.detail", self.detail),
            *((f"i.a{position}", True) for position in self.answers),
            ("i.more", self.more or self.is_whole),
        )
        chosen = [sql if is_wanted else "NULL" for sql, is_wanted in parts]
        return ", ".join(["i.ordinal, i.iteration, i.agent, i.scenario, i.model, i.status", *chosen])


def everything_of(questions: int) -> Projection:
    """The projection of a whole interview, but for its detail."""
    return Projection(answers=_columns(questions), agent=True, scenario=True, more=questions > ANSWER_COLUMNS)


def with_checks(projection: Projection, questions: int) -> Projection:
    """The same projection with all that a checksum covers; all answers are read for that unless they are very many.

    A detail is larger than all answers, and its checksum is with theirs: beside it they are always read.
    """
    is_wide = questions > _MOST_READ_UNASKED and len(projection.answers) < len(_columns(questions))
    is_whole = projection.detail or not is_wide
    answers = _columns(questions) if is_whole else projection.answers
    return replace(projection, answers=answers, with_checksums=True, is_whole=is_whole)


def _columns(questions: int) -> tuple[int, ...]:
    return tuple(range(min(questions, ANSWER_COLUMNS)))


def page_query(row_set: RowSet, columns: str, condition: Sql) -> str:
    """The query of a page: columns of the rows behind a key, in order. It takes the key, the condition's parameters and
    a number of rows.
    """
    return (
        f"SELECT {columns} FROM {row_set.tables}{_LISTS}"
        f" WHERE {row_set.key} > ? AND {condition.text} ORDER BY {row_set.key} LIMIT ?"
    )


def fetch(
    connection: apsw.Connection, row_set: RowSet, projection: Projection, condition: Sql, after: int, limit: int
) -> tuple[list[Fetched], bool]:
    """The next rows behind the key `after`, at most `limit` of them or 4 MB, and whether more may follow."""
    found: list[Fetched] = []
    held_bytes = 0
    query = page_query(row_set, f"{row_set.key}, {projection.columns}", condition)
    for row in connection.execute(query, (after, *condition.parameters, limit)):
        found.append(row)
        held_bytes += sum([len(value) for value in row if type(value) is str or type(value) is bytes])
        if held_bytes > _MOST_BYTES:
            check_in_order(found, after)
            return found, True
    check_in_order(found, after)
    return found, len(found) == limit


def key_before(
    connection: apsw.Connection, row_set: RowSet, condition: Sql, index: int, blocks: BlockCounts
) -> int | None:
    """The key just before the row at `index`; None where there are no more than `index` rows."""
    if condition is TRUE:
        if row_set.is_by_position:
            return index
        if not row_set.is_drawn and _has_no_holes(connection):
            return index - 1
        key = blocks.ordinal_at(connection, row_set.counted_rows, index)
    else:
        key = connection.execute(
            f"SELECT {row_set.key} FROM {row_set.tables}{_LISTS} WHERE {condition.text}"
            f" ORDER BY {row_set.key} LIMIT 1 OFFSET ?",
            (*condition.parameters, index),
        ).get
    return None if key is None else key - 1


def count(connection: apsw.Connection, row_set: RowSet, condition: Sql, blocks: BlockCounts) -> int:
    """How many interviews of a row set meet the condition."""
    known = _known_count(connection, row_set, blocks) if condition is TRUE else None
    if known is not None:
        return known
    found = f"SELECT count(*) FROM {from_interviews(row_set, condition.text)} WHERE {condition.text}"
    return connection.execute(found, condition.parameters).get


def _known_count(connection: apsw.Connection, row_set: RowSet, blocks: BlockCounts) -> int | None:
    """How many interviews a row set has, where the file's own count tells, or the counts of blocks."""
    if row_set.is_by_position:
        return None
    kept = counted_interviews(connection)
    if row_set.is_everything:
        return kept
    if row_set.below is None:
        return None
    behind_last = (connection.execute("SELECT max(ordinal) FROM interviews").get or -1) + 1
    if behind_last <= row_set.below and not row_set.is_drawn:
        return kept  # the file has no others
    if kept == behind_last >= row_set.below:
        return row_set.total  # the file has all of them, and no holes
    return blocks.count_below(connection, row_set.counted_rows, row_set.below)


def counted_interviews(connection: apsw.Connection) -> int:
    """How many interviews the file has counted."""
    return one_value(connection, int, "SELECT value FROM counters WHERE name = 'done'")


def check_none_is_missing(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that has fewer interviews than it has counted, or more: a lost page takes hundreds of rows with it.

    Counting takes 30 ms for a million rows.
    """
    check_counted(connection, path, connection.execute("SELECT count(*) FROM interviews").get)


def check_counted(connection: apsw.Connection, path: Path, found: int) -> None:
    """Refuse a file in which so many interviews are found, and another number is counted."""
    with decoding(path, "what it has counted"):
        kept = counted_interviews(connection)
    if found != kept:
        what = "are missing" if found < kept else "are too many"
        raise damaged(path, f"of {kept:,} interviews that it has counted, {abs(kept - found):,} {what}")


def _has_no_holes(connection: apsw.Connection) -> bool:
    last = connection.execute("SELECT max(ordinal) FROM interviews").get
    return last is None or last + 1 == counted_interviews(connection)


def range_end(connection: apsw.Connection, start: int, rows: int, *, is_back: bool = False) -> int | None:
    """The ordinal of the last of the next `rows` interviews behind the ordinal `start`, or before it where `is_back`;
    None where there is none.
    """
    compare, order, last = ("<", "DESC", "min") if is_back else (">", "ASC", "max")
    next_rows = f"SELECT ordinal FROM interviews WHERE ordinal {compare} ? ORDER BY ordinal {order} LIMIT ?"
    return one_value(connection, int | None, f"SELECT {last}(ordinal) FROM ({next_rows})", (start, rows))


class KeysetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order by one key and then by ordinal, read forward or backward: that of the plan where all keys are NULL.
    Equal keys are in the order of the plan, also where the key falls.
    """

    key: Sql = Sql("NULL", ())
    is_down: bool = False
    is_back: bool = False

    @property
    def terms(self) -> str:
        return f"{self.key.text}{' DESC' * (not self._rises)}, i.ordinal{' DESC' * self.is_back}"

    def beyond(self, value: Any, ordinal: int) -> Sql:
        """The condition of the rows that come later than this one. None is below all values."""
        key, values = self.key.text, self.key.parameters
        same = f"({key} IS ? AND i.ordinal {'<' if self.is_back else '>'} ?)"
        given = (*values, value, ordinal)
        if value is None:
            text = f"({same} OR {key} IS NOT NULL)" if self._rises else same
            return Sql(text, (*given, *values) if self._rises else given)
        if self._rises:
            return Sql(f"({same} OR {key} > ?)", (*given, *values, value))
        return Sql(f"({same} OR {key} < ? OR {key} IS NULL)", (*given, *values, value, *values))

    @property
    def _rises(self) -> bool:
        return self.is_down == self.is_back


def first_in_order(
    connection: apsw.Connection,
    row_set: RowSet,
    conditions: list[Sql],
    order: KeysetOrder,
    limit: int,
    is_enough: Callable[[int, int], bool],
) -> list[tuple[int, SqlValue]]:
    """The first ordinals in an order, with their keys: fewer than `limit` where so many rows, with so many letters in
    their keys, are enough.
    """
    condition = " AND ".join(each.text for each in conditions)
    sql = (
        f"SELECT i.ordinal, {order.key.text} FROM {row_set.tables}{_LISTS} WHERE {condition}"
        f" ORDER BY {order.terms} LIMIT ?"
    )
    values = [value for each in conditions for value in each.parameters]
    found: list[tuple[int, SqlValue]] = []
    letters = 0
    with closing(connection.execute(sql, (*order.key.parameters, *values, *order.key.parameters, limit))) as cursor:
        for ordinal, key in cursor:
            found.append((ordinal, key))
            letters += len(key) if isinstance(key, (str, bytes)) else 0
            if is_enough(len(found), letters):
                break
    return found


def choose(
    connection: apsw.Connection, row_set: RowSet, condition: Sql, order: list[Sql], start: int, stop: int | None
) -> RowSet:
    """A row set of those that meet the condition, in this order, from `start` up to `stop`, in a temporary table."""
    name = _new_table(connection, "chosen", "ordinal")
    limit = -1 if stop is None else stop - start
    terms = ", ".join([*(term.text for term in order), row_set.key])
    values = tuple(value for term in order for value in term.parameters)
    with scratch(connection):
        connection.execute(
            f"INSERT INTO temp.{name}(ordinal) SELECT i.ordinal FROM {row_set.tables}{_LISTS} WHERE {condition.text}"
            f" ORDER BY {terms} LIMIT ? OFFSET ?",
            (*condition.parameters, *values, limit, start),
        )
    return _row_set_of(name)


class KeyTable:
    """A temporary table of ordinals with sort keys that are computed in Python, filled page by page."""

    def __init__(self, connection: apsw.Connection, keys: int) -> None:
        self._columns = [f"k{number}" for number in range(keys)]
        self._name = _new_table(connection, "keyed", "ordinal", *self._columns)
        places = ", ".join("?" * (keys + 1))
        self._insert = f"INSERT INTO temp.{self._name}({', '.join(['ordinal', *self._columns])}) VALUES({places})"

    def add(self, connection: apsw.Connection, keyed: Iterable[tuple[Any, ...]]) -> None:
        with scratch(connection):
            connection.executemany(self._insert, keyed)

    def choose(self, connection: apsw.Connection, descending: list[bool], start: int, stop: int | None) -> RowSet:
        name = _new_table(connection, "chosen", "ordinal")
        order = [f"{column}{' DESC' * is_down}" for column, is_down in zip(self._columns, descending, strict=True)]
        with scratch(connection):
            connection.execute(
                f"INSERT INTO temp.{name}(ordinal) SELECT ordinal FROM temp.{self._name}"
                f" ORDER BY {', '.join([*order, 'position'])} LIMIT ? OFFSET ?",
                (-1 if stop is None else stop - start, start),
            )
            connection.execute(f"DROP TABLE temp.{self._name}")
        return _row_set_of(name)


def from_interviews(row_set: RowSet, used_in: str | None = None) -> str:
    """The tables of a query that computes columns of a row set, in any order. `used_in` is the SQL that uses them:
    where it groups or counts, SQLite looks up every joined row, used or not, which takes longer than the rest.
    """
    if used_in is None:
        return f"{row_set.tables}{_LISTS}"
    return row_set.tables + "".join(join for name, join in _JOINS.items() if name in used_in)


def _new_table(connection: apsw.Connection, kind: str, *columns: str) -> str:
    name = f"{kind}{next(_numbers)}"
    with scratch(connection):
        connection.execute(f"CREATE TEMP TABLE {name}(position INTEGER PRIMARY KEY, {', '.join(columns)})")
    return name


def _row_set_of(name: str) -> RowSet:
    return RowSet(f"temp.{name} c CROSS JOIN interviews i ON i.ordinal = c.ordinal", "c.position")


# --- columns, where `i` is the interviews table. A plus sign takes away a declared column's affinity: '5' is not 5.

ORDINAL_COLUMN = "(+i.ordinal)"
ITERATION_COLUMN = "(+i.iteration)"
FAILED_COLUMN = f"(i.status = {int(Status.FAILED)})"


def list_column(of: str) -> str:
    """The SQL of a row's place in its list: `agent`, `scenario` or `model`."""
    return f"(+i.{of})"


def named_agent_column(name: str) -> str:
    """The SQL of an agent's name; one without a name has that of its place."""
    return f"coalesce({name}, 'Agent_' || i.agent)"


def status_column(texts: dict[int, str]) -> str:
    return _case("i.status", texts)


def model_column(values: list[SqlValue]) -> str:
    """The SQL of a value that depends on the interview's model alone; `values` are by the model's position."""
    return _case("i.model", dict(enumerate(values)))


def _case(column: str, values: Mapping[int, SqlValue]) -> str:
    whens = " ".join(f"WHEN {number} THEN {apsw.format_sql_value(value)}" for number, value in values.items())
    return f"CASE {column} {whens} END"
