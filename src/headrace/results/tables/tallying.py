"""How often each value, or each combination of values, occurs: `tally`; and each combination once: `distinct`.

SQLite counts, so that a million different values take no memory here. Two values are the same where they are equal and
both or neither are bools (columns.value_keys). Does not cover: where the columns come from (computed_columns).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from headrace.errors import InvalidInput
from headrace.results.tables.computed_columns import ComputedColumns
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.store.queries.query_clock import QueryClock


class Tallied(TableRows):
    """A row for each combination of values, with its `count`, the most frequent first."""

    is_counted = True

    def __init__(self, source: ComputedColumns, names: list[str], top_n: int | None) -> None:
        if not names:
            raise InvalidInput("There is nothing to tally.", fix='Name a column: tally("answer.mood").')
        super().__init__(source.path, [*names, "tally_count" if "count" in names else "count"])
        self.holds_read = source.holds_read
        self._source = source
        self._most = -1 if top_n is None else max(0, top_n)

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        places = range(self._source.width)
        names = ", ".join(f"x{place}" for place in places)
        with self._source.relation(clock) as relation:
            counted = f"SELECT {names}, count(*) FROM {{rows}} GROUP BY {relation.keys(places)}"
            found = relation.query(f"{counted} ORDER BY count(*) DESC, min(position) LIMIT ?", places, (self._most,))
            yield ((*relation.values(places, row[:-1]), row[-1]) for row in found)


class Distinct(TableRows):
    """Each combination of values once, in the order in which they first occur."""

    is_counted = True

    def __init__(self, source: ComputedColumns, names: list[str]) -> None:
        super().__init__(source.path, names)
        self.holds_read = source.holds_read
        self._source = source

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        places = range(self._source.width)
        names = ", ".join(f"x{place}" for place in places)
        with self._source.relation(clock) as relation:
            once = f"SELECT {names}, min(position) FROM {{rows}} GROUP BY {relation.keys(places)}"
            found = relation.query(f"{once} ORDER BY {len(places) + 1}", places)
            yield (relation.values(places, row[:-1]) for row in found)


def counts_by_value(rows: Iterator[Values]) -> dict[Any, int]:
    """Counts by value, or by tuples of values; lists and dicts, which cannot be keys, as texts."""
    found: dict[Any, int] = {}
    for *values, count in rows:
        held = tuple(map(_hashable, values))
        found[held[0] if len(held) == 1 else held] = count
    return found


def _hashable(value: Any) -> Any:
    return str(cast("Any", value)) if isinstance(value, (list, dict)) else value
