"""One column of a view that is to be drawn: what it holds, and the axis that suits it.

    options of a choice      a place for each option, in their order
    numbers                  intervals; a place each for few whole numbers
    few different values     a place for each, the most frequent first; numbers in their order
    many different texts     intervals of their lengths, and some of them as samples
    lists                    a place for each item

Whether texts are few is seen in the first thousand rows. Does not cover: counting (counting).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeAlias

from headrace.charts.number_bins import real_bins, whole_bins
from headrace.expressions import ColumnKind
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.plots.axes import (
    CategoryAxis,
    Key,
    LengthAxis,
    NumberAxis,
    PlotAxis,
    is_finite,
    items_of,
    key_of,
    text_length,
)
from headrace.results.reading.conditions import sql_column
from headrace.results.reading.file_view import FileView
from headrace.results.reading.stages import OpenView
from headrace.store.contents import decoding
from headrace.store.run_file.plot_queries import extremes
from headrace.survey.questions.choice import ChoiceQuestion
from headrace.survey.templates import is_template

Tally: TypeAlias = Callable[[str], Iterable[tuple[Any, ...]]]

_LOOKED_AT, _FEW_TEXTS, _FEW_NUMBERS = 1_000, 40, 6
_MOST_ITEMS = 10_000
_NUMBERS = frozenset({ColumnKind.INT, ColumnKind.REAL})
_TEXT = frozenset({ColumnKind.TEXT})
_ENCODED = frozenset({ColumnKind.JSON, ColumnKind.TAGGED})


class PlottedColumn:
    """A column of the views of one or several files. `tally` counts its different values, the most frequent first."""

    def __init__(self, parts: tuple[FileView, ...], name: str, tally: Tally) -> None:
        self.name = name
        self.parts = parts
        self.columns = [part.catalog().find(name) for part in parts]
        kinds = [part.kinds([column])[0] for part, column in zip(parts, self.columns, strict=True)]
        self.kinds = frozenset[ColumnKind]().union(*kinds)
        self._tally = tally

    @property
    def _first(self) -> ResultColumn:
        return self.columns[0]

    def axis(self, most: int, most_intervals: int) -> PlotAxis:
        """The axis that suits the column, with at most about so many places."""
        if options := self._options():
            has_lists = ColumnKind.JSON in self.kinds
            return self._items(most, options) if has_lists else self._categories(most, options)
        sample = self.sample()
        different = len({key_of(value) for value in sample})
        if self._are_numbers(sample):
            is_whole = all(isinstance(value, int) for value in sample)
            few = self._categories(_FEW_NUMBERS) if different <= _FEW_NUMBERS and not is_whole else None
            return few if few is not None and not few.others else self._intervals(most_intervals)
        if self._held == _TEXT and different > _FEW_TEXTS:
            return self._lengths(most_intervals)
        is_list = any(isinstance(value, list) for value in sample)
        return self._items(most) if is_list else self._categories(most)

    def groups(self, most: int) -> PlotAxis:
        """The axis that splits a chart by this column: its values, or intervals of many numbers."""
        found = self._categories(most, self._options())
        are_many_numbers = found.others and self._are_numbers(self.sample())
        return self._intervals(most) if are_many_numbers else found

    @property
    def _held(self) -> frozenset[ColumnKind]:
        return self.kinds - {ColumnKind.NULL}

    def _are_numbers(self, sample: list[Any]) -> bool:
        if self._held <= _NUMBERS:
            return bool(self._held)
        is_encoded = self._held <= _NUMBERS | _ENCODED
        return is_encoded and bool(sample) and all(isinstance(value, (int, float)) for value in sample)

    def sample(self) -> list[Any]:
        """The values of the first thousand rows that have one."""
        first = (part.values([column]) for part, column in self._pairs())
        return [value for (value,) in islice(chain.from_iterable(first), _LOOKED_AT) if value is not None]

    def values(self) -> Iterator[Any]:
        for part, column in self._pairs():
            for (values,) in part.opened().batches([column]):
                yield from values

    def _pairs(self) -> Iterator[tuple[FileView, ResultColumn]]:
        return zip(self.parts, self.columns, strict=True)

    def _options(self) -> tuple[Any, ...]:
        return options_of(self.parts[0], self._first)

    def _categories(self, most: int, first: tuple[Any, ...] = ()) -> CategoryAxis:
        found = ((value, count) for value, count in self._tally(self.name) if value is not None)
        return self._of_counts(found, most, first)

    def _items(self, most: int, first: tuple[Any, ...] = ()) -> CategoryAxis:
        counts, items = Counter[Key](), dict[Key, Any]()
        for value in self.values():
            for item in () if value is None else items_of(value):
                if item is None:
                    continue  # counted as none, like a value that is missing
                key = key_of(item)
                if key in items or len(items) < _MOST_ITEMS:
                    items[key] = item
                    counts[key] += 1
        found = ((items[key], count) for key, count in counts.most_common())
        axis = self._of_counts(found, most, first)
        return CategoryAxis(values=axis.values, others=axis.others, by_items=True)

    def _of_counts(self, found: Iterable[tuple[Any, int]], most: int, first: tuple[Any, ...]) -> CategoryAxis:
        shown: dict[Key, Any] = {key_of(value): value for value in first[:most]}
        others = 0
        for value, _ in found:
            key = key_of(value)
            if key not in shown and len(shown) < most:
                shown[key] = value
            elif key not in shown:
                others += 1
        values = tuple(shown.values())
        if not first and all(isinstance(value, (int, float)) for value in values):
            values = tuple(sorted(values))
        return CategoryAxis(values=values, others=others, as_bool=ColumnKind.BOOL in self.kinds)

    def _intervals(self, most: int) -> PlotAxis:
        """Intervals of numbers; a place for the number where there are no two different ones."""
        low, high = self._extremes("{}", self._held <= _NUMBERS, _finite)
        if low is None or high is None or low == high:
            return self._categories(most)
        # There may be fractions between a lowest and a highest that are whole.
        if ColumnKind.REAL in self.kinds or isinstance(low, float) or isinstance(high, float):
            return NumberAxis(bins=real_bins(float(low), float(high), most))
        return NumberAxis(bins=whole_bins(low, high, most))

    def _lengths(self, most: int) -> LengthAxis:
        low, high = self._extremes("length({})", True, _length)
        return LengthAxis(bins=whole_bins(int(low or 0), int(high or 0), most))

    def _extremes(self, sql: str, in_sql: bool, number: Callable[[Any], float | None]) -> tuple[Any, Any]:
        """The lowest and the highest number."""
        if in_sql and (found := self._extremes_in_sql(sql)) is not None:
            return found
        low = high = None
        for each in map(number, self.values()):
            if each is not None:
                low = each if low is None else min(low, each)
                high = each if high is None else max(high, each)
        return low, high

    def _extremes_in_sql(self, sql: str) -> tuple[Any, Any] | None:
        if len(self.columns) > 1:
            return None
        view: OpenView = self.parts[0].opened()
        own = view.reader.twin(view.clock())
        try:
            row_set = view.as_row_set(own)
            with own.snapshot() as connection:
                column = sql_column(connection, self._first, view.header)
                if column is None:
                    return None
                with decoding(own.path, f"the numbers of {self.name}"):
                    return extremes(connection, row_set, sql.format(column.sql))
        finally:
            own.close()


def options_of(part: FileView, column: ResultColumn) -> tuple[Any, ...]:
    """The options of a choice, in their order; none where the column is no choice, or its options differ."""
    if column.group is not Group.ANSWER or column.computed is not None:
        return ()
    question = part.file.header.question(column.position)
    options = question.options if isinstance(question, ChoiceQuestion) else ()
    is_known = all(not isinstance(each, (list, dict)) and not is_template(str(each)) for each in options)
    return options if is_known else ()


def is_of_question(column: ResultColumn) -> bool:
    """Whether a value is missing where its question failed."""
    return column.group in (Group.ANSWER, Group.PART) and column.computed is None


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and is_finite(value) else None


def _length(value: Any) -> float | None:
    return text_length(value) if isinstance(value, str) else None
