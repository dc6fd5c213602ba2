"""Equal rows of a list together: `unique`, `tally`, `group_by`, `pivot` and `collapse`, in the memory of one group.

Rows are sorted by what makes them equal, on disk where they are many (row_order), and what is made of each group comes
in the order in which the groups were first met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, cast

from headrace.errors import ListError
from headrace.plan.rows.row_order import comparable, in_order
from headrace.survey.values import Fields, decode_fields, encode_fields, encode_value

_ROW, _PLACE, _RANK = "row", "place", "rank"


_Placed: TypeAlias = tuple[Any, Fields]  # what is made of a group, and its rank among the others


def unique_rows(rows: Iterable[Fields]) -> Iterator[Fields]:
    """Each row once, where it was first met; the order of its fields means nothing, and None is as no field."""

    def values(fields: Fields) -> list[Any]:
        return [[name, comparable(fields[name])] for name in sorted(fields) if fields[name] is not None]

    groups = _groups(rows, values)
    return _ranked((first[_PLACE], first[_ROW]) for first in map(next, groups))


def tallied(rows: Iterable[Fields], names: Sequence[str], count_name: str) -> Iterator[Fields]:
    """A row for each combination of these fields' values, with its count; the most frequent first."""
    return _ranked(_counted(group, names, count_name) for group in _groups(rows, _values(names)))


def aggregated(
    rows: Iterable[Fields], names: Sequence[str], variables: Sequence[str], function: Callable[..., Any]
) -> Iterator[Fields]:
    """A row for each combination of values, with the fields that the function makes of the lists of the variables."""
    return _ranked(_made(list(group), names, variables, function) for group in _groups(rows, _values(names)))


def pivoted(rows: Iterable[Fields], names: Sequence[str], variable: str, value: str) -> Iterator[Fields]:
    """A row for each combination of values, with a field for each row of it: named by one field, of another's value."""

    def made(group: list[Fields]) -> _Placed:
        first, rows = group[0], [held[_ROW] for held in group]
        fields = {str(row.get(variable)): row.get(value) for row in rows}
        if len(fields) < len(rows) or not fields.keys().isdisjoint(names):
            raise _twice([*names, *(str(row.get(variable)) for row in rows)], names, first[_ROW])
        return first[_PLACE], {**{name: first[_ROW].get(name) for name in names}, **fields}

    return _ranked(made(list(group)) for group in _groups(rows, _values(names)))


def collapsed(
    rows: Iterable[Fields], names: Sequence[str], field: str, join: Callable[[list[Any]], Any], count_name: str | None
) -> Iterator[Fields]:
    """A row for each combination of the other fields, with one value that `join` makes of the field's values."""

    def made(group: list[Fields]) -> _Placed:
        first = group[0]
        count = {} if count_name is None else {count_name: len(group)}
        value = join([held[_ROW].get(field) for held in group])
        return first[_PLACE], {**{name: first[_ROW].get(name) for name in names}, field: value, **count}

    return _ranked(made(list(group)) for group in _groups(rows, _values(names)))


def _twice(fields: list[str], names: Sequence[str], row: Fields) -> ListError:
    twice = next(name for place, name in enumerate(fields) if name in fields[:place])
    of = ", ".join(f"{name} {str(row.get(name))[:60]!r}" for name in names)
    return ListError(
        f"pivot would make two values {twice[:60]!r} in the row{f' of {of}' if of else ''}.",
        fix="Name more fields in id_vars, or make one value of them first: group_by(...), unique().",
    )


def _values(names: Sequence[str]) -> Callable[[Fields], list[Any]]:
    return lambda fields: [comparable(fields.get(name)) for name in names]


def _counted(group: Iterator[Fields], names: Sequence[str], count_name: str) -> _Placed:
    first = next(group)
    count = 1 + sum(1 for _ in group)
    return (-count, first[_PLACE]), {**{name: first[_ROW].get(name) for name in names}, count_name: count}


def _made(group: list[Fields], names: Sequence[str], variables: Sequence[str], function: Callable[..., Any]) -> _Placed:
    made: Any = function(*([held[_ROW].get(name) for held in group] for name in variables))
    if not isinstance(made, dict):
        raise ListError(f"The function of group_by returned {made!r}.", fix='Return a dict, like {"mean": 3}.')
    first = group[0]
    return first[_PLACE], {**{name: first[_ROW].get(name) for name in names}, **cast(Fields, made)}


def _groups(rows: Iterable[Fields], key: Callable[[Fields], Any]) -> Iterator[Iterator[Fields]]:
    """Rows with equal keys together, in the order they have, each with its place. A group is read before the next."""

    def sort_key(held: Fields) -> bytes:
        return encode_value(key(held[_ROW]))

    placed = (encode_fields({_ROW: fields, _PLACE: place})[0] for place, fields in enumerate(rows))
    ordered = map(decode_fields, in_order(placed, sort_key, reverse=False))
    return (group for _, group in groupby(ordered, sort_key))


def _ranked(made: Iterable[_Placed]) -> Iterator[Fields]:
    """Rows in the order of their ranks, the smallest first."""
    held = (encode_fields({_ROW: fields, _RANK: rank})[0] for rank, fields in made)
    return (decode_fields(row)[_ROW] for row in in_order(held, lambda fields: fields[_RANK], reverse=False))
