"""Turns the values that other libraries give into values that a row may hold.

    None, NaN of pandas, NaT, NA        None
    dates, times, timestamps            text as ISO 8601 writes it: 2026-05-12, 09:30:00, 2026-05-12T09:30:00+02:00
    durations                           seconds
    decimal numbers                     an integer where it is one; a number where its digits fit; else text
    UUIDs                               text
    numpy's numbers and arrays          numbers and lists
    lists, tuples, sets, dicts          the same of what they hold

Does not cover: what JSON lacks, such as NaN and large integers (survey.values tags them), or bytes, which no row holds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

_PLAIN = frozenset({str, int, bool, float, type(None)})
_EXACT_DIGITS = 15  # that a float gives back as they were


def plain_value(value: Any) -> Any:
    """A value as a row holds it; what is not known here stays as it is, and is refused where it is stored."""
    if type(value) in _PLAIN:
        return value
    match value:
        case dt.datetime() | dt.date() | dt.time():
            return None if value != value else value.isoformat()  # NaT is a datetime to pandas
        case dt.timedelta():
            return None if value != value else value.total_seconds()
        case Decimal():
            return plain_decimal(value)
        case UUID():
            return str(value)
        case list() | tuple() | set() | frozenset():
            return [plain_value(item) for item in cast("list[Any]", value)]
        case Mapping():
            return {str(name): plain_value(item) for name, item in cast("Mapping[Any, Any]", value).items()}
        case _:
            return _of_numpy_or_pandas(value)


def plain_decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return float(value)
    sign_and_digits = value.as_tuple()
    if isinstance(sign_and_digits.exponent, int) and sign_and_digits.exponent >= 0:
        return int(value)
    return float(value) if len(sign_and_digits.digits) <= _EXACT_DIGITS else str(value)


def _of_numpy_or_pandas(value: Any) -> Any:
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    to_list = getattr(value, "tolist", None)  # of numpy's numbers and arrays
    return plain_value(to_list()) if callable(to_list) and type(value).__module__.startswith("numpy") else value
