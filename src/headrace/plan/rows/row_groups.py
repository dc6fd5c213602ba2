"""Equal rows of a list together: `unique`, `uniquify`, `tally`, `group_by`, `pivot`, `collapse`; in the memory of one
group.

Rows are sorted by what makes them equal, on disk where they are many (row_order), and what is made of each group comes
in the order in which the groups were first met.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias, cast

from headrace.errors import ListError
from headrace.plan.rows.row_order import comparable, in_order, keyed_rows
from headrace.plan.sources.text_files import LONGEST_CELL, LONGEST_LINE
from headrace.survey.values import Fields, decode_fields, encode_fields, encode_value

_MOST_SEEN = 200_000
_LONGEST_KEY = 32
_MOST_NAMED = 3

_Placed: TypeAlias = tuple[Any, Fields]  # what is made of a group, and its rank among the others
_Group: TypeAlias = Iterator[tuple[int, Fields]]  # rows with equal keys, in their order, with their places


def unique_rows(rows: Iterable[Fields]) -> Iterator[Fields]:
    """Each row once, where it was first met; the order of its fields means nothing, and None is as no field.

    The first 200,000 different rows come as they are met: their keys are held in RAM. Others are sorted on disk.
    """
    rows, seen = iter(rows), set[bytes]()
    for fields in rows:
        if (key := _row_key(fields)) not in seen:
            seen.add(key)
            yield fields
            if len(seen) >= _MOST_SEEN:
                break
    others = (fields for fields in rows if _row_key(fields) not in seen)
    yield from _ranked(map(next, _groups(others, _row_key)))


def told_apart(rows: Iterable[Fields], field: str) -> Iterator[Fields]:
    """Each row; behind a value that earlier rows have stands how many of them: `item`, `item_1`, `item_2`."""

    def made(group: _Group) -> Iterator[_Placed]:
        for number, (place, row) in enumerate(group):
            apart = {field: f"{row[field]}_{number}"} if number and field in row else {}
            yield place, {**row, **apart}

    groups = _groups(rows, lambda fields: encode_value([field in fields, comparable(fields.get(field))]))
    return _ranked(placed for group in groups for placed in made(group))


def tallied(rows: Iterable[Fields], names: Sequence[str], count_name: str) -> Iterator[Fields]:
    """A row for each combination of these fields' values, with its count; the most frequent first."""

    def made(group: _Group) -> _Placed:
        place, first = next(group)
        count = 1 + sum(1 for _ in group)
        return (-count, place), {**first, count_name: count}

    return _ranked(map(made, _groups(_only(rows, names), _values_key(names))))


def aggregated(
    rows: Iterable[Fields], names: Sequence[str], variables: Sequence[str], function: Callable[..., Any]
) -> Iterator[Fields]:
    """A row for each combination of values, with the fields that the function makes of the lists of the variables."""

    def made(group: _Group) -> _Placed:
        place, first = next(group)
        columns: list[list[Any]] = [[first[name]] for name in variables]
        for _, row in group:
            for column, name in zip(columns, variables, strict=True):
                column.append(row[name])
        fields: Any = function(*columns)
        if not isinstance(fields, dict):
            raise ListError(f"The function of group_by returned {fields!r}.", fix='Return a dict, like {"mean": 3}.')
        return place, {**{name: first[name] for name in names}, **cast(Fields, fields)}

    return _ranked(map(made, _groups(_only(rows, [*names, *variables]), _values_key(names))))


def pivoted(rows: Iterable[Fields], names: Sequence[str], variable: str, value: str) -> Iterator[Fields]:
    """A row for each combination of values, with a field for each row of it: named by one field, of another's value."""

    def made(group: _Group) -> _Placed:
        place, first = next(group)
        pairs, size = list[tuple[str, Any]](), 0
        for row in _with_first(first, group):
            pairs.append((str(row[variable]), row[value]))
            size += len(pairs[-1][0]) + _length(row[value])
            if size > LONGEST_LINE:
                raise _too_long("pivot", "a row", LONGEST_LINE, names, first)
        fields = dict(pairs)
        if len(fields) < len(pairs) or not fields.keys().isdisjoint(names):
            raise _twice([*names, *(name for name, _ in pairs)], names, first)
        return place, {**{name: first[name] for name in names}, **fields}

    return _ranked(map(made, _groups(_only(rows, [*names, variable, value]), _values_key(names))))


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

    def made(group: _Group) -> _Placed:
        place, first = next(group)
        values, size = list[Any](), 0
        for row in _with_first(first, group):
            value = row[field] if change is None else change(row[field])
            values.append(value)
            size += _length(value) + len(separator or "")
            if size > LONGEST_CELL:
                raise _too_long("collapse", f"a value of {field!r}", LONGEST_CELL, names, first)
        count = {} if count_name is None else {count_name: len(values)}
        return place, {**first, field: values if separator is None else separator.join(values), **count}

    return _ranked(map(made, _groups(_only(rows, [*names, field]), _values_key(names))))


def _with_first(first: Fields, others: _Group) -> Iterator[Fields]:
    yield first
    for _, row in others:
        yield row


def _length(value: Any) -> int:
    """About how many bytes a value has as JSON."""
    return len(value) + 2 if type(value) is str else len(encode_value(value))


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


def _only(rows: Iterable[Fields], names: Sequence[str]) -> Iterator[Fields]:
    """Rows with these fields alone; None where a row lacks one."""
    return ({name: fields.get(name) for name in names} for fields in rows)


def _row_key(fields: Fields) -> bytes:
    """What is the same for equal rows: JSON, or its digest where that is long."""
    key = encode_fields({name: comparable(fields[name]) for name in sorted(fields) if fields[name] is not None})[0]
    return key if len(key) <= _LONGEST_KEY else hashlib.blake2b(key, digest_size=16).digest()


def _values_key(names: Sequence[str]) -> Callable[[Fields], bytes]:
    return lambda fields: encode_fields({name: comparable(fields.get(name)) for name in names})[0]


def _groups(rows: Iterable[Fields], key: Callable[[Fields], bytes]) -> Iterator[_Group]:
    """Rows with equal keys together, in the order they have. A group is read before the next."""
    for _, group in groupby(in_order(keyed_rows(rows, key)), itemgetter(0)):
        yield ((place, decode_fields(row)) for _, place, row in group)


def _ranked(made: Iterable[_Placed]) -> Iterator[Fields]:
    """Rows in the order of their ranks, the smallest first."""
    held = ((rank, number, encode_fields(fields)[0]) for number, (rank, fields) in enumerate(made))
    return (decode_fields(row) for _, _, row in in_order(held))
