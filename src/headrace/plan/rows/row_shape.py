"""Verbs that change which fields rows have, or how many rows there are. Each yields the new rows one by one.

Covers: expanding lists into rows, joining and splitting fields, filling gaps. Does not cover: other orders (row_order).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

from headrace.errors import ListError
from headrace.survey.values import Fields

_ENDED = object()
_EMPTY_WORDS = ("nan", "none", "null")


def expanded(rows: Iterable[Fields], names: Sequence[str], *, number_field: bool) -> Iterator[Fields]:
    """One row for each item of the lists in these fields, taken side by side; what is no list is a list of one."""
    for position, fields in enumerate(rows):
        columns = [_as_list(fields.get(name)) for name in names]
        if len({len(column) for column in columns}) > 1:
            lengths = ", ".join(f"{name!r} has {len(column)}" for name, column in zip(names, columns, strict=True))
            raise ListError(f"Row {position} cannot be expanded: {lengths} items.", fix="Expand one field at a time.")
        for number, values in enumerate(zip(*columns, strict=True), 1):
            numbers = {f"{name}_number": number for name in names} if number_field else {}
            yield {**fields, **dict(zip(names, values, strict=True)), **numbers}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def with_values(rows: Iterable[Fields], name: str, values: Iterable[Any], what: str) -> Iterator[Fields]:
    """Each row with its value of a new field; as many values as rows."""
    for fields, value in zip_longest(rows, values, fillvalue=_ENDED):
        if fields is _ENDED or value is _ENDED:
            fewer, more = ("rows", "values") if fields is _ENDED else ("values", "rows")
            raise ListError(f"{name!r}: there are fewer {fewer} than {more}.", fix=f"Give one value for each {what}.")
        yield {**cast(Fields, fields), name: value}


def transformed(rows: Iterable[Fields], name: str, function: Callable[[Any], Any], new: str) -> Iterator[Fields]:
    return ({**fields, new: function(fields.get(name))} for fields in rows)


def unpacked_dicts(rows: Iterable[Fields], name: str, prefix: str, *, drop_field: bool) -> Iterator[Fields]:
    """Each row with the items of the dict in this field as fields of their own."""
    for position, fields in enumerate(rows):
        held = fields.get(name)
        if not isinstance(held, dict):
            raise ListError(f"Row {position}: {name!r} holds {held!r}, which is no dict.", fix="Name another field.")
        items = cast("dict[str, Any]", held).items()
        kept = {key: value for key, value in fields.items() if key != name or not drop_field}
        yield {**kept, **{f"{prefix}{key}": value for key, value in items}}


def unpacked_lists(rows: Iterable[Fields], name: str, new_names: Sequence[str], *, keep: bool) -> Iterator[Fields]:
    """Each row with the items of the list in this field as fields of their own."""
    for position, fields in enumerate(rows):
        values = fields.get(name)
        if not isinstance(values, list) or len(cast("list[Any]", values)) < len(new_names):
            raise ListError(
                f"Row {position}: {name!r} is no list of {len(new_names)} items.", fix="Give as many new names."
            )
        kept = {key: value for key, value in fields.items() if key != name or keep}
        yield {**kept, **dict(zip(new_names, cast("list[Any]", values), strict=False))}


def concatenated(
    rows: Iterable[Fields], names: Sequence[str], new: str, join: Callable[[list[Any]], Any]
) -> Iterator[Fields]:
    """Each row with one field in place of several; `join` makes its value of theirs."""
    for fields in rows:
        values = [fields[name] for name in names if name in fields]
        yield {**{name: value for name, value in fields.items() if name not in names}, new: join(values)}


def filled(rows: Iterable[Fields], value: Any) -> Iterator[Fields]:
    """Each row with a value where it has none: None, NaN, an empty text, or a word for these."""
    for fields in rows:
        yield {name: value if held == "" or is_missing(held) else held for name, held in fields.items()}


def without_gaps(rows: Iterable[Fields], names: Sequence[str] | None) -> Iterator[Fields]:
    """The rows that miss none of these fields' values; of no field, where none is named."""
    for fields in rows:
        if not any(is_missing(value) for name, value in fields.items() if names is None or name in names):
            yield fields


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() in _EMPTY_WORDS
    return value is None or (isinstance(value, float) and math.isnan(value))


def with_numbers(rows: Iterable[Fields]) -> Iterator[Fields]:
    """Each row with texts that are numbers as numbers."""
    return ({name: _number(value) for name, value in fields.items()} for fields in rows)


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    for make in (int, float):
        try:
            return make(value)
        except ValueError:
            pass
    return value


def replaced(rows: Iterable[Fields], replacements: Mapping[str, Any]) -> Iterator[Fields]:
    """Each row with values replaced by what stands for their text."""
    return ({name: replacements.get(str(value), value) for name, value in fields.items()} for fields in rows)


def unpivoted(rows: Iterable[Fields], ids: Sequence[str], names: Sequence[str]) -> Iterator[Fields]:
    """One row for each named field of each row: its name as `variable`, its value as `value`."""
    for fields in rows:
        kept = {name: fields.get(name) for name in ids}
        for name in names:
            yield {**kept, "variable": name, "value": fields.get(name)}
