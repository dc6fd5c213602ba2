"""Groups of rows, and what is computed of each: `group_by("agent.city").agg(mean="mean(answer.rating)")`.

    columns and expressions ──► Relation ──┬─► one query, where SQLite's own sums and counts are exact: whole numbers
                                           └─► for each expression a query of its values with their counts, sorted;
                                               Python adds them up, group after group

Groups come in the order of their keys. Does not cover: the functions (results.aggregates), or where the columns come
from (computed_columns).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from typing import Any

from headrace.errors import InvalidInput
from headrace.expressions import parse
from headrace.results.aggregates.aggregates_in_sql import ROW_COUNT, SqlAggregate, sql_aggregate
from headrace.results.aggregates.aggregation import PLACED, QUANTILES, Aggregation
from headrace.results.aggregates.function_states import is_missing, new_state
from headrace.results.aggregates.ordered_values import NumberCount, Quantile, UniqueCount
from headrace.results.tables.computed_columns import ComputedColumns, Computing
from headrace.results.tables.relation import Relation
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import pack

_NAN = pack(float("nan"))
_CONSTANT = parse("None")


class GroupedRows(TableRows):
    """A row for each group: its keys, which are the first columns of the source, then what was computed of it."""

    is_counted = True

    def __init__(self, source: ComputedColumns, keys: list[str], aggregations: list[Aggregation]) -> None:
        names = [*keys, *(each.name for each in aggregations)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput(f"Two columns would be called {twice!r}.", fix="Give one of them another name in agg.")
        super().__init__(source.path, names)
        self.holds_read = source.holds_read
        self._source, self._aggregations = source, aggregations
        self._keys = range(len(keys))
        expressions = dict.fromkeys(each.expression for each in aggregations if each.expression is not None)
        self._places = {expression: len(keys) + number for number, expression in enumerate(expressions)}

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        with self._source.relation(clock) as relation:
            terms = [self._in_sql(relation, each) for each in self._aggregations]
            exact = [term for term in terms if term is not None]
            yield self._in_one_query(relation, exact) if len(exact) == len(terms) else self._counted(relation)

    # --- by SQLite alone

    def _in_sql(self, relation: Relation, aggregation: Aggregation) -> SqlAggregate | None:
        place = self._place(aggregation)
        if place is None:
            return ROW_COUNT
        column = relation.columns[place]
        if column.kinds is None or column.has_blobs:
            return None
        return sql_aggregate(aggregation.function, f"x{place}", column.kinds, as_bool=column.as_bool)

    def _in_one_query(self, relation: Relation, terms: list[SqlAggregate]) -> Iterator[Values]:
        texts = list(chain.from_iterable(term.texts for term in terms))
        keys, width = self._keys, len(self._keys)
        names = ", ".join(f"x{place}" for place in keys)
        sql = f"SELECT {', '.join([names, *texts])} FROM {{rows}} {_grouped(relation, keys)}"
        for row in relation.query(sql, [*keys, *self._places.values()]):
            values, left = list(relation.values(keys, row[:width])), row[width:]
            for term in terms:
                values.append(term.finish(left))
                left = left[len(term.texts) :]
            yield tuple(values)

    # --- by Python, from values and their counts

    def _counted(self, relation: Relation) -> Iterator[Values]:
        """Each query gives the same groups in the same order, so that they are read side by side."""
        width = len(self._keys)
        names = ", ".join(f"x{place}" for place in self._keys)
        sizes = relation.query(f"SELECT {names}, count(*) FROM {{rows}} {_grouped(relation, self._keys)}", self._keys)
        columns = [self._column(relation, place) for place in dict.fromkeys(self._places.values())]
        for row in sizes:
            found: dict[Aggregation, Any] = {}
            for column in columns:
                found.update(column())
            counted = [row[width] if each.expression is None else found[each] for each in self._aggregations]
            yield (*relation.values(self._keys, row[:width]), *counted)

    def _column(self, relation: Relation, place: int) -> Callable[[], dict[Aggregation, Any]]:
        """A function that computes what is asked of one expression, for group after group."""
        asked = [each for each in self._aggregations if self._place(each) == place]
        quantiles = [each for each in asked if each.function in QUANTILES]
        placed = [each for each in asked if each.function in PLACED]
        summed = [each for each in asked if each.function not in (*QUANTILES, *PLACED)]
        values = self._histograms(relation, place) if summed or quantiles else iter(())
        again = self._histograms(relation, place) if quantiles else iter(())
        ends = [self._ends(relation, place, each.function) for each in placed]

        def next_group() -> dict[Aggregation, Any]:
            found = {each: next(end) for each, end in zip(placed, ends, strict=True)}
            if summed or quantiles:
                aggregates = {each: _new_function(each.function) for each in summed}
                numbers = NumberCount()
                _feed(next(values), [*aggregates.values(), numbers])
                found |= {each: aggregate.result() for each, aggregate in aggregates.items()}
                wanted = {each: Quantile(each.part, numbers.result()) for each in quantiles}
                if wanted:
                    _feed(next(again), list(wanted.values()))
                found |= {each: quantile.result() for each, quantile in wanted.items()}
            return found

        return next_group

    def _histograms(self, relation: Relation, place: int) -> Iterator[Iterator[tuple[Any, int]]]:
        """For each group its values with their counts, in ascending order."""
        keys, width = self._keys, len(self._keys)
        places = [*keys, place]
        sql = f"SELECT {relation.keys(keys)}, x{place}, count(*) FROM {{rows}} {_grouped(relation, places)}"
        rows = relation.query(sql, places)
        for _, group in groupby(rows, key=lambda row: row[:width]):
            yield ((relation.value(place, row[width]), row[width + 1]) for row in group)

    def _ends(self, relation: Relation, place: int, function: str) -> Iterator[Any]:
        """For each group its first or last value that is not missing."""
        keys, width = self._keys, len(self._keys)
        names, value = ", ".join(f"x{each}" for each in keys), f"x{place}"
        which = "min" if function == "first" else "max"
        there = f"CASE WHEN {value} IS NULL OR {value} IS ? THEN NULL ELSE position END"
        # SQLite takes a column that is not grouped from the row that has the minimum.
        rows = relation.query(
            f"SELECT {names}, {value}, {which}({there}) FROM {{rows}} {_grouped(relation, keys)}",
            [*keys, place],
            (_NAN,),
        )
        for row in rows:
            yield None if row[width + 1] is None else relation.value(place, row[width])

    def _place(self, aggregation: Aggregation) -> int | None:
        return None if aggregation.expression is None else self._places[aggregation.expression]


class WholeRows(TableRows):
    """One row for all rows of the source, also where there are none: the groups of a constant, without that key."""

    is_counted = True

    def __init__(self, computing: Computing, aggregations: list[Aggregation]) -> None:
        expressions = dict.fromkeys(each.expression for each in aggregations if each.expression is not None)
        self._groups = GroupedRows(computing([_CONSTANT, *expressions]), [""], aggregations)
        super().__init__(self._groups.path, self._groups.columns[1:])
        self.holds_read = self._groups.holds_read
        self._aggregations = aggregations

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        with self._groups.reading(clock) as rows:
            row = next(rows, None)
            yield iter([row[1:] if row is not None else tuple(map(_of_nothing, self._aggregations))])


def _grouped(relation: Relation, places: Sequence[int]) -> str:
    return f"GROUP BY {relation.keys(places)} ORDER BY {relation.order(places)}"


def _of_nothing(aggregation: Aggregation) -> Any:
    """What a function gives where it has no value."""
    return None if aggregation.function in (*QUANTILES, *PLACED) else _new_function(aggregation.function).result()


def _new_function(function: str) -> Any:
    return UniqueCount() if function == "nunique" else new_state(function)


def _feed(pairs: Iterator[tuple[Any, int]], aggregates: list[Any]) -> None:
    for value, count in pairs:
        if not is_missing(value):
            for aggregate in aggregates:
                aggregate.add(value, count)
