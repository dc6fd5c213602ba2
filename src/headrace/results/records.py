"""The values of columns in rows as they are read. Covers: which parts of a row a column needs, and taking its value
out.

Does not cover: which columns there are (columns), or an interview as a whole (result).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

from headrace.results.columns import Group, ResultColumn, model_value
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import (
    AGENT,
    ANSWERS,
    ITERATION,
    MODEL,
    MORE,
    ORDINAL,
    SCENARIO,
    STATUS,
    Fetched,
    Projection,
)
from headrace.store.run_file.rows import ANSWER_COLUMNS, Status
from headrace.survey.values import Fields, decode_fields, decode_value, from_sql

STATUS_TEXTS = {int(status): status.name.lower() for status in Status}


class Record:
    """One row as it was read; its JSON parts are decoded when first needed."""

    __slots__ = ("_agent", "_more", "_scenario", "row")

    def __init__(self, row: Fetched) -> None:
        self.row = row
        self._agent: Fields | None = None
        self._scenario: Fields | None = None
        self._more: list[Any] | None = None

    @property
    def agent(self) -> Fields:
        if self._agent is None:
            self._agent = decode_fields(self.row[AGENT])
        return self._agent

    @property
    def scenario(self) -> Fields:
        if self._scenario is None:
            self._scenario = decode_fields(self.row[SCENARIO])
        return self._scenario

    @property
    def more(self) -> list[Any]:
        if self._more is None:
            self._more = decode_value(self.row[MORE])
        return self._more or []


Getter: TypeAlias = Callable[[Record], Any]


def projection_of(columns: Iterable[ResultColumn]) -> Projection:
    """The projection that these columns need."""
    columns = list(columns)
    positions = {column.position for column in columns if column.group is Group.ANSWER}
    return Projection(
        answers=tuple(sorted(position for position in positions if position < ANSWER_COLUMNS)),
        agent=any(column.group is Group.AGENT for column in columns),
        scenario=any(column.group is Group.SCENARIO for column in columns),
        more=any(position >= ANSWER_COLUMNS for position in positions),
    )


def getter(column: ResultColumn, projection: Projection, header: RunHeader) -> Getter:
    """A function that takes this column's value out of a record that was read with `projection`."""
    name = column.name
    match column.group:
        case Group.ANSWER:
            return _answer_getter(column.position, projection, header)
        case Group.AGENT:
            return lambda record: record.agent.get(name)
        case Group.SCENARIO:
            return lambda record: record.scenario.get(name)
        case Group.MODEL:
            values = [model_value(model, name) for model in header.models]
            return lambda record: values[record.row[MODEL]]
        case Group.ITERATION:
            return lambda record: record.row[ITERATION]
        case Group.INTERVIEW if name == "ordinal":
            return lambda record: record.row[ORDINAL]
        case Group.INTERVIEW:
            return lambda record: STATUS_TEXTS[record.row[STATUS]]
        case _:
            assert_never(column.group)


def _answer_getter(position: int, projection: Projection, header: RunHeader) -> Getter:
    if position >= ANSWER_COLUMNS:
        return lambda record: record.more[position - ANSWER_COLUMNS]
    place, held = ANSWERS + projection.answers.index(position), header.holds_bools[position]
    return lambda record: from_sql(record.row[place], as_bool=held)
