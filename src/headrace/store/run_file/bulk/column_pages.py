"""Interviews read as columns, a page at a time, and checked a page at a time: a third of what it takes row by row.

    SELECT ──► rows, turned into columns ──► checksums of the whole page, compared in one go ──► ColumnPage
                                                                 │ not all as expected
                                                                 ▼
                                  GiveUp: the caller reads that page row by row (interview_queries.fetch, row_check)

What is accepted here is what row_check accepts, and anything else is left to it: it names the row and says what is
wrong. That covers rows without a checksum, from an older Headrace, and very long values, of which a page would take too
much memory. Columns that hardly ever change are assumed rather than read (assumed_columns). Does not cover: what the
columns mean (results.columns).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

import apsw
import msgspec

from headrace.expressions import Sql
from headrace.store.contents import UNREADABLE
from headrace.store.run_file.bulk.assumed_columns import AssumedColumns, PageColumns
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import TRUE, Projection, RowSet, page_query
from headrace.store.run_file.rows import Status

# Of a page: more rows would fall out of the processor's cache between one step and the next.
_MOST_ROWS, _MOST_VALUES, _MOST_BYTES = 512, 16_384, 32_000_000
# Upper half of a checksum, as `checksums.has_values` compares it.
_VALUES_CHECKSUM = "(i.checksum >> 32) + 2147483648"
_STATUSES = frozenset(map(int, Status))
_ITERATION, _AGENT, _SCENARIO, _MODEL, _STATUS = range(1, 6)  # places of columns
_AGENT_COLUMNS = ["a.fields", "a.checksum"]
_encode = msgspec.msgpack.Encoder().encode


class GiveUp(Exception):
    """A page that must be read row by row. No user sees this error."""


class ListRows(NamedTuple):
    """The agents of a page's interviews, or their scenarios, as JSON, each once. `places` says for each interview which
    of them is its own; it is None where they stand in the order of the interviews.
    """

    fields: tuple[str, ...] = ()
    places: list[int] | None = None

    def spread(self) -> Sequence[str]:
        """One for each interview."""
        return self.fields if self.places is None else [self.fields[place] for place in self.places]


_NO_ROWS = ListRows()


class ColumnPage(msgspec.Struct, frozen=True):
    """Some interviews as columns. `agents` and `scenarios` are empty where they were not asked for."""

    last_key: int
    ordinals: tuple[int, ...]
    iterations: tuple[int, ...]
    agents_at: tuple[int, ...]
    scenarios_at: tuple[int, ...]
    models: tuple[int, ...]
    statuses: tuple[int, ...]
    answers: tuple[tuple[Any, ...], ...]
    more: tuple[str | None, ...]
    agents: ListRows
    scenarios: ListRows
    held_bytes: int

    def __len__(self) -> int:
        return len(self.ordinals)


class ColumnPages:
    """Reads pages with this projection, which must be one that `can_read` accepts."""

    def __init__(self, projection: Projection, header: RunHeader) -> None:
        self._projection = projection
        self._models = frozenset(range(len(header.models)))
        answers = [f"i.a{position}" for position in projection.answers]
        head = ["i.ordinal", "i.iteration", "i.agent", "i.scenario", "i.model", "i.status"]
        self._columns = [*head, *answers, "i.more"]
        self._assumed = AssumedColumns(more=len(self._columns) - 1)
        self._joins_agents = False  # rather than looking them up for a page: less for each, as long as none comes again
        self._rows = max(16, min(_MOST_ROWS, _MOST_VALUES // len(head + answers)))
        # Each answer, what is beyond them, an agent and a scenario.
        self._longest_bytes = _MOST_BYTES // (self._rows * (len(answers) + 3))

    @staticmethod
    def can_read(projection: Projection, header: RunHeader) -> bool:
        """Whether the projection has all that a row's checksum covers, and nothing that is not read here."""
        return header.has_checksums and projection.is_whole and projection.with_checksums and not projection.detail

    def read(
        self, connection: apsw.Connection, row_set: RowSet, condition: Sql, after: int, limit: int
    ) -> Generator[ColumnPage]:
        """The pages behind the key `after`, together at most `limit` rows, in the caller's transaction."""
        with short_values(connection, self._longest_bytes):
            # A condition was evaluated on what is in the file: its rows are read, so that both are checked.
            at_first = self._assumed.places if condition is TRUE else set[int]()
            for assumed in (at_first, set[int]()):
                try:
                    for page in self._pages(connection, row_set, condition, after, limit, assumed):
                        yield page
                        after, limit = page.last_key, limit - len(page)
                    return
                except GiveUp:
                    if not assumed:
                        raise
                    self._assumed.doubt()

    def _pages(
        self, connection: apsw.Connection, row_set: RowSet, condition: Sql, after: int, limit: int, assumed: set[int]
    ) -> Generator[ColumnPage]:
        """The pages, of which these columns are assumed; what is learned from them is for the next reading."""
        names = [name for place, name in enumerate(self._columns) if place not in assumed]
        is_by_ordinal = row_set.key == "i.ordinal"  # then the key is not read twice
        key = [] if is_by_ordinal else [row_set.key]
        joined = _AGENT_COLUMNS if self._joins_agents else []
        query = page_query(row_set, ", ".join([*key, *names, *joined, _VALUES_CHECKSUM]), condition)
        cursor = connection.execute(query, (after, *condition.parameters, limit))
        while rows := list(islice(cursor, self._rows)):
            *columns, checksums = zip(*rows, strict=True)
            del columns[: len(key)]
            agents = [columns.pop() for _ in joined]
            if assumed:
                self._assumed.fill_in(columns)
            encoded = _encoded(columns)
            if tuple(map(crc32, encoded)) != checksums:
                _give_up("a checksum")
            self._check_head(columns, assumed)
            if not assumed:
                self._assumed.learn(columns)
            lists = self._list_rows(connection, columns, agents)
            yield _page(columns, lists, sum(map(len, encoded)), rows[-1][0])

    def _list_rows(
        self, connection: apsw.Connection, columns: PageColumns, joined: PageColumns
    ) -> tuple[ListRows, ListRows]:
        """The agents and scenarios of a page; `joined` are checksums and fields of agents that were read with it."""
        agents, scenarios = _NO_ROWS, _NO_ROWS
        if joined:
            checksums, fields = joined
            _check_fields(fields, checksums, columns[_AGENT], "agents")
            agents = ListRows(fields)
        elif self._projection.agent:
            agents = _list_rows(connection, "agents", columns[_AGENT])
            self._joins_agents = len(agents.fields) == len(columns[_AGENT])
        if self._projection.scenario:
            scenarios = _list_rows(connection, "scenarios", columns[_SCENARIO])
        return agents, scenarios

    def _check_head(self, columns: PageColumns, assumed: set[int]) -> None:
        """Refuse positions, models and statuses that are none. A row's checksum may be right and the row forged.

        What is assumed was checked where it was read.
        """
        read = [place for place in range(_ITERATION, _STATUS + 1) if place not in assumed]
        try:
            # A sum is a whole number only where all its parts are.
            are_whole = all(type(sum(columns[place])) is int for place in read)
        except TypeError:
            are_whole = False
        are_known = all(
            known.issuperset(columns[place])
            for place, known in ((_MODEL, self._models), (_STATUS, _STATUSES))
            if place in read
        )
        if not are_whole or not are_known:
            _give_up("a position, model or status")


def _page(columns: PageColumns, lists: tuple[ListRows, ListRows], held_bytes: int, last_key: int) -> ColumnPage:
    ordinals, iterations, agents, scenarios, models, statuses, *answers, more = columns
    return ColumnPage(
        last_key, ordinals, iterations, agents, scenarios, models, statuses, tuple(answers), more, *lists, held_bytes
    )


def _encoded(columns: PageColumns) -> list[bytes]:
    try:
        return list(map(_encode, zip(*columns, strict=True)))
    except UNREADABLE:
        _give_up("a value")


def _list_rows(connection: apsw.Connection, table: str, positions: tuple[int, ...]) -> ListRows:
    """The rows of agents or scenarios at these positions, each read and checked once."""
    are_neighbours = _are_neighbours(positions)
    wanted = positions if are_neighbours else tuple(sorted(set(positions)))
    if are_neighbours or _are_neighbours(wanted):
        where, values = "BETWEEN ? AND ?", (wanted[0], wanted[-1])
    else:
        where, values = f"IN ({', '.join('?' * len(wanted))})", wanted
    sql = f"SELECT fields, checksum FROM {table} WHERE position {where} ORDER BY position"
    found = connection.execute(sql, values).fetchall()
    if len(found) != len(wanted):
        _give_up(f"a row of {table}")
    fields, checksums = zip(*found, strict=True)
    _check_fields(fields, checksums, wanted, table)
    if wanted is positions:
        return ListRows(fields)
    place = dict(zip(wanted, range(len(wanted)), strict=True))
    return ListRows(fields, [place[position] for position in positions])


def _check_fields(fields: tuple[Any, ...], checksums: tuple[Any, ...], positions: tuple[int, ...], table: str) -> None:
    try:
        is_right = tuple(map(crc32, map(str.encode, fields), positions)) == checksums
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        _give_up(f"a row of {table}")


def _are_neighbours(positions: tuple[int, ...]) -> bool:
    """Whether each position is the one before and one more."""
    first = positions[0]
    return positions[-1] - first == len(positions) - 1 and positions == tuple(range(first, first + len(positions)))


@contextmanager
def short_values(connection: apsw.Connection, longest_bytes: int) -> Generator[None]:
    """Have SQLite refuse values that are longer, before it reads them: a page of them would take too much memory."""
    before = connection.limit(apsw.SQLITE_LIMIT_LENGTH, longest_bytes)
    try:
        yield
    except apsw.TooBigError:
        _give_up("a long value")
    finally:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, before)


def _give_up(what: str) -> NoReturn:
    raise GiveUp(what)
