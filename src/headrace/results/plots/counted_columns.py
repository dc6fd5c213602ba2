"""How a column is counted range by range, so that counts of ranges can be added up: its values, the items of its lists,
fine intervals of its numbers, or lengths of its texts.

    options of a choice      by value, in their order; lists by item
    numbers                  by intervals of a power of ten, far finer than the bars: any bars are sums of them
    many different texts     by length
    other lists and values   by item and by value

What a column holds is seen in some rows from all over the file. Does not cover: counting (range_counting), or what is
drawn (kept_charts).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from enum import Enum
from typing import Any

import msgspec

from headrace.charts.number_bins import real_bins, whole_bins
from headrace.display import cell_text
from headrace.expressions import ColumnKind, Sql
from headrace.results.columns.records import Record, getter, projection_of
from headrace.results.columns.result_column import ResultColumn
from headrace.results.plots.axes import CategoryAxis, Key, NumberAxis, is_finite, key_of, text_length
from headrace.results.plots.plotted_column import is_of_question, options_of
from headrace.results.reading.conditions import Conditions
from headrace.results.reading.file_view import FileView
from headrace.results.reading.stages import OpenView
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import TRUE, fetch, rows_between
from headrace.store.run_file.row_check import decoding_row

MOST_KEYS = 2_000  # of a column
INFINITE = "infinite"  # what SQL gives for a number that is not finite
_SPOTS, _ROWS_AT_SPOT, _ORDINALS_AT_SPOT = 16, 64, 20_000
_FEW_TEXTS, _FINE_INTERVALS = 40, 1_000
_MOST_SAMPLES, _LONGEST_SAMPLE = 5, 200
_LARGEST = sys.float_info.max
_INTS = frozenset({ColumnKind.NULL, ColumnKind.INT})
_NUMBERS = frozenset({ColumnKind.INT, ColumnKind.REAL})
_ENCODED = frozenset({ColumnKind.JSON, ColumnKind.TAGGED})


class CountedAs(Enum):
    VALUES = "values"
    ITEMS = "items"
    NUMBERS = "numbers"
    LENGTHS = "lengths"


class CountedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds` are those that the column had when this was decided. `power` is that of ten whose intervals are counted,
    `options` have a bar each, `samples` are some of its texts. `may_be_skipped` where a rule of the survey may do that.
    """

    column: ResultColumn
    counted_as: CountedAs
    kinds: frozenset[ColumnKind] | None
    power: int = 0
    options: tuple[Any, ...] = ()
    samples: tuple[str, ...] = ()
    may_be_skipped: bool = False

    @property
    def is_by_number(self) -> bool:
        return self.counted_as in (CountedAs.NUMBERS, CountedAs.LENGTHS)

    def interval_of(self, number: float) -> int:
        """The fine interval of a finite number: the same as `in_sql` gives."""
        if isinstance(number, int) and self.power >= 0:
            return number // 10**self.power
        # Decimal fractions that stand at an edge are just below it as often as not: 1.15 * 100 is 114.99999999999999.
        return math.floor(round(number * 10.0**-self.power, 6))

    def number_of(self, value: Any) -> float | None:
        """What is counted of a value; None where it has no number."""
        if self.counted_as is CountedAs.LENGTHS:
            return text_length(value) if isinstance(value, str) else None
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_number else None

    def in_sql(self, sql: str) -> Sql:
        """What SQLite groups by, of a column for which it groups exactly."""
        if self.counted_as is CountedAs.LENGTHS:
            return _whole_interval(f"length({sql})", self.power)
        if self.counted_as is not CountedAs.NUMBERS:
            return Sql(sql, ())
        if self.power >= 0 and self.kinds is not None and self.kinds <= _INTS:
            return _whole_interval(sql, self.power)
        return Sql(
            f"CASE WHEN {sql} BETWEEN ? AND ? THEN CAST(floor(round({sql} * ?, 6)) AS INTEGER)"
            f" WHEN {sql} IS NOT NULL THEN '{INFINITE}' END",
            (-_LARGEST, _LARGEST, 10.0**-self.power),
        )


class ColumnSplit(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture is split by: a column, and the places of its groups."""

    column: ResultColumn
    axis: CategoryAxis | NumberAxis
    kinds: frozenset[ColumnKind] | None


def _whole_interval(sql: str, power: int) -> Sql:
    if not power:
        return Sql(sql, ())
    width = 10**power
    return Sql(f"({sql} - ({sql} % ? + ?) % ?) / ?", (width, width, width, width))


def counted_column(part: FileView, column: ResultColumn, last: int) -> CountedColumn:
    """How to count a column of a file whose last ordinal is `last`."""
    kinds = part.file.kept_kinds([column])[0]
    values = [value for (value,) in spread_values(part.opened(), [column], last) if value is not None]
    options = options_of(part, column)
    counted_as = _counted_as(kinds, values, options)
    power = 0
    if counted_as is CountedAs.NUMBERS and (kinds is None or not kinds <= _INTS):
        power = _fine_power([value for value in values if isinstance(value, (int, float)) and is_finite(value)])
    return CountedColumn(
        column=column,
        counted_as=counted_as,
        kinds=kinds,
        power=power,
        options=options if counted_as in (CountedAs.VALUES, CountedAs.ITEMS) else (),
        samples=_samples(values) if counted_as is CountedAs.LENGTHS else (),
        may_be_skipped=is_of_question(column) and _may_be_skipped(part.file.header, column.position),
    )


class _SurveyRules(msgspec.Struct, frozen=True):
    """What a stored survey says of skipping."""

    skip: dict[str, Any] = {}
    rules: Any = None


def _may_be_skipped(header: RunHeader, position: int) -> bool:
    with decoding(header.path, "its survey"):
        found = msgspec.json.decode(header.survey_row, type=_SurveyRules)
    return bool(found.rules) or header.question_names[position] in found.skip


def _counted_as(kinds: frozenset[ColumnKind] | None, values: list[Any], options: tuple[Any, ...]) -> CountedAs:
    has_lists = any(isinstance(value, list) for value in values)
    if options:
        is_of_lists = has_lists or (kinds is not None and ColumnKind.JSON in kinds)
        return CountedAs.ITEMS if is_of_lists else CountedAs.VALUES
    if _are_numbers(kinds, values):
        return CountedAs.NUMBERS
    if values and all(isinstance(value, str) for value in values) and len(set(values)) > _FEW_TEXTS:
        return CountedAs.LENGTHS
    return CountedAs.ITEMS if has_lists else CountedAs.VALUES


def _are_numbers(kinds: frozenset[ColumnKind] | None, values: list[Any]) -> bool:
    held = None if kinds is None else kinds - {ColumnKind.NULL}
    if held is not None and held <= _NUMBERS:
        return bool(held)
    may_be = held is None or held <= _NUMBERS | _ENCODED
    return may_be and bool(values) and all(type(value) in (int, float) for value in values)


def _fine_power(numbers: list[float]) -> int:
    span = max(numbers, default=1.0) - min(numbers, default=0.0)
    return math.floor(math.log10(span / _FINE_INTERVALS)) if 0 < span < math.inf else -3


def _samples(values: list[Any]) -> tuple[str, ...]:
    texts = list(dict.fromkeys(value for value in values if isinstance(value, str) and value.strip()))
    step = max(1, len(texts) // _MOST_SAMPLES)
    return tuple(cell_text(text, _LONGEST_SAMPLE) for text in texts[::step][:_MOST_SAMPLES])


def column_split(part: FileView, column: ResultColumn, last: int, most: int) -> ColumnSplit:
    """The groups to split by: the most frequent values of some rows, or intervals of many different numbers."""
    values = [value for (value,) in spread_values(part.opened(), [column], last) if value is not None]
    counts, by_key = Counter[Key](), dict[Key, Any]()
    for value in values:
        key = key_of(value)
        by_key.setdefault(key, value)
        counts[key] += 1
    kinds = part.file.kept_kinds([column])[0]
    finite = [value for value in values if type(value) in (int, float) and is_finite(value)]
    if len(by_key) > most and len(finite) == len(values):
        low, high = min(finite), max(finite)
        is_whole = all(isinstance(value, int) for value in finite)
        bins = whole_bins(int(low), int(high), most) if is_whole else real_bins(float(low), float(high), most)
        return ColumnSplit(column=column, axis=NumberAxis(bins=bins), kinds=kinds)
    first = [option for option in options_of(part, column) if key_of(option) in by_key or len(by_key) <= most][:most]
    chosen = {key_of(value): value for value in first}
    for key, _ in counts.most_common():
        if len(chosen) < most:
            chosen.setdefault(key, by_key[key])
    shown = tuple(chosen.values())
    if not first and all(isinstance(value, (int, float)) for value in shown):
        shown = tuple(sorted(shown))
    as_bool = kinds is not None and ColumnKind.BOOL in kinds
    return ColumnSplit(column=column, axis=CategoryAxis(values=shown, as_bool=as_bool), kinds=kinds)


def spread_values(view: OpenView, columns: list[ResultColumn], last: int) -> list[tuple[Any, ...]]:
    """The values of at most some thousand rows from all over the file, of those that pass the view's filters where
    SQLite can tell.
    """
    conditions = Conditions(view.view.filters, view.header)
    projection = projection_of(columns)
    getters = [getter(column, projection, view.header) for column in columns]
    step = last // _SPOTS + 1
    found: list[tuple[Any, ...]] = []
    with view.reader.snapshot(view.clock()) as connection:
        condition, _ = conditions.split(connection)
        for meeting in dict.fromkeys((condition, TRUE)):
            for first in range(0, last + 1, step):
                stop = first + min(step, _ORDINALS_AT_SPOT)
                rows, _ = fetch(connection, rows_between(first, stop), projection, meeting, first - 1, _ROWS_AT_SPOT)
                for row in rows:
                    record = Record(row)
                    with decoding_row(view.header, row):
                        found.append(tuple([get(record) for get in getters]))
            if found:
                break
    return found
