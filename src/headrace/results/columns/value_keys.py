"""Values as keys in SQL: one form for all values that are equal, and what they are sorted by.

Equal is what Python finds equal, but a bool equals no number, also inside lists, and every NaN is the same: 1 and 1.0,
2**63 and its float, {"a": 1, "b": 2} and {"b": 2, "a": 1}. Does not cover: the forms in which values are stored
(survey.values, store.scratch), which tell these apart.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any, TypeAlias, cast

from headrace.survey.values import SqlValue, decode_value, encode_value

SortKeys: TypeAlias = tuple[SqlValue, str | None]

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_MOST_CACHED_BYTES = 500
_LENGTH_BYTES = 4


def value_key(value: Any) -> SqlValue:
    """The SQL value that equal values share, and no other."""
    kind = cast("type[object]", type(value))
    if kind is str or value is None or (kind is float and value == value):
        return value
    if kind is int:
        return value if _INT_MIN <= value <= _INT_MAX else _huge_key(value)
    return canonical_json(value)


def stored_key(stored: bytes) -> SqlValue:
    """The key of a value that is stored as tagged JSON."""
    return _cached_key(stored) if len(stored) <= _MOST_CACHED_BYTES else value_key(decode_value(stored))


@lru_cache(maxsize=4_096)  # a million answers of a question with options are a few different lists
def _cached_key(stored: bytes) -> SqlValue:
    return value_key(decode_value(stored))


def canonical_json(value: Any) -> bytes:
    """Tagged JSON that is the same for equal values."""
    return encode_value(_canonical(value), with_bytes=True)


def sort_keys(value: Any) -> SortKeys:
    """Two SQL values that sort as `sort_by` does: missing first, numbers, texts, then the rest by its JSON.

    The second one orders whole numbers beyond 64 bits among those that have the same float below them.
    """
    kind = cast("type[object]", type(value))
    if kind is str or value is None or kind is bool:
        return value, None
    if kind is int:
        return (value, None) if _INT_MIN <= value <= _INT_MAX else _huge_sort_keys(value)
    if kind is float:
        return (value if value == value else None), None
    return canonical_json(value), None


def stored_sort_keys(stored: SqlValue) -> SortKeys:
    """The same for a value as it is stored."""
    return sort_keys(decode_value(stored)) if isinstance(stored, bytes) else (stored, None)


def _huge_key(value: int) -> SqlValue:
    below = _float_below(value)
    return below if below == value else canonical_json(value)


def _huge_sort_keys(value: int) -> SortKeys:
    below = _float_below(value)
    if below == value:
        return below, None
    if math.isinf(below):  # a negative number below all floats but this one: the longer, the earlier
        return below, bytes(255 - each for each in _rising(-value)).hex()
    return below, _rising(value - int(below)).hex()


def _float_below(value: int) -> float:
    """The largest float that is not above a number: exact, where `float` would round."""
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return nearest if nearest <= value else math.nextafter(nearest, -math.inf)


def _rising(number: int) -> bytes:
    """A positive number as bytes that sort as it does."""
    length = (number.bit_length() + 7) // 8
    return length.to_bytes(_LENGTH_BYTES) + number.to_bytes(length)


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {name: _canonical(held[name]) for name in sorted(held)}
    return value
