"""Verbs that change which fields rows have, or how many rows there are. Each yields the new rows one by one.

Covers: expanding lists into rows, joining and splitting fields, filling gaps. Does not cover: other orders (row_order).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from headrace.errors import ListError
from headrace.survey.files.file_store import FileStore
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


class ChunkSize(NamedTuple):
    """How long the parts of a text are, in words or in lines."""

    pieces: int
    is_lines: bool

    @classmethod
    def checked(cls, num_words: int | None, num_lines: int | None) -> ChunkSize:
        given = [(count, count is num_lines) for count in (num_words, num_lines) if count is not None]
        if len(given) != 1:
            raise ListError("A text is cut by words or by lines.", fix="Give num_words= or num_lines=, one of them.")
        count = given[0][0]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"A text cannot be cut into parts of {count!r}.", fix="Give a whole number from 1 on.")
        return cls(count, num_lines is not None)

    def parts(self, text: str) -> Iterator[str]:
        pieces, between = (text.split("\n"), "\n") if self.is_lines else (text.split(), " ")
        return (between.join(pieces[first : first + self.pieces]) for first in range(0, len(pieces), self.pieces))


class Original(Enum):
    """What each part of a text keeps of the whole."""

    NOTHING = "nothing"
    WHOLE = "whole"
    HASH = "hash"

    @classmethod
    def of(cls, *, is_kept: bool, as_hash: bool) -> Original:
        return cls.NOTHING if not is_kept else cls.HASH if as_hash else cls.WHOLE


def chunked(rows: Iterable[Fields], name: str, size: ChunkSize, original: Original) -> Iterator[Fields]:
    """One row for each part of the text in a field, with the part's number and length; a file's text is cut too."""
    for position, fields in enumerate(rows):
        text = fields.get(name)
        text = text.text if isinstance(text, FileStore) else text
        if not isinstance(text, str):
            raise ListError(
                f"Row {position}: {name!r} is no text.", fix="Filter such rows out, or choose a field of texts."
            )
        whole: Fields = {}
        if original is not Original.NOTHING:
            is_hash = original is Original.HASH
            whole[f"{name}_original"] = (
                hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() if is_hash else text
            )
        for number, part in enumerate(size.parts(text)):
            counts = {f"{name}_char_count": len(part), f"{name}_word_count": len(part.split())}
            yield {**fields, name: part, f"{name}_chunk": number, **counts, **whole}


def zipped(rows: Iterable[Fields], keys: str, values: str, new: str) -> Iterator[Fields]:
    """Each row with a dict in a new field, of the items of two lists."""
    for position, fields in enumerate(rows):
        pair = fields.get(keys), fields.get(values)
        if not all(isinstance(each, list) for each in pair):
            raise ListError(f"Row {position}: {keys!r} and {values!r} are no lists.", fix="Zip two fields of lists.")
        names, held = cast("tuple[list[Any], list[Any]]", pair)
        yield {**fields, new: dict(zip(map(str, names), held, strict=False))}
