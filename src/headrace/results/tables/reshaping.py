"""The same values with another shape: `long`, a row for each interview and question, and `wide`, its reverse.

Does not cover: joining rows with those of another table (row_joins).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from headrace.errors import InvalidInput
from headrace.results.tables.computed_columns import ComputedColumns, Computing
from headrace.results.tables.relation import Relation
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock
from headrace.survey.values import SqlValue

MOST_NEW_COLUMNS = 1_000


class LongRows(TableRows):
    """A row for each of the last columns of each row: the columns before them, the column's name, and its value."""

    def __init__(self, source: ComputedColumns, repeated: list[str], questions: list[str]) -> None:
        super().__init__(source.path, [*repeated, "question", "answer"])
        self._source, self._questions = source, questions

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        yield self._long(self._source.rows(clock))

    def _long(self, rows: Iterator[Values]) -> Iterator[Values]:
        width = len(self.columns) - 2
        for row in rows:
            for question, answer in zip(self._questions, row[width:], strict=True):
                yield (*row[:width], question, answer)


class WideRows(TableRows):
    """A row for each combination of the index, in their order, with a column for each value of `columns`."""

    is_counted = True

    def __init__(
        self, computing: Computing, index: Sequence[str], columns: str, values: str, clock: QueryClock
    ) -> None:
        if not index:
            raise InvalidInput("A row of a wide table needs an index.", fix='Write wide("interview.ordinal", ...).')
        self._source = computing([*index, columns, values])
        self._width = len(index)
        self._named = columns
        self._new = self._new_columns(clock)
        names = [*index, *self._new.values()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            fix = "Rename the index, or make other values of it with mutate."
            raise InvalidInput(f"Two columns would be called {twice!r}.", fix=fix)
        super().__init__(self._source.path, names)
        self.holds_read = self._source.holds_read

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        index = range(self._width)
        places = [*index, self._width, self._width + 1]
        with self._source.relation(clock) as relation:
            names = f"{relation.keys(places[:-1])}, {', '.join(f'x{place}' for place in places)}"
            found = relation.query(f"SELECT {names} FROM {{rows}} ORDER BY {relation.order(index)}, position", places)
            yield self._wide(relation, found)

    def _wide(self, relation: Relation, found: Iterator[tuple[Any, ...]]) -> Iterator[Values]:
        index, width = range(self._width), self._width
        for _, rows in groupby(found, key=lambda row: row[:width]):
            held: dict[SqlValue, Any] = {}
            values: Values | None = None
            for row in rows:
                column, stored = row[width], row[width + 1 :]
                values = relation.values(index, stored[:width]) if values is None else values
                if column in held or column not in self._new:
                    name = str(relation.value(width, stored[width]))
                    raise self._unexpected(name, values, is_twice=column in held)
                held[column] = relation.value(width + 1, stored[width + 1])
            assert values is not None
            yield (*values, *(held.get(column) for column in self._new))

    def _new_columns(self, clock: QueryClock) -> dict[SqlValue, str]:
        """The names of the new columns by the keys of their values, in the order in which these first occur: questions
        as asked.
        """
        place = self._width
        with self._source.relation(clock) as relation:
            key = relation.key(place)
            found = relation.query(
                f"SELECT {key}, x{place}, min(position) FROM {{rows}} GROUP BY {key} ORDER BY min(position) LIMIT ?",
                [place],
                (MOST_NEW_COLUMNS + 1,),
            )
            names = {row[0]: str(relation.value(place, row[1])) for row in found}
        if len(names) > MOST_NEW_COLUMNS:
            raise InvalidInput(
                f"{self._named!r} has more than {MOST_NEW_COLUMNS:,} values, and each would be a column.",
                fix="Filter the rows first, or choose another column.",
            )
        return names

    def _unexpected(self, name: str, key: Values, *, is_twice: bool) -> InvalidInput:
        if is_twice:
            what = f"Two rows have {name!r} of {self._named!r} for {', '.join(map(repr, key))}."
            return InvalidInput(what, fix='Make one of them first: group_by(...).agg(answer="first(answer)").')
        what = f"{self._named!r} has a new value, {name!r}, for which there is no column."
        return InvalidInput(what, fix="Call wide again.")
