"""Equal rows of a list together: `unique`, `uniquify`, `tally`, `group_by`, `pivot`, `collapse`; in the memory of one
group.

Rows are sorted by what makes them equal, on disk where they are many (row_order), and what is made of each group comes
in the order in which the groups were first met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeAlias, cast

from headrace.errors import ListError
from headrace.plan.rows.row_order import comparable, in_order
from headrace.plan.sources.text_files import LONGEST_CELL, LONGEST_LINE
from headrace.survey.values import Fields, decode_fields, encode_fields, encode_value

_ROW, _PLACE, _RANK = "row", "place", "rank"
_MOST_NAMED = 3


_Placed: TypeAlias = tuple[Any, Fields]  # what is made of a group, and its rank among the others


def unique_rows(rows: Iterable[Fields]) -> Iterator[Fields]:
    """Each row once, where it was first met; the order of its fields means nothing, and None is as no field."""

    def values(fields: Fields) -> list[Any]:
        return [[name, comparable(fields[name])] for name in sorted(fields) if fields[name] is not None]

    groups = _groups(rows, values)
    return _ranked((first[_PLACE], first[_ROW]) for first in map(next, groups))


def told_apart(rows: Iterable[Fields], field: str) -> Iterator[Fields]:
    """Each row; behind a value that earlier rows have stands how many of them: `item`, `item_1`, `item_2`."""

    def made(group: Iterator[Fields]) -> Iterator[_Placed]:
        for number, held in enumerate(group):
            row: Fields = held[_ROW]
            apart = {field: f"{row[field]}_{number}"} if number and field in row else {}
            yield held[_PLACE], {**row, **apart}

    groups = _groups(rows, lambda fields: [field in fields, comparable(fields.get(field))])
    return _ranked(placed for group in groups for placed in made(group))


def tallied(rows: Iterable[Fields], names: Sequence[str], count_name: str) -> Iterator[Fields]:
    """A row for each combination of these fields' values, with its count; the most frequent first."""
    return _ranked(_counted(group, names, count_name) for group in _groups(rows, _values(names)))


def aggregated(
    rows: Iterable[Fields], names: Sequence[str], variables: Sequence[str], function: Callable[..., Any]
) -> Iterator[Fields]:
    """A row for each combination of values, with the fields that the function makes of the lists of the variables."""
    return _ranked(_made(group, names, variables, function) for group in _groups(rows, _values(names)))


def pivoted(rows: Iterable[Fields], names: Sequence[str], variable: str, value: str) -> Iterator[Fields]:
    """A row for each combination of values, with a field for each row of it: named by one field, of another's value."""

    def made(group: Iterator[Fields]) -> _Placed:
        first, fields, size = None, list[tuple[str, Any]](), 0
        for held in group:
            first = first or held
            fields.append((str(held[_ROW].get(variable)), held[_ROW].get(value)))
            size += len(fields[-1][0]) + len(encode_value(fields[-1][1]))
            if size > LONGEST_LINE:
                raise _too_long("pivot", "a row", LONGEST_LINE, names, first[_ROW])
        assert first is not None, "a group has a row"
        made = dict(fields)
        if len(made) < len(fields) or not made.keys().isdisjoint(names):
            raise _twice([*names, *(name for name, _ in fields)], names, first[_ROW])
        return first[_PLACE], {**{name: first[_ROW].get(name) for name in names}, **made}

    return _ranked(map(made, _groups(rows, _values(names))))


def collapsed(
    rows: Iterable[Fields],
    names: Sequence[str],
    field: str,
    change: Callable[[Any], Any] | None,
    separator: str | None,
    count_name: str | None,
) -> Iterator[Fields]:
    """A row for each combination of the other fields, with a list of the field's values, each as `change` makes it; one
    text where a separator is given. It is no longer than a cell of a file may be.
    """

    def made(group: Iterator[Fields]) -> _Placed:
        first, values, size = None, list[Any](), 0
        for held in group:
            first = first or held
            value = held[_ROW].get(field)
            values.append(value if change is None else change(value))
            size += len(encode_value(values[-1])) + len(separator or "")
            if size > LONGEST_CELL:
                raise _too_long("collapse", f"a value of {field!r}", LONGEST_CELL, names, first[_ROW])
        assert first is not None, "a group has a row"
        count = {} if count_name is None else {count_name: len(values)}
        value = values if separator is None else separator.join(values)
        return first[_PLACE], {**{name: first[_ROW].get(name) for name in names}, field: value, **count}

    return _ranked(map(made, _groups(rows, _values(names))))


def _too_long(verb: str, what: str, most_bytes: int, names: Sequence[str], row: Fields) -> ListError:
    return ListError(
        f"{verb} would make {what} of more than {most_bytes // 1_000_000} MB{_of(names, row)}.",
        fix="Take fewer rows first, filter(...) or head(...), or keep another field that tells them apart.",
    )


def _twice(fields: list[str], names: Sequence[str], row: Fields) -> ListError:
    twice = next(name for place, name in enumerate(fields) if name in fields[:place])
    return ListError(
        f"pivot would make two values {twice[:60]!r}{_of(names, row)}.",
        fix="Name more fields in id_vars, or make one value of them first: group_by(...), unique().",
    )


def _of(names: Sequence[str], row: Fields) -> str:
    """Which row of those that a verb makes this is."""
    of = ", ".join(f"{name} {str(row.get(name))[:60]!r}" for name in names[:_MOST_NAMED])
    return f" in the row of {of}" if of else " in the row"


def _values(names: Sequence[str]) -> Callable[[Fields], list[Any]]:
    return lambda fields: [comparable(fields.get(name)) for name in names]


def _counted(group: Iterator[Fields], names: Sequence[str], count_name: str) -> _Placed:
    first = next(group)
    count = 1 + sum(1 for _ in group)
    return (-count, first[_PLACE]), {**{name: first[_ROW].get(name) for name in names}, count_name: count}


def _made(
    group: Iterator[Fields], names: Sequence[str], variables: Sequence[str], function: Callable[..., Any]
) -> _Placed:
    first, columns = None, [list[Any]() for _ in variables]
    for held in group:
        first = first or held
        for name, column in zip(variables, columns, strict=True):
            column.append(held[_ROW].get(name))
    assert first is not None, "a group has a row"
    made: Any = function(*columns)
    if not isinstance(made, dict):
        raise ListError(f"The function of group_by returned {made!r}.", fix='Return a dict, like {"mean": 3}.')
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
