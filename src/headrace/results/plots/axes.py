"""Axes: where a value stands in a chart. Each axis has a bounded number of places, and says how SQL finds the place.

Numbers below 0 are places without a bar of their own among the values: NONE, OTHER, NOT_FINITE. Does not cover: which
axis suits a column (plotted_column).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from headrace.charts.chart_data import LONGEST_LABEL
from headrace.charts.number_bins import NumberBins
from headrace.display import cell_text
from headrace.expressions import Sql
from headrace.expressions.meaning import fits_64_bits
from headrace.results.export.json_values import to_json

NONE, OTHER, NOT_FINITE, NOT_ASKED = -1, -2, -3, -4
_LARGEST = sys.float_info.max
_NOTHING: tuple[()] = ()  # the item of a list without items

Key: TypeAlias = tuple[str, Any]


class PlotAxis(Protocol):
    @property
    def labels(self) -> list[str]:
        """The labels of the places from 0 on."""
        ...

    @property
    def others(self) -> int | None:
        """How many values have no place of their own; None where that is not known."""
        ...

    def places(self, value: Any) -> Sequence[int]:
        """Where a value stands; a list stands in several places."""
        ...

    def in_sql(self, column: str) -> Sql | None:
        """What SQL groups by; None where only Python can tell."""
        ...

    def place_of(self, grouped: Any) -> int:
        """The place of what SQL has grouped by."""
        ...


@dataclass(frozen=True, kw_only=True)
class CategoryAxis:
    """A place for each of some values. With `by_items`, the items of lists stand each in its place."""

    values: tuple[Any, ...]
    others: int | None = None
    by_items: bool = False
    as_bool: bool = False

    @property
    def labels(self) -> list[str]:
        return [label_of(value) for value in self.values]

    @cached_property
    def _by_key(self) -> dict[Key, int]:
        return {key_of(value): place for place, value in enumerate(self.values)}

    def places(self, value: Any) -> Sequence[int]:
        if self.by_items and isinstance(value, list):
            return [self._place(item) for item in items_of(value)]
        return (self._place(value),)

    def _place(self, value: Any) -> int:
        return NONE if value is None else self._by_key.get(key_of(value), OTHER)

    def in_sql(self, column: str) -> Sql | None:
        return None if self.by_items else Sql(column, ())

    def place_of(self, grouped: Any) -> int:
        return self._place(bool(grouped) if self.as_bool and grouped is not None else grouped)


class NumberAxis(msgspec.Struct, frozen=True, kw_only=True):
    """A place for each interval of numbers."""

    bins: NumberBins
    others: int | None = None

    @property
    def labels(self) -> list[str]:
        return [self.bins.label(place) for place in range(self.bins.count)]

    def places(self, value: Any) -> Sequence[int]:
        if value is None:
            return (NONE,)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return (OTHER,)
        return (self.bins.place(value) if is_finite(value) else NOT_FINITE,)

    def in_sql(self, column: str) -> Sql | None:
        bins = self.bins
        if bins.is_whole:
            low, width = int(bins.low), int(bins.width)
            is_exact = fits_64_bits(low) and fits_64_bits(bins.count * width)  # beyond, SQLite takes floats
            return Sql(f"({column} - ?) / ?", (low, width)) if is_exact else None
        return Sql(
            f"CASE WHEN {column} BETWEEN ? AND ? THEN CAST({column} / ? - ? AS INTEGER)"
            f" WHEN {column} IS NOT NULL THEN {NOT_FINITE} END",
            (-_LARGEST, _LARGEST, bins.width, bins.first),
        )

    def place_of(self, grouped: Any) -> int:
        if grouped is None or grouped == NOT_FINITE:
            return NONE if grouped is None else NOT_FINITE
        return self.bins.clipped(int(grouped))


class LengthAxis(msgspec.Struct, frozen=True, kw_only=True):
    """A place for each interval of texts' lengths: their letters, as SQLite counts them, up to a NUL."""

    bins: NumberBins
    others: int | None = None

    @property
    def labels(self) -> list[str]:
        return NumberAxis(bins=self.bins).labels

    def places(self, value: Any) -> Sequence[int]:
        if value is None:
            return (NONE,)
        return (self.bins.place(text_length(value)) if isinstance(value, str) else OTHER,)

    def in_sql(self, column: str) -> Sql | None:
        return NumberAxis(bins=self.bins).in_sql(f"length({column})")

    def place_of(self, grouped: Any) -> int:
        return NumberAxis(bins=self.bins).place_of(grouped)


def text_length(text: str) -> int:
    return len(text.partition("\0")[0])


def is_finite(value: float) -> bool:
    """Whether a number is finite and within what a float holds."""
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def items_of(value: Any) -> Iterable[Any]:
    """The items of a list, or the value itself."""
    if not isinstance(value, list):
        return (value,)
    return cast("list[Any]", value) or (_NOTHING,)


def key_of(value: Any) -> Key:
    """What tells values apart: True is not 1, and a list or dict is its JSON."""
    if isinstance(value, (list, dict)):
        return "json", to_json(value)
    if isinstance(value, float) and math.isnan(value):
        return "nan", None
    return "bool" if isinstance(value, bool) else "", value


def label_of(value: Any) -> str:
    if value == _NOTHING and isinstance(value, tuple):
        return "(nothing)"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as in lists, which are JSON
    return cell_text(value, LONGEST_LABEL) or '""'
