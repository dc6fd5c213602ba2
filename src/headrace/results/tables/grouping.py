"""Groups of rows, and what is computed of each: `group_by("agent.city").agg(mean="mean(answer.rating)")`.

    columns and expressions ──► Relation ──┬─► one query, where SQLite's own sums and counts are exact: whole numbers
                                           └─► for each expression a query of its values with their counts, sorted;
                                               Python adds them up, group after group (aggregates)

Groups come in the order of their keys. Does not cover: what the functions mean (aggregates), or where the columns come
from (computed_columns).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, TypeAlias

from headrace.errors import ExpressionError, InvalidInput
from headrace.expressions import ColumnKind, Expression, parse_call
from headrace.expressions.nodes import Literal, Name
from headrace.results.columns.result_column import without_group
from headrace.results.tables.aggregates import (
    AGGREGATES,
    FUNCTIONS,
    PLACED,
    QUANTILES,
    NumberCount,
    Quantile,
    is_missing,
)
from headrace.results.tables.computed_columns import ComputedColumns
from headrace.results.tables.relation import Relation, SqlColumn
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.scratch.scratch_table import pack

_WHOLE = frozenset({ColumnKind.INT, ColumnKind.NULL})
_NAN = pack(float("nan"))
Groups: TypeAlias = Iterator[tuple[Any, Iterator[tuple[Any, ...]]]]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One column of `agg`: a function of an expression. `part` is the quantile; `count()` has no expression."""

    name: str
    function: str
    expression: Expression | None
    part: float = 0.5


def read_aggregation(source: str, name: str | None = None) -> Aggregation:
    """Read `mean(answer.rating)`. Without a name it is called `mean_rating`, and `count()` is called `count`."""
    call = parse_call(source, FUNCTIONS)
    expected = 2 if call.function == "quantile" else 1
    if len(call.arguments) != expected and not (call.function == "count" and not call.arguments):
        example = "quantile(answer.rating, 0.9)" if expected == 2 else f"{call.function}(answer.rating)"
        raise ExpressionError(
            f"{call.function}() does not take {len(call.arguments)} arguments.", source=source, fix=f"Write {example}."
        )
    expression = call.arguments[0] if call.arguments else None
    part = _part(call.arguments[1], source) if expected == 2 else 0.5
    return Aggregation(name or _default_name(source, call.function, expression, part), call.function, expression, part)


def _part(given: Expression, source: str) -> float:
    match given.tree:
        case Literal(int() | float() as part) if 0 <= part <= 1 and not isinstance(part, bool):
            return float(part)
        case _:
            fix = "Write it like quantile(answer.rating, 0.9)."
            raise ExpressionError("A quantile is a number from 0 to 1.", source=source, fix=fix)


def _default_name(source: str, function: str, expression: Expression | None, part: float) -> str:
    if expression is None:
        return function
    if not isinstance(expression.tree, Name):
        fix = f'Give it one: agg(name="{source}").'
        raise ExpressionError("Only a function of one column has a name of its own.", source=source, fix=fix)
    behind = f"_{part:g}".replace(".", "_") if function == "quantile" else ""
    return f"{function}_{without_group(expression.tree.name)}{behind}"


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
    def reading(self) -> Generator[Iterator[Values]]:
        with self._source.relation() as relation:
            terms = [self._in_sql(relation, each) for each in self._aggregations]
            exact = [term for term in terms if term is not None]
            yield self._in_one_query(relation, exact) if len(exact) == len(terms) else self._counted(relation)

    # --- by SQLite alone

    def _in_sql(self, relation: Relation, aggregation: Aggregation) -> _SqlAggregate | None:
        place = self._place(aggregation)
        if place is None:
            return _SqlAggregate(("count(*)",), lambda found: found[0])
        return _sql_aggregate(aggregation.function, f"x{place}", relation.columns[place])

    def _in_one_query(self, relation: Relation, terms: list[_SqlAggregate]) -> Iterator[Values]:
        texts = list(chain.from_iterable(term.texts for term in terms))
        keys, width = self._keys, len(self._keys)
        names = ", ".join(f"x{place}" for place in keys)
        sql = f"SELECT {', '.join([names, *texts])} FROM {{rows}} GROUP BY {names} ORDER BY {relation.order(keys)}"
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
        sizes = relation.query(
            f"SELECT {names}, count(*) FROM {{rows}} GROUP BY {names} ORDER BY {relation.order(self._keys)}", self._keys
        )
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
        summed = [each for each in asked if each.function in AGGREGATES]
        quantiles = [each for each in asked if each.function in QUANTILES]
        placed = [each for each in asked if each.function in PLACED]
        values = self._histograms(relation, place) if summed or quantiles else iter(())
        again = self._histograms(relation, place) if quantiles else iter(())
        ends = [self._ends(relation, place, each.function) for each in placed]

        def next_group() -> dict[Aggregation, Any]:
            found = {each: next(end) for each, end in zip(placed, ends, strict=True)}
            if summed or quantiles:
                aggregates = {each: AGGREGATES[each.function]() for each in summed}
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
        names = ", ".join(f"x{each}" for each in [*keys, place])
        order = relation.order([*keys, place])
        rows = relation.query(
            f"SELECT {names}, count(*) FROM {{rows}} GROUP BY {names} ORDER BY {order}", [*keys, place]
        )
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
            f"SELECT {names}, {value}, {which}({there}) FROM {{rows}} GROUP BY {names} ORDER BY {relation.order(keys)}",
            [*keys, place],
            (_NAN,),
        )
        for row in rows:
            yield None if row[width + 1] is None else relation.value(place, row[width])

    def _place(self, aggregation: Aggregation) -> int | None:
        return None if aggregation.expression is None else self._places[aggregation.expression]


def _feed(pairs: Iterator[tuple[Any, int]], aggregates: list[Any]) -> None:
    for value, count in pairs:
        if not is_missing(value):
            for aggregate in aggregates:
                aggregate.add(value, count)


@dataclass(frozen=True, slots=True)
class _SqlAggregate:
    """SQL terms, and the result made of their values, which come first in the tuple."""

    texts: tuple[str, ...]
    finish: Callable[[tuple[Any, ...]], Any]


def _sql_aggregate(function: str, name: str, column: SqlColumn) -> _SqlAggregate | None:
    """The function in SQL; None where SQLite's result might differ from that of `aggregates`."""
    kinds = column.kinds
    if kinds is None or column.has_blobs:
        return None
    is_whole = kinds <= _WHOLE or column.as_bool
    match function:
        case "count":
            return _SqlAggregate((f"count({name})",), lambda found: found[0])
        case "nunique":
            return _SqlAggregate((f"count(DISTINCT {name})",), lambda found: found[0])
        case "min" | "max":
            as_bool = column.as_bool
            return _SqlAggregate((f"{function}({name})",), lambda found: _as_stored(found[0], as_bool))
        case "sum" if is_whole:
            return _SqlAggregate(_whole_sum(name), _total)
        case "mean" if is_whole:
            return _SqlAggregate((*_whole_sum(name), f"count({name})"), lambda f: _total(f) / f[2] if f[2] else None)
        case "any" if is_whole:
            return _SqlAggregate((f"max({name} <> 0)",), lambda found: bool(found[0]))
        case "all" if is_whole:
            return _SqlAggregate((f"min({name} <> 0)",), lambda found: found[0] != 0)
        case "share" if is_whole:
            return _SqlAggregate((f"sum({name} <> 0)", f"count({name})"), lambda f: f[0] / f[1] if f[1] else None)
        case _:
            return None


def _whole_sum(name: str) -> tuple[str, str]:
    # In two halves: SQLite refuses a sum beyond 64 bits.
    return f"sum({name} >> 32)", f"sum({name} & 4294967295)"


def _total(found: tuple[Any, ...]) -> int:
    return 0 if found[0] is None else (found[0] << 32) + found[1]


def _as_stored(value: Any, as_bool: bool) -> Any:
    return bool(value) if as_bool and value is not None else value
