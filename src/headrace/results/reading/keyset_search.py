"""Finds the next few interviews of a view behind a place, within a time: what a page of a table shows.

    place ──► the next rows by ordinal, some thousand ──► those that pass the filters ──► enough? ──► their ordinals
                          ▲                                                                │ no
                          └──────────────────── as long as there is time ◄─────────────────┘

A search that runs out of time gives what it has found, and a place from which to go on. In the order of the plan it
ends as soon as it has found enough. Sorted by a column it reads the whole file and keeps the best: the place holds
their ordinals until the file is read through. A place is all that two searches need to share; where the caller keeps
orders, a sorted search finds more than was asked for, for those that follow.

Does not cover: reading what was found (stages), what is kept of an order (kept_orders), several files, or views with a
window of their own.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, TypeAlias

import apsw
import msgspec

from headrace.errors import InvalidInput, QueryTimeout
from headrace.expressions import Sql
from headrace.results.columns.result_column import ORDINAL as NUMBER
from headrace.results.columns.value_keys import sort_keys
from headrace.results.reading.conditions import Conditions
from headrace.results.reading.kept_orders import MOST_AHEAD, KeptOrder, Keyed
from headrace.results.reading.stages import OpenView, ViewStage, sorting_term
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.interview_queries import (
    KeysetOrder,
    RowSet,
    check_none_is_missing,
    first_in_order,
    range_end,
    rows_between,
)

MOST_FOUND = 200
_FIRST_ROWS, _MOST_ROWS = 1_000, 1_000_000
_RANGE_S = 0.1  # what reading one range should take: the time limit ends a search between two
_MOST_WIDENED = 8
_MOST_LETTERS = 200_000  # in the keys of what is found beyond what was asked for
_BEFORE_ALL, _BEHIND_ALL = -1, 2**63 - 1

Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=_BEFORE_ALL, le=_BEHIND_ALL)]


class KeysetPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a search begins: behind the interview `behind`, or before it where `is_back`; at the first or the last
    where it is None. In the order of the plan there need be no interview with this ordinal.

    A sorted search that ran out of time has read the file up to the ordinal `read_to`, and found `best` there.
    """

    behind: Ordinal | None = None
    is_back: bool = False
    read_to: Ordinal | None = None
    best: Annotated[tuple[Ordinal, ...], msgspec.Meta(max_length=MOST_FOUND + 1)] = ()


class KeysetFound(msgspec.Struct, frozen=True, kw_only=True):
    """The ordinals of some interviews, in the view's order, and the places before and behind them; None at an end.

    `read_to` is how far a search came that ran out of time: it found fewer than there may be, or, sorted, the best of
    those up to there. It is None where the search came to its end.
    """

    ordinals: list[int]
    before: KeysetPlace | None
    behind: KeysetPlace | None
    read_to: int | None = None


def find_interviews(
    opened: OpenView,
    place: KeysetPlace,
    most: int,
    clock: QueryClock,
    *,
    counts_file: bool = True,
    kept: KeptOrder | None = None,
) -> KeysetFound:
    """The next interviews of a view, at most `most`. The view has filters, and at most one sort key. With
    `counts_file`, whoever comes to the end learns whether rows of the file are missing. `kept` is of this view.
    """
    assert opened.view.parent is None
    assert not opened.view.has_window
    return _KeysetSearch(opened, place, most, clock, counts_file=counts_file, kept=kept).run()


class _KeysetSearch:
    def __init__(
        self,
        opened: OpenView,
        place: KeysetPlace,
        most: int,
        clock: QueryClock,
        *,
        counts_file: bool,
        kept: KeptOrder | None,
    ) -> None:
        self._counts_file = counts_file
        self._opened = opened
        self._place = place
        self._most = most
        self._clock = clock
        self._conditions = Conditions(opened.view.filters, opened.header)
        sort = next(iter(opened.view.keys), None)
        # By ordinal nothing has to be sorted: the plan is read from its end.
        self._column = None if sort is None or sort.column == NUMBER else sort.column
        self._is_down = sort is not None and sort.descending
        self._is_read_back = self._column is None and self._is_down != place.is_back
        self._kept = None if self._column is None else kept
        self._wanted = most + 1 if self._kept is None else max(most, MOST_AHEAD) + 1
        self._best: list[Keyed] = []
        self._beyond: Keyed | None = None
        self._rows = _FIRST_ROWS

    def run(self) -> KeysetFound:
        if self._kept is not None and self._place.read_to is None:
            known = self._kept.next_of(self._place.behind, self._most, is_back=self._place.is_back)
            if known is not None:
                self._best = [(ordinal, None, None) for ordinal in known]
                return self._further()
        at = start = self._begin()
        while True:
            try:
                end = self._read_range(at)
            except QueryTimeout:
                if at == start:
                    raise
                return self._interrupted(at)
            if end is None or (self._column is None and len(self._best) > self._most):
                return self._finished()
            at = end
            if self._clock.left_s <= 0:
                return self._interrupted(at)

    def _begin(self) -> int:
        """The ordinal to read from."""
        place = self._place
        if self._column is None:
            start = _BEHIND_ALL if self._is_read_back else _BEFORE_ALL
            return start if place.behind is None else place.behind
        known = self._best_so_far()
        wanted = [*(place.best if known is None else ()), *([] if place.behind is None else [place.behind])]
        found = self._opened.at_each(wanted, [self._column], self._clock)
        keys = {ordinal: (ordinal, *sort_keys(value)) for ordinal, (value,) in found}
        if keys.keys() != set(wanted):
            raise InvalidInput(
                "This place in the table is of another file, or of a run that was started over.",
                fix="Begin with the first page.",
            )
        self._best = [keys[ordinal] for ordinal in place.best] if known is None else known
        self._beyond = None if place.behind is None else keys[place.behind]
        return _BEFORE_ALL if place.read_to is None else place.read_to

    def _best_so_far(self) -> list[Keyed] | None:
        """What this search had found when its time ran out; None where no more is known than its place tells."""
        place, found = self._place, None
        if self._kept is not None and place.read_to is not None:
            found = self._kept.best_of_interrupted(place.behind, place.read_to, is_back=place.is_back)
        if place.read_to is not None and found is None:
            self._wanted = self._most + 1
        return found

    # --- reading

    def _read_range(self, at: int) -> int | None:
        """Take what the next rows hold; the ordinal of the last of them, None where there are no more."""
        left_s = self._clock.left_s
        with self._opened.reader.snapshot(self._clock) as connection:
            end = range_end(connection, at, self._rows, is_back=self._is_read_back)
            if end is None and self._counts_file:
                check_none_is_missing(connection, self._opened.header.path)
        if end is None:
            return None
        rows = rows_between(end, at) if self._is_read_back else rows_between(at + 1, end + 1)
        self._best = self._in_order([*self._best, *self._first_of(rows)])
        took_s = max(left_s - self._clock.left_s, 1e-6)
        factor = min(_MOST_WIDENED, max(1 / _MOST_WIDENED, _RANGE_S / took_s))
        self._rows = min(_MOST_ROWS, max(_FIRST_ROWS, int(self._rows * factor)))
        return end

    def _first_of(self, rows: RowSet) -> list[Keyed]:
        """The first interviews among these rows, in the order of the search; no more than are wanted."""
        reader, beyond = self._opened.reader, self._beyond
        with reader.snapshot(self._clock) as connection:
            condition, rest = self._conditions.split(connection)
            order = self._order_in_sql(connection)
            if not rest and order is not None:
                conditions = [condition, *([] if beyond is None else [order.beyond(beyond[1], beyond[0])])]
                found = first_in_order(connection, rows, conditions, order, self._wanted, self._is_enough)
                return [(ordinal, key, None) for ordinal, key in found]
        stage = ViewStage(self._opened, reader, rows, self._clock, counts_file=False)
        first: list[Keyed] = []
        for page in stage.keyed([] if self._column is None else [self._column]):
            first = self._in_order([*first, *filter(self._is_beyond, map(_completed, page))])
            if self._column is None and not self._is_read_back and len(first) > self._most:
                break
        return first

    def _order_in_sql(self, connection: apsw.Connection) -> KeysetOrder | None:
        """The order in SQL; None where SQLite would sort the column otherwise."""
        if self._column is None:
            return KeysetOrder(is_back=self._is_read_back)
        term = sorting_term(connection, self._column, self._opened.header)
        if term is None:
            return None
        key = Sql(term.text, term.parameters)
        return KeysetOrder(key=key, is_down=self._is_down, is_back=self._place.is_back)

    # --- order

    def _in_order(self, found: list[Keyed]) -> list[Keyed]:
        """In the order of the search, no more than are wanted."""
        is_back = self._is_read_back if self._column is None else self._place.is_back
        found.sort(key=itemgetter(0), reverse=is_back)
        if self._column is not None:
            found.sort(key=_rank, reverse=self._is_down != self._place.is_back)  # equal ones stay as they are
        found = found[: self._wanted]
        letters = sum(len(value) for _, value, _ in found if isinstance(value, (str, bytes)))
        if self._is_enough(len(found), letters):
            self._wanted = self._most + 1  # what is found beyond that must not take much memory
        return found[: self._wanted]

    def _is_enough(self, rows: int, letters: int) -> bool:
        return rows > self._most and letters > _MOST_LETTERS

    def _is_beyond(self, each: Keyed) -> bool:
        if self._beyond is None:
            return True
        one, other = _rank(each), _rank(self._beyond)
        if one == other:
            return (each[0] < self._beyond[0]) == self._place.is_back and each[0] != self._beyond[0]
        return (one > other) == (self._is_down == self._place.is_back)

    # --- what was found

    def _interrupted(self, at: int) -> KeysetFound:
        if self._column is None:
            return self._found(msgspec.structs.replace(self._place, behind=at), at)
        if self._kept is not None and self._wanted > self._most + 1:
            self._kept.keep_interrupted(self._place.behind, at, self._best, is_back=self._place.is_back)
        best = tuple(ordinal for ordinal, *_ in self._best[: self._most + 1])
        return self._found(msgspec.structs.replace(self._place, read_to=at, best=best), at)

    def _finished(self) -> KeysetFound:
        if self._kept is not None:
            found, is_all = [ordinal for ordinal, *_ in self._best], len(self._best) < self._wanted
            self._kept.keep(self._place.behind, found, is_back=self._place.is_back, is_all=is_all)
        return self._further()

    def _further(self) -> KeysetFound:
        if len(self._best) <= self._most:
            return self._found(None, None)
        return self._found(KeysetPlace(self._best[self._most - 1][0], self._place.is_back), None)

    def _found(self, further: KeysetPlace | None, read_to: int | None) -> KeysetFound:
        place, ordinals = self._place, [ordinal for ordinal, *_ in self._best[: self._most]]
        back = None
        if place.behind is not None or ordinals:
            # Without an interview that was found, the place itself, or the ordinal next to it.
            step = (-1 if self._is_read_back else 1) if self._column is None else 0
            nearest = ordinals[0] if ordinals else (place.behind or 0) + step
            back = KeysetPlace(nearest, not place.is_back)
        if place.is_back:
            return KeysetFound(ordinals=ordinals[::-1], before=further, behind=back, read_to=read_to)
        before = None if place.behind is None else back
        return KeysetFound(ordinals=ordinals, before=before, behind=further, read_to=read_to)


def _completed(keyed: tuple[Any, ...]) -> Keyed:
    return keyed if len(keyed) > 1 else (*keyed, None, None)


def _rank(keyed: Keyed) -> tuple[Any, ...]:
    """What Python compares as SQLite compares the keys: NULL, numbers, texts, then bytes."""
    _, value, second = keyed
    match value:
        case None:
            return (0,)
        case int() | float():
            return 1, value, second or ""
        case str():
            return 2, value
        case _:
            return 3, value
