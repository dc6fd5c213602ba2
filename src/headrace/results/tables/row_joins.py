"""Rows joined with those of another table, of another run, of a list of dicts or of a data frame: `join`.

The other rows go into a temporary file with an index on their keys; the rows of the left side are read one by one. Keys
match where they are equal and both or neither are bools; None and NaN match nothing, as in SQL. Does not cover: several
run files as one, `results + other` (reading.joining).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

from headrace.errors import InvalidInput
from headrace.results.aggregates.function_states import is_missing
from headrace.results.columns.result_column import is_own, without_group
from headrace.results.columns.value_keys import value_key
from headrace.results.tables.column_names import ColumnNames
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Tabular, Values
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import ScratchTable, pack_row
from headrace.survey.values import repair_text

On: TypeAlias = str | Sequence[str] | Mapping[str, str]
Joinable: TypeAlias = Any  # a Tabular, an iterable of dicts, or a data frame, which no type here names

_WAYS = ("inner", "left")
_NOWHERE = Path()
_OURS = frozenset({type(None), bool, int, float, list, dict})
_NO_VALUE = re.compile(r"NAType|NaTType")


class TabularRows(TableRows):
    """The rows of anything that has columns and rows, such as results."""

    def __init__(self, table: Tabular) -> None:
        super().__init__(table.path, table.columns)
        self._table = table

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        yield self._table._timed_values(clock)  # pyright: ignore[reportPrivateUsage]


class JoinedRows(TableRows):
    """Each row of the left side with each row of the other that has the same keys; in the order of the left side, then
    of the other. `how="left"` keeps rows that match none, with None in the other's columns.
    """

    def __init__(self, left: TableRows, other: Joinable, on: On, how: str, suffix: str) -> None:
        if how not in _WAYS:
            raise InvalidInput(f"join has no how={how!r}.", fix='Use "inner" or "left".')
        pairs = _pairs(on)
        self._left, self._right = left, _other_side(other, list(pairs.values()))
        left_names, right_names = ColumnNames(left.columns), ColumnNames(self._right.columns)
        self._left_keys = [left_names.find(name) for name in pairs]
        self._right_keys = [right_names.find(name) for name in pairs.values()]
        self._kept = [place for place, _ in enumerate(self._right.columns) if place not in self._right_keys]
        self._keeps_all = how == "left"
        super().__init__(left.path, _joined_names(left.columns, [self._right.columns[p] for p in self._kept], suffix))
        self.holds_read = left.holds_read

    @contextmanager
    def reading(self, clock: QueryClock, /) -> Generator[Iterator[Values]]:
        keys, kept = self._right_keys, self._kept
        with ScratchTable(len(keys) + len(kept), clock) as table:
            with self._right.reading(clock) as rows:
                table.add(
                    (*(value_key(row[k]) for k in keys), *pack_row(tuple([row[k] for k in kept])))
                    for row in rows
                    if not any(is_missing(row[key]) for key in keys)
                )
            table.index(len(keys))
            with self._left.reading(clock) as rows:
                yield self._joined(rows, table)

    def _joined(self, rows: Iterator[Values], table: ScratchTable) -> Iterator[Values]:
        empty, width = (None,) * len(self._kept), len(self._right_keys)
        for row in rows:
            key = [row[place] for place in self._left_keys]
            is_matched = False
            if not any(map(is_missing, key)):
                for match in table.matching(list(map(value_key, key))):
                    is_matched = True
                    yield (*row, *match[width:])
            if self._keeps_all and not is_matched:
                yield (*row, *empty)


class _ListedDicts(TableRows):
    """The rows of an iterable of dicts that can be read again; a column that a row lacks is None in it."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], columns: list[str]) -> None:
        super().__init__(_NOWHERE, columns)
        self._rows = rows

    @contextmanager
    def reading(self, _clock: QueryClock, /) -> Generator[Iterator[Values]]:
        yield (tuple([_plain(row.get(name)) for name in self.columns]) for row in self._rows)


class _FrameRows(TableRows):
    """The rows of a data frame, of polars or of pandas without its index."""

    def __init__(self, frame: Any) -> None:
        super().__init__(_NOWHERE, [str(name) for name in frame.columns])
        self._frame = frame

    @contextmanager
    def reading(self, _clock: QueryClock, /) -> Generator[Iterator[Values]]:
        frame = self._frame
        rows = frame.iter_rows() if hasattr(frame, "iter_rows") else frame.itertuples(index=False, name=None)
        yield (tuple(map(_plain, row)) for row in rows)


def _other_side(other: Joinable, keys: list[str]) -> TableRows:
    """The rows of what a user joins with; an empty list has no columns but the keys."""
    if isinstance(other, Tabular):
        return TabularRows(other)
    if hasattr(other, "columns") and (hasattr(other, "itertuples") or hasattr(other, "iter_rows")):
        return _FrameRows(other)
    if isinstance(other, Sequence) and all(isinstance(row, Mapping) for row in cast("Sequence[object]", other)):
        rows = cast("Sequence[Mapping[str, Any]]", other)
        unusable = next((name for row in rows for name in row if not isinstance(name, str)), None)  # pyright: ignore[reportUnnecessaryIsInstance]
        if unusable is not None:
            raise InvalidInput(f"A column is called by a text, not by {unusable!r}.", fix=f"Write {str(unusable)!r}.")
        return _ListedDicts(rows, list(dict.fromkeys(name for row in rows for name in row)) or keys)
    raise InvalidInput(
        f"join takes results, a table, a list of dicts or a data frame, not {type(cast('object', other)).__name__}.",
        fix='Write join([{"city": "Oslo", "people": 700_000}], on="city").',
    )


def _pairs(on: On) -> dict[str, str]:
    """The names of the keys on the left, with those of the other side."""
    if isinstance(on, Mapping):
        pairs = dict(on)
    else:
        pairs = {name: name for name in ([on] if isinstance(on, str) else on)}
    if not pairs:
        raise InvalidInput("join needs a column to join on.", fix='Write on="agent.city".')
    return pairs


def _joined_names(left: list[str], right: list[str], suffix: str) -> list[str]:
    """The names of both sides; the other's get the suffix where a column of the left side is called by the name
    already, its bare one included: `rating` would hide `answer.rating`.
    """
    names = list(left)
    bare = {without_group(name) for name in left if not is_own(name)}
    for name in right:
        joined = f"{name}{suffix}" if name in names or name in bare else name
        if joined in names:
            raise InvalidInput(f"Two columns would be called {joined!r}.", fix="Give another suffix=, or rename one.")
        names.append(joined)
    return names


def _plain(value: Any) -> Any:
    """A value of another library as one of ours: dates as texts, what is missing as None."""
    if isinstance(value, str):
        return repair_text(value)[0]
    if type(value) in _OURS:
        return value
    if _NO_VALUE.fullmatch(type(value).__name__):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):  # of numpy: a scalar or an array
        return _plain(value.tolist())
    return value
