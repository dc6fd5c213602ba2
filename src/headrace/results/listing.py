"""Rows as plain Python values: names without their prefix, and one column or several as a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from headrace.errors import InvalidInput
from headrace.results.columns.result_column import without_group


class ListForm(NamedTuple):
    """What is made of a column's values on their way into a list; Tabular.to_list explains it."""

    flatten: bool
    remove_none: bool
    unzipped: bool


def bare_names(names: list[str]) -> list[str]:
    """The names without what stands before the dot; those that would then be alike keep it."""
    bare = [without_group(name) for name in names]
    counts = Counter(bare)
    return [short if counts[short] == 1 else name for short, name in zip(bare, names, strict=True)]


def to_list(columns: list[str], rows: Iterator[tuple[Any, ...]], form: ListForm) -> list[Any]:
    """All rows in memory: the values of one column, tuples of several, or a list for each column."""
    if form.flatten and len(columns) > 1:
        raise InvalidInput(
            f"Only one column can be flattened, and these are {len(columns)}.", fix='Select one: select("answer.q").'
        )
    if form.unzipped:
        return list(map(list, zip(*rows, strict=True))) or [[] for _ in columns]
    if len(columns) != 1:
        return list(rows)
    values = (value for (value,) in rows if not (form.remove_none and value is None))
    return [item for value in values for item in _items(value)] if form.flatten else list(values)


def with_texts(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with its lists and dicts as texts."""
    return tuple(str(cast("Any", value)) if isinstance(value, (list, dict)) else value for value in row)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
