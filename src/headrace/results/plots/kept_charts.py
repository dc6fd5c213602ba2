"""Charts made of kept counts, and for each bar the filter that chooses its interviews, in the language of
filters (expressions).

Does not cover: counting (kept_counts), or drawing (charts).
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.charts.chart_data import MOST_BARS, BarChart, BarKind, BarLabel
from headrace.charts.number_bins import NumberBins, whole_bins
from headrace.expressions import ColumnKind
from headrace.results.columns.question_parts import FAILED_PART
from headrace.results.columns.result_column import Group, ResultColumn, part_column
from headrace.results.plots.axes import (
    NONE,
    NOT_ASKED,
    NOT_FINITE,
    OTHER,
    CategoryAxis,
    Key,
    LengthAxis,
    NumberAxis,
    PlotAxis,
    key_of,
)
from headrace.results.plots.counted_columns import INFINITE, ColumnSplit, CountedAs, CountedColumn
from headrace.results.plots.counting import PlaceCounts
from headrace.results.plots.distributions import BarCounts, chart_from, counts_by_bar, groups_of
from headrace.results.plots.kept_column import KeptColumn
from headrace.results.plots.plotted_column import is_of_question
from headrace.results.plots.range_counting import FAILED, MISSING, ROWS, UNASKED, Bar, RangeCounts

_MOST_INTERVALS = 24
_MOST_VALUES = MOST_BARS - 4


class KeptChart(msgspec.Struct, frozen=True):
    """`filters` choose the interviews of each bar, by panel; empty where the language has no words for them."""

    chart: BarChart
    filters: list[list[str]]


class _PlacedBars(msgspec.Struct, frozen=True):
    """An axis, and the place on it of what was counted."""

    axis: PlotAxis
    values: dict[Key, int] = msgspec.field(default_factory=dict[Key, int])
    ratio: int = 1  # fine intervals in one of the axis
    first: int = 0

    def place(self, bar: Bar) -> int:
        match bar:
            case int():
                if isinstance(self.axis, CategoryAxis):
                    return self.axis.places(bar)[0]
                assert isinstance(self.axis, (NumberAxis, LengthAxis))
                return self.axis.bins.clipped(bar // self.ratio - self.first)
            case str():
                return {MISSING: NONE, FAILED: NONE, UNASKED: NOT_ASKED, INFINITE: NOT_FINITE}.get(bar, OTHER)
            case _:
                return self.values.get(bar, OTHER)


def kept_chart(kept: KeptColumn, name: str, by: str | None, condition: str) -> KeptChart:
    """The chart of what was counted so far, of interviews that meet `condition`."""
    counted, split, counts = kept.counted, kept.split, kept.counts()
    placed = _placed(counted, counts)
    found = PlaceCounts()
    for (bar, group), count in counts.items():
        rest = () if split is None else (group,)
        if bar == ROWS:
            found.rows[rest] += count
        else:
            (found.failed if bar == FAILED else found.done)[(placed.place(bar), *rest)] += count
    groups: list[tuple[str, int | None]] = [("all", None)] if split is None else groups_of(split.axis, found)
    bars = counts_by_bar(placed.axis, found, groups, _missing_labels(counted))
    chart = chart_from(name, placed.axis, by, bars, counted.samples)
    return KeptChart(chart, _filters(counted, split, placed, bars, groups, condition))


def _missing_labels(counted: CountedColumn) -> tuple[str, str]:
    """What to call values that are missing although nothing failed, and those of interviews of which another question
    failed: only an interview's detail tells whether such a question was skipped or not asked.
    """
    return ("skipped", "skipped or not asked") if counted.may_be_skipped else ("none", "not asked")


# --- places


def _placed(counted: CountedColumn, counts: RangeCounts) -> _PlacedBars:
    if counted.is_by_number:
        return _number_axis(counted, sorted({bar for bar, _ in counts if isinstance(bar, int)}))
    totals: dict[Key, int] = {}
    for (bar, _), count in counts.items():
        if isinstance(bar, tuple):
            totals[bar] = totals.get(bar, 0) + count
    shown = {key_of(option): option for option in counted.options[:_MOST_VALUES]}
    for key in sorted(totals, key=lambda key: (-totals[key], str(key))):
        if len(shown) < _MOST_VALUES:
            shown.setdefault(key, _value_of(key))
    values = list(shown.values())
    if not counted.options and all(isinstance(value, (int, float)) for value in values):
        values.sort(key=lambda value: (math.isnan(value), value))
    others = sum(key not in shown for key in totals)
    has_others = any(bar == "other" for bar, _ in counts)
    axis = CategoryAxis(
        values=tuple(values),
        others=None if has_others else others,
        by_items=counted.counted_as is CountedAs.ITEMS,
    )
    return _PlacedBars(axis, {key_of(value): place for place, value in enumerate(values)})


def _number_axis(counted: CountedColumn, intervals: list[int]) -> _PlacedBars:
    is_length = counted.counted_as is CountedAs.LENGTHS
    make = LengthAxis if is_length else NumberAxis
    is_whole = counted.power >= 0 and (is_length or ColumnKind.REAL not in (counted.kinds or {ColumnKind.REAL}))
    if not intervals:
        return _PlacedBars(CategoryAxis(values=(), others=0))
    low, high = intervals[0], intervals[-1]
    if low == high and counted.power == 0 and is_whole and not is_length:
        return _PlacedBars(CategoryAxis(values=(low,), others=0))
    fine = whole_bins(low, high, _MOST_INTERVALS)  # in fine intervals, of which bars are sums
    width = int(fine.width)
    first = int(fine.first)
    bins = NumberBins(first, width * 10**counted.power, fine.count)
    if not is_whole:
        bins = NumberBins(float(first), _decimal(width, counted.power), fine.count)
    return _PlacedBars(make(bins=bins), ratio=width, first=first)


def _decimal(number: int, power: int) -> float:
    """number * 10**power, as one would write it."""
    return float(f"{number}e{power}")


def _value_of(key: Key) -> Any:
    match key:
        case ("json", str() as text):
            return json.loads(text)
        case ("nan", _):
            return math.nan
        case (_, value):
            return value


# --- filters


def _filters(
    counted: CountedColumn,
    split: ColumnSplit | None,
    placed: _PlacedBars,
    bars: BarCounts,
    groups: Sequence[tuple[str, int | None]],
    condition: str,
) -> list[list[str]]:
    of_bars = [_bar_filter(counted, placed.axis, label, place) for label, place in bars.bars]
    found: list[list[str]] = []
    for _, place in groups:
        of_group = None if split is None or place is None else _place_filter(split.column, split.axis, place)
        is_known = split is None or of_group is not None
        found.append([_joined(condition, of_group, each) if each is not None and is_known else "" for each in of_bars])
    return found


def _joined(*conditions: str | None) -> str:
    written = [each for each in conditions if each]
    return written[0] if len(written) == 1 else " and ".join(f"({each})" for each in written)


def _bar_filter(counted: CountedColumn, axis: PlotAxis, label: BarLabel, place: int) -> str | None:
    name = _name(counted.column)
    if place in (NONE, NOT_ASKED) and is_of_question(counted.column):
        return _missing_filter(counted.column, label, place)
    if counted.counted_as is CountedAs.ITEMS and isinstance(axis, CategoryAxis) and place >= 0:
        item = _literal(axis.values[place])
        return None if item is None else f"{item} in {name}"
    return _place_filter(counted.column, axis, place)


def _missing_filter(column: ResultColumn, label: BarLabel, place: int) -> str | None:
    if column.group is not Group.ANSWER:
        return None
    has_failed = failed_filter(column.name, column.position)
    if label.kind is BarKind.FAILED:
        return has_failed
    is_missing = f"{_name(column)} is None"
    rest = "not interview.failed" if place == NONE else f"interview.failed and not {has_failed}"
    return f"{is_missing} and {rest}"


def failed_filter(question: str, position: int) -> str:
    """The filter of the interviews of which this question failed."""
    return _name(part_column(FAILED_PART, question, position))


def _place_filter(column: ResultColumn, axis: PlotAxis, place: int) -> str | None:
    """The condition of a place; None where there is none in the language."""
    name = _name(column)
    if place == NONE:
        return f"{name} is None"
    if place < 0:
        return None
    if isinstance(axis, CategoryAxis):
        value = _literal(axis.values[place])
        return None if value is None else f"{name} == {value}"
    assert isinstance(axis, (NumberAxis, LengthAxis))
    bins = axis.bins
    number = f"len({name})" if isinstance(axis, LengthAxis) else name
    if bins.is_whole and bins.width == 1:
        return f"{number} == {bins.edge(place)}"
    low, high = _figure(bins.edge(place)), _figure(bins.edge(place + 1))
    return f"{number} >= {low} and {number} < {high}"


def _figure(edge: float) -> str:
    return str(edge) if isinstance(edge, int) else f"{edge:.12g}"


def _name(column: ResultColumn) -> str:
    prefix, name = column.prefix, column.full_name.removeprefix(f"{column.prefix}.")
    parts = name.split(".")
    is_plain = all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
    return f"{prefix}.{name}" if is_plain else f"{prefix}[{json.dumps(name, ensure_ascii=False)}]"


def _literal(value: Any) -> str | None:
    if isinstance(value, str):
        written = json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        return written.replace("{{", "{\\x7b")  # in quotes, two braces would be taken for a misplaced name
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    return None
