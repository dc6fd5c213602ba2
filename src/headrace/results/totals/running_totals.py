"""Totals during a run: rows are added to groups, and the states of those that changed are given to the journal.

Covers: the groups in memory, at most MOST_GROUPS of them. Does not cover: reading them back (totals_table), or a user's
own aggregator (aggregator).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from headrace.errors import InvalidInput, spelled
from headrace.expressions import compile_closure
from headrace.results.aggregates.aggregation import Aggregation
from headrace.results.aggregates.function_states import FunctionState, is_missing, new_state
from headrace.results.columns.binding import bind
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.records import Getter, Record, getter, projection_of
from headrace.results.columns.result_column import Bound
from headrace.results.columns.value_keys import value_key
from headrace.results.totals.written_totals import TotalledRow, WrittenTotals
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import Fetched, Projection, everything_of
from headrace.store.run_file.keeping.stored_totals import MOST_GROUPS, TotalState
from headrace.store.run_file.rows import Status
from headrace.survey.values import SqlValue, decode_value, encode_value

_LONGEST_KEY = 10_000


class RunTotals(Protocol):
    """What a run adds its rows to. `needs_detail` where prompts, comments or tokens are among what it adds."""

    @property
    def needs_detail(self) -> bool: ...

    def take(self, rows: list[TotalledRow]) -> list[TotalState]:
        """Add rows, on the journal's thread; the states that changed."""
        ...


class GroupOfTotals:
    """The functions of one group; `interviews` is how many were added to it."""

    __slots__ = ("functions", "interviews", "key", "values")

    def __init__(self, key: str, columns: Sequence[Aggregation]) -> None:
        self.key = key
        self.values: tuple[Any, ...] = tuple(decode_value(key))
        self.interviews = 0
        self.functions: list[FunctionState] = [new_state(each.function) for each in columns]

    def encode(self) -> TotalState:
        return TotalState(self.key, self.interviews, encode_value([each.encode() for each in self.functions]))

    @classmethod
    def decode(cls, stored: TotalState, columns: Sequence[Aggregation], width: int) -> GroupOfTotals:
        """The group with this state, of `width` columns. What was not made here raises one of contents.UNREADABLE."""
        made = cls(stored.key, columns)
        if len(made.values) != width:
            raise ValueError(f"a group has {len(made.values)} values, and is one of {width}")
        made.interviews = stored.interviews
        for function, held in zip(made.functions, decode_value(stored.state), strict=True):
            function.decode(held)
        return made


class RunningTotals:
    def __init__(self, written: WrittenTotals, catalog: Catalog, header: RunHeader, states: list[TotalState]) -> None:
        self._columns = written.columns()
        self._written = written
        bound = [None if each.expression is None else bind(each.expression, catalog) for each in self._columns]
        grouped = written.grouped(catalog)
        sources = [source for each in bound if each is not None for source in each.columns]
        self.needs_detail = projection_of([*sources, *grouped]).detail
        projection = replace(everything_of(len(header.question_names)), detail=self.needs_detail)
        self._values = [_each_row if each is None else _evaluating(each, projection, header) for each in bound]
        self._keys: list[Getter] = [getter(column, projection, header) for column in grouped]
        self._groups: dict[tuple[SqlValue, ...], GroupOfTotals] = {}
        for each in states:
            group = GroupOfTotals.decode(each, self._columns, len(grouped))
            self._groups.setdefault(_key_of(group.values), group)
        self._found: dict[Any, GroupOfTotals] = {}  # by their values: a second look at the same ones costs no JSON

    def take(self, rows: list[TotalledRow]) -> list[TotalState]:
        changed: dict[str, GroupOfTotals] = {}
        for each in rows:
            if each.row.status is Status.DONE:
                group = self._add(Record(_fetched(each)))
                changed[group.key] = group
        return [group.encode() for group in changed.values()]

    def _add(self, record: Record) -> GroupOfTotals:
        group = self._group([key(record) for key in self._keys])
        group.interviews += 1
        for function, value_of in zip(group.functions, self._values, strict=True):
            value = value_of(record)
            if not is_missing(value):
                function.add(value)
        return group

    def _group(self, values: list[Any]) -> GroupOfTotals:
        known = (*values, *map(type, values))  # True is 1, as a key of a dict
        try:
            return self._found[known]
        except (KeyError, TypeError):  # not seen yet, or a list
            pass
        found = _key_of(values)
        group = self._groups.get(found)
        if group is None:
            key = encode_value(values).decode()
            self._check_room(key)
            group = self._groups[found] = GroupOfTotals(key, self._columns)
        if len(self._found) < MOST_GROUPS and all(isinstance(value, (str, int, type(None))) for value in values):
            self._found[known] = group
        return group

    def _check_room(self, key: str) -> None:
        names = ", ".join(self._written.group_by)
        if len(self._groups) >= MOST_GROUPS:
            what = f"has more than {MOST_GROUPS:,} groups, which is as many as totals may have"
        elif len(key) > _LONGEST_KEY:
            what = f"has a value of {len(key):,} letters"
        else:
            return
        raise InvalidInput(
            f"group_by of {names} {what}.",
            fix=spelled(
                "What was committed before is safe, and cannot go on with these groups: start over with {fresh} and"
                ' group by what has fewer values, or keep the answers (keep="answers") and group the results.',
                fresh=True,
            ),
        )


def _key_of(values: Sequence[Any]) -> tuple[SqlValue, ...]:
    return tuple([value_key(value) for value in values])


def _each_row(record: Record) -> bool:
    """What `count()` counts."""
    return True


def _evaluating(bound: Bound, projection: Projection, header: RunHeader) -> Callable[[Record], Any]:
    return compile_closure(bound.expression, lambda name: getter(bound.column(name), projection, header))


def _fetched(each: TotalledRow) -> Fetched:
    """A row on its way to the file as it would be read from there (interview_queries.Fetched)."""
    row = each.row
    place = (row.ordinal, row.ordinal, row.iteration, row.agent, row.scenario, row.model, int(row.status))
    return (*place, each.agent, None, each.scenario, None, None, row.detail, *row.answers, row.more)
