"""The values of columns for a whole page of interviews, without an object or a call for each row.

Covers: answers, fields of agents and scenarios, models and positions. Does not cover: what needs an interview's detail,
computed columns, and answers beyond the first thousand (records, row by row).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from headrace.results.columns.records import STATUS_TEXTS, drawn
from headrace.results.columns.result_column import Group, ResultColumn, model_value
from headrace.store.quoting import has_path
from headrace.store.run_file.bulk.column_pages import ColumnPage, ListRows
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.rows import ANSWER_COLUMNS, Status
from headrace.survey.agent import NAME, unnamed
from headrace.survey.values import decode_fields, from_sql

PageColumn: TypeAlias = Sequence[Any]
_PageGetter: TypeAlias = Callable[[ColumnPage], PageColumn]
_SCALARS = frozenset({str, int, float, bool, type(None)})


class PageValues:
    """Takes columns out of pages. Made where `can_take` holds for them; `answers` are the pages' answer columns."""

    def __init__(self, columns: Iterable[ResultColumn], answers: tuple[int, ...], header: RunHeader) -> None:
        self._agents = _FieldValues()
        self._scenarios = _FieldValues()
        self._getters = [self._getter(column, answers, header) for column in columns]

    @staticmethod
    def can_take(columns: Iterable[ResultColumn]) -> bool:
        return all(
            column.computed is None
            and column.group is not Group.PART
            and (column.group is not Group.ANSWER or column.position < ANSWER_COLUMNS)
            for column in columns
        )

    def take(self, page: ColumnPage) -> list[PageColumn]:
        """The columns' values; errors are those of decoding (contents.UNREADABLE)."""
        self._agents.decode(page.agents)
        self._scenarios.decode(page.scenarios)
        return [get(page) for get in self._getters]

    def _getter(self, column: ResultColumn, answers: tuple[int, ...], header: RunHeader) -> _PageGetter:
        name = column.name
        match column.group:
            case Group.ANSWER:
                return _answers(answers.index(column.position), as_bool=header.holds_bools[column.position])
            case Group.AGENT if name == NAME:
                named = self._agents.column(name)
                return lambda page: [
                    unnamed(at) if given is None else given for at, given in zip(page.agents_at, named(), strict=True)
                ]
            case Group.AGENT:
                trait = self._agents.column(name)
                return lambda _page: trait()
            case Group.SCENARIO:
                field = self._scenarios.column(name)
                return lambda _page: field()
            case Group.MODEL:
                values = [model_value(model, name) for model in header.models]
                return lambda page: [values[model] for model in page.models]
            case Group.ITERATION:
                return lambda page: page.iterations
            case Group.INDEX:
                return attrgetter({"agent": "agents_at", "scenario": "scenarios_at", "model": "models"}[column.prefix])
            case Group.INTERVIEW if name == "ordinal":
                return lambda page: page.ordinals
            case Group.INTERVIEW if name == "failed":
                return lambda page: [status == Status.FAILED for status in page.statuses]
            case Group.INTERVIEW:
                return lambda page: [STATUS_TEXTS[status] for status in page.statuses]
            case Group.SHUFFLED:
                return lambda page: [drawn(name, ordinal) for ordinal in page.ordinals]
            case _:
                return lambda page: (None,) * len(page)


def _answers(place: int, *, as_bool: bool) -> _PageGetter:
    def get(page: ColumnPage) -> PageColumn:
        values = page.answers[place]
        if as_bool or bytes in set(map(type, values)):
            return [from_sql(value, as_bool=as_bool) for value in values]
        return values

    return get


class _FieldValues:
    """The wanted fields of a page's agents, or of its scenarios. Each row of the list is decoded once, and of it only
    what is wanted.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._decode: Callable[[tuple[str, ...]], list[PageColumn]] | None = None
        self._columns: list[PageColumn] = []
        self._places: list[int] | None = None

    def column(self, name: str) -> Callable[[], PageColumn]:
        """A function that gives a field's values in the page that was decoded last."""
        if name not in self._names:
            self._names.append(name)
        number = self._names.index(name)

        def get() -> PageColumn:
            values = self._columns[number]
            return values if self._places is None else [values[place] for place in self._places]

        return get

    def decode(self, rows: ListRows) -> None:
        if self._names:
            self._decode = self._decode or _decoder(self._names)
            self._columns, self._places = self._decode(rows.fields), rows.places


def _decoder(names: list[str]) -> Callable[[tuple[str, ...]], list[PageColumn]]:
    """A function that makes a column of each of these fields, out of the rows of a list."""
    # Fields of a struct are Python names; the JSON's own names are any texts, and msgspec cannot rename to all of them.
    places = [f"f{number}" for number, _ in enumerate(names)]
    if not all(map(has_path, names)):
        return lambda rows: _untagged(rows, names)
    shape = msgspec.defstruct(
        "_Wanted", [(place, Any, None) for place in places], rename=dict(zip(places, names, strict=True)), gc=False
    )
    plain = msgspec.json.Decoder(shape).decode
    takes = [attrgetter(place) for place in places]

    def decode(rows: tuple[str, ...]) -> list[PageColumn]:
        decoded = list(map(plain, rows))
        columns: list[PageColumn] = [list(map(take, decoded)) for take in takes]
        # What is tagged is a dict, or in one or in a list; and its name begins with a dollar.
        are_plain = all(_SCALARS.issuperset(map(type, column)) for column in columns)
        return columns if are_plain or '"$' not in "".join(rows) else _untagged(rows, names)

    return decode


def _untagged(rows: tuple[str, ...], names: list[str]) -> list[PageColumn]:
    held = list(map(decode_fields, rows))
    return [[fields.get(name) for fields in held] for name in names]
