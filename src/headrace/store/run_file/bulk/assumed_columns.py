"""Columns of interviews that are not read but assumed, because they hardly ever change: a fifth of the time of a page.

A job with one model has the same model in all its rows, one without scenarios the same scenario, and so on; reading
such a column takes as long as reading any other. So a page is read without those that were the same in all rows of an
earlier page. That is as exact as reading them: a row's checksum covers all its columns, so it fits only where the
assumed values are those that were written, whatever has become of the column in the file. Where it does not fit, the
page is read again with all its columns, and a column that was wrongly assumed is always read from then on. Does not
cover: comparing checksums (column_pages), or looking for damage in a file (run_verification).
"""

from __future__ import annotations

from typing import Any, TypeAlias

_ORDINAL, _ITERATION, _AGENT, _SCENARIO, _MODEL, _STATUS = range(6)  # places in the table
_AS_ORDINAL = object()  # of agents, where each interview has the agent of its own number

PageColumns: TypeAlias = list[tuple[Any, ...]]  # those that a row's checksum covers, in the table's order


class AssumedColumns:
    """Learns from the pages of one reading what to assume of those that follow. `more` is the place of the last column,
    which is for answers beyond the table's own.
    """

    def __init__(self, more: int) -> None:
        self._may_assume = {_ITERATION, _AGENT, _SCENARIO, _MODEL, _STATUS, more}
        self._values: dict[int, Any] = {}  # by place, in order
        self._doubted: dict[int, Any] = {}

    @property
    def places(self) -> set[int]:
        """The columns that need not be read now."""
        return set(self._values)

    def fill_in(self, columns: PageColumns) -> None:
        """Put the assumed columns among those that were read."""
        for place, value in self._values.items():
            columns.insert(place, columns[_ORDINAL] if value is _AS_ORDINAL else (value,) * len(columns[_ORDINAL]))

    def doubt(self) -> None:
        """A page is not as it was assumed: assume nothing until it has been read."""
        self._doubted, self._values = self._values, {}

    def learn(self, columns: PageColumns) -> None:
        """Assume what all rows of this page have in common; it was read, and its checksums fit."""
        if self._values or not self._may_assume:
            return
        found = {place: columns[place][0] for place in self._may_assume if _is_one_value(columns[place])}
        if _AGENT in self._may_assume and columns[_AGENT] == columns[_ORDINAL]:
            found[_AGENT] = _AS_ORDINAL
        self._may_assume = {place for place in found if self._doubted.get(place, found[place]) == found[place]}
        self._values = {place: found[place] for place in sorted(self._may_assume)}


def _is_one_value(column: tuple[Any, ...]) -> bool:
    return column.count(column[0]) == len(column)
