"""The values that traits, scenario fields, options and answers may hold, and the two forms they are stored in.

Covers: JSON for fields (agents, scenarios, options), one SQL value for an answer, and the kinds a value has.
JSON has no NaN and SQLite no integer beyond 64 bits, so these are tagged: `{"$float": "nan"}`, `{"$int": "2..."}`;
bytes, where they are allowed, too: `{"$bytes": "base64"}`; and references to files: `{"$file": {...}}`.
Does not cover: which answers a question accepts (survey.questions).
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias, cast

import msgspec

from headrace.encoding import encode_with
from headrace.errors import InvalidInput
from headrace.expressions import ColumnKind
from headrace.survey.files.file_store import FileStore

Fields: TypeAlias = dict[str, Any]
SqlValue: TypeAlias = int | float | str | bytes | None

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_DEEPEST = 64
_ONLY_TEXT = {str}
_is_finite = math.isfinite
_FILE = b'{"$file":{'
# As a value, and not in data that looks like it, which stands behind "$dict".
_FILE_PATH = re.compile(rb'(?<=[:\[,])(?<!"\$dict":)\{"\$file":\{"path":"(?:[^"\\]|\\.)*",')
_encode_json = msgspec.json.Encoder().encode
_encode_large = encode_with(msgspec.json.Encoder())
_decode_json = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_objects = msgspec.json.Decoder(dict[str, Any]).decode_lines


class UnusableValue(InvalidInput):
    """A value that cannot be stored. The caller adds which agent, scenario or question held it."""


class Remark(Enum):
    """Whether encoding a row of fields had to tag or repair anything."""

    PLAIN = "plain"  # only None, booleans, text, and numbers that JSON and SQLite hold as they are
    TAGGED = "tagged"
    REPAIRED = "repaired"  # text had unpaired surrogates, which are replaced


def encode_fields(fields: Mapping[str, object]) -> tuple[bytes, Remark]:
    """One row of fields as JSON."""
    plain = _are_plain(fields.values()) and {*map(type, fields)} <= _ONLY_TEXT
    tagged = fields if plain else {_field_name(name): _tag(value, str(name), 0) for name, value in fields.items()}
    try:
        return _encode_json(tagged), Remark.PLAIN if plain else Remark.TAGGED
    except UnicodeEncodeError:
        return _encode_json(_repair(dict(tagged))), Remark.REPAIRED


def encode_plain_fields(fields: Mapping[str, object]) -> bytes:
    """One row as JSON, where its values are known to be None, text without surrogates, and numbers of 64 bits."""
    return _encode_json(fields)


def decode_fields(encoded: bytes | str) -> Fields:
    """The reverse of `encode_fields`."""
    fields = _decode_object(encoded)
    return {name: _untag(value) for name, value in fields.items()} if _is_marked(encoded) else fields


def without_paths(rows: bytes) -> bytes:
    """Rows as a plan's identity counts them: a file is its content, wherever it lies."""
    return _FILE_PATH.sub(_FILE, rows) if _FILE in rows else rows


def check_fields(rows: list[bytes]) -> None:
    """Raises where one of these rows cannot be decoded. Usual rows are decoded in one call, others by themselves."""
    joined = b"\n".join(rows)
    # A line break between braces is where a row ends: no JSON has it inside a value.
    are_lines = joined.count(b"}\n{") == joined.count(b"\n") == len(rows) - 1
    if _is_marked(joined) or not are_lines or len(_decode_objects(joined)) != len(rows):
        for row in rows:
            decode_fields(row)


def encode_value(value: object, *, with_bytes: bool = False, is_exact: bool = False) -> bytes:
    """Any one value as tagged JSON; options and question settings are kept this way.

    `with_bytes` for what agents keep: no answer, trait or option is bytes. With `is_exact` a text that is not Unicode
    is refused, else it is repaired.
    """
    tagged = _tag(value, "value", 0, with_bytes=with_bytes)
    try:
        return _encode_large(tagged)
    except UnicodeEncodeError:
        if is_exact:
            raise UnusableValue(
                "a text in it is not Unicode.", fix="Remove the unpaired surrogate: it is half of a letter."
            ) from None
        return _encode_large(_repair(tagged))


def decode_value(encoded: bytes | str) -> Any:
    value = _decode_json(encoded)
    return _untag(value) if _is_marked(encoded) else value


def _is_marked(encoded: bytes | str) -> bool:
    """Whether the value may hold tagged JSON."""
    return '"$' in encoded if isinstance(encoded, str) else b'"$' in encoded


def to_sql(value: object, *, as_bool: bool) -> SqlValue:
    """An answer as one SQL value: plain where SQLite has it, tagged JSON in a BLOB where it does not.

    A BLOB can never be mistaken for an answer's own text. A bool is 0 or 1 only in a column of bools:
    elsewhere it would look like the number.
    """
    kind = type(value)
    if kind is str or value is None:
        return cast("str | None", value)
    if isinstance(value, str):
        return str.__str__(value)  # a BLOB would be no text to SQL
    if kind is int and _INT_MIN <= cast(int, value) <= _INT_MAX:
        return cast(int, value)
    if kind is float and not math.isnan(cast(float, value)):
        return cast(float, value)
    return int(value) if as_bool and isinstance(value, bool) else encode_value(value)


def from_sql(stored: SqlValue, *, as_bool: bool) -> Any:
    if isinstance(stored, bytes):
        return decode_value(stored)
    return bool(stored) if as_bool and isinstance(stored, int) else stored


def kind_of(value: object) -> ColumnKind:
    """The kind of column that this value makes, for expressions in SQL."""
    match value:
        case None:
            return ColumnKind.NULL
        case bool():
            return ColumnKind.BOOL
        case int():
            return ColumnKind.INT if _INT_MIN <= value <= _INT_MAX else ColumnKind.TAGGED
        case float():
            return ColumnKind.REAL if math.isfinite(value) else ColumnKind.TAGGED
        case str():
            return ColumnKind.TEXT
        case _:
            return ColumnKind.JSON


def repair_text(text: str) -> tuple[str, bool]:
    """Replace unpaired surrogates, which no file can hold; tells whether there were any."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), True
    return text, False


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return _INT_MIN <= cast(int, value) <= _INT_MAX
    return kind is float and math.isfinite(cast(float, value))


def _are_plain(values: Iterable[object]) -> bool:
    """`_is_plain` of all; without a call for each value, since every row of every list comes here."""
    for value in values:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            continue
        if kind is int:
            if not _INT_MIN <= cast(int, value) <= _INT_MAX:
                return False
        elif kind is not float or not _is_finite(cast(float, value)):
            return False
    return True


def _field_name(name: object) -> str:
    if not isinstance(name, str):
        raise UnusableValue(f"The field name {name!r} is not text.", fix="Use text for field names.")
    return name


def _tag(value: object, name: str, depth: int, *, with_bytes: bool = False) -> Any:
    if _is_plain(value):
        return value
    if depth > _DEEPEST:
        raise UnusableValue(
            f"{name!r} is nested deeper than {_DEEPEST} levels.", fix="Flatten it, or store it as text."
        )
    match value:
        case str():
            return str.__str__(value)  # of a subclass, the text itself
        case numbers.Integral():
            number = int(value)
            return number if _INT_MIN <= number <= _INT_MAX else {"$int": _digits(number, name)}
        case numbers.Real():
            number = float(value)
            return number if math.isfinite(number) else {"$float": str(number)}
        case list() | tuple():
            return [_tag(item, name, depth + 1, with_bytes=with_bytes) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[object, object]", value).items()
            inner = {_field_name(key): _tag(item, name, depth + 1, with_bytes=with_bytes) for key, item in items}
            return {"$dict": inner} if any(key.startswith("$") for key in inner) else inner
        case bytes() | bytearray() if with_bytes:
            return {"$bytes": value}  # which JSON's encoder writes as base64
        case FileStore():
            return {"$file": value.to_stored()}
        case _:
            raise UnusableValue(
                f"{name!r} holds a {type(value).__name__}, which cannot be stored.",
                fix="Use None, booleans, numbers, text, files (FileStore), and lists or dicts of these; write dates as"
                " text.",
            )


def _digits(number: int, name: str) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write thousands of digits
        raise UnusableValue(f"{name!r} holds a number too long to store.", fix="Store it as text.") from None


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, Any]", value)
    if len(held) == 1:
        ((key, inner),) = held.items()
        match key:
            case "$int":
                return int(inner)
            case "$float":
                return float(inner)
            case "$bytes":
                return msgspec.convert(inner, bytes)  # four times as fast as base64
            case "$file":
                return FileStore.from_stored(inner)
            case "$dict":
                return {name: _untag(item) for name, item in inner.items()}
            case _:
                pass
    return {name: _untag(item) for name, item in held.items()}


def _repair(value: Any) -> Any:
    if isinstance(value, str):
        return repair_text(value)[0]
    if isinstance(value, list):
        return [_repair(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {repair_text(name)[0]: _repair(item) for name, item in cast("dict[str, Any]", value).items()}
    return value
