"""A Table has rows that are no interviews: what `sql`, `tally` and the like give. Covers: the verbs that users call.

Does not cover: what makes the rows (table_rows, and the modules beside it), or the exports (tabular).
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import overload

from headrace.errors import InvalidInput
from headrace.expressions import ColumnKind, Expression, parse
from headrace.missing_names import ExplainedNames
from headrace.results.aggregates.aggregation import read_aggregation
from headrace.results.column_verbs import read_assignment
from headrace.results.printing import Glance
from headrace.results.tables.column_names import ColumnNames, RowGetter
from headrace.results.tables.computed_columns import ComputedColumns, Computing, RowColumns, Wanted
from headrace.results.tables.grouping import GroupedRows, WholeRows
from headrace.results.tables.reshaping import WideRows
from headrace.results.tables.row_joins import Joinable, JoinedRows, On
from headrace.results.tables.row_verbs import Chosen, Filtered, RowRange, Sorted, Windowed, by_chance, by_column
from headrace.results.tables.table_rows import TableIterator, TableRows
from headrace.results.tables.tallying import Distinct, Tallied
from headrace.results.tabular import Tabular, Values, row_number
from headrace.results.verb_arguments import check_sample, directions, drawn_seed, flat_names, new_names
from headrace.store.queries.query_clock import TIMEOUT_S, QueryClock, checked_timeout


class Table(Tabular):
    """Columns and rows that are made when they are looked at, and again each time.

    Verbs give new tables and make no rows. A row is a tuple.
    """

    def __init__(self, source: TableRows, timeout_s: float = TIMEOUT_S) -> None:
        self.path = source.path
        self._source = source
        self._timeout_s = timeout_s
        self._latest: weakref.ref[TableIterator] | None = None

    @property
    def columns(self) -> list[str]:
        return list(self._source.columns)

    # --- columns

    def select(self, *columns: str | list[str]) -> Table:
        """A table with these columns; patterns such as `answer.*` and `*_cost` too."""
        return self._at(self._names().expand(flat_names(columns)))

    def drop(self, *columns: str) -> Table:
        """A table without these columns."""
        gone = set(self._names().expand(columns))
        return self._at([place for place, _ in enumerate(self.columns) if place not in gone])

    def rename(self, old_name: str | Mapping[str, str], new_name: str | None = None) -> Table:
        """A table with other names: `rename("count", "people")`, or several, `rename({"count": "people"})`."""
        renamed = self.columns
        for old, new in new_names(old_name, new_name).items():
            renamed[self._names().find(old)] = new
        for name in renamed:
            if renamed.count(name) > self.columns.count(name) and renamed.count(name) > 1:
                raise InvalidInput(f"There is a column {name!r} already.", fix="Choose another name.")
        return self._made(Chosen(self._source, renamed, range(len(renamed))))

    def mutate(self, *new_var_strings: str) -> Table:
        """A table with columns more, computed from others: `mutate("double = count * 2")`, in filters' language.

        Of several, each may use those before it.
        """
        return functools.reduce(Table._with_column, new_var_strings, self)

    def _with_column(self, assignment: str) -> Table:
        name, source = read_assignment(assignment)
        if self._names().has(name):
            raise InvalidInput(f"There is a column {name!r} already.", fix="Choose another name.")
        columns = self.columns
        return self._made(
            Chosen(self._source, [*columns, name], [*range(len(columns)), self._names().getter(parse(source))])
        )

    # --- rows

    def filter(self, expression: str, *, timeout_s: float | None = None) -> Table:
        """A table of the rows for which this holds: `"count > 5 and mood != 'Bad'"`.

        `timeout_s`, here and below, is how long the next rows of it, and of what is made of it, may take: all that they
        are made of. Without it, the limit of this table holds.
        """
        return self._made(Filtered(self._source, self._names().getter(parse(expression))), timeout_s)

    def sort_by(self, *columns: str, reverse: bool | Sequence[bool] = False, timeout_s: float | None = None) -> Table:
        """A table in the order of these columns: None first, numbers, texts, then lists; equal rows as they were.

        `reverse` is for all columns, or has a bool for each.
        """
        keys = [by_column(self._names().find(column)) for column in columns]
        return self._made(Sorted(self._source, list(zip(keys, directions(columns, reverse), strict=True))), timeout_s)

    def order_by(self, *columns: str, reverse: bool | Sequence[bool] = False, timeout_s: float | None = None) -> Table:
        """The same as `sort_by`."""
        return self.sort_by(*columns, reverse=reverse, timeout_s=timeout_s)

    def shuffle(self, seed: str | int | None = None) -> Table:
        """A table in an order that looks random: the same for the same seed and rows."""
        return self._made(Sorted(self._source, [(by_chance(drawn_seed(seed)), False)]))

    def sample(self, n: int | None = None, frac: float | None = None, seed: str | int | None = None) -> Table:
        """A table of `n` rows, or of a part `frac` of them, drawn at random, each at most once. Where there are fewer
        than `n`, all of them.
        """
        check_sample(n, frac)
        return self.shuffle(seed)._within(RowRange(0, None if n is None else max(0, n), frac))

    def head(self, n: int = 5) -> Table:
        """A table of the first few rows; of all but the last few where `n` is negative, as in pandas."""
        return self._within(RowRange(0, n))

    def tail(self, n: int = 5) -> Table:
        """A table of the last few rows; of all but the first few where `n` is negative, as in pandas."""
        return self._within(RowRange(-n) if n else RowRange(0, 0))

    def limit(self, n: int) -> Table:
        """The same as `head`."""
        return self.head(n)

    # --- rows put together

    def distinct(self, *columns: str, timeout_s: float | None = None) -> Table:
        """A table of these columns, or all, with each combination of values once, in the order of the first ones."""
        names = list(columns) or self.columns
        return self._made(Distinct(self._computing(names), names), timeout_s)

    def tally(self, *columns: str, top_n: int | None = None, timeout_s: float | None = None) -> Table:
        """How often each value occurs, or each combination of several columns' values, the most frequent first."""
        names = list(columns) or self.columns
        return self._made(Tallied(self._computing(names), names, top_n), timeout_s)

    def group_by(self, *columns: str, timeout_s: float | None = None) -> GroupBy:
        """Groups of rows with equal values in these columns: `group_by("mood").agg(mean="mean(rating)")`.

        Without columns, all rows are one group.
        """
        return GroupBy(self._computing, columns, self._limit_s(timeout_s))

    def wide(self, index: str | Sequence[str], columns: str, values: str, *, timeout_s: float | None = None) -> Table:
        """A table with a row for each value of `index` and a column for each value of `columns`, filled from `values`.

        The values that become columns are read now, at most 1,000 of them; two rows for one place are an error.
        """
        names = [index] if isinstance(index, str) else index
        limit_s = self._limit_s(timeout_s)
        return Table(WideRows(self._computing, names, columns, values, QueryClock(limit_s)), limit_s)

    def join(
        self,
        other: Joinable,
        on: On,
        how: str = "inner",
        suffix: str = "_right",
        *,
        timeout_s: float | None = None,
    ) -> Table:
        """Each row with the rows of `other` that have the same `on`; `how="left"` also keeps rows that match none.

        `other` is results, a table, a list of dicts or a data frame; `on` one name, several, or `{left: right}`. None
        and NaN match nothing. A column of `other` that is called as one here gets the suffix.
        """
        return self._made(JoinedRows(self._source, other, on, how, suffix), timeout_s)

    # --- a sequence of rows

    def __len__(self) -> int:
        latest = None if self._latest is None else self._latest()
        return self._source.count(self._clock()) if latest is None else latest.count()

    def __iter__(self) -> Iterator[Values]:
        rows = TableIterator(self._source, self._timeout_s)
        self._latest = weakref.ref(rows)
        return rows

    @overload
    def __getitem__(self, index: int) -> Values: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> Values | Table:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise InvalidInput(f"A table cannot be sliced in steps of {index.step}.", fix="Use list(table)[...].")
            stop = None if index.stop is None else operator.index(index.stop)
            return self._within(RowRange(0 if index.start is None else operator.index(index.start), stop))
        place = row_number(index, "table")
        rows, _ = self[place : place + 1 if place != -1 else None]._source.first(1, self._clock())
        if not rows:
            raise IndexError(f"there is no row {index} among {len(self):,}")
        return rows[0]

    def __repr__(self) -> str:
        return str(self)

    # --- reading

    def _values(self) -> Iterator[Values]:
        return self._source.rows(self._clock())

    def _timed_values(self, clock: QueryClock) -> Iterator[Values]:
        with self._source.reading(clock) as rows:
            yield from rows

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        return self._source.kinds(self._clock())

    def _glance(self, most_rows: int) -> Glance:
        found, total = self._source.first(most_rows, self._clock())
        # A group of those who gave no answer would be a row without a name.
        rows = [tuple("None" if value is None else value for value in row) for row in found]
        return Glance(columns=self.columns, rows=rows, total=total)

    def _computing(self, wanted: Wanted) -> ComputedColumns:
        names = self._names()
        return RowColumns(self._source, [_getter(names, each) for each in wanted])

    def _names(self) -> ColumnNames:
        return ColumnNames(self._source.columns)

    def _at(self, places: list[int]) -> Table:
        return self._made(Chosen(self._source, [self._source.columns[place] for place in places], places))

    def _within(self, window: RowRange) -> Table:
        return self._made(Windowed(self._source, window))

    def _made(self, rows: TableRows, timeout_s: float | None = None) -> Table:
        return Table(rows, self._limit_s(timeout_s))

    def _limit_s(self, timeout_s: float | None) -> float:
        return self._timeout_s if timeout_s is None else checked_timeout(timeout_s)

    def _clock(self) -> QueryClock:
        return QueryClock(self._timeout_s)


class GroupBy(ExplainedNames):
    """Rows in groups, without keys all rows in one; `agg` gives a table with a row for each. Nothing is read before
    that table is.
    """

    def __init__(self, computing: Computing, keys: Sequence[str], timeout_s: float) -> None:
        computing(keys)  # a misspelt name is refused here, not behind `agg`
        self._computing, self._keys = computing, list(keys)
        self._timeout_s = timeout_s

    def agg(self, *calls: str, **named: str) -> Table:
        """A table with a row for each group, sorted by its keys, and these columns: `agg(mean="mean(answer.rating)")`.

        Functions: count, sum, mean, median, min, max, std, var, first, last, nunique, quantile(x, 0.9), any, all,
        share(condition). `agg("mean(answer.rating)")` calls its column `mean_rating`, `agg("count()")` `count`.
        """
        asked = [*map(read_aggregation, calls), *(read_aggregation(call, name) for name, call in named.items())]
        if not asked:
            raise InvalidInput("There is nothing to compute.", fix='Write agg(mean="mean(answer.rating)").')
        if not self._keys:
            return Table(WholeRows(self._computing, asked), self._timeout_s)
        expressions = dict.fromkeys(each.expression for each in asked if each.expression is not None)
        rows = GroupedRows(self._computing([*self._keys, *expressions]), self._keys, asked)
        return Table(rows, self._timeout_s)

    def __repr__(self) -> str:
        keys = ", ".join(map(repr, self._keys))
        return f"GroupBy({keys}): agg(...) gives a table with a row for each group, count() how many rows each has"

    def count(self) -> Table:
        """How many rows each group has."""
        return self.agg("count()")


def _getter(names: ColumnNames, wanted: str | Expression) -> RowGetter:
    return itemgetter(names.find(wanted)) if isinstance(wanted, str) else names.getter(wanted)
