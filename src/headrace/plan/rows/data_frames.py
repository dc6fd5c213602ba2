"""The rows of a data frame as dicts, one by one; neither pandas nor polars is imported for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from headrace.errors import ListError


def records(data: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """A data frame's rows as dicts; anything else is rows already."""
    frame = cast(Any, data)
    if hasattr(frame, "iter_rows"):  # polars
        return frame.iter_rows(named=True)
    if hasattr(frame, "itertuples"):  # pandas
        columns = [str(column) for column in frame.columns]
        for column in columns:
            if columns.count(column) > 1:
                raise ListError(f"The data frame has the column {column!r} twice.", fix="Give each a name of its own.")
        return (_without_gaps(columns, row) for row in frame.itertuples(index=False, name=None))
    return data


def is_data_frame(data: Any) -> bool:
    return hasattr(data, "itertuples") or hasattr(data, "iter_rows")


def _without_gaps(columns: list[str], row: tuple[Any, ...]) -> dict[str, Any]:
    """A row with None for missing values, which pandas writes as NaN or NA; neither equals itself."""
    return {column: value if _is_value(value) else None for column, value in zip(columns, row, strict=True)}


def _is_value(value: Any) -> bool:
    try:
        return bool(value == value)
    except (TypeError, ValueError):  # NA has no truth; an array has several, and is a value
        return type(value).__name__ not in ("NAType", "NaTType")
