"""The columns of a table by name. Covers: finding one, expanding patterns, and expressions on a table's rows.

Does not cover: the columns of results, which are read from a run file (columns.catalog).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from headrace.errors import InvalidInput, nearest
from headrace.expressions import Expression, compile_closure
from headrace.expressions.meaning import item_of
from headrace.results.columns.binding import find_column
from headrace.results.columns.result_column import is_own, without_group
from headrace.results.tabular import Values

RowGetter: TypeAlias = Callable[[Values], Any]


class ColumnNames:
    """Finds columns by their full names, or by bare ones that only one column has: `mood` for `answer.mood`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._places: dict[str, list[int]] = {}
        self._bare: dict[str, list[int]] = {}
        for place in sorted(range(len(names)), key=lambda place: is_own(names[place])):  # the user's first
            self._places.setdefault(names[place], []).append(place)
            others = self._bare.setdefault(without_group(names[place]), [])
            if not (is_own(names[place]) and others):
                others.append(place)

    def find(self, name: str) -> int:
        """The place of the column with this name."""
        match self._places.get(name) or self._bare.get(name, []):
            case [place]:
                return place
            case []:
                raise InvalidInput(f"There is no column {name!r}.", fix=nearest(name, {*self._places, *self._bare}))
            case several:
                names = " or ".join(sorted({self._names[place] for place in several}))
                fix = f"Write {names}." if names != name else "Give them different names where they are made."
                raise InvalidInput(f"{name!r} could be several columns.", fix=fix)

    def has(self, name: str) -> bool:
        return name in self._places or name in self._bare

    def expand(self, patterns: Iterable[str]) -> list[int]:
        """The places of the columns that these names and patterns stand for, each once, in the order given."""
        return list(dict.fromkeys(place for pattern in patterns for place in self._expand(pattern)))

    def getter(self, expression: Expression) -> RowGetter:
        """An expression on these columns as a function of a row."""

        def resolve(name: str) -> RowGetter:
            place, keys = find_column(name, expression, self)
            return itemgetter(place) if not keys else lambda row: _inside(row[place], keys)

        return compile_closure(expression, resolve)

    def _expand(self, pattern: str) -> Iterator[int]:
        if pattern in ("*", "*.*"):
            yield from range(len(self._names))
        elif "*" not in pattern or pattern in self._places:
            yield self.find(pattern)
        else:
            yield from self._matching(pattern)

    def _matching(self, pattern: str) -> list[int]:
        """Full names where the pattern has a dot, bare names where it has none."""
        matches = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL).fullmatch
        shown = self._names if "." in pattern else list(map(without_group, self._names))
        found = [place for place, name in enumerate(shown) if matches(name)]
        if not found:
            raise InvalidInput(f"No column is called like {pattern!r}.", fix=nearest(pattern, self._names))
        return found


def _inside(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = item_of(value, key)
    return value
